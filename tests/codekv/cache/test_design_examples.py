"""The worked examples of docs/design, step by step."""

from codekv.cache.key import chain_of
from codekv.cache.manager import CacheManager, NewBlock
from codekv.cache.policy import policy, purge_target

A, B, B2, C = [1], [2], [22], [3]


class Example:
    """A manager whose blocks have letters."""

    def __init__(self) -> None:
        self.manager = CacheManager(100, policy("recency"))
        self.refs = {
            letter: chain_of("f", [[ord(letter)]])[0] for letter in "ABCDEFGHI"
        }
        self.now = 0.0

    def store(self, ref) -> None:
        self.now += 1
        self.manager.insert(
            NewBlock(
                ref.chain, ref.content, ref.parent, ref.tokens, ref.num_tokens, 10, 1.0
            ),
            self.now,
        )
        self.manager.check()

    def stored(self) -> str:
        letters = {ref.chain: letter for letter, ref in self.refs.items()}
        return "".join(letters[block.chain] for block in self.manager.blocks())

    def answers(self, *texts) -> list[str]:
        matches = self.manager.match(chain_of("f", texts))
        return [match.kind if match else "miss" for match in matches]


def test_eviction_example():
    example = Example()
    for letter in "ABCDEFGH":
        example.store(example.refs[letter])
    example.manager.hold("a.py", [example.refs["A"].chain], 0.0)
    assert (example.stored(), example.manager.num_bytes) == ("ABCDEFGH", 80)

    example.store(example.refs["I"])
    assert (example.stored(), example.manager.num_bytes) == ("AFGHI", 50)

    example.store(example.refs["B"])
    assert (example.stored(), example.manager.num_bytes) == ("AFGHIB", 60)

    example.manager.shrink(purge_target(100, 0.4), example.now)
    assert (example.stored(), example.manager.num_bytes) == ("AHIB", 40)


def test_prefix_index_example():
    example = Example()
    for ref in chain_of("f", [A, B, C]):
        example.store(ref)
    assert example.answers(A, B, C) == ["chain", "chain", "chain"]
    assert example.answers(A, B2, C) == ["chain", "miss", "content"]

    for ref in chain_of("f", [A, B2, C]):
        example.store(ref)
    assert example.answers(A, B2, C) == ["chain", "chain", "chain"]
    assert example.answers(A, B, C) == ["chain", "chain", "chain"]

    example.manager.shrink(example.manager.num_bytes - 10, example.now)
    assert example.answers(A, B, C) == ["chain", "chain", "content"]


def test_copy_on_write_example():
    example = Example()
    for letter in "ABC":
        example.store(example.refs[letter])
    chain = {letter: ref.chain for letter, ref in example.refs.items()}

    def counts() -> list[int]:
        return [block.num_refs for block in example.manager.blocks()]

    example.manager.hold("a.py", [chain["A"], chain["B"]], 0.0)
    assert counts() == [1, 1, 0]
    example.manager.fork("a.py", "request")
    assert counts() == [2, 2, 0]
    example.manager.hold("a.py", [chain["A"], chain["C"]], 0.0)
    assert counts() == [2, 1, 1]
    example.manager.release("request")
    assert counts() == [1, 0, 1]
