"""What a running engine measures about itself, judged, with one sentence of advice.

`Monitor` takes numbers (`record`), keeps a bounded window of them, and says whether
they are healthy and which setting to change if not (`analyze`). Knows names of
settings as text; no torch, no text of documents, nothing above it.
"""

from codekv.monitor.advice import Finding, Verdict
from codekv.monitor.history import Histogram, History
from codekv.monitor.monitor import Monitor

__all__ = ["Finding", "Histogram", "History", "Monitor", "Verdict"]
