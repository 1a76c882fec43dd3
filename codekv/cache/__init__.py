"""Which block is which, who holds it, and which goes: integers only.

No torch, no syntax, no files, no clock: time is passed in.
"""
