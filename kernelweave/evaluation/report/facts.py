"""Everything the report says, as numbers and names; no markup."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.evaluation.describe import Clustering, Description, describe
from kernelweave.evaluation.describe.distances import node_places
from kernelweave.evaluation.describe.names import sample_names
from kernelweave.evaluation.describe.results import verdict_of
from kernelweave.evaluation.describe.silhouettes import Silhouettes, silhouettes_as_given, silhouettes_of_model
from kernelweave.evaluation.describe.typical import MOST_COMPARED, typical
from kernelweave.evaluation.describe.views import View
from kernelweave.evaluation.report.measures import (
    ModelDistances,
    Truth,
    by_cluster,
    doubtful,
    model_distances,
    truth,
)
from kernelweave.evaluation.report.names import view_names_and_sources
from kernelweave.evaluation.report.picture import Picture, picture
from kernelweave.evaluation.report.text import code_for, parameters, sentence, value_text
from kernelweave.evaluation.sampling import MOST_JUDGED, judged_samples, shown_samples
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.random_streams import RandomState

#: Most samples that are drawn.
MOST_POINTS = MOST_COMPARED
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
    n_absent: int = 0  # samples that it lacks


@dataclass(frozen=True)
class MethodFacts:
    """The method: name, what its docstring says first, parameters, and the steps before it."""

    name: str
    sentence: str
    changed: dict[str, str]
    others: dict[str, str]
    steps: tuple[tuple[str, dict[str, str]], ...]


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
        ``rows``, ``values`` and the next best cluster (``others``) of samples, with distances between the samples as
        they are given; None for one cluster and for graphs. ``judged`` says which of them the mean is taken over: at
        most 2,000, drawn at random. The others are members of clusters with few among those.
    mean_silhouette : float or None
        The mean over the judged samples: the number that the command line prints and searches go by.
    n_judged : int
        Number of judged samples.
    model_silhouettes : Silhouettes or None
        The same samples with the distances the model works with: of its kernel's feature space, of its metric, of all
        views together, of a graph's spectral embedding. ``silhouettes`` itself where these are the distances as given.
    mean_model_silhouette : float or None
        Its mean over the judged samples.
    cluster_silhouettes, cluster_model_silhouettes : ndarray of shape (n_clusters,)
        Means of both over every cluster.
    negative_shares : ndarray of shape (n_clusters,)
        Share of negative silhouettes of every cluster; of model silhouettes for graphs.
    picture : Picture
        Where at most 3,000 samples are drawn.
    typical : list of ndarray
        Samples nearest to the mean of every cluster.
    doubtful : ndarray
        Positions in ``model_silhouettes`` of the lowest ones.
    view_silhouettes, view_nmi : list of float
        For several views: mean silhouette of the clusters in each, and NMI with k-means on each alone. The mean of the
        first is ``mean_silhouette``.
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
    verdict : str or None
        What the estimator says of the number of clusters, where it chose it (``verdict_``).
    view_agreement : list of float
        How far each view follows the joint clusters, where the estimator says (``view_agreement_``).

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
    n_judged: int
    model_silhouettes: Silhouettes | None
    mean_model_silhouette: float | None
    cluster_silhouettes: Floats
    cluster_model_silhouettes: Floats
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
    verdict: str | None
    view_agreement: list[float]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, with those that stayed empty."""
        return len(self.sizes)

    @property
    def two_silhouettes(self) -> bool:
        """Whether model silhouettes are others than those of the samples as they are given."""
        return self.model_silhouettes is not self.silhouettes

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
        description = describe(estimator, X, sample_size=MOST_JUDGED, random_state=random_state)
        clustering = description.clustering
        names = sample_names(ids, X, clustering.n_samples)
        model = clustering.model
        labels = clustering.labels
        k = clustering.n_clusters
        views = _views(clustering, sources)
        judged = _judged(description, random_state)
        rows, drawn = shown_samples(labels, judged, MOST_POINTS, random_state)
        places = node_places(clustering)
        distances = model_distances(clustering, drawn, places, random_state, roots=not description.one_geometry)
        silhouettes, model_silhouettes = _silhouettes(description, rows, drawn, judged, distances)
        means, negative = by_cluster(silhouettes, labels, k)
        model_means, model_negative = by_cluster(model_silhouettes, labels, k)
        return cls(
            method=_method(clustering),
            views=views,
            ids=names,
            labels=labels,
            sizes=description.sizes,
            weights=_weights(description, {clustering.views[0].name: views[0].name} if len(views) == 1 else {}),
            **vars(description.progress),
            silhouettes=silhouettes,
            mean_silhouette=description.silhouette,
            n_judged=len(judged),
            model_silhouettes=model_silhouettes,
            mean_model_silhouette=None if model_silhouettes is None else model_silhouettes.mean,
            cluster_silhouettes=means,
            cluster_model_silhouettes=model_means,
            negative_shares=model_negative if silhouettes is None else negative,
            picture=picture(clustering, drawn, distances.squares, places),
            typical=typical(distances.squares, drawn, labels, k),
            doubtful=doubtful(model_silhouettes),
            view_silhouettes=_view_silhouettes(silhouettes, len(views)),
            view_nmi=distances.nmi,
            truth=None if labels_true is None else truth(labels_true, labels, k),
            versions={"Python": platform.python_version()} | {name: version(name) for name in PACKAGES},
            seeds=_seeds(model, random_state),
            code=code_for(clustering.steps, model, random_state),
            stored_warnings=description.warnings,
            verdict=verdict_of(model),
            view_agreement=[] if len(views) == 1 else np.asarray(getattr(model, "view_agreement_", ())).tolist(),
        )


def _judged(description: Description, random_state: RandomState) -> Ints:
    if description.yardstick is not None:
        return description.yardstick.rows
    return judged_samples(description.clustering.n_samples, MOST_JUDGED, random_state)


def _silhouettes(
    description: Description, rows: Ints, drawn: Ints, judged: Ints, distances: ModelDistances
) -> tuple[Silhouettes | None, Silhouettes | None]:
    """Return the silhouettes of ``rows`` as given and by the model, one object twice where they are the same."""
    clustering = description.clustering
    silhouettes = description.silhouettes
    if description.yardstick is not None and len(rows) > len(judged):
        silhouettes = silhouettes_as_given(clustering, description.yardstick, rows)
    if distances.distances is None:
        return silhouettes, silhouettes
    at = np.searchsorted(drawn, rows)
    among = distances.distances[np.ix_(at, at)]
    counted: Bools = np.isin(rows, judged)
    model_silhouettes = silhouettes_of_model(among, rows, counted, clustering.labels, clustering.n_clusters)
    return silhouettes, model_silhouettes


def _view_silhouettes(silhouettes: Silhouettes | None, count: int) -> list[float]:
    if count == 1:
        return []
    return [np.nan] * count if silhouettes is None else list(silhouettes.view_means)


def _method(clustering: Clustering) -> MethodFacts:
    cls = type(clustering.model)
    changed, others = parameters(clustering.model)
    steps = tuple(
        (step, {}) if isinstance(step, str) else (type(step).__name__, parameters(step)[0]) for step in clustering.steps
    )
    return MethodFacts(cls.__name__, sentence(cls), changed, others, steps)


def _views(clustering: Clustering, sources: Any) -> tuple[ViewFacts, ...]:
    named = view_names_and_sources([view.name for view in clustering.views], sources)
    return tuple(_view(view, *each) for view, each in zip(clustering.views, named, strict=True))


def _view(view: View, name: str, source: str) -> ViewFacts:
    density = None
    if sp.issparse(view.block):
        density = view.block.nnz / max(1, view.block.shape[0] * view.block.shape[1])
    return ViewFacts(name, view.kind, int(view.block.shape[1]), density, view.compared_by, source, view.n_absent)


def _weights(description: Description, renamed: Mapping[str, str]) -> dict[str, list[tuple[str, float]]]:
    return {
        weights.title: [(_renamed(name, renamed), value) for name, value in weights.items]
        for weights in description.weights
    }


def _renamed(name: str, renamed: Mapping[str, str]) -> str:
    """Return the name of a view, or of a kernel of one, with the view called as the report calls it."""
    view, comma, kernel = name.partition(", ")
    return f"{renamed.get(view, view)}{comma}{kernel}"


def _seeds(model: Any, random_state: Any) -> dict[str, str]:
    seeds = {"report": value_text(random_state)}
    if "random_state" in model.get_params(deep=False):
        seeds = {"model": value_text(model.random_state), **seeds}
    return seeds
