"""Text of the report: numbers, parameters, the first sentence of a docstring, code that repeats the fit."""

import html
import inspect
import math
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

# Longest value of a parameter, and longest name of a sample or view, that is shown in full.
LONGEST = 400
LONGEST_NAME = 80
# Where an object lies in memory says nothing and changes from run to run.
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
# Characters that cannot be seen, or that change the order of others: controls, marks of direction, lone surrogates.
INVISIBLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
# Signs after which a long name may be broken; those of escaped characters stay whole.
SIGNS = re.compile(r"[_/.:-](?=\w)|(?<=[a-z])(?=[A-Z])")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"


def esc(text: Any) -> str:
    """Return text safe between tags and in quoted attributes."""
    return html.escape(visible(text), quote=True)


def visible(text: Any) -> str:
    """Return text with characters that cannot be seen written as in code: U+202E as a backslash and u202e."""
    return INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], str(text))


def one_line(text: Any) -> str:
    """Return a name without line breaks, the middle of a long one left out."""
    name = visible(" ".join(str(text).split())) or "(empty)"
    half = (LONGEST_NAME - 1) // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def breakable(text: Any) -> str:
    """Return a name in one line, safe between tags, with places where a line may end: after signs, not in words."""
    return SIGNS.sub(r"\g<0><wbr>", esc(one_line(text)))


def number(value: Any) -> str:
    """Return a number in at least four figures, thousands set apart."""
    x = float(value)
    if math.isnan(x):
        return DASH
    if math.isinf(x):
        return "∞" if x > 0 else f"{MINUS}∞"
    if x == 0 or (x == round(x) and abs(x) < 1e9):
        return f"{round(x):,}".replace("-", MINUS)
    power = math.floor(math.log10(abs(x)))
    if -4 < power < 9:
        return f"{x:,.{max(0, 3 - power)}f}".replace("-", MINUS)
    mantissa, exponent = f"{x:.3e}".split("e")
    return f"{mantissa} {TIMES} {ten_to(int(exponent))}".replace("-", MINUS)


def ten_to(power: int) -> str:
    """Return a power of ten."""
    return f"10{str(power).translate(SUPERSCRIPTS)}"


def fixed(value: float | None, digits: int = 2) -> str:
    """Return a number with so many decimals, a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def percent(share: float) -> str:
    """Return a share in percent."""
    if not math.isfinite(share):
        return DASH
    return "under 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f}".removesuffix(".0") + " %"


def count(n: int, what: str, several: str | None = None) -> str:
    """Return a number of things."""
    return f"{n:,} {what if n == 1 else several or what + 's'}"


def sentence(cls: type) -> str:
    """Return the first sentence of a class's docstring without markup."""
    text = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    text = re.sub(r":\w+:`~?([^`]*)`", lambda match: match[1].rsplit(".", 1)[-1], text).replace("``", "")
    return " ".join(text.split())


def value_text(value: Any) -> str:
    """Return the value of a parameter: arrays by their shape, functions by their name, the rest as code."""
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"array of shape {value.shape}" if value.size > 8 else repr(value.tolist())
    if inspect.isroutine(value) or inspect.isclass(value):
        return f"{value.__module__}.{value.__qualname__}"
    text = ADDRESS.sub("", repr(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def parameters(model: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the parameters that differ from their default, and the others."""
    changed: dict[str, str] = {}
    others: dict[str, str] = {}
    values = model.get_params(deep=False)
    for name, item in inspect.signature(type(model)).parameters.items():
        if name in values:
            (others if _is_default(values[name], item.default) else changed)[name] = value_text(values[name])
    return changed, others


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    plain = (str, int, float, bool, type(None))
    return isinstance(value, plain) and isinstance(default, plain) and value == default


def code_for(steps: Iterable[Any], model: Any, seed: Any) -> str:
    """Return code that makes, fits and reports the model again."""
    estimators = [*steps, model]
    imported: dict[str, set[str]] = {"kernelweave.report": {"write_report"}}
    for each in estimators:
        if not isinstance(each, str):
            imported.setdefault(_public_module(type(each)), set()).add(type(each).__name__)
    calls = [_call(each) for each in estimators]
    if len(calls) > 1:
        imported.setdefault("sklearn.pipeline", set()).add("make_pipeline")
    imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(imported.items())]
    lines = "".join(f"\n    {call}," for call in calls)
    whole = calls[0] if len(calls) == 1 else f"make_pipeline({lines}\n)"
    last = f'write_report("report.html", model, X, random_state={value_text(seed)})'
    return "\n".join([*imports, "", f"model = {whole}", "model.fit(X)", last])


def _call(step: Any) -> str:
    """Return the call that makes a step of a pipeline."""
    if isinstance(step, str):
        return repr(step)
    arguments = ", ".join(f"{name}={text}" for name, text in parameters(step)[0].items())
    return f"{type(step).__name__}({arguments})"


def _public_module(cls: type) -> str:
    """Return the shortest module that a class can be imported from."""
    names = cls.__module__.split(".")
    for count in range(1, len(names)):
        module = ".".join(names[:count])
        if getattr(sys.modules.get(module), cls.__name__, None) is cls:
            return module
    return cls.__module__
