"""Sizes of arrays in a saved model that must agree: compiled loops do not check where an array ends."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelweave.estimators.shared.view_kernels import ViewKernel, WeightedViewKernels
from kernelweave.kernels.divergences import ObservedPlacement, Placement
from kernelweave.kernels.spec.fitting import FittedKernel, Precomputed

# Letters stand for the numbers of samples (n), those trained on (m), those that centres are known by (t: all, or the
# means of clusters where samples were elsewhere), clusters (k), features (f), views (v), components of mixtures (c),
# columns of embeddings (e) and of scores (q). They mean the same in an estimator and in all objects it holds. A dot
# stands for any number. Of a list or tuple every item has the sizes. The first entry is about all estimators; others
# are about classes, by their name in ``names.CLASSES``.
SIZES: dict[str, dict[str, str]] = {
    "estimator": {"labels_": "n"},
    "estimator/MinMaxKMeans": {"cluster_centers_": "kf"},
    "estimator/PifsKMeans": {"cluster_centers_": "kf"},
    "extension/Eigenvectors": {"sources": "ne"},
    "extension/FusedGraph": {"view_weights": "v", "sources": "ne", "digests": ".", "observed": "nv"},
    "kernel/TrainedKernel": {"columns": "m"},
    "extension/ObservedEigenvectors": {"coefficients": "v", "observed": "nv", "sources": "ne"},
    "kernel/ViewKernel": {"degree_weights": ".", "column_scale": ".", "columns": "."},
    "kernel/WeightedViewKernels": {"coefficients": "v"},
    "model/Centers": {"labels": "t", "weights": "t", "totals": "k", "norms": "k", "factors": "k", "view_norms": "vk"},
    "model/Density": {"log_weights": "k", "centres": "k.", "variances": "k."},
    "model/Embedding": {"centers": "ke", "norms": "k"},
    "model/Exemplars": {"indices": "k", "norms": "k"},
    "model/JointCenters": {"means": "k.", "filled": "k"},
    "model/Means": {"centers": "kf", "offset": "f", "filled": "k", "factors": "k"},
    "model/Medoids": {"indices": "k", "centers": "kf"},
    "model/Mixture": {
        "betas": "v",
        "log_normalizers": "v",
        "view_weights": "v",
        "priors": "c",
        "columns": "k",
        "exemplar_priors": "k",
    },
    "model/ObservedCenters": {"observed": "nv", "labels": "n", "weights": "n", "prices": "v", "norms": "vk"},
    "model/Propagation": {"labels": "n", "digests": "n"},
    "model/Scores": {"shares": "v"},
    "model/Split": {"sources": "n"},
    "placement/ColumnPlacement": {"components": "."},
    "placement/FeaturePlacement": {"components": ".."},
    "placement/KernelPlacement": {"components": ".", "diag": "."},
    "placement/ObservedPlacement": {"known": "c", "columns": "."},
    "scores/Biased": {"alphas": "mq", "bias": "q"},
    "scores/Centred": {"shares": "m", "column_means": "m", "alphas": "mq"},
    "scores/Codebook": {"patterns": "kq", "floor": "q"},
    "view/Compared": {"rows": "..", "radii": ".."},
    "view/Kernel": {"diag": ".", "radii": ".."},
    "view/Network": {"origin": ".", "factors": ".", "rows": "..", "means": ".", "samples": "."},
}
# What no fitted model is without.
NEVER_ZERO = "nk"
# Labels, which are numbers of clusters.
LABELS = {
    "estimator": "labels_",
    "model/Centers": "labels",
    "model/ObservedCenters": "labels",
    "model/Propagation": "labels",
}
# Fields with kernels, alone or one for every view, that sums over the clusters of all samples are taken of: they must
# know as many samples as there are labels.
SUMMED_KERNELS = {"model/Centers": "kernel"}
# The same of kernels of views that lack samples: each must know as many as the view has.
OBSERVED_KERNELS = {"extension/ObservedEigenvectors": "kernels", "model/ObservedCenters": "kernels"}

#: Objects in a model, the estimator first: the name of the class and the fields of each.
Objects = Sequence[tuple[str, Mapping[str, Any]]]


def size_fault(objects: Objects) -> str | None:
    """Describe the first size in an estimator, or in an object it holds, that does not agree with the others."""
    estimator = objects[0][1]
    sizes: dict[str, int] = {}
    if "n_features_in_" in estimator:
        sizes["f"] = estimator["n_features_in_"]
    if "view_names_" in estimator:
        sizes["v"] = len(estimator["view_names_"])
    for name, fields in objects:
        for key, letters in _entries(SIZES, name):
            fault = _array_fault(fields.get(key), letters, sizes)
            if fault is not None:
                return f"has {key!r} {fault}"
    if sizes.get("t") not in (None, sizes.get("n"), sizes.get("k")):
        return "has 'labels' of a wrong size"
    fault = _label_fault(objects, sizes) or _kernel_fault(objects, sizes) or _view_fault(objects, sizes)
    return fault or _placement_fault(objects, sizes)


def _entries(table: Mapping[str, Mapping[str, str]], name: str) -> Iterable[tuple[str, str]]:
    """Yield what a table says about a class, and about all estimators where it is one."""
    if name.startswith("estimator/"):
        yield from table["estimator"].items()
    yield from table.get(name, {}).items()


def _array_fault(value: Any, letters: str, sizes: dict[str, int]) -> str | None:
    """Describe how an array disagrees with the sizes known so far, if it does, and add its sizes to them."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return next((fault for item in value if (fault := _array_fault(item, letters, sizes))), None)
    shape = getattr(value, "shape", ())
    if len(shape) != len(letters):
        return "of a wrong shape"
    pairs = [(letter, size) for letter, size in zip(letters, shape, strict=True) if letter != "."]
    agree = all(sizes.setdefault(letter, size) == size and (size or letter not in NEVER_ZERO) for letter, size in pairs)
    return None if agree else "of a wrong size"


def _label_fault(objects: Objects, sizes: Mapping[str, int]) -> str | None:
    """Say where labels are numbers of clusters that the model does not have."""
    for name, fields in objects:
        key = LABELS["estimator"] if name.startswith("estimator/") else LABELS.get(name)
        labels = fields.get(key) if key else None
        if labels is not None and not 0 <= labels.min() <= labels.max() < sizes.get("k", float("inf")):
            return f"has {key!r} of clusters that are not there"
    return None


def _kernel_fault(objects: Objects, sizes: Mapping[str, int]) -> str | None:
    """Say where a kernel is of other samples than the labels, and sums over clusters are taken of it."""
    estimator = objects[0][1]
    widths = estimator.get("_view_widths", (estimator.get("n_features_in_"),))
    for name, fields in objects:
        if name not in SUMMED_KERNELS:
            continue
        kernels = _fitted_kernels(fields[SUMMED_KERNELS[name]])
        if len(kernels) != len(widths):
            return "has kernels of another number of views"
        pairs = zip(kernels, widths, strict=True)
        if not all(_is_kernel_of(kernel, sizes["t"], width) for kernel, width in pairs):
            return "has a kernel of other samples"
    return None


def _view_fault(objects: Objects, sizes: Mapping[str, int]) -> str | None:
    """Say where what a view's kernel holds is of other training samples than the view has."""
    counts: list[int] | None = None
    for name, fields in objects:
        if name in OBSERVED_KERNELS:
            counts = fields["observed"].sum(axis=0).tolist()
            kernels = fields[OBSERVED_KERNELS[name]].kernels
            if len(kernels) != len(counts):
                return "has kernels of another number of views"
            if not all(_is_of_view(view, count, sizes["n"]) for view, count in zip(kernels, counts, strict=True)):
                return "has a kernel of other samples"
    if counts is not None:
        return None
    faults = (_degree_fault(fields, sizes.get("n")) for name, fields in objects if name == "kernel/ViewKernel")
    return next((fault for fault in faults if fault), None)


def _is_of_view(view: ViewKernel, count: int, n_samples: int) -> bool:
    """Whether the kernel of one view is of so many of all training samples."""
    if _degree_fault(vars(view), count) is not None:
        return False
    if not isinstance(view.kernel, Precomputed):
        return view.columns is None and _is_kernel_of(view.kernel, count, None)
    columns = view.columns
    return columns is not None and len(columns) == count and bool(((columns >= 0) & (columns < n_samples)).all())


def _degree_fault(view: Mapping[str, Any], count: int | None) -> str | None:
    """Say which degrees in a view's kernel, where there are any, are not of so many samples."""
    arrays = {key: view.get(key) for key in ("degree_weights", "column_scale")}
    wrong = [key for key, array in arrays.items() if array is not None and count not in (None, len(array))]
    return f"has {wrong[0]!r} of a wrong size" if wrong else None


def _placement_fault(objects: Objects, sizes: Mapping[str, int]) -> str | None:
    """Say where a view of a mixture holds another number of components than it has."""
    for name, fields in objects:
        if name == "model/Mixture" and not all(_places(each, sizes["c"], sizes["n"]) for each in fields["placements"]):
            return "has 'placements' of other components"
    return None


def _places(placement: Placement, n_components: int, n_samples: int) -> bool:
    """Whether a view holds as many components as it says that it has."""
    if not isinstance(placement, ObservedPlacement):
        arrays = [getattr(placement, key, None) for key in ("components", "diag")]
        return all(array is None or array.shape[0] == n_components for array in arrays)
    columns = placement.columns
    within = columns is None or bool(((columns >= 0) & (columns < n_samples)).all())
    return within and _places(placement.placement, int(placement.known.sum()), n_samples)


def _fitted_kernels(kernel: FittedKernel | WeightedViewKernels) -> list[FittedKernel]:
    """Return the kernel of every view."""
    return [kernel] if isinstance(kernel, FittedKernel) else [view.kernel for view in kernel.kernels.kernels]


def _is_kernel_of(kernel: FittedKernel, n_samples: int, width: int | None) -> bool:
    """Whether a fitted kernel is of so many samples.

    Of a precomputed kernel nothing is kept; the width of its view is the number of samples.
    """
    samples = getattr(kernel, "features", getattr(kernel, "prepared", None))
    known = width if isinstance(kernel, Precomputed) else getattr(samples, "shape", [None])[0]
    return known in (None, n_samples)
