"""Charts as inline SVG. Colours are CSS classes, so that light, dark and print follow the page."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from kernelweave.evaluation.report.maps import colour
from kernelweave.evaluation.report.text import MINUS, TIMES, breakable, esc, fixed, ten_to
from kernelweave.foundation.array_types import Floats, Ints

WIDTH = 600
# Width of a figure in the largest type charts use, in units of the drawing.
FIGURE_WIDTH = 10.5


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
        f'<li><span class="name">{breakable(name)}</span>{bar(value / largest)}'
        f'<span class="figure">{esc(text)}</span></li>'
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


def line_chart(values: Floats, at: Ints, over: str, what: str = "objective", chosen: int | None = None) -> str:
    """Return a line of values over whole numbers; the chosen one, where there is one, is marked."""
    height = 276.0
    top = 36.0 if chosen is None else 52.0
    bottom = 222.0
    low = float(values.min())
    high = float(values.max())
    pad = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    marks = ticks(low - pad, high + pad)
    texts, power = tick_texts(marks)
    left = 18.0 + FIGURE_WIDTH * max(map(len, texts), default=1)
    span = [float(at.min()), float(max(at.max(), at.min() + 1))]
    xs = np.interp(at, span, [left + 12.0, WIDTH - 20.0])
    ys = np.interp(values, [low - pad, high + pad], [bottom, top])
    places = np.interp(marks, [low - pad, high + pad], [bottom, top])
    shapes = [
        f'<path class="grid" d="M{left:.1f} {y:.1f}H{WIDTH - 8}"/>'
        f'<text x="{left - 8:.1f}" y="{y:.1f}" dy=".35em" text-anchor="end">{text}</text>'
        for y, text in zip(places, texts, strict=True)
    ]
    for i in sorted({round(t) for t in ticks(span[0], span[1], 6)}):
        x = np.interp(i, span, [left + 12.0, WIDTH - 20.0])
        shapes.append(f'<text x="{x:.1f}" y="{bottom + 20:.0f}" text-anchor="middle">{i}</text>')
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    shapes.append(f'<path class="line" d="M{line}"/>')
    if len(values) <= 60:
        shapes += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in zip(xs, ys, strict=True)]
    for i in np.flatnonzero(at == chosen).tolist():
        shapes.append(f'<path class="mean" d="M{xs[i]:.1f} {bottom:.0f}V{ys[i]:.1f}"/>')
        shapes.append(f'<circle class="chosen" cx="{xs[i]:.1f}" cy="{ys[i]:.1f}" r="7"/>')
        above = f'y="{ys[i] - 14:.1f}" text-anchor="middle"'
        shapes.append(f'<text class="named" x="{xs[i]:.1f}" {above}>{chosen}</text>')
    title = f"{what} ({power})" if power else what
    shapes.append(f'<text class="axis" x="{left:.0f}" y="18">{esc(title)}</text>')
    shapes.append(f'<text class="axis" x="{WIDTH - 8}" y="{height - 8:.0f}" text-anchor="end">{esc(over)}</text>')
    label = f"{what} over {over}, from {fixed(float(values[0]), 4)} to {fixed(float(values[-1]), 4)}"
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
