"""Searches for eigenvectors keep to a limit of memory: shorter bases, and a refusal where the shortest does not fit."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import KernelSpectralClustering, MultiViewSpectralClustering, NgSpectralClustering
from kernelweave.estimators.shared.scores import TrainedKernel
from kernelweave.estimators.shared.single_kernel import room_for_search
from kernelweave.estimators.spectral.training_samples import training_samples
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.lean import LeanKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.solvers.graph.fusion import EIGEN_TOLERANCE, graph_eigenvectors
from kernelweave.solvers.spectral import eigenvectors
from kernelweave.solvers.spectral.eigenvectors import (
    DEPTH,
    GUARD,
    SHORTEST,
    WIDE_DEPTH,
    Search,
    leading_vectors,
    search_mib,
    search_within,
)

N_GROUPS = 30


def peak_of(work):
    """Return the MiB that were allocated at most, beside what was there before, and what the work returned."""
    tracemalloc.start()
    result = work()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return peak, result


def groups(n, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    centers = 20.0 * rng.standard_normal((N_GROUPS, n_features))
    return centers[np.arange(n) % N_GROUPS] + rng.standard_normal((n, n_features))


def decaying(n):
    values = 0.97 ** np.arange(n)
    return lambda block: values[:, None] * block


def test_a_basis_is_not_kept_beside_the_next_one():
    n = 4000
    peak, (_, _, residual) = peak_of(lambda: leading_vectors(decaying(n), n, 20, 1e-9, restarts=3, depth=6))
    assert residual > 1e-9  # there was more than one
    assert peak <= 1.15 * search_mib(n, 20, 6)


def test_short_bases_reach_the_same_residual():
    n = 1500
    room = search_mib(n, 20, 4)
    search = search_within(room, n, 20)
    assert search.depth == 4
    peak, (values, _, residual) = peak_of(lambda: leading_vectors(decaying(n), n, 20, 1e-7, **search.options()))
    assert residual <= 1e-7
    assert peak <= 1.15 * room
    np.testing.assert_allclose(values[:20], 0.97 ** np.arange(20), rtol=1e-10)


def test_room_enough_leaves_the_search_as_it_is():
    assert search_within(np.inf, 10**6, 50, kept=4) == Search(kept=4)
    assert search_within(search_mib(5000, 50, DEPTH), 5000, 50) == Search()
    assert search_within(0.0, 5000, 50).depth == SHORTEST


@pytest.mark.parametrize("estimator", [NgSpectralClustering, KernelSpectralClustering])
def test_a_small_limit_shortens_the_search_of_one_kernel(estimator):
    X = groups(1500)
    options = {} if estimator is KernelSpectralClustering else {"n_init": 2}
    limit = search_mib(len(X), N_GROUPS, 5)
    free = estimator(N_GROUPS, random_state=0, **options).fit(X)  # first: it loads what all fits need
    model = estimator(N_GROUPS, random_state=0, memory_limit=limit, **options)
    peak, _ = peak_of(lambda: model.fit(X))
    assert peak <= 1.15 * limit
    np.testing.assert_array_equal(model.labels_, free.labels_)
    np.testing.assert_allclose(model.eigenvalues_, free.eigenvalues_, atol=1e-8)


@pytest.mark.filterwarnings("ignore::UserWarning")  # three steps are few
def test_a_small_limit_shortens_the_search_of_several_views():
    views = [groups(1300, seed=seed) for seed in range(2)]
    limit = search_mib(1300, N_GROUPS, 5)
    options = {"n_clusters": N_GROUPS, "n_init": 2, "max_iter": 3, "random_state": 0}
    free = MultiViewSpectralClustering(**options).fit(views)
    model = MultiViewSpectralClustering(**options, memory_limit=limit)
    peak, _ = peak_of(lambda: model.fit(views))
    assert peak <= 1.15 * (limit + sum(view.nbytes for view in views) / 2**20)
    np.testing.assert_array_equal(model.labels_, free.labels_)


def test_where_the_shortest_search_does_not_fit_the_number_of_samples_is_named():
    X = groups(1500)
    model = NgSpectralClustering(N_GROUPS, n_init=1, memory_limit=4, random_state=0)
    model.fit(X[:300])

    def refused():
        with pytest.raises(ParameterError, match=r"eigenvectors of 1,500 samples .* memory_limit=4") as refusal:
            model.fit(X)
        return refusal

    peak, refusal = peak_of(refused)
    assert peak <= 4
    fitting = int(re.search(r"([\d,]+) samples would fit", str(refusal.value)).group(1).replace(",", ""))
    peak, _ = peak_of(lambda: model.fit(X[:fitting]))
    assert peak <= 1.15 * (4 + X[:fitting].nbytes / 2**20)
    with pytest.raises(ParameterError, match="would fit"):
        model.fit(X[: fitting + 30])


def test_samples_to_train_on_are_compared_some_rows_at_a_time():
    X = groups(900)
    op = DenseKernel(X @ X.T)
    seeds = {"wanted": 700, "selection": "entropy", "n_clusters": 3, "operators": lambda: [op]}
    free = training_samples(900, rng=np.random.default_rng(0), **seeds)
    peak, chosen = peak_of(
        lambda: training_samples(900, rng=np.random.default_rng(0), memory_limit=2, **seeds),
    )
    assert peak <= 1.15 * 2
    np.testing.assert_array_equal(chosen, free)


def test_columns_of_a_precomputed_kernel_are_copied_for_some_rows_at_a_time():
    X = groups(2500)
    K = X @ X.T
    columns = np.arange(0, 2500, 2)
    fitted = fit_kernel(K[np.ix_(columns, columns)], "precomputed", None, weights=np.ones(len(columns)))
    trained = TrainedKernel(fitted.for_new_samples(), columns)
    peak, sums = peak_of(lambda: trained.row_sums(K))
    assert peak <= 0.5 * K[:, columns].nbytes / 2**20
    np.testing.assert_allclose(sums, K[:, columns].sum(axis=1))


def test_a_fused_graph_shortens_its_search():
    rng = np.random.default_rng(0)
    near = np.arange(1400)
    W = sp.csr_array((np.ones(1400), (near, np.roll(near, -1))), shape=(1400, 1400))
    W = sp.csr_array(W + W.T + sp.random_array((1400, 1400), density=0.003, rng=rng).astype(bool).astype(float))
    W = sp.csr_array(W + W.T)
    usual = graph_eigenvectors(W, 12)
    work = search_mib(1400, 12, 5)
    peak, short = peak_of(lambda: graph_eigenvectors(W, 12, work=work))
    assert peak <= 1.15 * work
    assert short.residual <= max(usual.residual, EIGEN_TOLERANCE)
    np.testing.assert_allclose(short.values, usual.values, atol=1e-6)


def test_what_is_kept_of_wide_samples_leaves_a_search_less_room():
    rooms = []
    for width in (4, 1000):
        kernel = fit_kernel(groups(400, width), "rbf")
        rooms.append(room_for_search([kernel], [kernel.operator("blockwise", 8)], 3, 8))
    kept = 400 * 1002 * 8 / 2**20  # columns, and two numbers of every sample
    assert rooms == [8.0, pytest.approx(8.0 - (kept - 1.0), abs=0.02)]  # a MiB is free


def test_a_search_returns_one_block_however_many_it_went_on_from():
    for kept in (1, 2):
        _, block, _ = leading_vectors(decaying(400), 400, 3, 1e-9, kept=kept, depth=4)
        assert block.shape == (400, 7)
        assert block.base is None or block.base.size == block.size


WIDE = 1000  # columns


def wide_samples(n):
    """Return samples of three groups in single precision: all other eigenvectors are noise, and hard to find."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, WIDE)).astype(np.float32)
    X[np.arange(n), np.arange(n) % 3] += 6.0
    return X


def counting(monkeypatch, cls):
    """Return a list that grows by the number of vectors in each product of a kind of kernels."""
    widths = []
    product = cls.matmat
    monkeypatch.setattr(cls, "matmat", lambda op, H: (widths.append(H.shape[1]), product(op, H))[1])
    return widths


@pytest.mark.parametrize(("estimator", "most"), [(NgSpectralClustering, 20), (KernelSpectralClustering, 30)])
def test_wide_samples_leave_their_room_to_the_search(estimator, most, monkeypatch):
    X = wide_samples(500)
    options = {} if estimator is KernelSpectralClustering else {"n_init": 1}
    free = estimator(5, random_state=0, **options).fit(X)
    # The samples take 3.8 MiB in double precision, the shortest basis 0.4 and a whole one 1.4; one MiB is free.
    limit = 3.9
    short = counting(monkeypatch, BlockwiseKernel)
    widths = counting(monkeypatch, LeanKernel)
    model = estimator(5, random_state=0, memory_limit=limit, **options)
    peak, _ = peak_of(lambda: model.fit(X))
    assert not short
    assert len(widths) <= most  # 15 and 23; beside samples that are kept there were 26 and 36
    assert max(widths) > 5 + GUARD
    assert peak <= 1.15 * limit + 0.15 * X.nbytes / 2**20
    np.testing.assert_array_equal(model.labels_, free.labels_)
    np.testing.assert_allclose(model.eigenvalues_, free.eigenvalues_, atol=1e-8)
    assert (model.predict(X[:50]) == free.predict(X[:50])).mean() >= 0.95  # some are all but on the border


def test_samples_that_leave_room_for_a_whole_basis_are_kept(monkeypatch):
    X = wide_samples(500)
    usual = counting(monkeypatch, BlockwiseKernel)
    lean = counting(monkeypatch, LeanKernel)
    NgSpectralClustering(5, n_init=1, memory_limit=4.3, random_state=0).fit(X)
    assert usual
    assert not lean


def test_samples_of_which_some_are_trained_on_are_kept(monkeypatch):
    lean = counting(monkeypatch, LeanKernel)
    X = wide_samples(540)
    X[:, 3:] *= 0.1  # a search that ends soon
    KernelSpectralClustering(5, n_train_samples=500, memory_limit=3.9, random_state=0).fit(X)
    assert not lean


def test_spare_vectors_widen_blocks_and_then_deepen_the_basis():
    usual = search_within(40.0, 8000, 9, 4)
    assert usual == Search(kept=4)
    wide = search_within(40.0, 8000, 9, 4, spare=60)
    assert wide.depth == WIDE_DEPTH
    assert GUARD < wide.extra < GUARD + 60
    assert search_mib(8000, 9, wide.depth, wide.extra) <= 40.0 < search_mib(8000, 9, wide.depth, wide.extra + 1)
    assert search_within(np.inf, 8000, 9, 4, spare=60) == Search(DEPTH, DEPTH // 2, wide.restarts // 2, GUARD + 60)
    # Where there is no room for wider blocks, the search is the usual one.
    narrow = search_mib(8000, 9, 4)
    assert search_within(narrow, 8000, 9, 4, spare=60) == search_within(narrow, 8000, 9, 4)


def test_wide_blocks_need_fewer_products():
    n = 1500
    counts = []
    for extra in (GUARD, GUARD + 40):
        widths = []

        def product(block, widths=widths):
            widths.append(block.shape[1])
            return decaying(n)(block)

        values, block, residual = leading_vectors(product, n, 20, 1e-7, depth=WIDE_DEPTH, kept=3, extra=extra)
        assert residual <= 1e-7
        assert block.shape == (n, 20 + extra)
        np.testing.assert_allclose(values[:20], 0.97 ** np.arange(20), rtol=1e-10)
        counts.append(len(widths))
    assert counts[1] < 0.7 * counts[0]


@pytest.mark.filterwarnings("ignore::UserWarning")  # two steps are few
def test_wide_samples_of_several_views_leave_their_room_to_the_search(monkeypatch):
    X = wide_samples(500)
    views = [X, np.roll(X, 1, axis=0)[:, ::-1].copy()]
    options = {"n_clusters": 5, "n_init": 1, "max_iter": 2, "random_state": 0}
    free = MultiViewSpectralClustering(**options).fit(views)
    limit = 7.75  # the samples take 7.6 MiB
    short = counting(monkeypatch, BlockwiseKernel)
    widths = counting(monkeypatch, LeanKernel)
    model = MultiViewSpectralClustering(**options, memory_limit=limit)
    peak, _ = peak_of(lambda: model.fit(views))
    assert not short
    assert len(widths) <= 2 * 60
    assert max(widths) > 5 + GUARD
    assert peak <= 1.15 * limit + 0.15 * 2 * X.nbytes / 2**20
    assert (model.labels_ == free.labels_).mean() >= 0.97  # k-means on noise, which is found less exactly here
    np.testing.assert_allclose(model.objective_, free.objective_, rtol=1e-6)
    np.testing.assert_allclose(model.view_weights_, free.view_weights_, atol=1e-5)
    kept = [view.kernel.kept_mib for view in model._model.extension.kernel.kernels.kernels]
    assert min(kept) > 3.5  # new samples meet prepared ones


@pytest.mark.parametrize("limit", [6, 8])
def test_as_many_samples_of_a_graph_as_are_named_fit(limit):
    X = np.random.default_rng(0).standard_normal((4000, 4))

    def room(n):
        kernel = fit_kernel(X[:n], "nearest_neighbors")
        return room_for_search([kernel], [kernel.operator()], 20, limit)

    with pytest.raises(ParameterError, match="would fit") as refusal:
        room(len(X))
    fitting = int(re.search(r"([\d,]+) samples would fit", str(refusal.value)).group(1).replace(",", ""))
    assert room(fitting) > 0  # a sample has more edges among fewer samples


def test_tiles_of_samples_that_are_not_kept_are_set_aside():
    X = wide_samples(400)
    kernel = fit_kernel(X, "rbf").unprepared(X, 9.0)
    op = kernel.operator()
    assert op.tiles_mib > 0
    assert room_for_search([kernel], [op], 3, 9.0) == pytest.approx(9.0 - op.tiles_mib)


@pytest.mark.parametrize(("depth", "often"), [(DEPTH, False), (3, True)])
def test_a_short_search_gives_memory_back_at_every_product(monkeypatch, depth, often):
    given_back = []
    products = []
    monkeypatch.setattr(eigenvectors, "return_freed_memory", lambda: given_back.append(len(products)))

    def product(block):
        products.append(block.shape[1])
        return decaying(6000)(block)

    leading_vectors(product, 6000, 12, 1e-3, depth=depth, kept=2)
    assert len(products) > 3
    # Gaps that blocks leave in the heap were 10 MiB at a limit of 64. A whole basis has room beside it.
    assert (set(range(2, len(products) + 1)) <= set(given_back)) is often
