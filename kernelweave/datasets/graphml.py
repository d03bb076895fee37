"""Graphs in GraphML, the XML of NetworkX, igraph, Gephi and yEd, and graphs as sparse matrices in Matrix Market files.

Input       ``node`` and ``edge`` elements; the edge attribute called ``weight`` is the weight
Guarantee   a symmetric sparse matrix, every edge once; declarations of document types, and so of entities, are refused
"""

import gzip
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread
from sklearn.utils import Bunch

from kernelweave.datasets.graphs import Edge, describe_graph, edge_weight, number_nodes, symmetric_graph
from kernelweave.foundation.errors import DataError
from kernelweave.inputs.files.binary import sparse_matrices_allowed

_GZIP = b"\x1f\x8b"
_WEIGHT = "weight"
# Elements whose meaning would be lost.
_REFUSED = {"hyperedge": "hyperedges", "port": "ports"}


@dataclass
class _Document:
    """What was read of a document so far."""

    weight_keys: dict[str, str] = field(default_factory=dict)  # of edges: the default, by id of the key
    other_keys: list[str] = field(default_factory=list)  # names of other attributes of edges
    nodes: dict[str, int] = field(default_factory=dict)  # line by name, in order
    edges: list[Edge] = field(default_factory=list)
    directed: bool = False
    graphs: int = 0
    open_edge: tuple[int, tuple[str, str]] | None = None
    open_key: str | None = None
    weight: str | None = None
    text: list[str] = field(default_factory=list)


def load_graphml(path):
    r"""Load a graph from a GraphML file.

    Parameters
    ----------
    path : path-like
        The file; one compressed by gzip is recognised by its content. Edges have no direction, whatever the file says:
        ``u v`` and ``v u`` are the same edge, and must have the same weight.

    Returns
    -------
    Bunch
        - ``graph``: (n_nodes, n_nodes) symmetric ``csr_array`` of float64; the weight of an edge is its attribute
          called ``weight``, or 1;
        - ``node_ids``: (n_nodes,) ids of the nodes in the file, in its order, or sorted if all are integers;
        - ``directed``: whether the file calls its edges directed;
        - ``edge_attributes``: names of attributes of edges that are not used;
        - ``DESCR``: a line that describes the graph.

    Raises
    ------
    DataError
        If the file cannot be read, is not GraphML, declares a document type or entities, holds several graphs,
        hyperedges or ports, or an edge whose nodes are not in it or whose weight is not a finite number of 0 or more.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelweave.datasets import load_graphml
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pair.graphml")
    ...     edge = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
    ...     _ = file.write_text(f"<graphml><graph>{edge}</graph></graphml>")
    ...     pair = load_graphml(file)
    >>> pair.DESCR
    'pair.graphml: a graph of 2 nodes and 1 edges.'
    """
    path = Path(path)
    document = _Document()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = lambda *_: _refuse(path, parser, "it declares a document type; remove <!DOCTYPE>")
    parser.EntityDeclHandler = lambda *_: _refuse(path, parser, "it declares entities; remove them")
    parser.StartElementHandler = lambda name, attributes: _start(path, parser, document, name, attributes)
    parser.EndElementHandler = lambda name: _end(path, document, name)
    parser.CharacterDataHandler = document.text.append
    try:
        parser.Parse(_content(path), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(f"{path}:{error.lineno}: this is not readable GraphML ({reason}); write it again.") from error
    if not document.graphs:
        raise DataError(f"{path}: there is no <graph> in it, so it is not GraphML; name another file.")
    if not document.edges:
        raise DataError(f"{path}: there is no edge in it; add some.")
    return _bunch(path, document)


def _content(path):
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    except (OSError, EOFError, zlib.error) as reason:
        why = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        raise DataError(
            f"{path}: this cannot be read ({why}); name a GraphML file, compressed by gzip or not."
        ) from reason


def _refuse(path, parser, fault):
    raise DataError(f"{path}:{parser.CurrentLineNumber}: this graph cannot be read: {fault}.")


def _start(path, parser, document, name, attributes):
    tag = name.rpartition(" ")[2]
    document.text.clear()
    if tag in _REFUSED:
        _refuse(path, parser, f"it has {_REFUSED[tag]}; write plain edges")
    if tag == "graph":
        document.graphs += 1
        document.directed = attributes.get("edgedefault") == "directed"
        if document.graphs > 1:
            _refuse(path, parser, "there are several graphs in it; save one of them")
    elif tag == "key" and attributes.get("for") in ("edge", "all", None):
        called = attributes.get("attr.name", attributes.get("id", ""))
        if called.lower() == _WEIGHT:
            document.open_key = attributes.get("id", "")
            document.weight_keys[document.open_key] = ""
        else:
            document.other_keys.append(called)
    elif tag == "node":
        node = attributes.get("id")
        if node is None:
            _refuse(path, parser, "a node has no id; give it one")
        if node in document.nodes:
            _refuse(
                path, parser, f"the node {node!r} was already in line {document.nodes[node]}; node ids must be unique"
            )
        document.nodes[node] = parser.CurrentLineNumber
    elif tag == "edge":
        ends = (attributes.get("source"), attributes.get("target"))
        if None in ends:
            _refuse(path, parser, "an edge lacks its source or target; write both")
        document.directed = document.directed or attributes.get("directed") == "true"
        document.open_edge = (parser.CurrentLineNumber, ends)
        document.weight = next(iter(document.weight_keys.values()), "") or None
    elif tag == "data":
        document.open_key = attributes.get("key")


def _end(path, document, name):
    tag = name.rpartition(" ")[2]
    text = "".join(document.text).strip()
    if tag == "default" and document.open_key in document.weight_keys:
        document.weight_keys[document.open_key] = text
    elif tag == "key":
        document.open_key = None
    elif tag == "data" and document.open_key in document.weight_keys:
        document.weight = text  # of a node it does no harm: every edge begins with the default
    elif tag == "edge" and document.open_edge is not None:
        line, ends = document.open_edge
        weight = 1.0 if document.weight is None else edge_weight(path, line, document.weight)
        document.edges.append(Edge(line, ends, weight))
        document.open_edge = None
    document.text.clear()


def _bunch(path, document):
    for edge in document.edges:
        for end in edge.ends:
            if end not in document.nodes:
                raise DataError(f"{path}:{edge.line}: there is no node {end!r}; add it, or remove the edge.")
    node_ids, rows, columns = number_nodes(document.edges, document.nodes)
    graph = symmetric_graph(path, document.edges, rows, columns, len(node_ids))
    return Bunch(
        graph=graph,
        node_ids=node_ids,
        directed=document.directed,
        edge_attributes=[] if document.weight_keys else document.other_keys,
        DESCR=describe_graph(path.name, graph),
    )


def load_market_graph(path):
    r"""Load a graph from a Matrix Market file with one entry per edge.

    Parameters
    ----------
    path : path-like
        The file, ``.mtx`` or ``.mtx.gz``: a square matrix of weights of 0 or more, or a pattern. Where one direction of
        an edge is filled in, the other has the same weight; where both are, they must agree.

    Returns
    -------
    Bunch
        - ``graph``: (n_nodes, n_nodes) symmetric ``csr_array`` of float64;
        - ``node_ids``: (n_nodes,) the numbers of the nodes, from 1;
        - ``directed``: whether some edge has one direction only in the file;
        - ``DESCR``: a line that describes the graph.

    Raises
    ------
    DataError
        If the file cannot be read, its matrix is not square, or a weight is negative, not finite, or different in
        the other direction.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelweave.datasets import load_market_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pair.mtx")
    ...     _ = file.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
    ...     pair = load_market_graph(file)
    >>> pair.graph.toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    path = Path(path)
    try:
        with sparse_matrices_allowed():
            entries = sp.coo_array(mmread(path))
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: this is not a readable Matrix Market file ({reason}); write it again.") from error
    if entries.shape[0] != entries.shape[1]:
        raise DataError(f"{path}: the matrix of a graph must be square, but this one has shape {entries.shape}.")
    if entries.dtype.kind == "c" or not np.all(np.isfinite(entries.data)) or np.any(entries.data < 0):
        bad = "complex" if entries.dtype.kind == "c" else "negative, or not finite"
        raise DataError(f"{path}: some weights are {bad}; write finite numbers of 0 or more.")
    entries.sum_duplicates()
    matrix = sp.csr_array(entries, dtype=np.float64)
    matrix.eliminate_zeros()
    other = sp.csr_array(matrix.T)
    both = sp.csr_array(matrix.astype(bool).multiply(other.astype(bool)))
    differs = sp.coo_array(abs(matrix - other).multiply(both))
    differs.eliminate_zeros()
    if differs.nnz:
        i = int(differs.row[0])
        j = int(differs.col[0])
        raise DataError(
            f"{path}: row {i + 1}, column {j + 1} holds {matrix[i, j]:.9g}, and row {j + 1}, column {i + 1} "
            f"{matrix[j, i]:.9g}: edges have no direction, so both must agree. For a directed graph sum or average the "
            "two first."
        )
    graph = sp.csr_array(matrix.maximum(other))
    if not graph.nnz:
        raise DataError(f"{path}: there is no edge in it; add some.")
    graph.sort_indices()
    return Bunch(
        graph=graph,
        node_ids=np.arange(1, graph.shape[0] + 1),
        directed=bool(both.nnz < matrix.nnz),
        DESCR=describe_graph(path.name, graph),
    )
