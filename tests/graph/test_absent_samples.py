"""Graph fusion of views that lack samples: laws, the background of unknown pairs, new samples, absence by site."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from kernelweave import GraphFusionClustering, ViewError, ViewWarning, load_model, save_model
from kernelweave.estimators.graph.structure import Judge
from kernelweave.inputs import observed_views
from kernelweave.solvers.graph import fusion
from kernelweave.solvers.graph.fusion import Overlap, fuse_graphs, graph_eigenvectors, weighted_sum
from tests.peak_memory import peak_of

N = 120
GROUPS = np.arange(N) % 3


def grouped(seed, d, apart=6.0):
    return apart * np.eye(d)[GROUPS] + np.random.default_rng(seed).standard_normal((N, d))


VIEWS = [grouped(0, 4), grouped(1, 12), grouped(2, 5)]


def mask(seed, rate=0.3, n=N, n_views=3):
    rng = np.random.default_rng(seed)
    observed = rng.random((n, n_views)) >= rate
    observed[~observed.any(axis=1), 0] = True
    return observed


def holed(views, observed):
    return [np.where(observed[:, [v]], X, np.nan) for v, X in enumerate(views)]


def fitted(X, **parameters):
    return GraphFusionClustering(3, **({"check_views": False, "random_state": 0} | parameters)).fit(X)


# --- the fused graph -------------------------------------------------------------------------------------------------


def random_graphs(seed, n=14, n_views=3):
    rng = np.random.default_rng(seed)
    observed = mask(seed, 0.5, n, n_views)
    graphs = []
    for v in range(n_views):
        A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.4), 1)
        A *= np.outer(observed[:, v], observed[:, v])
        graphs.append(sp.csr_array(A + A.T))
    return graphs, observed


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_an_edge_is_the_mean_over_the_weight_of_the_views_that_have_both_ends(seed):
    graphs, observed = random_graphs(seed)
    weights = np.random.default_rng(seed).random(3) + 0.1
    W = weighted_sum(graphs, weights, Overlap.of(observed)).toarray()
    for i in range(14):
        for j in range(14):
            both = observed[i] & observed[j]
            total = sum(weights[v] * graphs[v][i, j] for v in np.flatnonzero(both))
            expected = total * weights.sum() / weights[both].sum() if both.any() else 0.0
            assert W[i, j] == pytest.approx(expected)


def test_edges_of_absent_samples_are_divided_some_rows_at_a_time(monkeypatch):
    graphs, observed = random_graphs(5, n=60)
    overlap = Overlap.of(observed)
    whole = weighted_sum(graphs, np.ones(3), overlap).toarray()
    monkeypatch.setattr(fusion, "ROWS_TOGETHER", 7)
    np.testing.assert_array_equal(weighted_sum(graphs, np.ones(3), overlap).toarray(), whole)
    W = sp.random_array((1500, 1500), density=0.3, format="csr", rng=np.random.default_rng(0))
    observed = mask(0, n=1500)
    observed[:, 0] = True
    overlap = Overlap.of(observed)
    _, peak = peak_of(lambda: overlap.averaged(W, np.ones(3)))
    assert peak < 0.1 * W.data.nbytes / 2**20


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_pairs_without_a_common_view_have_the_mean_affinity_of_the_others(seed):
    graphs, observed = random_graphs(seed)
    overlap = Overlap.of(observed)
    W = weighted_sum(graphs, np.ones(3), overlap)
    known = observed.astype(int) @ observed.T > 0
    background = overlap.background(W)
    if known.all():
        assert background is None
        return
    off_diagonal = known & ~np.eye(14, dtype=bool)
    level = W.toarray()[off_diagonal].sum() / off_diagonal.sum()
    dense = np.where(known, 0.0, level)
    np.testing.assert_allclose(background.dense(), dense)
    np.testing.assert_allclose(background.degrees(), dense.sum(axis=1))
    X = np.random.default_rng(seed).random((14, 2))
    np.testing.assert_allclose(background.times(X), dense @ X)


def test_eigenvectors_with_a_background_are_those_of_the_dense_sum(monkeypatch):
    graphs, observed = random_graphs(3, n=60)
    overlap = Overlap.of(observed)
    W = weighted_sum(graphs, np.ones(3), overlap)
    background = overlap.background(W)
    whole = W.toarray() + background.dense()
    scale = 1.0 / np.sqrt(whole.sum(axis=1))
    expected = np.linalg.eigvalsh(scale[:, None] * whole * scale)[::-1][:4]
    for small in (fusion.SMALL, 10):  # dense, and by products
        monkeypatch.setattr(fusion, "SMALL", small)
        values = graph_eigenvectors(W, 4, background=background).values
        np.testing.assert_allclose(values, expected, atol=1e-4)


def test_view_weights_are_shares_of_what_the_samples_of_the_view_carry():
    graphs, observed = random_graphs(5, n=40)
    fused = fuse_graphs(graphs, 2, observed=observed)
    start = fuse_graphs(graphs, 2, learned=False, observed=observed)
    U = start.eigenvectors.vectors[:, :2]
    kept = []
    for v, graph in enumerate(graphs):
        S = fusion.normalized(graph).toarray()
        there = observed[:, v]
        kept.append(np.trace(U.T @ S @ U) / np.sum(U[there] ** 2))
    np.testing.assert_allclose(fused.view_weights, np.array(kept) / np.mean(kept))


# --- laws ------------------------------------------------------------------------------------------------------------


def test_a_mask_of_ones_changes_nothing():
    graphs = [sp.csr_array(fitted([X]).affinity_) for X in VIEWS]
    plain = fuse_graphs(graphs, 3)
    masked = fuse_graphs(graphs, 3, observed=np.ones((N, 3), dtype=bool))
    assert masked.background is None
    np.testing.assert_array_equal(masked.affinity.data, plain.affinity.data)
    np.testing.assert_array_equal(masked.eigenvectors.vectors, plain.eigenvectors.vectors)
    assert fitted(VIEWS).observed_.all()
    assert observed_views(VIEWS).observed is None  # complete views go the way they went before


@given(seed=st.integers(0, 10_000))
@settings(max_examples=6, deadline=None)
def test_the_order_of_samples_and_views_plays_no_part(seed):
    observed = mask(seed, 0.4)
    X = holed(VIEWS, observed)
    order = np.random.default_rng(seed).permutation(N)
    model = fitted(X)
    other = fitted([X[v][order] for v in (2, 0, 1)])
    assert adjusted_rand_score(model.labels_[order], other.labels_) > 0.97
    np.testing.assert_allclose(model.view_weights_[[2, 0, 1]], other.view_weights_, rtol=1e-6)
    np.testing.assert_array_equal(model.observed_, observed)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_clusters_are_found_where_a_part_of_the_table_is_absent(rate):
    model = fitted(holed(VIEWS, mask(0, rate)))
    assert adjusted_rand_score(model.labels_, GROUPS) > 0.95


def test_tables_lists_dicts_and_sparse_views_say_the_same():
    observed = mask(1)
    X = holed(VIEWS, observed)
    model = fitted(X)
    by_name = fitted(dict(zip("abc", X, strict=True)))
    by_columns = fitted(np.hstack(X), views=[slice(0, 4), slice(4, 16), slice(16, 21)])
    sparse = fitted([sp.csr_array(X[0]), *X[1:]], view_types="table")
    for other in (by_name, by_columns, sparse):
        np.testing.assert_array_equal(model.labels_, other.labels_)


def test_kernels_and_graphs_lack_samples_too():
    observed = mask(2)
    K = VIEWS[0] @ VIEWS[0].T
    K[~observed[:, 0]] = np.nan
    K[:, ~observed[:, 0]] = np.nan
    rng = np.random.default_rng(0)
    A = np.triu((GROUPS[:, None] == GROUPS) & (rng.random((N, N)) < 0.3), 1).astype(float)
    A += A.T
    A[~observed[:, 1]] = np.nan
    A[:, ~observed[:, 1]] = np.nan
    X = [K, A, np.where(observed[:, [2]], VIEWS[2], np.nan)]
    model = fitted(X, view_types=["kernel", "graph", "table"])
    assert adjusted_rand_score(model.labels_, GROUPS) > 0.95
    np.testing.assert_array_equal(model.observed_, observed)
    assert np.mean(model.predict(X) == model.labels_) > 0.95


# --- the number of clusters and the views ----------------------------------------------------------------------------


def test_the_number_is_chosen_and_noise_is_told_from_clusters():
    observed = mask(4)
    model = GraphFusionClustering(random_state=0).fit(holed(VIEWS, observed))
    assert model.n_clusters_ == 3
    noise = [np.random.default_rng(v).standard_normal((N, 6)) for v in range(3)]
    assert GraphFusionClustering(random_state=0).fit(holed(noise, observed)).n_clusters_ == 1


def test_data_without_clusters_lack_the_same_samples():
    observed = mask(5)
    views = observed_views(holed(VIEWS, observed))
    judge = Judge(views, ["table"] * 3, 0)
    for v, graph in enumerate(judge.null_graphs(np.random.default_rng(0))):
        linked = np.diff(graph.indptr) > 0
        np.testing.assert_array_equal(linked, observed[:, v])


def test_views_of_data_without_clusters_go_together_as_those_of_the_data_do(monkeypatch):
    observed = np.ones((N, 2), dtype=bool)
    observed[:30, 0] = False
    observed[80:, 1] = False
    X = np.random.default_rng(0).standard_normal((N, 5))
    judge = Judge(observed_views(holed([X, X], observed)), ["table"] * 2, 0)
    drawn = []
    monkeypatch.setattr(judge, "_graphs", lambda views: drawn.append(views) or [])
    judge.null_graphs(np.random.default_rng(1))
    both = observed.all(axis=1)
    one, two = (block[both][:, 0] for block in drawn[0].blocks)
    assert np.corrcoef(one, two)[0, 1] > 0.4


def test_a_view_of_noise_is_named():
    observed = mask(6)
    X = holed([VIEWS[0], VIEWS[1], np.random.default_rng(9).standard_normal((N, 6))], observed)
    with pytest.warns(ViewWarning, match="'view_2' shows no groups"):
        fitted(X, check_views=True)


def test_clusters_that_say_who_was_measured_where_are_named():
    rng = np.random.default_rng(0)
    site = np.arange(N) % 2
    X = 8.0 * site[:, None] + rng.standard_normal((N, 3))
    Y = rng.standard_normal((N, 3))
    Y[site == 1] = np.nan
    with pytest.warns(ViewWarning, match="which views the samples are in"):
        GraphFusionClustering(2, check_views=False, random_state=0).fit([X, Y])


def test_absence_by_site_does_not_make_the_clusters():
    site = np.random.default_rng(3).integers(0, 4, N)
    observed = np.arange(3)[None, :] != site[:, None]
    labels = fitted(holed(VIEWS, observed)).labels_
    assert adjusted_rand_score(labels, GROUPS) > 0.95
    assert normalized_mutual_info_score(labels, site) < 0.1


# --- new samples -----------------------------------------------------------------------------------------------------


def test_new_samples_may_lack_views():
    model = fitted(dict(zip("abc", holed(VIEWS, mask(7)), strict=True)))
    fresh = [grouped(10 + v, X.shape[1]) for v, X in enumerate(VIEWS)]
    whole = model.predict(dict(zip("abc", fresh, strict=True)))
    truth = model.labels_[:3]  # the clusters of the three groups
    assert np.mean(whole == truth[GROUPS]) > 0.95
    for v, name in enumerate("abc"):
        assert np.mean(model.predict({name: fresh[v]}) == truth[GROUPS]) > 0.9
        rest = [X if u == v else np.full_like(X, np.nan) for u, X in enumerate(fresh)]
        np.testing.assert_array_equal(
            model.predict({name: fresh[v]}), model.predict(dict(zip("abc", rest, strict=True)))
        )


def test_views_without_names_cannot_be_left_out():
    model = fitted(VIEWS)
    with pytest.raises(ViewError, match="Pass the same views"):
        model.predict(VIEWS[:2])


def test_training_samples_keep_their_labels_and_places():
    X = holed(VIEWS, mask(8, 0.5))
    model = fitted(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_the_extension_adds_the_background_of_training_samples_that_share_no_view():
    observed = mask(9, 0.7)
    model = fitted(holed(VIEWS, observed))
    extension = model._model.extension
    assert extension.level > 0
    new = [grouped(20 + v, X.shape[1])[:6] for v, X in enumerate(VIEWS)]
    only_first = [new[0], np.full_like(new[1], np.nan), np.full_like(new[2], np.nan)]
    edges = extension.views[0].edges(new[0]).toarray() * extension.view_weights[0]
    there = observed[:, 0]
    shares = (observed[:, 0] * extension.view_weights[0]) / extension.view_weights.sum()
    affinities = np.where(there, edges / np.where(there, shares, 1.0), extension.level)
    np.testing.assert_allclose(
        extension.embed(only_first), fusion.unit_rows(affinities @ extension.sources), atol=1e-10
    )


def test_a_saved_model_knows_who_was_absent(tmp_path):
    X = holed(VIEWS, mask(10, 0.5))
    X[0][np.flatnonzero(~np.isnan(X[0][:, 0]))[0], 1] = np.nan
    model = fitted(X, missing="median")
    save_model(model, tmp_path / "model.kwm")
    again = load_model(tmp_path / "model.kwm")
    np.testing.assert_array_equal(again.observed_, model.observed_)
    new = [grouped(30 + v, view.shape[1]) for v, view in enumerate(VIEWS)]
    new[1][:40] = np.nan
    new[0][50, 2] = np.nan
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def test_many_samples_with_absent_ones_stay_sparse():
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.integers(3, size=n)
    views = [8.0 * np.eye(4)[y] + rng.standard_normal((n, 4)) for _ in range(3)]
    observed = mask(11, 0.6, n)
    model = GraphFusionClustering(3, check_views=False, random_state=0).fit(holed(views, observed))
    assert adjusted_rand_score(model.labels_, y) > 0.95
    assert model.affinity_.nnz < 200 * n
