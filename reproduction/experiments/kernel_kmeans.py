"""Kernel k-means restarted from random points: MSc table 5.3, with k-means beside it, PhD tables 2.13(a) and 2.14(a).

Kernel      exp(-||x - y||^2 / (2 sigma^2)) on z-scores that divide by n - 1; k-means takes the z-scores themselves
Starts      points drawn at random as first centres; each point joins the nearest
Figures     CE = E_sum, the sum of the cluster variances in feature space; E_max, the largest of them;
            NMI with the arithmetic mean of the entropies
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from reproduction.experiment import Cell, Experiment, Printed, mean_and_std

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Pair = tuple[float, float]
Figures = dict[str, Printed]


@dataclass(frozen=True)
class Starts:
    """Results of random starts, one entry per restart."""

    e_sum: Floats
    e_max: Floats
    nmi: Floats


def pendigits_row(restarts: int, seed: int, *, sigma: float | None, test_only: bool) -> dict[str, float]:
    """Mean and best clustering error and NMI on the pen-written digits; without ``sigma`` those of k-means."""
    from kernelweave.datasets import load_benchmark

    digits = load_benchmark("pendigits")
    rows = digits.is_test if test_only else slice(None)
    starts = random_starts(digits.data[rows], digits.target[rows], sigma=sigma, restarts=restarts, seed=seed)
    best = int(starts.e_sum.argmin())
    return {
        **mean_and_std("ce", starts.e_sum),
        **mean_and_std("nmi", starts.nmi),
        "ce_min": float(starts.e_sum[best]),
        "nmi_at_ce_min": float(starts.nmi[best]),
    }


def mfeat_row(restarts: int, seed: int, *, sigma: float, view: str) -> dict[str, float]:
    """Mean and deviation of E_max, E_sum and NMI on one view of the Multiple features digits."""
    from kernelweave.datasets import load_benchmark

    digits = load_benchmark("mfeat")
    starts = random_starts(digits.views[view], digits.target, sigma=sigma, restarts=restarts, seed=seed)
    return {
        **mean_and_std("e_max", starts.e_max),
        **mean_and_std("e_sum", starts.e_sum),
        **mean_and_std("nmi", starts.nmi),
    }


def random_starts(X: ArrayLike, target: ArrayLike, *, sigma: float | None, restarts: int, seed: int) -> Starts:
    """Run kernel k-means from random points, ``restarts`` times on one kernel; k-means where ``sigma`` is None."""
    from kernelweave.datasets import standardize
    from kernelweave.foundation.random_streams import streams
    from kernelweave.kernels.spec.fitting import fit_kernel
    from kernelweave.metrics import normalized_mutual_info
    from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
    from kernelweave.solvers.kmeans.starts import start_labels

    X = standardize(X)
    if sigma is None:
        op = fit_kernel(X, "linear").operator()
    else:
        op = fit_kernel(X, "rbf", {"sigma": sigma}).operator("dense")
    weights = np.ones(op.n_samples)
    k = len(np.unique(target))
    runs = []
    for rng in streams(seed, restarts):
        descent = kernel_kmeans(op, start_labels(op, "random", weights, k, rng), weights, n_clusters=k)
        runs.append((descent.objective, descent.scatter.max(), normalized_mutual_info(target, descent.labels)))
    return Starts(*np.array(runs).T)


def _msc_figures(dataset: str, *, means: Pair, best: Pair, decimals: int) -> Figures:
    """Columns (CE, NMI) of MSc table 5.3, which prints no deviations.

    The best CE, printed with ``decimals``, is to be met to the last digit or undercut; it is a matter of luck, too.
    """
    source = f"{_MSC}, {dataset}"
    (ce, nmi), (ce_min, nmi_min) = means, best
    return {
        "ce_mean": Printed(ce, statistic="mean", runs=100, source=f"{source}, Mean, CE"),
        "nmi_mean": Printed(nmi, statistic="mean", runs=100, decimals=3, source=f"{source}, Mean, NMI"),
        "ce_min": Printed(ce_min, decimals=decimals, rule="at most", source=f"{source}, Min, CE"),
        "nmi_at_ce_min": Printed(nmi_min, decimals=3, source=f"{source}, Min, NMI"),
    }


def _kmeans_figures(dataset: str, *, mean: float, best: float) -> Figures:
    """Column NMI of k-means in MSc table 5.3, which leaves out CE: in input space it compares with nothing there."""
    source = f"MSc table 5.3, k-Means (100 runs), {dataset}"
    return {
        "nmi_mean": Printed(mean, statistic="mean", runs=100, decimals=3, source=f"{source}, Mean, NMI"),
        "nmi_at_ce_min": Printed(best, decimals=3, source=f"{source}, Min, NMI"),
    }


def _phd_figures(table: str, *, e_max: Pair, e_sum: Pair, nmi: Pair) -> Figures:
    """Columns of a kernel table of the PhD, each as printed: (mean, deviation) over 500 starts."""
    figures = {}
    for name, (mean, deviation) in {"e_max": e_max, "e_sum": e_sum, "nmi": nmi}.items():
        source = f"PhD table {table}, Kernel k-means, {name}"
        figures[f"{name}_mean"] = Printed(mean, statistic="mean", spread=deviation, runs=500, source=source)
        figures[f"{name}_std"] = Printed(deviation, statistic="deviation", runs=500, source=f"{source}, after the sign")
    return figures


_MSC = "MSc table 5.3, Kernel k-Means (100 runs)"
_MSC_BOTH = "MSc table 5.3, Kernel k-Means and k-Means (100 runs)"
_STANDARDIZED = "Each feature to mean 0 and standard deviation 1, dividing by n - 1."
_PROTOCOL = "Gaussian kernel, sigma = {}; 10 clusters; {} restarts from points drawn at random."
_BESIDE = " k-means: the same z-scores and kind of starts, no kernel; its CE, which is not printed, is in input space."

EXPERIMENTS = (
    Experiment(
        id="msc-5.3-kernel-kmeans-test-digits",
        title="Kernel k-means on the Pendigits test digits",
        source=f"{_MSC_BOTH}, Pendigits.tes, rows Mean and Min",
        data=("pendigits",),
        preprocessing=_STANDARDIZED,
        protocol=_PROTOCOL.format(2.8, 100) + _BESIDE,
        cells={
            "random-starts": Cell(
                "Kernel k-means, mean and best of the restarts",
                partial(pendigits_row, sigma=2.8, test_only=True),
                printed=_msc_figures(
                    "Pendigits.tes",
                    means=(1537.69, 0.713),
                    best=(1485.2, 0.754),
                    decimals=1,
                ),
                restarts=100,
                quick_restarts=20,
            ),
            "kmeans": Cell(
                "k-means, mean and best of the restarts",
                partial(pendigits_row, sigma=None, test_only=True),
                printed=_kmeans_figures("Pendigits.tes", mean=0.685, best=0.701),
                restarts=100,
                quick_restarts=20,
            ),
        },
    ),
    Experiment(
        id="msc-5.3-kernel-kmeans-all-digits",
        title="Kernel k-means on all Pendigits",
        source=f"{_MSC_BOTH}, Pendigits Full, rows Mean and Min",
        data=("pendigits",),
        preprocessing=_STANDARDIZED,
        protocol=_PROTOCOL.format(2.1, 100) + _BESIDE,
        cells={
            "random-starts": Cell(
                "Kernel k-means, mean and best of the restarts",
                partial(pendigits_row, sigma=2.1, test_only=False),
                printed=_msc_figures(
                    "Pendigits Full",
                    means=(6668.34, 0.739),
                    best=(6514.94, 0.777),
                    decimals=2,
                ),
                restarts=100,
                quick_restarts=20,
            ),
            "kmeans": Cell(
                "k-means, mean and best of the restarts",
                partial(pendigits_row, sigma=None, test_only=False),
                printed=_kmeans_figures("Pendigits Full", mean=0.688, best=0.697),
                restarts=100,
                quick_restarts=20,
            ),
        },
    ),
    Experiment(
        id="phd-2.13a-kernel-kmeans",
        title="Kernel k-means on Multiple features, pixel averages",
        source="PhD table 2.13(a), row Kernel k-means",
        data=("mfeat",),
        preprocessing=_STANDARDIZED,
        protocol=_PROTOCOL.format(15, 500),
        cells={
            "random-starts": Cell(
                "Kernel k-means",
                partial(mfeat_row, sigma=15, view="pix"),
                printed=_phd_figures("2.13(a)", e_max=(172.10, 27.68), e_sum=(937.04, 7.13), nmi=(0.72, 0.04)),
                restarts=500,
                quick_restarts=20,
            )
        },
    ),
    Experiment(
        id="phd-2.14a-kernel-kmeans",
        title="Kernel k-means on Multiple features, profile correlations",
        source="PhD table 2.14(a), row Kernel k-means",
        data=("mfeat",),
        preprocessing=_STANDARDIZED,
        protocol=_PROTOCOL.format(9, 500),
        cells={
            "random-starts": Cell(
                "Kernel k-means",
                partial(mfeat_row, sigma=9, view="fac"),
                printed=_phd_figures("2.14(a)", e_max=(263.28, 57.90), e_sum=(1332.17, 12.37), nmi=(0.72, 0.03)),
                restarts=500,
                quick_restarts=20,
            )
        },
    ),
)
