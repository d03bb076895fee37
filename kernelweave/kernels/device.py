"""Kernels on a torch device, a GPU in the first place: where they are placed, and those of all pairs of samples."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.backends import Backend, BackendArray, Moves, get_device_backend
from kernelweave.foundation.array_types import Array, Floats, Index, Ints, Matrix
from kernelweave.foundation.config import get_config
from kernelweave.foundation.logged_warnings import warn
from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec import formulas
from kernelweave.partitions.partition import Partition
from kernelweave.partitions.rough import RoughPartition


def device_backend() -> Any:
    """Return the backend of the device that the settings name, None for this process."""
    device = get_config().device
    return None if device is None else get_device_backend(str(device))


def place_matrix(K: Array, *, psd: bool | None, largest: float | None = None) -> DenseKernel | None:
    """Return a stored kernel on the device of the settings, None where there is none."""
    backend = device_backend()
    if backend is None:
        return None
    return DenseKernel(backend.kept(K), psd=psd, backend=backend, largest=largest)


def warn_of_processor(what: str, why: str) -> None:
    """Say that something stays on the processor, where the settings name a device."""
    device = get_config().device
    if device is not None:
        warn(f"{what} stay on the processor: device={str(device)!r} {why}.", UserWarning)


def place_features(features: Any) -> FeatureKernel | None:
    """Return features on the device of the settings, None where there is none."""
    backend = device_backend()
    if backend is None:
        return None
    if not sp.issparse(features):
        return FeatureKernel(backend.kept(features), backend=backend)
    table = _kept_sparse(backend, features)
    return None if table is None else FeatureKernel(table, backend=backend)


def _kept_sparse(backend: Any, features: Any) -> Any:
    """Return sparse features on a device, None where it has no room for them."""
    table = backend.kept_sparse(sp.csr_array(features))
    if table is None:
        entries = f"Sparse features of {features.nnz:,} entries"
        warn_of_processor(entries, "has no room for them. Features of fewer columns, or fewer samples, may fit")
    return table


def place_graph(op: KernelOperator) -> KernelOperator:
    """Return a graph on the device of the settings, as it is where there is none."""
    backend = device_backend()
    graph = op.sparse_matrix()
    if backend is None or graph is None:
        return op
    return DeviceGraph(backend, graph, op)


def on_device(op: FeatureKernel) -> FeatureKernel:
    """Return features of the host on the device of the settings; others, and those without a device, as they are."""
    here = isinstance(op.Phi, np.ndarray) or sp.issparse(op.Phi)
    return (place_features(op.Phi) if here else None) or op


def place_formula(formula: formulas.Formula, prepared: Any, *, stored: bool) -> KernelOperator | None:
    """Return the kernel of all pairs on the device of the settings; None without one, or where it lacks the formula."""
    backend = device_backend()
    if backend is None:
        return None
    form = _pair_form(formula, prepared)
    if form is None:
        if not stored:  # a stored one is computed here and then placed
            kind = "sparse features" if sp.issparse(prepared) else "this kind"
            what = f"Kernels of {type(formula).__name__} that are not stored"
            warn_of_processor(what, f"computes none of {kind}; storage='dense' stores the kernel there")
        return None
    from kernelweave.backends.torch.pairs import Pairs

    samples = _samples_there(backend, form[1])
    if samples is None:
        return None
    pairs = Pairs(backend, form[0], samples)
    if stored:
        return DenseKernel(pairs.matrix(), psd=formula.psd, backend=backend)
    return DeviceKernel(pairs, formula.psd, formula.bound(prepared), get_config().precision)


def place_cross(cross: KernelOperator) -> KernelOperator:
    """Return a kernel between new and training samples on the device of the settings, where its values are computed.

    Others are returned as they are: what is stored of them is small, or lies on the host.
    """
    backend = device_backend()
    if backend is None or not isinstance(cross, BlockwiseKernel):
        return cross
    form = _pair_form(cross.formula, cross.X)
    sources = _pair_form(cross.formula, cross.Y)
    if form is None or sources is None:
        return cross
    from kernelweave.backends.torch.pairs import Pairs

    rows = _samples_there(backend, form[1])
    columns = _samples_there(backend, sources[1])
    if rows is None or columns is None:
        return cross
    return DeviceKernel(Pairs(backend, form[0], rows, columns), None, cross.scale(), get_config().precision)


def _samples_there(backend: Any, samples: Any) -> Any:
    """Return samples as pairs take them: sparse ones as rows on the device, None where it has no room for these."""
    if not sp.issparse(samples):
        return samples
    table = _kept_sparse(backend, samples)
    return None if table is None else table.rows


def _pair_form(formula: formulas.Formula, prepared: Matrix) -> tuple[Any, Matrix] | None:
    """Return a formula as the device computes it, with the samples that it takes; None where it cannot."""
    from kernelweave.backends.torch.pairs import PairForm

    if isinstance(formula, formulas.Gaussian):
        return PairForm("gaussian"), prepared[:, :-2]
    if isinstance(formula, formulas.Laplacian) and not sp.issparse(prepared):  # differences of sparse rows are dense
        return PairForm("laplacian", formula.gamma), prepared
    if isinstance(formula, formulas.NormalizedPolynomial):
        return PairForm("polynomial", 1.0, 0.0, formula.degree), prepared
    if isinstance(formula, formulas.Polynomial):
        return PairForm("polynomial", formula.gamma, formula.coef0, formula.degree), prepared
    if isinstance(formula, formulas.Sigmoid):
        return PairForm("sigmoid", formula.gamma, formula.coef0), prepared
    return None


class DeviceKernel(KernelOperator):
    """k(x_i, x_j) of samples on a device, computed whenever it is needed: one evaluation of the kernel per pass.

    Sums are float64. Partitions of the Gaussian kernel use rough ones where that is faster and ends the same.
    """

    backend: Backend
    #: Samples from which on rough sums pay: a pass over fewer takes no longer in double precision.
    rough_from = 2**14

    def __init__(self, pairs: Any, psd: bool | None, bound: float, precision: str) -> None:
        self.backend = pairs.backend
        self.pairs = pairs
        self.psd = psd
        self.shape = pairs.shape
        self.precision = precision
        self._bound = bound
        self._rough: Any = None

    @property
    def recomputed(self) -> bool:
        """True: no value is stored."""
        return True

    def diag(self) -> BackendArray:
        """Return k(x_i, x_i)."""
        return self.pairs.diagonal()

    def scale(self) -> float:
        """Return the formula's bound."""
        return self._bound

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return K @ H."""
        return self.pairs.product(H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the kernel between some samples as NumPy."""
        return self.pairs.block(rows, cols)

    def columns(self, samples: Ints) -> BackendArray:
        """Return the kernel between all samples and some."""
        return self.pairs.columns(samples)

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the (k, n) cluster sums."""
        return self.pairs.exact_sums(self.backend.labels(labels), self.backend.array(weights), n_clusters)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update ``sums`` in place; computes the kernel rows of the moved samples only."""
        self.pairs.move_exact_sums(sums, moves, weights)

    def candidate_gains(self, distances: BackendArray, weights: BackendArray, diag: BackendArray) -> BackendArray:
        """Return the gains of all candidates, some rows at a time."""
        return self.pairs.candidate_gains(distances, weights, diag)

    def partition(self, labels: Any, weights: Any, n_clusters: int) -> Partition:
        """Return a partition: of rough sums where these are faster."""
        if self._is_rough():
            return RoughPartition(self, labels, weights, n_clusters)
        return super().partition(labels, weights, n_clusters)

    # What partitions of rough sums ask for

    def rough_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the cluster sums in single precision."""
        return self._rough_pairs().sums(labels, weights, n_clusters)

    def move_rough_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update them in place."""
        self._rough_pairs().move_sums(sums, moves, weights)

    def correct_sums(
        self,
        sums: BackendArray,
        labels: BackendArray,
        weights: BackendArray,
        totals: Floats,
        norms: Floats,
        tolerance: float,
        carried: float,
    ) -> int:
        """Compute the sums of samples again, exactly, whose nearest cluster the errors leave open."""
        if self.precision == "tf32":  # asked for: labels may differ
            return 0
        samples = self._rough_pairs().undecided(sums, totals, norms, tolerance, carried)
        if len(samples):
            sums.tensor[:, samples] = self.pairs.exact_sums_of(samples, labels, weights, len(totals))
        return len(samples)

    def largest_error(self) -> float:
        """Return by how much a rough sum may be off, as a share of it."""
        return float(self._rough_pairs().largest_error)

    def within_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> Floats:
        """Return the kernel summed over the pairs inside each cluster, exactly."""
        return self.pairs.within_sums(labels, weights, n_clusters)

    def within_change(self, moves: Moves, weights: BackendArray, n_clusters: int) -> Floats:
        """Return by how much these change with moves, exactly."""
        return self.pairs.within_change(moves, weights, n_clusters)

    def _is_rough(self) -> bool:
        return self.pairs.has_rough_sums and self.precision != "float64" and self.n_samples >= self.rough_from

    def _rough_pairs(self) -> Any:
        if self._rough is None:
            from kernelweave.backends.torch.pairs import RoughPairs

            self._rough = RoughPairs(self.pairs, self.precision)
        return self._rough


class DeviceGraph(KernelOperator):
    """Affinities of a graph on a device. Its entries also stay on the host, for blocks that are asked for."""

    backend: Backend
    cheap_products = True

    def __init__(self, backend: Any, graph: Any, op: KernelOperator) -> None:
        from kernelweave.backends.torch.graphs import SparseRows

        self.backend = backend
        self.shape = op.shape
        self.psd = op.psd
        self._op = op
        self._rows = SparseRows(backend, graph)

    def diag(self) -> BackendArray:
        """Return the diagonal."""
        return self.backend.array(self._op.diag())

    def scale(self) -> float:
        """Return the size of the largest entry."""
        return self._op.scale()

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return A @ H."""
        return self._rows.product(H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a dense block as NumPy."""
        return self._op.block(rows, cols)

    def columns(self, samples: Ints) -> BackendArray:
        """Return some columns."""
        return self.backend.array(self._op.columns(samples))

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the (k, n) cluster sums from the entries."""
        return self._rows.cluster_sums(self.backend.labels(labels), self.backend.array(weights), n_clusters)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update the sums in place."""
        self._rows.move_sums(sums, moves, weights)

    def candidate_gains(self, distances: BackendArray, weights: BackendArray, diag: BackendArray) -> BackendArray:
        """Return the gains of all candidates, from the edges alone, on the host."""
        here = [self.backend.host(values) for values in (distances, weights, diag)]
        return self.backend.array(self._op.candidate_gains(*here))
