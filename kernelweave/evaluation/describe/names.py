"""Names of the samples."""

from collections.abc import Sequence
from typing import Any

from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import is_multi_view


def sample_names(ids: Any, X: Any, n_samples: int) -> tuple[str, ...]:
    """Return the names of the samples: ``ids``, those of a table's index, or numbers from 0 on."""
    if ids is None:
        ids = table_index(X)
    names = range(n_samples) if ids is None else list(ids)
    if len(names) != n_samples:
        raise ParameterError(f"ids has {len(names)} entries for {n_samples} samples; give one name for each.")
    return tuple(str(name) for name in names)


def table_index(X: Any) -> Any:
    """Return the row labels of a table, or of the first view that has any; None where they are plain numbers."""
    tables: Sequence[Any] = [X]
    if is_multi_view(X):
        tables = list(X.values()) if hasattr(X, "values") else list(X)
    indexes = [table.index for table in tables if hasattr(table, "iloc")]
    return indexes[0] if indexes and type(indexes[0]).__name__ != "RangeIndex" else None
