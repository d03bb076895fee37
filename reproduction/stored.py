"""Results kept with the code: what ``docs/results.md`` is made of, and what the quick subset is pinned to.

``stored/<experiment>.json``   every cell at its full number of restarts: our figures, seconds, date, commit
``stored/quick.json``          the verdicts of the quick subset, which the golden tests compare with a fresh run

Verdicts of full runs are never stored: they follow from the present declarations. A figure that is not finite is null.
"""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernelweave.foundation.files import write_atomically
from reproduction import stored_files
from reproduction.experiment import Experiment
from reproduction.runner import ExperimentResult, Record, judged
from reproduction.stored_files import stored_cells

QUICK = "quick.json"
_FACTS = ("restarts", "seed", "seconds", "finished", "versions")


def stored_result(experiment: Experiment, folder: Path | None = None) -> ExperimentResult:
    """Return the stored cells of an experiment beside the printed figures, judged by the present declarations."""
    cells = []
    for name, kept in stored_cells(experiment.id, folder).items():
        if name in experiment.cells and set(experiment.cells[name].printed) <= set(kept.figures):
            record = Record({}, kept.figures, kept.seconds, kept.finished, kept.versions)
            cells.append(judged(experiment.id, name, experiment.cells[name], record, kept.restarts, kept.seed))
    order = list(experiment.cells)
    return ExperimentResult(experiment, tuple(sorted(cells, key=lambda cell: order.index(cell.cell))))


def store(results: Iterable[ExperimentResult], commit: str) -> None:
    """Keep computed cells in place of older ones."""
    for result in results:
        name = result.experiment.id
        file = stored_files.FOLDER / f"{name}.json"
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        for cell in result.cells:
            ours = {key: _rounded(value) for key, value in cell.ours.items()}
            facts = {fact: getattr(cell, fact) for fact in _FACTS} | {"seconds": round(cell.seconds, 2)}
            known[cell.cell] = {"figures": ours, **facts, "commit": commit}
        kept = {cell: known[cell] for cell in result.experiment.cells if cell in known}
        stored_files.FOLDER.mkdir(exist_ok=True)
        write_atomically(file, json.dumps(kept, indent=1) + "\n")
    stored_files.forget()


def _rounded(value: float) -> float | None:
    """Return a figure to ten digits, more than any table prints; null where it is not finite."""
    return float(f"{value:.10g}") if math.isfinite(value) else None


# --- the quick subset ------------------------------------------------------------------------------------------------


def pinned(folder: Path | None = None) -> dict[str, dict[str, str]]:
    """Return the verdicts that the quick subset had, by ``experiment/cell`` and figure."""
    file = (folder or stored_files.FOLDER) / QUICK
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def pin(results: Sequence[ExperimentResult]) -> None:
    """Keep the verdicts of the quick subset."""
    verdicts = {f"{cell.experiment}/{cell.cell}": verdicts_of(cell) for result in results for cell in result.cells}
    stored_files.FOLDER.mkdir(exist_ok=True)
    write_atomically(stored_files.FOLDER / QUICK, json.dumps(verdicts, indent=1) + "\n")


def verdicts_of(cell: Any) -> dict[str, str]:
    """Return the verdict of every printed figure of a cell."""
    return {figure.metric: str(figure.verdict) for figure in cell.figures if figure.printed is not None}
