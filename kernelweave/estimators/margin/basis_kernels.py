"""The kernels a margin is sought in: a weighted sum of basis kernels, or one kernel object whose hyperparameters vary.

fit_basis ──▶ FittedBasis ──▶ .family        the kernel matrices of the training samples, by parameters theta
                          ──▶ .new_samples   BasisKernels or KernelObject: .cross(blocks, theta)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.estimators.shared.view_kernels import FittedViewKernels, ViewKernels, fit_view_kernels
from kernelweave.foundation.array_types import Array, Floats, Matrix
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.foundation.memory import check_matrices
from kernelweave.inputs import Views, per_view
from kernelweave.kernels.definiteness import negative_eigenvalue
from kernelweave.kernels.dense import stored
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.parametric import Norm, ProcessFamily, WeightedKernels
from kernelweave.kernels.spec.bandwidths import rbf_widths
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import FLAT, feature_space_variance
from kernelweave.partitions import algebra

# Matrices besides the kernels: the first sum, the present one, and those that gradient steps and starts compare it
# with.
BESIDE = 4


@dataclass(frozen=True)
class BasisKernels:
    """Basis kernels for new samples; theta are their coefficients."""

    kernels: ViewKernels
    views: tuple[int, ...]  # the view of each kernel

    def cross(self, blocks: Sequence[Matrix], theta: Floats) -> KernelOperator:
        """Return the weighted sum of the kernels between new samples, view by view, and the training samples."""
        return self.kernels.cross([blocks[view] for view in self.views], theta)


@dataclass(frozen=True)
class KernelObject:
    """A kernel object for new samples of one view; theta are its hyperparameters."""

    kernel: Any
    X: Array  # training samples
    views: tuple[int, ...] = (0,)

    def cross(self, blocks: Sequence[Matrix], theta: Floats) -> KernelOperator:
        """Return the kernel between new samples and the training samples."""
        return fit_kernel(self.X, self.kernel.clone_with_theta(theta)).cross(blocks[0])


@dataclass(frozen=True)
class FittedBasis:
    """Kernels fitted on the training samples, and what is learned of them."""

    names: list[str]
    family: WeightedKernels | ProcessFamily
    new_samples: BasisKernels | KernelObject
    has_weights: bool  # whether theta are coefficients of the kernels rather than hyperparameters
    learnable: bool  # whether other parameters than the first make another kernel

    def kernel_weights(self, theta: Floats) -> Floats:
        """Return the coefficients of the basis kernels, scaled to add up to 1."""
        return theta / theta.sum() if self.has_weights else np.ones(1)

    def view_weights(self, theta: Floats, n_views: int) -> Floats:
        """Return the same, added up over the kernels of each view."""
        return algebra.cluster_weights(np.array(self.new_samples.views), self.kernel_weights(theta), n_views)


@dataclass(frozen=True)
class BasisChoice:
    """One basis kernel, as the parameters ask for it."""

    name: str
    view: int
    kernel: Any
    params: Any


def fit_kernel_object(views: Views, kernel: Any, *, regularization: float, memory_limit: float) -> FittedBasis:
    """Return a kernel object on one view, whose hyperparameters can be learned."""
    if len(views) > 1 or not hasattr(kernel, "clone_with_theta") or len(kernel.theta) == 0:
        raise ParameterError(
            f"learn='hyperparameters' takes one view and a kernel object with free hyperparameters, for instance "
            f"RBF(1.0) of sklearn.gaussian_process.kernels; got {len(views)} view(s) and kernel={kernel!r}."
        )
    X = views.blocks[0]
    if not isinstance(X, np.ndarray):
        raise KernelError("A kernel object takes dense features, but X is sparse. Convert it with toarray().")
    _check_memory(views.n_samples, 1, 2 * len(kernel.theta) + BESIDE, memory_limit)
    family = ProcessFamily(kernel, X, regularization)
    return FittedBasis([str(kernel)], family, KernelObject(kernel, X), has_weights=False, learnable=True)


def fit_basis(
    views: Views,
    kernel: Any,
    kernel_params: Any,
    *,
    norm: Norm,
    normalize: bool,
    regularization: float,
    memory_limit: float,
    largest_share: float = 0.0,
) -> FittedBasis:
    """Fit the basis kernels, bring them to one scale, and return the family of their weighted sums.

    ``largest_share`` is the largest share of the samples that a cluster to be divided again may have.
    """
    choices = basis_choices(views, kernel, kernel_params)
    # Of a cluster that is divided again the kernels among its members are copied.
    _check_memory(views.n_samples, len(choices), BESIDE + len(choices) * largest_share**2, memory_limit)
    names = [choice.name for choice in choices]
    blocks = tuple(views.blocks[choice.view] for choice in choices)
    fitted: FittedViewKernels = fit_view_kernels(
        Views(tuple(names), blocks),
        [choice.kernel for choice in choices],
        [choice.params for choice in choices],
        centre_features=True,
        memory_limit=memory_limit,
    )
    operators = fitted.operators("dense", np.inf, check_definite=False)
    for name, op in zip(names, operators, strict=True):
        _check_definite(op, name)
    factors = _scale_factors(operators, names, normalize=normalize)
    matrices = []
    for factor in factors:  # each matrix takes the place of the one it is made of
        matrices.append(_regularized(operators.pop(0), factor, regularization))
    kernels = BasisKernels(fitted.new_samples().scaled(factors), tuple(choice.view for choice in choices))
    family = WeightedKernels(matrices, norm)
    return FittedBasis(names, family, kernels, has_weights=True, learnable=len(names) > 1)


def basis_choices(views: Views, kernel: Any, kernel_params: Any) -> list[BasisChoice]:
    """Return name, view, kernel and parameters of every basis kernel."""
    single = len(views) == 1
    asked_for = kernel
    if isinstance(kernel, str) and kernel == "auto":
        kernel = "rbf_widths" if single else "linear"
    if single and isinstance(kernel, list | tuple):
        specs = list(kernel)
        params = per_view(kernel_params, [str(i) for i in range(len(specs))], "kernel_params")
        of_view = [0] * len(specs)
    else:
        specs = per_view(kernel, views.names, "kernel")
        params = per_view(kernel_params, views.names, "kernel_params")
        of_view = list(range(len(views)))
    choices: list[BasisChoice] = []
    for view, spec, settings in zip(of_view, specs, params, strict=True):
        name = views.names[view]
        if isinstance(spec, str) and spec == "rbf_widths":
            if settings:
                raise ParameterError(f"kernel_params={settings!r} has no effect with kernel={asked_for!r}; drop it.")
            choices += _width_choices(name, view, views.blocks[view])
        else:
            kind = spec if isinstance(spec, str) else getattr(spec, "__name__", str(spec))
            choices.append(BasisChoice(f"{name}, {kind}" if single else name, view, spec, settings))
    if not choices:
        raise ParameterError("kernel=[] holds no kernel; give at least one.")
    return choices


def _width_choices(name: str, view: int, block: Matrix) -> list[BasisChoice]:
    """Return Gaussian kernels of ten widths."""
    return [BasisChoice(f"{name}, rbf sigma={sigma:.4g}", view, "rbf", {"sigma": sigma}) for sigma in rbf_widths(block)]


def _check_memory(n_samples: int, count: int, beside: float, memory_limit: float) -> None:
    check_matrices(
        count + beside,
        n_samples,
        memory_limit,
        what=f"{count} kernels and their sums",
        remedy="cluster a part of the samples and predict the others, or use fewer kernels",
    )


def _check_definite(op: KernelOperator, name: str) -> None:
    lowest = negative_eigenvalue(op)
    if lowest is not None:
        raise KernelError(
            f"Kernel {name!r} is not positive semidefinite (it has an eigenvalue of {lowest:.3g} or lower): a "
            "margin needs a feature space. Add a constant to its diagonal, or choose another kernel."
        )


def _scale_factors(operators: Sequence[KernelOperator], names: Sequence[str], *, normalize: bool) -> list[float]:
    """Return what every kernel is multiplied by: one over the variance of the samples, or ones."""
    spreads = np.array([feature_space_variance(op) for op in operators])
    flat = spreads <= FLAT * np.array([op.scale() for op in operators])
    if flat.any() and not flat.all():
        raise KernelError(
            f"All samples look the same to kernel {names[int(np.argmax(flat))]!r}: their variance in feature space is "
            f"{spreads[flat][0]:.3g}. Drop the kernel or choose another."
        )
    return (1.0 / spreads).tolist() if normalize and not flat.any() else [1.0] * len(spreads)


def _regularized(op: KernelOperator, factor: float, regularization: float) -> Floats:
    """Return a kernel matrix times a factor, its diagonal raised by a share of its mean."""
    K = factor * np.asarray(stored(op).K, dtype=np.float64)
    K[np.diag_indices_from(K)] += regularization * float(np.trace(K)) / len(K)
    return np.ascontiguousarray(K)
