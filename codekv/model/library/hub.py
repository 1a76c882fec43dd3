"""Any model on the Hugging Face hub, by id: `ORG/NAME` or `ORG/NAME/FILE.gguf`.

Only configuration, tokenizer and safetensors (or one GGUF file) are fetched; nothing
from the repository is run.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import huggingface_hub
from huggingface_hub import errors as hub_errors

from codekv.config import data_dir
from codekv.errors import DownloadError, ModelFormatError, ModelNotFoundError
from codekv.model.library import store
from codekv.model.library.download import HUB_LIMIT_S, Sources
from codekv.model.library.fetch import is_reachable

if TYPE_CHECKING:
    from codekv.model.library.fetch import DownloadProgress
    from codekv.model.library.store import StoredModel

_WANTED = ["config.json", "tokenizer.json", "tokenizer_config.json", "*.safetensors"]


def fetch_hub_model(
    hub_id: str, name: str, progress: DownloadProgress, sources: Sources | None
) -> StoredModel:
    """Fetch `hub_id` and convert it into the store as `name`.

    Raises:
        ModelNotFoundError: The hub does not know it, or wants a login for it.
        ModelFormatError: It arrived and cannot be used.
        DownloadError: The hub cannot be reached, or broke off.
        StorageError: The disk is full or cannot be written.
    """
    sources = sources or Sources.configured()
    if not sources.hub or not is_reachable(sources.hub, HUB_LIMIT_S):
        line = f"the Hugging Face hub cannot be reached, so {hub_id} cannot be fetched"
        raise DownloadError(f"{line}; go online, or: codekv model add PATH")
    org, repo, *inside = hub_id.split("/", 2)
    folder = data_dir() / "downloads" / name
    progress.say(f"fetching {hub_id} from the Hugging Face hub")
    try:
        path = _fetch(f"{org}/{repo}", inside, folder, sources.hub)
    except (
        hub_errors.RepositoryNotFoundError,
        hub_errors.EntryNotFoundError,
        hub_errors.GatedRepoError,
    ) as error:
        line = f"the hub has no public {hub_id}; for a gated one: hf auth login"
        raise ModelNotFoundError(line) from error
    except (hub_errors.HfHubHTTPError, hub_errors.OfflineModeIsEnabled) as error:
        line = f"the hub broke off ({_line(error)}); run the command again to continue"
        raise DownloadError(line) from error
    progress.say(f"converting {hub_id}")
    if inside:
        stored = store.import_gguf(path, name, f"hub {hub_id}", None, ours=True)
    else:
        stored = store.import_folder(path, name, f"hub {hub_id}")
    shutil.rmtree(folder, ignore_errors=True)
    return stored


def _fetch(repo: str, inside: list[str], folder: Path, hub: str) -> Path:
    with store.disk_errors(folder):
        if inside:
            return Path(
                huggingface_hub.hf_hub_download(
                    repo, inside[0], local_dir=folder, endpoint=hub
                )
            )
        huggingface_hub.snapshot_download(
            repo, local_dir=folder, allow_patterns=_WANTED, endpoint=hub
        )
    if not any(folder.glob("*.safetensors")):
        line = f"{repo} has no .safetensors files; for a GGUF: codekv model pull"
        raise ModelFormatError(f"{line} {repo}/FILE.gguf")
    return folder


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
