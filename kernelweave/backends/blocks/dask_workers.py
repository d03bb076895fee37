"""Blocks on the workers of a Dask cluster.

Every worker keeps its blocks for the whole fit, outside of Dask's own graph: a round is one task for each worker,
whatever was computed before. Programs travel as Dask's own messages do, and their bytes are counted. A worker that dies
is noticed while its answer is awaited; its blocks go to the others, are loaded again from where they came from, and
what was known about them is computed again from the nodes that it came from.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import get_worker
from distributed.client import FutureCancelledError
from distributed.protocol.pickle import dumps, loads
from distributed.scheduler import KilledWorker

from kernelweave.backends.blocks.merging import merged
from kernelweave.backends.blocks.nodes import Block, Shard
from kernelweave.backends.blocks.places import Answer, Places, Task
from kernelweave.foundation.errors import WorkersLostError

# Seconds between looks at which workers are alive, and how long to wait for one when none is.
GLANCE = 1.0
PATIENCE = 30.0
# Blocks for each worker from which on neighbours are kept together.
MANY = 8
# Programs of more bytes than this do not travel through Dask's graph.
LARGE = 2**20


class DaskWorkers(Places):
    """Blocks at the workers of a cluster; ``room`` is what each worker may keep, in bytes."""

    def __init__(self, client: Any, sizes: Sequence[int], *, room: float = float("inf")) -> None:
        super().__init__(sizes)
        self.client = client
        self._room = room
        self._session = uuid.uuid4().hex
        #: What loads the rows of every block, by the number of the node: slices of chunks that Dask computes.
        self._lots: dict[int, Sequence[Any]] = {}
        self._homes: list[str | None] = [None] * len(sizes)
        self._place_new_blocks(self._alive())

    def bring(self, loaders: Sequence[Any]) -> Callable[[int], None] | None:
        """Return what has chunks of Dask computed at the workers, now and whenever they get lost."""
        if not hasattr(loaders[0], "chunk"):
            return None

        def remember(number: int) -> None:
            self._lots[number] = loaders
            self.brought.add(number)

        return remember

    def has_room_for(self, n_bytes: int) -> bool:
        """Whether every worker may keep its share of so many bytes more."""
        share = n_bytes / max(1, len(self._alive()))
        if share > self._room:
            return False
        self._room -= share
        return True

    def where(self) -> dict[str, list[int]]:
        """Return the blocks of every worker; those of workers that died have been loaded elsewhere."""
        while None in self._homes or not self._load():
            alive = self._alive()
            self._lose([b for b, home in enumerate(self._homes) if home not in alive])
            self._place_new_blocks(alive)
        places: dict[str, list[int]] = {}
        for b, home in enumerate(self._homes):
            places.setdefault(str(home), []).append(b)
        return places

    def send(self, tasks: Sequence[Task]) -> list[Answer | None]:
        """Run one program at each worker."""
        futures = []
        for task in tasks:
            fresh = [self.blocks[b] for b in task.blocks if not self.known[b]]
            own = np.array(task.blocks, dtype=np.int32)
            dropped = (task.dropped, task.dropped_after)
            payload = dumps((task.program, task.wanted, dropped, own, fresh, len(self.blocks), task.merge))
            self.traffic.sent += len(payload)
            futures.append(self._submit(task.place, _run, self._session, self._travelling(payload, task.place)))
        answers: list[Answer | None] = []
        for task, answer in zip(tasks, self._await(futures, [task.place for task in tasks]), strict=True):
            if answer is None:  # the worker died, or restarted under the same address
                self._lose(task.blocks)
                answers.append(None)
            else:
                self.traffic.received += len(answer)
                answers.append(loads(answer))
        return answers

    def close(self) -> None:
        """Let the workers forget the blocks."""
        alive = self._alive(wait_for_one=False)
        places = sorted({home for home in self._homes if home in alive})
        self._await([self._submit(place, _forget, self._session) for place in places], places)

    def _lose(self, blocks: Iterable[int]) -> None:
        for b in blocks:
            home = self._homes[b]
            if home is not None:
                self.lost.add(home)
            self._homes[b] = None
            self.known[b] = set()

    def _travelling(self, payload: bytes, place: str) -> Any:
        if len(payload) < LARGE:
            return payload
        return self.client.scatter(payload, workers=[place], hash=False)

    def _submit(self, place: str, function: Any, *args: Any) -> Any:
        key = f"kernelweave-{function.__name__}-{uuid.uuid4().hex}"
        return self.client.submit(function, *args, workers=[place], allow_other_workers=False, pure=False, key=key)

    def _alive(self, *, wait_for_one: bool = True) -> dict[str, int]:
        """Return the addresses of all workers and their numbers of threads."""
        deadline = time.monotonic() + PATIENCE
        while True:
            alive = dict(self.client.nthreads())
            if alive or not wait_for_one:
                return alive
            if time.monotonic() > deadline:
                raise WorkersLostError(
                    f"No Dask worker is left, and none came back within {PATIENCE:.0f} s. Start workers, then fit "
                    "again; with checkpoint=FILE a fit goes on where it was."
                )
            time.sleep(GLANCE / 4)

    def _place_new_blocks(self, alive: dict[str, int]) -> None:
        """Give blocks without a home to workers by their threads.

        Neighbours among many blocks stay together, so that their sums travel as one; few go where the least rows are.
        """
        rows = dict.fromkeys(alive, 0)
        for block, home in zip(self.blocks, self._homes, strict=True):
            if home in rows:
                rows[home] += block.rows
        share = sum(block.rows for block in self.blocks) / sum(alive.values())
        together = len(self.blocks) >= MANY * len(alive)
        chosen = ""
        for block, home in zip(self.blocks, self._homes, strict=True):
            if home in rows:
                continue
            if not (chosen and together and rows[chosen] + block.rows / 2 <= share * alive[chosen]):
                chosen = min(rows, key=lambda place: (rows[place] / alive[place], place))
            self._homes[block.index] = chosen
            rows[chosen] += block.rows

    def _load(self) -> bool:
        """Load what blocks lack; False where a worker died meanwhile."""
        futures: list[Any] = []
        places: list[str] = []
        loaded: list[tuple[int, list[int]]] = []
        for number, lots in self._lots.items():
            wanted: dict[tuple[str, str], list[int]] = {}
            for b, known in enumerate(self.known):
                if number not in known:
                    wanted.setdefault((str(self._homes[b]), lots[b].chunk.key), []).append(b)
            for (place, _), blocks in wanted.items():
                # What chunks are made of may be known to Dask already, and bound to a worker that died.
                chunk = self.client.compute(lots[blocks[0]].chunk, workers=[place], allow_other_workers=True)
                rows = [(self.blocks[b], lots[b].lo, lots[b].hi) for b in blocks]
                futures.append(self._submit(place, _adopt, self._session, number, rows, chunk))
                chunk.release()  # what adopts it still holds it; from then on it may go
                places.append(place)
                loaded.append((number, blocks))
        answers = self._await(futures, places)
        for (number, blocks), answer in zip(loaded, answers, strict=True):
            if answer is None:
                self._lose(blocks)
                continue
            for b in blocks:
                self.known[b].add(number)
        return None not in answers

    def _await(self, futures: Sequence[Any], places: Sequence[str]) -> list[Any]:
        """Return the results, None of workers that died; an error of the work itself is raised."""
        dead: dict[str, bool] = dict.fromkeys(places, False)
        try:
            return [self._result(future, place, dead) for future, place in zip(futures, places, strict=True)]
        finally:
            for future in futures:
                future.release()  # or Dask would compute it again if its worker dies

    def _result(self, future: Any, place: str, dead: dict[str, bool]) -> Any:
        """Return a result; a worker may also die after it computed it and before it handed it over.

        ``dead`` says for all places whether they are, so that one wait is enough however many answers are missing.
        """
        while not dead[place]:
            try:
                return future.result(timeout=GLANCE)
            except TimeoutError:
                alive = self._alive(wait_for_one=False)
                dead.update({each: each not in alive for each in dead})
            except (KilledWorker, FutureCancelledError):
                return None
        future.cancel(force=True)
        return None


# --- what runs on a worker -------------------------------------------------------------------------------------------


@dataclass
class _Kept:
    """What a worker keeps of one fit."""

    shard: Shard
    lock: threading.Lock


def _kept(session: str) -> _Kept:
    """Return what this worker keeps of a fit, nothing at first."""
    worker: Any = get_worker()
    sessions = worker.__dict__.setdefault("_kernelweave_fits", {})
    return sessions.setdefault(session, _Kept(Shard(), threading.Lock()))


def blocks_kept(dask_worker: Any) -> int:
    """Return how many blocks a worker keeps, of all fits."""
    return sum(len(kept.shard.blocks) for kept in vars(dask_worker).get("_kernelweave_fits", {}).values())


def _adopt(session: str, number: int, rows: Iterable[tuple[Block, int, int]], chunk: Any) -> bool:
    """Keep rows of a chunk as the value of a node, in single or double precision, row after row in memory."""
    values = np.asarray(chunk.toarray() if hasattr(chunk, "toarray") else chunk)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    kept = _kept(session)
    with kept.lock:
        for block, lo, hi in rows:
            if block.index not in kept.shard.blocks:
                kept.shard.take_over([block])
            kept.shard.values[block.index][number] = np.ascontiguousarray(values[lo:hi])
    return True


def _run(session: str, payload: bytes) -> bytes | None:
    """Run a program on some blocks; None where values are missing that should be here."""
    program, wanted, (before, after), numbers, fresh, n_blocks, merge = loads(payload)
    kept = _kept(session)
    with kept.lock:
        shard = kept.shard
        own = numbers.tolist()
        shard.take_over([block for block in fresh if block.index not in shard.blocks])
        if not all(b in shard.blocks for b in own):
            return None
        threads = max(1, get_worker().state.nthreads)
        with ThreadPoolExecutor(threads) as pool:
            values = shard.run(program, wanted, own, dropped=before, dropped_after=after, each=pool.map)
            answer = dict(values) if merge is None else merged(n_blocks, merge, values)
    return dumps(answer)


def _forget(session: str) -> bool:
    """Drop what is kept of a fit."""
    worker: Any = get_worker()
    worker.__dict__.get("_kernelweave_fits", {}).pop(session, None)
    return True
