"""Memory, work and traffic of fits on the workers of a cluster, where rows are in blocks.

What travels was counted on small clusters: a step is five rounds to all workers; the means of clusters go to every
worker, and sums of as many numbers come back. The constants are of Dask and of ``backends/blocks/dask_workers.py``.
"""

import math
from dataclasses import dataclass, replace

from kernelweave.evaluation.plan import blocks, trained
from kernelweave.evaluation.plan.costs import PROCESS, Costs, added, named_start, runs_of, steps_in_words
from kernelweave.evaluation.plan.machine import Workers
from kernelweave.evaluation.plan.paths import FEATURES, Job, Way
from kernelweave.evaluation.plan.result import size

# Rounds before the first step, for each view, in a step, and for a centre that is drawn.
FIRST_ROUNDS = 10
VIEW_ROUNDS = 8
STEP_ROUNDS = 5
DRAWN_ROUNDS = 6
# Rounds for each part of the rows that travel to meet all others, where all pairs count.
SOURCE_ROUNDS = 4
# Bytes of a round for each worker, of a step for each block, and of an answer for each cluster.
ROUND_BYTES = 600
BLOCK_BYTES = 150
CLUSTER_ANSWER = 40
# Blocks for each worker from which on neighbours lie together, and their sums travel as one.
MANY = 8
# Assumed where no client tells: seconds of a round, besides those for each worker.
ROUND = 0.012
ROUND_OF_WORKER = 0.001
# Assumed: bytes per second through the scheduler, and from where each worker reads its rows.
NETWORK = 125e6
STORAGE = 200e6
# Bytes of a client of Dask in this process.
CLIENT = 130 * 10**6


@dataclass
class Spread:
    """Costs of a fit on workers: those of a worker, the memory of this process, and what travels."""

    costs: Costs
    here: dict[str, float]
    per_step: float
    per_start: float


def spread(job: Job, workers: Workers) -> Spread:
    """Return what a fit on workers costs."""
    if trained.on_a_sample(job):
        return _sampled(job, workers)
    way = blocks.one_way(job)
    busy = used(job, workers)
    share = _share(job, way, workers)
    costs = Costs(_words(way, workers, job, share))
    _memory(costs, job, way, share)
    per_step, per_start = _traffic(job, way, workers)
    runs = blocks.work(costs, job, way, share)
    starts = blocks.runs_there(job)
    wait = workers.round_seconds or ROUND + ROUND_OF_WORKER * busy
    costs.spend("rounds", starts * wait * STEP_ROUNDS, runs.steps)
    costs.spend("rounds", starts * wait * SOURCE_ROUNDS * blocks.sources(job), runs.sweeps)
    drawn = DRAWN_ROUNDS * (job.k - 1) if named_start(job) == "k-means++" else 0
    costs.spend("rounds", starts * wait * drawn + wait * (FIRST_ROUNDS + VIEW_ROUNDS * job.views))
    costs.spend("on the way", starts * per_step / NETWORK, runs.steps)
    costs.spend("on the way", starts * per_start / NETWORK)
    _read(costs, job, busy)
    costs.assumptions.insert(0, steps_in_words(runs, starts))
    how = "measured" if workers.round_seconds else "assumed"
    costs.assumptions.append(
        f"threads of workers as fast as those here; {wait * 1000:.0f} ms per round ({how}), "
        f"{size(NETWORK)}/s to workers"
    )
    per_start += blocks.search(costs, job)
    here = {"Python and libraries": float(PROCESS + CLIENT), "labels and weights": blocks.HERE * 8.0 * job.n}
    return Spread(costs, here, per_step, per_start)


def used(job: Job, workers: Workers) -> int:
    """Return how many workers have a block."""
    return min(workers.count, blocks.n_blocks(job))


def enough_workers(job: Job, workers: Workers) -> int | None:
    """Return how many such workers have memory enough, roughly the fewest; None where no number has."""
    count = workers.count
    while count < blocks.n_blocks(job):
        count += max(1, count // 10)
        more = replace(workers, count=count)
        costs = Costs("")
        way = blocks.one_way(job)
        _memory(costs, job, way, _share(job, way, more))
        if sum(costs.memory.values()) <= (workers.memory or math.inf):
            return count
    return None


def _share(job: Job, way: Way, workers: Workers) -> blocks.Share:
    """Return what a worker has; features are kept where they fit into the memory limit together with the rows."""
    busy = used(job, workers)
    rows = math.ceil(job.n / busy)
    # Features of several views are kept side by side, if at all.
    fits = 8.0 * rows * way.width <= job.block_limit - job.stored_bytes / busy
    kept = fits and not blocks.only_shifts(job, way)
    threads = min(workers.threads, math.ceil(blocks.n_blocks(job) / busy))
    return blocks.Share(rows, threads, kept)


def _words(way: Way, workers: Workers, job: Job, share: blocks.Share) -> str:
    kind = "inner products of explicit features" if way.kind == FEATURES else "kernel values of all pairs, never stored"
    if not share.kept and not blocks.only_shifts(job, way):
        kind += ", recomputed in every pass (memory_limit)"
    busy = used(job, workers)
    idle = f"{busy:,} of " if busy < workers.count else ""
    many = f"{idle}{workers.count:,} worker(s) of {workers.threads} thread(s)"
    return f"rows in {blocks.n_blocks(job):,} block(s) on {many}: {kind}"


def _memory(costs: Costs, job: Job, way: Way, share: blocks.Share) -> None:
    """Add what a worker keeps."""
    costs.keep("Python and libraries", PROCESS)
    costs.keep("rows", float(share.rows) * job.width * job.value_bytes)
    if share.kept:
        costs.keep("features" if way.kind == FEATURES else "copy of the rows", 8.0 * share.rows * way.width)
        if way.kind == FEATURES and job.views > 1:
            costs.keep("features side by side", 8.0 * share.rows * way.width)
    blocks.keep_in_hand(costs, job, share.rows, share.threads)


def _answers(job: Job, workers: Workers) -> float:
    """Return how many sums come back: of every block, or where these are many, of some neighbours at once."""
    many = blocks.n_blocks(job)
    if many < MANY * workers.count:
        return many
    return workers.count * (1.0 + math.log2(many / workers.count))


def _traffic(job: Job, way: Way, workers: Workers) -> tuple[float, float]:
    """Return the bytes of a step, and of a start besides them."""
    busy = used(job, workers)
    answers = _answers(job, workers)
    round_bytes = busy * ROUND_BYTES + blocks.n_blocks(job) * BLOCK_BYTES / STEP_ROUNDS
    answer = CLUSTER_ANSWER * job.k
    drawn = job.k * (DRAWN_ROUNDS * round_bytes + 4 * 8.0 * way.width * busy)
    labels = 3.0 * job.n * (1 if job.k <= 256 else 2)
    if way.kind == FEATURES:
        means = 8.0 * job.k * way.width
        return STEP_ROUNDS * round_bytes + busy * means + answers * (means + answer), drawn + labels
    everyone = 8.0 * job.n * job.width * (1 + busy)
    runs = runs_of(job, True)
    step = STEP_ROUNDS * round_bytes + answers * answer + everyone * runs.moved.usual / runs.steps.usual
    return step, drawn + labels + everyone


def _read(costs: Costs, job: Job, busy: int) -> None:
    """Add the time that workers take to read their rows."""
    rate = (job.tables and job.tables.disk_rate) or STORAGE
    costs.spend("reading rows", job.stored_bytes / busy / rate)
    costs.assumptions.append(f"every worker reads its rows once, at {size(rate)}/s")


def _sampled(job: Job, workers: Workers) -> Spread:
    """Return what a fit costs that is trained on a sample here and labels all rows on workers."""
    busy = used(job, workers)
    rows = math.ceil(job.n / busy)
    training = trained.training(job)
    costs = Costs(f"{trained.words(job)}; all rows get labels on {workers.count:,} worker(s)")
    costs.keep("Python and libraries", PROCESS)
    costs.keep("training samples", 8.0 * trained.training_samples(job) * job.width)
    trained.keep_block(costs, job, rows, workers.threads)
    costs.work["training here"] = added(training)
    trained.label(costs, job, rows, job.threads / workers.threads)
    model = 8.0 * trained.training_samples(job) * (job.width + job.k)
    per_start = model * (1 + busy) + 8.0 * job.n
    costs.spend("on the way", per_start / NETWORK)
    costs.spend("rounds", (FIRST_ROUNDS + VIEW_ROUNDS * job.views) * (ROUND + ROUND_OF_WORKER * busy))
    _read(costs, job, busy)
    here = dict(training.memory) | {"labels": 2 * 8.0 * job.n}
    here["Python and libraries"] = float(PROCESS + CLIENT)
    return Spread(costs, here, 0.0, per_start)
