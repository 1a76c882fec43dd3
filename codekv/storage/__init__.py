"""Where keys and values are kept: working tensors, compressed blocks, files.

| module | what it holds |
| --- | --- |
| `blockstore` | `BlockStore`: the one door for the engine |
| `values` | what goes in and out beside keys and values: `Hit`, `StoreBudget` |
| `reader`, `writer` | blocks back from memory or disk; blocks to disk, later |
| `ram`, `disk` | the two tiers |
| `eviction_settings` | when memory is cleaned, by which named policy |
| `encoded` | `Codec`, `EncodedBlock`: what a codec is |
| `plain` | fp32, fp16, int8: all tokens alike |
| `codec`, `layout`, `bits`, `hadamard` | bits by syntax class: `ClassCodec` |
| `presets`, `classtable`, `calibrate` | named bit tables, calibrated ones, how |
| `entropy` | how files are coded: plain, zstd, Huffman, differences |
| `blockfile`, `folder` | bytes of one file (docs/format.md); names and atomic writes |
| `administration` | sizes, verification and removal, without a model |
| `tensors` | `KVTensors`: working keys and values of one sequence |
| `malloc_tuning` | keeps freed memory for the next tensor of its size |
| `stats` | what the store tells of itself |

Never here: which tokens matter, text, models.
"""
