"""Graphs in the format of METIS."""

import gzip

import numpy as np
import pytest

from kernelweave import DataError
from kernelweave.datasets import load_metis

PLAIN = "% a comment\n4 3\n2 3\n1\n1 4\n3\n"


def written(tmp_path, text):
    path = tmp_path / "net.graph"
    path.write_text(text)
    return path


def test_neighbours_become_a_symmetric_matrix(tmp_path):
    result = load_metis(written(tmp_path, PLAIN))
    expected = np.zeros((4, 4))
    for u, v in ((0, 1), (0, 2), (2, 3)):
        expected[u, v] = expected[v, u] = 1.0
    np.testing.assert_array_equal(result.graph.toarray(), expected)
    assert result.node_ids.tolist() == [1, 2, 3, 4]
    assert result.DESCR == "net.graph: a graph of 4 nodes and 3 edges."


def test_weights_of_edges_and_nodes_are_read(tmp_path):
    result = load_metis(written(tmp_path, "2 1 11\n7 2 5\n8 1 5\n"))
    np.testing.assert_array_equal(result.graph.toarray(), [[0, 5], [5, 0]])
    assert result.node_weights.tolist() == [[7], [8]]
    several = load_metis(written(tmp_path, "2 1 010 2\n7 1 2\n8 2 1\n"))
    assert several.node_weights.tolist() == [[7, 1], [8, 2]]


def test_sizes_of_nodes_are_skipped(tmp_path):
    result = load_metis(written(tmp_path, "2 1 100\n9 2\n9 1\n"))
    np.testing.assert_array_equal(result.graph.toarray(), [[0, 1], [1, 0]])
    assert result.node_weights is None
    every = load_metis(written(tmp_path, "2 1 111\n9 7 2 5\n9 8 1 5\n"))
    np.testing.assert_array_equal(every.graph.toarray(), [[0, 5], [5, 0]])
    assert every.node_weights.tolist() == [[7], [8]]


def test_a_self_loop_is_one_edge_though_it_is_listed_once(tmp_path):
    result = load_metis(written(tmp_path, "2 2\n1 2\n1\n"))
    np.testing.assert_array_equal(result.graph.toarray(), [[1, 1], [1, 0]])
    assert result.DESCR.endswith("2 nodes and 2 edges.")


def test_nodes_without_neighbours_have_empty_lines_even_at_the_end(tmp_path):
    result = load_metis(written(tmp_path, "4 1\n\n3\n2\n\n"))
    assert result.graph.sum(axis=1).tolist() == [0, 1, 1, 0]


def test_empty_lines_after_those_of_the_nodes_do_not_count(tmp_path):
    for end in ("\n", "\n\n\n", " \n\t\n"):
        np.testing.assert_array_equal(
            load_metis(written(tmp_path, f"2 1\n2\n1\n{end}")).graph.toarray(), [[0, 1], [1, 0]]
        )


def test_compressed_files_are_recognised(tmp_path):
    path = tmp_path / "net.graph.gz"
    path.write_bytes(gzip.compress(PLAIN.encode()))
    assert load_metis(path).graph.nnz == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"net\.graph:1: the file is empty"),
        ("\n\n", r":1: the file is empty"),
        ("four 3\n", r":1: 'four' is not an integer"),
        ("4\n", r":1: the first line must give"),
        ("2 1 2\n2\n1\n", r":1: 2 is not a weight code"),
        ("2 1\n2\n1\n1\n", r":4: there are more lines than the 2 nodes"),
        ("2 1\n2\n1\n\n1\n", r":5: there are more lines than the 2 nodes of the first line"),
        (
            "4 1\n\n3\n2\n",
            r":1: the first line announces 4 nodes, but 3 line\(s\) follow; "
            r"a node without .* empty line",
        ),
        ("% net\n99 1\n2\n1\n", r":2: the first line announces 99 nodes, but 2 line"),
        ("999999999999 5\n2\n1\n", r":1: the first line announces 999999999999 nodes, but 2 line"),
        ("% nothing\n", r":1: there is nothing but comments"),
        ("1_0 3\n", r":1: '1_0' is not an integer"),
        ("2 1\n3\n1\n", r":2: node 1 has neighbour 3; nodes are 1 to 2"),
        ("2 1\n2\n\n", r"between nodes 1 and 2 is listed differently at its two ends"),
        ("2 5\n2\n1\n", r":1: the first line announces 5 edges, but 1 are listed"),
        ("2 1 1\n2\n1 5\n", r":2: the last neighbour of node 1 has no weight"),
        ("2 1 10\n\n1 1\n", r":2: node 1 has no weight"),
    ],
)
def test_faults_are_told_with_their_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        load_metis(written(tmp_path, text))


def test_files_that_are_not_there_or_not_text_are_refused(tmp_path):
    with pytest.raises(DataError, match="not a readable METIS file"):
        load_metis(tmp_path / "none.graph")
    path = tmp_path / "net.graph"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a readable METIS file"):
        load_metis(path)
    path.write_bytes(gzip.compress(PLAIN.encode())[:12] + b"\xff" * 9)
    with pytest.raises(DataError, match="not a readable METIS file"):
        load_metis(path)
