"""Features of several views: moved to their means, checked, and the best of several runs on them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import scipy.sparse as sp

from kernelweave.foundation.array_types import Floats, Matrix
from kernelweave.foundation.errors import ViewError
from kernelweave.foundation.progress import track
from kernelweave.foundation.threads import parallel_map, single_threaded_blas
from kernelweave.solvers.shared.best_run import best_of

#: How ``init`` may be given by name.
VIEW_INITS = ("k-means++", "random")

Run = TypeVar("Run")
#: The origin of every view: its mean, or None for a sparse one, which stays where it is.
Origins = tuple[Floats | None, ...]


def best_run(estimator: Any, run: Callable[[Any], Run], starts: Sequence[Any], X: Any, y: Any, **value: Any) -> Run:
    """Return the best of the runs, computed side by side, with progress reported."""
    with single_threaded_blas():  # the same last bit whatever the number of threads
        results = track(estimator, parallel_map(run, starts), total=len(starts), what="starts", X=X, y=y)
        return best_of(results, **value)


def origins(views: Iterable[Matrix]) -> Origins:
    """Return the mean of every dense view, which is taken off for the sake of rounding; None for a sparse one."""
    return tuple(None if sp.issparse(block) else block.mean(axis=0) for block in views)


def moved_to(views: Iterable[Matrix], origins: Origins) -> list[Matrix]:
    """Return the views moved to their origins; a sparse one becomes dense only where that of training was."""
    return [_moved(block, origin) for block, origin in zip(views, origins, strict=True)]


def moved_back(centres: Sequence[Floats], origins: Origins) -> list[Floats]:
    """Return the centres of every view in the features that X has."""
    return [at if origin is None else at + origin for at, origin in zip(centres, origins, strict=True)]


def _moved(block: Matrix, origin: Floats | None) -> Matrix:
    if origin is None:
        return block
    return (block.toarray() if sp.issparse(block) else block) - origin


def check_not_negative(name: str, block: Matrix, method: str) -> None:
    """Raise ViewError where a view holds a negative number."""
    lowest = float(block.min())
    if lowest < 0:
        raise ViewError(
            f"Negative values in data passed to {method}: view {name!r} holds {lowest:.6g}. It takes counts, "
            "frequencies or other amounts; shift or rescale the view (scikit-learn's MinMaxScaler), or use another "
            "method."
        )
