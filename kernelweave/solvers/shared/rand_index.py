"""How far two clusterings agree, for solvers that ask often: scikit-learn's checks take longer than the index."""

import numpy as np

from kernelweave.foundation.array_types import Ints

# Cells of a table of counts, beyond one for every sample, that are made although they may be empty.
SPARE_CELLS = 100_000


def rand_index(first: Ints, second: Ints) -> float:
    """Return the adjusted Rand index of labels from 0 on, as scikit-learn's function does after checks of its input."""
    n = len(first)
    width = int(second.max()) + 1
    cells = (int(first.max()) + 1) * width
    pairs = first * width + second
    # Where nearly every sample is a cluster of its own, most of a table would be empty and all of it too large.
    table = np.bincount(pairs) if cells <= SPARE_CELLS + n else np.unique(pairs, return_counts=True)[1]
    rows = np.bincount(first)
    columns = np.bincount(second)
    squares = int((table**2).sum())
    # Ordered pairs of samples: together in both, in one alone, in neither. Whole numbers of Python do not overflow.
    together = squares - n
    first_alone = int((rows**2).sum()) - squares
    second_alone = int((columns**2).sum()) - squares
    apart = n**2 - squares - first_alone - second_alone
    if first_alone == second_alone == 0:
        return 1.0
    agreement = 2.0 * (together * apart - first_alone * second_alone)
    return agreement / (
        (together + first_alone) * (first_alone + apart) + (together + second_alone) * (second_alone + apart)
    )
