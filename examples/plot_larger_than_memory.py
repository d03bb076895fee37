"""
A file that is larger than the memory it may use
================================================

The table is a file on disk, and the fit may use 4 MiB at a time. Rows are read in blocks; labels are those of a fit
with all rows in memory. Here the file has 8 MB so that the example takes a moment; the same lines cluster 20 GiB.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import KernelKMeans

N = 100_000
rng = np.random.default_rng(0)
angles = 2 * np.pi * np.arange(7) / 7
centres = np.column_stack([np.cos(angles), np.sin(angles)]) * 5
group = rng.integers(7, size=N)
spread = 0.5 + 0.12 * group
settings = {"kernel": "linear", "n_init": 2, "random_state": 0}

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "measurements.npy")
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(N, 10))
    table[:, :2] = centres[group] + spread[:, None] * rng.normal(size=(N, 2))
    table[:, 2:] = 0.3 * rng.normal(size=(N, 8))
    table.flush()
    print(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")

    # A mapped array is not loaded: pages come from disk when they are read.
    mapped = np.load(path, mmap_mode="r")
    model = KernelKMeans(7, memory_limit=4, **settings).fit(mapped)
    in_memory = KernelKMeans(7, **settings).fit(np.array(mapped))
    plane = np.array(mapped[:, :2])
    del table, mapped

print("labels as in memory:", np.array_equal(model.labels_, in_memory.labels_))

# %%
# A hundred thousand points as a picture: every cell has the colour of its most frequent cluster, darker where there are
# more points.
cells = [np.linspace(-8, 8, 161), np.linspace(-8, 8, 121)]
counts = np.stack([np.histogram2d(*plane[model.labels_ == c].T, bins=cells)[0] for c in range(7)])
shade = np.clip(np.log1p(counts.sum(axis=0)) / np.log(60), 0, 1)[..., None]
image = 1 - shade * (1 - plt.get_cmap("Dark2")(counts.argmax(axis=0))[..., :3])
figure, axes = plt.subplots(figsize=(7.2, 5.0), layout="constrained")
axes.imshow(image.transpose(1, 0, 2), origin="lower", extent=(-8, 8, -8, 8), aspect=0.8, interpolation="nearest")
axes.set_title("100,000 samples read in blocks, 7 clusters", fontsize=13)
axes.set_axis_off()
plt.show()
