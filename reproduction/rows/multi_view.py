"""How the figures of PhD chapter 4 are computed, and how benchmark sets are prepared.

Table 4.1   the two views of the authors, Gaussian kernels as they are; a row is a method at one exponent
Figure 4.4  digits of Multiple features; a row is both methods at one exponent, or one of the methods beside them, and
            the claims of the text are counted
CSC         correlational spectral clustering as in ``rows.convex_mixture``: kappa without the classes, projections of
            each view clustered by themselves. The text does not say which view is shown: the best one, with the classes
MVCMM       weighted multi-view convex mixture, the best of ``SCALES`` times beta_0 with the classes, as in the text.
            beta_0 of a view makes up for its scale: distances need no normalising. Stopping: ``rows.convex_mixture``
Benchmarks  every set prepared without its classes, linear kernels, as many clusters as classes
Exponents   infinity stands for equal weights, as in the library
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.rows.convex_mixture import EARLY, KMEANS_STARTS, chosen_kappa, mixture

if TYPE_CHECKING:
    from kernelweave.foundation.array_types import Floats, Ints

Exponent = float | str  # a number, infinity for equal weights, or "auto"

GRID = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, np.inf)  # of figures 4.3 and 4.4
DIGITS = ("0169", "0236", "1456", "1367", "4689")
SCALES = tuple(0.5 * step for step in range(1, 15))  # of beta_0, PhD 4.3
SLIGHT = 0.05  # NMI: what "slightly inferior" is taken to be
NO_WEIGHT = 0.01  # a view weight below it counts as zero
# what makes a view one of words, and the columns kept of it
WIDE = 500
DENSE = 0.1
KEPT = 50

#: Benchmark sets of several views by the name used here, and the file each comes from.
SETS = {
    "mfeat-6": "mfeat",
    "mfeat-5": "mfeat",
    **{f"mfeat-{digits}": "mfeat" for digits in DIGITS},
    "3sources": "3sources",
    "bbc4view": "bbc4view",
    "hw2sources": "hw2sources",
    "landuse21": "landuse21",
    "pie10": "pie10",
    "proteinfold": "proteinfold",
    "reuters1200": "reuters1200",
    "webkb-203": "webkb_203",
    "webkb-cornell": "webkb_cornell_195",
    "wikipedia": "wikipedia_test693",
    "movies617": "movies617",
    "bdgp": "bdgp",
    "citeseer": "citeseer",
    "cora": "cora",
    "mvkkm-synthetic": "mvkkm_synthetic",
}


@dataclass(frozen=True)
class Views:
    """A data set ready to be clustered: views, classes, and the options of the estimator that belong to it."""

    views: "Mapping[str, Floats]"
    target: "Ints"
    options: Mapping[str, Any]

    @property
    def n_clusters(self) -> int:
        """As many as there are classes."""
        return len(np.unique(self.target))


@dataclass(frozen=True)
class Agreement:
    """How well one clustering agrees with the classes, and its weights."""

    nmi: float
    coefficients: "Floats"
    p: float


@dataclass(frozen=True)
class Mixed:
    """The convex mixture with the largest NMI, and the NMI at beta_0."""

    nmi: float
    weights: "Floats"
    scale: float
    nmi_at_beta_0: float


def named(p: Exponent) -> str:
    """Return an exponent as it occurs in names of figures: ``p_1.5``, ``uniform`` or ``auto``."""
    if isinstance(p, str):
        return p
    return "uniform" if p == np.inf else f"p_{p:g}"


# --- one clustering --------------------------------------------------------------------------------------------------


def fitted(data: Views, p: Exponent, *, method: str = "mvkkm", seed: int = 0, **options: Any) -> Any:
    """Fit ``"mvkkm"`` or ``"mvspec"`` with an exponent."""
    from kernelweave import MultiViewKernelKMeans, MultiViewSpectralClustering

    kind: Callable[..., Any] = {"mvkkm": MultiViewKernelKMeans, "mvspec": MultiViewSpectralClustering}[method]
    weights = {"view_weights": "uniform"} if p == np.inf else {"p": p}
    return kind(data.n_clusters, random_state=seed, **weights, **data.options, **options).fit(data.views)


def agreement(data: Views, model: Any) -> Agreement:
    """Return how well a fitted model agrees with the classes, the shares of the kernels and the exponent."""
    from kernelweave.metrics import normalized_mutual_info

    nmi = normalized_mutual_info(data.target, model.labels_)
    return Agreement(nmi, model.kernel_coefficients_, model.p_)


# --- table 4.1 -------------------------------------------------------------------------------------------------------


def table_row(restarts: int, seed: int, *, method: str, p: float) -> dict[str, float]:
    """NMI and kernel coefficients of a method on the synthetic views: half a row of table 4.1."""
    data = prepared("mvkkm-synthetic")
    start = {"init": "global_exact"} if method == "mvkkm" else {}
    result = agreement(data, fitted(data, p, method=method, seed=seed, **start))
    figures = {"nmi": result.nmi}
    return figures | {f"coefficient_{v}": float(share) for v, share in enumerate(result.coefficients, 1)}


# --- figures 4.3 and 4.4 ---------------------------------------------------------------------------------------------


def digits_row(restarts: int, seed: int, *, digits: str, p: float) -> dict[str, float]:
    """NMI and kernel coefficients of both methods at one exponent on four digits."""
    figures: dict[str, float] = {}
    for method in ("mvkkm", "mvspec"):
        result = digits_run(digits, method, p, seed)
        shares = zip(digits_views(digits).views, result.coefficients, strict=True)
        figures |= {f"{method}_nmi": result.nmi} | {f"{method}_{view}": float(share) for view, share in shares}
    return figures


def digits_claims_row(restarts: int, seed: int, *, digits: str) -> dict[str, float]:
    """Best exponent of MVKKM, and the share of exponents at which it is no worse than MVSpec (claims on figure 4.4)."""
    mvkkm, mvspec = (curve(digits, method, seed) for method in ("mvkkm", "mvspec"))
    best = int(np.argmax(mvkkm))
    small = max(mvkkm[GRID.index(1.5)], mvkkm[GRID.index(2.0)])
    return {
        "best_p_1.5_or_2": float(small == mvkkm.max()),
        "mvkkm_not_below_mvspec": float((mvkkm >= mvspec).mean()),
        "best_p": GRID[best],
        "best_nmi": float(mvkkm.max()),
        "uniform_below_best": float(mvkkm.max() - mvkkm[-1]),
        "mvspec_best_p": GRID[int(np.argmax(mvspec))],
        "mvspec_best_nmi": float(mvspec.max()),
        "mvspec_uniform_below_best": float(mvspec.max() - mvspec[-1]),
    }


def single_view_claims_row(restarts: int, seed: int, *, digits: str) -> dict[str, float]:
    """Whether p = 1, a single view, is the worst of all exponents, as the text has it."""
    curves = {method: curve(digits, method, seed) for method in ("mvkkm", "mvspec")}
    return {f"{method}_p_1_worst": float(nmi[0] == nmi.min()) for method, nmi in curves.items()}


def curve(digits: str, method: str, seed: int) -> "Floats":
    """Return the NMI of a method for every exponent of ``GRID``."""
    return np.array([digits_run(digits, method, p, seed).nmi for p in GRID])


@cache
def digits_run(digits: str, method: str, p: float, seed: int) -> Agreement:
    """Cluster four digits; kept, since the rows and the claims come from the same clusterings."""
    data = digits_views(digits)
    start = {"init": "global_exact"} if method == "mvkkm" else {}
    return agreement(data, fitted(data, p, method=method, seed=seed, **start))


@cache
def digits_views(digits: str) -> Views:
    """Return four digits in five views, every attribute of unit variance and not centred, as in PhD 4.3.2."""
    views, target = benchmark(f"mfeat-{digits}")
    return Views({name: _unit_variance(view) for name, view in views.items()}, target, {"kernel": "linear"})


def _unit_variance(X: "Floats") -> "Floats":
    X = _varying(X)
    return np.asarray(X / X.std(axis=0, ddof=1))


# --- the other methods of figure 4.4 ---------------------------------------------------------------------------------


def csc_row(restarts: int, seed: int, *, digits: str) -> dict[str, float]:
    """NMI of correlational spectral clustering on four digits: the best view, the worst, and all side by side."""
    return dict(csc_run(digits, seed))


def mvcmm_row(restarts: int, seed: int, *, digits: str, tol: float = EARLY) -> dict[str, float]:
    """NMI and view weights of the weighted mixture on four digits, at the best multiple of beta_0."""
    best = mvcmm_run(digits, tol)
    figures = {"nmi": best.nmi, "nmi_beta_0": best.nmi_at_beta_0, "beta_scale": best.scale}
    weights = zip(digits_views(digits).views, best.weights, strict=True)
    return figures | {f"weight_{view}": float(weight) for view, weight in weights}


def csc_claims_row(restarts: int, seed: int, *, digits: str) -> dict[str, float]:
    """Whether CSC is below the others at their best, slightly or by more, and above MVSpec at most exponents."""
    csc = csc_run(digits, seed)["nmi"]
    figures: dict[str, float] = {}
    for method in ("mvkkm", "mvspec"):
        difference = float(curve(digits, method, seed).max() - csc)
        figures |= {
            f"below_{method}": float(difference > 0),
            f"slightly_below_{method}": float(0 < difference <= SLIGHT),
            f"far_below_{method}": float(difference > SLIGHT),
            f"{method}_ahead_by": difference,
        }
    share = float((csc > curve(digits, "mvspec", seed)).mean())
    return figures | {"above_mvspec_for_most_p": float(share > 0.5), "above_mvspec": share}


def mvcmm_claims_row(restarts: int, seed: int, *, digits: str, tol: float = EARLY) -> dict[str, float]:
    """Whether the mixture is below all other methods at every exponent, and most of its weights are zero."""
    best = mvcmm_run(digits, tol)
    figures = {f"below_{method}": float(best.nmi < curve(digits, method, seed).min()) for method in ("mvkkm", "mvspec")}
    return figures | {
        "below_csc": float(best.nmi < csc_run(digits, seed)["nmi"]),
        "most_weights_zero": float((best.weights < NO_WEIGHT).mean() > 0.5),
        "weights_above_zero": float((best.weights >= NO_WEIGHT).sum()),
    }


@cache
def csc_run(digits: str, seed: int) -> dict[str, float]:
    """Cluster four digits by k-means on correlated projections; kept, since the row and the claims share it."""
    from sklearn.cluster import KMeans

    from kernelweave import CorrelationalSpectralClustering
    from kernelweave.foundation.threads import single_threaded_libraries
    from kernelweave.metrics import normalized_mutual_info

    data = digits_views(digits)
    k = data.n_clusters
    kappa = chosen_kappa(data.views, data.n_clusters, seed)
    kmeans = KMeans(k, init="random", n_init=KMEANS_STARTS, random_state=seed)
    with single_threaded_libraries():  # few samples: threads only wait for each other
        model = CorrelationalSpectralClustering(k, regularization=kappa, n_init=1, random_state=seed).fit(data.views)
        projections = [*np.split(model.embedding_, len(data.views), axis=1), model.embedding_]
        *each, together = (normalized_mutual_info(data.target, kmeans.fit_predict(block)) for block in projections)
    figures = {"nmi": max(each), "nmi_worst": min(each), "nmi_side_by_side": together, "kappa": kappa}
    return figures | {f"nmi_{view}": nmi for view, nmi in zip(data.views, each, strict=True)}


@cache
def mvcmm_run(digits: str, tol: float) -> Mixed:
    """Fit weighted mixtures of every sharpness to four digits and keep the one of largest NMI."""
    from kernelweave.foundation.errors import ConvergenceWarning
    from kernelweave.metrics import normalized_mutual_info

    data = digits_views(digits)
    with warnings.catch_warnings():
        # Small multiples may leave fewer priors above zero than there are classes; the estimator says so each time.
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [mixture(data.views, data.n_clusters, "weighted", tol=tol, beta_scale=scale) for scale in SCALES]
    scores = [normalized_mutual_info(data.target, model.labels_) for model in models]
    best = int(np.argmax(scores))
    return Mixed(scores[best], models[best].view_weights_, SCALES[best], scores[SCALES.index(1.0)])


# --- benchmark sets --------------------------------------------------------------------------------------------------


def benchmark(name: str) -> "tuple[dict[str, Floats], Ints]":
    """Return the views and classes of one of ``SETS`` as they are stored."""
    from kernelweave.datasets import load_benchmark
    from kernelweave.inputs import take_rows

    stored = load_benchmark(SETS[name])
    views = dict(stored.views)
    target = stored.target
    if SETS[name] != "mfeat" or name == "mfeat-6":
        return views, target
    del views["mor"]
    digits = name.removeprefix("mfeat-")
    kept = np.isin(target, [int(digit) for digit in digits]) if digits in DIGITS else np.ones(len(target), dtype=bool)
    return take_rows(views, kept), target[kept]


@cache
def prepared(name: str) -> Views:
    """Return a set ready to be clustered, prepared without its classes."""
    views, target = benchmark(name)
    if name == "mvkkm-synthetic":
        return Views(views, target, {"kernel": "rbf", "kernel_params": {"sigma": 0.2}, "normalize": False})
    return Views({view: prepared_view(X) for view, X in views.items()}, target, {"kernel": "linear"})


def prepared_view(X: "Floats") -> "Floats":
    """Return directions of words where a view is one of words, else z-scores; columns that are constant drop out.

    Words: more than 500 columns, none negative, less than a tenth of the entries above 0. Counts become tf-idf weights;
    then at most 50 singular directions are kept and rows scaled to length 1.
    """
    from kernelweave.datasets import standardize

    wide = X.shape[1] > WIDE and X.min() >= 0 and np.count_nonzero(X) < DENSE * X.size
    X = _varying(X)
    return _directions(X) if wide else standardize(X)


def _directions(X: "Floats") -> "Floats":
    from scipy import sparse
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    from kernelweave.datasets import unit_rows

    words = sparse.csr_array(X)
    if np.array_equal(words.data, np.rint(words.data)):
        words = TfidfTransformer().fit_transform(words)
    return unit_rows(TruncatedSVD(min(KEPT, min(words.shape) - 1), random_state=0).fit_transform(words))


def _varying(X: "Floats") -> "Floats":
    return X[:, X.max(axis=0) > X.min(axis=0)]
