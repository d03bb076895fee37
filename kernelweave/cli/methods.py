"""``kernelweave methods``: what exists, when to use which, what it costs."""

import json
import os
import re
import textwrap
from collections.abc import Mapping
from inspect import cleandoc, signature
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kernelweave.cli import catalogue, messages, options
from kernelweave.cli.names import find_method, suggestion

# Width of a screen, in characters, below which a table of four columns is hard to read.
NARROW = 80
# Columns of the page on one method.
PAGE = 100


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show one method with its parameters.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the methods: what input they take, when to use them, and what they cost."""
    if name is not None:
        _one(name, as_json=as_json)
        return
    if as_json:
        messages.put("methods", json.dumps([_entry(method) for method in catalogue.METHODS], indent=2) + "\n")
        return
    known_width = os.environ.get("COLUMNS", "").isdecimal() or Console().is_terminal
    width = Console().width if known_width else messages.WIDE
    defaults = "; ".join(f"{kind}: {method}" for kind, method in catalogue.DEFAULTS.items())
    last = f"\nDefaults: {defaults}"
    if width < NARROW:
        messages.put("methods", _list(width) + textwrap.fill(last.strip(), width) + "\n")
        return
    table = Table(box=None, pad_edge=False, show_lines=False)
    for column in ("method", "takes", "use it when", "cost"):
        table.add_column(column, no_wrap=column == "method", overflow="fold")
    for method in catalogue.METHODS:
        table.add_row(method.name, ", ".join(method.takes), method.when, method.cost)
    messages.put("methods", messages.rendered(width, table, last))


def _list(width: int) -> str:
    """Return the methods one below the other, for narrow screens."""
    entries = []
    for method in catalogue.METHODS:
        facts = [("takes", ", ".join(method.takes)), ("use it when", method.when), ("cost", method.cost)]
        lines = [
            textwrap.fill(f"{name}: {text}", max(width, 20), initial_indent="  ", subsequent_indent="    ")
            for name, text in facts
        ]
        entries.append("\n".join([method.name, *lines]) + "\n\n")
    return "".join(entries)


def _entry(method: catalogue.Method) -> dict[str, object]:
    return {
        "name": method.name,
        "estimator": method.estimator,
        "takes": list(method.takes),
        "when": method.when,
        "cost": method.cost,
        "settings": dict(method.settings),
        "default_for": [kind for kind, name in catalogue.DEFAULTS.items() if name == method.name],
    }


def _one(name: str, *, as_json: bool) -> None:
    method = find_method(name)
    if method is None:
        near = suggestion(name, [each.name for each in catalogue.METHODS])
        messages.fail("methods", f"{name}: there is no such method; 'kernelweave methods' lists them.{near}")
    cls = catalogue.estimator_of(method)
    parameters = {key: repr(each.default) for key, each in signature(cls).parameters.items()}
    if as_json:
        messages.put("methods", json.dumps({**_entry(method), "parameters": parameters}, indent=2) + "\n")
        return
    messages.put("methods", _about(method, cls, parameters))


def _about(method: catalogue.Method, cls: Any, parameters: dict[str, str]) -> str:
    """Return what a method is, what ``cluster`` sets for it, and which options set what."""
    from kernelweave.cli.wording import PARAMETERS

    home = "kernelweave.cli.baselines" if method.baseline else "kernelweave"
    summary = cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    facts = {
        "takes": ", ".join(catalogue.KINDS[kind] for kind in method.takes),
        "use it when": method.when,
        "cost": f"{method.cost} (n samples, d columns, k clusters)",
        "clusters": _cluster_text(method),
        "scaling": _scale_text(method),
    }
    parts = [f"{method.name}: {home}.{method.estimator}", summary, _facts(facts)]
    defaults = [catalogue.KINDS[kind] for kind, name in catalogue.DEFAULTS.items() if name == method.name]
    if defaults:
        parts.append(_paragraph(f"It is the default for {', '.join(defaults)}."))
    if method.baseline:
        parts.append("Settings: " + (_settings(method.settings) or "those of scikit-learn") + ".")
        return "\n\n".join(parts) + "\n"
    used = {
        catalogue.KINDS[kind]: text
        for kind in method.takes
        if (text := _settings(settings_for(method, kind, parameters)))
    }
    head = (
        "'kernelweave cluster' sets, in addition to the defaults below:"
        if used
        else "'kernelweave cluster' uses the defaults."
    )
    parts.append(head + ("\n" + _facts(used) if used else ""))
    described = _descriptions(cls.__doc__ or "")
    by_option = {PARAMETERS[name]: described.get(name, "") for name in parameters if name in PARAMETERS}
    others = {name: described.get(name, "") for name in parameters if name not in PARAMETERS and name != "verbose"}
    parts.append("Options\n" + _facts(by_option))
    rest = {f"{name}={parameters[name]}": text for name, text in others.items() if name != "views"}
    parts.append("Other parameters and their defaults, changed with --set NAME=VALUE\n" + _listed(rest))
    return "\n\n".join(parts) + "\n"


def _cluster_text(method: catalogue.Method) -> str:
    if method.ranges:
        return "-k 3, a range to choose from such as -k 2:8, or chosen without -k"
    if method.chooses:
        return "-k 3, or chosen without -k; -k 2:8 tries each and keeps the best by --criterion"
    return "-k 3; -k 2:8 tries each and keeps the best by --criterion"


def _scale_text(method: catalogue.Method) -> str:
    if not {catalogue.TABLE, catalogue.VIEWS} & set(method.takes):
        return "none: graphs are used as they are"
    usual = "standard, or unit-rows for sparse tables" if method.scale == "auto" else method.scale
    return f"{usual}; --scale changes it"


def settings_for(method: catalogue.Method, kind: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that ``cluster`` gives to the estimator of a method for a kind of input."""
    from kernelweave.cli.fitting import build

    model = build(method, kind, 2, {}, 0)
    given = model.get_params(deep=False)
    return {
        name: value
        for name, value in given.items()
        if name not in ("n_clusters", "random_state") and repr(value) != parameters[name]
    }


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def _descriptions(doc: str) -> dict[str, str]:
    """Return the first sentence on every parameter of a class."""
    section = cleandoc(doc).partition("\nParameters\n")[2].partition("\nAttributes\n")[0]
    found: dict[str, str] = {}
    for part in re.split(r"\n(?=[a-z_, ]+ : )", section):
        names, _, text = part.partition(" : ")
        body = " ".join(text.partition("\n")[2].split())
        sentence = re.split(r"(?<=[.;:]) (?=[A-Z`])", body)[0] if body else ""
        sentence = f"{sentence.rstrip(';:.')}." if sentence else ""
        for name in names.split(","):
            found[name.strip().rpartition("\n")[2]] = re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", r"\1\2", sentence)
    return found


def _paragraph(text: str, indent: str = "") -> str:
    return textwrap.fill(text, PAGE, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _facts(facts: Mapping[str, str]) -> str:
    """Return names and texts in two columns."""
    width = max(map(len, facts)) + 2
    return "\n".join(_paragraph(f"{name:<{width}}{text}", " " * width).rstrip() for name, text in facts.items())


def _listed(facts: Mapping[str, str]) -> str:
    return "\n".join(f"  {name}" + (f"\n{_indented(text)}" if text else "") for name, text in facts.items())


def _indented(text: str) -> str:
    return textwrap.fill(text, PAGE, initial_indent=" " * 6, subsequent_indent=" " * 6, break_long_words=False)
