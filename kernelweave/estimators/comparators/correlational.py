"""The correlational spectral clustering estimator."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.embedding import EmbeddingClusterer, Extension
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.scores import CentredScores, TrainedKernel
from kernelweave.estimators.shared.view_kernels import (
    fit_view_kernels,
    read_kernel_views,
    scale_factors,
    set_view_kernel_tags,
)
from kernelweave.estimators.shared.view_numbers import view_numbers
from kernelweave.foundation.array_types import Floats, Matrix
from kernelweave.foundation.memory import check_matrices, matrices_mib
from kernelweave.foundation.sklearn_internals import Interval, fit_context
from kernelweave.inputs import Views, check_cluster_count, per_view
from kernelweave.kernels.spec.fitting import feature_columns
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.solvers.comparators.correlational import has_small_factor, kernel_cca

# Matrices of size n x n that a kernel takes at most, the stored one and its eigenvectors among them; measured.
MATRICES = 3.5
# Tables of the size of its features that a kernel of few features takes: these and its directions. And those that pass
# while the widest one is decomposed: centred features, LAPACK's copy of them, and what it returns.
FACTORS = 2
PASSING_FACTORS = 3
# Matrices of all pairs of these features beside them: LAPACK's room, and the vectors of the other side.
SQUARES = 5


@dataclass(frozen=True)
class ProjectedViews(Extension):
    """The projections of all views side by side."""

    projections: tuple[CentredScores, ...]

    def embed(self, views: Iterable[Matrix]) -> Floats:
        """Return the projections of samples."""
        return np.hstack([view.scores(X) for view, X in zip(self.projections, views, strict=True)])


class CorrelationalSpectralClustering(EmbeddingClusterer):
    """Correlational spectral clustering: k-means on the projections that kernel canonical correlation analysis finds.

    Looks for directions in the feature spaces of the views along which the projections of the samples correlate,
    puts the projections of all views side by side and clusters them by k-means. A baseline: all views have equal
    weight. One view gives k-means on its kernel principal components, all scaled to nearly the same spread.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    regularization : float, list or dict, default=0.1
        kappa, between 0 and 1, for all views or one for each: variances are (1 - kappa) K_v^2 + kappa K_v, K_v centred
        and of trace 1. Directions that hold a smaller share of a view's variance than kappa count little; with 0, views
        of as many features as samples agree in everything.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="linear"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    n_init : int, default=10
        Number of starts of k-means.
    n_components : int, default=None
        Number of directions; None takes ``n_clusters``. Fewer are kept where no more correlations are above zero.
    memory_limit : float, default=2048
        Memory in MiB that the stored kernels and their decompositions may take.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for k-means. The same seed gives the same labels with any number of threads.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    correlations_ : ndarray of shape (n_directions,)
        Mean regularised correlation of the projections of two views, largest first, at most 1.
    embedding_ : ndarray of shape (n_samples, n_views * n_directions)
        Projections of all views side by side; the input of k-means.
    objective_ : float
        Sum of the correlations; it is maximised.
    objective_path_, n_iter_, converged_ : ndarray of one value, 1, True
        There are no iterations.
    view_weights_ : ndarray of shape (n_views,)
        Equal weights for all views.
    view_names_ : list of str
        Names of the views.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewKernelSpectralClustering : A weighted form of the same problem, clusters from signs.
    CoRegularizedSpectralClustering : Eigenvectors of affinities made to agree.

    Notes
    -----
    Cost: for linear kernels of d < n columns O(n d^2), else one eigenproblem of size n for every view; then one of the
    size of all numerical ranks together. Rows are not scaled. A kernel that is not positive semidefinite loses its
    negative directions. PhD 3.4.1 finds kappa by a grid search and clusters the projections of each view by themselves;
    here they are taken together, and kernels are divided by their traces, so that one kappa suits all.

    Source: M. Blaschko and C. Lampert, "Correlational spectral clustering", CVPR 2008; PhD 1.2.3 and 3.4.1.

    Examples
    --------
    >>> from kernelweave import CorrelationalSpectralClustering
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> data = make_corrupted_views(3, 0, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = CorrelationalSpectralClustering(3, random_state=0).fit(data.views)
    >>> normalized_mutual_info(data.target, model.labels_) > 0.6
    True
    >>> bool((model.predict(data.views) == model.labels_).all())
    True
    """

    _objective = "maximize"

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "regularization": [Interval(Real, 0, 1, closed="both"), list, tuple, dict],
        **view_rules("n_clusters", "views", "kernel", "kernel_params", "n_init"),
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        **view_rules("memory_limit", "checkpoint", "random_state", "verbose"),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        regularization: Any = 0.1,
        views: Any = None,
        kernel: Any = "linear",
        kernel_params: Any = None,
        n_init: int = 10,
        n_components: int | None = None,
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.regularization = regularization
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_init = n_init
        self.n_components = n_components
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "CorrelationalSpectralClustering":
        """Find the directions, then cluster the projections.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. Kernel matrices if ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : CorrelationalSpectralClustering
            The fitted estimator.
        """
        views = read_kernel_views(self, X, reset=True)
        ones = np.ones(views.n_samples)
        check_cluster_count(self.n_clusters, ones)
        keep_run(self, views)
        kappas = view_numbers(self.regularization, views.names, "regularization", highest=1.0)
        self._check_memory(views.n_samples, 0, self._known_widths(views))
        fitted = fit_view_kernels(
            views, self.kernel, self.kernel_params, centre_features=True, weights=ones, memory_limit=self.memory_limit
        )
        blockwise = [kernel.operator("blockwise", self.memory_limit) for kernel in fitted.kernels]
        factors = [op.rank_bound for op in blockwise if has_small_factor(op)]
        self._check_memory(views.n_samples, len(views) - len(factors), factors)
        operators = fitted.operators("auto", self.memory_limit / len(views))
        centred = [CentredKernel(op) for op in operators]
        scale_factors(operators, ones, views.names)  # refuses a view in which all samples are equal
        n_stored = sum(not has_small_factor(op) for op in centred)
        widths = [op.rank_bound for op in centred if has_small_factor(op)]
        room = self.memory_limit - matrices_mib(MATRICES * n_stored, len(ones))
        room -= FACTORS * sum(widths) * len(ones) * 8 / 2**20
        result = kernel_cca(centred, kappas, self.n_components or self.n_clusters, room)
        self.correlations_: Floats = result.correlations
        self.objective_ = float(result.correlations.sum())
        self.objective_path_ = np.array([self.objective_])
        self.n_iter_ = 1
        self.converged_ = True
        self.view_weights_: Floats = np.full(len(views), 1.0 / len(views))
        extension = ProjectedViews(
            tuple(
                CentredScores.of(TrainedKernel(kernel.for_new_samples()), op, alphas)
                for kernel, op, alphas in zip(fitted.kernels, centred, result.alphas, strict=True)
            )
        )
        projections = [op.matmat(alphas) for op, alphas in zip(centred, result.alphas, strict=True)]
        self._round(extension, np.hstack(projections), X, y)
        return self

    def _known_widths(self, views: Views) -> list[int]:
        """Return the numbers of features, where they are fewer than samples and the names of kernels tell them."""
        specs = per_view(self.kernel, views.names, "kernel")
        params = per_view(self.kernel_params, views.names, "kernel_params")
        triples = zip(views.blocks, specs, params, strict=True)
        widths = [feature_columns(block.shape, spec, own, None, 0) for block, spec, own in triples]
        return [width for width in widths if width is not None and width < views.n_samples]

    def _check_memory(self, n_samples: int, n_stored: int, widths: Sequence[int]) -> None:
        """Raise where decompositions would not fit: of stored kernels, and of tables of so many features."""
        check_matrices(
            MATRICES * n_stored,
            n_samples,
            self.memory_limit,
            what=f"The decompositions of {n_stored + len(widths)} kernels",
            remedy="cluster some of the samples and predict the others, or use linear kernels of few columns",
            row_bytes=8 * (FACTORS * sum(widths) + PASSING_FACTORS * max(widths, default=0)),
            beside=8 * SQUARES * max(widths, default=0) ** 2,
        )

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)

    def _read_new(self, X: Any) -> Sequence[Matrix]:
        return read_kernel_views(self, X, reset=False).blocks
