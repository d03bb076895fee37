"""How the rows of PhD chapter 2 are computed: data as the thesis prepared them, one restart, figures of all restarts.

Starts      points drawn at random as first centres, the same ones for every method of a table; k-means++ draws others,
            with probability proportional to the squared distance, one draw per centre
Figures     E_max and E_sum, the largest cluster variance and the sum of them; NMI with the arithmetic mean of the
            entropies; ``refined_...`` after k-means from the solution, columns of the tables (b)
Circles     many runs of MinMax k-means come back to a partition they have left and never end. The thesis measures the
            last assignment by the centres it was made with, those of the partition before, and starts k-means from
            these centres. For runs that end it makes no difference; for the others it decides the figures, so they are
            measured in the same way here. ``own_...`` are the variances about the centres of the last assignment
Collapses   a start that leaves an empty or singleton cluster at p = 0 has no solution in the thesis; it is left out of
            the means of that row and counted in ``share_collapsed``
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reproduction.experiment import mean_and_std

if TYPE_CHECKING:
    from kernelweave.foundation.array_types import Floats, Ints
    from kernelweave.kernels.operator import KernelOperator
    from kernelweave.solvers.kmeans.kernel_kmeans import Descent
    from kernelweave.solvers.kmeans.minmax import MinMaxRun

P_MAX = 0.5
STEPS = 500
PERFECT_NMI = 1e-9  # an NMI this close to 1 is 1


class Measures(NamedTuple):
    """A partition in the columns of a table."""

    e_max: float
    e_sum: float
    nmi: float


@dataclass(frozen=True)
class Restart:
    """The result of a method from one start."""

    measures: Measures
    refined: Measures | None = None  # after k-means
    recentred: Measures | None = None  # variances about the centres of the last assignment
    converged: bool = True
    collapsed: bool = False
    free: bool = True  # p was never lowered


@dataclass(frozen=True)
class Problem:
    """Data as an operator, with the true classes."""

    op: "KernelOperator"
    weights: "Floats"
    target: "Ints"
    n_clusters: int

    def measures(self, labels: ArrayLike, variances: "Floats") -> Measures:
        """Return the columns of a table for a partition and the variances of its clusters."""
        from kernelweave.metrics import normalized_mutual_info

        return Measures(variances.max(), variances.sum(), normalized_mutual_info(self.target, labels))


# --- rows ------------------------------------------------------------------------------------------------------------


def vector_row(restarts: int, seed: int, *, data: str, method: str, memory: float = 0.0) -> dict[str, float]:
    """Figures of a method on vectors: ``"minmax"``, ``"k-means"``, ``"k-means++"`` or ``"pifs"``."""
    from kernelweave.kernels.spec.fitting import fit_kernel

    X, target = VECTORS[data]()
    return _figures(fit_kernel(X, "linear").operator(), target, method, memory, restarts, seed)


def kernel_row(
    restarts: int, seed: int, *, data: str, sigma: float, method: str, memory: float = 0.0
) -> dict[str, float]:
    """Figures of a method with a Gaussian kernel: ``"minmax"`` or ``"k-means"``; the share of true partitions too."""
    from kernelweave.kernels.spec.fitting import fit_kernel

    X, target = KERNELS[data]()
    op = fit_kernel(X, "rbf", {"sigma": sigma}).operator("dense")
    return _figures(op, target, method, memory, restarts, seed)


def _figures(
    op: "KernelOperator", target: "Ints", method: str, memory: float, restarts: int, seed: int
) -> dict[str, float]:
    from kernelweave.foundation.random_streams import streams
    from kernelweave.foundation.threads import parallel_map

    problem = Problem(op, np.ones(op.n_samples), target, len(np.unique(target)))

    def work(rng: np.random.Generator) -> Restart:
        return one_restart(problem, method, memory, rng)

    runs = list(parallel_map(work, streams(seed, restarts)))
    kept = [run for run in runs if not run.collapsed]
    figures = _columns("", [run.measures for run in kept])
    figures["share_correct"] = _share_correct([run.measures for run in runs])
    if method in ("minmax", "pifs"):
        refined = [run.refined for run in kept if run.refined]
        figures |= _columns("refined_", refined)
        figures["refined_share_correct"] = _share_correct(refined)
    if method == "minmax":
        figures |= _columns("own_", [run.recentred for run in kept if run.recentred], names=("e_max", "e_sum"))
        figures["share_collapsed"] = float(np.mean([run.collapsed for run in runs]))
        figures["share_converged"] = float(np.mean([run.converged and not run.collapsed for run in runs]))
        figures["share_free"] = float(np.mean([run.free for run in runs]))
    return figures


def _columns(prefix: str, runs: list[Measures], names: tuple[str, ...] = Measures._fields) -> dict[str, float]:
    """Return mean and deviation of every column; no number where there is no run."""
    figures: dict[str, float] = {}
    for name in names:
        figures |= mean_and_std(prefix + name, [getattr(run, name) for run in runs] or [math.nan])
    return figures


def _share_correct(runs: list[Measures]) -> float:
    """Return the share of runs whose clusters are the true classes, without exception."""
    return sum(run.nmi > 1.0 - PERFECT_NMI for run in runs) / len(runs) if runs else math.nan


# --- one restart -----------------------------------------------------------------------------------------------------


def one_restart(problem: Problem, method: str, memory: float, rng: np.random.Generator) -> Restart:
    """Run a method from the start that ``rng`` draws, then k-means from its result."""
    from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
    from kernelweave.solvers.kmeans.minmax import minmax_kmeans
    from kernelweave.solvers.kmeans.pifs import pifs_kmeans

    op = problem.op
    weights = problem.weights
    k = problem.n_clusters
    draw = plusplus_labels if method == "k-means++" else random_labels
    labels = draw(problem, rng)
    if method == "minmax":
        # One step less than the thesis allows: the last one is the assignment that is measured.
        run = minmax_kmeans(op, labels, weights, n_clusters=k, p_max=P_MAX, memory=memory, max_iter=STEPS - 1)
        return _minmax_restart(problem, run)
    descent: Descent
    if method == "pifs":
        descent = pifs_kmeans(op, labels, weights, n_clusters=k)  # type: ignore[arg-type]
        refined = kernel_kmeans(op, descent.labels, weights, n_clusters=k)
        measures = problem.measures(descent.labels, descent.scatter)
        return Restart(measures, problem.measures(refined.labels, refined.scatter))
    descent = kernel_kmeans(op, labels, weights, n_clusters=k)
    return Restart(problem.measures(descent.labels, descent.scatter))


def _minmax_restart(problem: Problem, run: "MinMaxRun") -> Restart:
    from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans

    refined = kernel_kmeans(problem.op, run.labels, problem.weights, n_clusters=problem.n_clusters)
    labels, variances, recentred = last_assignment(problem, run)
    return Restart(
        measures=problem.measures(labels, variances),
        refined=problem.measures(refined.labels, refined.scatter),
        recentred=problem.measures(labels, recentred),
        converged=run.converged,
        collapsed=run.collapsed,
        free=not run.collapsed and math.isclose(run.p, P_MAX),
    )


def last_assignment(problem: Problem, run: "MinMaxRun") -> "tuple[Ints, Floats, Floats]":
    """Return the assignment that follows ``run``, its variances about the centres of ``run``, and about new centres.

    Where it would leave an empty or singleton cluster, the partition of ``run`` is returned.
    """
    from kernelweave.partitions import algebra

    op = problem.op
    k = problem.n_clusters
    sums = op.cluster_sums(run.labels, problem.weights, k)
    distances = algebra.squared_distances(op, sums, run.totals, run.norms)
    labels = (run.coefs * distances).argmin(axis=1)
    sizes = algebra.cluster_weights(labels, problem.weights, k)
    if sizes.min() <= 1.0:
        return run.labels, run.scatter, run.scatter
    variances = algebra.cluster_weights(labels, distances[np.arange(len(labels)), labels], k)
    within = algebra.within_sums(op.cluster_sums(labels, problem.weights, k), labels, problem.weights)
    return labels, variances, algebra.cluster_scatter(within, sizes, algebra.cluster_weights(labels, op.diag(), k))


def random_labels(problem: Problem, rng: np.random.Generator) -> "Ints":
    """Return the nearest of samples drawn at random as centres."""
    from kernelweave.solvers.kmeans.starts import start_labels

    return start_labels(problem.op, "random", problem.weights, problem.n_clusters, rng)


def plusplus_labels(problem: Problem, rng: np.random.Generator) -> "Ints":
    """Return the nearest of centres drawn one by one, with probability proportional to the squared distance.

    The k-means++ of the library takes the best of several draws for each centre; the thesis does not.
    """
    from kernelweave.partitions import algebra

    op = problem.op
    diag = problem.op.diag()
    distances = np.empty((op.n_samples, problem.n_clusters))
    mass = np.ones(op.n_samples)
    for c in range(problem.n_clusters):
        drawn = rng.choice(op.n_samples, 1, p=mass / mass.sum())
        distances[:, c] = np.maximum(algebra.distances_to_samples(op, drawn, diag)[:, 0], 0.0)
        mass = distances[:, : c + 1].min(axis=1)
    return distances.argmin(axis=1)


# --- data ------------------------------------------------------------------------------------------------------------


def mfeat(view: str, *, shrunk: bool) -> "tuple[Floats, Ints]":
    """Multiple features: z-scores; ``shrunk`` to variance 1 / d each, which is what the vector tables come from."""
    from kernelweave.datasets import load_benchmark, standardize

    digits = load_benchmark("mfeat")
    X = standardize(digits.views[view])
    return X / math.sqrt(X.shape[1]) if shrunk else X, digits.target


def pendigits() -> "tuple[Floats, Ints]":
    """All pen-written digits as z-scores."""
    from kernelweave.datasets import load_benchmark, standardize

    digits = load_benchmark("pendigits")
    return standardize(digits.data), digits.target


def ecoli() -> "tuple[Floats, Ints]":
    """Keep the four largest classes, 307 proteins, not scaled."""
    from kernelweave.datasets import load_benchmark

    proteins = load_benchmark("ecoli")
    largest = np.argsort(-np.bincount(proteins.target), kind="stable")[:4]
    kept = np.isin(proteins.target, largest)
    return proteins.data[kept], proteins.target[kept]


def dermatology() -> "tuple[Floats, Ints]":
    """Z-scores of the 358 patients whose age is known."""
    from kernelweave.datasets import load_benchmark, standardize

    patients = load_benchmark("dermatology")
    kept = ~np.isnan(patients.data).any(axis=1)
    return standardize(patients.data[kept]), patients.target[kept]


@lru_cache(maxsize=2)
def olivetti(*, folded: bool) -> "tuple[Floats, Ints]":
    """Ten persons: 100 faces, each smoothed, rotated by -10, 0, 10 degrees and scaled by 0.9, 1, 1.1.

    The central 50 x 50 pixels are kept, with mean 0 and standard deviation 0.1 in each image. ``folded`` gives the same
    points in 900 coordinates, by a rotation.
    """
    if folded:
        X, target = olivetti(folded=False)
        squares, axes = np.linalg.eigh(X @ X.T)
        return axes * np.sqrt(np.maximum(squares, 0.0)), target

    from scipy.ndimage import gaussian_filter

    from kernelweave.datasets import load_benchmark

    faces = load_benchmark("olivetti")
    smooth = [gaussian_filter(face.reshape(64, 64), 0.5) for face in faces.data[:100]]
    windows = [
        _rotated(face, degrees, scale) for face in smooth for degrees in (-10, 0, 10) for scale in (0.9, 1.0, 1.1)
    ]
    X = np.array([window.ravel() for window in windows])
    X = 0.1 * (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, ddof=1, keepdims=True)
    return X, np.repeat(faces.target[:100], 9)


def _rotated(face: "Floats", degrees: float, scale: float) -> "Floats":
    """Return the central window of a face rotated and scaled about its centre, by one bilinear interpolation."""
    from scipy.ndimage import affine_transform

    angle = np.deg2rad(degrees)
    centre = (np.array(face.shape) - 1) / 2
    back = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / scale
    rotated = affine_transform(face, back, offset=centre - back @ centre, order=1)
    return np.asarray(rotated[7:57, 7:57])


def ten_rings() -> "tuple[Floats, Ints]":
    """Make ten rings like those of the thesis, which prints neither radii nor noise nor centres.

    They are chosen so that the rings have the error that MSc table 5.1 prints, 966.87, and that kernel k-means comes
    near its row of PhD table 2.12. Inner radii from 0.12 to 0.16 do so equally well, but change how often MinMax
    finds all rings, from most starts to none: the middle is taken, and only the order of these shares means anything.
    """
    from kernelweave.datasets import make_ten_rings

    X, target = make_ten_rings(inner_radius=0.14, outer_radius=2.124, spacing=7.0, noise=0.1, random_state=0)
    return X, target


VECTORS: dict[str, Callable[[], "tuple[Floats, Ints]"]] = {
    "pixel-averages": partial(mfeat, "pix", shrunk=True),
    "profile-correlations": partial(mfeat, "fac", shrunk=True),
    "pendigits": pendigits,
    "olivetti": partial(olivetti, folded=True),
    "ecoli": ecoli,
    "dermatology": dermatology,
}
KERNELS: dict[str, Callable[[], "tuple[Floats, Ints]"]] = {
    "ten-rings": ten_rings,
    "pixel-averages": partial(mfeat, "pix", shrunk=False),
    "profile-correlations": partial(mfeat, "fac", shrunk=False),
    "pendigits": pendigits,
    "olivetti": partial(olivetti, folded=False),
}
