"""Running models: one forward pass, its kernels, and the adapter for other models."""
