"""The graph fusion estimator, the recommended one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.graph.fusion_blocks import (
    check_search_in_blocks,
    digests_and_copies,
    fit_views_in_blocks,
    types_in_blocks,
)
from kernelweave.estimators.graph.fusion_memory import (
    bytes_here,
    check_room,
    check_room_here,
    graph_bytes,
    kept_bytes,
    mib_for_eigenvectors,
    room_for_distances,
    row_bytes,
)
from kernelweave.estimators.graph.fusion_views import (
    FusionView,
    NeighborSearch,
    ViewType,
    check_pairs,
    comparable,
    fit_views,
    view_types,
)
from kernelweave.estimators.graph.structure import (
    FEW_SAMPLES,
    FIRST_LIMIT,
    JUDGED,
    LEAST_JUDGED,
    Judge,
    ViewReport,
    as_asked,
    judged_bytes,
    judging_mib,
    verdict,
    view_warnings,
)
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.elsewhere import (
    answers_lazily,
    is_elsewhere,
    letting_go,
    limit_of,
    placed_views,
    store_communication,
)
from kernelweave.estimators.shared.embedding import EmbeddingClusterer, EmbeddingModel, Extension
from kernelweave.estimators.shared.fit_warnings import warn_if_clusters_follow_absence, warn_if_empty, warn_if_inexact
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.view_weights import start_weights
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError, ViewWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import Views, absent_rows, check_cluster_count, read_views
from kernelweave.kernels.chunked import in_blocks
from kernelweave.kernels.digests import sample_digests
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.neighbors import ENOUGH_RECALL, SEARCHES, check_search
from kernelweave.solvers.graph.cluster_count import ClusterCount
from kernelweave.solvers.graph.fusion import (
    FusedGraph,
    GraphClusters,
    cut_clusters,
    damping,
    fuse_graphs,
    inverse_roots,
    join_copies,
    unit_rows,
    weighted_sum,
)
from kernelweave.solvers.spectral.eigenvectors import extension as inverse_eigenvalues


@dataclass(frozen=True)
class FusionExtension(Extension):
    """The Nystroem extension of the fused graph's eigenvectors, over the views of new samples."""

    views: tuple[FusionView, ...]
    view_weights: Floats
    sources: Floats  # (n, q): the embedding of a new sample is its edges times this, at unit length
    digests: Ints  # (n,) of the training samples' rows, by which they are recognised
    observed: Bools | None = None  # (n, n_views) which training samples each view has; None: all
    level: float = 0.0  # the affinity of samples that no view has together

    def embed(self, views: Iterable[Matrix]) -> Floats:
        """Return the extended eigenvectors, rows of unit length."""
        if self.observed is not None:
            return unit_rows(self._embed_by_overlap(list(views), self.observed))
        total = np.zeros(())
        for view, weight, block in zip(self.views, self.view_weights, views, strict=True):
            total = total + weight * (view.edges(block) @ self.sources)
        return unit_rows(total)

    def _embed_by_overlap(self, blocks: list[Matrix], observed: Bools) -> Floats:
        """Return the sum over edges, each divided by the share of the weight that knows both ends, and the rest."""
        graphs = [view.edges(block) for view, block in zip(self.views, blocks, strict=True)]
        edges = sp.coo_array(weighted_sum(graphs, self.view_weights))
        there = np.stack([~absent_rows(block) for block in blocks], axis=1)
        shares = np.zeros(edges.nnz)
        for v, weight in enumerate(self.view_weights):
            shares += weight * (there[edges.row, v] & observed[edges.col, v])
        values = edges.data * self.view_weights.sum() / shares
        known = sp.csr_array((values, (edges.row, edges.col)), shape=edges.shape) @ self.sources
        patterns, pattern = np.unique(observed, axis=0, return_inverse=True)
        sums = np.zeros((len(patterns), self.sources.shape[1]))
        np.add.at(sums, pattern.ravel(), self.sources)
        unknown = there.astype(np.int64) @ patterns.T == 0
        return np.asarray(known + self.level * (unknown @ sums))

    def known(self, views: Sequence[Matrix]) -> Ints:
        """Return the first training sample that each new one equals in every view that can tell, -1 for none."""
        blocks = comparable(self.views, views)
        if not blocks:
            return np.full(views[0].shape[0], -1)
        digests = sample_digests(blocks)
        order = np.argsort(self.digests, kind="stable")
        place = np.minimum(np.searchsorted(self.digests, digests, sorter=order), len(order) - 1)
        there = np.logical_or.reduce([~absent_rows(block) for block in blocks])  # absent ones all look the same
        return np.where(there & (self.digests[order[place]] == digests), order[place], -1)


@answers_lazily("predict", "transform")
class GraphFusionClustering(EmbeddingClusterer):
    """Find groups in one table, several views, kernels or graphs, and their number: the recommended default.

    Every view becomes a graph that joins each sample to its nearest neighbours. The graphs are summed, with larger
    weights for views whose edges follow the common structure, and the sum is divided by normalized cut. No parameter
    has to be chosen: how rows are compared is decided from the values, and with ``n_clusters="auto"`` the number of
    clusters is the one whose cut stands out most against data of the same shape without clusters, or 1 if none stands
    out.

    Parameters
    ----------
    n_clusters : "auto", int, or pair of ints, default="auto"
        Number of clusters. ``"auto"`` chooses it, with 1 if there are no clusters. A pair ``(low, high)`` limits
        the choice to this range.
    n_neighbors : int, default=None
        Neighbours of every sample. None averages graphs of two or three sizes around a quarter of a mean cluster,
        between 10 and 40.
    neighbor_search : {"auto", "exact", "approximate"}, default="auto"
        How neighbours are searched. ``"auto"`` compares all pairs up to 10,000 samples; beyond that it searches nearby
        cells and, if these miss many, neighbours of neighbours. ``"exact"`` compares all pairs; ``"approximate"`` uses
        indexes of the Faiss library (extra ``neighbors``). ``neighbor_recall_`` holds the share that was found, with a
        warning below 0.9. Counts and kernels are always searched exactly.
    polish : bool, default=True
        Whether to move single samples as long as this lowers the cut.
    check_views : bool, default=True
        With several views: compare each with the joint clusters, and warn about misleading views.
    view_types : {"auto", "table", "counts", "kernel", "graph"}, list or dict, default="auto"
        What each view is. ``"auto"`` decides between counts (of words, or links: mostly zeros, hardly a negative
        value) and other tables. Kernel matrices and graphs have to be named.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and the others decide.
    view_weights : {"learned", "uniform"}, array-like or dict, default="learned"
        Whether view weights are learned, equal, or fixed at these numbers, one per view (scaled to add up to 1).
    init_view_weights : array-like or dict, default=None
        Weights that learning starts from; None means equal weights.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    n_init : int, default=20
        Runs of k-means on the embedding; the one with the lowest cut is kept.
    memory_limit : float, default=None
        Memory in MiB that neighbours, graphs and eigenvectors may take in this process; a fit that needs more is
        refused before the search for neighbours. None means no limit for tables in memory, and 2048 for tables in
        blocks.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for k-means, for the data without clusters and for subsamples. The same seed gives the same labels with any
        number of threads.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters_-1.
    n_clusters_ : int
        Number of clusters; 1 means that no clusters were found.
    confidence_ : {"high", "moderate", "low", "none", "given"}
        How certain the number of clusters is; ``"given"`` if it was set by the user.
    verdict_ : str
        A sentence with the number of clusters and the evidence for it.
    n_clusters_path_ : dict of str to ndarray
        The numbers of clusters tried (``"n_clusters"``) and how far each stands out (``"gap"``); empty arrays where
        the number was given.
    neighbor_recall_ : ndarray of shape (n_views,)
        Share of the nearest neighbours that the search found in each view, the lower one of two representations: 1
        where it was exact, else measured on 300 samples. NaN for graphs.
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views; they add up to 1.
    view_agreement_ : ndarray of shape (n_views,)
        How well each view supports the joint clusters, from 0 to 1: their clearness in its graph relative to that of
        its own clusters. NaN without clusters, with ``check_views=False`` or fewer than
        20 samples, 1 for a single view.
    view_names_ : list of str
        Names of the views.
    representations_ : dict of str to list of str
        How the rows of each view were compared.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The fused graph.
    embedding_ : ndarray of shape (n_samples, n_vectors)
        Leading eigenvectors of the fused graph, two per cluster, rows scaled to unit length.
    eigenvalues_ : ndarray of shape (n_vectors,)
        Their eigenvalues, largest first.
    objective_ : float
        Normalized cut of the fused graph; it is minimised.
    objective_path_ : ndarray
        The cut of the best run of k-means, and after single moves.
    n_iter_ : int
        Entries of ``objective_path_``.
    converged_ : bool
        Whether no single move can lower the cut.
    observed_ : ndarray of shape (n_samples, n_views), bool
        Which samples each view had; absent for tables in blocks, which are complete.
    communication_ : dict
        Data transferred in a fit of tables in blocks (Dask, Zarr, mapped files): ``"rounds"`` to all workers,
        ``"bytes_sent"``, ``"bytes_received"``, ``"blocks"`` and ``"workers"``. Absent after fits in memory.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewSpectralClustering : Weighted sums of kernels, with an objective for the weights.
    GraphCut : Normalized cuts of one graph, by search instead of eigenvectors.

    Notes
    -----
    Tables are compared by z-scores and, with ten columns or more, also by rows of unit length; counts by cosines, with
    and without larger weights for rare columns. Two samples of counts that share no column are not neighbours, and an
    empty row has none.

    Cost: neighbours O(n^2 d) in each view, beyond 10,000 samples about O(n^1.5 d) by a search of nearby cells; then
    O(edges n_clusters). ``"auto"`` and the check of views work on at most 1,200 samples. Memory: a few hundred
    numbers per sample and view.

    Tables in blocks (Dask, Zarr, mapped files of more than ``memory_limit`` MiB): neighbours are searched where the
    rows are and sent to this process, which fuses and cuts the graphs; these must fit into its memory. With exact
    neighbours, labels are the same as in a single process. Such tables must be complete tables of numbers: missing
    cells, counts, kernels and graphs are refused, and so is ``neighbor_search="auto"`` beyond 10,000 samples. For
    ``predict`` the training samples are kept in this process, if they fit as well.

    New samples are joined to their neighbours in the training set and placed by the Nystroem extension of the
    eigenvectors; a sample that equals a training sample gets its label.

    Source: no single one. Self-tuned neighbour graphs after Zelnik-Manor and Perona, NIPS 2004; embedding after Ng,
    Jordan and Weiss, NIPS 2001; gap against data without clusters after Tibshirani, Walther and Hastie, 2001. The
    combination of the steps and their constants were chosen by ablation on 22 multi-view sets.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import GraphFusionClustering
    >>> X, _ = make_blobs(200, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    >>> model = GraphFusionClustering(random_state=0).fit([X, X[:, ::-1] ** 2])  # two views
    >>> model.n_clusters_, model.confidence_
    (3, 'high')
    >>> model.predict([X[:2], X[:2, ::-1] ** 2]).tolist() == model.labels_[:2].tolist()
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        **view_rules(
            "missing", "view_weights", "init_view_weights", "views", "n_init", "checkpoint", "random_state", "verbose"
        ),
        "memory_limit": [*view_rules("memory_limit")["memory_limit"], None],
        "n_clusters": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), "array-like"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "neighbor_search": [StrOptions(set(SEARCHES))],
        "polish": ["boolean"],
        "check_views": ["boolean"],
        "view_types": [str, list, tuple, dict],
    }

    def __init__(
        self,
        n_clusters: Any = "auto",
        *,
        n_neighbors: int | None = None,
        neighbor_search: str = "auto",
        polish: bool = True,
        check_views: bool = True,
        view_types: Any = "auto",
        missing: str = "error",
        view_weights: Any = "learned",
        init_view_weights: Any = None,
        views: Any = None,
        n_init: int = 20,
        memory_limit: float | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.neighbor_search = neighbor_search
        self.polish = polish
        self.check_views = check_views
        self.view_types = view_types
        self.missing = missing
        self.view_weights = view_weights
        self.init_view_weights = init_view_weights
        self.views = views
        self.n_init = n_init
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    _takes_absent = True
    _takes_blocks = True

    def _set_input_tags(self, tags: Any) -> None:
        tags.sparse = True
        tags.allow_nan = self.missing != "error"
        tags.pairwise = self.view_types in ("kernel", "graph") and self.views is None
        tags.positive_only = self.view_types == "graph"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "GraphFusionClustering":
        """Find the clusters.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views`` and ``view_types``.
        y : None
            Ignored.

        Returns
        -------
        self : GraphFusionClustering
            The fitted estimator.
        """
        views = placed_views(self, X) if is_elsewhere(self, X) else read_views(self, X, reset=True)
        with letting_go(views):
            self._fit(views, X)
        return self

    def _fit(self, views: Views, X: Any) -> None:
        """Cluster views that were read."""
        elsewhere = in_blocks(views.blocks[0])
        check_search(self.neighbor_search)  # type: ignore[arg-type]
        if elsewhere:
            check_search_in_blocks(self.neighbor_search, views.n_samples)
        types = types_in_blocks(self.view_types, views) if elsewhere else view_types(self.view_types, views)
        check_pairs(views, types)
        keep_run(self, views)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if not elsewhere:
            self._check_rows(views, types)
        judge = self._judge(views, types, seed)
        count = self._count(judge)
        k = self._asked_for(views) if count is None else count.n_clusters
        held = 0.0 if judge is None else judged_bytes(len(judge.samples), views.widths, types)
        fitted, graphs = self._graphs(views, types, k, seed, held)
        digests, copies = digests_and_copies(views) if elsewhere else (None, views.copies())
        if copies.any():
            _warn_of_isolated(graphs)
        weights = start_weights(self.view_weights, self.init_view_weights, views.names)
        work = np.inf if elsewhere else mib_for_eigenvectors(graphs, self.memory_limit, held)
        options: dict[str, Any] = {"learned": weights.learned, "observed": views.observed, "work": work}
        fused = fuse_graphs(graphs, k, weights.values, **options)
        embedding = unit_rows(fused.eigenvectors.vectors * damping(fused.eigenvectors.values, k))
        clusters = self._cut(fused, embedding, k, seed, X)
        if not {"kernel", "graph"} & set(types):
            clusters = join_copies(fused.affinity, clusters, copies, k)
        self._keep(fused, embedding, clusters, k)
        digests = sample_digests(comparable(fitted, views.blocks)) if digests is None else digests
        self._keep_model(fitted, views, fused, k, digests)
        self._keep_count(count, k, views.n_samples)
        self._keep_agreement(judge, clusters.labels, k)
        warn_if_clusters_follow_absence(clusters.labels, views.observed, seed)
        store_communication(self, views.blocks[0])

    def _check_rows(self, views: Views, types: Sequence[ViewType]) -> None:
        """Refuse tables whose rows leave no room to judge the fewest samples, before any of them are judged."""
        limit = self.memory_limit
        if limit is None or self._judged_last(views.n_samples, views, types) <= limit * 2**20:
            return
        search = NeighborSearch(streams(0, 1, "cells")[0], self.n_neighbors, self.neighbor_search)  # type: ignore[arg-type]
        check_room_here(self._needed(views, types, self._counts(), search), limit, views.n_samples)

    def _needed(
        self, views: Views, types: Sequence[ViewType], counts: Sequence[int], search: NeighborSearch
    ) -> Callable[[int], float]:
        """Return what gives the bytes of a fit of so many samples, as many of them judged as can be."""

        def needed(n: int) -> float:
            judged = judged_bytes(min(n, JUDGED), views.widths, types) if self._is_judged(views) else 0.0
            fit = judged + max(bytes_here(n, views, types, k, search) for k in counts)
            return max(fit, self._judged_last(n, views, types))

        return needed

    def _counts(self) -> list[int]:
        """Return the number of clusters, or some that need the most memory where it is chosen."""
        return [int(self.n_clusters)] if isinstance(self.n_clusters, Integral) else [2, FIRST_LIMIT]

    def _kept(self, n: int, views: Views, types: Sequence[ViewType]) -> float:
        """Return the bytes of rows and graphs of so many samples, which are there when views are judged by clusters."""
        return max(kept_bytes(n, views, types, k, self.n_neighbors) for k in self._counts())

    def _judged_last(self, n: int, views: Views, types: Sequence[ViewType]) -> float:
        """Return the bytes that so many samples take at least when views are judged by clusters."""
        fewest = judging_mib(min(n, LEAST_JUDGED), views.widths, types) if self._is_judged(views) else 0.0
        return self._kept(n, views, types) + fewest * 2**20

    def _graphs(
        self, views: Views, types: Sequence[ViewType], k: int, seed: int, held: float
    ) -> tuple[list[FusionView], list[sp.csr_array]]:
        """Return every view with the graph of its samples; the recall of the search is stored.

        ``held`` bytes are taken already.
        """
        search = NeighborSearch(
            streams(seed, 1, "cells")[0],
            self.n_neighbors,
            self.neighbor_search,  # type: ignore[arg-type]
            streams(seed, 1, "recall")[0],
        )
        elsewhere = in_blocks(views.blocks[0])
        n = views.n_samples
        fitted: Any
        if elsewhere:
            needed = graph_bytes(n, views.widths, k, self.n_neighbors)
            check_room(needed, limit_of(self), n)
            keep_rows = needed + row_bytes(n, views.widths) <= limit_of(self) * 2**20
            fitted, graphs, recalls = fit_views_in_blocks(views, k, search, keep_rows=keep_rows)
        else:
            if self.memory_limit is not None:
                if bytes_here(n, views, types, k, search) + held > self.memory_limit * 2**20:
                    check_room_here(self._needed(views, types, [k], search), self.memory_limit, n)
                left = self.memory_limit - held / 2**20
                search = replace(search, room=room_for_distances(views, types, k, search, left))
            fitted, graphs, recalls = fit_views(views, types, k, search)
        self.neighbor_recall_: Floats = np.array(recalls)
        _warn_of_recall(views.names, recalls)
        return fitted, graphs

    # --- the number of clusters ---------------------------------------------------------------------------------------

    def _asked_for(self, views: Views) -> int:
        check_cluster_count(self.n_clusters, np.ones(views.n_samples))
        return int(self.n_clusters)

    def _range(self) -> tuple[int, int | None]:
        """Return the least and the largest number that may be chosen."""
        if isinstance(self.n_clusters, str):
            return 1, None
        numbers = np.asarray(self.n_clusters)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iu" or numbers.min() < 1:
            raise ParameterError(
                f"n_clusters={self.n_clusters!r} should be 'auto', a number of clusters, or a pair (low, high) of "
                "numbers to choose among."
            )
        return int(numbers.min()), int(numbers.max())

    def _is_judged(self, views: Views) -> bool:
        """Whether clusters are told from chance, for their number or in single views."""
        if not isinstance(self.n_clusters, Integral):
            return True
        return self.n_clusters > 1 and len(views) > 1 and self.check_views and views.n_samples >= FEW_SAMPLES

    def _judge(self, views: Views, types: Sequence[ViewType], seed: int) -> Judge | None:
        """Return what tells clusters from chance, where it is needed."""
        if not self._is_judged(views):
            return None
        if self.memory_limit is None:
            return Judge(views, types, seed)
        kept = 0.0 if in_blocks(views.blocks[0]) else self._kept(views.n_samples, views, types)
        return Judge(views, types, seed, self.memory_limit - kept / 2**20)

    def _count(self, judge: Judge | None) -> ClusterCount | None:
        if isinstance(self.n_clusters, Integral) or judge is None:
            return None
        smallest, largest = self._range()
        if largest is not None and judge.most_clusters < smallest:
            raise ParameterError(
                f"n_clusters={self.n_clusters!r} asks for {smallest} clusters or more, but {len(judge.samples)} "
                f"samples can show at most {judge.most_clusters}. Lower the numbers, or give a single one."
            )
        return self._keeper.part("count").once(ClusterCount, lambda: judge.count(smallest, largest))

    def _keep_count(self, count: ClusterCount | None, k: int, n_samples: int) -> None:
        self.n_clusters_ = k
        nothing = {"n_clusters": np.empty(0, dtype=np.intp), "gap": np.empty(0)}
        self.n_clusters_path_: dict[str, Any] = nothing
        if count is None:
            self.confidence_ = "given"
            self.verdict_ = as_asked(k)
            return
        self.confidence_ = count.confidence
        self.verdict_ = verdict(count, n_samples)
        self.n_clusters_path_ = {"n_clusters": count.counts, "gap": count.gaps}
        if 1 < k == count.counts[-1]:
            warn(f"{k} is the largest number of clusters tried; allow more clusters.", ConvergenceWarning)

    # --- clusters -----------------------------------------------------------------------------------------------------

    def _cut(self, fused: FusedGraph, embedding: Floats, k: int, seed: int, X: Any) -> GraphClusters:
        if k == 1:
            return GraphClusters(np.zeros(len(embedding), dtype=np.intp), (0.0,), True)
        runs = streams(seed, self.n_init)
        # Of rings and other long clusters the first k eigenvectors alone tell more.
        first = unit_rows(fused.eigenvectors.vectors[:, :k])
        return self._keeper.part("cut").once(
            GraphClusters,
            lambda: cut_clusters(
                fused.affinity,
                embedding,
                k,
                runs,
                polish=self.polish,
                other=first,
                follow=lambda results: track(self, results, total=self.n_init, what="runs", X=X),
            ),
        )

    def _keep(self, fused: FusedGraph, embedding: Floats, clusters: GraphClusters, k: int) -> None:
        self.labels_: Ints = clusters.labels
        self.embedding_: Floats = embedding
        self.affinity_ = fused.affinity
        self.view_weights_: Floats = fused.view_weights / fused.view_weights.sum()
        self.eigenvalues_: Floats = fused.eigenvectors.values
        self.objective_ = clusters.cut
        self.objective_path_ = np.array(clusters.cuts)
        self.n_iter_ = len(clusters.cuts)
        self.converged_ = clusters.converged
        warn_if_inexact(fused.eigenvectors.residual)
        warn_if_empty(np.bincount(clusters.labels, minlength=k), k)

    def _keep_model(self, fitted: list[FusionView], views: Views, fused: FusedGraph, k: int, digests: Ints) -> None:
        self.representations_ = {name: _described(view) for name, view in zip(views.names, fitted, strict=True)}
        extension = FusionExtension(
            tuple(fitted),
            fused.view_weights,
            _sources(fused, k),
            digests,
            observed=views.observed,
            level=0.0 if fused.background is None else fused.background.level,
        )
        self._model = _model(extension, self.embedding_, self.labels_, k)

    def _keep_agreement(self, judge: Judge | None, labels: Ints, k: int) -> None:
        n_views = len(self.view_names_)
        self.view_agreement_: Floats = np.full(n_views, np.nan if n_views > 1 else 1.0)
        if judge is None or n_views == 1 or not self.check_views or len(labels) < FEW_SAMPLES:
            return
        reports: list[ViewReport] = judge.view_reports(labels[judge.samples], k)
        if k > 1:
            self.view_agreement_ = np.array([report.follows for report in reports])
        for message in view_warnings(reports, k):
            warn(message, ViewWarning)

    # --- new samples --------------------------------------------------------------------------------------------------

    def _read_new(self, X: Any) -> Sequence[Matrix]:
        return read_views(self, X, reset=False).blocks

    def transform(self, X: Any) -> Floats:
        """Return the embedding of samples.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples; for kernels and graphs their rows of values with the training samples.

        Returns
        -------
        embedding : ndarray of shape (n_new, n_vectors)
            Rows as in ``embedding_``; a sample that equals a training sample has its row.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        blocks = self._read_new(X)
        place = self._extension.known(blocks)
        return np.where((place >= 0)[:, None], self.embedding_[place], self._extension.embed(blocks))

    @property
    def _extension(self) -> FusionExtension:
        return self._model.extension  # type: ignore[return-value]

    def predict(self, X: Any) -> Ints:
        """Return the nearest cluster of samples in the space of the embedding.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples; for kernels and graphs their rows of values with the training samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster; a sample that equals a training sample has its label.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        blocks = self._read_new(X)
        labels = self._model.nearest(blocks)[0]
        place = self._extension.known(blocks)
        return np.where(place >= 0, self.labels_[place], labels)


def _described(view: FusionView) -> list[str]:
    if view.kind in ("kernel", "graph"):
        return [view.kind]
    return [representation.name for representation in view.representations]  # type: ignore[union-attr]


def _sources(fused: FusedGraph, k: int) -> Floats:
    """Return D^-1/2 U damping / lambda, by which edges of new samples are multiplied."""
    values = fused.eigenvectors.values
    factors = damping(values, k) * inverse_eigenvalues(values)
    return np.asarray(inverse_roots(fused.degrees)[:, None] * fused.eigenvectors.vectors * factors)


def _model(extension: Extension, embedding: Floats, labels: Ints, k: int) -> EmbeddingModel:
    sizes = np.bincount(labels, minlength=k)
    sums = FeatureKernel(embedding).feature_sums(labels, np.ones(len(labels)), k)
    centers = sums / np.maximum(sizes, 1)[:, None]
    norms = np.where(sizes > 0, np.einsum("ij,ij->i", centers, centers), np.inf)
    return EmbeddingModel(extension, centers, norms)


def _warn_of_recall(names: Sequence[str], recalls: Sequence[float]) -> None:
    """Warn of views in which the search missed many neighbours."""
    for name, recall in zip(names, recalls, strict=True):
        if recall < ENOUGH_RECALL:
            warn(
                f"The search for neighbours in view {name!r} found only {recall:.0%} of the nearest ones. "
                "neighbor_search='exact' finds all, at a cost that grows with the square of the number of samples; "
                "'approximate' (install kernelweave[neighbors]) may find more.",
                ViewWarning,
            )


def _warn_of_isolated(graphs: Sequence[sp.csr_array]) -> None:
    """Warn of samples that no view joins to any other."""
    joined = np.zeros(graphs[0].shape[0], dtype=bool)
    for graph in graphs:
        joined |= np.diff(graph.indptr) > 0
    alone = int((~joined).sum())
    if alone:
        warn(
            f"{alone} of {len(joined)} samples have nothing in common with any other, in any view (such as rows of "
            "zeros): their cluster is arbitrary. Remove them.",
            ViewWarning,
        )
