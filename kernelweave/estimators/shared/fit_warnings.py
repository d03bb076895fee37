"""Warnings of a fit, each worded once."""

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score

from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.foundation.errors import ConvergenceWarning, NotPSDWarning, ViewWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.definiteness import negative_eigenvalue
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import FLAT

#: Eigenvectors with a larger residual are worth a warning.
LARGEST_RESIDUAL = 1e-4
#: Adjusted mutual information of clusters and absence that is worth a warning, and draws that say what chance gives.
AGREES_WITH_ABSENCE = 0.1
DEALT_ANEW = 20


def warn_if_plainly_indefinite(op: KernelOperator, name: str = "") -> None:
    """Warn where diagonal and largest entry of a stored kernel show a negative eigenvalue, which costs nothing.

    A product of two features is no larger than the larger of their squared lengths. Other negative eigenvalues are
    met, if at all, by a step that would raise the objective. Kernels that are not stored are searched for them.
    """
    if not op.largest_is_known:
        warn_if_indefinite(op, name)
        return
    diagonal = op.backend.extremes(op.diag())
    largest = op.scale()
    if diagonal[0] < -op.resolution * largest or largest > diagonal[1] + op.resolution * largest:
        warn(
            f"The kernel{name} is not positive semidefinite: its largest absolute entry is {largest:.3g}, its diagonal "
            f"lies between {diagonal[0]:.3g} and {diagonal[1]:.3g}. There is no feature space behind it and distances "
            "may be negative. The result is still a local minimum of the objective; adding a constant to the kernel's "
            "diagonal makes it valid.",
            NotPSDWarning,
        )


def warn_if_indefinite(op: KernelOperator, name: str = "") -> None:
    """Warn where the kernel can be shown to have a negative eigenvalue."""
    lowest = negative_eigenvalue(op)
    if lowest is not None:
        warn(
            f"The kernel{name} is not positive semidefinite (it has an eigenvalue of {lowest:.3g} or lower), so there "
            "is no feature space behind it and distances may be negative. The result is still a local minimum of the "
            "objective; adding a constant to the kernel's diagonal makes it valid.",
            NotPSDWarning,
        )


def warn_if_rose(rose: bool) -> None:
    """Warn that a step would have raised the objective, which proves a negative eigenvalue."""
    if rose:
        warn(
            "A full step would have raised the objective: the kernel is not positive semidefinite. Steps were cut back "
            "so that the objective still fell; adding a constant to the kernel's diagonal makes the kernel valid.",
            NotPSDWarning,
        )


def warn_if_unfinished(converged: bool, max_iter: int, what: str = "labels") -> None:
    """Warn that the best run stopped at ``max_iter`` while its labels, or what else was sought, still changed."""
    if not converged:
        warn(
            f"The best run stopped at max_iter={max_iter} before its {what} settled. Raise max_iter or tol.",
            ConvergenceWarning,
        )


def warn_if_collapsed(collapsed: bool, p_init: float, *, drawn: bool) -> None:
    """Warn that MinMax k-means could not begin and k-means took its place."""
    if collapsed:
        remedy = "Lower n_clusters, raise n_init, or remove outliers." if drawn else "Choose another init."
        warn(
            "Every start left a cluster without variance (empty, a single sample, or equal samples) at "
            f"p_init={p_init}, so the result is that of k-means. {remedy}",
            ConvergenceWarning,
        )


def warn_if_empty(totals: Array, n_clusters: int) -> None:
    """Warn that some clusters stayed empty."""
    filled = int(np.count_nonzero(totals > 0))
    if filled < n_clusters:
        warn(
            f"Number of distinct clusters ({filled}) found smaller than n_clusters ({n_clusters}). Possibly due to "
            "duplicate points in X.",
            ConvergenceWarning,
        )


def warn_if_inexact(residual: float) -> None:
    """Warn that eigenvectors could not be separated."""
    if residual > LARGEST_RESIDUAL:
        warn(
            f"The eigenvectors were found only to a residual of {residual:.1g}: many eigenvalues are close together. "
            "Clusters may be unclear; try another n_clusters or kernel.",
            ConvergenceWarning,
        )


def warn_if_one_view_decides(names: Sequence[str], view_weights: Floats, scatters: Floats) -> None:
    """Warn where a view without scatter took all the weight, whatever the others say."""
    empty = scatters == 0
    if empty.any() and not empty.all() and view_weights[empty].sum() > 1.0 - FLAT:
        name = names[int(np.argmax(empty))]
        warn(
            f"View {name!r} has no scatter left, so it took all the weight: its samples take few values, it has "
            "few columns, or its graph falls apart. If that is not what the clusters should follow, drop the view "
            "or set view_weights='uniform'.",
            ConvergenceWarning,
        )


def warn_if_clusters_follow_absence(labels: Ints, observed: Bools | None, random_state: int) -> None:
    """Warn of clusters that agree with who is absent from which view, more than chance allows.

    Beyond ``AGREES_WITH_ABSENCE``, and beyond what the same patterns reach when shuffled.
    """
    if observed is None or len(np.unique(labels)) < 2:
        return
    pattern = np.unique(observed, axis=0, return_inverse=True)[1].ravel()
    agreement = float(adjusted_mutual_info_score(pattern, labels))
    if agreement <= AGREES_WITH_ABSENCE:
        return
    rng = streams(random_state, 1, "reference data")[0]
    by_chance = max(adjusted_mutual_info_score(rng.permutation(pattern), labels) for _ in range(DEALT_ANEW))
    if agreement > by_chance:
        warn(
            f"The clusters agree with which views the samples are in (adjusted mutual information {agreement:.2f}, "
            f"{by_chance:.2f} at most in {DEALT_ANEW} draws by chance): they may say who was measured where rather "
            "than what was measured.",
            ViewWarning,
        )
