"""Whom a trace is replayed against: the service, its twins, other servers."""
