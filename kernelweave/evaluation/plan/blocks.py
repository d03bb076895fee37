"""Memory, work and traffic of fits on the workers of a cluster, where rows lie in blocks.

What travels was counted on small clusters: a step is seven rounds to all workers; the means of clusters go to every
worker, and sums of as many numbers come back from every block.
"""

import math
from dataclasses import dataclass, replace

from kernelweave.evaluation.plan.costs import (
    METHODS,
    MINMAX_MOVED,
    MINMAX_STEPS,
    MINMAX_SWEEPS,
    MOVED,
    PROCESS,
    STEPS,
    SWEEPS,
    Costs,
    added,
)
from kernelweave.evaluation.plan.machine import Workers
from kernelweave.evaluation.plan.paths import FEATURES, Job, Way, ways
from kernelweave.inputs.arrays.chunks import BLOCK_BYTES

#: Estimators that take blocks and whose costs there are not known.
WITHOUT_ESTIMATE = ("GraphFusionClustering",)
# Rounds of a step and of a centre that is drawn; bytes of a round for each worker, and of a step for each block.
ROUNDS = 7
DRAWN_ROUNDS = 6
ROUND_BYTES = 430
BLOCK_ANSWER = 150
CLUSTER_ANSWER = 40
# Assumed: seconds of a round, beside those for each worker, and bytes a second through the scheduler.
ROUND = 0.02
ROUND_OF_WORKER = 0.001
NETWORK = 125e6
# Numbers of each sample that workers keep beside rows and features, and that this process keeps.
KEPT = 10
HERE = 5
# Bytes of a client of Dask in this process.
CLIENT = 130 * 10**6
# Blocks that a thread has in hand, with copies.
IN_HAND = 3


@dataclass
class Spread:
    """Costs of a fit on workers: those of a worker, the memory of this process, and what travels."""

    costs: Costs
    here: dict[str, float]
    per_step: float
    per_start: float


def spread(job: Job, workers: Workers) -> Spread:
    """Return what a fit on workers costs."""
    way = _one_way(job)
    rows = math.ceil(job.n / workers.count)
    costs = Costs(_words(way, workers, job))
    _memory(costs, job, way, rows, workers)
    per_step, per_start = _traffic(job, way, workers)
    _work(costs, job, way, rows, workers, per_step, per_start)
    if runs_there(job) < job.starts:
        chosen = min(job.n, int(job.setting("init_size")))
        search = Job(job.estimator, chosen, job.widths, min(job.k, chosen))
        searched = METHODS[type(job.estimator).__name__](search)
        costs.work["search for a start here"] = added(searched)
        per_start += 8.0 * chosen * job.width
    here = {"Python and libraries": float(PROCESS + CLIENT), "labels and weights": HERE * 8.0 * job.n}
    return Spread(costs, here, per_step, per_start)


def enough_workers(job: Job, workers: Workers) -> int | None:
    """Return how many such workers have memory enough, roughly the fewest; None where no number has."""
    count = workers.count
    while count < job.n:
        count += max(1, count // 10)
        more = replace(workers, count=count)
        costs = Costs("")
        _memory(costs, job, _one_way(job), math.ceil(job.n / count), more)
        if sum(costs.memory.values()) <= (workers.memory or math.inf):
            return count
    return None


def _one_way(job: Job) -> Way:
    """Return how kernels are kept; several views of pairs are passed through one after the other."""
    found = ways(job, shared_limit=True)
    return found[0] if len(found) == 1 else replace(found[0], width=job.width)


def _words(way: Way, workers: Workers, job: Job) -> str:
    kind = "inner products of explicit features" if way.kind == FEATURES else "kernel values of all pairs, never stored"
    if not _keeps_features(job, way, math.ceil(job.n / workers.count), workers):
        kind += ", computed again at every pass (memory_limit)"
    many = f"{workers.count:,} worker(s) of {workers.threads} thread(s)"
    return f"rows in {n_blocks(job):,} block(s) on {many}: {kind}"


def n_blocks(job: Job) -> int:
    """Return the blocks that the rows are cut into, where the chunks of the tables are not smaller."""
    return max(1, math.ceil(job.input_bytes / BLOCK_BYTES))


def runs_there(job: Job) -> int:
    """Return how many runs use the workers; a global search for a start works on samples in this process."""
    searched = str(job.setting("init", "")).startswith("global") or job.setting("init") == "graph"
    return 1 if searched else job.starts


def _keeps_features(job: Job, way: Way, rows: int, workers: Workers) -> bool:
    """Whether workers keep features: where they fit into the memory limit beside the rows."""
    room = job.limit - job.input_bytes / workers.count
    return 8.0 * rows * way.width <= room


def _memory(costs: Costs, job: Job, way: Way, rows: int, workers: Workers) -> None:
    """Add what a worker keeps."""
    costs.keep("Python and libraries", PROCESS)
    costs.keep("rows", 8.0 * rows * job.width)
    if _keeps_features(job, way, rows, workers):
        costs.keep("features" if way.kind == FEATURES else "copy of the rows", 8.0 * rows * way.width)
        if way.kind == FEATURES and job.views > 1:
            costs.keep("features side by side", 8.0 * rows * way.width)
    if way.kind != FEATURES:
        costs.keep("sums of clusters", 3 * 8.0 * job.k * rows * job.views)
    costs.keep("labels and distances", KEPT * 8.0 * rows)
    costs.keep("blocks in hand", IN_HAND * workers.threads * float(min(BLOCK_BYTES, 8 * rows * job.width)))


def _traffic(job: Job, way: Way, workers: Workers) -> tuple[float, float]:
    """Return the bytes of a step, and of a start beside them."""
    blocks = n_blocks(job)
    rounds = workers.count * ROUND_BYTES + blocks * BLOCK_ANSWER / ROUNDS
    answer = CLUSTER_ANSWER * job.k
    drawn = job.k * (DRAWN_ROUNDS * rounds + 4 * 8.0 * way.width * workers.count)
    labels = 3.0 * job.n * (1 if job.k <= 256 else 2)
    if way.kind == FEATURES:
        means = 8.0 * job.k * way.width
        return ROUNDS * rounds + workers.count * means + blocks * (means + answer), drawn + labels
    everyone = 8.0 * job.n * job.width * (1 + workers.count)
    step = ROUNDS * rounds + blocks * answer + everyone * MOVED.usual / STEPS.usual
    return step, drawn + labels + everyone


def _work(costs: Costs, job: Job, way: Way, rows: int, workers: Workers, per_step: float, per_start: float) -> None:
    """Add the work of a worker, and the time on the way."""
    minmax = "MinMax" in type(job.estimator).__name__
    steps = MINMAX_STEPS if minmax else STEPS
    sweeps = MINMAX_SWEEPS if minmax else SWEEPS
    moved = MINMAX_MOVED if minmax else MOVED
    measured = way.rates(rows, job.k)
    slower = job.threads / workers.threads
    again = 1.0 if _keeps_features(job, way, rows, workers) else 2.0
    starts = runs_there(job)
    often = starts * slower * again
    units = float(rows) * (job.n if way.pairs else 1)
    costs.spend("first sums", often * measured.sweep * units, sweeps)
    costs.spend("rows of moved samples", often * measured.move * units, moved)
    costs.spend("assignments", often * measured.assign * rows, steps)
    wait = ROUND + ROUND_OF_WORKER * workers.count
    costs.spend("rounds", starts * wait * ROUNDS, steps)
    costs.spend("rounds", starts * wait * DRAWN_ROUNDS * job.k)
    costs.spend("on the way", starts * per_step / NETWORK, steps)
    costs.spend("on the way", starts * per_start / NETWORK)
    costs.assumptions += [
        f"about {steps.usual:.0f} steps a start ({steps.least:.0f} to {steps.most:.0f}), {starts} start(s)",
        f"threads of workers as fast as those here; {ROUND * 1000:.0f} ms a round, {NETWORK / 1e6:.0f} MB/s",
    ]
