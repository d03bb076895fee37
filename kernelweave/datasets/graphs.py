"""Graphs kept as text, one edge a line.

Input       ``u v`` or ``u v weight`` on each line, plain or compressed by gzip
Guarantee   a symmetric sparse matrix, every edge once; whatever cannot be meant so is refused with its line number
"""

import csv
import gzip
import math
import re
import zlib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from kernelweave.foundation.errors import DataError, ParameterError, Remedy

_GZIP = b"\x1f\x8b"
# As an integer is written: "007" and "+7" are names of other nodes than "7". Eighteen digits fit into 64 bits.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
#: Words that name columns rather than nodes.
HEADER_WORDS = frozenset(
    {"source", "target", "from", "to", "node", "node1", "node2", "u", "v", "src", "dst", "weight", "w", "value"}
)
#: What to do about faults of a file, by name.
REMEDIES = {
    "entries": "Check delimiter, comments and weighted.",
    "weight": "Pass weighted=False to skip the third entry.",
    "market": "Use scipy.io.mmread.",
    "header": "Remove it or write '#' before it if it is a header; put another edge first if it is one.",
    "quote": "Close its quotes.",
}


@dataclass(frozen=True)
class Edge:
    """An edge with its line in the file, from 1."""

    line: int
    ends: tuple[str, str]
    weight: float


def load_edge_list(path, *, weighted="auto", comments=("#", "%"), delimiter=None, header=None):
    r"""Load a graph from a text file with one edge per line.

    Use it for graphs to be partitioned by :class:`kernelweave.GraphCut`. Edges have no direction: ``u v`` and ``v u``
    are the same edge, and a file may hold either or both.

    Parameters
    ----------
    path : path-like
        The file; one compressed by gzip is recognised by its content.
        A first line of three words that name columns, such as ``from to weight``, is skipped: its third
        entry is not a weight. One of two, such as ``source target``, might be an edge and is refused. Such words are
        source, target, from, to, node, node1, node2, u, v, src, dst, weight, w and value, in any case.
    weighted : {"auto", True, False}, default="auto"
        Whether the third entry of a line is the weight of the edge. ``"auto"``: yes, if the first edge has one; then
        all lines must have one. False: entries after the second are skipped and all weights are 1.
    comments : str or tuple of str, default=("#", "%")
        A line that begins with one of these is skipped, as is an empty one. Elsewhere in a line they have no
        meaning, since names of nodes may contain them.
    delimiter : str or None, default=None
        What separates the entries of a line; None means blanks and tabs, any number of them. Where it is one character,
        entries may be in double quotes, as in CSV files, within a line.
    header : bool or None, default=None
        Whether the first line that is not a comment names columns and is skipped; None decides by its words.

    Returns
    -------
    Bunch
        - ``graph``: (n_nodes, n_nodes) symmetric ``csr_array`` of float64. A self-loop is on the diagonal, once. A
          weight of 0 is not an edge, but its nodes belong to the graph: ``u u 0`` names a node without edges;
        - ``node_ids``: (n_nodes,) the names of the nodes in the file, in the order of the rows of ``graph``. If all of
          them are integers they are an int64 array and sorted; else strings, in order of their first appearance;
        - ``DESCR``: a line that describes the graph.

    Raises
    ------
    DataError
        If the file cannot be read or holds no edge; at a line without two nodes, or with a weight that is missing,
        negative, not a finite number or different from the weight of the same edge in an earlier line; at a first
        line that may be a header or an edge.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelweave.datasets import load_edge_list
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "roads.txt")
    ...     _ = file.write_text("# from to lanes\nBern Thun 2\nThun Spiez 1\nSpiez Thun 1\n")
    ...     roads = load_edge_list(file)
    >>> roads.DESCR
    'roads.txt: a graph of 3 nodes and 2 edges; weights from 1 to 2.'
    >>> roads.node_ids.tolist()
    ['Bern', 'Thun', 'Spiez']
    >>> roads.graph.toarray()
    array([[0., 2., 0.],
           [2., 0., 1.],
           [0., 1., 0.]])
    """
    marks = (comments,) if isinstance(comments, str) else tuple(comments)
    _check_arguments(weighted, marks, delimiter)
    if not (header is None or isinstance(header, bool)):
        raise ParameterError(f"header={header!r} cannot be used: pass True, False or None.")
    return read_edge_list(Path(path), weighted=weighted, marks=marks, delimiter=delimiter, header=header)


def read_edge_list(path, *, weighted="auto", marks=("#", "%"), delimiter=None, header=None):
    """Return what ``load_edge_list`` does; ``header`` is whether the first line is one, None where that must show."""
    edges = list(_edges(path, text_lines(path), weighted, marks, delimiter, header))
    if not edges:
        raise DataError(f"{path}: there is no edge in it; write one per line, as 'u v' or 'u v weight'.")
    node_ids, rows, columns = number_nodes(edges)
    graph = symmetric_graph(path, edges, rows, columns, len(node_ids))
    return Bunch(graph=graph, node_ids=node_ids, DESCR=describe_graph(path.name, graph))


def _check_arguments(weighted, marks, delimiter):
    if not (isinstance(weighted, bool) or weighted == "auto"):
        raise ParameterError(f"weighted={weighted!r} cannot be used: pass 'auto', True or False.")
    if not all(isinstance(mark, str) and mark for mark in marks):
        raise ParameterError(f"comments={marks!r} cannot be used: pass a string or a tuple of strings, none empty.")
    if delimiter is not None and not (isinstance(delimiter, str) and delimiter):
        raise ParameterError(f"delimiter={delimiter!r} cannot be used: pass a string, or None for blanks and tabs.")


def text_lines(path):
    """Yield the lines of a file, compressed or not."""
    try:
        with path.open("rb") as stream:
            compressed = stream.read(2) == _GZIP
        with (gzip.open if compressed else open)(path, "rt", encoding="utf-8-sig") as stream:
            yield from stream
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as reason:
        why = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        why = "it is not UTF-8 text" if isinstance(reason, UnicodeDecodeError) else why
        raise DataError(
            f"{path}: this cannot be read ({why}); name a text file in UTF-8, or one compressed by gzip."
        ) from reason


def _edges(path, lines, weighted, marks, delimiter, header):
    """Yield the edges; the first one decides how many entries all lines have, unless ``weighted`` does."""
    fewest, most = {True: (3, 3), False: (2, math.inf)}.get(weighted, (2, 3))
    begun = False
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.startswith("%%MatrixMarket"):
            raise DataError(f"{path}:1: this is a Matrix Market file, not a list of edges. ", _remedy("market"))
        line = line.strip()
        if not line or line.startswith(marks):
            continue
        first = not begun
        begun = True
        if first and header:
            continue
        entries = _entries(path, number, line, delimiter)
        if not fewest <= len(entries) <= most or not all(entries[:2]):
            wanted = "2 or 3" if fewest < most < math.inf else f"{fewest}{' or more' if most > 3 else ''}"
            raise DataError(
                f"{path}:{number}: this line does not hold an edge of {wanted} entries: {line[:60]!r}. ",
                _remedy("entries"),
            )
        if first and header is None and _is_header(path, number, entries, most == 3):
            continue
        if weighted == "auto":
            fewest, most = len(entries), len(entries)
        weight = edge_weight(path, number, entries[2]) if most == 3 else 1.0
        yield Edge(number, (entries[0], entries[1]), weight)


def _entries(path, number, line, delimiter):
    if '"' not in line or delimiter is None or len(delimiter) > 1 or delimiter in '"\r\n':
        return [entry.strip() for entry in line.split(delimiter)]
    try:
        (entries,) = csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)
    except csv.Error as error:
        message = f"{path}:{number}: the quotes in {line[:60]!r} do not follow CSV rules. "
        raise DataError(message, _remedy("quote")) from error
    return [entry.strip() for entry in entries]


def _remedy(fault):
    return Remedy(fault, REMEDIES[fault])


def _is_header(path, number, entries, third_is_weight):
    """Whether a first line certainly names columns; refuse one that possibly does."""
    if not all(entry.lower() in HEADER_WORDS for entry in entries):
        return False
    if len(entries) == 3 and third_is_weight:  # no word is a weight
        return True
    raise DataError(
        f"{path}:{number}: this line may be a header or an edge: {' '.join(entries)[:60]!r}. ", _remedy("header")
    )


def edge_weight(path, number, entry):
    """Return a weight, or refuse what is not one."""
    try:
        weight = float(entry) if entry.isascii() and "_" not in entry else math.nan  # Python reads more than is meant
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise DataError(
            f"{path}:{number}: the weight is {entry!r}; weights are finite numbers of 0 or more, with a decimal "
            "point. ",
            _remedy("weight"),
        )
    return weight


def number_nodes(edges, nodes=None):
    """Return the names of the nodes, and the two ends of every edge as positions among them.

    Nodes are those of the edges unless others are named as well.
    """
    names = list(dict.fromkeys(chain.from_iterable(edge.ends for edge in edges)) if nodes is None else nodes)
    node_ids = np.array(names)
    if all(map(_INTEGER.fullmatch, names)):
        names.sort(key=int)
        node_ids = np.array(names, dtype=np.int64)
    place = {name: i for i, name in enumerate(names)}
    rows, columns = (np.array([place[edge.ends[end]] for edge in edges]) for end in (0, 1))
    return node_ids, rows, columns


def symmetric_graph(path, edges, rows, columns, n):
    """Return the adjacency with every edge once; lines that name the same edge must give the same weight."""
    weights = np.array([edge.weight for edge in edges])
    low = np.minimum(rows, columns)
    high = np.maximum(rows, columns)
    _, first, same = np.unique(low * n + high, return_index=True, return_inverse=True)
    if len(other := np.flatnonzero(weights != weights[first][same])):
        here = edges[other[0]]
        there = edges[first[same[other[0]]]]
        raise DataError(
            f"{path}:{here.line}: the edge {' - '.join(here.ends)} has the weight {here.weight:.9g}, and line "
            f"{there.line} gave it {there.weight:.9g}: edges have no direction, so both must agree. For a directed "
            "graph sum or average the two first."
        )
    low = low[first]
    high = high[first]
    weights = weights[first]
    between = low != high  # a self-loop is stored once, every other edge in both directions
    entries = np.r_[weights, weights[between]], (np.r_[low, high[between]], np.r_[high, low[between]])
    graph = sparse.csr_array(entries, shape=(n, n))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def describe_graph(name, graph):
    """Return a line that describes a graph."""
    loops = int(np.count_nonzero(graph.diagonal()))
    facts = [f"{name}: a graph of {graph.shape[0]} nodes and {(graph.nnz + loops) // 2} edges"]
    if loops:
        facts.append(f"{loops} of them self-loops")
    if graph.nnz and np.any(graph.data != 1.0):
        facts.append(f"weights from {graph.data.min():.6g} to {graph.data.max():.6g}")
    return "; ".join(facts) + "."
