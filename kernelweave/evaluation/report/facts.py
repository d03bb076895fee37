"""Everything the report says, as numbers and names; no markup."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from kernelweave.evaluation.describe import Clustering, Description, describe
from kernelweave.evaluation.describe.distances import node_places, scaled
from kernelweave.evaluation.describe.names import sample_names
from kernelweave.evaluation.describe.results import WEIGHTS, joint_embedding, verdict_of
from kernelweave.evaluation.describe.silhouettes import Silhouettes, silhouettes_as_given, silhouettes_of_model
from kernelweave.evaluation.describe.typical import MOST_COMPARED, typical
from kernelweave.evaluation.describe.views import View
from kernelweave.evaluation.explain import ColumnEffect, GraphExplanation
from kernelweave.evaluation.explain.columns import named_tables
from kernelweave.evaluation.explain.explaining import column_effects
from kernelweave.evaluation.explain.explanation import ordered
from kernelweave.evaluation.explain.graphs import explain_graph
from kernelweave.evaluation.report.clearness import (
    Clearness,
    by_confidence,
    by_edges,
    by_silhouettes,
    one_cloud,
    silhouette_as_given,
    silhouette_of_kernels,
)
from kernelweave.evaluation.report.measures import (
    Truth,
    by_cluster,
    doubtful,
    model_distances,
    truth,
)
from kernelweave.evaluation.report.names import view_names_and_sources
from kernelweave.evaluation.report.picture import Picture, picture, pictures_of_views
from kernelweave.evaluation.report.text import code_for, parameters, sentence, value_text
from kernelweave.evaluation.report.trust import (
    Tried,
    doubtful_share,
    follows_absence,
    numbers_tried,
    share_tied_elsewhere,
    tiny_clusters,
    views_for_and_against,
)
from kernelweave.evaluation.sampling import MOST_JUDGED, draw, judged_samples, shown_samples
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.random_streams import RandomState
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.foundation.versions import installed_version

#: Most samples that are drawn.
MOST_POINTS = MOST_COMPARED
#: Samples in the pictures of single views, and in the cloud without clusters that silhouettes are compared with.
FEW = 300
#: Most samples whose columns are compared inside and outside of clusters.
MOST_EXPLAINED = 20_000
# Columns that a cluster is described by.
COLUMNS = 4
#: What the weights of views are called.
VIEW_WEIGHTS = WEIGHTS["view_weights_"][0]
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
    """What a report says about a fitted clustering.

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
        As in the estimator; None if it does not have them.
    path_of : {"steps", "clusters"}
        What ``objective_path`` runs over.
    silhouettes : Silhouettes or None
        ``rows``, ``values`` and the next best cluster (``others``) of samples, with distances between the samples as
        given; None for one cluster and for graphs. ``judged`` says which of them the mean is taken over: at
        most 2,000, drawn at random. The others are members of clusters with few among those.
    mean_silhouette : float or None
        The mean over the judged samples: the number that the command line prints and searches maximise.
    n_judged : int
        Number of judged samples.
    model_silhouettes : Silhouettes or None
        The same samples with the distances the model works with: of its joint embedding, of its kernel's feature space,
        of its metric, of all views together, of a graph's spectral embedding. ``silhouettes`` itself where these are
        the distances as given.
    mean_model_silhouette : float or None
        Its mean over the judged samples.
    cluster_silhouettes, cluster_model_silhouettes : ndarray of shape (n_clusters,)
        Means of both over every cluster.
    negative_shares : ndarray of shape (n_clusters,)
        Share of samples of every cluster that are nearer to another one, by their model silhouette.
    picture : Picture
        Where at most 3,000 samples are drawn.
    typical : list of ndarray
        Samples nearest to the mean of every cluster, in the joint embedding where the model has one.
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
        What the estimator says about the number of clusters, if it chose it (``verdict_``).
    view_agreement : list of float
        How well each view supports the joint clusters, if the estimator reports it (``view_agreement_``).
    clearness : Clearness or None
        How clearly the clusters are separated: ``level`` is "clear", "overlapping", "faint" or "none", ``judged_by``
        says what by, ``value`` and ``reference`` are the figures. None where there are too few samples, or one cluster.
    confidence : {"high", "moderate", "low", "none"} or None
        How certain the estimator is about the number of clusters; None if it was given.
    tried : Tried or None
        The numbers of clusters that were tried, with their scores.
    carrying, against : tuple of int
        The views that carry the clusters, and those that do not show them.
    doubtful_share : float
        Share of the judged samples that lie nearer to another cluster, by the model's distances; of the nodes of a
        graph that have stronger ties to another cluster.
    tiny : tuple of int
        Clusters of fewer than 5 samples or of less than a tenth of an equal share.
    absence : float or None
        Adjusted mutual information of the clusters and of which views samples are in, where it is more than 0.1.
    embedded : bool
        Whether the model has a joint embedding, whose distances are those of the model silhouettes and of the picture.
    left_out : int
        Samples of the input that were not clustered.
    effects : tuple of tuple of ColumnEffect
        For every cluster the columns that distinguish it most, at most four.
    has_columns : bool
        Whether there are columns to describe clusters by; kernels, distances and graphs have none.
    n_explained : int
        Number of samples whose columns were compared, at most 20,000.
    values_taken : str
        Which values of the tables effects are given in: "as passed", or "after" a step of the pipeline.
    graph : GraphExplanation or None
        Hubs, conductance and links of the clusters of a graph.
    view_pictures : tuple of Picture
        For several views, the positions of at most 300 samples in each view alone.

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
    clearness: Clearness | None
    confidence: str | None
    tried: Tried | None
    carrying: tuple[int, ...]
    against: tuple[int, ...]
    doubtful_share: float
    tiny: tuple[int, ...]
    absence: float | None
    embedded: bool
    left_out: int
    effects: tuple[tuple[ColumnEffect, ...], ...]
    has_columns: bool
    n_explained: int
    values_taken: str
    graph: GraphExplanation | None
    view_pictures: tuple[Picture, ...]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, with those that stayed empty."""
        return len(self.sizes)

    @property
    def noun(self) -> str:
        """What a sample is called: a node, where they are those of a graph."""
        return "node" if self.graph is not None else "sample"

    @property
    def number_given(self) -> bool:
        """Whether the number of clusters was given: neither the model chose it nor were several tried."""
        return self.verdict is None and self.tried is None

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
        feature_names: Any = None,
        tried: Mapping[int, float | None] | None = None,
        criterion: str = "silhouette",
        left_out: int = 0,
        random_state: RandomState = 0,
    ) -> "ReportFacts":
        """Compute the facts; arguments as in :func:`write_report`."""
        with single_threaded_blas():  # sums in the same order on any machine
            return cls._computed(
                estimator, X, ids, labels_true, sources, feature_names, tried, criterion, left_out, random_state
            )

    @classmethod
    def _computed(
        cls,
        estimator: Any,
        X: Any,
        ids: Any,
        labels_true: Any,
        sources: Any,
        feature_names: Any,
        tried: Mapping[int, float | None] | None,
        criterion: str,
        left_out: int,
        random_state: RandomState,
    ) -> "ReportFacts":
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
        few = draw(len(drawn), FEW, random_state, "displayed samples")
        distances = model_distances(clustering, drawn, few, places, random_state, roots=not description.one_geometry)
        embedding = joint_embedding(model) if places is None else None
        among = distances.distances if embedding is None else euclidean_distances(embedding[drawn])
        squares = distances.squares if embedding is None or among is None else scaled(among**2)
        silhouettes, model_silhouettes = _silhouettes(description, rows, drawn, judged, among)
        means = by_cluster(silhouettes, labels, k)[0]
        model_means, negative = by_cluster(model_silhouettes, labels, k)
        weights = _weights(description, {clustering.views[0].name: views[0].name} if len(views) == 1 else {})
        agreement = [] if len(views) == 1 else np.asarray(getattr(model, "view_agreement_", ())).tolist()
        by_view = _view_silhouettes(silhouettes, len(views))
        of_views = [value for _, value in weights.get(VIEW_WEIGHTS, [])]
        carrying, against = views_for_and_against(agreement, of_views, by_view)
        graph = explain_graph(clustering.views[0].block, labels, k) if places is not None else None
        explained = _explained(estimator, X, clustering, feature_names, random_state)
        return cls(
            method=_method(clustering),
            views=views,
            ids=names,
            labels=labels,
            sizes=description.sizes,
            weights=weights,
            **vars(description.progress),
            silhouettes=silhouettes,
            mean_silhouette=description.silhouette,
            n_judged=len(judged),
            model_silhouettes=model_silhouettes,
            mean_model_silhouette=None if model_silhouettes is None else model_silhouettes.mean,
            cluster_silhouettes=means,
            cluster_model_silhouettes=model_means,
            negative_shares=negative,
            picture=picture(clustering, drawn, distances.squares, places),
            typical=typical(squares, drawn, labels, k),
            doubtful=doubtful(model_silhouettes),
            view_silhouettes=by_view,
            view_nmi=distances.nmi,
            truth=None if labels_true is None else truth(labels_true, labels, k),
            versions={"Python": platform.python_version()} | {name: installed_version(name) for name in PACKAGES},
            seeds=_seeds(model, random_state),
            code=code_for(clustering.steps, model, random_state),
            stored_warnings=description.warnings,
            verdict=verdict_of(model),
            view_agreement=agreement,
            clearness=_clearness(description, graph, drawn[few], model_silhouettes, random_state),
            confidence=None if verdict_of(model) is None else model.confidence_,
            tried=numbers_tried(model, tried, criterion, k),
            carrying=carrying,
            against=against,
            doubtful_share=doubtful_share(model_silhouettes)
            if places is None
            else share_tied_elsewhere(clustering.views[0].block, labels, k),
            tiny=tiny_clusters(description.sizes),
            absence=follows_absence(clustering.views, labels),
            embedded=embedding is not None,
            left_out=left_out,
            **explained,
            graph=graph,
            view_pictures=pictures_of_views(clustering.views, drawn[few], distances.of_few) if len(views) > 1 else (),
        )


def _explained(
    estimator: Any, X: Any, clustering: Clustering, feature_names: Any, random_state: RandomState
) -> dict[str, Any]:
    """Return the columns that distinguish every cluster, and what they were computed from."""
    tables = named_tables(estimator, X, feature_names)
    k = clustering.n_clusters
    rows = draw(clustering.n_samples, MOST_EXPLAINED, random_state, "displayed samples")
    part = tuple(replace(view, block=view.block[rows]) for view in tables.views) if tables.views else ()
    found = column_effects(part, clustering.labels[rows], k, COLUMNS)[1] if part and k > 1 else ()
    of_clusters = [ordered([row for row in found if row.cluster == c and row.separates]) for c in range(k)]
    return {
        "effects": tuple(tuple(effects[:COLUMNS]) for effects in of_clusters),
        "has_columns": bool(part),
        "n_explained": len(rows),
        "values_taken": tables.taken,
    }


def _clearness(
    description: Description,
    graph: GraphExplanation | None,
    rows: Ints,
    model_silhouettes: Silhouettes | None,
    random_state: RandomState,
) -> Clearness | None:
    """Return how clear the clusters are: by what the model says, by edges, or by silhouettes beside a cloud."""
    clustering = description.clustering
    said = by_confidence(clustering.model)
    if graph is not None and clustering.n_clusters > 1:
        return by_edges(graph)
    if said is not None or graph is not None:
        return said
    clouds = None if description.silhouette is None else one_cloud(clustering.views, rows, random_state)
    if clouds is None or description.silhouette is None:
        return None
    k = clustering.n_clusters
    reference = silhouette_as_given(clouds, k)
    as_given = None if reference is None else (description.silhouette, reference)
    of_model = None
    if model_silhouettes is not None and joint_embedding(clustering.model) is None and not description.one_geometry:
        reference = silhouette_of_kernels(clouds, clustering.views, k)
        of_model = None if reference is None else (model_silhouettes.mean, reference)
    return by_silhouettes(as_given, of_model)


def _judged(description: Description, random_state: RandomState) -> Ints:
    if description.yardstick is not None:
        return description.yardstick.rows
    return judged_samples(description.clustering.n_samples, MOST_JUDGED, random_state)


def _silhouettes(
    description: Description, rows: Ints, drawn: Ints, judged: Ints, distances: Floats | None
) -> tuple[Silhouettes | None, Silhouettes | None]:
    """Return the silhouettes of ``rows`` as given and by the model, one object twice where they are the same."""
    clustering = description.clustering
    silhouettes = description.silhouettes
    if description.yardstick is not None and len(rows) > len(judged):
        silhouettes = silhouettes_as_given(clustering, description.yardstick, rows)
    if distances is None:
        return silhouettes, silhouettes
    at = np.searchsorted(drawn, rows)
    among = distances[np.ix_(at, at)]
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
