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


def _msc_figures(dataset: str, *, means: Pair, deviations: Pair, best: Pair, decimals: int, enough: int) -> Figures:
    """Columns (CE, NMI) of MSc table 5.3, with the deviations of single starts, which it does not print.

    The best CE, printed with ``decimals``, is to be met to the last digit or undercut. It is a matter of
    luck too: only a run of ``enough`` restarts, which miss it once in a hundred times, is compared with it.
    """
    source = f"{_MSC}, {dataset}"
    tolerance = 0.05 if decimals == 1 else 0.02
    (ce, nmi), (ce_dev, nmi_dev), (ce_min, nmi_min) = means, deviations, best
    return {
        "ce_mean": Printed(ce, 0.01, relative=True, deviation=ce_dev, runs=100, source=f"{source}, Mean, CE"),
        "nmi_mean": Printed(nmi, 0.02, decimals=3, deviation=nmi_dev, runs=100, source=f"{source}, Mean, NMI"),
        "ce_min": Printed(
            ce_min,
            tolerance,
            decimals=decimals,
            rule="at most",
            min_restarts=enough,
            source=f"{source}, Min, CE",
        ),
        "nmi_at_ce_min": Printed(nmi_min, 0.002, decimals=3, min_restarts=enough, source=f"{source}, Min, NMI"),
    }


def _kmeans_figures(dataset: str, *, mean: float, best: float) -> Figures:
    """Column NMI of k-means in MSc table 5.3, which leaves out CE: in input space it compares with nothing else there.

    The deviation is that of 1,400 starts of scikit-learn's k-means on the test digits; PhD table 2.7(a) prints the same
    for all digits. 86 of these starts, and 68 of 1,400 on all digits, came within 0.01 % of the least CE: of 100 starts
    at least one does, in 99 runs of a hundred.
    """
    source = f"MSc table 5.3, k-Means (100 runs), {dataset}"
    return {
        "nmi_mean": Printed(mean, 0.02, decimals=3, deviation=0.02, runs=100, source=f"{source}, Mean, NMI"),
        "nmi_at_ce_min": Printed(best, 0.002, decimals=3, min_restarts=100, source=f"{source}, Min, NMI"),
    }


def _phd_figures(table: str, *, e_max: Pair, e_sum: Pair, nmi: Pair) -> Figures:
    """Columns of a kernel table of the PhD, each as printed: (mean, deviation) over 500 starts."""
    figures = {}
    for name, (mean, deviation), tolerance in (
        ("e_max", e_max, 0.10 * e_max[0]),
        ("e_sum", e_sum, 0.02 * e_sum[0]),
        ("nmi", nmi, 0.03),
    ):
        source = f"PhD table {table}, Kernel k-means, {name}"
        figures[f"{name}_mean"] = Printed(mean, tolerance, deviation=deviation, runs=500, source=source)
        # A deviation of 500 starts is itself known to about 4.5 %; 20 % is three times that of a difference.
        figures[f"{name}_std"] = Printed(
            deviation, max(0.2 * deviation, 0.01), min_restarts=500, source=f"{source}, after the sign"
        )
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
                    deviations=(33.9, 0.023),  # of 1,400 starts of a separate plain implementation
                    best=(1485.2, 0.754),
                    decimals=1,
                    enough=800,  # 8 of 1,400 starts came within 0.05 of the printed one
                ),
                restarts=100,
                quick_restarts=20,
                quick=True,
            ),
            "kmeans": Cell(
                "k-means, mean and best of the restarts",
                partial(pendigits_row, sigma=None, test_only=True),
                printed=_kmeans_figures("Pendigits.tes", mean=0.685, best=0.701),
                restarts=100,
                quick_restarts=20,
                quick=True,
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
                    deviations=(108.98, 0.03),  # printed in PhD table 2.15(a) for the same data and kernel
                    best=(6514.94, 0.777),
                    decimals=2,
                    enough=100,  # 7 of 100 starts found it, says the text of MSc 5.3
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
                quick=True,
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
                quick=True,
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
                quick=True,
            )
        },
    ),
)
