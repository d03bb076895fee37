"""The report says what is so, of every estimator and kind of data, and nothing in it can run or load anything."""

import re
import warnings
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import normalized_mutual_info_score, pairwise_distances, silhouette_samples
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave.report
from kernelweave import (
    ConvexMixture,
    GraphCut,
    IterativeSVR,
    KernelKMeans,
    KernelSpectralClustering,
    MinMaxKMeans,
    MultiViewConvexMixture,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    ParameterError,
    RatioMultipleKernelClustering,
)
from kernelweave.evaluation.describe.graphs import graph_places
from kernelweave.evaluation.describe.views import takes_graph
from kernelweave.evaluation.principal import scaling_components
from kernelweave.evaluation.report import facts as report_facts
from kernelweave.evaluation.report import text as report_text
from kernelweave.evaluation.report.charts import tick_texts, ticks
from kernelweave.evaluation.report.page import FOLDED
from kernelweave.metrics import kernel_silhouette
from kernelweave.preprocessing import ViewScaler
from kernelweave.report import ReportFacts, summary_html, write_report
from tests.estimators.discovery import blobs, for_estimators

X, Y = blobs(spread=3.0)
GAMMA = 0.02
VIEWS = {"left": X[:, :2], "right": X[:, 2:]}
NASTY = "<script>alert(1)</script>"
VOID = {"meta", "br", "wbr", "img", "link", "input"}


class Page(HTMLParser):
    """A page taken apart: elements with their attributes, text by section, and whether every tag was closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts, self.ids = [], [], {}, set()
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if dict(attrs).get("id"):
            assert dict(attrs)["id"] not in self.ids
            self.ids.add(dict(attrs)["id"])
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open[-1][0] == tag, f"{tag} closes {self.open[-1]}"
        self.open.pop()

    def handle_data(self, data):
        inside = (name for tag, name in self.open if tag == "section" or name == "verdict")
        section = next(inside, self.open[-1][0] if self.open else "")
        self.texts[section] = self.texts.get(section, "") + data

    def tags(self, name):
        return [attrs for tag, attrs in self.elements if tag == name]


def report(tmp_path, model, data, **options):
    path = write_report(tmp_path / "report.html", model, data, **options)
    return Page(path.read_text(encoding="utf-8"))


def ring_graph(n=30):
    """Three complete graphs of ten in a ring."""
    A = np.kron(np.eye(3), np.ones((n // 3, n // 3))) - np.eye(n)
    for i in (n // 3 - 1, 2 * n // 3 - 1, n - 1):
        A[i, (i + 1) % n] = A[(i + 1) % n, i] = 1.0
    return sp.csr_array(A)


# --- facts ------------------------------------------------------------------------------------------------------------


def test_public_names_change_only_on_purpose():
    assert set(kernelweave.report.__all__) == {"ReportFacts", "summary_html", "write_report"}


def test_sizes_silhouettes_and_shares_are_those_of_scikit_learn():
    model = MinMaxKMeans(3, random_state=0).fit(X)
    facts = ReportFacts.from_estimator(model, X)
    labels, expected = model.labels_, silhouette_samples(X, model.labels_)
    np.testing.assert_array_equal(facts.sizes, np.bincount(labels, minlength=3))
    np.testing.assert_array_equal(facts.silhouettes.rows, np.arange(len(X)))
    np.testing.assert_allclose(facts.silhouettes.values, expected, atol=1e-9)
    assert facts.mean_silhouette == pytest.approx(expected.mean())
    for c in range(3):
        assert facts.cluster_silhouettes[c] == pytest.approx(expected[labels == c].mean())
        assert facts.negative_shares[c] == pytest.approx((expected[labels == c] < 0).mean())


def test_the_next_best_cluster_is_the_nearest_of_the_others_on_average():
    model = MinMaxKMeans(3, random_state=0).fit(X)
    facts = ReportFacts.from_estimator(model, X)
    D = pairwise_distances(X)
    for i in range(len(X)):
        means = {c: D[i, model.labels_ == c].mean() for c in range(3) if c != model.labels_[i]}
        assert facts.silhouettes.others[i] == min(means, key=means.get)
    lowest = facts.silhouettes.values[facts.doubtful]
    assert len(lowest) == 10
    assert (np.diff(lowest) >= 0).all()
    assert lowest[-1] <= np.sort(facts.silhouettes.values)[10]


def test_model_silhouettes_of_kernel_models_are_those_of_their_feature_space():
    model = KernelKMeans(3, kernel_params={"gamma": GAMMA}, random_state=0).fit(X)
    facts = ReportFacts.from_estimator(model, X)
    D = np.sqrt(np.maximum(2 - 2 * rbf_kernel(X, gamma=GAMMA), 0))
    np.fill_diagonal(D, 0)
    expected = silhouette_samples(D, model.labels_, metric="precomputed")
    np.testing.assert_allclose(facts.model_silhouettes.values, expected, atol=1e-9)
    assert facts.mean_model_silhouette == pytest.approx(expected.mean())
    np.testing.assert_allclose(facts.silhouettes.values, silhouette_samples(X, model.labels_), atol=1e-9)
    lowest = np.argsort(expected, kind="stable")[:10]
    np.testing.assert_allclose(expected[facts.model_silhouettes.rows[facts.doubtful]], expected[lowest], atol=1e-9)
    assert set(lowest) != set(np.argsort(facts.silhouettes.values)[:10])
    points = KernelPCA(2, kernel="rbf", gamma=GAMMA).fit_transform(X)
    np.testing.assert_allclose(np.abs(facts.picture.points), np.abs(points) * scale(D), rtol=1e-6, atol=1e-7)


def scale(D):
    """What the report divides distances by."""
    return 1 / np.sqrt((D**2).sum() / (len(D) * (len(D) - 1)))


def test_a_kernel_matrix_gives_the_same_facts_as_its_features():
    K = rbf_kernel(X, gamma=GAMMA)
    by_features = KernelKMeans(3, kernel_params={"gamma": GAMMA}, init=Y).fit(X)
    by_matrix = KernelKMeans(3, kernel="precomputed", init=Y).fit(K)
    one, other = ReportFacts.from_estimator(by_features, X), ReportFacts.from_estimator(by_matrix, K)
    np.testing.assert_allclose(one.model_silhouettes.values, other.model_silhouettes.values, atol=1e-7)
    assert other.model_silhouettes is other.silhouettes
    np.testing.assert_allclose(one.picture.points, other.picture.points, atol=1e-6)
    assert [list(rows) for rows in one.typical] == [list(rows) for rows in other.typical]
    assert other.views[0].kind == "kernel"


def test_distances_of_several_views_are_the_mean_of_the_views_brought_to_one_scale():
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)
    facts = ReportFacts.from_estimator(model, VIEWS)
    parts = [pairwise_distances(view) for view in VIEWS.values()]
    D = sum(part * scale(part) for part in parts) / 2
    np.testing.assert_allclose(
        facts.model_silhouettes.values, silhouette_samples(D, model.labels_, metric="precomputed"), atol=1e-9
    )
    each = [silhouette_samples(view, model.labels_) for view in VIEWS.values()]
    np.testing.assert_allclose(facts.silhouettes.values, np.mean(each, axis=0), atol=1e-9)
    assert facts.mean_silhouette == pytest.approx(np.mean(facts.view_silhouettes), abs=1e-15)
    joined = np.hstack([view * scale(part) for view, part in zip(VIEWS.values(), parts, strict=True)])
    points = PCA(2).fit_transform(joined) / np.sqrt(2)
    np.testing.assert_allclose(np.abs(facts.picture.points), np.abs(points), atol=1e-9)
    for v, view in enumerate(VIEWS.values()):
        assert facts.view_silhouettes[v] == pytest.approx(silhouette_samples(view, model.labels_).mean())
        alone = KMeans(3, n_init=4, random_state=0).fit(view).labels_
        assert facts.view_nmi[v] == pytest.approx(normalized_mutual_info_score(model.labels_, alone))


def test_weights_are_the_models_own_with_the_names_of_the_views():
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)
    weights = ReportFacts.from_estimator(model, VIEWS).weights
    assert weights["Weights of the views"] == list(zip(["left", "right"], model.view_weights_, strict=True))
    assert weights["Shares of the kernels in the sum"] == list(
        zip(["left", "right"], model.kernel_coefficients_, strict=True)
    )
    ratio = RatioMultipleKernelClustering(random_state=0).fit(X)
    result = ReportFacts.from_estimator(ratio, X).weights["Weights of the basis kernels"]
    assert [name for name, _ in result] == ratio.kernel_names_
    assert ReportFacts.from_estimator(KernelKMeans(2).fit(X), X).weights == {}


def test_views_keep_the_order_the_model_knows():
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)
    turned = dict(reversed(VIEWS.items()))
    facts = ReportFacts.from_estimator(model, turned, sources={"left": "a.csv", "right": "b.csv"})
    assert [(view.name, view.n_features, view.source) for view in facts.views] == [
        ("left", 2, "a.csv"),
        ("right", 2, "b.csv"),
    ]


@pytest.mark.parametrize(
    ("sources", "name", "source"),
    [
        ({"wine": "data/wine.csv"}, "wine", "data/wine.csv"),
        ("wine.csv", "X", "wine.csv"),
        (["wine.csv"], "X", "wine.csv"),
        ({}, "X", ""),
        (None, "X", ""),
    ],
)
def test_a_single_table_has_its_source_and_the_name_that_goes_with_it(sources, name, source, tmp_path):
    facts = ReportFacts.from_estimator(KernelKMeans(3, random_state=0).fit(X), X, sources=sources)
    assert [(view.name, view.source) for view in facts.views] == [(name, source)]
    page = report(tmp_path, KernelKMeans(3, random_state=0).fit(X), X, sources=sources)
    assert source in page.texts["samples"]
    assert ("source" in page.texts["samples"]) == bool(source)


def test_weights_of_a_single_table_go_by_the_name_of_its_source():
    model = RatioMultipleKernelClustering(kernel=["linear", "rbf"], random_state=0).fit(X)
    facts = ReportFacts.from_estimator(model, X, sources={"wine": "wine.csv"})
    assert [name for name, _ in facts.weights["Weights of the basis kernels"]] == ["wine, linear", "wine, rbf"]


def test_names_given_with_the_data_stay_and_graphs_and_pipelines_have_sources():
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit({"left": X})
    result = ReportFacts.from_estimator(model, {"left": X}, sources={"wine": "wine.csv"}).views[0]
    assert (result.name, result.source) == ("left", "wine.csv")
    A = ring_graph()
    result = ReportFacts.from_estimator(GraphCut(3).fit(A), A, sources={"net": "net.graph"}).views[0]
    assert (result.name, result.source) == ("net", "net.graph")
    pipe = make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)).fit(X)
    result = ReportFacts.from_estimator(pipe, X, sources={"wine": "wine.csv"}).views[0]
    assert (result.name, result.source) == ("wine", "wine.csv")


def test_typical_samples_are_nearest_to_the_mean_of_their_cluster():
    model = MinMaxKMeans(3, random_state=0).fit(X)
    facts = ReportFacts.from_estimator(model, X)
    for c, result in enumerate(facts.typical):
        members = np.flatnonzero(model.labels_ == c)
        gaps = np.linalg.norm(X[members] - X[members].mean(axis=0), axis=1)
        assert result.tolist() == members[np.argsort(gaps)[:5]].tolist()


def test_tiny_and_huge_numbers_are_measured_alike():
    model = MinMaxKMeans(3, init=X[:3]).fit(X)
    usual = ReportFacts.from_estimator(model, X)
    for factor in (1e-9, 1e9):
        other = ReportFacts.from_estimator(MinMaxKMeans(3, init=factor * X[:3]).fit(factor * X), factor * X)
        np.testing.assert_allclose(other.silhouettes.values, usual.silhouettes.values, atol=1e-9)
        assert [list(rows) for rows in other.typical] == [list(rows) for rows in usual.typical]


def test_known_classes_are_compared():
    model = KernelKMeans(3, init=Y).fit(X)
    names = np.array(["one", "two", "three"])[Y]
    truth = ReportFacts.from_estimator(model, X, labels_true=names).truth
    assert truth.classes == ("one", "three", "two")
    assert truth.table.sum() == len(X)
    assert truth.nmi == pytest.approx(normalized_mutual_info_score(Y, model.labels_))
    assert truth.accuracy == pytest.approx(truth.table.max(axis=1).sum() / len(X))


def test_many_samples_are_drawn_from_with_some_of_every_cluster(monkeypatch):
    monkeypatch.setattr(report_facts, "MOST_JUDGED", 40)
    monkeypatch.setattr(report_facts, "MOST_POINTS", 50)
    many = np.vstack([X, [[500.0, 500.0, 500.0, 500.0], [501.0, 500.0, 500.0, 500.0]]])
    model = MinMaxKMeans(4, init=np.vstack([many[:3], many[-1:]]), p_init=0.0).fit(many)
    facts = ReportFacts.from_estimator(model, many, random_state=1)
    rows, judged = facts.silhouettes.rows, facts.silhouettes.judged
    assert facts.n_judged == judged.sum() == 40
    assert len(facts.picture.rows) == 50
    assert set(rows) <= set(facts.picture.rows)
    assert {60, 61} <= set(rows) - set(rows[judged])  # shown beside those that were drawn without a look at clusters
    assert len(rows) == 42
    drawn = silhouette_samples(many[rows[judged]], model.labels_[rows[judged]])
    np.testing.assert_allclose(facts.silhouettes.values[judged], drawn, atol=1e-9)
    assert facts.mean_silhouette == pytest.approx(drawn.mean())
    among_all = silhouette_samples(many[rows], model.labels_[rows])
    np.testing.assert_allclose(facts.silhouettes.values[~judged], among_all[~judged], atol=1e-9)
    assert np.isfinite(facts.cluster_silhouettes).all()
    other = ReportFacts.from_estimator(model, many, random_state=0)
    assert other.picture.rows.tolist() != facts.picture.rows.tolist()
    kernel = KernelKMeans(4, kernel_params={"gamma": GAMMA}, init=model.labels_).fit(many)
    facts = ReportFacts.from_estimator(kernel, many, random_state=1)
    rows, judged = facts.model_silhouettes.rows, facts.model_silhouettes.judged
    assert len(rows) > judged.sum() == 40
    K = rbf_kernel(many[rows[judged]], gamma=GAMMA)
    assert facts.mean_model_silhouette == pytest.approx(kernel_silhouette(K, kernel.labels_[rows[judged]]))


def test_scores_are_the_picture_of_kernel_spectral_clustering():
    model = KernelSpectralClustering(3, kernel_params={"gamma": 0.1}).fit(X)
    np.testing.assert_allclose(ReportFacts.from_estimator(model, X).picture.points, model.scores_[:, :2], atol=1e-9)
    several = MultiViewKernelSpectralClustering(3, kernel_params={"gamma": 0.1}, views=[[0, 1], [2, 3]]).fit(X)
    np.testing.assert_allclose(
        ReportFacts.from_estimator(several, X).picture.points, several.transform(X)[:, :2], atol=1e-9
    )


def test_the_nodes_of_a_graph_lie_where_the_eigenvectors_of_its_random_walk_say():
    A = ring_graph()
    places = graph_places(A, 2)
    degrees = A.sum(axis=1)
    walk = A.toarray() / degrees[:, None]
    images = walk @ places
    values = (images * places).sum(axis=0) / (places**2).sum(axis=0)
    np.testing.assert_allclose(images, places * values, atol=1e-9)
    np.testing.assert_allclose(degrees @ places, 0, atol=1e-9)
    facts = ReportFacts.from_estimator(GraphCut(3).fit(A), A)
    assert facts.mean_silhouette is None
    assert facts.mean_model_silhouette > 0.7
    assert facts.path_of == "clusters"


@pytest.mark.parametrize("n", [40, 900])
def test_graphs_in_parts_and_nodes_without_edges_have_places(n):
    blocks = [np.ones((n // 2, n // 2)) - np.eye(n // 2)] * 2 + [np.zeros((2, 2))]
    A = sp.block_diag([sp.coo_array(block) for block in blocks], format="csr")
    places = graph_places(A, 3)
    assert np.isfinite(places).all()
    np.testing.assert_allclose(places[-2:], 0)
    assert np.ptp(places[: n // 2, 0]) < 1e-4 * abs(places[0, 0] - places[n // 2, 0])


def test_main_axes_agree_between_full_and_partial_decomposition():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((700, 4)) * [4.0, 2.0, 1.0, 0.5]
    points, shares = scaling_components(pairwise_distances(Z, metric="sqeuclidean"), 2)
    expected = PCA(2).fit(Z)
    np.testing.assert_allclose(np.abs(points), np.abs(expected.transform(Z)), atol=1e-6)
    np.testing.assert_allclose(shares, expected.explained_variance_ratio_, atol=1e-6)


# --- every estimator and kind of data ---------------------------------------------------------------------------------


@for_estimators()
def test_every_estimator_gets_a_report(case, tmp_path):
    data = case.form(X)
    model = case.make().fit(data)
    before = {name: repr(value) for name, value in vars(model).items()}
    page = report(tmp_path, model, data, labels_true=Y)
    several = len(getattr(model, "kernel_weights_", ())) > 1
    expected = {"clusters", "truth", "samples", "warnings", *FOLDED} | ({"views"} if several else set())
    if takes_graph(model):
        expected = (expected | {"edges"}) - {"silhouette"}
    assert {attrs["id"] for attrs in page.tags("section")} == expected
    assert {name: repr(value) for name, value in vars(model).items()} == before
    assert case.cls.__name__ in page.texts["method"]
    assert f"n_clusters{model.n_clusters}" in page.texts["method"].replace(" ", "")
    assert len([attrs for attrs in page.tags("use") if "data-c" in attrs]) == len(X)


@for_estimators(lambda case: case.multi_view)
def test_every_multi_view_estimator_gets_a_report_of_several_views(case, tmp_path):
    dense = {name: case.form(view) for name, view in VIEWS.items()}
    for data in (dense, [sp.csr_array(np.abs(view)) for view in VIEWS.values()]):
        try:
            model = case.make().fit(data)
        except ParameterError:
            model = case.make(n_clusters=2).fit(data)
        facts = ReportFacts.from_estimator(model, data)
        assert len(facts.view_nmi) == len(facts.view_silhouettes) == 2
        assert (facts.views[0].density is None) == (data is dense)
        page = report(tmp_path, model, data)
        assert model.view_names_[1] in page.texts["views"]


@for_estimators(lambda case: case.takes_kernel)
def test_every_kernel_estimator_gets_a_report_of_a_kernel_matrix(case, tmp_path):
    K = rbf_kernel(X, gamma=0.1)
    model = case.make(**case.precomputed).fit(K)
    assert ReportFacts.from_estimator(model, K).views[0].kind == "kernel"
    report(tmp_path, model, K)


@for_estimators(lambda case: case.has("metric", "metric_params"))
def test_models_with_a_metric_are_measured_by_it(case, tmp_path):
    for metric, params in (("manhattan", None), ("minkowski", {"p": 3}), ("euclidean", None), ("jaccard", None)):
        data = np.sign(X - X.mean(axis=0)) > 0 if metric == "jaccard" else X
        model = case.make(metric=metric, metric_params=params).fit(data)
        D = pairwise_distances(data, metric=metric, **(params or {}))
        expected = silhouette_samples(D, model.labels_, metric="precomputed")
        facts = ReportFacts.from_estimator(model, data)
        np.testing.assert_allclose(facts.model_silhouettes.values, expected, atol=1e-9)
        assert facts.two_silhouettes == (metric != "euclidean")
    model = case.make(metric="precomputed").fit(pairwise_distances(X))
    facts = ReportFacts.from_estimator(model, pairwise_distances(X))
    assert facts.views[0].kind == "distances"
    np.testing.assert_allclose(facts.silhouettes.values, silhouette_samples(X, model.labels_), atol=1e-7)
    assert "metric" in report(tmp_path, model, pairwise_distances(X)).texts["silhouette"]


def test_kernel_matrices_of_several_views(tmp_path):
    kernels = {name: rbf_kernel(view, gamma=GAMMA) for name, view in VIEWS.items()}
    model = MultiViewKernelKMeans(3, kernel="precomputed", random_state=0).fit(kernels)
    facts = ReportFacts.from_estimator(model, kernels)
    assert {view.kind for view in facts.views} == {"kernel"}
    assert min(facts.view_nmi) > 0.3
    report(tmp_path, model, kernels)


def test_pipelines_are_measured_by_what_their_last_step_saw(tmp_path):
    model = make_pipeline(StandardScaler(), MinMaxKMeans(3, random_state=0)).fit(X)
    facts = ReportFacts.from_estimator(model, X)
    Z = model[:-1].transform(X)
    np.testing.assert_allclose(facts.silhouettes.values, silhouette_samples(Z, model[-1].labels_), atol=1e-9)
    page = report(tmp_path, model, X)
    assert "StandardScaler" in page.texts["method"]
    assert "make_pipeline" in page.texts["repeat"]
    views = make_pipeline(ViewScaler(), MultiViewKernelKMeans(3, kernel="linear", random_state=0)).fit(VIEWS)
    assert "ViewScaler" in report(tmp_path, views, VIEWS).texts["method"]
    alone = make_pipeline(MinMaxKMeans(3, random_state=0)).fit(X)
    assert ReportFacts.from_estimator(alone, X).method.steps == ()


def test_a_search_is_seen_through_its_best_estimator():
    best = MinMaxKMeans(3, random_state=0).fit(X)
    assert ReportFacts.from_estimator(SimpleNamespace(best_estimator_=best), X).n_clusters == 3


def test_a_table_divided_into_views_and_its_row_labels(tmp_path):
    table = pd.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(len(X))])
    model = MultiViewKernelKMeans(3, kernel="linear", views={"one": ["a", "b"], "two": ["c", "d"]}).fit(table)
    facts = ReportFacts.from_estimator(model, table)
    assert [view.name for view in facts.views] == ["one", "two"]
    assert facts.ids[7] == "row 7"
    assert "row 7" in report(tmp_path, model, table).texts["clusters"]
    plain = pd.DataFrame(X)
    assert ReportFacts.from_estimator(KernelKMeans(2).fit(X), plain).ids[7] == "7"
    parts = {"one": table[["a", "b"]], "two": table[["c", "d"]]}
    model = MultiViewKernelKMeans(3, kernel="linear").fit(parts)
    assert ReportFacts.from_estimator(model, parts).ids[7] == "row 7"


def test_a_graph_gets_a_report(tmp_path):
    A = ring_graph()
    page = report(tmp_path, GraphCut(3).fit(A), A, labels_true=np.repeat([0, 1, 2], 10))
    assert "A graph of 30 nodes" in page.texts["samples"]
    assert "as clusters were added" in page.texts["convergence"]
    assert "spectral embedding" in page.texts["clusters"]
    assert "% of the scatter" not in page.texts["clusters"]
    report(tmp_path, GraphCut(3, init=np.repeat([0, 1, 2], 10)).fit(A.toarray()), A.toarray())


def test_divergences_may_be_infinite(tmp_path):
    D = pairwise_distances(X, metric="sqeuclidean")
    D[0, 1] = np.inf
    model = ConvexMixture(3, divergence="precomputed", beta=0.05).fit(D)
    facts = ReportFacts.from_estimator(model, D)
    assert facts.views[0].kind == "divergences"
    assert np.isfinite(facts.silhouettes.values).all()
    report(tmp_path, model, D)
    pair = {"a": D, "b": pairwise_distances(X, metric="sqeuclidean")}
    pair["a"][0, 1] = 5.0
    several = MultiViewConvexMixture(3, divergence="precomputed").fit(pair)
    assert len(ReportFacts.from_estimator(several, pair).view_nmi) == 2


def test_kernels_of_every_kind_are_settled_as_the_model_settles_them(tmp_path):
    for model in (
        RatioMultipleKernelClustering(2, kernel=RBF(3.0), learn="hyperparameters", random_state=0),
        RatioMultipleKernelClustering(2, kernel=["linear", "rbf"], kernel_params=[{}, {"sigma": 4.0}], random_state=0),
        KernelKMeans(3, kernel=RBF(4.0), random_state=0),
        KernelKMeans(3, kernel=linear, random_state=0),
        IterativeSVR(2, kernel="cosine", random_state=0),
        MultiViewConvexMixture(3, views=[[0, 1], [2, 3]], divergence=["sqeuclidean", "kernel"]),
    ):
        page = report(tmp_path, model.fit(X), X)
        assert " at 0x" not in "".join(page.texts.values())


def linear(A, B):
    return A @ B.T


# --- odd data ---------------------------------------------------------------------------------------------------------


def test_one_cluster_has_no_silhouettes_and_still_a_report(tmp_path):
    model = KernelKMeans(1).fit(X)
    facts = ReportFacts.from_estimator(model, X)
    assert facts.silhouettes is None
    assert facts.mean_silhouette is None
    page = report(tmp_path, model, X, labels_true=Y)
    assert "silhouette" not in page.texts
    assert "Most doubtful" not in page.texts["samples"]
    assert "All 60 samples are in one cluster" in page.texts["verdict"]
    A = ring_graph()
    report(tmp_path, GraphCut(1).fit(A), A)
    report(tmp_path, MultiViewKernelKMeans(1, kernel="linear").fit(VIEWS), VIEWS)


def test_equal_samples_and_empty_clusters_get_a_report(tmp_path):
    same = np.full((12, 3), 0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = KernelKMeans(3, random_state=0).fit(same)
    assert model.warnings_ == tuple(str(one.message) for one in caught)
    assert report(tmp_path, model, same).texts["warnings"].count("Number of distinct clusters") == 1
    page = report(tmp_path, model, same, warnings=caught)
    assert page.texts["warnings"].count("Number of distinct clusters") == 1
    assert "2 clusters stayed empty" in page.texts["clusters"]
    assert "Number of distinct clusters" in page.texts["warnings"]
    pairs = np.repeat([[0.0, 0.0], [1.0, 0.0]], 5, axis=0)
    facts = ReportFacts.from_estimator(KernelKMeans(2, kernel="linear", init=np.repeat([0, 1], 5)).fit(pairs), pairs)
    np.testing.assert_allclose(facts.silhouettes.values, 1.0)
    assert np.ptp(facts.picture.points[:, 1]) < 1e-9


def test_two_samples_and_single_samples(tmp_path):
    two = np.array([[0.0], [1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MinMaxKMeans(2, random_state=0).fit(two)
    facts = ReportFacts.from_estimator(model, two)
    np.testing.assert_allclose(facts.silhouettes.values, 0)
    report(tmp_path, model, two)


def test_many_clusters_and_classes(tmp_path):
    rng = np.random.default_rng(0)
    many = rng.standard_normal((150, 2))
    model = KernelKMeans(60, n_init=1, random_state=0).fit(many)
    page = report(tmp_path, model, many, labels_true=np.arange(150) % 50)
    assert "30 others" in page.texts["truth"]
    assert report(tmp_path, model, many, labels_true=np.arange(150) % 20).texts["truth"].count("others") == 0


def test_a_run_that_stopped_early_is_called_so(tmp_path):
    model = KernelKMeans(3, random_state=0).fit(X)
    model.converged_ = False
    assert "stopped before it converged" in report(tmp_path, model, X).texts["convergence"]
    del model.converged_, model.objective_path_, model.objective_, model.n_iter_
    assert "does not say" in report(tmp_path, model, X).texts["convergence"]


def test_warnings_a_model_kept_are_listed_with_those_given(tmp_path):
    model = KernelKMeans(3, random_state=0).fit(X)
    assert "None were raised" in report(tmp_path, model, X).texts["warnings"]
    model.warnings_ = ["kept by the model"]
    text = report(tmp_path, model, X, warnings=["given", UserWarning("raised")]).texts["warnings"]
    assert "given" in text
    assert "raised" in text
    assert "kept by the model" in text
    assert "only one" in report(tmp_path, model, X, warnings="only one").texts["warnings"]


# --- the file ---------------------------------------------------------------------------------------------------------


def nasty_report(tmp_path):
    ids = [NASTY, "\"quotes\" & 'quotes'", "line\nbreak", "\x00\x1b\ud800", "", *map(str, range(len(X) - 5))]
    views = {f'{NASTY}"': X[:, :2], "</style>": X[:, 2:]}
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(views)
    words = {name: f"{name} {NASTY}" for name in ("title", "code", "command")}
    classes = np.array([NASTY, "b", "'c'"])[Y]
    return report(
        tmp_path, model, views, ids=ids, labels_true=classes, warnings=[NASTY], sources=[NASTY, "</p>"], **words
    )


def test_names_from_files_are_shown_as_text(tmp_path):
    page = nasty_report(tmp_path)
    assert len(page.tags("script")) == 1
    assert len(page.tags("style")) == 1
    for section in ("clusters", "views", "truth", "samples", "warnings", "repeat"):
        assert NASTY in page.texts[section], section
    assert "</style> carries them" in page.texts["verdict"]
    assert "\"quotes\" & 'quotes'" in page.texts["clusters"]
    assert f"title {NASTY}" in page.texts["h1"]
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)


def test_signs_that_cannot_be_seen_are_written_out(tmp_path):
    ids = [f"a{chr(code)}b" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200F, 0x1B)]
    model = KernelKMeans(3, random_state=0).fit(X)
    page = report(tmp_path, model, X, ids=[*ids, *map(str, range(len(X) - len(ids)))])
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200f\x1b]", text)
    for shown in (r"a\u202eb", r"a\u2066b", r"a\x1bb"):
        assert shown in page.texts["clusters"]


def test_long_names_are_shown_without_their_middle(tmp_path):
    ids = [f"first{'x' * 5000}last", "y" * 80, *map(str, range(len(X) - 2))]
    page = report(tmp_path, KernelKMeans(3, random_state=0).fit(X), X, ids=ids)
    assert "x" * 80 not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.search(r"firstx{34}…x{35}last", page.texts["clusters"])
    assert "y" * 80 in page.texts["clusters"]


def test_the_file_refers_to_nothing_outside_itself(tmp_path):
    page = nasty_report(tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for _, attrs in page.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href"):
            assert attrs.get(name, "#").startswith("#"), attrs
    assert not re.search(r"https?:|//[a-z]|url\(|@import|@font-face", text)
    targets = {attrs["href"][1:] for _, attrs in page.elements if "href" in attrs}
    assert targets <= page.ids
    policy = next(attrs["content"] for attrs in page.tags("meta") if attrs.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert not [tag for tag, _ in page.elements if tag in ("img", "link", "iframe", "object", "embed")]


def test_the_same_input_gives_the_same_file_with_no_date_in_it(tmp_path):
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)
    one = write_report(tmp_path / "one.html", model, VIEWS, random_state=3).read_bytes()
    again = write_report(tmp_path / "again.html", clone(model).fit(VIEWS), VIEWS, random_state=3).read_bytes()
    assert one == again
    assert not re.search(rb"\b20[2-9]\d-\d\d-\d\d\b", one)


def test_three_thousand_points_stay_below_two_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    many = rng.standard_normal((3500, 2)) + 8 * rng.integers(3, size=(3500, 1))
    model = MinMaxKMeans(3, n_init=1, random_state=0).fit(many)
    path = write_report(tmp_path / "many.html", model, many, ids=[f"sample number {i:06d}" for i in range(3500)])
    assert path.stat().st_size < 2_000_000
    page = Page(path.read_text(encoding="utf-8"))
    assert len([attrs for attrs in page.tags("use") if "data-c" in attrs]) == 3000
    assert "2,000 samples of 3,500, drawn at random" in page.texts["silhouette"]
    assert "3,000 samples of 3,500" in page.texts["clusters"]


def test_an_old_report_stays_until_the_new_one_is_complete(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    model = KernelKMeans(3, random_state=0).fit(X)

    def fails(*args):
        raise OSError("no space left")

    monkeypatch.setattr("kernelweave.foundation.files.os.replace", fails)
    with pytest.raises(OSError, match="no space"):
        write_report(path, model, X)
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]
    monkeypatch.undo()
    assert write_report(str(path), model, X) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_what_cannot_be_reported_is_refused_and_nothing_is_written(tmp_path):
    path = tmp_path / "report.html"
    model = KernelKMeans(3, random_state=0).fit(X)
    with pytest.raises(NotFittedError):
        write_report(path, KernelKMeans(3), X)
    with pytest.raises(ParameterError, match="X has 10 samples, but the model was fitted on 60"):
        write_report(path, model, X[:10])
    with pytest.raises(ParameterError, match="ids has 2 entries for 60 samples"):
        write_report(path, model, X, ids=["a", "b"])
    with pytest.raises(ParameterError, match="one class for each of the 60 samples"):
        write_report(path, model, X, labels_true=Y[:5])
    with pytest.raises(ParameterError, match="no labels_"):
        write_report(path, ViewScaler().fit(X), X)
    assert not path.exists()


def test_the_code_shown_by_default_runs_and_gives_the_same_labels(tmp_path, monkeypatch):
    model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel_params={"sigma": 2.0}, random_state=1)).fit(X)
    monkeypatch.chdir(tmp_path)
    names = {"X": X}
    exec(ReportFacts.from_estimator(model, X).code, names)
    np.testing.assert_array_equal(names["model"][-1].labels_, model[-1].labels_)
    assert (tmp_path / "report.html").exists()


def test_parameters_that_differ_are_apart_from_the_others():
    model = KernelKMeans(3, kernel=linear, init=Y, n_init=1, random_state=np.random.RandomState(0)).fit(X)
    method = ReportFacts.from_estimator(model, X).method
    assert method.changed == {
        "n_clusters": "3",
        "kernel": f"{linear.__module__}.linear",
        "init": "array of shape (60,)",
        "n_init": "1",
        "random_state": "RandomState(MT19937)",
    }
    assert method.others["max_iter"] == "300"
    assert method.sentence.startswith("Kernel k-means, weighted or not")


# --- small parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (0.56789, "0.5679"),
        (12345.678, "12,346"),
        (-2.5, "\N{MINUS SIGN}2.500"),
        (1.5e-7, "1.500 \N{MULTIPLICATION SIGN} 10⁻⁷"),
        (np.inf, "∞"),
        (np.nan, "\N{EN DASH}"),
    ],
)
def test_numbers_read_well(value, text):
    assert report_text.number(value) == text


@pytest.mark.parametrize(("share", "text"), [(0.0, "0 %"), (0.0001, "under 0.1 %"), (0.123, "12.3 %"), (1.0, "100 %")])
def test_shares_read_well(share, text):
    assert report_text.percent(share) == text


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 17), (1e9, 1.0001e9), (1e-12, 3e-12), (5, 5)])
def test_ticks_are_round_numbers_within_the_range(low, high):
    result = ticks(low, high)
    assert 1 <= len(result) <= 11
    assert all(low - 1e-9 * abs(low) <= value <= high + 1e-9 * abs(high) for value in result)
    texts, _ = tick_texts(result)
    assert len(set(texts)) == len(texts)
    assert max(map(len, texts)) <= 12


@for_estimators()
def test_a_fragment_for_notebooks_of_every_estimator(case):
    assert "not fitted" in summary_html(case.make())
    model = case.make().fit(case.form(X))
    text = summary_html(model)
    Page(text)
    assert "not fitted" not in text
    assert case.cls.__name__ in text
    assert str(np.bincount(model.labels_)[0]) in text
    assert "<script" not in text
    assert ("weights of the views" in text) == hasattr(model, "view_weights_")


def test_the_fragment_takes_pipelines_and_strange_names():
    views = {NASTY: X[:, :2], "b": X[:, 2:]}
    model = make_pipeline(ViewScaler(), MultiViewKernelKMeans(3, kernel="linear", random_state=0))
    assert "not fitted" in summary_html(model)
    text = summary_html(model.fit(views))
    assert NASTY not in text
    assert "&lt;script&gt;" in text


@for_estimators()
def test_notebooks_show_one_box_with_the_diagram_folded_into_it(case):
    model = case.make()
    box = summary_html(model).removesuffix("</div>")
    assert model._repr_html_().startswith(box)
    model.fit(case.form(X))
    box = summary_html(model).removesuffix("</div>")
    shown = model._repr_mimebundle_()["text/html"]
    assert shown.startswith(f"{box}<details")
    assert shown.index("<details") < shown.index("sk-top-container") < shown.rindex("</details></div>")
