"""What people who know scikit-learn expect: nested parameters, searches, clear errors, numbers that mean something."""

import re
import warnings
from inspect import cleandoc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.foundation.errors import ParameterError, ViewError
from kernelweave.inputs import as_table, as_views
from kernelweave.inputs.arrays.finiteness import LARGEST_VALUE
from kernelweave.model_selection import SilhouetteScorer, score_clustering
from tests.estimators.discovery import blobs, for_estimators


@for_estimators(lambda case: case.has("kernel_params"))
def test_one_parameter_of_the_kernel_is_set_by_a_nested_name(case):
    model = case.make(kernel_params={"gamma": 1.0})
    before = model.kernel_params
    model.set_params(kernel_params__gamma=2.0, kernel_params__words__sigma=3.0)
    assert model.kernel_params == {"gamma": 2.0, "words": {"sigma": 3.0}}
    assert before == {"gamma": 1.0}  # what was passed is left as it was
    assert model.get_params()["kernel_params__gamma"] == 2.0
    assert clone(model).kernel_params == model.kernel_params
    assert case.make().set_params(kernel_params__sigma=0.5).kernel_params == {"sigma": 0.5}


@for_estimators(lambda case: not case.has("kernel_params"))
def test_estimators_without_parameters_of_a_kernel_say_so(case):
    with pytest.raises(ValueError, match="kernel_params"):
        case.make().set_params(kernel_params__sigma=0.5)


def test_an_entry_cannot_be_set_where_there_is_no_dict():
    with pytest.raises(ParameterError, match=r"kernel_params__sigma sets an entry of a dict, but kernel_params=\["):
        kw.MultiViewKernelKMeans(2, kernel_params=[{}, {}]).set_params(kernel_params__sigma=0.5)


def test_unknown_parameters_are_still_refused():
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        kw.KernelKMeans(2).set_params(sigma=0.5)


def test_a_search_over_a_width_in_a_pipeline_is_scored_without_labels():
    X, y = blobs()
    pipe = make_pipeline(StandardScaler(), kw.KernelKMeans(random_state=0))
    grid = {"kernelkmeans__n_clusters": [2, 3], "kernelkmeans__kernel_params__sigma": [0.5, 1e3]}
    search = GridSearchCV(pipe, grid, scoring=SilhouetteScorer(), cv=3).fit(X)
    assert search.best_params_["kernelkmeans__n_clusters"] == len(np.unique(y))


def test_a_search_goes_over_views_side_by_side():
    X, y = blobs()
    table, columns = as_table({"first": X[:, :2], "second": sp.csr_array(X[:, 2:]).toarray()})
    model = kw.MultiViewKernelKMeans(views=columns, random_state=0)
    search = GridSearchCV(model, {"n_clusters": [2, 3, 5]}, scoring=SilhouetteScorer(), cv=3).fit(table)
    assert search.best_params_ == {"n_clusters": len(np.unique(y))}


def test_views_side_by_side_are_the_views():
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(5, 2)), "b": sp.csr_array(np.eye(5)), "c": rng.normal(size=(5, 1))}
    table, columns = as_table(views)
    back = as_views(table, columns)
    assert back.names == ("a", "b", "c")
    for name, view in views.items():
        np.testing.assert_array_equal(back[name].toarray(), view.toarray() if sp.issparse(view) else view)


def test_the_scorer_agrees_with_score_clustering_on_the_samples_of_the_fit():
    X, _ = blobs(spread=4.0)
    model = kw.KernelKMeans(3, random_state=0).fit(X)
    assert SilhouetteScorer()(model, X) == pytest.approx(score_clustering(model, X))
    assert SilhouetteScorer(metric="cosine")(model, X) == pytest.approx(score_clustering(model, X, metric="cosine"))
    assert SilhouetteScorer()(kw.KernelKMeans(1).fit(X), X) == -1.0


def test_the_scorer_refuses_what_has_no_distances_between_held_out_samples():
    X, _ = blobs()
    K = X @ X.T
    with pytest.raises(ParameterError, match="no features but a kernel here"):
        SilhouetteScorer()(kw.KernelKMeans(3, kernel="precomputed").fit(K), K)
    with pytest.raises(ParameterError, match="GraphCut has no predict"):
        SilhouetteScorer()(kw.GraphCut(3, random_state=0).fit(np.exp(-np.abs(K) / K.max())), K)


@for_estimators(lambda case: not case.pairwise)
def test_errors_about_nan_count_and_advise_in_words_of_ours(case):
    X = case.form(blobs()[0])
    X[3, 1] = np.nan
    X[7] = np.nan
    with pytest.raises(ValueError, match="contains NaN") as caught:
        case.make().fit(X)
    text = str(caught.value)
    assert re.search(r"in [\d,]+ cells? of [\d,]+ rows?", text), text
    assert "HistGradientBoosting" not in text
    assert "http" not in text


@for_estimators(lambda case: not case.pairwise)
def test_errors_about_infinity_say_where(case):
    X = case.form(blobs()[0])
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity in 1 cell of 1 row \(the first is row 3, column 1\)"):
        case.make().fit(X)


def test_places_of_nan_are_named_in_data_frames_and_sparse_matrices():
    import pandas as pd

    frame = pd.DataFrame(blobs()[0], columns=["age", "height", "iron", "zinc"])
    frame.loc[5, "iron"] = np.nan
    with pytest.raises(ParameterError, match=r"1 cell of 1 row .the first is row 5, column 'iron'"):
        kw.KernelKMeans(3).fit(frame)
    stored = sp.csr_array(frame.to_numpy())
    with pytest.raises(ParameterError, match=r"1 cell of 1 row .the first is row 5, column 2"):
        kw.KernelKMeans(3).fit(stored)
    with pytest.raises(ViewError, match="View 'Blood' contains infinity in 1 cell"):
        as_views({"Blood": np.array([[1.0, np.inf], [0.0, 1.0]])})
    graph = np.ones((4, 4))
    graph[0, 1] = np.nan
    with pytest.raises(ParameterError, match=r"1 cell of 1 row .* Remove edges"):
        kw.GraphCut(2).fit(graph)


@for_estimators(lambda case: not case.pairwise)
def test_values_whose_squares_overflow_are_refused_by_name(case):
    X = case.form(blobs()[0]) * 1e160
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"X holds values as large as .*e\+16\d, whose squares overflow"):
            case.make().fit(X)


def test_values_up_to_the_limit_are_clustered():
    X, _ = blobs()
    large = X / np.abs(X).max() * LARGEST_VALUE
    labels = kw.KernelKMeans(3, kernel="linear", random_state=0).fit(large).labels_
    np.testing.assert_array_equal(labels, kw.KernelKMeans(3, kernel="linear", random_state=0).fit(X).labels_)
    negative = -large * 1.001
    with pytest.raises(ParameterError, match="squares overflow"):
        kw.MinMaxKMeans(3).fit(negative)
    with pytest.raises(ViewError, match="View 'Blood' holds values"):
        kw.MultiViewKernelKMeans(3).fit({"Blood": large * 10, "other": X})


def numbers_in(value):
    """Yield the arrays of numbers in a fitted attribute."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from numbers_in(item)
    elif sp.issparse(value):
        yield value.data
    elif isinstance(value, float | np.floating | np.ndarray) and np.asarray(value).dtype.kind == "f":
        yield np.asarray(value)


def explained(case, attribute):
    """Whether the entry of an attribute in the docstring says what NaN or infinity mean there."""
    text = cleandoc(case.cls.__doc__)
    entry = re.search(rf"^{attribute} :.*?(?=^\w+ :|\Z|^[A-Z])", text, re.DOTALL | re.MULTILINE)
    return entry is not None and re.search(r"\bNaN\b|\binf\b|infinit", entry.group(0)) is not None


def situations(case):
    """Yield inputs in which something may be undefined: plain, copies of few samples, a constant column."""
    X, _ = blobs(8)
    yield "plain", X
    yield "copies", np.repeat(X[:3], 4, axis=0)
    yield "constant", np.hstack([X, np.ones((len(X), 1))])


@for_estimators()
def test_no_fitted_attribute_is_infinite_or_nan_without_saying_what_that_means(case):
    seen = 0
    for name, X in situations(case):
        model = case.make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(case.form(X))
            except ValueError:
                continue  # refused with a message, which other tests look at
        for attribute, value in vars(model).items():
            if attribute.endswith("_") and not attribute.startswith("_"):
                bad = any(not np.isfinite(array).all() for array in numbers_in(value))
                assert not bad or explained(case, attribute), f"{attribute} after a fit on {name} samples: {value}"
                seen += 1
    assert seen
