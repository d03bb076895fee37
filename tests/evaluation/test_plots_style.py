"""What all pictures share: colours, legends beside the data, names that do not cover each other, readable numbers."""

import pickle

import numpy as np
import pytest

from kernelweave.evaluation.palette import DARK, N_COLOURS
from kernelweave.evaluation.plots.style import ON_WHITE, shades_of
from kernelweave.evaluation.plots.words import LISTED, shortened, wrapped
from kernelweave.plots import (
    BoundaryDisplay,
    ConfusionDisplay,
    DecisionDisplay,
    EmbeddingDisplay,
    ExemplarDisplay,
    ExponentDisplay,
    InertiaPathDisplay,
    KernelMatrixDisplay,
    ObjectivePathDisplay,
    ScoreDisplay,
    SearchTraceDisplay,
    SilhouetteDisplay,
    ViewWeightsDisplay,
)

pytest.importorskip("matplotlib")
import matplotlib as mpl
from matplotlib import pyplot
from matplotlib.figure import Figure

LONG = "gene expression of tumour tissue (RNA-seq, log counts)"


@pytest.fixture(autouse=True)
def drawing_without_a_screen():
    before = mpl.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


def grid_of_groups(k, each=8):
    """Groups of samples around the points of a grid, and their numbers."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(k), each)
    return np.column_stack([y % 5, y // 5]) * 4.0 + 0.3 * rng.normal(size=(len(y), 2)), y


def embedding(k, **options):
    points, y = grid_of_groups(k)
    return EmbeddingDisplay(points, labels=y).plot(**options)


def boundaries(k, **options):
    points, y = grid_of_groups(k)
    corners = np.array([-2.0, 18.0, -2.0, 18.0])
    regions = (np.arange(100).reshape(10, 10) * k // 110) - 1
    names = [f"cluster {c}" for c in range(k)]
    return BoundaryDisplay([points], regions=[regions], extents=[corners], labels=[y], label_names=names).plot(
        **options
    )


def scores(k, axes=None):
    points, y = grid_of_groups(k)
    return ScoreDisplay.from_scores(points, y, axes=axes)


def exponents(k, axes=None):
    shares = np.full((3, k), 1.0 / k)
    names = [f"{LONG} {v}" for v in range(k)]
    return ExponentDisplay(np.array([1.0, 2.0, 3.0]), view_names=names, coefficients={"method": shares}).plot(axes)


def exemplars(k):
    points, y = grid_of_groups(k)
    chosen = np.arange(k) * 8
    priors = np.where(np.isin(np.arange(len(y)), chosen), 1.0 / k, 0.0)
    return ExemplarDisplay(points, labels=y, priors=priors, exemplar_indices=chosen).plot()


def many_pictures():
    """One picture of nearly every kind."""
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, 60)
    sides = (values > 0).astype(int)
    trace = {"score": rng.random(20), "params": [{"kernel": name} for name in ["rbf", LONG] * 10]}
    return [
        embedding(24),
        boundaries(24),
        scores(24),
        exponents(3),
        exemplars(5),
        DecisionDisplay(["a", LONG], [0.4, 0.6], decisions=values, labels=sides).plot(),
        SilhouetteDisplay.from_predictions(values, sides),
        ConfusionDisplay.from_predictions(np.arange(60) % 12, np.arange(60) % 12),
        KernelMatrixDisplay(np.eye(30), labels=np.repeat([0, 1], 15)).plot(),
        ObjectivePathDisplay(1e6 / np.arange(1, 9), converged=True).plot(),
        InertiaPathDisplay.from_path(1e6 / np.arange(1, 9), name="path"),
        SearchTraceDisplay.from_trace(trace, param="kernel"),
        ViewWeightsDisplay.from_weights([LONG, "b"], [0.4, 0.6], [0.1, 0.1]),
    ]


def panels(display):
    return list(display.axes_) if hasattr(display, "axes_") else [display.ax_]


def boxes(artists):
    return np.array([artist.get_window_extent().extents for artist in artists])


def overlapping(rectangles):
    """Pairs of rectangles that share an area."""
    low = np.maximum(rectangles[:, None, :2], rectangles[None, :, :2])
    high = np.minimum(rectangles[:, None, 2:], rectangles[None, :, 2:])
    return np.argwhere(np.triu((high > low).all(axis=2), 1)).tolist()


def looks(display):
    """Colour and marker of every cluster."""
    return [(tuple(each.get_facecolor()[0][:3]), each.get_paths()[0].vertices.tobytes()) for each in display.scatters_]


def test_colours_do_not_repeat_up_to_twenty_clusters_and_marks_tell_the_rest_apart():
    colours = [colour for colour, _ in looks(embedding(N_COLOURS))]
    assert N_COLOURS == len(set(colours)) == 20
    assert len(set(looks(embedding(24)))) == 24


def contrast(one, other):
    """The ratio of WCAG 2: 1 for the same light, 21 for black and white."""
    light = [np.array(mpl.colors.to_rgb(colour)) for colour in (one, other)]
    light = [np.where(each <= 0.04045, each / 12.92, ((each + 0.055) / 1.055) ** 2.4) for each in light]
    low, high = sorted(float(each @ [0.2126, 0.7152, 0.0722]) for each in light)
    return (high + 0.05) / (low + 0.05)


def drawn_colours(display):
    """Colours of the words around the data, and of lines, marks and bars that are not background."""
    words = []
    marks = []
    for ax in panels(display):
        texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
        texts += [] if isinstance(display, ConfusionDisplay) else ax.texts  # figures on cells that are light
        texts += [] if ax.get_legend() is None else ax.get_legend().get_texts()
        words += [text.get_color() for text in texts if text.get_text()]
        lines = [] if isinstance(display, KernelMatrixDisplay) else ax.lines
        marks += [line.get_color() for line in lines]
        marks += [colour for each in ax.collections for colour in each.get_facecolor() if each.get_zorder() >= 1]
        marks += [each.get_facecolor() for each in ax.patches if each.get_alpha() is None]
    return words, marks


def test_pictures_are_readable_on_a_dark_ground():
    with mpl.style.context("dark_background"):
        for display in many_pictures():
            display.figure_.draw_without_rendering()
            ground = panels(display)[0].get_facecolor()
            words, marks = drawn_colours(display)
            name = type(display).__name__
            assert words, name
            assert min(contrast(colour, ground) for colour in words) > 4.5, name
            assert min((contrast(colour, ground) for colour in marks), default=21.0) > 1.5, name


def test_a_dark_panel_decides_where_the_figure_is_light_and_the_figure_where_the_panel_is_clear():
    figure = Figure()
    ax = figure.subplots()
    assert shades_of(ax) is ON_WHITE
    ax.set_facecolor("#15191f")
    assert shades_of(ax).ground == "#15191f"
    assert shades_of(ax).clusters == DARK
    ax.set_facecolor("none")
    assert shades_of(ax) is ON_WHITE
    figure.set_facecolor("black")
    assert shades_of(ax).clusters == DARK


@pytest.mark.parametrize("draw", [embedding, boundaries, scores, exponents])
def test_legends_stand_beside_the_data_and_list_twelve_entries_at_most(draw):
    for k in (3, 24):
        display = draw(k)
        display.figure_.draw_without_rendering()
        ax = panels(display)[-1]
        legend = ax.get_legend()
        assert legend.get_window_extent().x0 >= ax.get_window_extent().x1
        assert legend.get_window_extent().x1 <= display.figure_.bbox.x1 + 1
        texts = [text.get_text() for text in legend.get_texts() if text.get_text() != "like no sample"]
        assert len(texts) == min(k, LISTED)
        assert (texts[-1] == "and 13 more") == (k == 24)
        assert max(map(len, texts)) <= 28


@pytest.mark.parametrize("columns", [1, 2])
def test_a_figure_without_a_layout_leaves_room_for_the_legend(columns):
    axes = np.atleast_1d(Figure(figsize=(6.0 * columns, 4.0)).subplots(1, columns))
    before = [ax.get_position().frozen() for ax in axes]
    for _ in range(2):  # once more on the same axes takes no more room
        display = embedding(4, ax=axes[0])
    display.figure_.draw_without_rendering()
    box = display.legend_.get_window_extent()
    assert box.x0 >= axes[0].get_window_extent().x1
    assert box.x1 <= before[0].x1 * display.figure_.bbox.width + 2
    assert axes[0].get_position(original=True).width > 0.7 * before[0].width
    assert all(ax.get_position().bounds == old.bounds for ax, old in zip(axes[1:], before[1:], strict=True))


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_legends_of_curves_stand_below_the_axis_and_leave_titles_alone(layout):
    ax = Figure(layout=layout).subplots()
    display = InertiaPathDisplay.from_path([9.0, 4.0, 3.0], name="path", ax=ax)
    ax.set_title("a title of the caller")
    display.figure_.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert box.y1 <= ax.xaxis.label.get_window_extent().y0
    assert box.y0 >= -1


@pytest.mark.parametrize("draw", [embedding, boundaries, scores, exemplars])
def test_names_of_clusters_on_the_data_do_not_cover_each_other(draw):
    display = draw(24)
    display.figure_.draw_without_rendering()
    assert sorted(text.get_text() for text in display.texts_) == sorted(map(str, range(24)))
    assert overlapping(boxes(display.texts_)) == []


def test_names_without_room_are_left_out():
    points = np.random.default_rng(0).normal(size=(80, 2)) * 1e-9
    points[0] = (1.0, 1.0)
    display = EmbeddingDisplay(points, labels=np.arange(80) % 40).plot()
    display.figure_.draw_without_rendering()
    assert 1 < len(display.texts_) < 40
    assert overlapping(boxes(display.texts_)) == []
    assert len(display.ax_.texts) == len(display.texts_)


def test_few_clusters_are_named_in_the_legend_alone():
    assert embedding(LISTED).texts_ == []
    assert len(embedding(LISTED + 1).texts_) == LISTED + 1


def test_names_of_small_clusters_beside_silhouettes_make_room_for_large_ones():
    sizes = np.array([2, 2, 2, 2, 300, 2, 2, 300])
    labels = np.repeat(np.arange(8), sizes)
    display = SilhouetteDisplay.from_predictions(np.linspace(-0.5, 0.9, len(labels)), labels)
    display.figure_.draw_without_rendering()
    ticks = display.ax_.get_yticklabels()
    assert {"4 (300)", "7 (300)"} <= {tick.get_text() for tick in ticks}
    assert overlapping(boxes(ticks)) == []
    assert display.ax_.get_ylabel() == f"cluster (samples); {8 - len(ticks)} small ones unnamed"


@pytest.fixture(scope="module")
def pictures():
    """The pictures, drawn, with the settings of matplotlib before and after."""
    pyplot.switch_backend("Agg")
    before = dict(mpl.rcParams)
    displays = many_pictures()
    for display in displays:
        display.figure_.draw_without_rendering()
    return displays, before, dict(mpl.rcParams)


def test_drawing_leaves_the_settings_of_matplotlib_as_they_were(pictures):
    _, before, after = pictures
    assert after == before


def test_nothing_reaches_beyond_the_picture(pictures):
    for display in pictures[0]:
        tight = display.figure_.get_tightbbox().extents
        width, height = display.figure_.get_size_inches()
        assert (tight >= -0.03).all(), type(display).__name__
        assert (tight <= [width + 0.03, height + 0.03] * 2).all(), type(display).__name__


def test_all_panels_have_the_same_type(pictures):
    for ax in (ax for display in pictures[0] for ax in panels(display)):
        assert {ax.xaxis.label.get_size(), ax.yaxis.label.get_size()} == {9.0}
        assert {tick.get_size() for tick in ax.get_xticklabels()} <= {8.0}


def test_numbers_along_the_axes_have_separators_and_numbers_of_clusters_are_whole():
    display = InertiaPathDisplay.from_path(2e6 / np.arange(1, 5))
    display.figure_.draw_without_rendering()
    assert "2,000,000" in [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert all(float(tick).is_integer() for tick in display.ax_.get_xticks())
    halves = ObjectivePathDisplay([0.25, 0.5, 0.75]).plot()
    halves.figure_.draw_without_rendering()
    assert "0.5" in [tick.get_text() for tick in halves.ax_.get_yticklabels()]


def test_a_figure_can_be_pickled():
    again = pickle.loads(pickle.dumps(embedding(3).figure_))
    assert len(again.axes[0].collections) == 3


def test_counts_in_tables_have_separators_and_long_names_are_cut():
    counts = np.array([[12000, 3], [1, 2000]])
    display = ConfusionDisplay(counts, classes=[LONG, "b"], clusters=[0, LONG]).plot()
    assert [text.get_text() for text in display.texts_] == ["12,000", "3", "1", "2,000"]
    assert max(len(tick.get_text()) for tick in display.ax_.get_yticklabels()) <= 28
    assert [tick.get_rotation() for tick in display.ax_.get_xticklabels()] == [90, 90]


@pytest.mark.parametrize("longest", [5, 12, 28])
def test_long_names_keep_their_beginning_and_their_end(longest):
    result = shortened(LONG, longest)
    assert len(result) <= longest
    begin, end = result.split("…")
    assert LONG.startswith(begin)
    assert LONG.endswith(end)
    assert begin
    assert end
    assert shortened("short", 5) == "short"


def test_names_are_broken_into_two_lines_at_most():
    lines = wrapped(LONG, 24).split("\n")
    assert len(lines) == 2
    assert max(map(len, lines)) <= 24
    assert lines[1].endswith("log counts)")
    assert wrapped("short", 24) == "short"
