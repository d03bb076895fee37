import io
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from kernelweave import KernelKMeans, MultiViewKernelKMeans, MultiViewSpectralClustering, ParameterError, plots
from kernelweave.datasets import make_corrupted_views
from kernelweave.metrics import normalized_mutual_info
from kernelweave.plots import ExponentDisplay
from kernelweave.preprocessing import ViewScaler
from tests.command_server import programs

pytest.importorskip("matplotlib")

DATA = make_corrupted_views(2, 1, n_samples=90, n_corrupted=8, random_state=0)
VIEWS, Y = DATA.views, DATA.target
KMEANS = MultiViewKernelKMeans(3, kernel="linear", n_init=2, random_state=0)
SPECTRAL = MultiViewSpectralClustering(3, kernel="linear", n_init=2, random_state=0)
SOME = (1, 2, "uniform")


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


def heights(display, name):
    """The bars of a method as a table: exponents down, views across."""
    return np.transpose([[bar.get_height() for bar in bars] for bars in display.bars_[name]])


def ticks(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


def test_public_names_change_only_on_purpose():
    assert set(plots.__all__) == {
        "BoundaryDisplay",
        "ClusterCountDisplay",
        "ClusterHeatmapDisplay",
        "ConfusionDisplay",
        "DecisionDisplay",
        "EmbeddingDisplay",
        "ExemplarDisplay",
        "ExponentDisplay",
        "InertiaPathDisplay",
        "KernelMatrixDisplay",
        "ObjectivePathDisplay",
        "ScoreDisplay",
        "SearchTraceDisplay",
        "SilhouetteDisplay",
        "StartComparisonDisplay",
        "ViewWeightsDisplay",
    }


def test_bars_are_the_coefficients_of_a_fit_for_each_exponent():
    display = ExponentDisplay.from_estimator(KMEANS, VIEWS, p=SOME)
    learned = [clone(KMEANS).set_params(p=p).fit(VIEWS) for p in (1, 2)]
    result = heights(display, "MultiViewKernelKMeans")
    np.testing.assert_allclose(result[:2], [model.kernel_coefficients_ for model in learned])
    np.testing.assert_allclose(result[2], 1 / 3)
    np.testing.assert_array_equal(display.coefficients["MultiViewKernelKMeans"], result)
    np.testing.assert_array_equal(display.p, [1, 2, np.inf])
    assert display.nmi is None
    assert display.lines_ == {}
    (ax,) = display.axes_
    assert ticks(ax) == ["1", "2", "uniform"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("exponent p", "kernel coefficient (dashed: all equal)")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(VIEWS)
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_the_bars_of_an_exponent_stand_around_its_tick_in_the_order_of_the_views():
    display = ExponentDisplay.from_estimator(KMEANS, VIEWS, p=SOME)
    bars = display.bars_["MultiViewKernelKMeans"]
    middles = np.array([[bar.get_x() + bar.get_width() / 2 for bar in view] for view in bars])
    assert (np.diff(middles, axis=0) > 0).all()
    np.testing.assert_allclose(middles.mean(axis=0), [0, 1, 2], atol=1e-12)


def test_views_can_be_told_apart_by_colour_and_in_grey_by_hatching():
    names = [f"view {v}" for v in range(7)]
    display = ExponentDisplay([2.0], view_names=names, coefficients={"a": np.full((1, 7), 1 / 7)}).plot()
    looks = [(bars[0].get_facecolor(), bars[0].get_hatch() or "") for bars in display.bars_["a"]]
    assert len({colour for colour, _ in looks}) == len({hatch for _, hatch in looks}) == 7


def test_known_classes_add_a_panel_with_the_nmi():
    display = ExponentDisplay.from_estimator(KMEANS, VIEWS, p=SOME, y=Y)
    expected = [
        normalized_mutual_info(Y, clone(KMEANS).set_params(**setting).fit(VIEWS).labels_)
        for setting in ({"p": 1}, {"p": 2}, {"view_weights": "uniform"})
    ]
    np.testing.assert_allclose(display.nmi["MultiViewKernelKMeans"], expected)
    np.testing.assert_allclose(display.lines_["MultiViewKernelKMeans"].get_ydata(), expected)
    bars, lines = display.axes_
    assert lines.get_ylabel() == "NMI"
    assert ticks(lines) == ticks(bars)
    assert lines.get_legend() is None  # there is one curve
    assert drawn(display.figure_)


@pytest.mark.filterwarnings("ignore:View .* has no scatter left")  # views of two columns
def test_several_methods_stand_side_by_side_under_their_names():
    display = ExponentDisplay.from_estimator({"MVKKM": KMEANS, "MVSpec": SPECTRAL}, VIEWS, p=SOME, y=Y)
    assert [ax.get_title() for ax in display.axes_] == ["MVKKM", "MVSpec", ""]
    assert set(display.bars_) == set(display.lines_) == {"MVKKM", "MVSpec"}
    first, second = display.lines_.values()
    assert first.get_color() != second.get_color()
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()
    assert [text.get_text() for text in display.axes_[2].get_legend().get_texts()] == ["MVKKM", "MVSpec"]
    assert drawn(display.figure_)


def test_a_line_stands_where_all_views_would_count_alike():
    display = ExponentDisplay.from_estimator(KMEANS, VIEWS, p=(2,))
    (line,) = display.axes_[0].get_lines()
    np.testing.assert_allclose(line.get_ydata(), 1 / 3)


@pytest.mark.parametrize("setting", [{"view_weights": "uniform"}, {"view_weights": [1, 2, 3]}, {"p": "auto"}], ids=repr)
def test_what_the_estimator_says_of_weights_and_p_does_not_matter_and_is_left_as_it_is(setting):
    model = clone(KMEANS).set_params(**setting)
    display = ExponentDisplay.from_estimator(model, VIEWS, p=(2,))
    expected = ExponentDisplay.from_estimator(KMEANS, VIEWS, p=[2.0])
    np.testing.assert_array_equal(heights(display, "MultiViewKernelKMeans"), heights(expected, "MultiViewKernelKMeans"))
    assert {name: getattr(model, name) for name in setting} == setting
    assert not hasattr(model, "labels_")


def test_a_fitted_estimator_keeps_its_results():
    model = clone(KMEANS).fit(VIEWS)
    before = model.kernel_coefficients_.copy()
    ExponentDisplay.from_estimator(model, VIEWS, p=(1, 6))
    np.testing.assert_array_equal(model.kernel_coefficients_, before)


def test_a_pipeline_is_fitted_from_its_first_step_on_and_keeps_its_results():
    pipe = make_pipeline(ViewScaler(), KMEANS).fit(VIEWS)
    labels = pipe[-1].labels_
    expected = ExponentDisplay.from_estimator(KMEANS, ViewScaler().fit_transform(VIEWS), p=SOME)
    display = ExponentDisplay.from_estimator(pipe, VIEWS, p=SOME)
    np.testing.assert_array_equal(
        display.coefficients["MultiViewKernelKMeans"], expected.coefficients["MultiViewKernelKMeans"]
    )
    assert pipe[-1].labels_ is labels
    with pytest.raises(ParameterError, match=r"MultiViewKernelKMeans\(\.\.\.\) has no p_path_"):
        ExponentDisplay.from_path(pipe)


def test_infinity_is_another_word_for_uniform():
    display = ExponentDisplay.from_estimator(KMEANS, VIEWS, p=[np.inf])
    np.testing.assert_allclose(heights(display, "MultiViewKernelKMeans"), 1 / 3)


def test_the_panels_are_drawn_where_and_as_the_caller_says():
    from matplotlib.figure import Figure

    panels = Figure().subplots(1, 2)
    style = {"bar_kwargs": {"fc": "red"}, "line_kwargs": {"c": "black", "lw": 3}}
    display = ExponentDisplay.from_estimator(KMEANS, VIEWS, p=SOME, y=Y, axes=panels, **style)
    assert list(display.axes_) == list(panels)
    assert all(bar.get_facecolor()[:3] == (1, 0, 0) for view in display.bars_["MultiViewKernelKMeans"] for bar in view)
    (line,) = display.lines_.values()
    assert (line.get_color(), line.get_linewidth()) == ("black", 3)
    again = display.plot()
    assert again is display
    assert display.axes_[0] is not panels[0]


def test_the_path_of_auto_is_drawn_with_the_exponent_it_chose():
    model = clone(KMEANS).set_params(p="auto").fit(VIEWS)
    display = ExponentDisplay.from_path(model)
    np.testing.assert_array_equal(display.lines_["stability"].get_ydata(), model.p_path_["stability"])
    (ax,) = display.axes_
    assert ticks(ax) == ["1.5", "3", "uniform"]
    assert ax.get_ylabel() == "stability (adjusted Rand index)"
    place = model.p_path_["p"].tolist().index(model.p_)
    assert display.mark_.get_xdata()[0] == place
    assert display.mark_.get_ydata()[0] == model.p_path_["stability"][place]
    assert drawn(display.figure_)


@pytest.mark.parametrize(
    ("chosen", "texts"),
    [(1.5, "p = 1.5 (chosen)"), (np.inf, "equal weights (chosen)")],
)
def test_the_words_beside_the_mark_name_the_exponent(chosen, texts):
    path = {"p": np.array([1.5, 3.0, np.inf]), "stability": np.array([0.8, 0.7, 0.79])}
    display = ExponentDisplay.from_path(SimpleNamespace(p_path_=path, p_=chosen), color="black")
    assert display.text_.get_text() == texts
    assert display.lines_["stability"].get_color() == "black"


def test_a_band_shows_which_stabilities_count_as_equal():
    path = {"p": np.array([1.5, 3.0]), "stability": np.array([0.8, 0.795])}
    display = ExponentDisplay.from_path(SimpleNamespace(p_path_=path, p_=3.0))
    (band,) = display.axes_[0].patches
    edges = band.get_y(), band.get_y() + band.get_height()
    np.testing.assert_allclose(edges, (0.75, 0.8))


@pytest.mark.parametrize(
    ("estimator", "p", "error"),
    [
        (
            KernelKMeans(3),
            SOME,
            "estimator 'KernelKMeans' is a KernelKMeans, which has no parameters p and view_weights",
        ),
        ({"a": KMEANS, "b": 3}, SOME, "estimator 'b' is a int"),
        ({}, SOME, "holds no method"),
        (KMEANS, (), "must be a sequence of exponents"),
        (KMEANS, "uniform", "must be a sequence of exponents"),
        (KMEANS, 2, "must be a sequence of exponents"),
        (KMEANS, (2, "auto"), "p has 'auto'; exponents are numbers of at least 1, or 'uniform'"),
        (KMEANS, (0.5,), r"p has 0\.5"),
        (KMEANS, (np.nan,), "p has nan"),
        (KMEANS, (2, None), "p has None"),
    ],
    ids=["another method", "no estimator", "none", "no p", "a word", "a number", "auto", "below 1", "NaN", "None"],
)
def test_what_cannot_be_fitted_is_refused(estimator, p, error):
    with pytest.raises(ParameterError, match=error):
        ExponentDisplay.from_estimator(estimator, VIEWS, p=p)


def test_axes_must_be_as_many_as_panels():
    from matplotlib.figure import Figure

    with pytest.raises(ParameterError, match="axes holds 3 Axes; this picture has 2"):
        ExponentDisplay.from_estimator(KMEANS, VIEWS, p=(2,), y=Y, axes=Figure().subplots(1, 3))
    with pytest.raises(ParameterError, match="nothing to draw"):
        ExponentDisplay([2.0]).plot()


def test_a_path_needs_a_model_fitted_with_auto():
    with pytest.raises(ParameterError, match=r"MultiViewKernelKMeans.* has no p_path_\. Fit it with p='auto'"):
        ExponentDisplay.from_path(clone(KMEANS).fit(VIEWS))


def test_the_module_loads_without_matplotlib_and_drawing_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from kernelweave.plots import ExponentDisplay, KernelMatrixDisplay\n"
        "for draw in (lambda: ExponentDisplay([2.0], stability=[0.5]).plot(),\n"
        "             lambda: KernelMatrixDisplay([[1.0]], labels=[0]).plot()):\n"
        "    try:\n"
        "        draw()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    texts = subprocess.run([programs() / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert texts.count("matplotlib") == texts.count("kernelweave[plots]") == 2
    assert "ExponentDisplay" in texts
    assert "KernelMatrixDisplay" in texts
