"""Non-negative factors of several views drawn to a common one."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from kernelweave.estimators.comparators.view_features import best_run, check_not_negative
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.fit_warnings import (
    warn_if_clusters_follow_absence,
    warn_if_empty,
    warn_if_unfinished,
)
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, fit_context
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.inputs import Views, check_cluster_count, per_view, read_views
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.comparators.multi_view_nmf import (
    Factors,
    consensus_labels,
    joint_factors,
    nmf_start,
)
from kernelweave.solvers.comparators.observed_starts import SharedDistances, masked_start


class MultiViewNMF(Clusterer):
    """Multi-view NMF of Liu, Wang, Gao and Han: non-negative factors of the views, pulled towards a common one.

    Every view is the product of two non-negative matrices: how much of each topic a sample has, and how a topic shows
    in the features of the view. The first of them is pulled towards a common matrix, whose rows are then clustered. For
    counts, frequencies and other amounts; a baseline for methods that weight views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of topics.
    regularization : float, or list or dict of floats, default=0.01
        How strongly a view is pulled towards the common matrix, for all views or per view; above 0. A view with a
        larger value also has more influence on that matrix. The source uses 0.01 throughout.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and the objective is summed over the others.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    n_init : int, default=5
        Number of starts, each by samples drawn far apart (over the views that two samples have in common); the run with
        the lowest objective is kept.
    max_iter : int, default=1000
        Maximum number of rounds of one run.
    tol : float, default=1e-6
        Fall of the objective in a round at which a run ends, as a share of the squares of all entries of the views.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for the starts. The same seed gives the same labels with any number of threads.
    verbose : int, default=0
        1 shows a progress bar over the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample: k-means of the rows of ``consensus_``, each scaled to unit length.
    consensus_ : ndarray of shape (n_samples, n_clusters)
        The common matrix: how much of each topic a sample has.
    sample_factors_ : list of ndarray of shape (n_samples, n_clusters)
        The same in each view; NaN for samples that are absent from it.
    components_ : list of ndarray of shape (n_clusters, n_features_v)
        How topics show in the features of each view; every topic adds up to 1.
    observed_ : ndarray of shape (n_samples, n_views), bool
        Which samples each view had.
    view_names_ : list of str
        Names of the views.
    view_weights_ : ndarray of shape (n_views,)
        Equal weights for all views, apart from ``regularization``.
    objective_ : float
        Squared errors of the products, every view having sum 1, and ``regularization`` times the squared distances of
        the sample factors from the common matrix, summed over the views; it is minimised. A view that lacks samples
        has the share of samples that it has as its sum.
    objective_path_ : ndarray
        Its value for the start and after every round; it never increases.
    n_iter_ : int
        Number of rounds of the best run.
    converged_ : bool
        Whether ``tol`` was met before ``max_iter``.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewKMeans : Views that exchange partitions, for features of any sign.
    MultiViewKernelKMeans : One partition and learned weights of the views.
    sklearn.decomposition.NMF : Factors of one view.

    Notes
    -----
    Cost: O((nnz + n k + d k) k) per iteration, where nnz is the number of entries of X that are not zero in sparse
    views, which stay sparse; starts run in parallel. There is no ``predict``: the common matrix belongs to the training
    samples.

    The source leaves open whether a sample goes to its largest topic or k-means clusters the rows. Here it is k-means,
    because topics need not be clusters; rows have unit length because a long text has more of everything. Samples that
    differ in length alone are therefore equal. An entry of a factor that is zero stays zero, and other starts may
    end in other factors.

    A sample that is absent from a view has no row in its factors. Its row of the common matrix is the mean over the
    views it is in, weighted by ``regularization``; samples are equally heavy in all views.

    Source: PhD 1.2.3, a baseline in MVKSC 4.2; J. Liu, C. Wang, J. Gao and J. Han, "Multi-view clustering via joint
    nonnegative matrix factorization", SDM 2013. There a view runs to its end before the common matrix is updated; here
    the common matrix follows every round. There all views have all samples.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MultiViewNMF
    >>> words = np.array([[4, 3, 0, 0], [5, 4, 1, 0], [0, 1, 6, 5], [0, 0, 4, 4]])
    >>> links = np.array([[2, 0, 1], [3, 0, 0], [0, 4, 0], [0, 2, 1]])
    >>> labels = MultiViewNMF(2, random_state=0).fit([words, links]).labels_
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "regularization": [Interval(Real, 0, None, closed="neither"), list, tuple, dict],
        **view_rules(
            "n_clusters", "missing", "views", "n_init", "max_iter", "tol", "checkpoint", "random_state", "verbose"
        ),
    }

    _takes_absent = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        regularization: Any = 0.01,
        missing: str = "error",
        views: Any = None,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-6,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.regularization = regularization
        self.missing = missing
        self.views = views
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _set_input_tags(self, tags: Any) -> None:
        tags.sparse = True
        tags.positive_only = True
        tags.allow_nan = self.missing != "error"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "MultiViewNMF":
        """Find the factors and cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. No value may be negative. A row of NaN means that the sample is absent from the
            view.
        y : None
            Ignored.

        Returns
        -------
        self : MultiViewNMF
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        check_cluster_count(self.n_clusters, np.ones(views.n_samples))
        keep_run(self, views)
        strengths = _strengths(self.regularization, views.names)
        blocks = _scaled(views)
        samples = None if views.observed is None else [views.present(v) for v in range(len(views))]
        start = _start(views.names, blocks, samples, self.n_clusters)
        options: dict[str, Any] = {"n_clusters": self.n_clusters, "max_iter": self.max_iter, "tol": self.tol}

        def run(rng: np.random.Generator, _: Keeper) -> Factors:
            return joint_factors(blocks, strengths, start(rng), samples, **options)

        best = best_run(self, run, streams(self.random_state, self.n_init), X, y, Factors)
        (rng,) = streams(self.random_state, 1, "rounding")
        with single_threaded_blas():
            self.labels_: Ints = consensus_labels(best.consensus, self.n_clusters, rng).labels
        self.consensus_: Floats = best.consensus
        self.sample_factors_ = [_of_all(factor, views, v) for v, factor in enumerate(best.samples)]
        self.components_ = [np.ascontiguousarray(factor.T) for factor in best.features]
        self.view_weights_: Floats = np.full(len(views), 1.0 / len(views))
        self.objective_ = best.objective
        self.objective_path_ = np.array(best.history)
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        warn_if_unfinished(best.converged, self.max_iter, "factors")
        warn_if_empty(np.bincount(self.labels_, minlength=self.n_clusters), self.n_clusters)
        warn_if_clusters_follow_absence(self.labels_, views.observed, 0)
        return self


def _scaled(views: Views) -> list[Matrix]:
    """Return the samples of every view, divided so that the sum is the share of samples it has, 1 where it has all.

    A view of zeros alone stays as it is.
    """
    blocks = []
    for v, (name, block) in enumerate(zip(views.names, views, strict=True)):
        there = block if views.observed is None else block[views.present(v)]
        check_not_negative(name, there, "MultiViewNMF")
        share = there.shape[0] / views.n_samples
        blocks.append(there / (float(there.sum()) / share or 1.0))
    return blocks


def _start(
    names: tuple[str, ...], blocks: Sequence[Matrix], samples: Sequence[Ints] | None, n_clusters: int
) -> Callable[[np.random.Generator], Ints]:
    """Return what draws a starting partition: samples are as far apart as their rows of unit length."""
    rows = tuple(normalize(block) for block in blocks)
    if samples is None:
        joined = FeatureKernel(Views(names, rows).joined())
        return lambda rng: nmf_start(joined, n_clusters, rng)
    distances = SharedDistances([FeatureKernel(block) for block in rows], samples)
    return lambda rng: masked_start(distances, n_clusters, rng)


def _of_all(factor: Floats, views: Views, view: int) -> Floats:
    """Return the sample factors of a view with rows of NaN for the samples that it lacks."""
    if views.observed is None:
        return factor
    rows = np.full((views.n_samples, factor.shape[1]), np.nan)
    rows[views.present(view)] = factor
    return rows


def _strengths(regularization: Any, names: Sequence[str]) -> list[float]:
    """Return the regularisation of every view."""
    values = per_view(regularization, names, "regularization")
    for name, value in zip(names, values, strict=True):
        if isinstance(value, bool | str) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise ParameterError(f"regularization={value!r} of view {name!r} must be a number above 0.")
    return [float(value) for value in values]
