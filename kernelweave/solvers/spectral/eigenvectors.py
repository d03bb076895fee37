"""Leading eigenvectors of a weighted sum of kernels, for weights that change.

Two ways. Where all kernels are inner products of features, fewer than there are samples, the Gram matrix of the
features holds everything: it is computed once, and new weights cost an eigenproblem of its size. Otherwise a restarted
block Krylov method works on products alone. ARPACK and LOBPCG do the latter too, but the first misses copies of a
repeated eigenvalue, as graphs of several components have them, and takes no block to start from, and the second stalls
without a preconditioner; a block that starts from the eigenvectors of the last weights needs a few products.

With sample weights w the matrix is W^1/2 K W^1/2. Vectors are reported as they extend to new samples:
f(x) = sum_j k(x, x_j) w_j^1/2 Y_j / lambda, which is w_i^-1/2 Y_i on the training samples.

Blocks of one row per sample belong to the kernel's backend; the host sees eigenvalues and traces.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh

from kernelweave.backends import Backend, BackendArray, get_backend
from kernelweave.backends.eigenpairs import last_eigenpairs
from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import FREE, matrices_mib, return_freed_memory
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.dense import stored
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures, MultiViewKernel

#: Eigenvalues below this share of the largest are zero: their vectors say nothing.
ZERO_EIGENVALUE = 1e-10
#: Matrices on the host up to this size are decomposed as a whole.
SMALL = 1200
#: Vectors of a block beyond those asked for.
GUARD = 4
# Blocks of a Krylov basis, and most restarts.
DEPTH = 12
RESTARTS = 60
# A basis for a residual larger than this is looked at when half of its blocks are there: they are often enough.
ROUGH_RESIDUAL = 1e-5
# Blocks of the first basis where the search starts from eigenvectors of other weights.
SHORT_DEPTH = 2
# Matrices of fewer rows than this, or than so many per vector, are decomposed again for every weights: products with
# bases of that many vectors take longer. The matrix of features is small itself: from the vectors of other weights a
# few blocks are enough, and six a vector is where both ways took as long on our sets.
FEWEST_TRACKED = 300
ROWS_A_VECTOR = 4
FEATURES_A_VECTOR = 6
# Blocks of the basis in which nearby vectors are searched before the search starts again, and those of it that are kept
# for the next weights.
NEARBY_BLOCKS = 5
KEPT_BLOCKS = 2
# Arrays of the size of a whole basis that are alive at the end of a restart.
WORK_BLOCKS = 6
# Blocks beside a basis and its image while a product is taken, and matrices of the size of the basis that find its best
# vectors.
PRODUCT_BLOCKS = 5
RITZ_MATRICES = 5
# The shortest basis, and blocks of best vectors from which a search with a short one goes on: with one block alone a
# short basis loses what made it converge.
SHORTEST = 3
SHORT_KEPT = 2
# Blocks of a basis that takes spare vectors along. For nine eigenvectors of 8,000 samples, most of them noise, there
# were 30 products with six blocks of 41 vectors, 32 with eight of 33, as large a basis, and 52 with twelve of 13.
WIDE_DEPTH = 6
# Entries of a basis from which on memory is given back after a search: 16 MiB of them.
TRIMMED = 2**21
# The same for every step of a search with a short one, beside which there is no room: 2 MiB.
TRIMMED_SHORT = 2**18
# Matrices besides those of the views: the sum and its successor; a decomposed one, scaled from both sides, and a copy.
SUMS = 2
DECOMPOSED = 5


class Eigenpairs(Protocol):
    """Leading eigenvalues, largest first, and what they say about samples and views."""

    @property
    def values(self) -> Floats:
        """Eigenvalues, shape (k,)."""

    @property
    def traces(self) -> Floats:
        """tr(Y^T K_v Y) of every view."""

    @property
    def residual(self) -> float:
        """||K Y - Y values|| / largest |value|."""

    def embedding(self) -> BackendArray:
        """Return f at every sample, shape (n, k); zero in columns whose eigenvalue is."""

    def sources(self) -> BackendArray:
        """Return w^1/2 Y / lambda, shape (n, k): f(x) of a new sample is its kernel row times this."""


@dataclass(frozen=True)
class StoredBlock:
    """What is kept of eigenpairs when a run is stopped."""

    block: Floats | None  # where the next search may start


class Spectrum(Protocol):
    """Eigenvectors of sum_v c_v K_v, for one set of coefficients after another."""

    def leading(
        self, coefficients: Floats, count: int, tol: float, start: Eigenpairs | StoredBlock | None = None
    ) -> Eigenpairs:
        """Return the leading ``count`` pairs; ``start`` may hold those of other coefficients."""


def work_mib(n: int, count: int) -> float:
    """Return about how many MiB the search for ``count`` eigenvectors of products takes: bases, images and copies."""
    return WORK_BLOCKS * DEPTH * (count + GUARD) * n * 8 / 2**20


@dataclass(frozen=True)
class Search:
    """How many blocks a basis has, from how many a restart goes on, and how many restarts there are."""

    depth: int = DEPTH
    kept: int = 1
    restarts: int = RESTARTS
    extra: int = GUARD  # vectors of a block beyond those asked for

    def options(self) -> dict[str, Any]:
        """Return these as options of ``leading_vectors``."""
        return {"depth": self.depth, "kept": self.kept, "restarts": self.restarts, "extra": self.extra}


def search_mib(n: int, count: int, depth: int, extra: int = GUARD) -> float:
    """Return the MiB that a basis of ``depth`` blocks takes, with its image and what products need."""
    width = min(count + extra, n)
    return ((2 * depth + PRODUCT_BLOCKS) * width * n + RITZ_MATRICES * min(depth * width, n) ** 2) * 8 / 2**20


def search_within(room: float, n: int, count: int, kept: int = 1, spare: int = 0) -> Search:
    """Return the deepest search for which ``room`` MiB are enough; a short basis needs more products and restarts.

    Where products take ``spare`` vectors along at little cost, blocks are as wide as that and the room allow: wide ones
    need fewer products.
    """
    wide = _wide_search(room, n, count, spare) if spare else None
    if wide is not None:
        return wide
    depth = next((d for d in range(DEPTH, SHORTEST, -1) if search_mib(n, count, d) <= max(room, FREE)), SHORTEST)
    if depth == DEPTH:
        return Search(kept=kept)
    kept = max(SHORT_KEPT, min(kept, depth // 2))
    return Search(depth, kept, RESTARTS * (DEPTH - 1) // (depth - kept))


def _wide_search(room: float, n: int, count: int, spare: int) -> Search | None:
    """Return the search with the widest blocks and then the deepest basis; None where only usual blocks fit."""

    def fits(depth: int, extra: int) -> bool:
        return search_mib(n, count, depth, extra) <= max(room, FREE)

    most = min(GUARD + spare, n - count)
    extra = next((extra for extra in range(most, GUARD, -1) if fits(WIDE_DEPTH, extra)), None)
    if extra is None:
        return None
    depth = next(depth for depth in range(DEPTH, WIDE_DEPTH - 1, -1) if fits(depth, extra))
    kept = depth // 2
    return Search(depth, kept, RESTARTS * (DEPTH - 1) // (depth - kept), extra)


def check_search(n: int, count: int, memory_limit: float, held: float = 0.0, uncertain: float = 0.0) -> None:
    """Raise where even the shortest basis of ``count`` eigenvectors is more than a limit leaves, before a search.

    ``held`` MiB are taken already, in proportion to the samples or more; ``uncertain`` MiB is how much that may be off,
    where a number of samples is named that would fit.
    """
    searching = search_mib(n, count, SHORTEST)
    needed = searching + held
    if needed <= max(memory_limit, FREE):
        return
    fixed = RITZ_MATRICES * min(SHORTEST * (count + GUARD), n) ** 2 * 8 / 2**20  # whatever the number of samples
    fitting = max(0, int(n * (memory_limit - fixed) / (needed + uncertain - fixed)))
    raise ParameterError(
        f"the search for {count} eigenvectors of {n:,} samples takes {needed:,.0f} MiB, more than "
        f"memory_limit={memory_limit:g}. Raise it to {np.ceil(needed):g}, ask for fewer clusters, or fit on a part of "
        f"the samples: {fitting:,} samples would fit."
    )


def coupled_mib(n: int, size: int) -> float:
    """Return the MiB that a coupled problem of the bases of n samples takes: bases side by side, matrix and a copy."""
    return (n * size + 2 * size**2) * 8 / 2**20


def decomposed_whole(op: KernelOperator, copies: int, room: float) -> bool:
    """Whether a matrix is small enough to be decomposed as a whole, and ``room`` MiB hold so many copies of it."""
    return op.n_samples <= op.backend.direct_limit and matrices_mib(copies, op.n_samples) <= max(room, FREE)


def found_by_features(op: MultiViewKernel) -> bool:
    """Whether the Gram matrix of features, fewer than there are samples, gives the eigenvectors, without a search."""
    return op.gram_size is not None and op.gram_size <= op.n_samples


def spectrum(op: MultiViewKernel, weights: Floats, room: float = np.inf, work: float = np.inf) -> Spectrum:
    """Return the cheapest way to the leading eigenvectors of W^1/2 (sum_v c_v K_v) W^1/2.

    ``room`` is what may be stored besides the kernels, in MiB: without it the sum is applied view by view. ``work`` MiB
    may be taken by the search itself.
    """
    if found_by_features(op):
        return GramSpectrum(op, weights)  # type: ignore[arg-type]
    return KrylovSpectrum(op, weights, room, work)


def extension(values: Floats) -> Floats:
    """Return 1 / lambda, zero where lambda is."""
    keep = values > ZERO_EIGENVALUE * max(float(values.max(initial=0.0)), 0.0)
    return np.divide(1.0, values, out=np.zeros_like(values), where=keep & (values > 0))


@dataclass(frozen=True)
class GramPairs:
    """Eigenpairs through features."""

    values: Floats
    traces: Floats
    op: JoinedFeatures
    weights: BackendArray
    directions: Floats  # (d, k) f = Phi times these
    residual: float = 0.0
    block: Floats | None = None  # where the next search may start, but for the roots of the weights

    def embedding(self) -> BackendArray:
        """Return f = Phi C^1/2 U lambda^-1/2."""
        return self.op.backend.spread(self.op.Phi, self.directions)

    def sources(self) -> BackendArray:
        """Return W f / lambda."""
        return self.weights[:, None] * self.embedding() * extension(self.values)


class GramSpectrum:
    """Eigenvectors through the Gram matrix of all features, which is computed once."""

    def __init__(self, op: JoinedFeatures, weights: Floats) -> None:
        self._op = op
        self._weights = op.backend.array(weights)
        self._gram = op.backend.gram(op.Phi, self._weights)
        self._view = np.repeat(np.arange(op.n_views), op.widths)

    def leading(
        self, coefficients: Floats, count: int, tol: float, start: Eigenpairs | StoredBlock | None = None
    ) -> GramPairs:
        """Return the leading pairs from a matrix of the size of the features; exact except for rounding."""
        op = self._op.with_weights(coefficients)
        root = np.sqrt(op.column_weights)
        inner = root[:, None] * self._gram
        inner *= root
        first = start.block if isinstance(start, GramPairs) else None
        # Vectors of other weights are Phi^T Y scaled by the roots of these weights.
        first = None if first is None else first * root[:, None]
        values, U, block, residual = tracked_leading(inner, min(count, len(self._gram)), tol, first)
        # Y = W^1/2 Phi C^1/2 U lambda^-1/2
        directions = root[:, None] * U * np.sqrt(extension(values))
        squares = np.square(self._gram @ directions).sum(axis=1)  # of Phi^T W^1/2 Y, by column
        traces = np.bincount(self._view, op.factors[self._view] * squares, op.n_views)
        unscaled = np.divide(block, root[:, None], out=np.zeros_like(block), where=root[:, None] > 0)
        by_view = np.asarray(traces, dtype=np.float64)
        return GramPairs(values, by_view, op, self._weights, directions, residual, unscaled)


@dataclass(frozen=True)
class KrylovPairs:
    """Eigenpairs through products."""

    values: Floats
    traces: Floats
    residual: float
    summed: Callable[[], KernelOperator]  # the sum of the kernels
    root: BackendArray  # (n,) w^1/2
    vectors: BackendArray  # (n, k) Y
    block: BackendArray  # (n, at least k + GUARD) orthonormal, begins with Y: where the next search may start
    images: list[BackendArray]  # products of every view with the block, none where there is no room to keep them
    backend: Backend

    @property
    def host_block(self) -> Floats:
        """The block as NumPy."""
        return self.backend.host(self.block)

    def embedding(self) -> BackendArray:
        """Return f from one product, so that training and new samples meet the same formula."""
        return self.summed().matmat(self.sources())

    def sources(self) -> BackendArray:
        """Return w^1/2 Y / lambda."""
        return self.root[:, None] * self.vectors * extension(self.values)


class KrylovSpectrum:
    """Eigenvectors through products with the kernels.

    Products of the views with the vectors give the traces, and for other coefficients they are those of the sum: a
    search from the vectors of the last coefficients begins without a product, and new blocks are few.
    """

    def __init__(self, op: MultiViewKernel, weights: Floats, room: float = np.inf, work: float = np.inf) -> None:
        self._op = op
        self._work = work
        self._backend = op.backend
        self._root = op.backend.array(weights) ** 0.5
        self._whole = decomposed_whole(op, op.n_views + DECOMPOSED, room)
        # Stored kernels are copied, each with its factor, and added up.
        self._copied = matrices_mib(op.n_views + SUMS, op.n_samples) <= max(room, FREE)
        self._views = [self._for_products(view) for view in op.view_operators()]
        self._added = self._copied or all(view.sparse_matrix() is not None for view in self._views)

    def leading(
        self, coefficients: Floats, count: int, tol: float, start: Eigenpairs | StoredBlock | None = None
    ) -> KrylovPairs:
        """Return the leading pairs to a relative residual of ``tol``; never worse than the block it starts from."""
        count = min(count, self._op.n_samples)
        block = getattr(start, "block", None)
        block = None if block is None else self._backend.array(block)
        near = None if block is None else self._nearby(coefficients, count, tol, block, getattr(start, "images", None))
        if near is not None and near.residual <= tol:
            return near
        first = block if near is None else near.block
        values, block, residual = self._anew(coefficients, count, tol, first)
        if self._tracks(count):
            return self._pairs(coefficients, count, values, block, self._images(block), residual)
        vectors = block[:, :count]
        traces = np.array([self._backend.total(vectors * self._image(view, vectors)) for view in self._views])
        return self._made(coefficients, values[:count], traces, residual, block, [])

    def _tracks(self, count: int) -> bool:
        """Whether there is room for a basis with its images under every view, twice where it grows."""
        width = min(count + GUARD, self._op.n_samples)
        arrays = 2 * NEARBY_BLOCKS * (1 + len(self._views)) + PRODUCT_BLOCKS
        return arrays * width * self._op.n_samples * 8 / 2**20 <= max(self._work, FREE)

    def _anew(
        self, coefficients: Floats, count: int, tol: float, start: BackendArray | None
    ) -> tuple[Floats, BackendArray, float]:
        """Return the leading values, a block that begins with their vectors, and the residual, from the sum."""
        n = self._op.n_samples
        op = self._sum(coefficients)
        root = self._root
        if self._whole:
            full = root[:, None] * op.block(slice(None), slice(None)) * root
            return *leading_of(full, min(count + GUARD, n)), 0.0

        def product(block: BackendArray) -> BackendArray:
            return root[:, None] * op.matmat(root[:, None] * block)

        search = search_within(self._work, n, count, spare=self._op.spare_vectors)
        depth = search.depth if start is None else SHORT_DEPTH
        width = min(count + GUARD, n)
        start = None if start is None else self._start(start[:, :width], min(count + search.extra, n))
        how = search.options() | {"first_depth": depth}
        values, block, residual = leading_vectors(product, n, count, tol, start, backend=self._backend, **how)
        if search.extra > GUARD:  # spare vectors have served
            block = self._backend.combine([block], np.eye(block.shape[1], width))
        return values[:width], block, residual

    def _start(self, best: BackendArray, width: int) -> BackendArray:
        """Return the best vectors of a basis, with others that fill a block where it is wider."""
        missing = width - best.shape[1]
        if missing <= 0:
            return best
        others = self._backend.orthonormal(self._backend.start_block(self._op.n_samples, missing), [best])
        return self._backend.join([best, others])

    def _nearby(
        self,
        coefficients: Floats,
        count: int,
        tol: float,
        block: BackendArray,
        images: list[BackendArray] | None,
    ) -> KrylovPairs | None:
        """Return the best pairs of a small basis that begins with a block; None where samples are few.

        The basis grows by the images of the vectors that are not good enough yet, no others, and most of it is kept:
        weights change less and less, and for the next ones it often is enough as it is.
        """
        n = self._op.n_samples
        backend = self._backend
        width = min(count + GUARD, n)
        if not width <= block.shape[1] <= KEPT_BLOCKS * width or n < max(FEWEST_TRACKED, ROWS_A_VECTOR * width):
            return None
        if not self._tracks(count):
            return None
        basis = block
        images = images or self._images(block)
        while True:
            image = _combined(coefficients, images)
            values, U, errors = ritz_pairs(backend, [basis], [image], KEPT_BLOCKS * width, count)
            bad = np.flatnonzero(errors > tol)
            if len(bad) == 0 or basis.shape[1] + len(bad) > NEARBY_BLOCKS * width:
                break
            following = backend.orthonormal(backend.combine([image], U[:, bad]), [basis])
            if following.shape[1] == 0:
                break
            added = self._images(following)
            basis = backend.join([basis, following])
            images = [backend.join(list(pair)) for pair in zip(images, added, strict=True)]
        images = [backend.combine([image], U) for image in images]
        basis = backend.combine([basis], U)
        return self._pairs(coefficients, count, values, basis, images, float(errors.max()))

    def _pairs(
        self,
        coefficients: Floats,
        count: int,
        values: Floats,
        block: BackendArray,
        images: list[BackendArray],
        residual: float,
    ) -> KrylovPairs:
        vectors = block[:, :count]
        traces = np.array([self._backend.total(vectors * image[:, :count]) for image in images])
        return self._made(coefficients, values[:count], traces, residual, block, images)

    def _made(
        self,
        coefficients: Floats,
        values: Floats,
        traces: Floats,
        residual: float,
        block: BackendArray,
        images: list[BackendArray],
    ) -> KrylovPairs:
        summed = partial(self._sum, coefficients)
        vectors = block[:, : len(values)]
        return KrylovPairs(values, traces, residual, summed, self._root, vectors, block, images, self._backend)

    def _images(self, block: BackendArray) -> list[BackendArray]:
        """Return the products of W^1/2 K_v W^1/2 with a block, for every view."""
        H = self._root[:, None] * block
        return [self._root[:, None] * view.matmat(H) for view in self._views]

    def _image(self, view: KernelOperator, block: BackendArray) -> BackendArray:
        return self._root[:, None] * view.matmat(self._root[:, None] * block)

    def _sum(self, coefficients: Floats) -> KernelOperator:
        """Return the weighted sum as one matrix where all kernels are stored, dense or sparse, and there is room."""
        together = CompositeKernel(self._views, coefficients)
        merged = together.for_products() if self._added else together
        return self._op.with_weights(coefficients) if merged is together else merged

    def _for_products(self, view: KernelOperator) -> KernelOperator:
        if self._whole:
            return stored(view)
        return view.for_products() if self._copied or view.sparse_matrix() is not None else view


def leading_of(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the leading eigenpairs of a stored matrix, the same to the last bit for any number of threads."""
    with single_threaded_blas():
        values, vectors = last_eigenpairs(matrix, count)
    return values[::-1], vectors[:, ::-1]


def tracked_leading(
    matrix: Floats, count: int, tol: float, start: Floats | None
) -> tuple[Floats, Floats, Floats, float]:
    """Return the leading eigenpairs of a stored matrix, a block to start from the next time, and the residual.

    From such a block a few products are enough, as long as they reach ``tol``; a whole decomposition is the other way.
    """
    n = len(matrix)
    width = min(count + GUARD, n)
    if start is not None and start.shape[1] == width and n >= max(FEWEST_TRACKED, FEATURES_A_VECTOR * width):
        backend = get_backend()
        with single_threaded_blas():
            first = np.linalg.qr(start)[0]
        values, block, residual = leading_vectors(
            lambda part: backend.product(matrix, part), n, count, tol, first, restarts=3, first_depth=SHORT_DEPTH
        )
        reached = residual <= tol
        if reached:
            return values[:count], block[:, :count], block, residual
    values, block = leading_of(matrix, width)
    return values[:count], block[:, :count], block, 0.0


def leading_vectors(
    product: Callable[[BackendArray], BackendArray],
    n: int,
    count: int,
    tol: float,
    start: BackendArray | None = None,
    *,
    backend: Backend | None = None,
    extra: int = GUARD,
    restarts: int = RESTARTS,
    kept: int = 1,
    depth: int = DEPTH,
    first_depth: int | None = None,
) -> tuple[Floats, BackendArray, float]:
    """Return the leading eigenpairs of a symmetric matrix given by its products with blocks, and their residual.

    ``count`` of them to a relative residual of ``tol`` (or as near as ``restarts`` come: the residual tells),
    and ``extra`` more, as good as they come, to start from the next time. Restarted block Krylov method with bases of
    ``depth`` blocks; the sum of the values is never below that of the ``start``. A restart goes on from ``kept`` blocks
    of the best vectors; more than one help where many eigenvalues are nearly equal. ``first_depth`` is the number of
    blocks before the first look at the residual, which doubles up to ``depth``: few are enough for a close start.
    """
    backend = get_backend() if backend is None else backend
    width = min(count + extra, n)
    block = start
    if block is None or block.shape[1] != width:
        block = backend.start_block(n, width)
    image = product(block)
    blocks = depth if first_depth is None else first_depth
    large = depth * width * n >= TRIMMED
    short = depth < DEPTH and depth * width * n >= TRIMMED_SHORT
    for left in reversed(range(restarts)):
        Q = [block]
        Z = [image]
        last = image[:, :width]
        looks = (blocks // 2, blocks) if tol > ROUGH_RESIDUAL and blocks > SHORTEST else (blocks,)
        for look in looks:
            Q, Z = _krylov_basis(backend, product, Q, Z, last, look, short=short)
            values, U, residual = ritz(backend, Q, Z, kept * width, count)
            if residual <= tol:
                break
            last = Z[-1][:, -width:]
        del last
        ended = residual <= tol or left == 0
        if short:
            return_freed_memory()
        block = backend.combine(Q, U[:, :width] if ended else U)
        # A basis that is left behind would stay beside the next one, or beside what comes after the search.
        del Q
        image = None if ended else backend.combine(Z, U)
        del Z
        if ended:
            break
        blocks = min(2 * blocks, depth)
    if large:
        return_freed_memory()  # or gaps between what is left of a basis would lie beside the next one
    return values[:width], block, residual


def _krylov_basis(
    backend: Backend,
    product: Callable[[BackendArray], BackendArray],
    basis: list[BackendArray],
    images: list[BackendArray],
    last: BackendArray,
    blocks: int,
    *,
    short: bool = False,
) -> tuple[list[BackendArray], list[BackendArray]]:
    """Return a basis grown to so many blocks from the last image, and its image; fewer where products add nothing.

    A ``short`` basis has no room beside it, and memory is given back on the way.
    """
    basis = list(basis)
    images = list(images)
    for _ in range(blocks - sum(block.shape[1] for block in basis) // last.shape[1]):
        following = backend.orthonormal(last, backend.together(basis))
        if following.shape[1] == 0:
            break
        basis.append(following)
        if short:
            return_freed_memory()  # or gaps too small for what comes next would stay beside it
        last = product(following)
        images.append(last)
        if short:
            return_freed_memory()
    return backend.together(basis), backend.together(images)


def _combined(coefficients: Floats, images: list[BackendArray]) -> BackendArray:
    """Return the image under the weighted sum, from those under every kernel."""
    pairs = zip(coefficients.tolist(), images, strict=True)
    return sum((c * image for c, image in pairs), start=0.0 * images[0])


def ritz(
    backend: Backend, Q: list[BackendArray], Z: list[BackendArray], kept: int, count: int
) -> tuple[Floats, Floats, float]:
    """Return the leading values within the basis Q (Z its image), their coefficients, the residual of ``count``."""
    values, U, errors = ritz_pairs(backend, Q, Z, kept, count)
    return values, U, float(errors.max())


def ritz_pairs(
    backend: Backend, Q: list[BackendArray], Z: list[BackendArray], kept: int, count: int
) -> tuple[Floats, Floats, Floats]:
    """Return the leading values within the basis Q (Z its image), their coefficients, residuals of the first ones."""
    inner = backend.inner(Q, Z)
    symmetric = 0.5 * (inner + inner.T)
    del inner
    with single_threaded_blas():
        values, U = eigh(symmetric.T, overwrite_a=True, driver="evd")
    values = values[::-1][:kept]
    U = U[:, ::-1][:, :kept]
    few = U[:, :count]
    missing = backend.combine(Z, few)
    found = backend.combine(Q, few)
    found *= values[:count]
    missing -= found
    del found  # lengths take as much again
    errors = backend.column_norms(missing)
    size = max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
    return values, U, np.asarray(errors / size)
