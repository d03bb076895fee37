"""Blocks in this process: arrays larger than memory, read block by block from files."""

from collections.abc import Sequence

from kernelweave.backends.blocks.merging import merged
from kernelweave.backends.blocks.nodes import Shard
from kernelweave.backends.blocks.places import Answer, Places, Task
from kernelweave.foundation.threads import parallel_map


class Here(Places):
    """All blocks at one place, this process; ``room`` is what may be kept, in bytes.

    With ``streams`` blocks are read from where they come from at every pass.
    """

    def __init__(self, sizes: Sequence[int], *, room: float = float("inf"), streams: bool = False) -> None:
        super().__init__(sizes)
        self.streams = streams
        self._room = room
        self._shard = Shard()
        self._shard.take_over(self.blocks)

    def has_room_for(self, n_bytes: int) -> bool:
        """Whether so many bytes more may be kept."""
        if self.streams or n_bytes > self._room:
            return False
        self._room -= n_bytes
        return True

    def where(self) -> dict[str, list[int]]:
        """Return all blocks."""
        return {"here": list(range(len(self.blocks)))}

    def send(self, tasks: Sequence[Task]) -> list[Answer | None]:
        """Run the programs, blocks side by side on all threads; nothing travels, and nothing gets lost."""
        return [self._answer(task) for task in tasks]

    def _answer(self, task: Task) -> Answer:
        values = self._shard.run(
            task.program,
            task.wanted,
            task.blocks,
            dropped=task.dropped,
            dropped_after=task.dropped_after,
            each=parallel_map,
        )
        return dict(values) if task.merge is None else merged(len(self.blocks), task.merge, values)

    def close(self) -> None:
        """Forget all values."""
        self._shard.take_over(self.blocks)
        for known in self.known:
            known.clear()
