"""Where blocks lie and who computes on them: what this process and the workers of a cluster have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelweave.backends.blocks.merging import Merge, Part, merged
from kernelweave.backends.blocks.nodes import Block, Command, Node, commands, in_order


@dataclass
class Traffic:
    """What has travelled between this process and the places."""

    sent: int = 0  # bytes
    received: int = 0  # bytes
    by_round: list[int] = field(default_factory=list)  # bytes of every round, in both directions

    @property
    def rounds(self) -> int:
        """How often all places were asked."""
        return len(self.by_round)


@dataclass(frozen=True)
class Task:
    """What one place is to do with some of its blocks."""

    place: str
    program: list[Command]
    wanted: list[int]  # numbers of the values to return
    dropped: tuple[int, ...]  # numbers of values that may go at once
    dropped_after: tuple[int, ...]  # of values that the program still reads
    blocks: list[int]
    merge: Merge | None = None  # what makes one of the values of two blocks


#: What a place returns: the wanted values of single blocks, or of parts of the tree along which blocks are merged.
Answer = dict[Part, list[Any]]


class Places(ABC):
    """Blocks of rows at one or several places."""

    #: Whether one block at a time is in memory, so that what can be computed again is better not kept.
    streams = False

    def __init__(self, sizes: Sequence[int]) -> None:
        starts = [0]
        for rows in sizes:
            starts.append(starts[-1] + rows)
        self.blocks = [Block(b, start, rows) for b, (start, rows) in enumerate(zip(starts, sizes, strict=False))]
        #: Numbers of the values that are kept with each block.
        self.known: list[set[int]] = [set() for _ in sizes]
        #: Numbers of nodes whose values came from elsewhere; nothing could compute them again.
        self.brought: set[int] = set()
        #: Places that died while blocks lay there.
        self.lost: set[str] = set()
        self.traffic = Traffic()

    @abstractmethod
    def where(self) -> dict[str, list[int]]:
        """Return the blocks at every place; what was lost has been moved to places that are alive."""

    @abstractmethod
    def send(self, tasks: Sequence[Task]) -> list[Answer | None]:
        """Run programs, one at each place; return the wanted values, None from a place that is lost."""

    def bring(self, loaders: Sequence[Any]) -> Callable[[int], None] | None:
        """Return what has rows loaded under the number of a node, None where the loaders travel themselves."""
        return None

    @abstractmethod
    def has_room_for(self, n_bytes: int) -> bool:
        """Whether so many bytes more, in all blocks together, may be kept; from then on they count."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is kept."""

    def evaluate(
        self, wanted: Sequence[Node], pending: Sequence[Node], held: set[int], dropped: Iterable[int]
    ) -> list[list[Any]]:
        """Return the values of the wanted nodes, block by block; pending ones are computed and kept."""
        answers = self._answers(wanted, pending, held, dropped, None)
        return [[answers[0, b][place] for b in range(len(self.blocks))] for place in range(len(wanted))]

    def evaluate_merged(
        self,
        wanted: Sequence[Node],
        pending: Sequence[Node],
        held: set[int],
        dropped: Iterable[int],
        merge: Merge,
    ) -> list[Any]:
        """Return the values of the wanted nodes, those of all blocks merged along the tree."""
        answers = self._answers(wanted, pending, held, dropped, merge)
        (values,) = merged(len(self.blocks), merge, answers.items()).values()
        return values

    def _answers(
        self,
        wanted: Sequence[Node],
        pending: Sequence[Node],
        held: set[int],
        dropped: Iterable[int],
        merge: Merge | None,
    ) -> Answer:
        """Return what the places return for all blocks; those of places that are lost are asked of others."""
        gone = {number for number in dropped if number not in self.brought}
        answers: Answer = {}
        done: set[int] = set()
        while len(done) < len(self.blocks):
            before = self.traffic.sent + self.traffic.received
            tasks = self._tasks(wanted, pending, held, gone, done, merge)
            for task, answer in zip(tasks, self.send(tasks), strict=True):
                if answer is None:
                    continue
                answers |= answer
                done.update(task.blocks)
                kept = {command.number for command in task.program if command.keep}
                for b in task.blocks:
                    self.known[b] |= kept
                    self.known[b] -= gone
            self.traffic.by_round.append(self.traffic.sent + self.traffic.received - before)
        return answers

    def _tasks(
        self,
        wanted: Sequence[Node],
        pending: Sequence[Node],
        held: set[int],
        gone: set[int],
        done: set[int],
        merge: Merge | None,
    ) -> list[Task]:
        """Return what every place has to do; blocks that know different values get programs of their own."""
        numbers = [node.number for node in wanted]
        tasks = []
        for place, blocks in self.where().items():
            groups: dict[frozenset[int], list[int]] = {}
            for b in blocks:
                if b not in done:
                    groups.setdefault(frozenset(self.known[b]), []).append(b)
            for known, group in groups.items():
                nodes = in_order([*pending, *wanted], set(known))
                program = commands(nodes, held, set(numbers), group)
                read = {parent.number for node in nodes for parent in node.parents()} | set(numbers)
                tasks.append(Task(place, program, numbers, tuple(gone - read), tuple(gone & read), group, merge))
        return tasks
