"""Work for the pauses: exactness, warming and attention importance."""
