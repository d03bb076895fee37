"""A number of clusters read off an inertia path, the objectives J_1, ..., J_M for 1 to M clusters.

Elbow       the k whose point lies deepest below the straight line from J_1 to J_M, both axes scaled to [0, 1]
Gap         the least k whose log-inertia lies as far below that of data without clusters as the next one's, or as
            any other's, within a standard error
Cost        none beyond the path itself; gap needs one more path per reference set
Source      elbow: Satopää, Albrecht, Irwin and Raghavan, "Finding a kneedle in a haystack", ICDCSW 2011
            gap: Tibshirani, Walther and Hastie, "Estimating the number of clusters in a data set via the gap
            statistic", J. R. Statist. Soc. B 2001
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_array, get_tags

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState, streams
from kernelweave.inputs import read_weights

Method = Literal["elbow", "gap", "gap_max"]
Box = Literal["principal", "features"]
# Points no deeper than this below the line, or paths that fall by no more than this share, are on the line.
EQUAL_TO_LINE = 1e-9


@dataclass(frozen=True, eq=False)
class SuggestedClusters:
    """A number of clusters read off an inertia path, with the scores of all other numbers.

    Attributes
    ----------
    n_clusters : int or None
        The suggested number; None if the path is inconclusive.
    method : {"elbow", "gap", "gap_max"}
        The rule that was used.
    scores : ndarray of shape (n_max,)
        One score per number of clusters, entry ``k - 1`` for k. ``"elbow"``: depth below the line, the largest
        wins. ``"gap"``: ``gap(k) - gap(k + 1) + gap_error(k + 1)``, NaN for the last k, which has no successor, and
        ``"gap_max"``: ``gap(k) - gap(m) + gap_error(m)`` with m the place of the largest gap; the first score that is
        not negative wins.
    gap, gap_error : ndarray of shape (n_max,) or None
        The gap statistic and its standard error; None with ``"elbow"``.
    """

    n_clusters: int | None
    method: Method
    scores: Floats
    gap: Floats | None = None
    gap_error: Floats | None = None


def suggest_n_clusters(
    inertia_path: Any, *, method: Method = "elbow", reference_paths: Any = None
) -> SuggestedClusters:
    r"""Read a number of clusters off an inertia path.

    Use ``"elbow"`` first: it needs only the path, but it depends on where the path ends, and it also finds
    an elbow in data without clusters. Where that matters, ``"gap"`` and ``"gap_max"`` compare the path with those of
    data that have no clusters, and can answer 1. ``"gap"``, the rule of its authors, stops at the first peak of the
    gap, which is too early if the first split of the data cuts through several groups. ``"gap_max"`` looks for the
    highest peak.

    Parameters
    ----------
    inertia_path : array-like of shape (n_max,), or fitted estimator
        Objectives for 1, 2, ..., ``n_max`` clusters, or an estimator that has them as ``inertia_path_``, such as
        :class:`~kernelweave.GlobalKernelKMeans`.
    method : {"elbow", "gap", "gap_max"}, default="elbow"
        The rule.
    reference_paths : array-like of shape (n_references, n_max), default=None
        Paths of data without clusters, from :func:`reference_inertia_paths`; required for the gap, not used otherwise.

    Returns
    -------
    suggestion : SuggestedClusters
        The number of clusters and the scores behind it. ``n_clusters`` is None if the path is inconclusive: it has
        no point below the line (``"elbow"``), or the gap still rises at its end. A longer path or another kernel width
        may help.

    See Also
    --------
    reference_inertia_paths : Paths of data without clusters.
    kernelweave.plots.InertiaPathDisplay : Plots a path with the suggestion.

    Notes
    -----
    With :math:`J_k` the objective for k clusters, M the length of the path and B reference paths :math:`J_k^b`:

    - elbow: :math:`\mathrm{score}(k) = \bigl(1 - \tfrac{k - 1}{M - 1}\bigr) - \tfrac{J_k - J_M}{J_1 - J_M}`, and the
      k with the largest score, the first of equals;
    - gap: :math:`\mathrm{gap}(k) = \tfrac{1}{B} \sum_b \log J_k^b - \log J_k`, with standard error :math:`s_k`, the
      standard deviation of :math:`\log J_k^b` over b (dividing by B) times :math:`\sqrt{1 + 1/B}`; the least k with
      :math:`\mathrm{gap}(k) \ge \mathrm{gap}(k + 1) - s_{k + 1}`;
    - gap_max: the least k with :math:`\mathrm{gap}(k) \ge \mathrm{gap}(m) - s_m`, where :math:`\mathrm{gap}(m)` is the
      largest.

    Cost: O(M) and O(B M); the reference paths cost one fit each.

    Source: Satopää et al., ICDCSW 2011 (elbow); Tibshirani, Walther and Hastie, J. R. Statist. Soc. B 2001 (gap).

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import GlobalKernelKMeans
    >>> from kernelweave.model_selection import reference_inertia_paths, suggest_n_clusters
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> model = GlobalKernelKMeans(6, kernel="linear").fit(X)
    >>> suggest_n_clusters(model).n_clusters
    3
    >>> references = reference_inertia_paths(model, X, random_state=0)
    >>> suggest_n_clusters(model, method="gap", reference_paths=references).n_clusters
    3
    """
    if method not in get_args(Method):
        raise ParameterError(f"method={method!r} is not known: use 'elbow', 'gap' or 'gap_max'.")
    path = read_path(inertia_path)
    if method != "elbow":
        return _gap(path, method, reference_paths)
    if reference_paths is not None:
        raise ParameterError("reference_paths are not used by method='elbow': leave them out, or pass method='gap'.")
    return _elbow(path)


def reference_inertia_paths(
    estimator: Any,
    X: Any,
    *,
    n_references: int = 10,
    box: Box = "principal",
    sample_weight: Any = None,
    random_state: RandomState = None,
) -> Floats:
    """Fit an estimator to data without clusters and return the inertia paths.

    The data are uniform in a box around X, with the same number of samples. Pass the result to
    :func:`suggest_n_clusters` with ``method="gap"``.

    Parameters
    ----------
    estimator : estimator
        One that has ``inertia_path_`` after ``fit``, such as :class:`~kernelweave.GlobalKernelKMeans`. It is cloned,
        never changed.
    X : array-like of shape (n_samples, n_features)
        The samples whose path is to be judged. A precomputed kernel has no box around it and is refused.
    n_references : int, default=10
        Number of reference sets, at least 2.
    box : {"principal", "features"}, default="principal"
        Sides of the box: along the principal axes of X, which follow its shape, or along the features, which keeps
        non-negative features non-negative.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights X was fitted with. Samples of weight 0 do not widen the box; the samples of each reference set
        carry the same weights.
    random_state : int, RandomState instance or None, default=None
        Seed for the draws. Reference b depends only on the seed and on b, so more references keep the first ones.

    Returns
    -------
    paths : ndarray of shape (n_references, n_max)
        The inertia path of every reference set.

    Notes
    -----
    Cost: ``n_references`` fits of the estimator. With ``search="exact"`` this takes long; the fast search is an
    acceptable substitute if the path itself also comes from the fast search.

    A kernel width that follows the data (``gamma="scale"`` or ``"median"``) is computed again on every reference set.
    Give it as a number to compare paths of one kernel.

    Source: Tibshirani, Walther and Hastie, J. R. Statist. Soc. B 2001, section 4: ``"features"`` is their choice (a),
    ``"principal"`` their choice (b).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import GlobalKernelKMeans
    >>> from kernelweave.model_selection import reference_inertia_paths
    >>> X = np.random.default_rng(0).standard_normal((40, 2))
    >>> reference_inertia_paths(GlobalKernelKMeans(4), X, n_references=3, random_state=0).shape
    (3, 4)
    """
    X = _read_features(estimator, X)
    if isinstance(n_references, bool) or not isinstance(n_references, Integral) or n_references < 2:
        raise ParameterError(f"n_references={n_references!r} must be an integer of at least 2, for a standard error.")
    if box not in _BOXES:
        raise ParameterError(f"box={box!r} is not known: use 'principal' or 'features'.")
    weights = read_weights(sample_weight, len(X))
    draw = _BOXES[box](X[weights > 0])
    options = {} if sample_weight is None else {"sample_weight": weights}
    generators = streams(random_state, int(n_references), "reference data")
    fitted = (clone(estimator).fit(draw(rng, len(X)), **options) for rng in generators)
    return np.stack([read_path(model, "estimator") for model in fitted])


def read_path(inertia_path: Any, name: str = "inertia_path") -> Floats:
    """Return a path, from numbers or from a fitted estimator, checked; ``name`` is the argument to blame."""
    if hasattr(inertia_path, "fit"):
        if not hasattr(inertia_path, "inertia_path_"):
            raise ParameterError(
                f"{name}={type(inertia_path).__name__}(...) has no inertia_path_. Fit it first; if it keeps no path, "
                "pass the objectives as numbers, or use GlobalKernelKMeans, which keeps one."
            )
        inertia_path = inertia_path.inertia_path_
    path = _as_floats("inertia_path", inertia_path, ndim=1)
    if not len(path):
        raise ParameterError("inertia_path=[] is empty: pass one objective per number of clusters, 1 first.")
    return path


def _elbow(path: Floats) -> SuggestedClusters:
    if len(path) < 3:
        raise ParameterError(
            f"inertia_path has {len(path)} entries: an elbow needs at least 3. Fit with n_clusters=3 or more."
        )
    fall = path[0] - path[-1]
    if fall <= EQUAL_TO_LINE * np.abs(path).max():
        return SuggestedClusters(None, "elbow", np.zeros(len(path)))
    scores = np.linspace(1.0, 0.0, len(path)) - (path - path[-1]) / fall
    deepest = float(scores.max())
    first = int(np.argmax(scores >= deepest - EQUAL_TO_LINE))
    return SuggestedClusters(first + 1 if deepest > EQUAL_TO_LINE else None, "elbow", scores)


def _gap(path: Floats, method: Method, reference_paths: Any) -> SuggestedClusters:
    references = _check_references(reference_paths, method, len(path))
    logs = _logarithms("reference_paths", references)
    gap = logs.mean(axis=0) - _logarithms("inertia_path", path)
    error = logs.std(axis=0) * np.sqrt(1.0 + 1.0 / len(logs))
    if method == "gap":
        scores = np.append(gap[:-1] - gap[1:] + error[1:], np.nan)
    else:
        scores = gap - gap.max() + error[gap.argmax()]
    reached = np.flatnonzero(scores[:-1] >= 0)  # a gap that is best at the end of the path may go on rising
    return SuggestedClusters(int(reached[0]) + 1 if len(reached) else None, method, scores, gap, error)


def _check_references(reference_paths: Any, method: Method, length: int) -> Floats:
    if reference_paths is None:
        raise ParameterError(
            f"reference_paths=None, but method={method!r} compares with paths of data without clusters: pass those of "
            "reference_inertia_paths(estimator, X)."
        )
    references = _as_floats("reference_paths", reference_paths, ndim=2)
    if len(references) < 2 or references.shape[1] != length:
        raise ParameterError(
            f"reference_paths has shape {references.shape}, but inertia_path has {length} entries: pass at least 2 "
            f"paths of {length} entries each, from an estimator with the same n_clusters."
        )
    if length < 2:
        raise ParameterError("inertia_path has 1 entry: a gap needs at least 2. Fit with n_clusters=2 or more.")
    return references


def _logarithms(name: str, values: Floats) -> Floats:
    if values.min() <= 0:
        raise ParameterError(
            f"{name} holds {values.min():g}, which has no logarithm: end the path before the objective reaches zero, "
            "or use method='elbow'."
        )
    return np.log(values)


def _as_floats(name: str, values: Any, *, ndim: int) -> Floats:
    try:
        objectives = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name} of type {type(values).__name__} cannot be read as numbers: pass objectives."
        ) from error
    if objectives.ndim != ndim:
        wanted = "one row of objectives" if ndim == 1 else "one row of objectives per reference set"
        raise ParameterError(f"{name} has shape {objectives.shape}: pass {wanted}.")
    if not np.isfinite(objectives).all():
        raise ParameterError(f"{name} holds {objectives[~np.isfinite(objectives)][0]}: objectives must be finite.")
    return objectives


def _read_features(estimator: Any, X: Any) -> Floats:
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ParameterError(f"estimator={estimator!r} is not an estimator: pass one, such as GlobalKernelKMeans(10).")
    if get_tags(estimator).input_tags.pairwise:
        raise ParameterError(
            f"estimator={type(estimator).__name__}(...) takes a precomputed kernel, and reference data need features: "
            "pass features and name the kernel, or use suggest_n_clusters with method='elbow'."
        )
    if sp.issparse(X):
        raise ParameterError(
            "X is sparse, and uniform data in a box around it are not: pass X.toarray() where it fits into memory, or "
            "its leading components (sklearn.decomposition.TruncatedSVD)."
        )
    return np.asarray(check_array(X, dtype=np.float64, input_name="X", estimator=estimator))


Draw = Callable[[np.random.Generator, int], Floats]


def _feature_box(X: Floats) -> Draw:
    """Return a function that draws samples uniformly between the least and largest value of every feature."""
    low = X.min(axis=0)
    high = X.max(axis=0)
    return lambda rng, n: rng.uniform(low, high, size=(n, X.shape[1]))


def _principal_box(X: Floats) -> Draw:
    """Return a function that draws samples uniformly in the box along the principal axes of X that holds X."""
    centre = X.mean(axis=0)
    axes = np.linalg.svd(X - centre, full_matrices=False)[2]
    draw = _feature_box((X - centre) @ axes.T)
    return lambda rng, n: draw(rng, n) @ axes + centre


_BOXES: dict[str, Callable[[Floats], Draw]] = {"principal": _principal_box, "features": _feature_box}
