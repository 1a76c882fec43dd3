"""Where keys and values are kept: working tensors, compressed blocks, files."""
