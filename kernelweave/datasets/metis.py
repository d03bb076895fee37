"""Graphs in the text format of METIS and Walshaw's archive: a line per node that lists its neighbours."""

import gzip
import zlib
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
        from 1, each followed by the edge's weight if there are such; that of a node without neighbours is empty. There
        must be as many lines as nodes; empty ones after these do not count. Lines that begin with ``%`` are passed
        over.

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
    ...     found = load_metis(file)
    >>> found.graph.toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    path = Path(path)
    text = _text(path)
    if not text.strip():
        raise DataError(f"{path}:1: the file is empty.")
    numbered = enumerate(text.removesuffix("\n").split("\n"), 1)
    lines = [(number, line) for number, line in numbered if not line.startswith("%")]
    if not lines:
        raise DataError(f"{path}:1: there are comments alone.")
    first, head = lines[0]
    header = _integers(path, first, head)
    if not 2 <= len(header) <= 4 or min(header) < 0 or header[0] == 0:
        raise DataError(f"{path}:{first}: the first line must give the numbers of nodes and edges, not {head[:40]!r}.")
    n = header[0]
    n_edges = header[1]
    code = header[2] if len(header) > 2 else 0
    on_edges = code % 10 == 1
    on_nodes = code // 10 % 10 == 1
    sized = code // 100 % 10 == 1
    if code % 10 > 1 or code // 10 % 10 > 1 or code // 100 > 1:
        raise DataError(f"{path}:{first}: {code} is no code of weights; its digits are 0 or 1.")
    n_weights = (header[3] if len(header) > 3 else 1) if on_nodes else 0
    body = lines[1:]
    if len(body) < n:
        raise DataError(
            f"{path}:{first}: the first line promises {n} nodes, and {len(body)} line(s) follow; a node without "
            "neighbours has an empty line."
        )
    if more := [number for number, line in body[n:] if line.strip()]:
        raise DataError(f"{path}:{more[0]}: there are more lines than the {n} nodes of the first line.")
    rows = []
    columns = []
    weights = []
    of_nodes = []
    for node, (number, line) in enumerate(body[:n]):
        entries = _integers(path, number, line)
        skip = n_weights + int(sized)
        of_nodes.append(entries[int(sized) : skip])
        if len(of_nodes[-1]) < n_weights:
            raise DataError(f"{path}:{number}: node {node + 1} has no weight.")
        ends = entries[skip:]
        if on_edges and len(ends) % 2:
            raise DataError(f"{path}:{number}: the last neighbour of node {node + 1} has no weight.")
        near, own = (ends[::2], ends[1::2]) if on_edges else (ends, [1] * len(ends))
        bad = next((end for end in near if not 1 <= end <= n), None)
        if bad is not None:
            raise DataError(f"{path}:{number}: node {node + 1} has neighbour {bad}; nodes are 1 to {n}.")
        rows += [node] * len(near)
        columns += [end - 1 for end in near]
        weights += own
    return _graph(path, n, n_edges, rows, columns, weights, of_nodes if n_weights else None)


def _graph(path, n, n_edges, rows, columns, weights, of_nodes):
    graph = sp.csr_array((np.array(weights, dtype=np.float64), (rows, columns)), shape=(n, n))
    graph.sum_duplicates()
    apart = (graph - graph.T).tocoo()
    apart.eliminate_zeros()
    if apart.nnz:
        u = int(apart.coords[0][0]) + 1
        v = int(apart.coords[1][0]) + 1
        raise DataError(f"{path}: the edge between nodes {u} and {v} is not listed alike at both ends.")
    found = (len(rows) + int((np.array(rows) == np.array(columns)).sum())) // 2
    if found != n_edges:
        raise DataError(f"{path}:1: the first line promises {n_edges} edges, and {found} are listed.")
    node_weights = None if of_nodes is None else np.array(of_nodes, dtype=np.float64)
    about = f"{path.name}: a graph of {n} nodes and {found} edges."
    return Bunch(graph=graph, node_ids=np.arange(1, n + 1), node_weights=node_weights, DESCR=about)


def _text(path):
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("ascii").replace("\r\n", "\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{path}: this is no readable METIS file ({' '.join(str(error).split())[:120]}).") from error


def _integers(path, number, line):
    if "_" in line:  # Python reads 1_000 as a number
        raise DataError(f"{path}:{number}: {next(each for each in line.split() if '_' in each)[:40]!r} is no integer.")
    try:
        return [int(entry) for entry in line.split()]
    except ValueError as error:
        raise DataError(f"{path}:{number}: {str(error).rpartition(': ')[2][:40]} is no integer.") from error
