"""How a text file is written: its encoding, what separates its cells, and its decimal sign.

What is not said is read off the file. Whatever differs from what the name of the file suggests is returned as a note,
in pieces like those of errors, so that every interface can say how to decide otherwise.
"""

import codecs
import csv
import io
import re
from collections.abc import Sequence

from kernelweave.foundation.errors import Argument, DataError

Note = tuple[str | Argument, ...]
TextRows = list[tuple[int, list[str]]]  # line number and cells

# What may separate cells; blanks are tried last.
MARKS = (",", ";", "\t", "|")
#: Marks in words, for notes.
MARK_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
# Characters at the beginning of a file that show what separates its cells.
LOOKED_AT = 2**16
# A number with a decimal comma.
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*")
# One that may as well have a comma between thousands.
THOUSANDS_COMMA = re.compile(r"\s*[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+\s*")
# A number with a decimal point.
DECIMAL_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?\s*")
# A number with signs between thousands, by the decimal sign.
GROUPED = {
    ".": re.compile(r"\s*[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?\s*"),
    ",": re.compile(r"\s*[+-]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]*)?\s*"),
}
# Characters that no text holds.
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


# Encoding


def decoded(shown: str, raw: bytes) -> tuple[str, list[Note]]:
    """Return the text of a file: UTF-8, UTF-16 with its mark, or else that of Windows."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            text = raw.decode("utf-16")
        except UnicodeDecodeError as error:
            raise DataError(f"{shown}: this is not a text file, though it begins like one in UTF-16.") from error
        _refuse_control(shown, text)
        return text, [("the text is in UTF-16",)]
    if b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise DataError(f"{shown}:{line}: this is not a text file: it holds a zero byte; save it as text in UTF-8.")
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        byte = raw[error.start]
        try:
            text = raw.decode("cp1252")
        except UnicodeDecodeError:
            raise DataError(f"{shown}:{line}: byte {byte:#04x} is not valid UTF-8; save the file as UTF-8.") from error
        _refuse_control(shown, text)
    return text, [(f"byte {byte:#04x} in line {line} is not valid UTF-8, so the text is read as cp1252 (Windows)",)]


def _refuse_control(shown: str, text: str) -> None:
    found = CONTROL.search(text)
    if found is not None:
        line = text[: found.start()].count("\n") + 1
        raise DataError(f"{shown}:{line}: this is not a text file: it holds {found[0]!r}; save it as text in UTF-8.")


# Delimiter


def delimiter_of(lines: str, usual: str, *, blanks: bool = True) -> str:
    """Return what separates the cells; ``usual`` is what the name of the file says, and counts first.

    Without ``blanks`` these are part of the cells.
    """
    head = lines if len(lines) <= LOOKED_AT else lines[: lines.rfind("\n", 0, LOOKED_AT) + 1] or lines
    chosen = _most_regular(head, usual, blanks=blanks)
    if chosen != ",":
        return chosen
    others = (*(mark for mark in MARKS if mark != ","), *((" ",) if blanks else ()))
    decimals = (mark for mark in others if _regularity(head, mark)[0] and _commas_are_decimal(head, mark))
    return next(decimals, ",")  # decimal commas are as regular as cells


def _most_regular(head: str, usual: str, *, blanks: bool) -> str:
    """Return the delimiter that splits all lines the same way, usual ones first; else that of most lines."""
    orders = {mark: _regularity(head, mark) for mark in (usual, *MARKS)}
    best = max((mark for mark in MARKS if mark != usual), key=lambda mark: orders[mark])
    if orders[best][0] > orders[usual][0]:
        return best
    if orders[usual][0] or usual == " ":
        return usual
    return _most_frequent(head, usual) or (" " if blanks and _blanks_separate_numbers(head) else usual)


def _split(head: str, mark: str) -> list[list[str]] | None:
    """Return the rows, or None where quotes do not go with the mark."""
    whole = io.StringIO(head, newline="")
    source = (line.lstrip(" ") for line in whole) if mark == " " else whole
    try:
        rows = list(csv.reader(source, delimiter=mark, skipinitialspace=True, strict=True))
    except csv.Error:
        return None
    return [row for row in rows if any(cell.strip() for cell in row) or len(row) > 1]


def _regularity(head: str, mark: str) -> tuple[int, int]:
    """Return how regular the rows are, and how many cells they have.

    2: all have the same number of cells, more than one. 1: the first line has one less, as R writes it. 0: neither.
    """
    rows = _split(head, mark)
    if not rows:
        return 0, 0
    widths = [len(row) for row in rows]
    if min(widths) == max(widths) > 1:
        return 2, widths[0]
    if len(rows) > 1 and is_short_header(rows):
        return 1, widths[1]
    return 0, 0


def is_short_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of several rows lacks one cell that all others have, the name of their first or last one."""
    widths = {len(row) for row in rows[1:]}
    if widths != {len(rows[0]) + 1}:
        return False
    return len(rows[0]) > 1 or not all(re.fullmatch(r"\s*[+-]?[0-9.]*\s*", row[0]) for row in rows[1:])


def _commas_are_decimal(head: str, mark: str) -> bool:
    cells = [cell for row in _split(head, mark) or () for cell in row if "," in cell]
    return bool(cells) and all(DECIMAL_COMMA.fullmatch(cell.rstrip().removesuffix("%")) for cell in cells)


def _most_frequent(head: str, usual: str) -> str | None:
    """Return the mark of the first line and of most others, where the usual one is not in the first."""
    lines = [line for line in head.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    there = [mark for mark in MARKS if mark in first and 2 * sum(mark in line for line in lines) > len(lines)]
    if usual in first or not there:
        return None
    return max(there, key=first.count)


def _blanks_separate_numbers(head: str) -> bool:
    """Whether there are numbers with blanks between them in the first line, or below names."""
    rows = _split(head, " ")
    if not rows or not (_regularity(head, " ")[0]):
        return False
    first = rows[0]
    below = rows[1][1:] if len(rows) > 1 else []  # there may be an id before
    return any(cells and all(map(_is_number, cells)) for cells in (first if len(first) > 1 else [], below))


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|NA|NaN|nan", cell) is not None


# Decimal sign


def decimal_of(shown: str, rows: TextRows) -> str:
    """Return the decimal sign that the numbers of all cells have: a comma if some have one and none has a point."""
    example: tuple[int, str] | None = None
    grouped = True
    for line, row in rows:
        for cell in row:
            if "," in cell and DECIMAL_COMMA.fullmatch(cell):
                example = example or (line, cell.strip())
                grouped = grouped and THOUSANDS_COMMA.fullmatch(cell) is not None
            elif "." in cell and (DECIMAL_POINT.fullmatch(cell) or GROUPED["."].fullmatch(cell)):
                return "."
    if example is None:
        return "."
    if grouped:
        raise DataError(
            f"{shown}:{example[0]}: {example[1]!r} may have a decimal comma, or one between thousands; use ",
            Argument("decimal", ","),
            " or ",
            Argument("decimal", "."),
            ".",
        )
    return ","


def with_points(row: list[str], decimal: str, *, grouped: bool) -> list[str]:
    """Return cells whose numbers have a decimal point and, where that is asked for, nothing between thousands."""
    return [_with_point(cell, decimal, grouped) if "," in cell or "." in cell else cell for cell in row]


def _with_point(cell: str, decimal: str, grouped: bool) -> str:
    other = "," if decimal == "." else "."
    if grouped and GROUPED[decimal].fullmatch(cell):
        cell = cell.replace(other, "")
    return cell.replace(",", ".") if decimal == "," and DECIMAL_COMMA.fullmatch(cell) else cell
