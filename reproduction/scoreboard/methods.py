"""The methods of the scoreboard, one entry each.

A setting says what is passed beside the views and the number of clusters, and why no labels are needed for it; it is
the same for all sets. A method whose library is not installed is skipped with a line that says so.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import kernelweave
from kernelweave.foundation.errors import ParameterError
from reproduction.scoreboard import adapters

#: Views, number of clusters and seed in, labels out.
ClusterFunction = Callable[[Sequence[Any], int, int], Any]

#: What each library is imported as.
MODULES = {
    "kernelweave": "kernelweave",
    "scikit-learn": "sklearn",
    "mvlearn": "mvlearn",
    "imml": "imml",
    "snfpy": "snf",
}
OURS = "kernelweave"


@dataclass(frozen=True)
class Method:
    """One row of the board."""

    name: str
    library: str
    run: ClusterFunction
    setting: str
    estimator: str = ""  # of kernelweave, where this version may lack it


def _ours(name: str, setting: str, *, method: str = "", **parameters: Any) -> Method:
    run = partial(adapters.from_catalogue, method=method or name, **parameters)
    return Method(name, OURS, run, setting)


def _mvlearn(name: str, estimator: str, setting: str, **parameters: Any) -> Method:
    return Method(name, "mvlearn", partial(adapters.mvlearn_labels, estimator=estimator, **parameters), setting)


def _imml(name: str, estimator: str, setting: str, **parameters: Any) -> Method:
    return Method(name, "imml", partial(adapters.imml_labels, estimator=estimator, **parameters), setting)


METHODS = (
    Method(
        "graph-fusion",
        OURS,
        partial(adapters.with_defaults, estimator="GraphFusionClustering"),
        "Class defaults on the views as they are: scaling, neighbours and view weights follow from the views.",
        estimator="GraphFusionClustering",
    ),
    _ours(
        "multi-view-spectral",
        "The command line's setting: self-tuned graphs of neighbours, degrees normalised, p = 5, all fixed beforehand.",
    ),
    _ours(
        "multi-view-spectral-equal",
        "The same graphs with equal weights: nothing is left to choose.",
        method="multi-view-spectral",
        view_weights="uniform",
    ),
    _ours(
        "multi-view-kernel-kmeans",
        "Gaussian kernels whose width is the median distance of each view, p = 2, global start: none of it asks for "
        "labels.",
    ),
    _ours(
        "multi-view-kernel-kmeans-equal",
        "The same kernels with equal weights: nothing is left to choose.",
        method="multi-view-kernel-kmeans",
        view_weights="uniform",
    ),
    _ours(
        "multi-view-convex-mixture",
        "Squared distances and beta_0 of each view, which follows from the samples; weights are learned from them too.",
    ),
    _ours(
        "multi-view-convex-mixture-equal",
        "The same with equal weights: beta_0 follows from the samples.",
        method="multi-view-convex-mixture",
        view_weights="uniform",
    ),
    _ours(
        "multi-view-kernel-spectral",
        "Gaussian kernels whose width is the median distance, gamma = 1 (the default), trained on all samples.",
    ),
    _ours(
        "ratio-kernels",
        "Defaults: a linear kernel of each view, C = 1, more than two clusters by repeated division; nothing is tuned.",
    ),
    _ours(
        "co-regularized-spectral",
        "Self-tuned graphs of neighbours and the default strength of the coupling, 0.01, fixed beforehand.",
    ),
    _ours(
        "co-trained-spectral",
        "Self-tuned graphs of neighbours and the default number of rounds, 5, fixed beforehand.",
    ),
    _ours(
        "nemo",
        "On scaled views: as many neighbours as samples for each class, the rule of its source where their number is "
        "known.",
    ),
    _ours(
        "similarity-network-fusion",
        "Defaults on scaled views: 20 neighbours, mu = 0.5, 20 rounds, those of its source.",
    ),
    _ours(
        "correlational-spectral",
        "Defaults: linear kernels and a regularisation of 0.1, fixed beforehand.",
    ),
    _ours(
        "optimized-kernel-kmeans",
        "Gaussian kernels whose width is the median distance; the coefficients are learned from the clusters.",
    ),
    _ours("multi-view-kmeans", "Defaults on scaled views: of 10 starts the one of lowest error."),
    _ours("multi-view-em", "Defaults on scaled views: Gaussian with diagonal covariances, of 10 starts the likeliest."),
    _ours("multi-view-nmf", "Defaults on the views as they are, which must not be negative; nothing is tuned."),
    Method(
        "joined-kmeans",
        "scikit-learn",
        adapters.joined_kmeans,
        "k-means on the joined columns, standardised (counts: rows of length 1); of 10 starts the lowest error.",
    ),
    Method(
        "joined-spectral",
        "scikit-learn",
        adapters.joined_spectral,
        "Spectral clustering on the 10 nearest neighbours (the default) in the same joined columns.",
    ),
    _mvlearn(
        "mvlearn-spectral",
        "MultiviewSpectralClustering",
        "Defaults on scaled views: Gaussian affinities whose width is the median distance.",
    ),
    _mvlearn(
        "mvlearn-spectral-neighbours",
        "MultiviewSpectralClustering",
        "The same with the affinity of 10 nearest neighbours (the default number).",
        affinity="nearest_neighbors",
    ),
    _mvlearn(
        "mvlearn-coreg",
        "MultiviewCoRegSpectralClustering",
        "Defaults on scaled views: Gaussian affinities whose width is the median distance, lambda = 2.",
    ),
    _mvlearn(
        "mvlearn-coreg-neighbours",
        "MultiviewCoRegSpectralClustering",
        "The same with the affinity of 10 nearest neighbours (the default number).",
        affinity="nearest_neighbors",
    ),
    _mvlearn(
        "mvlearn-kmeans", "MultiviewKMeans", "Defaults on scaled views, of which it takes two only; nothing is tuned."
    ),
    _mvlearn(
        "mvlearn-spherical-kmeans",
        "MultiviewSphericalKMeans",
        "Defaults on scaled views, of which it takes two only; nothing is tuned.",
    ),
    _imml(
        "imml-nemo-10",
        "NEMO",
        "10 neighbours on scaled views, a number fixed beforehand.",
        num_neighbors=10,
    ),
    _imml(
        "imml-nemo-10-raw",
        "NEMO",
        "10 neighbours on the views as they are, since its authors leave scaling to the user.",
        num_neighbors=10,
        scale=False,
    ),
    _imml("imml-nemo", "NEMO", "Defaults on scaled views: a sixth of the samples are neighbours."),
    _imml("imml-daimc", "DAIMC", "Defaults on scaled views; nothing is tuned."),
    _imml("imml-eeimvc", "EEIMVC", "Defaults on scaled views: linear kernels; nothing is tuned."),
    _imml("imml-lfimvc", "LFIMVC", "Defaults on scaled views: linear kernels; nothing is tuned."),
    _imml("imml-imsr", "IMSR", "Defaults on scaled views; nothing is tuned."),
    _imml("imml-opimc", "OPIMC", "Defaults on scaled views; nothing is tuned."),
    _imml("imml-pimvc", "PIMVC", "Defaults on scaled views; nothing is tuned."),
    _imml("imml-simcadc", "SIMCADC", "Defaults on scaled views; nothing is tuned."),
    Method(
        "snf-spectral",
        "snfpy",
        adapters.fused_networks,
        "Defaults on scaled views: 20 neighbours, mu = 0.5, 20 rounds; then scikit-learn's spectral clustering.",
    ),
)

#: Clusterers of the same libraries that have no row, and why.
LEFT_OUT = {
    "imml SUMO": "takes more than a minute for 700 samples in two columns, and refuses views with many equal rows",
    "imml MONET": "takes more than a minute for the same samples, and ends in an error of its own on WebKB",
    "imml MLMF": "its Python engine makes missing values of complete data",
    "imml MKKMIK, OSLFIMVC, IMSCAGL, OMVC": "run in Octave only",
    "imml IntegrAO, MRGCN": "neural networks, which need their training set up by the user",
}


def select_methods(wanted: str) -> list[Method]:
    """Return the methods meant by names, patterns or libraries, separated by commas; an empty text means all."""
    words = [word.strip() for word in wanted.split(",") if word.strip()]
    for word in words:
        if not any(_is_meant(method, word) for method in METHODS):
            raise ParameterError(f"There is no method, pattern or library {word!r}: --list shows what there is.")
    return [method for method in METHODS if not words or any(_is_meant(method, word) for word in words)]


def _is_meant(method: Method, word: str) -> bool:
    return word == method.library or fnmatchcase(method.name, word)


def why_missing(method: Method) -> str:
    """Return why a method cannot be run here, or an empty text."""
    if find_spec(MODULES.get(method.library, method.library)) is None:
        return f"{method.library} is not installed"
    if method.estimator and not hasattr(kernelweave, method.estimator):
        return f"this version of kernelweave has no {method.estimator}"
    return ""


def library_versions(methods: Iterable[Method]) -> dict[str, str]:
    """Return the installed version of every library of these methods."""
    return {method.library: _version(method.library) for method in methods}


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "unknown"
