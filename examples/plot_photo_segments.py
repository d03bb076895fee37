"""
Segments of a photograph
========================

A photograph in a few segments: every pixel is a sample in two views, its colour and its place. Weights say how much the
place counts. With linear kernels, 13,000 pixels take a moment; a million would, too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from kernelweave import KernelKMeans
from kernelweave.datasets import standardize

photo = load_sample_image("china.jpg")[::4, ::4] / 255.0
height, width, _ = photo.shape

# %%
# Colours in a space of brightness and two contrasts, places in pixels.
red, green, blue = np.moveaxis(photo, 2, 0)
colour = np.stack([(red + green + blue) / 3, red - green, (red + green) / 2 - blue], axis=2).reshape(-1, 3)
rows, columns = np.indices((height, width))
place = np.column_stack([rows.ravel(), columns.ravel()])

# %%
# The place counts half as much as the colour.
X = np.hstack([standardize(colour), 0.5 * standardize(place)])
model = KernelKMeans(8, kernel="linear", n_init=3, random_state=0).fit(X)
labels = model.labels_

# %%
# Every segment in its mean colour.
means = np.stack([photo.reshape(-1, 3)[labels == c].mean(axis=0) for c in range(8)])
figure, panels = plt.subplots(2, 1, figsize=(5.2, 7.0), layout="constrained")
panels[0].imshow(photo)
panels[0].set_title(f"{height * width:,} pixels", fontsize=13)
panels[1].imshow(means[labels].reshape(photo.shape))
panels[1].set_title("8 segments", fontsize=13)
for axes in panels:
    axes.set_axis_off()
plt.show()
