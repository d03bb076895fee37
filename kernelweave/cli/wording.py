"""Messages in the words of the command line: arguments of Python become options.

Lower layers name arguments (``delimiter=';'``) and parameters of estimators (``p=0.5``). Here, and nowhere else, they
are written as options (``--delimiter ';'``, ``--p 0.5``).
"""

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from kernelweave.foundation.errors import Argument, Remedy

#: Options of ``cluster`` by the parameter of estimators that they set; ``--set`` sets all others.
PARAMETERS = {
    "n_clusters": "-k",
    "random_state": "--seed",
    "kernel": "--kernel",
    "kernel_params": "--kernel-param",
    "p": "--p",
    "missing": "--missing",
    "checkpoint": "--checkpoint",
}


def _column_option(name: str) -> Callable[[Any], str]:
    return lambda columns: f"--{name} {shlex.quote(columns)}"


#: Options by the argument of readers that they set, with its value.
READING: dict[str, Callable[[Any], str]] = {
    "delimiter": lambda mark: f"--delimiter {'tab' if mark == chr(9) else repr(mark)}",
    "decimal": lambda sign: f"--decimal {sign!r}",
    "transpose": lambda _: "--transpose",
    "header": lambda header: "--header" if header else "--no-header",
    "ids": lambda column: f"--ids {column}",
    "rows": lambda rows: f"--rows {rows}",
    "missing": lambda missing: f"--missing {missing}",
    "checkpoint": lambda path: f"--checkpoint {shlex.quote(path)}",
    **{name: _column_option(name) for name in ("columns", "drop", "categorical", "dates", "ordered")},
}
#: What to do about faults of edge lists.
GRAPH_REMEDIES = {
    "entries": "Say what separates the entries with --delimiter, and write '#' before comments.",
    "weight": "Remove the third entry from all lines if it is not a weight.",
    "market": "Write one edge per line, or give the matrix with --kernel-matrix.",
    "header": "Use --header or --no-header.",
    "quote": "Close its quotes, and say what separates the entries with --delimiter.",
}

#: What to do about files of another kind.
FILE_REMEDIES = {"graph": "Give it with --graph."}

# How scikit-learn refuses the value of a parameter.
_BAD_VALUE = re.compile(r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\.")
# A parameter with a value, or advice to set one, unless it is written as an option already.
_ASSIGNED = re.compile(r"(?<![^\s(])(?<!--set )(set )?\b(\w+)=('[^']*'|[\w+-][\w.+-]*\w|\w)")


def note_text(pieces: Sequence[str | Argument]) -> str:
    """Return a note in words of the command line."""
    return "".join(map(_piece_text, pieces))


def error_text(error: Exception) -> str:
    """Return the message of an error, the arguments and remedies among its pieces in words of the command line."""
    if not any(isinstance(piece, Argument | Remedy) for piece in error.args):
        return str(error)
    return "".join(map(_piece_text, error.args))


def _piece_text(piece: Any) -> str:
    if isinstance(piece, Argument) and piece.name in READING:
        return READING[piece.name](piece.value)
    if isinstance(piece, Remedy):
        return {**GRAPH_REMEDIES, **FILE_REMEDIES}.get(piece.fault, piece.text)
    return str(piece)


def with_options(text: str) -> str:
    """Return a message about parameters of estimators in words of the command line."""
    match = _BAD_VALUE.fullmatch(text)
    if match is not None:
        name, allowed, value = match.groups()
        option = PARAMETERS.get(name, f"--set {name}")
        return f"{option} must be {_allowed_values(allowed, null=name not in PARAMETERS)}; got {value}."
    match = re.search(r"^(\S+) has no parameter '(\w+)'", text)
    if match is not None and match[2] in PARAMETERS:
        return f"{match[1]} takes no {PARAMETERS[match[2]]}."
    return re.sub(r"(?<![\w'-])kernel_params\b", PARAMETERS["kernel_params"], _ASSIGNED.sub(_as_option, text))


def _as_option(match: re.Match[str]) -> str:
    advised, name, value = match.groups()
    plain = value.strip("'")
    if name in PARAMETERS:
        return f"{PARAMETERS[name]} {plain}"
    return f"--set {name}={plain}" if advised else match[0]


def _allowed_values(text: str, *, null: bool) -> str:
    """Return scikit-learn's list of allowed values without those that only Python can pass, names sorted."""
    kinds = re.split(r"(?:, | or )(?![^{\[(]*[}\])])", text)  # not within brackets
    shown = []
    for kind in kinds:
        if kind == "a callable" or kind.startswith("an instance of") or (kind == "None" and not null):
            continue
        names = sorted(re.findall(r"'([^']*)'", kind)) if kind.startswith("a str among") else []
        kind = "null" if kind == "None" else kind
        kind = re.sub(r"^an? (int|float) ", lambda each: "a whole number " if each[1] == "int" else "a number ", kind)
        shown.append(kind if not names else names[0] if len(names) == 1 else f"one of {', '.join(names)}")
    return " or ".join(shown) or text
