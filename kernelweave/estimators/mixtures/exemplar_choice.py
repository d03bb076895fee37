"""Which samples become the exemplars of a convex mixture, once its priors are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.estimators.mixtures.fitted_views import FittedView
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.partitions import algebra

#: Components are equal if they differ by no more than this in beta times the divergence.
EQUAL_COMPONENTS = 1e-9
# Pairs of samples that are compared at a time: some MiB of divergences.
COMPARED = 2**16


@dataclass(frozen=True)
class Exemplars:
    """Chosen samples, largest prior first; equal samples are one, with the sum of their priors."""

    indices: Ints  # (k,)
    priors: Floats  # (k,)

    @property
    def n_without_prior(self) -> int:
        """How many have no prior and only fill up the number asked for."""
        return int(np.count_nonzero(self.priors == 0))


def choose_exemplars(
    views: Sequence[FittedView], priors: Floats, likely: Ints, n_clusters: int | None = None
) -> Exemplars:
    """Return the samples of largest prior, ``n_clusters`` of them or all that have one.

    Where fewer have a prior they are filled up from ``likely``, the samples in the order in which they would get one.
    """
    ranked = _ranked(views, priors)
    if n_clusters is None:
        return ranked
    indices = ranked.indices[:n_clusters]
    for sample in likely if len(indices) < n_clusters else ():
        if len(indices) == n_clusters:
            break
        if not equal_components(views, np.array([sample]), indices).any():
            indices = np.append(indices, sample)
    known = ranked.priors[:n_clusters]
    return Exemplars(indices, np.append(known, np.zeros(len(indices) - len(known))))


def _ranked(views: Sequence[FittedView], priors: Floats) -> Exemplars:
    """Return all samples with a prior, the first of equal ones for all of them."""
    support = np.flatnonzero(priors)
    components = _Components(views, support)
    rows = max(1, COMPARED // max(1, len(support)))
    starts = range(0, len(support), rows)
    firsts = [components.equal_to(support[start : start + rows]).argmax(axis=1) for start in starts]
    first_equal = np.concatenate(firsts)
    representatives, member = np.unique(first_equal, return_inverse=True)
    totals = algebra.cluster_weights(member, priors[support], len(representatives))
    # Rounded, so that equal priors keep the order of the samples.
    order = np.argsort(-np.round(totals, 12), kind="stable")
    return Exemplars(support[representatives[order]], totals[order])


def equal_components(views: Sequence[FittedView], rows: Ints, cols: Ints) -> Bools:
    """Return which samples are equal as components: each as far from the other as from itself, in every view.

    They must be absent from the same views.
    """
    return _Components(views, cols).equal_to(rows)


class _Components:
    """Samples that others are compared with, and what is known about them in every view."""

    def __init__(self, views: Sequence[FittedView], samples: Ints) -> None:
        self._samples = samples
        self._views = []
        for view in views:
            known, places = view.places(samples)
            self._views.append((view, known, places, view.fitted.divergence.self_divergence(places)))

    def equal_to(self, rows: Ints) -> Bools:
        """Return which of these samples are equal to some others, one row for each of the latter."""
        equal = np.ones((len(rows), len(self._samples)), dtype=bool)
        for view, known, places, own in self._views:
            known_rows, row_places = view.places(rows)
            equal &= known_rows[:, None] == known[None, :]
            equal[np.ix_(known_rows, known)] &= _equal_in_view(view, row_places, places, own)
        return equal | (rows[:, None] == self._samples[None, :])


def _equal_in_view(view: FittedView, rows: Ints, cols: Ints, own: Floats) -> Bools:
    """Return which samples of a view are equal; ``own`` has the divergences of the second ones from themselves."""
    d = view.fitted.divergence
    with np.errstate(invalid="ignore"):  # a component may exclude its own sample
        forth = view.beta * (d.block(rows, cols) - d.self_divergence(rows)[:, None]) <= EQUAL_COMPONENTS
        back = view.beta * (d.block(cols, rows).T - own[None, :]) <= EQUAL_COMPONENTS
    return np.asarray(forth & back)
