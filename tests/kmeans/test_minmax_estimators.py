"""MinMaxKMeans, MinMaxKernelKMeans and PifsKMeans: what they do beyond the promises of every estimator."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from kernelweave import (
    ConvergenceWarning,
    KernelKMeans,
    MinMaxKernelKMeans,
    MinMaxKMeans,
    NotPSDWarning,
    ParameterError,
    PifsKMeans,
)
from kernelweave.estimators.kmeans import vectors as center_starts
from kernelweave.estimators.shared import runs
from kernelweave.foundation import threads
from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.kmeans.minmax import minmax_kmeans
from kernelweave.solvers.kmeans.starts import start_labels
from tests.estimators.discovery import blobs

SIGMA = {"kernel_params": {"sigma": 6.0}}
VECTORS, BOTH = [MinMaxKMeans, PifsKMeans], [MinMaxKMeans, MinMaxKernelKMeans]
vectors = pytest.mark.parametrize("cls", VECTORS)
both = pytest.mark.parametrize("cls", BOTH)
WITHOUT_VARIANCE = r"without variance \(empty, a single sample, or equal samples\) at p_init=0\.0"


@pytest.fixture(scope="module")
def overlapping():
    """Groups that overlap: weights, exponents and starts have something to decide."""
    return blobs(40, spread=5.0)[0]


def bad_start(seed, n=40):
    """Return three groups, their classes, and two centres in the first group beside one between the others."""
    rng = np.random.default_rng(seed)
    groups = np.array([[0.0, 0.0], [4.0, -2.0], [4.0, 2.0]])
    X = np.concatenate([rng.normal(centre, 0.5, (n, 2)) for centre in groups])
    return X, np.repeat(np.arange(3), n), np.array([[0.0, 0.5], [0.0, -0.5], [4.0, 0.0]])


def many_groups(k=10, n=25, seed=0):
    """Return well separated groups of equal size."""
    rng = np.random.default_rng(seed)
    places = rng.permutation([(i, j) for i in range(5) for j in range(5)])[:k]
    return np.repeat(8.0 * places, n, axis=0) + rng.standard_normal((n * k, 2)), np.repeat(np.arange(k), n)


def same_partition(one, other):
    return adjusted_rand_score(one, other) == 1.0


def squared_distances(X, centres):
    return ((X[:, None] - centres[None]) ** 2).sum(axis=2)


def means(X, labels, k, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return np.stack([weights[labels == c] @ X[labels == c] / weights[labels == c].sum() for c in range(k)])


# --- what is stored --------------------------------------------------------------------------------------------------


@both
def test_without_refinement_the_attributes_describe_the_weighted_solution(cls, overlapping):
    model = cls(5, random_state=0).fit(overlapping)
    assert set(model.labels_) == set(range(5))
    assert model.cluster_weights_.shape == model.cluster_variances_.shape == (5,)
    assert model.cluster_weights_.sum() == pytest.approx(1.0)
    assert 0.0 <= model.p_ <= 0.5
    assert model.max_variance_ == model.cluster_variances_.max()
    assert model.inertia_ == pytest.approx(model.cluster_variances_.sum())
    assert model.objective_ == model.objective_path_[-1]
    assert model.objective_ == pytest.approx(np.sum(model.cluster_weights_**model.p_ * model.cluster_variances_))
    assert len(model.objective_path_) == model.n_iter_
    assert model.n_features_in_ == 4


@both
def test_with_refinement_they_describe_the_solution_of_k_means_and_still_tell_the_weights_that_led_to_it(
    cls, overlapping
):
    model = cls(5, refine=True, random_state=0).fit(overlapping)
    assert model.converged_
    assert model.objective_ == model.inertia_ == model.objective_path_[-1]
    assert model.inertia_ == pytest.approx(model.cluster_variances_.sum())
    assert model.max_variance_ == model.cluster_variances_.max()
    assert (np.diff(model.objective_path_) <= 1e-9).all()
    assert model.cluster_weights_.sum() == pytest.approx(1.0)
    assert 0.0 <= model.p_ <= 0.5
    assert model.n_iter_ > len(model.objective_path_) - 1  # the steps of both


def test_centres_and_variances_are_those_of_the_labels(overlapping):
    weights = np.random.default_rng(0).uniform(0.2, 2.0, len(overlapping))
    for model in (MinMaxKMeans(4, random_state=0), MinMaxKMeans(4, refine=True, random_state=0), PifsKMeans(4)):
        model.fit(overlapping, sample_weight=weights)
        wanted = means(overlapping, model.labels_, 4, weights)
        np.testing.assert_allclose(model.cluster_centers_, wanted)
        within = squared_distances(overlapping, wanted)[np.arange(len(overlapping)), model.labels_]
        np.testing.assert_allclose(model.cluster_variances_, np.bincount(model.labels_, weights * within))
        assert model.inertia_ == pytest.approx(weights @ within)


def test_pifs_tells_the_sizes_and_the_largest_variance(overlapping):
    model = PifsKMeans(4, random_state=0).fit(overlapping)
    np.testing.assert_array_equal(model.cluster_sizes_, np.bincount(model.labels_))
    assert model.max_variance_ == model.cluster_variances_.max()
    assert model.objective_ == model.inertia_ == model.objective_path_[-1]
    assert len(model.objective_path_) == model.n_iter_ + 1
    assert model.converged_


@pytest.mark.parametrize("cls", [*BOTH, PifsKMeans])
def test_columns_of_distances_are_named_after_the_class(cls, overlapping):
    frame = pd.DataFrame(overlapping, columns=["a", "b", "c", "d"])
    model = cls(3, random_state=0).fit(frame)
    assert model.get_feature_names_out().tolist() == [f"{cls.__name__.lower()}{c}" for c in range(3)]
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]


@vectors
def test_transform_and_score_are_distances_to_the_centres(cls, overlapping):
    model = cls(4, random_state=0).fit(overlapping)
    new = blobs(7, seed=3, spread=5.0)[0]
    squared = squared_distances(new, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(new), np.sqrt(squared))
    assert model.score(new) == pytest.approx(-squared.min(axis=1).sum())
    weights = np.linspace(0.0, 2.0, len(new))
    assert model.score(new, sample_weight=weights) == pytest.approx(-weights @ squared.min(axis=1))


# --- k-means as a special case, and as what follows ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_without_an_exponent_centres_and_labels_are_those_of_scikit_learns_k_means(seed, overlapping):
    init = overlapping[np.random.default_rng(seed).choice(120, 4, replace=False)]
    model = MinMaxKMeans(4, init=init, p_max=0.0, tol=0.0).fit(overlapping)
    lloyd = KMeans(4, init=init, n_init=1, tol=0.0, algorithm="lloyd").fit(overlapping)
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)
    np.testing.assert_allclose(model.cluster_centers_, lloyd.cluster_centers_)
    assert model.inertia_ == model.objective_ == pytest.approx(lloyd.inertia_)
    assert model.n_iter_ == lloyd.n_iter_
    assert (model.p_, model.converged_) == (0.0, True)
    new = blobs(10, seed=seed, spread=8.0)[0]
    np.testing.assert_array_equal(model.predict(new), lloyd.predict(new))


@pytest.mark.parametrize("seed", range(5))
def test_scikit_learns_k_means_goes_on_from_the_centres_to_what_refinement_finds(seed, overlapping):
    init = overlapping[np.random.default_rng(seed).choice(120, 5, replace=False)]
    model = MinMaxKMeans(5, init=init).fit(overlapping)
    refined = MinMaxKMeans(5, init=init, refine=True).fit(overlapping)
    after = KMeans(5, init=model.cluster_centers_, n_init=1, tol=0.0, algorithm="lloyd").fit(overlapping)
    np.testing.assert_array_equal(after.labels_, refined.labels_)
    np.testing.assert_allclose(after.cluster_centers_, refined.cluster_centers_)
    assert after.inertia_ == pytest.approx(refined.inertia_)
    assert refined.inertia_ <= model.inertia_ * (1 + 1e-12)
    assert refined.objective_path_[0] == pytest.approx(model.inertia_)
    assert refined.n_iter_ == model.n_iter_ + len(refined.objective_path_) - 1
    assert refined.p_ == model.p_
    np.testing.assert_array_equal(refined.cluster_weights_, model.cluster_weights_)


def test_a_refined_solution_is_a_fixed_point_of_kernel_k_means(overlapping):
    model = MinMaxKernelKMeans(5, refine=True, random_state=0, **SIGMA).fit(overlapping)
    again = KernelKMeans(5, init=model.labels_, **SIGMA).fit(overlapping)
    assert again.n_iter_ == 0
    assert again.inertia_ == pytest.approx(model.inertia_)
    start = MinMaxKernelKMeans(5, random_state=0, n_init=1, **SIGMA).fit(overlapping)
    refined = MinMaxKernelKMeans(5, random_state=0, n_init=1, refine=True, **SIGMA).fit(overlapping)
    assert refined.inertia_ <= start.inertia_


@pytest.mark.parametrize("seed", range(5))
def test_a_linear_kernel_is_the_method_on_vectors_from_the_same_start(seed, overlapping):
    init = overlapping[np.random.default_rng(seed).choice(120, 5, replace=False)]
    labels = squared_distances(overlapping, init).argmin(axis=1)
    for refine in (False, True):
        plain = MinMaxKMeans(5, init=init, refine=refine).fit(overlapping)
        kernel = MinMaxKernelKMeans(5, init=labels, kernel="linear", refine=refine).fit(overlapping)
        np.testing.assert_array_equal(plain.labels_, kernel.labels_)
        np.testing.assert_allclose(plain.objective_path_, kernel.objective_path_)
        np.testing.assert_allclose(plain.cluster_variances_, kernel.cluster_variances_)
        new = blobs(10, seed=seed, spread=8.0)[0]
        np.testing.assert_array_equal(plain.predict(new), kernel.predict(new))
        np.testing.assert_allclose(plain.transform(new), kernel.transform(new))


@pytest.mark.parametrize("seed", range(6))
def test_after_a_bad_start_k_means_stays_bad_and_minmax_finds_the_groups(seed):
    # Figure 2.1 of the thesis: two centres in one group, a third for two groups.
    X, y, init = bad_start(seed)
    assert adjusted_rand_score(y, KMeans(3, init=init, n_init=1).fit(X).labels_) < 0.9
    labels = squared_distances(X, init).argmin(axis=1)
    for model in (
        MinMaxKMeans(3, init=init),
        MinMaxKMeans(3, init=init, refine=True),
        MinMaxKernelKMeans(3, init=labels, kernel="linear", refine=True),
    ):
        assert same_partition(model.fit(X).labels_, y)


def test_with_all_memory_the_weights_stay_equal_and_the_labels_are_those_of_k_means(overlapping):
    init = overlapping[:4]
    model = MinMaxKMeans(4, init=init, memory=1.0, tol=0.0).fit(overlapping)
    lloyd = KMeans(4, init=init, n_init=1, tol=0.0, algorithm="lloyd").fit(overlapping)
    np.testing.assert_array_equal(model.cluster_weights_, np.full(4, 0.25))
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)


def test_variances_are_more_alike_than_those_of_k_means():
    for seed in range(5):
        X = blobs(60, seed=seed, spread=6.0)[0]
        init = X[np.random.default_rng(seed).choice(len(X), 6, replace=False)]
        plain = MinMaxKMeans(6, init=init, p_max=0.0).fit(X)
        model = MinMaxKMeans(6, init=init).fit(X)
        assert model.max_variance_ < plain.max_variance_
        assert model.cluster_variances_.std() < plain.cluster_variances_.std()


# --- new samples -----------------------------------------------------------------------------------------------------


def test_new_samples_are_placed_by_weighted_distances(overlapping):
    model = MinMaxKMeans(5, random_state=0).fit(overlapping)
    new = blobs(200, seed=9, spread=8.0)[0]
    squared = squared_distances(new, model.cluster_centers_)
    weighted = (model.cluster_weights_**model.p_ * squared).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(new), weighted)
    assert (weighted != squared.argmin(axis=1)).any()
    refined = MinMaxKMeans(5, refine=True, random_state=0).fit(overlapping)
    np.testing.assert_array_equal(refined.predict(new), squared_distances(new, refined.cluster_centers_).argmin(axis=1))


def test_new_samples_of_a_kernel_are_placed_by_weighted_distances(overlapping):
    model = MinMaxKernelKMeans(5, random_state=0, **SIGMA).fit(overlapping)
    new = blobs(60, seed=9, spread=8.0)[0]
    squared = model.transform(new) ** 2
    np.testing.assert_array_equal(model.predict(new), (model.cluster_weights_**model.p_ * squared).argmin(axis=1))
    refined = MinMaxKernelKMeans(5, refine=True, random_state=0, **SIGMA).fit(overlapping)
    np.testing.assert_array_equal(refined.predict(new), refined.transform(new).argmin(axis=1))


@pytest.mark.parametrize("seed", range(8))
@both
def test_training_samples_get_their_own_labels_where_the_objective_rests_exactly(cls, seed):
    X = blobs(30, seed=seed, spread=4.0)[0]
    model = cls(4, n_init=1, tol=0.0, random_state=seed).fit(X)
    if model.converged_:
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    refined = cls(4, n_init=1, refine=True, random_state=seed).fit(X)
    np.testing.assert_array_equal(refined.predict(X), refined.labels_)


@pytest.mark.parametrize("n_per_group", [20, 100, 700])
def test_training_samples_get_their_own_labels_where_nothing_moves_any_more(n_per_group):
    wrong, rested = [], 0
    for seed in range(12):
        X = blobs(n_per_group, seed=seed, spread=5.0)[0]
        model = MinMaxKMeans(6, n_init=1, tol=0, random_state=seed).fit(X)
        rested += model.converged_
        if model.converged_ and not np.array_equal(model.predict(X), model.labels_):
            wrong.append((seed, int(np.count_nonzero(model.predict(X) != model.labels_))))
    assert rested >= 3
    assert wrong == []


def test_rows_of_a_kernel_matrix_can_be_placed_after_refinement_only(overlapping):
    K = rbf_kernel(overlapping, gamma=1 / 72)
    model = MinMaxKernelKMeans(4, kernel="precomputed", random_state=0).fit(K)
    assert not hasattr(model, "predict")
    with pytest.raises(AttributeError, match="predict") as error:
        model.predict(K)
    assert "refine=True" in str(error.value.__cause__)
    refined = MinMaxKernelKMeans(4, kernel="precomputed", refine=True, random_state=0).fit(K)
    assert hasattr(refined, "predict")
    np.testing.assert_array_equal(refined.predict(K), refined.labels_)
    features = MinMaxKernelKMeans(4, refine=True, random_state=0, **SIGMA).fit(overlapping)
    np.testing.assert_array_equal(refined.labels_, features.labels_)
    for each in (refined, model):
        assert not hasattr(each, "transform")
        assert not hasattr(each, "score")
        with pytest.raises(AttributeError, match="transform"):
            each.transform(K)


def test_pifs_places_new_samples_by_size_times_squared_distance(overlapping):
    weights = np.random.default_rng(0).uniform(0.2, 2.0, len(overlapping))
    model = PifsKMeans(4, random_state=0).fit(overlapping, sample_weight=weights)
    new = blobs(200, seed=9, spread=8.0)[0]
    wanted = (model.cluster_sizes_ * squared_distances(new, model.cluster_centers_)).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(new), wanted)


# --- starts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [False, True])
@both
def test_the_best_of_all_starts_is_kept(cls, refine, overlapping, monkeypatch):
    value = "inertia_" if refine else "max_variance_"
    model = cls(6, n_init=6, refine=refine, random_state=3)
    whole = getattr(model.fit(overlapping), value)
    module = center_starts if cls is MinMaxKMeans else runs
    single = []
    for i in range(6):
        monkeypatch.setattr(module, "streams", lambda seed, count, i=i: streams(seed, count)[i : i + 1])
        single.append(getattr(model.fit(overlapping), value))
    assert len(set(np.round(single, 6))) > 1
    assert whole == pytest.approx(min(single))


@pytest.mark.parametrize("cls", [*BOTH, PifsKMeans])
def test_more_starts_never_end_worse(cls, overlapping):
    value = "inertia_" if cls is PifsKMeans else "max_variance_"
    values = [getattr(cls(6, n_init=n, random_state=1).fit(overlapping), value) for n in (1, 2, 4, 8)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("n_init", [1, 2, 7])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: MinMaxKMeans(6, n_init=n, p_step=0.05, random_state=5),
        lambda n: MinMaxKMeans(6, n_init=n, p_step=0.05, refine=True, init="k-means++", random_state=5),
        lambda n: PifsKMeans(6, n_init=n, random_state=5),
        lambda n: MinMaxKernelKMeans(6, kernel="linear", n_init=n, p_step=0.05, random_state=5),
    ],
    ids=["vectors", "refined", "pifs", "linear kernel"],
)
def test_the_same_seed_gives_the_same_labels_on_any_number_of_threads(make, n_init, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-4, 4, (6, 30))[rng.integers(6, size=3000)] + 3.0 * rng.standard_normal((3000, 30))
    labels = []
    for count in (1, 2):
        with threadpool_limits(count):
            labels.append(make(n_init).fit(X).labels_)
    monkeypatch.setattr(threads, "openmp_threads", lambda: 3)
    with threadpool_limits(2, user_api="blas"):
        labels.append(make(n_init).fit(X).labels_)
    np.testing.assert_array_equal(labels[0], labels[1])
    np.testing.assert_array_equal(labels[0], labels[2])


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
def test_the_same_seed_gives_the_same_labels_on_a_large_kernel(storage, monkeypatch):
    X = blobs(400, spread=6.0)[0]
    model = MinMaxKernelKMeans(4, n_init=2, p_step=0.1, storage=storage, random_state=2, max_iter=20, **SIGMA)
    model.set_params(tol=1e-3)
    labels = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "openmp_threads", lambda count=count: count)
        labels.append(model.fit(X).labels_)
    np.testing.assert_array_equal(labels[0], labels[1])
    np.testing.assert_array_equal(labels[0], labels[2])


@vectors
def test_given_centres_make_one_run(cls, overlapping):
    init = overlapping[[3, 50, 90]]
    model = cls(3, init=init, n_init=10, random_state=0).fit(overlapping)
    again = cls(3, init=init.tolist(), n_init=1, random_state=7).fit(overlapping)
    frame = cls(3, init=pd.DataFrame(init)).fit(overlapping)
    np.testing.assert_array_equal(model.labels_, again.labels_)
    np.testing.assert_array_equal(model.labels_, frame.labels_)
    np.testing.assert_array_equal(init, overlapping[[3, 50, 90]])


@pytest.mark.filterwarnings("ignore:The best run stopped at max_iter=1", "ignore:Every start left a cluster")
def test_a_sample_as_near_to_one_given_centre_as_to_another_goes_to_the_first_in_every_form():
    different = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (30, 2)) / 2.0  # on a grid many samples lie between two centres
        init = X[:3] + rng.integers(0, 2, (3, 2))
        for form in (np.asarray, sp.csr_array):
            model = MinMaxKMeans(3, init=init, max_iter=1).fit(form(X))
            if model.p_ > 0 and not np.array_equal(model.labels_, squared_distances(X, init).argmin(axis=1)):
                different.append((seed, form.__name__))
    assert different == []


def test_samples_on_a_grid_get_the_same_random_start_in_every_form():
    different = []
    for seed in range(40):
        X = np.random.default_rng(seed).integers(-2, 3, (30, 2)) / 2.0
        forms = (FeatureKernel(X), FeatureKernel(X - X.mean(axis=0)), FeatureKernel(sp.csr_array(X)))
        starts = [start_labels(op, "random", np.ones(30), 3, np.random.default_rng(seed)).tolist() for op in forms]
        different += [seed] * (starts[0] != starts[1] or starts[0] != starts[2])
    assert different == []


@vectors
@pytest.mark.parametrize(
    ("init", "match"),
    [
        (np.zeros((2, 4)), r"init has shape \(2, 4\).*\(3, 4\)"),
        (np.zeros((3, 5)), r"init has shape \(3, 5\).*\(3, 4\)"),
        (np.zeros((4, 3)), r"init has shape \(4, 3\).*\(3, 4\)"),
        (np.full((3, 4), np.nan), r"init contains NaN"),
        (np.full((3, 4), np.inf), r"init contains infinity"),
        ([["a", "b", "c", "d"]] * 3, r"init holds text"),
        (np.zeros(15, dtype=int), r"init\b.*\(3, 4\)"),
        ("minmax", r"init"),
        ("random_partition", r"init"),
    ],
    ids=["rows", "columns", "transposed", "nan", "inf", "text", "labels", "minmax", "random_partition"],
)
def test_centres_that_cannot_be_used_are_refused_by_name(cls, init, match):
    with pytest.raises(ValueError, match=match):
        cls(3, init=init).fit(blobs(5)[0])


def test_a_kernel_takes_labels_as_its_start_and_refuses_others():
    X = blobs(5)[0]
    with pytest.raises(ParameterError, match=r"init has shape \(14,\).*\(15,\)"):
        MinMaxKernelKMeans(3, init=np.zeros(14)).fit(X)
    with pytest.raises(ParameterError, match=r"init holds labels from 0 to 3"):
        MinMaxKernelKMeans(3, init=np.arange(15) % 4).fit(X)
    with pytest.raises(ValueError, match="init"):
        MinMaxKernelKMeans(3, init="minmax").fit(X)


def test_given_centres_far_away_lead_to_k_means_with_a_warning(overlapping):
    init = np.concatenate([overlapping[:2], [[1e6] * 4]])
    with pytest.warns(ConvergenceWarning, match=WITHOUT_VARIANCE):
        model = MinMaxKMeans(3, init=init).fit(overlapping)
    assert set(model.labels_) == {0, 1, 2}
    assert (model.p_, model.cluster_weights_.tolist()) == (0.0, [1 / 3] * 3)
    np.testing.assert_array_equal(model.predict(overlapping), model.labels_)


# --- parameters and warnings -----------------------------------------------------------------------------------------


@both
def test_an_exponent_that_starts_above_its_largest_value_is_refused_with_both(cls, overlapping):
    with pytest.raises(ParameterError, match=r"p_init=0\.6 is above p_max=0\.3"):
        cls(3, p_init=0.6, p_max=0.3).fit(overlapping)
    cls(3, p_init=0.3, p_max=0.3, random_state=0).fit(overlapping)


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p_max", 1.0),
        ("p_max", -0.1),
        ("p_init", 1.0),
        ("p_init", -0.1),
        ("p_step", 0.0),
        ("p_step", -0.01),
        ("memory", 1.1),
        ("memory", -0.1),
        ("tol", -1e-9),
        ("max_iter", 0),
        ("n_init", 0),
        ("refine", "yes"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(cls, name, value, overlapping):
    with pytest.raises(ValueError, match=rf"'{name}' parameter"):
        cls(3, **{name: value}).fit(overlapping)


@both
def test_the_exponent_at_the_end_lies_between_its_bounds(cls, overlapping):
    model = cls(4, p_init=0.2, p_max=0.25, p_step=0.03, random_state=0).fit(overlapping)
    assert 0.2 <= model.p_ <= 0.25
    assert cls(4, p_max=0.1, p_step=5.0, random_state=0).fit(overlapping).p_ in (0.0, 0.1)


@pytest.mark.parametrize("refine", [False, True])
@both
def test_where_all_starts_leave_a_cluster_without_variance_k_means_takes_over_with_a_warning(cls, refine):
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=WITHOUT_VARIANCE):
        model = cls(2, n_init=2, refine=refine, random_state=0).fit(X)
    assert same_partition(model.labels_, np.repeat([0, 1], 10))
    assert model.converged_
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12)
    assert model.cluster_weights_.tolist() == [0.5, 0.5]
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_exponent_named_in_that_warning_is_the_one_given():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"p_init=0\.2"):
        model = MinMaxKMeans(2, p_init=0.2, random_state=0).fit(X)
    assert model.p_ == 0.2


@pytest.mark.filterwarnings("ignore:Every start left a cluster without variance")
def test_equal_samples_end_in_one_cluster_with_a_warning():
    X = np.full((12, 2), 0.3)
    for cls in (*BOTH, PifsKMeans):
        with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\) found smaller than n_clusters \(3\)"):
            model = cls(3, random_state=0).fit(X)
        assert len(set(model.labels_)) == 1
        assert np.isinf(model.transform(X)).sum() == 24  # two clusters stayed empty
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_start_that_fails_is_drawn_again():
    # Many samples are equal: a draw that takes two of them as centres leaves the second one without samples.
    X = np.concatenate([blobs(10)[0], np.repeat(blobs(10)[0][:1], 20, axis=0)])
    failed = 0
    for seed in range(12):
        MinMaxKMeans(3, n_init=1, random_state=seed).fit(X)  # would warn where it gave up
        MinMaxKernelKMeans(3, n_init=1, random_state=seed, **SIGMA).fit(X)
        first = start_labels(FeatureKernel(X), "random", np.ones(50), 3, streams(seed, 1)[0])
        failed += minmax_kmeans(FeatureKernel(X), first, np.ones(50), n_clusters=3).collapsed
    assert failed >= 2


@pytest.mark.parametrize("seed", [20, 323, 392])
def test_with_refinement_nothing_is_said_of_all_starts_where_only_the_best_one_fell_back(seed):
    x = {
        20: [1, 1, 3, 0, 0, 2, 0, 1, 1, 0, 0],
        323: [2, 3, 0, 3, 3, 2, 1, 0, 3, 2],
        392: [1, 1, 0, 3, 2, 0, 0, 2, 3, 0, 0],
    }[seed]
    X = np.array(x, dtype=float)[:, None]
    for refine in (False, True):  # a start was followed to its end
        assert MinMaxKMeans(2, n_init=3, refine=refine, random_state=seed).fit(X).warnings_ == ()


@pytest.mark.parametrize("cls", [*BOTH, PifsKMeans])
def test_too_few_steps_give_a_warning_with_their_number(cls, overlapping):
    steps = 1 if cls is PifsKMeans else 5
    with pytest.warns(ConvergenceWarning, match=rf"max_iter={steps}\b"):
        model = cls(6, max_iter=steps, random_state=0).fit(overlapping)
    assert not model.converged_
    assert model.n_iter_ == steps


def test_a_run_in_a_circle_is_no_reason_to_warn_but_has_not_converged():
    circles = 0
    for seed in range(12):
        X = blobs(25, seed=seed, spread=5.0)[0]
        model = MinMaxKMeans(4, n_init=1, random_state=seed).fit(X)  # a warning would be an error here
        if not model.converged_:
            circles += 1
            assert model.n_iter_ < 500
            assert MinMaxKMeans(4, n_init=1, random_state=seed, refine=True).fit(X).converged_
    assert circles >= 3


def test_a_bar_over_the_starts_goes_to_standard_error_when_asked_for(overlapping, capsys):
    for cls in (*BOTH, PifsKMeans):
        cls(3, n_init=4, verbose=1, random_state=0).fit(overlapping)
        out, err = capsys.readouterr()
        assert out == ""
        assert "starts" in err
        assert "4/4" in err


# --- forms of input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["random", "k-means++", "centres"])
@vectors
def test_sparse_samples_give_the_model_of_dense_ones(cls, init, overlapping):
    X = np.where(np.abs(overlapping) < 4.0, 0.0, overlapping)
    start = X[[0, 40, 80, 100]] if init == "centres" else init
    dense, sparse = (cls(4, init=start, n_init=3, random_state=0).fit(form) for form in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(sparse.objective_path_, dense.objective_path_, rtol=1e-9)
    assert isinstance(sparse.cluster_centers_, np.ndarray)
    for model in (dense, sparse):
        np.testing.assert_array_equal(model.predict(sp.csr_array(X)), model.predict(X))
        np.testing.assert_allclose(model.transform(sp.csr_array(X)), model.transform(X), atol=1e-6)


@vectors
def test_a_place_far_from_the_origin_makes_no_difference(cls, overlapping):
    near = cls(4, init=overlapping[:4]).fit(overlapping)
    far = cls(4, init=overlapping[:4] + 1e6).fit(overlapping + 1e6)
    np.testing.assert_array_equal(near.labels_, far.labels_)
    np.testing.assert_allclose(near.cluster_centers_ + 1e6, far.cluster_centers_)
    np.testing.assert_array_equal(far.predict(overlapping + 1e6), near.predict(overlapping))


@pytest.mark.parametrize("refine", [False, True])
def test_a_weight_counts_as_repetition_from_given_centres(refine, overlapping):
    counts = np.random.default_rng(0).integers(1, 4, len(overlapping))
    init = overlapping[:4]
    weighted = MinMaxKMeans(4, init=init, refine=refine).fit(overlapping, sample_weight=counts)
    repeated = MinMaxKMeans(4, init=init, refine=refine).fit(np.repeat(overlapping, counts, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)
    np.testing.assert_allclose(weighted.cluster_weights_, repeated.cluster_weights_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)


@pytest.mark.parametrize("cls", [MinMaxKMeans, PifsKMeans])
def test_samples_of_weight_zero_get_a_label_and_change_nothing(cls, overlapping):
    weights = np.ones(len(overlapping))
    weights[::5] = 0.0
    init = overlapping[:4]
    whole = cls(4, init=init).fit(overlapping, sample_weight=weights)
    alone = cls(4, init=init).fit(overlapping[weights > 0])
    np.testing.assert_array_equal(whole.labels_[weights > 0], alone.labels_)
    np.testing.assert_allclose(whole.cluster_centers_, alone.cluster_centers_)
    assert set(whole.labels_) <= set(range(4))


def test_every_storage_and_form_of_a_kernel_gives_the_same_labels(overlapping):
    K, options = rbf_kernel(overlapping, gamma=1 / 72), {"n_init": 3, "random_state": 0}
    wanted = MinMaxKernelKMeans(4, storage="dense", **SIGMA, **options).fit(overlapping)
    for other, X in (
        (MinMaxKernelKMeans(4, storage="blockwise", **SIGMA, **options), overlapping),
        (MinMaxKernelKMeans(4, kernel="precomputed", **options), K),
        (MinMaxKernelKMeans(4, kernel="precomputed", **options), sp.csr_array(K)),
        (MinMaxKernelKMeans(4, **SIGMA, **options), sp.csr_array(overlapping)),
    ):
        other.fit(X)
        np.testing.assert_array_equal(other.labels_, wanted.labels_)
        np.testing.assert_allclose(other.objective_path_, wanted.objective_path_, rtol=1e-9)


@pytest.mark.parametrize("approximation", ["nystroem", "random_features"])
def test_an_approximated_kernel_finds_clear_groups(approximation):
    X, y = blobs(30)
    model = MinMaxKernelKMeans(3, approximation=approximation, n_components=60, random_state=0, **SIGMA).fit(X)
    assert same_partition(model.labels_, y)
    assert same_partition(model.predict(blobs(10, seed=1)[0]), blobs(10, seed=1)[1])


@pytest.mark.filterwarnings(
    "ignore:Every start left a cluster without variance", "ignore:A full step would have raised"
)
@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_kernel_that_is_not_positive_semidefinite_ends_with_a_warning(seed, refine):
    K = np.random.default_rng(seed).standard_normal((30, 30))
    with pytest.warns(NotPSDWarning, match="not positive semidefinite"):
        model = MinMaxKernelKMeans(3, kernel="precomputed", refine=refine, n_init=3, random_state=0).fit(K + K.T)
    assert set(model.labels_) == {0, 1, 2}
    assert np.isfinite(model.objective_path_).all()
    assert model.cluster_weights_.sum() == pytest.approx(1.0)


# --- as the start of kernel k-means ----------------------------------------------------------------------------------


def test_minmax_as_a_start_follows_its_seed_and_is_the_refined_method(overlapping):
    one, two = (KernelKMeans(5, init="minmax", n_init=4, random_state=0, **SIGMA).fit(overlapping) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    refined = MinMaxKernelKMeans(5, refine=True, n_init=4, random_state=0, **SIGMA).fit(overlapping)
    np.testing.assert_array_equal(one.labels_, refined.labels_)
    assert one.inertia_ == pytest.approx(refined.inertia_)
    assert one.converged_


@pytest.mark.parametrize("kernel", [{"kernel": "linear"}, {"kernel_params": {"sigma": 6.0}}], ids=["linear", "rbf"])
def test_on_many_groups_of_equal_size_single_minmax_starts_end_lower_than_random_ones(kernel):
    X, y = many_groups()
    by_init = {
        init: [KernelKMeans(10, init=init, n_init=1, random_state=seed, **kernel).fit(X) for seed in range(12)]
        for init in ("random", "minmax")
    }
    inertias = {init: np.array([model.inertia_ for model in models]) for init, models in by_init.items()}
    assert inertias["minmax"].mean() < 0.8 * inertias["random"].mean()
    hits = {init: sum(same_partition(model.labels_, y) for model in models) for init, models in by_init.items()}
    assert hits["minmax"] > hits["random"]


def test_minmax_as_a_start_works_on_degenerate_samples_too():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0], [9.0, 0.0]], 4, axis=0)
    model = KernelKMeans(3, init="minmax", n_init=3, random_state=0).fit(X)
    assert same_partition(model.labels_, np.repeat([0, 1, 2], 4))


# --- pifs ------------------------------------------------------------------------------------------------------------


def test_pifs_balances_sizes_where_k_means_follows_the_density():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (300, 2)), rng.normal(4, 1, (60, 2))])
    sizes = PifsKMeans(3, random_state=0).fit(X).cluster_sizes_
    plain = np.bincount(KMeans(3, n_init=3, random_state=0).fit(X).labels_)
    assert sizes.std() < plain.std()
    assert sizes.min() > plain.min()


def test_pifs_with_as_many_clusters_as_samples_leaves_each_alone():
    X = np.random.default_rng(0).standard_normal((6, 2))
    model = PifsKMeans(6, random_state=0).fit(X)
    assert sorted(model.labels_) == list(range(6))
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12)


def test_pifs_carries_sizes_over_more_samples_than_are_held_at_a_time():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (4500, 2)), rng.normal(4, 1, (700, 2))])
    model = PifsKMeans(3, init=X[[0, 1, -1]]).fit(X)
    sizes, labels = model.cluster_sizes_.copy(), model.labels_
    assert model.converged_
    squared = squared_distances(X, model.cluster_centers_)
    for i in range(0, len(X), 97):  # at rest every sample is where it belongs, without its weight
        sizes[labels[i]] -= 1.0
        assert (sizes * squared[i])[labels[i]] <= (sizes * squared[i]).min() + 1e-6
        sizes[labels[i]] += 1.0
