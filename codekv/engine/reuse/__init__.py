"""What of a prompt is at hand: the reuse plan, KV transfer, repair and prefill."""
