"""One silhouette: searches, the command line, the report, plots and the description of a model say the same number.

Numbers are compared without a tolerance: they are one number, not several that agree.
"""

import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances, silhouette_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    ConvexMixture,
    GraphCut,
    KernelKMeans,
    KernelSpectralClustering,
    KMedoids,
    MinMaxKMeans,
    MultiViewConvexMixture,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    NgSpectralClustering,
    ParameterError,
    RatioMultipleKernelClustering,
    load_model,
)
from kernelweave.cli import main
from kernelweave.evaluation.describe import describe
from kernelweave.evaluation.sampling import MOST_JUDGED, judged_samples
from kernelweave.metrics import kernel_silhouette
from kernelweave.model_selection import choose_n_clusters, score_clustering
from kernelweave.preprocessing import ViewScaler
from kernelweave.report import ReportFacts, write_report
from tests.estimators.discovery import blobs, for_estimators

X, Y = blobs(spread=3.0)
VIEWS = {"left": X[:, :2], "right": X[:, 2:]}
K = rbf_kernel(X, gamma=0.02)
D = pairwise_distances(X)
RNG = np.random.default_rng(0)
MANY = RNG.standard_normal((MOST_JUDGED + 700, 2)) + 5.0 * RNG.integers(3, size=(MOST_JUDGED + 700, 1))

CASES = {
    "features": (MinMaxKMeans(3, random_state=0), X),
    "a kernel on features": (KernelKMeans(3, kernel_params={"gamma": 0.02}, random_state=0), X),
    "sparse features": (KernelKMeans(3, random_state=0), sp.csr_array(np.abs(X))),
    "a graph of neighbours": (NgSpectralClustering(3, kernel="nearest_neighbors", random_state=0), X),
    "several kernels": (RatioMultipleKernelClustering(kernel=["linear", "rbf"], random_state=0), X),
    "views": (MultiViewKernelKMeans(3, random_state=0), VIEWS),
    "views in a list": (MultiViewKernelSpectralClustering(3, kernel_params={"sigma": 6.0}), list(VIEWS.values())),
    "views of a table": (MultiViewKernelKMeans(3, views=[[0, 1], [2, 3]], random_state=0), X),
    "labels of every view": (
        MultiViewKernelSpectralClustering(3, kernel_params={"sigma": 6.0}, assignment="per_view"),
        VIEWS,
    ),
    "views of two kinds": (
        MultiViewKernelKMeans(3, kernel={"left": "rbf", "right": "precomputed"}, random_state=0),
        {"left": X[:, :2], "right": K},
    ),
    "a kernel matrix": (KernelKMeans(3, kernel="precomputed", random_state=0), K),
    "a sparse kernel matrix": (KernelSpectralClustering(2, kernel="precomputed"), sp.csr_array(K)),
    "distances": (KMedoids(3, metric="precomputed"), D),
    "a metric": (KMedoids(3, metric="manhattan"), X),
    "divergences": (ConvexMixture(3, divergence="precomputed"), D**2),
    "divergences of views": (MultiViewConvexMixture(3, divergence="precomputed"), {"a": D**2, "b": D}),
    "many samples": (MinMaxKMeans(3, n_init=1, random_state=0), MANY),
    "a kernel on many samples": (KernelKMeans(3, n_init=1, random_state=0), MANY),
}


@cache
def described(name):
    """Return the fitted model of a case, its data, and the description, which several tests compare with others."""
    model, data = CASES[name]
    model.fit(data)
    return model, data, describe(model, data)


@pytest.mark.parametrize("name", CASES)
def test_everybody_says_the_same(name):
    model, data, description = described(name)
    assert description.silhouette is not None
    assert score_clustering(model, data, random_state=0) == description.silhouette
    facts = ReportFacts.from_estimator(model, data)
    assert facts.mean_silhouette == description.silhouette
    assert facts.n_judged == len(description.silhouettes.rows)
    assert facts.silhouettes.values[facts.silhouettes.judged].mean() == pytest.approx(description.silhouette)
    if len(facts.views) > 1:
        assert np.mean(facts.view_silhouettes) == description.silhouette


@for_estimators(lambda case: not case.pairwise)
def test_everybody_says_the_same_of_every_estimator(case):
    data = case.form(X)
    model = case.make().fit(data)
    assert describe(model, data).silhouette == score_clustering(model, data)
    assert ReportFacts.from_estimator(model, data).mean_silhouette == score_clustering(model, data)


def test_the_picture_of_silhouettes_has_the_same_mean():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from kernelweave.plots import SilhouetteDisplay

    for name in CASES:
        model, data, description = described(name)
        display = SilhouetteDisplay.from_estimator(model, data, ax=Figure().subplots())
        assert display.line_.get_xdata()[0] == pytest.approx(description.silhouette, abs=1e-12)
    pipe = make_pipeline(StandardScaler(), MinMaxKMeans(3, random_state=0)).fit(1000.0 * X * [1, 1, 5, 5])
    display = SilhouetteDisplay.from_estimator(pipe, 1000.0 * X * [1, 1, 5, 5], ax=Figure().subplots())
    expected = ReportFacts.from_estimator(pipe, 1000.0 * X * [1, 1, 5, 5]).mean_silhouette
    assert display.silhouettes.mean() == pytest.approx(expected, abs=1e-12)


def test_parameters_of_a_model_do_not_change_the_measure():
    labels = KMeans(3, n_init=1, random_state=0).fit(X).labels_
    kernels = [{"kernel_params": {"gamma": gamma}} for gamma in (1e-4, 0.02, 1.0)] + [{"kernel": "cosine"}]
    numbers = set()
    for kernel in kernels:
        model = KernelKMeans(3, random_state=0, **kernel).fit(X)
        model.labels_ = labels
        numbers |= {describe(model, X).silhouette, ReportFacts.from_estimator(model, X).mean_silhouette}
    assert len(numbers) == 1
    assert numbers.pop() == pytest.approx(silhouette_score(X, labels))


def test_model_silhouettes_go_by_another_name_and_another_measure():
    model = KernelKMeans(3, kernel_params={"gamma": 0.02}, random_state=0).fit(X)
    facts = ReportFacts.from_estimator(model, X)
    assert facts.mean_model_silhouette == pytest.approx(kernel_silhouette(K, model.labels_))
    assert abs(facts.mean_model_silhouette - facts.mean_silhouette) > 0.1


def test_after_the_steps_of_a_pipeline_the_last_step_says_the_same():
    data = 1000.0 * X * [1, 1, 5, 5]
    pipe = make_pipeline(StandardScaler(), MinMaxKMeans(3, random_state=0)).fit(data)
    received = pipe[:-1].transform(data)
    assert describe(pipe, data).silhouette == score_clustering(pipe[-1], received)
    assert describe(pipe, data).silhouette == ReportFacts.from_estimator(pipe, data).mean_silhouette


def test_graphs_have_model_silhouettes_alone():
    A = (K > 0.3).astype(float)
    np.fill_diagonal(A, 0.0)
    model = GraphCut(3).fit(A)
    assert describe(model, A).silhouette is None
    facts = ReportFacts.from_estimator(model, A)
    assert facts.mean_silhouette is facts.silhouettes is None
    assert facts.mean_model_silhouette > 0.5
    with pytest.raises(ParameterError, match="takes a graph"):
        score_clustering(model, A)


def test_one_cluster_has_no_silhouette_and_the_worst_score():
    model = KernelKMeans(1).fit(X)
    assert describe(model, X).silhouette is None
    assert score_clustering(model, X) == -1.0
    views = torn_views()
    each = MultiViewKernelSpectralClustering(2, kernel_params={"sigma": 1.5}, assignment="per_view").fit(views)
    each.view_labels_ = np.vstack([each.view_labels_[0], np.zeros_like(each.view_labels_[1])])
    half = silhouette_score(views["one"], each.view_labels_[0])
    assert score_clustering(each, views) == describe(each, views).silhouette == pytest.approx((half - 1.0) / 2)


def torn_views():
    return {"one": X[:, :2], "two": X[::-1, 2:]}


def test_labels_of_every_view_go_with_their_view_whatever_the_order_of_views():
    model = MultiViewKernelSpectralClustering(3, kernel_params={"sigma": 3.0}, assignment="per_view").fit(VIEWS)
    model.view_labels_ = np.vstack([model.view_labels_[0], np.roll(model.view_labels_[1], 1)])
    backwards = dict(reversed(VIEWS.items()))
    assert score_clustering(model, backwards) == pytest.approx(score_clustering(model, VIEWS))
    assert describe(model, backwards).silhouette == describe(model, VIEWS).silhouette


# --- many samples -----------------------------------------------------------------------------------------------------


def test_many_samples_are_judged_by_one_draw_for_a_seed_and_it_is_said(tmp_path):
    model = MinMaxKMeans(3, n_init=1, random_state=0).fit(MANY)
    rows = judged_samples(len(MANY), MOST_JUDGED, 5)
    expected = silhouette_score(MANY[rows], model.labels_[rows])
    silhouette = describe(model, MANY, random_state=5).silhouette
    assert silhouette == pytest.approx(expected)
    assert score_clustering(model, MANY, random_state=5) == silhouette
    assert describe(model, MANY, random_state=6).silhouette != silhouette
    page = write_report(tmp_path / "r.html", model, MANY, random_state=5).read_text(encoding="utf-8")
    assert f"<dt>silhouette (of 2,000 samples)</dt><dd>{expected:.2f}</dd>" in page
    assert "Computed on 2,000 samples of 2,700, drawn at random." in page
    chosen = choose_n_clusters(MinMaxKMeans(n_init=1, random_state=0), MANY, [3], random_state=5)
    assert chosen.scores[0] == silhouette


# --- the command line -------------------------------------------------------------------------------------------------

IDS = [f"s{i:02}" for i in range(len(X))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, block in (("table", X), ("left", X[:, :2] * 100.0), ("right", X[:, 2:]), ("gaps", D), ("similar", K)):
        pd.DataFrame(block, index=pd.Index(IDS, name="id")).add_prefix(name).to_csv(f"{name}.csv")
    pd.DataFrame(K, index=pd.Index(IDS, name="id"), columns=IDS).to_csv("similar.csv")
    edges = [f"{IDS[i]} {IDS[j]}" for i in range(len(K)) for j in range(i) if K[i, j] > 0.1]
    (tmp_path / "net.txt").write_text("\n".join(edges) + "\n")
    pd.DataFrame(MANY).add_prefix("c").to_csv("many.csv", index=False)
    return tmp_path


def run(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr()


def tiles(path):
    text = path.read_text(encoding="utf-8")
    return dict(re.findall(r"<div><dt>([^<]*)</dt><dd(?: class=\"long\")?>([^<]*)</dd></div>", text))


def table(name):
    return pd.read_csv(f"{name}.csv", index_col=0).to_numpy()


COMMANDS = {
    "features": (["table.csv"], lambda: table("table")),
    "scaled features": (["left.csv", "--scale", "standard"], lambda: table("left")),
    "views": (["left.csv", "right.csv"], lambda: {name: table(name) for name in ("left", "right")}),
    "a method by name": (["table.csv", "--method", "minmax-kmeans"], lambda: table("table")),
    "a kernel": (["table.csv", "--method", "kernel-kmeans", "--kernel", "rbf"], lambda: table("table")),
    "a kernel matrix": (["--kernel-matrix", "similar.csv"], lambda: table("similar")),
    "distances": (["gaps.csv", "--method", "kmedoids", "--set", "metric=precomputed"], lambda: table("gaps")),
    "a range": (["table.csv"], lambda: table("table")),
    "many samples": (["many.csv"], lambda: pd.read_csv("many.csv").to_numpy()),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.filterwarnings("ignore")
def test_the_command_line_says_the_same(name, folder, capsys):
    arguments, read = COMMANDS[name]
    number = "2:4" if name == "a range" else "3"
    shown = run(capsys, "cluster", *arguments, "-k", number, "-o", "out", "--report", "r.html").err
    summary = json.loads((folder / "out" / "summary.json").read_text())
    silhouette = summary["silhouette"]
    drawn = name == "many samples"
    words = " (2,000 samples drawn)" if drawn else ""
    assert re.search(rf"^silhouette +{silhouette:.3f}{re.escape(words)} *$", shown, flags=re.MULTILINE)
    assert summary["silhouette_samples"] == (2000 if drawn else len(X))
    told = tiles(folder / "r.html")
    chosen_by_model = name == "a range"  # then its own confidence says how clear the clusters are
    assert ("silhouette" in told or drawn) is not chosen_by_model
    if not chosen_by_model:
        assert told["silhouette (of 2,000 samples)" if drawn else "silhouette"] == f"{silhouette:.2f}"
    model, data = load_model(folder / "out" / "model.kwm"), read()
    described_later = describe(model, data).silhouette
    assert described_later == pytest.approx(silhouette, abs=1e-12)
    assert ReportFacts.from_estimator(model, data).mean_silhouette == described_later
    final, received = (model[-1], model[:-1].transform(data)) if hasattr(model, "steps") else (model, data)
    assert score_clustering(final, received, random_state=0) == described_later
    files = [argument for argument in arguments if argument.endswith(".csv")]
    option = ["--kernel-matrix"] if name == "a kernel matrix" else []
    run(capsys, "report", "out/model.kwm", *option, *files, "-o", "later.html")
    assert tiles(folder / "later.html") == tiles(folder / "r.html")


@pytest.mark.filterwarnings("ignore")
def test_a_graph_has_no_silhouette_on_the_command_line_and_none_in_its_report(folder, capsys):
    shown = run(capsys, "cluster", "--graph", "net.txt", "-k", 3, "-o", "out", "--report", "r.html").err
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["silhouette"] is summary["silhouette_samples"] is None
    assert "silhouette" not in shown
    told = tiles(folder / "r.html")
    assert not any("silhouette" in name for name in told)
    assert told["with stronger ties to another cluster"] == "0 %"


@pytest.mark.filterwarnings("ignore")
def test_methods_are_compared_by_the_same_silhouette(folder, capsys):
    options = ("-k", 3, "--method", "kernel-kmeans", "--method", "minmax-kmeans", "--scale", "none")
    whole = json.loads(run(capsys, "compare", "table.csv", *options, "--json").out)
    for one in whole["methods"]:
        run(capsys, "cluster", "table.csv", "-k", 3, "--method", one["method"], "--scale", "none", "-o", one["method"])
        summary = json.loads((folder / one["method"] / "summary.json").read_text())
        assert summary["silhouette"] == one["silhouette"]
    many = json.loads(run(capsys, "compare", "many.csv", "-k", 3, "--method", "minmax-kmeans", "--json").out)
    assert many["methods"][0]["silhouette_samples"] == 2000


def test_scaling_is_part_of_what_the_model_received():
    data = {"left": X[:, :2] * 100.0, "right": X[:, 2:]}
    pipe = make_pipeline(ViewScaler(), MultiViewKernelKMeans(3, random_state=0)).fit(data)
    assert describe(pipe, data).silhouette == score_clustering(pipe[-1], pipe[:-1].transform(data))
