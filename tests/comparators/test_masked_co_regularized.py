"""Co-regularised spectral clustering of samples that are absent from views: objective, rounding, faults, files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from kernelweave import (
    ConvergenceWarning,
    CoRegularizedSpectralClustering,
    ViewError,
    ViewWarning,
    load_model,
    save_model,
)
from kernelweave.backends.host import HostBackend
from kernelweave.estimators.shared.embedding import unit_rows
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.transforms import DegreeKernel
from kernelweave.solvers.comparators.co_regularized import ObservedRows, co_regularized, observed_rows
from tests.persistence.stored_models import FOLDER
from tests.reference import masked_co_regularized as oracle
from tests.strategies import generators, views

both = pytest.mark.parametrize("variant", ["pairwise", "centroid"])
few = settings(max_examples=15, deadline=None)
N = 45
K = 3
Y = np.arange(N) % K


def groups(seed=0, noise=1.0):
    """Return three views of three groups."""
    rng = np.random.default_rng(seed)
    return [4.0 * np.eye(K, width)[Y] + noise * rng.normal(size=(N, width)) for width in (4, 5, 3)]


def with_absent(tables, rate=0.3, seed=0):
    """Return the views with rows of NaN, and who is there."""
    rng = np.random.default_rng([seed, 1])
    mask = rng.random((len(tables[0]), len(tables))) >= rate
    mask[~mask.any(axis=1), 0] = True
    return [np.where(mask[:, [v]], X, np.nan) for v, X in enumerate(tables)], mask


COMPLETE = groups()
VIEWS, MASK = with_absent(COMPLETE)
GAMMA = {"kernel_params": {"gamma": 0.1}}


def fitted(X=VIEWS, n_clusters=K, **parameters):
    return CoRegularizedSpectralClustering(n_clusters, **{"random_state": 0, "n_init": 3} | parameters).fit(X)


def operators(tables, mask, gamma=0.5):
    """Return affinities among the samples of every view, divided by degrees, and the samples."""
    known = [np.flatnonzero(there) for there in mask.T]
    blocks = [X[there] for X, there in zip(tables, known, strict=True)]
    return [DegreeKernel(DenseKernel(rbf_kernel(X, gamma=gamma))) for X in blocks], known


# --- objective -------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("strength", [0.2, [0.05, 0.4, 0.1]], ids=["one", "each"])
def test_the_fit_is_that_of_the_plain_oracle(variant, strength):
    options = {"variant": variant, "regularization": strength, "tol": 0.0, "max_iter": 2}
    with pytest.warns(ConvergenceWarning, match="max_iter=2 before its eigenvectors settled"):
        model = fitted(**options, **GAMMA)
    strengths = np.broadcast_to(strength, 3)
    Ls = [oracle.affinities(X, oracle.there(MASK, v), 0.1) for v, X in enumerate(VIEWS)]
    Us, center, path = oracle.sweeps(Ls, MASK, strengths, K, 2, centroid=variant == "centroid")
    np.testing.assert_allclose(model.objective_path_, path, rtol=1e-9)
    if variant == "centroid":
        wanted = unit_rows(np.array([center[i] for i in range(N)]))
        np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, wanted @ wanted.T, atol=1e-8)
        return
    wanted = oracle.rows_of(Us, MASK)
    np.testing.assert_array_equal(np.isnan(model.embedding_), np.isnan(wanted))
    for v in range(3):
        mine = model.embedding_[MASK[:, v], K * v : K * (v + 1)]
        plain = wanted[MASK[:, v], K * v : K * (v + 1)]
        np.testing.assert_allclose(mine @ mine.T, plain @ plain.T, atol=1e-8)
    np.testing.assert_allclose(np.nansum(model.embedding_**2, axis=1), MASK.mean(axis=1))
    # No single sample can move to another cluster and lower the sum over what is there.
    least = oracle.scatter(model.embedding_, model.labels_)
    for i in range(0, N, 4):
        moved = model.labels_.copy()
        moved[i] = (moved[i] + 1) % K
        assert oracle.scatter(model.embedding_, moved) > least


@st.composite
def problems(draw):
    """Draw views, who is in them, and numbers of vectors and strengths."""
    tables = draw(views(min_views=2, max_views=3, min_n=6))
    n = len(tables[0])
    rng = draw(generators())
    mask = rng.random((n, len(tables))) < draw(st.sampled_from([0.5, 0.8, 1.0]))
    mask[np.arange(n), rng.integers(len(tables), size=n)] = True
    mask[:2] = True
    strengths = np.array([draw(st.sampled_from([0.0, 0.01, 0.5, 5.0])) for _ in tables])
    return tables, mask, strengths, draw(st.integers(1, 3))


@pytest.mark.parametrize("centroid", [False, True], ids=["pairwise", "centroid"])
@few
@given(problem=problems())
def test_the_objective_never_falls(centroid, problem):
    tables, mask, strengths, k = problem
    ops, known = operators(tables, mask)
    result = co_regularized(ops, strengths, known, n_vectors=k, centroid=centroid, max_iter=10)
    path = np.array(result.history)
    assert (np.diff(path) >= -1e-10 * np.abs(path[1:])).all()
    for U, there in zip(result.vectors, known, strict=True):
        assert U.shape == (len(there), min(k, len(there)))
        inner = U.T @ U
        np.testing.assert_allclose(inner, np.diag(np.round(np.diag(inner))), atol=1e-8)


@pytest.mark.parametrize("centroid", [False, True], ids=["pairwise", "centroid"])
def test_a_mask_that_lacks_nobody_is_no_mask(centroid):
    ops, known = operators(COMPLETE, np.ones_like(MASK), gamma=0.1)
    options = {"n_vectors": K, "centroid": centroid}
    plain = co_regularized(ops, np.full(3, 0.1), **options)
    masked = co_regularized(ops, np.full(3, 0.1), known, **options)
    np.testing.assert_allclose(masked.history, plain.history, rtol=1e-12)
    np.testing.assert_allclose(masked.embedding @ masked.embedding.T, plain.embedding @ plain.embedding.T, atol=1e-9)
    if not centroid:
        rows = observed_rows(plain.vectors, known, N)
        np.testing.assert_allclose(np.hstack(rows), unit_rows(plain.embedding), rtol=1e-12, atol=1e-15)
        clusters = ObservedRows(rows, known, N).clusters(K, np.random.default_rng(0))
        assert clusters.objective * 3 * N == pytest.approx(oracle.scatter(np.hstack(rows), clusters.labels))


def test_a_sample_costs_the_same_in_every_view_when_rows_are_clustered():
    # The views are of different sizes.
    mask = with_absent(COMPLETE[:2], 0.1)[1]
    mask[10:, 1] = mask[10:, 1] & (np.arange(10, N) % 2 == 0)
    mask[~mask.any(axis=1), 0] = True
    ops, known = operators(COMPLETE[:2], mask, gamma=0.1)
    rows = observed_rows(co_regularized(ops, np.full(2, 0.1), known, n_vectors=K).vectors, known, N)
    side_by_side = np.full((N, 2 * K), np.nan)
    for v, block in enumerate(rows):
        side_by_side[known[v], K * v : K * (v + 1)] = block
    clusters = ObservedRows(rows, known, N).clusters(K, np.random.default_rng(0))
    assert clusters.objective * mask.sum() == pytest.approx(oracle.scatter(side_by_side, clusters.labels))


@pytest.mark.parametrize("centroid", [False, True], ids=["pairwise", "centroid"])
def test_products_and_matrices_lead_to_the_same_subspaces(centroid, monkeypatch):
    ops, known = operators(VIEWS, MASK, gamma=0.1)
    options = {"n_vectors": K, "centroid": centroid, "tol": 1e-12}
    whole = co_regularized(ops, np.full(3, 0.1), known, **options)
    monkeypatch.setattr(HostBackend, "direct_limit", 10)
    by_products = co_regularized(ops, np.full(3, 0.1), known, **options)
    assert by_products.objective == pytest.approx(whole.objective, rel=1e-8)


# --- estimator -------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kernel", ["rbf", "nearest_neighbors"])
def test_the_groups_are_seen_although_samples_are_absent(variant, kernel):
    model = fitted(variant=variant, kernel=kernel, regularization=0.05)
    assert adjusted_rand_score(Y, model.labels_) > 0.8
    np.testing.assert_array_equal(model.observed_, MASK)
    assert (np.diff(model.objective_path_) >= -1e-12).all()


@both
def test_complete_views_take_no_notice_of_the_parameter(variant):
    plain = fitted(COMPLETE, variant=variant)
    dropping = fitted(COMPLETE, variant=variant, missing="drop")
    np.testing.assert_array_equal(plain.embedding_, dropping.embedding_)
    np.testing.assert_array_equal(plain.labels_, dropping.labels_)
    assert plain.observed_.all()


@both
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 100))
def test_the_order_of_samples_plays_no_part_nor_that_of_views_around_a_centroid(variant, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(N)
    order = rng.permutation(3) if variant == "centroid" else np.arange(3)
    first = fitted(variant=variant, n_init=10)
    second = fitted([VIEWS[v][rows] for v in order], variant=variant, n_init=10)
    np.testing.assert_allclose(second.objective_path_, first.objective_path_, rtol=1e-9)
    assert adjusted_rand_score(first.labels_[rows], second.labels_) == 1.0


@both
def test_equal_samples_with_the_same_views_have_the_same_label(variant):
    model = fitted([np.vstack([X, X[:10]]) for X in VIEWS], variant=variant)
    np.testing.assert_array_equal(model.labels_[N:], model.labels_[:10])


@both
def test_precomputed_affinities_lack_rows_and_columns(variant):
    kernels = [rbf_kernel(X, gamma=0.1) for X in COMPLETE]
    for v, matrix in enumerate(kernels):
        matrix[~MASK[:, v]] = np.nan
        matrix[:, ~MASK[:, v]] = np.nan
    model = fitted(kernels, kernel="precomputed", variant=variant)
    same = fitted(variant=variant, **GAMMA)
    np.testing.assert_allclose(model.objective_path_, same.objective_path_, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, same.labels_)


@both
@pytest.mark.filterwarnings("ignore:View .* shares")
@pytest.mark.filterwarnings("ignore:The clusters agree with which")
def test_a_view_of_fewer_samples_than_clusters_does_no_harm(variant):
    tiny = np.full((N, 2), np.nan)
    tiny[:2] = [[0.0, 0.0], [1.0, 2.0]]
    model = fitted([*COMPLETE[:2], tiny], variant=variant)
    assert adjusted_rand_score(Y, model.labels_) > 0.8
    assert model.embedding_.shape == (N, K if variant == "centroid" else 3 * K)
    assert not np.isnan(model.embedding_[:2]).any()


@both
def test_faults_and_cells(variant):
    nowhere = [X.copy() for X in VIEWS]
    for X in nowhere:
        X[4] = np.nan
    with pytest.raises(ViewError, match=r"1 of 45 samples are absent from every view \(rows 4\)"):
        fitted(nowhere, variant=variant)
    holed = [X.copy() for X in COMPLETE]
    holed[0][3, 0] = np.nan
    with pytest.raises(ViewError, match=r"contains NaN in 1 cells of 1 rows"):
        fitted(holed, variant=variant)
    assert not fitted(holed, variant=variant, missing="drop").observed_[3, 0]
    lacking = [COMPLETE[0], np.where((Y == 2)[:, None], np.nan, COMPLETE[1])]
    with pytest.warns(ViewWarning, match="clusters agree with which views"):
        fitted(lacking, variant=variant)
    assert not get_tags(CoRegularizedSpectralClustering()).input_tags.allow_nan
    assert get_tags(CoRegularizedSpectralClustering(missing="knn")).input_tags.allow_nan


@both
def test_models_come_back_from_files(variant, tmp_path):
    model = fitted(variant=variant, missing="median")
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    for name in ("labels_", "embedding_", "observed_", "objective_path_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.get_params() == model.get_params()
    assert load_model(FOLDER / "v2-CoRegularizedSpectralClustering.kwm").missing == "error"
