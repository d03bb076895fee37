"""Global kernel k-means and its variants on faces, by the number of clusters: claims on MSc figures 5.9 and 5.10.

Faces       the 900 images of MSc 5.4, made as for PhD tables 2.8 and 2.16
Kernel      exp(-||x - y||^2 / (2 sigma^2)); the MSc prints no sigma, it is that of PhD table 2.16
Clusters    the numbers that the text names; the axes of the figures are illegible
Lines       exact, exemplars (three times as many as clusters) and fast: the searches; mean and best: kernel k-means
            over all random starts, and of the one with the least error; affinity: affinity propagation
Starts      points drawn at random as first centres, or labels drawn at random: the thesis names none
Figures     ce, the sum of the cluster variances in feature space, for affinity propagation of squared distances to the
            exemplars; me, the share of images that are not of their cluster's most frequent person
Claims      shares of the numbers of clusters, or of pairs, for which a statement holds; lines that meet are neither
            above nor below each other
"""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reproduction.experiment import Cell, Experiment, Printed, mean_and_std

if TYPE_CHECKING:
    from kernelweave.foundation.array_types import Ints
    from kernelweave.kernels.operator import KernelOperator
    from kernelweave.solvers.kmeans.global_search import Path, Search

SIGMA = 6.5
CLUSTERS = (10, 20, 50, 70, 150)
FEW = (10, 20)
STARTS = 100
EXEMPLARS = 3  # for each cluster
INITS = {"points": "random", "labels": "random_partition"}
EQUAL_ERRORS = 1e-9  # errors closer than this, relatively, are those of one partition
Line = Mapping[int, float]  # by the number of clusters


class Point(NamedTuple):
    """A partition on both figures."""

    ce: float
    me: float


# --- rows ------------------------------------------------------------------------------------------------------------


def search_row(restarts: int, seed: int, *, how: "Search", figure: str) -> dict[str, float]:
    """One figure's line of a global search, which has no random starts, and the numbers of exemplars."""
    points = searched(how, CLUSTERS)
    figures = {f"{figure}_{k}": getattr(point, figure) for k, point in points.items()}
    if how == "exemplars":
        paths = search_paths(how, CLUSTERS)
        figures |= {f"n_exemplars_{k}": len(path.exemplars) for k, path in paths.items() if path.exemplars is not None}
    return figures


def starts_row(restarts: int, seed: int, *, figure: str, drawn: str) -> dict[str, float]:
    """One figure's lines of kernel k-means: mean and deviation over the starts, and the start with the least error."""
    figures: dict[str, float] = {}
    for k in CLUSTERS:
        points = started(k, drawn, restarts, seed)
        figures |= mean_and_std(f"{figure}_{k}", [getattr(point, figure) for point in points])
        figures[f"{figure}_{k}_best_run"] = getattr(min(points), figure)
    return figures


def affinity_row(restarts: int, seed: int, *, figure: str) -> dict[str, float]:
    """One figure's line of affinity propagation."""
    return {f"{figure}_{k}": getattr(propagated(k, seed), figure) for k in CLUSTERS}


def error_claims_row(restarts: int, seed: int, *, drawn: str) -> dict[str, float]:
    """Claims on figure 5.9, with kernel k-means from ``"points"`` or ``"labels"`` drawn at random."""
    return error_claims(lines("ce", CLUSTERS, drawn, restarts, seed))


def few_claims_row(restarts: int, seed: int) -> dict[str, float]:
    """Claims on the two best lines of figure 5.9, for few clusters."""
    return search_claims(lines("ce", FEW, "points", restarts, seed, affinity=False))


def misclassification_claims_row(restarts: int, seed: int, *, drawn: str, starts: str) -> dict[str, float]:
    """Claims on figure 5.10, with the ``"mean"`` or the ``"best"`` start as the line of kernel k-means."""
    ce, me = (lines(figure, CLUSTERS, drawn, restarts, seed) for figure in Point._fields)
    return misclassification_claims(ce, me, starts)


# --- claims ----------------------------------------------------------------------------------------------------------


def search_claims(ce: Mapping[str, Line]) -> dict[str, float]:
    """Return how often the exact search is the best line, and that by exemplars the second best."""
    drawn = {name: line for name, line in ce.items() if name != "affinity"}
    clusters = list(ce["exact"])
    return {
        "exact_lowest": _share(not _below(drawn, "exact", k) for k in clusters),
        "exemplars_second_from_20": _share(len(_below(drawn, "exemplars", k)) <= 1 for k in clusters if k >= 20),
    }


def error_claims(ce: Mapping[str, Line]) -> dict[str, float]:
    """Return the shares of numbers of clusters at which the lines of figure 5.9 are ordered as in the text."""
    drawn = {name: line for name, line in ce.items() if name != "affinity"}
    clusters = list(ce["exact"])
    fast = ce["fast"]
    best = ce["best"]
    spread = {k: max(line[k] for line in drawn.values()) / min(line[k] for line in drawn.values()) for k in clusters}
    totals = [sum(ce[name].values()) for name in ("exact", "exemplars", "fast", "mean")]
    return {
        **search_claims(ce),
        "differences_wider_than_at_10": _share(spread[k] > spread[10] for k in clusters if k > 10),
        "fast_nearest_to_best_run": _share(_nearest(drawn, "fast", k) == "best" for k in clusters),
        "fast_above_best_run_to_50": _share(fast[k] > best[k] for k in clusters if k <= 50),
        "fast_below_best_run_from_70": _share(fast[k] < best[k] for k in clusters if k > 50),
        "mean_highest": _share(not _above(drawn, "mean", k) for k in clusters),
        "affinity_highest": _share(not _above(ce, "affinity", k) for k in clusters),
        "order_overall": float(totals == sorted(totals)),
        **{f"differences_{k}": spread[k] - 1.0 for k in clusters},
    }


def misclassification_claims(ce: Mapping[str, Line], me: Mapping[str, Line], starts: str) -> dict[str, float]:
    """Return the shares of numbers of clusters, or of pairs, for which figure 5.10 is as in the text."""
    methods = ("exact", "exemplars", "fast", starts, "affinity")
    me = {name: me[name] for name in methods}
    clusters = list(me["exact"])
    variants = [(name, k) for name in ("exemplars", "fast") for k in (50, 70)]
    pairs = [(a, b, k) for a, b in combinations(methods[:-1], 2) for k in clusters]
    worse = [len(_above(me, starts, k)) for k in (10, 20, 70)]  # the text leaves out 50 and 150
    distances = {k: abs(me["affinity"][k] - me["exact"][k]) for k in clusters}
    opposed = _share((ce[a][k] - ce[b][k]) * (me[a][k] - me[b][k]) < 0 for a, b, k in pairs)
    return {
        "falls_with_clusters": _share(line[k] > line[more] for line in me.values() for k, more in pairwise(clusters)),
        "order_not_that_of_ce": float(opposed > 0),
        "exact_among_two_best": _share(len(_below(me, "exact", k)) <= 1 for k in clusters),
        "kernel_kmeans_worst_at_70": float(worse[-1] == 0),
        "kernel_kmeans_sinks_to_70": _share(after <= before for before, after in pairwise(worse)),
        "affinity_worst_at_10": float(not _above(me, "affinity", 10)),
        "affinity_best_at_150": float(not _below(me, "affinity", 150)),
        "variants_above_exact_50_70": _share(me[name][k] > me["exact"][k] for name, k in variants),
        "variants_below_kernel_kmeans_50_70": _share(me[name][k] < me[starts][k] for name, k in variants),
        "affinity_above_exact_to_50": _share(me["affinity"][k] > me["exact"][k] for k in clusters if k <= 50),
        "affinity_nearer_exact_from_70": _share(
            distances[k] < min(distances[few] for few in (10, 20, 50)) for k in (70, 150)
        ),
        "pairs_opposed_to_ce": opposed,
    }


def _below(lines: Mapping[str, Line], name: str, k: int) -> list[str]:
    """Return the lines below that of ``name``."""
    return [other for other in lines if lines[other][k] < lines[name][k] * (1.0 - EQUAL_ERRORS)]


def _above(lines: Mapping[str, Line], name: str, k: int) -> list[str]:
    """Return the lines above that of ``name``."""
    return [other for other in lines if lines[other][k] > lines[name][k] * (1.0 + EQUAL_ERRORS)]


def _nearest(lines: Mapping[str, Line], name: str, k: int) -> str:
    return min((other for other in lines if other != name), key=lambda other: abs(lines[other][k] - lines[name][k]))


def _share(held: Iterable[bool]) -> float:
    return float(np.mean(list(held)))


# --- clusterings: kept, since both figures, their rows and their claims come from the same ones ----------------------


def lines(
    figure: str, clusters: tuple[int, ...], drawn: str, restarts: int, seed: int, *, affinity: bool = True
) -> dict[str, Line]:
    """Return the lines of a figure by their names."""
    by_name: dict[str, Line] = {
        how: {k: getattr(point, figure) for k, point in searched(how, clusters).items()}
        for how in ("exact", "exemplars", "fast")
    }
    starts = {k: started(k, drawn, restarts, seed) for k in clusters}
    by_name["mean"] = {k: float(np.mean([getattr(point, figure) for point in starts[k]])) for k in clusters}
    by_name["best"] = {k: getattr(min(starts[k]), figure) for k in clusters}
    if affinity:
        by_name["affinity"] = {k: getattr(propagated(k, seed), figure) for k in clusters}
    return by_name


def searched(how: "Search", clusters: tuple[int, ...]) -> dict[int, Point]:
    """Return the result of a search for every number of clusters."""
    target = faces()[1]
    stages = {k: path.stages[k - 1] for k, path in search_paths(how, clusters).items()}
    return {k: Point(stage.objective, _error(target, stage.labels)) for k, stage in stages.items()}


@cache
def search_paths(how: "Search", clusters: tuple[int, ...]) -> "dict[int, Path]":
    """Search for every number of clusters; the exact and the fast search pass the smaller ones on the way."""
    from kernelweave.solvers.kmeans.global_search import global_kernel_kmeans

    op = faces()[0]
    search = partial(global_kernel_kmeans, op, np.ones(op.n_samples), how=how)
    if how == "exemplars":
        return {k: search(n_clusters=k, n_exemplars=EXEMPLARS * k) for k in clusters}
    return dict.fromkeys(clusters, search(n_clusters=max(clusters)))


@cache
def started(k: int, drawn: str, restarts: int, seed: int) -> list[Point]:
    """Run kernel k-means from points or labels drawn at random."""
    from kernelweave.foundation.random_streams import streams
    from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
    from kernelweave.solvers.kmeans.starts import start_labels

    op, target = faces()
    weights = np.ones(op.n_samples)
    points = []
    for rng in streams(seed, restarts):
        descent = kernel_kmeans(op, start_labels(op, INITS[drawn], weights, k, rng), weights, n_clusters=k)
        points.append(Point(descent.objective, _error(target, descent.labels)))
    return points


@cache
def propagated(k: int, seed: int) -> Point:
    """Run affinity propagation with a preference that leads to ``k`` clusters."""
    from kernelweave import AffinityPropagation

    op, target = faces()
    model = AffinityPropagation(k, kernel="precomputed", random_state=seed)
    model.fit(op.block(slice(None), slice(None)))
    return Point(float(model.objective_), _error(target, model.labels_))


@cache
def faces() -> "tuple[KernelOperator, Ints]":
    """Return the stored kernel of the 900 images, and the person on each."""
    from kernelweave.kernels.spec.fitting import fit_kernel
    from reproduction.rows.minmax import olivetti

    X, target = olivetti(folded=False)
    return fit_kernel(X, "rbf", {"sigma": SIGMA}).operator("dense"), target


def _error(target: "Ints", labels: "Ints") -> float:
    from kernelweave.metrics import misclassification_error

    return misclassification_error(target, labels)


# --- declarations ----------------------------------------------------------------------------------------------------


def _claims(figure: str, words: Mapping[str, str]) -> dict[str, Printed]:
    """Return the claims of the text on a figure, by the names of the shares that are 1 where they hold."""
    source = f"MSc 5.4, text on figure {figure}"
    return {name: Printed(1.0, statistic="claim", source=f"{source}: {claim}") for name, claim in words.items()}


def _rows(figure: str) -> dict[str, Cell]:
    """Return the lines of a figure, with nothing printed to compare."""
    searches: dict[Search, str] = {
        "exact": "Exact search",
        "exemplars": f"Search by exemplars, {EXEMPLARS} for each cluster",
        "fast": "Fast search",
    }
    cells: dict[str, Cell] = {
        how: Cell(label, partial(search_row, how=how, figure=figure)) for how, label in searches.items()
    }
    for drawn in INITS:
        cells[f"random-{drawn}"] = Cell(
            f"Kernel k-means, mean and best of the restarts from {drawn} drawn at random",
            partial(starts_row, figure=figure, drawn=drawn),
            restarts=STARTS,
        )
    return cells | {"affinity": Cell("Affinity propagation", partial(affinity_row, figure=figure))}


def _error_claims(drawn: str) -> Cell:
    return Cell(
        f"Claims: order of the lines, kernel k-means from {drawn} drawn at random",
        partial(error_claims_row, drawn=drawn),
        printed=_claims("5.9", _ERROR_WORDS),
        restarts=STARTS,
    )


def _misclassification_claims(drawn: str, starts: str) -> Cell:
    line = "mean of the restarts" if starts == "mean" else "restart with the least clustering error"
    return Cell(
        f"Claims: order of the lines, kernel k-means the {line} from {drawn} drawn at random",
        partial(misclassification_claims_row, drawn=drawn, starts=starts),
        printed=_claims("5.10", _MISCLASSIFICATION_WORDS),
        restarts=STARTS,
    )


_SEARCH_WORDS = {
    "exact_lowest": "Global Kernel k-Means constantly has the lowest error",
    "exemplars_second_from_20": "the one with CMM is second best for 20 or more clusters",
}
_ERROR_WORDS = {
    **_SEARCH_WORDS,
    "differences_wider_than_at_10": "very similar for 10 clusters, differences become clear with more",
    "fast_nearest_to_best_run": "Fast Global Kernel k-Means is very close to the best run",
    "fast_above_best_run_to_50": "a little worse for 50 or less clusters",
    "fast_below_best_run_from_70": "and better for more",
    "mean_highest": "the average of Kernel k-Means is the highest in all cases",
    "affinity_highest": "affinity propagation is much higher, and not drawn",
    "order_overall": "overall Global Kernel k-Means, with CMM, Fast, Kernel k-Means",
}
_MISCLASSIFICATION_WORDS = {
    "falls_with_clusters": "as the number of clusters increases the error naturally drops",
    "order_not_that_of_ce": "lower clustering error does not necessarily imply lower misclassification error",
    "exact_among_two_best": "Global Kernel k-Means is among the best in all cases",
    "kernel_kmeans_worst_at_70": "Kernel k-Means becomes the worst, but for 50 and 150 clusters",
    "kernel_kmeans_sinks_to_70": "and does so gradually",
    "affinity_worst_at_10": "affinity propagation starts as the worst",
    "affinity_best_at_150": "and ends as the best",
    "variants_above_exact_50_70": "the variants are inferior to the original for 50 and 70 clusters",
    "variants_below_kernel_kmeans_50_70": "but better than Kernel k-Means",
    "affinity_above_exact_to_50": "affinity propagation is worse than Global Kernel k-Means for fewer than 70 clusters",
    "affinity_nearer_exact_from_70": "and close to it for 70 or more",
}
_FACES = (
    "First 100 images; Gaussian smoothing (0.5), rotated by -10, 0, 10 degrees and scaled by 0.9, 1, 1.1 in one "
    "bilinear interpolation (the thesis names none); central 50 x 50; each image to mean 0 and standard deviation 0.1."
)
_PROTOCOL = (
    f"Gaussian kernel, sigma = {SIGMA}, which is not printed but taken from PhD table 2.16, on the same images; "
    f"{', '.join(map(str, CLUSTERS))} clusters, the numbers that the text names; {EXEMPLARS} exemplars for each "
    f"cluster; {STARTS} restarts from points drawn at random, and as many from labels, as the thesis names no start; "
    "affinity propagation with the preference that gives the number. Nothing is printed to compare the lines with; the "
    "claims are those of the text, as shares of numbers of clusters."
)

EXPERIMENTS = (
    Experiment(
        id="msc-figure-5.9-olivetti",
        title="Global kernel k-means on Olivetti: clustering error by the number of clusters",
        source="MSc figure 5.9 and the text of 5.4; the figure prints no numbers",
        data=("olivetti",),
        preprocessing=_FACES,
        protocol=(
            f"{_PROTOCOL} Close is judged by which line is nearest, similar by the widest distance between lines as "
            "a share of the lowest, the order overall by sums over the numbers of clusters."
        ),
        cells={
            **_rows("ce"),
            "claims": _error_claims("points"),
            "claims-labels": _error_claims("labels"),
            "claims-few": Cell(
                f"Claims: the two best lines, for {' and '.join(map(str, FEW))} clusters alone",
                few_claims_row,
                printed=_claims("5.9", _SEARCH_WORDS),
                restarts=STARTS,
            ),
        },
    ),
    Experiment(
        id="msc-figure-5.10-olivetti",
        title="Global kernel k-means on Olivetti: misclassification error by the number of clusters",
        source="MSc figure 5.10 and the text of 5.4; the figure prints no numbers",
        data=("olivetti",),
        preprocessing=_FACES,
        protocol=(
            f"{_PROTOCOL} The text does not say whether Kernel k-Means is its mean or its best run, so both are tried; "
            "among the best is the first or second of five, close a smaller distance than at any number below 70."
        ),
        cells={
            **_rows("me"),
            "claims": _misclassification_claims("points", "mean"),
            "claims-best-run": _misclassification_claims("points", "best"),
            "claims-labels": _misclassification_claims("labels", "mean"),
            "claims-labels-best-run": _misclassification_claims("labels", "best"),
        },
    ),
)
