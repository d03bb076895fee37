import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    GlobalKernelKMeans,
    KernelKMeans,
    KernelSpectralClustering,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
    ParameterError,
    ViewError,
)
from kernelweave.plots import KernelMatrixDisplay
from kernelweave.preprocessing import ViewScaler

pytest.importorskip("matplotlib")

# Groups of 20, 12 and 8 samples in two views, shuffled.
RNG = np.random.default_rng(0)
GROUP = RNG.permutation(np.repeat([0, 1, 2], [20, 12, 8]))
VIEWS = {
    "a": np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[GROUP] + RNG.normal(size=(40, 2)),
    "b": np.array([[0.0], [4.0], [9.0]])[GROUP] + RNG.normal(size=(40, 1)),
}
TABLE = np.hstack(list(VIEWS.values()))
MODEL = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)


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


def normalized(view):
    """A linear kernel of centred features, divided by the mean squared distance."""
    K = (view - view.mean(axis=0)) @ (view - view.mean(axis=0)).T
    return K / np.mean(np.diag(K)[:, None] - 2 * K + np.diag(K))


def test_the_matrix_is_the_weighted_sum_of_the_kernels_ordered_by_cluster():
    display = KernelMatrixDisplay.from_estimator(MODEL, VIEWS)
    order = np.argsort(MODEL.labels_, kind="stable")
    total = sum(c * normalized(view) for c, view in zip(MODEL.kernel_coefficients_, VIEWS.values(), strict=True))
    np.testing.assert_allclose(display.K, total[np.ix_(order, order)], atol=1e-12)
    np.testing.assert_array_equal(display.indices, order)
    np.testing.assert_array_equal(display.labels, MODEL.labels_[order])
    np.testing.assert_array_equal(display.image_.get_array(), display.K)
    assert display.colorbar_.ax.get_ylabel() == "weighted sum of kernels"
    assert display.figure_ is display.ax_.figure
    assert drawn(display.figure_).startswith(b"\x89PNG")


def test_lines_and_numbers_stand_where_clusters_end_and_are():
    display = KernelMatrixDisplay(np.eye(10), labels=np.array([0] * 5 + [2] * 3 + [3] * 2)).plot()
    across, down = display.borders_[:2], display.borders_[2:]
    assert [line.get_ydata()[0] for line in across] == [line.get_xdata()[0] for line in down] == [4.5, 7.5]
    for ticks in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [label.get_text() for label in ticks] == ["0", "2", "3"]
    assert display.ax_.get_xticks().tolist() == [2.0, 6.0, 8.5]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("cluster", "cluster")


def test_narrow_clusters_get_no_number():
    display = KernelMatrixDisplay(np.eye(200), labels=np.repeat([0, 1, 2], [120, 2, 78])).plot()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0", "2"]
    assert len(display.borders_) == 4


@pytest.mark.parametrize("most", [20, 10])
def test_more_samples_than_wanted_leave_the_same_share_of_every_cluster(most):
    display = KernelMatrixDisplay.from_estimator(MODEL, VIEWS, max_samples=most)
    whole = KernelMatrixDisplay.from_estimator(MODEL, VIEWS)
    np.testing.assert_array_equal(np.bincount(display.labels), np.bincount(MODEL.labels_) * most // 40)
    at = [whole.indices.tolist().index(i) for i in display.indices]
    np.testing.assert_allclose(display.K, whole.K[np.ix_(at, at)], atol=1e-12)
    np.testing.assert_array_equal(display.labels, MODEL.labels_[display.indices])
    again = KernelMatrixDisplay.from_estimator(MODEL, VIEWS, max_samples=most)
    np.testing.assert_array_equal(again.indices, display.indices)


def test_what_shares_leave_over_goes_to_the_clusters_that_lost_most():
    # Shares of 15 among 40: 7.5, 4.5 and 3 for clusters of 20, 12 and 8.
    display = KernelMatrixDisplay.from_estimator(MODEL, VIEWS, max_samples=15)
    assert len(display.indices) == len(set(display.indices)) == 15
    sizes, counts = np.bincount(MODEL.labels_), np.bincount(display.labels)
    assert (np.abs(counts - sizes * 15 / 40) <= 0.5).all()


def test_every_cluster_keeps_a_sample():
    display = KernelMatrixDisplay.from_estimator(MODEL, VIEWS, max_samples=1)
    assert display.labels.tolist() == [0, 1, 2]
    assert drawn(display.figure_)


def test_no_more_rows_of_the_kernel_are_computed_than_are_drawn():
    asked = []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return A @ B.T

    model = KernelKMeans(3, kernel=kernel, random_state=0).fit(TABLE)
    asked.clear()
    KernelMatrixDisplay.from_estimator(model, TABLE, max_samples=10)
    assert sum(asked) <= 10 * 40


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(list(VIEWS.values()), id="list"),
        pytest.param([sp.csr_matrix(view) for view in VIEWS.values()], id="sparse"),
        pytest.param([sp.coo_array(view) for view in VIEWS.values()], id="coo"),
        pytest.param({name: pd.DataFrame(view) for name, view in VIEWS.items()}, id="frames"),
        pytest.param([view.tolist() for view in VIEWS.values()], id="nested lists"),
    ],
)
def test_views_may_have_any_form_that_fit_takes(X):
    model = MultiViewKernelKMeans(3, random_state=0).fit(X)
    display = KernelMatrixDisplay.from_estimator(model, X, max_samples=20)
    same = KernelMatrixDisplay.from_estimator(
        MultiViewKernelKMeans(3, random_state=0).fit(VIEWS), VIEWS, max_samples=20
    )
    np.testing.assert_allclose(display.K, same.K, atol=1e-9)


def test_views_can_be_columns_of_a_data_frame_known_by_name():
    frame = pd.DataFrame(TABLE, columns=["x", "y", "z"])
    model = MultiViewKernelKMeans(3, kernel="linear", views={"a": ["x", "y"], "b": ["z"]}, random_state=0).fit(frame)
    display = KernelMatrixDisplay.from_estimator(model, frame)
    np.testing.assert_allclose(display.K, KernelMatrixDisplay.from_estimator(MODEL, VIEWS).K, atol=1e-12)


def test_precomputed_kernels_are_cut_in_both_directions():
    kernels = {name: normalized(view) for name, view in VIEWS.items()}
    model = MultiViewKernelKMeans(3, kernel="precomputed", random_state=0).fit(kernels)
    display = KernelMatrixDisplay.from_estimator(model, kernels, max_samples=20)
    total = sum(c * kernels[name] for c, name in zip(model.kernel_coefficients_, kernels, strict=True))
    np.testing.assert_allclose(display.K, total[np.ix_(display.indices, display.indices)], atol=1e-12)


@pytest.mark.parametrize(
    "model", [KernelKMeans(3, random_state=0), GlobalKernelKMeans(3)], ids=lambda m: type(m).__name__
)
def test_kernel_methods_of_one_view_are_drawn_too(model):
    model.set_params(kernel_params={"gamma": 0.1}).fit(TABLE)
    display = KernelMatrixDisplay.from_estimator(model, TABLE)
    gaps = ((TABLE[:, None] - TABLE[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(display.K, np.exp(-0.1 * gaps)[np.ix_(display.indices, display.indices)], atol=1e-12)
    assert display.colorbar_.ax.get_ylabel() == "kernel"


def test_a_pipeline_is_drawn_by_what_its_last_step_sees():
    pipe = make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)).fit(TABLE)
    expected = KernelMatrixDisplay.from_estimator(pipe[-1], pipe[0].transform(TABLE))
    np.testing.assert_array_equal(KernelMatrixDisplay.from_estimator(pipe, TABLE).K, expected.K)
    views = make_pipeline(ViewScaler(), MultiViewKernelKMeans(3, random_state=0)).fit(VIEWS)
    assert KernelMatrixDisplay.from_estimator(views, VIEWS).name == "weighted sum of kernels"
    alone = make_pipeline(KernelKMeans(3, random_state=0)).fit(TABLE)
    assert KernelMatrixDisplay.from_estimator(alone, TABLE).K.shape == (40, 40)
    with pytest.raises(ParameterError, match=r"KernelKMeans\(\.\.\.\) has no labels_ or no kernel. Fit it first"):
        KernelMatrixDisplay.from_estimator(make_pipeline(StandardScaler(), KernelKMeans(3)), TABLE)


def test_graphs_divided_by_degrees_are_drawn_as_the_clusters_were_found_in_them():
    settings = {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 5}, "normalize": "degrees"}
    model = MultiViewSpectralClustering(3, view_weights="uniform", random_state=0, **settings).fit(VIEWS)
    display = KernelMatrixDisplay.from_estimator(model, VIEWS)
    np.testing.assert_allclose(display.K, display.K.T, atol=1e-12)
    assert np.linalg.eigvalsh(display.K)[-1] <= 1 + 1e-9
    low, high = display.image_.get_clim()
    assert low == 0
    assert 0 < high <= display.K.max()


def test_a_few_large_values_do_not_flatten_the_others():
    labels = np.repeat([0, 1], 50)
    K = np.where(labels[:, None] == labels, 0.6, 0.2) + 0.1 * np.random.default_rng(0).random((100, 100))
    np.fill_diagonal(K, 50.0)
    K[:2, 3:5] = K[3:5, :2] = 1e6
    display = KernelMatrixDisplay(K, labels=labels).plot()
    low, high = display.image_.get_clim()
    assert 0.2 <= low <= 0.25
    assert 0.65 <= high <= 0.7
    assert display.colorbar_.extend == "both"


def chain(n):
    """A path graph with values 0.3, and 1 on the diagonal."""
    K = np.eye(n)
    K[np.arange(n - 1), np.arange(1, n)] = K[np.arange(1, n), np.arange(n - 1)] = 0.3
    return K


def test_a_sparse_graph_gets_its_colours_from_its_edges():
    display = KernelMatrixDisplay(chain(200), labels=np.repeat([0, 1], 100), binned=False).plot()
    low, high = display.image_.get_clim()
    assert low == 0
    assert 0.3 <= high <= 1
    assert display.links_ is None


def test_links_of_a_sparse_graph_are_counted_by_bins_that_end_with_the_clusters():
    labels = np.repeat([0, 1, 2], [103, 150, 7])
    K = chain(260)
    display = KernelMatrixDisplay(K, labels=labels).plot()
    assert display.links_.sum() == 2 * 259
    shares = display.image_.get_array()
    # Every link weighs as much as the pairs of its bin, of which none is a sample with itself.
    starts = np.flatnonzero((np.diff(shares, axis=0, prepend=-1) != 0).any(axis=1))
    sizes = np.diff(np.append(starts, 260))
    assert len(starts) == len(display.links_)
    assert {0, 103, 253} <= set(starts)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    np.testing.assert_allclose(shares[np.ix_(starts, starts)] * pairs, display.links_)
    assert len(starts) == 24 + 35 + 2  # of 60, by the sizes of the clusters
    assert display.image_.get_clim()[0] == 0
    assert display.colorbar_.ax.get_ylabel() == "share of pairs that are linked (kernel)"
    assert drawn(display.figure_)


def test_bins_are_for_sparse_graphs_of_many_samples_unless_the_caller_says_otherwise():
    labels = np.repeat([0, 1], 50)
    for K in (np.ones((100, 100)), np.eye(100), chain(100)[:40, :40]):
        display = KernelMatrixDisplay(K, labels=labels[: len(K)]).plot()
        assert display.links_ is None
        np.testing.assert_array_equal(display.image_.get_array(), K)
    assert KernelMatrixDisplay(np.ones((100, 100)), labels=labels, binned=True).plot().links_.sum() == 100 * 99
    assert KernelMatrixDisplay(chain(100), labels=labels).plot().links_.sum() == 2 * 99


def test_lines_between_tiny_clusters_do_not_run_together():
    display = KernelMatrixDisplay(np.eye(1000), labels=np.append(np.zeros(970, dtype=int), np.arange(1, 31))).plot()
    ends = np.array([line.get_ydata()[0] for line in display.borders_[: len(display.borders_) // 2]])
    assert ends[0] == 969.5
    assert np.diff(ends).min() >= 4


@pytest.mark.parametrize(
    ("K", "labels"),
    [(np.ones((4, 4)), [0, 0, 1, 1]), (np.eye(3), [0, 0, 0]), (np.ones((1, 1)), [0]), (np.eye(3), [0, 1, 2])],
    ids=["constant", "one cluster", "one sample", "single samples"],
)
def test_plain_matrices_still_make_a_picture(K, labels):
    display = KernelMatrixDisplay(K, labels=np.array(labels)).plot()
    low, high = display.image_.get_clim()
    assert low < high
    assert drawn(display.figure_)


def test_the_matrix_is_drawn_where_and_as_the_caller_says():
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    display = KernelMatrixDisplay.from_estimator(MODEL, VIEWS, ax=axes, cmap="viridis", vmin=-3, vmax=3)
    assert display.ax_ is axes
    assert display.image_.get_cmap().name == "viridis"
    assert display.image_.get_clim() == (-3, 3)
    assert display.colorbar_.extend == "neither"
    assert display.plot().ax_ is not axes
    assert drawn(KernelMatrixDisplay(np.eye(4) + 1, labels=np.array([0, 0, 1, 1])).plot(norm=LogNorm(1, 2)).figure_)


def test_the_colours_grow_darker_without_a_turn():
    image = KernelMatrixDisplay.from_estimator(MODEL, VIEWS).image_
    red, green, blue, _ = image.get_cmap()(np.linspace(0, 1, 50)).T
    assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) < 0).all()


@pytest.mark.parametrize(
    ("model", "X", "options", "error"),
    [
        (MultiViewKernelKMeans(3), VIEWS, {}, "MultiViewKernelKMeans.* has no labels_ or no kernel. Fit it first"),
        (KMeans(3, n_init=1).fit(TABLE), TABLE, {}, "KMeans.* has no labels_ or no kernel"),
        (MODEL, {name: view[:5] for name, view in VIEWS.items()}, {}, "X has 5 samples, but .* was fitted on 40"),
        (MODEL, VIEWS, {"max_samples": 0}, "max_samples=0 must be a whole number"),
        (MODEL, VIEWS, {"max_samples": 2.5}, r"max_samples=2\.5 must be"),
    ],
    ids=["not fitted", "another model", "samples", "none", "part of one"],
)
def test_what_cannot_be_drawn_is_refused(model, X, options, error):
    with pytest.raises(ParameterError, match=error):
        KernelMatrixDisplay.from_estimator(model, X, **options)


def test_views_that_are_not_those_of_the_model_are_refused():
    with pytest.raises(ViewError, match="was fitted on views"):
        KernelMatrixDisplay.from_estimator(MODEL, {"a": VIEWS["a"], "c": VIEWS["b"]})


def test_models_trained_on_a_part_show_that_part():
    model = KernelSpectralClustering(3, kernel_params={"sigma": 2.0}, n_train_samples=24, random_state=0).fit(TABLE)
    display = KernelMatrixDisplay.from_estimator(model, TABLE)
    assert sorted(display.indices) == model.train_indices_.tolist()
    np.testing.assert_allclose(display.K, rbf_kernel(TABLE[display.indices], gamma=1 / 8), atol=1e-12)
    np.testing.assert_array_equal(display.labels, model.labels_[display.indices])


@pytest.mark.parametrize("cls", [MultiViewKernelKMeans, MultiViewSpectralClustering])
def test_kernels_of_views_that_lack_samples_are_averaged_over_those_that_have_both(cls):
    views = {name: view.copy() for name, view in VIEWS.items()}
    views["a"][::5] = np.nan
    views["b"][2::5] = np.nan
    params = {"gamma": 0.1}
    model = cls(3, kernel="rbf", kernel_params=params, normalize=False, view_weights=[1.0, 3.0], p=1.0, random_state=0)
    display = KernelMatrixDisplay.from_estimator(model.fit(views), views)
    shares = np.array([0.25, 0.75])[:, None, None] * (model.observed_.T[:, :, None] & model.observed_.T[:, None, :])
    total = shares.sum(axis=0)
    kernels = np.array([rbf_kernel(np.nan_to_num(view), gamma=0.1) for view in views.values()])
    expected = (shares * kernels).sum(axis=0) / np.where(total > 0, total, np.nan)
    expected = expected[np.ix_(display.indices, display.indices)]
    unknown = np.isnan(expected)
    assert unknown.any()
    np.testing.assert_allclose(display.K[~unknown], expected[~unknown])
    np.testing.assert_allclose(display.K[unknown], display.K[unknown][0])
