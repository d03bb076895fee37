"""One seed in, independent streams out."""

import numpy as np
from sklearn.utils import check_random_state

RandomState = int | np.random.RandomState | None


def streams(random_state: RandomState, count: int) -> list[np.random.Generator]:
    """Return ``count`` generators; the i-th depends on the seed and on i alone.

    A restart therefore gives the same outcome in any order, on any worker, and with more restarts around it.
    """
    root = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    return [np.random.default_rng(np.random.SeedSequence(root, spawn_key=(i,))) for i in range(count)]
