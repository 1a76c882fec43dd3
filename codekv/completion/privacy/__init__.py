"""Which documents stay out of everything, and why."""
