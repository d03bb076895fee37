"""How good a clustering is by what it was made of, without true labels.

silhouette  how much nearer samples lie to their own cluster than to the next, with distances between the samples as
            they are given: the same for every kernel that is tried (describe/silhouettes.py says more)
blf, baf    how well the scores of a kernel spectral model lie on lines, or point one way, and how equal the clusters
            are in size
Several     every view is judged by itself; the result is the mean
views
Source      Houthuys, Langone and Suykens, Information Fusion 44, 2018, section 3.4
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave.evaluation.describe.clustering import final_step
from kernelweave.evaluation.describe.silhouettes import WORST, Yardstick
from kernelweave.evaluation.describe.views import takes_graph
from kernelweave.evaluation.metrics.scores import balanced_angular_fit, balanced_line_fit
from kernelweave.evaluation.sampling import MOST_JUDGED
from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState

Criterion = Literal["silhouette", "blf", "baf"]


def score_clustering(
    estimator: Any,
    X: Any,
    *,
    criterion: Criterion | Callable[[Any, Any], float] = "silhouette",
    eta: float = 0.75,
    metric: str = "euclidean",
    sample_size: int | None = MOST_JUDGED,
    random_state: RandomState = None,
) -> float:
    """Score a fitted clustering without true labels.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator, or a pipeline that ends in one.
    X : array-like or views
        The samples it was fitted on, in the same order.
    criterion : {"silhouette", "blf", "baf"} or callable, default="silhouette"
        ``"silhouette"`` works with every estimator; the balanced line fit and the balanced angular fit use the
        scores of kernel spectral clustering. A callable takes the fitted estimator and X and returns a number,
        larger for better.
    eta : float, default=0.75
        Weight of the fit against the balance of cluster sizes, for ``"blf"`` and ``"baf"``.
    metric : str, default="euclidean"
        Distance between samples for ``"silhouette"``, one of :func:`sklearn.metrics.pairwise_distances`; ``"cosine"``
        suits text. Kernel matrices have the distances of their feature space.
    sample_size : int or None, default=2000
        Number of samples drawn for ``"silhouette"``, whose cost grows with its square; None means all.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    score : float
        Larger is better: silhouettes lie in [-1, 1], line fits in [0, 1], angular fits in [-eta, 1]. The mean over the
        views where there are several.

    Notes
    -----
    The silhouette measures distances between samples as they are given, not in the kernel's feature space: there the
    distances would change with the very parameters that are compared. Steps of a pipeline before the estimator do not
    change it either: scale X first where columns differ in scale.

    With two clusters the line fit pairs the only score with the row sums of the kernel. Eigenvectors have no
    scale, so both are divided by their root mean square first; otherwise the larger one alone would determine the line.

    With two clusters of one view, the angular fit is the balance alone: a single score always points in the direction
    of its sign. Choose an eta near 1 if clusters may differ in size.

    Examples
    --------
    >>> from kernelweave import KernelSpectralClustering
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.model_selection import score_clustering
    >>> X, _ = make_two_rings(random_state=0)
    >>> model = KernelSpectralClustering(2, kernel_params={"sigma": 0.3}).fit(X)
    >>> round(score_clustering(model, X, criterion="blf", eta=1.0), 3)
    1.0
    """
    check_clusterer(estimator)
    check_is_fitted(final_step(estimator))
    judge = judge_for(estimator, X, criterion, eta, metric, sample_size, random_state)
    return judge(estimator)


def judge_for(
    estimator: Any, X: Any, criterion: Any, eta: Any, metric: str, sample_size: Any, random_state: RandomState
) -> Callable[[Any], float]:
    """Return the function that scores fitted copies of ``estimator``; what X alone decides is computed once."""
    if hasattr(X, "__next__"):
        raise ParameterError("X is an iterator, which can be read only once; pass arrays.")
    if callable(criterion):
        return lambda model: _number(criterion(model, X))
    if criterion not in get_args(Criterion):
        raise ParameterError(
            f"criterion={criterion!r} is not known: use 'silhouette', 'blf', 'baf' or a function of a fitted estimator "
            "and X."
        )
    if criterion == "silhouette":
        _refuse_graphs(final_step(estimator))
        return Yardstick.for_estimator(estimator, X, metric, sample_size, random_state).score
    if isinstance(eta, bool) or not isinstance(eta, Real) or not 0 <= float(eta) <= 1:
        raise ParameterError(f"eta={eta!r} must be a number from 0 to 1.")
    return BalancedFit(criterion, float(eta))


def check_clusterer(estimator: Any) -> None:
    """Refuse what is not an estimator, or a class instead of an object."""
    known = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    if isinstance(estimator, type) or not known:
        raise ParameterError(f"estimator={estimator!r} is not an estimator: pass one, such as KernelKMeans(3).")


def _refuse_graphs(final: Any) -> None:
    if takes_graph(final):
        raise ParameterError(
            f"criterion='silhouette' needs distances between samples, and {type(final).__name__} takes a graph. Pass a "
            "function of the fitted estimator and X, such as lambda model, A: -model.cut_value_."
        )


@dataclass(frozen=True)
class BalancedFit:
    """Balanced line fit or balanced angular fit of the training scores."""

    criterion: str
    eta: float
    measures: dict[str, Any] = field(default_factory=lambda: {"blf": balanced_line_fit, "baf": balanced_angular_fit})

    def __call__(self, model: Any) -> float:
        """Return the mean over the views."""
        final = final_step(model)
        if not hasattr(final, "codebook_"):
            raise ParameterError(
                f"criterion={self.criterion!r} looks at the scores of kernel spectral clustering, and "
                f"{type(final).__name__} has none. Use criterion='silhouette', or a function."
            )
        k = final.n_clusters
        if k < 2:
            return WORST
        scores = final.scores_ if final.scores_.ndim == 3 else final.scores_[None]
        degrees = np.atleast_2d(final.degrees_)
        labels = np.atleast_2d(getattr(final, "view_labels_", final.labels_))[:, final.train_indices_]
        codes = np.broadcast_to(labels, (len(scores), labels.shape[1]))
        extra: list[dict[str, Any]] = [{}] * len(scores)
        if self.criterion == "blf" and k == 2:
            scores = [_to_unit(each) for each in scores]
            extra = [{"kernel_row_sums": _to_unit(each)} for each in degrees]
        measure = self.measures[self.criterion]
        views = zip(scores, codes, extra, strict=True)
        return float(np.mean([measure(*view, eta=self.eta, n_clusters=k, **more) for *view, more in views]))


def _to_unit(values: Floats) -> Floats:
    """Divide by the root mean square, unless that is zero."""
    size = float(np.sqrt(np.mean(values**2)))
    return values / size if size > 0 else values


def _number(score: Any) -> float:
    if isinstance(score, str) or np.ndim(score) or not np.isfinite(np.asarray(score, dtype=np.float64)):
        raise ParameterError(f"criterion returned {score!r}; it must return a finite number.")
    return float(score)
