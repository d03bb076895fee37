"""Graphs in GraphML and Matrix Market files."""

import gzip

import numpy as np
import pytest

from kernelweave.datasets import load_graphml, load_market_graph
from kernelweave.foundation.errors import DataError

HEAD = '<?xml version="1.0" encoding="UTF-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
KEY = '<key id="w" for="edge" attr.name="weight" attr.type="double">{}</key>'


def written(folder, body, key="", kind="undirected", name="g.graphml"):
    path = folder / name
    path.write_text(f'{HEAD}{key}<graph id="G" edgedefault="{kind}">{body}</graph></graphml>', encoding="utf-8")
    return path


def nodes(*names):
    return "".join(f'<node id="{name}"><data key="other">x</data></node>' for name in names)


def test_nodes_edges_weights_and_defaults_are_read(tmp_path):
    body = nodes("b", "a", "alone") + '<edge source="b" target="a"><data key="w"> 2.5 </data></edge>'
    body += '<edge source="a" target="a"/>'
    read = load_graphml(written(tmp_path, body, KEY.format("<default>3</default>")))
    assert read.node_ids.tolist() == ["b", "a", "alone"]
    np.testing.assert_array_equal(read.graph.toarray(), [[0, 2.5, 0], [2.5, 3, 0], [0, 0, 0]])
    assert not read.directed
    assert read.edge_attributes == []


def test_edges_without_a_weight_have_1_and_other_attributes_are_named(tmp_path):
    key = '<key id="s" for="edge" attr.name="strength"/><key id="n" for="node" attr.name="weight"/>'
    body = nodes("1", "2", "10") + '<edge source="10" target="2"><data key="s">7</data></edge>'
    read = load_graphml(written(tmp_path, body, key, kind="directed"))
    assert read.node_ids.tolist() == [1, 2, 10]
    np.testing.assert_array_equal(read.graph.toarray(), [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert read.directed
    assert read.edge_attributes == ["strength"]


def test_the_weight_of_a_node_is_not_that_of_an_edge(tmp_path):
    body = '<node id="a"><data key="w">9</data></node><node id="b"/><edge source="a" target="b"/>'
    assert load_graphml(written(tmp_path, body, KEY.format(""))).graph.max() == 1.0


def test_one_weight_does_not_go_on_to_the_next_edge(tmp_path):
    body = (
        nodes("a", "b", "c") + '<edge source="a" target="b"><data key="w">4</data></edge><edge source="b" target="c"/>'
    )
    graph = load_graphml(written(tmp_path, body, KEY.format(""))).graph
    assert (graph[0, 1], graph[1, 2]) == (4.0, 1.0)


def test_compressed_files_are_read(tmp_path):
    plain = written(tmp_path, nodes("a", "b") + '<edge source="a" target="b"/>')
    packed = tmp_path / "g.graphml.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert load_graphml(packed).graph.nnz == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (nodes("a", "a"), "the node 'a' was already in line 1"),
        ("<node/>", "a node has no id"),
        (nodes("a"), "there is no edge in it"),
        (nodes("a", "b") + '<edge source="a"/>', "an edge lacks its source or target"),
        (nodes("a", "b") + '<edge source="a" target="z"/>', "there is no node 'z'"),
        (nodes("a") + "<hyperedge/>", "it has hyperedges"),
        ('<node id="a"><graph/></node>', "there are several graphs"),
        (nodes("a", "b") + '<edge source="a" target="b"><data key="w">-1</data></edge>', "the weight is '-1'"),
        (
            nodes("a", "b")
            + '<edge source="a" target="b"><data key="w">1</data></edge>'
            + '<edge source="b" target="a"><data key="w">2</data></edge>',
            "edges have no direction",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path, body, message):
    with pytest.raises(DataError, match=message):
        load_graphml(written(tmp_path, body, KEY.format("")))


def test_entities_are_refused_before_they_grow(tmp_path):
    path = tmp_path / "bomb.graphml"
    entities = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    path.write_text(f"<?xml version='1.0'?><!DOCTYPE g [{entities}]><graphml><graph>&a11;</graph></graphml>")
    with pytest.raises(DataError, match="it declares a document type"):
        load_graphml(path)


def test_files_that_are_not_there_or_no_xml_are_named(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load_graphml(tmp_path / "none.graphml")
    bad = tmp_path / "bad.graphml"
    bad.write_bytes(b"\x1f\x8b cut")
    with pytest.raises(DataError, match="cannot be read"):
        load_graphml(bad)
    bad.write_text("no xml")
    with pytest.raises(DataError, match=r"bad\.graphml:1: this is not readable GraphML"):
        load_graphml(bad)


def market(folder, entries, shape="3 3", kind="real general", name="g.mtx"):
    path = folder / name
    path.write_text(f"%%MatrixMarket matrix coordinate {kind}\n{shape} {len(entries)}\n" + "\n".join(entries) + "\n")
    return path


def test_matrices_of_one_direction_or_both_are_the_same_graph(tmp_path):
    expected = [[0, 2, 0], [2, 0, 1], [0, 1, 5]]
    one = load_market_graph(market(tmp_path, ["1 2 2", "3 2 1", "3 3 5"]))
    both = load_market_graph(market(tmp_path, ["1 2 2", "2 1 2", "2 3 1", "3 2 1", "3 3 5"]))
    half = load_market_graph(market(tmp_path, ["2 1 2", "3 2 1", "3 3 5"], kind="real symmetric"))
    for read in (one, both, half):
        np.testing.assert_array_equal(read.graph.toarray(), expected)
        assert read.node_ids.tolist() == [1, 2, 3]
    assert (one.directed, both.directed, half.directed) == (True, False, False)


@pytest.mark.parametrize(
    ("entries", "shape", "message"),
    [
        (["1 2 2", "2 1 3"], "3 3", "row 1, column 2 holds 2, and row 2, column 1 3"),
        (["1 2 -2"], "3 3", "some weights are negative"),
        (["1 2 nan"], "3 3", "some weights are negative, or not finite"),
        (["1 2 1"], "2 3", r"square, but this one has shape \(2, 3\)"),
        ([], "3 3", "there is no edge in it"),
        (["9 9 1"], "3 3", "not a readable Matrix Market file"),
    ],
)
def test_matrices_that_are_no_graphs_are_refused(tmp_path, entries, shape, message):
    with pytest.raises(DataError, match=message):
        load_market_graph(market(tmp_path, entries, shape))
