"""Kernel and regularisation parameters chosen by simulated annealing, without true labels.

Objective   a criterion of the fitted clustering (silhouette, BLF, BAF or a function), as large as possible
Moves       in the unit cube; quantile functions of the distributions map its points to parameters, so that ranges,
            logarithmic scales, integers and lists of choices need no special treatment
Cost        one fit per point; what X alone decides (distances) is computed once
Source      Houthuys, Langone and Suykens, Information Fusion 44, 2018, section 3.4 and algorithm 3; the annealing is
            scipy.optimize.dual_annealing without its local search, which is of no use on a criterion made of steps
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from scipy.optimize import dual_annealing
from scipy.stats import rv_continuous, rv_discrete
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from kernelweave.evaluation.describe.clustering import final_step, labels_of
from kernelweave.evaluation.model_selection.criteria import check_clusterer, judge_for
from kernelweave.evaluation.sampling import MOST_JUDGED
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import streams

# Temperature to begin with: steps across the whole cube at first, a tenth of it after about a hundred points.
TEMPERATURE = 1.0
# Quantiles stay this far from 0 and 1, where unbounded distributions have none.
EDGE = 1e-9
# Energy of parameters that cannot be fitted: above that of any score.
REFUSED = 1e300


def _has(method: str) -> Callable[[Any], bool]:
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), method)


class AnnealingSearch(MetaEstimatorMixin, ClusterMixin, BaseEstimator):
    """Search for the parameters of a clustering without true labels, by simulated annealing.

    Parameters
    ----------
    estimator : estimator
        Any clusterer with ``labels_``, or a pipeline that ends in one. It is cloned, never changed.
    param_distributions : dict
        Parameter names and what to draw from: a distribution of :mod:`scipy.stats` (``loguniform(0.1, 10)``,
        ``randint(2, 10)``), a list of choices, or a dict or list that holds distributions, for parameters that are
        dicts or lists themselves: ``{"kernel_params": {"sigma": loguniform(0.1, 10)}}``,
        ``{"gamma": [loguniform(0.1, 100), loguniform(0.1, 100)]}``. Whatever else such a dict or list holds is passed
        on as it is.
    criterion : {"silhouette", "blf", "baf"} or callable, default="silhouette"
        The score to maximise; see :func:`score_clustering`.
    eta : float, default=0.75
        Weight of the fit against the balance of cluster sizes, for ``"blf"`` and ``"baf"``.
    metric : str, default="euclidean"
        Distance between samples for ``"silhouette"``.
    sample_size : int or None, default=2000
        Number of samples drawn for ``"silhouette"``, once for all points; None means all.
    n_iter : int, default=100
        Number of points to try, the first at the medians of the distributions. A repeated point is not fitted again.
    random_state : int, RandomState instance or None, default=None
        Seed for the moves and for the samples drawn; the estimator has its own.
    verbose : int, default=0
        1 shows a progress bar with the best score.

    Attributes
    ----------
    best_estimator_ : estimator
        The fitted estimator with the best score; the first in case of ties.
    best_params_ : dict
        Its parameters among those searched.
    best_score_ : float
        Its score.
    labels_ : ndarray of shape (n_samples,)
        Its labels.
    trace_ : dict
        ``"params"`` (list of dicts), ``"score"`` (NaN where the fit failed), ``"failure"`` (the error, or ""),
        ``"seconds"``: one entry per point that was fitted, in order.
    n_features_in_ : int
        As in ``best_estimator_``.

    See Also
    --------
    score_clustering : The criteria on their own.
    choose_n_clusters : A path over the number of clusters, everything else fixed.
    kernelweave.plots.SearchTraceDisplay : Draws ``trace_``.

    Notes
    -----
    Points that the estimator refuses (a gamma above its limit, fewer sign patterns than clusters) count as worst and
    are kept in ``trace_``; if all are refused, the first error is raised. Warnings of single fits are not shown.

    ``"silhouette"`` prefers round clusters of similar width, ``"blf"`` and ``"baf"`` sharp scores and, through eta,
    clusters of equal size. They need not agree; try more than one.

    Source: Houthuys, Langone and Suykens, Information Fusion 44, 2018, section 3.4.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from kernelweave import KernelSpectralClustering
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> from kernelweave.model_selection import AnnealingSearch
    >>> X, y = make_two_rings(random_state=0)
    >>> space = {"kernel_params": {"sigma": loguniform(0.05, 5.0)}}
    >>> search = AnnealingSearch(
    ...     KernelSpectralClustering(2), space, criterion="blf", eta=0.95, n_iter=20, random_state=0
    ... ).fit(X)
    >>> round(normalized_mutual_info(y, search.labels_), 2)
    1.0
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any],
        *,
        criterion: Any = "silhouette",
        eta: float = 0.75,
        metric: str = "euclidean",
        sample_size: int | None = MOST_JUDGED,
        n_iter: int = 100,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.criterion = criterion
        self.eta = eta
        self.metric = metric
        self.sample_size = sample_size
        self.n_iter = n_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> "AnnealingSearch":
        """Fit the estimator at one point after another and keep the best.

        Parameters
        ----------
        X : array-like or views
            What the estimator takes.
        y : None
            Ignored.

        Returns
        -------
        self : AnnealingSearch
            The search.
        """
        size = self._check()
        judge = judge_for(self.estimator, X, self.criterion, self.eta, self.metric, self.sample_size, self.random_state)
        trials = _Trials(self.estimator, self.param_distributions, X, judge, int(self.n_iter), bool(self.verbose))
        if size:
            moves = streams(self.random_state, 1, "annealing")[0]
            trials(np.full(size, 0.5))
            if self.n_iter > 1:
                _anneal(trials, size, int(self.n_iter) - 1, moves)
        else:
            trials(np.empty(0))
        trials.bar.close()
        if trials.best is None:
            raise trials.errors[0]
        self.best_estimator_, self.best_params_, self.best_score_ = trials.best
        self.trace_ = trials.trace()
        self.labels_: Ints = labels_of(final_step(self.best_estimator_))
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of features of the samples of ``fit``."""
        check_is_fitted(self, "best_estimator_")
        return int(self.best_estimator_.n_features_in_)

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Ints:
        """Call ``predict`` of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict(X))

    @available_if(_has("transform"))
    def transform(self, X: Any) -> Floats:
        """Call ``transform`` of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.transform(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _check(self) -> int:
        """Check the arguments; return the number of distributions."""
        check_clusterer(self.estimator)
        if not isinstance(self.param_distributions, Mapping) or not self.param_distributions:
            raise ParameterError(
                f"param_distributions={self.param_distributions!r} must be a dict of parameter names and what to draw "
                "from, such as {'n_clusters': randint(2, 10)}."
            )
        unknown = sorted(set(self.param_distributions) - set(self.estimator.get_params()))
        if unknown:
            raise ParameterError(
                f"param_distributions names {unknown[0]!r}, which {type(self.estimator).__name__} does not have; it "
                f"has {sorted(self.estimator.get_params())}."
            )
        if isinstance(self.n_iter, bool) or not isinstance(self.n_iter, Integral) or self.n_iter < 1:
            raise ParameterError(f"n_iter={self.n_iter!r} must be an integer of at least 1.")
        for name, spec in self.param_distributions.items():
            if isinstance(spec, rv_continuous | rv_discrete):
                raise ParameterError(
                    f"param_distributions[{name!r}] is a family of distributions; choose one of them, as in "
                    "loguniform(0.1, 10)."
                )
            if not _is_drawn(spec):
                raise ParameterError(
                    f"param_distributions[{name!r}]={spec!r} leaves no choice; give a distribution of "
                    "scipy.stats or a list of choices, or set the parameter on the estimator."
                )
        return sum(_count(spec) for spec in self.param_distributions.values())


def _anneal(trials: "_Trials", size: int, n_points: int, rng: np.random.Generator) -> None:
    # The first point of dual_annealing repeats the one in the middle of the cube, which costs nothing.
    dual_annealing(
        trials,
        [(0.0, 1.0)] * size,
        maxiter=n_points,
        maxfun=n_points + 1,
        initial_temp=TEMPERATURE,
        no_local_search=True,
        x0=np.full(size, 0.5),
        rng=rng,
    )


class _Trials:
    """The function to minimise: fits, judges, and remembers."""

    def __init__(
        self, estimator: Any, space: Mapping[str, Any], X: Any, judge: Callable[[Any], float], total: int, show: bool
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.X = X
        self.judge = judge
        self.known: dict[tuple[float, ...], float] = {}
        self.params: list[dict[str, Any]] = []
        self.scores: list[float] = []
        self.failures: list[str] = []
        self.seconds: list[float] = []
        self.errors: list[Exception] = []
        self.best: tuple[Any, dict[str, Any], float] | None = None
        self.bar = tqdm(total=total, desc="points", disable=not show)

    def __call__(self, point: Floats) -> float:
        """Return minus the score of the parameters at a point of the unit cube."""
        places = iter(np.clip(point, EDGE, 1.0 - EDGE).tolist())
        chosen: list[float] = []
        params = {name: _drawn(spec, places, chosen) for name, spec in self.space.items()}
        key = tuple(chosen)
        if key not in self.known:
            self.known[key] = self._try(params)
        if self.bar.n < (self.bar.total or 0):
            self.bar.update()
        return self.known[key]

    def trace(self) -> dict[str, Any]:
        """Return what was tried, in order."""
        return {
            "params": self.params,
            "score": np.array(self.scores),
            "failure": self.failures,
            "seconds": np.array(self.seconds),
        }

    def _try(self, params: dict[str, Any]) -> float:
        begun = time.perf_counter()
        score = np.nan
        failure = ""
        model = clone(self.estimator).set_params(**{name: clone(value, safe=False) for name, value in params.items()})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(self.X)
            score = self.judge(model)
        except ValueError as error:
            failure = str(error)
            self.errors.append(error)
        self.params.append(params)
        self.scores.append(score)
        self.failures.append(failure)
        self.seconds.append(time.perf_counter() - begun)
        if np.isnan(score):
            return REFUSED
        if self.best is None or score > self.best[2]:
            self.best = (model, params, score)
            self.bar.set_postfix_str(f"{score:.4g}", refresh=False)
        return -score


# What to draw from


def _is_distribution(spec: Any) -> bool:
    return hasattr(spec, "ppf")


def _is_choice(spec: Any) -> bool:
    return isinstance(spec, list | tuple | range | np.ndarray) and not any(_is_nested(value) for value in spec)


def _is_nested(spec: Any) -> bool:
    """Whether something is a distribution, or a dict or list that holds one."""
    if isinstance(spec, Mapping):
        return any(_is_nested(value) for value in spec.values())
    if isinstance(spec, list | tuple):
        return any(_is_nested(value) for value in spec)
    return _is_distribution(spec)


def _is_drawn(spec: Any) -> bool:
    return _is_nested(spec) or (_is_choice(spec) and len(spec) > 0)


def _count(spec: Any) -> int:
    """Return how many numbers of the unit cube a parameter takes."""
    if _is_distribution(spec) or _is_choice(spec):
        return 1
    if isinstance(spec, Mapping):
        return sum(_count(value) for value in spec.values() if _is_nested(value))
    return sum(_count(value) for value in spec if _is_nested(value))


def _drawn(spec: Any, places: Iterator[float], chosen: list[float]) -> Any:
    """Return the value of a parameter at the next places; ``chosen`` gets the numbers that decided it."""
    if _is_distribution(spec):
        value = float(spec.ppf(next(places)))
        chosen.append(value)
        return int(value) if isinstance(getattr(spec, "dist", None), rv_discrete) else value
    if _is_choice(spec):
        chosen.append(min(int(next(places) * len(spec)), len(spec) - 1))
        return spec[int(chosen[-1])]
    if isinstance(spec, Mapping):
        return {name: _drawn(each, places, chosen) if _is_nested(each) else each for name, each in spec.items()}
    return [_drawn(each, places, chosen) if _is_nested(each) else each for each in spec]
