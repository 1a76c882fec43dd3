"""Getting models: catalog, sources, downloads, imports and the local store."""
