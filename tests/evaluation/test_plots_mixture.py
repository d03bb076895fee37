import io
import subprocess
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    AffinityPropagation,
    ConvexMixture,
    KernelKMeans,
    KMedoids,
    MultiViewConvexMixture,
    ParameterError,
    ViewError,
)
from kernelweave.plots import ExemplarDisplay, ViewWeightsDisplay
from kernelweave.preprocessing import ViewScaler
from tests.command_server import programs

pytest.importorskip("matplotlib")

# Three crosses of nine points, with one exemplar each.
CROSS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [2, 0], [-2, 0], [0, 2], [0, -2]]) / 10
X = np.concatenate([CROSS + middle for middle in ([0.0, 0.0], [6.0, 0.0], [6.0, 4.0])])
GAPS = ((X[:, None] - X[None]) ** 2).sum(axis=2)
MODEL = ConvexMixture(3).fit(X)


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


def look(scatter):
    """Colour and outline of the marker of a scatter."""
    return tuple(scatter.get_facecolor()[0][:3]), scatter.get_paths()[0].vertices.tobytes()


def places(display):
    """All points drawn, exemplars among them."""
    return np.concatenate([np.asarray(result.get_offsets()) for result in display.ax_.collections])


def sizes(display):
    """The area of the marker at every point drawn."""
    return {
        tuple(np.round(point, 9)): area
        for result in display.ax_.collections
        for point, area in zip(
            result.get_offsets(), np.broadcast_to(result.get_sizes(), len(result.get_offsets())), strict=True
        )
    }


def test_the_samples_are_drawn_once_each_and_exemplars_are_outlined_and_numbered():
    display = ExemplarDisplay.from_estimator(MODEL, X)
    assert sorted(MODEL.exemplar_indices_ // 9) == [0, 1, 2]
    assert sorted(map(tuple, places(display).round(9))) == sorted(map(tuple, X.round(9)))
    at = np.array([result.get_offsets()[0] for result in display.exemplars_])
    np.testing.assert_allclose(at, X[MODEL.exemplar_indices_])
    assert [text.get_text() for text in display.texts_] == ["0", "1", "2"]
    assert display.figure_ is display.ax_.figure
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_clusters_differ_in_colour_and_marker_and_exemplars_look_like_their_cluster():
    display = ExemplarDisplay.from_estimator(MODEL, X)
    looks = [look(result) for result in display.exemplars_]
    assert len({colour for colour, _ in looks}) == len({marker for _, marker in looks}) == 3
    others = [result for result in display.ax_.collections if len(result.get_offsets()) > 1]
    assert sorted(look(result) for result in others) == sorted(looks)


def test_the_area_of_a_marker_grows_with_the_prior():
    priors = np.zeros(len(X))
    priors[[0, 1, 2]] = [0.5, 0.25, 0.25]
    labels = np.repeat([0, 1, 2], 9)
    display = ExemplarDisplay(X, labels=labels, priors=priors, exemplar_indices=np.array([0, 9])).plot()
    area = sizes(display)
    largest, likely, dot = (area[tuple(X[i].round(9))] for i in (0, 1, 3))
    assert likely == area[tuple(X[2].round(9))]
    assert likely - dot == pytest.approx((largest - dot) / 2)
    assert dot < area[tuple(X[9].round(9))] < likely  # an exemplar without a prior can still be seen


def test_two_features_keep_their_place_and_name():
    display = ExemplarDisplay.from_estimator(MODEL, X)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "feature 1")
    assert display.ax_.get_aspect() == 1.0
    frame = pd.DataFrame(X, columns=["length", "width"])
    named = ExemplarDisplay.from_estimator(ConvexMixture(3).fit(frame), frame)
    assert (named.ax_.get_xlabel(), named.ax_.get_ylabel()) == ("length", "width")
    sparse = sp.csr_array(X)
    same = ExemplarDisplay.from_estimator(ConvexMixture(3).fit(sparse), sparse)
    np.testing.assert_allclose(places(same), places(display))


def test_more_features_are_projected_on_principal_axes():
    wide = np.column_stack([X, np.zeros((len(X), 3))])
    display = ExemplarDisplay.from_estimator(ConvexMixture(3).fit(wide), wide)
    assert display.ax_.get_xlabel().startswith("principal axis 1 (")
    gaps = np.linalg.norm(display.points[:, None] - display.points[None], axis=2)
    np.testing.assert_allclose(gaps, np.linalg.norm(X[:, None] - X[None], axis=2), atol=1e-9)


def test_sparse_features_are_projected_without_being_made_dense():
    wide = sp.random_array((40, 300), density=0.05, rng=np.random.default_rng(0), format="csr")
    display = ExemplarDisplay.from_estimator(ConvexMixture(2).fit(wide), wide)
    assert display.ax_.get_xlabel().startswith("singular axis 1 (")
    assert display.points.shape == (40, 2)


def test_several_views_stand_side_by_side_with_the_same_variance():
    rng = np.random.default_rng(0)
    large, small = 1000 * rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    model = MultiViewConvexMixture(2, weighted=False, tol=1e-3).fit([large, small])
    display = ExemplarDisplay.from_estimator(model, [large, small])
    both = np.hstack([view / np.sqrt(view.var(axis=0).sum()) for view in (large, small)])
    np.testing.assert_allclose(display.points.var(axis=0), np.linalg.eigvalsh(np.cov(both.T, ddof=0))[::-1][:2])
    sparse = [sp.csr_array(large), sp.csr_array(small)]
    model = MultiViewConvexMixture(2, weighted=False, tol=1e-3).fit(sparse)
    assert ExemplarDisplay.from_estimator(model, sparse).points.shape == (60, 2)


def test_views_can_be_columns_of_a_table():
    table = np.column_stack([X, X])
    model = MultiViewConvexMixture(3, views={"a": [0, 1], "b": [2, 3]}).fit(table)
    assert ExemplarDisplay.from_estimator(model, table).points.shape == (27, 2)


def test_an_embedding_takes_the_place_of_the_features():
    model = ConvexMixture(3, divergence="precomputed").fit(GAPS)
    display = ExemplarDisplay.from_estimator(model, None, embedding=10 * X)
    np.testing.assert_array_equal(display.points, 10 * X)
    assert display.ax_.get_xlabel() == ""


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (ConvexMixture(3, divergence="precomputed"), GAPS),
        (ConvexMixture(3, divergence="kernel", kernel="precomputed"), X @ X.T),
        (MultiViewConvexMixture(3, divergence=["precomputed"]), [GAPS]),
        (MultiViewConvexMixture(3, divergence={"a": "kernel"}, kernel={"a": "precomputed"}), {"a": X @ X.T}),
    ],
    ids=["divergences", "kernel", "list", "dict"],
)
def test_given_matrices_need_an_embedding(model, data):
    with pytest.raises(ParameterError, match=r"divergences or kernel values, .* embedding="):
        ExemplarDisplay.from_estimator(model.fit(data), data)


def test_many_exemplars_are_all_drawn_and_the_first_are_numbered():
    points = np.random.default_rng(0).normal(size=(60, 2))
    display = ExemplarDisplay.from_estimator(ConvexMixture(beta_scale=100).fit(points), points)
    assert len(display.exemplars_) > len(display.texts_) == 40
    assert drawn(display.figure_)


def test_samples_after_refinement_are_drawn_with_the_labels_of_kernel_k_means():
    model = ConvexMixture(3, refine="kernel_kmeans").fit(X)
    display = ExemplarDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(display.labels, model.labels_)


def test_samples_are_drawn_where_the_caller_says_in_the_callers_style():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    display = ExemplarDisplay.from_estimator(MODEL, X, ax=axes, c="red", s=40)
    assert display.ax_ is axes
    others = [result for result in axes.collections if len(result.get_offsets()) > 1]
    assert all(tuple(result.get_facecolor()[0][:3]) == (1, 0, 0) for result in others)
    assert all(result.get_sizes().tolist() == [40] for result in others)
    assert display.plot().ax_ is not axes


@pytest.mark.parametrize(
    ("model", "data", "options", "error"),
    [
        (ConvexMixture(3), X, {}, "ConvexMixture.* has no labels_. Fit it first"),
        (KMeans(3, n_init=1).fit(X), X, {}, "KMeans.* has no priors_"),
        (MODEL, X[:5], {}, "X has 5 samples, but the model was fitted on 27"),
        (MODEL, X[:, :1], {}, "X has 1 features, but the model was fitted on 2"),
        (MODEL, None, {}, "X=None leaves nothing to draw"),
        (MODEL, X, {"embedding": X[:, :1]}, "embedding has 1 columns"),
        (MODEL, X, {"embedding": X[:5]}, "embedding has 5 samples"),
        (MODEL, X, {"embedding": np.full((27, 2), np.nan)}, "Input embedding contains NaN"),
        (ConvexMixture(2).fit(X[:, :1]), X[:, :1], {}, "X has 1 feature; the picture needs two or more"),
    ],
    ids=["not fitted", "another model", "samples", "features", "nothing", "columns", "rows", "NaN", "one feature"],
)
def test_what_cannot_be_drawn_is_refused(model, data, options, error):
    with pytest.raises(ValueError, match=error):
        ExemplarDisplay.from_estimator(model, data, **options)


@pytest.mark.parametrize("model", [KMedoids(3), KMedoids(3).fit(X), AffinityPropagation().fit(X)])
def test_other_methods_with_exemplars_are_told_what_the_picture_draws(model):
    with pytest.raises(ParameterError, match=r"has no priors_: this picture draws convex mixtures"):
        ExemplarDisplay.from_estimator(model, X)


def test_a_pipeline_is_drawn_by_what_its_last_step_sees():
    pipe = make_pipeline(StandardScaler(), ConvexMixture(3)).fit(X)
    display = ExemplarDisplay.from_estimator(pipe, X)
    np.testing.assert_array_equal(display.points, pipe[0].transform(X))
    np.testing.assert_array_equal(ExemplarDisplay.from_estimator(pipe, None, embedding=X).points, X)
    with pytest.raises(ParameterError, match=r"ConvexMixture\(\.\.\.\) has no labels_. Fit it first"):
        ExemplarDisplay.from_estimator(make_pipeline(StandardScaler(), ConvexMixture(3)), X)


def test_the_view_weights_at_the_end_of_a_pipeline_are_drawn():
    views = {"a": X, "b": X[:, ::-1]}
    pipe = make_pipeline(ViewScaler(), MultiViewConvexMixture(3)).fit(views)
    display = ViewWeightsDisplay.from_estimator(pipe)
    assert display.names == ["a", "b"]
    np.testing.assert_array_equal(display.weights, pipe[-1].view_weights_)


def test_views_that_are_not_those_of_the_model_are_refused():
    model = MultiViewConvexMixture(3).fit([X, X])
    with pytest.raises(ViewError, match="disagree on the number of samples"):
        ExemplarDisplay.from_estimator(model, [X, X[:5]])


def test_weights_are_bars_named_after_the_views_the_first_on_top():
    model = MultiViewConvexMixture(3).fit({"text": X, "links": X})
    display = ViewWeightsDisplay.from_estimator(model)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], model.view_weights_)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["text", "links"]
    first, second = (display.ax_.transData.transform((0, bar.get_y()))[1] for bar in display.bars_)
    assert first > second
    assert display.figure_ is display.ax_.figure
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_anything_with_weights_and_names_is_drawn():
    model = SimpleNamespace(view_weights_=np.array([0.1, 0.2, 0.7]), view_names_=["a", "b", "c"])
    display = ViewWeightsDisplay.from_estimator(model)
    assert [text.get_text() for text in display.texts_] == ["0.10", "0.20", "0.70"]


def test_a_line_stands_where_all_views_would_count_alike():
    display = ViewWeightsDisplay.from_weights("abcd", [0.4, 0.4, 0.1, 0.1])
    np.testing.assert_allclose(display.line_.get_xdata(), 0.25)


def test_means_over_runs_have_their_deviations():
    display = ViewWeightsDisplay.from_weights(["a", "b"], [0.3, 0.7], [0.05, 0.1])
    assert [text.get_text() for text in display.texts_] == ["0.30 ± 0.05", "0.70 ± 0.10"]
    lines = display.bars_.errorbar.lines[2][0].get_segments()
    np.testing.assert_allclose([line[:, 0] for line in lines], [[0.25, 0.35], [0.6, 0.8]])
    assert display.ax_.get_xlim()[1] > 0.8
    assert drawn(display.figure_)


def test_bars_are_drawn_where_the_caller_says_in_the_callers_style():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    display = ViewWeightsDisplay.from_weights(["a", "b"], [0.5, 0.5], ax=axes, fc="red")
    assert display.ax_ is axes
    assert all(bar.get_facecolor()[:3] == (1, 0, 0) for bar in display.bars_)
    assert display.plot().ax_ is not axes


def test_weights_that_are_all_zero_still_make_a_picture():
    assert drawn(ViewWeightsDisplay.from_weights(["a", "b"], [0.0, 0.0]).figure_)


@pytest.mark.parametrize(
    ("weights", "errors", "error"),
    [
        ([0.5], None, r"weights has shape \(1,\) for 2 views"),
        ([0.5, np.nan], None, "weights=.* must be finite"),
        ([1.5, -0.5], None, "weights=.* not negative"),
        ([0.5, 0.5], [0.1], r"errors has shape \(1,\) for 2 views"),
        ([0.5, 0.5], [0.1, -0.1], "errors=.* not negative"),
    ],
    ids=["too few", "NaN", "negative", "too few errors", "negative error"],
)
def test_weights_that_do_not_fit_are_refused(weights, errors, error):
    with pytest.raises(ParameterError, match=error):
        ViewWeightsDisplay.from_weights(["a", "b"], weights, errors)


def test_no_views_and_models_without_weights_are_refused():
    with pytest.raises(ParameterError, match="for 0 views"):
        ViewWeightsDisplay.from_weights([], [])
    with pytest.raises(ParameterError, match=r"KernelKMeans.* has no view_weights_. Fit it first"):
        ViewWeightsDisplay.from_estimator(KernelKMeans(2))


def test_the_module_loads_without_matplotlib_and_drawing_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from kernelweave import ConvexMixture\n"
        "from kernelweave.plots import ExemplarDisplay, ViewWeightsDisplay\n"
        "X = [[0, 0], [0, 1], [5, 0], [5, 1]]\n"
        "for draw in (lambda: ExemplarDisplay.from_estimator(ConvexMixture(2).fit(X), X),\n"
        "             lambda: ViewWeightsDisplay.from_weights(['a'], [1])):\n"
        "    try:\n"
        "        draw()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    texts = subprocess.run([programs() / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert texts.count("matplotlib") == texts.count("kernelweave[plots]") == 2
    assert "ExemplarDisplay" in texts
    assert "ViewWeightsDisplay" in texts
