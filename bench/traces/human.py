"""Generators that type as people do: uneven, with slips, and taking what is offered.

The rhythm follows published data. Dhakal et al., Observations on Typing from 136
Million Keystrokes (CHI 2018): 168,000 people took 239 ms between two keys on average
(standard deviation between people 112 ms), and 6.3 % of their keystrokes were
corrections. González et al., On the shape of timings distributions in free-text
keystroke dynamics profiles (Heliyon 2021): the times of one person are close to
log-normal. Both describe prose; code has more pauses, which are put where a line ends.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from bench.traces.places import Visit, begin, deep_functions, target_in
from bench.traces.trace import Script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from bench.traces.corpus import SourceFile
    from bench.traces.places import TypingTarget

MEAN_S, SPREAD_S = 0.239, 0.112
"""Seconds between two keys over all people: see above."""

OWN_SIGMA = 0.45
"""Spread of one person's times on the logarithmic scale; as in `rhythm`."""

CORRECTED = 0.063
"""Share of keystrokes that are a correction: see above."""

THINK_S = 1.5
"""Median pause behind a line's end. No source: long enough for an answer to be read."""

COLD_KEYS, SESSION_KEYS, BUSY_KEYS = 40, 90, 20
"""Keys of an episode: ten seconds of typing, a few lines, two times one line."""

_NEIGHBOUR = {"a": "s", "e": "r", "i": "o", "o": "p", "t": "y", "n": "m", "s": "d"}
_WORD = re.compile(r"\W*\w+")


class Hands:
    """One person's way of typing."""

    def __init__(self, rng: Random) -> None:
        sigma = math.sqrt(math.log(1 + (SPREAD_S / MEAN_S) ** 2))
        middle = math.log(MEAN_S) - sigma**2 / 2
        self._rng = rng
        self._median = math.exp(rng.gauss(middle, sigma))

    def pause(self, stroke: str) -> float:
        """Seconds before a stroke; longer where a new line begins."""
        median = THINK_S if "\n" in stroke else self._median
        seconds = median * math.exp(self._rng.gauss(0.0, OWN_SIGMA))
        return round(min(max(seconds, 0.03), 6.0), 3)

    def slips(self) -> bool:
        """Whether the next key is a wrong one."""
        return self._rng.random() < CORRECTED


def cold_typing(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Open a file and type at once, without a moment for it to be read."""
    file = rng.choice(files)
    deep = deep_functions(file)
    if not deep:
        return None
    target = target_in(file, file.functions[rng.choice(deep)], COLD_KEYS, rng)
    if target is None:
        return None
    script, hands = Script(rng), Hands(rng)
    script.open(file.uri, file.language, file.data, settle=0.0)
    script.replace(file.uri, target.start, target.end, "")
    _type(script, hands, file.uri, target, "cold")
    return script


def human_session(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Type some lines with slips and pauses, and take offers that are right."""
    begun = begin(files, rng, SESSION_KEYS)
    if begun is None:
        return None
    script, file, _, target = begun
    hands, uri, at = Hands(rng), file.uri, target.start
    Visit(script, file, target, arrive=True)
    text = "".join(target.strokes)
    done = 0
    while done < len(target.strokes):
        stroke = target.strokes[done]
        if hands.slips():
            wrong = _NEIGHBOUR.get(stroke, "x")
            script.key(uri, at, at, wrong, hands.pause(wrong), "slip")
            script.key(uri, at, at + len(wrong), "", hands.pause(""), "correct")
        script.key(uri, at, at, stroke, hands.pause(stroke), "type")
        at += len(stroke.encode())
        done += 1
        # A person looks at what is offered every few keys: for a word, or for the line.
        if rng.random() < 0.2:
            rest = "".join(target.strokes[done:]).partition("\n")[0]
            word = _WORD.match(rest)
            wanted = rest if rng.random() < 0.5 or word is None else word.group()
            if len(wanted) > 1:
                pauses = [hands.pause(stroke) for stroke in wanted]
                script.take(uri, at, wanted, pauses)
                at += len(wanted.encode())
                done += len(wanted)
    assert script.text(uri)[target.start : at].decode() == text
    return script


def busy(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Type a line on a quiet machine, then one beside another program at work."""
    begun = begin(files, rng, 2 * BUSY_KEYS)
    if begun is None:
        return None
    script, file, _, target = begun
    hands, uri = Hands(rng), file.uri
    Visit(script, file, target, arrive=True)
    at = target.start
    for label, keys, cores in (
        ("quiet", target.strokes[:BUSY_KEYS], 0),
        ("busy", target.strokes[BUSY_KEYS:], 1),
    ):
        script.load(cores)
        for stroke in keys:
            script.key(uri, at, at, stroke, hands.pause(stroke), label)
            at += len(stroke.encode())
    script.load(0)
    return script


def _type(
    script: Script, hands: Hands, uri: str, target: TypingTarget, label: str
) -> None:
    at = target.start
    for stroke in target.strokes:
        script.key(uri, at, at, stroke, hands.pause(stroke), label)
        at += len(stroke.encode())
