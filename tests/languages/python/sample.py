"""A counter of words."""

import re
from collections import Counter

from tools import cached, retry

LIMIT = 10


# Comment above a function.
@cached
@retry(
    times=3,
)
def count(
    text: str,
    *,
    limit: int = LIMIT,
) -> Counter:
    """Count words."""

    def clean(word):
        return word.lower()

    query = """
def not_a_function():
    pass
"""
    return Counter(clean(w) for w in re.findall(query, text))


class Words(dict):
    """All words."""

    field = 1

    def __init__(self, text):
        super().__init__(count(text))

    @property
    def total(self):
        return sum(self.values())

    class Inner:
        async def deep(self):
            pass


if __name__ == "__main__":
    print(Words("a b").total)
