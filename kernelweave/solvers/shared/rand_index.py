"""How far two clusterings agree, for solvers that ask often: scikit-learn's checks take longer than the index."""

import numpy as np

from kernelweave.foundation.array_types import Ints


def rand_index(first: Ints, second: Ints) -> float:
    """Return the adjusted Rand index of labels from 0 on, as scikit-learn's function does after checks of its input."""
    n = len(first)
    width = int(second.max()) + 1
    table = np.bincount(first * width + second, minlength=(int(first.max()) + 1) * width).reshape(-1, width)
    rows = table.sum(axis=1)
    columns = table.sum(axis=0)
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
