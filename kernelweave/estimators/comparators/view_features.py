"""Features of several views: of the samples each has, moved to their means, checked, and the best of several runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from kernelweave.estimators.shared.runs import kept_run
from kernelweave.estimators.shared.view_kernels import known_weights
from kernelweave.foundation.array_types import Floats, Index, Ints, Matrix
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.errors import ParameterError, ViewError
from kernelweave.foundation.progress import track
from kernelweave.foundation.threads import parallel_map, single_threaded_blas
from kernelweave.inputs import Views, connected_views
from kernelweave.solvers.shared.best_run import best_of

#: How ``init`` may be given by name.
VIEW_INITS = ("k-means++", "random")

Run = TypeVar("Run")
#: The origin of every view: its mean, or None for a sparse one, which stays where it is.
Origins = tuple[Floats | None, ...]


@dataclass(frozen=True)
class KnownRows:
    """The rows that every view has; all of them, as they are, in a complete view."""

    blocks: list[Matrix]
    samples: list[Index]  # which samples they are


def known_rows(views: Views) -> KnownRows:
    """Return the rows of the samples that every view has."""
    if views.observed is None:
        return KnownRows(list(views.blocks), [slice(None)] * len(views))
    complete = [bool(there.all()) for there in views.observed.T]
    samples: list[Index] = [slice(None) if whole else views.present(v) for v, whole in enumerate(complete)]
    return KnownRows([block[here] for block, here in zip(views, samples, strict=True)], samples)


def weights_of_rows(views: Views, weights: Floats) -> list[Floats]:
    """Return the weights of the samples that every view has; those that count must connect the views."""
    own = [np.asarray(known_weights(views, v, weights)) for v in range(len(views))]
    if views.observed is not None:
        parts = connected_views(views.observed[weights > 0])
        if len(parts) > 1:
            first, second = (views.names[part[0]] for part in parts[:2])
            raise ViewError(
                f"Without the samples of weight 0, views {first!r} and {second!r} share no sample, nor do other views "
                "connect them, so their clusters cannot be matched. Give samples that are in both a weight."
            )
    return own


def starting_view(views: Views, weights: Sequence[Floats], n_clusters: int) -> int:
    """Return the first view that has as many samples of positive weight as there are clusters: starts are drawn there.

    ``weights`` are those of the samples of every view.
    """
    counts = [int(np.count_nonzero(own)) for own in weights]
    for v, count in enumerate(counts):
        if count >= n_clusters:
            return v
    most = int(np.argmax(counts))
    raise ParameterError(
        f"n_clusters={n_clusters} is more than the {counts[most]} samples of positive weight that view "
        f"{views.names[most]!r} has, and no other has more, so no start can be drawn. Lower n_clusters, or pass labels "
        "of all samples as init."
    )


def spread_start(drawn: Callable[[Any], Ints], samples: Index, n_samples: int) -> Callable[[Any], Ints]:
    """Return the function that makes labels of all samples from what a run starts from: -1 where nothing is known.

    ``drawn`` makes those of one view of a generator; labels that were given are of all samples already.
    """

    def labels(start: Any) -> Ints:
        if not isinstance(start, np.random.Generator):
            return np.asarray(start)
        result = np.full(n_samples, -1, dtype=np.intp)
        result[samples] = drawn(start)
        return result

    return labels


def best_run(
    estimator: Any,
    run: Callable[[Any, Keeper], Run],
    starts: Sequence[Any],
    X: Any,
    y: Any,
    kind: type[Run],
    **value: Any,
) -> Run:
    """Return the best of the runs, computed side by side, with progress reported; ends, of a ``kind``, are kept."""
    with single_threaded_blas():  # the same last bit whatever the number of threads
        runs = parallel_map(kept_run(estimator._keeper, run, kind), list(enumerate(starts)))
        return best_of(track(estimator, runs, total=len(starts), what="starts", X=X, y=y), **value)


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
