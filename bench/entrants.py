"""Who takes part in a run: the service, its fresh twin, baselines, other servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.run import FRESH, MAIN, Entrant
from bench.targets.target import ServiceTarget

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.targets.baselines import Greedy
    from bench.targets.counting import Counter
    from bench.targets.layouts import PromptLayout
    from bench.targets.target import Target
    from codekv.config import Config
    from codekv.model.runtime.interface import Runtime
    from codekv.tokens.tokenizer import Tokenizer

PREFIX = "common-prefix"
PLUGIN = "plugin-layout"
BASELINES = (FRESH, PREFIX, PLUGIN)


def measured(config: Config, *, as_used: bool) -> Config:
    """The configuration that is replayed.

    Answers that come without the model (typing along a known answer, guesses made
    ahead) and answers of several lines would hide what a request costs, so they are
    off unless wanted.
    """
    if as_used:
        return config
    off = {"typed_through": False, "speculate": False, "multiline": "never"}
    completion = config.completion.model_copy(update=off)
    return config.model_copy(update={"completion": completion})


def anew(config: Config) -> Config:
    """The same answers with nothing reused and no hurry."""
    off = {"typed_through": False, "speculate": False, "latency_budget_ms": 60_000}
    completion = config.completion.model_copy(update=off)
    kvcache = config.kvcache.model_copy(update={"idle_work": False, "disk": False})
    return config.model_copy(update={"completion": completion, "kvcache": kvcache})


class Shared:
    """One loaded runtime for both baselines, and what it told about itself."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._runtime: Runtime | None = None
        self._tokenizer: Tokenizer | None = None
        self.speed: dict[str, Any] = {}
        self.model: dict[str, Any] = {"name": config.model.name}

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, loaded without its weights."""
        if self._tokenizer is None:
            from codekv.model.library.resolve import resolve_model
            from codekv.tokens.tokenizer import load_tokenizer

            config = self._config.model
            folder = resolve_model(config, pull=False).folder
            self._tokenizer = load_tokenizer(folder, config.fim)
        return self._tokenizer

    def counters(self, names: Sequence[str]) -> dict[str, Counter]:
        """What counts the tokens of baselines, by name."""
        from bench.targets.counting import Counter
        from bench.targets.layouts import Anchored, Plugin

        made = {}
        for name in names:
            kind = Plugin if name == PLUGIN else Anchored
            layout = kind(self.tokenizer, self._config)
            made[name] = Counter(layout, reuse=name != FRESH)
        return made

    def prefix(self) -> tuple[PromptLayout, Greedy]:
        """Our prompt, with nothing but common-prefix reuse."""
        from bench.targets.layouts import Anchored

        return Anchored(self.tokenizer, self._config), self._greedy()

    def plugin(self) -> tuple[PromptLayout, Greedy]:
        """The prompt of today's plugins, with common-prefix reuse."""
        from bench.targets.layouts import Plugin

        return Plugin(self.tokenizer, self._config), self._greedy()

    def describe(self) -> dict[str, Any]:
        """The model's facts; those of the store alone if no baseline loaded it."""
        if self._runtime is None:
            self.model |= _stored(self._config.model.name)
        return self.model

    def _greedy(self) -> Greedy:
        from bench.targets.baselines import Greedy

        if self._runtime is None:
            self._load()
        assert self._runtime is not None
        limit = self._config.completion.max_tokens
        return Greedy(self._runtime, self.tokenizer, limit, reuse=True)

    def _load(self) -> None:
        from bench.speed import measure
        from codekv.model.library.resolve import resolve_model
        from codekv.model.runtime.loader import load_runtime

        config = self._config.model
        resolved = resolve_model(config, pull=False)
        self._runtime = load_runtime(resolved.folder, config)
        self.speed = measure(self._runtime, resolved.folder)
        spec = self._runtime.spec
        self.model = {
            "name": resolved.name,
            "family": spec.family,
            "compute": spec.compute,
            "device": spec.device,
            "fingerprint": spec.fingerprint,
            **_stored(resolved.name),
            "kv_bytes_per_token": sum(
                heads * (key + value) * 4 for heads, key, value in spec.kv_shapes
            ),
        }


def line_up(
    config: Config, shared: Shared, names: Sequence[str], main: Entrant | None = None
) -> list[Entrant]:
    """The entrants in order; `main` takes the place of the service in this process."""
    from bench.targets.baselines import BaselineTarget

    makers: dict[str, Any] = {
        FRESH: lambda: ServiceTarget(lambda: _service(anew(config)), anew=True),
        PREFIX: lambda: BaselineTarget(shared.prefix),
        PLUGIN: lambda: BaselineTarget(shared.plugin),
    }

    def service() -> Target:
        return ServiceTarget(lambda: _service(config))

    first = main or Entrant(MAIN, service)
    return [first, *(Entrant(name, makers[name]) for name in names)]


def lsp_entrant(config: Config, root: Path) -> Entrant:
    """The service behind a real server process."""
    from bench.targets.lsp import LspTarget

    return Entrant(MAIN, lambda: LspTarget(config, root))


def divergence_entrant(config: Config) -> Entrant:
    """A further pass that compares answers with fresh runs."""
    from bench.quality.divergence import entrant

    return entrant(lambda: _service(config))


def _service(config: Config) -> Any:
    from codekv.completion.service import Service

    return Service(config, None)


def _stored(name: str) -> dict[str, Any]:
    from codekv.errors import ModelError
    from codekv.model.library.store import open_model

    try:
        stored = open_model(name)
    except ModelError:
        return {}
    return {"family": stored.family, "source_sha256": stored.source_sha256}
