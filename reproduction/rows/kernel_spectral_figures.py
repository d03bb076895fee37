"""How the claims on MVKSC figures 2 to 4 are checked, on draws of its synthetic sets and without tuning."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment import mean_and_std
from reproduction.rows import kernel_spectral
from reproduction.rows.spectral_comparators import COMPARATORS, compared

if TYPE_CHECKING:
    from kernelweave.foundation.array_types import Ints

FIGURE_SIGMA = 0.1**0.5  # of figures 2 and 3
# ratio of sizes from which clusters are almost equal, and up to which one is dominant
EQUAL = 0.8
DOMINANT = 0.5
# of figure 4
LARGE_SIGMA = 1.0
LARGE_STRENGTH = 0.01
TRAINED = 1000
BAND = 0.05
_COMPARED = ("mvksc", "ksc_view_1", "ksc_view_2", "ksc_view_3")


@dataclass(frozen=True)
class Halves:
    """Two clusters: NMI, and the size of the smaller one over that of the larger."""

    nmi: float
    size_ratio: float


def boundaries_row(restarts: int, seed: int) -> dict[str, float]:
    """Synth 2 with sigma^2 = 0.1 and gamma = 1: NMI of MVKSC beside that of KSC on single views (figure 2)."""
    nmi = np.array([[each.nmi for each in boundaries(seed + i)] for i in range(restarts)])
    means = nmi.mean(axis=0)
    return {
        "mean_nmi_ahead": float(means[0] > means[1:].max()),
        "draws_ahead": float((nmi[:, :1] > nmi[:, 1:]).all(axis=1).mean()),
    } | {f"{name}_nmi_mean": float(mean) for name, mean in zip(_COMPARED, means, strict=True)}


def sizes_row(restarts: int, seed: int) -> dict[str, float]:
    """Synth 2 as before: ratios of cluster sizes (figure 3)."""
    ratios = np.array([[each.size_ratio for each in boundaries(seed + i)] for i in range(restarts)])
    means = ratios.mean(axis=0)
    return {
        "mvksc_almost_equal": float(means[0] >= EQUAL),
        "ksc_one_dominant": float(means[1:].max() <= DOMINANT),
        "draws_almost_equal": float((ratios[:, 0] >= EQUAL).mean()),
        "draws_one_dominant": float((ratios[:, 1:] <= DOMINANT).all(axis=1).mean()),
    } | {f"{name}_sizes_mean": float(mean) for name, mean in zip(_COMPARED, means, strict=True)}


@cache
def boundaries(draw: int) -> list[Halves]:
    """Return two clusters by MVKSC, then those of KSC on every view."""
    from kernelweave import KernelSpectralClustering, MultiViewKernelSpectralClustering
    from kernelweave.metrics import normalized_mutual_info

    drawn = kernel_spectral.synthetic("synth-2", kernel_spectral.SAMPLES, draw)
    width = {"sigma": FIGURE_SIGMA}
    models: list[Any] = [MultiViewKernelSpectralClustering(2, gamma=1.0, kernel_params=width).fit(drawn.views)]
    models += [KernelSpectralClustering(2, kernel_params=width).fit(view) for view in drawn.views.values()]
    return [Halves(normalized_mutual_info(drawn.target, each.labels_), size_ratio(each.labels_)) for each in models]


def size_ratio(labels: "Ints") -> float:
    """Return the size of the smaller of two clusters over that of the larger."""
    sizes = np.bincount(labels, minlength=2)
    return float(sizes.min() / sizes.max())


def large_row(restarts: int, seed: int, *, n: int) -> dict[str, float]:
    """NMI on ``n`` samples of synth 1, up to a thousand of which are trained on (figure 4c)."""
    return mean_and_std("nmi", [large(n, seed + i) for i in range(restarts)])


def large_claims_row(restarts: int, seed: int, *, sizes: Iterable[int]) -> dict[str, float]:
    """Whether the mean NMI stays within a band for all numbers of samples."""
    means = [large_row(restarts, seed, n=n)["nmi_mean"] for n in sizes]
    spread = max(means) - min(means)
    return {"stays_the_same": float(spread <= BAND), "spread": spread}


def large_comparators_row(restarts: int, seed: int, *, sizes: Iterable[int]) -> dict[str, float]:
    """Whether MVKSC, trained on a thousand samples, has the best mean NMI for all numbers of samples."""
    figures: dict[str, float] = {}
    for n in sizes:
        figures[f"nmi_mvksc_{n}"] = large_row(restarts, seed, n=n)["nmi_mean"]
        for method in COMPARATORS:
            values = [large_comparator(n, seed + i, method) for i in range(restarts)]
            figures[f"nmi_{method}_{n}"] = float(np.mean(values))
    best = [all(figures[f"nmi_mvksc_{n}"] > figures[f"nmi_{method}_{n}"] for method in COMPARATORS) for n in sizes]
    return {"ahead_of_all": float(all(best))} | figures


@cache
def large_comparator(n: int, draw: int, method: str) -> float:
    """Return the NMI of one of the other methods on all of ``n`` samples."""
    from kernelweave.metrics import normalized_mutual_info

    drawn = kernel_spectral.synthetic("synth-1", n, draw)
    views = list(drawn.views.values())
    kernels = (
        ()
        if method == "mvnmf"
        else [kernel_spectral.kernel_matrix(view, "rbf", (("sigma", LARGE_SIGMA),)) for view in views]
    )
    labels = compared(method, views, kernels, 2, [LARGE_STRENGTH] * len(views)).labels
    return normalized_mutual_info(drawn.target, labels)


@cache
def large(n: int, draw: int) -> float:
    """Return the NMI of joint clusters of ``n`` samples."""
    from kernelweave import MultiViewKernelSpectralClustering
    from kernelweave.metrics import normalized_mutual_info

    drawn = kernel_spectral.synthetic("synth-1", n, draw)
    model = MultiViewKernelSpectralClustering(
        2, gamma=1.0, kernel_params={"sigma": LARGE_SIGMA}, n_train_samples=min(n, TRAINED), random_state=draw
    ).fit(drawn.views)
    return normalized_mutual_info(drawn.target, model.labels_)
