"""How the tables of PhD chapter 3 are computed: views as the thesis made them, one clustering, figures of all samples.

Samples     seven views of one draw: five that misplace 50 points each and two noisy ones; a set of 2 to 5 views holds
            the first of the five, with or without the noisy two. The thesis has one draw, which is not available; here
            a restart is a draw of our generator
Figures     H, the average entropy (3.19) in natural logarithms; ``refined_...`` after kernel k-means from the
            partition, with a linear kernel per view and the view weights as coefficients
Stopping    the thesis ends EM of the weighted model when the likelihood rises by less than an epsilon it does not give.
            Its weights show: only 2 to 5 steps lead to tables 3.2 and 3.4, which is where the mean log-likelihood rises
            by less than 0.015 a step (``EARLY``). At ``SETTLED`` noisy views have lost their weight and little else has
            changed; beyond it the weights of equally good views drift apart (``CONVERGED``)
CSC         correlational spectral clustering, each view's projections clustered by themselves; one kappa for all views,
            since kernels are divided by their traces. The thesis does not describe its grid search. Here kappa is the
            one of ``KAPPAS`` whose correlations are furthest from those of shuffled views, without the classes
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment import mean_and_std

if TYPE_CHECKING:
    from kernelweave.foundation.array_types import Floats, Ints

EARLY = 0.015
SETTLED = 1e-4
CONVERGED = 1e-6
NUMBERS = (2, 3, 4, 5)
NOISE = (0.3, 0.5, 1.0, 1.5, 2.0, 2.5)
MIXED = ((0.5, 2.5), (1.0, 2.5))  # the thesis does not name the levels of its mixed set
ALPHAS = (0.5, 0.7, 1.0, 1.2, 1.5, 1.7, 2.0, 2.5, 3.0, 3.5, 4.0)
KAPPAS = (0.0001, 0.001, 0.01, 0.1, 1.0)
SHUFFLES = 3
KMEANS_STARTS = 30

Blocks = Mapping[str, "Floats"]


@dataclass(frozen=True)
class Runs:
    """Entropies of one method, a row per sample and a column per number of views."""

    h: "Floats"
    refined: "Floats"
    weights: "tuple[tuple[Floats, ...], ...]" = ()  # of the views, by sample and number of views


# --- one clustering --------------------------------------------------------------------------------------------------


def mixture(views: Blocks, n_clusters: int, method: str, *, tol: float = EARLY, beta_scale: float = 1.0) -> Any:
    """Fit ``"single"`` (of a single view), ``"concatenated"``, ``"multi-view"`` or ``"weighted"``."""
    from kernelweave import ConvexMixture, MultiViewConvexMixture

    if method in ("single", "concatenated"):
        return ConvexMixture(n_clusters, beta_scale=beta_scale).fit(np.hstack(list(views.values())))
    options: dict[str, Any] = {"weighted": True, "tol": tol} if method == "weighted" else {"weighted": False}
    return MultiViewConvexMixture(n_clusters, beta_scale=beta_scale, **options).fit(views)


def refined_labels(views: Blocks, model: Any) -> "Ints":
    """Return the labels after kernel k-means from those of a mixture (PhD 3.4.1).

    The same as a second fit with ``refine="kernel_kmeans"``, without fitting the mixture again.
    """
    from kernelweave import KernelKMeans

    weights = getattr(model, "view_weights_", np.ones(len(views)))
    X = np.hstack([np.sqrt(weight) * view for weight, view in zip(weights, views.values(), strict=True)])
    return KernelKMeans(len(model.exemplar_indices_), kernel="linear", init=model.labels_).fit(X).labels_


def entropies(views: Blocks, target: "Ints", model: Any) -> tuple[float, float]:
    """Return the entropy of a fitted mixture, without and with kernel k-means."""
    from kernelweave.metrics import average_entropy

    return average_entropy(target, model.labels_), average_entropy(target, refined_labels(views, model))


# --- tables 3.1 to 3.4 -----------------------------------------------------------------------------------------------


def entropy_row(restarts: int, seed: int, *, method: str, noisy: bool, tol: float = EARLY) -> dict[str, float]:
    """Entropy of a method for every number of views: a row of table 3.1 or, with ``noisy``, 3.3."""
    entropy = runs(method, noisy, tol, restarts, seed)
    figures: dict[str, float] = {}
    for column, n_views in enumerate(NUMBERS):
        figures |= mean_and_std(f"h_{n_views}", entropy.h[:, column])
        figures |= mean_and_std(f"refined_h_{n_views}", entropy.refined[:, column])
    return figures


def weight_row(restarts: int, seed: int, *, noisy: bool, tol: float = EARLY) -> dict[str, float]:
    """View weights of the weighted model, table 3.2 or 3.4: means, and how much good views differ in a sample."""
    by_sample = runs("weighted", noisy, tol, restarts, seed).weights
    figures: dict[str, float] = {}
    for column, n_views in enumerate(NUMBERS):
        weights = np.array([sample[column] for sample in by_sample])
        good = weights[:, :n_views]
        bad = weights[:, n_views:]
        figures[f"weight_{n_views}_mean"] = float(good.mean())
        figures |= mean_and_std(f"spread_{n_views}", np.ptp(good, axis=1))
        if noisy:
            figures |= mean_and_std(f"noisy_weight_{n_views}", bad.mean(axis=1))
    return figures


def claims_row(restarts: int, seed: int, *, noisy: bool, tol: float = EARLY) -> dict[str, float]:
    """Shares of the samples of which the text's remarks on table 3.1 or, with ``noisy``, 3.3 are true."""
    ends = {"best-single": EARLY, "concatenated": EARLY, "multi-view": EARLY, "weighted": tol}
    return claims({method: runs(method, noisy, end, restarts, seed) for method, end in ends.items()})


def claims(rows: Mapping[str, Runs]) -> dict[str, float]:
    """Return how often one entropy is below another, over the samples or over samples and numbers of views."""
    multi = rows["multi-view"]
    weighted = rows["weighted"]
    figures = {"weighted_below_multi_view": _share_below(weighted.h, multi.h)}
    figures["refined_weighted_below_multi_view"] = _share_below(weighted.refined, multi.refined)
    for name, row in (("multi_view", multi), ("weighted", weighted)):
        figures |= {
            f"{name}_five_below_two": _share_below(row.h[:, -1], row.h[:, 0]),
            f"{name}_falls_always": float((np.diff(row.h, axis=1) < 0).all(axis=1).mean()),
            f"{name}_mean_falls": float((np.diff(row.h.mean(axis=0)) < 0).all()),
            f"{name}_below_best_single": _share_below(row.h, rows["best-single"].h),
            f"{name}_below_concatenated": _share_below(row.h, rows["concatenated"].h),
            f"{name}_below_its_refined": _share_below(row.h, row.refined),
        }
    return figures | {"weighted_from_multi_view": float(np.abs(weighted.h - multi.h).mean())}


def _share_below(lower: "Floats", higher: "Floats") -> float:
    return float((lower < higher).mean())


@cache
def runs(method: str, noisy: bool, tol: float, restarts: int, seed: int) -> Runs:
    """Cluster every sample by a method, for all numbers of views; also ``"worst-single"`` and ``"best-single"``.

    Kept, since the tables of entropies, of weights and of claims come from the same clusterings.
    """
    if method.endswith("-single"):
        return _extreme_runs(max if method.startswith("worst") else min, noisy, restarts, seed)
    table = []
    weights = []
    for sample in samples(restarts, seed):
        sets = [_chosen(sample.views, n_views, noisy) for n_views in NUMBERS]
        models = [mixture(views, 3, method, tol=tol) for views in sets]
        table.append([entropies(views, sample.target, model) for views, model in zip(sets, models, strict=True)])
        weights.append(tuple(getattr(model, "view_weights_", np.ones(1)) for model in models))
    h, refined = np.moveaxis(np.array(table), -1, 0)
    return Runs(h, refined, tuple(weights))


def _extreme_runs(extreme: Callable[..., Any], noisy: bool, restarts: int, seed: int) -> Runs:
    """Return the worst or the best entropy of single views, separately before and after refinement."""
    table = []
    for views in single_views(restarts, seed):
        sets = [_chosen(views, n_views, noisy).values() for n_views in NUMBERS]
        table.append([[extreme(column) for column in zip(*entries, strict=True)] for entries in sets])
    h, refined = np.moveaxis(np.array(table), -1, 0)
    return Runs(h, refined)


@cache
def single_views(restarts: int, seed: int) -> list[dict[str, tuple[float, float]]]:
    """Return the entropies of every view alone, one dict per sample."""
    table = []
    for sample in samples(restarts, seed):
        single = {name: {name: view} for name, view in sample.views.items()}
        models = {name: mixture(views, 3, "single") for name, views in single.items()}
        table.append({name: entropies(views, sample.target, models[name]) for name, views in single.items()})
    return table


@cache
def samples(restarts: int, seed: int) -> list[Any]:
    """Return the draws, seven views each."""
    from kernelweave.datasets import make_corrupted_views
    from kernelweave.foundation.random_streams import streams

    return [make_corrupted_views(5, 2, random_state=rng) for rng in streams(seed, restarts)]


def _chosen(views: Mapping[str, Any], n_views: int, noisy: bool) -> dict[str, Any]:
    names = [f"corrupted_{v}" for v in range(n_views)] + (["noisy_0", "noisy_1"] if noisy else [])
    return {name: views[name] for name in names}


# --- correlational spectral clustering -------------------------------------------------------------------------------


def csc_row(restarts: int, seed: int, *, worst: bool, noisy: bool) -> dict[str, float]:
    """Entropy of the worst or the best view for every number of views: a row CSC of table 3.1 or, ``noisy``, 3.3."""
    extreme = max if worst else min
    by_sample = csc_runs(noisy, restarts, seed)
    figures: dict[str, float] = {}
    for column, n_views in enumerate(NUMBERS):
        figures |= mean_and_std(f"h_{n_views}", np.array([extreme(sample[column]) for sample in by_sample]))
    return figures


@cache
def csc_runs(noisy: bool, restarts: int, seed: int) -> list[list[list[float]]]:
    """Return the entropy of each view's projections, by sample and number of views."""
    table = []
    for sample in samples(restarts, seed):
        sets = [_chosen(sample.views, n_views, noisy) for n_views in NUMBERS]
        table.append([csc_entropies(views, sample.target, 3, chosen_kappa(views, 3, seed), seed) for views in sets])
    return table


def csc_text_row(restarts: int, seed: int, *, data: str) -> dict[str, float]:
    """Entropy of each view's projections as in table 3.5, and the lowest on the grid, chosen with the classes."""
    views, target = text_views(data)
    k = len(np.unique(target))
    kappa = chosen_kappa(views, k, seed)
    table = np.array([csc_entropies(views, target, k, each, seed) for each in KAPPAS])
    figures = {"kappa": kappa}
    for name, column in zip(views, table.T, strict=True):
        figures |= {f"h_{name}": float(column[KAPPAS.index(kappa)]), f"best_h_{name}": float(column.min())}
    return figures


def csc_entropies(views: Blocks, target: "Ints", n_clusters: int, kappa: float, seed: int) -> list[float]:
    """Return the entropy of k-means on the projections of each view, the best of ``KMEANS_STARTS`` by its error."""
    from sklearn.cluster import KMeans

    from kernelweave.foundation.threads import single_threaded_libraries
    from kernelweave.metrics import average_entropy

    projections = np.split(_correlated(views, n_clusters, kappa, seed).embedding_, len(views), axis=1)
    kmeans = KMeans(n_clusters, init="random", n_init=KMEANS_STARTS, random_state=seed)
    with single_threaded_libraries():  # few samples: threads only wait for each other
        return [average_entropy(target, kmeans.fit_predict(projection)) for projection in projections]


def chosen_kappa(views: Blocks, n_clusters: int, seed: int) -> float:
    """Return the regularisation at which correlations are furthest from those of views shuffled one by one."""
    rng = np.random.default_rng(seed)
    shuffled = [{name: rng.permutation(view) for name, view in views.items()} for _ in range(SHUFFLES)]
    distances = []
    for kappa in KAPPAS:
        true, *chance = (_correlations(each, n_clusters, kappa, seed) for each in (views, *shuffled))
        distances.append(np.linalg.norm(true - np.mean(chance, axis=0)))
    return KAPPAS[int(np.argmax(distances))]


def _correlations(views: Blocks, n_clusters: int, kappa: float, seed: int) -> "Floats":
    """Return a correlation per axis, 0 where there are fewer axes than clusters."""
    correlations = _correlated(views, n_clusters, kappa, seed).correlations_
    return np.pad(correlations, (0, n_clusters - len(correlations)))


def _correlated(views: Blocks, n_clusters: int, kappa: float, seed: int) -> Any:
    from kernelweave import CorrelationalSpectralClustering
    from kernelweave.foundation.threads import single_threaded_libraries

    with single_threaded_libraries():
        return CorrelationalSpectralClustering(n_clusters, regularization=kappa, n_init=1, random_state=seed).fit(views)


# --- figure 3.2 ------------------------------------------------------------------------------------------------------


def noise_row(restarts: int, seed: int, *, levels: Sequence[float]) -> dict[str, float]:
    """View weights of two corrupted views and of two noisy ones for each level of noise, over redrawn noise."""
    figures: dict[str, float] = {}
    for prefix, tol in (("", EARLY), ("settled_", SETTLED)):
        weights = noise_weights(tuple(levels), tol, restarts, seed)
        figures |= mean_and_std(f"{prefix}weight", weights[:, :2].mean(axis=1))
        for position, level in enumerate(levels, 1):
            noisy = weights[:, 2 * position : 2 * position + 2].mean(axis=1)
            figures |= mean_and_std(f"{prefix}weight_noise_{level:g}", noisy)
    return figures


def noise_claims_row(restarts: int, seed: int) -> dict[str, float]:
    """Shares of trials in which a noisier view has less weight: from level to level, and within one set."""
    figures: dict[str, float] = {}
    for prefix, tol in (("", EARLY), ("settled_", SETTLED)):
        trials = np.array([noise_weights((level,), tol, restarts, seed) for level in NOISE])
        steps = np.diff(trials[:, :, 2:].mean(axis=2), axis=0)
        upto = NOISE.index(1.0)
        figures |= {
            f"{prefix}noisy_below_clean": float((trials[:, :, 2:].max(axis=2) < trials[:, :, :2].min(axis=2)).mean()),
            f"{prefix}falls_up_to_1": float((steps[:upto] < 0).all(axis=0).mean()),
            f"{prefix}falls_always": float((steps < 0).all(axis=0).mean()),
        }
        for levels in MIXED:
            mixed = noise_weights(levels, tol, restarts, seed)
            name = f"{prefix}mixed_{levels[0]:g}_{levels[1]:g}_in_order"
            figures[name] = float((mixed[:, 2:4].min(axis=1) > mixed[:, 4:].max(axis=1)).mean())
    return figures


@cache
def noise_weights(levels: tuple[float, ...], tol: float, restarts: int, seed: int) -> "Floats":
    """Return the view weights of each trial: two corrupted views, the same in all, and two noisy ones per level.

    Levels share the directions of the noise, so that trials can be followed from level to level.
    """
    from kernelweave.datasets import make_corrupted_views
    from kernelweave.foundation.random_streams import streams

    base = make_corrupted_views(2, 0, random_state=seed)
    weights = []
    for rng in streams(seed, restarts):
        views = dict(base.views)
        for level in levels:
            for copy in range(2):
                noise = level * rng.standard_normal(base.original.shape)
                views[f"noise_{level:g}_{copy}"] = base.original + noise
        weights.append(mixture(views, 3, "weighted", tol=tol).view_weights_)
    return np.array(weights)


# --- table 3.5, on other texts ---------------------------------------------------------------------------------------


def text_row(restarts: int, seed: int, *, data: str, method: str, tol: float = EARLY) -> dict[str, float]:
    """Entropy at beta_0 and at the best multiple of it, a row of table 3.5; weights at beta_0 as in table 3.6.

    ``method`` is the name of a view or as in :func:`mixture`. The multiple is chosen by the entropy of the mixture, as
    in the thesis, and kept when kernel k-means follows. Nothing is random.
    """
    row = text_runs(data, method, tol)
    at_beta_0 = ALPHAS.index(1.0)
    best = int(row.h[0].argmin())
    figures = {
        "h": row.h[0, at_beta_0],
        "refined_h": row.refined[0, at_beta_0],
        "best_h": row.h[0, best],
        "best_refined_h": row.refined[0, best],
        "best_alpha": ALPHAS[best],
    }
    if method == "weighted":
        weights = row.weights[0][at_beta_0]
        figures |= {f"weight_{name}": weight for name, weight in zip(text_views(data)[0], weights, strict=True)}
    return {name: float(value) for name, value in figures.items()}


def text_claims_row(restarts: int, seed: int, *, data: str, tol: float = EARLY) -> dict[str, float]:
    """How many of the four columns of table 3.5 show the multi-view models ahead."""
    names = [*text_views(data)[0], "concatenated", "multi-view", "weighted"]
    rows = {name: text_row(restarts, seed, data=data, method=name, tol=tol) for name in names}
    columns = ("h", "refined_h", "best_h", "best_refined_h")
    table = {name: np.array([row[column] for column in columns]) for name, row in rows.items()}
    single = np.min([table[name] for name in names[:-2]], axis=0)
    return {
        "multi_view_ahead": float((table["multi-view"] < single).sum()),
        "weighted_ahead": float((table["weighted"] < single).sum()),
        "weighted_below_multi_view": float((table["weighted"] < table["multi-view"]).sum()),
    }


@cache
def text_runs(data: str, method: str, tol: float) -> Runs:
    """Cluster documents by a method for every multiple of beta_0; one row, a column per multiple."""
    from kernelweave.foundation.errors import ConvergenceWarning

    views, target = text_views(data)
    chosen = {method: views[method]} if method in views else views
    kind = "single" if method in views else method
    k = len(np.unique(target))
    with warnings.catch_warnings():
        # Small multiples leave fewer priors above zero than there are classes; the estimator says so each time.
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [mixture(chosen, k, kind, tol=tol, beta_scale=alpha) for alpha in ALPHAS]
    pairs = np.array([entropies(chosen, target, model) for model in models])
    weights = tuple(getattr(model, "view_weights_", np.ones(1)) for model in models)
    return Runs(pairs[None, :, 0], pairs[None, :, 1], (weights,))


@cache
def text_views(data: str) -> "tuple[dict[str, Floats], Ints]":
    """Documents that have a word in every view, as tf-idf vectors of length 1; stored ones are taken as they are."""
    from sklearn.feature_extraction.text import TfidfTransformer

    from kernelweave.datasets import load_benchmark
    from kernelweave.inputs import take_rows

    stored = load_benchmark(data)
    kept = np.all([(view != 0).any(axis=1) for view in stored.views.values()], axis=0)
    views = {name: np.asarray(view) for name, view in take_rows(stored.views, kept).items()}
    if not data.endswith("_tfidf"):
        views = {name: TfidfTransformer().fit_transform(view).toarray() for name, view in views.items()}
    return views, stored.target[kept]
