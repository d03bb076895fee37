"""The kernels of several views: the one place where they are fitted, brought to one scale, summed and extended.

fit_view_kernels ──▶ FittedViewKernels ──▶ .operators()      kernels among the training samples, view by view
                                       ──▶ .new_samples()    ViewKernels: .cross(blocks, coefficients)
WeightedViewKernels: the same with coefficients that are fixed, .cross(blocks)
sum_view_kernels ──▶ the weighted sum of all views, normalised, and the ViewKernels that belong to it
normalized_views ──▶ the same kernels one by one, each among the samples that its view has, where some are absent
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.estimators.shared.fit_warnings import warn_if_indefinite
from kernelweave.estimators.shared.single_kernel import (
    check_kept,
    copies_of,
    fit_or_approximate,
    is_precomputed,
    kernels_beside_search,
    room_beside_kernels,
    room_for_search,
)
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.config import config_context, get_config
from kernelweave.foundation.errors import ViewError
from kernelweave.foundation.memory import FREE, PASSING, Copies, room_beside
from kernelweave.inputs import Views, per_view, read_views
from kernelweave.kernels.chunked import in_blocks, view_means
from kernelweave.kernels.device import warn_of_processor
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.kernels.operator import KernelOperator, entries_within
from kernelweave.kernels.spec.fitting import FittedKernel, PartOfPrecomputed, Precomputed, Storage, feature_columns
from kernelweave.kernels.transforms import FLAT, DegreeKernel, ScaledKernel, mean_squared_distance
from kernelweave.kernels.weighted_sum import CompositeKernel, MultiViewKernel, composite


@dataclass(frozen=True)
class ViewKernel:
    """One view's kernel for new samples: fitted, then multiplied by a factor or divided by degrees."""

    kernel: FittedKernel
    factor: float = 1.0
    degree_weights: Floats | None = None
    column_scale: Floats | None = None
    columns: Ints | None = None  # of a precomputed kernel: the training samples that the view has; None: all

    def cross(self, X: Matrix) -> KernelOperator:
        """Return the kernel between new samples and the training samples that the view has."""
        cross = self.kernel.cross(X if self.columns is None else X[:, self.columns])
        if self.degree_weights is not None:
            return DegreeKernel(cross, self.degree_weights, self.column_scale)
        return cross if self.factor == 1.0 else ScaledKernel(cross, self.factor)


@dataclass(frozen=True)
class ViewKernels:
    """The kernels of all views for new samples."""

    kernels: tuple[ViewKernel, ...]

    def cross(self, blocks: Iterable[Matrix], coefficients: Floats) -> KernelOperator:
        """Return the weighted sum of the kernels between new samples, view by view, and the training samples."""
        parts = [kernel.cross(block) for kernel, block in zip(self.kernels, blocks, strict=True)]
        return CompositeKernel(parts, coefficients)

    def scaled(self, factors: Sequence[float]) -> "ViewKernels":
        """Return the kernels multiplied by factors, one per view."""
        pairs = zip(self.kernels, factors, strict=True)
        return ViewKernels(tuple(replace(kernel, factor=factor) for kernel, factor in pairs))

    def divided(self, operators: Sequence[DegreeKernel]) -> "ViewKernels":
        """Return the kernels divided by degrees, as the operators of the training samples are."""
        pairs = zip(self.kernels, operators, strict=True)
        return ViewKernels(
            tuple(
                replace(
                    kernel,
                    degree_weights=op.backend.host(op.weights),
                    column_scale=op.backend.host(op.column_scale),
                )
                for kernel, op in pairs
            )
        )

    def sharing_features(self, op: MultiViewKernel) -> "ViewKernels":
        """Return the kernels with the features that the sum holds side by side, so that they are kept once."""
        blocks = op.view_features()
        if blocks is None:
            return self
        pairs = zip(self.kernels, blocks, strict=True)
        return ViewKernels(tuple(replace(kernel, kernel=kernel.kernel.with_features(block)) for kernel, block in pairs))

    def kept_here(self, memory_limit: float) -> "ViewKernels":
        """Return the kernels with the training samples in this process, where they were elsewhere and fit."""
        share = memory_limit / len(self.kernels)
        return ViewKernels(tuple(replace(kernel, kernel=kernel.kernel.kept_here(share)) for kernel in self.kernels))

    def after_fit(self) -> "ViewKernels":
        """Return the kernels as a model keeps them, with what a fit had no room for."""
        return ViewKernels(tuple(replace(kernel, kernel=kernel.kernel.after_fit()) for kernel in self.kernels))

    def of_samples(self, samples: Sequence[Ints]) -> "ViewKernels":
        """Return kernels of views that have these training samples; rows of precomputed ones are about all samples."""
        pairs = zip(self.kernels, samples, strict=True)
        return ViewKernels(
            tuple(
                replace(kernel, columns=known) if isinstance(kernel.kernel, Precomputed) else kernel
                for kernel, known in pairs
            )
        )


@dataclass(frozen=True)
class WeightedViewKernels:
    """The weighted sum of all views' kernels for new samples, as a model keeps it."""

    kernels: ViewKernels
    coefficients: Floats

    def cross(self, blocks: Iterable[Matrix]) -> KernelOperator:
        """Return the sum of the kernels between new samples, view by view, and the training samples."""
        return self.kernels.cross(blocks, self.coefficients)


@dataclass(frozen=True)
class FittedViewKernels:
    """The kernel of every view, fitted on the training samples."""

    names: tuple[str, ...]
    kernels: tuple[FittedKernel, ...]

    @property
    def neighbor_recalls(self) -> Floats:
        """Shares of the nearest neighbours that the graphs of the views were made of; NaN of other kernels."""
        return np.array([kernel.neighbor_recall for kernel in self.kernels])

    def operators(self, storage: Storage, memory_limit: float, *, check_definite: bool = True) -> list[KernelOperator]:
        """Return the kernels among the training samples; ``memory_limit`` in MiB is that of each view.

        ``check_definite`` warns of kernels without a feature space.
        """
        operators = [kernel.operator(storage, self._own_limit(kernel, memory_limit)) for kernel in self.kernels]
        if len({op.backend for op in operators}) > 1 and get_config().device is not None:
            # Arrays of samples are shared by all views, so that they must be in one place.
            warn_of_processor("All views", "does not take one of them, and samples must be in one place")
            with config_context(device=None):
                operators = [kernel.operator(storage, self._own_limit(kernel, memory_limit)) for kernel in self.kernels]
        if check_definite:
            for name, op in zip(self.names, operators, strict=True):
                warn_if_indefinite(op, f" of view {name!r}")
        return operators

    def _own_limit(self, kernel: FittedKernel, memory_limit: float) -> float:
        """Return the limit of a view's kernel: what is free whatever the limit is so once, not for every view."""
        passing = PASSING * memory_limit
        free = max(FREE, passing)
        own = max(FREE / len(self.kernels), passing)
        return max(0.0, memory_limit - max(0.0, min(free, kernel.kept_mib) - own))

    def beside_search(
        self, blocks: Sequence[Matrix], storage: Storage, memory_limit: float, n_vectors: int, search_limit: float
    ) -> "FittedViewKernels":
        """Return the kernels as a search for eigenvectors takes them, where none of them would be stored.

        ``memory_limit`` is that of the kernels of all views, and ``search_limit`` that of the search beside them.
        """
        share = memory_limit / len(self.kernels)
        stored = any(kernel.is_stored_within(self._own_limit(kernel, share)) for kernel in self.kernels)
        if storage == "dense" or stored:
            return self
        kernels = kernels_beside_search(self.kernels, blocks, n_vectors, search_limit)
        return replace(self, kernels=tuple(kernels))

    def room_beside(self, operators: Sequence[KernelOperator], memory_limit: float) -> float:
        """Return the MiB left within a limit after these kernels among the training samples."""
        return room_beside_kernels(self.kernels, operators, memory_limit)

    def new_samples(self) -> ViewKernels:
        """Return what new samples need of the kernels."""
        return ViewKernels(tuple(ViewKernel(kernel.for_new_samples()) for kernel in self.kernels))


@dataclass(frozen=True)
class SummedKernels:
    """The sum of all views' kernels: among the training samples, with equal coefficients, and for new samples."""

    operator: MultiViewKernel
    new_samples: ViewKernels
    memory_limit: float  # MiB
    room: float  # MiB of it that are left after the kernels
    room_for_search: Callable[..., float]  # MiB of a limit for a search for eigenvectors, where they suffice

    def at_means(self, labels: Ints, weights: Floats, totals: Floats) -> tuple[ViewKernels, Ints, Floats]:
        """Return what new samples meet, with labels and weights: the training samples, or what stands for them."""
        means = view_means(self.operator, labels, weights, totals)
        if means is None:
            return self.new_samples.kept_here(self.memory_limit), labels, weights
        pairs = zip(self.new_samples.kernels, means, strict=True)
        kernels = tuple(replace(kernel, kernel=kernel.kernel.centres(own)) for kernel, own in pairs)  # type: ignore[attr-defined]
        return ViewKernels(kernels), np.arange(len(totals)), totals


def read_kernel_views(estimator: Any, X: Any, *, reset: bool) -> Views:
    """Return X as views of an estimator on kernels; tables may stay float32, kernels compute in float64 from them."""
    return read_views(estimator, X, reset=reset, keep_float32=not is_precomputed(estimator.kernel))


def fit_view_kernels(
    views: Views,
    kernel: Any,
    kernel_params: Any,
    *,
    centre_features: bool,
    weights: Floats | None = None,
    approximation: str | None = None,
    n_components: int = 200,
    random_state: Any = None,
    memory_limit: float = np.inf,
    side_by_side: bool = False,
    gram_matrices: float = 0.0,
) -> FittedViewKernels:
    """Fit the kernel of every view; ``kernel`` and its parameters are for all views or one per view.

    Where samples are absent, the kernel of a view is that of the samples it has. What is kept of the samples, and
    searches of neighbours, must fit into ``memory_limit`` MiB, all views together. ``side_by_side`` is for sums of all
    views: dense features of all of them are then written into one array at once, and are not there twice;
    ``gram_matrices`` is how many matrices of products of all these features with each other the caller will have beside
    them.
    """
    kernels = per_view(kernel, views.names, "kernel")
    params = per_view(kernel_params, views.names, "kernel_params")
    drawn: dict[str, Any] = {"approximation": approximation, "n_components": n_components}
    places: Sequence[Floats | None] = [None] * len(views)
    if not any(map(in_blocks, views.blocks)):
        widths = _shared_widths(views, kernels, params, **drawn) if side_by_side else None
        _check_kept(
            views, kernels, params, widths, gram_matrices, memory_limit, centre_features=centre_features, **drawn
        )
        if widths is not None:
            places = np.split(np.empty((views.n_samples, sum(widths))), np.cumsum(widths)[:-1], axis=1)
    fitted = [
        _fit_known(
            views,
            v,
            kernel_of_view,
            params_of_view,
            centre_features=centre_features,
            weights=known_weights(views, v, weights),
            random_state=random_state,
            name=f"view {name!r}",
            memory_limit=memory_limit,
            n_kernels=len(views.names),
            out=places[v],
            **drawn,
        )
        for v, (name, kernel_of_view, params_of_view) in enumerate(zip(views.names, kernels, params, strict=True))
    ]
    return FittedViewKernels(tuple(views.names), tuple(fitted))


def _shared_widths(
    views: Views, kernels: Sequence[Any], params: Sequence[Any], *, approximation: str | None, n_components: int
) -> list[int] | None:
    """Return the columns of every view's features, None where they do not all go into one array of the host."""
    alone = len(views) == 1 or views.observed is not None or get_config().device is not None
    if alone or (approximation is None and any(map(sp.issparse, views.blocks))):
        return None
    triples = zip(views.blocks, kernels, params, strict=True)
    widths = [
        feature_columns(block.shape, own, own_params, approximation, n_components) for block, own, own_params in triples
    ]
    known = [width for width in widths if width is not None]
    # Kernels of more features than samples are stored as matrices.
    return known if len(known) == len(widths) and max(known) <= views.n_samples else None


def _check_kept(
    views: Views,
    kernels: Sequence[Any],
    params: Sequence[Any],
    widths: Sequence[int] | None,
    gram_matrices: float,
    memory_limit: float,
    *,
    approximation: str | None,
    n_components: int,
    centre_features: bool,
) -> None:
    """Raise where what the kernels of all views keep of samples is more than a limit, before any of it is there."""
    triples = zip(views.blocks, kernels, params, strict=True)
    options: dict[str, Any] = {"approximation": approximation, "n_components": n_components}
    options["centre_features"] = centre_features
    copied = [copies_of(block, own, own_params, **options) for block, own, own_params in triples]
    if widths is not None:
        copied = [replace(part, kept=8 * width) for part, width in zip(copied, widths, strict=True)]
        if gram_matrices and sum(widths) <= views.n_samples:
            products = gram_matrices * 8 * sum(widths) ** 2
            copied.append(Copies("products of features", views.n_samples, 0.0, products))
    if views.observed is not None:
        copied = _with_present(copied, views, kernels)
    check_kept(copied, memory_limit, approximation, n_components)


def _with_present(copied: Sequence[Copies], views: Views, kernels: Sequence[Any]) -> list[Copies]:
    """Return what is kept where samples are absent: those present are copied, for good or one view after the other.

    Kernels that keep samples as they are keep the copy.
    """
    sizes = [
        0.0 if sp.issparse(block) or is_precomputed(own) else float(block.shape[1] * block.itemsize)
        for block, own in zip(views.blocks, kernels, strict=True)
    ]
    pairs = list(zip(copied, sizes, strict=True))
    kept = [part if part.kept else replace(part, kept=size) for part, size in pairs]
    passing = max([size for part, size in pairs if part.kept], default=0.0)
    return [*kept, Copies(copied[0].what, views.n_samples, passing)]


def known_weights(views: Views, view: int, weights: Floats | None) -> Floats | None:
    """Return the weights of the samples that a view has; not all of them may be zero."""
    if weights is None or views.observed is None:
        return weights
    own = weights[views.present(view)]
    if not own.any():
        raise ViewError(
            f"All {len(own)} samples that view {views.names[view]!r} has are of weight 0. Leave the view out, or give "
            "one of them a weight."
        )
    return own


def _fit_known(views: Views, view: int, kernel: Any, params: Any, **options: Any) -> FittedKernel:
    """Fit the kernel of a view on the samples that it has; of a precomputed kernel rows and columns."""
    block = views.blocks[view]
    if views.observed is None:
        return fit_or_approximate(block, kernel, params, **options)
    there = views.present(view)
    if not is_precomputed(kernel):
        return fit_or_approximate(block[there], kernel, params, **options)
    if sp.issparse(block):
        return fit_or_approximate(block[there][:, there], kernel, params, **options)
    whole = fit_or_approximate(block, kernel, params, **options)
    return PartOfPrecomputed(block, options["name"], there) if isinstance(whole, Precomputed) else whole


def sum_view_kernels(
    fitted: FittedViewKernels, weights: Floats, *, normalize: bool | str, storage: Storage, memory_limit: float
) -> SummedKernels:
    """Return the sum of the kernels after normalisation; ``memory_limit`` in MiB is that of all views together.

    ``normalize`` divides every kernel by the mean squared distance of its samples (True), by degrees (``"degrees"``),
    or not at all.
    """
    n_views = len(fitted.names)
    # Eigenvectors of affinities need no feature space.
    operators = fitted.operators(storage, memory_limit / n_views, check_definite=normalize != "degrees")
    room = fitted.room_beside(operators, memory_limit)
    plain = operators
    kernels = fitted.new_samples()
    if normalize == "degrees":
        by_degree = divide_by_degrees(operators, weights, fitted.names)
        kernels = kernels.divided(by_degree)
        operators = list(by_degree)
    else:
        factors = scale_factors(operators, weights, fitted.names, normalize=bool(normalize))
        kernels = kernels.scaled(factors)
        operators = [ScaledKernel(op, factor) for op, factor in zip(operators, factors, strict=True)]
    held = min(*(op.held_entries for op in operators), entries_within(max(room, PASSING * memory_limit)))
    total: Any = composite(operators, np.full(n_views, 1.0 / n_views), held)
    searching = partial(room_for_search, fitted.kernels, plain)
    return SummedKernels(total, kernels.sharing_features(total), memory_limit, room, searching)


@dataclass(frozen=True)
class NormalizedViews:
    """The kernels of views that lack samples: among the training samples that each has, and for new samples."""

    among: ObservedViews
    new_samples: ViewKernels
    room: float  # MiB that are left after the kernels
    room_for_search: Callable[..., float]  # MiB of a limit for a search for eigenvectors, where they suffice


def normalized_views(
    fitted: FittedViewKernels,
    views: Views,
    weights: Floats,
    *,
    normalize: bool | str,
    storage: Storage,
    memory_limit: float,
) -> NormalizedViews:
    """Return the kernels of views that lack samples, each normalised over those it has; options as for the sum."""
    samples = tuple(views.present(v) for v in range(len(views)))
    counted = [weights[known] for known in samples]
    operators = fitted.operators(storage, memory_limit / len(views), check_definite=normalize != "degrees")
    # What is kept of the samples counts where they are wide; part of the limit is free for it.
    kept = sum(kernel.kept_mib for kernel in fitted.kernels)
    room = room_beside(kept, fitted.room_beside(operators, memory_limit))
    searching = partial(room_for_search, fitted.kernels, operators)
    kernels = fitted.new_samples().of_samples(samples)
    if normalize == "degrees":
        triples = zip(operators, counted, fitted.names, strict=True)
        by_degree = [DegreeKernel(op, own, name=f" of view {name!r}") for op, own, name in triples]
        kernels = kernels.divided(by_degree)
        operators = list(by_degree)
    else:
        spreads = [mean_squared_distance(op, own) for op, own in zip(operators, counted, strict=True)]
        factors = _factors(np.array(spreads), operators, fitted.names, normalize=bool(normalize))
        kernels = kernels.scaled(factors)
        operators = [ScaledKernel(op, factor) for op, factor in zip(operators, factors, strict=True)]
    return NormalizedViews(ObservedViews(tuple(operators), samples, views.n_samples), kernels, room, searching)


def divide_by_degrees(operators: Sequence[KernelOperator], weights: Floats, names: Sequence[str]) -> list[DegreeKernel]:
    """Return D^-1/2 K D^-1/2 of every view."""
    return [DegreeKernel(op, weights, name=f" of view {name!r}") for op, name in zip(operators, names, strict=True)]


def scale_factors(
    operators: Sequence[KernelOperator], weights: Floats, names: Sequence[str], *, normalize: bool = True
) -> list[float]:
    """Return what every kernel is multiplied by, ones without ``normalize``.

    A view in which all samples are equal has no scatter and would take all the weight, whatever the clusters: an error.
    """
    spreads = np.array([mean_squared_distance(op, weights) for op in operators])
    return _factors(spreads, operators, names, normalize=normalize)


def _factors(
    spreads: Floats, operators: Sequence[KernelOperator], names: Sequence[str], *, normalize: bool
) -> list[float]:
    """Return what every kernel is multiplied by, from the mean squared distances of its samples."""
    # What rounding leaves of nothing. A kernel that is not positive semidefinite may have a negative spread.
    flat = np.abs(spreads) <= FLAT * np.array([op.scale() for op in operators])
    if flat.any() and not flat.all():
        raise ViewError(
            f"All samples look the same in view {names[int(np.argmax(flat))]!r}: their mean squared distance in "
            f"feature space is {spreads[flat][0]:.3g}. It shows no clusters; drop it or choose another kernel."
        )
    return (1.0 / np.abs(spreads)).tolist() if normalize and not flat.any() else [1.0] * len(operators)


def set_view_kernel_tags(tags: Any, kernel: Any, views: Any) -> None:
    """Set the input tags of an estimator on the kernels of several views."""
    tags.sparse = True
    tags.pairwise = is_precomputed(kernel) and views is None
    tags.positive_only = isinstance(kernel, str) and kernel == "chi2"
