"""Syntax trees: where functions begin, what each token is, where a text ends."""
