import io
import subprocess

import numpy as np
import pandas as pd
import pytest

from kernelweave import ConvergenceWarning, ParameterError
from kernelweave.plots import StartComparisonDisplay
from tests.command_server import programs

pytest.importorskip("matplotlib")

# Three squares of nine points. The start puts two centres into the first square and one between the others.
SQUARE = np.stack(np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]), axis=-1).reshape(-1, 2)
X = np.concatenate([SQUARE + np.array(middle) for middle in ([0, 0], [6, 0], [6, 4])])
BAD = np.array([[-1.2, 0.0], [1.0, 0.0], [6.0, 2.0]])
GOOD = X[[4, 13, 22]]


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


def samples(ax):
    """The scatters of a panel that show samples, one for each cluster: those of more than one point."""
    return [result for result in ax.collections if len(result.get_offsets()) > 1]


def look(scatter):
    """Colour and outline of the marker of a scatter."""
    return tuple(scatter.get_facecolor()[0]), scatter.get_paths()[0].vertices.tobytes()


def test_a_bad_start_is_shown_beside_what_both_methods_make_of_it():
    display = StartComparisonDisplay.from_start(X, BAD)
    assert len(display.axes_) == 3
    assert display.figure_ is display.axes_[0].figure
    assert display.start_labels_.tolist() == [0, 1, 1] * 3 + [2] * 18
    assert np.bincount(display.kmeans.labels_).tolist() == [3, 6, 18]
    assert np.bincount(display.minmax.labels_).tolist() == [9, 9, 9]
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_titles_name_the_methods_and_give_the_variances():
    # A square has variance 6 + 6, two of them 4 apart 24 + 18 * 2^2 = 96; one column has 2, the others 4 + 6 / 4.
    titles = [ax.get_title() for ax in StartComparisonDisplay.from_start(X, BAD).axes_]
    values = "largest variance %s\nsum of variances %s"
    assert titles[0] == "Start\n" + values % ("96", "104")
    assert titles[1] == "k-means\n" + values % ("96", "104")
    assert titles[2] == "MinMax k-means\n" + values % ("12", "36")


def test_clusters_differ_in_colour_and_in_marker_and_keep_both_in_all_panels():
    looks = [[look(result) for result in samples(ax)] for ax in StartComparisonDisplay.from_start(X, GOOD).axes_]
    assert looks[0] == looks[1] == looks[2]
    colours, markers = zip(*looks[0], strict=True)
    assert len(set(colours)) == len(set(markers)) == 3


def test_no_two_of_many_clusters_look_alike():
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(5)), axis=-1).reshape(-1, 2) * 10.0
    points = np.concatenate([grid, grid + 1.0])
    ax = StartComparisonDisplay.from_start(points, grid).axes_[0]
    assert len({look(result) for result in samples(ax)}) == 30


def test_centres_are_marked_where_they_are_and_a_line_leads_from_where_they_started():
    ax = StartComparisonDisplay.from_start(X, BAD).axes_[2]
    marked = {
        tuple(result.get_offsets()[0].round(9).tolist()) for result in ax.collections if len(result.get_offsets()) == 1
    }
    assert marked == {(0.0, 0.0), (6.0, 0.0), (6.0, 4.0)}
    ends = [line.get_xydata() for line in ax.lines if len(line.get_xdata()) == 2]
    assert sorted(tuple(line[0]) for line in ends) == sorted(map(tuple, BAD))


def test_axes_carry_the_names_of_two_features():
    display = StartComparisonDisplay.from_start(X, BAD)
    assert (display.axes_[0].get_xlabel(), display.axes_[0].get_ylabel()) == ("feature 0", "feature 1")
    display = StartComparisonDisplay.from_start(X, BAD, feature_names=["length", "width"])
    assert (display.axes_[2].get_xlabel(), display.axes_[0].get_ylabel()) == ("length", "width")
    display = StartComparisonDisplay.from_start(pd.DataFrame(X, columns=["a", "b"]), BAD)
    assert (display.axes_[1].get_xlabel(), display.axes_[0].get_ylabel()) == ("a", "b")


def test_more_features_are_projected_on_two_principal_axes_and_the_labels_say_so():
    # The third feature is constant, so nothing is lost; the first varies most.
    wide = np.column_stack([X, np.full(len(X), 7.0)])
    display = StartComparisonDisplay.from_start(wide, np.column_stack([BAD, np.full(3, 7.0)]))
    shares = np.sort(np.linalg.eigvalsh(np.cov(X.T)))[::-1] / np.trace(np.cov(X.T))
    assert display.axes_[0].get_xlabel() == f"principal axis 1 ({shares[0]:.0%} of variance)"
    assert display.axes_[0].get_ylabel() == f"principal axis 2 ({shares[1]:.0%} of variance)"
    flat = StartComparisonDisplay.from_start(X, BAD)
    assert [ax.get_title() for ax in display.axes_] == [ax.get_title() for ax in flat.axes_]


def test_options_reach_minmax():
    display = StartComparisonDisplay.from_start(X, BAD, p_max=0.0, memory=0.1)
    assert display.minmax.get_params()["memory"] == 0.1
    assert display.minmax.p_ == 0.0


def test_panels_are_drawn_where_the_caller_says_in_the_callers_style():
    from matplotlib.figure import Figure

    axes = Figure().subplots(3, 1)
    display = StartComparisonDisplay.from_start(X, GOOD, axes=axes, s=40, c="red", lw=2)
    assert list(display.axes_) == list(axes)
    assert all(result.get_sizes().tolist() == [40] for result in samples(axes[0]))
    assert all(tuple(result.get_facecolor()[0][:3]) == (1, 0, 0) for result in samples(axes[0]))
    assert all(result.get_linewidth().tolist() == [2] for result in samples(axes[0]))
    assert list(display.plot().axes_) != list(axes)


def test_long_thin_data_fill_their_panels_and_others_keep_their_shape():
    assert StartComparisonDisplay.from_start(X, BAD).axes_[0].get_aspect() == 1.0
    long = StartComparisonDisplay.from_start(X * [10, 1], BAD * [10, 1])
    assert long.axes_[0].get_aspect() == "auto"


def test_a_centre_without_samples_is_still_drawn():
    with pytest.warns(ConvergenceWarning, match="left a cluster without variance"):
        display = StartComparisonDisplay.from_start(X, [[0.0, 0.0], [6.0, 2.0], [500.0, 500.0]])
    assert len(samples(display.axes_[0])) == 2
    assert drawn(display.figure_)


@pytest.mark.parametrize(
    ("points", "init", "error"),
    [
        (X[:, :1], BAD[:, :1], "X has 1 feature; the picture needs two or more"),
        (np.where(X == 6, np.nan, X), BAD, "Input X contains NaN"),
        (X, np.full((3, 2), np.nan), "init contains NaN"),
        (X, BAD[:, :1], r"init has shape \(3, 1\), expected \(3, 2\)"),
        (X, BAD[0], r"init has shape \(2,\), expected \(2, 2\)"),
        (X, "random", "init"),
        (X[:2], BAD, "n_samples=2 should be >= n_clusters=3"),
    ],
    ids=["one feature", "NaN", "NaN in init", "features of init", "one centre", "a name", "too few samples"],
)
def test_what_cannot_be_drawn_is_refused(points, init, error):
    with pytest.raises(ValueError, match=error):
        StartComparisonDisplay.from_start(points, init)


def test_names_and_axes_that_do_not_fit_are_refused():
    from matplotlib.figure import Figure

    with pytest.raises(ParameterError, match="must hold two names"):
        StartComparisonDisplay.from_start(X, BAD, feature_names=["length"])
    with pytest.raises(ParameterError, match="axes holds 2 Axes; there are three panels"):
        StartComparisonDisplay.from_start(X, BAD, axes=Figure().subplots(1, 2))


def test_the_module_loads_without_matplotlib_and_drawing_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from kernelweave.plots import StartComparisonDisplay\n"
        "try:\n"
        "    StartComparisonDisplay.from_start([[0, 0], [0, 1], [5, 0], [5, 1]], [[0, 0], [5, 0]])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    texts = subprocess.run([programs() / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert "matplotlib" in texts
    assert "kernelweave[plots]" in texts
