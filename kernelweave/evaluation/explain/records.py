"""Small records as a data frame, and as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from kernelweave.foundation.errors import MissingPackageError


def as_frame(records: Iterable[Any], columns: Sequence[str]) -> Any:
    """Return dataclasses as a data frame, one row each."""
    try:
        import pandas
    except ImportError as error:
        raise MissingPackageError(
            "to_frame needs pandas, which is not installed; use rows or to_csv, or install pandas."
        ) from error
    return pandas.DataFrame([asdict(record) for record in records], columns=list(columns))


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV; cells that are NaN are empty."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if cell != cell else cell for cell in row] for row in rows)
    return page.getvalue()
