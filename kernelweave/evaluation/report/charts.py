"""Charts as inline SVG. Colours are CSS classes, so that light, dark and print follow the page."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from kernelweave.evaluation.report.text import MINUS, TIMES, esc, fixed, ten_to
from kernelweave.foundation.array_types import Floats, Ints

#: Numbers of colours and of shapes; without a common divisor, so that a pair comes back after 56 clusters only.
N_COLOURS = 7
# Marks around the origin, about eight units wide.
SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",  # circle
    "M-3.5-3.5h7v7h-7Z",  # square
    "M0-4.6L4.4 3.4H-4.4Z",  # triangle
    "M0-5L5 0L0 5L-5 0Z",  # diamond
    "M0 4.6L4.4-3.4H-4.4Z",  # triangle, tip down
    "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3Z",  # plus
    "M-4.4-2.4L-2.4-4.4L0-2L2.4-4.4L4.4-2.4L2 0L4.4 2.4L2.4 4.4L0 2L-2.4 4.4L-4.4 2.4L-2 0Z",  # cross
    "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4Z",  # pentagon
)
WIDTH = 600
# Width of a figure in the largest type charts use, in units of the drawing.
FIGURE_WIDTH = 10.5


def marker_definitions() -> str:
    """Return the marks, to be used by the others by their name."""
    marks = "".join(f'<path id="m{i}" d="{shape}"/>' for i, shape in enumerate(SHAPES))
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{marks}</defs></svg>'


def colour(c: int) -> str:
    """Return the class that gives a cluster its colour."""
    return f"k{c % N_COLOURS}"


def swatch(c: int) -> str:
    """Return the mark of a cluster for use within text."""
    mark = f'<use href="#m{c % len(SHAPES)}" class="{colour(c)}"/>'
    return f'<svg class="swatch" viewBox="-6 -6 12 12" aria-hidden="true">{mark}</svg>'


def bar(share: float, style: str = "plain") -> str:
    """Return a bar that fills a share of its place."""
    width = 0.0 if not math.isfinite(share) else 100.0 * min(max(share, 0.0), 1.0)
    filled = f'<rect class="{style}" width="{width:.2f}%" height="100%" rx="3"/>'
    return f'<svg class="bar" aria-hidden="true">{filled}</svg>'


def bar_rows(rows: Sequence[tuple[str, float, str]], full: float | None = None) -> str:
    """Return labelled horizontal bars; ``full``, by default the longest, fills its place."""
    largest = max((value for _, value, _ in rows), default=0.0) if full is None else full
    largest = largest or 1.0
    lines = "".join(
        f'<li><span class="name">{esc(name)}</span>{bar(value / largest)}<span class="figure">{esc(text)}</span></li>'
        for name, value, text in rows
    )
    return f'<ul class="bars">{lines}</ul>'


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers from low to high."""
    span = high - low
    if not span > 0:
        return [low]
    rough = span / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_texts(values: Sequence[float]) -> tuple[list[str], str]:
    """Return the texts of ticks, and the power of ten they are to be multiplied by, as text."""
    largest = max((abs(value) for value in values), default=0.0)
    power = math.floor(math.log10(largest)) if largest > 0 else 0
    power = 0 if -3 <= power < 5 else power
    shown = [value / 10.0**power for value in values]
    step = min((b - a for a, b in pairwise(shown)), default=abs(shown[0]) if shown else 1.0)
    digits = next((d for d in range(10) if abs(step * 10**d - round(step * 10**d)) < 1e-6), 10)
    texts = [f"{value:,.{digits}f}".replace("-", MINUS) for value in shown]
    return texts, "" if power == 0 else f"{TIMES} {ten_to(power)}"


def line_chart(path: Floats, first: int, over: str, what: str = "objective") -> str:
    """Return the line of an objective over steps, numbered from ``first``."""
    height = 276.0
    top = 36.0
    bottom = 222.0
    low = float(path.min())
    high = float(path.max())
    pad = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    marks = ticks(low - pad, high + pad)
    texts, power = tick_texts(marks)
    left = 18.0 + FIGURE_WIDTH * max(map(len, texts), default=1)
    xs = np.interp(np.arange(len(path)), [0, max(1, len(path) - 1)], [left + 8.0, WIDTH - 16.0])
    ys = np.interp(path, [low - pad, high + pad], [bottom, top])
    places = np.interp(marks, [low - pad, high + pad], [bottom, top])
    shapes = [
        f'<path class="grid" d="M{left:.1f} {y:.1f}H{WIDTH - 8}"/>'
        f'<text x="{left - 8:.1f}" y="{y:.1f}" dy=".35em" text-anchor="end">{text}</text>'
        for y, text in zip(places, texts, strict=True)
    ]
    for i in sorted({round(t) for t in ticks(0, len(path) - 1, 6)}):
        shapes.append(f'<text x="{xs[i]:.1f}" y="{bottom + 20:.0f}" text-anchor="middle">{i + first}</text>')
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    shapes.append(f'<path class="line" d="M{line}"/>')
    if len(path) <= 60:
        shapes += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in zip(xs, ys, strict=True)]
    title = f"{what} ({power})" if power else what
    shapes.append(f'<text class="axis" x="{left:.0f}" y="18">{esc(title)}</text>')
    shapes.append(f'<text class="axis" x="{WIDTH - 8}" y="{height - 8:.0f}" text-anchor="end">{esc(over)}</text>')
    label = f"{what} over {over}, from {fixed(float(path[0]), 4)} to {fixed(float(path[-1]), 4)}"
    return _svg(height, label, shapes)


def silhouette_chart(values: Sequence[Floats], clusters: Sequence[int], mean: float, what: str = "Silhouettes") -> str:
    """Return silhouettes sorted within clusters, one band for each."""
    left = 44.0
    right = WIDTH - 22.0
    top = 8.0
    low = min(0.0, *(float(each.min()) for each in values))
    low = -0.1 * math.ceil(-low * 10 - 1e-9)
    total = sum(map(len, values))

    def x(value: float) -> float:
        return left + (value - low) / (1.0 - low) * (right - left)

    shapes = []
    y = top
    for each, c in zip(values, clusters, strict=True):
        height = max(18.0, 360.0 * len(each) / total)
        shapes.append(_band(np.sort(each)[::-1], x, y, height, c))
        shapes.append(f'<text x="{left - 10:.0f}" y="{y + height / 2:.1f}" dy=".35em" text-anchor="end">{c}</text>')
        y += height + 5.0
    marks = [i / 5 for i in range(math.ceil(5 * low - 1e-9), 6)]
    grid = [f'<path class="grid" d="M{x(mark):.1f} {top:.0f}V{y:.1f}"/>' for mark in marks]
    labels = [
        f'<text x="{x(mark):.1f}" y="{y + 20:.1f}" text-anchor="middle">{text}</text>'
        for mark, text in zip(marks, tick_texts(marks)[0], strict=True)
    ]
    shapes.append(f'<path class="zero" d="M{x(0.0):.1f} {top:.0f}V{y:.1f}"/>')
    shapes.append(f'<path class="mean" d="M{x(mean):.1f} {top:.0f}V{y:.1f}"/>')
    return _svg(y + 30.0, f"{what} by cluster, mean {fixed(mean)}", [*grid, *shapes, *labels])


def _band(values: Floats, x: Callable[[float], float], y: float, height: float, c: int) -> str:
    """Return the outline of sorted bars; beyond 400 of them those that lie between are left out."""
    if len(values) > 400:
        values = values[np.linspace(0, len(values) - 1, 400).round().astype(int)]
    step = height / len(values)
    at = [x(float(value)) for value in values]
    zero = x(0.0)
    steps = "".join(f"H{place:.1f}V{y + (i + 1) * step:.2f}" for i, place in enumerate(at))
    return f'<path class="{colour(c)} band" d="M{zero:.1f} {y:.2f}{steps}H{zero:.1f}Z"/>'


def scatter(points: Floats, labels: Ints, texts: Sequence[str]) -> str:
    """Return samples as marks by cluster, each with its text."""
    height = 450.0
    margin = 14.0
    size = float(np.clip(8.0 / max(1.0, len(points)) ** 0.3, 0.6, 1.25))
    xs, ys = _placed(points, WIDTH, height, margin)
    order = np.random.default_rng(0).permutation(len(points))  # so that no cluster covers the others
    marks = "".join(
        f'<use href="#m{c % len(SHAPES)}" class="{colour(c)}" data-c="{c}" x="{xs[i] / size:.1f}" '
        f'y="{ys[i] / size:.1f}"><title>{esc(texts[i])}</title></use>'
        for i, c in ((int(i), int(labels[i])) for i in order)
    )
    return (
        f'<svg class="chart scatter" viewBox="0 0 {WIDTH} {height:.0f}" tabindex="0" role="group" '
        f'aria-label="Samples in the plane, coloured by cluster; arrow keys go from sample to sample">'
        f'<g class="points" transform="scale({size:.3f})" data-scale="{size:.3f}">{marks}</g>'
        '<circle class="ring" r="9" visibility="hidden"/></svg>'
    )


def _placed(points: Floats, width: float, height: float, margin: float) -> tuple[Floats, Floats]:
    """Return places in the drawing: true to the distances unless one axis is more than four times the other."""
    low = points.min(axis=0)
    high = points.max(axis=0)
    spans = np.where(high > low, high - low, 1.0)
    room = np.array([width, height]) - 2 * margin
    scale = room / spans
    if spans.max() <= 4.0 * spans.min():
        scale = np.full(2, scale.min())
    centred = (points - (low + high) / 2) * scale
    return width / 2 + centred[:, 0], height / 2 - centred[:, 1]


def tiny_bars(sizes: Sequence[int]) -> str:
    """Return sizes as a small bar chart in the colour of the text, for a line of a notebook."""
    step = 9
    heights = [30 * size / max([*sizes, 1]) for size in sizes]
    bars = "".join(
        f'<rect x="{i * step}" y="{32 - height:.1f}" width="{step - 2}" height="{height:.1f}" rx="1">'
        f"<title>cluster {i}: {size}</title></rect>"
        for i, (size, height) in enumerate(zip(sizes, heights, strict=True))
    )
    label = f"cluster sizes {', '.join(map(str, sizes))}"
    return (
        f'<svg width="{len(sizes) * step}" height="32" role="img" aria-label="{label}" '
        f'style="fill:currentColor;opacity:.65;max-width:100%">{bars}</svg>'
    )


def _svg(height: float, label: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{esc(label)}">'
        f"{''.join(shapes)}</svg>"
    )
