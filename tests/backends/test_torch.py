"""Pieces of the torch backend, by torch on the processor."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.backends import get_backend, get_device_backend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.solvers.kmeans import global_search
from kernelweave.solvers.kmeans.global_search import global_kernel_kmeans
from tests.strategies import generators, moves, partitions, sample_weights, samples
from tests.torch_devices import needs_torch

torch = needs_torch()

from kernelweave.backends.torch import TorchArray, candidates, digits, fused, sparse  # noqa: E402 - if there is torch
from kernelweave.backends.torch import backend as torch_backend  # noqa: E402

few = settings(max_examples=20, deadline=None)


# Arrays


def test_arrays_mix_with_numbers_small_arrays_and_their_like():
    backend = get_device_backend("cpu")
    values = np.arange(6.0).reshape(3, 2)
    array = backend.array(values.copy())
    row = np.array([10.0, 20.0])
    other = backend.array(values + 1.0)
    for result, wanted in (
        (array + row, values + row),
        (row + array, values + row),
        (row - array, row - values),
        (array / other, values / (values + 1.0)),
        (2.0**array, 2.0**values),
        (np.float64(3.0) * array, 3.0 * values),
        (-abs(array - 2.0), -abs(values - 2.0)),
        (array[:, 0][:, None] * row, values[:, :1] * row),
        (array[:, 1:], values[:, 1:]),
        (array >= other, values >= values + 1.0),
        (~(array > 2.0), ~(values > 2.0)),
    ):
        np.testing.assert_array_equal(backend.host(result), wanted)
    array += row
    array *= 2.0
    np.testing.assert_array_equal(backend.host(array), 2.0 * (values + row))


def test_arrays_reach_the_host_on_request_alone():
    array = get_device_backend("cpu").array(np.ones(3))
    for careless in (np.asarray, bool, list):
        with pytest.raises(TypeError, match="torch device"):
            careless(array)
    with pytest.raises(TypeError):
        np.sqrt(array)


def test_frozen_and_reversed_arrays_are_copied_and_others_are_left_as_they_are():
    backend = get_device_backend("cpu")
    values = np.arange(4.0)
    frozen = values.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(backend.host(backend.array(frozen)), values)
    np.testing.assert_array_equal(backend.host(backend.array(values[::-1])), values[::-1])
    labels = np.array([0, 1, 1])
    backend.labels(labels).tensor[0] = 5
    assert labels.tolist() == [0, 1, 1]
    there = backend.labels(labels)
    backend.labels(there).tensor[0] = 5
    assert backend.host(there).tolist() == [0, 1, 1]


def test_asymmetry_and_values_that_are_not_finite_are_found():
    backend = get_device_backend("cpu")
    K = rbf_kernel(np.random.default_rng(0).standard_normal((6, 2)))
    K[4, 1] += 0.5
    gap, peak, i, j = backend.asymmetry(backend.array(K))
    assert (gap, peak, i, j) == (pytest.approx(0.5), np.abs(K).max(), 1, 4)
    K[2, 3] = np.nan
    assert backend.asymmetry(backend.array(K)) == (np.inf, np.inf, 2, 3)


def test_arrays_without_room_on_the_device_stay_in_main_memory_and_their_rows_are_brought(monkeypatch):
    backend = get_device_backend("cpu")
    rng = np.random.default_rng(0)
    K = rbf_kernel(rng.standard_normal((9, 2)))
    assert backend.kept(K).tensor.dtype == torch.float64
    monkeypatch.setattr(type(backend), "_room", lambda self: 10.0)
    monkeypatch.setattr(type(backend), "_streams", lambda self, array: True)
    monkeypatch.setattr(torch_backend, "HELD", 20)  # two rows at a time
    kept = backend.kept(K)
    H = rng.standard_normal((9, 3))
    np.testing.assert_allclose(backend.host(backend.product(kept, H)), K @ H, rtol=1e-12)
    labels = backend.labels(np.arange(9) % 3)
    sums = backend.cluster_sums(kept, labels, backend.ones(9), 3)
    after = backend.labels(np.arange(9) // 3)
    backend.move_sums(sums, kept, backend.moves(labels, after), backend.ones(9))
    np.testing.assert_allclose(backend.host(sums), np.stack([K[3 * c : 3 * c + 3].sum(axis=0) for c in range(3)]))


# Sparse features


def sparse_table(rng, n, d):
    """Return features with empty rows and columns, and entries that are given in two parts."""
    X = np.where(rng.random((n, d)) < 0.3, rng.standard_normal((n, d)), 0.0)
    X[0] = 0.0
    X[:, d // 2] = 0.0
    edges = sp.coo_array(X)
    halves = (np.tile(0.5 * edges.data, 2), (np.tile(edges.row, 2), np.tile(edges.col, 2)))
    table = sp.coo_array(halves, shape=X.shape)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(table.row, minlength=n))])
    order = np.argsort(table.row, kind="stable")
    return X, sp.csr_array((table.data[order], table.col[order], indptr), shape=X.shape)


@few
@given(generators(), st.integers(3, 12), st.integers(2, 9), st.sampled_from([2**26, 20]), st.data())
def test_sparse_features_there_are_those_of_the_host(rng, n, d, held, data):
    X, table = sparse_table(rng, n, d)
    given_data = table.data.copy()
    here = get_backend()
    there = get_device_backend("cpu")
    labels, k = data.draw(partitions(n))
    weights = data.draw(sample_weights(n))
    moved, new = data.draw(moves(labels, k))
    after = labels.copy()
    after[moved] = new
    means = rng.standard_normal((k, d))
    norms = np.square(means).sum(axis=1)
    known = (means, norms, there.labels(labels))
    plain = (means, norms, labels)
    diag = np.square(X).sum(axis=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_backend, "HELD", held)  # all at once, and few clusters or rows at a time
        Phi = there.kept_sparse(table)
        np.testing.assert_allclose(there.host(there.squared_lengths(Phi)), diag, atol=1e-12)
        np.testing.assert_allclose(there.feature_products(Phi, weights[:, None]), X.T @ weights[:, None], atol=1e-12)
        np.testing.assert_allclose(there.host(there.spread(Phi, means.T)), X @ means.T, atol=1e-12)
        np.testing.assert_allclose(there.host(there.spread_rows(Phi, means)), means @ X.T, atol=1e-12)
        np.testing.assert_array_equal(there.at(Phi, np.array([n - 1, 0])), X[[n - 1, 0]])
        sums = there.feature_sums(Phi, there.labels(labels), there.array(weights), k)
        np.testing.assert_allclose(sums, here.feature_sums(X, labels, weights, k), atol=1e-12)
        steps = there.moves(there.labels(labels), there.labels(after))
        change = there.moved_features(Phi, steps, there.array(weights), k)
        np.testing.assert_allclose(sums + change, here.feature_sums(X, after, weights, k), atol=1e-12)
        found = there.nearest_means(Phi, *known, 1e-9, there.array(diag), np.ones(k))
        wanted = here.nearest_means(X, *plain, 1e-9, diag, np.ones(k))
        np.testing.assert_array_equal(there.host(found.labels), wanted.labels)
        np.testing.assert_allclose(there.host(found.distances), wanted.distances, atol=1e-11)
        own = there.host(there.distances_to_means(Phi, *known, there.array(diag)))
        np.testing.assert_allclose(own, here.distances_to_means(X, *plain, diag), atol=1e-11)
        joined = there.join([Phi, Phi])
        np.testing.assert_allclose(there.host(there.squared_lengths(joined)), 2.0 * diag, atol=1e-12)
    np.testing.assert_array_equal(table.data, given_data)


@few
@given(generators(), st.integers(2, 12), st.integers(2, 9), st.sampled_from([2**26, 20]))
def test_rows_of_few_entries_are_taken_and_multiplied_without_the_table(rng, n, d, held):
    X, table = sparse_table(rng, n, d)
    rows = get_device_backend("cpu").kept_sparse(table).rows
    chosen = rng.integers(n, size=n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "DENSE_AT_ONCE", held)
        pairs = ((slice(1, n), chosen), (chosen, slice(0, 0)), (chosen, slice(None)), (slice(0, n, 2), slice(1)))
        for some, other in pairs:
            left = rows[torch.tensor(some) if some is chosen else some]
            right = rows[torch.tensor(other) if other is chosen else other]
            np.testing.assert_allclose(left.inner(right).numpy(), X[some] @ X[other].T, atol=1e-12)
    np.testing.assert_allclose(rows[torch.tensor(chosen)][1:].squared_lengths(), np.square(X[chosen][1:]).sum(axis=1))


def test_sparse_features_without_room_on_the_device_are_not_placed(monkeypatch):
    backend = get_device_backend("cpu")
    _, table = sparse_table(np.random.default_rng(0), 9, 4)
    needed = 2 * 16 * table.nnz + 8 * (9 + 4)
    for room, fits in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(type(backend), "_room", lambda self, room=room: room)
        assert (backend.kept_sparse(table) is not None) == fits


# Views that lack samples


def test_samples_of_a_view_are_taken_and_added_to():
    backend = get_device_backend("cpu")
    known = backend.labels(np.array([2, 0]))
    assert backend.host(backend.take(backend.array(np.array([3.0, 4.0, 5.0])), known)).tolist() == [5.0, 3.0]
    sums = backend.array(np.ones((2, 3)))
    backend.add_to_samples(sums, known, backend.array(np.array([[1.0, 2.0], [3.0, 4.0]])))
    assert backend.host(sums).tolist() == [[3.0, 1.0, 2.0], [5.0, 1.0, 4.0]]


@few
@given(generators(), st.integers(3, 12), st.sampled_from([2**26, 20]))
def test_sums_over_pairs_there_are_those_of_the_host(rng, n, held):
    here = get_backend()
    there = get_device_backend("cpu")
    samples = [np.sort(rng.permutation(n)[: rng.integers(1, n + 1)]) for _ in range(3)]
    kernels = [rng.standard_normal((len(known), len(known))) for known in samples]
    kernels[1] = kernels[1].astype(np.float32)
    coefficients = np.array([0.5, 1.0 / 3.0, 0.0])
    pattern = rng.integers(3, size=n)
    factors = rng.standard_normal((3, 3))
    wanted = here.sum_of_pairs(kernels, samples, coefficients, pattern, factors)
    plain = np.zeros((n, n))
    for K, known, c in zip(kernels, samples, coefficients, strict=True):
        plain[np.ix_(known, known)] += c * K.astype(np.float64)
    np.testing.assert_allclose(wanted, plain * factors[pattern][:, pattern], rtol=1e-14)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_backend, "HELD", held)  # a few rows at a time
        total = there.sum_of_pairs(
            [there.array(K, K.dtype) for K in kernels],
            [there.labels(known) for known in samples],
            coefficients,
            there.labels(pattern),
            factors,
        )
        np.testing.assert_allclose(there.host(total), wanted, rtol=1e-14)
        there.add_to_pairs(total, there.labels(pattern), factors)
    here.add_to_pairs(wanted, pattern, factors)
    np.testing.assert_allclose(there.host(total), wanted, rtol=1e-13)
    np.testing.assert_allclose(wanted, (plain + 1.0) * factors[pattern][:, pattern], rtol=1e-12, atol=1e-13)


# Fused sums


@few
@given(samples(min_n=2, max_n=30), st.data())
def test_groups_of_moves_change_sums_as_a_pass_over_the_new_clusters_does(X, data):
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    rough = fused.FusedSums(torch.tensor(X))
    mass = torch.tensor(weights)
    after = np.roll(labels, 1)
    moved = torch.tensor(np.flatnonzero(after != labels))
    old = torch.tensor(labels)[moved]
    new = torch.tensor(after)[moved]
    sums = torch.zeros(k, len(X), dtype=torch.float64)
    rough.add_sums(sums, fused.Groups.by_cluster(torch.tensor(labels), k), mass)
    rough.add_sums(sums, fused.Groups.of_moves(moved, old, new, k), mass)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    wanted = np.stack([K @ np.where(after == c, weights, 0.0) for c in range(k)])
    error = float(rough.relative_errors().max())
    np.testing.assert_allclose(sums.numpy(), wanted, rtol=0, atol=2 * error * weights.sum() + 1e-12)


def test_error_bounds_follow_the_length_of_samples_and_the_precision():
    X = torch.tensor(np.random.default_rng(0).standard_normal((50, 8)))
    near = fused.FusedSums(0.1 * X).relative_errors()
    far = fused.FusedSums(10.0 * X).relative_errors()
    assert (far > near).all()
    assert (fused.FusedSums(X, "tf32").relative_errors() > 10 * fused.FusedSums(X).relative_errors()).all()
    order = torch.argsort((X**2).sum(dim=1))
    bounds = fused.FusedSums(X).relative_errors()[order]
    assert (bounds.diff() >= 0).all()


@pytest.mark.parametrize(("width", "padded"), [(1, 16), (16, 16), (17, 32), (128, 128), (129, 256), (300, 384)])
def test_features_are_padded_to_what_tiles_take(width, padded):
    assert fused.FusedSums(torch.zeros(3, width, dtype=torch.float64)).high.shape == (3, padded)


@few
@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.sampled_from([1, 16, 32]))
def test_groups_are_padded_to_whole_tiles(counts, multiple):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))]
    groups = fused.Groups.by_cluster(labels, len(counts))
    padded = fused.Padded(groups, multiple)
    assert padded.starts.tolist() == [0, *np.cumsum([-(-count // multiple) * multiple for count in counts])]
    values = torch.arange(1.0, len(labels) + 1)
    there = padded.padded(values, -1.0)
    assert len(there) == padded.size == padded.starts[-1]
    owners = padded.groups_of_blocks().repeat_interleave(multiple)
    for c, count in enumerate(counts):
        own = there[owners == c]
        assert sorted(own[own > 0].tolist()) == sorted(values[labels == c].tolist())
        assert len(own) - int((own > 0).sum()) == -count % multiple


# Sums in fixed point


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_first_digits_are_off_by_no_more_than_they_say(scale):
    rng = np.random.default_rng(0)
    K = torch.tensor(scale * rng.uniform(-1.0, 1.0, (60, 60)))
    matrix = digits.DigitMatrix(K, torch.ones(60, dtype=torch.float64), whole=False)
    rows = torch.tensor(rng.random((20, 60)) < 0.5).to(torch.int8)
    off = (matrix.sums(rows, digits.FIRST) - matrix.sums(rows)).abs()
    counts = rows.sum(dim=1, keepdim=True)
    assert (off <= counts * matrix.error).all()
    assert float(off.max()) > 0.01 * matrix.error
    assert digits.DigitMatrix(K, torch.ones(60, dtype=torch.float64), whole=True).error == 0.0


@few
@given(samples(min_n=2, max_n=40), st.data())
def test_sums_of_digits_are_those_of_double_precision(X, data):
    weights = torch.tensor(data.draw(sample_weights(len(X))))
    K = torch.tensor(X @ X.T)
    rows = torch.tensor(np.random.default_rng(0).random((5, len(X))) < 0.5)
    exact = (rows.to(torch.float64) * weights) @ K
    size = float((K.abs() * weights).max())
    for whole in (True, False):
        found = digits.DigitMatrix(K, weights, whole=whole).sums(rows.to(torch.int8))
        assert float((found - exact).abs().max()) <= len(X) * 2.0**-46 * size + 1e-300


def test_the_largest_and_smallest_numbers_have_digits():
    for value in (1.0, -1.0, 1.0 - 2.0**-50, -0.5, 1e-12, 0.0):
        K = torch.full((3, 3), value, dtype=torch.float64)
        matrix = digits.DigitMatrix(K, torch.ones(3, dtype=torch.float64), whole=False)
        found = matrix.sums(torch.eye(3, dtype=torch.int8))
        assert torch.allclose(found, K, rtol=2.0**-45, atol=0)


# Runs from many candidates


def objectives(op, labels, weights, pool, max_iter=300):
    partition = op.partition(labels, weights, int(labels.max()) + 1)
    return global_search._objectives(partition, pool, max_iter, np.inf)


def samples_and_kernel(kind, rng):
    n = 40 if kind == "gaussian" else 24
    X = rng.standard_normal((n, 3))
    if kind == "few distinct samples":
        X = X[rng.integers(5, size=n)]
    K = rbf_kernel(X, gamma=0.5)
    noise = rng.standard_normal((n, n))
    if kind == "signs":
        return n, np.sign(noise + noise.T)
    return n, K + noise + noise.T if kind == "indefinite" else K


@pytest.mark.parametrize(
    ("kind", "seed", "room", "max_iter"),
    [  # room of 0: in fixed point
        *(("gaussian", seed, 0, 300) for seed in range(3)),
        *(("signs", seed, 0, 300) for seed in range(3)),
        *(("few distinct samples", seed, 0, 300) for seed in range(3)),
        ("gaussian", 0, 2**26, 300),
        ("gaussian", 1, 2**14, 300),  # in several batches
        ("gaussian", 2, 2**26, 2),  # cut short
        *(("gaussian", seed, 2**26, 4) for seed in range(3, 7)),
        *(("indefinite", seed, 2**26, 300) for seed in range(4)),
        *(("signs", seed, 2**26, 300) for seed in range(6)),
        *(("few distinct samples", seed, 2**26, 300) for seed in range(4)),
    ],
)
def test_runs_in_batches_end_where_compiled_ones_end(kind, seed, room, max_iter, monkeypatch):
    monkeypatch.setattr(candidates, "HOST_BYTES", room or 2**26)
    if room == 0:
        monkeypatch.setattr(candidates, "DigitMatrix", partial(digits.DigitMatrix, whole=False))
    rng = np.random.default_rng(seed)
    n, K = samples_and_kernel(kind, rng)
    weights = rng.uniform(0.5, 2.0, n) * (rng.random(n) < 0.9)
    labels = rng.integers(2, size=n)
    pool = np.flatnonzero(weights > 0)
    backend = get_device_backend("cpu")
    psd = None if kind in ("indefinite", "signs") else True
    wanted = objectives(DenseKernel(K, psd=psd), labels, weights, pool, max_iter)
    found = objectives(DenseKernel(backend.array(K), psd=psd, backend=backend), labels, weights, pool, max_iter)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", ["gaussian", "few distinct samples", "indefinite"])
def test_what_few_digits_leave_open_is_decided_by_all_of_them(kind, count, monkeypatch):
    """With one digit of eight bits most steps are open, and with two some are."""
    monkeypatch.setattr(candidates, "DigitMatrix", partial(digits.DigitMatrix, whole=False))
    for module in (digits, candidates):
        monkeypatch.setattr(module, "FIRST", count)
    backend = get_device_backend("cpu")
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, K = samples_and_kernel(kind, rng)
        labels = rng.permutation(np.arange(n) % (2 + seed))
        weights = np.ones(n)
        wanted = objectives(DenseKernel(K), labels, weights, np.arange(n))
        found = objectives(DenseKernel(backend.array(K), backend=backend), labels, weights, np.arange(n))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [None, 1])
def test_a_step_onto_the_path_of_another_run_counts_only_if_it_falls(count, monkeypatch):
    """Among these kernels, which are not positive semidefinite, some runs come to such a path from below."""
    if count is not None:  # in fixed point, where one digit leaves most falls open
        monkeypatch.setattr(candidates, "DigitMatrix", partial(digits.DigitMatrix, whole=False))
        for module in (digits, candidates):
            monkeypatch.setattr(module, "FIRST", count)
    backend = get_device_backend("cpu")
    for seed in (22, 27, 42, 45, 47, 55, 60, 82, 87, 88):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 14))
        X = rng.standard_normal((n, 4))
        K = X @ np.diag([3.0, 2.0, 1.0, -2.5]) @ X.T
        labels = rng.integers(2, size=n)
        labels[:2] = [0, 1]
        ops = (DenseKernel(K), DenseKernel(backend.array(K), backend=backend))
        wanted, found = (objectives(op, labels, np.ones(n), np.arange(n)) for op in ops)
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_runs_that_end_with_equal_centres_are_left_to_the_general_solver():
    """Two clusters are equal mixtures of two samples; when the third is split, one of them is free for the rest."""
    X = np.repeat(np.array([[0.0], [4.0], [20.0], [29.0]]), 8, axis=0)
    K = rbf_kernel(X, gamma=0.01)
    backend = get_device_backend("cpu")
    op = DenseKernel(backend.array(K), psd=True, backend=backend)
    labels = np.concatenate([np.full(16, 2), np.arange(16) % 2])
    found = objectives(op, labels, np.ones(32), np.arange(16))
    np.testing.assert_allclose(found, 0.0, atol=1e-9)


def test_most_runs_meet_another_one():
    rng = np.random.default_rng(0)
    X = 4.0 * rng.standard_normal((4, 2))[np.arange(80) % 4] + rng.standard_normal((80, 2))
    backend = get_device_backend("cpu")
    op = DenseKernel(backend.array(rbf_kernel(X, gamma=0.1)), psd=True, backend=backend)
    partition = op.partition(np.zeros(80, dtype=np.intp), np.ones(80), 1)
    runs = partition.run_candidates(np.arange(80), 300)
    assert len(np.unique(runs.ends)) < 20
    assert np.isfinite(runs.objectives[np.unique(runs.ends)]).all()


def test_partitions_are_found_again_by_who_came_first():
    rng = np.random.default_rng(0)
    visited = candidates.Visited(4, 2, torch.device("cpu"))
    known = {}
    for step in range(30):
        keys = np.unique(rng.integers(-(2**40), 2**40, (int(rng.integers(0, 9)), 2)), axis=0)
        keys = keys[rng.permutation(len(keys))]
        assert (visited.find(keys) == -1).all()
        owners = rng.integers(100, size=len(keys))
        visited.enter(keys, owners, step, owners / 7.0)
        known |= {tuple(key): (owner, step) for key, owner in zip(keys.tolist(), owners, strict=True)}
        every = np.array(list(known), dtype=np.int64).reshape(-1, 2)
        found = visited.find(every)
        wanted = np.array(list(known.values())).reshape(-1, 2)
        np.testing.assert_array_equal(visited.owners[found], wanted[:, 0])
        np.testing.assert_array_equal(visited.steps[found], wanted[:, 1])
        np.testing.assert_array_equal(visited.objectives[found], wanted[:, 0] / 7.0)
        assert (visited.find(every + np.array([0, 1])) == -1).all()


def test_of_equal_partitions_the_first_goes_on():
    keys = np.array([[5, 1], [3, 0], [5, 1], [3, 1], [3, 0], [5, 1], [9, 9]])
    going, waiting, leaders = candidates._first_of_equal(keys, np.array([0, 1, 2, 3, 4, 5]))
    assert going.tolist() == [0, 1, 3]
    assert sorted(zip(waiting.tolist(), leaders.tolist(), strict=True)) == [(2, 0), (4, 1), (5, 0)]
    assert [len(part) for part in candidates._first_of_equal(keys, np.empty(0, dtype=np.intp))] == [0, 0, 0]


def test_runs_after_the_deadline_are_left_out():
    X = np.random.default_rng(0).standard_normal((30, 2))
    backend = get_device_backend("cpu")
    op = DenseKernel(backend.array(rbf_kernel(X)), psd=True, backend=backend)
    partition = op.partition(np.zeros(30, dtype=np.intp), np.ones(30), 1)
    assert (partition.run_candidates(np.arange(30), 300, -1.0).ends == -1).all()
    path = global_kernel_kmeans(op, np.ones(30), n_clusters=3, how="exact", deadline=-1.0)
    assert not path.complete


def test_the_kernel_in_fixed_point_is_made_once_for_all_stages_of_equal_weights(monkeypatch):
    made = []
    usual = digits.DigitMatrix

    def counted(*args):
        made.append(args)
        return usual(*args)

    monkeypatch.setattr(candidates, "DigitMatrix", counted)
    backend = get_device_backend("cpu")
    K = backend.array(rbf_kernel(np.random.default_rng(0).standard_normal((30, 2))))
    op = DenseKernel(K, psd=True, backend=backend)
    global_kernel_kmeans(op, np.ones(30), n_clusters=4, how="exact")
    assert len(made) == 1
    global_kernel_kmeans(op, np.full(30, 2.0), n_clusters=3, how="exact")
    assert len(made) == 2


def test_arrays_describe_themselves():
    assert repr(TorchArray(torch.zeros(2, 3))) == "TorchArray(shape=(2, 3), dtype=torch.float32, device=cpu)"
