"""Measurements for people: traces, replays, baselines, reports."""
