"""NgSpectralClustering, the co-regularised, co-trained and correlational forms, and OptimizedKernelKMeans."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave import (
    ConvergenceWarning,
    CoRegularizedSpectralClustering,
    CorrelationalSpectralClustering,
    CoTrainedSpectralClustering,
    KernelError,
    KernelKMeans,
    MultiViewSpectralClustering,
    NgSpectralClustering,
    NotPSDWarning,
    OptimizedKernelKMeans,
    ParameterError,
    ViewError,
)
from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.estimators.shared import fit_warnings
from kernelweave.kernels.spec.fitting import fit_kernel
from tests.estimators.discovery import blobs
from tests.reference import kernel_kmeans as single
from tests.reference import multi_view as spectral
from tests.reference import spectral_comparators as oracle
from tests.shared.test_multi_view_estimators import NEW, TRUTH, VIEWS, overlapping

GAMMA = 0.05
RBF_05 = {"kernel": "rbf", "kernel_params": {"gamma": GAMMA}, "random_state": 0}
KERNELS = [rbf_kernel(X, gamma=GAMMA) for X in VIEWS]
N, ALL = len(TRUTH), np.hstack(VIEWS)
AFFINITIES = [CoRegularizedSpectralClustering, CoTrainedSpectralClustering]
MULTI_VIEW = [*AFFINITIES, CorrelationalSpectralClustering, OptimizedKernelKMeans]
multi_view = pytest.mark.parametrize("cls", MULTI_VIEW)
affinities = pytest.mark.parametrize("cls", AFFINITIES)
variants = pytest.mark.parametrize("variant", ["pairwise", "centroid"])
norms = pytest.mark.parametrize("norm", [1, 2])


def same_partition(one, other):
    return adjusted_rand_score(one, other) == 1.0


def assert_alike(one, other, atol=1e-6):
    """Check that two embeddings are the same but for a rotation."""
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=atol)


def best_k_means(E, k=3):
    return KMeans(k, n_init=50, random_state=0).fit_predict(E)


def at_scale(kernels):
    """Return kernels as OKKC takes them: centred, of mean squared distance one."""
    return [oracle.centred(K) / spectral.mean_squared_distance(K) for K in kernels]


# --- plain oracles ---------------------------------------------------------------------------------------------------


def test_ng_is_the_plain_oracle():
    model = NgSpectralClustering(3, **RBF_05).fit(VIEWS[0])
    values, E = oracle.ng(KERNELS[0], 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert_alike(model.embedding_, E)
    assert model.objective_ == model.objective_path_[-1] == pytest.approx(3 - values.sum())
    assert model.n_iter_ == len(model.objective_path_) == 1
    assert model.converged_
    assert same_partition(model.labels_, best_k_means(E))


@pytest.mark.parametrize("strength", [0.2, [0.05, 0.4, 0.1]], ids=["one", "each"])
@variants
def test_co_regularised_spectral_clustering_is_the_plain_oracle(variant, strength):
    options = {"variant": variant, "regularization": strength, "tol": 0.0, "max_iter": 4}
    with pytest.warns(ConvergenceWarning, match="max_iter=4 before its eigenvectors settled"):
        model = CoRegularizedSpectralClustering(3, **options, **RBF_05).fit(VIEWS)
    strengths = np.broadcast_to(strength, 3)
    result, path = getattr(oracle, variant)(KERNELS, 3, strengths, 4)
    E = spectral.unit_rows(np.hstack(result) if variant == "pairwise" else result)
    np.testing.assert_allclose(model.objective_path_, path, rtol=1e-9)
    assert (np.diff(model.objective_path_) > 0).all()
    assert model.objective_ == model.objective_path_[-1]
    assert model.n_iter_ == 4
    assert not model.converged_
    assert_alike(model.embedding_, E)
    assert same_partition(model.labels_, best_k_means(E))


def test_co_trained_spectral_clustering_is_the_plain_oracle():
    model = CoTrainedSpectralClustering(3, max_iter=3, tol=0.0, **RBF_05).fit(VIEWS)
    result, path = oracle.co_trained(KERNELS, 3, 3)
    np.testing.assert_allclose(model.objective_path_, path, rtol=1e-7)
    assert model.objective_ == model.objective_path_[-1]
    assert model.n_iter_ == 3
    E = spectral.unit_rows(np.hstack(result))
    assert_alike(model.embedding_, E)
    assert same_partition(model.labels_, best_k_means(E))


def test_rounds_end_where_the_subspaces_stay():
    views = [CLEAR[:, :2], CLEAR[:, 2:]]
    model = CoTrainedSpectralClustering(3, max_iter=50, tol=1e-6, random_state=0).fit(views)
    assert model.converged_
    assert model.n_iter_ < 50
    assert model.objective_ > 0.99
    assert same_partition(model.labels_, CLEAR_TRUTH)


@pytest.mark.parametrize("kappa", [0.1, [0.02, 0.5, 0.2]], ids=["one", "each"])
def test_correlational_spectral_clustering_is_the_plain_oracle_on_features(kappa):
    model = CorrelationalSpectralClustering(3, regularization=kappa, random_state=0).fit(VIEWS)
    rho, projections = oracle.cca(VIEWS, np.broadcast_to(kappa, 3), 3)
    np.testing.assert_allclose(model.correlations_, rho, rtol=1e-8)
    assert model.objective_ == model.objective_path_[-1] == pytest.approx(rho.sum())
    E = np.hstack(projections)
    assert_alike(model.embedding_, E, atol=1e-8)
    assert same_partition(model.labels_, best_k_means(E))
    assert model.n_iter_ == 1


def test_correlations_of_other_kernels_solve_the_dual_problem():
    model = CorrelationalSpectralClustering(3, n_components=5, **RBF_05).fit(VIEWS)
    centred = [oracle.centred(K) for K in KERNELS]
    traces = [np.trace(K) for K in centred]
    alphas = [view.alphas * trace for view, trace in zip(model._model.extension.projections, traces, strict=True)]
    kernels = [K / trace for K, trace in zip(centred, traces, strict=True)]
    projections = np.split(model.embedding_, 3, axis=1)
    residual = oracle.cca_residual(kernels, [0.1] * 3, projections, alphas, model.correlations_)
    assert residual < 1e-7
    assert model.embedding_.shape == (N, 15)


@norms
def test_optimized_kernel_k_means_is_the_plain_oracle_from_the_same_start(norm):
    rough = overlapping(15, seed=1, spread=3.0)[0]
    model = OptimizedKernelKMeans(3, norm=norm, regularization=0.05, n_init=1, **RBF_05).fit(rough)
    parts = at_scale([rbf_kernel(X, gamma=GAMMA) for X in rough])
    equal = parts[0] + parts[1] + parts[2]
    start = KernelKMeans(3, kernel="precomputed", n_init=1, random_state=0).fit(equal).labels_
    start, _ = single.kernel_kmeans(equal, start, np.ones(N), 3)
    labels, theta, path = oracle.okkc(parts, start, 3, 0.05 * N, norm)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.objective_path_, path, rtol=1e-5)
    np.testing.assert_allclose(model.kernel_coefficients_, theta / theta.sum(), atol=5e-3)
    np.testing.assert_array_equal(model.view_weights_, model.kernel_coefficients_)
    assert model.objective_ == model.objective_path_[-1]
    assert model.n_iter_ == len(model.objective_path_) > 1
    assert model.converged_


@norms
def test_optimized_kernel_k_means_gives_noise_the_least_weight(norm):
    for seed in range(3):
        views, _ = overlapping(30, seed=seed)
        model = OptimizedKernelKMeans(3, norm=norm, random_state=0).fit(views)
        assert int(model.view_weights_.argmin()) == 2
        assert (np.diff(model.objective_path_) < 0).all()
        assert model.kernel_coefficients_.sum() == pytest.approx(1.0)


# --- one view is the single-view method ------------------------------------------------------------------------------

CLEAR, CLEAR_TRUTH = blobs(15)
SINGLE = {
    "rbf": {},
    "object": {"kernel": RBF(length_scale=3.0)},
    "graph": {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 8}},
}


def affinities_of(X, name, new=None):
    """Return the affinities of samples without a diagonal, and those of new ones."""
    fitted = fit_kernel(X, SINGLE[name].get("kernel", "rbf"), SINGLE[name].get("kernel_params"))
    K = np.asarray(fitted.operator("dense").block(slice(None), slice(None)))
    rows = None if new is None else fitted.cross(new).block(slice(None), slice(None))
    return K - np.diag(np.diag(K)), rows


@pytest.mark.parametrize("name", SINGLE)
def test_ng_is_multi_view_spectral_clustering_of_one_matrix_without_diagonal_divided_by_degrees(name):
    for n_clusters, n_per_cluster in ((3, 15), (5, 15), (3, 420)):  # the last one by products alone
        X, new = np.hstack(overlapping(n_per_cluster)[0]), np.hstack(NEW)
        A, rows = affinities_of(X, name, new)
        one = NgSpectralClustering(n_clusters, random_state=3, **SINGLE[name]).fit(X)
        other = MultiViewSpectralClustering(n_clusters, normalize="degrees", kernel="precomputed", random_state=3)
        other.fit([A])
        np.testing.assert_array_equal(one.labels_, other.labels_)
        # Learned weights have eigenvectors of 1e-5 on the way: their objective, of a total of 3 or 5, is right to 1e-9.
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-6, abs=1e-9)
        np.testing.assert_array_equal(one.predict(new), other.predict([rows]))
        assert (one.predict(X) == one.labels_).mean() > 0.95


@pytest.mark.parametrize("name", SINGLE)
@affinities
def test_one_view_of_affinities_is_ng(cls, name):
    A, _ = affinities_of(ALL, name)
    expected = NgSpectralClustering(3, random_state=0, **SINGLE[name]).fit(ALL)
    for options in [{"variant": "pairwise"}, {"variant": "centroid"}] if cls is AFFINITIES[0] else [{}]:
        model = cls(3, kernel="precomputed", random_state=0, **options).fit([A])
        assert_alike(model.embedding_, expected.embedding_)
        assert same_partition(model.labels_, expected.labels_)
        assert model.n_iter_ == 1
        assert model.converged_
        assert model.view_weights_.tolist() == [1.0]


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
def test_ng_does_not_let_single_samples_become_clusters(storage):
    X = standardize(load_multiview_digits(n_classes=5).views["pixels"])
    truth = load_multiview_digits(n_classes=5).target
    model = NgSpectralClustering(5, kernel_params={"gamma": "median"}, storage=storage, random_state=0).fit(X)
    assert np.bincount(model.labels_).min() > 50
    assert normalized_mutual_info_score(truth, model.labels_) > 0.5


def test_ng_takes_no_notice_of_the_diagonal():
    rng = np.random.default_rng(0)
    for A in (KERNELS[0], sp.csr_array(KERNELS[0] * (KERNELS[0] > 0.3))):
        other = A + (sp.diags_array(rng.random(N)) if sp.issparse(A) else np.diag(rng.random(N)))
        one, two = (NgSpectralClustering(3, kernel="precomputed", random_state=0).fit(K) for K in (A, other))
        np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, rtol=1e-9)
        assert same_partition(one.labels_, two.labels_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_view_of_correlations_is_kernel_principal_components(kernel):
    model = CorrelationalSpectralClustering(3, kernel=kernel, random_state=0).fit(ALL)
    gamma = 1.0 / (ALL.shape[1] * ALL.var())
    parts = KernelPCA(3, kernel=kernel, gamma=gamma if kernel == "rbf" else None).fit_transform(ALL)
    units = [E / np.linalg.norm(E, axis=0) for E in (parts, model.embedding_)]
    np.testing.assert_allclose(np.abs((units[0] * units[1]).sum(axis=0)), 1.0, rtol=1e-7)
    np.testing.assert_allclose(np.square(model.embedding_).sum(axis=0), model.correlations_, rtol=1e-7)
    assert same_partition(model.labels_, best_k_means(model.embedding_))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@norms
def test_one_view_of_kernels_is_kernel_k_means_from_the_same_starts(kernel, norm):
    single_view = KernelKMeans(4, kernel=kernel, random_state=1).fit(ALL)
    model = OptimizedKernelKMeans(4, norm=norm, kernel=kernel, random_state=1).fit(ALL)
    np.testing.assert_array_equal(model.labels_, single_view.labels_)
    assert model.kernel_coefficients_.tolist() == model.view_weights_.tolist() == [1.0]
    assert model.n_iter_ == 1


# --- laws ------------------------------------------------------------------------------------------------------------


@multi_view
def test_clear_groups_are_found_in_any_order_of_the_views(cls):
    front, back = CLEAR[:, :2], CLEAR[:, 2:]
    model = cls(3, random_state=0).fit([front, back])
    reordered = cls(3, random_state=0).fit([back, front])
    assert same_partition(model.labels_, CLEAR_TRUTH)
    assert same_partition(reordered.labels_, CLEAR_TRUTH)
    assert reordered.objective_ == pytest.approx(model.objective_, rel=1e-4)


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (CoRegularizedSpectralClustering, {"variant": "centroid", "regularization": 0.2}),
        (CoTrainedSpectralClustering, {}),
        (CorrelationalSpectralClustering, {}),
        (OptimizedKernelKMeans, {}),
    ],
)
def test_the_order_of_the_views_plays_no_part(cls, options):
    model = cls(3, **options, **RBF_05).fit(VIEWS)
    reordered = cls(3, **options, **RBF_05).fit(VIEWS[::-1])
    assert same_partition(model.labels_, reordered.labels_)
    assert reordered.objective_ == pytest.approx(model.objective_, rel=1e-6)
    np.testing.assert_allclose(reordered.view_weights_[::-1], model.view_weights_, atol=1e-4)


@multi_view
def test_a_view_given_twice_leaves_the_partition(cls):
    once = cls(3, **RBF_05).fit(VIEWS[:1])
    twice = cls(3, **RBF_05).fit([VIEWS[0], VIEWS[0]])
    if cls is CorrelationalSpectralClustering:  # correlations of a view with itself follow its principal directions
        np.testing.assert_allclose(twice.correlations_, once.correlations_, rtol=1e-7)
    assert same_partition(twice.labels_, once.labels_)
    np.testing.assert_allclose(twice.view_weights_, [0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("cls", [CorrelationalSpectralClustering, OptimizedKernelKMeans])
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_rescaling_a_view_changes_nothing(cls, factor):
    plain = cls(3, kernel="linear", random_state=0).fit(VIEWS)
    scaled = cls(3, kernel="linear", random_state=0).fit([VIEWS[0], factor * VIEWS[1], VIEWS[2]])
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf", RBF(length_scale=3.0)], ids=str)
def test_projections_of_new_samples_follow_the_centred_kernel(kernel):
    model = CorrelationalSpectralClustering(3, kernel=kernel, random_state=0).fit(VIEWS)
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)
    np.testing.assert_allclose(model.transform(VIEWS), model.embedding_, atol=1e-10)
    both = [np.vstack([X, Z]) for X, Z in zip(VIEWS, NEW, strict=True)]
    np.testing.assert_allclose(model.transform(both)[:N], model.embedding_, atol=1e-10)
    if kernel == "linear":
        moved = [X - X.mean(axis=0) for X in VIEWS]
        parts = np.split(model.embedding_, 3, axis=1)
        weights = [np.linalg.lstsq(F, E, rcond=None)[0] for F, E in zip(moved, parts, strict=True)]
        expected = [(Z - X.mean(axis=0)) @ w for X, Z, w in zip(VIEWS, NEW, weights, strict=True)]
        np.testing.assert_allclose(model.transform(NEW), np.hstack(expected), atol=1e-9)


def test_views_that_disagree_are_all_heard():
    rng = np.random.default_rng(0)
    other = rng.permutation(CLEAR_TRUTH)
    views = [CLEAR[:, :2], np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])[other] + rng.standard_normal((45, 2))]
    agreed = CoTrainedSpectralClustering(3, random_state=0).fit([CLEAR[:, :2], CLEAR[:, 2:]])
    for cls in MULTI_VIEW:
        model = cls(3, random_state=0).fit(views)
        result = [adjusted_rand_score(truth, model.labels_) for truth in (CLEAR_TRUTH, other)]
        assert max(result) > 0.05
        assert np.isfinite(model.objective_)
        if cls is CoTrainedSpectralClustering:
            assert model.objective_path_[0] < agreed.objective_path_[0]


def test_more_directions_than_features_are_not_made_up():
    model = CorrelationalSpectralClustering(3, n_components=40, random_state=0).fit([X[:, :2] for X in VIEWS[:2]])
    assert model.correlations_.shape == (2,)
    assert model.embedding_.shape == (N, 4)
    assert model.transform([X[:4, :2] for X in VIEWS[:2]]).shape == (4, 4)


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (NgSpectralClustering, {"kernel": "nearest_neighbors"}),
        (CoRegularizedSpectralClustering, {"kernel": "nearest_neighbors", "max_iter": 2, "tol": 1e-3}),
        (CoTrainedSpectralClustering, {"kernel": "nearest_neighbors", "max_iter": 2, "tol": 0.1}),
        (CorrelationalSpectralClustering, {"kernel": "linear"}),
    ],
)
def test_many_samples_need_no_matrix_of_all_pairs(cls, options):
    views, y = overlapping(1000)
    data = np.hstack(views) if cls is NgSpectralClustering else views[:2]
    model = cls(3, random_state=0, n_init=2, **options).fit(np.hstack(views)[:60])  # loops are compiled by now
    tracemalloc.start()
    model.fit(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * len(y) ** 2 * 8
    assert adjusted_rand_score(model.labels_, y) > 0.8


def test_optimized_kernel_k_means_stores_two_matrices_beside_the_kernels():
    views, y = overlapping(200)
    model = OptimizedKernelKMeans(3, random_state=0, n_init=2).fit([X[:60] for X in views])
    tracemalloc.start()
    model.fit(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (3 + 2.2) * len(y) ** 2 * 8


# --- degenerate input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [CoTrainedSpectralClustering, CorrelationalSpectralClustering, OptimizedKernelKMeans])
def test_a_view_in_which_all_samples_are_alike_is_refused(cls):
    with pytest.raises(ViewError, match=r"the same in view 'flat'.*drop it"):
        cls(3, random_state=0).fit({"fine": CLEAR, "flat": np.full((45, 2), 3.0)})


@variants
def test_a_view_of_equal_affinities_does_a_co_regularised_method_no_harm(variant):
    model = CoRegularizedSpectralClustering(3, variant=variant, random_state=0).fit(
        {"fine": CLEAR, "flat": np.full((45, 2), 3.0)}
    )
    assert same_partition(model.labels_, CLEAR_TRUTH)


@pytest.mark.parametrize("cls", [NgSpectralClustering, *AFFINITIES])
def test_nodes_without_edges_take_no_part(cls):
    A = np.kron(np.eye(3), np.ones((6, 6)))
    A[0], A[:, 0] = 0.0, 0.0
    model = cls(3, kernel="precomputed", random_state=0).fit(A if cls is NgSpectralClustering else [A, A])
    assert np.abs(model.embedding_[0]).max() < 1e-15
    assert same_partition(model.labels_[1:], np.repeat([0, 1, 2], 6)[1:])
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("cls", [NgSpectralClustering, *AFFINITIES])
def test_negative_degrees_are_refused(cls):
    with pytest.raises(KernelError, match=r"degree \(sum of similarities\) of -.*at least 0"):
        cls(3, kernel="linear", random_state=0).fit(CLEAR - CLEAR.mean(axis=0) + 5.0 * np.eye(45, 4))
    if cls is not NgSpectralClustering:
        with pytest.raises(KernelError, match="of view 'odd' has a degree"):
            cls(3, kernel=["rbf", "precomputed"]).fit({"fine": CLEAR, "odd": -np.ones((45, 45))})


@norms
def test_kernels_that_are_not_semidefinite_are_shifted(norm):
    rng = np.random.default_rng(0)
    odd = [(K + K.T) / 2 for K in KERNELS[0] + 0.5 * rng.standard_normal((2, N, N))]
    with pytest.warns(NotPSDWarning, match="of view 'view_"):
        model = OptimizedKernelKMeans(3, norm=norm, kernel="precomputed", random_state=0).fit(odd)
    assert np.isfinite(model.objective_path_).all()
    assert (np.diff(model.objective_path_) < 0).all()
    assert (model.kernel_coefficients_ >= 0).all()


def test_negative_directions_of_a_kernel_are_left_out():
    signs = np.where(np.arange(N) % 2, 1.0, -1.0)
    odd = linear_kernel(VIEWS[0]) - 0.1 * np.outer(signs, signs)
    with pytest.warns(NotPSDWarning, match="of view 'odd'"):
        model = CorrelationalSpectralClustering(3, kernel="precomputed", random_state=0).fit({"odd": odd})
    assert (model.correlations_ > 0).all()


# --- errors and warnings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [CoRegularizedSpectralClustering, CorrelationalSpectralClustering])
@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([0.1], r"regularization has 1 entries for 3 views"),
        ({"view_0": 0.1}, r"regularization names views \['view_0'\]"),
        ({"alpha": 0.1}, r"regularization=.*must hold numbers.*\['view_0', 'view_1', 'view_2'\]"),
        ([0.1, "much", 0.1], r"must hold numbers"),
        ([0.1, -0.5, 0.1], r"-0\.5.*not negative"),
        ([0.1, np.inf, 0.1], r"inf.*finite"),
    ],
)
def test_regularisation_of_the_views_is_checked(cls, given, match):
    with pytest.raises(ValueError, match=match):
        cls(3, regularization=given).fit(VIEWS)


def test_kappa_is_at_most_one():
    with pytest.raises(ParameterError, match=r"1\.5.*nor above 1"):
        CorrelationalSpectralClustering(3, regularization=[0.1, 1.5, 0.1]).fit(VIEWS)


@pytest.mark.parametrize("cls", [CoRegularizedSpectralClustering, CorrelationalSpectralClustering])
def test_regularisation_may_be_given_by_name(cls):
    named = dict(zip("abc", VIEWS, strict=True))
    by_name = cls(3, regularization={"c": 0.0, "a": 0.3, "b": 0.1}, **RBF_05).fit(named)
    by_place = cls(3, regularization=[0.3, 0.1, 0.0], **RBF_05).fit(named)
    assert by_name.objective_ == by_place.objective_


@pytest.mark.parametrize(
    ("cls", "options"), [(OptimizedKernelKMeans, {}), (CorrelationalSpectralClustering, {"kernel": "rbf"})]
)
def test_kernels_that_do_not_fit_are_refused(cls, options):
    with pytest.raises(ParameterError, match=r"3 kernels.* of 45 samples.*more than memory_limit=0\.01\. Raise it to"):
        cls(3, memory_limit=0.01, **options).fit(VIEWS)


def test_decompositions_for_correlations_take_more_than_the_kernels():
    kernels = 3 * 8 * N**2 / 2**20
    with pytest.raises(ParameterError, match=r"decompositions of 3 kernels of 45 samples take 0\.162 MiB"):
        CorrelationalSpectralClustering(3, memory_limit=3.4 * kernels, **RBF_05).fit(VIEWS)
    assert CorrelationalSpectralClustering(3, memory_limit=3.6 * kernels, **RBF_05).fit(VIEWS).converged_


def test_linear_kernels_of_few_columns_need_no_memory_for_correlations():
    few = CorrelationalSpectralClustering(3, memory_limit=0.01, random_state=0).fit(VIEWS)
    np.testing.assert_array_equal(few.labels_, CorrelationalSpectralClustering(3, random_state=0).fit(VIEWS).labels_)


def test_runs_cut_short_warn():
    rough = overlapping(40, spread=3.0)[0]
    with pytest.warns(ConvergenceWarning, match="max_iter=1 before its labels settled"):
        NgSpectralClustering(6, max_iter=1, n_init=1, random_state=0).fit(np.hstack(rough))
    with pytest.warns(ConvergenceWarning, match="max_iter=1 before its labels settled"):
        model = OptimizedKernelKMeans(3, max_iter=1, random_state=0).fit(rough)
    assert model.n_iter_ == 1
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="max_iter=1 before its eigenvectors settled"):
        CoRegularizedSpectralClustering(3, regularization=0.5, max_iter=1, random_state=0).fit(rough)


def test_eigenvectors_that_cannot_be_told_apart_warn(monkeypatch):
    monkeypatch.setattr(fit_warnings, "LARGEST_RESIDUAL", -1.0)
    with pytest.warns(ConvergenceWarning, match="only to a residual of 0"):
        NgSpectralClustering(3, random_state=0).fit(CLEAR)
