"""The laboratory: what a way of storing keys and values costs, and what it breaks."""
