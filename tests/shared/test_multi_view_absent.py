"""Estimators on kernels of several views, of which some lack samples: fit, new samples, faults and saved models."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from kernelweave import (
    GraphFusionClustering,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
    ParameterError,
    ViewError,
    ViewWarning,
    load_model,
    save_model,
)
from kernelweave.estimators.graph import graph_start
from kernelweave.kernels import blockwise, features
from tests.reference import masked_multi_view as oracle

CLASSES = {"k-means": MultiViewKernelKMeans, "spectral": MultiViewSpectralClustering}
both = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
K = 3


def groups(seed=0, n=60, noise=0.6):
    """Return three views of three groups, the last in other units, and the groups."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    views = []
    for width, unit in ((5, 1.0), (6, 1.0), (5, 100.0)):
        places = np.zeros((K, width))
        places[np.arange(K), np.arange(K)] = 5.0
        views.append(unit * (places[y] + noise * rng.normal(size=(n, width))))
    return views, y


def with_absent(views, rate=0.3, seed=0):
    """Return the views with rows of NaN, and who is there."""
    rng = np.random.default_rng([seed, 1])
    n = len(views[0])
    mask = rng.random((n, len(views))) >= rate
    mask[~mask.any(axis=1), 0] = True
    return [np.where(mask[:, [v]], X, np.nan) for v, X in enumerate(views)], mask


COMPLETE, Y = groups()
VIEWS, MASK = with_absent(COMPLETE)


def fitted(cls, X=VIEWS, n_clusters=K, **parameters):
    return cls(n_clusters, **{"random_state": 0} | parameters).fit(X)


# --- fit -------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kernel", ["linear", "rbf", "nearest_neighbors"])
@pytest.mark.filterwarnings("ignore:The kernel of view")
@pytest.mark.filterwarnings("ignore:A full step")
def test_the_groups_are_seen_although_samples_are_absent(cls, kernel):
    options = {"normalize": "degrees"} if kernel == "nearest_neighbors" and cls is CLASSES["spectral"] else {}
    model = fitted(cls, kernel=kernel, **options)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    np.testing.assert_array_equal(model.observed_, MASK)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert model.kernel_coefficients_.sum() == pytest.approx(1.0)
    assert (np.diff(model.objective_path_) <= 1e-12).all()
    assert model.objective_ == model.objective_path_[-1]


@both
def test_complete_views_take_no_notice_of_the_parameter(cls):
    plain = fitted(cls, COMPLETE)
    dropping = fitted(cls, COMPLETE, missing="drop")
    np.testing.assert_array_equal(plain.labels_, dropping.labels_)
    np.testing.assert_array_equal(plain.view_weights_, dropping.view_weights_)
    assert plain.objective_ == dropping.objective_
    assert plain.observed_.all()
    assert plain.observed_.shape == (60, 3)


def test_objective_and_costs_are_those_of_the_formula():
    model = fitted(CLASSES["k-means"], kernel="linear", p=1.5)
    # Linear kernels are divided by the mean squared distance of the samples that are there.
    features = []
    for v, X in enumerate(VIEWS):
        there = X[MASK[:, v]]
        spread = 2.0 * ((there - there.mean(axis=0)) ** 2).sum(axis=1).mean()
        features.append(X / np.sqrt(spread))
    plain = (features, MASK, model.labels_, np.ones(60), K)
    np.testing.assert_allclose(model.view_scatters_, oracle.scatters(*plain), rtol=1e-8)
    np.testing.assert_allclose(model.objective_, oracle.objective(*plain, model.view_weights_, 1.5), rtol=1e-8)
    np.testing.assert_allclose(model.cluster_variances_.sum(), model.objective_)
    costs = oracle.costs(*plain, model.view_weights_, 1.5)
    np.testing.assert_allclose(model.transform(VIEWS) ** 2, costs, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(model.score(VIEWS), -model.objective_, rtol=1e-8)


def test_the_default_start_is_the_fused_graph_and_labels_of_the_user_stay_theirs(monkeypatch):
    by_graph = fitted(CLASSES["k-means"])
    started = fitted(CLASSES["k-means"], init=by_graph.labels_)
    np.testing.assert_array_equal(started.labels_, by_graph.labels_)
    assert started.n_iter_ <= by_graph.n_iter_
    shifted = (Y + 1) % K
    kept = fitted(CLASSES["k-means"], init=shifted, max_iter=300)
    np.testing.assert_array_equal(kept.labels_, shifted)  # groups so far apart stay where they start
    # The groups under other names, as a graph would give them.
    monkeypatch.setattr("kernelweave.estimators.kmeans.multi_view_kernel_kmeans.graph_labels", lambda *_: shifted)
    np.testing.assert_array_equal(fitted(CLASSES["k-means"]).labels_, shifted)
    monkeypatch.undo()
    # Without a seed the graph is cut in the same way every time.
    unseeded = [fitted(CLASSES["k-means"], random_state=None).labels_ for _ in range(2)]
    np.testing.assert_array_equal(*unseeded)


@pytest.mark.parametrize("init", ["k-means++", "random", "random_partition", "global_exact", "global_exemplars"])
def test_other_starts_work_on_averaged_distances(init):
    model = fitted(CLASSES["k-means"], init=init, n_init=4, kernel="linear")
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    few = fitted(CLASSES["k-means"], init=init, n_init=4, kernel="linear", memory_limit=8 * 30**2 / 2**20, init_size=30)
    assert adjusted_rand_score(Y, few.labels_) > 0.9


@both
@pytest.mark.filterwarnings("ignore:View .* has no scatter left")
def test_the_exponent_can_be_chosen(cls):
    model = fitted(cls, p="auto", kernel="linear", n_init=2)
    assert len(model.p_path_["stability"]) == len(model.p_path_["p"])
    assert adjusted_rand_score(Y, model.labels_) > 0.9


@both
def test_view_weights_can_be_fixed_or_equal(cls):
    np.testing.assert_allclose(fitted(cls, view_weights=[1, 1, 2]).view_weights_, [0.25, 0.25, 0.5])
    np.testing.assert_allclose(fitted(cls, view_weights="uniform").view_weights_, 1 / 3)


def test_the_number_of_clusters_can_be_chosen():
    model = fitted(CLASSES["spectral"], n_clusters="auto")
    assert model.n_clusters_ == K


@both
def test_a_noisy_view_gets_little_weight(cls):
    noise = np.where(MASK[:, [2]], np.random.default_rng(5).normal(size=(60, 4)), np.nan)
    model = fitted(cls, [*VIEWS[:2], noise])
    assert model.view_weights_.argmin() == 2


@both
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 100))
def test_the_order_of_samples_and_views_plays_no_part(cls, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(60)
    order = rng.permutation(3)
    options = {"init": Y} if cls is CLASSES["k-means"] else {}
    shuffled = {"init": Y[rows]} if options else {}
    first = fitted(cls, **options)
    second = fitted(cls, [VIEWS[v][rows] for v in order], **shuffled)
    assert adjusted_rand_score(first.labels_[rows], second.labels_) == 1.0
    np.testing.assert_allclose(second.view_weights_, first.view_weights_[order], rtol=1e-6)
    np.testing.assert_array_equal(second.observed_, first.observed_[np.ix_(rows, order)])


@both
def test_a_sample_weight_equals_repetition(cls):
    times = np.arange(60) % 2 + 1
    options = {"kernel": "linear"} | ({"init": Y} if cls is CLASSES["k-means"] else {})
    repeated = options | ({"init": np.repeat(Y, times)} if "init" in options else {})
    weighted = cls(K, random_state=0, **options).fit(VIEWS, sample_weight=times)
    plain = cls(K, random_state=0, **repeated).fit([np.repeat(X, times, axis=0) for X in VIEWS])
    assert adjusted_rand_score(np.repeat(weighted.labels_, times), plain.labels_) == 1.0
    np.testing.assert_allclose(weighted.view_weights_, plain.view_weights_, rtol=1e-5)
    np.testing.assert_allclose(weighted.objective_, plain.objective_, rtol=1e-5)


@both
def test_precomputed_kernels_lack_rows_and_columns(cls):
    kernels = [rbf_kernel(X, gamma=0.5 / X.var(axis=0).sum()) for X in COMPLETE]
    for v, matrix in enumerate(kernels):
        matrix[~MASK[:, v]] = np.nan
        matrix[:, ~MASK[:, v]] = np.nan
    model = fitted(cls, kernels, kernel="precomputed")
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict([matrix[:9] for matrix in kernels]), model.labels_[:9])
    by_kernel = [{"gamma": 0.5 / X.var(axis=0).sum()} for X in COMPLETE]
    options = {"init": model.labels_} if cls is CLASSES["k-means"] else {}
    same = fitted(cls, kernel="rbf", kernel_params=by_kernel, **options)
    np.testing.assert_allclose(same.view_weights_, model.view_weights_, rtol=1e-6)
    assert adjusted_rand_score(same.labels_, model.labels_) == 1.0


@both
def test_sparse_views_give_the_clusters_of_dense_ones(cls):
    nonnegative = [np.abs(X) for X in VIEWS]
    dense = fitted(cls, nonnegative, kernel="cosine")
    sparse = fitted(cls, [sp.csr_array(X) for X in nonnegative], kernel="cosine")
    assert adjusted_rand_score(dense.labels_, sparse.labels_) == 1.0
    np.testing.assert_array_equal(sparse.observed_, MASK)


@both
def test_cells_are_filled_or_their_samples_dropped(cls):
    holed = [X.copy() for X in COMPLETE]
    holed[0][3, 0] = np.nan
    with pytest.raises(ViewError, match=r"contains NaN in 1 cells of 1 rows"):
        fitted(cls, holed)
    dropped = fitted(cls, holed, missing="drop")
    assert not dropped.observed_[3, 0]
    assert dropped.observed_.sum() == 60 * 3 - 1
    filled = fitted(cls, holed, missing="mean")
    assert filled.observed_.all()
    assert filled.predict([X[3:4] for X in holed]).tolist() == [filled.labels_[3]]
    with pytest.raises(ValueError, match="'missing' parameter"):
        fitted(cls, COMPLETE, missing="zeros")
    assert not get_tags(cls()).input_tags.allow_nan
    assert get_tags(cls(missing="knn")).input_tags.allow_nan


# --- new samples -----------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("training", ["complete", "with absent"])
def test_new_samples_may_lack_views(cls, kernel, training):
    model = fitted(cls, COMPLETE if training == "complete" else VIEWS, kernel=kernel)
    new, y = groups(seed=3, n=30, noise=0.3)
    names = {c: np.bincount(model.labels_[c == Y]).argmax() for c in range(K)}
    expected = [names[c] for c in y]
    for lacking in ((), (0,), (1, 2), (0, 2)):
        views = [np.full_like(X, np.nan) if v in lacking else X for v, X in enumerate(new)]
        assert np.mean(model.predict(views) == expected) > 0.9
        assert np.isfinite(model.transform(views)).all()
        assert model.transform(views).shape == (30, K)
    some, _ = with_absent(new, seed=7)
    assert np.mean(model.predict(some) == expected) > 0.9
    one_by_one = np.concatenate([model.predict([X[i : i + 1] for X in some]) for i in range(30)])
    np.testing.assert_array_equal(one_by_one, model.predict(some))


@both
def test_views_may_be_left_out_of_a_dict(cls):
    named = dict(zip(("a", "b", "c"), VIEWS, strict=True))
    model = fitted(cls, named)
    whole = {name: X[:5] for name, X in zip(("a", "b", "c"), COMPLETE, strict=True)}
    alone = model.predict({"b": whole["b"]})
    as_nan = model.predict(whole | {"a": np.full((5, 5), np.nan), "c": np.full((5, 5), np.nan)})
    np.testing.assert_array_equal(alone, as_nan)
    with pytest.raises(ViewError, match=r"fitted on views \['a', 'b', 'c'\]"):
        model.predict({"d": whole["b"]})


@both
def test_training_samples_get_their_labels_again(cls):
    model = fitted(cls)
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)
    if cls is CLASSES["spectral"]:
        np.testing.assert_allclose(model.transform(VIEWS), model.embedding_, atol=1e-7)


def test_affinities_of_pictures_are_those_of_the_fit():
    model = fitted(CLASSES["spectral"], kernel="rbf")
    cross = model._cross(VIEWS).block(slice(None), slice(None))
    np.testing.assert_allclose(cross, cross.T, atol=1e-9)
    assert np.isfinite(cross).all()


def test_new_samples_are_placed_in_the_same_way_however_many_come_together(monkeypatch):
    model = fitted(CLASSES["spectral"])
    together = model.transform(VIEWS)
    monkeypatch.setattr("kernelweave.estimators.shared.embedding.ROWS_TOGETHER", 7)
    np.testing.assert_allclose(model.transform(VIEWS), together, atol=1e-12)


# --- degenerate input ------------------------------------------------------------------------------------------------


@both
def test_samples_absent_from_every_view_are_named(cls):
    nowhere = [X.copy() for X in VIEWS]
    for X in nowhere:
        X[4] = np.nan
    with pytest.raises(ViewError, match=r"1 of 60 samples are absent from every view \(rows 4\)"):
        fitted(cls, nowhere)
    model = fitted(cls)
    with pytest.raises(ViewError, match=r"1 of 60 samples are absent from every view \(the first is row 4\)"):
        model.predict(nowhere)


@both
def test_views_that_share_no_sample_are_refused(cls):
    apart = [X.copy() for X in COMPLETE[:2]]
    apart[0][:30] = np.nan
    apart[1][30:] = np.nan
    with pytest.raises(ViewError, match="share no sample"):
        fitted(cls, apart)


@both
@pytest.mark.filterwarnings("ignore:View .* shares")
@pytest.mark.filterwarnings("ignore:The clusters agree with which")
def test_a_view_of_two_samples_takes_the_weight_and_says_so(cls):
    tiny = [COMPLETE[0], np.full((60, 2), np.nan)]
    tiny[1][[0, 1]] = [[0.0, 0.0], [1.0, 1.0]]
    with pytest.warns(Warning, match="View 'view_1' has no scatter left"):
        model = fitted(cls, tiny)
    assert np.isfinite(model.objective_)
    uniform = fitted(cls, tiny, view_weights="uniform")
    assert adjusted_rand_score(Y[2:], uniform.labels_[2:]) > 0.8


def test_a_cluster_that_nobody_of_a_view_is_in():
    views = [COMPLETE[0], np.where((Y == 2)[:, None], np.nan, COMPLETE[1])]
    with pytest.warns(ViewWarning, match="clusters agree with which views"):
        model = fitted(CLASSES["k-means"], views, kernel="linear", init=Y)
    np.testing.assert_array_equal(model.labels_, Y)
    assert np.isfinite(model._model.norms).all()
    # A new sample that view 1 alone has can be in the cluster that none of its samples is in: at the view's mean.
    mean = COMPLETE[1][Y != 2].mean(axis=0, keepdims=True)
    assert model.predict([np.full((1, 5), np.nan), mean]).tolist() == [2]
    options = {"kernel_params": {"gamma": 0.1}, "normalize": False, "view_weights": "uniform"}
    with pytest.warns(ViewWarning, match="clusters agree with which views"):
        gaussian = fitted(CLASSES["k-means"], views, init=Y, **options)
    there = COMPLETE[1][Y != 2]
    among = rbf_kernel(there, gamma=0.1)
    from_mean = 1.0 - 2.0 * rbf_kernel(mean, there, gamma=0.1).mean() + among.mean()
    distances = gaussian.transform([np.full((1, 5), np.nan), mean])
    np.testing.assert_allclose(distances[0, 2] ** 2, from_mean / (2 * len(there)))


@both
def test_a_view_whose_samples_have_no_weight_is_refused(cls):
    views = [COMPLETE[0], COMPLETE[1].copy()]
    views[1][10:] = np.nan
    weights = np.ones(60)
    weights[:10] = 0.0
    with pytest.raises(ViewError, match=r"All 10 samples that view 'view_1' has are of weight 0"):
        cls(K).fit(views, sample_weight=weights)


@both
def test_a_view_in_which_present_samples_are_equal_is_refused(cls):
    views = [COMPLETE[0], np.ones((60, 2))]
    views[1][:20] = np.nan
    with pytest.raises(ViewError, match=re.escape("All samples look the same in view 'view_1'")):
        fitted(cls, views)


def test_a_sum_that_cannot_be_stored_is_refused():
    with pytest.raises(ParameterError, match=r"memory_limit=0.01 is too small: .* 0.0275 MiB for 60 samples"):
        fitted(CLASSES["spectral"], memory_limit=0.01)
    options = {"kernel": "nearest_neighbors", "normalize": "degrees"}
    assert adjusted_rand_score(Y, fitted(CLASSES["spectral"], memory_limit=0.01, **options).labels_) > 0.9


# --- saved models ----------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed", "nearest_neighbors"])
@pytest.mark.filterwarnings("ignore:The kernel of view")
@pytest.mark.filterwarnings("ignore:A full step")
def test_models_come_back_from_files(cls, kernel, tmp_path):
    data = VIEWS
    if kernel == "precomputed":
        data = [rbf_kernel(X, gamma=0.5 / X.var(axis=0).sum()) for X in COMPLETE]
        for v, matrix in enumerate(data):
            matrix[~MASK[:, v]] = np.nan
            matrix[:, ~MASK[:, v]] = np.nan
    options = {"normalize": "degrees"} if cls is CLASSES["spectral"] and kernel != "linear" else {}
    model = fitted(cls, data, kernel=kernel, **options)
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    np.testing.assert_array_equal(again.observed_, MASK)
    if kernel != "precomputed":
        np.testing.assert_array_equal(again.transform(data), model.transform(data))


@both
def test_saved_kernels_must_be_of_the_samples_that_each_view_has(cls, tmp_path):
    model = fitted(cls)
    holder = model._model if cls is CLASSES["k-means"] else model._model.extension
    observed = holder.observed.copy()
    observed[:] = True
    object.__setattr__(holder, "observed", observed)
    with pytest.raises(ParameterError, match="has a kernel of other samples"):
        save_model(model, tmp_path / "model.kwm")


def test_models_of_older_files_refuse_new_samples_that_lack_views(tmp_path):
    model = fitted(CLASSES["k-means"], COMPLETE)
    object.__setattr__(model._model, "view_norms", None)  # as files had it before
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    np.testing.assert_array_equal(again.predict(COMPLETE), model.labels_)
    with pytest.raises(ViewError, match="kept nothing of single views"):
        again.predict(VIEWS)


def test_the_start_from_a_graph_is_that_of_graph_fusion_also_where_nothing_is_absent():
    rng = np.random.default_rng(0)
    groups = np.arange(90) % 3
    views = [5.0 * np.eye(d)[groups] + rng.standard_normal((90, d)) for d in (3, 4)]
    labels = GraphFusionClustering(3, check_views=False, random_state=0).fit(views).labels_
    whole = MultiViewKernelKMeans(3, init="graph", random_state=0).fit(views)
    from_labels = MultiViewKernelKMeans(3, init=labels).fit(views)
    assert adjusted_rand_score(whole.labels_, from_labels.labels_) == 1.0
    assert whole.objective_path_[0] == pytest.approx(from_labels.objective_path_[0])
    views[0][::4] = np.nan
    named = MultiViewKernelKMeans(3, init="graph", random_state=0).fit(views)
    default = MultiViewKernelKMeans(3, random_state=0).fit(views)
    np.testing.assert_array_equal(named.labels_, default.labels_)
    assert named.objective_ == default.objective_


@pytest.mark.parametrize("views", [COMPLETE, VIEWS], ids=["complete", "with absent"])
def test_the_start_from_a_graph_cuts_the_graph_of_graph_fusion(views, monkeypatch):
    real = graph_start.cut_clusters
    cut = []

    def watch(affinity, *arguments, **options):
        cut.append(affinity)
        return real(affinity, *arguments, **options)

    monkeypatch.setattr(graph_start, "cut_clusters", watch)
    fitted(CLASSES["k-means"], views, init="graph")
    fused = GraphFusionClustering(K, check_views=False, random_state=0).fit(views)
    np.testing.assert_allclose(cut[0].toarray(), fused.affinity_.toarray(), rtol=1e-9)


# --- memory -----------------------------------------------------------------------------------------------------------


def peak_mib(work):
    """Return the MiB that arrays of ``work`` took at a time, and what it returned."""
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1] / 2**20, result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("init", "limit"), [("k-means++", 4), ("global_exemplars", 10)])
def test_starts_by_averaged_distances_stay_within_the_limit(init, limit):
    views, y = groups(n=1200)
    X, _ = with_absent(views, rate=0.1)
    model = MultiViewKernelKMeans(K, init=init, n_init=1, memory_limit=limit, random_state=0)
    peak, _ = peak_mib(lambda: model.fit(X))
    assert peak < 1.15 * limit
    assert adjusted_rand_score(y, model.labels_) > 0.95


@pytest.mark.parametrize(("limit", "normalize"), [(60, True), (26, True), (26, "degrees")])
def test_the_averaged_sum_of_kernels_is_the_only_matrix_besides_stored_kernels(limit, normalize):
    views, y = groups(n=1500)  # a matrix takes 17 MiB
    X, _ = with_absent(views[:2], rate=0.1)
    model = MultiViewSpectralClustering(K, normalize=normalize, n_init=1, max_iter=3, memory_limit=limit)
    peak, _ = peak_mib(lambda: model.set_params(random_state=0).fit(X))
    assert peak < 1.15 * limit
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_sums_that_do_not_fit_are_refused_before_anything_is_stored():
    views, _ = groups(n=1500)
    X, _ = with_absent(views, rate=0.1)
    model = MultiViewSpectralClustering(K, memory_limit=10, random_state=0)

    def refused(rows):
        with pytest.raises(ParameterError, match=r"fit on a part of the samples .*: [\d,]+ samples would fit") as error:
            model.fit([view[:rows] for view in X])
        return int(re.search(r"([\d,]+) samples would fit", str(error.value)).group(1).replace(",", ""))

    peak, fitting = peak_mib(lambda: refused(1500))
    assert peak < 1
    peak, _ = peak_mib(lambda: model.fit([view[:fitting] for view in X]))
    assert peak < 11.5
    assert refused(fitting + 1) == fitting


def kernels_with_absent(n, dtype=np.float64):
    """Return two kernel matrices, rows and columns of absent samples NaN, and the groups."""
    views, y = groups(n=n)
    matrices = []
    for v, X in enumerate(views[:2]):
        matrix = rbf_kernel(X, gamma=0.05).astype(dtype)
        gone = np.arange(n) % 20 == v
        matrix[gone] = np.nan
        matrix[:, gone] = np.nan
        matrices.append(matrix)
    return matrices, y


@pytest.mark.parametrize(("init", "n", "limit"), [("graph", 1300, 20), ("k-means++", 900, 5)])
def test_kernel_matrices_that_lack_samples_are_not_copied_beyond_the_limit(init, n, limit):
    X, y = kernels_with_absent(n)
    given = sum(matrix.nbytes for matrix in X) / 2**20
    model = MultiViewKernelKMeans(K, kernel="precomputed", init=init, n_init=1, memory_limit=limit, random_state=0)
    peak, _ = peak_mib(lambda: model.fit(X))
    assert peak < 0.15 * given + 1.15 * limit
    copied = model.labels_
    assert adjusted_rand_score(copied, model.set_params(memory_limit=2048).fit(X).labels_) == 1.0
    assert adjusted_rand_score(copied, y) > 0.95


def test_sums_of_kernel_matrices_are_refused_before_they_are_copied():
    X, _ = kernels_with_absent(900)
    given = sum(matrix.nbytes for matrix in X) / 2**20

    def refused():
        with pytest.raises(ParameterError, match="samples would fit"):
            MultiViewSpectralClustering(K, kernel="precomputed", memory_limit=2).fit(X)

    assert peak_mib(refused)[0] < 0.15 * given + 1.15 * 2


def wide_and_single(n, d):
    """Return two tables of single precision that lack samples."""
    X = np.random.default_rng(0).standard_normal((2, n, d)).astype(np.float32)
    X[:, np.arange(n), np.arange(n) % 3] += 9.0
    for v in range(2):
        X[v, np.arange(n) % 20 == v] = np.nan
    return list(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_tables_of_single_precision_that_lack_samples_are_refused_before_they_are_converted(kernel, monkeypatch):
    for module in (blockwise, features):
        monkeypatch.setattr(module, "PIECE_ENTRIES", 2**14)  # as small a share of this limit as usually
    X = wide_and_single(1000, 1000)
    given = sum(block.nbytes for block in X) / 2**20
    options = {"kernel": kernel, "init": "k-means++", "n_init": 1, "max_iter": 2, "random_state": 0}
    model = MultiViewKernelKMeans(K, memory_limit=12, **options)
    model.fit([block[:100] for block in X])

    def refused(rows):
        with pytest.raises(ParameterError, match="samples would fit") as error:
            model.fit([block[:rows] for block in X])
        return int(re.search(r"([\d,]+) samples would fit", str(error.value)).group(1).replace(",", ""))

    peak, fitting = peak_mib(lambda: refused(1000))
    assert peak < 0.6 + 0.3 * given / 4  # what is NaN is marked
    some = [block[:fitting] for block in X]
    model.fit(some)  # so many samples take loops that few do not, which are compiled here
    peak, _ = peak_mib(lambda: model.fit(some))
    assert peak <= 0.15 * given * fitting / 1000 + 1.15 * 12
    assert refused(fitting + 2) <= fitting + 1


@pytest.mark.parametrize("init", ["graph", "global_fast"])
def test_the_start_from_the_graph_stays_within_the_limit(init):
    views, y = groups(n=1300)
    X, _ = with_absent(views[:2], rate=0.1)
    model = MultiViewKernelKMeans(K, init=init, memory_limit=16, max_iter=2, random_state=0)
    model.fit([block[:80] for block in X])
    peak, _ = peak_mib(lambda: model.fit(X))  # 256 rows of distances take 2.5 MiB, and several were held
    assert peak < 1.15 * 16
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.labels_, model.set_params(memory_limit=2048).fit(X).labels_)


def test_distances_of_the_start_from_the_graph_have_what_the_limit_leaves_beside_rows_lists_and_graphs(monkeypatch):
    rooms = []
    real = graph_start.fit_views

    def watch(views, types, n_clusters, search):
        rooms.append(search.room)
        return real(views, types, n_clusters, search)

    monkeypatch.setattr(graph_start, "fit_views", watch)
    views, _ = groups(n=200)
    for limit in (6, 12):
        MultiViewKernelKMeans(K, init="graph", memory_limit=limit, max_iter=2, random_state=0).fit(views[:2])
    few, many = rooms
    assert 0 < few < 6
    assert many == pytest.approx(few + 6)


def test_a_graph_to_start_from_that_does_not_fit_is_refused_before_the_search():
    views, _ = groups(n=1300)
    X, _ = with_absent(views[:2], rate=0.1)
    model = MultiViewKernelKMeans(K, init="graph", memory_limit=5, max_iter=2, random_state=0)

    def refused():
        message = r"memory_limit=5. Raise it, choose another start .* would fit"
        with pytest.raises(ParameterError, match=message) as error:
            model.fit(X)
        return int(re.search(r"([\d,]+) samples would fit", str(error.value)).group(1).replace(",", ""))

    peak, fitting = peak_mib(refused)
    assert peak < 1
    some = [block[:fitting] for block in X]
    peak, _ = peak_mib(lambda: model.fit(some))
    assert peak < 1.15 * 5
