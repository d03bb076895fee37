"""Graphs in the text format of METIS and Walshaw's archive: a line per node that lists its neighbours."""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from kernelweave.foundation.errors import DataError


def load_metis(path):
    r"""Load a graph from a METIS file.

    Parameters
    ----------
    path : path-like
        The file; one compressed by gzip is recognised by its content. The first line gives the numbers of nodes and
        edges and, if there are weights, a code whose last digit is 1 for edges and whose last but one is 1 for nodes
        (then the number of weights a node has may follow). Every further line lists the neighbours of a node, counted
        from 1, each followed by the edge's weight if edges have weights; a node without neighbours has an empty line.
        There must be as many lines as nodes; empty ones after these do not count. Lines that begin with ``%`` are
        skipped.

    Returns
    -------
    Bunch
        - ``graph``: (n_nodes, n_nodes) symmetric ``csr_array`` of float64;
        - ``node_ids``: (n_nodes,) the numbers of the nodes, from 1;
        - ``node_weights``: (n_nodes, n_constraints) or None;
        - ``DESCR``: a line that describes the graph.

    Raises
    ------
    DataError
        If the file cannot be read, does not follow the format, or lists an edge at one of its ends only.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelweave.datasets import load_metis
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "path.graph")
    ...     _ = file.write_text("3 2\n2\n1 3\n2\n")
    ...     path = load_metis(file)
    >>> path.graph.toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    path = Path(path)
    lines = _lines(path)
    header = _header(path, *lines[0])
    body = lines[1:]
    if len(body) < header.n_nodes:
        raise DataError(
            f"{path}:{lines[0][0]}: the first line announces {header.n_nodes} nodes, but {len(body)} line(s) follow; a "
            "node without neighbours has an empty line."
        )
    if more := [number for number, line in body[header.n_nodes :] if line.strip()]:
        raise DataError(f"{path}:{more[0]}: there are more lines than the {header.n_nodes} nodes of the first line.")
    nodes = [_node(path, number, line, i, header) for i, (number, line) in enumerate(body[: header.n_nodes])]
    return _graph(path, header, nodes)


@dataclass(frozen=True)
class _Header:
    n_nodes: int
    n_edges: int
    edge_weights: bool
    node_sizes: bool
    n_node_weights: int


@dataclass(frozen=True)
class _Node:
    neighbours: list[int]  # from 0
    edge_weights: list[int]
    weights: list[int]


def _lines(path):
    """Return the lines that are not comments, with their numbers from 1."""
    text = _text(path)
    if not text.strip():
        raise DataError(f"{path}:1: the file is empty.")
    numbered = enumerate(text.removesuffix("\n").split("\n"), 1)
    lines = [(number, line) for number, line in numbered if not line.startswith("%")]
    if not lines:
        raise DataError(f"{path}:1: there is nothing but comments.")
    return lines


def _header(path, number, line):
    entries = _integers(path, number, line)
    if not 2 <= len(entries) <= 4 or min(entries) < 0 or entries[0] == 0:
        raise DataError(f"{path}:{number}: the first line must give the numbers of nodes and edges, not {line[:40]!r}.")
    code = entries[2] if len(entries) > 2 else 0
    sizes, nodes, edges = code // 100, code // 10 % 10, code % 10
    if max(sizes, nodes, edges) > 1:
        raise DataError(f"{path}:{number}: {code} is not a weight code; its digits are 0 or 1.")
    n_node_weights = (entries[3] if len(entries) > 3 else 1) if nodes else 0
    return _Header(entries[0], entries[1], edges == 1, sizes == 1, n_node_weights)


def _node(path, number, line, i, header):
    """Return node ``i``: a size that is skipped, its weights, its neighbours with the weights of edges."""
    entries = _integers(path, number, line)
    first = int(header.node_sizes)
    weights = entries[first : first + header.n_node_weights]
    if len(weights) < header.n_node_weights:
        raise DataError(f"{path}:{number}: node {i + 1} has no weight.")
    ends = entries[first + header.n_node_weights :]
    if header.edge_weights and len(ends) % 2:
        raise DataError(f"{path}:{number}: the last neighbour of node {i + 1} has no weight.")
    neighbours, edge_weights = (ends[::2], ends[1::2]) if header.edge_weights else (ends, [1] * len(ends))
    bad = next((end for end in neighbours if not 1 <= end <= header.n_nodes), None)
    if bad is not None:
        raise DataError(f"{path}:{number}: node {i + 1} has neighbour {bad}; nodes are 1 to {header.n_nodes}.")
    return _Node([end - 1 for end in neighbours], edge_weights, weights)


def _graph(path, header, nodes):
    """Return the graph, if every edge is listed at both ends with the same weight."""
    n = header.n_nodes
    rows = np.repeat(np.arange(n), [len(node.neighbours) for node in nodes])
    columns = np.array([end for node in nodes for end in node.neighbours], dtype=np.intp)
    weights = np.array([weight for node in nodes for weight in node.edge_weights], dtype=np.float64)
    graph = sp.csr_array((weights, (rows, columns)), shape=(n, n))
    graph.sum_duplicates()
    differences = (graph - graph.T).tocoo()
    differences.eliminate_zeros()
    if differences.nnz:
        u = int(differences.coords[0][0]) + 1
        v = int(differences.coords[1][0]) + 1
        raise DataError(f"{path}: the edge between nodes {u} and {v} is listed differently at its two ends.")
    n_listed = (len(rows) + int((rows == columns).sum())) // 2
    if n_listed != header.n_edges:
        raise DataError(f"{path}:1: the first line announces {header.n_edges} edges, but {n_listed} are listed.")
    node_weights = np.array([node.weights for node in nodes], dtype=np.float64) if header.n_node_weights else None
    about = f"{path.name}: a graph of {n} nodes and {n_listed} edges."
    return Bunch(graph=graph, node_ids=np.arange(1, n + 1), node_weights=node_weights, DESCR=about)


def _text(path):
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("ascii").replace("\r\n", "\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{path}: this is not a readable METIS file ({' '.join(str(error).split())[:120]}).") from error


def _integers(path, number, line):
    if "_" in line:  # Python reads 1_000 as a number
        entry = next(each for each in line.split() if "_" in each)
        raise DataError(f"{path}:{number}: {entry[:40]!r} is not an integer.")
    try:
        return [int(entry) for entry in line.split()]
    except ValueError as error:
        raise DataError(f"{path}:{number}: {str(error).rpartition(': ')[2][:40]} is not an integer.") from error
