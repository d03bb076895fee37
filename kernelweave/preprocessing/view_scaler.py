"""Views brought to one scale before they are compared, in a form that pipelines and saved models keep."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.sklearn_internals import checked_fit
from kernelweave.inputs import Views, is_multi_view, per_view, read_views, split_columns
from kernelweave.kernels.representations import view_kind

METHODS = ("auto", "standard", "unit_rows", "none")
# Standard deviations up to this share of the mean are rounding.
CONSTANT_COLUMN = 10 * np.finfo(float).eps


class ViewScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Bring every view to one scale: columns to mean 0 and standard deviation 1, or rows to unit length.

    Use it before a multi-view estimator in a pipeline; one table is a single view. NaN stays in place: means,
    deviations and lengths are those of the observed values.

    Parameters
    ----------
    method : {"auto", "standard", "unit_rows", "none"}, list or dict, default="auto"
        For all views, or one for each. ``"standard"`` subtracts the mean of every column and divides by its standard
        deviation (n - 1 in the denominator; constant columns are only shifted). ``"unit_rows"`` divides every row by
        its length, which suits word counts. ``"none"`` leaves a view alone. ``"auto"`` takes ``"unit_rows"`` for
        sparse views and for dense ones that hold counts or links (values that are not negative, most of them zero), and
        ``"standard"`` for others.
    views : list or dict, default=None
        Columns of each view where X is one table, as in multi-view estimators.

    Attributes
    ----------
    methods_ : list of str
        What was done to each view.
    means_, scales_ : list of ndarray
        Mean and standard deviation of the columns of each view; empty where rows are scaled.
    view_names_ : list of str
        Names of the views.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a table with string column names.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernelweave import MultiViewKernelKMeans
    >>> from kernelweave.datasets import load_multiview_digits
    >>> from kernelweave.preprocessing import ViewScaler
    >>> digits = load_multiview_digits(n_classes=3)
    >>> model = make_pipeline(ViewScaler(), MultiViewKernelKMeans(3, kernel="linear", random_state=0))
    >>> len(model.fit(digits.views).predict(digits.views)) == len(digits.target)
    True
    """

    #: Cells and samples that are not there stay NaN; what is learned comes from the others.
    _keeps_nan = True

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "method": [str, list, tuple, dict],
        "views": ["array-like", dict, None],
    }

    def __init__(self, *, method: Any = "auto", views: Any = None) -> None:
        self.method = method
        self.views = views

    @checked_fit(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "ViewScaler":
        """Learn means and standard deviations.

        Parameters
        ----------
        X : array-like, or list or dict of views
            Samples.
        y : None
            Ignored.

        Returns
        -------
        self : ViewScaler
            The fitted scaler.
        """
        views = read_views(self, X, reset=True, min_samples=1)
        self.methods_ = []
        self.means_: list[Floats] = []
        self.scales_: list[Floats] = []
        methods = per_view(self.method, views.names, "method")
        for name, block, requested in zip(views.names, views.blocks, methods, strict=True):
            method = _resolve_method(name, block, requested)
            self.methods_.append(method)
            mean, scale = _moments(block) if method == "standard" else (np.empty(0), np.empty(0))
            self.means_.append(mean)
            self.scales_.append(scale)
        return self

    def transform(self, X: Any) -> Any:
        """Return the scaled samples, in the form of X.

        Parameters
        ----------
        X : array-like, or list or dict of views
            Samples.

        Returns
        -------
        scaled : as X
            New arrays; X is not changed.
        """
        check_is_fitted(self)
        views = read_views(self, X, reset=False)
        blocks = [
            _scaled(block, method, mean, scale)
            for block, method, mean, scale in zip(views, self.methods_, self.means_, self.scales_, strict=True)
        ]
        if is_multi_view(X):
            return dict(zip(views.names, blocks, strict=True)) if isinstance(X, dict) else blocks
        return _one_table(self, X, Views(views.names, tuple(blocks)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _resolve_method(name: str, block: Array, requested: Any) -> str:
    """Return the method for a view, in place of ``"auto"`` the one that suits it."""
    if requested not in METHODS:
        raise ParameterError(f"method={requested!r} for view {name!r} is not known: use {', '.join(METHODS)}.")
    if requested == "auto":
        # A mean of almost only zeros says nothing, and dividing by the deviation makes the rarest word the loudest.
        return "unit_rows" if sp.issparse(block) or view_kind(_measured(block)) == "counts" else "standard"
    if requested == "standard" and sp.issparse(block):
        raise ParameterError(
            f"method='standard' would fill the zeros of the sparse view {name!r}: use 'unit_rows', or pass it dense."
        )
    return str(requested)


def _measured(block: Floats) -> Floats:
    """Return the rows without NaN, all where every row has some."""
    whole = ~np.isnan(block).any(axis=1)
    return block if whole.all() or not whole.any() else block[whole]


def _moments(block: Floats) -> tuple[Floats, Floats]:
    if np.isnan(block).any():
        return _moments_of_measured(block)
    mean = block.mean(axis=0)
    scale = block.std(axis=0, ddof=1) if len(block) > 1 else np.zeros(block.shape[1])
    return mean, _usable(mean, scale)


def _moments_of_measured(block: Floats) -> tuple[Floats, Floats]:
    """Return mean and deviation of the cells of each column that are there; a column without any is left alone."""
    there = ~np.isnan(block)
    counts = there.sum(axis=0)
    mean = np.where(there, block, 0.0).sum(axis=0) / np.maximum(counts, 1)
    squares = np.where(there, block - mean, 0.0) ** 2
    scale = np.sqrt(squares.sum(axis=0) / np.maximum(counts - 1, 1))
    return mean, _usable(mean, scale)


def _usable(mean: Floats, scale: Floats) -> Floats:
    """Return deviations to divide by, 1 for constant columns."""
    # The deviation of a constant column is zero up to rounding.
    constant = scale <= CONSTANT_COLUMN * np.abs(mean)
    return np.where(constant | (scale == 0), 1.0, scale)


def _scaled(block: Any, method: str, mean: Floats, scale: Floats) -> Array:
    if method == "standard":
        dense = block.toarray() if sp.issparse(block) else block
        return np.asarray((dense - mean) / scale)
    return _unit_rows(block) if method == "unit_rows" else block.copy()


def _unit_rows(block: Array) -> Array:
    """Return rows of unit length; the length of a row is that of what is there."""
    values = block.data if sp.issparse(block) else block
    if not np.isnan(values).any():
        return normalize(block)
    if not sp.issparse(block):
        lengths = np.sqrt(np.nansum(block * block, axis=1, keepdims=True))
        return np.asarray(block / np.where(lengths == 0, 1.0, lengths))
    scaled = sp.csr_array(block, copy=True)
    rows = np.repeat(np.arange(scaled.shape[0]), np.diff(scaled.indptr))
    lengths = np.sqrt(np.bincount(rows, np.nan_to_num(scaled.data) ** 2, minlength=scaled.shape[0]))
    scaled.data = scaled.data / np.where(lengths == 0, 1.0, lengths)[rows]
    return scaled


def _one_table(scaler: ViewScaler, X: Any, views: Views) -> Array:
    """Return the views as one table, each in its own columns; columns that belong to no view stay as they are."""
    if scaler.views is None:
        return views.blocks[0]
    names = getattr(scaler, "feature_names_in_", None)
    places = split_columns(np.arange(scaler.n_features_in_)[None, :], scaler.views, names)
    table = (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float64)
    for columns, block in zip(places, views, strict=True):
        dense = sp.csr_array(block).toarray() if sp.issparse(block) else block
        table[:, columns[0].astype(np.intp)] = dense
    return table
