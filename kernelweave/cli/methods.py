"""``kernelweave methods``: what exists, when to use which, what it costs."""

import json
import os
import textwrap
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kernelweave.cli import catalogue, messages, options

# Columns of a screen below which a table of four columns is hard to read.
NARROW = 80


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show one method with its parameters.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the methods, what they take, when to use which, and what they cost."""
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
    from inspect import cleandoc, signature

    import kernelweave

    method = catalogue.find_method(name)
    if method is None:
        messages.fail("methods", f"{name}: there is no such method; 'kernelweave methods' lists them.")
    cls = getattr(kernelweave, method.estimator)
    parameters = {key: repr(each.default) for key, each in signature(cls).parameters.items()}
    if as_json:
        messages.put("methods", json.dumps({**_entry(method), "parameters": parameters}, indent=2) + "\n")
        return
    text = cleandoc(cls.__doc__ or "").split("\nAttributes\n")[0].rstrip()
    about = f"{method.name}: kernelweave.{method.estimator}\n\n{text}\n\nChange parameters with --set NAME=VALUE.\n"
    messages.put("methods", about)
