"""AnnealingSearch, score_clustering and choose_n_clusters: criteria against plain functions, searches, errors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import lognorm, loguniform, randint, uniform
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    ConvergenceWarning,
    GraphCut,
    KernelKMeans,
    KernelSpectralClustering,
    MultiViewKernelSpectralClustering,
    ParameterError,
    ViewError,
)
from kernelweave.datasets import make_mvksc_synth2, make_two_rings
from kernelweave.evaluation.model_selection import annealing
from kernelweave.foundation.random_streams import streams
from kernelweave.metrics import (
    balanced_angular_fit,
    balanced_line_fit,
    kernel_silhouette,
    normalized_mutual_info,
)
from kernelweave.model_selection import AnnealingSearch, choose_n_clusters, score_clustering
from tests.estimators.discovery import blobs, for_estimators, same

X, TRUTH = blobs(12)
N = len(X)
VIEWS = {"front": X[:, :2], "back": X[:, 2:]}
SIGMA = loguniform(0.5, 20.0)
SPACE = {"kernel_params": {"sigma": SIGMA}}
criteria = pytest.mark.parametrize("criterion", ["blf", "baf"])
MEASURES = {"blf": balanced_line_fit, "baf": balanced_angular_fit}


def ksc(n_clusters=3, sigma=4.0, **options):
    return KernelSpectralClustering(n_clusters, kernel_params={"sigma": sigma}, **options)


def mvksc(n_clusters=3, sigma=4.0, **options):
    return MultiViewKernelSpectralClustering(n_clusters, kernel_params={"sigma": sigma}, **options)


def search(estimator=None, space=None, **options):
    return AnnealingSearch(
        KernelSpectralClustering(3) if estimator is None else estimator,
        SPACE if space is None else space,
        **({"n_iter": 8, "random_state": 0} | options),
    )


def constant(model, data):
    """Give all clusterings the same score."""
    return 1.0


# --- every estimator -------------------------------------------------------------------------------------------------


@for_estimators(lambda case: case.has("n_clusters") and (case.takes_kernel or not case.pairwise))
def test_every_estimator_can_be_searched(case):
    data = case.form(X)
    result = search(case.make(), {"n_clusters": [2, 3]}, n_iter=3).fit(data)
    assert result.best_params_ in ({"n_clusters": 2}, {"n_clusters": 3})
    assert 1 <= len(result.trace_["score"]) <= 2
    assert result.best_score_ == result.trace_["score"].max()
    assert result.best_score_ == pytest.approx(silhouette_score(data, result.labels_))
    assert result.best_estimator_.n_clusters == result.best_params_["n_clusters"]
    np.testing.assert_array_equal(result.labels_, result.best_estimator_.labels_)
    assert score_clustering(result.best_estimator_, data) == result.best_score_


@for_estimators(lambda case: case.has("n_clusters") and case.multi_view)
def test_every_estimator_of_several_views_can_be_searched(case):
    views = {name: case.form(view) for name, view in VIEWS.items()}
    result = search(case.make(), {"n_clusters": [2, 3]}, n_iter=3).fit(views)
    expected = np.mean([silhouette_score(view, result.labels_) for view in views.values()])
    assert result.best_score_ == pytest.approx(expected)


@for_estimators(lambda case: case.pairwise and not case.takes_kernel)
def test_graphs_have_no_distances_and_can_be_searched_with_a_function(case):
    A = case.form(X)
    with pytest.raises(ParameterError, match=rf"criterion='silhouette' needs distances.*{case} takes a graph"):
        search(case.make(), {"n_clusters": [2, 3]}).fit(A)
    with pytest.raises(ParameterError, match="takes a graph"):
        choose_n_clusters(case.make(), A, [2, 3])
    with pytest.raises(ParameterError, match="takes a graph"):
        score_clustering(case.make().fit(A), A)

    def negative_cut(model, graph):
        assert graph is A
        return -model.cut_value_

    result = search(case.make(), {"n_clusters": [2, 3]}, n_iter=6, criterion=negative_cut).fit(A)
    assert result.best_score_ == -result.best_estimator_.cut_value_
    assert choose_n_clusters(case.make(), A, [2, 3], criterion=negative_cut).scores.max() == result.best_score_


@for_estimators(lambda case: case.has("n_clusters") and case.takes_kernel)
def test_kernel_matrices_have_distances_of_their_own(case):
    K = rbf_kernel(X, gamma=0.02)
    model = case.make(**case.precomputed).fit(K)
    assert score_clustering(model, K) == pytest.approx(kernel_silhouette(K, model.labels_))
    result = search(case.make(**case.precomputed), {"n_clusters": [2, 3]}, n_iter=3).fit(K)
    assert result.best_score_ == pytest.approx(kernel_silhouette(K, result.labels_))


# --- silhouettes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix, pd.DataFrame, lambda A: A.tolist()])
def test_the_silhouette_is_that_of_scikit_learn(metric, form):
    data = np.abs(X) * (np.abs(X) > 1.0)
    labels = KMeans(3, n_init=1, random_state=0).fit(data).labels_
    model = KMeans(3, n_init=1, random_state=0).fit(data)
    expected = silhouette_score(data, labels, metric=metric)
    assert score_clustering(model, form(data), metric=metric) == pytest.approx(expected, abs=1e-9)


def test_the_silhouette_is_measured_between_samples_as_they_were_given():
    # Not in feature space, and not after the first steps of a pipeline.
    model = Pipeline([("scale", StandardScaler()), ("cluster", ksc(sigma=1.0))]).fit(1000.0 * X * [1, 1, 5, 5])
    labels = model[-1].labels_
    data = 1000.0 * X * [1, 1, 5, 5]
    assert score_clustering(model, data) == pytest.approx(silhouette_score(data, labels))


def test_the_only_sample_of_a_cluster_counts_as_zero():
    model = KMeans(3, n_init=1, random_state=0).fit(X)
    model.labels_ = np.where(np.arange(N) == 5, 2, TRUTH % 2)
    assert score_clustering(model, X) == pytest.approx(silhouette_score(X, model.labels_))


@pytest.mark.parametrize("criterion", ["silhouette", "blf", "baf"])
def test_a_single_cluster_gets_the_worst_score(criterion):
    assert score_clustering(ksc(1).fit(X), X, criterion=criterion) == -1.0
    assert score_clustering(mvksc(1).fit(VIEWS), VIEWS, criterion=criterion) == -1.0


def test_a_drawn_part_is_judged_by_itself():
    model = ksc(2).fit(X)
    rows = np.sort(streams(3, 1, "judged samples")[0].choice(N, 20, replace=False))
    result = score_clustering(model, X, sample_size=20, random_state=3)
    assert result == pytest.approx(silhouette_score(X[rows], model.labels_[rows]))
    assert result == score_clustering(model, X, sample_size=20, random_state=3)
    assert result != score_clustering(model, X, sample_size=20, random_state=4)
    whole = score_clustering(model, X, sample_size=None)
    assert whole == score_clustering(model, X, sample_size=N) == score_clustering(model, X, sample_size=N + 1)
    assert whole == pytest.approx(silhouette_score(X, model.labels_))


def test_a_search_draws_its_part_once_for_all_points():
    data = np.random.default_rng(0).standard_normal((N, 3))
    result = search(space={"n_clusters": [2, 3, 4]}, sample_size=15, n_iter=20, random_state=5).fit(data)
    rows = np.sort(streams(5, 1, "judged samples")[0].choice(N, 15, replace=False))
    assert len(result.trace_["score"]) == 3
    for params, score in zip(result.trace_["params"], result.trace_["score"], strict=True):
        labels = KernelSpectralClustering(**params).fit(data).labels_
        assert score == pytest.approx(silhouette_score(data[rows], labels[rows]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_given_kernels_have_the_silhouette_of_their_feature_space(form):
    K = rbf_kernel(X, gamma=0.02)
    model = KernelSpectralClustering(2, kernel="precomputed").fit(form(K))
    result = score_clustering(model, form(K), metric="cosine")  # which has no effect here
    assert result == pytest.approx(kernel_silhouette(K, model.labels_))


@pytest.mark.parametrize("views", [VIEWS, list(VIEWS.values())], ids=["dict", "list"])
def test_several_views_are_judged_one_by_one(views):
    model = mvksc(2, sigma=6.0).fit(views)
    parts = views.values() if isinstance(views, dict) else views
    each = [silhouette_score(part, model.labels_) for part in parts]
    assert score_clustering(model, views) == pytest.approx(np.mean(each))
    assert abs(each[0] - each[1]) > 1e-3


@pytest.mark.parametrize("columns", [[slice(0, 2), slice(2, 4)], {"front": ["a", "b"], "back": ["c", "d"]}], ids=str)
def test_views_in_one_table_are_judged_one_by_one(columns):
    table = pd.DataFrame(X, columns=list("abcd"))
    model = mvksc(2, sigma=6.0, views=columns).fit(table)
    each = [silhouette_score(part, model.labels_) for part in VIEWS.values()]
    assert score_clustering(model, table) == pytest.approx(np.mean(each))


def test_views_may_be_features_and_kernels():
    K = rbf_kernel(X[:, 2:], gamma=0.02)
    views = {"front": X[:, :2], "back": K}
    model = MultiViewKernelSpectralClustering(2, kernel={"front": "rbf", "back": "precomputed"}).fit(views)
    each = [silhouette_score(X[:, :2], model.labels_), kernel_silhouette(K, model.labels_)]
    assert score_clustering(model, views) == pytest.approx(np.mean(each))


def torn(seed=0):
    """Return two views of three faint groups each, which have little to do with each other."""
    rng = np.random.default_rng(seed)
    return {
        "one": rng.standard_normal((N, 2)) + 3.0 * np.eye(3, 2)[TRUTH],
        "two": rng.standard_normal((N, 2)) + 2.0 * np.eye(3, 2)[rng.permutation(TRUTH)],
    }


def test_view_by_view_every_view_is_judged_with_its_own_labels():
    views = torn()
    model = mvksc(3, sigma=1.5, assignment="per_view").fit(views)
    assert adjusted_rand_score(*model.view_labels_) < 1.0
    each = [silhouette_score(view, labels) for view, labels in zip(views.values(), model.view_labels_, strict=True)]
    assert score_clustering(model, views) == pytest.approx(np.mean(each))


# --- balanced fits ---------------------------------------------------------------------------------------------------


@criteria
@pytest.mark.parametrize("eta", [0, 0.3, 0.75, 1.0])
@pytest.mark.parametrize("n_train", [None, 25])
def test_balanced_fits_are_the_plain_functions(criterion, eta, n_train):
    data = torn()["one"]
    model = ksc(3, sigma=1.5, n_train_samples=n_train, random_state=0).fit(data)
    labels = model.labels_[model.train_indices_]
    expected = MEASURES[criterion](model.scores_, labels, eta=eta, n_clusters=3)
    assert score_clustering(model, data, criterion=criterion, eta=eta) == pytest.approx(expected)
    assert score_clustering(Pipeline([("cluster", model)]), data, criterion=criterion, eta=eta) == pytest.approx(
        expected
    )


def test_the_default_weight_of_the_fit_is_three_quarters():
    data = torn()["one"]
    model = ksc(3, sigma=1.5).fit(data)
    assert score_clustering(model, data, criterion="blf") == pytest.approx(
        balanced_line_fit(model.scores_, model.labels_, eta=0.75)
    )


def unit(values):
    return values / np.sqrt(np.mean(values**2))


def test_the_line_fit_of_two_clusters_pairs_scores_and_row_sums_of_equal_size():
    data = torn()["one"]
    model = ksc(2, sigma=1.5).fit(data)
    expected = balanced_line_fit(
        unit(model.scores_), model.labels_, eta=0.9, kernel_row_sums=unit(model.kernel_row_sums(data))
    )
    assert score_clustering(model, data, criterion="blf", eta=0.9) == pytest.approx(expected)
    # Eigenvectors have no length of their own, and kernels times a constant are the same model.
    K = rbf_kernel(data, gamma=0.5 / 1.5**2)
    for factor in (1e-3, 1.0, 1e3):
        scaled = KernelSpectralClustering(2, kernel="precomputed").fit(factor * K)
        assert score_clustering(scaled, factor * K, criterion="blf", eta=0.9) == pytest.approx(expected)


def test_the_angular_fit_of_two_clusters_of_one_view_sees_the_balance_alone():
    data = torn()["one"]
    model = ksc(2, sigma=1.5).fit(data)
    sizes = np.bincount(model.labels_)
    result = score_clustering(model, data, criterion="baf", eta=0.6)
    assert result == pytest.approx(0.6 + 0.4 * sizes.min() / sizes.max())


@criteria
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("assignment", ["joint", "per_view"])
@pytest.mark.parametrize("n_train", [None, 25])
def test_balanced_fits_of_several_views_are_their_mean(criterion, k, assignment, n_train):
    views = torn()
    model = mvksc(k, sigma=1.5, assignment=assignment, n_train_samples=n_train, random_state=0).fit(views)
    each = []
    for v in range(2):
        labels = (model.view_labels_[v] if assignment == "per_view" else model.labels_)[model.train_indices_]
        scores, more = model.scores_[v], {}
        if criterion == "blf" and k == 2:
            scores, more = unit(scores), {"kernel_row_sums": unit(model.degrees_[v])}
        each.append(MEASURES[criterion](scores, labels, eta=0.6, n_clusters=k, **more))
    assert score_clustering(model, views, criterion=criterion, eta=0.6) == pytest.approx(np.mean(each))


@criteria
def test_balanced_fits_need_the_scores_of_kernel_spectral_clustering(criterion):
    for model in (KernelKMeans(3, random_state=0), KMeans(3, n_init=1, random_state=0)):
        name = type(model).__name__
        with pytest.raises(ParameterError, match=rf"criterion='{criterion}' looks at the scores.*{name} has none"):
            score_clustering(model.fit(X), X, criterion=criterion)
        with pytest.raises(ParameterError, match=f"{name} has none"):
            search(model, {"n_clusters": [2, 3]}, criterion=criterion).fit(X)
        with pytest.raises(ParameterError, match=f"{name} has none"):
            choose_n_clusters(model, X, [2, 3], criterion=criterion)


def test_a_function_gets_the_fitted_estimator_and_the_samples():
    judged = []

    def criterion(model, data):
        judged.append(model)
        assert data is X
        return np.float64(-model.objective_)

    model = ksc().fit(X)
    assert score_clustering(model, X, criterion=criterion) == -model.objective_
    assert judged == [model]


def test_moves_have_a_stream_of_their_own(monkeypatch):
    used = []
    monkeypatch.setattr(annealing, "dual_annealing", lambda *_, rng, **__: used.append(rng))
    search(random_state=3).fit(X)
    assert used[0].random(4).tolist() == streams(3, 1, "annealing")[0].random(4).tolist()


# --- what is drawn ---------------------------------------------------------------------------------------------------


def test_the_first_point_is_at_the_medians():
    space = {"kernel_params": {"sigma": SIGMA}, "n_clusters": randint(2, 5)}
    result = search(space=space, n_iter=1).fit(X)
    assert result.trace_["params"] == [
        {"kernel_params": {"sigma": pytest.approx(SIGMA.median())}, "n_clusters": int(randint(2, 5).median())}
    ]
    assert result.best_params_ == result.trace_["params"][0]


def test_distributions_give_numbers_of_their_range_and_kind():
    space = {"kernel_params": {"sigma": uniform(3.0, 2.0)}, "n_clusters": randint(2, 5), "memory_limit": SIGMA}
    result = search(space=space, n_iter=40).fit(X)
    sigmas = [params["kernel_params"]["sigma"] for params in result.trace_["params"]]
    counts = [params["n_clusters"] for params in result.trace_["params"]]
    limits = [params["memory_limit"] for params in result.trace_["params"]]
    assert {type(value) for value in sigmas + limits} == {float}
    assert {type(value) for value in counts} == {int}
    assert set(counts) == {2, 3, 4}
    assert 3.0 <= min(sigmas) < max(sigmas) <= 5.0
    assert 0.5 <= min(limits) < max(limits) <= 20.0
    assert max(sigmas) - min(sigmas) > 1.0


def test_unbounded_distributions_stay_finite_at_the_corners():
    trials = annealing._Trials(ksc(2), {"kernel_params": {"sigma": lognorm(1.0)}}, X, lambda model: 0.0, 2, False)
    trials(np.zeros(1))
    trials(np.ones(1))
    least, most = (params["kernel_params"]["sigma"] for params in trials.params)
    assert 0.0 < least < 0.1
    assert 10.0 < most < np.inf


@pytest.mark.parametrize("place", [0.0, 0.34, 0.67, 1.0])
def test_every_choice_has_its_part_of_the_line(place):
    trials = annealing._Trials(ksc(), {"n_clusters": [2, 3, 4]}, X, lambda model: 0.0, 2, False)
    trials(np.array([place]))
    assert trials.params == [{"n_clusters": 2 + min(int(3 * place), 2)}]


@pytest.mark.parametrize("choices", [[2, 3, 4], (2, 3, 4), np.array([2, 3, 4])], ids=["list", "tuple", "array"])
def test_choices_are_tried_as_they_are_and_once_each(choices):
    fits = []

    def criterion(model, data):
        fits.append(model.n_clusters)
        return 1.0 / model.n_clusters

    result = search(space={"n_clusters": choices}, n_iter=40, criterion=criterion).fit(X)
    assert sorted(fits) == [2, 3, 4]
    assert len(result.trace_["params"]) == 3
    assert result.best_params_ == {"n_clusters": 2}


def test_choices_may_be_anything_that_holds_no_distribution():
    kernels = ["rbf", "laplacian", rbf_kernel]
    result = search(space={"kernel": kernels, "kernel_params": [None, {}]}, n_iter=60).fit(X)
    tried = {repr(params) for params in result.trace_["params"]}
    assert len(tried) == len(result.trace_["params"]) == 6
    assert result.best_estimator_.kernel in kernels


def test_dicts_and_lists_may_hold_distributions_beside_what_stays():
    space = {
        "kernel_params": [{"sigma": SIGMA}, {"gamma": 0.25, "degree": 2}],
        "gamma": [loguniform(0.1, 1.0), 0.5],
        "n_clusters": [2, 3],
    }
    model = MultiViewKernelSpectralClustering(2, kernel=["rbf", "poly"])
    views = [np.abs(view) for view in VIEWS.values()]
    result = search(model, space, n_iter=12).fit(views)
    assert len(result.trace_["params"]) > 8
    for params in result.trace_["params"]:
        assert list(params) == list(space)
        assert params["kernel_params"][1] == {"gamma": 0.25, "degree": 2}
        assert 0.5 <= params["kernel_params"][0]["sigma"] <= 20.0
        assert 0.1 <= params["gamma"][0] <= 1.0
        assert params["gamma"][1] == 0.5
        assert params["n_clusters"] in (2, 3)
    assert result.best_estimator_.gamma == result.best_params_["gamma"]
    assert len({params["gamma"][0] for params in result.trace_["params"]}) > 3


def test_parameters_of_the_steps_of_a_pipeline_have_their_names():
    pipe = Pipeline([("scale", StandardScaler()), ("cluster", KernelSpectralClustering(3))])
    space = {"cluster__kernel_params": {"sigma": loguniform(0.1, 5.0)}, "scale__with_std": [True, False]}
    result = search(pipe, space, n_iter=10).fit(X)
    assert isinstance(result.best_estimator_, Pipeline)
    assert result.best_estimator_.get_params()["scale__with_std"] == result.best_params_["scale__with_std"]
    assert result.best_estimator_["cluster"].kernel_params == result.best_params_["cluster__kernel_params"]
    np.testing.assert_array_equal(result.labels_, result.best_estimator_["cluster"].labels_)
    np.testing.assert_array_equal(result.predict(X), result.labels_)
    assert result.best_score_ == pytest.approx(silhouette_score(X, result.labels_))
    with pytest.raises(ParameterError, match="'scale__width', which Pipeline does not have"):
        search(pipe, {"scale__width": [1, 2]}).fit(X)
    chosen = choose_n_clusters(pipe, X, range(2, 6))
    assert chosen.n_clusters == 3
    assert chosen.best_estimator["cluster"].n_clusters == 3


def test_balanced_fits_judge_the_end_of_a_pipeline():
    pipe = Pipeline([("scale", StandardScaler()), ("cluster", KernelSpectralClustering(3))])
    result = search(pipe, {"cluster__kernel_params": SPACE["kernel_params"]}, criterion="baf", n_iter=5).fit(X)
    best = result.best_estimator_["cluster"]
    assert result.best_score_ == pytest.approx(balanced_angular_fit(best.scores_, best.labels_, eta=0.75))


# --- the search itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_iter", [1, 2, 3, 10, 31])
def test_as_many_points_are_tried_as_asked_for(n_iter):
    result = search(n_iter=n_iter).fit(X)
    assert len(result.trace_["score"]) == n_iter
    two = search(space=SPACE | {"memory_limit": SIGMA}, n_iter=n_iter).fit(X)
    assert len(two.trace_["score"]) <= n_iter  # a point met again is not fitted again
    assert len({repr(params) for params in two.trace_["params"]}) == len(two.trace_["score"])


def test_the_trace_tells_every_point():
    result = search(n_iter=12).fit(X)
    trace = result.trace_
    assert list(trace) == ["params", "score", "failure", "seconds"]
    assert len(trace["params"]) == len(trace["score"]) == len(trace["failure"]) == len(trace["seconds"]) == 12
    assert (trace["seconds"] >= 0).all()
    assert trace["failure"] == [""] * 12
    for params, score in zip(trace["params"], trace["score"], strict=True):
        model = KernelSpectralClustering(3, **params).fit(X)
        assert score == pytest.approx(silhouette_score(X, model.labels_))


def test_the_best_is_the_first_of_the_largest_scores():
    result = search(n_iter=25).fit(X)
    place = int(np.nanargmax(result.trace_["score"]))
    assert result.best_score_ == result.trace_["score"][place] == np.nanmax(result.trace_["score"])
    assert result.best_params_ == result.trace_["params"][place]
    assert {name: result.best_estimator_.get_params()[name] for name in SPACE} == result.best_params_
    np.testing.assert_array_equal(result.labels_, result.best_estimator_.labels_)
    level = search(n_iter=6, criterion=constant).fit(X)
    assert level.best_params_ == level.trace_["params"][0]


def test_the_same_seed_gives_the_same_trace():
    one, two, other = (search(n_iter=15, random_state=seed).fit(X) for seed in (3, 3, 4))
    assert one.trace_["params"] == two.trace_["params"]
    np.testing.assert_array_equal(one.trace_["score"], two.trace_["score"])
    assert one.trace_["params"][0] == other.trace_["params"][0]
    assert one.trace_["params"][1:] != other.trace_["params"][1:]


def test_a_seed_may_be_a_generator_of_numpy():
    one, two = (search(n_iter=5, random_state=np.random.RandomState(3)).fit(X) for _ in range(2))
    assert one.trace_["params"] == two.trace_["params"]


def test_points_that_are_refused_are_kept_and_never_the_best():
    space = {"gamma": loguniform(0.01, 1e6)}
    result = search(mvksc(3), space, n_iter=30).fit(VIEWS)
    failed = np.isnan(result.trace_["score"])
    assert failed.any()
    assert not failed.all()
    assert [bool(text) for text in result.trace_["failure"]] == failed.tolist()
    assert all("is at or above its limit" in text for text in result.trace_["failure"] if text)
    assert result.best_score_ == np.nanmax(result.trace_["score"])
    limit = result.best_estimator_.gamma_limits_.min()
    assert (np.array([params["gamma"] for params in result.trace_["params"]]) >= limit).tolist() == failed.tolist()


def test_a_criterion_that_fails_counts_as_worst_too():
    def criterion(model, data):
        return float("nan") if model.n_clusters == 3 else -float(model.n_clusters)

    result = search(space={"n_clusters": [3, 4, 2]}, n_iter=40, criterion=criterion).fit(X)
    assert result.best_params_ == {"n_clusters": 2}
    texts = dict(
        zip((params["n_clusters"] for params in result.trace_["params"]), result.trace_["failure"], strict=True)
    )
    assert texts == {2: "", 3: "criterion returned nan; it must return a finite number.", 4: ""}


def test_where_all_points_are_refused_the_first_error_is_raised():
    with pytest.raises(ParameterError, match=r"n_samples=36 should be >= n_clusters=50"):
        search(space={"n_clusters": randint(50, 51)}).fit(X)
    with pytest.raises(ParameterError, match="is at or above its limit") as caught:
        search(mvksc(3), {"gamma": loguniform(1e5, 1e9)}, n_iter=4).fit(VIEWS)
    assert f"gamma={loguniform(1e5, 1e9).median():g} " in str(caught.value)  # of the first point


def test_errors_that_are_no_refusal_end_the_search():
    def criterion(model, data):
        raise RuntimeError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        search(criterion=criterion).fit(X)


def test_warnings_of_single_fits_are_not_shown():
    model, data = KernelKMeans(4, init="random_partition", n_init=1, max_iter=1, random_state=0), torn()["two"]
    with pytest.warns(ConvergenceWarning):
        clone(model).fit(data)
    result = search(model, {"n_clusters": [4, 5]}).fit(data)  # warnings are errors here
    assert result.trace_["failure"] == ["", ""]
    assert not result.best_estimator_.converged_


def test_estimator_and_arguments_are_left_as_they_were():
    model = KernelSpectralClustering(3, kernel_params={"sigma": 1.0})
    space = {"kernel_params": {"sigma": SIGMA, "gamma": None}, "n_clusters": [2, 3]}
    data = X.copy()
    data.setflags(write=False)
    result = search(model, space, n_iter=5)
    assert result.fit(data) is result
    assert result.estimator is model
    assert result.param_distributions is space
    assert space == {"kernel_params": {"sigma": SIGMA, "gamma": None}, "n_clusters": [2, 3]}
    assert same(model.get_params(), KernelSpectralClustering(3, kernel_params={"sigma": 1.0}).get_params())
    assert not hasattr(model, "labels_")
    assert result.best_estimator_ is not model


def test_what_an_estimator_does_to_its_parameters_is_not_seen_in_the_trace():
    class Careless(KernelSpectralClustering):
        def fit(self, X, y=None):
            super().fit(X)
            self.kernel_params["sigma"] = -1.0
            return self

    result = search(Careless(3), n_iter=4).fit(X)
    assert all(params["kernel_params"]["sigma"] > 0 for params in result.trace_["params"])


def test_a_search_is_an_estimator_that_can_be_copied():
    result = search(n_iter=4).fit(X)
    twin = clone(result)
    assert not hasattr(twin, "best_estimator_")
    assert twin.n_iter == 4
    assert twin.fit(X).trace_["params"] == result.trace_["params"]
    params = result.get_params()
    assert params["estimator__n_clusters"] == 3
    assert params["criterion"] == "silhouette"
    twin.set_params(estimator__n_clusters=2, n_iter=2).fit(X)
    assert len(np.unique(twin.labels_)) == 2
    assert len(twin.trace_["score"]) == 2
    assert "AnnealingSearch(" in repr(result)


def test_the_search_predicts_with_the_best_estimator():
    result = search(n_iter=6).fit(X)
    new = blobs(5, seed=1)[0]
    np.testing.assert_array_equal(result.predict(new), result.best_estimator_.predict(new))
    np.testing.assert_array_equal(result.transform(new), result.best_estimator_.transform(new))
    np.testing.assert_array_equal(result.predict(X), result.labels_)
    np.testing.assert_array_equal(search(n_iter=6).fit_predict(X), result.labels_)
    assert result.n_features_in_ == 4


def test_the_search_has_the_methods_of_its_estimator():
    plain = search(AgglomerativeClustering(2), {"n_clusters": [2, 3]}, n_iter=4)
    assert not hasattr(plain, "predict")
    assert not hasattr(plain.fit(X), "transform")
    assert hasattr(search(), "transform")
    with pytest.raises(NotFittedError):
        search().predict(X)
    with pytest.raises(NotFittedError):
        search().transform(X)
    assert not hasattr(search(), "n_features_in_")


def test_the_search_says_what_its_estimator_takes():
    assert search(GraphCut(2)).__sklearn_tags__().input_tags.pairwise
    assert not search().__sklearn_tags__().input_tags.pairwise
    assert search().__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame, lambda A: A.tolist()])
def test_samples_may_come_in_any_form(form):
    result = search(n_iter=3).fit(form(X))
    np.testing.assert_allclose(result.trace_["score"], search(n_iter=3).fit(X).trace_["score"], atol=1e-9)


@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_goes_to_the_error_stream_alone(verbose, capsys):
    result = search(n_iter=5, verbose=verbose).fit(X)
    written = capsys.readouterr()
    assert written.out == ""
    assert bool(written.err) == bool(verbose)
    if verbose:
        assert "5/5" in written.err
        assert f"{result.best_score_:.4g}" in written.err
    choose_n_clusters(ksc(), X, [2, 3], verbose=verbose)
    written = capsys.readouterr()
    assert written.out == ""
    assert ("2/2" in written.err) == bool(verbose)


# --- best estimators -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_width_that_parts_two_rings_is_found(seed):
    data, y = make_two_rings(200, random_state=seed)
    space = {"kernel_params": {"sigma": loguniform(0.05, 5.0)}}
    result = search(KernelSpectralClustering(2), space, criterion="blf", eta=0.95, n_iter=25, random_state=seed)
    result.fit(data)
    assert normalized_mutual_info(y, result.labels_) == pytest.approx(1.0)
    # The middle of the range, where the search begins, does not separate them.
    assert normalized_mutual_info(y, ksc(2, sigma=1.5).fit(data).labels_) < 0.9
    assert result.best_params_["kernel_params"]["sigma"] < 1.0


@pytest.mark.parametrize("estimator", [KernelSpectralClustering(2), KernelKMeans(2, random_state=0)], ids=str)
def test_the_number_of_blobs_is_found(estimator):
    result = search(estimator, {"n_clusters": randint(2, 7)}, n_iter=30).fit(X)
    assert result.best_params_ == {"n_clusters": 3}
    assert adjusted_rand_score(TRUTH, result.labels_) == 1.0
    chosen = choose_n_clusters(estimator, X, range(2, 7))
    assert chosen.n_clusters == 3
    assert chosen.scores[1] == pytest.approx(result.best_score_)


def test_weights_and_widths_of_several_views_are_searched_together():
    data = make_mvksc_synth2(120, random_state=0)
    space = {
        "gamma": [loguniform(0.01, 10.0)] * 3,
        "kernel_params": {name: {"sigma": loguniform(0.3, 10.0)} for name in data.views},
    }
    result = search(MultiViewKernelSpectralClustering(2), space, criterion="baf", eta=0.9, n_iter=20).fit(data.views)
    assert result.best_score_ == np.nanmax(result.trace_["score"]) >= result.trace_["score"][0]
    assert len(result.best_params_["gamma"]) == 3
    assert list(result.best_params_["kernel_params"]) == list(data.views)
    assert normalized_mutual_info(data.target, result.labels_) > 0.5


# --- errors of a search ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "entropy"}, r"criterion='entropy' is not known: use 'silhouette', 'blf', 'baf' or a function"),
        ({"criterion": 3}, "criterion=3 is not known"),
        ({"criterion": None}, "criterion=None is not known"),
        ({"criterion": "blf", "eta": 1.5}, "eta=1.5 must be a number from 0 to 1"),
        ({"criterion": "baf", "eta": -0.1}, "eta=-0.1 must be a number from 0 to 1"),
        ({"criterion": "baf", "eta": float("nan")}, "eta=nan must be"),
        ({"criterion": "baf", "eta": "high"}, "eta='high' must be"),
        ({"criterion": "baf", "eta": True}, "eta=True must be"),
        ({"metric": "mile"}, "metric='mile' cannot be used"),
        ({"sample_size": 1}, "sample_size=1 must be an integer of at least 2, or None"),
        ({"sample_size": 10.0}, r"sample_size=10\.0 must be an integer"),
        ({"sample_size": "all"}, "sample_size='all' must be"),
        ({"sample_size": True}, "sample_size=True must be"),
    ],
    ids=str,
)
def test_a_criterion_that_cannot_be_used_is_named(options, message):
    with pytest.raises(ParameterError, match=message):
        search(**options).fit(X)
    with pytest.raises(ParameterError, match=message):
        score_clustering(ksc().fit(X), X, **options)
    with pytest.raises(ParameterError, match=message):
        choose_n_clusters(ksc(), X, [2, 3], **options)


@pytest.mark.parametrize("score", [None, float("inf"), [1.0, 2.0], np.ones(2)], ids=str)
def test_a_criterion_must_return_a_finite_number(score):
    with pytest.raises(ParameterError, match=r"criterion returned .*; it must return a finite number"):
        score_clustering(ksc().fit(X), X, criterion=lambda model, data: score)


@pytest.mark.parametrize("n_iter", [0, -1, 2.0, "10", None, True])
def test_the_number_of_points_is_an_integer(n_iter):
    with pytest.raises(ParameterError, match=rf"n_iter={n_iter!r} must be an integer of at least 1"):
        search(n_iter=n_iter).fit(X)


@pytest.mark.parametrize("space", [{}, None, ["n_clusters"], "n_clusters"], ids=str)
def test_there_must_be_something_to_draw_from(space):
    with pytest.raises(ParameterError, match="must be a dict of parameter names and what to draw from"):
        AnnealingSearch(ksc(), space).fit(X)


@pytest.mark.parametrize(
    "spec", [3, "rbf", None, [], (), {}, {"sigma": 1.0}, {"sigma": [1.0, 2.0]}, np.array([])], ids=str
)
def test_a_parameter_that_leaves_nothing_to_choose_is_named(spec):
    with pytest.raises(ParameterError, match=r"param_distributions\['kernel_params'\]=.* leaves no choice"):
        search(space={"n_clusters": [2, 3], "kernel_params": spec}).fit(X)


def test_unknown_parameters_are_named_with_those_there_are():
    with pytest.raises(ParameterError, match=r"names 'width', which KernelSpectralClustering does not have; it has \["):
        search(space={"width": SIGMA, "n_clusters": [2, 3]}).fit(X)


@pytest.mark.parametrize("estimator", [3, "KernelKMeans", object()], ids=["number", "text", "object"])
def test_what_is_no_estimator_is_named(estimator):
    with pytest.raises(ParameterError, match=r"estimator=.* is not an estimator: pass one, such as KernelKMeans\(3\)"):
        search(estimator).fit(X)


def test_samples_that_can_be_read_only_once_are_refused():
    with pytest.raises(ParameterError, match="X is an iterator, which can be read only once"):
        search().fit(iter([X]))


def test_views_that_disagree_are_refused():
    views = {"front": X[:, :2], "back": X[:5, 2:]}
    for call in (lambda: search(mvksc()).fit(views), lambda: choose_n_clusters(mvksc(), views, [2, 3])):
        with pytest.raises(ViewError, match="Views disagree on the number of samples"):
            call()


def test_a_clustering_must_be_fitted_before_it_is_judged():
    with pytest.raises(NotFittedError):
        score_clustering(ksc(), X)
    with pytest.raises(NotFittedError):
        score_clustering(Pipeline([("cluster", ksc())]), X)


# --- a number of clusters --------------------------------------------------------------------------------------------


def test_the_chosen_number_comes_with_all_scores():
    data = torn()["one"]
    chosen = choose_n_clusters(ksc(sigma=1.5), data, [5, 2, 3, 3, 4])
    np.testing.assert_array_equal(chosen.candidates, [2, 3, 4, 5])
    expected = [silhouette_score(data, ksc(k, sigma=1.5).fit(data).labels_) for k in range(2, 6)]
    np.testing.assert_allclose(chosen.scores, expected)
    assert chosen.n_clusters == 2 + int(np.argmax(expected))
    assert type(chosen.n_clusters) is int
    assert chosen.criterion == "silhouette"
    assert chosen.best_estimator.n_clusters == chosen.n_clusters
    np.testing.assert_array_equal(chosen.best_estimator.labels_, ksc(chosen.n_clusters, sigma=1.5).fit(data).labels_)


def test_the_numbers_tried_are_two_to_ten_unless_given():
    chosen = choose_n_clusters(KernelKMeans(random_state=0), X)
    np.testing.assert_array_equal(chosen.candidates, np.arange(2, 11))
    assert chosen.n_clusters == 3


def test_the_smallest_of_equally_good_numbers_is_chosen():
    chosen = choose_n_clusters(ksc(), X, [4, 3, 2], criterion=constant)
    assert chosen.n_clusters == chosen.best_estimator.n_clusters == 2
    assert chosen.criterion == "constant"
    later = choose_n_clusters(ksc(), X, range(2, 7), criterion=lambda model, data: min(model.n_clusters, 4))
    assert later.n_clusters == later.best_estimator.n_clusters == 4


@criteria
def test_balanced_fits_choose_a_number_too(criterion):
    chosen = choose_n_clusters(ksc(), X, range(2, 6), criterion=criterion, eta=0.5)
    assert chosen.n_clusters == 3
    model = ksc(3).fit(X)
    assert chosen.scores[1] == pytest.approx(MEASURES[criterion](model.scores_, model.labels_, eta=0.5))
    assert chosen.criterion == criterion


def test_numbers_the_estimator_refuses_have_no_score():
    data = np.repeat([[0.0], [4.0], [9.0]], 5, axis=0)
    chosen = choose_n_clusters(ksc(sigma=1.0), data, [6, 2, 3])
    np.testing.assert_array_equal(np.isnan(chosen.scores), [False, False, True])
    assert chosen.n_clusters == 3
    assert chosen.scores[1] == pytest.approx(1.0)


def test_where_every_number_is_refused_the_first_error_is_raised():
    with pytest.raises(ParameterError, match="n_clusters=37"):
        choose_n_clusters(ksc(), X, [40, 37])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([], "n_clusters is empty"),
        (range(0), "n_clusters is empty"),
        ([1, 2], "n_clusters holds 1; give integers of at least 2"),
        ([3, -2], "n_clusters holds -2"),
        ([2.0, 3.0], r"n_clusters holds 2\.0"),
        ([2, "3"], "n_clusters holds '3'"),
        ([True, 2], "n_clusters holds True"),
        ([None], "n_clusters holds None"),
    ],
    ids=str,
)
def test_numbers_of_clusters_that_cannot_be_tried_are_named(numbers, message):
    with pytest.raises(ParameterError, match=message):
        choose_n_clusters(ksc(), X, numbers)


def test_numbers_of_clusters_may_be_integers_of_numpy_and_come_from_a_generator():
    chosen = choose_n_clusters(ksc(), X, (k for k in np.array([2, 3])))
    assert chosen.n_clusters == 3
    assert type(chosen.best_estimator.n_clusters) is int


def test_an_estimator_without_a_number_of_clusters_is_refused():
    with pytest.raises(ValueError, match="n_clusters"):
        choose_n_clusters(StandardScaler(), X, [2, 3])


def test_choosing_leaves_the_estimator_as_it_was():
    model = ksc(7)
    choose_n_clusters(model, X, [2, 3])
    assert model.n_clusters == 7
    assert not hasattr(model, "labels_")


# --- faults that are known -------------------------------------------------------------------------------------------
# The tests below fail now; each says what is expected.


def test_long_choices_that_differ_in_the_middle_are_two_points():
    data = np.random.default_rng(0).standard_normal((1100, 2))
    one = np.arange(1100) % 2
    two = np.where((np.arange(1100) > 100) & (np.arange(1100) < 1000), 1 - one, one)
    result = search(KernelKMeans(2, kernel="linear"), {"init": [one, two]}, criterion=constant, n_iter=20).fit(data)
    assert len(result.trace_["params"]) == 2


# objective; the search then walks towards the points that cannot be fitted.
def test_refused_points_are_worse_than_any_score():
    trials = annealing._Trials(ksc(2), {"n_clusters": [2, N + 1]}, X, lambda model: -1e9, 2, False)
    fitted, refused = trials(np.array([0.1])), trials(np.array([0.9]))
    assert trials.failures[0] == ""
    assert "n_clusters=37" in trials.failures[1]
    assert refused > fitted


@pytest.mark.parametrize("n", [20, N + 4])
def test_samples_that_are_not_those_of_the_fit_are_refused(n):
    model = ksc().fit(X)
    with pytest.raises(ValueError, match=rf"{n} samples"):
        score_clustering(model, np.vstack([X, X])[:n])


def test_a_class_is_no_estimator():
    with pytest.raises(ParameterError, match="is not an estimator"):
        search(KernelSpectralClustering).fit(X)


@pytest.mark.parametrize("estimator", [3, KernelSpectralClustering], ids=["number", "class"])
def test_choosing_needs_an_estimator(estimator):
    with pytest.raises(ParameterError, match="is not an estimator"):
        choose_n_clusters(estimator, X, [2, 3])


def test_choosing_and_judging_refuse_samples_that_can_be_read_only_once():
    with pytest.raises(ParameterError, match="X is an iterator"):
        choose_n_clusters(ksc(), iter([X]), [2, 3])
    with pytest.raises(ParameterError, match="X is an iterator"):
        score_clustering(ksc().fit(X), iter([X]))


def test_a_single_number_of_clusters_is_refused_with_a_sentence():
    with pytest.raises(ParameterError, match="n_clusters=3"):
        choose_n_clusters(ksc(), X, 3)


def test_an_estimator_that_does_not_cluster_is_refused_with_a_sentence():
    with pytest.raises(ParameterError, match="StandardScaler"):
        score_clustering(StandardScaler().fit(X), X)
    with pytest.raises(ParameterError, match="StandardScaler"):
        search(StandardScaler(), {"with_mean": [True, False]}).fit(X)


def test_a_criterion_that_returns_text_is_named():
    with pytest.raises(ParameterError, match=r"criterion returned 'good'; it must return a finite number"):
        score_clustering(ksc().fit(X), X, criterion=lambda model, data: "good")
