"""Fixtures for all tests; a test that needs the default model says so by marker."""
