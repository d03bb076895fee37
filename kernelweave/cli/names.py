"""Names as people type them: case and dashes do not count, some have other names, and near misses are suggested."""

import re
from collections.abc import Collection
from difflib import get_close_matches

from kernelweave.cli import catalogue

#: Other names of methods; the first of them that takes the input is meant.
METHOD_ALIASES = {
    "kmeans": ("k-means", "multi-view-kmeans"),
    "lloyd": ("k-means",),
    "kernelkmean": ("kernel-kmeans",),
    "spectral": ("ng-spectral", "multi-view-spectral", "graph-cut"),
    "spectralclustering": ("ng-spectral", "multi-view-spectral", "graph-cut"),
    "normalizedcut": ("graph-cut",),
    "ncut": ("graph-cut",),
    "snf": ("similarity-network-fusion",),
    "fusion": ("graph-fusion",),
    "pam": ("kmedoids",),
    "kmedoid": ("kmedoids",),
    "mvspec": ("multi-view-spectral",),
    "mvkkm": ("multi-view-kernel-kmeans",),
    "ksc": ("kernel-spectral",),
    "mvksc": ("multi-view-kernel-spectral",),
    "em": ("multi-view-em",),
    "gmm": ("multi-view-em",),
    "gaussianmixture": ("multi-view-em",),
    "nmf": ("multi-view-nmf",),
    "minmax": ("minmax-kmeans", "minmax-kernel-kmeans"),
    "default": ("graph-fusion",),
    "auto": ("graph-fusion",),
}
#: Other names of kernels.
KERNEL_ALIASES = {
    "gaussian": "rbf",
    "gauss": "rbf",
    "radial": "rbf",
    "squaredexponential": "rbf",
    "polynomial": "poly",
    "knn": "nearest_neighbors",
    "neighbors": "nearest_neighbors",
    "neighbours": "nearest_neighbors",
    "nearestneighbours": "nearest_neighbors",
    "laplace": "laplacian",
    "tanh": "sigmoid",
    "chisquare": "chi2",
    "chisquared": "chi2",
    "cosinesimilarity": "cosine",
    "dot": "linear",
}


def plain(name: str) -> str:
    """Return a name without case, dashes and blanks."""
    return re.sub(r"[-_\s.]", "", name).lower()


def find_method(name: str, kind: str | None = None) -> catalogue.Method | None:
    """Return the method of a name, as it is called here, in Python or elsewhere; ``kind`` is the input it must take."""
    wanted = plain(name)
    called = [each for each in catalogue.METHODS if wanted in (plain(each.name), plain(each.estimator))]
    called += [each for alias in METHOD_ALIASES.get(wanted, ()) for each in catalogue.METHODS if each.name == alias]
    suited = [each for each in called if kind is None or catalogue.suits(each, kind)]
    return next(iter(suited or called), None)


def is_alias(name: str, method: catalogue.Method) -> bool:
    """Whether a method was asked for by a name of others."""
    return plain(name) not in (plain(method.name), plain(method.estimator))


def find_kernel(name: str, known: Collection[str]) -> str | None:
    """Return the kernel of a name."""
    wanted = plain(name)
    return next((each for each in known if plain(each) == wanted), KERNEL_ALIASES.get(wanted))


def suggestion(name: str, known: Collection[str]) -> str:
    """Return a question that asks for the nearest of known names, or nothing."""
    near = get_close_matches(plain(name), [plain(each) for each in known], n=1, cutoff=0.6)
    meant = next((each for each in known if near and plain(each) == near[0]), None)
    return "" if meant is None else f" Did you mean {meant}?"
