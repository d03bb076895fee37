"""Formulas of the number of clusters that are written out for speed: their numbers are those of other libraries."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from kernelweave.solvers.graph.cluster_count import lower_quartile
from kernelweave.solvers.shared.rand_index import rand_index


@pytest.mark.parametrize("seed", range(5))
def test_the_lower_quartile_is_that_of_numpy_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    for n in (*range(1, 40), 1000):
        values = rng.normal(size=n).round(seed)
        before = values.copy()
        assert lower_quartile(values) == np.quantile(values, 0.25)
        np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("seed", range(5))
def test_the_rand_index_is_that_of_scikit_learn_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    for n in (*range(1, 12), 500):
        for k in (1, 2, 7):
            first = rng.integers(k, size=n)
            second = rng.integers(1 + seed, size=n)
            assert rand_index(first, second) == adjusted_rand_score(first, second)
        assert rand_index(first, (first + 1) % 7) == 1.0
