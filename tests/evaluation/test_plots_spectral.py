import copy
import io
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import loguniform
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    KernelKMeans,
    KernelSpectralClustering,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    ParameterError,
    ViewError,
)
from kernelweave.model_selection import AnnealingSearch
from kernelweave.plots import BoundaryDisplay, ScoreDisplay
from kernelweave.solvers.spectral.kernel_spectral import decode
from tests.command_server import programs

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(0)
# Two groups of unlike size; the second view is the first one turned round, in a unit of its own.
SIDE = np.repeat([0, 1], [30, 20])
PAIR = 6.0 * SIDE[:, None] + RNG.normal(0, 0.5, (50, 2))
VIEWS = {"first": PAIR, "second": 10.0 * PAIR[:, ::-1]}
WIDTHS = {"first": {"sigma": 1.0}, "second": {"sigma": 10.0}}
ONE = KernelSpectralClustering(2, kernel_params={"sigma": 1.0}).fit(PAIR)
JOINT = MultiViewKernelSpectralClustering(2, kernel_params=WIDTHS).fit(VIEWS)
APART = MultiViewKernelSpectralClustering(2, assignment="per_view", kernel_params=WIDTHS).fit(VIEWS)
# Three groups.
THREE = np.repeat(np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]]), 20, axis=0) + RNG.normal(0, 0.5, (60, 2))
CLUSTERS = np.repeat([0, 1, 2], 20)


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


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def scatters(ax):
    """The scatters of a panel, one for each cluster."""
    from matplotlib.collections import PathCollection

    return [result for result in ax.collections if isinstance(result, PathCollection)]


def grid(display, panel=0):
    """The points of a panel's grid, in the order of its regions."""
    left, right, bottom, top = display.extents[panel]
    n = len(display.regions[panel])
    return np.stack(np.meshgrid(np.linspace(left, right, n), np.linspace(bottom, top, n)), axis=-1).reshape(-1, 2)


# Regions


def test_regions_are_what_predict_says_and_samples_lie_where_they_are():
    display = BoundaryDisplay.from_estimator(ONE, PAIR, n_grid=40, least_degree=0)
    np.testing.assert_array_equal(display.regions[0].ravel(), ONE.predict(grid(display)))
    np.testing.assert_array_equal(display.labels[0], ONE.labels_)
    places = np.concatenate([result.get_offsets() for result in scatters(display.axes_[0])])
    np.testing.assert_allclose(np.sort(places, axis=0), np.sort(PAIR, axis=0))
    assert texts(display.legend_) == ["cluster 0", "cluster 1"]
    assert display.figure_ is display.axes_[0].figure
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_the_image_has_its_pixels_on_the_points_of_the_grid():
    display = BoundaryDisplay.from_estimator(ONE, PAIR, n_grid=21)
    image = display.images_[0]
    left, right, bottom, top = image.get_extent()
    step = (right - left) / 21
    np.testing.assert_allclose(
        [left + step / 2, right - step / 2, bottom + step / 2, top - step / 2], display.extents[0]
    )
    assert image.get_array().shape == (21, 21, 3)
    assert image.origin == "lower"


def test_regions_are_grey_where_kernel_rows_vanish():
    display = BoundaryDisplay.from_estimator(ONE, PAIR, n_grid=40, least_degree=1e-3)
    few = ONE.kernel_row_sums(grid(display)) < 1e-3 * np.median(ONE.degrees_)
    assert 0 < few.sum() < few.size
    np.testing.assert_array_equal(display.regions[0].ravel() == -1, few)
    assert texts(display.legend_) == ["cluster 0", "cluster 1", "like no sample"]
    colours = display.images_[0].get_array()[display.regions[0] == -1]
    assert len(np.unique(colours, axis=0)) == 1
    assert np.ptp(colours[0]) == pytest.approx(0)  # grey


def test_each_view_has_a_panel_and_its_own_scores_and_codebook_decide_there():
    display = BoundaryDisplay.from_estimator(APART, VIEWS, n_grid=30, least_degree=0)
    assert [ax.get_title() for ax in display.axes_] == ["first", "second"]
    for v in (0, 1):
        each = decode(APART._model.views[v].scores(grid(display, v)), APART.view_codebooks_[v])
        # Numbers may be exchanged, so that they mean the same in both panels.
        exchanged = [np.array_equal(display.regions[v].ravel(), turn[each]) for turn in np.array([[0, 1], [1, 0]])]
        assert sum(exchanged) == 1
    best = APART.view_names_.index(APART.best_view_)
    np.testing.assert_array_equal(display.labels[best], APART.view_labels_[best])


def test_regions_of_a_joint_model_come_from_the_views_own_scores_and_the_joint_codebook():
    display = BoundaryDisplay.from_estimator(JOINT, VIEWS, n_grid=30, least_degree=0)
    for v in (0, 1):
        each = decode(JOINT._model.views[v].scores(grid(display, v)), JOINT.codebook_)
        np.testing.assert_array_equal(display.regions[v].ravel(), each)
        np.testing.assert_array_equal(display.labels[v], JOINT.labels_)


def test_grey_parts_of_a_view_follow_the_degrees_in_that_view():
    display = BoundaryDisplay.from_estimator(JOINT, VIEWS, n_grid=30)
    for v in (0, 1):
        few = JOINT._model.views[v].row_sums(grid(display, v)) < 1e-3 * np.median(JOINT.degrees_[v])
        np.testing.assert_array_equal(display.regions[v].ravel() == -1, few)
        assert few.any()


def test_clusters_that_views_number_differently_have_the_same_number_in_all_panels():
    model = copy.deepcopy(APART)
    other = 1 - model.view_names_.index(model.best_view_)
    model.view_codebooks_[other] = model.view_codebooks_[other][::-1]
    pairs = zip(model._model.view_codebooks, model.view_codebooks_, strict=True)
    books = [replace(book, patterns=patterns) for book, patterns in pairs]
    model._model = replace(model._model, view_codebooks=tuple(books))
    first, second = model.predict_views(VIEWS)
    assert np.mean(first != second) > 0.9
    display = BoundaryDisplay.from_estimator(model, VIEWS, n_grid=30)
    assert np.mean(display.labels[0] == display.labels[1]) > 0.9
    before = BoundaryDisplay.from_estimator(APART, VIEWS, n_grid=30)
    np.testing.assert_array_equal(display.regions, before.regions)


def test_given_classes_colour_the_samples_and_clusters_take_the_number_of_their_class():
    names = np.where(SIDE == 0, "b", "a")
    display = BoundaryDisplay.from_estimator(ONE, PAIR, labels=names, n_grid=30, least_degree=0)
    assert texts(display.legend_) == ["a", "b"]
    np.testing.assert_array_equal(display.labels[0], (names == "b").astype(int))
    # The region around each group has the number of its class.
    nearest = [np.argmin(np.linalg.norm(grid(display) - group, axis=1)) for group in ([0.0, 0.0], [6.0, 6.0])]
    assert display.regions[0].ravel()[nearest].tolist() == [1, 0]
    numbered = BoundaryDisplay.from_estimator(ONE, PAIR, labels=SIDE + 5, n_grid=10)
    assert texts(numbered.legend_)[:2] == ["class 5", "class 6"]


def test_more_or_fewer_classes_than_clusters_are_drawn_too():
    many = BoundaryDisplay.from_estimator(ONE, PAIR, labels=np.arange(50) % 4, n_grid=10)
    assert texts(many.legend_)[:4] == [f"class {c}" for c in range(4)]
    alone = BoundaryDisplay.from_estimator(ONE, PAIR, labels=np.zeros(50, dtype=int), n_grid=10, least_degree=0)
    assert texts(alone.legend_) == ["class 0"]
    assert set(np.unique(alone.regions[0])) == {0, 1}
    assert drawn(alone.figure_)


def test_new_samples_are_drawn_with_the_clusters_they_get():
    new = PAIR[:7] + 0.1
    np.testing.assert_array_equal(BoundaryDisplay.from_estimator(ONE, new, n_grid=10).labels[0], ONE.predict(new))


@pytest.mark.parametrize(
    "model",
    [KernelKMeans(2, kernel_params={"sigma": 1.0}, random_state=0), KMeans(2, n_init=1, random_state=0)],
    ids=["kernel k-means", "k-means of scikit-learn"],
)
def test_any_model_with_predict_is_drawn_without_grey(model):
    display = BoundaryDisplay.from_estimator(model.fit(PAIR), PAIR, n_grid=20)
    np.testing.assert_array_equal(display.regions[0].ravel(), model.predict(grid(display)))
    assert texts(display.legend_) == ["cluster 0", "cluster 1"]


def test_pipelines_and_searches_are_drawn_in_the_units_of_the_samples():
    pipe = make_pipeline(StandardScaler(), KernelSpectralClustering(2, kernel_params={"sigma": 0.3})).fit(PAIR)
    display = BoundaryDisplay.from_estimator(pipe, PAIR, n_grid=20)
    known = display.regions[0].ravel() != -1
    assert 0 < known.sum() < known.size
    np.testing.assert_array_equal(display.regions[0].ravel()[known], pipe.predict(grid(display))[known])
    space = {"kernel_params": {"sigma": loguniform(0.5, 2.0)}}
    search = AnnealingSearch(KernelSpectralClustering(2), space, n_iter=2, random_state=0).fit(PAIR)
    result = BoundaryDisplay.from_estimator(search, PAIR, n_grid=10, least_degree=0)
    np.testing.assert_array_equal(result.regions[0].ravel(), search.predict(grid(result)))


def test_axes_carry_the_names_of_the_features():
    display = BoundaryDisplay.from_estimator(ONE, PAIR, n_grid=5)
    assert (display.axes_[0].get_xlabel(), display.axes_[0].get_ylabel()) == ("feature 0", "feature 1")
    frame = pd.DataFrame(PAIR, columns=["length", "width"])
    model = KernelSpectralClustering(2, kernel_params={"sigma": 1.0}).fit(frame)
    named = BoundaryDisplay.from_estimator(model, frame, n_grid=5)
    assert (named.axes_[0].get_xlabel(), named.axes_[0].get_ylabel()) == ("length", "width")
    parts = {"first": frame, "second": VIEWS["second"]}
    views = BoundaryDisplay.from_estimator(JOINT, parts, n_grid=5)
    assert [ax.get_xlabel() for ax in views.axes_] == ["length", "feature 0"]


def test_views_can_be_a_list_or_columns_of_a_table():
    model = MultiViewKernelSpectralClustering(2, kernel_params=[{"sigma": 1.0}, {"sigma": 10.0}])
    display = BoundaryDisplay.from_estimator(model.fit(list(VIEWS.values())), list(VIEWS.values()), n_grid=5)
    assert [ax.get_title() for ax in display.axes_] == ["view_0", "view_1"]
    table = pd.DataFrame(np.hstack(list(VIEWS.values())), columns=["a", "b", "c", "d"])
    columns = {"first": ["a", "b"], "second": ["c", "d"]}
    model = MultiViewKernelSpectralClustering(2, views=columns, kernel_params=WIDTHS).fit(table)
    display = BoundaryDisplay.from_estimator(model, table, n_grid=5)
    assert [(ax.get_title(), ax.get_xlabel()) for ax in display.axes_] == [("first", "a"), ("second", "c")]
    numbered = MultiViewKernelSpectralClustering(2, views=[[0, 1], [2, 3]], kernel_params={"sigma": 3.0})
    display = BoundaryDisplay.from_estimator(numbered.fit(table.to_numpy()), table.to_numpy(), n_grid=5)
    assert [ax.get_ylabel() for ax in display.axes_] == ["feature 1", "feature 1"]


def test_two_views_of_one_column_each_span_the_plane_of_a_table():
    model = MultiViewKernelSpectralClustering(2, views=[[0], [1]], kernel_params={"sigma": 1.0}).fit(PAIR)
    display = BoundaryDisplay.from_estimator(model, PAIR, n_grid=20, least_degree=0)
    np.testing.assert_array_equal(display.regions[0].ravel(), model.predict(grid(display)))
    grey = BoundaryDisplay.from_estimator(model, 3 * PAIR, n_grid=20).regions[0] == -1
    assert 0 < grey.sum() < grey.size


def test_sparse_samples_are_drawn():
    sparse = sp.csr_array(PAIR)
    model = KernelSpectralClustering(2, kernel_params={"sigma": 1.0}).fit(sparse)
    display = BoundaryDisplay.from_estimator(model, sparse, n_grid=10)
    np.testing.assert_allclose(display.points[0], PAIR)


def test_panels_are_squares_with_distances_as_they_are_unless_samples_lie_along_a_line():
    long = PAIR * [10.0, 1.0]
    left, right, bottom, top = BoundaryDisplay.from_estimator(KMeans(2, n_init=1).fit(long), long, n_grid=5).extents[0]
    assert right - left == pytest.approx(1.16 * np.ptp(long[:, 0]))
    assert top - bottom == pytest.approx(1.16 * np.ptp(long[:, 1]))
    round_ = KMeans(3, n_init=1, random_state=0).fit(THREE)
    left, right, bottom, top = BoundaryDisplay.from_estimator(round_, THREE, n_grid=5).extents[0]
    assert right - left == pytest.approx(top - bottom)
    assert left < THREE[:, 0].min()
    assert top > THREE[:, 1].max()
    flat = np.column_stack([PAIR[:, 0], np.zeros(50)])
    flat_model = KMeans(2, n_init=1, random_state=0).fit(flat)
    assert drawn(BoundaryDisplay.from_estimator(flat_model, flat, n_grid=5).figure_)


def test_clusters_differ_in_colour_and_in_marker_and_borders_are_lines():
    display = BoundaryDisplay.from_estimator(ONE, PAIR, n_grid=30)
    first, second = scatters(display.axes_[0])
    assert tuple(first.get_facecolor()[0]) != tuple(second.get_facecolor()[0])
    assert first.get_paths()[0].vertices.shape != second.get_paths()[0].vertices.shape
    colours = [display.images_[0].get_array()[display.regions[0] == c][0] for c in (0, 1)]
    assert not np.allclose(*colours)


def test_where_nothing_is_known_is_hatched_if_a_cluster_is_grey_itself():
    regions = np.array([[-1, 6], [5, 6]])
    for number, hatch in ((6, "///"), (5, None)):
        display = BoundaryDisplay(
            [PAIR],
            regions=[np.where(regions == 6, number, regions)],
            extents=[np.array([0.0, 1.0, 0.0, 1.0])],
            labels=[np.zeros(50, dtype=int)],
            label_names=["cluster 0"],
        ).plot()
        assert display.legend_.get_patches()[0].get_hatch() == hatch
        assert drawn(display.figure_)


def test_panels_are_drawn_where_the_caller_says_in_the_callers_style():
    from matplotlib.figure import Figure

    panels = Figure().subplots(2, 1)
    display = BoundaryDisplay.from_estimator(JOINT, VIEWS, n_grid=5, axes=panels, s=40, c="red")
    assert list(display.axes_) == list(panels)
    for result in scatters(panels[0]):
        assert result.get_sizes().tolist() == [40]
        assert tuple(result.get_facecolor()[0][:3]) == (1, 0, 0)
    assert display.legend_ is panels[1].get_legend()
    assert list(display.plot().axes_) != list(panels)


@pytest.mark.parametrize(
    ("model", "data", "options", "error"),
    [
        (DBSCAN().fit(PAIR), PAIR, {}, r"DBSCAN\(...\) has no predict"),
        (ONE, PAIR[:, :1], {}, "X has 1 features; the picture shows two"),
        (KMeans(2, n_init=1).fit(THREE @ np.ones((2, 3))), np.ones((4, 3)), {}, "X has 3 features"),
        (ONE, PAIR, {"labels": SIDE[:3]}, r"labels has shape \(3,\); give one class for each of the 50 samples"),
        (ONE, PAIR, {"n_grid": 1}, "n_grid=1 must be a whole number of at least 2"),
        (ONE, PAIR, {"n_grid": 10.0}, "n_grid=10.0 must be a whole number"),
        (ONE, PAIR, {"least_degree": -1}, "least_degree=-1 must be a number from 0 to below 1"),
        (ONE, PAIR, {"least_degree": "none"}, "least_degree='none' must be a number"),
    ],
    ids=["no predict", "one", "three", "labels", "grid", "part of a grid", "negative", "no number"],
)
def test_what_cannot_be_drawn_is_refused(model, data, options, error):
    with pytest.raises(ParameterError, match=error):
        BoundaryDisplay.from_estimator(model, data, **options)


def test_models_of_several_views_that_cannot_be_drawn_are_refused():
    with pytest.raises(ParameterError, match=r"MultiViewKernelKMeans\(...\) assigns a sample by all of its views"):
        BoundaryDisplay.from_estimator(MultiViewKernelKMeans(2, random_state=0).fit(VIEWS), VIEWS)
    with pytest.raises(ParameterError, match=r"MultiViewKernelSpectralClustering\(...\) is not fitted yet"):
        BoundaryDisplay.from_estimator(MultiViewKernelSpectralClustering(2), VIEWS)
    with pytest.raises(NotFittedError):
        BoundaryDisplay.from_estimator(KernelSpectralClustering(2), PAIR)
    wide = {**VIEWS, "second": np.hstack([PAIR, PAIR])}
    model = MultiViewKernelSpectralClustering(2, kernel_params={"sigma": 2.0}).fit(wide)
    with pytest.raises(ParameterError, match=r"View 'second' has 4 feature\(s\)"):
        BoundaryDisplay.from_estimator(model, wide)
    with pytest.raises(ViewError, match="The model was fitted on views"):
        BoundaryDisplay.from_estimator(JOINT, {"first": PAIR})
    table = np.hstack(list(VIEWS.values()))
    pipe = make_pipeline(StandardScaler(), MultiViewKernelSpectralClustering(2, views=[[0, 1], [2, 3]])).fit(table)
    with pytest.raises(ParameterError, match=r"Pass its last step, .* from_estimator\(pipe\[-1\]"):
        BoundaryDisplay.from_estimator(pipe, table)


def test_given_similarities_and_predictions_that_are_no_clusters_are_refused():
    K = np.exp(-0.5 * ((PAIR[:, None] - PAIR[None]) ** 2).sum(axis=2))
    with pytest.raises(ParameterError, match="fitted on a kernel matrix"):
        BoundaryDisplay.from_estimator(KernelSpectralClustering(2, kernel="precomputed").fit(K), K)
    words = SimpleNamespace(predict=lambda X: np.full(len(X), "a"))
    with pytest.raises(ParameterError, match=r"predicts \['a', 'a', 'a'\]...; the picture takes cluster numbers"):
        BoundaryDisplay.from_estimator(words, PAIR)


def test_axes_that_do_not_fit_are_refused():
    from matplotlib.figure import Figure

    with pytest.raises(ParameterError, match="axes holds 1 Axes; this picture has 2"):
        BoundaryDisplay.from_estimator(JOINT, VIEWS, n_grid=5, axes=Figure().subplots())
    with pytest.raises(ParameterError, match="axes holds 3 Axes; this picture has 2"):
        ScoreDisplay.from_estimator(APART, axes=Figure().subplots(1, 3))


# Scores


def test_the_only_score_of_two_clusters_is_drawn_in_order():
    display = ScoreDisplay.from_estimator(ONE)
    order, scores = display.points_[0].T
    np.testing.assert_array_equal(scores, ONE.scores_[:, 0])
    np.testing.assert_array_equal(np.argsort(order), np.argsort(ONE.scores_[:, 0], kind="stable"))
    ax = display.axes_[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("samples, ordered by score", "score")
    assert [line.get_ydata()[0] for line in ax.lines] == [0.0]
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_the_legend_gives_every_cluster_its_signs_and_its_size():
    signs = {1.0: "+", -1.0: "−"}  # noqa: RUF001 - a minus sign
    expected = [
        f"cluster {c} ({signs[ONE.codebook_[c, 0]]}): {size}" for c, size in enumerate(np.bincount(ONE.labels_))
    ]
    assert texts(ScoreDisplay.from_estimator(ONE).axes_[0].get_legend()) == expected


def test_scores_of_a_cluster_have_the_signs_of_its_pattern():
    model = KernelSpectralClustering(3, kernel_params={"sigma": 1.0}).fit(THREE)
    display = ScoreDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.points_[0], model.scores_)
    for c, result in enumerate(scatters(display.axes_[0])):
        each = result.get_offsets()
        assert len(each) == np.sum(model.labels_ == c)
        # Samples of other patterns join the nearest one, so that most signs agree, not all.
        assert np.mean(np.sign(each) == model.codebook_[c]) > 0.9
    ax = display.axes_[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("score 1", "score 2")
    assert len(ax.lines) == 2


def test_other_scores_can_be_chosen():
    four = np.concatenate([THREE, RNG.normal([6.0, 6.0], 0.5, (20, 2))])
    model = KernelSpectralClustering(4, kernel_params={"sigma": 1.0}).fit(four)
    display = ScoreDisplay.from_estimator(model, components=(2, 0))
    np.testing.assert_array_equal(display.points_[0], model.scores_[:, [2, 0]])
    assert display.axes_[0].get_xlabel() == "score 3"


def test_a_joint_model_has_one_panel_and_one_per_view_has_several():
    joint = ScoreDisplay.from_estimator(JOINT)
    np.testing.assert_allclose(joint.points_[0][:, 1], JOINT.transform(VIEWS)[:, 0])
    np.testing.assert_array_equal(joint.labels[0], JOINT.labels_)
    apart = ScoreDisplay.from_estimator(APART)
    assert [ax.get_title() for ax in apart.axes_] == ["first", "second"]
    for v in (0, 1):
        np.testing.assert_array_equal(apart.points_[v][:, 1], APART.scores_[v, :, 0])
        np.testing.assert_array_equal(apart.labels[v], APART.view_labels_[v])


def test_scores_of_new_samples_of_pipelines_and_of_searches():
    new = {name: view[::3] for name, view in VIEWS.items()}
    np.testing.assert_array_equal(ScoreDisplay.from_estimator(APART, new).labels, APART.predict_views(new))
    pipe = make_pipeline(StandardScaler(), KernelSpectralClustering(2, kernel_params={"sigma": 0.5})).fit(PAIR)
    result = ScoreDisplay.from_estimator(pipe, PAIR[:9])
    np.testing.assert_allclose(result.points_[0][:, 1], pipe.transform(PAIR[:9])[:, 0])
    space = {"kernel_params": {"sigma": loguniform(0.5, 2.0)}}
    search = AnnealingSearch(KernelSpectralClustering(2), space, n_iter=2, random_state=0).fit(PAIR)
    np.testing.assert_array_equal(ScoreDisplay.from_estimator(search).labels[0], search.labels_)


def test_scores_given_as_numbers_are_drawn_with_and_without_a_codebook():
    scores = np.array([[1.0, 2.0], [1.0, 3.0], [-1.0, 1.0]])
    plain = ScoreDisplay.from_scores(scores, [0, 0, 1])
    assert texts(plain.axes_[0].get_legend()) == ["cluster 0: 2", "cluster 1: 1"]
    named = ScoreDisplay.from_scores(scores, [0, 0, 1], codebook=[[1, 1], [-1, 1]])
    assert texts(named.axes_[0].get_legend()) == ["cluster 0 (+ +): 2", "cluster 1 (− +): 1"]  # noqa: RUF001
    flat = ScoreDisplay.from_scores([2.0, -1.0, 3.0], [0, 1, 0])
    np.testing.assert_array_equal(flat.points_[0], [[2, 2], [1, -1], [3, 3]])


def test_many_clusters_leave_room_in_the_legend():
    display = ScoreDisplay.from_scores(RNG.normal(size=(40, 2)), np.arange(40) % 20)
    assert len(scatters(display.axes_[0])) == 20
    assert len(texts(display.axes_[0].get_legend())) == 12


def test_scores_are_drawn_where_the_caller_says_in_the_callers_style():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    display = ScoreDisplay.from_estimator(ONE, axes=axes, s=40, c="red")
    assert display.axes_[0] is axes
    assert all(result.get_sizes().tolist() == [40] for result in scatters(axes))
    assert display.plot().axes_[0] is not axes


@pytest.mark.parametrize(
    ("draw", "error"),
    [
        (lambda: ScoreDisplay.from_estimator(KMeans(2)), r"KMeans\(...\) has no codebook_. Fit it first"),
        (lambda: ScoreDisplay.from_estimator(KernelSpectralClustering(1).fit(PAIR)), "A model of one cluster"),
        (lambda: ScoreDisplay.from_scores(np.ones((3, 3)), [0, 1, 2], components=(0, 3)), "two different numbers"),
        (lambda: ScoreDisplay.from_scores(np.ones((3, 3)), [0, 1, 2], components=(1, 1)), "two different numbers"),
        (lambda: ScoreDisplay.from_scores(np.ones((3, 3)), [0, 1, 2], components=1), "two different numbers"),
        (lambda: ScoreDisplay.from_scores([[np.nan, 1.0]], [0]), "give finite numbers"),
        (lambda: ScoreDisplay.from_scores(np.empty((0, 2)), []), "give finite numbers"),
        (lambda: ScoreDisplay.from_scores([[1.0, 1.0]], ["a"]), "labels must hold a cluster number"),
        (lambda: ScoreDisplay.from_scores([[1.0, 1.0]], [0, 1]), "labels must hold a cluster number"),
        (lambda: ScoreDisplay.from_scores([[1.0, 1.0]], [0], codebook=[[1]]), "give 2 signs, -1 or 1"),
        (lambda: ScoreDisplay.from_scores([[1.0, 1.0]], [0], codebook=[[0, 1]]), "give 2 signs, -1 or 1"),
    ],
    ids=[
        "another model",
        "one cluster",
        "beyond",
        "twice",
        "no pair",
        "NaN",
        "nothing",
        "words",
        "too many",
        "short codebook",
        "no signs",
    ],
)
def test_scores_that_cannot_be_drawn_are_refused(draw, error):
    with pytest.raises(ParameterError, match=error):
        draw()


def test_the_module_loads_without_matplotlib_and_drawing_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from kernelweave import KernelSpectralClustering\n"
        "from kernelweave.plots import BoundaryDisplay, ScoreDisplay\n"
        "X = [[0, 0], [0, 1], [5, 0], [5, 1]]\n"
        "model = KernelSpectralClustering(2, kernel_params={'sigma': 1.0}).fit(X)\n"
        "for draw in (lambda: BoundaryDisplay.from_estimator(model, X, n_grid=3),\n"
        "             lambda: ScoreDisplay.from_estimator(model)):\n"
        "    try:\n"
        "        draw()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    printed = subprocess.run([programs() / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.count("matplotlib") == printed.count("kernelweave[plots]") == 2
    assert "BoundaryDisplay" in printed
    assert "ScoreDisplay" in printed
