"""Keeps documents that must stay out away from the service.

Asked before a text is handed over, so that nothing of an excluded document can reach
a prompt, a cache or a log. The rules are `codekv.completion.privacy.exclusion`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.completion.privacy.exclusion import Privacy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from codekv.completion.privacy.exclusion import ExclusionReason
    from codekv.config import Config
    from lsp.views import View


class Guard:
    """Judges documents by the rules of the folder they are in.

    Args:
        rules_of: Gives the configuration for a document and the folder it is from.
    """

    def __init__(self, rules_of: Callable[[str], tuple[Config, Path | None]]) -> None:
        self._rules_of = rules_of
        self._privacies: dict[tuple[Config, Path | None], Privacy] = {}
        self._judged: dict[str, tuple[int, ExclusionReason | None]] = {}

    def silence(self, view: View) -> ExclusionReason | None:
        """Tell why a document must stay out; judged once per revision."""
        uri = view.snapshot.uri
        revision, verdict = self._judged.get(uri, (None, None))
        if revision == view.revision:
            return verdict
        config, folder = self._rules_of(view.document.uri)
        key = (config, folder)
        privacy = self._privacies.get(key)
        if privacy is None:
            privacy = Privacy(config.privacy, folder)
            self._privacies[key] = privacy
        verdict = privacy.silence(view.snapshot)
        self._judged[uri] = (view.revision, verdict)
        return verdict

    def forget(self, uri: str) -> None:
        """Forget a closed document."""
        self._judged.pop(uri, None)

    def forget_rules(self) -> None:
        """Judge everything anew: a configuration or ignore file has changed."""
        self._privacies.clear()
        self._judged.clear()
