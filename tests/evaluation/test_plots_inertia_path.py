import io
import subprocess

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import GlobalKernelKMeans, ParameterError
from kernelweave.model_selection import suggest_n_clusters
from kernelweave.plots import InertiaPathDisplay
from tests.command_server import programs

pytest.importorskip("matplotlib")
PATH = [10.0, 4.0, 3.0, 2.0]


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


def test_the_path_of_a_fitted_estimator_is_drawn_and_its_elbow_marked():
    X = np.concatenate([np.arange(5) / 10, 10 + np.arange(5) / 10, 20 + np.arange(5) / 10])[:, None]
    model = GlobalKernelKMeans(6, kernel="linear").fit(X)
    display = InertiaPathDisplay.from_estimator(model)
    assert display.line_.get_xdata().tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(display.line_.get_ydata(), model.inertia_path_)
    assert display.mark_.get_xydata().tolist() == [[3.0, model.inertia_path_[2]]]
    assert display.text_.get_text() == "k = 3 (elbow)"
    assert display.figure_ is display.ax_.figure
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_the_path_at_the_end_of_a_pipeline_is_drawn():
    X = np.random.default_rng(0).normal(size=(20, 2))
    pipe = make_pipeline(StandardScaler(), GlobalKernelKMeans(4)).fit(X)
    display = InertiaPathDisplay.from_estimator(pipe)
    np.testing.assert_array_equal(display.line_.get_ydata(), pipe[-1].inertia_path_)


def test_axes_are_labelled_and_clusters_are_counted_in_whole_numbers():
    display = InertiaPathDisplay.from_path(PATH)
    drawn(display.figure_)
    assert display.ax_.get_xlabel() == "number of clusters k"
    assert display.ax_.get_ylabel() == "inertia"
    assert all(tick == round(tick) for tick in display.ax_.get_xticks())
    assert display.ax_.get_legend() is None


def test_a_path_is_drawn_where_the_caller_says_in_the_callers_style():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    display = InertiaPathDisplay.from_path(PATH, ax=axes, c="red", lw=3, name="fast")
    assert display.ax_ is axes
    assert display.line_.get_color() == "red"
    assert display.line_.get_linewidth() == 3
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["fast"]


def test_two_displays_share_axes_and_a_display_is_drawn_again_elsewhere():
    first = InertiaPathDisplay.from_path(PATH, name="fast")
    second = InertiaPathDisplay.from_path([9.0, 4.0, 2.0, 1.0], ax=first.ax_, name="exact", suggest=False)
    assert [text.get_text() for text in first.ax_.get_legend().get_texts()] == ["fast", "exact"]
    axes = first.ax_
    assert second.plot().ax_ is not axes


@pytest.mark.parametrize(
    ("path", "suggest"),
    [(PATH, False), ([4.0, 3.0, 2.0, 1.0], True), ([4.0, 3.0], True), ([4.0], True)],
    ids=["not asked for", "no elbow", "two entries", "one entry"],
)
def test_nothing_is_marked_where_there_is_nothing_to_suggest(path, suggest):
    display = InertiaPathDisplay.from_path(path, suggest=suggest)
    assert display.mark_ is None
    assert display.text_ is None
    assert drawn(display.figure_)


def test_a_suggestion_made_before_is_marked_under_its_own_name():
    references = [[10.0, 9.0, 5.0, 3.0], [10.0, 9.0, 5.0, 3.0]]  # the gap is log 1, 9/4, 5/3, 3/2
    result = suggest_n_clusters(PATH, method="gap_max", reference_paths=references)
    assert InertiaPathDisplay.from_path(PATH, suggest=result).text_.get_text() == "k = 2 (largest gap)"


def test_a_long_path_is_drawn_without_a_marker_at_every_point():
    assert InertiaPathDisplay.from_path(1.0 / np.arange(1, 101)).line_.get_marker() == "None"


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ParameterError, match=r"estimator=GlobalKernelKMeans\(...\) has no inertia_path_"):
        InertiaPathDisplay.from_estimator(GlobalKernelKMeans(3))
    with pytest.raises(ParameterError, match="suggest='gap' is not known"):
        InertiaPathDisplay.from_path(PATH, suggest="gap")
    with pytest.raises(ParameterError, match="n_clusters=4 lies beyond the 3 entries"):
        InertiaPathDisplay.from_path(PATH[:3], suggest=suggest_n_clusters([10.0, 8.0, 6.0, 1.0, 0.5]))


def test_the_module_loads_without_matplotlib_and_drawing_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from kernelweave.plots import InertiaPathDisplay\n"
        "try:\n"
        "    InertiaPathDisplay.from_path([3.0, 2.0])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    texts = subprocess.run([programs() / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert "matplotlib" in texts
    assert "kernelweave[plots]" in texts
