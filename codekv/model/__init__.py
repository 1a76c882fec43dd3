"""Models: getting them, loading them, running one step."""
