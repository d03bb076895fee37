"""Originals in the forms in which they are published become the arrays of benchmark files."""

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as any_array
from scipy import sparse

from kernelweave.datasets import sources
from kernelweave.datasets.conversion import (
    read_matlab,
    read_metis,
    read_table,
    read_triplets,
    read_view_tables,
)
from kernelweave.datasets.digests import array_digest, content_digest
from kernelweave.datasets.npz import read_arrays
from kernelweave.foundation.errors import DataError
from tests.datasets.file_server import target

DATA = os.environ.get("KERNELWEAVE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="KERNELWEAVE_DATA is not set")

# First lines of the originals at UCI.
DERMATOLOGY = b"""2,2,0,3,0,0,0,0,1,0,0,0,0,0,0,3,2,0,0,0,0,0,0,0,0,0,0,3,0,0,0,1,0,55,2
3,3,3,2,1,0,0,0,1,1,1,0,0,1,0,1,2,0,2,2,2,2,2,1,0,0,0,0,0,0,0,1,0,8,1
"""
ECOLI = b"""AAT_ECOLI   0.49  0.29  0.48  0.50  0.56  0.24  0.35   cp
ACEA_ECOLI  0.07  0.40  0.48  0.50  0.54  0.35  0.44   cp
"""
IONOSPHERE = (
    b"1,0,0.99539,-0.05889,0.85243,0.02306,0.83398,-0.37708,1,0.03760,0.85243,-0.17755,0.59755,-0.44945,0.60536,"
    b"-0.38223,0.84356,-0.38542,0.58212,-0.32192,0.56971,-0.29674,0.36946,-0.47357,0.56811,-0.51171,0.41078,-0.46168,"
    b"0.21266,-0.34090,0.42267,-0.54487,0.18641,-0.45300,g\n"
)
LETTER = b"T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\r\nI,5,12,3,7,2,10,5,5,4,13,3,9,2,8,4,10\r\n"


def facts(**values):
    return target({}, values)


def matlab(**variables):
    page = io.BytesIO()
    scipy.io.savemat(page, variables)
    return page.getvalue()


def cells(*arrays):
    listed = np.empty((1, len(arrays)), dtype=object)
    listed[0, :] = arrays
    return listed


# --- tables of text


def test_a_table_has_commas_or_blanks_missing_entries_a_header_and_names():
    text = b"% a comment\n@relation toy\n\nn1, 0.5, ?, b\nn2  1e-3\t2 , a ,\n"
    made = read_table([text], facts(classes=["a", "b"]), drop=[0])
    np.testing.assert_array_equal(made["X"], [[0.5, np.nan], [1e-3, 2]])
    assert made["y"].tolist() == [1, 0]
    assert "is_test" not in made


def test_parts_are_one_below_the_other_and_compressed_ones_are_opened():
    wanted = target({"is_test": np.zeros(3)}, {"classes": ["a", "b"]})
    made = read_table([b"a 1\n", gzip.compress(b"b 2\na 3\n")], wanted, label=0)
    assert made["X"].ravel().tolist() == [1, 2, 3]
    assert made["is_test"].tolist() == [False, True, True]


@pytest.mark.parametrize("text", [b"", b"\n", b"1,a\n1,2,a\n", b"1,c\n", b"x,a\n", "1,ä\n".encode()])
def test_a_table_that_is_none_is_refused(text):
    with pytest.raises((DataError, ValueError)):
        read_table([text], facts(classes=["a", "b"]))


def test_views_in_tables_have_classes_that_follow_each_other():
    made = read_view_tables([b"1 2\n3 4\n5 6\n", b" 7\n 8\n 9\n"], facts(), sizes=(2, 1))
    assert made["view_0"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert made["view_1"].ravel().tolist() == [7, 8, 9]
    assert made["y"].tolist() == [0, 0, 1]


@needs_data
@pytest.mark.parametrize(
    ("name", "lines"),
    [("dermatology", DERMATOLOGY), ("ecoli", ECOLI), ("ionosphere", IONOSPHERE), ("letter", LETTER)],
)
def test_first_lines_of_originals_give_the_first_rows_of_sets(name, lines):
    known = sources.catalogue()[name]
    stored = read_arrays(Path(DATA, f"{known.path}.npz"))
    made = known.sources[0].read([lines], known.target)
    np.testing.assert_array_equal(made["X"], stored["X"][: len(made["X"])])
    np.testing.assert_array_equal(made["y"], stored["y"][: len(made["y"])])


# --- MATLAB and METIS

X = np.array([[1.0, 2.0, 0.0], [4.0, 0.0, 6.0], [0.0, 8.0, 9.5], [1.0, 1.0, 1.0]])
Y = np.array([1, 0, 0, 1])


@pytest.mark.parametrize(
    "variables",
    [
        {"fea": X, "gnd": [[5.0], [3.0], [3.0], [5.0]]},
        {"data": cells(X.T, np.eye(4)), "truth": [[2, 1, 1, 2]]},
        {"all": {"inner": {"X": sparse.csc_matrix(X)}, "labels": [[3], [5], [5], [3]]}, "note": "text"},
    ],
    ids=["plain", "cells", "structure"],
)
def test_arrays_of_matlab_files_are_recognised_by_what_they_hold(variables):
    made = read_matlab([matlab(**variables)], target({"X": X, "y": Y}, {}))
    np.testing.assert_array_equal(made["X"], X)
    assert made["y"].tolist() == Y.tolist()


def test_equal_shapes_are_told_apart_and_what_is_not_there_is_left_out():
    wanted = target({"view_0": X, "view_1": X + 1, "y": Y}, {})
    made = read_matlab([matlab(v=cells(X + 1, X, X + 2))], wanted)
    assert set(made) == {"view_0", "view_1"}
    np.testing.assert_array_equal(made["view_1"], X + 1)


def test_kernels_may_be_the_last_axis():
    K = np.arange(18.0).reshape(2, 3, 3)
    made = read_matlab([matlab(KH=np.moveaxis(K, 0, -1))], target({"K": K}, {}))
    np.testing.assert_array_equal(made["K"], K)


def test_images_by_column_are_turned_and_classes_may_be_known_by_size():
    images = np.arange(4 * 6.0).reshape(4, 2, 3)
    by_column = images.transpose(0, 2, 1).reshape(4, 6).T
    wanted = target({"X": images.reshape(4, 6), "y": np.array([0, 0, 1, 1])}, {"image_shape": [2, 3]})
    made = read_matlab([matlab(faces=by_column)], wanted, sizes=(2, 2), turned=True)
    np.testing.assert_array_equal(made["X"], images.reshape(4, 6))
    assert made["y"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("first", [0, 1])
def test_sparse_sets_come_from_matrices_and_from_triplets(first):
    rows = sparse.csr_array(X)
    parts = {f"X_{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}
    wanted = target({**parts, "y": Y}, {"X_shape": [4, 3]})
    made = read_matlab([matlab(fea=sparse.csc_matrix(X.T), y=Y)], wanted)
    listed = rows.tocoo()
    triplets = np.c_[listed.coords[0] + first, listed.coords[1] + first, listed.data]
    also = read_triplets([matlab(a=triplets, y=Y)], wanted)
    for arrays in (made, also):
        assert set(arrays) == set(wanted.arrays)
        assert content_digest({**wanted.stored_facts(), **arrays}) == wanted.sha256


def test_a_graph_of_metis_gives_sorted_neighbours():
    made = read_metis([b"3 2\n3 2\n1\n1\n"], facts())
    assert made["indptr"].tolist() == [0, 2, 3, 4]
    assert made["indices"].tolist() == [1, 2, 0, 0]


# --- digests


@given(any_array(np.int16, st.tuples(st.integers(0, 4), st.integers(0, 4))))
def test_a_digest_depends_on_values_and_shape_and_not_on_types_and_layout(array):
    digest = array_digest(array)
    assert digest == array_digest(array.astype(np.float64)) == array_digest(np.asfortranarray(array.astype(np.int64)))
    assert digest != array_digest(array.reshape(1, *array.shape))
    if array.size:
        other = array.astype(np.float64)
        other.flat[-1] += 0.5
        assert digest != array_digest(other)


def test_zeros_and_missing_values_have_one_form_and_names_count():
    assert array_digest(np.array([0.0, np.nan])) == array_digest(np.array([-0.0, -np.nan]))
    assert array_digest(np.array(["1"])) != array_digest(np.array([1]))
    assert content_digest({"a": np.ones(2)}) != content_digest({"b": np.ones(2)})
    with pytest.raises(DataError, match="object"):
        array_digest(np.array([None]))


# --- the catalogue


def test_every_set_has_an_address_that_may_be_asked_and_a_reader():
    for each in sources.catalogue().values():
        assert each.sources
        for source in each.sources:
            assert (source.read is None) == (not source.files) == (source.fetcher is not None)
            assert all(file.address.startswith("https://") for file in source.files)


def test_every_set_of_the_published_experiments_is_in_the_catalogue():
    from reproduction import catalogue

    needed = {name for experiment in catalogue().values() for name in experiment.data}
    assert needed <= set(sources.catalogue())


@needs_data
@pytest.mark.parametrize("name", ["pendigits", "3sources", "add32", "tr11", "olivetti"])
def test_digests_of_the_catalogue_are_those_of_the_files(name):
    known = sources.catalogue()[name]
    assert content_digest(read_arrays(Path(DATA, f"{known.path}.npz"))) == known.target.sha256
