"""What goes into and comes out of the completion service.

Values only: no model, no syntax, no editor types. `lsp`, `bench` and the command
line speak these; `codekv.testing` has a scripted service that speaks them too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from codekv.config import Config
    from codekv.text.snapshot import Snapshot


class Trigger(StrEnum):
    """Why a completion was asked for."""

    AUTOMATIC = "automatic"
    INVOKED = "invoked"


class State(StrEnum):
    """What the service is doing, as shown in a status bar."""

    LOADING = "loading"
    READY = "ready"
    WORKING = "working"
    PAUSED = "paused"
    ERROR = "error"


class Feedback(StrEnum):
    """What became of an offered item."""

    SHOWN = "shown"
    ACCEPTED = "accepted"
    PARTIALLY_ACCEPTED = "partially_accepted"


@dataclass(frozen=True, slots=True)
class Selected:
    """The entry chosen in the editor's popup: items must extend `text` over the range.

    Offsets are bytes of the snapshot's data.
    """

    start_byte: int
    end_byte: int
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question: what comes at `cursor_byte` of `snapshot`?

    Attributes:
        snapshot: The document as the user sees it.
        cursor_byte: Offset into `snapshot.data`; on a character border.
        trigger: Invoked requests skip caches of answers and may return several items.
        max_items: At most this many different items.
        selected: The popup's entry, if one is selected.
        max_tokens: Overrides the configured length limit.
        patience_s: Seconds that costly work may wait for a newer question.
    """

    snapshot: Snapshot
    cursor_byte: int
    trigger: Trigger = Trigger.AUTOMATIC
    max_items: int = 1
    selected: Selected | None = None
    max_tokens: int | None = None
    patience_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Item:
    """One answer: put `text` in place of `[start_byte, end_byte)`.

    The range lies within the cursor's line, contains the cursor, and `text` begins
    with what stands between its start and the cursor. Line ends are the document's.

    Attributes:
        id: Names the item in later feedback.
        score: Mean log probability of the generated tokens, or None if unknown.
    """

    id: str
    text: str
    start_byte: int
    end_byte: int
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds; `ttft` is the time to the first generated token."""

    total: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    ttft: float = 0.0
    queue: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens behind an answer.

    `context = exact + restored + moved + computed`; `generated` counts accepted
    output tokens and `steps` the forward passes they took.
    """

    context: int = 0
    exact: int = 0
    restored: int = 0
    moved: int = 0
    computed: int = 0
    generated: int = 0
    steps: int = 0


class AnswerSource(StrEnum):
    """Where an answer came from."""

    MODEL = "model"
    TYPED_THROUGH = "typed_through"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to a request; `items` is empty when there is nothing to offer.

    Attributes:
        reason: Why there are no items (`loading`, `excluded`, `inside-word`, …), for
            status displays and tests; empty when there are some.
        reuse_stop: Why reuse of the cache ended (`suffix`, `window`, `prefix`, `cold`).
        filters: Names of the trimming filters that changed the text.
        longest_run: Most equal tokens in a row in the prompt.
        is_cut: The deadline came before the end; the rest is remembered.
    """

    items: tuple[Item, ...] = ()
    model: str = ""
    timing: Timing = field(default_factory=Timing)
    tokens: TokenCounts = field(default_factory=TokenCounts)
    source: AnswerSource = AnswerSource.MODEL
    reason: str = ""
    reuse_stop: str = ""
    filters: tuple[str, ...] = ()
    longest_run: int = 0
    is_cut: bool = False

    @property
    def text(self) -> str:
        """The first item's text, or nothing."""
        return self.items[0].text if self.items else ""


@dataclass(frozen=True, slots=True)
class Status:
    """A point-in-time view for status bars, `codekv top` and tests.

    Attributes:
        settled: Nothing is left to do, idle work included; `state` does not tell.
        why: Why `model.name = "auto"` stands for this model.
        offer: Whether a larger model would do here and waits for the user's consent.
    """

    state: State
    model: str = ""
    message: str = ""
    last: Completion | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    settled: bool = True
    why: str = ""
    offer: bool = False


class CompletionService(Protocol):
    """The one thing `lsp` and `bench` talk to; safe to use from one event loop.

    Nothing here blocks: loading and inference run on threads of their own.
    """

    def start(self) -> None:
        """Begin to load the model in the background."""

    async def ready(self) -> None:
        """Wait until the model can answer.

        Raises:
            ModelError: The model cannot be loaded.
        """

    def document_changed(self, snapshot: Snapshot) -> None:
        """Note a newly opened or changed document; may start idle work."""

    def document_closed(self, uri: str) -> None:
        """Forget a document's live state; stored blocks stay."""

    def document_focused(self, uri: str | None) -> None:
        """Note which document the user looks at."""

    def peek(self, request: Request) -> Completion | None:
        """Answer one request at once if that needs no model; else None.

        For callers that wait for a pause in the typing before they ask for work.
        """

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Cancelling the awaiting task stops the work within one decoding step. A
        newer request for the same document ends an older one with
        `CancelledWorkError`.
        """

    def feedback(self, item_id: str, kind: Feedback, accepted_bytes: int = 0) -> None:
        """Note what became of an item; unknown ids are ignored."""

    def pause(self, paused: bool) -> None:
        """Stop or resume answering; paused requests get an empty answer."""

    def status(self) -> Status:
        """Tell the present state; cheap."""

    def clear_cache(self) -> None:
        """Drop every stored block of every tier."""

    def reload(self) -> None:
        """Load the configured model anew; the present one answers until it is there."""

    def reconfigure(self, config: Config) -> None:
        """Take a new configuration; reloads the model only if it must."""

    async def close(self) -> None:
        """Stop all work within one decoding step and free everything."""
