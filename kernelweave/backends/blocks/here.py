"""Blocks in this process: arrays larger than memory, read block by block from files."""

import time
from collections.abc import Sequence

from kernelweave.backends.blocks.merging import merged
from kernelweave.backends.blocks.nodes import Shard
from kernelweave.backends.blocks.places import Answer, Places, Task
from kernelweave.foundation.memory import return_freed_memory
from kernelweave.foundation.threads import parallel_map

#: Seconds between two times that freed memory goes back. Small blocks pass a thousand times per second, and getting the
#: memory again would cost as much as the work.
RETURN_EVERY = 0.05


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
        self._returned = 0.0

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
        answers: list[Answer | None] = [self._answer(task) for task in tasks]
        if self.streams:
            self._return_memory()
        return answers

    def _return_memory(self) -> None:
        """Give freed memory back: of blocks that come and go the allocator would keep several times their size."""
        now = time.monotonic()
        if now - self._returned >= RETURN_EVERY:
            return_freed_memory()
            self._returned = now

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
