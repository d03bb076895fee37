"""The base of convex mixtures: what a fit stores, and how new samples are assigned and scored."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.mixtures.exemplar_choice import Exemplars, choose_exemplars
from kernelweave.estimators.mixtures.fitted_views import FittedView, log_normalizers
from kernelweave.estimators.mixtures.model import MixtureModel, mixture_model, observed_in
from kernelweave.estimators.mixtures.refinement import refine_by_kernel_kmeans
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.fit_warnings import warn_if_empty
from kernelweave.estimators.shared.models import CenterModel, ObservedCenters
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.single_kernel import is_precomputed
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.foundation.errors import ConvergenceWarning, KernelError, ParameterError, ViewError, ViewWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.memory import rows_within
from kernelweave.foundation.sklearn_internals import Interval, StrOptions
from kernelweave.inputs import Views, read_weights
from kernelweave.kernels.divergences import BREGMAN
from kernelweave.solvers.mixtures.priors import Priors
from kernelweave.solvers.mixtures.view_mixture import ViewMixture

# Divergences of samples from exemplars that are held at a time.
ASSIGNED = 2**17
# Arrays of the size of the divergences of new samples from components while posteriors are computed.
ROWS_HELD = 6
# Copies of the new samples meanwhile: in double precision, moved, and taken for products.
SAMPLES_HELD = 3
#: Rules of the parameters both mixtures have.
MIXTURE_RULES: dict[str, list[Any]] = {
    **rules("max_iter", "memory_limit", "checkpoint", "random_state", "verbose"),
    "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
    "beta_scale": [Interval(Real, 0, None, closed="neither")],
    "smoothing": [Interval(Real, 0, 1, closed="left")],
    "normalizer": [StrOptions({"gaussian"}), None],
    "solver": [StrOptions({"em", "newton", "auto"})],
    "refine": [StrOptions({"kernel_kmeans"}), None],
}


def _has_posteriors(estimator: "MixtureClusterer") -> bool:
    if estimator.refine is not None:
        raise AttributeError(
            f"After refine={estimator.refine!r} the nearest centre decides and there are no posterior probabilities. "
            "Set refine=None for predict_proba."
        )
    return True


def _has_likelihoods(estimator: "MixtureClusterer") -> bool:
    model: MixtureModel | None = getattr(estimator, "_model", None)
    relative = _names_divergence(estimator.divergence, "kernel") and is_precomputed(estimator.kernel)
    if not model.absolute if model else relative:
        raise AttributeError(
            "With kernel='precomputed' the rows of new samples do not hold k(x, x), so their likelihood is not known. "
            "predict works; for score pass features and a kernel name."
        )
    return True


def _names_divergence(divergence: Any, name: str) -> bool:
    """Whether a divergence, or that of some view, is the one named."""
    if isinstance(divergence, str):
        return divergence == name
    return name in (divergence.values() if isinstance(divergence, dict) else divergence)


@answers_lazily("predict", "predict_proba")
class MixtureClusterer(Clusterer):
    """Base of the convex mixtures; ``fit`` stores the ``_model``, and the ``_centers`` of kernel k-means after it."""

    _objective = "maximize"
    _model: MixtureModel
    _centers: CenterModel | ObservedCenters | None

    @abstractmethod
    def _read_new(self, X: Any) -> Sequence[Matrix] | Views:
        """Return new samples, checked, view by view."""

    def predict(self, X: Any) -> Ints:
        """Return the most probable cluster of new samples; after ``refine``, the nearest centre.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples; with ``divergence="precomputed"`` their divergences from the training samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Position of the exemplar in ``exemplar_indices_``.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        samples: Any = self._read_new(X)
        if self._centers is not None:
            return self._centers.assign(samples)
        return self._over_posteriors(samples, lambda logs: logs.argmax(axis=1))

    @available_if(_has_posteriors)
    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior probabilities of the clusters for new samples.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples.

        Returns
        -------
        probabilities : ndarray of shape (n_new, n_clusters)
            They add up to 1 over the exemplars chosen.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._over_posteriors(
            self._read_new(X), lambda logs: np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        )

    @available_if(_has_likelihoods)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of samples under the fitted mixture, all its components counted.

        On the training samples it is ``objective_``. It compares samples, and models of the same divergence and beta;
        other values of beta are comparable only with ``normalizer="gaussian"``, which makes densities of the
        components.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            Samples; with ``divergence="precomputed"`` their divergences from the training samples.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_new,), default=None
            Weights of the samples; one of weight 2 counts as two.

        Returns
        -------
        score : float
            The weighted mean; -inf where no component has a probability for some sample.
        """
        check_is_fitted(self)
        samples = self._read_new(X)
        model = self._model
        n = _count(samples)
        weights = read_weights(sample_weight, n)
        logs = np.empty(n)
        counts = np.empty(n)
        for rows in self._row_ranges(samples):
            some = _rows_of(samples, rows)
            observed = observed_in(some)
            divergences = model.divergences(some)
            if observed is None:
                logs[rows] = model.log_likelihoods(divergences)
            else:
                logs[rows], counts[rows] = model.observed_log_likelihoods(divergences, observed)
        if observed_in(samples) is not None:
            weights = _counted(weights, counts)
        counted = weights > 0
        return float(weights[counted] @ logs[counted]) / float(weights.sum())

    def _n_columns(self, method: str) -> int | None:
        return None if method == "predict" else len(self.exemplar_indices_)

    def _row_ranges(self, samples: Sequence[Matrix] | Views) -> Iterator[slice]:
        """Yield ranges of new samples whose divergences from all components are within the limit of memory."""
        n = _count(samples)
        # Components that were moved are dense, and sparse samples become so to meet them.
        widths = [block.shape[1] for block in samples if self.smoothing > 0 or not sp.issparse(block)]
        numbers = ROWS_HELD * len(self._model.placements) * max(1, len(self._model.priors)) + SAMPLES_HELD * sum(widths)
        step = rows_within(self.memory_limit / 2, 8 * numbers, max(1, n))
        for start in range(0, n, step):
            yield slice(start, min(start + step, n))

    def _over_posteriors(self, samples: Sequence[Matrix] | Views, answer: Callable[[Floats], Any]) -> Any:
        """Return what ``answer`` makes of the logarithms of the posteriors, some samples at a time."""
        model = self._model
        if model.compares_views and not model.absolute:
            raise KernelError(
                "Rows of precomputed kernels do not hold k(x, x) of new samples, which comparing views with learned "
                "weights needs. Pass features and a kernel name, or use view_weights='uniform' or "
                "refine='kernel_kmeans'."
            )
        observed = observed_in(samples)
        unrelated = None if observed is None else model.unrelated(observed)
        answers = []
        n_unrelated = 0
        for rows in self._row_ranges(samples):
            some = _rows_of(samples, rows)
            logs = model.log_posteriors(model.divergences(some), observed_in(some))
            excluded = ~np.isfinite(logs.max(axis=1))
            if unrelated is not None and excluded.any():
                alone = unrelated[rows]
                n_unrelated += int(np.count_nonzero(alone))
                with np.errstate(divide="ignore"):
                    logs[alone] = np.log(model.exemplar_priors)  # nothing else is known about their cluster
                excluded &= ~alone
            if excluded.any():
                raise ParameterError(
                    f"Sample {rows.start + int(np.argmax(excluded))} of X has an infinite divergence from every "
                    f"exemplar, so no cluster can have produced it. {_remedy(self.smoothing)}"
                )
            answers.append(answer(logs))
        _warn_if_unrelated(n_unrelated)
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def _store_fit(
        self,
        views: Sequence[FittedView],
        solution: Priors | ViewMixture,
        weights: Floats,
        *,
        view_weights: Floats,
        mixes_views: bool,
    ) -> None:
        """Store what a solution says, choose the exemplars, and assign the training samples."""
        constants = log_normalizers(views, self.normalizer)
        # A mixture of views has the normalisers in its likelihood; elsewhere they are a constant that is added here.
        mean_constant = _mean_normalizer(views, constants, view_weights, weights)
        constant = 0.0 if mixes_views and len(views) > 1 else mean_constant
        counted = np.flatnonzero(weights > 0)
        self.priors_: Floats = np.zeros(len(weights))
        self.priors_[counted] = solution.values
        self.log_likelihood_ = solution.log_likelihood + constant
        self.objective_ = self.log_likelihood_
        self.objective_path_ = np.array(solution.history) + constant
        self.optimality_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        _warn_if_unfinished(solution, self.max_iter)
        likely = counted[np.argsort(-np.round(solution.gradient, 12), kind="stable")]
        exemplars = choose_exemplars(views, self.priors_, likely, self.n_clusters)
        _warn_if_filled(exemplars, self.n_clusters)
        self.exemplar_indices_ = exemplars.indices
        self._model, support = mixture_model(
            views,
            self.priors_,
            exemplars,
            log_normalizers=constants,
            view_weights=view_weights,
            mixes_views=mixes_views,
        )
        observed = _observed_by(views, len(weights))
        labels, excluded = self._assigned(views, support, observed, len(weights))
        self.labels_ = _exemplars_with_themselves(labels, exemplars)
        excluded[exemplars.indices] = False
        self._warn_of_defaults(excluded, observed, weights)
        self._refine(views, weights, view_weights)

    def _assigned(
        self, views: Sequence[FittedView], support: Ints, observed: Bools | None, n_samples: int
    ) -> tuple[Ints, Bools]:
        """Return the likeliest exemplar of every sample, and which samples none could have produced; some at a time."""
        labels = np.empty(n_samples, dtype=np.intp)
        excluded = np.empty(n_samples, dtype=bool)
        step = max(1, ASSIGNED // max(1, len(support)))
        for start in range(0, n_samples, step):
            rows = np.arange(start, min(start + step, n_samples))
            seen = None if observed is None else observed[rows]
            logs = self._model.log_posteriors([view.divergences(rows, support) for view in views], seen)
            labels[rows] = logs.argmax(axis=1)
            excluded[rows] = ~np.isfinite(logs.max(axis=1))
        return labels, excluded

    def _warn_of_defaults(self, excluded: Bools, observed: Bools | None, weights: Floats) -> None:
        """Warn of samples that no exemplar could have produced, and of those that no exemplar shares a view with."""
        if observed is not None:
            unrelated = excluded & self._model.unrelated(observed)
            _warn_if_unrelated(int(np.count_nonzero(unrelated)))
            excluded &= ~unrelated
        _warn_if_excluded(int(np.count_nonzero(excluded & (weights > 0))))

    def _refine(self, views: Sequence[FittedView], weights: Floats, coefficients: Floats) -> None:
        """Run kernel k-means from the labels where ``refine`` asks for it."""
        self.__dict__.pop("inertia_", None)
        self._centers = None
        if self.refine is None:
            return
        n_clusters = len(self.exemplar_indices_)
        options: dict[str, Any] = {"n_clusters": n_clusters, "memory_limit": self.memory_limit}
        descent, self._centers = refine_by_kernel_kmeans(views, self.labels_, weights, coefficients, **options)
        self.labels_ = descent.labels
        self.inertia_ = descent.objective


def set_mixture_tags(tags: Any, divergence: Any, kernel: Any, views: Any = None) -> None:
    """Set the input tags of a convex mixture; divergences that differ between views say nothing about one table."""
    single = divergence if isinstance(divergence, str) else None
    matrix = single == "precomputed" or (single == "kernel" and isinstance(kernel, str) and kernel == "precomputed")
    tags.sparse = single in ("sqeuclidean", "kernel")
    tags.pairwise = matrix and views is None
    tags.positive_only = single in BREGMAN and single != "sqeuclidean"


def _exemplars_with_themselves(labels: Ints, exemplars: Exemplars) -> Ints:
    """Return the labels with every exemplar in the cluster it stands for."""
    labels[exemplars.indices] = np.arange(len(exemplars.indices))
    return labels


def _count(samples: Sequence[Matrix] | Views) -> int:
    return samples.n_samples if isinstance(samples, Views) else int(samples[0].shape[0])


def _rows_of(samples: Sequence[Matrix] | Views, rows: slice) -> Sequence[Matrix] | Views:
    """Return some of the samples, in every view."""
    return samples.take(rows) if isinstance(samples, Views) else [block[rows] for block in samples]


def _remedy(smoothing: float) -> str:
    if smoothing > 0:
        return "A feature that was the same in all training samples excludes other values; leave that feature out."
    return "Fit with smoothing above 0, which leaves every component some probability for any value."


def _warn_if_excluded(n_excluded: int) -> None:
    if n_excluded:
        warn(
            f"{n_excluded} samples have an infinite divergence from every exemplar and were put into the first "
            "cluster. Raise n_clusters or set smoothing.",
            ConvergenceWarning,
        )


def _warn_if_unrelated(n_unrelated: int) -> None:
    if n_unrelated:
        warn(
            f"{n_unrelated} samples share no view that has a weight with any exemplar and were put into the first "
            "cluster, that of the largest prior. Raise n_clusters, which adds exemplars, or leave out the views that "
            "they are in.",
            ViewWarning,
        )


def _counted(weights: Floats, counts: Floats) -> Floats:
    """Return the weights of samples times what each counts; some must count."""
    together = weights * counts
    if not together.any():
        raise ViewError(
            f"All {len(weights)} samples of X are in views of weight 0 alone (see view_weights_), which have no part "
            "in the likelihood. Pass samples with other views."
        )
    return together


def _observed_by(views: Sequence[FittedView], n_samples: int) -> Bools | None:
    """Return which samples each view has, shape (n_samples, V); None where it has all."""
    if all(view.samples is None for view in views):
        return None
    everyone = np.arange(n_samples)
    return np.stack([view.places(everyone)[0] for view in views], axis=1)


def _mean_normalizer(views: Sequence[FittedView], constants: Floats, view_weights: Floats, weights: Floats) -> float:
    """Return the mean of the views' constants in the objective: each counts as often as samples are in the view."""
    observed = _observed_by(views, len(weights))
    if observed is None:
        return float(view_weights @ constants)
    counts = view_weights * (weights @ observed)
    return float(counts @ constants / counts.sum())


def _warn_if_unfinished(solution: Priors | ViewMixture, max_iter: int) -> None:
    if solution.converged:
        return
    if solution.n_iter < max_iter:
        why = (
            f"after {solution.n_iter} steps: no step raises the likelihood by more than rounding errors. "
            "Raise tol to accept "
            "this."
        )
    else:
        why = f"before it settled (max_iter={max_iter}). Raise max_iter or tol, or use solver='auto'."
    warn(f"The mixture stopped with an optimality gap of {solution.gap:.2g} {why}", ConvergenceWarning)


def _warn_if_filled(exemplars: Exemplars, n_clusters: int | None) -> None:
    """Warn that fewer samples than clusters have a prior, and that even equal ones could not make up for them."""
    if n_clusters is None:
        return
    count = len(exemplars.indices)
    n_filled = exemplars.n_without_prior
    if n_filled:
        warn(
            f"Only {count - n_filled} samples have a prior above zero, fewer than n_clusters={count}; the other "
            f"{n_filled} exemplars are those closest to having one and form clusters of their own. "
            "Raise beta_scale for "
            "more clusters.",
            ConvergenceWarning,
        )
    warn_if_empty(np.arange(n_clusters) < count, n_clusters)
