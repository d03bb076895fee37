"""
Tissues in a noisy image
========================

Every pixel of a synthetic slice of a head is a sample, described by its intensity and by the histogram of a window
around it. Global kernel k-means finds the tissues. In noise the windows help.
"""

import matplotlib.pyplot as plt

from kernelweave import GlobalKernelKMeans
from kernelweave.datasets import make_tissue_image, pixel_features
from kernelweave.metrics import misclassification_error

data = make_tissue_image((40, 48), noise=0.1, random_state=0)
X = pixel_features(data.image, window=5, n_bins=30)
truth = data.target.ravel()

settings = {"search": "fast", "kernel_params": {"sigma": 0.7}}
windows = GlobalKernelKMeans(5, kernel="intensity_histogram", **settings).fit(X)
alone = GlobalKernelKMeans(5, kernel="rbf", **settings).fit(X[:, :1])

figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
axes[0].imshow(data.image, cmap="gray")
axes[0].set_title("Image")
axes[1].imshow(data.target, cmap="viridis")
axes[1].set_title("Tissues")
for place, model, name in ((2, alone, "Intensity alone"), (3, windows, "Intensity and window")):
    error = misclassification_error(truth, model.labels_)
    axes[place].imshow(model.labels_.reshape(data.image.shape), cmap="viridis")
    axes[place].set_title(f"{name}\nmisclassified {error:.1%}")
for place in axes:
    place.set_axis_off()
plt.show()
