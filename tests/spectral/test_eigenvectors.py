"""Leading eigenvectors of weighted sums of kernels: both ways against the full decomposition of the plain matrix."""

import tracemalloc
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kernelweave.backends.host import HostBackend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import DegreeKernel, ScaledKernel
from kernelweave.kernels.weighted_sum import composite
from kernelweave.solvers.spectral import eigenvectors as module
from kernelweave.solvers.spectral.eigenvectors import GramSpectrum, KrylovSpectrum, extension, spectrum
from tests.strategies import generators, sample_weights, views

cases = settings(max_examples=25, deadline=None)
FINE = 1e-9
ALL = slice(None)


@pytest.mark.parametrize("form", ["dense", "features"])
@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_vectors_of_other_weights_lead_to_those_of_new_ones(form, tol, monkeypatch):
    monkeypatch.setattr(module, "FEWEST_TRACKED", 20)
    rng = np.random.default_rng(3)
    data = [rng.standard_normal((120, 110)) * 0.98 ** np.arange(110) for _ in range(3)]
    if form == "features":
        data = [X[:, :36] for X in data]
    op = FORMS[form](data if form == "features" else [0.2 * X for X in data])
    weights = np.linspace(0.5, 1.5, 120)
    way = spectrum(op, weights)
    old = way.leading(np.array([0.4, 0.3, 0.3]), 3, tol)
    here = np.array([0.35, 0.35, 0.3])
    decomposed = []
    plain = module.leading_of
    monkeypatch.setattr(module, "leading_of", lambda *given: decomposed.append(1) or plain(*given))
    new = way.leading(here, 3, tol, old)
    assert bool(decomposed) == (new.residual == 0.0)
    assert tol < 1e-6 or not decomposed  # rough ones take products alone
    exact = spectrum(op, weights).leading(here, 3, tol)
    assert new.residual <= tol
    close = {"rtol": 1e-9, "atol": tol * exact.values[0]}
    np.testing.assert_allclose(new.values, exact.values, **close)
    np.testing.assert_allclose(new.traces, exact.traces, **close)
    again = way.leading(np.array([0.4, 0.3, 0.3]), 3, tol, new)
    np.testing.assert_allclose(again.traces, old.traces, **close)


@pytest.mark.parametrize("kept", [1, 3])
def test_restarts_from_more_vectors_find_the_same_ones(kept):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    values = 1.0 - 0.001 * np.arange(300)
    matrix = (Q * values) @ Q.T
    found, block, residual = module.leading_vectors(lambda part: matrix @ part, 300, 3, 1e-8, kept=kept)
    assert residual <= 1e-8
    np.testing.assert_allclose(found[:3], values[:3], rtol=1e-12)
    np.testing.assert_allclose(np.abs(block[:, :3].T @ Q[:, :3]), np.eye(3), atol=1e-4)


@pytest.mark.parametrize("kept", [1, 3])
def test_rough_vectors_are_looked_at_halfway_and_the_basis_goes_on_from_there(kept):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    widths = []

    def product_of(values):
        matrix = (Q * values) @ Q.T
        return lambda part: (widths.append(part.shape[1]), matrix @ part)[1]

    def blocks(values, tol):
        widths.clear()
        _, _, residual = module.leading_vectors(product_of(values), 300, 3, tol, restarts=1, kept=kept)
        return len(widths), residual

    apart = 0.9 ** np.arange(300.0)
    together = 1.0 / (1.0 + 0.02 * np.arange(300))
    whole, exact = blocks(apart, 1e-15)
    assert whole == module.DEPTH
    half, rough = blocks(apart, 1e-3)
    assert half == module.DEPTH // 2
    assert exact < rough <= 1e-3
    # Half is not enough here: the basis that goes on is the one that was never looked at.
    _, plain = blocks(together, 1e-15)
    going_on, residual = blocks(together, 1e-4)
    assert going_on == module.DEPTH
    assert residual == pytest.approx(plain, rel=1e-6)


def test_vectors_near_those_of_other_weights_that_are_not_good_enough_are_searched_anew(monkeypatch):
    monkeypatch.setattr(HostBackend, "direct_limit", 20)
    monkeypatch.setattr(module, "NEARBY_BLOCKS", 1)  # there is no room for vectors nearby
    rng = np.random.default_rng(0)
    kernels = [(B := rng.standard_normal((320, 12))) @ B.T for _ in range(2)]
    shared = module.KrylovSpectrum(composite([DenseKernel(K) for K in kernels], np.ones(2)), np.ones(320))
    first = shared.leading(np.array([1.0, 0.1]), 3, 1e-8)
    second = shared.leading(np.array([0.1, 1.0]), 3, 1e-8, first)
    assert second.residual <= 1e-8
    expected = np.linalg.eigvalsh(0.1 * kernels[0] + kernels[1])[::-1][:3]
    np.testing.assert_allclose(second.values, expected, rtol=1e-9)


@pytest.fixture
def few_are_many(monkeypatch):
    """More than twenty samples go the way of very many."""
    monkeypatch.setattr(HostBackend, "direct_limit", 20)


def gaussian(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 4.0)


def neighbors(X):
    """Return a sparse symmetric graph with self-loops."""
    K = gaussian(X)
    return sp.csr_array(np.where(K > 0.2, K, 0.0))


def lazy(X):
    return fit_kernel(X, "rbf", {"gamma": 0.25}).operator("blockwise")


def widened(X):
    """Return more features than samples."""
    return np.hstack([np.sin(X @ np.random.default_rng(7).standard_normal((X.shape[1], len(X)))), X])


#: Operators of several views; what they are the plain matrices of comes from their own blocks, which others test.
FORMS = {
    "features": lambda data: composite([FeatureKernel(X) for X in data], np.ones(len(data))),
    "scaled features": lambda data: composite([ScaledKernel(FeatureKernel(X), 0.3) for X in data], np.ones(len(data))),
    "sparse features": lambda data: composite([FeatureKernel(sp.csr_array(X)) for X in data], np.ones(len(data))),
    "wide features": lambda data: composite([FeatureKernel(widened(X)) for X in data], np.ones(len(data))),
    "dense": lambda data: composite([DenseKernel(gaussian(X)) for X in data], np.ones(len(data))),
    "scaled dense": lambda data: composite([ScaledKernel(DenseKernel(gaussian(X)), 3.0) for X in data], [1.0] * 3),
    "blockwise": lambda data: composite([lazy(X) for X in data], np.ones(len(data))),
    "graph": lambda data: composite([GraphKernel(neighbors(X)) for X in data], np.ones(len(data))),
    "by degrees": lambda data: composite([DegreeKernel(GraphKernel(neighbors(X))) for X in data], np.ones(len(data))),
    "mixed": lambda data: composite(
        [DenseKernel(gaussian(data[0])), GraphKernel(neighbors(data[1])), ScaledKernel(FeatureKernel(data[2]), 0.5)],
        np.ones(3),
    ),
}
forms = pytest.mark.parametrize("form", FORMS)
GRAM = {"features", "scaled features"}


def grouped(seed, n):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    return [3.0 * rng.standard_normal((4, d))[y] + rng.standard_normal((n, d)) for d in (4, 3, 5)], rng


def matrices(op):
    """Return the plain matrix of every view."""
    return [op.with_weights(unit).block(ALL, ALL) for unit in np.eye(len(op.coefficients))]


def plain(kernels, coefficients, weights):
    """Return all eigenvalues of the plain sum, largest first, and their vectors."""
    root, K = np.sqrt(weights), sum(c * K for c, K in zip(coefficients, kernels, strict=True))
    values, vectors = np.linalg.eigh(root[:, None] * K * root)
    return values[::-1], vectors[:, ::-1]


def check(pairs, kernels, coefficients, weights, count, tol=1e-7):
    """Compare everything with the plain decomposition; vectors by the space they span."""
    values, vectors = plain(kernels, coefficients, weights)
    Y, size, gap = vectors[:, :count], values[0], values[count - 1] - values[count]
    assert gap > 1e-4 * size, "without a gap the space is not unique"
    np.testing.assert_allclose(pairs.values, values[:count], rtol=0, atol=tol * size)
    H = np.sqrt(weights)[:, None] * Y
    traces = np.array([np.sum(H * (K @ H)) for K in kernels])
    np.testing.assert_allclose(pairs.traces, traces, rtol=0, atol=10 * tol * np.abs(traces).max())
    # f = W^-1/2 Y where there is weight, and everywhere the extension of Y through the kernel.
    E, S = pairs.embedding(), pairs.sources()
    V = np.sqrt(weights)[:, None] * E
    np.testing.assert_allclose(V.T @ V, np.eye(count), atol=tol)
    np.testing.assert_allclose(V @ V.T, Y @ Y.T, atol=10 * tol)
    K = sum(c * K for c, K in zip(coefficients, kernels, strict=True))
    np.testing.assert_allclose(K @ S, E, rtol=0, atol=tol * np.abs(E).max())
    np.testing.assert_allclose(S, weights[:, None] * E / pairs.values, rtol=0, atol=tol * np.abs(S).max())


# --- against the full decomposition ----------------------------------------------------------------------------------


@forms
@pytest.mark.parametrize("weighted", [False, True])
def test_few_samples_give_the_pairs_of_the_plain_matrix(form, weighted):
    data, rng = grouped(0, 60)
    op = FORMS[form](data)
    weights = rng.uniform(0.0, 2.0, 60) * (np.arange(60) % 5 > 0) if weighted else np.ones(60)
    spectra = spectrum(op, weights)
    assert isinstance(spectra, GramSpectrum if form in GRAM else KrylovSpectrum)
    for coefficients in ([1.0, 1.0, 1.0], [0.2, 0.05, 0.6]):
        pairs = spectra.leading(np.array(coefficients), 3, FINE)
        assert pairs.residual == 0.0
        check(pairs, matrices(op), coefficients, weights, 3)


@pytest.mark.usefixtures("few_are_many")
@forms
@pytest.mark.parametrize("weighted", [False, True])
def test_many_samples_give_the_pairs_of_the_plain_matrix(form, weighted):
    data, rng = grouped(1, 200)
    op = FORMS[form](data)
    weights = rng.uniform(0.0, 2.0, 200) * (np.arange(200) % 5 > 0) if weighted else np.ones(200)
    spectra, pairs = spectrum(op, weights), None
    for coefficients in ([1.0, 1.0, 1.0], [0.2, 0.05, 0.6]):
        pairs = spectra.leading(np.array(coefficients), 3, FINE, pairs)
        assert pairs.residual <= FINE
        check(pairs, matrices(op), coefficients, weights, 3)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("form", ["dense", "graph", "sparse features"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_the_residual_is_what_the_vectors_leave_and_no_more_than_asked_for(form, tol):
    data, _ = grouped(2, 150)
    op = FORMS[form](data)
    spectra = spectrum(op, np.ones(150))
    pairs = spectra.leading(np.array([0.5, 0.3, 0.2]), 4, tol)
    K = op.with_weights([0.5, 0.3, 0.2]).block(ALL, ALL)
    Y = pairs.sources() * pairs.values
    np.testing.assert_allclose(Y.T @ Y, np.eye(4), atol=1e-12)
    left = np.linalg.norm(K @ Y - Y * pairs.values, axis=0).max() / np.abs(pairs.values).max()
    assert pairs.residual == pytest.approx(left, rel=1e-3, abs=1e-12)
    assert pairs.residual <= tol
    # Values are right to the square of the residual.
    assert np.abs(pairs.values - np.linalg.eigvalsh(K)[::-1][:4]).max() <= 10 * tol**1.5 * pairs.values[0] + 1e-12


@cases
@given(data=st.data())
def test_both_ways_agree_on_features_of_any_rank(data):
    data_views, rng = data.draw(views(min_n=14, max_n=20, max_views=3)), data.draw(generators())
    n, weights = len(data_views[0]), data.draw(sample_weights(len(data_views[0])))
    coefficients = rng.uniform(0.1, 1.0, len(data_views))
    op = FORMS["features"](data_views)
    gram, krylov = GramSpectrum(op, weights), KrylovSpectrum(op, weights)
    count = data.draw(st.integers(1, sum(X.shape[1] for X in data_views)))
    one, other = (way.leading(coefficients, count, FINE) for way in (gram, krylov))
    size = max(float(np.abs(other.values).max()), 1e-300)
    np.testing.assert_allclose(one.values, other.values, rtol=0, atol=1e-12 * n * size)
    # Vectors without an eigenvalue are not part of the first, whose traces they do not touch when all views count.
    scale = np.array([np.trace(K * weights) for K in matrices(op)]).max(initial=1e-300)
    np.testing.assert_allclose(coefficients @ one.traces, coefficients @ other.traces, rtol=0, atol=1e-9 * scale)
    assert coefficients @ one.traces == pytest.approx(one.values.sum(), rel=0, abs=1e-9 * scale)


# --- the way chosen --------------------------------------------------------------------------------------------------


def test_fewer_features_than_samples_go_through_their_gram_matrix_and_all_else_through_products():
    data, _ = grouped(0, 30)
    ones = np.ones(30)
    assert isinstance(spectrum(FORMS["features"](data), ones), GramSpectrum)
    square = composite([FeatureKernel(np.eye(30))], [1.0])
    assert isinstance(spectrum(square, ones), GramSpectrum)
    for form in set(FORMS) - GRAM:
        assert isinstance(spectrum(FORMS[form](data), ones), KrylovSpectrum)


def test_no_more_pairs_are_given_than_there_are_features_or_samples():
    X = np.random.default_rng(0).standard_normal((9, 2))
    gram = spectrum(composite([FeatureKernel(X)], [1.0]), np.ones(9))
    pairs = gram.leading(np.ones(1), 5, FINE)
    assert pairs.values.shape == (2,)
    assert pairs.embedding().shape == (9, 2)
    full = spectrum(composite([DenseKernel(gaussian(X))], [1.0]), np.ones(9))
    pairs = full.leading(np.ones(1), 12, FINE)
    assert pairs.values.shape == (9,)
    assert pairs.embedding().shape == (9, 9)


# --- repeated, missing and negative eigenvalues ----------------------------------------------------------------------


def islands(seed, n_islands, size=25):
    """Return a graph of several components, each of them connected, shuffled, and the component of every node."""
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.repeat(np.arange(n_islands), size))
    A = np.where(owner[:, None] == owner[None], rng.random((len(owner),) * 2) < 0.3, False)
    A = np.maximum(A, A.T).astype(float)
    np.fill_diagonal(A, 1.0)
    return A, owner


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("n_islands", [3, 7, 9])
def test_a_graph_of_several_components_has_the_value_one_as_often_and_their_indicators(n_islands):
    A, owner = islands(0, n_islands)
    B, _ = islands(1, n_islands)
    B = np.where(owner[:, None] == owner[None], np.maximum(B, np.eye(len(B))), 0.0)
    op = composite([DegreeKernel(GraphKernel(sp.csr_array(M))) for M in (A, B)], [1.0, 1.0])
    spectra = spectrum(op, np.ones(len(A)))
    pairs = spectra.leading(np.array([1.0, 0.0]), n_islands, FINE)
    np.testing.assert_allclose(pairs.values, 1.0, atol=1e-9)
    # The space is that of the square roots of the degrees, component by component.
    roots = np.sqrt(A.sum(axis=1))
    expected = np.array([np.where(owner == c, roots, 0.0) for c in range(n_islands)]).T
    expected /= np.linalg.norm(expected, axis=0)
    Y = pairs.embedding()
    np.testing.assert_allclose(Y @ Y.T, expected @ expected.T, atol=1e-6)
    assert pairs.traces[0] == pytest.approx(n_islands)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("n_islands", [12, 40])
def test_more_components_than_vectors_in_a_block_do_no_harm(n_islands):
    A, _ = islands(0, n_islands, size=6)
    op = composite([DegreeKernel(GraphKernel(sp.csr_array(A)))], [1.0])
    spectra = spectrum(op, np.ones(len(A)))
    pairs = spectra.leading(np.ones(1), 4, FINE)
    np.testing.assert_allclose(pairs.values, 1.0, atol=1e-9)
    assert pairs.residual <= FINE
    np.testing.assert_allclose(pairs.embedding().T @ pairs.embedding(), np.eye(4), atol=1e-8)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("n", [15, 21, 30, 90])
@pytest.mark.parametrize("rank", [1, 3])
def test_missing_ranks_have_values_of_zero_and_no_place_in_the_embedding(n, rank):
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((n, rank))
    ways = [
        spectrum(composite([DenseKernel(Phi @ Phi.T)], [1.0]), np.ones(n)),
        spectrum(composite([FeatureKernel(np.hstack([Phi, Phi, Phi]))], [1 / 3]), np.ones(n)),
        spectrum(composite([FeatureKernel(sp.csr_array(Phi))], [1.0]), np.ones(n)),
    ]
    for way, factor in zip(ways, (1.0, 1 / 3, 1.0), strict=True):
        pairs = way.leading(np.array([factor]), rank + 2, FINE)
        count = len(pairs.values)
        np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(Phi @ Phi.T)[::-1][:count], atol=1e-10 * n)
        E, S = pairs.embedding(), pairs.sources()
        assert (E[:, rank:] == 0.0).all()
        assert (S[:, rank:] == 0.0).all()
        np.testing.assert_allclose(E[:, :rank].T @ E[:, :rank], np.eye(rank), atol=1e-9)
        np.testing.assert_allclose(E[:, :rank] @ E[:, :rank].T, Phi @ np.linalg.pinv(Phi), atol=1e-9)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("n", [15, 100])
def test_a_sum_without_any_coefficient_has_no_eigenvectors(n):
    X = np.random.default_rng(0).standard_normal((n, 3))
    for op in (composite([DenseKernel(gaussian(X))], [1.0]), FORMS["features"]([X]), composite([lazy(X)], [1.0])):
        spectra = spectrum(op, np.ones(n))
        pairs = spectra.leading(np.zeros(1), 2, FINE)
        assert (pairs.values == 0.0).all()
        assert not pairs.embedding().any()


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("n", [15, 120])
@pytest.mark.parametrize("seed", range(3))
def test_of_an_indefinite_kernel_the_largest_values_are_found_not_the_longest(n, seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.concatenate([[5.0, 4.0, 3.0], rng.uniform(-50.0, 1.0, n - 3)])
    K = (basis * values) @ basis.T
    spectra = spectrum(composite([DenseKernel((K + K.T) / 2)], [1.0]), np.ones(n))
    pairs = spectra.leading(np.ones(1), 3, 1e-8)
    np.testing.assert_allclose(pairs.values, [5.0, 4.0, 3.0], rtol=1e-6)
    np.testing.assert_allclose(pairs.embedding() @ pairs.embedding().T, basis[:, :3] @ basis[:, :3].T, atol=1e-5)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("n", [12, 60])
def test_negative_values_have_no_place_in_the_embedding(n):
    K = -np.eye(n)
    K[0, 0] = 2.0
    spectra = spectrum(composite([DenseKernel(K)], [1.0]), np.ones(n))
    pairs = spectra.leading(np.ones(1), 3, FINE)
    np.testing.assert_allclose(pairs.values, [2.0, -1.0, -1.0], atol=1e-9)
    assert pairs.traces[0] == pytest.approx(0.0, abs=1e-8)
    assert (pairs.embedding()[:, 1:] == 0.0).all()


def test_one_over_a_value_is_zero_where_the_value_is():
    np.testing.assert_array_equal(extension(np.array([4.0, 0.5, 1e-12, 0.0, -1.0])), [0.25, 2.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(extension(np.array([0.0, -1.0])), [0.0, 0.0])
    assert extension(np.array([1e-200, 5e-201])) == pytest.approx([1e200, 2e200])


# --- weights and the way from one sum to the next --------------------------------------------------------------------


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("form", ["features", "sparse features", "dense", "scaled dense", "blockwise"])
@pytest.mark.parametrize("n", [16, 60])
def test_a_weight_is_the_same_as_repetition(form, n):
    data, rng = grouped(3, n)
    counts = rng.integers(0, 4, n)
    rows = np.repeat(np.arange(n), counts)
    one = spectrum(FORMS[form](data), counts.astype(float))
    other = spectrum(FORMS[form]([X[rows] for X in data]), np.ones(len(rows)))
    coefficients = np.array([0.5, 0.2, 0.3])
    weighted, repeated = (way.leading(coefficients, 3, FINE) for way in (one, other))
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=1e-8)
    np.testing.assert_allclose(weighted.traces, repeated.traces, rtol=1e-6)
    E, R = weighted.embedding(), repeated.embedding()
    np.testing.assert_allclose(E[rows] @ E[rows].T, R @ R.T, atol=1e-6)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("form", ["dense", "graph", "blockwise", "sparse features", "mixed"])
def test_a_start_from_the_last_vectors_never_lowers_what_they_explain(form):
    data, rng = grouped(4, 150)
    op = FORMS[form](data)
    spectra = spectrum(op, rng.uniform(0.5, 2.0, 150))
    before = spectra.leading(np.full(3, 1 / 3), 4, 1e-2)
    for _ in range(8):
        coefficients = rng.dirichlet(np.full(3, 0.5)) ** 2
        after = spectra.leading(coefficients, 4, 10.0, before)  # content with whatever it starts from
        assert coefficients @ after.traces >= (coefficients @ before.traces) * (1 - 1e-12)
        assert coefficients @ after.traces == pytest.approx(after.values.sum())
        before = after


@pytest.mark.usefixtures("few_are_many")
def test_a_start_from_the_last_vectors_needs_fewer_products(monkeypatch):
    data, _ = grouped(5, 200)
    op, products = FORMS["dense"](data), []
    real = DenseKernel.matmat
    monkeypatch.setattr(DenseKernel, "matmat", lambda self, block: products.append(1) or real(self, block))
    monkeypatch.setattr(module, "DEPTH", 2)
    spectra = spectrum(op, np.ones(200))
    pairs = spectra.leading(np.array([0.4, 0.3, 0.3]), 4, 1e-6)
    cold = len(products)
    spectra.leading(np.array([0.4001, 0.3, 0.2999]), 4, 1e-6, pairs)
    warm = len(products) - cold
    traces = 3  # every search ends with one product for each view
    assert warm - traces < 0.7 * (cold - traces)
    products.clear()
    spectra.leading(np.array([0.4001, 0.3, 0.2999]), 4, 1e-6)  # without it the search begins anew
    assert len(products) > warm


def test_a_search_keeps_its_basis_and_multiplies_only_what_is_not_good_enough(monkeypatch):
    monkeypatch.setattr(module, "FEWEST_TRACKED", 20)
    rng = np.random.default_rng(3)
    op = FORMS["dense"]([0.2 * rng.standard_normal((200, 190)) * 0.97 ** np.arange(190) for _ in range(3)])
    columns = []
    real = KrylovSpectrum._images
    monkeypatch.setattr(KrylovSpectrum, "_images", lambda self, H: columns.append(H.shape[1]) or real(self, H))
    way = spectrum(op, np.ones(200))
    pairs = way.leading(np.array([0.4, 0.3, 0.3]), 5, 1e-5)
    width = 5 + module.GUARD
    assert columns == [width]
    steps = []
    for c in (0.33, 0.331, 0.3311, 0.3311):
        columns.clear()
        pairs = way.leading(np.array([0.7 - c, c, 0.3]), 5, 1e-5, pairs)
        steps.append(sum(columns))
        assert all(added <= 5 for added in columns)  # the guards are not improved
        assert pairs.residual <= 1e-5
        assert width < pairs.block.shape[1] <= module.KEPT_BLOCKS * width
        np.testing.assert_allclose(pairs.block.T @ pairs.block, np.eye(pairs.block.shape[1]), atol=1e-12)
        np.testing.assert_array_equal(pairs.block[:, :5], pairs.vectors)
    assert steps[0] > steps[1] >= steps[2]
    assert steps[1] < width
    assert steps[3] == 0  # the same weights again


@pytest.mark.usefixtures("few_are_many")
def test_pairs_of_other_coefficients_stay_as_they_were():
    data, _ = grouped(5, 80)
    for form in ("dense", "features", "sparse features"):
        spectra = spectrum(FORMS[form](data), np.ones(80))
        first = spectra.leading(np.array([0.4, 0.3, 0.3]), 3, FINE)
        values, embedding, sources = first.values.copy(), first.embedding().copy(), first.sources().copy()
        spectra.leading(np.array([0.1, 0.1, 0.8]), 3, FINE, first)
        np.testing.assert_array_equal(first.values, values)
        np.testing.assert_array_equal(first.embedding(), embedding)
        np.testing.assert_array_equal(first.sources(), sources)
        with pytest.raises(FrozenInstanceError):
            first.values = values


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("form", ["dense", "sparse features"])
def test_another_number_of_vectors_can_be_asked_for(form):
    data, _ = grouped(5, 80)
    op = FORMS[form](data)
    spectra, coefficients = spectrum(op, np.ones(80)), np.full(3, 1 / 3)
    pairs = None
    for count in (4, 2, 3):
        pairs = spectra.leading(coefficients, count, FINE, pairs)
        assert pairs.embedding().shape == (80, count)
        values, _ = plain(matrices(op), coefficients, np.ones(80))
        np.testing.assert_allclose(pairs.values, values[:count], rtol=1e-8)


def with_threads(op, n, threads):
    """Return values, traces, embedding and sources after two sums, as so many threads find them."""
    with threadpool_limits(threads):
        spectra = spectrum(op, np.ones(n))
        pairs = None
        for coefficients in ([1.0, 1.0, 1.0], [0.2, 0.3, 0.5]):
            pairs = spectra.leading(np.array(coefficients), 4, 1e-6, pairs)
        return pairs.values, pairs.traces, pairs.embedding(), pairs.sources()


@pytest.mark.parametrize("n", [60, 1300])
@pytest.mark.parametrize("form", ["features", "dense", "graph", "sparse features"])
def test_one_thread_and_two_give_the_same_values_and_the_same_space(form, n):
    op = FORMS[form](grouped(6, n)[0])
    one, two = (with_threads(op, n, threads) for threads in (1, 2))
    np.testing.assert_allclose(one[0], two[0], rtol=1e-9)
    np.testing.assert_allclose(one[1], two[1], rtol=1e-9)
    for E, F in zip(one[2:], two[2:], strict=True):
        np.testing.assert_allclose(E.T @ F @ (F.T @ E), np.square(E.T @ E), atol=1e-8 * np.square(E.T @ E).max())
        np.testing.assert_allclose(np.abs(E), np.abs(F), atol=1e-7 * np.abs(E).max())


def test_one_thread_and_two_give_the_same_vectors_of_stored_kernels():
    op = FORMS["dense"](grouped(6, 1300)[0])
    one, two = (with_threads(op, 1300, threads) for threads in (1, 2))
    np.testing.assert_allclose(one[2], two[2], atol=1e-7)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(rng=generators(), form=st.sampled_from(sorted(FORMS)))
def test_arguments_are_left_as_they_were(rng, form):
    data, _ = grouped(int(rng.integers(99)), 30)
    op, weights, coefficients = FORMS[form](data), rng.uniform(0.5, 2.0, 30), rng.uniform(0.1, 1.0, 3)
    copies, before = (weights.copy(), coefficients.copy()), op.coefficients.copy()
    spectra = spectrum(op, weights)
    pairs = spectra.leading(coefficients, 3, FINE)
    pairs.embedding()[:] = 0.0
    pairs.sources()[:] = 0.0
    for value, copy in zip((weights, coefficients, op.coefficients), (*copies, before), strict=True):
        np.testing.assert_array_equal(value, copy)
    assert pairs.embedding().any()


def test_without_room_the_sum_is_applied_view_by_view_and_gives_the_same_pairs():
    X = np.random.default_rng(0).standard_normal((260, 3))
    kernels = [DenseKernel(gaussian(X)), DenseKernel(gaussian(2.0 * X))]
    op = composite([ScaledKernel(kernels[0], 0.5), ScaledKernel(kernels[1], 3.0)], [0.5, 0.5])
    weights = np.ones(260)
    coefficients = np.array([0.3, 0.7])
    roomy = KrylovSpectrum(op, weights).leading(coefficients, 3, 1e-9)
    cramped = KrylovSpectrum(op, weights, room=0.0).leading(coefficients, 3, 1e-9)
    assert roomy.summed().stored_matrix() is not None
    assert cramped.summed().stored_matrix() is None
    assert roomy.residual == 0.0  # decomposed as a whole
    assert 0.0 < cramped.residual <= 1e-9
    np.testing.assert_allclose(cramped.values, roomy.values, rtol=1e-8)
    np.testing.assert_allclose(cramped.traces, roomy.traces, rtol=1e-6)


def test_a_restart_leaves_the_bases_before_it_behind():
    n = 3000
    diagonal = np.linspace(0.99, 1.0, n)[:, None]  # values so close that no restart is the last one
    tracemalloc.start()
    module.leading_vectors(lambda block: diagonal * block, n, 4, 1e-12, restarts=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    basis = module.DEPTH * (4 + module.GUARD) * n * 8
    assert peak < 3.5 * basis  # the basis, its image, and what a restart goes on from
