"""Compiled loops against their plain twins, and both against sums in higher precision."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import numpy_loops
from kernelweave.backends.compiled import row_loops, symmetry
from kernelweave.backends.numpy_loops import PART
from kernelweave.backends.preparing import NARROW, cluster_pieces, read_only
from kernelweave.backends.registry import BACKENDS, get_backend
from tests.strategies import generators, indefinite_kernels, psd_kernels

quick = settings(max_examples=50, deadline=None)
dtypes = st.sampled_from([np.float32, np.float64])
LOOPS = (
    "scatter_rows",
    "move_rows",
    "scatter_pieces",
    "move_pieces",
    "add_within",
    "add_parts",
    "nearest",
    "nearest_scaled",
    "nearest_means",
    "add_rows",
    "shift_rows",
    "assign_by_size",
    "candidate_gains",
    "worst_asymmetry",
    "asymmetry_pieces",
)


@st.composite
def ranges(draw, n):
    """Draw lo < hi within n, and left, the column of the whole matrix the given part begins at."""
    lo = draw(st.integers(0, n - 1))
    hi = draw(st.integers(lo + 1, n))
    return lo, hi, draw(st.sampled_from([0, lo]))


@st.composite
def row_cases(draw):
    """Draw what ``scatter_rows`` and ``move_rows`` take: rows of K, weights of both signs, sums to add to, a range."""
    rng, n, k = draw(generators()), draw(st.integers(1, 30)), draw(st.integers(1, 3))
    lo, hi, left = draw(ranges(n))
    m = draw(st.integers(1, 12))
    K = read_only(rng.standard_normal((m, n - left)).astype(draw(dtypes)))
    count = draw(st.integers(0, 40))  # whole eights of one group, and the rest
    rows = rng.integers(m, size=count)
    weights = rng.standard_normal(count) * (rng.random(count) < 0.8)
    return rng, k, K, rows, weights, rng.standard_normal((k, n)), lo, hi, left


def test_no_loop_with_a_twin_is_compiled_for_one_value_of_an_argument():
    # Numba makes a version of its own for every literal that a compiled loop passes on: a longer first fit.
    passed = [
        ast.unparse(call)
        for path in sorted(Path(row_loops.__file__).parent.glob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", None) in LOOPS
    ]
    assert len(passed) >= 6
    assert [call for call in passed if re.search(r"[(,] ?-?\d", call)] == []


def close(result, wanted):
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-12)


def test_every_loop_has_its_twin():
    assert BACKENDS == ("numba", "numpy")
    assert get_backend() is get_backend("numba")
    assert get_backend("numba")._loops is row_loops
    assert get_backend("numpy")._loops is numpy_loops
    for name in LOOPS:
        assert callable(getattr(row_loops, name))
        assert callable(getattr(numpy_loops, name))


@quick
@given(row_cases())
def test_scatter_rows_equals_its_twin_and_stays_in_its_range(case):
    rng, k, K, rows, weights, out, lo, hi, left = case
    groups = np.sort(rng.integers(k, size=len(rows)))
    fast, plain = out.copy(), out.copy()
    row_loops.scatter_rows(K, rows, groups, weights, fast, lo, hi, left)
    numpy_loops.scatter_rows(K, rows, groups, weights, plain, lo, hi, left)
    close(fast, plain)
    one_hot = weights[:, None] * (groups[:, None] == np.arange(k))
    close(fast[:, lo:hi], out[:, lo:hi] + one_hot.T @ K[rows][:, lo - left : hi - left].astype(np.float64))
    outside = np.ones(out.shape[1], dtype=bool)
    outside[lo:hi] = False
    np.testing.assert_array_equal(fast[:, outside], out[:, outside])
    np.testing.assert_array_equal(plain[:, outside], out[:, outside])


@quick
@given(row_cases())
def test_move_rows_equals_its_twin_and_stays_in_its_range(case):
    rng, k, K, rows, weights, out, lo, hi, left = case
    old, new = rng.integers(k, size=len(rows)), rng.integers(k, size=len(rows))
    fast, plain = out.copy(), out.copy()
    row_loops.move_rows(K, rows, old, new, weights, fast, lo, hi, left)
    numpy_loops.move_rows(K, rows, old, new, weights, plain, lo, hi, left)
    close(fast, plain)
    signed = weights[:, None] * ((new[:, None] == np.arange(k)) * 1.0 - (old[:, None] == np.arange(k)))
    close(fast[:, lo:hi], out[:, lo:hi] + signed.T @ K[rows][:, lo - left : hi - left].astype(np.float64))
    outside = np.ones(out.shape[1], dtype=bool)
    outside[lo:hi] = False
    np.testing.assert_array_equal(fast[:, outside], out[:, outside])


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
@quick
@given(case=row_cases(), width=st.integers(1, 31), begun=st.integers(0, 3))
def test_pieces_are_taken_from_the_first_that_nobody_has_begun(loops, case, width, begun):
    rng, k, K, rows, weights, out, *_ = case
    K = read_only(rng.standard_normal((len(K), out.shape[1])))
    n = out.shape[1]
    count = -(-n // width)
    groups, new = np.sort(rng.integers(k, size=len(rows))), rng.integers(k, size=len(rows))
    columns = np.array([(0, len(rows), lo, min(lo + width, n)) for lo in range(0, n, width)])

    def scatter(tickets, found, waits):
        return loops.scatter_pieces(K, rows, groups, weights, found, columns, tickets, waits)

    def move(tickets, found, waits):
        return loops.move_pieces(K, rows, groups, new, weights, found, tickets, width, waits)

    for take, loop, ways in ((scatter, loops.scatter_rows, (groups,)), (move, loops.move_rows, (groups, new))):
        wanted, found, tickets = out.copy(), out.copy(), np.array([begun, begun])
        if begun < count:
            loop(K, rows, *ways, weights, wanted, begun * width, n, 0)
        assert take(tickets, found, True)
        np.testing.assert_array_equal(found, wanted)
        assert tickets[1] == max(begun, count)
        # Pieces that another thread has begun and not ended: the one who waits gives up, the others do not look.
        tickets[1] = 0
        assert not take(tickets, found, True)
        tickets[1] = count
        assert not take(tickets, found, False)
        np.testing.assert_array_equal(found, wanted)


@quick
@given(
    sizes=st.lists(st.integers(0, 40), max_size=6),
    n=st.sampled_from([1, 5, 700, 3000]),
    threads=st.integers(1, 9),
    rng=generators(),
)
def test_pieces_of_clusters_cover_all_rows_and_columns_once_and_add_up_to_the_same_bits(sizes, n, threads, rng):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    pieces = cluster_pieces(groups, n, threads)
    covered = np.zeros((len(groups), n), dtype=int)
    for first, last, lo, hi in pieces:
        covered[first:last, lo:hi] += 1
        assert threads == 1 or len(set(groups[first:last])) <= 1
    assert (covered == 1).all()
    areas = (pieces[:, 1] - pieces[:, 0]) * (pieces[:, 3] - pieces[:, 2])
    assert (np.diff(areas) <= 0).all()
    if threads > 1 and n == 3000 and len(groups):
        # So many for each thread and no more than one left over for each cluster, none larger than its share or narrow.
        assert len(pieces) <= 4 * threads + len(sizes)
        assert areas[0] <= max(covered.size / (4 * threads), 2 * NARROW * max(sizes)) + max(sizes)
    K, rows, weights = (
        read_only(rng.standard_normal((5, n))),
        rng.integers(5, size=len(groups)),
        rng.random(len(groups)),
    )
    found, wanted = np.zeros((2, max(len(sizes), 1), n))
    row_loops.scatter_rows(K, rows, groups, weights, wanted, 0, n, 0)
    assert row_loops.scatter_pieces(K, rows, groups, weights, found, pieces, np.zeros(2, dtype=np.int64), True)
    np.testing.assert_array_equal(found, wanted)


@st.composite
def part_cases(draw):
    """Draw sums, labels, weights and a range that begins at a multiple of PART, of any length."""
    rng, n, k = draw(generators()), draw(st.integers(1, 5 * PART)), draw(st.integers(1, 3))
    lo = PART * draw(st.integers(0, (n - 1) // PART))
    hi = n if draw(st.booleans()) else min(n, lo + PART * draw(st.integers(1, 5)))
    return rng.standard_normal((k, n)), rng.integers(k, size=n), rng.random(n), lo, hi


@quick
@given(part_cases())
def test_add_within_equals_its_twin_and_the_sum_of_a_block(case):
    sums, labels, weights, lo, hi = case
    k, n = sums.shape
    whole, fast, plain = (np.full((-(-n // PART), k), 7.0) for _ in range(3))
    row_loops.add_within(sums, labels, weights, whole, 0, n)
    row_loops.add_within(sums, labels, weights, fast, lo, hi)
    numpy_loops.add_within(sums, labels, weights, plain, lo, hi)
    close(fast, plain)
    written = np.zeros(len(fast), dtype=bool)
    written[lo // PART : -(-hi // PART)] = True
    assert (fast[~written] == 7.0).all()
    np.testing.assert_array_equal(fast[written], whole[written])  # the same bits whatever the range
    for loops in (row_loops, numpy_loops):
        total = np.full(k, 7.0)
        loops.add_parts(whole, total)
        close(total, [(weights * sums[c])[labels == c].sum() for c in range(k)])


@st.composite
def nearest_cases(draw):
    """Draw sums with many ties, clusters some of which are empty, and a range."""
    rng, n, k = draw(generators()), draw(st.integers(1, 600)), draw(st.integers(1, 5))
    lo, hi, _ = draw(ranges(n))
    sums = rng.integers(-3, 4, size=(k, n)).astype(float) if draw(st.booleans()) else rng.standard_normal((k, n))
    norms, slopes = rng.integers(0, 3, size=k).astype(float), np.full(k, 1.0)
    empty = rng.permutation(k)[: draw(st.integers(0, k - 1))]
    norms[empty], slopes[empty] = np.inf, 0.0
    return sums, slopes, norms, rng.integers(k, size=n), draw(st.sampled_from([0.0, 0.5, 1.0, 10.0])), lo, hi


@quick
@given(nearest_cases())
def test_nearest_equals_its_twin_bit_by_bit(case):
    sums, slopes, norms, labels, tolerance, lo, hi = case
    results = []
    for loops in (row_loops, numpy_loops):
        out, chosen = np.full(len(labels), -9), np.full(len(labels), -9.0)
        lead = loops.nearest(sums, slopes, norms, labels, tolerance, out, chosen, lo, hi)
        assert (np.delete(out, np.s_[lo:hi]) == -9).all()
        results.append((out, chosen, lead))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][2] == results[1][2]


@quick
@given(nearest_cases())
def test_nearest_follows_its_rule_written_as_a_loop(case):
    sums, slopes, norms, labels, tolerance, lo, hi = case
    out, chosen = np.empty(len(labels), dtype=np.int64), np.empty(len(labels))
    lead = row_loops.nearest(sums, slopes, norms, labels, tolerance, out, chosen, lo, hi)
    leads = [np.inf]
    for i in range(lo, hi):
        value = {c: norms[c] - slopes[c] * sums[c, i] for c in range(len(norms)) if np.isfinite(norms[c])}
        kept = value.pop(labels[i], np.inf)
        low = min(value.values(), default=np.inf)
        if low < kept - tolerance:
            assert out[i] == min(c for c in value if value[c] <= low + tolerance)
            assert chosen[i] == value[out[i]] < kept
        else:
            assert out[i] == labels[i]
            assert chosen[i] == kept
            leads.append(low - kept + tolerance)
    assert lead == min(leads)


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
def test_a_sample_that_leaves_takes_the_first_cluster_within_the_tolerance_of_the_nearest(loops):
    # The sample's cluster lies at 1.2, the others at 0.9 and 0.45: the last is nearer by 0.75, more than the tolerance
    # of 0.5, and the first counts as equally near.
    sums, out, chosen = -np.array([[0.9], [0.45], [1.2]]), np.empty(1, dtype=np.int64), np.empty(1)
    loops.nearest(sums, np.ones(3), np.zeros(3), np.array([2]), 0.5, out, chosen, 0, 1)
    assert out.tolist() == [0]
    assert chosen.tolist() == [0.9]


@st.composite
def scaled_cases(draw):
    """Draw what ``nearest_scaled`` takes beyond ``nearest``: coefficients and a diagonal, of few values for ties."""
    case, rng = draw(nearest_cases()), draw(generators())
    return *case, rng.choice([0.25, 0.5, 1.0], size=len(case[2])), rng.integers(0, 3, size=len(case[3])).astype(float)


@quick
@given(scaled_cases())
def test_nearest_scaled_equals_its_twin_bit_by_bit_and_follows_its_rule(case):
    sums, slopes, norms, labels, tolerance, lo, hi, coefs, diag = case
    results = []
    for loops in (row_loops, numpy_loops):
        out, chosen = np.full(len(labels), -9), np.full(len(labels), -9.0)
        lead = loops.nearest_scaled(sums, slopes, norms, coefs, diag, labels, tolerance, out, chosen, lo, hi)
        assert (np.delete(out, np.s_[lo:hi]) == -9).all()
        assert (np.delete(chosen, np.s_[lo:hi]) == -9.0).all()
        results.append((out, chosen, lead))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][2] == results[1][2]
    values = np.full((len(norms), len(labels)), np.inf)
    known = np.isfinite(norms)
    values[known] = coefs[known, None] * (diag + norms[known, None] - slopes[known, None] * sums[known])
    follow_the_rule(values, labels, tolerance, results[0], lo, hi)


def follow_the_rule(values, labels, tolerance, result, lo, hi):
    """Check labels, values and lead against the rule on ties, sample by sample; ``values`` is (k, n)."""
    out, chosen, lead = result
    leads = [np.inf]
    for i in range(lo, hi):
        value = {c: values[c, i] for c in range(len(values)) if np.isfinite(values[c, i])}
        kept = value.pop(labels[i], np.inf)
        low = min(value.values(), default=np.inf)
        if low < kept - tolerance:
            assert out[i] == min(c for c in value if value[c] <= low + tolerance)
            assert chosen[i] == pytest.approx(value[out[i]], abs=1e-12)
        else:
            assert out[i] == labels[i]
            assert chosen[i] == pytest.approx(kept, abs=1e-12)
            leads.append(low - kept + tolerance)
    assert lead == pytest.approx(min(leads), abs=1e-11)


def test_with_coefficients_of_one_and_a_diagonal_of_zeros_scaled_is_plain():
    rng = np.random.default_rng(0)
    sums, norms, labels = rng.standard_normal((4, 700)), rng.standard_normal(4), rng.integers(4, size=700)
    for loops in (row_loops, numpy_loops):
        plain, scaled = ((np.empty(700, dtype=np.int64), np.empty(700)) for _ in range(2))
        one = loops.nearest(sums, np.ones(4), norms, labels, 0.1, *plain, 0, 700)
        two = loops.nearest_scaled(sums, np.ones(4), norms, np.ones(4), np.zeros(700), labels, 0.1, *scaled, 0, 700)
        assert one == two
        for a, b in zip(plain, scaled, strict=True):
            np.testing.assert_array_equal(a, b)


@st.composite
def mean_cases(draw):
    """Draw what ``nearest_means`` takes; whole numbers, whose products are exact, half of the time."""
    rng, n, k = draw(generators()), draw(st.integers(1, 600)), draw(st.integers(1, 5))
    lo, hi, _ = draw(ranges(n))
    d = draw(st.integers(1, 4))
    whole = draw(st.booleans())
    Phi = rng.integers(-3, 4, size=(n, d)).astype(float) if whole else rng.standard_normal((n, d))
    means = rng.integers(-3, 4, size=(k, d)).astype(float) if whole else rng.standard_normal((k, d))
    norms = (means**2).sum(axis=1)
    norms[rng.permutation(k)[: draw(st.integers(0, k - 1))]] = np.inf
    coefs = rng.choice([0.25, 0.5, 1.0], size=k)
    tolerance = draw(st.sampled_from([0.0, 0.5, 2.0])) if whole else 0.0
    return whole, read_only(Phi), means, norms, coefs, rng.integers(k, size=n), tolerance, lo, hi


@quick
@given(mean_cases())
def test_nearest_means_equals_its_twin_and_follows_its_rule(case):
    whole, Phi, means, norms, coefs, labels, tolerance, lo, hi = case
    diag, columns, results = (Phi**2).sum(axis=1), np.ascontiguousarray(means.T), []
    for loops in (row_loops, numpy_loops):
        out, chosen = np.full(len(labels), -9), np.full(len(labels), -9.0)
        lead = loops.nearest_means(Phi, diag, columns, norms, coefs, labels, tolerance, out, chosen, lo, hi)
        assert (np.delete(out, np.s_[lo:hi]) == -9).all()
        assert (np.delete(chosen, np.s_[lo:hi]) == -9.0).all()
        results.append((out, chosen, lead))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    close(results[0][1], results[1][1])
    close(results[0][2], results[1][2])
    if whole:
        np.testing.assert_array_equal(results[0][1], results[1][1])
        assert results[0][2] == results[1][2]
    values = np.full((len(norms), len(labels)), np.inf)
    for c in np.flatnonzero(np.isfinite(norms)):
        values[c] = coefs[c] * ((Phi - means[c]) ** 2).sum(axis=1)
    follow_the_rule(values, labels, tolerance, results[0], lo, hi)


@pytest.mark.parametrize("lo", [0, 1, 255, 256, 300])
def test_the_tiles_of_nearest_means_fit_together_wherever_a_range_begins(lo):
    rng = np.random.default_rng(0)
    Phi = read_only(rng.standard_normal((1000, 3)))
    means, labels = rng.standard_normal((4, 3)), rng.integers(4, size=1000)
    arguments = (
        Phi,
        (Phi**2).sum(axis=1),
        np.ascontiguousarray(means.T),
        (means**2).sum(axis=1),
        np.ones(4),
        labels,
        0.0,
    )
    whole, tail = ((np.full(1000, -9), np.full(1000, -9.0)) for _ in range(2))
    row_loops.nearest_means(*arguments, *whole, 0, 1000)
    row_loops.nearest_means(*arguments, *tail, lo, 1000)
    np.testing.assert_array_equal(whole[0][lo:], tail[0][lo:])
    close(whole[1][lo:], tail[1][lo:])
    assert (tail[0][:lo] == -9).all()


@st.composite
def size_cases(draw):
    """Draw what ``assign_by_size`` takes: ties, empty clusters without a centre, weights of zero."""
    rng, n, k = draw(generators()), draw(st.integers(1, 60)), draw(st.integers(1, 5))
    values = rng.integers(0, 4, size=(n, k)).astype(float) if draw(st.booleans()) else rng.random((n, k))
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=n)
    labels = rng.integers(k, size=n)
    values[:, np.bincount(labels, weights, k) <= 0] = np.inf
    return values, weights, labels, draw(st.sampled_from([0.0, 1e-12, 0.5]))


@quick
@given(size_cases())
def test_assign_by_size_equals_its_twin_bit_by_bit_and_its_rule(case):
    values, weights, labels, tolerance = case
    totals = np.bincount(labels, weights, values.shape[1])
    results = []
    for loops in (row_loops, numpy_loops):
        out, sizes = np.full(len(labels), -9), totals.copy()
        loops.assign_by_size(values, weights, sizes, labels, tolerance, out)
        results.append((out, sizes))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    out, sizes = results[0]
    np.testing.assert_allclose(sizes, np.bincount(out, weights, len(sizes)), rtol=0, atol=1e-12)
    now = labels.copy()
    for i, row in enumerate(values):
        if not np.isfinite(row).any():
            continue
        others = np.arange(len(now)) != i
        size = np.bincount(now[others], weights[others], len(row))
        scaled = np.array([size[c] * row[c] if np.isfinite(row[c]) else np.inf for c in range(len(row))])
        least = np.flatnonzero(scaled <= scaled.min() + tolerance)
        assert out[i] == (labels[i] if labels[i] in least else least[0])
        now[i] = out[i]


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
def test_sizes_follow_every_sample_at_once(loops):
    # Two equal samples of a cluster of three, next to a cluster of one. The first goes over, the other stays behind.
    values, out, sizes = np.full((2, 2), [1.5, 2.0]), np.empty(2, dtype=np.int64), np.array([3.0, 1.0])
    loops.assign_by_size(values, np.ones(2), sizes, np.array([0, 0]), 0.0, out)
    assert out.tolist() == [1, 0]
    assert sizes.tolist() == [2.0, 2.0]


@quick
@given(K=st.one_of(psd_kernels(), indefinite_kernels()), dtype=dtypes, rng=generators(), noise=st.booleans())
def test_worst_asymmetry_equals_its_twin_and_its_definition(K, dtype, rng, noise):
    K = (K + 1e-3 * noise * rng.standard_normal(K.shape)).astype(dtype)
    n = len(K)
    lo = rng.integers(n)
    hi = rng.integers(lo, n) + 1
    wide = K.astype(np.float64)
    differences = np.abs(wide - wide.T)[lo:hi]
    asked = np.triu(np.ones((n, n), dtype=bool))
    asked[:lo] = False
    asked[hi:] = False
    worst = np.abs(wide - wide.T)[asked].max()
    for loops in (row_loops, numpy_loops):
        difference, peak, i, j = loops.worst_asymmetry(K, lo, hi)
        assert difference == pytest.approx(worst, rel=1e-6, abs=0)  # differences of float32 may be float32
        assert peak == max(np.abs(wide[asked]).max(), np.abs(wide.T[asked]).max())
        assert lo <= i < hi
        assert j >= i
        assert differences[i - lo, j] == pytest.approx(difference, rel=1e-6, abs=0)


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_asymmetry_is_found_piece_by_piece(loops, dtype):
    K = np.random.default_rng(0).standard_normal((141, 141)).astype(dtype)
    found, tickets = np.full((3, 4), -9.0), np.array([1, 1])
    assert loops.asymmetry_pieces(K, found, tickets, 60, True)
    assert tickets[1] == 3
    assert (found[0] == -9.0).all()  # another thread has it
    for piece, (lo, hi) in ((1, (60, 120)), (2, (120, 141))):
        assert tuple(found[piece]) == loops.worst_asymmetry(K, lo, hi)
    tickets[1] = 2
    assert not loops.asymmetry_pieces(K, found, tickets, 60, True)
    tickets[1] = 3
    assert not loops.asymmetry_pieces(K, found, tickets, 60, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_entry_that_differs_is_found_in_every_part_of_a_tile(dtype):
    # 141 rows do not fill whole tiles or blocks: every entry of a block is tried, and some of the rest.
    values = np.random.default_rng(0).standard_normal((141, 141))
    K = (values + values.T).astype(dtype)
    places = [(i, j) for i in range(64, 72) for j in range(128, 136)]
    for i, j in [*places, *[(j, i) for i, j in places], (140, 3), (3, 140), (139, 138), (70, 140), (0, 1), (63, 64)]:
        K[i, j] += 1e-3
        difference, _, row, col = row_loops.worst_asymmetry(K, 0, 141)
        assert (row, col) == (min(i, j), max(i, j))
        assert difference == pytest.approx(1e-3, rel=1e-2)
        K[i, j] = K[j, i]
    assert row_loops.worst_asymmetry(K, 0, 141)[0] == 0.0
    # Tiles that are mirror images are not looked at entry by entry.
    bits = K.view(np.int64 if dtype is np.float64 else np.int32)
    assert symmetry._mirrored(read_only(bits), 0, 61, 64, 141)
    bits[100, 3] ^= 1
    assert not symmetry._mirrored(read_only(bits), 0, 61, 64, 141)


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_found_where_they_are_symmetric(loops, value):
    K = np.ones((141, 141))
    K[70, 130] = value
    K[130, 70] = value
    assert loops.worst_asymmetry(K, 0, 141) == (np.inf, np.inf, 70, 130)


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (1, 3), (3, 1), (70, 2), (2, 70)])
def test_a_value_that_is_not_finite_is_reported_at_its_own_place(loops, value, place):
    K = np.ones((80, 80))
    K[place] = value
    difference, peak, i, j = loops.worst_asymmetry(K, 0, 80)
    assert np.isinf(difference)
    assert np.isinf(peak)
    assert (i, j) == place


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
def test_sums_over_a_float32_kernel_are_kept_in_float64(loops):
    # Next to 1e8 a float32 total steps by 8: ones added to it one by one would all be lost.
    K = np.ones((101, 5), dtype=np.float32)
    K[0] = 1e8
    assert np.float32(1e8) + np.float32(1.0) == np.float32(1e8)
    assert np.cumsum(K, axis=0, dtype=np.float32)[-1].tolist() == [1e8] * 5
    rows, weights = np.arange(101), np.ones(101)
    sums = np.zeros((1, 5))
    K = read_only(K)
    loops.scatter_rows(K, rows, np.zeros(101, dtype=np.intp), weights, sums, 0, 5, 0)
    assert sums.tolist() == [[100000100.0] * 5]
    moved = np.zeros((2, 5))
    loops.move_rows(K, rows, np.zeros(101, dtype=np.intp), np.ones(101, dtype=np.intp), weights, moved, 0, 5, 0)
    assert moved.tolist() == [[-100000100.0] * 5, [100000100.0] * 5]


@pytest.mark.parametrize("loops", [row_loops, numpy_loops], ids=["numba", "numpy"])
def test_a_weight_finer_than_float32_is_not_rounded_to_it(loops):
    K = read_only(np.ones((1, 2), dtype=np.float32))
    weight = 1.0 + 2.0**-40
    sums = np.zeros((1, 2))
    loops.scatter_rows(K, np.array([0]), np.array([0]), np.array([weight]), sums, 0, 2, 0)
    assert sums.tolist() == [[weight, weight]]
