"""Runs this folder's tests on a simulated device, if the environment names it."""

import os

from codekv.testing.model import DEVICE_VARIABLE
from codekv.testing.other_device import NAME, enabled

if os.environ.get(DEVICE_VARIABLE) == NAME:
    # For good: the test modules make their models while they are imported.
    enabled().__enter__()
