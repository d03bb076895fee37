"""Sums of blocks along a fixed tree.

Two neighbouring blocks are added up, then two neighbouring pairs, and so on. A place adds up what it has of the tree,
so that few numbers travel however many blocks it holds, and the last digit of a sum does not depend on who added what.
"""

from collections.abc import Callable, Iterable
from typing import Any

Merge = Callable[[Any, Any], Any]
#: A part of the tree: its level, and its place among the parts of that level. Blocks are the parts of level 0.
Part = tuple[int, int]


def merged(n_blocks: int, merge: Merge, parts: Iterable[tuple[Part, list[Any]]]) -> dict[Part, list[Any]]:
    """Return the fewest parts that hold all given ones, each with its values."""
    known: dict[Part, list[Any]] = {}
    for part, given in parts:
        level, place = part
        values = given
        while 1 << level < n_blocks:
            other = place ^ 1
            if other << level < n_blocks:  # else nothing lies beside it
                neighbour = known.pop((level, other), None)
                if neighbour is None:
                    break
                values = [merge(one, two) for one, two in zip(neighbour, values, strict=True)]
            level += 1
            place //= 2
        known[level, place] = values
    return known
