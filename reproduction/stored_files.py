"""Reading what is kept of full runs: figures and what they cost, cell by cell, without any verdict."""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "stored"


@dataclass(frozen=True)
class StoredCell:
    """What is kept of a cell."""

    figures: dict[str, float]
    restarts: int
    seed: int
    seconds: float
    finished: str
    versions: dict[str, str]
    commit: str


def stored_cells(experiment: str, folder: Path | None = None) -> dict[str, StoredCell]:
    """Return what is kept of an experiment, by cell; nothing where it was never stored."""
    return _read((folder or FOLDER) / f"{experiment}.json")


def forget() -> None:
    """Read files again that have been read before."""
    _read.cache_clear()


@cache
def _read(file: Path) -> dict[str, StoredCell]:
    if not file.exists():
        return {}
    cells = {}
    for name, each in json.loads(file.read_text(encoding="utf-8")).items():
        figures = {metric: math.nan if value is None else value for metric, value in each.pop("figures").items()}
        cells[name] = StoredCell(figures=figures, **each)
    return cells
