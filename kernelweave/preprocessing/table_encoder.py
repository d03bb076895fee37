"""A table of numbers, text, booleans and dates as a table of numbers, in a way that new samples can repeat.

kind      is                                                    becomes
number    numbers                                               itself
boolean   True and False, also as text                          1 and 0
category  text, or whatever the user calls so                   a column of 0 and 1 for each value: ``sex=male``
ordered   categories whose order the user or pandas knows       the place of the value, from 0
date      dates the user asks for                               days since the earliest one of training

Columns that say nothing of groups, or nothing without a decision of the user, are set aside: constant ones, ids, dates,
text of very many values. A value that is missing stays NaN, in all columns that are made of it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError, ViewError, ViewWarning
from kernelweave.foundation.logged_warnings import warn

Kind = Literal["number", "boolean", "category", "ordered", "date"]
KINDS = ("number", "boolean", "category", "ordered", "date")
#: Text with more different values than this is set aside unless the user calls it categories.
MOST_CATEGORIES = 50
#: Cells of text that mean that a value is missing. "none" is a category: it occurs beside "mild" and "severe".
MISSING_TEXT = frozenset({"", "na", "n/a", "nan", "null", "<na>", "nat", "?", "-"})
# A column that counts fewer rows, or has another text in each of fewer rows, may be data.
FEWEST_COUNTED = 5
# Dates as ISO 8601 writes them, with or without a time.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?")
_TRUTH = {"true": 1.0, "false": 0.0}
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes numbers."""

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    earliest: str = ""  # date and time that days count from

    @property
    def features(self) -> list[str]:
        """Names of the columns that are made of it."""
        return [f"{self.name}={value}" for value in self.categories] if self.kind == "category" else [self.name]


@dataclass(frozen=True)
class ColumnValues:
    """What a column holds: its kind, and its values in a form that goes with the kind."""

    kind: Kind | str  # or the name of a type that is not known
    values: Array  # floats, dates, or text with None for what is missing
    categories: tuple[str, ...] = ()


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a data frame of numbers, text, booleans and dates into numbers.

    Text becomes a column of 0 and 1 for every value (``sex=male``), booleans become 1 and 0, ordered pandas categories
    their position in the order, and dates, on request, days since the earliest. Columns are set aside if they are
    constant or empty, number the rows (1, 2, 3 ...), hold a different text in every row or dates that were not
    requested, or hold text with more values than ``max_categories``; ``set_aside_`` gives the reasons, and a warning
    lists them. Missing
    values stay NaN: estimators with a ``missing`` parameter fill them.

    Parameters
    ----------
    columns : sequence of str, default=None
        Names of the columns to use, or patterns such as ``"gene_*"``; all by default. A column that is named in full
        is used even if it numbers the rows.
    drop : sequence of str, default=None
        Names or patterns of columns to leave out.
    categorical : sequence of str, default=None
        Names or patterns of columns to read as categories: numbers that are codes, or text of very many values.
    dates : sequence of str, default=None
        Names or patterns of columns to read as dates, in ISO 8601 (``2021-03-04``, with or without a time).
    ordered : dict of str to sequence of str, default=None
        Names or patterns of columns whose categories have an order, with the categories from the first to the last:
        ``{"stage": ["I", "II", "III"]}``. Data frames with ordered categories need not be named.
    max_categories : int, default=50
        Largest number of different values of a text column that is not in ``categorical``.

    Attributes
    ----------
    columns_ : list of ColumnCode
        Columns in use: ``name``, ``kind``, ``categories`` and ``earliest``.
    set_aside_ : dict of str to str
        Columns that are not used, with the reason.
    feature_names_in_ : ndarray of str
        Names of all columns.
    n_features_in_ : int
        Their number.

    See Also
    --------
    kernelweave.align : Brings data frames to the same samples.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.preprocessing import TableEncoder
    >>> frame = pd.DataFrame(
    ...     {"sex": ["male", "female", None], "smokes": [True, False, True], "seen": ["2021-03-01", "2021-03-04", None]}
    ... )
    >>> encoder = TableEncoder(dates=["seen"]).fit(frame)
    >>> encoder.transform(frame)
       sex=female  sex=male  smokes  seen
    0         0.0       1.0     1.0   0.0
    1         1.0       0.0     0.0   3.0
    2         NaN       NaN     1.0   NaN
    """

    def __init__(
        self,
        *,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        categorical: Sequence[str] | None = None,
        dates: Sequence[str] | None = None,
        ordered: Mapping[str, Sequence[str]] | None = None,
        max_categories: int = MOST_CATEGORIES,
    ) -> None:
        self.columns = columns
        self.drop = drop
        self.categorical = categorical
        self.dates = dates
        self.ordered = ordered
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> "TableEncoder":
        """Learn how to encode every column.

        Parameters
        ----------
        X : DataFrame, or dict of str to 1-D array
            Samples; in arrays of text, missing values are None or text such as ``"NA"``.
        y : None
            Ignored.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        pairs = named_columns(X)
        self._check_patterns([name for name, _ in pairs])
        self.feature_names_in_ = np.array([name for name, _ in pairs], dtype=object)
        self.n_features_in_ = len(pairs)
        self.columns_: list[ColumnCode] = []
        self.set_aside_: dict[str, str] = {}
        for name, column in pairs:
            code = self._code(name, column)
            if isinstance(code, ColumnCode):
                self.columns_.append(code)
            else:
                self.set_aside_[name] = code
            twice = not isinstance(code, ColumnCode) and self.feature_names_in_.tolist().count(name) > 1
            if twice and code != LEFT_OUT:
                raise ViewError(f"Several columns are called {name!r}, and one cannot be used ({code}); rename it.")
        unasked = {name: reason for name, reason in self.set_aside_.items() if reason != LEFT_OUT}
        if unasked:
            warn(f"Columns were set aside: {_listed(unasked)}.", ViewWarning)
        if not self.columns_:
            raise ViewError(f"No column is left to compare samples by: {_listed(self.set_aside_) or 'there is none'}.")
        return self

    def transform(self, X: Any) -> Any:
        """Return the samples as numbers.

        Parameters
        ----------
        X : DataFrame, or dict of str to 1-D array
            Samples; columns are matched by name, and those that were set aside need not be there.

        Returns
        -------
        encoded : DataFrame where X is one, else ndarray
            Categories that did not occur in training are 0 in all columns, with a warning.
        """
        check_is_fitted(self)
        pairs = [(name, column) for name, column in named_columns(X) if name not in self.set_aside_]
        known = [code.name for code in self.columns_]
        _check_names([name for name, _ in pairs], known)
        if len(set(known)) == len(known):
            by_name = dict(pairs)
            pairs = [(name, by_name[name]) for name in known]
        blocks = [_encoded(code, column) for code, (_, column) in zip(self.columns_, pairs, strict=True)]
        encoded = np.hstack(blocks)
        if hasattr(X, "iloc"):
            return type(X)(encoded, index=X.index, columns=self.get_feature_names_out())
        return encoded

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that ``transform`` returns.

        Parameters
        ----------
        input_features : None
            Ignored; the names are those of training.

        Returns
        -------
        names : ndarray of str
            Such as ``"age"`` and ``"sex=male"``.
        """
        check_is_fitted(self)
        return np.array([feature for code in self.columns_ for feature in code.features], dtype=object)

    def _check_patterns(self, names: Sequence[str]) -> None:
        """Refuse a pattern that matches no column."""
        if self.ordered is not None and not isinstance(self.ordered, Mapping):
            raise ParameterError(
                f"ordered={self.ordered!r} must be a dict of columns with their categories in order: "
                "{'stage': ['I', 'II']}."
            )
        for parameter in ("columns", "drop", "categorical", "dates", "ordered"):
            patterns = getattr(self, parameter)
            if isinstance(patterns, str):
                raise ParameterError(f"{parameter}={patterns!r} must be a list of names: write [{patterns!r}].")
            for pattern in patterns or ():
                if not any(matches(name, pattern) for name in names):
                    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
                    raise ParameterError(
                        f"{parameter} names {pattern!r}, but there is no such column; the columns are {shown}."
                    )

    def _code(self, name: str, column: Any) -> ColumnCode | str:
        """Return how a column becomes numbers, or why it is set aside."""
        kept = self.columns is None or _any_matches(name, self.columns)
        if not kept or _any_matches(name, self.drop):
            return LEFT_OUT
        if _any_matches(name, self.categorical):
            return _as_categories(name, column)
        if _any_matches(name, self.dates):
            return _as_dates(name, column)
        order = next((order for pattern, order in (self.ordered or {}).items() if matches(name, pattern)), None)
        if order is not None:
            return _as_ordered(name, column, order)
        held = read_column(name, column)
        if held.kind not in KINDS:
            return f"of type {held.kind}"
        if held.kind == "date":
            return A_DATE
        if held.kind == "category":
            return self._text_code(name, held)
        forced = name in (self.columns or ())
        reason = _set_aside(held.values, counts=held.kind == "number" and not forced)
        return reason or ColumnCode(name, held.kind, held.categories)  # type: ignore[arg-type]

    def _text_code(self, name: str, held: ColumnValues) -> ColumnCode | str:
        texts = [text for text in held.values.tolist() if text is not None]
        values = sorted(set(texts))
        if len(values) < 2:
            return EMPTY if not values else CONSTANT
        if len(values) == len(texts) >= FEWEST_COUNTED:
            return AN_ID
        if len(values) > self.max_categories:
            return f"{MANY}{len(values):,} different values"
        return ColumnCode(name, "category", tuple(values))

    def notes(self) -> dict[str, Any]:
        """Return what was learned in a form that can be stored as JSON; :meth:`from_notes` reads it."""
        check_is_fitted(self)
        return {
            "names": self.feature_names_in_.tolist(),
            "columns": [{**vars(code), "categories": list(code.categories)} for code in self.columns_],
            "set_aside": dict(self.set_aside_),
        }

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> "TableEncoder":
        """Return the encoder of :meth:`notes`, or raise ViewError where they are damaged."""
        encoder = cls()
        try:
            encoder.columns_ = [
                ColumnCode(str(each["name"]), each["kind"], tuple(map(str, each["categories"])), str(each["earliest"]))
                for each in notes["columns"]
            ]
            encoder.set_aside_ = {str(name): str(reason) for name, reason in notes["set_aside"].items()}
            encoder.feature_names_in_ = np.array([str(name) for name in notes["names"]], dtype=object)
            for code in encoder.columns_:
                if code.kind not in KINDS or (code.kind == "date" and _day(code.earliest) is None):
                    raise ValueError(f"column {code.name!r}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ViewError(f"The notes on columns are damaged ({error}); fit the encoder again.") from error
        encoder.n_features_in_ = len(encoder.feature_names_in_)
        return encoder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


#: Why columns are set aside.
LEFT_OUT = "left out on request"
CONSTANT = "the same in all rows"
EMPTY = "without any value"
COUNTS_ROWS = "it numbers the rows"
AN_ID = "a different text in every row"
A_DATE = "a date"
MANY = "text of "


def matches(name: str, pattern: str) -> bool:
    """Whether a column has a name, or fits a pattern with ``*`` and ``?``."""
    return name == pattern or fnmatchcase(name, pattern)


def _any_matches(name: str, patterns: Sequence[str] | None) -> bool:
    return any(matches(name, pattern) for pattern in patterns or ())


def _listed(reasons: Mapping[str, str]) -> str:
    """Return columns with reasons, the same reasons together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    return "; ".join(
        f"{', '.join(map(repr, names[:5]))}{f' and {len(names) - 5} more' if len(names) > 5 else ''} ({reason})"
        for reason, names in by_reason.items()
    )


def named_columns(X: Any) -> list[tuple[str, Any]]:
    """Return names and columns of a data frame, or of a dict or list of pairs."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return [(str(name), X.iloc[:, j]) for j, name in enumerate(X.columns)]
    if isinstance(X, Mapping):
        return [(str(name), column) for name, column in X.items()]
    if isinstance(X, list) and all(isinstance(each, tuple) and len(each) == 2 for each in X):
        return X
    raise ViewError(f"X is of type {type(X).__name__}; give a data frame, or a dict of columns by name.")


def _check_names(names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse columns other than those of training."""
    missing = [name for name in known if name not in set(names)]
    if missing:
        raise ViewError(f"{len(missing)} column(s) of training are missing, such as {missing[0]!r}; add them.")
    more = [name for name in names if name not in set(known)]
    if more:
        raise ViewError(f"{len(more)} column(s) were not in the training data, such as {more[0]!r}; remove them.")
    if len(names) != len(known) or (len(set(known)) < len(known) and list(names) != list(known)):
        raise ViewError("Columns of the same name must have the same number and order as in training.")


# What a column holds


def read_column(name: str, column: Any) -> ColumnValues:
    """Return what a column holds, by its type, or by its values where it is of text or of objects."""
    dtype = getattr(column, "dtype", None)
    if dtype is not None and hasattr(dtype, "categories"):
        return _categorical(name, column, dtype)
    column = column if dtype is not None else np.asarray(column, dtype=object)
    kind = getattr(column.dtype, "kind", "O")
    if kind in "fiu":
        return ColumnValues("number", _floats(column))
    if kind == "b":
        return ColumnValues("boolean", _floats(column))
    if kind == "M":
        return ColumnValues("date", _as_datetimes(column))
    if kind in "mc":
        return ColumnValues(str(column.dtype), np.empty(0))
    return _from_objects(name, np.asarray(column, dtype=object))


def _floats(column: Any) -> Floats:
    """Return numbers or booleans as floats, NaN where pandas has NA."""
    if hasattr(column, "isna"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column, dtype=np.float64)


def _as_datetimes(column: Any) -> Array:
    dates = column.to_numpy(dtype="datetime64[us]") if hasattr(column, "to_numpy") else np.asarray(column)
    return np.asarray(dates, dtype="datetime64[us]")


def _categorical(name: str, column: Any, dtype: Any) -> ColumnValues:
    """Return a categorical of pandas: ordered, or as its values are."""
    if not dtype.ordered:
        return _from_objects(name, np.asarray(column.astype(object), dtype=object))
    codes = np.asarray(column.cat.codes, dtype=np.float64)
    return ColumnValues("ordered", np.where(codes < 0, np.nan, codes), tuple(map(_text, dtype.categories)))


def _from_objects(name: str, column: Array) -> ColumnValues:
    """Return what an array of objects holds."""
    cells = [None if _is_missing(cell) else cell for cell in column.tolist()]
    there = [cell for cell in cells if cell is not None]
    if all(isinstance(cell, bool | np.bool_) for cell in there) and there:
        return ColumnValues("boolean", _by_cell(cells, float))
    if all(isinstance(cell, date) for cell in there) and there:
        return ColumnValues("date", np.array([_stamp(cell) for cell in cells], dtype="datetime64[us]"))
    if all(_is_number(cell) for cell in there):
        return ColumnValues("number", _by_cell(cells, float))
    texts = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
    if all(isinstance(cell, str) and cell.lower() in _TRUTH for cell in texts if cell is not None):
        return ColumnValues("boolean", _by_cell(texts, lambda cell: _TRUTH[cell.lower()]))
    days = [None if cell is None else _day(cell) for cell in texts]
    if all(day is not None for day, cell in zip(days, texts, strict=True) if cell is not None):
        return ColumnValues("date", np.array([_stamp(day) for day in days], dtype="datetime64[us]"))
    number = next((cell for cell in there if _is_number(cell)), None)
    if number is not None:
        text = next(cell for cell in there if not _is_number(cell))
        raise ViewError(
            f"Column {name!r} holds numbers, such as {number!r}, and text, such as {text!r}. Correct the text, or use "
            f"categorical=[{name!r}] if the numbers are codes."
        )
    return ColumnValues("category", np.array([None if cell is None else _text(cell) for cell in cells], dtype=object))


def _by_cell(cells: Sequence[Any], number: Any) -> Floats:
    return np.array([np.nan if cell is None else number(cell) for cell in cells], dtype=np.float64)


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING_TEXT
    try:
        return bool(cell != cell)  # NaN and NaT
    except TypeError:  # of pandas' NA
        return True


def _is_number(cell: Any) -> bool:
    """Whether a cell is a finite number, or text that is one."""
    if isinstance(cell, date):
        return False
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and not (isinstance(cell, str) and ("_" in cell or not cell.strip().isascii()))


def _text(cell: Any) -> str:
    """Return a category as text; whole numbers have no decimals, whatever type they are stored in."""
    if isinstance(cell, str):
        stripped = cell.strip()
        return _text(float(stripped)) if _is_number(stripped) else stripped
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
    return str(cell)


def _day(text: Any) -> datetime | None:
    """Return a date in ISO 8601, None for anything else."""
    if not (isinstance(text, str) and _DATE.fullmatch(text.strip())):
        return None
    try:
        return datetime.fromisoformat(re.sub(r"\s(?=[Z+-])", "", text.strip()))
    except ValueError:
        return None


def _stamp(day: Any) -> Any:
    """Return a date as NumPy keeps it, in UTC."""
    if day is None:
        return np.datetime64("NaT", "us")
    if isinstance(day, datetime):
        offset = day.utcoffset()
        naive = day.replace(tzinfo=None)
        return np.datetime64(naive if offset is None else naive - offset, "us")
    return np.datetime64(day, "us")


# How columns become numbers


def _set_aside(values: Floats, *, counts: bool) -> str | None:
    """Return why a column of numbers says nothing of groups, or None."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return EMPTY
    first = known[0]
    if (known == first).all():
        return CONSTANT if len(values) > 1 else None
    if not counts or len(values) < FEWEST_COUNTED or first not in (0.0, 1.0):
        return None
    return COUNTS_ROWS if np.array_equal(values, first + np.arange(len(values))) else None


def _as_categories(name: str, column: Any) -> ColumnCode | str:
    values = sorted({text for text in _texts(column) if text is not None}, key=_by_number)
    if not values:
        return EMPTY
    return ColumnCode(name, "category", tuple(values))


def _as_ordered(name: str, column: Any, order: Sequence[str]) -> ColumnCode | str:
    """Return the code of a column whose categories have an order, of which it may hold no others."""
    categories = tuple(map(_text, order))
    shown = " < ".join(categories)
    if isinstance(order, str) or len(set(categories)) < max(len(categories), 2):
        raise ParameterError(
            f"ordered gives column {name!r} the order {shown!r}; list two or more different categories."
        )
    values = {text for text in _texts(column) if text is not None}
    other = sorted(values - set(categories))
    if other:
        raise ViewError(f"Column {name!r} holds {other[0]!r}, which is not in its order {shown}; add it or correct it.")
    if len(values) < 2:
        return EMPTY if not values else CONSTANT
    return ColumnCode(name, "ordered", categories)


def _by_number(text: str) -> tuple[float, str]:
    return (float(text), "") if _is_number(text) else (math.inf, text)


def _texts(column: Any) -> list[str | None]:
    cells = np.asarray(column.astype(object) if hasattr(column, "astype") else column, dtype=object).tolist()
    return [None if _is_missing(cell) else _text(cell) for cell in cells]


def _as_dates(name: str, column: Any) -> ColumnCode | str:
    stamps = _dates(name, column)
    known = stamps[~np.isnat(stamps)]
    if len(known) == 0:
        return EMPTY
    if (known == known[0]).all() and len(stamps) > 1:
        return CONSTANT
    return ColumnCode(name, "date", earliest=str(known.min()))


def _dates(name: str, column: Any) -> Array:
    held = _held_as_date(column)
    if held is not None:
        return held
    cell = next(text for text in _texts(column) if text is not None and _day(text) is None)
    form = "2021-03-04 or 2021-03-04 13:45"
    raise ViewError(f"Column {name!r} holds {cell!r}, which is not a date: write dates as {form}.")


def _held_as_date(column: Any) -> Array | None:
    """Return the dates of a column, None where it holds something else."""
    if getattr(getattr(column, "dtype", None), "kind", "O") == "M":
        return _as_datetimes(column)
    cells = np.asarray(column, dtype=object).tolist()
    days = [None if _is_missing(cell) else cell if isinstance(cell, date) else _day(cell) for cell in cells]
    if any(day is None and not _is_missing(cell) for day, cell in zip(days, cells, strict=True)):
        return None
    return np.array([_stamp(day) for day in days], dtype="datetime64[us]")


def _encoded(code: ColumnCode, column: Any) -> Floats:
    """Return the (n, features) numbers of a column."""
    if code.kind == "date":
        days = (_dates(code.name, column) - np.datetime64(code.earliest, "us")) / _DAY
        return np.asarray(days, dtype=np.float64)[:, None]
    if code.kind in ("category", "ordered"):
        return _encoded_categories(code, column)
    held = read_column(code.name, column)
    empty = held.kind == "number" and bool(np.isnan(held.values).all())
    if held.kind != code.kind and not empty and not _is_truth(code, held):
        cell = next(text for text in _texts(column) if text is not None)
        raise ViewError(f"Column {code.name!r} was a {code.kind} in training and holds {cell!r}; correct it.")
    return held.values[:, None]


def _is_truth(code: ColumnCode, held: ColumnValues) -> bool:
    """Whether numbers are 0 and 1 where training had booleans, or booleans stand for numbers."""
    if code.kind == "number":
        return held.kind == "boolean"
    return held.kind == "number" and bool(np.isin(held.values[~np.isnan(held.values)], (0.0, 1.0)).all())


def _encoded_categories(code: ColumnCode, column: Any) -> Floats:
    texts = _texts(column)
    place = {value: i for i, value in enumerate(code.categories)}
    new = sorted({text for text in texts if text is not None and text not in place})
    ordered = code.kind == "ordered"
    if new:
        becomes = "NaN" if ordered else "0 in all of its columns"
        shown = ", ".join(map(repr, new[:5])) + (", ..." if len(new) > 5 else "")
        warn(f"Column {code.name!r} holds {shown}, which did not occur in training: this is {becomes}.", ViewWarning)
    if ordered:
        return np.array([[place.get(text, np.nan) if text is not None else np.nan] for text in texts], dtype=np.float64)
    encoded = np.zeros((len(texts), len(place)))
    for i, text in enumerate(texts):
        if text is None:
            encoded[i] = np.nan
        elif text in place:
            encoded[i, place[text]] = 1.0
    return encoded
