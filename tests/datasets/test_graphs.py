import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from kernelweave import GraphCut
from kernelweave.datasets import load_edge_list
from kernelweave.foundation.errors import DataError, ParameterError


@pytest.fixture
def load(tmp_path):
    """Write a text and load it as an edge list."""

    def written(text, **options):
        path = tmp_path / "graph.txt"
        path.write_text(text, encoding="utf-8")
        return load_edge_list(path, **options)

    return written


def test_an_edge_list_becomes_a_symmetric_float_matrix(load):
    bunch = load("0 1\n1 2\n")
    assert isinstance(bunch.graph, sparse.csr_array)
    assert bunch.graph.dtype == np.float64
    assert bunch.graph.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert bunch.DESCR == "graph.txt: a graph of 3 nodes and 2 edges."


def test_integer_nodes_are_sorted_as_numbers(load):
    bunch = load("10 9\n9 -2\n")
    assert bunch.node_ids.dtype == np.int64
    assert bunch.node_ids.tolist() == [-2, 9, 10]
    assert bunch.graph.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("other", ["b", "007", "+7", "-0", "1.0", "12345678901234567890"])
def test_other_nodes_are_strings_in_order_of_first_appearance(load, other):
    bunch = load(f"9 {other}\n{other} 7\n")
    assert bunch.node_ids.tolist() == ["9", other, "7"]
    assert bunch.graph.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_comments_and_empty_lines_are_passed_over(load):
    assert load("# a\n% b\n\n   \n  # c\n1 2\n").graph.shape == (2, 2)
    assert load("// a\n#1 %2\n", comments="//").node_ids.tolist() == ["#1", "%2"]


def test_weights_are_read_where_the_first_edge_has_one(load):
    bunch = load("a b 0.5\nb c 2e0\n")
    assert bunch.graph.toarray().tolist() == [[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]]
    assert bunch.DESCR == "graph.txt: a graph of 3 nodes and 2 edges; weights from 0.5 to 2."


def test_without_weights_further_entries_are_passed_over(load):
    assert load("1 2 -5 x\n2 3\n", weighted=False).graph.data.tolist() == [1, 1, 1, 1]


def test_entries_may_be_parted_by_another_delimiter(load):
    bunch = load("New York, Boston, 3\n", delimiter=",")
    assert bunch.node_ids.tolist() == ["New York", "Boston"]
    assert bunch.graph[0, 1] == 3


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
def test_entries_may_stand_in_quotes_where_the_delimiter_is_given(load, mark):
    lines = [('"from"', '"to"', '"weight"'), ('"New York"', '"a ""b"""', "3"), ("c", '"New York"', "2")]
    bunch = load("".join(mark.join(line) + "\n" for line in lines), delimiter=mark)
    assert bunch.node_ids.tolist() == ["New York", 'a "b"', "c"]
    assert load('6" pipe,b\n', delimiter=",").node_ids.tolist() == ['6" pipe', "b"]


def test_an_edge_given_again_counts_once(load):
    assert load("1 2 3\n2 1 3\n1 2 3.0\n").graph.toarray().tolist() == [[0, 3], [3, 0]]


def test_a_self_loop_stands_once_on_the_diagonal(load):
    bunch = load("1 1 2\n1 2 4\n1 1 2\n")
    assert bunch.graph.toarray().tolist() == [[2, 4], [4, 0]]
    assert bunch.DESCR == "graph.txt: a graph of 2 nodes and 2 edges; 1 of them self-loops; weights from 2 to 4."


def test_a_weight_of_zero_names_nodes_without_an_edge(load):
    bunch = load("1 2 1\n3 3 0\n1 4 0\n")
    assert bunch.graph.shape == (4, 4)
    assert bunch.graph.nnz == 2


@pytest.mark.parametrize("words", ["from,to,weight", "Source,Target,Value", "node1,node2,w"])
def test_a_first_line_of_three_names_of_columns_is_passed_over(load, words):
    bunch = load(f"# a net\n{words}\na,b,2\n", delimiter=",")
    assert bunch.node_ids.tolist() == ["a", "b"]
    assert load(f"{words.replace(',', ' ')}\na b 2\n", weighted=True).graph[0, 1] == 2


def test_names_of_columns_are_names_of_nodes_where_a_weight_or_another_line_tells(load):
    assert load("u v 2\n").node_ids.tolist() == ["u", "v"]
    assert load("a b\nu v\nsource target\n").graph.shape == (6, 6)


def test_a_compressed_file_is_known_by_its_content(tmp_path):
    for name in ("graph.txt.gz", "graph"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"1 2\n"))
        assert load_edge_list(str(path)).graph.nnz == 2


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "there is no edge"),
        ("# nothing\n\n", {}, "there is no edge"),
        ("1 2\n3\n", {}, r"graph\.txt:2: this line does not hold an edge of 2 entries: '3'\. Check delimiter"),
        ("1 2\n1 3 4\n", {}, r"graph\.txt:2: .* 2 entries: '1 3 4'"),
        ("# head\n1 2 3\n\n1 3\n", {}, r"graph\.txt:4: .* 3 entries: '1 3'"),
        ("1 2 3 4\n", {}, r"graph\.txt:1: .* 2 or 3 entries"),
        ("1 2\n", {"weighted": True}, r"graph\.txt:1: .* 3 entries"),
        ("1\n", {"weighted": False}, r"graph\.txt:1: .* 2 or more entries"),
        (
            '1,2\n"a,b\n',
            {"delimiter": ","},
            r"graph\.txt:2: the quotes in '\"a,b' do not follow CSV rules\. Close its quotes",
        ),
        (",2\n", {"delimiter": ","}, r"graph\.txt:1: .* 2 or 3 entries"),
        ("1 2 1\n2 3 -1\n", {}, r"graph\.txt:2: the weight is '-1'"),
        ("1 2 nan\n", {}, r"graph\.txt:1: the weight is 'nan'"),
        ("1 2 inf\n", {}, r"graph\.txt:1: the weight is 'inf'.*weighted=False"),
        ("1 2 1_000\n", {}, r"graph\.txt:1: the weight is '1_000'"),
        ("1 2 \u0661\n", {}, r"graph\.txt:1: the weight is '\u0661'"),
        ("from to weight\n", {}, "there is no edge"),
        (
            "source target\n1 2\n",
            {},
            r"graph\.txt:1: this line may be a header or an edge: 'source target'\. Remove it or",
        ),
        ("# net\n\nU v\n1 2\n", {}, r"graph\.txt:3: this line may be a header"),
        ("from,to\n1,2\n", {"delimiter": ","}, r"graph\.txt:1: this line may be a header"),
        ("from to weight\n1 2 3\n", {"weighted": False}, r"graph\.txt:1: this line may be a header"),
        ("a b 1\nb c 1\nb a 2\n", {}, r"graph\.txt:3: the edge b - a has the weight 2, and line 1 gave it 1"),
        ("a b 1\na b 2\n", {}, r"graph\.txt:2: "),
        ("a a 1\na a 0\n", {}, r"graph\.txt:2: "),
        ("%%MatrixMarket matrix coordinate\n2 2 1\n1 2\n", {}, "scipy.io.mmread"),
    ],
)
def test_what_is_no_edge_list_is_refused_with_its_line(load, text, options, message):
    with pytest.raises(DataError, match=message):
        load(text, **options)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.txt: this cannot be read \(No such file"):
        load_edge_list(tmp_path / "nowhere.txt")
    (tmp_path / "latin").write_bytes(b"Z\xfcrich Bern\n")
    with pytest.raises(DataError, match="UTF-8"):
        load_edge_list(tmp_path / "latin")
    (tmp_path / "cut").write_bytes(gzip.compress(b"1 2\n" * 100)[:-12])
    with pytest.raises(DataError, match="cut: this cannot be read"):
        load_edge_list(tmp_path / "cut")


@pytest.mark.parametrize(
    "options", [{"weighted": "yes"}, {"weighted": 1}, {"comments": ""}, {"comments": (1,)}, {"delimiter": ""}]
)
def test_options_that_mean_nothing_are_refused(load, options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        load("1 2\n", **options)


@settings(max_examples=30, deadline=None)  # files take as long as the disk lets them
@given(seed=st.integers(0, 2**16), n=st.integers(1, 12))
def test_a_graph_written_and_loaded_is_the_same(tmp_path_factory, seed, n):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)).round(3) * (rng.random((n, n)) < 0.4))
    A = upper + np.triu(upper, 1).T
    pairs = [(i, j) for i, j in zip(*np.nonzero(A), strict=True) if i <= j or rng.random() < 0.5]
    lines = [f"{i} {i} {A[i, i]!s}" for i in range(n)]
    lines += [f"{i} {j} {A[i, j]!s}" for i, j in rng.permutation(pairs).tolist()]
    path = tmp_path_factory.mktemp("graph") / "graph.txt"
    path.write_text("\n".join(lines))
    assert np.array_equal(load_edge_list(path).graph.toarray(), A)


def test_what_is_loaded_can_be_cut(load):
    bunch = load("a b\nb c\nc a\nd e\ne f\nf d\na d\n")
    labels = GraphCut(2).fit_predict(bunch.graph)
    assert {frozenset(bunch.node_ids[labels == c].tolist()) for c in (0, 1)} == {frozenset("abc"), frozenset("def")}
