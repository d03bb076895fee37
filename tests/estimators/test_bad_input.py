"""Each fault of the input gets a clear error from every estimator, odd but valid input works, and nothing is changed.

``FAULTS`` is the list; each fault says of which estimators it can be asked, what to pass, and what the message must
contain: the argument's name or the offending value. The walk tries every fault on every estimator it applies to.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import kernelweave
from kernelweave import ConvergenceWarning, KernelKMeans
from kernelweave.inputs.arrays.absence import takes_absent
from kernelweave.kernels.spec.fitting import KERNELS
from kernelweave.solvers.kmeans.starts import INITS
from tests.estimators.discovery import Case, all_estimators, blobs, for_estimators, same

# MinMax k-means falls back on k-means where a cluster has no variance, and says so; the tables here are degenerate.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Every start left a cluster without variance"),
    pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero"),
    pytest.mark.filterwarnings("ignore:View .* has no scatter left"),
    pytest.mark.filterwarnings("ignore:The clusters have no variance left"),
]

X, Y = blobs(5)
N = len(X)


@dataclass(frozen=True)
class Fault:
    """One way to go wrong. ``parameters`` and ``data`` turn a case into constructor and ``fit`` arguments."""

    name: str
    match: str
    parameters: Callable[[Case], dict[str, Any]] = field(default=lambda case: {})
    data: Callable[[Case], dict[str, Any]] = field(default=lambda case: {})
    applies: Callable[[Case], bool] = field(default=lambda case: True)


def spoilt(table, value):
    """Return the table with one entry replaced."""
    table = np.array(table, dtype=object if isinstance(value, str) else np.float64)
    table[3, 1] = value
    return table


def in_table(name, match, spoil):
    """Return a fault in X, and the same in one of several views, where the message must name the view."""
    return [
        Fault(name, match, data=lambda case: {"X": spoil(case.form(X))}),
        Fault(
            f"{name} in one view",
            rf"'odd'(.|\n)*({match})",
            data=lambda case: {"X": {"fine": X, "odd": spoil(X)}},
            applies=lambda case: case.multi_view,
        ),
    ]


def in_parameter(parameter, value, match=None):
    """Return a fault in one constructor parameter."""
    return Fault(
        f"{parameter}={value!r}",
        match or parameter,
        parameters=lambda case: {parameter: value},
        applies=lambda case: case.has(parameter),
    )


def in_weights(name, match, weights):
    """Return a fault in the sample weights."""
    return Fault(
        f"weights {name}", match, data=lambda case: {"sample_weight": weights}, applies=lambda case: case.takes_weights
    )


def in_start(name, labels):
    """Return a fault in starting labels."""
    return Fault(
        f"start {name}",
        "init",
        parameters=lambda case: {"init": labels},
        applies=lambda case: case.takes_start_labels,
    )


def in_kernel_matrix(name, match, spoil):
    """Return a fault in a kernel matrix."""
    return Fault(
        f"kernel matrix {name}",
        match,
        parameters=lambda case: case.precomputed if case.takes_kernel else {},
        data=lambda case: {"X": spoil(rbf_kernel(X, gamma=0.01))},
        applies=lambda case: case.takes_kernel or case.pairwise,
    )


def in_views(name, match, views=None, X=X):
    """Return a fault in how several views are passed."""
    return Fault(
        f"views {name}",
        match,
        parameters=lambda case: {"views": views},
        data=lambda case: {"X": X},
        applies=lambda case: case.multi_view,
    )


ones = np.ones(N)
start = np.tile([0, 1, 2], 5)

FAULTS = [
    *in_table("NaN", r"NaN", lambda table: spoilt(table, np.nan)),
    *in_table("infinity", r"infinity", lambda table: spoilt(table, np.inf)),
    *in_table("minus infinity", r"infinity", lambda table: spoilt(table, -np.inf)),
    *in_table("text", r"red", lambda table: spoilt(table, "red")),
    *in_table("text in a frame", r"red", lambda table: pd.DataFrame(table).assign(colour="red").rename(columns=str)),
    *in_table("complex numbers", r"Complex", lambda table: table * 1j),
    *in_table("one dimension", r"1D array", lambda table: table[:, 0]),
    *in_table("three dimensions", r"dim 3", lambda table: table[None]),
    *in_table("no samples", r"0 sample", lambda table: table[:0]),
    *in_table("no features", r"0 feature", lambda table: table[:, :0]),
    Fault("one sample", r"1 sample", data=lambda case: {"X": case.form(X[:1])}),
    Fault("one sample in views", r"1 sample", data=lambda _: {"X": [X[:1], X[:1]]}, applies=lambda c: c.multi_view),
    in_parameter("n_clusters", 0),
    in_parameter("n_clusters", -1),
    in_parameter("n_clusters", 2.5),
    in_parameter("n_clusters", "3"),
    in_parameter("n_clusters", N + 1, rf"n_clusters={N + 1}"),
    in_parameter("kernel", "no such kernel", r"kernel(.|\n)*no such kernel"),
    in_parameter("kernel_params", {"no_such_parameter": 1.0}, r"no_such_parameter"),
    in_parameter("init", "no such start", r"init(.|\n)*no such start"),
    in_parameter("n_init", 0),
    in_parameter("max_iter", 0),
    in_parameter("tol", -1.0),
    in_weights("negative", r"sample_weight.*-0\.5", np.where(np.arange(N) == 2, -0.5, ones)),
    in_weights("all zero", r"sample_weight.*zero", np.zeros(N)),
    in_weights("too few", r"sample_weight", ones[:-1]),
    in_weights("too many", r"sample_weight", np.ones(N + 1)),
    in_weights("in a column", r"sample_weight", ones[:, None]),
    in_weights("not a number", r"sample_weight.*nan", np.where(np.arange(N) == 2, np.nan, ones)),
    in_weights("infinite", r"sample_weight.*inf", np.where(np.arange(N) == 2, np.inf, ones)),
    in_weights("as text", r"sample_weight.*heavy", ["heavy"] * N),
    in_weights("for fewer samples than clusters", r"n_clusters=3", np.where(np.arange(N) < 2, 1.0, 0.0)),
    in_start("too short", start[:-1]),
    in_start("too long", np.append(start, 0)),
    in_start("in two dimensions", start[:, None]),
    in_start("label too large", np.where(start == 2, 3, start)),
    in_start("label negative", np.where(start == 2, -1, start)),
    in_start("label not whole", np.where(start == 2, 1.5, start)),
    in_start("label not a number", np.where(start == 2, np.nan, start)),
    in_start("label as text", start.astype(str)),
    in_kernel_matrix("not symmetric", r"not symmetric.*0\.5", lambda K: spoilt(K, 0.5)),
    in_kernel_matrix("sparse and not symmetric", r"symmetric.*0\.5|[Ss]parse", lambda K: sp.csr_array(spoilt(K, 0.5))),
    in_kernel_matrix("not square", rf"square.*\({N}, 4\)", lambda K: K[:, :4]),
    in_kernel_matrix("not finite", r"NaN", lambda K: spoilt(K, np.nan)),
    in_kernel_matrix("of one sample", r"1 sample", lambda K: K[:1, :1]),
    in_views("of different length", rf"'view_0' has {N}, 'view_1' has {N - 2}", X=[X, X[2:]]),
    in_views("of different length, named", rf"'p' has {N - 2}, 'q' has {N}", X={"p": X[2:], "q": X}),
    in_views("in frames of other order", r"row labels", X=[pd.DataFrame(X), pd.DataFrame(X).iloc[::-1]]),
    in_views("none at all", r"X", X={}),
    in_views("by unknown columns", r"99", views=[[0, 1], [2, 99]]),
    in_views("by names without a frame", r"DataFrame", views=[["a"], ["b"]]),
    in_views("without columns", r"'void'", views={"all": [0, 1], "void": []}),
    in_views("twice", r"views=", views=[[0], [1]], X=[X, X]),
]

WALK = [(case, fault) for case in all_estimators() for fault in FAULTS if fault.applies(case)]


def refusal(fit):
    """Return what a fit is refused with; None where it is not refused."""
    try:
        fit()
    except (ValueError, TypeError) as error:
        return str(error)
    return None


# The walk is one test for each estimator, and each of its parameters: the faults that go wrong are named at the end.
@for_estimators()
def test_bad_input_gets_a_clear_error_and_is_left_untouched(case):
    unclear, touched = {}, []
    for fault in (fault for asked, fault in WALK if asked is case):
        parameters, data = fault.parameters(case), {"X": case.form(X)} | fault.data(case)
        before = copy.deepcopy((parameters, data))
        message = refusal(lambda parameters=parameters, data=data: case.make(**parameters).fit(**data))
        if message is None or not re.search(fault.match, message):
            unclear[fault.name] = message
        if not same((parameters, data), before):
            touched.append(fault.name)
    assert unclear == {}
    assert touched == []


@for_estimators()
def test_a_value_of_the_wrong_type_is_refused_with_the_name_of_the_parameter(case):
    table = case.form(X)
    messages = {name: refusal(lambda name=name: case.make(**{name: ...}).fit(table)) or "" for name in case.parameters}
    assert {name: text for name, text in messages.items() if name not in text} == {}


def test_the_walk_asks_every_estimator_about_every_matter():
    asked = {(case, fault.name) for case, fault in WALK}
    for case in all_estimators():
        assert (case, "NaN") in asked
        assert (case, "n_clusters=0") in asked
        assert ((case, "weights negative") in asked) == case.takes_weights
        assert ((case, "views of different length") in asked) == case.multi_view
        assert ((case, "kernel matrix not symmetric") in asked) == (case.takes_kernel or case.pairwise)


@for_estimators(lambda case: case.takes_kernel and case.has_predict)
def test_new_rows_of_a_kernel_matrix_need_a_column_for_every_training_sample(case):
    K = rbf_kernel(X, gamma=0.01)
    model = case.make(**case.precomputed).fit(K)
    with pytest.raises(ValueError, match=rf"X has {N - 1} features.*expecting {N}"):
        model.predict(K[:3, :-1])


@for_estimators(lambda case: case.multi_view and case.has_predict)
def test_new_samples_with_other_views_are_refused(case):
    model = case.make().fit({"p": X[:, :2], "q": X[:, 2:]})
    if takes_absent(model):
        assert len(model.predict({"p": X[:, :2]})) == N
    else:
        with pytest.raises(ValueError, match=r"\['p', 'q'\].*\['p'\]"):
            model.predict({"p": X[:, :2]})
    with pytest.raises(ValueError, match=r"\['p', 'q'\].*\['p', 'r'\]"):
        model.predict({"p": X[:, :2], "r": X[:, 2:]})
    with pytest.raises(ValueError, match=r"'q' has 3 features.*fitted on 2"):
        model.predict({"p": X[:, :2], "q": X[:, 1:]})


# Odd but valid: nothing may warn (warnings are errors here), nothing may be NaN


def fitted(case, table, *, weights=None, **parameters):
    """Return the model after checking that every number it gives is one and every label lies in range."""
    arguments = {} if weights is None else {"sample_weight": weights}
    model = case.make(**parameters).fit(table, **arguments)
    assert model.labels_.min() >= 0
    assert model.labels_.max() < model.n_clusters
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.objective_path_).all()
    for name in ("inertia_", "cluster_variances_", "view_weights_"):
        assert np.isfinite(getattr(model, name, 0.0)).all(), name
    if hasattr(model, "predict") and not case.pairwise:
        assert set(model.predict(table)) <= set(range(model.n_clusters))
    return model


@for_estimators()
def test_constant_features_change_nothing_and_do_no_harm(case):
    table = np.column_stack([X, np.zeros(N), np.full(N, 7.0)])
    assert adjusted_rand_score(fitted(case, case.form(table)).labels_, Y) == 1.0


@for_estimators()
def test_samples_that_are_all_equal_form_one_cluster(case):
    assert set(fitted(case, case.form(np.full((6, 3), 2.5)), n_clusters=1).labels_) == {0}


@for_estimators()
def test_duplicate_samples_share_their_cluster(case):
    labels = fitted(case, case.form(np.repeat(X, 4, axis=0))).labels_.reshape(N, 4)
    assert (labels == labels[:, :1]).all()
    assert adjusted_rand_score(labels[:, 0], Y) == 1.0


@pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning")  # sigmoid and graph kernels are not semidefinite
@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"precomputed"}))
@for_estimators(lambda case: case.takes_kernel)
def test_every_named_kernel_survives_duplicates_and_constant_features(case, kernel):
    # Small positive numbers: chi2 takes no others, and sigmoid gives 1 for all large ones.
    table = np.repeat(np.column_stack([0.05 * np.abs(X), np.ones(N)]), 12, axis=0)
    if case.needs_feature_space and kernel == "sigmoid":
        with pytest.raises(kernelweave.KernelError, match="not positive semidefinite"):
            fitted(case, table, kernel=kernel)
        return
    labels = fitted(case, table, kernel=kernel).labels_
    assert len(np.unique(labels)) == 3


@for_estimators()
def test_one_cluster_takes_every_sample(case):
    assert set(fitted(case, case.form(X), n_clusters=1).labels_) == {0}


@for_estimators()
def test_as_many_clusters_as_samples_leave_nothing_to_explain(case):
    model = fitted(case, case.form(X), n_clusters=N)
    if hasattr(model, "inertia_"):
        assert sorted(model.labels_) == list(range(N))
        assert model.inertia_ == pytest.approx(0.0, abs=1e-9)


@for_estimators()
def test_a_few_samples_are_enough(case):
    table = np.array([[0.0, 1.0], [5.0, 3.0], [0.0, 1.1], [5.0, 3.1]])[: case.least_samples]
    labels = fitted(case, case.form(table), n_clusters=2).labels_
    assert sorted(set(labels)) == [0, 1]
    assert adjusted_rand_score(labels, [0, 1, 0, 1][: len(table)]) == 1.0


@pytest.mark.parametrize("n_distinct", [1, 2])
@for_estimators(
    lambda case: not case.pairwise and not case.needs_patterns
)  # nodes of a graph are not equal because their edges are
def test_fewer_distinct_samples_than_clusters_give_a_warning(case, n_distinct):
    table = np.repeat(X[:n_distinct], 6, axis=0)
    with pytest.warns(ConvergenceWarning, match=rf"distinct.*\({n_distinct}\).*n_clusters \(3\)"):
        model = fitted(case, case.form(table))
    labels = model.labels_.reshape(n_distinct, 6)
    assert (labels == labels[:, :1]).all()
    assert len(np.unique(labels)) == n_distinct


@pytest.mark.parametrize("n_distinct", [1, 2])
@for_estimators(lambda case: case.needs_patterns)
def test_fewer_sign_patterns_than_clusters_are_an_error(case, n_distinct):
    table = np.repeat(X[:n_distinct], 6, axis=0)
    with pytest.raises(ValueError, match=rf"n_clusters=3.*{n_distinct} distinct sign pattern"):
        case.make().fit(table)


@for_estimators(lambda case: case.multi_view and not case.needs_patterns)
def test_fewer_distinct_samples_than_clusters_give_a_warning_in_several_views_too(case):
    table = case.form(np.repeat(X[:2], 6, axis=0))
    with pytest.warns(ConvergenceWarning, match=r"distinct.*\(2\).*n_clusters \(3\)"):
        case.make().fit([table[:, :2], table[:, 2:]])


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
def test_no_start_and_no_rounding_tears_equal_samples_apart(kernel, init):
    for seed in range(5):
        table = np.repeat(blobs(1, seed=seed)[0][:2], 6, axis=0)
        with pytest.warns(ConvergenceWarning, match=r"distinct.*\(2\).*n_clusters \(4\)"):
            model = KernelKMeans(4, kernel=kernel, init=init, n_init=3, random_state=seed).fit(table)
        labels = model.labels_.reshape(2, 6)
        assert (labels == labels[:, :1]).all()


def test_the_warning_about_distinct_samples_is_that_of_scikit_learn():
    table = np.repeat(X[:2], 6, axis=0)
    with pytest.warns(ConvergenceWarning) as theirs:
        KMeans(3, random_state=0, n_init=1).fit(table)
    with pytest.warns(ConvergenceWarning) as ours:
        KernelKMeans(3, random_state=0).fit(table)
    assert str(ours[0].message) == str(theirs[0].message)


# Weights of zero


@pytest.mark.parametrize("kernel", ["default", "linear"])
@for_estimators(lambda case: case.takes_weights and not case.pairwise)
def test_samples_of_weight_zero_get_a_label_and_change_nothing(case, kernel):
    # Three far samples that would each become a cluster if they counted.
    outliers = np.array([[500.0, 0.0, 0.0, 0.0], [0.0, -500.0, 0.0, 0.0], [0.0, 0.0, 500.0, 500.0]])
    table, weights = np.vstack([X, outliers]), np.r_[np.ones(N), np.zeros(3)]
    parameters = {"kernel": kernel} if kernel != "default" and case.takes_kernel else {}
    model = fitted(case, table, weights=weights, **parameters)
    without = fitted(case, X, **parameters)
    assert model.labels_.shape == (N + 3,)
    assert adjusted_rand_score(model.labels_[:N], without.labels_) == 1.0
    assert model.objective_ == pytest.approx(without.objective_)


@for_estimators(lambda case: case.takes_weights)
def test_equal_weights_of_any_size_find_the_partition_of_no_weights(case):
    plain = fitted(case, case.form(X))
    heavy = fitted(case, case.form(X), weights=np.full(N, 1e6))
    light = fitted(case, case.form(X), weights=np.full(N, 1e-6))
    assert heavy.labels_.tolist() == light.labels_.tolist() == plain.labels_.tolist()
