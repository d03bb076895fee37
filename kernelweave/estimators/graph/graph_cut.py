"""The graph cut estimator."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError
from sklearn.cluster import SpectralClustering

from kernelweave.estimators.graph.structure import settle_n_clusters
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer, ClustererTags
from kernelweave.estimators.shared.parameters import N_CLUSTERS_OR_AUTO, rules
from kernelweave.foundation.array_types import Bools, Ints
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.progress import track
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import Views, read_affinity, read_labels
from kernelweave.kernels.graph import GraphKernel
from kernelweave.partitions.graph_moves import OBJECTIVES, GraphMoves
from kernelweave.solvers.graph.cut_search import CutContest, CutPath, polish_cut, search_beside_rivals, search_cuts
from kernelweave.solvers.mixtures.exemplars import exemplars


class GraphCut(Clusterer):
    """Partition the nodes of a graph by normalized cut, ratio cut or ratio association.

    Adds one cluster at a time: it tries nodes as seeds of a new cluster that grows inside an old one, keeps the best
    split, and then moves single nodes and joins and splits clusters as long as the objective improves. Use it if the
    data are a graph or a sparse similarity; the graph is never made dense. Eigenvectors are computed only for the
    spectral start of ``search="exact"``, for ``init="spectral"`` and for ``n_clusters="auto"``.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; ``"auto"`` chooses it as :class:`GraphFusionClustering` does.
    objective : {"normalized_cut", "ratio_association", "ratio_cut"}, default="normalized_cut"
        What is minimised (cuts) or maximised (association): edges that leave a cluster relative to its degree, edges
        inside relative to its number of nodes, or edges that leave relative to its number of nodes.
    search : {"fast", "exact", "exemplars"}, default="fast"
        Seed nodes tried in a cluster: two nodes far apart (``"fast"``), the ``n_exemplars`` most likely exemplars of a
        convex mixture (``"exemplars"``), or every node (``"exact"``). The exact search first runs the other
        two and switches to their solution wherever it is better, and at the end, with ``polish``, to a polished
        spectral start. ``winner_`` says which of them gave the result.
    n_exemplars : int, default=None
        Number of exemplars; twice ``n_clusters`` by default.
    polish : bool, default=True
        Improve the partition after every stage by single moves, joins and splits.
    shift : "auto" or float, default="auto"
        Added to the diagonal of the kernel behind the exemplars, relative to the degrees for the normalized cut. The
        objectives do not depend on it. ``"auto"`` takes the smallest shift that is certain to make the kernel
        positive semidefinite: 1 for the normalized cut, otherwise the largest degree.
    init : "spectral" or array of shape (n_nodes,), default=None
        Start from scikit-learn's spectral clustering or from given labels instead of searching; ``polish`` then
        improves them and ``search`` says which seed nodes its splits try.
    time_budget : float, default=None
        Seconds after which the remaining clusters are split off as in the fast search without polishing;
        ``converged_`` is then False and a warning says so.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for the spectral start, ``init="spectral"`` and the exact search; everything else is deterministic.
    verbose : int, default=0
        1 shows a progress bar over the stages.

    Attributes
    ----------
    labels_ : ndarray of shape (n_nodes,)
        Cluster of every node.
    n_clusters_ : int
        Number of clusters; with ``n_clusters="auto"`` 1 means that no clusters were found.
    confidence_ : {"high", "moderate", "low", "none", "given"}
        How certain the chosen number of clusters is.
    verdict_ : str
        A sentence with the number of clusters and the evidence for it.
    cut_value_, objective_ : float
        The objective at ``labels_``: cuts are minimised, the association is maximised.
    labels_path_ : ndarray of shape (n_clusters, n_nodes)
        Labels of every intermediate solution; row ``k - 1`` has k clusters. With ``init``, only the row of the result.
    cut_path_, objective_path_ : ndarray
        The objective of every row of ``labels_path_``.
    exemplar_indices_ : ndarray
        The exemplars, most likely first (``search="exemplars"`` only).
    winner_ : {"search", "fast", "exemplars", "combined", "spectral"}
        Where ``labels_`` come from (``search="exact"`` without ``init`` only): the exact search alone; the fast search;
        the search by exemplars; the exact search after it switched to one of those two at an earlier stage; a polished
        spectral start. If several are equally good, the first in this order.
    candidate_objectives_ : dict of str to float
        The objective that each of them reached, by the names of ``winner_`` (``search="exact"`` without ``init``
        only). ``"combined"`` is missing if the search did not switch before the last stage, and
        ``"spectral"`` with ``polish=False`` or if no eigenvectors were found.
    n_iter_ : int
        Number of intermediate solutions.
    converged_ : bool
        Whether the search ended in time and no improvement known to the method was left.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of nodes.

    See Also
    --------
    sklearn.cluster.SpectralClustering : The relaxed normalized cut, by eigenvectors.
    GlobalKernelKMeans : The same search on kernels of vectors.

    Notes
    -----
    A node without edges has no degree: the normalized cut does not depend on it, and it stays in cluster 0, or where
    ``init`` puts it. Pieces of the graph that are not connected are split off at no cost before any edge is cut.

    Cost: fast, O(edges) per changed cluster and stage; exact, m times the edges for a cluster of m nodes, but only for
    clusters that changed, and twice that after a switch, because the exact search also continues on its own. Memory: a
    few numbers per edge.

    Source: MSc 4.3 and 5.5; I. Dhillon, Y. Guan and B. Kulis, "Weighted graph cuts without eigenvectors", IEEE TPAMI
    2007.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import GraphCut
    >>> A = np.kron(np.eye(3), np.ones((4, 4))) - np.eye(12)  # three groups of four friends
    >>> A[3, 4] = A[4, 3] = A[7, 8] = A[8, 7] = 1  # in a chain
    >>> model = GraphCut(n_clusters=3).fit(A)
    >>> [sorted(np.flatnonzero(model.labels_ == c).tolist()) for c in np.unique(model.labels_)]
    [[4, 5, 6, 7], [0, 1, 2, 3], [8, 9, 10, 11]]
    >>> round(model.cut_value_, 4)  # one edge of 13, two of 14, one of 13
    0.2967
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        **rules("n_exemplars", "time_budget", "checkpoint", "random_state", "verbose"),
        "n_clusters": N_CLUSTERS_OR_AUTO,
        "objective": [StrOptions(set(OBJECTIVES))],
        "search": [StrOptions({"exact", "fast", "exemplars"})],
        "polish": ["boolean"],
        "shift": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"spectral"}), "array-like", None],
    }

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        objective: str = "normalized_cut",
        search: str = "fast",
        n_exemplars: int | None = None,
        polish: bool = True,
        shift: Any = "auto",
        init: Any = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.objective = objective
        self.search = search
        self.n_exemplars = n_exemplars
        self.polish = polish
        self.shift = shift
        self.init = init
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> ClustererTags:
        tags = super().__sklearn_tags__()
        tags.objective = "maximize" if self.objective == "ratio_association" else "minimize"
        return tags

    def _set_input_tags(self, tags: Any) -> None:
        tags.sparse = True
        tags.pairwise = True
        tags.positive_only = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "GraphCut":
        """Partition the nodes.

        Parameters
        ----------
        X : {array-like, sparse matrix, networkx graph} of shape (n_nodes, n_nodes)
            Symmetric affinities >= 0; 0 means no edge.
        y : None
            Ignored.

        Returns
        -------
        self : GraphCut
            The fitted estimator.
        """
        began = time.monotonic()
        A = read_affinity(self, X)
        keep_run(self, A)
        moves = GraphMoves(GraphKernel(A), self.objective)
        settle_n_clusters(self, lambda: (Views(("graph",), (A,)), ["graph"]))
        self._check_counts(moves)
        deadline = np.inf if self.time_budget is None else began + self.time_budget
        for name in ("exemplar_indices_", "winner_", "candidate_objectives_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        path = self._search(moves, A, deadline) if self.init is None else self._improve_start(moves, A, deadline)
        self._store_path(path)
        return self

    def _check_counts(self, moves: GraphMoves) -> None:
        usable = int(np.count_nonzero(moves.masses > 0))
        if self.n_clusters_ > moves.n_nodes:
            raise ParameterError(
                f"n_samples={moves.n_nodes} should be >= n_clusters={self.n_clusters_}: there cannot be more clusters "
                "than nodes."
            )
        if self.n_clusters_ > max(1, usable):
            raise ParameterError(
                f"Only {usable} nodes have an edge, fewer than n_clusters={self.n_clusters_}; the normalized cut "
                "cannot place the others. Lower n_clusters, or use objective='ratio_cut'."
            )
        if self.n_exemplars is not None and self.n_exemplars > usable:
            raise ParameterError(
                f"n_exemplars={self.n_exemplars} is more than the {usable} nodes that count; lower it."
            )

    def _search(self, moves: GraphMoves, A: sp.csr_array, deadline: float) -> CutPath:
        options: dict[str, Any] = {"n_clusters": self.n_clusters_, "polish": self.polish, "deadline": deadline}
        if self.search == "exact":
            return self._contest(moves, A, options)
        if self.search == "exemplars":
            self.exemplar_indices_ = self._exemplars(moves, A, deadline)
            options["exemplars"] = self.exemplar_indices_
        part = self._keeper.part("search")
        return search_cuts(moves, how=self.search, keeper=part, on_stage=self._watched, **options)  # type: ignore[arg-type]

    def _contest(self, moves: GraphMoves, A: sp.csr_array, options: dict[str, Any]) -> CutPath:
        """Return the path of the exact search beside its rivals, and keep what each of them reached."""
        chosen = self._exemplars(moves, A, options["deadline"])
        hows: tuple[tuple[Literal["fast", "exemplars"], Ints | None], ...] = (("fast", None), ("exemplars", chosen))
        rivals: dict[str, CutPath] = {
            how: search_cuts(moves, how=how, exemplars=seeds, keeper=self._keeper.part(f"{how} search"), **options)
            for how, seeds in hows
        }
        part = self._keeper.part("search")
        contest = search_beside_rivals(moves, rivals, keeper=part, on_stage=self._watched, **options)
        if self.polish:
            contest = self._or_spectral(moves, A, contest, options["deadline"])
        self.winner_ = contest.winner
        self.candidate_objectives_ = contest.values
        return contest.path

    def _or_spectral(self, moves: GraphMoves, A: sp.csr_array, contest: CutContest, deadline: float) -> CutContest:
        """Return the contest with a polished spectral start as one more candidate for the end of the path."""
        try:
            start = self._spectral(A, moves.masses > 0)
        except (ArpackError, np.linalg.LinAlgError):  # eigenvectors are a help here, not a need
            return contest
        sign = -1.0 if self.objective == "ratio_association" else 1.0
        hows: tuple[Literal["fast"], Literal["exact"]] = ("fast", "exact")  # either may end lower
        rivals = [self._polished(moves, start, how, deadline) for how in hows]
        rival = min(rivals, key=lambda each: sign * each.values[-1])
        values = contest.values | {"spectral": rival.values[-1]}
        path = contest.path
        if sign * rival.values[-1] >= sign * path.values[-1] - moves.tolerance:
            return replace(contest, values=values)
        path = CutPath(
            (*path.labels[:-1], rival.labels[-1]),
            (*path.values[:-1], rival.values[-1]),
            path.complete and rival.complete,
        )
        return replace(contest, path=path, winner="spectral", values=values)

    def _improve_start(self, moves: GraphMoves, A: sp.csr_array, deadline: float) -> CutPath:
        """Return the labels of ``init``, improved where asked for."""
        labels = self._spectral(A, moves.masses > 0) if isinstance(self.init, str) else self.init
        labels = read_labels(labels, moves.n_nodes, self.n_clusters_)
        empty = np.flatnonzero(moves.stats(labels, self.n_clusters_)[3] == 0)
        if len(empty):
            raise ParameterError(
                f"init leaves cluster {empty[0]} without a node that has an edge; give every cluster 0.."
                f"{self.n_clusters_ - 1} at least one."
            )
        if self.polish:
            return self._polished(moves, labels, "exact" if self.search == "exact" else "fast", deadline)
        return CutPath((labels,), (moves.value(labels, self.n_clusters_),), True)

    def _polished(self, moves: GraphMoves, labels: Ints, how: Literal["fast", "exact"], deadline: float) -> CutPath:
        part = self._keeper.part(f"polish, {how}")
        options: dict[str, Any] = {"n_clusters": self.n_clusters_, "how": how, "deadline": deadline}
        return part.once(CutPath, lambda: polish_cut(moves, labels, keeper=part, **options))

    def _spectral(self, A: sp.csr_array, counted: Bools) -> Ints:
        """Return scikit-learn's spectral labels of the nodes that count, 0 for others; no cluster is left empty."""
        labels = np.zeros(A.shape[0], dtype=np.intp)
        used = np.flatnonzero(counted)
        if self.n_clusters_ in (1, len(used)):
            labels[used] = np.arange(len(used)) % self.n_clusters_
            return labels
        spectral = self._spectral_labels(A[used][:, used])
        for empty in np.setdiff1d(np.arange(self.n_clusters_), spectral):
            largest = np.bincount(spectral).argmax()
            spectral[np.flatnonzero(spectral == largest)[-1]] = empty
        labels[used] = spectral
        return labels

    def _spectral_labels(self, A: sp.csr_array) -> Ints:
        """Run scikit-learn; it wants short indices, and warns of graphs in several pieces, which are fine here."""
        A = sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
        model = SpectralClustering(
            self.n_clusters_, affinity="precomputed", assign_labels="cluster_qr", random_state=self.random_state
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Graph is not fully connected")
            return model.fit(A).labels_.astype(np.intp)

    def _exemplars(self, moves: GraphMoves, A: sp.csr_array, deadline: float) -> Ints:
        """Return the exemplars of the graph's kernel, D^-1 A D^-1 with degrees as weights for the normalized cut."""
        degrees = moves.degrees
        by_degree = self.objective == "normalized_cut"
        scale = np.ones_like(degrees)
        if by_degree:
            scale = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
        shift = (1.0 if by_degree else float(degrees.max(initial=0.0))) if self.shift == "auto" else float(self.shift)
        D = sp.dia_array((scale[None], [0]), shape=A.shape)
        K = sp.csr_array(D @ A @ D + sp.dia_array(((shift * scale)[None], [0]), shape=A.shape))
        count = min(self.n_exemplars or 2 * self.n_clusters_, int(np.count_nonzero(moves.masses > 0)))
        return exemplars(GraphKernel(K), moves.masses, count, deadline=deadline, keeper=self._keeper.part("exemplars"))

    def _watched(self, stages: Iterator[int]) -> Iterator[int]:
        return track(self, stages, total=max(0, self.n_clusters_ - 1), what="clusters")

    def _store_path(self, path: CutPath) -> None:
        self.labels_ = path.labels[-1].astype(np.intp)
        self.labels_path_ = np.stack(path.labels)
        self.cut_path_ = np.array(path.values)
        self.objective_path_ = self.cut_path_
        self.cut_value_ = path.values[-1]
        self.objective_ = self.cut_value_
        self.n_iter_ = len(path.labels)
        self.converged_ = path.complete
        if not path.complete:
            warn(
                f"The search ended early (time_budget={self.time_budget}); the result is the best found so far. "
                "Raise time_budget, or use search='fast'.",
                ConvergenceWarning,
            )
