"""The decoder's step as native code: generated as LLVM IR, compiled at the start.

Matrices: `formats` (how weights lie), `packing` (from a file's bytes), `matrices` (of a
model). Code: `ir` (a writer of text), `dots` and `target` (what processors differ in),
`tiles`, `product`, `vectors`, `operations`, `attention` (what is computed), `program`
and `pool` (who computes it), `compiler`, `kernels` and `checks` (chosen and checked).
`layers` puts a step together, `decoder` is the `Runtime`, `load` makes one.
"""
