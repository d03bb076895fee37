"""Everything the report says, as numbers and names; no markup."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.evaluation.report.geometry import main_axes, node_places
from kernelweave.evaluation.report.measures import (
    Silhouettes,
    Truth,
    by_cluster,
    compared,
    doubtful,
    drawn,
    overall,
    silhouettes,
    truth,
    typical,
)
from kernelweave.evaluation.report.seen import Seen, SeenView, look
from kernelweave.evaluation.report.words import code_for, parameters, sentence, value_text
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.random_streams import RandomState, streams

#: Attributes that hold weights, what they are called, and the attribute with the names.
WEIGHTS = {
    "view_weights_": ("Weights of the views", "view_names_"),
    "kernel_weights_": ("Weights of the basis kernels", "kernel_names_"),
    "kernel_coefficients_": ("Shares of the kernels in the sum", "view_names_"),
}
#: What views are called that have no name of their own.
NAMELESS = ("X", "view_0", "graph")
PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class ViewFacts:
    """One view: its name, what it holds, its columns, the share of entries stored, what measures it, its source."""

    name: str
    kind: str
    n_features: int
    density: float | None  # None: dense
    measure: str  # "kernel" for distances of its feature space, "metric", or "features" for Euclidean ones
    source: str = ""


@dataclass(frozen=True)
class MethodFacts:
    """The method: name, what its docstring says first, parameters, and the steps before it."""

    name: str
    sentence: str
    changed: dict[str, str]
    others: dict[str, str]
    steps: tuple[tuple[str, dict[str, str]], ...]


@dataclass(frozen=True, eq=False)
class Picture:
    """Places of samples in a plane."""

    rows: Ints
    points: Floats
    axes: tuple[str, str]
    made_by: str


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """What a report says of a fitted clustering.

    Make it with :meth:`from_estimator`; :func:`write_report` turns it into a page.

    Attributes
    ----------
    method : MethodFacts
        Name, first sentence of the docstring, parameters, steps before the estimator.
    views : tuple of ViewFacts
        The data.
    ids : tuple of str
        Names of the samples.
    labels : ndarray of shape (n_samples,)
        Clusters.
    sizes : ndarray of shape (n_clusters,)
        Number of samples of every cluster; 0 for clusters that stayed empty.
    weights : dict of str to list of (str, float)
        Weights of views or kernels by what they are; empty where the method has none.
    objective, objective_path, n_iter, converged : float, ndarray, int, bool
        As the estimator has them; None where it has not.
    path_of : {"steps", "clusters"}
        What ``objective_path`` runs over.
    silhouettes : Silhouettes or None
        ``rows``, ``values`` and the next best cluster (``others``) of at most 2,000 samples; None for one cluster.
    mean_silhouette : float or None
        The mean over all samples.
    cluster_silhouettes, negative_shares : ndarray of shape (n_clusters,)
        Mean silhouette, and share of negative ones, of every cluster.
    picture : Picture
        Where at most 3,000 samples are drawn.
    typical : list of ndarray
        Samples nearest to the mean of every cluster.
    doubtful : ndarray
        Positions in ``silhouettes`` of the lowest ones.
    view_silhouettes, view_nmi : list of float
        For several views: mean silhouette of the clusters in each, and NMI with k-means on each alone.
    truth : Truth or None
        ``nmi``, ``ari``, ``accuracy``, ``classes`` and the ``table`` of clusters by classes.
    versions : dict of str to str
        Versions of Python and the packages.
    seeds : dict of str to str
        Seeds of the model and of the report.
    code : str
        Code that repeats the fit.
    stored_warnings : tuple of str
        Warnings the estimator kept (``warnings_``).

    Examples
    --------
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.report import ReportFacts
    >>> X, y = make_two_rings(random_state=0)
    >>> model = KernelKMeans(2, kernel_params={"sigma": 0.5}, random_state=0).fit(X)
    >>> facts = ReportFacts.from_estimator(model, X, labels_true=y)
    >>> facts.sizes.sum().item(), facts.picture.points.shape
    (500, (500, 2))
    """

    method: MethodFacts
    views: tuple[ViewFacts, ...]
    ids: tuple[str, ...]
    labels: Ints
    sizes: Ints
    weights: dict[str, list[tuple[str, float]]]
    objective: float | None
    objective_path: Floats | None
    path_of: str
    n_iter: int | None
    converged: bool | None
    silhouettes: Silhouettes | None
    mean_silhouette: float | None
    cluster_silhouettes: Floats
    negative_shares: Floats
    picture: Picture
    typical: list[Ints]
    doubtful: Ints
    view_silhouettes: list[float]
    view_nmi: list[float]
    truth: Truth | None
    versions: dict[str, str]
    seeds: dict[str, str]
    code: str
    stored_warnings: tuple[str, ...]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, with those that stayed empty."""
        return len(self.sizes)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ids: Any = None,
        labels_true: Any = None,
        sources: Any = None,
        random_state: RandomState = 0,
    ) -> "ReportFacts":
        """Compute the facts; arguments as in :func:`write_report`."""
        seen = look(estimator, X, ids)
        model = seen.model
        labels = seen.labels
        k = seen.n_clusters
        views = _views(seen, sources)
        sizes = np.bincount(labels, minlength=k)
        shown, rows = drawn(labels, streams(random_state, 1)[0])
        places = node_places(seen, shown)
        found = compared(seen, shown, rows, places, random_state)
        at = np.searchsorted(shown, rows)
        widths = silhouettes(found.distances[np.ix_(at, at)], rows, labels, k)
        means, negative = by_cluster(widths, labels, k)
        return cls(
            method=_method(seen),
            views=views,
            ids=seen.ids,
            labels=labels,
            sizes=sizes,
            weights=_weights(model, {seen.views[0].name: views[0].name} if len(views) == 1 else {}),
            **_progress(model),
            silhouettes=widths,
            mean_silhouette=overall(means, sizes),
            cluster_silhouettes=means,
            negative_shares=negative,
            picture=_picture(seen, shown, found.squares, places),
            typical=typical(found.squares, shown, labels, k),
            doubtful=doubtful(widths),
            view_silhouettes=[overall(by_cluster(own, labels, k)[0], sizes) or 0.0 for own in found.each],
            view_nmi=found.nmi,
            truth=None if labels_true is None else truth(labels_true, labels, k),
            versions={"Python": platform.python_version()} | {name: version(name) for name in PACKAGES},
            seeds=_seeds(model, random_state),
            code=code_for(seen.steps, model, random_state),
            stored_warnings=tuple(str(text) for text in getattr(model, "warnings_", ())),
        )


def _method(seen: Seen) -> MethodFacts:
    cls = type(seen.model)
    changed, others = parameters(seen.model)
    steps = tuple(
        (step, {}) if isinstance(step, str) else (type(step).__name__, parameters(step)[0]) for step in seen.steps
    )
    return MethodFacts(cls.__name__, sentence(cls), changed, others, steps)


def _views(seen: Seen, sources: Any) -> tuple[ViewFacts, ...]:
    """Return the views; one that X gives no name has the name of the only source, where there is one."""
    found = seen.views
    if len(found) == 1 and isinstance(sources, Mapping) and len(sources) == 1:
        ((called, source),) = sources.items()
        name = str(called) if found[0].name in NAMELESS else found[0].name
        found = (replace(found[0], name=name),)
        sources = str(source)
    return tuple(_view(view, v, sources) for v, view in enumerate(found))


def _view(view: SeenView, place: int, sources: Any) -> ViewFacts:
    density = None
    if sp.issparse(view.block):
        density = view.block.nnz / max(1, view.block.shape[0] * view.block.shape[1])
    source = _source(view.name, place, sources)
    measure = "kernel" if view.kernels else "metric" if view.metric is not None else "features"
    return ViewFacts(view.name, view.kind, int(view.block.shape[1]), density, measure, source)


def _source(name: str, place: int, sources: Any) -> str:
    """Return where a view came from: by its name, by its place, or the one source of all."""
    if sources is None:
        return ""
    if isinstance(sources, Mapping):
        return str({str(key): value for key, value in sources.items()}.get(name, ""))
    if isinstance(sources, list | tuple):
        return str(sources[place]) if place < len(sources) else ""
    return str(sources)


def _weights(model: Any, renamed: Mapping[str, str]) -> dict[str, list[tuple[str, float]]]:
    found = {}
    for attribute, (title, names) in WEIGHTS.items():
        values = getattr(model, attribute, None)
        if values is not None:
            called = [_renamed(str(name), renamed) for name in getattr(model, names, range(len(values)))]
            found[title] = list(zip(called, (float(value) for value in values), strict=True))
    return found


def _renamed(name: str, renamed: Mapping[str, str]) -> str:
    """Return the name of a view, or of a kernel of one, with the view called as the report calls it."""
    view, comma, kernel = name.partition(", ")
    return f"{renamed.get(view, view)}{comma}{kernel}"


def _progress(model: Any) -> dict[str, Any]:
    """Return objective, its path and what the path runs over, steps, and whether the run ended by itself."""
    path = getattr(model, "objective_path_", None)
    stages = hasattr(model, "cut_path_") and getattr(model, "init", None) is None
    objective, steps, ended = (getattr(model, name, None) for name in ("objective_", "n_iter_", "converged_"))
    return {
        "objective": None if objective is None else float(objective),
        "objective_path": None if path is None else np.asarray(path, dtype=np.float64).ravel(),
        "path_of": "clusters" if stages else "steps",
        "n_iter": None if steps is None else int(steps),
        "converged": None if ended is None else bool(ended),
    }


def _picture(seen: Seen, rows: Ints, squares: Floats, places: Floats | None) -> Picture:
    scores = getattr(seen.model, "codebook_", np.empty((0, 0))).shape[1]
    if scores >= 2:
        points = np.asarray(seen.model.transform(seen.take(rows)))[:, :2]
        return Picture(rows, points, ("score 1", "score 2"), "the first two scores of the model")
    if places is not None:
        axes = ("eigenvector 1", "eigenvector 2")
        return Picture(rows, places[:, :2], axes, "spectral embedding: two eigenvectors of the graph's random walk")
    points, shares = main_axes(squares, 2)
    across, up = (f"axis {i + 1} ({100 * share:.0f} % of the scatter)" for i, share in enumerate(shares))
    return Picture(rows, points, (across, up), _made_by(seen))


def _made_by(seen: Seen) -> str:
    linear = all(
        view.kind == "features" and all(isinstance(name, str) and name == "linear" for name, _ in view.kernels)
        for view in seen.views
    )
    if all(view.kind == "divergences" for view in seen.views):
        return "classical scaling of the divergences"
    if seen.views[0].metric is not None:
        return "classical scaling of the distances"
    if len(seen.views) == 1:
        return "principal components" if linear else "kernel principal components"
    joint = "of all views together, each scaled to the same mean squared distance"
    return f"{'principal' if linear else 'kernel principal'} components {joint}"


def _seeds(model: Any, random_state: Any) -> dict[str, str]:
    found = {"report": value_text(random_state)}
    if "random_state" in model.get_params(deep=False):
        found = {"model": value_text(model.random_state), **found}
    return found
