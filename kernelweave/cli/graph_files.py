"""Graphs from files: lists of edges, GraphML, Matrix Market and METIS, with what was assumed of them."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from kernelweave.foundation.errors import DataError
from kernelweave.inputs import TextFormat

# Edges at the beginning of a file that show what separates entries.
LOOKED_AT = 200
MARKS = (",", ";", "|", "\t")


@dataclass(frozen=True)
class GraphFile:
    """A graph, the names of its nodes, what was assumed of its file, and the Python call that reads it."""

    graph: Any
    ids: tuple[str, ...]
    notes: list[str]
    loader: str
    arguments: dict[str, Any]


def read_graph(path: Path, text: TextFormat) -> GraphFile:
    """Read a graph by the ending of its file; whatever has no other one is a list of edges."""
    from kernelweave import datasets

    if str(path) == "-":
        raise DataError("--graph -: graphs are read from files, not from standard input; name a file.")
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it.")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; check its name.")
    loader = loader_for(path)
    if loader == "load_edge_list":
        return _edges(path, text)
    bunch = getattr(datasets, loader)(path)
    notes = []
    if bunch.get("directed"):
        notes.append(f"{path}: edges have a direction, which is ignored: every edge counts both ways")
    if bunch.get("edge_attributes"):
        names = ", ".join(bunch.edge_attributes[:5])
        notes.append(f"{path}: edges have no attribute 'weight', so all weights are 1 (attributes: {names})")
    return GraphFile(bunch.graph, _names(bunch), notes, loader, {})


def loader_for(path: Path) -> str:
    """Return the function of ``kernelweave.datasets`` that reads a graph."""
    name = path.name.lower().removesuffix(".gz")
    endings = {".graphml": "load_graphml", ".mtx": "load_market_graph", ".graph": "load_metis", ".metis": "load_metis"}
    return next((loader for ending, loader in endings.items() if name.endswith(ending)), "load_edge_list")


def _names(bunch: Any) -> tuple[str, ...]:
    return tuple(str(node) for node in bunch.node_ids)


def _edges(path: Path, text: TextFormat) -> GraphFile:
    from kernelweave.datasets.graphs import read_edge_list

    first = _first_edges(path)
    notes = []
    delimiter = text.delimiter
    if delimiter is None and first:
        delimiter = _delimiter(path, first)
        if delimiter is not None:
            notes.append(
                f"{path}: entries are separated by {delimiter!r}; if not, use --delimiter ' ' or --delimiter tab"
            )
    header = text.header
    if header is None and first and _is_header(first, delimiter):
        header = True
        notes.append(f"{path}: the first line names the columns ({first[0][1]}); if it is an edge, use --no-header")
    bunch = read_edge_list(path, delimiter=delimiter, header=header)
    arguments = {name: value for name, value in (("delimiter", delimiter), ("header", header)) if value is not None}
    return GraphFile(bunch.graph, _names(bunch), notes, "load_edge_list", arguments)


def _first_edges(path: Path) -> list[tuple[int, str]]:
    """Return the first lines that are not comments, with their numbers."""
    from kernelweave.datasets.graphs import text_lines

    lines = ((number, line.strip()) for number, line in enumerate(text_lines(path), 1))
    return list(
        islice(((number, line) for number, line in lines if line and not line.startswith(("#", "%"))), LOOKED_AT)
    )


def _delimiter(path: Path, edges: list[tuple[int, str]]) -> str | None:
    """Return the mark that separates all entries, None for blanks; refuse what may be either."""
    lines = [line for _, line in edges]
    marks = [mark for mark in MARKS if mark in lines[0]]
    if marks in ([], ["\t"]):
        return None
    whole = [mark for mark in marks if {len(line.split(mark)) for line in lines} in ({2}, {3})]
    if len(whole) == 1:
        entries = [entry.strip() for line in lines for entry in line.split(whole[0])]
        by_blanks = {len(line.split()) for line in lines} in ({2}, {3})
        if not by_blanks or not any(" " in entry for entry in entries):
            return whole[0]
    mark = marks[0]
    raise DataError(
        f"{path}:{edges[0][0]}: there is {mark!r} in this line; name the separator with --delimiter "
        f"'{mark}', or with --delimiter ' ' or tab if it belongs to a name."
    )


def _is_header(edges: list[tuple[int, str]], delimiter: str | None) -> bool:
    """Whether the first line is two words that name columns and are not nodes of the edges looked at."""
    from kernelweave.datasets.graphs import HEADER_WORDS

    split = [[entry.strip(' "') for entry in line.split(delimiter)] for _, line in edges]
    first = split[0]
    if len(edges) < 2 or len(first) != 2 or not all(word.lower() in HEADER_WORDS for word in first):
        return False
    return not set(first) & {entry for row in split[1:] for entry in row[:2]}
