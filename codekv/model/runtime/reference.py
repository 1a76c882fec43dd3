"""The plain transformers model of a store folder.

Used by the adapter, by `check.py` as the reference, and by tests. Importing this
module imports transformers, so it is imported late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig
from transformers.utils.logging import disable_progress_bar

from codekv.errors import ModelFormatError
from codekv.model.runtime.half import half_weights

if TYPE_CHECKING:
    from pathlib import Path

    import torch


def load_plain(folder: Path, dtype: torch.dtype, device: str = "cpu") -> Any:
    """Build the model in evaluation mode.

    Raises:
        ModelFormatError: No such architecture, or weights that do not fit it.
    """
    disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        weights = load_file(half_weights(folder))
        model, report = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
            None,
            config=config,
            state_dict=weights,
            dtype=dtype,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        line = " ".join(str(error).split())[:200]
        raise ModelFormatError(
            f"transformers cannot load {folder} ({line}); choose another model"
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelFormatError(
            f"{folder} lacks {len(missing)} tensors, {missing[0]} first; pull or add "
            "the model again"
        )
    return model.eval().requires_grad_(False).to(device)
