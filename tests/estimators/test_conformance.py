"""What every estimator promises, checked on each one that discovery finds: scikit-learn's checks, then ours."""

import copy
import inspect
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from kernelweave import KernelKMeans, KMedoids
from kernelweave.foundation import threads
from tests.estimators.discovery import all_estimators, blobs, for_estimators, same
from tests.estimators.scikit_checks import faults, in_one_line

# MinMax k-means falls back on k-means where a cluster has no variance, and says so; the tables here are small.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Every start left a cluster without variance"),
    pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero"),
    pytest.mark.filterwarnings("ignore:View .* has no scatter left"),
    pytest.mark.filterwarnings("ignore:The clusters have no variance left"),
]

X, Y = blobs()
NEW = blobs(5, seed=1)[0]
NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(X, columns=NAMES)
HALVES = [slice(0, 2), slice(2, 4)]

#: A kernel and the function of scikit-learn that fills its matrix.
TWINS = {
    "linear": ("linear", linear_kernel),
    "rbf": (RBF(length_scale=4.0), lambda A, B: rbf_kernel(A, B, gamma=1 / (2 * 4.0**2))),
}
#: Choices that lead to other code; each is tried on the estimators that have the parameter.
SWITCHES = [{"kernel": "linear"}, {"storage": "blockwise"}, {"approximation": "nystroem", "n_components": 20}]


multi_view = for_estimators(lambda case: case.multi_view)
single_kernel = for_estimators(lambda case: case.takes_kernel and not case.pairwise)


@cache
def fitted(case):
    """Return the default instance, fitted once; for tests that only read it."""
    return case.make().fit(case.form(X))


def quick(case):
    """Return what leaves views unjudged after a fit, which takes longer than the fit; other tests are about that."""
    return {"check_views": False} if case.has("check_views") else {}


# scikit-learn's checks


def subjects():
    """Return the instances that go through scikit-learn's checks; two starts and few steps go the way of many."""
    for case in all_estimators():
        few = quick(case) | {name: value for name, value in {"n_init": 2, "max_iter": 3}.items() if case.has(name)}
        yield case.make(**few)
        switches = SWITCHES[1:] if case.needs_affinities else SWITCHES
        yield from (case.make(**few, **switch) for switch in switches if case.changes(switch))
        if case.multi_view:
            yield case.make(**few, views={"first": slice(0, 1), "all": slice(None)})


def expected_failures(estimator):
    """Return the checks an estimator does not pass, each with the reason."""
    exempt = {}
    tags = get_tags(estimator).input_tags
    clustering = ("check_clustering", "check_clustering(readonly_memmap=True)")
    if tags.pairwise:
        exempt |= dict.fromkeys(clustering, NOT_SQUARE)
    elif tags.positive_only:
        exempt |= dict.fromkeys(clustering, NEGATIVE)
    if hasattr(estimator, "predict_proba"):
        exempt |= {f"check_estimator_sparse_{form}": NO_CLASSIFIER for form in ("array", "matrix")}
    reason = why_a_weight_is_no_repetition(estimator)
    if reason:
        exempt |= {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    return exempt


def why_a_weight_is_no_repetition(estimator):
    """Return why repeated rows and weights lead to other results in scikit-learn's check; None where they do not."""
    if "sample_weight" not in inspect.signature(estimator.fit).parameters:
        return None
    if getattr(estimator, "beta", None) == "auto":
        return SHARPENED
    if "weight 2 is not quite two samples" in inspect.getdoc(type(estimator)):
        return ONE_BY_ONE
    if "nothing here is random" in inspect.getdoc(type(estimator)):
        return None
    return None if isinstance(estimator, KMedoids) else DRAWN  # k-medoids ends the same from both draws


NOT_SQUARE = "The check passes features, not the square matrix that a pairwise estimator takes."
NEGATIVE = "The check passes negative values, which the tag rules out."
NO_CLASSIFIER = (
    "The check reads the classifier tags of whatever has predict_proba, and a clusterer has none. "
    "test_sparse_input_gives_the_labels_of_dense_input_or_a_clear_error makes the claim."
)
DRAWN = (
    "Other samples are drawn as starts when rows are repeated and shuffled, so that runs end elsewhere or number the "
    "same clusters otherwise; scikit-learn exempts KMeans for the same reason. Tests from given starts make the claim."
)
ONE_BY_ONE = (
    "Sizes of clusters follow every sample, so the order of the samples matters, and copies of a sample move one after "
    "another where a sample of weight 2 moves at once: they differ from given starts, too."
)
SHARPENED = (
    "The reference value of beta (MSc thesis, 4.11) counts rows and takes the entropy of their weights, so a repeated "
    "row makes the kernel sharper than a row of weight 2. Tests with a number for beta make the claim."
)


@pytest.mark.filterwarnings("ignore::kernelweave.ViewWarning")  # some checks have a view of noise
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", list(subjects()), ids=in_one_line)
def test_scikit_learn_finds_no_fault(estimator):
    assert faults(estimator, expected_failures(estimator)) == {}


# Conventions


def test_discovery_finds_the_public_estimators_and_a_multi_view_one():
    cases = all_estimators()
    assert KernelKMeans in {case.cls for case in cases}
    assert any(case.multi_view for case in cases)
    kernel_kmeans = next(case for case in cases if case.cls is KernelKMeans)
    assert kernel_kmeans.takes_kernel
    assert kernel_kmeans.takes_weights
    assert kernel_kmeans.takes_start_labels
    assert kernel_kmeans.has_predict
    assert kernel_kmeans.has_transform


@for_estimators()
def test_n_clusters_comes_first_and_every_other_parameter_by_keyword_alone(case):
    first, *others = inspect.signature(case.cls).parameters.values()
    assert first.name == "n_clusters"
    assert {other.kind for other in others} <= {inspect.Parameter.KEYWORD_ONLY}


@for_estimators()
def test_every_parameter_has_a_declared_rule(case):
    assert set(case.cls._parameter_constraints) == set(case.parameters)


@for_estimators()
def test_fitted_attributes_are_those_of_the_conventions(case):
    model = fitted(case)
    assert model.labels_.shape == (len(X),)
    assert np.issubdtype(model.labels_.dtype, np.integer)
    assert set(model.labels_) == {0, 1, 2}
    assert model.n_iter_ >= 0
    assert isinstance(model.converged_, bool | np.bool_)
    assert np.isfinite(model.objective_path_).all()
    assert model.objective_ == pytest.approx(model.objective_path_[-1])
    assert model.n_features_in_ == case.form(X).shape[1]


@multi_view
def test_multi_view_estimators_tell_names_and_weights_of_the_views(case):
    table = case.form(X)
    model = case.make().fit({"front": table[:, :2], "back": table[:, 2:]})
    assert list(model.view_names_) == ["front", "back"]
    assert model.view_weights_.shape == (2,)
    assert (model.view_weights_ >= 0).all()
    assert model.view_weights_.sum() == pytest.approx(1.0)


@for_estimators()
def test_parameters_are_stored_untouched_and_returned_by_get_params(case):
    model = case.make()
    before = model.get_params()
    model.fit(case.form(X))
    assert all(model.get_params()[name] is value for name, value in before.items())
    assert model.set_params(n_clusters=2) is model
    assert len(np.unique(model.fit(case.form(X)).labels_)) == 2


@for_estimators()
def test_a_clone_is_unfitted_and_fits_to_the_same_labels(case):
    model = fitted(case)
    twin = clone(model)
    assert not hasattr(twin, "labels_")
    assert twin.fit(case.form(X)).labels_.tolist() == model.labels_.tolist()


@for_estimators()
def test_a_pickled_model_predicts_the_same(case):
    model = fitted(case)
    again = pickle.loads(pickle.dumps(model))
    assert again.labels_.tolist() == model.labels_.tolist()
    for method in ("predict", "transform"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(again, method)(case.form(X)), getattr(model, method)(case.form(X)))


@for_estimators()
def test_fit_predict_gives_the_labels_of_fit(case):
    assert case.make().fit_predict(case.form(X)).tolist() == fitted(case).labels_.tolist()


# Repeatability


@for_estimators()
def test_fitting_twice_gives_the_same_model(case):
    overlapping = case.form(blobs(spread=5.0)[0])
    model = case.make().fit(overlapping)
    labels, objective = model.labels_.copy(), model.objective_
    model.fit(case.form(NEW)).fit(overlapping)
    assert model.labels_.tolist() == labels.tolist()
    assert model.objective_ == objective


@pytest.mark.parametrize("spread", [1.0, 6.0])
@pytest.mark.parametrize(
    ("case", "switch"),
    [
        (case, switch)
        for switch in ({}, {"kernel": RBF(length_scale=6.0)}, {"storage": "blockwise"})
        for case in all_estimators()
        if not switch or case.changes(switch)
    ],
    ids=repr,
)
def test_the_same_seed_gives_the_same_labels_with_one_thread_and_two(case, switch, spread, monkeypatch):
    # Loops are shared out from fewer kernel values on than usual: 210 samples have enough of them. Groups far apart
    # make many starts end in the same partition, so that rounding could decide between them; overlapping ones make the
    # runs long. Two starts are as many as it takes for that.
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 300)
    monkeypatch.setattr(threads, "MIN_WIDTH", 64)
    many = case.form(blobs(70, spread=spread)[0])
    model = case.make(**switch, **({"n_init": 2} if case.has("n_init") else {}))
    labels = []
    for number in (1, 2):
        with threadpool_limits(number):
            labels.append(clone(model).fit(many).labels_)
    np.testing.assert_array_equal(labels[0], labels[1])


@for_estimators()
def test_fit_leaves_the_global_random_state_alone(case):
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002 - the state that must not change
    for seed in (0, np.random.RandomState(0)):
        model = case.make(**({"random_state": seed} if case.has("random_state") else {})).fit(case.form(X))
        if case.has_predict:
            model.predict(case.form(X))
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


@for_estimators()
def test_arguments_are_left_untouched(case):
    parameters = {"kernel": "rbf", "kernel_params": {"gamma": 0.01}} if case.has("kernel", "kernel_params") else {}
    parameters |= case.refined
    if case.takes_start_labels:
        parameters["init"] = np.tile([0, 1, 2], len(X) // 3)
    if case.multi_view:
        parameters["views"] = {"front": [0, 1], "back": slice(2, 4)}
    weights = {"sample_weight": np.linspace(0.5, 2.0, len(X))} if case.takes_weights else {}
    tables = [case.form(X), np.asfortranarray(case.form(X)), pd.DataFrame(case.form(X)).add_prefix("x")]
    for samples in tables + ([sp.csc_array(case.form(X))] if case.sparse else []):
        before = copy.deepcopy((samples, parameters, weights))
        model = case.make(**parameters).fit(samples, **weights)
        if case.has_predict:
            model.predict(samples)
        assert same((samples, parameters, weights), before)


@multi_view
def test_separate_views_are_left_untouched(case):
    table, frame = case.form(X), case.form(FRAME)
    for views in ([table[:, :2], frame[["c", "d"]]], {"front": sp.csc_array(table[:, :2]), "back": table[:, 2:]}):
        before = copy.deepcopy(views)
        case.make().fit(views)
        assert same(views, before)


# Forms of one table


def stored_on_disk(path, array):
    """Return the array as a read-only memory map."""
    stored = np.memmap(path / array.dtype.name, mode="w+", dtype=array.dtype, shape=array.shape)
    stored[:] = array
    stored.flush()
    return np.memmap(path / array.dtype.name, mode="r", dtype=array.dtype, shape=array.shape)


@for_estimators()
def test_order_type_and_place_of_the_numbers_make_no_difference(case, tmp_path):
    table = case.form(X).astype(np.float32)
    labels = case.make().fit(table.astype(np.float64)).labels_.tolist()
    forms = {
        "float32": table,
        "column order": np.asfortranarray(table, dtype=np.float64),
        "strided": np.repeat(table.astype(np.float64), 2, axis=1)[:, ::2],
        "read-only memory map": stored_on_disk(tmp_path, table.astype(np.float64)),
        "data frame": pd.DataFrame(table.astype(np.float64)),
        "nested lists": table.astype(np.float64).tolist(),
    }
    assert {name: case.make().fit(form).labels_.tolist() == labels for name, form in forms.items()} == dict.fromkeys(
        forms, True
    )


WITH_ZEROS = np.where(np.abs(X) < 1.0, 0.0, X)


@cache
def fitted_with_zeros(case):
    """Return the default instance, fitted once to a dense table that has zeros."""
    return case.make().fit(case.form(WITH_ZEROS))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
@for_estimators()
def test_sparse_input_gives_the_labels_of_dense_input_or_a_clear_error(case, form):
    dense, sparse = case.form(WITH_ZEROS), form(case.form(WITH_ZEROS))
    if not case.sparse:
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            case.make().fit(sparse)
        return
    model = case.make().fit(sparse)
    assert model.labels_.tolist() == fitted_with_zeros(case).labels_.tolist()
    if case.has_predict:
        assert model.predict(sparse).tolist() == model.predict(dense).tolist()


@for_estimators(lambda case: not case.pairwise)
def test_column_names_are_remembered_and_compared(case):
    frame = case.form(FRAME)
    model = case.make().fit(frame)
    assert model.feature_names_in_.tolist() == NAMES
    if case.has_predict:
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"a": "z"}))


@for_estimators(lambda case: case.has_transform and not case.pairwise)
def test_transform_can_return_a_data_frame(case):
    model = case.make().set_output(transform="pandas").fit(FRAME)
    rows = FRAME.iloc[5:9]
    table = model.transform(rows)
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == model.get_feature_names_out().tolist()
    assert table.index.equals(rows.index)
    plain = case.make().fit(FRAME).transform(rows)
    np.testing.assert_array_equal(table.to_numpy(), plain)
    assert isinstance(case.make().set_output(transform="pandas").fit_transform(FRAME), pd.DataFrame)


# Inside scikit-learn's tools


def pipeline(case, **parameters):
    """Return the estimator behind a scaler where X holds features."""
    before = [] if case.pairwise else [("scale", case.scaler())]
    return Pipeline([*before, ("model", case.make(**parameters))])


@for_estimators()
def test_the_estimator_works_at_the_end_of_a_pipeline(case):
    scaled = X if case.pairwise else case.scaler().fit_transform(X)
    expected = case.make().fit(case.form(scaled)).labels_
    labels = pipeline(case).fit_predict(case.form(X))
    assert labels.tolist() == expected.tolist()


@for_estimators(lambda case: case.has_predict)
def test_a_grid_search_finds_the_number_of_clusters(case):
    search = GridSearchCV(
        pipeline(case), {"model__n_clusters": [2, 3, 5]}, cv=2, scoring="adjusted_rand_score", error_score="raise"
    )
    assert search.fit(case.form(X), Y).best_params_ == {"model__n_clusters": 3}
    assert search.predict(case.form(X)).shape == (len(X),)


@for_estimators(lambda case: case.has_predict)
def test_cross_validation_scores_samples_left_out(case):
    scores = cross_validate(case.make(), case.form(X), Y, cv=3, scoring="adjusted_rand_score", error_score="raise")
    assert scores["test_score"] == pytest.approx(1.0)


# Precomputed kernels


@pytest.mark.parametrize("name", TWINS)
@single_kernel
def test_a_precomputed_kernel_gives_the_labels_of_its_features(case, name):
    kernel, matrix = TWINS[name]
    overlapping, other = blobs(spread=3.0)[0], blobs(5, seed=1, spread=3.0)[0]
    if case.needs_affinities:
        overlapping, other = np.abs(overlapping), np.abs(other)
    features = case.make(kernel=kernel, **case.refined).fit(overlapping)
    precomputed = case.make(**case.precomputed).fit(matrix(overlapping, overlapping))
    assert precomputed.labels_.tolist() == features.labels_.tolist()
    assert precomputed.objective_ == pytest.approx(features.objective_)
    if case.has_predict:
        assert precomputed.predict(matrix(other, overlapping)).tolist() == features.predict(other).tolist()


@single_kernel
def test_order_type_and_place_of_a_precomputed_kernel_make_no_difference(case, tmp_path):
    K = rbf_kernel(X, gamma=0.01)
    labels = case.make(**case.precomputed).fit(K).labels_.tolist()
    forms = {
        "float32": K.astype(np.float32),
        "column order": np.asfortranarray(K),
        "read-only memory map": stored_on_disk(tmp_path, K),
        "read-only float32 memory map": stored_on_disk(tmp_path, K.astype(np.float32)),
        "data frame": pd.DataFrame(K),
    }
    forms |= {"sparse": sp.csr_array(K)} if case.sparse else {}
    equal = {name: case.make(**case.precomputed).fit(form).labels_.tolist() == labels for name, form in forms.items()}
    assert equal == dict.fromkeys(forms, True)


@for_estimators(lambda case: case.takes_kernel and case.has_predict and not case.pairwise)
def test_cross_validation_slices_rows_and_columns_of_a_precomputed_kernel(case):
    kernel, matrix = TWINS["rbf"]
    options = {"cv": 3, "scoring": "adjusted_rand_score", "error_score": "raise", "return_estimator": True}
    precomputed = cross_validate(case.make(**case.precomputed), matrix(X, X), Y, **options)
    features = cross_validate(case.make(kernel=kernel, **case.refined), X, Y, **options)
    assert precomputed["test_score"].tolist() == features["test_score"].tolist()
    assert [model.n_features_in_ for model in precomputed["estimator"]] == [40, 40, 40]


@for_estimators(lambda case: case.takes_kernel and case.has_predict and not case.pairwise)
def test_a_precomputed_kernel_works_in_pipelines_and_grid_searches(case):
    K = rbf_kernel(X, gamma=0.01)
    centre = [] if case.needs_affinities else [("centre", KernelCenterer())]
    model = Pipeline([*centre, ("model", case.make(**case.precomputed))])
    assert model.fit(K).predict(rbf_kernel(NEW, X, gamma=0.01)).shape == (len(NEW),)
    grid = {"model__n_clusters": [2, 3, 5]}
    search = GridSearchCV(model, grid, cv=2, scoring="adjusted_rand_score", error_score="raise")
    assert search.fit(K, Y).best_params_ == {"model__n_clusters": 3}


@for_estimators(lambda case: case.takes_kernel and case.multi_view)
def test_precomputed_kernels_of_several_views_give_the_labels_of_their_features(case):
    table = np.abs(blobs(spread=3.0)[0]) if case.needs_affinities else blobs(spread=3.0)[0]
    halves = [table[:, half] for half in HALVES]
    features = case.make(kernel="linear", **case.refined).fit(halves)
    precomputed = case.make(**case.precomputed).fit([linear_kernel(block) for block in halves])
    assert precomputed.labels_.tolist() == features.labels_.tolist()
    if case.has_predict:
        rows = [linear_kernel(block[:7], block) for block in halves]
        assert precomputed.predict(rows).tolist() == features.predict([block[:7] for block in halves]).tolist()


# Several views


@multi_view
def test_list_dict_table_and_frame_give_the_same_labels(case):
    overlapping, new = case.form(blobs(spread=3.0)[0]), case.form(blobs(5, seed=1, spread=3.0)[0])
    front, back = (overlapping[:, half] for half in HALVES)
    frame = pd.DataFrame(overlapping, columns=NAMES)
    forms = {
        "list": (None, [front, back], [new[:, :2], new[:, 2:]]),
        "tuple": (None, (front, back), (new[:, :2], new[:, 2:])),
        "dict": (None, {"p": front, "q": back}, {"q": new[:, 2:], "p": new[:, :2]}),
        "frames": (None, [frame[["a", "b"]], frame[["c", "d"]]], [new[:, :2], new[:, 2:]]),
        "sparse": (None, [sp.csr_array(front), back], [sp.csr_array(new[:, :2]), new[:, 2:]]),
        "slices": (HALVES, overlapping, new),
        "numbers": ([[0, 1], [2, 3]], overlapping, new),
        "masks": ([[True, True, False, False], [False, False, True, True]], overlapping, new),
        "names": ({"p": ["a", "b"], "q": ["c", "d"]}, frame, pd.DataFrame(new, columns=NAMES)),
        "sparse table": (HALVES, sp.csr_array(overlapping), sp.csr_array(new)),
    }
    if not case.sparse:
        forms = {name: form for name, form in forms.items() if "sparse" not in name}
    results = {}
    for name, (views, X_train, X_new) in forms.items():
        model = case.make(views=views, **quick(case)).fit(X_train)
        results[name] = (model.labels_.tolist(), model.predict(X_new).tolist() if case.has_predict else None)
    assert results == dict.fromkeys(forms, results["list"])


@multi_view
def test_one_table_without_views_equals_a_list_of_that_table(case):
    table = case.form(X)
    assert case.make().fit(table).labels_.tolist() == case.make().fit([table]).labels_.tolist()


@for_estimators(lambda case: case.takes_kernel and case.multi_view)
def test_one_kernel_for_all_views_equals_a_list_or_dict_of_it(case):
    named = {"front": X[:, :2], "back": X[:, 2:]}
    labels = case.make(kernel="rbf").fit(named).labels_.tolist()
    assert case.make(kernel=["rbf", "rbf"]).fit(named).labels_.tolist() == labels
    assert case.make(kernel={"back": "rbf", "front": "rbf"}).fit(named).labels_.tolist() == labels


@multi_view
def test_views_by_column_names_work_behind_a_scaler_that_returns_frames(case):
    views = {"front": ["a", "b"], "back": ["c", "d"]}
    model = Pipeline([("scale", case.scaler().set_output(transform="pandas")), ("model", case.make(views=views))])
    scaled = case.scaler().fit_transform(X)
    expected = case.make().fit([scaled[:, :2], scaled[:, 2:]]).labels_
    assert model.fit_predict(FRAME).tolist() == expected.tolist()


@for_estimators(lambda case: case.multi_view and case.has_predict)
def test_views_work_in_grid_searches_and_cross_validation(case):
    grid = {"model__n_clusters": [2, 3, 5], "model__views": [HALVES, None]}
    options = {"cv": 3, "scoring": "adjusted_rand_score", "error_score": "raise"}
    search = GridSearchCV(pipeline(case, views=HALVES, **quick(case)), grid, **options).fit(X, Y)
    assert search.best_params_["model__n_clusters"] == 3
    scores = cross_validate(case.make(views=HALVES, **quick(case)), X, Y, **options)
    assert scores["test_score"] == pytest.approx(1.0)


@multi_view
def test_a_model_with_views_can_be_cloned_and_pickled(case):
    table, new = case.form(X), case.form(NEW)
    model = case.make(views={"front": [0, 1], "back": slice(2, 4)}).fit(table)
    twin = clone(model)
    assert twin.get_params()["views"] == {"front": [0, 1], "back": slice(2, 4)}
    assert twin.fit(table).labels_.tolist() == model.labels_.tolist()
    again = pickle.loads(pickle.dumps(model))
    if case.has_predict:
        assert again.predict(new).tolist() == model.predict(new).tolist()


# Weights


@for_estimators(lambda case: case.takes_weights and case.takes_start_labels)
def test_a_weight_counts_as_repetition_from_a_given_start(case):
    rng = np.random.default_rng(3)
    overlapping = blobs(spread=5.0)[0]
    counts, start = rng.integers(0, 4, size=len(overlapping)), rng.integers(3, size=len(overlapping))
    kernel = {"kernel": RBF(length_scale=6.0)} if case.takes_kernel else {}
    weighted = case.make(init=start, **kernel).fit(overlapping, sample_weight=counts)
    order = rng.permutation(np.repeat(np.arange(len(overlapping)), counts))
    repeated = case.make(init=start[order], **kernel).fit(overlapping[order])
    assert weighted.labels_[order].tolist() == repeated.labels_.tolist()
    assert weighted.objective_ == pytest.approx(repeated.objective_)
    many = blobs(60, seed=4, spread=5.0)[0]
    if case.has_predict:
        assert weighted.predict(many).tolist() == repeated.predict(many).tolist()
    if case.has_transform:
        np.testing.assert_allclose(weighted.transform(many), repeated.transform(many), atol=1e-9)


# Progress


class Recorder:
    """A callback of scikit-learn that writes down what it is called with, and may ask to stop."""

    def __init__(self, stop_after=None):
        self.events, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))
        return self.stop_after is not None and self.events.count(("end", "starts")) >= self.stop_after


@for_estimators(lambda case: hasattr(case.cls, "set_callbacks"))
def test_callbacks_see_every_task_begin_and_end_once(case):
    recorder = Recorder()
    case.make().set_callbacks(recorder).fit(case.form(X))
    assert recorder.events[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.events[-2:] == [("end", "fit"), ("teardown", "fit")]
    begun = [task for event, task in recorder.events if event == "begin"]
    ended = [task for event, task in recorder.events if event == "end"]
    assert sorted(begun) == sorted(ended)
    assert begun.count("fit") == 1


def test_callbacks_are_called_once_per_start():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    recorder = Recorder()
    KernelKMeans(3, n_init=4, random_state=0).set_callbacks(recorder).fit(X)
    inner = [("begin", "starts"), ("end", "starts")] * 4
    assert recorder.events == [("setup", "fit"), ("begin", "fit"), *inner, ("end", "fit"), ("teardown", "fit")]


def test_a_callback_that_asks_to_stop_ends_the_starts():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    recorder = Recorder(stop_after=2)
    stopped = KernelKMeans(3, n_init=50, random_state=0).set_callbacks(recorder).fit(X)
    assert recorder.events.count(("begin", "starts")) == 2
    assert stopped.labels_.tolist() == KernelKMeans(3, n_init=2, random_state=0).fit(X).labels_.tolist()


def test_callbacks_are_torn_down_when_fit_fails():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("no more")

    recorder = Failing()
    with pytest.raises(RuntimeError, match="no more"):
        KernelKMeans(3, random_state=0).set_callbacks(recorder).fit(X)
    assert recorder.events[-1] == ("teardown", "fit")


@for_estimators(lambda case: case.has("verbose"))
def test_nothing_is_ever_written_to_standard_output(case, capsys):
    for verbose in (0, 1):
        case.make(verbose=verbose).fit(case.form(X))
        written = capsys.readouterr()
        assert written.out == ""
        assert verbose or written.err == ""


def test_verbose_shows_a_bar_over_the_starts_on_standard_error(capsys):
    KernelKMeans(3, n_init=4, random_state=0, verbose=1).fit(X)
    written = capsys.readouterr()
    assert "starts" in written.err
    assert "/4" in written.err
    assert written.out == ""
