"""Backends on this machine: every verb of the protocol, by its definition, with compiled loops and with plain ones."""

import copy
import inspect
import pickle
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from kernelweave.backends import BACKENDS, Assignment, Backend, get_backend, host, tiling
from kernelweave.backends.compiled import row_loops
from kernelweave.backends.compiled.clock import CompileClock
from kernelweave.backends.host import HostBackend
from kernelweave.foundation import threads
from tests.strategies import generators, indefinite_kernels, moves, partitions, psd_kernels, sample_weights, samples

laws = settings(max_examples=30, deadline=None)
VERBS = [name for name in vars(Backend) if not name.startswith("_")]
dtypes = st.sampled_from([np.float32, np.float64])
kernels = st.one_of(psd_kernels(), indefinite_kernels())


def on_both(verb, *arguments):
    """Return what a verb returns, the same with compiled and with plain loops; arguments are left as they were."""
    results = []
    for name in BACKENDS:
        passed = copy.deepcopy(arguments)
        results.append(getattr(get_backend(name), verb)(*passed))
        for argument, original in zip(passed, arguments, strict=True):
            if not isinstance(argument, np.random.Generator):
                assert_same(argument, original)
    assert_same(*results, atol=1e-12)
    return results[0]


def changed_by_both(verb, array, *arguments):
    """Return the array that a verb changes in place, the same with compiled and with plain loops."""
    results = []
    for name in BACKENDS:
        changed = array.copy()
        assert getattr(get_backend(name), verb)(changed, *copy.deepcopy(arguments)) is None
        results.append(changed)
    assert_same(*results, atol=1e-12)
    return results[0]


def assert_same(one, other, atol=0.0):
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), atol)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b, atol)
    elif sp.issparse(one):
        assert (one != other).nnz == 0
    elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
        size = np.abs(one[np.isfinite(one)]).max(initial=1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=atol * size)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=atol, abs=atol, nan_ok=True)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif not callable(one):
        assert one == other


def close(result, wanted, size=1.0):
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-11 * max(size, 1.0))


@st.composite
def clusterings(draw, max_n=16):
    """Draw a kernel matrix, features, labels, weights and the number of clusters, the last of which has no member."""
    X = draw(samples(max_n=max_n))
    labels, k = draw(partitions(len(X)))
    return X @ X.T, X, labels, draw(sample_weights(len(X))), k + 1


def indicators(labels, weights, k):
    return weights[:, None] * (labels[:, None] == np.arange(k))


def after(labels, moved, new):
    labels = labels.copy()
    labels[moved] = new
    return labels


def plain_clusters(K, labels, weights, k):
    """Return sums, totals and norms of clusters."""
    H = indicators(labels, weights, k)
    totals = H.sum(axis=0)
    norms = np.full(k, np.inf)
    filled = totals > 0
    norms[filled] = np.diagonal(H.T @ K @ H)[filled] / totals[filled] ** 2
    return H.T @ K, totals, norms


# --- the protocol ----------------------------------------------------------------------------------------------------


def test_the_backend_has_every_member_of_the_protocol_with_the_same_parameters():
    backend = HostBackend("numba")
    for name in [*VERBS, *Backend.__annotations__]:
        assert hasattr(backend, name), name
    for name in VERBS:
        wanted = vars(Backend)[name]
        if inspect.isfunction(wanted):
            ours = inspect.signature(getattr(HostBackend, name))
            assert list(ours.parameters) == list(inspect.signature(wanted).parameters), name
            defaults = [p.default for p in inspect.signature(wanted).parameters.values()]
            assert [p.default for p in ours.parameters.values()] == defaults, name


def test_every_verb_of_the_protocol_is_tested_here():
    source = Path(__file__).read_text()
    assert [name for name in VERBS if f'"{name}"' not in source and f".{name}" not in source] == []


def test_a_backend_is_made_once_and_comes_back_from_a_pickle():
    for name in BACKENDS:
        assert get_backend(name) is get_backend(name)
        assert pickle.loads(pickle.dumps(get_backend(name))).name == name
    assert get_backend() is get_backend("numba")


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"'fortran'.*'numba' or 'numpy'"):
        get_backend("fortran")


def test_searches_are_offered_by_compiled_loops_alone():
    compiled, plain = (get_backend(name) for name in BACKENDS)
    for verb in ("grow", "best_splits", "sweep", "farthest"):
        assert callable(getattr(compiled.graph_moves, verb))
    for verb in ("descend", "descend_near", "release"):
        assert callable(getattr(compiled.margin_dual, verb))
    assert callable(compiled.run_candidates)
    assert callable(compiled.steps)
    for verb in ("cluster_sums", "move_sums"):
        assert callable(getattr(compiled.gaussian_sums, verb))
    abilities = (plain.run_candidates, plain.graph_moves, plain.margin_dual, plain.steps, plain.gaussian_sums)
    assert abilities == (None,) * 5
    assert compiled.direct_limit == plain.direct_limit == host.DIRECT_LIMIT


def test_nothing_is_compiled_anew_for_arrays_that_may_only_be_read():
    backend = get_backend()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    labels, weights = np.arange(12) % 3, np.ones(12)
    changes = backend.moves(labels, np.roll(labels, 1))

    def loops(K, Phi):
        backend.asymmetry(K)
        sums = backend.cluster_sums(K, labels, weights, 3)
        backend.move_sums(sums, K, changes, weights)
        backend.steps(K, weights, sums).step(changes, np.full(3, 4.0), 1e-9, backend.diagonal(K))
        backend.candidate_gains(K, backend.diagonal(K), weights, weights)
        backend.feature_sums(Phi, labels, weights, 3)
        backend.moved_features(Phi, changes, weights, 3)
        backend.nearest_means(Phi, X[:3], weights[:3], labels, 1e-9, weights, np.ones(3))

    K, Phi = X @ X.T, X.copy()
    loops(K, Phi)
    assert K.flags.writeable
    assert Phi.flags.writeable
    K.flags.writeable, Phi.flags.writeable = False, False
    with CompileClock() as clock:
        loops(K, Phi)
    assert clock.seconds == 0.0


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_arrays_of_the_host_are_taken_as_they_are_and_labels_are_copied():
    values = np.arange(3.0)
    labels = np.array([1, 0], dtype=np.int8)
    for backend in map(get_backend, BACKENDS):
        assert backend.array(values) is values
        assert backend.array([1, 2]).dtype == np.float64
        assert backend.array([1, 2], np.intp).dtype == np.intp
        assert backend.array(values.astype(np.float32), np.float32).dtype == np.float32
        assert backend.host(values) is values
        copied = backend.labels(labels)
        assert copied.dtype == np.intp
        copied[:] = 7
        assert labels.tolist() == [1, 0]
        assert backend.ones(3).tolist() == [1.0, 1.0, 1.0]


@laws
@given(rng=generators(), n=st.integers(0, 9))
def test_values_are_chosen_and_compared_element_by_element(rng, n):
    one, other = rng.standard_normal((2, n))
    np.testing.assert_array_equal(
        on_both("where", one < other, one, 0.5), [a if a < b else 0.5 for a, b in zip(one, other, strict=True)]
    )
    np.testing.assert_array_equal(on_both("minimum", one, other), [min(pair) for pair in zip(one, other, strict=True)])
    np.testing.assert_array_equal(on_both("maximum", one, 0.0), [max(a, 0.0) for a in one])


# --- numbers of all samples ------------------------------------------------------------------------------------------


@laws
@given(rng=generators(), n=st.integers(0, 9))
def test_totals_products_and_extremes_are_those_of_their_definition(rng, n):
    values, vector, table = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((n, 3))
    total = on_both("total", values)
    assert isinstance(total, float)
    close(total, sum(values))
    product = on_both("dot", vector, values)
    assert isinstance(product, float)
    close(product, sum(a * b for a, b in zip(vector, values, strict=True)))
    close(on_both("dot", vector, table), [sum(vector[i] * table[i, c] for i in range(n)) for c in range(3)])
    assert on_both("extremes", values) == (min(values, default=np.inf), max(values, default=-np.inf))


@pytest.mark.parametrize(
    ("condition", "first"), [([], -1), ([False], -1), ([True], 0), ([False, True, True], 1), ([False] * 4, -1)]
)
def test_the_first_sample_for_which_a_condition_holds(condition, first):
    assert on_both("first", np.array(condition, dtype=bool)) == first


@laws
@given(X=samples(), rng=generators())
def test_values_of_a_few_samples_come_to_the_host_dense(X, rng):
    chosen = rng.integers(len(X), size=3)
    np.testing.assert_array_equal(on_both("at", X[:, 0], chosen), X[chosen, 0])
    for features in (X, sp.csr_array(X)):
        values = on_both("at", features, chosen)
        assert isinstance(values, np.ndarray)
        np.testing.assert_array_equal(values, X[chosen])


@laws
@given(rng=generators(), n=st.integers(1, 12))
def test_samples_are_drawn_where_the_cumulated_mass_passes(rng, n):
    mass = rng.choice([0.0, 0.5, 2.0], size=n)
    mass[rng.integers(n)] = 1.0
    uniforms = np.append(rng.random(6), [0.0, 1.0 - 2.0**-53])
    drawn = on_both("draw", mass, uniforms)
    for sample, uniform in zip(drawn, uniforms, strict=True):
        assert sample == next(i for i in range(n) if mass[: i + 1].sum() > uniform * mass.sum())
        assert mass[sample] > 0


@laws
@given(seed=st.integers(0, 999), n=st.integers(1, 12), data=st.data())
def test_different_samples_are_drawn_as_a_generator_chooses_them(seed, n, data):
    mass = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], size=n)
    mass[seed % n] = 1.0
    count = data.draw(st.integers(1, int(np.count_nonzero(mass))))
    drawn = on_both("draw_distinct", mass, count, np.random.default_rng(seed))
    wanted = np.random.default_rng(seed).choice(n, count, replace=False, p=mass / mass.sum())
    np.testing.assert_array_equal(drawn, wanted)
    assert len(set(drawn.tolist())) == count
    assert (mass[drawn] > 0).all()


# --- labels ----------------------------------------------------------------------------------------------------------


@laws
@given(data=st.data(), case=clusterings())
def test_sums_by_cluster_and_what_moves_carry_between_clusters(data, case):
    _, _, labels, weights, k = case
    sums = on_both("segment_sums", labels, weights, k)
    close(sums, [weights[labels == c].sum() for c in range(k)])
    counts = on_both("segment_sums", labels, weights > 0, k)
    assert counts.dtype == np.float64
    assert counts.tolist() == [np.count_nonzero(weights[labels == c]) for c in range(k)]
    new = after(labels, *data.draw(moves(labels, k)))
    changes = on_both("moves", labels, new)
    assert changes.count == np.count_nonzero(new != labels)
    assert changes.samples.tolist() == np.flatnonzero(new != labels).tolist()
    assert changes.old.tolist() == labels[changes.samples].tolist()
    assert changes.new.tolist() == new[changes.samples].tolist()
    assert changes.labels.tolist() == new.tolist()
    carried = on_both("moved_sums", changes, weights, k)
    (again, twice) = get_backend().moved_sums_of(changes, [weights, 2.0 * weights], k)
    np.testing.assert_allclose(again, carried)
    np.testing.assert_allclose(twice, 2.0 * carried)
    close(carried, [weights[new == c].sum() - weights[labels == c].sum() for c in range(k)])


@laws
@given(data=st.data(), case=clusterings(), rng=generators())
def test_the_best_moves_are_those_of_least_gain_the_first_of_equals(data, case, rng):
    _, _, labels, _, k = case
    new = after(labels, *data.draw(moves(labels, k)))
    changes = get_backend().moves(labels, new)
    gains = rng.integers(-2, 3, size=len(labels)) + 1e-11 * rng.standard_normal(len(labels))  # equal but for rounding
    count = data.draw(st.integers(0, changes.count))
    moved = sorted(changes.samples.tolist(), key=lambda i: (round(gains[i], 9), i))[:count]
    wanted = after(labels, moved, new[moved])
    np.testing.assert_array_equal(on_both("best_moves", labels, changes, gains, count), wanted)


@laws
@given(case=clusterings(), rng=generators())
def test_labels_are_renamed_and_replaced_in_copies(case, rng):
    _, _, labels, _, k = case
    target = rng.permutation(k)
    assert on_both("relabel", labels, target).tolist() == [target[c] for c in labels]
    few = rng.permutation(len(labels))[:2]
    replaced = on_both("replace", labels, few, np.array([k, k + 1]))
    np.testing.assert_array_equal(replaced, after(labels, few, [k, k + 1]))
    none = on_both("replace", labels, np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))
    np.testing.assert_array_equal(none, labels)


@laws
@given(case=clusterings(), rng=generators(), unit=st.sampled_from([0.0, 1e-6, 1.0, 1e6]), count=st.integers(0, 20))
def test_the_farthest_samples_are_those_with_a_weight_the_first_of_equals(case, rng, unit, count):
    _, _, labels, weights, _ = case
    distances = (unit or 1.0) * rng.integers(0, 3, size=len(labels)).astype(float)
    distances *= 1.0 + (1e-12 * rng.standard_normal(len(labels)) if unit else 0.0)
    assignment = Assignment(labels, distances, 0.0)
    order = sorted(np.flatnonzero(weights > 0), key=lambda i: (-round(distances[i] / (unit or 1.0), 9), i))[:count]
    chosen, how_far, clusters = on_both("farthest", assignment, weights, unit, count)
    assert chosen.tolist() == order
    np.testing.assert_array_equal(how_far, distances[order])
    np.testing.assert_array_equal(clusters, labels[order])


def test_the_first_of_the_nearest_columns_is_taken_within_the_tolerance():
    distances = np.array([[1.0, 0.5, 0.4], [0.2, 0.2, 0.9], [3.0, 1.0, 1.0]])
    assert on_both("first_nearest", distances, 0.0).tolist() == [2, 0, 1]
    assert on_both("first_nearest", distances, 0.1).tolist() == [1, 0, 1]
    assert on_both("first_nearest", distances, 5.0).tolist() == [0, 0, 0]


@laws
@given(rng=generators(), k=st.sampled_from([1, 2, 255, 256, 70000]))
def test_compact_labels_take_little_room_and_their_digest_tells_them_apart(rng, k):
    labels = rng.integers(k, size=9)
    small = on_both("compact", labels, k)
    assert small.dtype.itemsize == {1: 1, 2: 1, 255: 1, 256: 2, 70000: 4}[k]
    np.testing.assert_array_equal(small, labels)
    digest = on_both("fingerprint", small)
    assert isinstance(digest, bytes)
    assert digest == on_both("fingerprint", get_backend().compact(labels.copy(), k))
    if k > 1:
        other = labels.copy()
        other[rng.integers(9)] = (other[0] + 1) % k
        same = np.array_equal(other, labels)
        assert (on_both("fingerprint", get_backend().compact(other, k)) == digest) == same


# --- stored kernels --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["usual ranges", "short ranges"])
def ranges(request, monkeypatch):
    """Rows and columns worked on together: as many as usual, and so few that every case has several ranges."""
    if request.param == "short ranges":
        for name in ("PRODUCT_ROWS", "TILE_ROWS", "MIRRORED_ROWS", "SUMMED_ROWS", "THIN_ROWS", "SEQUENTIAL_ROWS"):
            monkeypatch.setattr(host, name, 3)
        monkeypatch.setattr(host, "TILE_COLS", 2)


@laws
@given(K=kernels, dtype=dtypes, rng=generators())
def test_diagonal_largest_entry_and_blocks_of_a_matrix(K, dtype, rng):
    K = K.astype(dtype)
    diagonal = on_both("diagonal", K)
    assert diagonal.dtype == np.float64
    np.testing.assert_array_equal(diagonal, [K[i, i] for i in range(len(K))])
    assert on_both("largest_entry", K) == np.abs(K).max()
    rows, cols = rng.integers(len(K), size=3), slice(0, len(K), 2)
    for r in (rows, cols):
        for c in (rows, cols):
            block = on_both("block", K, r, c)
            np.testing.assert_array_equal(block, K[r][:, c])
            assert not np.shares_memory(get_backend().block(K, r, c), K)
    np.testing.assert_array_equal(on_both("columns", K, rows), K[:, rows])


@pytest.mark.usefixtures("ranges")
@laws
@given(K=kernels, dtype=dtypes, rng=generators(), noise=st.booleans())
def test_the_largest_difference_from_the_transpose_is_reported_with_its_place(K, dtype, rng, noise):
    K = (K + 1e-3 * noise * np.abs(K).max() * rng.standard_normal(K.shape)).astype(dtype)
    wide = K.astype(np.float64)
    differences = np.abs(wide - wide.T)
    for backend in map(get_backend, BACKENDS):
        difference, peak, i, j = backend.asymmetry(K)
        assert difference == pytest.approx(differences.max(), rel=1e-6, abs=0)  # those of float32 may be float32
        assert differences[i, j] == pytest.approx(difference, rel=1e-6, abs=0)
        assert peak == np.abs(wide).max()
    i, j = rng.integers(len(K), size=2)
    K[i, j] = np.nan
    for backend in map(get_backend, BACKENDS):
        difference, peak, *place = backend.asymmetry(K)
        assert np.isinf(difference)
        assert np.isinf(peak)
        assert place == [i, j]


@pytest.mark.usefixtures("ranges")
@laws
@given(data=st.data(), K=kernels, dtype=dtypes, rng=generators())
def test_products_and_cluster_sums_of_a_stored_kernel(data, K, dtype, rng):
    K = K.astype(dtype)
    wide, size = K.astype(np.float64), np.abs(K).max() * len(K)
    H = rng.standard_normal((len(K), 3))
    product = on_both("product", K, H)
    assert product.dtype == np.float64
    close(product, wide @ H, 4.0 * size)
    labels, k = data.draw(partitions(len(K)))
    weights = data.draw(sample_weights(len(K)))
    sums = on_both("cluster_sums", K, labels, weights, k + 1)
    close(sums, indicators(labels, weights, k + 1).T @ wide, 3.0 * size)
    new = after(labels, *data.draw(moves(labels, k)))
    changes = get_backend().moves(labels, new)
    moved = changed_by_both("move_sums", sums, K, changes, weights)
    close(moved, indicators(new, weights, k + 1).T @ wide, 6.0 * size)


@laws
@given(data=st.data(), K=kernels, dtype=dtypes, rng=generators())
def test_gains_of_candidates_are_sums_over_pairs_whole_and_by_rows(data, K, dtype, rng):
    K = K.astype(dtype)
    wide, n, size = K.astype(np.float64), len(K), np.abs(K).max()
    diag, weights = np.diagonal(wide).copy(), data.draw(sample_weights(len(K)))
    distances = 3.0 * size * rng.random(n)
    wanted = np.zeros(n)
    for sample in range(n):
        for i in range(n):
            pair = wide[sample, sample] + wide[i, i] - 2.0 * wide[sample, i]
            wanted[sample] += weights[i] * max(distances[i] - pair, 0.0)
    close(on_both("candidate_gains", K, diag, distances, weights), wanted, 10.0 * size * weights.sum())
    start = int(rng.integers(n))
    stop = int(rng.integers(start, n)) + 1
    rows = on_both("candidate_gains_of_rows", np.asfortranarray(K[start:stop]), start, diag, distances, weights)
    close(rows, wanted[start:stop], 10.0 * size * weights.sum())


# --- views that lack samples -----------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(generators(), st.integers(1, 9), st.sampled_from([256, 2]))
def test_sums_of_views_are_made_of_the_pairs_that_each_view_has(rng, n, together):
    samples = [np.sort(rng.permutation(n)[: rng.integers(1, n + 1)]) for _ in range(3)]
    matrices = [rng.standard_normal((len(known), len(known))) for known in samples]
    matrices[1] = matrices[1].astype(np.float32)
    coefficients = np.array([0.5, 1.0 / 3.0, 0.0])
    pattern = rng.integers(3, size=n)
    factors = rng.standard_normal((3, 3))
    wanted = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for K, known, c in zip(matrices, samples, coefficients, strict=True):
                if i in known and j in known:
                    wanted[i, j] += c * float(K[np.searchsorted(known, i), np.searchsorted(known, j)])
            wanted[i, j] *= factors[pattern[i], pattern[j]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "PAIR_ROWS", together)
        close(on_both("sum_of_pairs", matrices, samples, coefficients, pattern, factors), wanted)
        added = changed_by_both("add_to_pairs", wanted, pattern, factors)
    close(added, wanted + factors[pattern][:, pattern])


def test_samples_of_a_view_are_taken_and_added_to():
    values = np.array([3.0, 4.0, 5.0])
    known = np.array([2, 0])
    assert on_both("take", values, known).tolist() == [5.0, 3.0]
    sums = np.ones((2, 3))
    added = changed_by_both("add_to_samples", sums, known, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert added.tolist() == [[3.0, 1.0, 2.0], [5.0, 1.0, 4.0]]


# --- kernels computed tile by tile -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("ranges")
@laws
@given(data=st.data(), X=samples(min_n=1), Y=samples(), rng=generators())
def test_tiles_add_up_to_products_cluster_sums_and_the_whole_matrix(data, X, Y, rng):
    K, size = X @ Y.T, 20.0 * len(Y)

    def tile(sources, rows):
        return Y[sources] @ X[rows].T

    H = rng.standard_normal((len(Y), 2))
    close(on_both("tiled_product", tile, K.shape, H), K @ H, size)
    labels, k = data.draw(partitions(len(Y)))
    weights = data.draw(sample_weights(len(Y)))
    sums = on_both("tiled_cluster_sums", tile, K.shape, labels, weights, k + 1)
    close(sums, indicators(labels, weights, k + 1).T @ K.T, size)
    new = after(labels, *data.draw(moves(labels, k)))
    changes = get_backend().moves(labels, new)
    moved = changed_by_both("tiled_move_sums", sums, tile, changes, weights)
    close(moved, indicators(new, weights, k + 1).T @ K.T, size)
    for dtype in (np.float64, np.float32):
        whole = on_both("filled", lambda rows, cols: X[rows] @ Y[cols].T, K.shape, dtype)
        assert whole.dtype == dtype
        np.testing.assert_allclose(whole, K, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_only_the_rows_of_moved_samples_are_computed():
    X = np.random.default_rng(0).standard_normal((20, 3))
    labels = np.arange(20) % 3
    changes = get_backend().moves(labels, after(labels, [4, 11], [0, 0]))
    for backend in map(get_backend, BACKENDS):
        asked = []

        def tile(sources, rows, asked=asked):
            asked.extend(np.arange(20)[sources].tolist())
            return X[sources] @ X[rows].T

        backend.tiled_move_sums(np.zeros((3, 20)), tile, changes, np.ones(20))
        assert sorted(asked) == [4, 11]


# --- cluster sums ----------------------------------------------------------------------------------------------------


@laws
@given(case=clusterings())
def test_sums_inside_clusters_between_them_and_distances_to_their_centres(case):
    K, X, labels, weights, k = case
    H = indicators(labels, weights, k)
    sums, totals, norms = plain_clusters(K, labels, weights, k)
    size = np.abs(K).max() * max(weights.sum(), 1.0) ** 2
    products = on_both("cluster_products", sums, labels, weights)
    close(products, H.T @ K @ H, size)
    close(on_both("within_sums", sums, labels, weights), np.diagonal(products), size)
    distances = on_both("distances_to_clusters", sums, totals, norms, labels, np.diagonal(K).copy())
    for i, c in enumerate(labels):
        if totals[c] > 0:
            close(distances[i], ((X[i] - H[:, c] @ X / totals[c]) ** 2).sum(), size)
        else:
            assert np.isinf(distances[i])


def plain_nearest(values, labels, tolerance):
    """Return labels, distances and lead by the rule on ties; ``values`` is (n, k)."""
    out, lead = labels.copy(), np.inf
    for i, row in enumerate(values):
        others = [c for c in range(len(row)) if c != labels[i]]
        low = min((row[c] for c in others), default=np.inf)
        if low < row[labels[i]] - tolerance:
            out[i] = next(c for c in others if row[c] <= low + tolerance)
        else:
            lead = min(lead, low - row[labels[i]] + tolerance)
    return out, values[np.arange(len(labels)), out], lead


@laws
@given(case=clusterings(), rng=generators(), scaled=st.booleans(), tolerance=st.sampled_from([1e-9, 0.5]))
def test_the_nearest_cluster_is_that_of_least_distance_with_ties_by_rule(case, rng, scaled, tolerance):
    K, X, labels, weights, k = case
    sums, totals, norms = plain_clusters(K, labels, weights, k)
    coefs = rng.choice([0.25, 0.5, 1.0], size=k) if scaled else None
    nearest = on_both("nearest", sums, totals, norms, labels, tolerance, np.diagonal(K).copy(), coefs)
    H = indicators(labels, weights, k)
    values = np.full((len(K), k), np.inf)
    for c in np.flatnonzero(totals > 0):
        values[:, c] = (1.0 if coefs is None else coefs[c]) * ((X - H[:, c] @ X / totals[c]) ** 2).sum(axis=1)
    if tolerance > 1e-6 and rounding_decides(values, labels, tolerance):
        return
    wanted, distances, lead = plain_nearest(values, labels, tolerance)
    np.testing.assert_array_equal(nearest.labels, wanted)
    close(nearest.distances, distances, np.abs(K).max())
    close(nearest.lead, lead, np.abs(K).max())


def rounding_decides(values, labels, tolerance):
    """Whether some difference of distances equals the tolerance but for rounding."""
    finite = values[:, np.isfinite(values).all(axis=0)]
    differences = finite[:, :, None] - finite[:, None, :]
    return bool((np.abs(np.abs(differences) - tolerance) < 1e-9).any())


@laws
@given(rng=generators(), k=st.integers(1, 4), n=st.integers(1, 9))
def test_cluster_sums_are_stacked_weighted_and_added_to(rng, k, n):
    arrays = [rng.standard_normal((k, n)) for _ in range(3)]
    coefficients = rng.uniform(-1.0, 1.0, 3)
    stack = on_both("stack", arrays)
    for v in range(3):
        np.testing.assert_array_equal(stack[v], arrays[v])
    close(on_both("weighted_sum", coefficients, stack), sum(c * A for c, A in zip(coefficients, arrays, strict=True)))
    stack[1][:] = 0.0  # what a stack yields may be changed in place
    wanted = coefficients[0] * arrays[0] + coefficients[2] * arrays[2]
    close(on_both("weighted_sum", coefficients, stack), wanted)
    clusters = rng.permutation(k)[: k // 2 + 1]
    values = rng.standard_normal((len(clusters), n))
    added = arrays[0].copy()
    added[clusters] += values
    close(changed_by_both("add_to_clusters", arrays[0], clusters, values), added)


# --- features --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ranges")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@laws
@given(data=st.data(), case=clusterings(), rng=generators())
def test_features_are_multiplied_and_added_up_by_cluster(form, data, case, rng):
    K, X, labels, weights, k = case
    Phi, size = form(X), 20.0 * len(X) ** 2
    close(on_both("squared_lengths", Phi), np.diagonal(K), size)
    H, vectors = rng.standard_normal((len(X), 2)), rng.standard_normal((X.shape[1], 4))
    results = {
        "feature_products": (on_both("feature_products", Phi, H), X.T @ H),
        "spread": (on_both("spread", Phi, vectors), X @ vectors),
        "spread_rows": (on_both("spread_rows", Phi, vectors.T), vectors.T @ X.T),
        "feature_sums": (on_both("feature_sums", Phi, labels, weights, k), indicators(labels, weights, k).T @ X),
    }
    new = after(labels, *data.draw(moves(labels, k)))
    changes = get_backend().moves(labels, new)
    difference = indicators(new, weights, k) - indicators(labels, weights, k)
    results["moved_features"] = (on_both("moved_features", Phi, changes, weights, k), difference.T @ X)
    if form is np.asarray:
        results["gram"] = (on_both("gram", Phi, weights), X.T @ (weights[:, None] * X))
    for result, wanted in results.values():
        assert isinstance(result, np.ndarray)
        close(result, wanted, size)


@pytest.mark.usefixtures("ranges")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@laws
@given(case=clusterings(), rng=generators())
def test_distances_to_means_the_nearest_of_them_and_assignment_by_size(form, case, rng):
    K, X, labels, weights, k = case
    H, totals = indicators(labels, weights, k), indicators(labels, weights, k).sum(axis=0)
    means = (H.T @ X) / np.where(totals > 0, totals, 1.0)[:, None]
    norms = np.where(totals > 0, (means**2).sum(axis=1), np.inf)
    diag, coefs, size = np.diagonal(K).copy(), rng.choice([0.25, 0.5, 1.0], size=k), np.abs(K).max()
    values = np.where(totals > 0, ((X[:, None] - means[None]) ** 2).sum(axis=2), np.inf)
    distances = on_both("distances_to_means", form(X), means, norms, labels, diag)
    close(distances, values[np.arange(len(X)), labels], size)
    nearest = on_both("nearest_means", form(X), means, norms, labels, 1e-9, diag, coefs)
    wanted, least, lead = plain_nearest(np.where(totals > 0, coefs * values, np.inf), labels, 1e-9)
    np.testing.assert_array_equal(nearest.labels, wanted)
    close(nearest.distances, least, size)
    close(nearest.lead, lead, size)
    assigned = on_both("assign_by_size", form(X), means, norms, labels, 1e-9, diag, weights, totals)
    np.testing.assert_array_equal(assigned, plain_by_size(values, labels, weights, 1e-9))


def plain_by_size(values, labels, weights, tolerance):
    """Return labels chosen sample after sample by size times distance, the sample itself left out of the sizes."""
    now = labels.copy()
    for i, row in enumerate(values):
        others = np.arange(len(now)) != i
        sizes = np.bincount(now[others], weights[others], len(row))
        scaled = np.array([sizes[c] * row[c] if np.isfinite(row[c]) else np.inf for c in range(len(row))])
        least = np.flatnonzero(scaled <= scaled.min() + tolerance)
        now[i] = now[i] if now[i] in least else least[0]
    return now


# --- thin blocks -----------------------------------------------------------------------------------------------------


@laws
@given(rng=generators(), n=st.integers(1, 12), width=st.integers(1, 4))
def test_thin_blocks_are_multiplied_measured_and_joined(rng, n, width):
    block, other = rng.standard_normal((n, width)), rng.standard_normal((n, 2))
    matrix = rng.standard_normal((width, 3))
    close(on_both("inner", [block], [other]), block.T @ other)
    close(on_both("inner", [block, other], [other, block]), np.hstack([block, other]).T @ np.hstack([other, block]))
    close(on_both("combine", [block], matrix), block @ matrix)
    close(on_both("combine", [block, block], np.vstack([matrix, 2.0 * matrix])), 3.0 * block @ matrix)
    assert [id(each) for each in get_backend().together([block, other])] == [id(block), id(other)]
    close(on_both("column_norms", block), [np.sqrt(sum(column**2)) for column in block.T])
    joined = on_both("join", [block, other])
    np.testing.assert_array_equal(joined[:, :width], block)
    np.testing.assert_array_equal(joined[:, width:], other)


@pytest.mark.parametrize(("n", "width"), [(1, 1), (5, 5), (40, 3)])
def test_the_block_to_start_from_is_orthonormal_and_always_the_same(n, width):
    block = on_both("start_block", n, width)
    assert block.shape == (n, width)
    close(block.T @ block, np.eye(width))
    np.testing.assert_array_equal(block, get_backend().start_block(n, width))


def test_a_long_block_to_start_from_spans_what_a_short_one_would(monkeypatch):
    whole = get_backend().start_block(50, 4)
    monkeypatch.setattr(host, "THIN_ROWS", 10)
    pieces = get_backend().start_block(50, 4)
    close(pieces.T @ pieces, np.eye(4))
    close(whole @ (whole.T @ pieces), pieces)


def test_the_block_to_start_from_is_the_same_for_any_number_of_threads_of_linear_algebra():
    blocks = []
    for allowed in (1, 2):
        with threadpool_limits(allowed):
            blocks.append(get_backend().start_block(60_000, 24))
    np.testing.assert_array_equal(*blocks)


def test_a_short_block_to_start_from_is_made_by_one_thread_of_linear_algebra(monkeypatch):
    # Where threads of QR add up in another order depends on the processor.
    threads = []
    decompose = np.linalg.qr

    def recorded(block):
        threads.extend(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return decompose(block)

    monkeypatch.setattr(np.linalg, "qr", recorded)
    with threadpool_limits(2):
        get_backend().start_block(40, 3)
    assert threads
    assert set(threads) == {1}


@laws
@given(rng=generators(), n=st.integers(6, 15), rank=st.integers(0, 3), width=st.integers(1, 4), old=st.integers(1, 3))
def test_what_a_block_adds_to_a_basis_is_orthonormal_and_spans_it(rng, n, rank, width, old):
    basis = np.linalg.qr(rng.standard_normal((n, old)))[0]
    inside = basis @ rng.standard_normal((old, width))
    block = inside + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, width))
    added = on_both("orthonormal", block, [basis[:, :1], basis[:, 1:]])
    assert added.shape == (n, min(rank, width, n - old))
    both = np.hstack([basis, added])
    np.testing.assert_allclose(both.T @ both, np.eye(both.shape[1]), atol=1e-10)
    np.testing.assert_allclose(both @ (both.T @ block), block, atol=1e-8 * max(np.abs(block).max(), 1.0))


def test_a_direction_of_rounding_size_takes_nothing_from_the_others():
    # The first column adds next to nothing; what it leaves must not be taken out of the second one, which needs it.
    basis, d, e = np.eye(6)[:, :2], np.eye(6)[2], np.eye(6)[3]
    added = on_both("orthonormal", np.column_stack([1e-13 * d, d + e]), [basis])
    assert added.shape == (6, 1)
    np.testing.assert_allclose(np.abs(added[:, 0]), (d + e) / np.sqrt(2.0), atol=1e-12)


@pytest.mark.parametrize("rank", [4, 2])
def test_thin_blocks_of_many_rows_are_decomposed_range_by_range(rank, monkeypatch):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((103, 5)))[0]
    block = rng.standard_normal((103, rank)) @ rng.standard_normal((rank, 4))
    blocks = [basis[:, :2], basis[:, 2:]]
    results = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "WORTH_A_THREAD", 0)
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        monkeypatch.setattr(host, "THIN_ROWS", 10)
        monkeypatch.setattr(host, "JOINED_ROWS", 4)
        backend = get_backend()
        added = backend.orthonormal(block, blocks)
        results.append((added, backend.inner(blocks, [block]), backend.combine(blocks, np.eye(5)[:, :3])))
    added, products, combined = results[0]
    both = np.hstack([basis, added])
    assert added.shape == (103, rank)
    np.testing.assert_allclose(both.T @ both, np.eye(5 + rank), atol=1e-12)
    np.testing.assert_allclose(both @ (both.T @ block), block, atol=1e-12)
    close(products, basis.T @ block)
    close(combined, basis[:, :3])
    for one, another in zip(results[0], results[1], strict=True):
        np.testing.assert_array_equal(one, another)


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BACKENDS)
def test_results_are_bit_identical_on_any_number_of_threads(name, monkeypatch):
    rng = np.random.default_rng(0)
    n, k, backend = 1300, 5, get_backend(name)
    X = rng.standard_normal((n, 8))
    K, labels, weights = X @ X.T, rng.integers(k, size=n), rng.uniform(0.5, 2.0, n)
    diag, changes = np.diagonal(K).copy(), backend.moves(labels, after(labels, np.arange(0, n, 7), 0))
    sums, totals, norms = plain_clusters(K, labels, weights, k)

    def tile(sources, rows):
        return X[sources] @ X[rows].T

    def moved(verb, *arguments):
        changed = sums.copy()
        getattr(backend, verb)(changed, *arguments)
        return changed

    monkeypatch.setattr(host, "SUMMED_ROWS", 400)
    monkeypatch.setattr(host, "TILE_COLS", 300)
    monkeypatch.setattr(host, "WIDEST", 500)
    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        results.append(
            [
                backend.product(K, X),
                backend.cluster_sums(K, labels, weights, k),
                moved("move_sums", K, changes, weights),
                backend.candidate_gains(K, diag, diag, weights),
                backend.tiled_product(tile, K.shape, X),
                backend.tiled_cluster_sums(tile, K.shape, labels, weights, k),
                moved("tiled_move_sums", tile, changes, weights),
                backend.filled(tile, K.shape),
                backend.feature_sums(X, labels, weights, k),
                backend.moved_features(X, changes, weights, k),
                backend.gram(X, weights),
                backend.nearest(sums, totals, norms, labels, 0.0, diag).distances,
            ]
        )
    for other in results[1:]:
        for one, again in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, again)


def test_arrays_that_may_only_be_read_take_the_loops_of_others():
    rng = np.random.default_rng(0)
    backend = get_backend("numba")
    loops = [getattr(row_loops, name) for name in ("add_rows", "nearest", "nearest_scaled", "nearest_means")]
    sums, Phi = rng.standard_normal((2, 20)), rng.standard_normal((20, 3))
    labels, ones, pair = np.arange(20) % 2, np.ones(20), np.ones(2)

    def results(*, frozen):
        def given(values):
            values = values.copy()
            values.flags.writeable = not frozen
            return values

        return [
            backend.feature_sums(given(Phi), given(labels), given(ones), 2),
            backend.nearest(sums, pair, given(pair), labels, 0.0, ones).distances,
            backend.nearest(sums, pair, given(pair), labels, 0.0, ones, given(pair)).distances,
            backend.nearest_means(given(Phi), Phi[:2], given(pair), labels, 0.0, ones, given(pair)).distances,
        ]

    before = results(frozen=False)
    compiled = [len(loop.signatures) for loop in loops]
    for one, other in zip(before, results(frozen=True), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [len(loop.signatures) for loop in loops] == compiled


def test_few_moved_samples_are_shared_out_to_16_cores():
    wide = host._ranges(None, 3, 15_000)["width"]
    assert -(-15_000 // wide) == 16
    assert host._ranges(None, 10**6, 15_000)["width"] == tiling.MOST_COLUMNS
    assert host._ranges(None, 3, 10**6)["width"] == tiling.WIDEST
