"""Models kept in ``tests/fixtures/models``: what they were fitted on, what they answered, and how more are saved.

``v1-KernelKMeans-nystroem.kwm`` is a file of version 1 of the format, with a ``KernelKMeans`` on approximate features;
``.json`` beside it has the labels of the model and its answers for new samples, as the code that saved it gave them.
Neither is ever written again: ``SHA256SUMS`` holds the checksums of all of them.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from kernelweave import ParameterError, save_model
from kernelweave.preprocessing import ViewScaler
from tests.estimators.discovery import all_estimators, blobs

FOLDER = Path(__file__).parent.parent / "fixtures" / "models"
SUMS = FOLDER / "SHA256SUMS"
METHODS = ("predict", "transform", "predict_proba", "decision_function", "predict_views")

X = np.abs(blobs(10)[0])
NEW = np.abs(blobs(4, seed=1)[0])


def _views(table: np.ndarray) -> dict[str, np.ndarray]:
    return {"front": table[:, :2], "back": table[:, 2:]}


def _absent_views(table: np.ndarray) -> dict[str, np.ndarray]:
    views = {name: view.copy() for name, view in _views(table).items()}
    views["front"][1::5] = np.nan
    views["back"][3::5] = np.nan
    return views


def _missing_cells(table: np.ndarray) -> dict[str, np.ndarray]:
    views = {name: view.copy() for name, view in _views(table).items()}
    views["back"][1::5, 0] = np.nan
    return views


def _kernel_rows(table: np.ndarray, gamma: float = 0.01) -> np.ndarray:
    return rbf_kernel(table, X, gamma=gamma)


#: Forms of input, each from a table of samples.
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "table": lambda table: table,
    "small numbers": lambda table: table / 10.0,
    "views": _views,
    "absent views": _absent_views,
    "views with missing cells": _missing_cells,
    "sparse": sp.csr_array,
    "kernel": _kernel_rows,
    "kernels": lambda table: [_kernel_rows(table), _kernel_rows(table, 0.1)],
    "distances": lambda table: ((table[:, None] - X) ** 2).sum(axis=-1),
    "similarities": rbf_kernel,
}


@dataclass(frozen=True)
class Variant:
    """How an estimator is fitted: its parameters, the form of its input, and a scaler before it."""

    params: dict[str, Any] = dataclass_field(default_factory=dict)
    form: str = "table"
    scaler: Any = None

    def fitted(self, cls: type) -> Any:
        """Return the fitted estimator, or the pipeline that ends in it."""
        case = next(case for case in all_estimators() if case.cls is cls)
        model = case.make(**self.params)
        return (model if self.scaler is None else make_pipeline(self.scaler, model)).fit(FORMS[self.form](X))


#: Models beside the default ones, by estimator and variant: together they have every class that can occur in a file,
#: and every form of private state.
VARIANTS: dict[str, Variant] = {
    "AffinityPropagation-precomputed": Variant({"kernel": "precomputed"}, "kernel"),
    "ConvexMixture-distances": Variant({"divergence": "precomputed"}, "distances"),
    "ConvexMixture-kernel": Variant({"divergence": "kernel"}),
    "ConvexMixture-poisson": Variant({"divergence": "poisson"}),
    "ConvexMixture-refined": Variant({"refine": "kernel_kmeans"}),
    "CoRegularizedSpectralClustering-absent": Variant({}, "absent views"),
    "CorrelationalSpectralClustering-views": Variant({}, "views"),
    "GraphFusionClustering-absent": Variant({}, "absent views"),
    "GlobalKernelKMeans-exemplars": Variant({"search": "exemplars"}),
    "GlobalKernelKMeans-precomputed": Variant({"kernel": "precomputed"}, "kernel"),
    "IterativeSVR-precomputed": Variant({"kernel": "precomputed"}, "kernel"),
    "KMedoids-distances": Variant({"metric": "precomputed"}, "distances"),
    "KMedoids-manhattan": Variant({"metric": "manhattan"}),
    "KMedoids-sparse": Variant({}, "sparse"),
    "KernelKMeans-chi2": Variant({"kernel": "chi2"}, "small numbers"),
    "KernelKMeans-cosine": Variant({"kernel": "cosine"}),
    "KernelKMeans-histogram": Variant({"kernel": "intensity_histogram"}, "small numbers"),
    "KernelKMeans-laplacian": Variant({"kernel": "laplacian"}, "small numbers"),
    "KernelKMeans-linear": Variant({"kernel": "linear"}),
    "KernelKMeans-neighbors": Variant({"kernel": "nearest_neighbors"}),
    "KernelKMeans-normalized_poly": Variant({"kernel": "normalized_poly"}, "small numbers"),
    "KernelKMeans-nystroem": Variant({"approximation": "nystroem", "n_components": 8}),
    "KernelKMeans-object": Variant({"kernel": ConstantKernel(2.0) * RBF(4.0) + WhiteKernel(0.1)}),
    "KernelKMeans-poly": Variant({"kernel": "poly"}, "small numbers"),
    "KernelKMeans-precomputed": Variant({"kernel": "precomputed"}, "kernel"),
    "KernelKMeans-random_features": Variant({"approximation": "random_features", "n_components": 8}),
    "KernelKMeans-scaled": Variant({}, "table", StandardScaler()),
    "KernelKMeans-scaled_max": Variant({"kernel": Exponentiation(RationalQuadratic(), 2.0)}, "table", MaxAbsScaler()),
    "KernelKMeans-scaled_range": Variant({"kernel": DotProduct() + ExpSineSquared(4.0)}, "table", MinMaxScaler()),
    "KernelKMeans-scaled_rows": Variant({"kernel": Matern() + PairwiseKernel()}, "table", Normalizer()),
    "KernelKMeans-self_tuning": Variant({"kernel": "self_tuning"}),
    "KernelKMeans-sigmoid": Variant({"kernel": "sigmoid"}, "small numbers"),
    "KernelKMeans-sparse": Variant({}, "sparse"),
    "KernelSpectralClustering-precomputed": Variant({"kernel": "precomputed", "n_train_samples": 20}, "kernel"),
    "KernelSpectralClustering-trained": Variant({"n_train_samples": 20, "selection": "entropy"}),
    "MinMaxKMeans-refined": Variant({"refine": True}),
    "MinMaxKernelKMeans-nystroem": Variant({"approximation": "nystroem", "n_components": 8}),
    "MinMaxKernelKMeans-refined": Variant({"refine": True}),
    "MultiViewConvexMixture-absent": Variant({}, "absent views"),
    "MultiViewConvexMixture-absent_refined": Variant({"refine": "kernel_kmeans"}, "absent views"),
    "MultiViewConvexMixture-equal": Variant({"view_weights": "uniform"}, "views"),
    "MultiViewConvexMixture-normalized": Variant({"view_weights": "uniform", "normalizer": "gaussian"}, "views"),
    "MultiViewConvexMixture-refined": Variant({"refine": "kernel_kmeans"}, "views"),
    "MultiViewConvexMixture-started": Variant({"init_view_weights": [0.3, 0.7]}, "views"),
    "MultiViewConvexMixture-views": Variant({}, "views"),
    "MultiViewEM-absent": Variant({}, "absent views"),
    "MultiViewEM-multinomial": Variant({"distribution": "multinomial"}, "views"),
    "MultiViewEM-views": Variant({}, "views"),
    "MultiViewKMeans-absent": Variant({}, "absent views"),
    "MultiViewKMeans-views": Variant({}, "views"),
    "MultiViewKernelKMeans-absent": Variant({}, "absent views"),
    "MultiViewKernelKMeans-chosen_p": Variant({"p": "auto"}, "views"),
    "MultiViewKernelKMeans-filled": Variant({"missing": "knn"}, "views with missing cells"),
    "MultiViewKernelKMeans-fixed": Variant({"view_weights": [0.3, 0.7]}, "views"),
    "MultiViewKernelKMeans-gower": Variant({"kernel": "gower"}, "views with missing cells"),
    "MultiViewKernelKMeans-linear": Variant({"kernel": "linear"}, "views"),
    "MultiViewKernelKMeans-precomputed": Variant({"kernel": "precomputed"}, "kernels"),
    "MultiViewKernelKMeans-scaled": Variant({}, "views", ViewScaler()),
    "MultiViewKernelKMeans-started": Variant({"init_view_weights": {"front": 0.3, "back": 0.7}}, "views"),
    "MultiViewKernelKMeans-views": Variant({}, "views"),
    "MultiViewKernelSpectralClustering-columns": Variant(
        {"n_clusters": 2, "kernel": "precomputed", "n_train_samples": 20, "assignment": "per_view"}, "kernels"
    ),
    "MultiViewKernelSpectralClustering-per_view": Variant({"assignment": "per_view", "n_train_samples": 20}, "views"),
    "MultiViewKernelSpectralClustering-precomputed": Variant({"kernel": "precomputed"}, "kernels"),
    "MultiViewKernelSpectralClustering-views": Variant({}, "views"),
    "MultiViewKernelSpectralClustering-weighted": Variant({"view_weights": "silhouette"}, "views"),
    "MultiViewNMF-views": Variant({}, "views"),
    "MultiViewSpectralClustering-absent": Variant({}, "absent views"),
    "MultiViewSpectralClustering-degrees": Variant({"normalize": "degrees"}, "views"),
    "MultiViewSpectralClustering-nystroem": Variant({"approximation": "nystroem", "n_components": 8}, "views"),
    "MultiViewSpectralClustering-views": Variant({}, "views"),
    "NEMO-absent": Variant({}, "absent views"),
    "NEMO-filled": Variant({"missing": "median"}, "views with missing cells"),
    "NEMO-unscaled": Variant({"standardize": False}, "views"),
    "NgSpectralClustering-precomputed": Variant({"kernel": "precomputed"}, "kernel"),
    "OptimizedKernelKMeans-views": Variant({}, "views"),
    "RatioMultipleKernelClustering-learned": Variant({"kernel": RBF(4.0), "learn": "hyperparameters"}),
    "RatioMultipleKernelClustering-precomputed": Variant({"kernel": "precomputed"}, "kernels"),
    "RatioMultipleKernelClustering-views": Variant({}, "views"),
    "RatioMultipleKernelClustering-widths": Variant(
        {"kernel": ["rbf_widths", "linear"], "regularization": 1e-6, "n_pairs": 4}, "views"
    ),
    "SimilarityNetworkFusion-sparse": Variant({}, "sparse"),
    "SimilarityNetworkFusion-views": Variant({}, "views"),
}


def all_variants() -> dict[str, tuple[type, Variant]]:
    """Return every model there should be a file of, by the name of the file without its version."""
    classes = {case.cls.__name__: case.cls for case in all_estimators()}
    defaults = {repr(case): Variant({}, "similarities" if case.pairwise else "table") for case in all_estimators()}
    every = defaults | VARIANTS
    return {name: (classes[name.split("-")[0]], variant) for name, variant in every.items()}


def estimator_of(model: Any) -> Any:
    """Return the estimator, also where it ends a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def answers(model: Any, form: str) -> dict[str, np.ndarray]:
    """Return the results of a model for new samples, by method."""
    if form == "similarities":  # a graph has no new samples
        return {}
    new = FORMS[form](NEW)
    results = {}
    for name in METHODS:
        with suppress(AttributeError, ParameterError):  # a method the model does not have, or not with its parameters
            results[name] = np.asarray(getattr(model, name)(new))
    return results


def sums() -> dict[str, str]:
    """Return the checksums that are kept, by file."""
    return {name: digest for digest, name in (line.split("  ") for line in SUMS.read_text().splitlines())}


def checksum(path: Path) -> str:
    """Return the checksum of a file."""
    return sha256(path.read_bytes()).hexdigest()


def keep(model: Any, form: str, name: str, folder: Path = FOLDER) -> None:
    """Save a model and its answers under a name that is new, and add their checksums to the list."""
    path = folder / f"{name}.kwm"
    if path.exists():
        raise SystemExit(f"{path.name} is there already. Files of models are kept as they are, and never saved again.")
    save_model(model, path)
    record(model, form, path)


def record(model: Any, form: str, path: Path) -> None:
    """Write what a model in a file answers beside it, and add the checksums of both to the list."""
    results = {
        "form": form,
        "labels": estimator_of(model).labels_.tolist(),
        **{method: values.tolist() for method, values in answers(model, form).items()},
    }
    beside = path.with_suffix(".json")
    beside.write_text(json.dumps(results) + "\n")
    with (path.parent / SUMS.name).open("a") as lines:
        lines.writelines(f"{checksum(file)}  {file.name}\n" for file in (path, beside))


def keep_all(names: list[str], version: int, folder: Path = FOLDER) -> None:
    """Save the models named, or all that there is no file of in this version of the format."""
    variants = all_variants()
    unknown = sorted(set(names) - variants.keys())
    if unknown:
        raise SystemExit(f"There is no model {unknown[0]!r}. Choose of {', '.join(variants)}.")
    missing = [name for name in variants if not (folder / f"v{version}-{name}.kwm").exists()]
    for name in names or missing:
        cls, variant = variants[name]
        keep(variant.fitted(cls), variant.form, f"v{version}-{name}", folder)
