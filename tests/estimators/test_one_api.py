"""One API for all estimators: names, order and meaning of parameters, attributes and methods (decision 18)."""

import inspect
import re
from functools import cache
from inspect import cleandoc
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import get_tags

import kernelweave
from kernelweave import (
    KMedoids,
    MultiViewConvexMixture,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
    RatioMultipleKernelClustering,
)
from kernelweave.estimators.shared.clusterer import Clusterer
from tests.estimators.discovery import Case, all_estimators, blobs, for_estimators

DECISION = Path(__file__).parents[2] / "docs" / "decisions" / "0018-one-api.md"

#: Parameters that mean the same everywhere, in the order they come in; those of the method itself stand before them.
SHARED = (
    "view_weights",
    "init_view_weights",
    "views",
    "kernel",
    "kernel_params",
    "normalize",
    "init",
    "n_init",
    "init_size",
    "max_iter",
    "tol",
    "time_budget",
    "approximation",
    "n_components",
    "storage",
    "memory_limit",
    "checkpoint",
    "random_state",
    "verbose",
)
#: Names that gave way to others.
RETIRED = {"weights", "ridge", "n_starts", "reg", "seed", "max_steps"}
#: Classes between scikit-learn's and the public ones.
INTERMEDIATE = {
    "Clusterer",
    "CenterClusterer",
    "EmbeddingClusterer",
    "ScoreClusterer",
    "MixtureClusterer",
    "DividingClusterer",
}

# Other tests are about these warnings; here the tables are small.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Every start left a cluster without variance"),
    pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero"),
    pytest.mark.filterwarnings("ignore:View .* has no scatter left"),
    pytest.mark.filterwarnings("ignore:The clusters have no variance left"),
]

X, _ = blobs()
NEW, _ = blobs(5, seed=1)


def table_under(heading):
    """Return the rows of the first table after a heading of the decision, each a list of cells."""
    text = DECISION.read_text(encoding="utf-8").split(heading, 1)[1]
    lines = re.search(r"(?:^\|.*\n)+", text, flags=re.MULTILINE).group(0).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not set(line) <= set("|- ")]


@cache
def methods():
    """Return what the decision says of every estimator, by its name."""
    header, *rows = table_under("### Methods")
    names = [cell.strip("`") for cell in header[1:]]
    return {name: dict(zip(names, row[1:], strict=True)) for row in rows for name in re.findall(r"`(\w+)`", row[0])}


def described(cls, attribute):
    """Return the description of a fitted attribute in a class docstring."""
    text = cleandoc(cls.__doc__) + "\n"
    entry = re.search(rf"^(?:\w+, )*{attribute}(?:, \w+)* : .*\n((?:    .*\n)+)", text, flags=re.MULTILINE)
    return entry.group(1) if entry else None


def data(case):
    """Return samples in the form the default instance takes, as two views where it takes views."""
    table = case.form(X)
    return {"front": table[:, :2], "back": table[:, 2:]} if case.multi_view else table


# --- classes ---------------------------------------------------------------------------------------------------------


@for_estimators()
def test_every_estimator_is_a_clusterer_with_few_classes_in_between(case):
    ours = [cls.__name__ for cls in case.cls.__mro__[1:] if cls.__module__.startswith("kernelweave.estimators")]
    assert "Clusterer" in ours
    assert len(ours) <= 2
    assert set(ours) <= INTERMEDIATE
    assert case.cls.fit_predict is Clusterer.fit_predict


@for_estimators()
def test_the_decision_names_every_estimator_once(case):
    assert DECISION.read_text(encoding="utf-8").split("### Methods")[1].count(f"`{case.cls.__name__}`") >= 1
    assert case.cls.__name__ in methods()


def test_the_decision_names_no_other_estimator():
    assert set(methods()) == {case.cls.__name__ for case in all_estimators()}


# --- parameters ------------------------------------------------------------------------------------------------------


@for_estimators()
def test_parameters_of_the_method_come_first_and_shared_ones_in_one_order(case):
    _, *others = case.parameters
    shared = [name for name in others if name in SHARED]
    assert others[len(others) - len(shared) :] == shared
    assert shared == sorted(shared, key=SHARED.index)


@for_estimators()
def test_parameters_are_documented_in_the_order_of_the_signature(case):
    section = cleandoc(case.cls.__doc__).split("Parameters\n----------\n")[1].split("\nAttributes\n")[0]
    entries = re.findall(r"^(\w+(?:, \w+)*) : ", section, flags=re.MULTILINE)
    assert ", ".join(entries).split(", ") == case.parameters


def test_the_decision_lists_shared_parameters_in_this_order():
    cells = [row[0] for row in table_under("### Parameters")[1:]]
    assert re.findall(r"`(\w+)`", " ".join(cells)) == list(SHARED)


@for_estimators()
def test_no_parameter_has_a_name_that_gave_way(case):
    assert not RETIRED & set(case.parameters)


@for_estimators()
def test_every_estimator_takes_a_seed_and_a_wish_for_progress(case):
    assert case.parameters[-2:] == ["random_state", "verbose"]
    assert case.cls().random_state is None
    assert case.cls().verbose == 0


@for_estimators()
def test_a_seed_without_use_changes_nothing_and_says_so(case):
    if "nothing here is random" not in case.cls.__doc__:
        return
    one, other = (case.make(random_state=seed).fit(case.form(X)) for seed in (0, 1))
    np.testing.assert_array_equal(one.labels_, other.labels_)


@for_estimators(lambda case: case.has("view_weights"))
def test_view_weights_are_learned_uniform_or_fixed_and_learning_has_a_start_of_its_own(case):
    rules = case.cls._parameter_constraints["view_weights"]
    words = set().union(*(getattr(rule, "options", set()) for rule in rules))
    assert "uniform" in words
    assert None not in rules
    assert case.cls().view_weights in words
    assert ("learned" in words) == case.has("init_view_weights")
    if "learned" in words:
        assert case.cls().init_view_weights is None


@for_estimators(lambda case: case.has("view_weights"))
def test_uniform_view_weights_are_uniform(case):
    model = case.make(view_weights="uniform").fit(data(case))
    np.testing.assert_allclose(model.view_weights_, [0.5, 0.5])


@for_estimators(lambda case: case.has("init_view_weights"))
def test_a_start_of_learning_is_refused_where_nothing_is_learned(case):
    with pytest.raises(ValueError, match=r"init_view_weights=\[2, 1\].*view_weights='uniform'"):
        case.make(view_weights="uniform", init_view_weights=[2, 1]).fit(data(case))


@pytest.mark.parametrize("cls", [MultiViewKernelKMeans, MultiViewSpectralClustering])
def test_the_old_name_of_view_weights_is_explained(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__} has no parameter 'weights'.*view_weights.*init_view_weights"):
        cls(3, weights="uniform")


@pytest.mark.parametrize(("old", "new"), [("ridge", "regularization"), ("n_starts", "n_pairs")])
def test_the_old_names_of_ratio_clustering_are_explained(old, new):
    with pytest.raises(TypeError, match=rf"RatioMultipleKernelClustering has no parameter '{old}'.*{new}"):
        RatioMultipleKernelClustering(**{old: 1})


@pytest.mark.parametrize(("weighted", "word"), [(True, "learned"), (False, "uniform")])
def test_a_mixture_of_views_can_still_be_asked_to_be_weighted(weighted, word):
    views = [X[:, :2], X[:, 2:]]
    one, other = (
        MultiViewConvexMixture(3, **choice).fit(views) for choice in ({"weighted": weighted}, {"view_weights": word})
    )
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.view_weights_, other.view_weights_)


def defaults():
    """Yield name, ``max_iter`` and ``tol`` of every estimator that has one."""
    for case in all_estimators():
        parameters = inspect.signature(case.cls).parameters
        yield case.cls.__name__, *(parameters[name].default if case.has(name) else None for name in ("max_iter", "tol"))


def test_defaults_of_the_bounds_on_a_run_are_those_of_the_decision():
    rows = table_under("The defaults of `max_iter` and `tol`")[1:]
    written = {(row[1], row[2]) for row in rows}
    for name, max_iter, tol in defaults():
        if max_iter is None:
            continue
        pairs = {steps for steps, small in written if tol is None or small == "-" or float(small) == float(tol or 0.0)}
        assert str(max_iter) in pairs, name


# --- attributes ------------------------------------------------------------------------------------------------------


@for_estimators()
def test_the_objective_says_whether_it_is_minimised_and_the_tag_agrees(case):
    text = described(case.cls, "objective_")
    assert text is not None
    smaller = re.search(r"minimi[sz]ed|lower is better|the smaller the better", text)
    larger = re.search(r"maximi[sz]ed|the larger the better", text)
    tag = get_tags(case.make()).objective
    written = methods()[case.cls.__name__]["objective"]
    assert written.startswith(tag)
    if ";" in written:  # it depends on a parameter
        assert smaller is not None
        assert larger is not None
        return
    assert (smaller is not None) == (tag == "minimize")
    assert (larger is not None) == (tag == "maximize")


def test_the_tag_follows_the_objective_of_a_graph_cut():
    tags = {name: get_tags(kernelweave.GraphCut(objective=name)).objective for name in ("normalized_cut", "ratio_cut")}
    assert tags == {"normalized_cut": "minimize", "ratio_cut": "minimize"}
    assert get_tags(kernelweave.GraphCut(objective="ratio_association")).objective == "maximize"


@for_estimators()
def test_a_path_goes_the_way_of_the_objective(case):
    path = case.make().fit(case.form(blobs(spread=5.0)[0])).objective_path_
    if re.search(r"may (?:rise|fall|increase)", case.cls.__doc__) or len(path) < 2:
        return
    if described(case.cls, "cut_path_") or described(case.cls, "preference_"):  # steps of another kind
        return
    if described(case.cls, "cluster_weights_"):  # the weights, and so the objective, follow the steps
        return
    change = np.diff(path) * (1 if get_tags(case.make()).objective == "maximize" else -1)
    assert (change >= -1e-9 * np.abs(path[:-1])).all()


@for_estimators(lambda case: described(case.cls, "kernel_coefficients_") is not None)
def test_kernel_coefficients_add_up_to_one(case):
    model = case.make().fit(data(case))
    assert model.kernel_coefficients_.shape == (2,)
    assert (model.kernel_coefficients_ >= 0).all()
    assert model.kernel_coefficients_.sum() == pytest.approx(1.0)


@for_estimators(lambda case: any(word in (case.cls.__doc__ or "") for word in ("medoid_indices_", "xemplars, largest")))
def test_samples_that_stand_for_clusters_are_exemplars(case):
    model = case.make().fit(data(case))
    assert described(case.cls, "exemplar_indices_") is not None
    assert model.labels_[model.exemplar_indices_].tolist() == [0, 1, 2]


def test_medoids_have_two_names():
    model = KMedoids(3, random_state=0).fit(X)
    assert model.medoid_indices_ is model.exemplar_indices_


@for_estimators(lambda case: described(case.cls, "view_scatters_") is not None)
def test_view_scatters_make_up_the_objective(case):
    model = case.make().fit(data(case))
    assert model.view_scatters_.shape == (2,)
    factors = model.view_weights_ ** min(getattr(model, "p_", 0.0), 100.0)
    assert factors @ model.view_scatters_ == pytest.approx(model.objective_, rel=1e-6)


def test_scatters_by_view_are_documented_wherever_the_objective_is_their_sum():
    documented = {case.cls.__name__ for case in all_estimators() if described(case.cls, "view_scatters_")}
    assert documented == {"MultiViewKMeans", "MultiViewKernelKMeans", "MultiViewSpectralClustering"}


# --- methods ---------------------------------------------------------------------------------------------------------


@for_estimators()
def test_methods_are_those_of_the_decision(case):
    row = methods()[case.cls.__name__]
    model = case.make()
    assert row["sample_weight"] == ("yes" if case.takes_weights else "no")
    assert hasattr(model, "predict") == (row["predict"] == "yes")
    for method in ("transform", "score"):
        assert hasattr(model, method) == (not row[method].startswith("none")), method
    assert hasattr(model, "fit_transform") == hasattr(model, "transform")


@for_estimators(lambda case: not case.takes_weights)
@pytest.mark.parametrize("method", ["fit", "fit_predict"])
def test_weights_of_samples_are_refused_where_they_mean_nothing(case, method):
    with pytest.raises(TypeError, match=rf"{case.cls.__name__} does not support sample_weight"):
        getattr(case.make(), method)(case.form(X), sample_weight=np.ones(len(X)))


@for_estimators(lambda case: case.takes_weights)
def test_weights_of_samples_are_taken_the_same_way_by_all_fits(case):
    weights = np.where(np.arange(len(X)) % 3, 1.0, 3.0)
    table = case.form(X)
    labels = case.make().fit(table, sample_weight=weights).labels_
    np.testing.assert_array_equal(case.make().fit_predict(table, sample_weight=weights), labels)
    if case.has_transform:
        model = case.make()
        rows = model.fit_transform(table, sample_weight=weights)
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_allclose(rows, model.transform(table), atol=1e-9)


@for_estimators(lambda case: hasattr(case.make(), "score"))
def test_a_score_is_larger_where_samples_lie_nearer_to_the_clusters(case):
    model = case.make().fit(case.form(X))
    near = model.score(case.form(NEW))
    assert isinstance(near, float)
    assert np.isfinite(near)
    rng = np.random.default_rng(0)
    assert near > model.score(case.form(NEW + 10.0 * rng.standard_normal(NEW.shape)))


@for_estimators(lambda case: hasattr(case.make(), "score") and get_tags(case.make()).objective == "minimize")
def test_a_score_counts_samples_by_their_weights(case):
    model = case.make().fit(case.form(X))
    rows = case.form(NEW)
    once = [model.score(rows[i : i + 1]) for i in range(3)]
    assert model.score(rows[:3], sample_weight=[2.0, 0.0, 1.0]) == pytest.approx(2 * once[0] + once[2])


@for_estimators(lambda case: case.multi_view and methods()[case.cls.__name__]["transform"].startswith("distances"))
def test_the_nearest_centre_is_the_cluster_of_new_samples(case):
    model = case.make().fit(data(case))
    new = Case(case.cls).form(NEW)
    views = {"front": new[:, :2], "back": new[:, 2:]}
    np.testing.assert_array_equal(model.transform(views).argmin(axis=1), model.predict(views))
