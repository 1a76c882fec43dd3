"""What a running engine measures about itself, judged, with one sentence of advice.

| module | what it holds |
| --- | --- |
| `monitor` | `Monitor`: `record()` takes numbers, `snapshot()` gives them |
| `history` | `History`: a bounded window of measurements |
| `advice` | rules: is a number healthy, and which setting should change |
| `output` | a log file, Prometheus, the status that `codekv top` reads |

Knows names of settings as text.

Never here: torch, text of documents, anything above this room.
"""

from codekv.monitor.advice import Finding, Verdict
from codekv.monitor.history import Histogram, History
from codekv.monitor.monitor import Monitor

__all__ = ["Finding", "Histogram", "History", "Monitor", "Verdict"]
