"""Time, order and cancellation: what runs next on the one torch thread."""
