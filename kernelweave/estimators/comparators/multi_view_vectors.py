"""What estimators on the features of several views share: views moved to their means, starts, runs, warnings."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin

from kernelweave.estimators.shared.kernel_estimator import warn_if_empty, warn_if_unfinished
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ViewError
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin, Interval, StrOptions
from kernelweave.foundation.threads import parallel_map, single_threaded_blas
from kernelweave.inputs import Views, read_labels, read_views
from kernelweave.solvers.shared.best_run import best_of

#: How ``init`` may be given by name.
VIEW_INITS = ("k-means++", "random")
#: Rules of the parameters all of them have.
VIEW_RULES: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "views": ["array-like", dict, None],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
#: The rule of ``init`` for those that start from a partition.
INIT_RULE: dict[str, list[Any]] = {"init": [StrOptions(set(VIEW_INITS)), "array-like"]}

Run = TypeVar("Run")


class MultiViewVectors(ClusterMixin, CallbackSupportMixin, BaseEstimator):
    """Base of estimators that work on the features of several views, dense or sparse."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _starts(self, n_samples: int) -> list[Any]:
        """Return what each run starts from: a generator, or given labels."""
        if isinstance(self.init, str):
            return list(streams(self.random_state, self.n_init))
        return [read_labels(self.init, n_samples, self.n_clusters)]

    def _best(self, run: Callable[[Any], Run], starts: Sequence[Any], X: Any, y: Any, **value: Any) -> Run:
        """Return the best of the runs, computed side by side, with progress reported."""
        with single_threaded_blas():  # the same last bit whatever the number of threads
            return best_of(track(self, parallel_map(run, starts), total=len(starts), what="starts", X=X, y=y), **value)

    def _store(self, found: Any, n_views: int, what: str) -> None:
        self.labels_: Ints = found.labels
        self.objective_ = found.objective
        self.objective_path_ = np.array(found.history)
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        self.view_weights_: Floats = np.full(n_views, 1.0 / n_views)
        warn_if_unfinished(found.converged, self.max_iter, what)
        warn_if_empty(np.bincount(found.labels, minlength=self.n_clusters), self.n_clusters)

    def _new_blocks(self, X: Any) -> list[Matrix]:
        return shifted(read_views(self, X, reset=False), self._offsets)


def offsets(views: Views) -> list[Floats | None]:
    """Return the mean of every dense view, which is taken off for the sake of rounding; None for a sparse one."""
    return [None if sp.issparse(block) else block.mean(axis=0) for block in views]


def shifted(views: Views, origins: Sequence[Floats | None]) -> list[Matrix]:
    """Return the views moved to their origins; a sparse one becomes dense only where that of training was."""
    return [_moved(block, origin) for block, origin in zip(views, origins, strict=True)]


def _moved(block: Matrix, origin: Floats | None) -> Matrix:
    if origin is None:
        return block
    return (block.toarray() if sp.issparse(block) else block) - origin


def check_not_negative(name: str, block: Matrix, whom: str) -> None:
    """Raise ViewError where a view holds a negative number."""
    low = float(block.min())
    if low < 0:
        raise ViewError(
            f"Negative values in data passed to {whom}: view {name!r} holds {low:.6g}. It takes counts, frequencies or "
            "other amounts; shift or rescale the view (scikit-learn's MinMaxScaler), or use another method."
        )
