"""KMedoids, AffinityPropagation, MultiViewKMeans, MultiViewEM and MultiViewNMF: what no other estimator has."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import AffinityPropagation as TheirAffinity
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_validate

from kernelweave import (
    AffinityPropagation,
    ConvergenceWarning,
    KernelError,
    KMedoids,
    MultiViewEM,
    MultiViewKMeans,
    MultiViewNMF,
    NotPSDWarning,
    ParameterError,
    ViewError,
)
from kernelweave.estimators.comparators import multi_view_nmf as nmf_estimator
from kernelweave.estimators.comparators.distances import METRICS, SPARSE_METRICS
from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.comparators import affinity_propagation, multi_view_nmf
from kernelweave.solvers.comparators import k_medoids as k_medoids_module
from kernelweave.solvers.comparators.affinity_propagation import Messages, find_exemplars
from kernelweave.solvers.comparators.k_medoids import Medoids, build_medoids, k_medoids, start_medoids
from kernelweave.solvers.comparators.multi_view_em import (
    COVARIANCES,
    GaussianView,
    MultinomialView,
    exchange_em,
    mean_log_likelihood,
    mean_posteriors,
)
from kernelweave.solvers.comparators.multi_view_kmeans import exchange_kmeans
from kernelweave.solvers.comparators.multi_view_nmf import joint_factors
from tests.estimators.discovery import blobs
from tests.estimators.scikit_checks import faults, in_one_line
from tests.estimators.test_conformance import expected_failures
from tests.reference import comparators as oracle
from tests.strategies import generators, partitions, sample_weights, samples, views

cases = settings(max_examples=30, deadline=None)
X, Y = blobs()
OVERLAPPING = blobs(spread=5.0)[0]
NEW = blobs(5, seed=1, spread=5.0)[0]
HALVES = [slice(0, 2), slice(2, 4)]

# Settings that are not the default, through scikit-learn's checks too.
VARIANTS = [
    KMedoids(3, metric="precomputed", random_state=0),
    KMedoids(3, metric="cosine", init="build", memory_limit=1e-6),
    AffinityPropagation(random_state=0),
    MultiViewEM(3, covariance="shared_spherical", n_init=2, random_state=0),
    MultiViewEM(3, distribution="multinomial", n_init=2, random_state=0),
]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")  # of counts that hold no topics
@pytest.mark.parametrize("estimator", VARIANTS, ids=in_one_line)
def test_scikit_learn_finds_no_fault_in_other_settings(estimator):
    assert faults(estimator, expected_failures(estimator)) == {}


def relabelled(labels):
    """Return the labels numbered by first appearance."""
    return np.unique(labels, return_index=True)[1].argsort().argsort()[np.unique(labels, return_inverse=True)[1]]


# --- k-medoids -------------------------------------------------------------------------------------------------------


@st.composite
def medoid_problems(draw):
    """Draw distances, weights and starting medoids of positive weight."""
    table, rng = draw(samples(min_n=3, max_n=10, n_features=2)), draw(generators())
    k = draw(st.integers(1, 3))
    weights = np.ones(len(table)) if draw(st.booleans()) else rng.choice([0.0, 0.5, 1.0, 3.0], size=len(table))
    chosen = rng.permutation(len(table))[:k]
    weights[chosen] = 1.0
    return cdist(table, table), weights, chosen


@cases
@given(problem=medoid_problems(), fewest=st.sampled_from([1, 4, 100]))
def test_swaps_are_those_of_the_plain_loop_whatever_the_size_of_batches(problem, fewest):
    D, weights, start = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(k_medoids_module, "SMALLEST_BATCH", fewest)
        result = k_medoids(D.__getitem__, start, weights)
    wanted, n_swaps = oracle.eager_swaps(D, start, weights, 1e-12 * D[start].max() * weights.sum())
    assert result.medoids.tolist() == wanted
    assert result.objective == pytest.approx(oracle.cost(D, wanted, weights))
    assert result.converged
    assert (n_swaps == 0) == (len(set(result.history)) == 1)


@cases
@given(problem=medoid_problems())
def test_the_sum_falls_and_no_single_swap_lowers_it_further(problem):
    D, weights, start = problem
    result = k_medoids(D.__getitem__, start, weights)
    assert (np.diff(result.history) <= 0).all()
    assert oracle.best_swap(D, result.medoids, weights) >= -1e-9
    assert result.objective >= oracle.best_medoids(D, weights, len(start)) - 1e-9
    np.testing.assert_allclose(D[result.medoids][result.labels, np.arange(len(D))], D[result.medoids].min(axis=0))
    np.testing.assert_allclose(result.totals, np.bincount(result.labels, weights, len(start)))


@pytest.mark.parametrize("seed", range(3))
def test_after_a_swap_every_sample_knows_its_nearest_and_second_nearest_medoid(seed):
    rng = np.random.default_rng(seed)
    D = cdist(OVERLAPPING, OVERLAPPING)
    weights = rng.uniform(0.5, 2.0, size=60)
    state = Medoids(D[:4], np.arange(4), weights)
    for sample in rng.permutation(np.arange(4, 60))[:20]:
        state.swap(int(rng.integers(4)), int(sample), D[sample])
        nearest = np.sort(D[state.medoids], axis=0)
        np.testing.assert_array_equal(state.near_distance, nearest[0])
        np.testing.assert_array_equal(state.second_distance, nearest[1])
        without = [oracle.cost(D, np.delete(state.medoids, c), weights) for c in range(4)]
        np.testing.assert_allclose(state.losses(), np.array(without) - state.objective)


@cases
@given(table=samples(min_n=3, max_n=10, n_features=2), k=st.integers(1, 3), rng=generators())
def test_starting_medoids_are_different_samples_and_built_ones_those_of_the_plain_loop(table, k, rng):
    D, weights = cdist(table, table), rng.choice([0.0, 0.5, 1.0], size=len(table))
    weights[rng.permutation(len(table))[:k]] = 1.0
    for init in ("random", "k-medoids++", "build"):
        result = start_medoids(D.__getitem__, init, weights, k, rng)
        assert len(set(result.tolist())) == k
        assert (weights[result] > 0).all()
    built = build_medoids(D.__getitem__, weights, k)
    assert oracle.cost(D, built, weights) == pytest.approx(oracle.cost(D, oracle.build(D, weights, k), weights))


def test_built_medoids_do_not_depend_on_the_order_of_the_samples():
    D, order = cdist(OVERLAPPING, OVERLAPPING), np.random.default_rng(0).permutation(len(OVERLAPPING))
    plain, moved = (build_medoids(M.__getitem__, np.ones(len(M)), 5) for M in (D, D[np.ix_(order, order)]))
    assert order[moved].tolist() == plain.tolist()


@pytest.mark.parametrize("init", ["k-medoids++", "build", "random", [3, 30, 50]])
def test_distances_computed_again_in_every_pass_lead_to_the_same_medoids(init):
    stored = KMedoids(3, init=init, random_state=0).fit(OVERLAPPING)
    lazy = KMedoids(3, init=init, random_state=0, memory_limit=1e-6).fit(OVERLAPPING)
    assert lazy.medoid_indices_.tolist() == stored.medoid_indices_.tolist()
    assert lazy.labels_.tolist() == stored.labels_.tolist()
    assert lazy.objective_path_ == pytest.approx(stored.objective_path_)


def test_attributes_describe_the_medoids():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(OVERLAPPING))
    model = KMedoids(4, random_state=0).fit(OVERLAPPING, sample_weight=weights)
    np.testing.assert_array_equal(model.cluster_centers_, OVERLAPPING[model.medoid_indices_])
    assert model.labels_[model.medoid_indices_].tolist() == [0, 1, 2, 3]
    distances = cdist(OVERLAPPING, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(OVERLAPPING), distances)
    assert model.labels_.tolist() == distances.argmin(axis=1).tolist() == model.predict(OVERLAPPING).tolist()
    assert model.inertia_ == model.objective_ == pytest.approx(weights @ distances.min(axis=1))
    assert len(model.objective_path_) == model.n_iter_ + 1
    assert model.get_feature_names_out().tolist() == ["kmedoids0", "kmedoids1", "kmedoids2", "kmedoids3"]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "precomputed"])
def test_the_score_of_medoids_is_minus_the_sum_of_distances(metric):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(OVERLAPPING))
    plain = "cityblock" if metric == "manhattan" else "euclidean"
    precomputed = metric == "precomputed"
    train = cdist(OVERLAPPING, OVERLAPPING) if precomputed else OVERLAPPING
    new = cdist(NEW, OVERLAPPING) if precomputed else NEW
    model = KMedoids(4, metric=metric, random_state=0).fit(train, sample_weight=weights)
    assert model.score(train, sample_weight=weights) == pytest.approx(-model.objective_)
    distances = cdist(NEW, OVERLAPPING[model.exemplar_indices_], plain)
    assert model.score(new) == pytest.approx(-distances.min(axis=1).sum())
    assert model.score(new, sample_weight=np.arange(15)) == pytest.approx(-(np.arange(15) @ distances.min(axis=1)))
    np.testing.assert_array_equal(model.predict(new), distances.argmin(axis=1))


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_gives_the_medoids_of_its_distance_matrix(metric):
    params = {"minkowski": {"p": 3}, "seuclidean": {"V": X.var(axis=0)}, "mahalanobis": {"VI": np.eye(4)}}.get(metric)
    table = np.abs(OVERLAPPING)[:, :2] / 100 if metric == "haversine" else np.abs(OVERLAPPING)
    if metric in ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule", "hamming"):
        table = (np.random.default_rng(0).random((60, 12)) > 0.6).astype(float)
    measured = table.astype(bool) if set(np.unique(table)) == {0.0, 1.0} else table
    D = pairwise_distances(measured, metric=metric, **(params or {}))
    result = KMedoids(3, metric=metric, metric_params=params, random_state=0).fit(table)
    if metric == "russellrao":  # a sample is not at distance 0 from itself there
        return
    precomputed = KMedoids(3, metric="precomputed", random_state=0).fit(D)
    assert result.inertia_ == pytest.approx(precomputed.inertia_)
    assert result.predict(table).tolist() == result.labels_.tolist()
    assert precomputed.cluster_centers_ is None
    if metric in SPARSE_METRICS:
        sparse = KMedoids(3, metric=metric, random_state=0).fit(sp.csr_array(table))
        assert sparse.labels_.tolist() == result.labels_.tolist()
        assert sp.issparse(sparse.cluster_centers_)
        np.testing.assert_allclose(sparse.transform(table), result.transform(table), atol=1e-6)
        np.testing.assert_allclose(result.transform(sp.csr_array(table)), result.transform(table))


def test_a_function_is_a_metric():
    largest = KMedoids(3, metric=lambda a, b: np.abs(a - b).max(), random_state=0).fit(OVERLAPPING)
    assert largest.labels_.tolist() == KMedoids(3, metric="chebyshev", random_state=0).fit(OVERLAPPING).labels_.tolist()


def test_given_distances_place_new_samples_and_work_in_cross_validation():
    D = cdist(X, X)
    model = KMedoids(3, metric="precomputed", random_state=0).fit(D)
    features = KMedoids(3, random_state=0).fit(X)
    assert model.labels_.tolist() == features.labels_.tolist()
    assert model.predict(cdist(NEW, X)).tolist() == features.predict(NEW).tolist()
    np.testing.assert_allclose(model.transform(cdist(NEW, X)), features.transform(NEW))
    scores = cross_validate(model, D, Y, cv=3, scoring="adjusted_rand_score", error_score="raise")
    assert scores["test_score"] == pytest.approx(1.0)


def spoilt(entry, value):
    D = cdist(X, X)
    D[entry] = value
    return D


@pytest.mark.parametrize(
    ("D", "match"),
    [
        (cdist(X, X)[:, :5], r"square matrix of distances.*\(60, 5\)"),
        (spoilt((2, 5), 0.25), r"X\[2, 5\] = 0\.25 .*not symmetric"),
        (-cdist(X, X), r"Negative values in data.*X\[0, 1\] = -"),
        (spoilt((3, 3), 0.5), r"X\[3, 3\] = 0\.5 on the diagonal"),
    ],
)
def test_a_matrix_that_holds_no_distances_is_refused(D, match):
    with pytest.raises(KernelError, match=match):
        KMedoids(3, metric="precomputed").fit(D)


def test_rounding_in_given_distances_is_accepted():
    D = cdist(X, X) + 1e-13
    D[0, 0] = -1e-13
    assert KMedoids(3, metric="precomputed", random_state=0).fit(D).converged_
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        KMedoids(3, metric="precomputed").fit(sp.csr_array(D))
    single = KMedoids(3, metric="precomputed", random_state=0).fit(cdist(X, X).astype(np.float32))
    assert adjusted_rand_score(single.labels_, Y) == 1.0


@pytest.mark.parametrize(
    ("init", "match"),
    [
        ([0, 1], r"init has shape \(2,\)"),
        ([0.0, 1.0, 2.0], "init holds values of type float64"),
        ([0, 1, 60], r"from 0 to 60; samples are 0\.\.59"),
        ([0, -1, 5], "from -1 to 5"),
        ([4, 4, 5], "names a sample twice"),
    ],
)
def test_bad_starting_medoids_are_refused(init, match):
    with pytest.raises(ParameterError, match=match):
        KMedoids(3, init=init).fit(X)


def test_bad_metrics_are_refused():
    with pytest.raises(ParameterError, match=r"metric='seuclidean' needs metric_params=\{'V'"):
        KMedoids(3, metric="seuclidean").fit(X)
    with pytest.raises(ParameterError, match="gives a distance of nan"):
        KMedoids(3, metric="correlation").fit(np.ones((6, 3)))
    with pytest.raises(ParameterError, match=r"gives a distance of -1\.0"):
        KMedoids(3, metric=lambda a, b: -1.0).fit(X)
    with pytest.raises(ParameterError, match="a sample of weight 0"):
        KMedoids(3, init=[0, 1, 2]).fit(X, sample_weight=np.arange(60.0))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "sqeuclidean"])
@pytest.mark.parametrize("init", ["k-medoids++", "build", "random"])
def test_equal_samples_share_a_medoid_whatever_the_metric(metric, init):
    table = np.repeat(blobs(1)[0][:2], 6, axis=0) * 0.3
    for form in (table, sp.csr_array(table)) if metric in SPARSE_METRICS else (table,):
        with pytest.warns(ConvergenceWarning, match=r"distinct.*\(2\).*n_clusters \(4\)"):
            model = KMedoids(4, metric=metric, init=init, random_state=0).fit(form)
        assert (model.labels_.reshape(2, 6) == model.labels_.reshape(2, 6)[:, :1]).all()
        assert len(set(model.medoid_indices_.tolist())) == 4
        assert model.inertia_ == pytest.approx(0.0, abs=1e-12)


def test_a_run_cut_short_is_told():
    many = np.random.default_rng(0).standard_normal((300, 2))
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 before its medoids settled"):
        model = KMedoids(20, init="random", n_init=1, max_iter=1, random_state=0).fit(many)
    assert not model.converged_
    assert KMedoids(20, random_state=0).fit(many).inertia_ < model.inertia_


# --- affinity propagation --------------------------------------------------------------------------------------------


def exemplars_of(D, **options):
    return find_exemplars(D, 1e-12 * D.max(), Messages(0.9, 1000, 50, 0), **options)


def test_a_given_preference_leads_to_the_exemplars_of_scikit_learn():
    for preference in (None, -500.0, -5000.0):
        ours = AffinityPropagation(preference=preference, random_state=0).fit(OVERLAPPING)
        S = -cdist(OVERLAPPING, OVERLAPPING, "sqeuclidean")
        value = np.median(S[~np.eye(len(S), dtype=bool)]) if preference is None else preference
        theirs = TheirAffinity(
            affinity="precomputed", preference=value, damping=0.9, max_iter=1000, convergence_iter=50, random_state=0
        ).fit(S)
        assert ours.exemplar_indices_.tolist() == theirs.cluster_centers_indices_.tolist()
        assert ours.labels_.tolist() == theirs.labels_.tolist()
        assert ours.preference_ == pytest.approx(value)
        assert ours.n_iter_ == theirs.n_iter_
        assert ours.objective_ == pytest.approx(-S[:, ours.exemplar_indices_].max(axis=1).sum())


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 15, 40, 60])
def test_any_number_of_exemplars_can_be_had(k):
    model = AffinityPropagation(k, random_state=0).fit(OVERLAPPING)
    assert len(model.exemplar_indices_) == k
    assert set(model.labels_) == set(range(k))
    assert model.labels_[model.exemplar_indices_].tolist() == list(range(k))
    assert model.converged_
    assert model.objective_ == model.objective_path_[-1]
    assert model.predict(OVERLAPPING).tolist() == model.labels_.tolist()
    best = KMedoids(k, metric="sqeuclidean", n_init=20, random_state=0).fit(OVERLAPPING).inertia_
    assert best * (1 - 1e-9) <= model.objective_ <= 1.1 * best + 1e-9


@cases
@given(table=samples(min_n=3, max_n=9, n_features=2), k=st.integers(1, 9))
def test_exemplars_stand_for_the_samples_nearest_to_them(table, k):
    D = cdist(table, table, "sqeuclidean")
    n_distinct = len(np.unique(table, axis=0))
    result = exemplars_of(D, n_clusters=k)
    assert len(result.indices) == min(k, n_distinct)
    np.testing.assert_allclose(D[np.arange(len(D)), result.indices[result.labels]], D[:, result.indices].min(axis=1))
    assert result.objective == pytest.approx(D[:, result.indices].min(axis=1).sum())
    for i, j in itertools.combinations(range(len(D)), 2):
        assert D[i, j] > 0 or result.labels[i] == result.labels[j]


def test_equal_samples_count_as_often_as_they_occur():
    rng = np.random.default_rng(0)
    table = np.repeat(OVERLAPPING[:30], rng.integers(1, 5, size=30), axis=0)
    rows = np.repeat(np.arange(30), [int((table == row).all(axis=1).sum()) for row in OVERLAPPING[:30]])
    representatives, group = affinity_propagation.distinct_samples(cdist(table, table, "sqeuclidean"), 1e-12)
    assert rows[representatives].tolist() == list(range(30))
    assert group.tolist() == rows.tolist()
    result = AffinityPropagation(preference=-400.0, random_state=0).fit(table)
    S = -np.bincount(rows)[:, None] * cdist(OVERLAPPING[:30], OVERLAPPING[:30], "sqeuclidean")
    seed = int(streams(0, 1, "initialization")[0].integers(2**31 - 1))
    options = {"damping": 0.9, "max_iter": 1000, "convergence_iter": 50, "random_state": seed}
    plain = TheirAffinity(affinity="precomputed", preference=-400.0, **options).fit(S)
    assert rows[result.exemplar_indices_].tolist() == plain.cluster_centers_indices_.tolist()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_samples_are_measured_by_their_distances_to_the_exemplars(kernel):
    model = AffinityPropagation(4, kernel=kernel, random_state=0).fit(OVERLAPPING)
    exemplars = OVERLAPPING[model.exemplar_indices_]
    squared = cdist(NEW, exemplars, "sqeuclidean")
    if kernel == "rbf":
        squared = 2.0 - 2.0 * rbf_kernel(NEW, exemplars, gamma=1 / (4 * OVERLAPPING.var()))
    np.testing.assert_allclose(model.transform(NEW), np.sqrt(squared), atol=1e-7)
    assert model.score(NEW) == pytest.approx(-squared.min(axis=1).sum())
    assert model.score(NEW, sample_weight=np.arange(15)) == pytest.approx(-(np.arange(15) @ squared.min(axis=1)))
    assert model.score(OVERLAPPING) == pytest.approx(-model.objective_)
    np.testing.assert_array_equal(model.transform(NEW).argmin(axis=1), model.predict(NEW))
    assert model.get_feature_names_out().tolist() == [f"affinitypropagation{i}" for i in range(4)]


def test_rows_of_a_precomputed_kernel_have_no_distances_to_the_exemplars():
    K = rbf_kernel(OVERLAPPING, gamma=0.01)
    model = AffinityPropagation(4, kernel="precomputed", random_state=0).fit(K)
    plain = AffinityPropagation(4, kernel="rbf", kernel_params={"gamma": 0.01}, random_state=0).fit(OVERLAPPING)
    np.testing.assert_array_equal(model.predict(K[:7]), plain.predict(OVERLAPPING[:7]))
    for method in ("transform", "score"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError) as caught:
            getattr(model, method)(K)
        assert "do not hold k(x, x)" in str(caught.value.__cause__)


def test_where_no_preference_gives_the_number_the_least_useful_exemplars_go():
    D = cdist(np.eye(12), np.eye(12), "sqeuclidean")  # all equally far apart: one exemplar, or all
    result = exemplars_of(D, n_clusters=5)
    assert len(result.indices) == 5
    assert result.objective == pytest.approx(2.0 * 7)
    D = cdist(OVERLAPPING, OVERLAPPING, "sqeuclidean")
    chosen = np.arange(0, 60, 4)
    kept = affinity_propagation.reduce_exemplars(D, np.ones(60), chosen, 4)
    wanted = oracle.dropped(D, chosen, np.ones(60), 4)
    owner = D[:, wanted].argmin(axis=1)
    middles = [np.flatnonzero(owner == c)[D[np.ix_(owner == c, owner == c)].sum(axis=0).argmin()] for c in range(4)]
    assert kept.tolist() == sorted(middles)


def test_samples_at_no_distance_that_are_not_equal_can_be_exemplars_too():
    D = np.array([[0.0, 0.0, 1.0, 4.0], [0.0, 0.0, 4.0, 1.0], [1.0, 4.0, 0.0, 0.0], [4.0, 1.0, 0.0, 0.0]])
    result = exemplars_of(D, n_clusters=3)  # no preference gives more than two
    assert len(result.indices) == 3
    assert result.objective == 0.0
    assert result.labels[result.indices].tolist() == [0, 1, 2]  # each for itself, though another is as near


def test_the_kernel_decides_about_similarity():
    K = rbf_kernel(OVERLAPPING, gamma=0.01)
    named = AffinityPropagation(3, kernel="rbf", kernel_params={"gamma": 0.01}, random_state=0).fit(OVERLAPPING)
    precomputed = AffinityPropagation(3, kernel="precomputed", random_state=0).fit(K)
    assert named.exemplar_indices_.tolist() == precomputed.exemplar_indices_.tolist()
    assert named.objective_ == pytest.approx((2.0 - 2.0 * K[:, named.exemplar_indices_]).min(axis=1).sum())
    new = named.predict(NEW)
    assert new.tolist() == rbf_kernel(NEW, OVERLAPPING[named.exemplar_indices_], gamma=0.01).argmax(axis=1).tolist()
    with pytest.warns(NotPSDWarning):
        AffinityPropagation(2, kernel="precomputed").fit(np.array([[1.0, 2.0, 0], [2.0, 1.0, 0], [0, 0, 1.0]]))


def test_equal_samples_make_one_cluster_without_any_warning():
    model = AffinityPropagation().fit(np.ones((8, 2)))
    assert model.labels_.tolist() == [0] * 8
    assert model.exemplar_indices_.tolist() == [0]
    pairs = AffinityPropagation(2).fit(np.repeat([[0.0], [1.0]], 4, axis=0))
    assert pairs.labels_.tolist() == [0] * 4 + [1] * 4


def test_messages_that_do_not_settle_are_told_and_labels_are_still_valid():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 iterations.*Raise max_iter, damping=0\.9"):
        model = AffinityPropagation(max_iter=2).fit(OVERLAPPING)
    assert not model.converged_
    assert set(model.labels_) == set(range(len(model.exemplar_indices_)))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = AffinityPropagation(4, max_iter=2).fit(OVERLAPPING)
    assert set(model.labels_) == {0, 1, 2, 3}


def test_more_samples_than_memory_holds_are_refused():
    with pytest.raises(ParameterError, match=r"8 matrices of affinity propagation of 60 samples.*memory_limit=0\.01"):
        AffinityPropagation(memory_limit=0.01).fit(X)
    one = 8 * 60**2 / 2**20
    with pytest.raises(ParameterError, match="8 matrices of affinity propagation"):
        AffinityPropagation(memory_limit=7.9 * one).fit(X)
    assert AffinityPropagation(memory_limit=8.1 * one, random_state=0).fit(X).converged_


# --- k-means of several views ----------------------------------------------------------------------------------------


@st.composite
def view_problems(draw, max_views=3, min_n=6):
    """Draw views, starting labels, weights and the number of clusters."""
    blocks = draw(views(max_views=max_views, min_n=min_n))
    labels, k = draw(partitions(len(blocks[0]), max_clusters=3))
    weights = draw(sample_weights(len(labels)))
    assume(all((weights[labels == c] > 0).any() for c in range(k)))
    return blocks, labels, weights, k


@cases
@given(problem=view_problems())
def test_rounds_of_k_means_are_those_of_the_plain_loop(problem):
    blocks, labels, weights, k = problem
    distinct = len(np.unique(np.hstack(blocks)[weights > 0], axis=0))
    assume(all(len(np.unique(block[weights > 0], axis=0)) >= k for block in blocks) and distinct >= k)
    path, centres, n_rounds = oracle.exchange_kmeans(blocks, labels, weights, k)
    result = exchange_kmeans([FeatureKernel(b) for b in blocks], labels, weights, n_clusters=k, max_iter=100)
    assert result.history == pytest.approx(path, abs=1e-9)
    assert result.n_iter == n_rounds
    wanted = oracle.joint_labels(blocks, centres)
    if len(set(wanted[weights > 0])) == k:  # else a cluster is founded anew
        for mine, plain in zip(result.means, centres, strict=True):
            np.testing.assert_allclose(mine, np.array(plain), atol=1e-9)
        assert result.labels.tolist() == wanted.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_one_view_is_k_means_from_the_same_start(seed):
    start = np.random.default_rng(seed).integers(4, size=len(OVERLAPPING))
    centres = np.stack([OVERLAPPING[start == c].mean(axis=0) for c in range(4)])
    lloyd = KMeans(4, init=centres, n_init=1, tol=0.0, algorithm="lloyd").fit(OVERLAPPING)
    for form in (OVERLAPPING, sp.csr_array(OVERLAPPING)):
        model = MultiViewKMeans(4, init=start).fit(form)
        assert model.labels_.tolist() == lloyd.labels_.tolist()
        np.testing.assert_allclose(model.cluster_centers_[0], lloyd.cluster_centers_)
        assert model.objective_ == pytest.approx(lloyd.inertia_)
        assert (np.diff(model.objective_path_) < 0).all()
        assert model.predict(NEW).tolist() == lloyd.predict(NEW).tolist()


def multi_view_models(labels):
    return [MultiViewKMeans(3, init=labels), *(MultiViewEM(3, init=labels, covariance=kind) for kind in COVARIANCES)]


@pytest.mark.filterwarnings("ignore::kernelweave.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_samples_makes_no_difference_from_a_given_start(seed):
    rng = np.random.default_rng(seed)
    start, order = rng.integers(3, size=60), rng.permutation(60)
    for model, moved in zip(multi_view_models(start), multi_view_models(start[order]), strict=True):
        model.set_params(views=HALVES).fit(OVERLAPPING)
        moved.set_params(views=HALVES).fit(OVERLAPPING[order])
        assert moved.labels_.tolist() == model.labels_[order].tolist()
        assert moved.objective_ == pytest.approx(model.objective_)


@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_clusters_are_those_of_the_start(seed):
    rng = np.random.default_rng(seed)
    start, numbers = rng.permutation(np.repeat([0, 1, 2], 20)), rng.permutation(3)
    for model, other in zip(multi_view_models(start), multi_view_models(numbers[start]), strict=True):
        model.set_params(views=HALVES).fit(X)
        other.set_params(views=HALVES).fit(X)
        assert other.labels_.tolist() == numbers[model.labels_].tolist()


@pytest.mark.parametrize("model", [MultiViewKMeans(3, random_state=0), MultiViewEM(3, random_state=0)], ids=repr)
def test_a_weight_counts_as_repetition_in_several_views(model):
    rng = np.random.default_rng(3)
    counts, start = rng.integers(0, 4, size=60), np.where(rng.random(60) < 0.2, rng.integers(3, size=60), Y)
    order = rng.permutation(np.repeat(np.arange(60), counts))
    weighted = model.set_params(init=start, views=HALVES).fit(OVERLAPPING, sample_weight=counts)
    labels, objective = weighted.labels_, weighted.objective_
    repeated = model.set_params(init=start[order]).fit(OVERLAPPING[order])
    assert repeated.labels_.tolist() == labels[order].tolist()
    assert repeated.objective_ == pytest.approx(objective)


def test_two_views_hand_their_partitions_to_each_other():
    start = Y.copy()
    start[:5] = (start[:5] + 1) % 3
    model = MultiViewKMeans(3, init=start).fit({"front": X[:, :2], "back": X[:, 2:]})
    assert adjusted_rand_score(model.labels_, Y) == 1.0
    assert model.view_weights_.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(model.cluster_centers_[1], [X[c == Y, 2:].mean(axis=0) for c in range(3)])


def test_distances_and_scores_add_up_over_the_views():
    counts = np.arange(60) % 3
    model = MultiViewKMeans(3, views=HALVES, random_state=0).fit(OVERLAPPING, sample_weight=counts)
    squared = sum(
        cdist(NEW[:, half], centers, "sqeuclidean")
        for half, centers in zip(HALVES, model.cluster_centers_, strict=True)
    )
    np.testing.assert_allclose(model.transform(NEW), np.sqrt(squared))
    np.testing.assert_array_equal(model.predict(NEW), squared.argmin(axis=1))
    assert model.score(NEW) == pytest.approx(-squared.min(axis=1).sum())
    assert model.score(NEW, sample_weight=np.arange(15)) == pytest.approx(-(np.arange(15) @ squared.min(axis=1)))
    np.testing.assert_array_equal(model.labels_, model.transform(OVERLAPPING).argmin(axis=1))
    assert model.score(OVERLAPPING, sample_weight=counts) >= -model.objective_


def test_the_scatters_of_the_views_are_those_of_the_partitions_exchanged():
    model = MultiViewKMeans(3, init=Y).fit({"front": X[:, :2], "back": X[:, 2:]})
    for half, scatter in zip(HALVES, model.view_scatters_, strict=True):
        within = sum(float(X[c == Y, half].var(axis=0).sum()) * 20 for c in range(3))
        assert scatter == pytest.approx(within)
    assert model.view_scatters_.sum() == pytest.approx(model.objective_)


def test_k_means_that_does_not_settle_keeps_its_best_round():
    table = np.random.default_rng(1).standard_normal((200, 6))  # nothing that the views could agree on
    model = MultiViewKMeans(5, views=[slice(0, 3), slice(3, 6)], n_init=1, random_state=0).fit(table)
    assert model.objective_ == model.objective_path_.min() == model.objective_path_[-1]
    assert model.converged_
    assert model.n_iter_ == len(model.objective_path_) + 10
    assert set(model.labels_) == set(range(5))
    with pytest.warns(ConvergenceWarning, match="max_iter=2 before its partitions settled"):
        MultiViewKMeans(5, views=[slice(0, 3), slice(3, 6)], max_iter=2, random_state=0).fit(table)


def test_a_sample_alone_with_its_centre_stays_there_when_an_empty_cluster_is_filled():
    # The means are 1.5, 1.5 and 11.55: the last sample is far from its centre, but alone; nobody is in cluster 1.
    x = np.array([[0.0], [1.0], [2.0], [3.0], [3.1], [20.0]])
    start = np.array([0, 1, 1, 0, 2, 2])
    result = exchange_kmeans([FeatureKernel(x)], start, np.ones(6), n_clusters=3, max_iter=1)
    assert result.labels.tolist() == [0, 0, 0, 1, 1, 2]
    np.testing.assert_allclose(result.means[0], [[1.5], [3.1], [11.55]])


# --- EM of several views ---------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(problem=view_problems(max_views=2, min_n=8), covariance=st.sampled_from(COVARIANCES), counts=st.booleans())
def test_rounds_of_em_are_those_of_the_plain_loop(problem, covariance, counts):
    blocks, labels, weights, k = problem
    blocks = [np.round(4.0 * np.abs(block)) + 1.0 for block in blocks] if counts else blocks
    assume(all((block[weights > 0].var(axis=0) > 1e-9).all() for block in blocks))
    kinds = ["multinomial" if counts and v == 0 else covariance for v in range(len(blocks))]
    models = [
        MultinomialView(block, weights) if kind == "multinomial" else GaussianView(block, weights, kind)
        for block, kind in zip(blocks, kinds, strict=True)
    ]
    result = exchange_em(models, labels, n_clusters=k, max_iter=6)
    assume(all(np.isfinite(density.log_weights).all() for density in result.densities))
    path, proba, _ = oracle.exchange_em(blocks, kinds, labels, weights, k, max_iter=6)
    if len(path) == len(result.history):  # rounding may choose between equally good rounds
        assert result.history == pytest.approx(path, abs=1e-6)
        np.testing.assert_allclose(mean_posteriors(result.densities, blocks), proba, atol=1e-5)


@pytest.mark.parametrize("seed", [3, 61, 188])
def test_em_keeps_the_best_of_all_rounds_and_not_the_last_that_was_better_than_the_one_before(seed):
    rng = np.random.default_rng(seed)
    blocks = np.hsplit(rng.standard_normal((60, 4)), 2)  # nothing that the views could agree on
    views = [GaussianView(block, np.ones(60), "diagonal") for block in blocks]
    result = exchange_em(views, rng.integers(3, size=60), n_clusters=3, max_iter=200)
    assert result.objective == max(result.history)
    assert result.n_iter == len(result.history) + 5  # rounds that were not as good, though some rose
    assert mean_log_likelihood(result.densities, blocks, [np.ones(60)] * 2) == pytest.approx(result.objective)


@pytest.mark.parametrize("covariance", ["diagonal", "spherical"])
def test_one_view_is_em_of_scikit_learn_from_the_same_start(covariance):
    start = KMeans(3, n_init=1, random_state=0).fit(OVERLAPPING).labels_
    model = MultiViewEM(3, init=start, covariance=covariance, tol=1e-9, max_iter=2000).fit(OVERLAPPING)
    kind = {"diagonal": "diag", "spherical": "spherical"}[covariance]
    means = np.stack([OVERLAPPING[start == c].mean(axis=0) for c in range(3)])
    spreads = np.stack([OVERLAPPING[start == c].var(axis=0) for c in range(3)])
    precisions = 1.0 / (spreads if kind == "diag" else spreads.mean(axis=1))
    sizes = np.bincount(start) / 60
    theirs = GaussianMixture(
        3, covariance_type=kind, tol=1e-9, max_iter=2000, reg_covar=0.0, means_init=means,
        weights_init=sizes, precisions_init=precisions,
    ).fit(OVERLAPPING)  # fmt: skip
    assert model.objective_ == pytest.approx(theirs.score(OVERLAPPING), abs=1e-6)
    assert model.score(NEW) == pytest.approx(theirs.score(NEW), abs=1e-2)
    assert model.labels_.tolist() == theirs.predict(OVERLAPPING).tolist()
    np.testing.assert_allclose(model.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-3)
    np.testing.assert_allclose(model.cluster_centers_[0], theirs.means_, atol=1e-2)
    np.testing.assert_allclose(model.mixing_weights_[0], theirs.weights_, atol=1e-3)
    assert (np.diff(model.objective_path_) > -1e-12).all()


def counts_of_words(n=90, seed=0):
    """Return counts of words of three topics in two languages."""
    rng = np.random.default_rng(seed)
    topic = rng.permutation(np.repeat([0, 1, 2], n // 3))
    tables = [rng.dirichlet(np.full(30, 0.2), size=3) for _ in range(2)]
    return [np.stack([rng.multinomial(60, table[t]) for t in topic]).astype(float) for table in tables], topic


@pytest.mark.parametrize("covariance", ["diagonal", "shared_spherical"])
def test_the_score_of_mixtures_is_the_mean_log_likelihood_over_samples_and_views(covariance):
    model = MultiViewEM(3, views=HALVES, covariance=covariance, random_state=0).fit(OVERLAPPING)
    logs = []
    for v, half in enumerate(HALVES):
        means, spreads = model.cluster_centers_[v], model.cluster_spreads_[v]
        densities = np.exp(-0.5 * ((NEW[:, None, half] - means) ** 2 / spreads).sum(axis=2))
        densities /= np.sqrt(2 * np.pi * spreads).prod(axis=1)
        logs.append(np.log(densities @ model.mixing_weights_[v]))
    assert model.score(NEW) == pytest.approx(np.mean(logs))
    weights = np.arange(15.0)
    assert model.score(NEW, sample_weight=weights) == pytest.approx(np.mean(logs, axis=0) @ weights / weights.sum())
    assert model.score(OVERLAPPING) == pytest.approx(model.objective_)


def test_the_score_of_counts_is_in_the_terms_of_the_objective():
    words, _ = counts_of_words()
    model = MultiViewEM(3, distribution="multinomial", random_state=0).fit(words)
    assert model.score(words) == pytest.approx(model.objective_)
    assert model.score([sp.csr_array(block) for block in words]) == pytest.approx(model.objective_)


def test_multinomial_mixtures_find_topics_in_dense_and_sparse_counts():
    words, topic = counts_of_words()
    model = MultiViewEM(3, distribution="multinomial", random_state=0).fit(words)
    assert adjusted_rand_score(model.labels_, topic) == 1.0
    assert model.cluster_spreads_ == [None, None]
    np.testing.assert_allclose([probabilities.sum(axis=1) for probabilities in model.cluster_centers_], 1.0)
    sparse = MultiViewEM(3, distribution="multinomial", random_state=0).fit([sp.csr_array(block) for block in words])
    assert sparse.labels_.tolist() == model.labels_.tolist()
    unseen = [np.pad(block[:4], ((0, 0), (0, 0))) for block in words]
    assert model.predict(unseen).tolist() == model.labels_[:4].tolist()


def test_every_view_can_have_a_distribution_of_its_own():
    words, topic = counts_of_words()
    gauss = np.random.default_rng(5).standard_normal((90, 2)) + 4.0 * topic[:, None]
    kinds = {"numbers": "gaussian", "words": "multinomial"}
    model = MultiViewEM(3, distribution=kinds, random_state=0).fit({"words": words[0], "numbers": gauss})
    assert adjusted_rand_score(model.labels_, topic) > 0.9
    assert [spread is None for spread in model.cluster_spreads_] == [True, False]
    listed = MultiViewEM(3, distribution=["multinomial", "gaussian"], random_state=0).fit([words[0], gauss])
    assert listed.labels_.tolist() == model.labels_.tolist()
    with pytest.raises(ParameterError, match="distribution='poisson' of view 'view_1' is unknown"):
        MultiViewEM(3, distribution=["gaussian", "poisson"]).fit([gauss, gauss])
    with pytest.raises(ViewError, match="distribution has 3 entries for 2 views"):
        MultiViewEM(3, distribution=["gaussian"] * 3).fit([gauss, gauss])
    with pytest.raises(ViewError, match=r"Negative values in data.*'view_0' holds -"):
        MultiViewEM(3, distribution=["multinomial", "gaussian"]).fit([X, X])


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e138])
def test_mixtures_do_not_depend_on_the_scale_of_the_data(covariance, scale):
    plain = MultiViewEM(3, covariance=covariance, views=HALVES, random_state=0).fit(X)
    scaled = MultiViewEM(3, covariance=covariance, views=HALVES, random_state=0).fit(scale * X)
    assert scaled.labels_.tolist() == plain.labels_.tolist()
    np.testing.assert_allclose(scaled.predict_proba(scale * X), plain.predict_proba(X), atol=1e-6)


def test_probabilities_add_up_to_one_far_from_all_clusters():
    model = MultiViewEM(3, views=HALVES, random_state=0).fit(X)
    proba = model.predict_proba(np.array([[1e8, -1e8, 1e8, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isfinite(proba).all()


# --- NMF of several views --------------------------------------------------------------------------------------------


@st.composite
def nmf_problems(draw):
    """Draw views of sum 1, weights of the views, and a starting partition."""
    blocks = [np.abs(block) + 0.01 * (block == 0).all() for block in draw(views(max_views=3, min_n=5))]
    labels, k = draw(partitions(len(blocks[0]), max_clusters=3))
    weights = [10.0 ** draw(st.integers(-3, 1)) for _ in blocks]
    return [block / block.sum() for block in blocks], weights, labels, k


@cases
@given(problem=nmf_problems())
def test_no_update_of_the_factors_raises_the_objective(problem):
    blocks, weights, labels, k = problem
    result = joint_factors(blocks, weights, labels, n_clusters=k, max_iter=60, tol=0.0)
    size = sum(float((block**2).sum()) for block in blocks)
    assert (np.diff(result.history) <= 1e-13 * (size + result.history[0])).all()
    assert all((part >= 0).all() for part in (result.consensus, *result.samples, *result.features))
    wanted = oracle.nmf_objective(blocks, result.features, result.samples, result.consensus, weights)
    assert result.objective == pytest.approx(wanted, rel=1e-6, abs=1e-12 * size)


@settings(max_examples=15, deadline=None)
@given(problem=nmf_problems())
def test_a_round_of_updates_is_that_of_the_source(problem):
    blocks, weights, labels, k = problem
    blocks = [(block + 0.1 / block.size) / (block + 0.1 / block.size).sum() for block in blocks]
    start = [
        multi_view_nmf.FactoredView(block, weight, labels, k) for block, weight in zip(blocks, weights, strict=True)
    ]
    factors = [view.U.copy() for view in start], [view.V.copy() for view in start]
    result = joint_factors(blocks, weights, labels, n_clusters=k, max_iter=2, tol=0.0)
    common = sum(weight * V for weight, V in zip(weights, factors[1], strict=True)) / sum(weights)
    for _ in range(result.n_iter):
        *factors, common = oracle.nmf_round(blocks, *factors, common, weights)
    np.testing.assert_allclose(result.consensus, common, rtol=1e-6, atol=1e-15)
    for mine, plain in zip((*result.features, *result.samples), (*factors[0], *factors[1]), strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-6, atol=1e-15)


def test_the_order_of_the_samples_makes_no_difference_to_the_factors():
    words, topic = counts_of_words()
    blocks, order = [block / block.sum() for block in words], np.random.default_rng(0).permutation(90)
    options = {"n_clusters": 3, "max_iter": 40, "tol": 0.0}
    plain = joint_factors(blocks, [0.01, 0.1], topic, **options)
    moved = joint_factors([block[order] for block in blocks], [0.01, 0.1], topic[order], **options)
    np.testing.assert_allclose(moved.consensus, plain.consensus[order], rtol=1e-6, atol=1e-12)


def test_one_view_is_factorised_as_well_as_by_scikit_learn():
    words, _ = counts_of_words()
    table = words[0] / words[0].sum()
    result = MultiViewNMF(3, n_init=3, tol=1e-9, max_iter=5000, random_state=0).fit(table)
    error = float(((table - result.sample_factors_[0] @ result.components_[0]) ** 2).sum())
    theirs = NMF(3, solver="mu", init="nndsvda", tol=1e-9, max_iter=5000).fit(table).reconstruction_err_ ** 2
    assert error <= theirs * 1.001
    assert result.objective_ == pytest.approx(error, rel=1e-3)
    np.testing.assert_allclose(result.components_[0].sum(axis=1), 1.0)


def test_sparse_views_give_the_factors_of_dense_ones_and_are_never_made_dense(monkeypatch):
    words, topic = counts_of_words()
    dense = MultiViewNMF(3, random_state=0).fit(words)
    blocks = [sp.csr_array(block) for block in words]

    for name in ("toarray", "todense"):
        plain = getattr(sp.csr_array, name)

        def checked(array, *args, plain=plain, **options):
            assert array.shape[1] < 10, "a sparse view was made dense"
            return plain(array, *args, **options)

        monkeypatch.setattr(sp.csr_array, name, checked)
    sparse = MultiViewNMF(3, random_state=0).fit(blocks)
    assert sparse.labels_.tolist() == dense.labels_.tolist()
    assert sparse.objective_ == pytest.approx(dense.objective_)
    assert adjusted_rand_score(sparse.labels_, topic) == 1.0


@pytest.mark.parametrize("seed", [0, 2])  # of which both draws give other numbers to the clusters
def test_clusters_of_the_common_factor_are_drawn_apart_from_the_starts(seed):
    model = MultiViewNMF(3, views=HALVES, random_state=seed).fit(np.abs(OVERLAPPING))
    drawn = {
        purpose: multi_view_nmf.consensus_labels(model.consensus_, 3, streams(seed, 1, purpose)[0]).labels.tolist()
        for purpose in ("rounding", "starts")
    }
    assert model.labels_.tolist() == drawn["rounding"]
    assert drawn["rounding"] != drawn["starts"]


def test_every_view_can_have_a_regularization_of_its_own():
    words, _ = counts_of_words()
    named = {"front": words[0], "back": words[1]}
    tight = MultiViewNMF(3, regularization=1.0, tol=1e-5, random_state=0).fit(named)
    loose = MultiViewNMF(3, regularization=1e-4, random_state=0).fit(named)
    gap = [np.abs(model.sample_factors_[0] - model.sample_factors_[1]).sum() for model in (tight, loose)]
    assert gap[0] < gap[1]
    mixed = MultiViewNMF(3, regularization={"back": 1.0, "front": 0.01}, random_state=0).fit(named)
    parts = 0.01 * mixed.sample_factors_[0] + 1.0 * mixed.sample_factors_[1]
    np.testing.assert_allclose(mixed.consensus_, parts / 1.01)
    with pytest.raises(ParameterError, match=r"regularization=-1\.0 of view 'view_1' must be a number above 0"):
        MultiViewNMF(3, regularization=[1.0, -1.0]).fit(words)
    with pytest.raises(ViewError, match="regularization has 1 entries for 2 views"):
        MultiViewNMF(3, regularization=[1.0]).fit(words)


def test_of_several_starts_the_factors_of_least_objective_are_kept():
    table = np.random.default_rng(0).random((40, 6))  # without topics: starts lead to different ends
    ends = [MultiViewNMF(4, n_init=count, random_state=0).fit(table).objective_ for count in range(1, 7)]
    assert (np.diff(ends) <= 0).all()
    assert ends[-1] < ends[0]


@pytest.mark.parametrize("absent", [False, True])
def test_starts_do_not_depend_on_the_lengths_of_the_samples(absent, monkeypatch):
    words, _ = counts_of_words()
    if absent:
        words[0][:10] = np.nan
    starts = []

    def watched(blocks, strengths, start, *others, **options):
        starts.append(start.tolist())
        return joint_factors(blocks, strengths, start, *others, **options)

    monkeypatch.setattr(nmf_estimator, "joint_factors", watched)
    lengths = np.random.default_rng(1).choice([1.0, 50.0], size=(90, 1))
    for tables in (words, [lengths * block for block in words]):
        MultiViewNMF(3, n_init=1, random_state=0).fit(tables)
    assert starts[0] == starts[1]


def test_negative_values_and_unfinished_factors_are_told():
    with pytest.raises(ViewError, match=r"Negative values in data passed to MultiViewNMF: view 'back' holds -"):
        MultiViewNMF(3).fit({"front": np.abs(X), "back": -np.abs(X)})
    with pytest.raises(ViewError, match=r"Negative values"):
        MultiViewNMF(3).fit(sp.csr_array(X))
    words, _ = counts_of_words()
    with pytest.warns(ConvergenceWarning, match="max_iter=3 before its factors settled"):
        assert not MultiViewNMF(3, max_iter=3, random_state=0).fit(words).converged_


def test_samples_and_views_of_zeros_do_no_harm():
    words, topic = counts_of_words()
    words[0][:2] = 0.0
    model = MultiViewNMF(3, random_state=0).fit([*words, np.zeros((90, 2))])
    assert np.isfinite(model.consensus_).all()
    assert adjusted_rand_score(model.labels_[2:], topic[2:]) == 1.0
