"""Neighbours of samples in blocks are those of one table, however the blocks are cut."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.inputs.arrays.chunks import Chunks, Rows
from kernelweave.kernels import chunked_neighbors
from kernelweave.kernels.chunked import placed
from kernelweave.kernels.chunked_neighbors import compared_rows, nearest_in_blocks, recall_in_blocks
from kernelweave.kernels.chunked_representations import (
    all_rows,
    digests_in_blocks,
    kind_in_blocks,
    present_in_blocks,
    representations_in_blocks,
)
from kernelweave.kernels.neighbors import Neighbors, nearest_others
from kernelweave.kernels.representations import representations, view_kind


def in_blocks(X, sizes):
    ends = np.cumsum([0, *sizes])
    loaders = tuple(Rows(X, lo, hi) for lo, hi in itertools.pairwise(ends))
    (array,) = placed([Chunks(tuple(sizes), X.shape[1], X.dtype, loaders)], ["X"], 2048)
    return array


def cut(n, rng):
    """Return sizes of blocks that add up to n, some of them 1."""
    ends = np.unique(rng.integers(1, n, size=rng.integers(1, 6)))
    return np.diff([0, *ends, n]).tolist()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from(["tied", "copies", "plain"]), st.integers(1, 60))
def test_exact_neighbours_are_those_of_one_table_also_between_equally_far_samples(seed, m, kind, together):
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(60, 3)).astype(float) if kind == "tied" else rng.standard_normal((60, 3))
    X = X[rng.integers(8, size=60)] if kind == "copies" else X
    (representation,) = representations(X, "table")
    wanted = nearest_others(representation.transform(X), m, np.random.default_rng(0))
    rows = all_rows(in_blocks(X, cut(60, rng)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunked_neighbors, "TRAVELLING_ROWS", together)
        near = nearest_in_blocks(rows, representation, m, np.random.default_rng(0), "exact")
    np.testing.assert_array_equal(near.indices, wanted.indices)
    np.testing.assert_allclose(near.distances, wanted.distances, rtol=1e-12)


@pytest.mark.parametrize("few", [2, 60, 1000])  # an index of every block, of some, and of none
def test_indexes_of_blocks_find_nearly_all_neighbours(few, monkeypatch):
    from kernelweave.backends import neighbor_index

    monkeypatch.setattr(neighbor_index, "FEW_ROWS", few)
    monkeypatch.setattr(chunked_neighbors, "FEW_ROWS", few)
    X = np.random.default_rng(0).standard_normal((700, 6))
    (representation,) = representations(X, "table")
    sizes = (1, 300, 1, 50, 348)
    rows = all_rows(in_blocks(X, sizes))
    near = nearest_in_blocks(rows, representation, 8, np.random.default_rng(0), "approximate")
    recall = recall_in_blocks(rows, representation, near, np.random.default_rng(0))
    assert recall > 0.97
    Z = representation.transform(X)
    np.testing.assert_allclose(near.distances, np.linalg.norm(Z[:, None] - Z[near.indices], axis=2))
    assert not (near.indices == np.arange(700)[:, None]).any()
    again = nearest_in_blocks(rows, representation, 8, np.random.default_rng(0), "approximate")
    np.testing.assert_array_equal(again.indices, near.indices)


def test_recall_in_blocks_is_that_of_one_table():
    X = np.random.default_rng(0).standard_normal((500, 4))
    (representation,) = representations(X, "table")
    Z = representation.transform(X)
    exact = nearest_others(Z, 6, np.random.default_rng(0))
    rows = all_rows(in_blocks(X, (3, 250, 1, 246)))
    assert recall_in_blocks(rows, representation, exact, np.random.default_rng(0)) == 1.0
    farther = Neighbors(exact.indices, exact.distances * np.where(np.arange(6) < 3, 1.0, 50.0))
    assert recall_in_blocks(rows, representation, farther, np.random.default_rng(0)) == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["few columns", "signed", "positive", "empty rows"])
def test_representations_are_fitted_as_on_one_table(kind):
    rng = np.random.default_rng(0)
    X = 1e3 + rng.standard_normal((90, 4 if kind == "few columns" else 12))
    X = X - 1e3 if kind == "signed" else X
    X[:, 1] = 3.0  # constant
    if kind == "empty rows":
        X[[0, 1, 40]] = 0.0
    filled = X[(X != 0).any(axis=1)]
    array = in_blocks(X, (2, 1, 60, 27))
    assert kind_in_blocks(array) == view_kind(X)
    rows = present_in_blocks(array)
    assert rows.samples.tolist() == np.flatnonzero((X != 0).any(axis=1)).tolist()
    wanted = representations(filled, "table")
    found = representations_in_blocks(rows)
    assert [type(each) for each in found] == [type(each) for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.transform(X[:5]), other.transform(X[:5]), atol=1e-9)
        np.testing.assert_allclose(compared_rows(rows, one), other.transform(filled), atol=1e-9)


def test_equal_samples_have_equal_digests_in_any_block():
    X = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [3.0, 3.0]])
    digests = digests_in_blocks([in_blocks(X.astype(np.float32), (1, 1, 2))])
    assert digests[0] == digests[2]
    assert len(set(digests.tolist())) == 3
