"""
Ten rings
=========

A hundred starts of kernel k-means and the fast search miss rings, the exact global search finds all.

Run it with ``python examples/plot_ten_rings.py [PICTURE] [POINTS]``. The picture goes to ``ten_rings.png`` by default.
POINTS is the number of points of each pair of rings: 400 by default, which takes some ten seconds. The data of the
source have 1,000; with those the exact search takes minutes. Pairs are drawn nearer to each other than they lie.
Drawing needs matplotlib, which the extra ``plots`` brings.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from kernelweave import GlobalKernelKMeans, KernelKMeans
from kernelweave.datasets import make_ten_rings

WIDTH = {"sigma": 1.8}
COLOURS = ("#1b6ca8", "#e08214", "#2e8b57", "#c23b52", "#7b5ea7", "#8c6d31", "#d16ba5", "#4d4d4d", "#9bb019", "#17a3b8")


def models():
    """Return the methods by the titles of their panels."""
    return {
        "kernel k-means, best of 100 starts": KernelKMeans(
            10, kernel_params=WIDTH, init="random", n_init=100, random_state=0
        ),
        "global search, fast": GlobalKernelKMeans(10, kernel_params=WIDTH, search="fast"),
        "global search, exact": GlobalKernelKMeans(10, kernel_params=WIDTH, search="exact"),
    }


def rings_found(y, labels):
    """Count the rings whose points, all of them and no others, form a cluster."""
    rings = [y == ring for ring in np.unique(y)]
    return sum(np.array_equal(labels == labels[ring.argmax()], ring) for ring in rings)


def drawn_like_the_rings(y, labels):
    """Number the clusters by the ring most of their points lie on, so that the panels share their colours."""
    numbers, free = {}, list(range(len(COLOURS)))
    for c in sorted(np.unique(labels), key=lambda c: -np.count_nonzero(labels == c)):
        counts = np.bincount(y[labels == c], minlength=len(COLOURS))
        numbers[c] = max(free, key=lambda ring: counts[ring])
        free.remove(numbers[c])
    return np.array([numbers[c] for c in labels])


def moved_together(X, y):
    """Halve the distances between the pairs of rings, so that the picture is not mostly empty."""
    centres = np.array([X[y // 2 == pair].mean(axis=0) for pair in range(5)])
    return X - 0.5 * centres[y // 2]


def draw(path, points):
    """Draw the three partitions side by side and save the picture."""
    X, y = make_ten_rings(n_inner=round(0.7 * points), n_outer=points - round(0.7 * points), random_state=0)
    figure = Figure(figsize=(10.5, 4.1), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (title, model) in zip(panels, models().items(), strict=True):
        labels = drawn_like_the_rings(y, model.fit_predict(X))
        axes.scatter(*moved_together(X, y).T, s=5, linewidths=0, color=np.array(COLOURS)[labels])
        found = rings_found(y, labels)
        axes.set_title(f"{title}\nerror {model.inertia_:.1f}, {found} of 10 rings found", fontsize=10)
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_color("#cccccc")
    figure.savefig(path, dpi=100, bbox_inches="tight", pad_inches=0.08)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "ten_rings.png", int(sys.argv[2]) if len(sys.argv) > 2 else 400)
