"""Costs of methods that are trained on a sample and then give labels to all rows, block by block."""

from kernelweave.evaluation.plan.blocks import IN_HAND
from kernelweave.evaluation.plan.costs import METHODS, Costs
from kernelweave.evaluation.plan.paths import BLOCKWISE, Job, Way, ways
from kernelweave.inputs.arrays.chunks import BLOCK_BYTES


def on_a_sample(job: Job) -> bool:
    """Whether a method is trained on a sample."""
    return hasattr(job.estimator, "n_train_samples")


def training_samples(job: Job) -> int:
    """Return how many samples it is trained on; all where none are named, which rows in blocks do not allow."""
    return min(job.n, int(job.setting("n_train_samples") or job.n))


def training(job: Job) -> Costs:
    """Return the costs of the training, in this process."""
    m = training_samples(job)
    return METHODS[type(job.estimator).__name__](Job(job.estimator, m, job.widths, job.k))


def words(job: Job) -> str:
    """Return the path in words."""
    return f"trained in this process on {training_samples(job):,} samples"


def keep_block(costs: Costs, job: Job, rows: int, threads: int) -> None:
    """Add the memory of a process that labels rows: blocks in hand, with their scores."""
    block = min(BLOCK_BYTES, 8 * rows * job.width)
    costs.keep("blocks in hand", IN_HAND * threads * float(block))
    costs.keep("scores and labels", threads * 8.0 * block / (8 * job.width) * job.k * (1 + job.views) + 8.0 * rows)


def label(costs: Costs, job: Job, rows: int, slower: float) -> None:
    """Add the work of giving labels to rows, which meet all training samples."""
    m = training_samples(job)
    for way in ways(job):
        again = Way(BLOCKWISE, way.kernel, way.params, way.width)
        units = float(m) * rows if way.pairs else float(rows)
        used = again if way.pairs else way
        costs.spend("labels of all samples", slower * used.rates(m, job.k).sweep * units)
