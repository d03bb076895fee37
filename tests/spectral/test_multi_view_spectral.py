"""Multi-view spectral clustering before rounding: against the full decomposition, laws, ends and limits."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends.host import HostBackend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import DegreeKernel, ScaledKernel
from kernelweave.kernels.weighted_sum import composite
from kernelweave.solvers.spectral import multi_view_spectral as module
from kernelweave.solvers.spectral.eigenvectors import spectrum
from kernelweave.solvers.spectral.multi_view_spectral import multi_view_spectral
from tests.reference import multi_view as oracle
from tests.strategies import generators, psd_kernels, sample_weights

cases = settings(max_examples=25, deadline=None)
EXPONENTS = (1.0, 1.2, 1.5, 2.0, 4.0, np.inf)
STRICT = 1e-12


def gaussian(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 8.0)


#: Ways to hold several kernels, each with what fills the plain matrix of a view.
FORMS = {
    "features": (FeatureKernel, lambda X: X @ X.T),
    "sparse features": (lambda X: FeatureKernel(sp.csr_array(X)), lambda X: X @ X.T),
    "dense": (lambda X: DenseKernel(gaussian(X)), gaussian),
    "graph": (lambda X: ScaledKernel(GraphKernel(sp.csr_array(gaussian(X))), 2.0), lambda X: 2.0 * gaussian(X)),
    "blockwise": (lambda X: fit_kernel(X, "rbf", {"sigma": 2.0}).operator("blockwise"), gaussian),
}
forms = pytest.mark.parametrize("form", FORMS)
exponents = pytest.mark.parametrize("p", EXPONENTS)
some_exponents = pytest.mark.parametrize("p", [1.0, 2.0, np.inf])


@pytest.fixture(params=["few samples", "many samples"])
def ways(request, monkeypatch):
    """The full decomposition, and products alone."""
    if request.param == "many samples":
        monkeypatch.setattr(HostBackend, "direct_limit", 20)


def made(form, data):
    make, fill = FORMS[form]
    return composite([make(X) for X in data], np.ones(len(data))), [fill(X) for X in data]


def totals(kernels, weights):
    return np.array([weights @ np.diagonal(K) for K in kernels])


def run(op, kernels, weights, m, p, first=None, **options):
    first = np.full(len(kernels), 1.0 / len(kernels)) if first is None else first
    options = {"tol": STRICT, **options}
    t = options.pop("totals", totals(kernels, weights))
    return multi_view_spectral(spectrum(op, weights), t, n_vectors=m, p=p, view_weights=first, **options)


def grouped(seed, n=50, k=3, widths=(3, 4, 3), noise=(0.7, 1.5, 3.0)):
    """Return views of the same groups, the later the noisier."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return [
        4.0 * rng.standard_normal((k, d))[y] + s * rng.standard_normal((n, d))
        for d, s in zip(widths, noise, strict=True)
    ], rng


def never_rises(history, size):
    assert (np.diff(history) <= 1e-13 * size).all(), np.diff(history).max()


# --- against the full decomposition ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("ways")
@forms
@exponents
def test_weights_values_and_objectives_equal_the_plain_oracle(form, p):
    data, rng = grouped(0)
    op, kernels = made(form, data)
    weights = rng.uniform(0.2, 2.0, 50)
    result = run(op, kernels, weights, 3, p)
    shares, path, values, Y = oracle.mvspec(kernels, weights, 3, p, tol=STRICT)
    size = sum(totals(kernels, weights))
    assert result.converged
    np.testing.assert_allclose(result.view_weights, shares, atol=2e-5)
    assert result.objective == pytest.approx(path[-1], abs=1e-8 * size)
    steps = min(len(path), len(result.history))
    np.testing.assert_allclose(result.history[:steps], path[:steps], atol=1e-6 * size)
    np.testing.assert_allclose(result.eigenvalues, values, rtol=1e-5)
    np.testing.assert_allclose(result.view_scatters, oracle.relaxed_scatters(kernels, weights, Y), atol=1e-5 * size)


@cases
@given(data=st.data())
def test_generated_kernels_give_the_weights_of_the_plain_oracle(data):
    n_views, n = data.draw(st.integers(1, 3)), data.draw(st.integers(5, 12))
    kernels = [data.draw(psd_kernels(min_n=n, max_n=n)) for _ in range(n_views)]
    kernels = [K / np.trace(K) for K in kernels]  # else one of them decides
    weights, p, rng = data.draw(sample_weights(n)), data.draw(st.sampled_from([1.5, 2.0, 5.0])), data.draw(generators())
    first = rng.dirichlet(np.full(n_views, 5.0))
    op = composite([DenseKernel(K) for K in kernels], np.ones(n_views))
    result = run(op, kernels, weights, 2, p, first, max_iter=3, tol=0.0)
    values, Y = oracle.leading(oracle.composite(kernels, first, p), weights, 3)
    if values[1] - values[2] <= 1e-6 * values[0]:
        return  # the space of the first step is not unique
    scatters = oracle.relaxed_scatters(kernels, weights, Y[:, :2])
    shares = oracle.view_weights(scatters, p)
    # Only the first step: later ones may meet eigenvalues that coincide.
    assert result.history[0] == pytest.approx(oracle.view_objective(scatters, shares, p), abs=1e-9 * weights.sum())
    never_rises(result.history, weights.sum())
    assert result.view_weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_orthogonal_views_are_weighted_as_worked_out_by_hand():
    # Both kernels are diagonal: their two leading vectors are unit vectors that leave 1 + 1 and 2 + 2 of the traces.
    kernels = [np.diag([9.0, 8.0, 1.0, 1.0]), np.diag([9.0, 8.0, 2.0, 2.0])]
    op = composite([DenseKernel(K) for K in kernels], [1.0, 1.0])
    result = run(op, kernels, np.ones(4), 2, 2.0)
    np.testing.assert_allclose(result.view_scatters, [2.0, 4.0])
    np.testing.assert_allclose(result.view_weights, [2 / 3, 1 / 3])
    assert result.objective == pytest.approx(4 / 9 * 2 + 1 / 9 * 4)
    np.testing.assert_allclose(result.eigenvalues, [9.0 * 5 / 9, 8.0 * 5 / 9])


# --- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ways")
@forms
@pytest.mark.parametrize("p", [*EXPONENTS, 1.0 + 1e-9, 100.0])
def test_the_objective_never_rises_and_weights_add_up_to_one(form, p):
    data, rng = grouped(0, n=70)
    op, kernels = made(form, data)
    weights = rng.uniform(0.1, 2.0, 70)
    result = run(op, kernels, weights, 4, p, rng.dirichlet(np.ones(3)), tol=1e-9)
    never_rises(result.history, sum(totals(kernels, weights)))
    assert result.view_weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert result.n_iter == len(result.history)
    assert result.objective == result.history[-1]
    assert result.converged


@pytest.mark.usefixtures("ways")
@forms
def test_the_end_is_a_fixed_point(form):
    data, _ = grouped(1)
    op, kernels = made(form, data)
    first = run(op, kernels, np.ones(50), 3, 2.0)
    again = run(op, kernels, np.ones(50), 3, 2.0, first.view_weights)
    np.testing.assert_allclose(again.view_weights, first.view_weights, atol=1e-5)
    assert again.objective == pytest.approx(first.objective, rel=1e-6)


@pytest.mark.usefixtures("ways")
@forms
@some_exponents
def test_the_order_of_samples_and_views_does_not_matter(form, p):
    data, rng = grouped(2)
    weights, first = rng.uniform(0.2, 2.0, 50), rng.dirichlet(np.full(3, 3.0))
    plain = run(*made(form, data), weights, 3, p, first)
    order, views_order = rng.permutation(50), rng.permutation(3)
    mixed = run(*made(form, [data[v][order] for v in views_order]), weights[order], 3, p, first[views_order])
    np.testing.assert_allclose(mixed.view_weights, plain.view_weights[views_order], atol=1e-5)
    assert mixed.objective == pytest.approx(plain.objective, rel=1e-6)
    np.testing.assert_allclose(mixed.eigenvalues, plain.eigenvalues, rtol=1e-5)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("form", ["features", "dense", "sparse features"])
def test_a_weight_is_the_same_as_repetition(form):
    data, rng = grouped(3, n=30)
    counts = rng.integers(0, 4, 30)
    rows = np.repeat(np.arange(30), counts)
    weighted = run(*made(form, data), counts.astype(float), 3, 2.0)
    repeated = run(*made(form, [X[rows] for X in data]), np.ones(len(rows)), 3, 2.0)
    np.testing.assert_allclose(weighted.view_weights, repeated.view_weights, atol=1e-5)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)


@forms
@some_exponents
def test_one_view_has_all_the_weight_and_the_values_of_its_kernel(form, p):
    data, _ = grouped(4)
    op, kernels = made(form, data[:1])
    result = run(op, kernels, np.ones(50), 3, p)
    assert result.view_weights.tolist() == [1.0]
    np.testing.assert_allclose(result.eigenvalues, np.linalg.eigvalsh(kernels[0])[::-1][:3], rtol=1e-9)
    left = np.trace(kernels[0]) - result.eigenvalues.sum()
    assert result.objective == pytest.approx(left, abs=1e-9 * np.trace(kernels[0]))


@pytest.mark.usefixtures("ways")
@forms
@some_exponents
def test_a_view_given_twice_counts_a_half_each_time(form, p):
    data, _ = grouped(4)
    result = run(*made(form, [data[1], data[1]]), np.ones(50), 3, p)
    np.testing.assert_allclose(result.view_weights, [0.5, 0.5], rtol=1e-9)


@pytest.mark.usefixtures("ways")
@forms
def test_the_size_of_all_kernels_together_does_not_matter(form):
    data, _ = grouped(5)
    op, kernels = made(form, data)
    plain = run(op, kernels, np.ones(50), 3, 2.0, tol=1e-6)
    for factor in (1e-12, 1e12):
        scaled = composite([ScaledKernel(FORMS[form][0](X), factor) for X in data], np.ones(3))
        result = run(scaled, [factor * K for K in kernels], np.ones(50), 3, 2.0, tol=1e-6)
        np.testing.assert_allclose(result.view_weights, plain.view_weights, rtol=1e-6)
        assert result.objective == pytest.approx(factor * plain.objective, rel=1e-6)
        assert result.n_iter == plain.n_iter


def test_an_exponent_of_one_keeps_the_view_of_least_scatter():
    data, _ = grouped(6)
    op, kernels = made("dense", data)
    result = run(op, kernels, np.ones(50), 3, 1.0)
    assert sorted(result.view_weights.tolist()) == [0.0, 0.0, 1.0]
    chosen = int(result.view_weights.argmax())
    np.testing.assert_allclose(result.eigenvalues, np.linalg.eigvalsh(kernels[chosen])[::-1][:3], rtol=1e-9)
    assert result.view_scatters[chosen] == result.view_scatters.min()


# --- fixed weights, other totals, views without scatter --------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_weights_that_are_not_learned_stay_and_need_one_decomposition(p):
    data, _ = grouped(7)
    op, kernels = made("dense", data)
    fixed = np.array([0.2, 0.5, 0.3])
    result = run(op, kernels, np.ones(50), 3, p, fixed, learned=False)
    used = np.full(3, 1 / 3) if np.isinf(p) else fixed
    np.testing.assert_array_equal(result.view_weights, used)
    values, Y = oracle.leading(oracle.composite(kernels, used, p), np.ones(50), 3)
    np.testing.assert_allclose(result.eigenvalues, values, rtol=1e-9)
    left = oracle.relaxed_scatters(kernels, np.ones(50), Y)
    np.testing.assert_allclose(result.view_scatters, left, rtol=1e-8)
    assert result.history == pytest.approx([oracle.view_objective(left, used, p)])
    assert result.converged


@pytest.mark.usefixtures("ways")
def test_kernels_divided_by_degrees_are_judged_by_what_is_left_of_the_number_of_vectors():
    rng = np.random.default_rng(8)
    matrices = [gaussian(spread * rng.standard_normal((60, 2))) for spread in (2.0, 2.5, 3.0)]
    matrices = [np.where(K > 0.05, K, 0.0) for K in matrices]
    op = composite([DegreeKernel(GraphKernel(sp.csr_array(A))) for A in matrices], np.ones(3))
    kernels = [A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1))) for A in matrices]
    result = run(op, kernels, np.ones(60), 3, 3.0, totals=np.full(3, 3.0))
    shares, path, _, Y = oracle.mvspec(kernels, np.ones(60), 3, 3.0, totals=np.full(3, 3.0), tol=STRICT)
    assert min(result.view_scatters) > 0.01  # no graph has three components
    np.testing.assert_allclose(result.view_weights, shares, atol=1e-3)
    assert result.objective == pytest.approx(path[-1], abs=1e-6)
    np.testing.assert_allclose(result.view_scatters, [3.0 - np.trace(Y.T @ K @ Y) for K in kernels], atol=1e-4)


@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 1.5, 2.0, 100.0])
@pytest.mark.parametrize("form", ["features", "dense"])
def test_views_that_the_vectors_explain_whole_share_all_the_weight(form, p):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=40)
    shared = np.eye(3)[y] @ rng.standard_normal((3, 3))
    op, kernels = made("features", [shared, shared @ np.diag([1.0, 2.0, 0.5]), rng.standard_normal((40, 5))])
    if form == "dense":
        op = composite([DenseKernel(K) for K in kernels], np.ones(3))
    result = run(op, kernels, np.ones(40), 3, p, np.array([0.49, 0.49, 0.02]))
    np.testing.assert_allclose(result.view_weights, [0.5, 0.5, 0.0], atol=1e-6)
    assert result.objective == pytest.approx(0.0, abs=1e-9 * np.trace(kernels[0]))
    assert result.converged


@pytest.mark.usefixtures("ways")
def test_indefinite_kernels_end_and_never_rise():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        kernels = []
        for _ in range(3):
            A = rng.standard_normal((40, 40))
            kernels.append(A + A.T)
        op = composite([DenseKernel(K) for K in kernels], np.ones(3))
        for p in (1.0, 2.0):
            result = run(op, kernels, np.ones(40), 3, p)
            never_rises(result.history, 1e3)
            assert result.converged
            assert result.view_weights.sum() == pytest.approx(1.0)


# --- how a run ends --------------------------------------------------------------------------------------------------


def test_the_bound_on_steps_ends_a_run_and_says_so():
    data, _ = grouped(9)
    op, kernels = made("dense", data)
    whole = run(op, kernels, np.ones(50), 3, 1.2)
    assert whole.n_iter > 3
    for steps in (1, 2):
        result = run(op, kernels, np.ones(50), 3, 1.2, max_iter=steps)
        assert result.n_iter == steps
        assert not result.converged
        assert result.history == pytest.approx(whole.history[:steps])


def test_a_tolerance_ends_a_run_early():
    data, _ = grouped(9)
    op, kernels = made("dense", data)
    strict, loose = (run(op, kernels, np.ones(50), 3, 1.2, tol=tol) for tol in (STRICT, 1e-2))
    assert loose.converged
    assert loose.n_iter < strict.n_iter
    assert loose.history[-2] - loose.history[-1] <= 1e-2 * loose.history[-1]


def test_every_step_is_reported_with_its_objective():
    data, _ = grouped(9)
    op, kernels = made("features", data)
    reported = []
    result = run(op, kernels, np.ones(50), 3, 2.0, on_step=reported.append)
    assert tuple(reported) == result.history


def test_values_and_scatters_are_those_at_the_weights_reported():
    data, _ = grouped(9)
    for form in FORMS:
        op, kernels = made(form, data)
        result = run(op, kernels, np.ones(50), 3, 1.2, max_iter=2)  # far from the end
        values, Y = oracle.leading(oracle.composite(kernels, result.view_weights, 1.2), np.ones(50), 3)
        np.testing.assert_allclose(result.eigenvalues, values, rtol=1e-8)
        np.testing.assert_allclose(result.view_scatters, oracle.relaxed_scatters(kernels, np.ones(50), Y), rtol=1e-6)
        assert result.residual <= 1e-6


@pytest.mark.usefixtures("ways")
@forms
def test_embedding_and_sources_are_those_at_the_weights_reported(form):
    data, rng = grouped(9)
    weights = rng.uniform(0.5, 2.0, 50)
    op, kernels = made(form, data)
    result = run(op, kernels, weights, 3, 2.0)
    values, Y = oracle.leading(oracle.composite(kernels, result.view_weights, 2.0), weights, 3)
    embedding, sources = result.embedding(), result.sources()
    V = np.sqrt(weights)[:, None] * embedding
    np.testing.assert_allclose(V @ V.T, Y @ Y.T, atol=1e-4)
    np.testing.assert_allclose(sources, weights[:, None] * embedding / values, atol=1e-5 * np.abs(sources).max())
    K = oracle.composite(kernels, result.view_weights, 2.0)
    np.testing.assert_allclose(K @ sources, embedding, atol=1e-5 * np.abs(embedding).max())


def test_graphs_with_as_many_components_as_clusters_end_in_few_steps(monkeypatch):
    rng, place = np.random.default_rng(0), np.arange(200)
    angle, radius = 2.0 * np.pi * (place // 2) / 100, 1.0 + place % 2
    rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    graphs = [
        fit_kernel(rings + 0.01 * rng.standard_normal((200, 2)), "nearest_neighbors", {"n_neighbors": 10}).operator()
        for _ in range(2)
    ]
    op, runs = composite([DegreeKernel(graph) for graph in graphs], np.ones(2)), []
    for small in (1000, 20):
        monkeypatch.setattr(HostBackend, "direct_limit", small)
        result = spectrum(op, np.ones(200))
        runs.append(
            multi_view_spectral(result, np.full(2, 2.0), n_vectors=2, p=2.0, view_weights=np.full(2, 0.5), max_iter=20)
        )
    full, products = runs
    assert full.converged
    assert full.n_iter < 10
    assert products.converged
    assert products.n_iter < 20
    # A scatter of zero takes all the weight; of the rough vectors on the way next to nothing is left instead.
    np.testing.assert_allclose(products.view_weights, full.view_weights, atol=2e-3)


def test_eigenvectors_are_as_good_as_weights_are_at_rest():
    data, _ = grouped(2, 60)
    op, kernels = made("features", data)
    real = spectrum(op, np.ones(60))
    asked = []

    class Recorder:
        def leading(self, coefficients, count, tol, start=None):
            asked.append((coefficients**0.5, tol))
            return real.leading(coefficients, count, tol, start)

    options = {"n_vectors": 3, "p": 2.0, "view_weights": np.full(3, 1 / 3), "tol": STRICT}
    multi_view_spectral(Recorder(), totals(kernels, np.ones(60)), **options)
    weights, tols = zip(*asked, strict=True)
    moves = [np.abs(new - old).max() for old, new in pairwise(weights)]
    assert tols[0] == module.ROUGHEST
    assert tols[-1] == module.FINE
    limits = np.clip(module.SHARE_OF_MOVE * np.array(moves), module.ROUGH, module.ROUGHEST)
    np.testing.assert_allclose(tols[1:-1], limits[:-1])
    assert min(limits) == module.ROUGH
    asked.clear()
    multi_view_spectral(Recorder(), totals(kernels, np.ones(60)), residual=1e-3, **options)
    assert {tol for _, tol in asked} == {1e-3}


@pytest.mark.parametrize("p", [1.25, 2.0, 10.0])
@pytest.mark.parametrize("kind", ["features", "dense"])
def test_a_rough_run_takes_the_first_eigenvectors_as_given_and_finds_none_at_the_end(kind, p):
    data, _ = grouped(2, 60)
    op, kernels = made(kind, data)
    real = spectrum(op, np.ones(60))
    equal = np.full(3, 1 / 3)
    asked = []

    class Recorder:
        def leading(self, coefficients, count, tol, start=None):
            asked.append(coefficients)
            return real.leading(coefficients, count, tol, start)

    options = {"n_vectors": 3, "p": p, "view_weights": equal, "tol": 1e-6, "residual": 1e-9}
    whole = multi_view_spectral(Recorder(), totals(kernels, np.ones(60)), **options)
    assert len(asked) == whole.n_iter
    asked.clear()
    short = multi_view_spectral(Recorder(), totals(kernels, np.ones(60)), first=real.leading(equal, 3, 1e-9), **options)
    assert len(asked) == short.n_iter - 1
    assert short.n_iter == whole.n_iter > 1
    np.testing.assert_allclose(short.view_weights, whole.view_weights, rtol=1e-6)
    # Where one view takes all the weight, J falls to nothing and its last digits are those of the eigenvectors.
    np.testing.assert_allclose(short.history, whole.history, rtol=1e-9, atol=1e-9 * whole.history[0])
    np.testing.assert_array_equal(short.embedding(), short.pairs.embedding())
    last = asked[-1] / asked[-1].sum()
    assert np.abs(last - short.view_weights**p / (short.view_weights**p).sum()).max() < 1e-2
