"""From logits to tokens: greedy decoding, drafts and branches."""
