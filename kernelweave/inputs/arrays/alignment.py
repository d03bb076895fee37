"""Data frames of different samples brought to one index: samples that a frame lacks become rows of NaN, or are dropped.

Nothing here imports pandas: the frames bring what is needed.
"""

from collections.abc import Mapping
from typing import Any

from kernelweave.foundation.errors import ParameterError, ViewError

ROWS = ("all", "common")


def align(tables: Mapping[Any, Any], rows: str = "all") -> dict[str, Any]:
    """Bring data frames to the same samples in the same order, matched by the labels of their rows.

    Parameters
    ----------
    tables : dict of str to DataFrame
        Views by name. The index holds the ids of the samples; every id occurs once in a table.
    rows : {"all", "common"}, default="all"
        ``"all"`` keeps every id that occurs in some table, in order of first occurrence; a sample that a table lacks
        is a row of NaN there, which estimators with a ``missing`` parameter read as absent from that view.
        ``"common"`` keeps the ids that occur in all tables, in the order of the first.

    Returns
    -------
    aligned : dict of str to DataFrame
        New frames with the same index; the input is not changed.

    See Also
    --------
    kernelweave.GraphFusionClustering : Takes samples that are absent from some views.
    kernelweave.preprocessing.TableEncoder : Turns text, booleans and dates into numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave import align
    >>> blood = pd.DataFrame({"iron": [1.0, 2.0]}, index=["ann", "bob"])
    >>> scan = pd.DataFrame({"size": [5.0, 6.0]}, index=["bob", "eve"])
    >>> views = align({"blood": blood, "scan": scan})
    >>> views["scan"]
         size
    ann   NaN
    bob   5.0
    eve   6.0
    >>> align({"blood": blood, "scan": scan}, rows="common")["blood"]
         iron
    bob   2.0
    """
    if rows not in ROWS:
        raise ParameterError(f"rows={rows!r} is not known: use 'all' or 'common'.")
    if not isinstance(tables, Mapping) or not tables:
        raise ViewError(
            f"tables must be a dict of data frames by name, got {type(tables).__name__}; give at least one."
        )
    frames = {str(name): table for name, table in tables.items()}
    for name, frame in frames.items():
        _check_frame(name, frame)
    _check_shared(frames)
    index = _all_ids(frames) if rows == "all" else _common_ids(frames)
    return {name: frame.reindex(index) for name, frame in frames.items()}


def _check_frame(name: str, frame: Any) -> None:
    """Refuse what is not a data frame, and ids that are missing or occur twice."""
    if not (hasattr(frame, "reindex") and hasattr(frame, "columns")):
        raise ViewError(
            f"Table {name!r} is of type {type(frame).__name__}; give a data frame whose index holds the ids of the "
            "samples."
        )
    index = frame.index
    if index.nlevels == 1 and index.hasnans:
        raise ViewError(f"Table {name!r} has a row without an id in its index; fill it in or remove the row.")
    if not index.is_unique:
        twice = index[index.duplicated()].tolist()[0]
        count = index.tolist().count(twice)
        raise ViewError(
            f"The id {twice!r} occurs {count} times in table {name!r}; keep one row per sample, as in "
            "table[~table.index.duplicated()], or the mean of them, as in table.groupby(level=0).mean()."
        )


def _check_shared(frames: Mapping[str, Any]) -> None:
    """Refuse a table that shares no id with any other one: its ids are probably written in another way."""
    if len(frames) == 1:
        return
    for name, frame in frames.items():
        others = [(other, each) for other, each in frames.items() if other != name]
        if any(frame.index.isin(each.index).any() for _, each in others):
            continue
        other, second = others[0]
        compared = [(at, each) for at, each in ((name, frame), (other, second)) if len(each)]
        examples = " and ".join(f"{each.index[:1].tolist()[0]!r} in {at!r}" for at, each in compared)
        raise ViewError(
            f"Table {name!r} shares no id with any other table, so its samples cannot be matched: compare "
            f"{examples or 'the tables, which are empty'}. Write ids the same way and with the same type in all "
            "tables, as in table.set_axis(table.index.astype(str))."
        )


def _all_ids(frames: Mapping[str, Any]) -> Any:
    indices = [frame.index for frame in frames.values()]
    index = indices[0]
    for other in indices[1:]:
        index = index.append(other)
    return index.unique()


def _common_ids(frames: Mapping[str, Any]) -> Any:
    indices = [frame.index for frame in frames.values()]
    index = indices[0]
    for other in indices[1:]:
        index = index[index.isin(other)]
    if not len(index):
        raise ViewError(
            f"No id occurs in all of the tables {', '.join(map(repr, frames))}; keep all samples with rows='all'."
        )
    return index
