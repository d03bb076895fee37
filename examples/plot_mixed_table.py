"""
A table with words, numbers and gaps
====================================

Real tables are untidy: numbers beside words, and cells that nobody filled in. The kernel of Gower compares two rows by
the columns that both of them have, numbers by their difference and words by whether they are equal. Nothing is filled
in and nothing is thrown away.

The penguins here are made up: three kinds, an island that mostly goes with the kind, a tag that does not, and gaps.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kernelweave import KernelKMeans, NotPSDWarning
from kernelweave.metrics import clustering_accuracy

rng = np.random.default_rng(0)
kind = np.repeat([0, 1, 2], [80, 60, 40])
anywhere = rng.random(180) < 0.25
table = pd.DataFrame(
    {
        "bill length": rng.normal(np.array([39, 47, 49])[kind], 2.5),
        "bill depth": rng.normal(np.array([18, 15, 18.5])[kind], 0.9),
        "flipper": rng.normal(np.array([190, 217, 196])[kind], 6.0),
        "mass": rng.normal(np.array([3700, 5080, 3730])[kind], 350.0),
        "island": np.array(["north", "south", "east"])[np.where(anywhere, rng.integers(3, size=180), kind)],
        "tagged": np.where(rng.random(180) < 0.5, "yes", "no"),
    }
)
table = table.mask(rng.random(table.shape) < 0.1)
complete = table.notna().all(axis=1).mean()
print(table.head())
print(f"{complete:.0%} of the rows are complete")

# %%
# Words become codes; a gap stays NaN.
numbers = table.copy()
for column in ("island", "tagged"):
    codes, _ = pd.factorize(table[column])
    numbers[column] = np.where(codes < 0, np.nan, codes)
numbers = numbers.to_numpy(dtype=float)

# %%
# Gaps make the kernel slightly indefinite. A warning says so; the result is still a local minimum of the objective.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NotPSDWarning)
    model = KernelKMeans(3, kernel="gower", kernel_params={"categorical": (4, 5)}, n_init=20, random_state=0)
    model.fit(numbers)
accuracy = clustering_accuracy(kind, model.labels_)
print(f"{accuracy:.0%} of the penguins are in the cluster of their kind")

# %%
# Two of the six columns. Crosses have a gap in some column, and got a cluster all the same; penguins without one of the
# two measurements are not in the picture.
colours = np.array(["#1b6ca8", "#c25f0c", "#2e8b57"])
gap = table.isna().any(axis=1).to_numpy()
figure, axes = plt.subplots(figsize=(7.2, 5.0), layout="constrained")
for rows, marker, size, name in ((~gap, "o", 26, "complete"), (gap, "x", 42, "some cell is empty")):
    places = table.loc[rows, ["bill length", "flipper"]].to_numpy(dtype=float)
    axes.scatter(*places.T, marker=marker, s=size, color=colours[model.labels_[rows]], label=name)
axes.set_xlabel("bill length, mm", fontsize=12)
axes.set_ylabel("flipper, mm", fontsize=12)
axes.legend(frameon=False, fontsize=12, loc="upper left")
axes.set_title(f"{complete:.0%} of rows complete, {accuracy:.0%} of penguins right", fontsize=14)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
