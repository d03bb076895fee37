"""RatioMultipleKernelClustering and IterativeSVR: kernels, starts, predictions, errors."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from kernelweave import ConvergenceWarning, IterativeSVR, KernelError, ParameterError, RatioMultipleKernelClustering
from kernelweave.estimators.margin import iterative_svr, ratio_clustering
from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.spec.bandwidths import rbf_widths

X, Y = make_blobs(60, centers=[[0, 0], [5, 0]], cluster_std=1.0, random_state=0)
NOISE = np.random.default_rng(0).normal(size=(60, 4))
both = pytest.mark.parametrize("cls", [RatioMultipleKernelClustering, IterativeSVR])


def fit(**options):
    return RatioMultipleKernelClustering(**({"random_state": 0, "n_pairs": 10} | options)).fit(X)


def test_ten_widths_are_the_default_on_one_view():
    model = fit()
    assert len(model.kernel_weights_) == len(model.kernel_names_) == 10
    assert model.kernel_weights_.sum() == pytest.approx(1)
    assert model.view_weights_.tolist() == pytest.approx([1.0])
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    assert (np.diff(model.objective_path_) <= 0).all()
    assert 0 <= model.optimality_gap_ <= 1e-5 * model.objective_ * 1.01


def test_widths_are_shares_of_the_range_of_distances():
    squared = np.sqrt(np.square(X[:, None] - X[None]).sum(axis=2))[np.triu_indices(60, 1)]
    np.testing.assert_allclose(rbf_widths(X), np.arange(1, 11) / 10 * (squared.max() - squared.min()))


def test_a_noisy_view_gets_little_weight():
    model = RatioMultipleKernelClustering(random_state=0, C=0.1).fit({"good": X, "noise": NOISE})
    assert model.view_names_ == ["good", "noise"]
    assert model.view_weights_[0] > 0.8
    assert adjusted_rand_score(Y, model.labels_) > 0.9


def test_several_kernels_on_one_view_are_named_and_weighed():
    model = fit(kernel=["linear", "rbf"], kernel_params=[None, {"sigma": 2.0}])
    assert len(model.kernel_weights_) == 2
    assert all(name in text for name, text in zip(("linear", "rbf"), model.kernel_names_, strict=True))


@both
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_new_samples_go_where_training_samples_went(cls, n_clusters):
    data = make_blobs(60, centers=[[0, 0], [8, 0], [0, 8]], random_state=1)[0]
    model = cls(n_clusters, random_state=0).fit(data)
    np.testing.assert_array_equal(model.predict(data), model.labels_)
    assert model.decision_function(data).shape == ((60,) if n_clusters == 2 else (60, 2))
    assert len(np.unique(model.labels_)) == n_clusters


def test_decisions_are_those_of_the_support_vector_machine():
    model = fit(kernel="rbf", kernel_params={"sigma": 2.0}, normalize=False, regularization=0.0, C=1.0)
    K = rbf_kernel(X, gamma=0.125)
    y = np.where(model.labels_ == 1, 1.0, -1.0)
    decision = model.decision_function(X)
    margin = y * decision
    assert (np.sign(decision) == y).all()
    assert margin.min() > 0
    assert np.isclose(margin, 1.0, atol=0.05).sum() >= 2  # support vectors on the margin
    new = X[:5] + 0.1
    split = model._model.splits[0]
    np.testing.assert_allclose(
        model.decision_function(new), rbf_kernel(new, X, gamma=0.125) @ split.sources + split.bias, atol=1e-9
    )
    assert K.shape == (60, 60)


def test_scaling_a_view_changes_nothing():
    views = [X, NOISE]
    first = RatioMultipleKernelClustering(random_state=0).fit(views)
    other = RatioMultipleKernelClustering(random_state=0).fit([1e6 * X, NOISE])
    np.testing.assert_array_equal(first.labels_, other.labels_)
    np.testing.assert_allclose(first.kernel_weights_, other.kernel_weights_, atol=1e-3)


def test_hyperparameters_of_a_kernel_object_are_learned_only_when_asked_for():
    fixed = fit(kernel=RBF(0.3))
    assert not hasattr(fixed, "kernel_")
    learned = fit(kernel=RBF(0.3), learn="hyperparameters")
    assert learned.kernel_.length_scale > 0.35
    assert learned.objective_ < fixed.objective_
    np.testing.assert_array_equal(learned.predict(X), learned.labels_)


@pytest.mark.parametrize("kernel", ["rbf", ["linear", "rbf"]])
def test_learning_hyperparameters_takes_a_kernel_object(kernel):
    with pytest.raises(ParameterError, match=r"learn='hyperparameters' takes one view and a kernel object"):
        fit(kernel=kernel, learn="hyperparameters")


def test_given_labels_start_the_first_division():
    model = fit(init=Y, n_moves=1)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    with pytest.raises(ParameterError, match=r"clusters of \[59, 1\] samples, which balance=0\.5 does not allow"):
        fit(init=(np.arange(60) == 0).astype(int))


def test_more_runs_never_give_a_larger_objective():
    assert fit(n_init=4).objective_ <= fit(n_init=1).objective_


@both
def test_fewer_than_four_samples_are_refused(cls):
    with pytest.raises(ValueError, match="minimum of 4"):
        cls().fit(X[:3])


@both
def test_a_balance_that_cannot_be_met_is_refused(cls):
    with pytest.raises(
        ParameterError, match=r"balance=0\.01 allows the clusters of 59 samples.*Set balance to 0\.0169"
    ):
        cls(balance=0.01).fit(X[:59])


@both
@pytest.mark.parametrize("C", [0.0, -1.0])
def test_a_price_that_is_not_positive_is_refused(cls, C):
    with pytest.raises(ValueError, match="'C' parameter"):
        cls(C=C).fit(X)


def test_a_kernel_that_is_not_semidefinite_is_refused_by_name():
    K = X @ X.T
    with pytest.raises(KernelError, match=r"Kernel 'bad' is not positive semidefinite"):
        RatioMultipleKernelClustering(kernel="precomputed").fit({"good": K, "bad": K - 50 * np.eye(60)})


def test_a_kernel_that_sees_no_difference_is_refused_by_name():
    with pytest.raises(KernelError, match=r"All samples look the same to kernel 'flat'"):
        RatioMultipleKernelClustering().fit({"good": X, "flat": np.ones((60, 2))})


def test_kernels_beyond_the_memory_limit_are_refused_beforehand():
    with pytest.raises(
        ParameterError, match=r"10 kernels and their sums of 60 samples take .* more than memory_limit=0\.1"
    ):
        fit(memory_limit=0.1)


def test_a_run_that_was_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 before labels and weights settled"):
        fit(max_iter=1, tol=0.0)


@both
def test_a_fitted_model_survives_pickling(cls):
    model = cls(random_state=0).fit(X)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(X), model.labels_)
    assert not any(isinstance(value, np.ndarray) and value.shape == (60, 60) for value in vars(model).values())


@both
def test_the_number_of_threads_does_not_matter(cls):
    result = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            result.append(cls(random_state=0).fit(X))
    np.testing.assert_array_equal(result[0].labels_, result[1].labels_)
    assert result[0].objective_ == pytest.approx(result[1].objective_, rel=1e-9)


def test_a_view_of_two_values_takes_all_the_weight_and_a_warning_names_it():
    flag = np.random.default_rng(0).integers(2, size=(60, 1)).astype(float)
    with pytest.warns(ConvergenceWarning, match=r"no variance left .* few values in 'flag'"):
        model = RatioMultipleKernelClustering(random_state=0).fit({"good": X, "flag": flag})
    assert model.view_weights_[1] > 0.99


def test_the_balance_of_iterative_regression_holds():
    data = np.concatenate([X[Y == 0][:10], X[Y == 1]])
    model = IterativeSVR(balance=0.1, random_state=0).fit(data)
    assert abs(2 * int(model.labels_.sum()) - len(data)) <= 0.1 * len(data)


def test_regressions_that_are_not_solved_end_the_run_with_a_warning(monkeypatch):
    monkeypatch.setattr(iterative_svr, "STEPS_PER_SAMPLE", 1)
    with pytest.warns(ConvergenceWarning, match=r"not solved after 1 steps for every sample.*Scale the features"):
        model = IterativeSVR(n_init=2, random_state=0).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 1
    assert set(model.labels_) == {0, 1}
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_regressions_of_everyday_data_are_solved(recwarn):
    for C in (0.1, 1.0, 10.0):
        assert IterativeSVR(C=C, n_init=2, random_state=0).fit(X).converged_
    assert not recwarn.list


@pytest.mark.parametrize(("n_pairs", "expected"), [(None, 15), (7, 7)])
def test_the_start_is_sought_among_pairs(n_pairs, expected, monkeypatch):
    counts = []
    real = ratio_clustering.balanced_pairs

    def watched(K, rng, count, limit):
        counts.append(count)
        return real(K, rng, count, limit)

    monkeypatch.setattr(ratio_clustering, "balanced_pairs", watched)
    fit(n_pairs=n_pairs, n_init=2, kernel="rbf")
    assert counts == [expected] * 2


def test_labels_to_start_from_hold_for_the_first_division_alone(monkeypatch):
    starts = []
    real = ratio_clustering.ratio_clustering

    def watched(family, theta, start, **options):
        starts.append(start)
        return real(family, theta, start, **options)

    monkeypatch.setattr(ratio_clustering, "ratio_clustering", watched)
    fit(n_clusters=3, init=Y, kernel="rbf")
    np.testing.assert_array_equal(starts[0], np.where(Y == 1, 1.0, -1.0))
    assert len(starts) == 2
    assert len(starts[1]) < 60


def test_kernel_matrices_are_not_kept():
    for model in (fit(), IterativeSVR(random_state=0).fit(X)):
        assert len(pickle.dumps(model)) < 8 * 60 * 60


@both
def test_margins_have_no_score(cls):
    assert not hasattr(cls(), "score")
    assert "There is no ``score``" in cls.__doc__


def test_fitting_again_forgets_a_learned_kernel():
    model = fit(kernel=RBF(0.3), learn="hyperparameters")
    model.set_params(learn="weights").fit(X)
    assert not hasattr(model, "kernel_")


def test_equal_starts_are_run_once(monkeypatch):
    starts = []
    real = iterative_svr.iterative_svr

    def watched(K, labels, **options):
        starts.append(labels.tobytes())
        return real(K, labels, **options)

    monkeypatch.setattr(iterative_svr, "iterative_svr", watched)
    IterativeSVR(n_init=12, random_state=0).fit(X)
    assert 1 <= len(starts) == len(set(starts)) < 12


@both
def test_every_run_of_every_division_draws_from_a_stream_of_its_own(cls, monkeypatch):
    drawn = []
    module, name = (
        (ratio_clustering, "balanced_pairs")
        if cls is RatioMultipleKernelClustering
        else (iterative_svr, "start_labels")
    )
    real = getattr(module, name)

    def watched(*arguments):
        rng = next(each for each in arguments if isinstance(each, np.random.Generator))
        drawn.append(deepcopy(rng).integers(2**62))
        return real(*arguments)

    monkeypatch.setattr(module, name, watched)
    cls(3, n_init=2, kernel="rbf", random_state=5).fit(X)
    assert drawn == [rng.integers(2**62) for rng in streams(5, 4)]
