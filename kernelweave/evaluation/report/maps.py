"""Maps of the samples as inline SVG: one large with the names of the clusters, and small ones of single views."""

from collections.abc import Iterator, Sequence

import numpy as np

from kernelweave.evaluation.palette import PATHS, colour_index, shape_index
from kernelweave.evaluation.report.text import esc
from kernelweave.foundation.array_types import Floats, Ints

WIDTH = 600
HEIGHT = 520
# Room of a cluster's number in the largest type that maps use: height, and width of a figure.
LABEL_HEIGHT = 27.0
LABEL_FIGURE = 15.0
# Where a label that finds its place taken is moved, in steps of its own height.
RINGS = 6


def marker_definitions() -> str:
    """Return the marks, to be used by the others by their name."""
    marks = "".join(f'<path id="m{i}" d="{shape}"/>' for i, shape in enumerate(PATHS))
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{marks}</defs></svg>'


def colour(c: int) -> str:
    """Return the class that gives a cluster its colour."""
    return f"k{colour_index(c)}"


def mark(c: int) -> str:
    """Return the name of a cluster's mark."""
    return f"#m{shape_index(c)}"


def swatch(c: int) -> str:
    """Return the mark of a cluster for use within text."""
    inner = f'<use href="{mark(c)}" class="{colour(c)}"/>'
    return f'<svg class="swatch" viewBox="-6 -6 12 12" aria-hidden="true">{inner}</svg>'


def scatter(points: Floats, labels: Ints, texts: Sequence[str]) -> str:
    """Return samples as marks by cluster, each with its text, and the number of every cluster at its median."""
    size = float(np.clip(8.0 / max(1.0, len(points)) ** 0.3, 0.6, 1.25))
    xs, ys = _placed(points, WIDTH, HEIGHT, 16.0)
    order = np.random.default_rng(0).permutation(len(points))  # so that no cluster covers the others
    marks = "".join(
        f'<use href="{mark(c)}" class="{colour(c)}" data-c="{c}" x="{xs[i] / size:.1f}" '
        f'y="{ys[i] / size:.1f}"><title>{esc(texts[i])}</title></use>'
        for i, c in ((int(i), int(labels[i])) for i in order)
    )
    tags = "".join(
        f'<text class="tag" data-c="{c}" x="{x:.1f}" y="{y:.1f}" dy=".35em" text-anchor="middle">{c}</text>'
        for c, (x, y) in label_places(xs, ys, labels).items()
    )
    return (
        f'<svg class="chart scatter" viewBox="0 0 {WIDTH} {HEIGHT}" tabindex="0" role="group" '
        f'aria-label="Samples in the plane, coloured by cluster; arrow keys go from sample to sample">'
        f'<g class="points" transform="scale({size:.3f})" data-scale="{size:.3f}">{marks}</g>'
        f'<g class="tags" aria-hidden="true">{tags}</g><circle class="ring" r="9" visibility="hidden"/></svg>'
    )


def small_map(points: Floats, labels: Ints, name: str) -> str:
    """Return a small map without names."""
    width = 240
    height = 180
    xs, ys = _placed(points, width, height, 9.0)
    size = 0.5
    order = np.random.default_rng(0).permutation(len(points))
    marks = "".join(
        f'<use href="{mark(c)}" class="{colour(c)}" x="{xs[i] / size:.0f}" y="{ys[i] / size:.0f}"/>'
        for i, c in ((int(i), int(labels[i])) for i in order)
    )
    return (
        f'<svg class="small-map" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{esc(f"Samples in view {name} alone, coloured by cluster")}">'
        f'<g transform="scale({size})">{marks}</g></svg>'
    )


def label_places(xs: Floats, ys: Floats, labels: Ints) -> dict[int, tuple[float, float]]:
    """Return where the number of every cluster stands: at the median of its samples, or near it where that is taken.

    Large clusters come first. A label goes to the nearest free place of a few rings around the median; where none is
    free it stays at the median.
    """
    clusters, sizes = np.unique(labels, return_counts=True)
    taken: list[tuple[float, float, float]] = []
    places = {}
    for c in clusters[np.argsort(-sizes, kind="stable")].tolist():
        width = LABEL_FIGURE * len(str(c)) + 4.0
        middle = (float(np.median(xs[labels == c])), float(np.median(ys[labels == c])))
        free = (place for place in _around(middle, width) if not _overlaps(place, width, taken))
        x, y = next(free, _inside(middle, width))
        taken.append((x, y, width))
        places[c] = (x, y)
    return dict(sorted(places.items()))


def _around(middle: tuple[float, float], width: float) -> Iterator[tuple[float, float]]:
    """Yield the place itself and others around it, the nearest first."""
    yield _inside(middle, width)
    angles = np.arange(16) * np.pi / 8.0
    for r in (0.5 * np.arange(1, 2 * RINGS + 1)).tolist():
        for a in angles:
            place = (middle[0] + r * width * float(np.cos(a)), middle[1] + r * LABEL_HEIGHT * float(np.sin(a)))
            yield _inside(place, width)


def _inside(place: tuple[float, float], width: float) -> tuple[float, float]:
    """Return the nearest place at which all of a label is seen."""
    x, y = place
    half = width / 2
    return min(max(x, half), WIDTH - half), min(max(y, LABEL_HEIGHT / 2), HEIGHT - LABEL_HEIGHT / 2)


def _overlaps(place: tuple[float, float], width: float, taken: Sequence[tuple[float, float, float]]) -> bool:
    x, y = place
    return any(abs(x - a) < (width + other) / 2 and abs(y - b) < LABEL_HEIGHT for a, b, other in taken)


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
