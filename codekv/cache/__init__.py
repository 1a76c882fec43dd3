"""Who owns which block and what may go: integers and hashes only.

| module | what it holds |
| --- | --- |
| `key` | `BlockRef`, chain and content keys: what a block is called |
| `block` | `Block`: what is known of a stored block without its bytes |
| `index` | `PrefixIndex`: from keys to blocks, exact before movable |
| `pool` | `BlockPool`, `BlockTable`: reference counts, shared copy-on-write |
| `manager` | `CacheManager`: insertion, eviction and the memory guard of one tier |
| `policy` | what leaves first, and when: small pure functions by name |
| `window` | which blocks of a long context stay: sparse and dynamic sampling |
| `events` | `Event`, `Counters`: what happened, counted by name |

Every structure has `check()`, which tests call after each step. Times are passed in.

Never here: bytes of keys and values, torch, files, threads.
"""
