"""How the rows of MVKSC tables 2 to 5 are computed.

Sets        synth 1 and 2 are drawn anew for every restart; texts stay, and a restart is another search
Kernels     Gaussian ones of width sigma for the synthetic sets, normalised polynomials of degree 1 and 2 with offset t
            for texts; one setting for all views
Tuning      simulated annealing over the kernel and, where a method has one for each view, a gamma or the strength of
            a coupling, without the classes. Points are rounded to a grid and every fit is kept, so that the searches of
            all criteria share their fits
Gamma       matters as a share of N alone: (15) weighs a direction of strength s <= 1 by 1 / (1 - s gamma / N)
With the    the best view of single views and of scores view by view, and of BLF and BAF the best of five eta: as in
classes     the paper. Figures with ``fixed_eta`` take eta = 0.75, and those with ``views`` the mean over the views
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from reproduction.experiment import mean_and_std
from reproduction.rows.spectral_comparators import COMPARATORS, compared

if TYPE_CHECKING:
    from kernelweave.foundation.array_types import Floats, Ints, Matrix

SYNTHETIC = ("synth-1", "synth-2")
#: Texts by the name of the paper: the benchmark, and how many of its views.
TEXTS = {"reuters-1": ("reuters1200", 2), "reuters-2": ("reuters600", 3), "3-sources": ("3sources", 3)}
KSC = ("single", "concatenated", "sum", "product")
COUPLED = ("per-view", "joint")
METHODS = (*KSC, *COMPARATORS, *COUPLED)
CRITERIA = ("sil", "blf", "baf")
ETAS = (0.75, 0.80, 0.85, 0.90, 0.95)  # the first one is the choice without the classes
SAMPLES = 1000
EVALUATIONS = 40
# range, and steps of the grid in a factor of 10
SIGMAS = (0.1, 10.0)
SIGMA_STEPS = 10
OFFSETS = (0.1, 100.0)
OFFSET_STEPS = 3
DEGREES = (1, 2)
# largest gamma / N, and the step of its grid
SHARE = 0.9
SHARE_STEP = 0.3
# of Co-reg, as in the paper, and the step of its grid
STRENGTHS = (0.01, 0.05)
STRENGTH_STEP = 0.02
# of MVNMF: its source takes 0.01; steps of the grid in a factor of 10
NMF_STRENGTHS = (0.001, 0.1)
NMF_STEPS = 1
ROUNDED = 12  # decimals of rounded parameters
Setting = tuple[tuple[str, float], ...]  # kernel parameters in a form that can be looked up


@dataclass(frozen=True)
class Problem:
    """A data set: views, classes, the kernel used on it, and distances for silhouettes."""

    views: "Mapping[str, Matrix]"
    target: "Ints"
    kernel: str
    metric: str

    @property
    def n_clusters(self) -> int:
        """As many as there are classes."""
        return len(np.unique(self.target))

    def joined(self) -> "Matrix":
        """Return the features of all views side by side."""
        from scipy import sparse

        blocks = list(self.views.values())
        return sparse.csr_array(sparse.hstack(blocks)) if sparse.issparse(blocks[0]) else np.hstack(blocks)


@dataclass(frozen=True)
class Fitted:
    """What a fitted model is judged by; ``view_labels`` where every view is clustered separately."""

    scores: "Floats"
    degrees: "Floats"
    codebook: "Floats"
    labels: "Ints"
    view_labels: "Ints | None" = None


@dataclass(frozen=True)
class Agreement:
    """How well clusters agree with the classes."""

    nmi: float
    ari: float


@dataclass(frozen=True)
class Tuned:
    """The result of a search: agreement of its clusters, of each view's or of all, and the best NMI on the way."""

    agreements: tuple[Agreement, ...]
    best_met: float

    @property
    def best(self) -> Agreement:
        """The view with the best NMI."""
        return max(self.agreements, key=lambda each: each.nmi)


# --- tables 2 to 5 ---------------------------------------------------------------------------------------------------


def table_row(restarts: int, seed: int, *, data: str, method: str, criterion: str) -> dict[str, float]:
    """NMI and ARI of a method tuned by one criterion, means over draws (texts: searches)."""
    rows = [one_row(data, method, criterion, seed + i) for i in range(restarts)]
    figures: dict[str, float] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        figures |= mean_and_std(name, values) if name in ("nmi", "ari") else {f"{name}_mean": float(np.mean(values))}
    return figures


def claims_row(restarts: int, seed: int, *, data: str) -> dict[str, float]:
    """Whether MVKSC, at its best criterion and assignment, is ahead of each way of KSC at its best criterion."""
    best = best_nmi(restarts, seed, data, (*KSC, *COUPLED))
    ours = max(best[method] for method in COUPLED)
    return {f"ahead_of_{method}": float(ours > best[method]) for method in KSC} | {
        f"nmi_{method}": value for method, value in best.items()
    }


def comparators_row(restarts: int, seed: int, *, data: str) -> dict[str, float]:
    """Whether MVKSC, at its best, is at least as good as the best of OKKC, Co-reg and MVNMF, to three digits."""
    best = best_nmi(restarts, seed, data, (*COMPARATORS, *COUPLED))
    ours, theirs = (max(best[method] for method in methods) for methods in (COUPLED, COMPARATORS))
    return {"at_least_as_good": float(round(ours, 3) >= round(theirs, 3))} | {
        f"nmi_{method}": value for method, value in best.items()
    }


def best_nmi(restarts: int, seed: int, data: str, methods: Iterable[str]) -> dict[str, float]:
    """Return the mean NMI of methods, each at its best criterion."""
    return {
        method: max(
            table_row(restarts, seed, data=data, method=method, criterion=each)["nmi_mean"] for each in CRITERIA
        )
        for method in methods
    }


@cache
def one_row(data: str, method: str, criterion: str, seed: int) -> dict[str, float]:
    """Return the figures of one draw or search: the best eta and view, a fixed eta, and the mean over the views."""
    by_eta = [tuned(data, method, criterion, eta, seed) for eta in (ETAS if criterion != "sil" else ETAS[:1])]
    chosen = max(by_eta, key=lambda each: each.best.nmi)
    figures = {"nmi": chosen.best.nmi, "ari": chosen.best.ari}
    if len(by_eta) > 1:
        figures |= {"nmi_fixed_eta": by_eta[0].best.nmi, "ari_fixed_eta": by_eta[0].best.ari}
    if len(chosen.agreements) > 1:
        figures |= {
            "nmi_views": float(np.mean([each.nmi for each in chosen.agreements])),
            "ari_views": float(np.mean([each.ari for each in chosen.agreements])),
        }
    if criterion == "sil" and data in TEXTS:
        plain = tuned(data, method, criterion, ETAS[0], seed, metric="euclidean").best
        figures |= {"nmi_euclidean": plain.nmi, "ari_euclidean": plain.ari}
    return figures | {"nmi_best_met": max(each.best_met for each in by_eta)}


def tuned(data: str, method: str, criterion: str, eta: float, seed: int, metric: str | None = None) -> Tuned:
    """Tune a method by a criterion; single views are tuned one by one."""
    if method != "single":
        return searched(data, method, criterion, eta, seed, metric)
    count = len(problem(data, drawn_by(data, seed)).views)
    views = [searched(data, f"view-{v}", criterion, eta, seed, metric) for v in range(count)]
    return Tuned(tuple(each for view in views for each in view.agreements), max(view.best_met for view in views))


def searched(data: str, method: str, criterion: str, eta: float, seed: int, metric: str | None) -> Tuned:
    """Search by simulated annealing; return how well the resulting clusters agree with the classes."""
    from kernelweave.evaluation.model_selection import AnnealingSearch

    draw = drawn_by(data, seed)
    samples = problem(data, draw)
    search = AnnealingSearch(
        KeptClustering(data=data, draw=draw, method=method),
        space(samples, method),
        criterion="silhouette" if criterion == "sil" else criterion,
        eta=eta,
        metric=metric or samples.metric,
        n_iter=EVALUATIONS,
        random_state=seed,
    ).fit(judged_samples(samples, method))
    models = [
        KeptClustering(data=data, draw=draw, method=method, **params).fit()
        for params, failure in zip(search.trace_["params"], search.trace_["failure"], strict=True)
        if not failure
    ]
    best_met = max(each.nmi for model in models for each in agreements(samples, model))
    return Tuned(agreements(samples, search.best_estimator_), best_met)


def space(samples: Problem, method: str) -> dict[str, Any]:
    """Return what to draw from: kernel parameters, and for every view a gamma / N or the strength of its coupling."""
    from scipy.stats import loguniform, randint, uniform

    if method == "mvnmf":
        return {"strengths": [loguniform(*NMF_STRENGTHS) for _ in samples.views]}
    if samples.kernel == "rbf":
        ranges: dict[str, Any] = {"kernel_params": {"sigma": loguniform(*SIGMAS)}}
    else:
        degrees = randint(min(DEGREES), max(DEGREES) + 1)
        ranges = {"kernel_params": {"t": loguniform(*OFFSETS), "degree": degrees}}
    if method in COUPLED:
        ranges["gamma_shares"] = [uniform(0.0, SHARE) for _ in samples.views]
    if method.startswith("co-reg"):
        low, high = STRENGTHS
        ranges["strengths"] = [uniform(low, high - low) for _ in samples.views]
    return ranges


def judged_samples(samples: Problem, method: str) -> Any:
    """Return the samples between which silhouettes are measured: one view, all side by side, or view by view."""
    if method == "concatenated":
        return samples.joined()
    return list(samples.views.values())[int(method[5:])] if method.startswith("view-") else dict(samples.views)


def agreements(samples: Problem, model: Any) -> tuple[Agreement, ...]:
    """Return how well a fitted model agrees with the classes, view by view where views are clustered separately."""
    from kernelweave.metrics import adjusted_rand_index, normalized_mutual_info

    return tuple(
        Agreement(normalized_mutual_info(samples.target, labels), adjusted_rand_index(samples.target, labels))
        for labels in np.atleast_2d(getattr(model, "view_labels_", model.labels_))
    )


# --- one clustering --------------------------------------------------------------------------------------------------


class KeptClustering(ClusterMixin, BaseEstimator):
    """A method of the tables on one of its data sets, with parameters rounded to a grid and fits that are kept.

    The data are those of ``problem(data, draw)``; the arguments of ``fit`` are ignored. Methods: ``"view-0"``, ... is
    KSC on one view, ``"concatenated"``, ``"sum"`` and ``"product"`` KSC on joined features and combined kernels,
    ``"joint"`` and ``"per-view"`` MVKSC; then those of ``COMPARATORS``.
    """

    def __init__(
        self,
        *,
        data: str = "synth-1",
        draw: int = 0,
        method: str = "joint",
        kernel_params: Mapping[str, float] | None = None,
        gamma_shares: Sequence[float] = (),
        strengths: Sequence[float] = (),
    ) -> None:
        self.data = data
        self.draw = draw
        self.method = method
        self.kernel_params = kernel_params
        self.gamma_shares = gamma_shares
        self.strengths = strengths

    def fit(self, X: Any = None, y: Any = None) -> "KeptClustering":
        """Look the model up, or fit it."""
        kernel = rounded_kernel(self.kernel_params or {})
        if self.method in COMPARATORS:
            result = fitted_comparator(self.data, self.draw, self.method, kernel, rounded(self.strengths, self.method))
        else:
            name = "coupled" if self.method in COUPLED else self.method
            shares = tuple(round(round(share / SHARE_STEP) * SHARE_STEP, ROUNDED) for share in self.gamma_shares)
            result = fitted(self.data, self.draw, name, kernel, shares)
        self.n_clusters = problem(self.data, self.draw).n_clusters
        self.scores_ = result.scores
        self.degrees_ = result.degrees
        self.codebook_ = result.codebook
        self.labels_ = result.labels
        self.train_indices_ = np.arange(len(result.labels))
        if self.method == "per-view":
            self.view_labels_ = result.view_labels
        return self


def rounded_kernel(params: Mapping[str, float]) -> Setting:
    """Return kernel parameters on the grid, in order of their names."""
    steps = {"sigma": SIGMA_STEPS, "t": OFFSET_STEPS}
    return tuple(
        (name, round(10 ** (round(steps[name] * np.log10(value)) / steps[name]), ROUNDED) if name in steps else value)
        for name, value in sorted(params.items())
    )


def rounded(strengths: Sequence[float], method: str) -> tuple[float, ...]:
    """Return the strengths of couplings on the grid."""
    if method == "mvnmf":
        return tuple(round(10 ** (round(NMF_STEPS * np.log10(each)) / NMF_STEPS), ROUNDED) for each in strengths)
    low = STRENGTHS[0]
    return tuple(round(low + round((each - low) / STRENGTH_STEP) * STRENGTH_STEP, ROUNDED) for each in strengths)


@lru_cache(maxsize=3000)
def fitted(data: str, draw: int, method: str, kernel: Setting, gamma_shares: tuple[float, ...]) -> Fitted:
    """Fit KSC on one matrix, or MVKSC on those of all views; both assignments of the latter come from one fit."""
    from kernelweave import KernelSpectralClustering, MultiViewKernelSpectralClustering
    from kernelweave.solvers.spectral.kernel_spectral import codebook, decode, score_floor

    samples = problem(data, draw)
    k = samples.n_clusters
    n = len(samples.target)
    if method != "coupled":
        K = combined_kernel(data, draw, method, kernel)
        model: Any = KernelSpectralClustering(k, kernel="precomputed").fit(K)
        return Fitted(model.scores_, model.degrees_, model.codebook_, model.labels_)
    gammas = [share * n for share in gamma_shares]
    model = MultiViewKernelSpectralClustering(k, kernel="precomputed", gamma=gammas).fit(
        list(view_kernels(data, draw, kernel))
    )
    view_labels = []
    for scores in model.scores_:
        floor = score_floor(scores)
        view_labels.append(decode(scores, codebook(scores, k, floor), floor))
    return Fitted(model.scores_, model.degrees_, model.codebook_, model.labels_, np.stack(view_labels))


@lru_cache(maxsize=3000)
def fitted_comparator(data: str, draw: int, method: str, kernel: Setting, strengths: tuple[float, ...]) -> Fitted:
    """Fit one of the other methods."""
    samples = problem(data, draw)
    k = samples.n_clusters
    kernels = () if method == "mvnmf" else view_kernels(data, draw, kernel)
    result = compared(method, list(samples.views.values()), kernels, k, strengths)
    return Fitted(result.scores, result.degrees, np.empty((0, k - 1)), result.labels)


def combined_kernel(data: str, draw: int, method: str, kernel: Setting) -> "Floats":
    """Return the kernel matrix of a method that has only one."""
    if method == "concatenated":
        samples = problem(data, draw)
        return kernel_matrix(samples.joined(), samples.kernel, kernel)
    kernels = view_kernels(data, draw, kernel)
    if method == "sum":
        return np.asarray(np.sum(kernels, axis=0))
    return np.asarray(np.prod(kernels, axis=0)) if method == "product" else kernels[int(method[5:])]


@lru_cache(maxsize=12)
def view_kernels(data: str, draw: int, kernel: Setting) -> "tuple[Floats, ...]":
    """Return the kernel matrices of all views; those used last are kept."""
    samples = problem(data, draw)
    return tuple(kernel_matrix(view, samples.kernel, kernel) for view in samples.views.values())


def kernel_matrix(X: "Matrix", name: str, kernel: Setting) -> "Floats":
    """Return a kernel matrix."""
    from kernelweave.kernels.spec.fitting import fit_kernel

    every = slice(None)
    return np.ascontiguousarray(fit_kernel(X, name, dict(kernel)).operator("dense").block(every, every))


# --- data ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def problem(data: str, draw: int) -> Problem:
    """Return a draw of a synthetic set, or a text, which is the same for every draw."""
    from kernelweave.datasets import load_benchmark

    if data in SYNTHETIC:
        drawn = synthetic(data, SAMPLES, draw)
        return Problem(dict(drawn.views), drawn.target, "rbf", "euclidean")
    name, count = TEXTS[data]
    stored = load_benchmark(name)
    views = {view: words(X) for view, X in list(stored.views.items())[:count]}
    return Problem(views, stored.target, "normalized_poly", "cosine")


def drawn_by(data: str, seed: int) -> int:
    """Return which draw belongs to a seed; a text has only one."""
    return seed if data in SYNTHETIC else 0


def synthetic(data: str, n: int, draw: int) -> Any:
    """Draw ``n`` samples of synthetic set 1 or 2."""
    from kernelweave.datasets import make_mvksc_synth1, make_mvksc_synth2

    return (make_mvksc_synth1 if data == "synth-1" else make_mvksc_synth2)(n, random_state=draw)


def words(X: "Matrix") -> "Matrix":
    """Return weights of words without negative ones, which terms of nearly every document have in one copy."""
    from scipy import sparse

    return sparse.csr_array(X.maximum(0)) if sparse.issparse(X) else np.maximum(X, 0.0)
