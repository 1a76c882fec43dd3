"""The engine: what runs next on the one torch thread, and what is computed there.

A task goes through `Engine.plan` (a `ReusePlan`: where each slot of the prompt comes
from), `Prefill` (logits behind the prompt) and a decoder (a frozen `Candidate`).

| module | what it holds |
| --- | --- |
| `worker` | `Worker`: the thread; jobs step by step, the newest request first |
| `engine` | `Engine`: a model, sequences, blocks; `Task` in, `Outcome` out |
| `live_sequence` | `LiveSequence`: tokens whose keys and values are ready |
| `sequence_pool` | `SequencePool`: which sequence a prompt goes to |
| `shared_slots` | `Trunk`: copy-on-write between related sequences |
| `live_memory` | `LiveMemory`: counts working tensors, frees them when it must |
| `speed` | `Speed`: how long a prefill takes on this machine |
| `divergence_probe` | how far reuse changes what the model says; measurements only |

`reuse` plans and carries out a prefill, `decoding` makes candidates of logits,
`background` is the work for pauses: exactness, blocks ahead, attention importance.

Never here: text, syntax, files, the editor. Tokens, slots and tensors only.
"""
