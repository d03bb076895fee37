"""
Time series with a kernel of your own
=====================================

Heartbeats, bursts and ramps are recorded, and every recording starts at another moment. Distances between the curves
compare moments, not shapes, so k-means mixes everything up. A kernel of one's own compares what a shift leaves alone:
the strengths of the frequencies. Any function of two arrays that returns their kernel matrix will do, and the model
assigns new series, too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from kernelweave import KernelKMeans
from kernelweave.metrics import normalized_mutual_info

LENGTH = 120
NAMES = ("beats", "bursts", "ramps")
rng = np.random.default_rng(1)
time = np.arange(LENGTH)
SHAPES = np.stack(
    [
        np.exp(-0.5 * ((time % 30 - 8) / 2.0) ** 2),
        np.where((time > 20) & (time < 70), np.sin(time / 1.6), 0.0),
        (time % 60) / 60.0,
    ]
)
kind = np.repeat(np.arange(3), 40)
series = np.stack([np.roll(SHAPES[k], rng.integers(LENGTH)) for k in kind])
series = (series - series.mean(axis=1, keepdims=True)) / series.std(axis=1, keepdims=True)
series += 0.45 * rng.normal(size=series.shape)


# %%
# The kernel: a Gaussian of the distance between spectra, which do not change when a series is shifted.
def same_frequencies(A, B, width=1.0):
    first, second = (np.log1p(np.abs(np.fft.rfft(series, axis=1))) for series in (A, B))
    squares = (first**2).sum(axis=1)[:, None] - 2 * first @ second.T + (second**2).sum(axis=1)
    return np.exp(-np.maximum(squares, 0.0) / (2 * width**2 * first.shape[1]))


model = KernelKMeans(3, kernel=same_frequencies, n_init=20, random_state=0).fit(series)
plain = KMeans(3, n_init=20, random_state=0).fit(series)
print("k-means on the curves:", round(normalized_mutual_info(kind, plain.labels_), 2))
print("own kernel:           ", round(normalized_mutual_info(kind, model.labels_), 2))
print("shifted copies stay in their clusters:", np.mean(model.predict(np.roll(series, 17, axis=1)) == model.labels_))

# %%
# Five recordings of each cluster.
figure, panels = plt.subplots(1, 3, figsize=(7.6, 4.6), layout="constrained", sharey=True)
colours = ("#1b6ca8", "#c25f0c", "#2e8b57")
for c, axes in enumerate(panels):
    members = np.flatnonzero(model.labels_ == c)
    for row, member in enumerate(members[:5]):
        axes.plot(time, series[member] / 3.2 - 2 * row, color=colours[c], linewidth=1.2)
    name = NAMES[np.bincount(kind[members]).argmax()]
    axes.set_title(f"{len(members)} {name}", fontsize=13)
    axes.set_axis_off()
plt.show()
