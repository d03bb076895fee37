"""Memory, work and reading of fits on files that are larger than the memory limit: one block after another, here."""

import math

from kernelweave.evaluation.plan import blocks, rates, trained
from kernelweave.evaluation.plan.costs import PROCESS, Costs, added, steps_in_words
from kernelweave.evaluation.plan.counts import Count
from kernelweave.evaluation.plan.machine import Tables, machine_memory
from kernelweave.evaluation.plan.paths import FEATURES, Job, Way
from kernelweave.evaluation.plan.result import size

# Share of the memory in which the system keeps files that were read.
CACHE = 0.6
# Passes over the rows of a method that is trained on a sample: values are checked, samples drawn, labels given.
SAMPLED_PASSES = 3.0
NEVER = Count(0.0, 0.0, 0.0)


def stream(job: Job) -> tuple[Costs, float]:
    """Return the costs of a fit on files, and the bytes that a step reads."""
    share = blocks.Share(job.n, job.threads, kept=False)
    many = f"{blocks.n_blocks(job):,} block(s), {job.threads} thread(s)"
    costs = Costs("")
    costs.keep("Python and libraries", PROCESS)
    if trained.on_a_sample(job):
        costs.path = f"{trained.words(job)}; all rows get labels, read from files in {many}"
        learned = trained.training(job)
        costs.memory.update(learned.memory)
        costs.work["training"] = added(learned)
        trained.keep_block(costs, job, job.n, 1)
        trained.label(costs, job, job.n, 1.0)
        _read(costs, job, SAMPLED_PASSES, NEVER)
        return costs, 0.0
    way = blocks.one_way(job)
    costs.path = f"in this process, rows read from files in {many} at every pass: {_words(way)}"
    blocks.keep_in_hand(costs, job, job.n, job.threads)
    runs = blocks.work(costs, job, way, share)
    starts = blocks.runs_there(job)
    first, in_steps = blocks.passes(job, runs)
    _read(costs, job, starts * first, Count(*(starts * each for each in in_steps)))
    costs.assumptions.insert(0, steps_in_words(runs, starts))
    blocks.search(costs, job)
    return costs, blocks.STEP_PASSES * job.stored_bytes


def _words(way: Way) -> str:
    if way.kind == FEATURES:
        return "inner products of explicit features, computed again"
    return "kernel values of all pairs, never stored"


def _read(costs: Costs, job: Job, first: float, in_steps: Count) -> None:
    """Add the time of reading: from the disk, or after the first pass from memory where the system has room."""
    tables = job.tables or Tables(on_disk=True)
    rate = tables.disk_rate or rates.disk_rate(tables.folder)
    known = "given" if tables.disk_rate else "measured"
    memory = machine_memory() or math.inf
    cached = job.stored_bytes <= CACHE * memory - sum(costs.memory.values())
    again = rates.copy_rate() if cached else rate
    costs.spend("reading files", job.stored_bytes / rate + (first - 1) * job.stored_bytes / again)
    costs.spend("reading files", job.stored_bytes / again, in_steps)
    what = "once, then the system keeps them in memory" if cached else "at every pass"
    costs.assumptions.append(f"{size(job.stored_bytes)} in files are read at {size(rate)}/s ({known}) {what}")
