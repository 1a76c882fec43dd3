"""Fixtures for all tests; a test that needs the default model says so by marker."""

import os

# Tiny tensors gain nothing from a second thread, and where the machine is busy the
# threads wait for each other for most of the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
