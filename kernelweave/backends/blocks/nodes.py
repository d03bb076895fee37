"""What is asked of blocks: functions of arrays that lie there, written down before they are computed.

A node is a function and its arguments, among them other nodes. Nodes never change, and functions have no side effects:
whatever a place has lost can be computed again from the nodes behind it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave.backends.blocks.merging import Part


@dataclass(frozen=True)
class Block:
    """One block of rows."""

    index: int
    start: int  # the number of its first sample
    rows: int


@dataclass(frozen=True)
class PerBlock:
    """An argument that differs from block to block."""

    pieces: Sequence[Any]


@dataclass(frozen=True)
class Ref:
    """Stands for the value of a node where nodes travel."""

    number: int


@dataclass(frozen=True, eq=False)
class Node:
    """A function of a block and further arguments."""

    number: int
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kept: bool = True  # whether the value stays with the block as long as someone holds it

    def parents(self) -> "list[Node]":
        """Return the nodes among the arguments."""
        return [arg for arg in self.args if isinstance(arg, Node)]


@dataclass(frozen=True)
class Command:
    """A node as it travels to the blocks ``pieces`` is about."""

    number: int
    function: Callable[..., Any]
    args: tuple[Any, ...]
    keep: bool
    done_with: tuple[int, ...]  # numbers of values that no later command needs


def in_order(wanted: Iterable[Node], known: "set[int]") -> list[Node]:
    """Return the nodes that have to be computed, arguments first; what is known already is not computed again."""
    ordered: list[Node] = []
    entered: set[int] = set()
    stack = [(node, False) for node in reversed(list(wanted))]
    while stack:
        node, complete = stack.pop()
        if complete:
            ordered.append(node)
        elif node.number not in entered and node.number not in known:
            entered.add(node.number)
            stack.append((node, True))
            stack.extend((parent, False) for parent in reversed(node.parents()))
    return ordered


def commands(nodes: Sequence[Node], held: "set[int]", wanted: "set[int]", blocks: Sequence[int]) -> list[Command]:
    """Return nodes as they travel to some blocks: each gets its pieces, and values are dropped after their last use."""
    last_use = {arg.number: place for place, node in enumerate(nodes) for arg in (*node.parents(), node)}
    stay = held | wanted
    result = []
    for place, node in enumerate(nodes):
        done_with = tuple(number for number, last in last_use.items() if last == place and number not in stay)
        args = tuple(_travelling(arg, blocks) for arg in node.args)
        keep = node.kept and node.number in held
        result.append(Command(node.number, node.function, args, keep, done_with))
    return result


def _travelling(arg: Any, blocks: Sequence[int]) -> Any:
    if isinstance(arg, Node):
        return Ref(arg.number)
    if isinstance(arg, PerBlock):
        return PerBlock({b: arg.pieces[b] for b in blocks})  # type: ignore[arg-type]
    return arg


class Shard:
    """Some blocks at one place, and the values that are kept there."""

    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}
        self.values: dict[int, dict[int, Any]] = {}

    def take_over(self, blocks: Iterable[Block]) -> None:
        """Begin with blocks of which nothing is known."""
        for block in blocks:
            self.blocks[block.index] = block
            self.values[block.index] = {}

    def run(
        self,
        program: Sequence[Command],
        wanted: Sequence[int],
        blocks: Sequence[int],
        *,
        dropped: Iterable[int] = (),
        dropped_after: Sequence[int] = (),
        each: Callable[..., Iterable[Any]] = map,
    ) -> Iterator[tuple[Part, list[Any]]]:
        """Compute, block after block unless ``each`` does it side by side; yield the wanted values of every block.

        Values are forgotten before the program or, where it reads them, block by block after it.
        """
        for values in self.values.values():
            for number in dropped:
                values.pop(number, None)

        def work(b: int) -> list[Any]:
            results = self._run_block(self.blocks[b], program, wanted)
            for number in dropped_after:
                self.values[b].pop(number, None)
            return results

        yield from zip([(0, b) for b in blocks], each(work, blocks), strict=True)

    def _run_block(self, block: Block, program: Sequence[Command], wanted: Sequence[int]) -> list[Any]:
        stored = self.values[block.index]
        passing: dict[int, Any] = {}

        def value(arg: Any) -> Any:
            if isinstance(arg, Ref):
                return passing[arg.number] if arg.number in passing else _unpacked(stored[arg.number])
            return arg.pieces[block.index] if isinstance(arg, PerBlock) else arg

        for command in program:
            result = command.function(block, *map(value, command.args))
            passing[command.number] = result
            if command.keep:
                stored[command.number] = _packed(result)
            for number in command.done_with:
                passing.pop(number, None)
        return [value(Ref(number)) for number in wanted]


@dataclass(frozen=True)
class _Packed:
    """Indices, labels for instance, in the fewest bytes."""

    values: NDArray[Any]


def _packed(value: Any) -> Any:
    """Return a value as it is kept."""
    if not (isinstance(value, np.ndarray) and value.dtype == np.intp and value.size and value.min() >= 0):
        return value
    return _Packed(value.astype(np.min_scalar_type(value.max())))


def _unpacked(kept: Any) -> Any:
    return kept.values.astype(np.intp) if isinstance(kept, _Packed) else kept
