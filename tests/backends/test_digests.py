"""Compiled digests of rows against those of the standard library."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kernelweave.backends import digests
from kernelweave.backends.digests import dense_digests
from kernelweave.foundation import threads
from kernelweave.inputs import row_digests
from tests.strategies import generators


@pytest.fixture
def every_row(monkeypatch):
    monkeypatch.setattr(digests, "FEW_ROWS", 1)


@settings(max_examples=60, deadline=None)
@given(generators(), st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_digests_are_those_of_the_standard_library(rng, widths):
    values = [0.0, -0.0, 1.0, -2.5, 1e300, np.nan, -np.nan, np.inf]
    blocks = [rng.choice(values, size=(5, width)) for width in widths]
    blocks.append(rng.standard_normal((5, 3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "FEW_ROWS", 1)
        np.testing.assert_array_equal(dense_digests(blocks), row_digests(blocks))


@pytest.mark.usefixtures("every_row")
@pytest.mark.parametrize("width", [7, 8, 15, 16, 17, 31])
def test_rows_that_fill_a_block_or_just_not_are_hashed_right(width):
    rows = np.random.default_rng(0).standard_normal((4, width))
    rows[1] = 0.0
    np.testing.assert_array_equal(dense_digests([rows]), row_digests([rows]))


@pytest.mark.usefixtures("every_row")
def test_digests_are_the_same_at_any_number_of_threads_and_leave_rows_as_they_are(monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(digests, "DIGESTED_ROWS", 7)
    blocks = [np.random.default_rng(0).standard_normal((50, width)) for width in (3, 20)]
    blocks[0][4, 1] = np.nan
    before = [block.copy() for block in blocks]
    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "openmp_threads", lambda count=count: count)
        with threadpool_limits(count):
            results.append(dense_digests(blocks))
    for result in results:
        np.testing.assert_array_equal(result, row_digests(before))
    for block, old in zip(blocks, before, strict=True):
        np.testing.assert_array_equal(block, old)


def test_few_rows_and_other_tables_are_left_to_the_standard_library(monkeypatch):
    rows = np.ones((5, 2))
    assert dense_digests([rows]) is None
    assert dense_digests([]) is None
    monkeypatch.setattr(digests, "FEW_ROWS", 5)
    assert dense_digests([rows]) is not None
    assert dense_digests([rows, sp.csr_array(rows)]) is None
    assert dense_digests([rows.astype(np.float32)]) is None
