"""What is kept of a fit: one JSON line in the results file, appended as soon as the fit ends.

Key         method, set, seed and number of samples; of several lines with one key the last counts
Guarantee   a killed run loses at most the fit under way; a line that it left unfinished is cut off before the next one
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from kernelweave.foundation.errors import DataError

Key = tuple[str, str, int, int]


@dataclass(frozen=True)
class Record:
    """One fit: how well its clusters agree with the classes and what it cost, or why it failed."""

    method: str
    library: str
    library_version: str
    set: str
    seed: int
    n_samples: int
    n_views: int
    n_clusters: int
    status: Literal["ok", "failed"]
    nmi: float | None
    ari: float | None
    acc: float | None
    n_found: int | None  # clusters in the labels
    seconds: float | None
    memory_mib: float | None  # peak of the process
    error: str
    limit_s: float
    version: str  # of kernelweave
    commit: str
    finished: str  # date and time, UTC

    @property
    def key(self) -> Key:
        """What the record is about."""
        return self.method, self.set, self.seed, self.n_samples

    @property
    def failed(self) -> bool:
        """Whether there are no labels."""
        return self.status != "ok"


_FIELDS = {field.name for field in fields(Record)}


def read_records(path: Path) -> dict[Key, Record]:
    """Return the records of a results file by their keys; a file that is not there holds none."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n")
    complete = lines[:-1]  # what follows the last line end was left unfinished
    records = (_record(line, f"{path}, line {number}") for number, line in enumerate(complete, 1) if line.strip())
    return {record.key: record for record in records}


def append_record(path: Path, record: Record) -> None:
    """Add a line in one piece, so that two runs can share a file."""
    line = json.dumps(asdict(record), ensure_ascii=False, allow_nan=False) + "\n"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(handle, line.encode("utf-8"))
    finally:
        os.close(handle)


def cut_unfinished_line(path: Path) -> None:
    """Remove what a killed run left after the last line end."""
    if not path.exists():
        return
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)


def of_largest_sets(records: Iterable[Record]) -> list[Record]:
    """Leave out records of a set on fewer samples than others of that set have."""
    listed = list(records)
    largest: dict[str, int] = {}
    for record in listed:
        largest[record.set] = max(largest.get(record.set, 0), record.n_samples)
    return [record for record in listed if record.n_samples == largest[record.set]]


def _record(line: str, place: str) -> Record:
    try:
        content: Mapping[str, Any] = json.loads(line)
        return Record(**{name: content[name] for name in _FIELDS})
    except (ValueError, KeyError, TypeError) as reason:
        raise DataError(f"{place}: this is not a record of the scoreboard; remove the line.") from reason
