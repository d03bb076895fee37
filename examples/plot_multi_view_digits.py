"""
Handwritten digits in five views
================================

Pixels, Fourier descriptors, profiles, gradients and moments describe the same digits. How far may the weights of such
views differ? The exponent p decides: the pictures show the weights, the agreement with the digits, and the kernels
added up.
"""

import matplotlib.pyplot as plt

from kernelweave import MultiViewKernelKMeans, MultiViewSpectralClustering
from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.plots import ExponentDisplay, KernelMatrixDisplay

EXPONENTS = (1, 1.5, 2, 4, 6, "uniform")


def methods(k):
    """Return kernel k-means on Gaussian kernels, and spectral clustering of graphs of neighbours."""
    graphs = {"kernel": "nearest_neighbors", "kernel_params": {"weights": "self_tuning", "symmetrize": "max"}}
    return {
        "kernel k-means, Gaussian kernels": MultiViewKernelKMeans(k, kernel_params={"gamma": "median"}, random_state=0),
        "spectral, graphs": MultiViewSpectralClustering(k, normalize="degrees", random_state=0, **graphs),
    }


def draw(n_classes=10):
    """Draw coefficients and NMI over the exponent and the sum of the Gaussian kernels."""
    digits = load_multiview_digits(n_classes=n_classes)
    views = {name: standardize(view) for name, view in digits.views.items()}
    figure = plt.figure(figsize=(10.5, 7.4), layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=(1.0, 1.15)).ravel()
    both = methods(n_classes)
    ExponentDisplay.from_estimator(both, views, p=EXPONENTS, y=digits.target, axes=panels[:3])
    panels[2].set_title("Agreement with the digits", fontsize=10)
    model = next(iter(both.values())).set_params(p=2).fit(views)
    KernelMatrixDisplay.from_estimator(model, views, ax=panels[3])
    panels[3].set_title("Gaussian kernels added up, p = 2", fontsize=10)
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
