"""Measurements for people: traces, replays, baselines, reports."""

import codekv  # noqa: F401 - calms torch's threads before torch is imported
