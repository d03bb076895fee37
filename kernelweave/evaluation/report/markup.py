"""Pieces of markup that several sections use; their arguments are plain text unless it says otherwise."""

from collections.abc import Mapping, Sequence

from kernelweave.evaluation.report.maps import swatch
from kernelweave.evaluation.report.text import MINUS, breakable, esc, fixed


def signed(value: float) -> str:
    """Return a figure, marked where it is negative."""
    text = fixed(float(value))
    return f'<span class="neg">{text}</span>' if text.startswith(MINUS) else text


def named(name: str) -> str:
    """Return the name of a sample or a view; nothing for none."""
    return f'<span class="id">{breakable(name)}</span>' if name else ""


def cluster(c: int) -> str:
    """Return the number of a cluster with its mark."""
    return f'<span class="nowrap">{swatch(c)}{c}</span>'


def copied(text: str) -> str:
    """Return text to copy, with a button for it."""
    return (
        f'<div class="code"><pre><code>{esc(text)}</code></pre><button type="button" class="copy">Copy</button></div>'
    )


def pairs(values: Mapping[str, str]) -> str:
    """Return names and values side by side."""
    items = "".join(f"<dt>{esc(name)}</dt><dd><code>{esc(value)}</code></dd>" for name, value in values.items())
    return f'<dl class="pairs">{items}</dl>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are markup already; heads that begin with # are numbers, with | bars."""
    classes = {"#": ' class="num"', "|": ' class="wide"'}
    styles = [classes.get(name[:1], "") for name in head]
    names = [esc(name.lstrip("#|")) for name in head]
    top = "".join(f'<th scope="col"{style}>{name}</th>' for name, style in zip(names, styles, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{style}>{cell}</td>" for cell, style in zip(row, styles, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
