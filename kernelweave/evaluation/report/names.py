"""Names of the views, and where they came from."""

from collections.abc import Mapping, Sequence
from typing import Any

#: What views are called that have no name of their own.
NAMELESS = ("X", "view_0", "graph")


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
