"""Work and memory of rows that are in blocks, on workers and in files.

The constants are what a change of ``backends/blocks`` makes stale. They were fitted to runs on two worker processes and
on mapped files; ``tests/evaluation/test_plan_promises.py`` holds them against new ones.
"""

import math
from dataclasses import dataclass, replace

from kernelweave.evaluation.plan.costs import METHODS, Costs, added, named_start, runs_of
from kernelweave.evaluation.plan.counts import Count, Runs
from kernelweave.evaluation.plan.paths import FEATURES, Job, Way, ways
from kernelweave.inputs.arrays.chunks import BLOCK_BYTES

#: Estimators that take blocks and whose costs there are not known.
WITHOUT_ESTIMATE = ("GraphFusionClustering",)
# Passes over rows that are not kept: before the first step, for another view, in a step, and for a centre drawn.
FIRST_PASSES = 6.0
VIEW_PASSES = 2.0
STEP_PASSES = 2.0
DRAWN_PASSES = 1.2
# What a pass over promised features takes, in copies of them: of one table, and of several side by side.
PROMISED = 0.4
PROMISED_VIEWS = 0.6
# How much longer than in one array: centres that are drawn, and sums over all pairs of samples.
SLOWER_DRAWS = 1.5
SLOWER_PAIRS = 3.0
# Rows that travel together to meet all others.
SOURCE_ROWS = 8192
# Numbers of each sample that are kept besides rows and features, and those in this process.
KEPT = 10
HERE = 5
# Blocks that a thread has in hand, with copies.
IN_HAND = 3


@dataclass(frozen=True)
class Share:
    """The rows of one process, and what it does with them."""

    rows: int
    threads: int
    kept: bool  # features are in memory; else computed again at every pass


def one_way(job: Job) -> Way:
    """Return how kernels are kept; several views of pairs are passed through one after the other."""
    found = ways(job, shared_limit=True)
    return found[0] if len(found) == 1 else replace(found[0], width=job.width)


def only_shifts(job: Job, way: Way) -> bool:
    """Whether features are the rows less a vector, which are never kept."""
    return way.kind == FEATURES and way.kernel == "linear" and job.setting("approximation") is None


def n_blocks(job: Job) -> int:
    """Return the blocks that the rows are cut into, where the chunks of the tables are not smaller."""
    rows = max(1, BLOCK_BYTES // (8 * job.width))
    return math.ceil(job.n / rows)


def runs_there(job: Job) -> int:
    """Return how many runs pass over all rows; a global search for a start works on samples in this process."""
    searched = named_start(job).startswith("global") or named_start(job) == "graph"
    return 1 if searched else job.starts


def sources(job: Job) -> float:
    """Return in how many parts rows travel to meet all others."""
    return job.n / SOURCE_ROWS if one_way(job).pairs else 0.0


def passes(job: Job, runs: Runs) -> tuple[float, Count]:
    """Return how often rows are passed through before the first step of a start, and in its steps."""
    first = FIRST_PASSES + VIEW_PASSES * (job.views - 1)
    if named_start(job) == "k-means++":
        first += DRAWN_PASSES * (job.k - 1)
    sweep = 2.0 * sources(job)
    return first, Count(*(STEP_PASSES * a + sweep * b for a, b in zip(runs.steps, runs.sweeps, strict=True)))


def keep_in_hand(costs: Costs, job: Job, rows: int, threads: int) -> None:
    """Add labels, sums and the blocks that threads work on."""
    way = one_way(job)
    if way.kind != FEATURES:
        costs.keep("sums of clusters", 3 * 8.0 * job.k * rows * job.views)
    costs.keep("labels and distances", KEPT * 8.0 * rows)
    costs.keep("blocks in hand", IN_HAND * threads * float(min(BLOCK_BYTES, 8 * rows * job.width)))


def work(costs: Costs, job: Job, way: Way, share: Share) -> Runs:
    """Add the arithmetic of a process on its rows; return what happens in a start."""
    runs = runs_of(job, way.pairs)
    measured = way.rates(share.rows, job.k)
    starts = runs_there(job)
    slower = job.threads / share.threads
    often = starts * slower * (SLOWER_PAIRS if way.pairs else 1.0)
    units = float(share.rows) * (job.n if way.pairs else 1)
    costs.spend("sums", often * measured.sweep * units, runs.sweeps)
    costs.spend("rows of moved samples", often * measured.move * units, runs.moved)
    costs.spend("assignments", starts * slower * measured.assign * share.rows, runs.steps)
    if named_start(job) == "k-means++":
        trials = 2 + int(math.log(job.k))
        values = float(share.rows) * (1 + trials * (job.k - 1))
        costs.spend("starts", starts * slower * SLOWER_DRAWS * measured.columns * values)
    mapped = way.map_seconds(job)
    if share.kept:
        costs.spend("features", slower * (measured.fill + mapped) * share.rows)
    elif way.kind == FEATURES:
        first, in_steps = passes(job, runs)
        copies = PROMISED if job.views == 1 else PROMISED_VIEWS
        each = starts * slower * (copies * measured.fill + mapped) * share.rows
        costs.spend("features again", each * first)
        costs.spend("features again", each, in_steps)
    return runs


def search(costs: Costs, job: Job) -> float:
    """Add the search for a start among some samples here; return the bytes that they take."""
    if runs_there(job) == job.starts:
        return 0.0
    chosen = min(job.n, int(job.setting("init_size")))
    searched = METHODS[type(job.estimator).__name__](Job(job.estimator, chosen, job.widths, min(job.k, chosen)))
    costs.work["search for a start here"] = added(searched)
    return 8.0 * chosen * job.width
