"""Names of the samples and of the views, and where the views came from."""

from collections.abc import Mapping, Sequence
from typing import Any

from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import is_multi_view

#: What views are called that have no name of their own.
NAMELESS = ("X", "view_0", "graph")


def sample_names(ids: Any, X: Any, n_samples: int) -> tuple[str, ...]:
    """Return the names of the samples: ``ids``, those of a table's index, or numbers from 0 on."""
    if ids is None:
        ids = _index(X)
    names = range(n_samples) if ids is None else list(ids)
    if len(names) != n_samples:
        raise ParameterError(f"ids has {len(names)} entries for {n_samples} samples; give one name for each.")
    return tuple(str(name) for name in names)


def _index(X: Any) -> Any:
    """Return the row labels of a table, or of the first view that has any; None where they are plain numbers."""
    tables: Sequence[Any] = [X]
    if is_multi_view(X):
        tables = list(X.values()) if hasattr(X, "values") else list(X)
    indexes = [table.index for table in tables if hasattr(table, "iloc")]
    return indexes[0] if indexes and type(indexes[0]).__name__ != "RangeIndex" else None


def view_names_and_sources(names: Sequence[str], sources: Any) -> list[tuple[str, str]]:
    """Return name and source of every view; a single one without a name has the name of the only source."""
    if len(names) == 1 and isinstance(sources, Mapping) and len(sources) == 1:
        ((source_name, source),) = sources.items()
        return [(str(source_name) if names[0] in NAMELESS else names[0], str(source))]
    return [(name, _source(name, place, sources)) for place, name in enumerate(names)]


def _source(name: str, place: int, sources: Any) -> str:
    """Return where a view came from: by its name, by its place, or the one source of all."""
    if sources is None:
        return ""
    if isinstance(sources, Mapping):
        return str({str(key): value for key, value in sources.items()}.get(name, ""))
    if isinstance(sources, list | tuple):
        return str(sources[place]) if place < len(sources) else ""
    return str(sources)
