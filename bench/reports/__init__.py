"""Samples to numbers, and numbers to tables, pages and pictures."""
