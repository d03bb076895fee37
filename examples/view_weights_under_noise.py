"""View weights as the noise grows: two views with a few errors beside two noisy ones, after PhD figure 3.2.

``python examples/view_weights_under_noise.py`` shows the picture after about ten seconds.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import MultiViewConvexMixture
from kernelweave.datasets import make_corrupted_views

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
DRAWS = 3
# Where EM ends. The source does not say; 0.015 was fitted to the weights it prints.
ENDS = {"EM stopped early, to match the source: tol=0.015": 0.015, "Default: tol=1e-4": 1e-4}
COLOURS = {"two views, 50 of 700 samples misplaced": "#1b6ca8", "two noisy views": "#e08214"}


def view_weights(tol, n_draws, levels):
    """Return the mean weights of both kinds of views, by level of noise, draw and kind."""
    data = make_corrupted_views(2, 0, random_state=0)
    found = np.empty((len(levels), n_draws, 2))
    for draw in range(n_draws):
        # All levels share the directions of the noise, so that a draw can be followed from level to level.
        noise = np.random.default_rng(draw).standard_normal((2, *data.original.shape))
        for place, level in enumerate(levels):
            noisy = {f"noisy_{copy}": data.original + level * noise[copy] for copy in range(2)}
            model = MultiViewConvexMixture(3, tol=tol).fit({**data.views, **noisy})
            found[place, draw] = model.view_weights_.reshape(2, 2).mean(axis=1)
    return found


def draw_panel(axes, title, found, levels):
    """Draw the means over the draws as lines, and from the least to the largest as bands."""
    for kind, (name, colour) in enumerate(COLOURS.items()):
        weights = found[:, :, kind]
        axes.plot(levels, weights.mean(axis=1), color=colour, marker="o", markersize=4, label=f"{name}, each")
        axes.fill_between(levels, weights.min(axis=1), weights.max(axis=1), color=colour, alpha=0.2, linewidth=0)
    axes.axhline(0.25, color="#333333", linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("standard deviation of the noise")
    axes.spines[["top", "right"]].set_visible(False)


def draw(n_draws=DRAWS, levels=LEVELS):
    """Draw a panel for each way to end."""
    figure = plt.figure(figsize=(10.5, 4.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (title, tol) in zip(panels, ENDS.items(), strict=True):
        draw_panel(axes, title, view_weights(tol, n_draws, levels), levels)
    panels[0].set(ylabel="view weight (dashed: equal weights)", ylim=(0.0, 0.52))
    panels[1].legend(loc="center right", bbox_to_anchor=(1.0, 0.62), fontsize=9, frameon=False)
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
