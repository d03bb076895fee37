"""Fits that are stopped go on from their checkpoint and end as if nothing had happened, for every estimator."""

import re
from functools import partial
from inspect import cleandoc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import euclidean_distances
from threadpoolctl import threadpool_limits

import kernelweave
from kernelweave import KernelKMeans, MultiViewKernelKMeans
from kernelweave.backends.host import HostBackend
from kernelweave.foundation import checkpoints, threads
from kernelweave.persistence.models import load_model, save_model
from kernelweave.solvers.graph import cut_search
from kernelweave.solvers.kmeans import kernel_kmeans
from kernelweave.solvers.spectral import masked_multi_view
from tests.estimators.discovery import blobs, for_estimators

X, _ = blobs(25, spread=6.0)
OTHER, _ = blobs(25, seed=1, spread=6.0)
WEIGHTS = 1.0 + np.arange(len(X)) % 3
NUMBERS = "[0-9a-f]{16}"

# Other tests are about these warnings; here the tables are small.
pytestmark = pytest.mark.filterwarnings("ignore")
for_keepers = partial(for_estimators, lambda case: case.has("checkpoint"))


class StoppedError(Exception):
    """The stand-in for ``kill -9``: nothing is left of the run but its file."""


def data(case, table=X):
    """Return samples in the form the default instance takes, as two views where it takes views."""
    table = case.form(table)
    return {"front": table[:, :2], "back": table[:, 2:]} if case.multi_view else table


@pytest.fixture
def stop_after(monkeypatch):
    """Return what makes runs write at every step and stops them after so many writes, by default never.

    A file that the next step replaces is not written: nobody reads it, and writing takes longer than the steps do.
    """
    written = {"count": 0, "limit": np.inf}
    write = checkpoints.write_atomically

    def counted(path, content):
        written["count"] += 1
        if written["count"] in (1, written["limit"]):  # there is a file from the first step on
            write(path, content)
        if written["count"] >= written["limit"]:
            raise StoppedError

    def set_limit(limit=np.inf):
        written.update(count=0, limit=limit)
        return written

    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", np.inf)
    monkeypatch.setattr(checkpoints, "write_atomically", counted)
    return set_limit


def stopped(model, samples, stop_after, steps=1, **weights):
    """Fit until it is stopped after some writes; the file is left."""
    stop_after(steps)
    with pytest.raises(StoppedError):
        clone(model).fit(samples, **weights)
    stop_after()
    assert model.checkpoint.exists()


def check_stops(model, samples, path, stop_after):
    """Assert that fits stopped now and then end as one that never was."""
    undisturbed = clone(model).fit(samples)
    kept = clone(model).set_params(checkpoint=path)
    count = _fits(kept, samples, stop_after, np.inf, undisturbed)
    assert count > 0
    for steps in {max(1, count // 5), max(1, count // 2)}:
        _fits(kept, samples, stop_after, steps, undisturbed)


def _fits(kept, samples, stop_after, steps, undisturbed):
    """Fit with stops after so many writes until it ends; return the writes after the last stop."""
    stops = 0
    while True:
        writes = stop_after(steps)
        try:
            fitted = clone(kept).fit(samples)
            break
        except StoppedError:
            stops += 1
            assert kept.checkpoint.exists()
            assert stops < 200
    assert stops > 0 or steps >= writes["count"]
    np.testing.assert_array_equal(fitted.labels_, undisturbed.labels_)
    assert fitted.objective_ == pytest.approx(undisturbed.objective_, rel=1e-9)
    assert fitted.n_iter_ == undisturbed.n_iter_
    assert fitted.converged_ == undisturbed.converged_
    np.testing.assert_allclose(fitted.objective_path_, undisturbed.objective_path_, rtol=1e-9)
    assert not kept.checkpoint.exists()
    assert "_keeper" not in vars(fitted)
    return writes["count"]


# --- every estimator -------------------------------------------------------------------------------------------------


@for_estimators()
def test_every_estimator_with_iterations_or_restarts_has_checkpoints(case):
    assert case.has("checkpoint") == any(map(case.has, ("max_iter", "n_init", "time_budget")))
    if case.has("checkpoint"):
        assert case.cls().checkpoint is None


@for_keepers()
def test_the_parameter_is_described_in_the_same_words(case):
    own = cleandoc(case.cls.__doc__)
    entry = re.search(r"^checkpoint : str or path-like, default=None\n((?:    .*\n)+)", own, re.M)
    text = re.search(r"^checkpoint : .*\n((?:    .*\n)+)", cleandoc(KernelKMeans.__doc__), re.M)[1]
    random = "nothing here is random" not in case.cls.__doc__
    assert entry[1] == (text if random else text.replace(" Requires an integer ``random_state``.", ""))
    assert case.cls._draws == random


@for_keepers()
def test_a_fit_that_was_stopped_ends_like_one_that_was_not(case, stop_after, tmp_path):
    check_stops(case.make(), data(case), tmp_path / "run", stop_after)


@for_keepers()
def test_other_data_parameters_and_weights_are_refused(case, stop_after, tmp_path):
    path = tmp_path / "run"
    model = case.make(checkpoint=path)
    stopped(model, data(case), stop_after)
    content = path.read_bytes()
    remedy = r"\. Delete the file, or choose another name\.$"
    with pytest.raises(ValueError, match=rf"another run: (X|view 'front') was an? (array|sparse matrix) .*{remedy}"):
        clone(model).fit(data(case, OTHER))
    with pytest.raises(ValueError, match=rf"another run: n_clusters was 3 and is now 2{remedy}"):
        clone(model).set_params(n_clusters=2).fit(data(case))
    if case.cls._draws:
        with pytest.raises(ValueError, match=rf"another run: random_state was 0 and is now 1{remedy}"):
            clone(model).set_params(random_state=1).fit(data(case))
    if case.takes_weights:
        with pytest.raises(ValueError, match=rf"another run: sample_weight was an array .*{remedy}"):
            clone(model).fit(data(case), sample_weight=WEIGHTS)
    assert path.read_bytes() == content
    clone(model).fit(data(case))
    assert not path.exists()


@for_keepers()
def test_what_does_not_change_labels_may_differ(case, stop_after, tmp_path):
    model = case.make(checkpoint=tmp_path / "run")
    stopped(model, data(case), stop_after)
    changes = {name: value for name, value in {"memory_limit": 100, "verbose": 1}.items() if case.has(name)}
    fitted = clone(model).set_params(**changes).fit(data(case))
    np.testing.assert_array_equal(fitted.labels_, case.make().fit(data(case)).labels_)


@for_keepers()
def test_a_seed_that_cannot_be_repeated_is_refused(case, tmp_path):
    model = case.make(checkpoint=str(tmp_path / "run"), random_state=None)
    if not case.cls._draws:
        assert model.fit(data(case)).labels_.shape == (len(X),)
        return
    with pytest.raises(ValueError, match=r"checkpoint=.* needs an integer random_state, not None: .* Set"):
        model.fit(data(case))
    with pytest.raises(ValueError, match="needs an integer"):
        model.set_params(random_state=np.random.RandomState(0)).fit(data(case))


@for_keepers()
def test_damaged_files_are_refused_and_left_alone(case, stop_after, tmp_path):
    path = tmp_path / "run"
    model = case.make(checkpoint=path)
    stopped(model, data(case), stop_after)
    content = path.read_bytes()
    for damaged in (content[:-1], content[:40], b"", content[:200] + b"\0" + content[201:], content + b"\0"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"checkpoint=.*Delete the file, or choose another name\.$"):
            clone(model).fit(data(case))
        assert path.read_bytes() == damaged


# --- ways through a fit that defaults do not take --------------------------------------------------------------------

VIEWS = [X[:, :2], X[:, 2:]]
ABSENT = [X[:, :2].copy(), X[:, 2:].copy()]
ABSENT[0][::7] = np.nan
ABSENT[1][3::7] = np.nan
COUNTS = np.abs(np.round(X))
# To choose a number of clusters takes many fits.
FEW = blobs(14, spread=6.0)[0]
GRAPH = np.exp(-0.5 * euclidean_distances(X, squared=True))
VARIANTS = {
    "KernelKMeans from MinMax": ("KernelKMeans", {"init": "minmax"}, X),
    "KernelKMeans blockwise": ("KernelKMeans", {"storage": "blockwise"}, X),
    "KernelKMeans of a graph": ("KernelKMeans", {"kernel": "nearest_neighbors"}, X),
    "KernelKMeans of sparse rows": ("KernelKMeans", {"kernel": "linear"}, sp.csr_array(COUNTS)),
    "KernelKMeans approximated": ("KernelKMeans", {"approximation": "random_features", "n_components": 20}, X),
    "KernelKMeans, kernel not definite": ("KernelKMeans", {"kernel": "sigmoid", "kernel_params": {"gamma": 1.0}}, X),
    "KernelKMeans from labels": ("KernelKMeans", {"init": np.arange(len(X)) % 3}, X),
    "KernelKMeans, number chosen": ("KernelKMeans", {"n_clusters": "auto"}, FEW),
    "GlobalKernelKMeans exact": ("GlobalKernelKMeans", {"search": "exact"}, X),
    "GlobalKernelKMeans by exemplars": ("GlobalKernelKMeans", {"search": "exemplars"}, X),
    "MinMaxKMeans from centres": ("MinMaxKMeans", {"init": X[:3]}, X),
    "MinMaxKMeans of many clusters": ("MinMaxKMeans", {"n_clusters": 20, "p_max": 0.9}, X),
    "MinMaxKernelKMeans refined": ("MinMaxKernelKMeans", {"refine": True}, X),
    "MinMaxKMeans that circles": ("MinMaxKMeans", {"tol": 0.0, "max_iter": 120}, X),
    "MultiViewKernelKMeans drawn": ("MultiViewKernelKMeans", {"init": "k-means++"}, VIEWS),
    "MultiViewKernelKMeans exact": ("MultiViewKernelKMeans", {"init": "global_exact"}, VIEWS),
    "MultiViewKernelKMeans, some searched": ("MultiViewKernelKMeans", {"init_size": 40}, VIEWS),
    "MultiViewKernelKMeans from a graph": ("MultiViewKernelKMeans", {"init": "graph"}, VIEWS),
    "MultiViewKernelKMeans uniform": ("MultiViewKernelKMeans", {"view_weights": "uniform"}, VIEWS),
    "MultiViewKernelKMeans, p chosen": ("MultiViewKernelKMeans", {"p": "auto"}, VIEWS),
    "MultiViewKernelKMeans absent": ("MultiViewKernelKMeans", {"missing": "drop"}, ABSENT),
    "MultiViewKernelKMeans absent, drawn": ("MultiViewKernelKMeans", {"missing": "drop", "init": "random"}, ABSENT),
    "MultiViewSpectralClustering linear": ("MultiViewSpectralClustering", {"kernel": "linear"}, VIEWS),
    "MultiViewSpectralClustering absent": ("MultiViewSpectralClustering", {"missing": "drop"}, ABSENT),
    "MultiViewSpectralClustering, p chosen": (
        "MultiViewSpectralClustering",
        {"p": "auto", "n_init": 1, "n_clusters": 2},
        VIEWS,
    ),
    "ConvexMixture by EM": ("ConvexMixture", {"solver": "em", "max_iter": 200}, X),
    "ConvexMixture in order": ("ConvexMixture", {"solver": "em", "stopping": "order"}, X),
    "ConvexMixture by change": ("ConvexMixture", {"solver": "em", "stopping": "change", "tol": 1e-3}, X),
    "MultiViewConvexMixture uniform": ("MultiViewConvexMixture", {"view_weights": "uniform"}, VIEWS),
    "MultiViewConvexMixture absent": ("MultiViewConvexMixture", {"missing": "drop"}, ABSENT),
    "MultiViewEM of counts": ("MultiViewEM", {"distribution": "multinomial"}, [COUNTS[:, :2], COUNTS[:, 2:]]),
    "CoRegularized, a centroid": ("CoRegularizedSpectralClustering", {"variant": "centroid"}, VIEWS),
    "CoRegularized absent": ("CoRegularizedSpectralClustering", {"missing": "drop"}, ABSENT),
    "GraphCut exact": ("GraphCut", {"n_clusters": 5, "search": "exact"}, GRAPH),
    "GraphCut exact, bare": ("GraphCut", {"n_clusters": 5, "search": "exact", "polish": False}, GRAPH),
    "GraphCut by exemplars": ("GraphCut", {"n_clusters": 5, "search": "exemplars"}, GRAPH),
    "GraphCut from labels": ("GraphCut", {"init": np.arange(len(X)) % 3, "search": "exact"}, GRAPH),
    "GraphCut, number chosen": ("GraphCut", {"n_clusters": "auto"}, GRAPH),
    "AffinityPropagation, any number": ("AffinityPropagation", {"n_clusters": None}, X),
    "GraphFusionClustering, number chosen": ("GraphFusionClustering", {"n_clusters": "auto"}, [FEW[:, :2], FEW[:, 2:]]),
}


@pytest.mark.parametrize(("name", "changes", "samples"), VARIANTS.values(), ids=VARIANTS)
def test_ways_through_a_fit_are_gone_on_with(name, changes, samples, stop_after, tmp_path):
    cls = getattr(kernelweave, name)
    small = {"n_clusters": 3, "n_init": 3, "random_state": 0}
    known = {key: value for key, value in small.items() if key in cls._get_param_names()}
    check_stops(cls(**known | changes), samples, tmp_path / "run", stop_after)


@pytest.mark.parametrize(
    ("name", "samples", "changes"),
    [
        ("MultiViewSpectralClustering", VIEWS, {}),
        ("MultiViewSpectralClustering", ABSENT, {"missing": "drop"}),
        ("CoRegularizedSpectralClustering", VIEWS, {}),
        ("CoTrainedSpectralClustering", VIEWS, {}),
    ],
)
def test_eigenvectors_are_sought_from_where_they_were(name, samples, changes, stop_after, monkeypatch, tmp_path):
    monkeypatch.setattr(HostBackend, "direct_limit", 10)
    monkeypatch.setattr(masked_multi_view, "SMALL", 10)
    model = getattr(kernelweave, name)(3, n_init=2, random_state=0, **changes)
    check_stops(model, samples, tmp_path / "run", stop_after)


@pytest.mark.parametrize("steps", [1, 20, 50, 71, 76, 86])
def test_a_search_that_goes_on_when_its_time_is_over_still_has_all_clusters(steps, stop_after, monkeypatch, tmp_path):
    model = kernelweave.GraphCut(5, search="exact", time_budget=1000.0, random_state=0, checkpoint=tmp_path / "run")
    stopped(model, GRAPH, stop_after, steps)
    monkeypatch.setattr(cut_search, "time", SimpleNamespace(monotonic=lambda: np.inf))
    fitted = clone(model).fit(GRAPH)
    assert len(np.unique(fitted.labels_)) == 5
    assert not fitted.converged_


def test_starts_that_run_side_by_side_are_gone_on_with(stop_after, monkeypatch, tmp_path):
    monkeypatch.setattr(threads, "openmp_threads", lambda: 4)
    check_stops(KernelKMeans(5, n_init=8, random_state=0), X, tmp_path / "run", stop_after)


# --- what is kept, and what becomes of it ----------------------------------------------------------------------------


def test_starts_that_ended_are_not_run_again(stop_after, monkeypatch, tmp_path):
    path = tmp_path / "run"
    model = KernelKMeans(3, n_init=6, random_state=0, checkpoint=path)
    writes = stop_after()
    clone(model).fit(X)
    with threadpool_limits(1):  # or two starts may end in any order
        stopped(model, X, stop_after, writes["count"] - 2)  # left are the last step and the end of the last start
    ended = [name for name, stage in checkpoints.from_bytes(path.read_bytes())[1].items() if stage.done]
    assert {f"start {number}" for number in range(5)} <= set(ended)
    descents = []
    descend = kernel_kmeans.descend
    monkeypatch.setattr(kernel_kmeans, "descend", lambda *args, **how: descents.append(1) or descend(*args, **how))
    clone(model).fit(X)
    assert len(descents) == 1


def test_a_step_is_not_lost(stop_after, tmp_path):
    path = tmp_path / "run"
    model = KernelKMeans(3, n_init=1, init="random_partition", random_state=0, checkpoint=path)
    whole = clone(model).fit(X)
    assert whole.n_iter_ > 3
    stopped(model, X, stop_after, 3)  # the start and two steps
    stages = checkpoints.from_bytes(path.read_bytes())[1]
    assert stages["start 0/descent"].state()["path"]["history"] == pytest.approx(whole.objective_path_[:3])


def test_an_error_leaves_the_file_and_the_next_fit_goes_on(stop_after, tmp_path):
    path = tmp_path / "run"
    model = KernelKMeans(3, n_init=2, random_state=0, checkpoint=path)
    stop_after(2)
    with pytest.raises(StoppedError):
        model.fit(X)
    assert path.exists()
    assert "_keeper" not in vars(model)
    stop_after()
    np.testing.assert_array_equal(model.fit(X).labels_, KernelKMeans(3, n_init=2, random_state=0).fit(X).labels_)


def test_a_short_fit_writes_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoints, "write_atomically", pytest.fail)
    assert KernelKMeans(3, random_state=0, checkpoint=tmp_path / "run").fit(X).labels_.shape == (len(X),)


def test_weights_sparse_rows_functions_and_seeds_tell_runs_apart(stop_after, tmp_path):
    path = tmp_path / "run"
    rows = sp.csr_array(COUNTS)
    model = KernelKMeans(3, n_init=2, kernel=lambda A, B: A @ B.T, random_state=0, checkpoint=path)
    stopped(model, X, stop_after, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=rf"kernel was tests\..*lambda> \({NUMBERS}\) and is now tests\..*"):
        clone(model).set_params(kernel=lambda A, B: A @ B.T + 1.0).fit(X, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=rf"sample_weight was an array of float64 and shape \(75,\) \({NUMBERS}\)"):
        clone(model).fit(X)
    path.unlink()
    model = clone(model).set_params(kernel="linear")
    stopped(model, rows, stop_after)
    moved = rows.copy()
    moved.data = np.roll(moved.data, 1)
    with pytest.raises(ValueError, match=r"X was a sparse matrix of shape \(75, 4\)"):
        clone(model).fit(moved)


def test_the_file_of_another_estimator_or_version_is_refused(stop_after, monkeypatch, tmp_path):
    path = tmp_path / "run"
    stopped(KernelKMeans(3, random_state=0, checkpoint=path), X, stop_after)
    with pytest.raises(ValueError, match="the estimator was KernelKMeans and is now PifsKMeans"):
        kernelweave.PifsKMeans(3, random_state=0, checkpoint=path).fit(X)
    monkeypatch.setattr("kernelweave.estimators.shared.checkpoints.version", lambda _: "0.0.0")
    with pytest.raises(ValueError, match=r"the version of kernelweave was .* and is now 0\.0\.0"):
        KernelKMeans(3, random_state=0, checkpoint=path).fit(X)


def test_a_search_among_other_samples_begins_anew(stop_after, tmp_path):
    path = tmp_path / "run"
    model = MultiViewKernelKMeans(3, random_state=0, checkpoint=path, init="global_exact")
    stopped(model, VIEWS, stop_after)
    fewer = {"memory_limit": 40**2 * 8 / 2**20}
    fitted = clone(model).set_params(**fewer).fit(VIEWS)
    expected = MultiViewKernelKMeans(3, random_state=0, init="global_exact", **fewer).fit(VIEWS)
    np.testing.assert_array_equal(fitted.labels_, expected.labels_)


def test_a_saved_model_does_not_know_the_file(tmp_path):
    model = KernelKMeans(3, random_state=0, checkpoint=tmp_path / "run").fit(X)
    saved = save_model(model, tmp_path / "model.kwm")
    assert load_model(saved).checkpoint is None
    assert model.checkpoint == tmp_path / "run"
