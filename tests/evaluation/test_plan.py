"""Plans: the path that fit takes, what it needs, and warnings before a run that cannot work."""

import json

import numpy as np
import pytest

import kernelweave
from kernelweave import (
    NEMO,
    ConvexMixture,
    GlobalKernelKMeans,
    GraphFusionClustering,
    KernelKMeans,
    KernelSpectralClustering,
    MinMaxKernelKMeans,
    MinMaxKMeans,
    MultiViewConvexMixture,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    MultiViewSpectralClustering,
    ParameterError,
    plan,
)
from kernelweave.evaluation.plan import machine, planning, rates, streaming
from kernelweave.evaluation.plan.costs import METHODS
from kernelweave.evaluation.plan.counts import minmax_runs
from kernelweave.evaluation.plan.result import duration, size
from kernelweave.inputs.arrays import chunks
from kernelweave.kernels.spec.fitting import fit_kernel

ONE_TABLE = [
    KernelKMeans(5),
    KernelKMeans(5, kernel="linear"),
    KernelKMeans(5, kernel="nearest_neighbors"),
    KernelKMeans(5, approximation="nystroem", n_components=50),
    GlobalKernelKMeans(5),
    GlobalKernelKMeans(5, search="exact"),
    MinMaxKMeans(5),
    MinMaxKernelKMeans(5),
    KernelSpectralClustering(5),
    KernelSpectralClustering(5, n_train_samples=100),
    ConvexMixture(5),
]
VIEWS = [
    MultiViewKernelKMeans(5),
    MultiViewKernelKMeans(5, kernel="linear"),
    MultiViewKernelKMeans(5, init="k-means++"),
    MultiViewSpectralClustering(5),
    MultiViewSpectralClustering(5, kernel="linear"),
    MultiViewKernelSpectralClustering(5),
    MultiViewConvexMixture(5),
    GraphFusionClustering(5),
    GraphFusionClustering(),
]
STORED = "the kernel matrix is stored"
AGAIN = "kernel values are recomputed in every pass, tile by tile"
FEATURES = "inner products of explicit features; no kernel matrix"


@pytest.fixture(autouse=True)
def fixed_rates(request, monkeypatch):
    """Replace measurements by fixed numbers: what is tested here is what is made of them."""
    if "measures" in request.keywords:
        return

    def pairs(kernel, params, width, k, rows, kept):
        each = 1e-9 * width
        return rates.KernelRates(each, 1e-9 if kept else each, each, 1e-9 if kept else each, 1e-8 * k, each)

    def features(width, k, rows):
        each = 1e-9 * width
        return rates.KernelRates(each, each, each, each, each * k, each)

    monkeypatch.setattr(rates, "pair_rates", pairs)
    monkeypatch.setattr(rates, "given_rates", lambda k, rows: pairs("rbf", (), 1, k, rows, True))
    monkeypatch.setattr(rates, "feature_rates", features)
    monkeypatch.setattr(rates, "graph_rates", lambda kernel, params, width, k, rows: features(width, k, rows))
    monkeypatch.setattr(rates, "eigenvector_seconds", lambda kernel, params, width, count, rows: (1e-9 * count, True))
    monkeypatch.setattr(rates, "map_seconds", lambda method, kernel, params, width, components: 1e-9 * width)
    monkeypatch.setattr(rates, "disk_rate", lambda folder: 1e8)
    monkeypatch.setattr(rates, "copy_rate", lambda: 1e9)
    monkeypatch.setattr(rates, "neighbor_seconds", lambda width, rows: 1e-10 * width)
    monkeypatch.setattr(rates, "pilot_seconds", lambda make, settings, widths, rows: 1e-4 * rows * len(widths))
    for name in ("step_seconds", "decomposition_seconds", "product_seconds", "multiply_seconds"):
        monkeypatch.setattr(rates, name, lambda: 1e-9)


def way(estimator, n, d):
    return plan(estimator, n, d).path.partition("thread(s): ")[2]


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "n", "d", "expected"),
    [
        (KernelKMeans(10), 10_000, 50, STORED),
        (KernelKMeans(10), 1_000_000, 50, AGAIN),
        (KernelKMeans(10, memory_limit=10**8), 1_000_000, 50, STORED),
        (KernelKMeans(10, storage="blockwise"), 10_000, 50, AGAIN),
        (KernelKMeans(10, kernel="linear"), 1_000_000, 50, FEATURES),
        (KernelKMeans(10, kernel="linear"), 1_000, 5_000, STORED),
        (KernelKMeans(10, kernel="cosine"), 1_000_000, 50, FEATURES),
        (KernelKMeans(10, kernel="laplacian"), 1_000, 5, STORED),
        (KernelKMeans(10, approximation="nystroem"), 1_000_000, 50, FEATURES),
        (KernelKMeans(10, kernel="nearest_neighbors"), 1_000_000, 50, "a sparse graph of neighbours"),
        (KernelKMeans(10, kernel="precomputed"), 1_000, 1_000, "the kernel matrix that is given"),
        (GlobalKernelKMeans(10, kernel="linear", search="exact"), 1_000, 5, STORED),
        (GlobalKernelKMeans(10, kernel="linear"), 1_000, 5, FEATURES),
        (MultiViewKernelKMeans(10), 1_000, [5, 5], f"{STORED}, for each of 2 views"),
        (MultiViewKernelKMeans(10, kernel="linear"), 10**6, [5, 5], FEATURES),
        (MultiViewKernelKMeans(10, kernel=["linear", "rbf"]), 1_000, [5, 5], f"{FEATURES}; {STORED}"),
    ],
)
def test_the_path_is_named(estimator, n, d, expected):
    assert way(estimator, n, d).startswith(expected)


@pytest.mark.parametrize("n", [1024, 1025])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_the_path_changes_where_that_of_the_fit_does(n, kernel):
    X = np.random.default_rng(0).random((n, 2))
    op = fit_kernel(X, kernel).operator("auto", 8.0)  # 1024 x 1024 numbers are 8 MiB
    expected = AGAIN if op.recomputed else FEATURES if op.stored_matrix() is None else STORED
    assert way(KernelKMeans(2, kernel=kernel, memory_limit=8.0), n, 2) == expected


def test_views_share_the_memory_limit():
    fits = MultiViewKernelKMeans(2, memory_limit=16.0)
    assert way(fits, 1024, [3, 3]).startswith(STORED)
    assert way(fits, 1025, [3, 3]).startswith(AGAIN)


def test_other_methods_have_no_estimate_and_say_so():
    found = plan(NEMO(3), 1000, [5, 5])
    assert found.seconds is None
    assert "there is no estimate" in str(found)
    assert "GraphFusionClustering" in found.path


def test_every_method_with_an_estimate_is_an_estimator_and_is_tested_here():
    assert {type(estimator).__name__ for estimator in ONE_TABLE + VIEWS} == set(METHODS)
    assert all(hasattr(kernelweave, name) for name in METHODS)


# --- amounts ----------------------------------------------------------------------------------------------------------


def assert_grows(small, large):
    assert large.seconds > small.seconds
    assert sum(large.memory.values()) > sum(small.memory.values())
    for found in (small, large):
        low, high = found.seconds_range
        assert low <= found.seconds <= high
        assert found.seconds == pytest.approx(sum(found.seconds_parts.values()))
        for process, total in found.memory.items():
            assert total == pytest.approx(sum(found.memory_parts[process].values()), abs=20)


@pytest.mark.parametrize("estimator", ONE_TABLE + VIEWS, ids=lambda estimator: str(estimator)[:60])
def test_more_samples_take_more(estimator):
    widths = [20, 30] if estimator in VIEWS else 20
    assert_grows(plan(estimator, 2_000, widths), plan(estimator, 4_000, widths))


@pytest.mark.parametrize("estimator", ONE_TABLE + VIEWS, ids=lambda estimator: str(estimator)[:60])
def test_more_columns_take_more(estimator):
    views = estimator in VIEWS
    small = plan(estimator, 2_000, [20, 30] if views else 20)
    large = plan(estimator, 2_000, [40, 60] if views else 40)
    assert large.seconds >= small.seconds
    assert large.memory["this process"] > small.memory["this process"]


@pytest.mark.parametrize("estimator", VIEWS, ids=lambda estimator: str(estimator)[:60])
def test_more_views_take_more(estimator):
    assert_grows(plan(estimator, 2_000, [20, 30]), plan(estimator, 2_000, [20, 30, 20]))


@pytest.mark.parametrize(
    "estimator",
    [KernelKMeans, GlobalKernelKMeans, MinMaxKernelKMeans, MultiViewKernelKMeans, MultiViewSpectralClustering],
)
def test_more_clusters_take_more(estimator):
    widths = [20, 30] if "MultiView" in estimator.__name__ else 20
    assert_grows(plan(estimator(5), 2_000, widths), plan(estimator(10), 2_000, widths))


def test_starts_are_counted():
    one, ten = (plan(KernelKMeans(5, n_init=n_init), 2_000, 20).seconds_parts for n_init in (1, 10))
    assert ten["sums"] == pytest.approx(10 * one["sums"])
    assert ten["kernel matrix"] == one["kernel matrix"]
    labels = np.arange(2_000) % 5
    assert plan(KernelKMeans(5, init=labels), 2_000, 20).seconds_parts["sums"] == one["sums"]


def test_memory_holds_the_kernel_matrix_and_the_sums():
    parts = plan(KernelKMeans(5, n_init=1), 2_000, 20).memory_parts["this process"]
    assert parts["samples"] == 8 * 2_000 * 20
    assert parts["kernel matrix"] == 8 * 2_000**2
    assert parts["sums of clusters"] == 8 * 2_000 * 5


# --- workers ----------------------------------------------------------------------------------------------------------


def test_rows_are_divided_among_workers():
    few, many = (plan(KernelKMeans(5, kernel="linear"), 10**6, 50, n_workers=count) for count in (2, 4))
    assert few.path.startswith("rows in 6 block(s) on 2 worker(s)")
    assert few.memory_parts["each worker"]["rows"] == 8 * 50 * 500_000
    assert many.memory_parts["each worker"]["rows"] == 8 * 50 * 250_000
    assert many.seconds_parts["assignments"] == pytest.approx(few.seconds_parts["assignments"] / 2)
    assert many.bytes_per_step > few.bytes_per_step > 0
    assert many.memory["this process"] == few.memory["this process"] > 8 * 10**6


def test_threads_of_workers_count():
    one, two = (plan(KernelKMeans(5), 10**6, 50, n_workers=2, worker_threads=count) for count in (1, 2))
    assert two.seconds_parts["sums"] == pytest.approx(one.seconds_parts["sums"] / 2)


def test_all_rows_travel_to_all_workers_where_all_pairs_count():
    found = plan(KernelKMeans(5), 10**6, 50, n_workers=4)
    assert found.bytes_per_start > 5 * 8 * 50 * 10**6
    assert "kernel values of all pairs, never stored" in found.path


def test_features_that_do_not_fit_are_computed_again():
    model = KernelKMeans(5, approximation="random_features", memory_limit=100)
    found = plan(model, 10**6, 50, n_workers=4)
    assert "recomputed in every pass" in found.path
    assert "features" not in found.memory_parts["each worker"]
    roomy = plan(model.set_params(memory_limit=10**5), 10**6, 50, n_workers=4)
    assert "features" in roomy.memory_parts["each worker"]


def test_rows_less_a_vector_are_not_kept_twice():
    found = plan(KernelKMeans(5, kernel="linear", memory_limit=10**5), 10**6, 50, n_workers=4)
    assert "features" not in found.memory_parts["each worker"]
    assert "again" not in found.path


def test_workers_without_a_block_are_idle():
    one, five = (plan(KernelKMeans(5, kernel="linear"), 10**5, 50, n_workers=count) for count in (1, 5))
    assert "rows in 1 block(s) on 1 of 5 worker(s)" in five.path
    assert five.seconds_parts["assignments"] == one.seconds_parts["assignments"]
    assert five.memory["each worker"] == one.memory["each worker"]


def test_sums_of_many_blocks_travel_together():
    few, many = (plan(KernelKMeans(20, kernel="linear"), n, 100, n_workers=200).bytes_per_step for n in (10**8, 10**9))
    assert many < 2 * few


def test_minmax_of_vectors_never_meets_all_pairs():
    found = plan(MinMaxKMeans(5), 10**6, 50, n_workers=4)
    assert "explicit features" in found.path
    assert found.bytes_per_start < 8 * 50 * 10**6


@pytest.mark.parametrize("model", [KernelSpectralClustering, MultiViewKernelSpectralClustering])
def test_methods_trained_on_a_sample_label_all_rows_on_workers(model):
    found = plan(model(5, n_train_samples=1000), 10**7, [20, 30], n_workers=4)
    assert found.path.startswith("trained in this process on 1,000 samples")
    assert found.memory["each worker"] < 2 * 10**9
    assert found.seconds_parts["labels of all samples"] > 0
    (warning,) = plan(model(5), 10**4, [20, 30], n_workers=4).warnings
    assert "n_train_samples=5000" in warning


def test_a_global_start_is_searched_here():
    found = plan(MultiViewKernelKMeans(5, kernel="linear"), 10**6, [10, 20], n_workers=4)
    assert found.seconds_parts["search for a start here"] > 0
    assert "1 start(s)" in found.assumptions[0]


def test_the_traffic_of_a_step_is_what_travels():
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 30))[rng.integers(5, size=3000)] + rng.standard_normal((3000, 30))
    sent = {}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        planned = plan(KernelKMeans(5, kernel="linear"), 3000, 30, client=client)
        from kernelweave.foundation.config import config_context

        for steps in (1, 4):
            model = KernelKMeans(5, kernel="linear", n_init=1, max_iter=steps, init="random_partition", random_state=0)
            with config_context(client=client), pytest.warns(kernelweave.ConvergenceWarning):
                travelled = model.fit(X).communication_
            sent[steps] = travelled["bytes_sent"] + travelled["bytes_received"]
    measured = (sent[4] - sent[1]) / 3
    assert planned.path.startswith("rows in 1 block(s) on 1 of 2 worker(s) of 1 thread(s)")
    assert measured / 3 < planned.bytes_per_step < 3 * measured


# --- files ------------------------------------------------------------------------------------------------------------


def from_disk(n, memory_limit=100, disk_rate=1e8, **settings):
    model = KernelKMeans(5, kernel="linear", memory_limit=memory_limit, n_init=1)
    return plan(model, n, 50, from_disk=True, disk_rate=disk_rate, value_bytes=4, **settings)


def test_files_larger_than_the_limit_are_read_in_blocks():
    few, many = (from_disk(n) for n in (10**6, 10**7))
    assert "rows read from files in 60 block(s)" in many.path
    assert many.bytes_read_per_step == 10 * few.bytes_read_per_step == 2 * 4 * 50 * 10**7
    assert "reads     4.0 GB per step from files" in str(many)
    assert many.memory["this process"] < 4 * 50 * 10**7
    assert many.bytes_per_step == 0


def test_files_within_the_limit_are_read_into_memory():
    found = from_disk(10**6, memory_limit=1000)
    assert found.path.startswith("in this process, on")
    assert found.bytes_read_per_step == 0
    assert "they are within memory_limit" in found.assumptions[-1]
    searched = plan(GlobalKernelKMeans(5, kernel="linear"), 10**6, 50, from_disk=True)
    assert "GlobalKernelKMeans needs all samples there" in searched.assumptions[-1]


def test_the_speed_of_the_disk_counts_at_every_pass_unless_the_files_fit_into_memory(monkeypatch):
    times = {}
    for memory in (10**9, 10**12):
        monkeypatch.setattr(streaming, "machine_memory", lambda memory=memory: memory)
        times[memory] = [from_disk(10**7, disk_rate=rate).seconds_parts["reading files"] for rate in (1e8, 2e8)]
    assert times[10**9][0] == pytest.approx(2 * times[10**9][1])
    once = 4 * 50 * 10**7 * (1 / 1e8 - 1 / 2e8)
    assert times[10**12][0] - times[10**12][1] == pytest.approx(once)


def test_as_many_passes_read_a_file_as_planned(tmp_path, monkeypatch):
    X = np.random.default_rng(0).random((20_000, 20))
    np.save(tmp_path / "X.npy", X)
    read = []
    for loader in (chunks.Rows, chunks.FileRows):
        load = loader.__call__

        def counted(self, load=load):
            read.append(self.hi - self.lo)
            return load(self)

        monkeypatch.setattr(loader, "__call__", counted)
    passes = {}
    for steps in (1, 6):
        read.clear()
        model = KernelKMeans(5, kernel="linear", n_init=1, max_iter=steps, init="random_partition", memory_limit=1)
        with pytest.warns(kernelweave.ConvergenceWarning):
            model.set_params(random_state=0).fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
        passes[steps] = sum(read) / len(X)
    planned = plan(model, *X.shape, from_disk=tmp_path).bytes_read_per_step / X.nbytes
    assert planned / 3 < (passes[6] - passes[1]) / 5 < 3 * planned


# --- MinMax -----------------------------------------------------------------------------------------------------------


def test_steps_of_minmax_follow_its_exponents():
    steps = minmax_runs(MinMaxKMeans(5, p_max=0.3, p_step=0.1, max_iter=100), 1000, pairs=False).steps
    assert (steps.least, steps.most) == (4, 100)
    assert 4 < steps.usual < 30
    assert minmax_runs(MinMaxKMeans(5, max_iter=20), 1000, pairs=True).steps == (20, 20, 20)


def test_refinement_and_starts_by_minmax_take_longer():
    plain, refined = (plan(MinMaxKernelKMeans(5, refine=refine), 2000, 20).seconds for refine in (False, True))
    assert plain < refined
    drawn, raised = (plan(KernelKMeans(5, init=init), 2000, 20).seconds for init in ("random", "minmax"))
    assert drawn < raised


# --- warnings ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(planning, "machine_memory", lambda: 4 * 10**9)


@pytest.mark.parametrize(
    ("estimator", "n", "d", "said"),
    [
        (KernelKMeans(5, storage="dense"), 10**5, 5, "storage='dense' keeps 80 GB; use storage='auto'"),
        (KernelKMeans(5, memory_limit=10**6), 10**5, 5, "Lower memory_limit, which allows 1.0 TB"),
        (KernelKMeans(5, kernel="linear"), 10**7, 100, "mapped into memory"),
        (KernelSpectralClustering(5, storage="dense"), 10**5, 5, "storage='dense'"),
        (MultiViewKernelSpectralClustering(5), 20_000, [5, 5], "n_train_samples=5000"),
        (GraphFusionClustering(5), 10**7, [5, 5], "Fit on a sample"),
    ],
)
def test_too_little_memory_is_warned_of_with_a_remedy(small_machine, estimator, n, d, said):
    (warning, *_) = plan(estimator, n, d).warnings
    assert "but the machine has 4.0 GB" in warning
    assert said in warning


def test_labels_that_do_not_fit_are_warned_of_where_rows_stay_in_files(small_machine):
    (warning,) = plan(KernelKMeans(5, kernel="linear", n_init=1), 10**8, 5, from_disk=True).warnings
    assert "use workers, or fit on a sample" in warning


def test_a_run_that_fits_is_not_warned_of(small_machine):
    assert plan(KernelKMeans(5), 10_000, 5).warnings == ()


def test_a_machine_that_does_not_tell_its_memory_is_not_warned_of(monkeypatch):
    monkeypatch.setattr(planning, "machine_memory", lambda: None)
    assert plan(KernelKMeans(5, storage="dense"), 10**5, 5).warnings == ()


@pytest.mark.parametrize(
    ("estimator", "n", "said"),
    [
        (KernelKMeans(5), 10**7, "approximation='nystroem'"),
        (GlobalKernelKMeans(5, search="exact"), 10**5, "search='fast'"),
        (KernelSpectralClustering(5), 10**7, "n_train_samples=5000"),
        (KernelKMeans(5, kernel="linear"), 10**11, "Run it on workers"),
    ],
)
def test_more_than_a_day_is_warned_of_with_a_remedy(monkeypatch, estimator, n, said):
    monkeypatch.setattr(planning, "machine_memory", lambda: None)
    (warning,) = plan(estimator, n, 50).warnings
    assert warning.startswith("the fit takes about ")
    assert said in warning


def test_workers_without_enough_memory_are_warned_of_and_the_number_named_is_enough():
    model = KernelKMeans(5, kernel="linear")
    (warning,) = plan(model, 10**7, 50, n_workers=2, worker_memory=10**9).warnings
    assert "has 1.0 GB" in warning
    enough = int(warning.split("Use ")[1].split()[0].replace(",", ""))
    assert plan(model, 10**7, 50, n_workers=enough, worker_memory=10**9).warnings == ()
    assert plan(model, 10**7, 50, n_workers=enough // 2, worker_memory=10**9).warnings != ()
    (warning,) = plan(model, 10**7, 50, n_workers=2, worker_memory=10**8).warnings
    assert "Use workers with more memory" in warning


def test_what_ends_with_an_error_is_warned_of():
    assert "more than the 5 samples" in plan(KernelKMeans(8), 5, 2).warnings[0]
    assert "refuses a client" in plan(ConvexMixture(3), 1000, 5, n_workers=2).warnings[0]
    assert "no estimate for GraphFusionClustering" in plan(GraphFusionClustering(3), 1000, 5, n_workers=2).warnings[0]
    assert "storage='dense'" in plan(KernelKMeans(3, storage="dense"), 1000, 5, n_workers=2).warnings[0]
    assert "at least 2 samples" in plan(KernelKMeans(1), 1, 5).warnings[0]
    assert "Give 100 columns" in plan(KernelKMeans(3, kernel="precomputed"), 100, 5).warnings[0]


@pytest.mark.parametrize(
    ("n", "d", "settings", "said"),
    [
        (0, 5, {}, "n_samples=0"),
        (10, [], {}, r"n_features=\(\)"),
        (10, [5, 0], {}, "n_features"),
        (10, 2.5, {}, "n_features"),
        (10, 5, {"n_workers": 0}, "n_workers=0"),
        (10, 5, {"worker_memory": 1e9}, "give their number with n_workers"),
        (10, 5, {"disk_rate": 0}, "disk_rate=0 must be above 0"),
        (10, 5, {"value_bytes": 16}, "value_bytes=16 must be 1 to 8"),
        (10, 5, {"from_disk": "no/such/folder"}, "is not a folder"),
    ],
)
def test_a_shape_or_machine_that_cannot_be_is_refused(n, d, settings, said):
    with pytest.raises((ParameterError, TypeError), match=said if d != 2.5 else "float"):
        plan(KernelKMeans(3), n, d, **settings)


def test_one_kernel_too_many_is_refused():
    with pytest.raises(ParameterError, match="kernel has 3 entries for 2 views"):
        plan(MultiViewKernelKMeans(3, kernel=["rbf"] * 3), 100, [5, 5])


@pytest.mark.parametrize("settings", [{"init": "elsewhere"}, {"n_components": "many"}, {"n_clusters": 0}])
def test_parameters_that_fit_refuses_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        plan(KernelKMeans(**settings), 100, 5)


def test_an_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match=r"kernel.*gauss"):
        plan(KernelKMeans(3, kernel="gauss"), 100, 5)


# --- machine and text -------------------------------------------------------------------------------------------------


def test_the_memory_of_a_container_counts(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    limit.write_text("1000000\n")
    monkeypatch.setattr(machine, "_LIMITS", (str(limit), str(tmp_path / "absent")))
    assert machine.machine_memory() == 10**6
    limit.write_text("max\n")
    assert machine.machine_memory() is None or machine.machine_memory() > 10**6


def test_a_plan_is_read_as_text_and_as_json():
    found = plan(KernelKMeans(10), 10**6, 50, n_workers=3, worker_memory=10**6)
    text = str(found)
    assert text.splitlines()[0] == "KernelKMeans, 1,000,000 samples x 50 columns, k = 10"
    assert len(text.splitlines()) <= 20
    assert "iterations per start" in text
    assert "WARNING" in text
    values = json.loads(json.dumps(found.to_dict()))
    assert values["seconds"] == found.seconds
    assert values["n_features"] == [50]
    assert values["memory"] == found.memory


@pytest.mark.parametrize(
    ("number", "text"), [(5, "5 bytes"), (1500, "1.5 kB"), (25 * 10**9, "25 GB"), (3 * 10**18, "3000 PB")]
)
def test_sizes_in_words(number, text):
    assert size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "0.01 s"), (1.5, "1.5 s"), (119, "119 s"), (121, "2.0 min"), (3 * 86400, "3.0 days")]
)
def test_durations_in_words(seconds, text):
    assert duration(seconds) == text
