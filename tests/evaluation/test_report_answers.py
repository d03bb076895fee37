"""What the report answers first: how clear clusters are, what carries them, what to distrust; and its map and PDF."""

import stat
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_samples

from kernelweave import (
    GraphCut,
    GraphFusionClustering,
    KernelKMeans,
    KernelSpectralClustering,
    MultiViewKernelKMeans,
    ParameterError,
)
from kernelweave.datasets import make_two_rings
from kernelweave.evaluation import principal
from kernelweave.evaluation.explain.graphs import explain_graph
from kernelweave.evaluation.principal import planar_layout
from kernelweave.evaluation.report import facts as report_facts
from kernelweave.evaluation.report import pdf
from kernelweave.evaluation.report.clearness import (
    CLEAR_TIMES,
    FAINT_TIMES,
    Clearness,
    by_edges,
    by_silhouettes,
    edges_beside_chance,
)
from kernelweave.evaluation.report.maps import HEIGHT, LABEL_FIGURE, LABEL_HEIGHT, WIDTH, label_places
from kernelweave.evaluation.report.page import page
from kernelweave.evaluation.report.picture import main_axes
from kernelweave.evaluation.report.text import breakable
from kernelweave.evaluation.report.trust import (
    follows_absence,
    numbers_tried,
    share_tied_elsewhere,
    tiny_clusters,
    views_for_and_against,
)
from kernelweave.evaluation.report.verdict import answer, distrust, listed
from kernelweave.explain import explain_clusters
from kernelweave.foundation.errors import MissingPackageError
from kernelweave.report import ReportFacts, write_report
from tests.estimators.discovery import blobs

X, Y = blobs(spread=3.0)
VIEWS = {"left": X[:, :2], "right": X[:, 2:]}


@pytest.fixture(scope="module")
def facts():
    """Facts of three clear clusters in two views."""
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)
    return ReportFacts.from_estimator(model, VIEWS)


def two_cliques():
    """Two complete graphs of five, joined by one edge."""
    A = np.kron(np.eye(2), np.ones((5, 5))) - np.eye(10)
    A[4, 5] = A[5, 4] = 1.0
    return sp.csr_array(A), np.repeat([0, 1], 5)


# --- clearness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_noise_is_faint_in_few_and_many_columns(d, kernel):
    noise = np.random.default_rng(1).standard_normal((250, d))
    model = KernelKMeans(
        3, kernel=kernel, kernel_params={"gamma": "median"} if kernel == "rbf" else None, random_state=0
    )
    clearness = ReportFacts.from_estimator(model.fit(noise), noise).clearness
    assert clearness.level == "faint"


def test_clusters_far_apart_are_clear_and_rings_are_so_by_the_kernel_alone():
    far, _ = make_blobs(150, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    clearness = ReportFacts.from_estimator(KernelKMeans(3, kernel="linear", random_state=0).fit(far), far).clearness
    assert (clearness.level, clearness.judged_by) == ("clear", "silhouette")
    rings, _ = make_two_rings(random_state=0)
    model = KernelKMeans(2, kernel_params={"sigma": 0.5}, random_state=0).fit(rings)
    clearness = ReportFacts.from_estimator(model, rings).clearness
    assert (clearness.level, clearness.judged_by) == ("clear", "model silhouette")


def test_the_better_of_two_silhouettes_counts_each_beside_its_own_cloud():
    assert by_silhouettes((0.2, 0.1), (0.3, 0.2)) == Clearness("clear", "silhouette", 0.2, 0.1)
    assert by_silhouettes((0.1, 0.1), (0.3, 0.2)) == Clearness("overlapping", "model silhouette", 0.3, 0.2)
    assert by_silhouettes((0.1, 0.1), None).level == "faint"
    assert by_silhouettes((FAINT_TIMES, 1.0), None).level == "overlapping"
    assert by_silhouettes((CLEAR_TIMES, 1.0), None).level == "clear"
    assert by_silhouettes(None, None) is None


def test_few_samples_say_nothing_about_clearness():
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(X[:14])
    few = ReportFacts.from_estimator(model, X[:14])
    assert few.clearness is None
    assert "too few samples to say how clearly" in answer(few)


def test_edges_are_compared_with_chance_by_hand():
    A, labels = two_cliques()
    graph = explain_graph(A, labels, 2)
    # 21 edges, one of them between halves of equal degree, where chance puts half of them
    assert edges_beside_chance(graph) == pytest.approx(1 / 21 / 0.5)
    assert by_edges(graph).level == "clear"
    mixed = explain_graph(A, np.tile([0, 1], 5), 2)
    assert by_edges(mixed).level == "faint"
    assert by_edges(explain_graph(A, np.zeros(10, dtype=int), 1)) is None


def test_a_model_that_chose_the_number_is_taken_at_its_word():
    far, _ = make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    model = GraphFusionClustering(random_state=0).fit(far)
    known = ReportFacts.from_estimator(model, far)
    assert (known.clearness.level, known.clearness.judged_by) == ("clear", "confidence")
    assert "the model chose their number, with high confidence" in answer(known)
    assert "given" not in distrust(known, 0)
    assert "their number, which the model is not sure of" in distrust(replace(known, confidence="low"), 0)
    np.testing.assert_array_equal(known.tried.counts, model.n_clusters_path_["n_clusters"])
    text = page(known)
    assert 'id="counts"' in text
    assert unescape(text).count(model.verdict_) == 1
    model.confidence_, model.n_clusters_, model.labels_ = "none", 1, np.zeros(120, dtype=int)
    assert answer(ReportFacts.from_estimator(model, far)).startswith("No clear clusters were found in 120 samples")


# --- the two sentences ------------------------------------------------------------------------------------------------


def test_the_answer_names_clusters_clearness_and_views(facts):
    assert answer(facts).startswith("3 clusters in 60 samples stand clearly apart (silhouette 0.6")
    assert answer(replace(facts, carrying=(0, 1))).endswith("and both views carry them.")
    assert answer(replace(facts, carrying=(1,))).endswith("and right carries them.")
    assert answer(replace(facts, carrying=())).endswith("and no single view carries them.")
    assert "hardly stand apart" in answer(replace(facts, clearness=Clearness("faint", "silhouette", 0.1, 0.1)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clearness": Clearness("faint", "silhouette", 0.1, 0.1)}, "parts of one cloud"),
        ({"doubtful_share": 0.08}, "the 8 % of samples that lie nearer to another cluster"),
        ({"tiny": (2,), "sizes": np.array([30, 28, 2])}, "cluster 2, of 2 samples"),
        ({"tiny": (1, 2), "sizes": np.array([57, 1, 2])}, "clusters 1 and 2, of at most 2 samples each"),
        ({"sizes": np.array([58, 1, 1])}, "cluster 0, which holds 96.7 % of all samples"),
        ({"against": (0,)}, "left, which does not show these clusters"),
        ({"absence": 0.4}, "follow which views samples are in"),
        ({"left_out": 12}, "12 samples of the input were left out"),
        ({"converged": False}, "stopped before it converged"),
    ],
)
def test_every_doubt_has_its_words(facts, change, said):
    plain = replace(facts, doubtful_share=0.0, tiny=(), against=(), absence=None, converged=True)
    assert distrust(plain, 0) == "There is no evidence against them, but their number was given, not found."
    text = distrust(replace(plain, **change), 0)
    assert text.startswith("Distrust ")
    assert said in text
    assert "what 2 warnings below are about" in distrust(plain, 2)
    assert "doubtful" not in distrust(replace(plain, doubtful_share=0.04), 0)


def test_names_in_a_sentence_are_few():
    assert listed(["a"], "view") == "a"
    assert listed(["a", "b"], "view") == "a and b"
    assert listed(list("abcd"), "view") == "a, b, c and d"
    assert listed(list("abcdef"), "view") == "a, b, c and 3 other views"


# --- what carries clusters, and what speaks against them --------------------------------------------------------------


def test_views_carry_clusters_by_agreement_then_weights_then_silhouettes():
    assert views_for_and_against([0.9, 0.4, 0.1], [0.1, 0.1, 0.8], [0.1, 0.1, 0.1]) == ((0,), (2,))
    assert views_for_and_against([], [0.7, 0.2, 0.1], [0.3, 0.2, -0.1]) == ((0,), (2,))
    assert views_for_and_against([np.nan] * 3, [1 / 3] * 3, [0.3, 0.2, 0.1]) == ((0, 1), ())
    assert views_for_and_against([], [], [0.3]) == ((), ())


def test_tiny_clusters_are_small_by_themselves_or_beside_an_equal_share():
    assert tiny_clusters(np.array([50, 4, 5])) == (1,)
    assert tiny_clusters(np.array([1000, 1000, 60])) == (2,)
    assert tiny_clusters(np.array([3])) == ()
    assert tiny_clusters(np.array([50, 0])) == ()


def test_nodes_tied_to_another_cluster_are_counted():
    A, labels = two_cliques()
    assert share_tied_elsewhere(A, labels, 2) == 0.0
    moved = labels.copy()
    moved[0] = 1
    assert share_tied_elsewhere(A, moved, 2) == pytest.approx(0.1)


def test_clusters_that_follow_absence_are_noticed():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 60, 3))
    right[:30] = np.nan
    model = GraphFusionClustering(2, random_state=0)
    with pytest.warns(match="agree with which views|contradict|shows no groups|No view|alone"):
        model.fit([left, right])
    model.labels_ = np.repeat([0, 1], 30)
    known = ReportFacts.from_estimator(model, [left, right])
    assert known.absence == pytest.approx(1.0)
    assert "follow which views" in distrust(known, 0)
    assert follows_absence((), model.labels_) is None


def test_numbers_that_the_caller_tried_are_shown(facts):
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(X)
    known = ReportFacts.from_estimator(model, X, tried={4: 0.2, 3: 0.6, 2: None})
    assert known.tried.counts.tolist() == [2, 3, 4]
    np.testing.assert_array_equal(known.tried.scores, [np.nan, 0.6, 0.2])
    assert "given" not in distrust(known, 0)
    text = page(known)
    assert 'class="chosen"' in text
    assert "3 was chosen" in text
    assert "the mean silhouette of each" in text
    assert numbers_tried(model, {3: 0.6}, "silhouette", 3) is None
    by_edges = ReportFacts.from_estimator(model, X, tried={4: 0.2, 3: 0.6}, criterion="modularity")
    assert "share of edges within clusters" in page(by_edges)
    assert 'id="counts"' not in page(facts)


# --- cards ------------------------------------------------------------------------------------------------------------


def test_cards_tell_the_columns_that_explain_clusters_tells():
    table = pd.DataFrame(X, columns=["alcohol", "proline", "<b>bold</b>", "ash"])
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(table)
    known = ReportFacts.from_estimator(model, table)
    explained = explain_clusters(model, table)
    for c in range(3):
        told = [effect for effect in explained.top(c, 4) if effect.separates]
        assert list(known.effects[c]) == told
        assert told
    text = page(known)
    assert "<b>bold" not in text
    assert "<strong>alcohol</strong>" in text
    named = ReportFacts.from_estimator(model, X, feature_names=["p", "q", "r", "s"])
    assert {effect.column for effect in named.effects[0]} <= set("pqrs")


def test_many_samples_are_explained_by_some(monkeypatch):
    monkeypatch.setattr(report_facts, "MOST_EXPLAINED", 40)
    known = ReportFacts.from_estimator(KernelKMeans(3, kernel="linear", random_state=0).fit(X), X)
    assert known.n_explained == 40
    assert max(effect.n_inside + effect.n_outside for effect in known.effects[0]) == 40
    assert "of 40 samples drawn at random" in page(known)


def test_graphs_have_conductance_edges_and_hubs_and_no_silhouettes():
    A, labels = two_cliques()
    known = ReportFacts.from_estimator(GraphCut(2, init=labels).fit(A), A)
    text = page(known)
    assert "silhouette" not in text.split("<script>")[0].split("</style>")[1]
    assert "conductance 0.05" in text  # 1 of 21 ends leads out
    assert "Edges between clusters have weight 1 of 21 (4.8 %), 9.5 %" in text
    assert "The normalized cut is 0.0952" in text
    assert "Hubs:" in text
    assert "percent" not in known.picture.axes[0]
    assert "10 nodes stand clearly apart" in answer(known)


def test_long_names_may_break_after_signs_and_not_in_words():
    assert breakable("elongation_of_the_rete") == "elongation_<wbr>of_<wbr>the_<wbr>rete"
    assert breakable("a & b.c") == "a &amp; b.<wbr>c"
    assert breakable("<b>") == "&lt;b&gt;"
    assert breakable("petalWidth") == "petal<wbr>Width"


# --- maps -------------------------------------------------------------------------------------------------------------


def test_many_clusters_of_an_embedding_do_not_lie_on_one_spot():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(24), 6)
    many = 4.0 * rng.normal(size=(24, 6))[y] + rng.normal(size=(144, 6))
    model = GraphFusionClustering(24, random_state=0).fit(many)
    known = ReportFacts.from_estimator(model, many)
    points = known.picture.points
    # A linear map of the joint embedding, all of it.
    Z = np.column_stack([model.embedding_, np.ones(len(y))])
    solution = np.linalg.lstsq(Z, points, rcond=None)[0]
    np.testing.assert_allclose(Z @ solution, points, atol=1e-9)
    assert np.linalg.matrix_rank(solution[:-1]) == 2
    # Every cluster has a place of its own: the next one is farther off than its samples are, mostly.
    centers = np.stack([points[model.labels_ == c].mean(axis=0) for c in range(24)])
    apart = np.sort(cdist(centers, centers), axis=1)[:, 1]
    spread = np.linalg.norm(points - centers[model.labels_], axis=1).mean()
    flat = main_axes(model.embedding_)
    piled = np.stack([flat[model.labels_ == c].mean(axis=0) for c in range(24)])
    assert apart.min() > 2.0 * spread
    assert np.median(apart) > 4.0 * np.median(np.sort(cdist(piled, piled), axis=1)[:, 1])
    text = page(known)
    assert "laid flat: the centres of the clusters keep their distances as well as a plane allows" in text
    assert "The directions have no meaning." in text
    assert "Across" not in text


def test_scores_and_graphs_of_many_clusters_are_laid_flat_too():
    centers = 9.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0]])
    many, _ = make_blobs(100, centers=centers, random_state=0)
    model = KernelSpectralClustering(5, kernel_params={"gamma": "median"}, random_state=0).fit(many)
    assert "scores of the model, laid flat" in ReportFacts.from_estimator(model, many).picture.made_by
    A = sp.block_diag([np.ones((6, 6)) - np.eye(6)] * 4, format="csr")
    known = ReportFacts.from_estimator(GraphCut(4, random_state=0).fit(A), A)
    assert "spectral embedding of the graph" in known.picture.made_by
    assert "laid flat" in known.picture.made_by
    fused = ReportFacts.from_estimator(GraphFusionClustering(4, view_types="graph", random_state=0).fit(A), A)
    assert "joint embedding of the nodes, in which the model found the clusters" in fused.picture.made_by


@pytest.mark.parametrize("n", [4, 24])
def test_a_layout_keeps_distances_of_the_plane_and_spreads_points_that_are_equally_far(n):
    places = np.random.default_rng(n).normal(size=(n, 2))
    np.testing.assert_allclose(pdist(planar_layout(cdist(places, places))), pdist(places), atol=0.05)
    corners = np.ones((n, n)) - np.eye(n)
    found = planar_layout(corners)
    assert pdist(found).min() > 0.8 / np.sqrt(n)
    stress = ((pdist(found) - 1.0) ** 2).sum()
    circle = np.exp(2j * np.pi * np.arange(n) / n)
    distances = pdist(np.column_stack([circle.real, circle.imag]))
    best = distances * distances.sum() / (distances**2).sum()  # the circle of the best size
    assert stress < ((best - 1.0) ** 2).sum() + 1e-6


def test_a_layout_moves_points_apart_that_begin_on_one_spot(monkeypatch):
    # Which principal components equally distant points have, and whether they lie on one spot, is up to LAPACK.
    monkeypatch.setattr(principal, "scaling_components", lambda squares, count: (np.zeros((len(squares), count)), None))
    assert pdist(planar_layout(np.ones((9, 9)) - np.eye(9))).min() > 0.8 / 3


def test_the_map_shows_the_embedding_in_which_clusters_were_found():
    far, _ = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    model = GraphFusionClustering(3, random_state=0).fit(far)
    known = ReportFacts.from_estimator(model, far)
    picture = known.picture
    Z = model.embedding_ - model.embedding_.mean(axis=0)
    expected = np.linalg.svd(Z, full_matrices=False)
    np.testing.assert_allclose(np.abs(picture.points), np.abs(expected[0][:, :2] * expected[1][:2]), atol=1e-8)
    widths = silhouette_samples(model.embedding_, model.labels_)
    np.testing.assert_allclose(known.model_silhouettes.values, widths, atol=1e-8)
    assert known.doubtful_share == pytest.approx((widths < 0).mean())
    assert "joint embedding" in picture.made_by
    assert "%" not in "".join(picture.axes)


def test_labels_stand_at_medians_and_do_not_overlap():
    rng = np.random.default_rng(0)
    xs = np.array([100.0, 102.0, 104.0, 300.0, 590.0])
    labels = np.array([0, 0, 0, 1, 2])
    places = label_places(xs, np.full(5, 200.0), labels)
    assert places[0] == (102.0, 200.0)
    assert places[1] == (300.0, 200.0)
    crowd = rng.normal(WIDTH / 2, 40, 480), rng.normal(HEIGHT / 2, 30, 480)
    places = list(label_places(*crowd, np.arange(480) % 24).values())
    for i, (x, y) in enumerate(places):
        assert LABEL_FIGURE / 2 <= x <= WIDTH - LABEL_FIGURE / 2
        assert LABEL_HEIGHT / 2 <= y <= HEIGHT - LABEL_HEIGHT / 2
        for a, b in places[:i]:
            assert abs(x - a) >= LABEL_FIGURE or abs(y - b) >= LABEL_HEIGHT


def test_twenty_four_clusters_have_as_many_pairs_of_colour_and_shape():
    many, _ = make_blobs(240, centers=24, cluster_std=0.3, center_box=(-20, 20), random_state=0)
    model = KernelKMeans(24, kernel="linear", n_init=1, random_state=0).fit(many)
    text = page(ReportFacts.from_estimator(model, many))
    cards = text.split('class="pick"')[1:]
    assert len(cards) == 24
    assert len({card.split("<use ")[1].split("/>")[0] for card in cards}) == 24
    assert text.count('class="tag"') == 24


# --- PDF --------------------------------------------------------------------------------------------------------------


def program(tmp_path, lines):
    """A program that stands for Chromium."""
    file = tmp_path / "chromium"
    file.write_text("#!/bin/sh\n" + lines)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def test_a_pdf_is_refused_in_one_sentence_where_nothing_prints_it(tmp_path, monkeypatch):
    model = KernelKMeans(3, random_state=0).fit(X)
    path = tmp_path / "report.pdf"
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.delenv(pdf.VARIABLE, raising=False)
    with pytest.raises(
        MissingPackageError, match=r"none of chromium, .* is on the path; install it, name it in KERNEL"
    ):
        write_report(path, model, X)
    monkeypatch.setenv(pdf.VARIABLE, "/no/such/program")
    with pytest.raises(MissingPackageError, match="KERNELWEAVE_CHROMIUM=/no/such/program is not a program"):
        write_report(path, model, X)
    monkeypatch.undo()
    monkeypatch.setenv(pdf.VARIABLE, program(tmp_path, "echo lost its way >&2\nexit 3\n"))
    with pytest.raises(MissingPackageError, match=r"could not print the report as PDF \(lost its way\)"):
        write_report(path, model, X)
    monkeypatch.setenv(pdf.VARIABLE, program(tmp_path, "exec sleep 5\n"))
    monkeypatch.setattr(pdf, "PATIENCE", 0.2)
    with pytest.raises(MissingPackageError, match="timed out"):
        write_report(path, model, X)
    assert not path.exists()
    with pytest.raises(ParameterError, match="file_format='doc' must be 'html' or 'pdf'"):
        write_report(path, model, X, file_format="doc")


def test_the_program_is_called_without_a_network_and_with_a_profile_of_its_own(tmp_path, monkeypatch):
    printed = 'for each; do echo "$each" >> ARGUMENTS; case $each in --print-to-pdf=*) out=${each#*=};; esac; done\n'
    dated = "printf '%%PDF /CreationDate (D:20260102030405) end' > $out\n"
    monkeypatch.setenv(pdf.VARIABLE, program(tmp_path, printed.replace("ARGUMENTS", str(tmp_path / "said")) + dated))
    for user, sandbox in ((0, False), (1000, True)):
        monkeypatch.setattr(pdf.os, "geteuid", lambda user=user: user, raising=False)
        (tmp_path / "said").unlink(missing_ok=True)
        assert pdf.as_pdf("<p>page</p>") == b"%PDF /CreationDate (D:00000000000000) end"
        said = (tmp_path / "said").read_text().splitlines()
        assert ("--no-sandbox" not in said) == sandbox
        assert "--host-resolver-rules=MAP * ~NOTFOUND" in said
        assert any(each.startswith("--user-data-dir=") for each in said)


def chromium():
    try:
        return pdf.find_chromium()
    except MissingPackageError:
        return None


@pytest.mark.skipif(chromium() is None, reason="no Chromium on PATH, no KERNELWEAVE_CHROMIUM")
def test_a_report_becomes_a_pdf_the_same_every_time(tmp_path):
    model = KernelKMeans(3, random_state=0).fit(X)
    one = write_report(tmp_path / "a.PDF", model, X).read_bytes()
    assert one.startswith(b"%PDF")
    assert len(one) > 10_000
    assert write_report(tmp_path / "b.html", model, X, file_format="pdf").read_bytes() == one
    assert write_report(tmp_path / "c.pdf", model, X, file_format="html").read_bytes()[:9] == b"<!doctype"


def test_a_model_that_found_no_clusters_says_why():
    cloud = np.random.default_rng(0).normal(size=(300, 3))
    model = GraphFusionClustering("auto", random_state=0).fit(cloud)
    assert model.n_clusters_ == 1
    known = ReportFacts.from_estimator(model, cloud)
    reason = model.verdict_.partition(": ")[2]
    assert reason
    assert answer(known) == f"No clear clusters were found in 300 samples: {reason}"


def test_small_pieces_beside_most_of_a_graph_are_called_so():
    inner = np.random.default_rng(0).random((40, 40)) < 0.4
    A = np.zeros((44, 44))
    A[:40, :40] = inner | inner.T
    A[40:, 40:] = 1.0
    np.fill_diagonal(A, 0.0)
    model = GraphCut(2, random_state=0).fit(A)
    assert "holds 90.9 % of all nodes: the others are small pieces that no edge joins to it" in distrust(
        ReportFacts.from_estimator(model, A), 0
    )
