import io
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import IterativeSVR, ParameterError, RatioMultipleKernelClustering
from kernelweave.plots import DecisionDisplay
from tests.command_server import programs

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal([0.0, 0.0], 0.7, (30, 2)), RNG.normal([4.0, 0.0], 0.7, (40, 2))])
MODEL = RatioMultipleKernelClustering(kernel=["linear", "rbf", "laplacian"], random_state=0).fit(X)


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


def texts(display):
    return [text.get_text() for text in display.axes_[1].get_legend().get_texts()]


def names(display):
    return [label.get_text() for label in display.axes_[0].get_yticklabels()]


def counted(display):
    return [int(sum(bar.get_height() for bar in bars)) for bars in display.histograms_]


def made(decisions, labels=None, kernels=("a",)):
    decisions = np.array(decisions, dtype=float)
    sides = (decisions > 0).astype(int) if labels is None else np.array(labels)
    return DecisionDisplay(kernels, np.full(len(kernels), 1 / len(kernels)), decisions=decisions, labels=sides)


def test_bars_are_the_kernel_weights_and_histograms_hold_every_sample():
    display = DecisionDisplay.from_estimator(MODEL, X)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], MODEL.kernel_weights_)
    assert names(display) == ["linear", "rbf", "laplacian"]
    assert [text.get_text() for text in display.texts_] == [f"{weight:.2f}" for weight in MODEL.kernel_weights_]
    np.testing.assert_array_equal(display.decisions, MODEL.decision_function(X))
    np.testing.assert_array_equal(display.labels, MODEL.predict(X))
    assert counted(display) == np.bincount(MODEL.predict(X)).tolist()
    weights, decisions = display.axes_
    assert weights.get_xlabel() == "kernel weight (dashed: all kernels equal)"
    assert decisions.get_xlabel() == "decision value (shaded: inside the margin)"
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_border_and_margin_are_marked():
    display = DecisionDisplay.from_estimator(MODEL, X)
    assert [line.get_xdata()[0] for line in display.lines_] == [-1, 0, 1]
    styles = [line.get_linestyle() for line in display.lines_]
    assert styles[0] == styles[2] != styles[1]


def test_the_legend_counts_samples_and_those_inside_the_margin():
    display = made([-2.0, -1.0, -0.5, -0.2, 0.9, 1.5, 3.0]).plot()
    assert texts(display) == [
        "cluster 0: 4 samples, 2 inside the margin",
        "cluster 1: 3 samples, 1 inside the margin",
    ]
    np.testing.assert_array_equal(display.inside_, [2, 1])


def test_samples_on_the_margin_up_to_rounding_are_not_inside_it():
    display = made([-0.9999, -1.0001, 0.9995, 1.0005]).plot()
    np.testing.assert_array_equal(display.inside_, [0, 0])
    inside = [bar.get_height() for bars in display.histograms_ for bar in bars if abs(bar.get_center()[0]) < 1]
    assert sum(inside) == 0
    assert counted(display) == [2, 2]


def test_labels_that_differ_from_the_side_of_the_border_are_counted():
    display = made([-1.5, 0.5, 2.0, 2.0], labels=[0, 0, 1, 1]).plot()
    assert texts(display) == [
        "cluster 0: 2 samples, 1 inside the margin, 1 across the border",
        "cluster 1: 2 samples, 0 inside the margin",
    ]
    display = DecisionDisplay.from_estimator(MODEL, X, labels=1 - MODEL.labels_)
    assert f"{np.sum(MODEL.labels_ == 1)} across the border" in texts(display)[0]


def test_clusters_can_be_told_apart_by_colour_and_in_grey_by_hatching():
    looks = [bars[0] for bars in made([-1.0, 1.0]).plot().histograms_]
    assert looks[0].get_facecolor() != looks[1].get_facecolor()
    assert looks[0].get_hatch() != looks[1].get_hatch()


@pytest.mark.parametrize("decisions", [[-0.3, 0.4], [-30.0, 55.0], [-1e6, 2e6], [0.5, 0.5], [-2.0, -2.0]], ids=repr)
def test_values_near_and_far_all_have_their_place(decisions):
    display = made(decisions).plot()
    assert sum(counted(display)) == 2
    assert len(display.histograms_[0]) <= 250
    assert drawn(display.figure_)


@pytest.mark.parametrize("decisions", [[-1.7, 2.3], [-0.3, 0.4], [-30.0, 55.0]], ids=repr)
def test_no_bar_lies_across_the_margin_or_the_border(decisions):
    bars = made(decisions).plot().histograms_[0]
    edges = np.array([end for bar in bars for end in (bar.get_x(), bar.get_x() + bar.get_width())])
    for line in (-1, 0, 1):
        assert np.abs(edges - line).min() < 1e-9


def test_names_lose_the_view_they_share_and_the_middle_where_they_are_long():
    short = made([-1.0, 1.0], kernels=("view_0, rbf sigma=0.1", "view_0, rbf sigma=0.2")).plot()
    assert names(short) == ["rbf sigma=0.1", "rbf sigma=0.2"]
    two = made([-1.0, 1.0], kernels=("words, linear", "links, linear", "flags")).plot()
    assert names(two) == ["words, linear", "links, linear", "flags"]
    long = made([-1.0, 1.0], kernels=("a" * 40 + "z", "b")).plot()
    assert names(long) == ["a" * 11 + "…" + "a" * 11 + "z", "b"]
    assert max(map(len, names(long))) == 24


def test_ten_widths_of_one_view_have_short_names():
    model = RatioMultipleKernelClustering(random_state=0).fit(X)
    result = names(DecisionDisplay.from_estimator(model, X))
    assert len(result) == 10
    assert all(name.startswith("rbf sigma=") for name in result)


def test_a_learned_kernel_object_is_named_as_it_became():
    model = RatioMultipleKernelClustering(kernel=RBF(3.0), learn="hyperparameters", random_state=0).fit(X)
    display = DecisionDisplay.from_estimator(model, X)
    assert names(display) == [str(model.kernel_)]
    assert [bar.get_width() for bar in display.bars_] == [1.0]


def test_new_samples_and_views_are_drawn_too():
    views = {"first": X[:, :1], "second": X[:, 1:]}
    model = RatioMultipleKernelClustering(random_state=0).fit(views)
    new = {name: view[:12] for name, view in views.items()}
    display = DecisionDisplay.from_estimator(model, new)
    assert names(display) == ["first", "second"]
    assert sum(counted(display)) == 12


def test_a_pipeline_takes_what_goes_into_its_first_step():
    pipe = make_pipeline(StandardScaler(), RatioMultipleKernelClustering(kernel=["linear", "rbf"], random_state=0))
    display = DecisionDisplay.from_estimator(pipe.fit(X), X)
    np.testing.assert_array_equal(display.decisions, pipe[-1].decision_function(pipe[0].transform(X)))
    np.testing.assert_array_equal(display.weights, pipe[-1].kernel_weights_)


def test_the_panels_are_drawn_where_and_as_the_caller_says():
    from matplotlib.figure import Figure

    panels = Figure().subplots(1, 2)
    style = {"bar_kwargs": {"fc": "red"}, "hist_kwargs": {"fc": "green", "bins": 5}}
    display = DecisionDisplay.from_estimator(MODEL, X, axes=panels, **style)
    assert list(display.axes_) == list(panels)
    assert all(bar.get_facecolor()[:3] == (1, 0, 0) for bar in display.bars_)
    assert [len(bars) for bars in display.histograms_] == [5, 5]
    assert display.histograms_[0][0].get_facecolor()[1] > 0.4
    again = display.plot()
    assert again is display
    assert display.axes_[0] is not panels[0]
    with pytest.raises(ParameterError, match="axes holds 3 Axes; this picture has 2"):
        display.plot(Figure().subplots(1, 3))


@pytest.mark.parametrize(
    ("estimator", "error"),
    [
        (RatioMultipleKernelClustering(), r"RatioMultipleKernelClustering\(\.\.\.\) has no kernel_names_"),
        (IterativeSVR(random_state=0).fit(X), r"IterativeSVR\(\.\.\.\) has no kernel_names_"),
        (SimpleNamespace(kernel_names_=["a"], kernel_weights_=[1.0]), "has no decision_function"),
        (RatioMultipleKernelClustering(3, random_state=0).fit(X), r"the estimator has 2 \(n_clusters=3\)"),
        (RatioMultipleKernelClustering(1).fit(X), r"the estimator has 0 \(n_clusters=1\)"),
    ],
    ids=["not fitted", "no kernels", "no decisions", "three clusters", "one cluster"],
)
def test_what_has_no_weights_or_no_single_border_is_refused(estimator, error):
    with pytest.raises(ParameterError, match=error):
        DecisionDisplay.from_estimator(estimator, X)


@pytest.mark.parametrize("labels", [np.zeros(3), np.full(len(X), 2), ["a"] * len(X)], ids=["few", "values", "words"])
def test_labels_must_be_clusters_of_the_samples(labels):
    with pytest.raises(ParameterError, match="one cluster for each of the 70 samples, 0 or 1"):
        DecisionDisplay.from_estimator(MODEL, X, labels=labels)


def test_the_module_loads_without_matplotlib_and_drawing_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from kernelweave.plots import DecisionDisplay\n"
        "try:\n"
        "    DecisionDisplay(['a'], [1.0], decisions=[1.0], labels=[1]).plot()\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run([programs() / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert "DecisionDisplay" in result
    assert "kernelweave[plots]" in result
