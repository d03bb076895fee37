import io
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import loguniform

from kernelweave import KernelKMeans, KernelSpectralClustering, MultiViewKernelSpectralClustering, ParameterError
from kernelweave.model_selection import AnnealingSearch, ChosenClusters, choose_n_clusters
from kernelweave.plots import ClusterCountDisplay, SearchTraceDisplay
from tests.command_server import programs

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(0)
X = np.repeat(np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]]), 15, axis=0) + RNG.normal(0, 0.5, (45, 2))
NAN = float("nan")
TRACE = {
    "score": np.array([0.2, NAN, 0.5, 0.4, NAN, 0.7, 0.1]),
    "params": [{"kernel_params": {"sigma": 10.0**i}, "gamma": [i, 2.0], "kernel": "ab"[i % 2]} for i in range(7)],
}


@pytest.fixture(autouse=True)
def drawing_without_a_screen():
    import matplotlib
    from matplotlib import pyplot

    before = matplotlib.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


def drawn(figure):
    """The picture of a figure, after all of its layout and text was worked out."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def places(collection):
    return np.asarray(collection.get_offsets())


def made(scores, ks=None, n_clusters=None, criterion="silhouette"):
    scores = np.array(scores)
    ks = np.arange(2, 2 + len(scores)) if ks is None else np.array(ks)
    best = int(ks[np.nanargmax(scores)]) if n_clusters is None else n_clusters
    return ChosenClusters(best, ks, scores, criterion, None)


# What a search tried


def test_scores_are_drawn_in_order_with_the_best_so_far_as_a_line():
    display = SearchTraceDisplay.from_trace(TRACE)
    np.testing.assert_allclose(places(display.points_[0]), [[1, 0.2], [3, 0.5], [4, 0.4], [6, 0.7], [7, 0.1]])
    assert display.line_.get_xdata().tolist() == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(display.line_.get_ydata(), [0.2, 0.2, 0.5, 0.5, 0.5, 0.7, 0.7])
    assert display.line_.get_drawstyle() == "steps-post"
    assert len(display.axes_) == 1
    assert (display.axes_[0].get_xlabel(), display.axes_[0].get_ylabel()) == ("points tried", "score")
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_refused_points_are_crosses_at_the_bottom():
    display = SearchTraceDisplay.from_trace(TRACE)
    crosses = display.refused_[0]
    assert crosses.get_xdata().tolist() == [2, 5]
    assert crosses.get_marker() == "x"
    ax = display.axes_[0]
    heights = ax.transAxes.inverted().transform(crosses.get_transform().transform(crosses.get_xydata()))[:, 1]
    np.testing.assert_allclose(heights, 0.03)
    # No score is hidden by them.
    assert ax.transAxes.inverted().transform(ax.transData.transform((1, 0.1)))[1] > 0.08
    assert legend_texts(ax) == ["score", "best so far", "refused"]


def test_a_trace_without_refusals_has_no_cross():
    display = SearchTraceDisplay.from_trace({"score": [0.1, 0.3, 0.2]})
    assert len(display.refused_[0].get_xdata()) == 0
    assert legend_texts(display.axes_[0]) == ["score", "best so far"]


def test_the_best_point_has_a_ring_and_words():
    display = SearchTraceDisplay.from_trace(TRACE)
    assert display.marks_[0].get_xydata().tolist() == [[6, 0.7]]
    assert display.text_.get_text() == "0.7, point 6"
    early = SearchTraceDisplay.from_trace({"score": [NAN, 0.9, 0.3, 0.9]})
    assert early.text_.get_text() == "0.9, point 2"  # the first of equals
    assert np.isnan(early.line_.get_ydata()[0])


def test_a_second_panel_has_the_scores_over_a_parameter():
    display = SearchTraceDisplay.from_trace(TRACE, param="kernel_params.sigma", criterion="blf")
    assert len(display.axes_) == 2
    ax = display.axes_[1]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("kernel_params.sigma", "blf", "log")
    np.testing.assert_allclose(places(display.points_[1]), [[1, 0.2], [1e2, 0.5], [1e3, 0.4], [1e5, 0.7], [1e6, 0.1]])
    np.testing.assert_allclose(display.refused_[1].get_xdata(), [10.0, 1e4])
    assert display.marks_[1].get_xydata().tolist() == [[1e5, 0.7]]
    assert drawn(display.figure_)


def test_entries_of_lists_and_words_are_drawn_too():
    listed = SearchTraceDisplay.from_trace(TRACE, param="gamma.0")
    assert listed.axes_[1].get_xscale() == "linear"  # 0 has no logarithm
    np.testing.assert_allclose(places(listed.points_[1])[:, 0], [0, 2, 3, 5, 6])
    drawn(listed.figure_)
    assert all(tick == round(tick) for tick in listed.axes_[1].get_xticks())
    words = SearchTraceDisplay.from_trace(TRACE, param="kernel")
    assert [label.get_text() for label in words.axes_[1].get_xticklabels()] == ["a", "b"]
    np.testing.assert_allclose(places(words.points_[1])[:, 0], [0, 0, 1, 1, 0])
    near = [{"sigma": 1.0 + i / 10} for i in range(7)]
    narrow = SearchTraceDisplay.from_trace({"score": TRACE["score"], "params": near}, param="sigma")
    assert narrow.axes_[1].get_xscale() == "linear"


def test_the_trace_of_a_search_is_drawn_under_the_name_of_its_criterion():
    space = {"kernel_params": {"sigma": loguniform(0.1, 10.0)}}
    search = AnnealingSearch(KernelSpectralClustering(3), space, criterion="baf", n_iter=8, random_state=0).fit(X)
    display = SearchTraceDisplay.from_estimator(search, param="kernel_params.sigma")
    scores = search.trace_["score"]
    np.testing.assert_array_equal(display.scores, scores)
    assert display.line_.get_ydata()[-1] == search.best_score_
    at = display.marks_[1].get_xydata()[0]
    np.testing.assert_allclose(at, [search.best_params_["kernel_params"]["sigma"], search.best_score_])
    assert [ax.get_ylabel() for ax in display.axes_] == ["baf", "baf"]


def test_a_criterion_of_ones_own_gives_its_name():
    def tightness(model, data):
        return -float(model.inertia_)

    search = AnnealingSearch(KernelKMeans(random_state=0), {"n_clusters": [2, 3]}, criterion=tightness, n_iter=3)
    display = SearchTraceDisplay.from_estimator(search.fit(X), param="n_clusters")
    assert display.axes_[0].get_ylabel() == "tightness"
    assert display.axes_[1].get_xscale() == "linear"


def test_points_a_model_refused_are_marked():
    views = [X, X[:, ::-1]]
    space = {"gamma": [0.1, 1.0, 1e9]}
    model = MultiViewKernelSpectralClustering(3, kernel_params={"sigma": 1.0})
    search = AnnealingSearch(model, space, n_iter=20, random_state=0).fit(views)
    display = SearchTraceDisplay.from_estimator(search, param="gamma")
    np.testing.assert_array_equal(display.refused_[1].get_xdata(), [1e9])


def test_panels_are_drawn_where_the_caller_says_in_the_callers_style():
    from matplotlib.figure import Figure

    panels = Figure().subplots(2, 1)
    display = SearchTraceDisplay.from_trace(TRACE, param="gamma.0", axes=panels, c="red", s=40)
    assert list(display.axes_) == list(panels)
    for result in display.points_:
        assert result.get_sizes().tolist() == [40]
        assert tuple(result.get_facecolor()[0][:3]) == (1, 0, 0)
    assert list(display.plot().axes_) != list(panels)


def test_one_point_and_equal_scores_still_make_a_picture():
    assert drawn(SearchTraceDisplay.from_trace({"score": [0.5]}).figure_)
    display = SearchTraceDisplay.from_trace({"score": [0.0, 0.0], "params": [{"a": 1}, {"a": 1}]}, param="a")
    assert drawn(display.figure_)


@pytest.mark.parametrize(
    ("trace", "param", "error"),
    [
        ({"params": []}, None, "trace must be a dict with 'score'"),
        ([0.1], None, "trace must be a dict"),
        ({"score": [NAN, NAN]}, None, "no score that is a number"),
        ({"score": [[0.1]]}, None, r"trace\['score'\] has shape \(1, 1\)"),
        ({"score": [0.1]}, "a", "trace has 0 'params' for 1 scores"),
        (TRACE, "sigma", r"param='sigma' cannot be found at 'sigma': the points tried have \['gamma', 'kernel'"),
        (TRACE, "kernel_params.width", r"cannot be found at 'width': the points tried have \['sigma'\]"),
        (TRACE, "gamma.7", "cannot be found at '7'"),
        (TRACE, "kernel.a", "cannot be found at 'a'"),
        (TRACE, "kernel_params", r"param='kernel_params' is \{'sigma': 1.0\}, not one value"),
    ],
    ids=["no scores", "a list", "all refused", "a table", "no params", "unknown", "inside", "list", "word", "a dict"],
)
def test_traces_that_cannot_be_drawn_are_refused(trace, param, error):
    with pytest.raises(ParameterError, match=error):
        SearchTraceDisplay.from_trace(trace, param=param)


def test_searches_that_are_not_fitted_and_axes_that_do_not_fit_are_refused():
    from matplotlib.figure import Figure

    with pytest.raises(ParameterError, match=r"AnnealingSearch\(...\) has no trace_. Pass a fitted"):
        SearchTraceDisplay.from_estimator(AnnealingSearch(KernelKMeans(), {"n_clusters": [2, 3]}))
    with pytest.raises(ParameterError, match="axes holds 1 Axes; this picture has 2"):
        SearchTraceDisplay.from_trace(TRACE, param="gamma.0", axes=Figure().subplots())
    assert SearchTraceDisplay.from_estimator(SimpleNamespace(trace_=TRACE)).criterion == "score"


# The number of clusters


def test_scores_over_the_number_of_clusters_with_the_chosen_one_marked():
    model = KernelKMeans(random_state=0)
    display = ClusterCountDisplay.from_estimator(model, X, range(2, 6))
    choice = choose_n_clusters(model, X, range(2, 6))
    assert display.line_.get_xdata().tolist() == [2, 3, 4, 5]
    np.testing.assert_allclose(display.line_.get_ydata(), choice.scores)
    assert display.choice.n_clusters == 3
    np.testing.assert_allclose(display.mark_.get_xydata(), [[3, choice.scores[1]]])
    assert display.text_.get_text() == "k = 3 (silhouette)"
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("number of clusters k", "silhouette")
    assert display.ax_.get_legend() is None
    assert drawn(display.figure_).startswith(b"\x89PNG")
    assert all(tick == round(tick) for tick in display.ax_.get_xticks())


def test_options_reach_the_choice():
    def most(model, data):
        return float(model.n_clusters)

    display = ClusterCountDisplay.from_estimator(KernelKMeans(random_state=0), X, (2, 3), criterion=most)
    assert display.text_.get_text() == "k = 3 (most)"
    with pytest.raises(ParameterError, match="eta=7 must be a number from 0 to 1"):
        ClusterCountDisplay.from_estimator(KernelSpectralClustering(), X, criterion="blf", eta=7)
    with pytest.raises(ParameterError, match="sample_size=1 must be"):
        ClusterCountDisplay.from_estimator(KernelKMeans(), X, sample_size=1)
    with pytest.raises(ParameterError, match="metric='nothing' cannot be used"):
        ClusterCountDisplay.from_estimator(KernelKMeans(), X, metric="nothing")


def test_numbers_the_estimator_refused_are_crosses():
    display = ClusterCountDisplay.from_choice(made([0.5, NAN, 0.4, NAN]))
    assert display.line_.get_xdata().tolist() == [2, 4]
    assert display.refused_.get_xdata().tolist() == [3, 5]
    np.testing.assert_allclose(display.refused_.get_ydata(), 0.03)
    assert drawn(display.figure_)
    copies = np.repeat(np.eye(3), 5, axis=0)
    refused = ClusterCountDisplay.from_estimator(KernelSpectralClustering(kernel_params={"sigma": 0.5}), copies, (2, 5))
    assert refused.refused_.get_xdata().tolist() == [5]


def test_two_criteria_share_the_axes():
    first = ClusterCountDisplay.from_choice(made([0.5, 0.6, 0.4]), name="silhouette")
    second = ClusterCountDisplay.from_choice(made([0.2, 0.3, 0.9], criterion="blf"), name="blf", ax=first.ax_, c="red")
    assert second.ax_ is first.ax_
    assert legend_texts(first.ax_) == ["silhouette", "blf"]
    assert first.ax_.get_ylabel() == "score"
    assert [text.get_text() for text in first.ax_.texts] == ["k = 3 (silhouette)", "k = 4 (blf)"]
    assert second.line_.get_color() == "red"
    heights = [text.xyann[1] for text in first.ax_.texts]
    assert heights[1] - heights[0] >= 10
    axes = first.ax_
    assert first.plot().ax_ is not axes


def test_one_number_still_makes_a_picture():
    assert drawn(ClusterCountDisplay.from_choice(made([0.5])).figure_)


def test_what_is_no_choice_is_refused():
    with pytest.raises(ParameterError, match="choice=3 is not what choose_n_clusters returns"):
        ClusterCountDisplay.from_choice(3)


def test_the_module_loads_without_matplotlib_and_drawing_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from kernelweave import KernelKMeans\n"
        "from kernelweave.plots import ClusterCountDisplay, SearchTraceDisplay\n"
        "X = [[0, 0], [0, 1], [5, 0], [5, 1]]\n"
        "for draw in (lambda: SearchTraceDisplay.from_trace({'score': [0.1, 0.2]}),\n"
        "             lambda: ClusterCountDisplay.from_estimator(KernelKMeans(random_state=0), X, (2, 3))):\n"
        "    try:\n"
        "        draw()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    printed = subprocess.run([programs() / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.count("matplotlib") == printed.count("kernelweave[plots]") == 2
    assert "SearchTraceDisplay" in printed
    assert "ClusterCountDisplay" in printed
