"""Graph fusion as users meet it: laws, inputs of every type, new samples, warnings, the number of clusters."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from kernelweave import (
    ConvergenceWarning,
    GraphFusionClustering,
    KernelError,
    ParameterError,
    ViewError,
    ViewWarning,
    load_model,
    metrics,
    save_model,
)
from kernelweave.estimators.graph import fusion_views
from kernelweave.estimators.graph.fusion_views import neighborhood_sizes
from kernelweave.kernels.neighbors import nearest_others, self_tuned_graph
from tests.reference import graph_fusion as oracle

N = 90
GROUPS = np.arange(N) % 3


def grouped(seed=0, y=GROUPS, d=4, apart=7.0):
    """Return samples around the corners of a simplex."""
    return apart * np.eye(d)[y] + np.random.default_rng(seed).standard_normal((len(y), d))


def noise(seed=9, n=N, d=4):
    return np.random.default_rng(seed).standard_normal((n, d))


def documents(seed=0, y=GROUPS, words=40):
    """Return sparse counts: every group has words of its own, and some are common."""
    rng = np.random.default_rng(seed)
    own = np.arange(4 * words) // words
    shares = np.where(own == y[:, None], 0.25, 0.0) + np.where(own == 3, 0.08, 0.0)
    return sp.csr_array(rng.poisson(shares).astype(float))


def links(seed=0, y=GROUPS, inside=0.4, between=0.02):
    """Return a graph that joins samples of a group more often."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((len(y), len(y))) < np.where(y[:, None] == y, inside, between), 1).astype(float)
    return A + A.T


def linear_kernel_of_z_scores(X):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return Z @ Z.T


def fitted(X, n_clusters=3, **options):
    return GraphFusionClustering(n_clusters, **({"random_state": 0, "check_views": False} | options)).fit(X)


def same_clusters(a, b):
    return adjusted_rand_score(a, b) == 1.0


# --- laws ------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1000))
def test_permuted_samples_have_permuted_clusters(seed):
    views = [grouped(seed), grouped(seed + 1)]
    order = np.random.default_rng(seed).permutation(N)
    labels = fitted(views).labels_
    assert same_clusters(fitted([X[order] for X in views]).labels_, labels[order])


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1000), st.permutations([0, 1, 2]))
def test_views_in_another_order_give_the_same(seed, order):
    views = {f"v{i}": X for i, X in enumerate([grouped(seed), documents(seed), noise(seed)])}
    one = fitted(views)
    other = fitted({f"v{i}": views[f"v{i}"] for i in order})
    assert same_clusters(one.labels_, other.labels_)
    np.testing.assert_allclose(other.view_weights_, one.view_weights_[list(order)], rtol=1e-6)
    assert other.objective_ == pytest.approx(one.objective_)


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1000), st.sampled_from([4, 12]))
def test_columns_in_other_units_change_nothing(seed, d):
    X = grouped(seed, d=d) - 3.0
    rng = np.random.default_rng(seed)
    other = X * rng.uniform(0.01, 100, d) + (rng.uniform(-5, 5, d) if d == 4 else 0.0)  # the sign tells wide tables
    one = fitted(X)
    same = fitted(other)
    assert same_clusters(one.labels_, same.labels_)
    np.testing.assert_allclose(one.affinity_.toarray(), same.affinity_.toarray(), atol=1e-8)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 1000))
def test_a_view_given_twice_is_one_view(seed):
    X = grouped(seed)
    once = fitted(X)
    twice = fitted([X, X])
    assert same_clusters(once.labels_, twice.labels_)
    np.testing.assert_allclose(twice.view_weights_, 0.5)
    np.testing.assert_allclose(twice.affinity_.toarray(), 2 * once.affinity_.toarray())
    assert twice.objective_ == pytest.approx(once.objective_)


def test_lists_dicts_and_columns_of_one_table_are_the_same():
    first = grouped(0)
    second = grouped(1)
    table = np.hstack([first, second])
    frame = pd.DataFrame(table, columns=[f"c{i}" for i in range(8)])
    models = [
        fitted([first, second]),
        fitted((first, second)),
        fitted({"view_0": first, "view_1": second}),
        fitted([sp.csr_array(first), second]),
        fitted(table, views=[slice(0, 4), slice(4, 8)]),
        fitted(table, views={"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}),
        fitted(frame, views={"a": ["c0", "c1", "c2", "c3"], "b": slice("c4", "c7")}),
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_allclose(model.affinity_.toarray(), models[0].affinity_.toarray(), atol=1e-12)


def test_the_affinity_is_the_weighted_sum_of_the_graphs_of_the_formula():
    views = [grouped(0, y=GROUPS[:30]), noise(1, n=30)]
    model = fitted(views, n_neighbors=5)
    graphs = [oracle.self_tuned_graph(oracle.distances((X - X.mean(axis=0)) / X.std(axis=0)), 5) for X in views]
    weights, W = oracle.fuse(graphs, 3, [1.0, 1.0])
    np.testing.assert_allclose(model.view_weights_, weights / weights.sum(), rtol=1e-8)
    np.testing.assert_allclose(model.affinity_.toarray(), W, atol=1e-10)
    embedding = oracle.embedding(W, 3)
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, embedding @ embedding.T, atol=1e-7)
    assert model.objective_ == pytest.approx(oracle.normalized_cut(W, model.labels_))
    np.testing.assert_allclose(model.eigenvalues_, oracle.leading(W, 6)[0], atol=1e-10)


def test_fitted_attributes_describe_the_fit():
    model = fitted({"a": grouped(0), "b": documents()})
    assert sorted(np.unique(model.labels_)) == [0, 1, 2]
    assert model.n_clusters_ == 3
    assert model.confidence_ == "given"
    assert model.verdict_ == "3 clusters, as requested."
    assert len(model.n_clusters_path_["gap"]) == len(model.n_clusters_path_["n_clusters"]) == 0
    assert model.view_names_ == ["a", "b"]
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert model.representations_ == {"a": ["z-scores"], "b": ["cosine with idf", "cosine"]}
    assert model.embedding_.shape == (N, 6)
    assert model.objective_ == model.objective_path_[-1]
    assert model.objective_ == pytest.approx(metrics.normalized_cut(model.affinity_.toarray(), model.labels_))
    assert model.n_iter_ == len(model.objective_path_)
    assert model.converged_
    assert model.warnings_ == ()
    assert np.isnan(model.view_agreement_).all()
    assert fitted(grouped(0)).view_agreement_.tolist() == [1.0]


def test_one_cluster_holds_all_samples():
    model = fitted([grouped(0), noise()], n_clusters=1)
    assert not model.labels_.any()
    assert model.verdict_ == "1 cluster, as requested."
    assert model.objective_ == 0.0


# --- neighbours ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "k", "kind", "n_neighbors", "sizes"),
    [
        (300, 3, "table", None, (12, 25)),  # a quarter of a mean cluster, and half of that
        (300, 3, "counts", None, (12, 25, 38)),
        (300, 3, "kernel", None, (12, 25)),
        (3000, 2, "table", None, (20, 40)),  # 40 at most
        (60, 6, "table", None, (5, 10)),  # 10 at least
        (8, 2, "table", None, (5, 7)),  # others there are
        (4, 2, "table", None, (3,)),
        (300, 3, "table", 17, (17,)),
        (10, 3, "counts", 17, (9,)),
        (10_001, 3, "table", None, (15,)),
        (10_001, 3, "table", 30, (30,)),
    ],
)
def test_neighbourhoods_have_a_quarter_of_a_mean_cluster_within_bounds(n, k, kind, n_neighbors, sizes):
    assert neighborhood_sizes(n, k, kind, n_neighbors) == sizes


def test_n_neighbors_replaces_the_sizes():
    X = grouped(0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    graph = self_tuned_graph(nearest_others(Z, 7, np.random.default_rng(0)))
    np.testing.assert_allclose(fitted(X, n_neighbors=7).affinity_.toarray(), graph.toarray(), atol=1e-12)


def test_a_constant_view_has_no_edges_and_changes_nothing():
    X = grouped(0)
    one = fitted(X)
    both = fitted([X, np.ones((N, 3))])
    assert same_clusters(one.labels_, both.labels_)
    assert both.view_weights_[1] < 1e-5


# --- types of views --------------------------------------------------------------------------------------------------


def test_a_graph_view_of_the_neighbour_graph_reproduces_the_cut():
    table = fitted(grouped(0, apart=3.0))
    graph = fitted(table.affinity_, view_types="graph")
    assert same_clusters(table.labels_, graph.labels_)
    assert graph.objective_ == pytest.approx(table.objective_)


def test_a_graph_is_cut_the_same_whatever_its_unit_and_beside_a_table():
    A = links()
    table = grouped(1)
    one, other = (fitted([scale * A, table], view_types=["graph", "table"]) for scale in (1.0, 50.0))
    np.testing.assert_allclose(one.affinity_.toarray(), other.affinity_.toarray(), atol=1e-9)
    mean = fitted(table).affinity_.data.mean()
    assert fusion_views.fit_views(one_view(A), ["graph"], 3, fusion_views.NeighborSearch(None))[1][
        0
    ].data.mean() == pytest.approx(1.0)
    linked = one.affinity_.toarray()[(A > 0) & (fitted(table).affinity_.toarray() == 0)]
    np.testing.assert_allclose(linked, one.view_weights_[0] * 2 * mean)


def one_view(block):
    return fusion_views.Views(("X",), (block,))


def test_a_kernel_of_z_scores_finds_the_clusters_of_the_table():
    X = grouped(0, apart=4.0)
    table = fitted(X)
    kernel = fitted(linear_kernel_of_z_scores(X), view_types="kernel")
    np.testing.assert_allclose(kernel.affinity_.toarray(), table.affinity_.toarray(), atol=1e-6)
    assert same_clusters(table.labels_, kernel.labels_)
    assert kernel.representations_ == {"X": ["kernel"]}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_views_of_all_types_go_together(form):
    X = grouped(0)
    views = {"table": X, "words": documents(), "kernel": form(X @ X.T), "web": form(links())}
    types = {"table": "auto", "words": "auto", "kernel": "kernel", "web": "graph"}
    model = fitted(views, view_types=types)
    assert same_clusters(model.labels_, GROUPS)
    assert model.representations_["web"] == ["graph"]
    new = {name: view[:5] for name, view in views.items()}
    np.testing.assert_array_equal(model.predict(new), model.labels_[:5])


def test_counts_may_be_read_as_a_table_and_a_table_as_counts():
    X = documents()
    assert fitted(X, view_types="table").representations_ == {"X": ["z-scores", "Hellinger"]}
    table = np.maximum(grouped(0), 0.0)
    assert fitted(table, view_types="counts").representations_ == {"X": ["cosine with idf", "cosine"]}


@pytest.mark.parametrize(
    ("types", "error", "words"),
    [
        (["table", "words"], ParameterError, r"view_types gives 'words' for view 'second'; choose one of"),
        ({"first": "table", "second": "Kernel"}, ParameterError, "'Kernel' for view 'second'"),
        (["table"], ViewError, "view_types has 1 entries for 2 views"),
        ({"first": "table"}, ViewError, r"view_types names views \['first'\]"),
        (["table", "graph"], KernelError, r"view 'second' is a graph and must be square, .* but is \(90, 4\)"),
        (["table", "kernel"], KernelError, r"view 'second' must be a square kernel matrix, .* shape is \(90, 4\)"),
    ],
)
def test_errors_about_types_name_the_view(types, error, words):
    with pytest.raises(error, match=words):
        fitted({"first": grouped(0), "second": grouped(1)}, view_types=types)


@pytest.mark.parametrize("kind", ["kernel", "graph"])
@pytest.mark.parametrize("judged", [10, 1200])
def test_a_kernel_or_graph_that_is_not_symmetric_is_refused_with_its_own_rows(kind, judged, monkeypatch):
    monkeypatch.setattr("kernelweave.estimators.graph.structure.JUDGED", judged)
    A = links()
    A[80, 85] += 1.0
    with pytest.raises(KernelError, match=r"view 'X' is not symmetric: view 'X'\[8[05], 8[05]\]"):
        fitted(A, n_clusters="auto", view_types=kind)
    with pytest.raises(KernelError, match=r"square"):
        fitted(A[:, :20], n_clusters="auto", view_types=kind)


def test_a_kernel_of_zeros_has_no_clusters():
    assert fitted(np.zeros((30, 30)), n_clusters="auto", view_types="kernel").n_clusters_ == 1


# --- view weights ----------------------------------------------------------------------------------------------------


def test_learned_weights_favour_views_that_follow_the_common_structure():
    weights = fitted([grouped(0), grouped(1), noise()]).view_weights_
    assert weights[2] < 0.8 * weights[:2].min()


@pytest.mark.parametrize(
    ("given_weights", "wanted"),
    [("uniform", [1 / 3, 1 / 3, 1 / 3]), ([1, 1, 2], [0.25, 0.25, 0.5]), ({"a": 0, "b": 3, "c": 1}, [0, 0.75, 0.25])],
)
def test_weights_may_be_equal_or_given(given_weights, wanted):
    views = {"a": grouped(0), "b": grouped(1), "c": noise()}
    np.testing.assert_allclose(fitted(views, view_weights=given_weights).view_weights_, wanted)


def test_a_view_of_weight_zero_is_not_there():
    alone = fitted(grouped(0))
    beside = fitted([grouped(0), noise()], view_weights=[1, 0])
    assert same_clusters(alone.labels_, beside.labels_)
    assert beside.objective_ == pytest.approx(alone.objective_)


def test_learning_may_start_from_weights():
    views = [noise(1), grouped(0), noise(2)]
    plain = fitted(views).view_weights_
    started = fitted(views, init_view_weights=[0, 1, 0]).view_weights_
    assert started[1] > plain[1] + 0.05
    with pytest.raises(ParameterError, match="init_view_weights"):
        fitted(views, view_weights="uniform", init_view_weights=[0, 1, 0])


@pytest.mark.parametrize("bad", [[1, 1], [1, -1, 1], {"a": 1}, [0, 0, 0]])
def test_weights_that_make_no_sense_are_refused(bad):
    with pytest.raises(ViewError, match="view_weights"):
        fitted([grouped(0), grouped(1), noise()], view_weights=bad)


# --- new samples -----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1000), st.sampled_from(["table", "wide", "counts", "both"]))
def test_training_samples_keep_their_labels_and_places(seed, kind):
    blocks = {"table": grouped(seed), "wide": noise(seed, d=15), "counts": documents(seed)}
    X = [blocks["table"], blocks["counts"]] if kind == "both" else [blocks[kind]]
    model = fitted(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    distinct = np.unique(np.hstack([b.toarray() if sp.issparse(b) else b for b in X]), axis=0, return_index=True)[1]
    np.testing.assert_allclose(model.transform(X)[distinct], model.embedding_[distinct], atol=1e-12)
    few = [block[[7, 3]] for block in X]
    np.testing.assert_array_equal(model.predict(few), model.labels_[[7, 3]])


@pytest.mark.parametrize("seed", [0, 1])
def test_training_samples_are_recognised_though_every_view_repeats_rows(seed):
    rng = np.random.default_rng(seed)
    views = [rng.integers(0, 3, (N, 2)).astype(float) for _ in range(2)]
    model = fitted(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    np.testing.assert_array_equal(model.predict([sp.csr_array(view) for view in views]), model.labels_)


def test_rows_of_counts_that_are_multiples_are_not_taken_for_one_another():
    X = documents().toarray()[:45]
    both = np.vstack([X, 2 * X])
    model = fitted(both, view_types="counts")
    distinct = np.unique(both, axis=0, return_index=True)[1]
    np.testing.assert_allclose(model.transform(both)[distinct], model.embedding_[distinct], atol=1e-12)


def test_equal_samples_have_equal_labels():
    X = noise(3, d=2)
    X[30:60] = X[:30]
    X[60:70] = X[0]
    model = fitted(X, n_clusters=5)
    np.testing.assert_array_equal(model.labels_[:30], model.labels_[30:60])
    assert len(set(model.labels_[60:70])) == 1
    assert model.objective_ == pytest.approx(metrics.normalized_cut(model.affinity_.toarray(), model.labels_))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["table", "wide", "counts", "kernel", "graph"])
def test_new_samples_of_the_same_groups_go_to_their_clusters(kind, seed):
    y = np.arange(2 * N) % 3
    make = {
        "table": lambda: grouped(seed, y=y),
        "wide": lambda: grouped(seed, y=y, d=14, apart=9.0),
        "counts": lambda: documents(seed, y=y),
        "kernel": lambda: linear_kernel_of_z_scores(grouped(seed, y=y)),
        "graph": lambda: links(seed, y=y),
    }
    X = make[kind]()
    pairs = kind in ("kernel", "graph")
    train = X[:N, :N] if pairs else X[:N]
    new = X[N:, :N] if pairs else X[N:]
    model = fitted(train, view_types="table" if kind == "wide" else kind)
    predicted = model.predict(new)
    assert adjusted_rand_score(y[N:], predicted) > 0.95
    combined = np.concatenate([model.labels_, predicted])
    assert adjusted_rand_score(y, combined) > 0.95
    lengths = np.linalg.norm(model.transform(new), axis=1)
    np.testing.assert_allclose(lengths, 1.0)


@pytest.mark.parametrize("weights", ["learned", [1, 5]])
def test_new_samples_of_two_tables_are_placed_by_the_formula(weights):
    first = grouped(0, y=GROUPS[:40], apart=3.0)
    second = noise(1, n=40)
    model = fitted([first[:30], second[:30]], view_weights=weights)
    sizes = neighborhood_sizes(30, 3, "table")
    edges = np.zeros((10, 30))
    for weight, X in zip(model.view_weights_, (first, second), strict=True):
        D = oracle.distances((X - X[:30].mean(axis=0)) / X[:30].std(axis=0))
        edges += weight * oracle.new_edges(D[30:, :30], D[:30, :30], sizes)
    assert len(sizes) == 2
    W = model.affinity_.toarray()
    wanted = oracle.extended(edges, W, 3) @ oracle.embedding(W, 3).T
    new = [first[30:], second[30:]]
    np.testing.assert_allclose(model.transform(new) @ model.embedding_.T, wanted, atol=1e-6)


def test_new_samples_of_a_kernel_and_a_graph_are_placed_by_the_formula():
    y = GROUPS[:40]
    X = grouped(0, y=y, apart=3.0)
    A = 7.0 * links(y=y)
    K = X @ X.T
    model = fitted([K[:30, :30], A[:30, :30]], view_types=["kernel", "graph"], view_weights=[1, 3])
    sizes = neighborhood_sizes(30, 3, "kernel")
    # K(x, x) of a new sample is not known: it lies as close to the nearest training sample as can be.
    squares = np.array([[K[j, j] - 2 * K[i, j] for j in range(30)] for i in range(30, 40)])
    apart = np.sqrt(squares - squares.min(axis=1, keepdims=True))
    kernel_edges = oracle.new_edges(apart, oracle.distances(X[:30]), sizes)
    mean = oracle.mean_graph([X[:30]], sizes)
    scale = mean[mean > 0].mean() / A[:30, :30][A[:30, :30] > 0].mean()
    W = model.affinity_.toarray()
    np.testing.assert_allclose(W, 0.5 * mean + 1.5 * scale * A[:30, :30], atol=1e-6)
    edges = 0.5 * kernel_edges + 1.5 * scale * A[30:, :30]
    wanted = oracle.extended(edges, W, 3) @ oracle.embedding(W, 3).T
    np.testing.assert_allclose(model.transform([K[30:, :30], A[30:, :30]]) @ model.embedding_.T, wanted, atol=1e-5)


def test_training_rows_of_kernels_and_graphs_are_predicted_as_they_were_clustered():
    K = linear_kernel_of_z_scores(grouped(0))
    for X, kind in ((K, "kernel"), (links(), "graph")):
        model = fitted(X, view_types=kind)
        assert adjusted_rand_score(model.labels_, model.predict(X)) > 0.95


def test_a_new_row_of_counts_without_a_known_word_is_embedded_as_zero():
    X = documents()
    model = fitted(X)
    new = sp.csr_array((1, X.shape[1]))
    np.testing.assert_array_equal(model.transform(new), 0.0)
    assert model.predict(new)[0] in (0, 1, 2)


@pytest.mark.parametrize("positive", [False, True])
def test_a_new_row_of_zeros_is_placed_the_same_whatever_comes_with_it(positive):
    X = grouped(0, d=12)
    X = np.abs(X) if positive else X
    model = fitted(X)
    zeros = np.zeros((1, 12))
    alone = model.transform(zeros)[0]
    for other in (X[:1], -X[:1]):
        np.testing.assert_allclose(model.transform(np.vstack([zeros, other]))[0], alone)
        np.testing.assert_allclose(model.transform(sp.csr_array(np.vstack([zeros, other])))[0], alone)
    assert alone.any() != positive  # among values >= 0 it is an empty histogram, else a place like any other


def test_more_clusters_than_different_samples_do_not_divide_copies():
    X = np.repeat(np.eye(4), 8, axis=0)
    with pytest.warns(ConvergenceWarning, match="cluster"):
        model = fitted(X, n_clusters=6)
    np.testing.assert_array_equal(model.labels_, np.repeat(np.arange(4), 8))


def test_new_samples_follow_the_weights_of_views():
    first = grouped(0)
    other = grouped(1, y=np.random.default_rng(0).permutation(GROUPS))
    model = fitted([first, other], view_weights=[1, 0])
    new = [first[:30] + 0.01, other[::-1][:30]]
    np.testing.assert_array_equal(model.predict(new), model.labels_[:30])


# --- the same again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_the_same_seed_gives_the_same_labels_at_any_number_of_threads(n_clusters):
    views = [grouped(0, apart=4.0), documents()]
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models.append(fitted(views, n_clusters=n_clusters))
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    np.testing.assert_array_equal(models[0].n_clusters_path_["gap"], models[1].n_clusters_path_["gap"])


def test_large_data_have_the_same_labels_at_any_number_of_threads():
    X = np.random.default_rng(0).standard_normal((1300, 3))  # beyond what is decomposed as a whole
    labels = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            labels.append(fitted(X, n_clusters=4, n_init=2).labels_)
    np.testing.assert_array_equal(labels[0], labels[1])


def test_another_seed_may_cut_noise_elsewhere():
    X = noise(d=6)
    one, other = (fitted(X, n_clusters=8, n_init=1, polish=False, random_state=seed).labels_ for seed in (0, 1))
    assert not same_clusters(one, other)


@pytest.mark.parametrize("kind", ["table", "counts", "kernel", "graph"])
def test_a_saved_model_predicts_the_same(kind, tmp_path):
    X = {"table": noise(d=12), "counts": documents(), "kernel": noise() @ noise().T, "graph": links()}[kind]
    model = fitted(X, view_types=kind)
    save_model(model, tmp_path / "model.kwm")
    loaded = load_model(tmp_path / "model.kwm")
    changed = X.copy()
    if kind == "table":
        changed += 0.05
    np.testing.assert_array_equal(loaded.predict(changed), model.predict(changed))
    np.testing.assert_array_equal(loaded.transform(changed), model.transform(changed))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.verdict_ == model.verdict_


# --- the number of clusters ------------------------------------------------------------------------------------------


def test_auto_finds_the_number_and_says_so():
    model = fitted([grouped(0), grouped(1)], n_clusters="auto", check_views=True)
    assert model.n_clusters_ == 3
    assert same_clusters(model.labels_, GROUPS)
    assert model.confidence_ in ("high", "moderate")
    assert model.verdict_.startswith(f"3 clusters, {model.confidence_} confidence: the split is ")
    path = model.n_clusters_path_
    assert path["n_clusters"].tolist() == list(range(1, N // 6 + 1))
    assert path["gap"].argmax() == 2
    assert (model.view_agreement_ > 0.9).all()


def test_class_defaults_choose_the_number():
    assert GraphFusionClustering().n_clusters == "auto"
    assert GraphFusionClustering(random_state=0).fit(grouped(0)).n_clusters_ == 3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_is_one_cluster(seed):
    model = fitted(noise(seed), n_clusters="auto")
    assert model.n_clusters_ == 1
    assert model.confidence_ == "none"
    assert not model.labels_.any()
    assert model.verdict_.startswith(("No clusters found", "No clear clusters"))
    assert model.predict(noise(seed + 50)).tolist() == [0] * N


@pytest.mark.parametrize("d", [4, 120])
def test_noise_that_two_views_share_is_one_cluster(d):
    rng = np.random.default_rng(0)
    X = noise(d=d)
    turned = X @ np.linalg.qr(rng.standard_normal((d, d)))[0] + 0.3 * rng.standard_normal((N, d))
    assert fitted([X, X], n_clusters="auto").n_clusters_ == 1
    assert fitted([X, turned], n_clusters="auto").n_clusters_ == 1


def test_a_few_samples_are_too_few_to_tell():
    model = fitted(noise(n=10), n_clusters="auto")
    assert model.n_clusters_ == 1
    assert "10 samples are too few" in model.verdict_


@pytest.mark.parametrize("pair", [(2, 6), [2, 6], (6, 2), np.array([2, 6])])
def test_a_pair_chooses_among_its_numbers(pair):
    model = fitted(grouped(0), n_clusters=pair)
    assert model.n_clusters_ == 3
    assert model.n_clusters_path_["n_clusters"].tolist() == [1, 2, 3, 4, 5, 6]


def test_a_pair_without_one_makes_clusters_of_noise_and_says_so():
    model = fitted(noise(), n_clusters=(2, 6))
    assert 2 <= model.n_clusters_ <= 6
    assert model.confidence_ == "none"
    assert f"The {model.n_clusters_} clusters are the best of the numbers allowed." in model.verdict_


def test_the_largest_number_tried_is_warned_about():
    with pytest.warns(ConvergenceWarning, match="2 is the largest number of clusters tried; allow more"):
        fitted(grouped(0), n_clusters=(1, 2))


@pytest.mark.parametrize("bad", [(0, 3), (2.0, 6.0), (2,), (2, 4, 6), [[2, 3]], "many", 0, 2.5, None])
def test_numbers_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="n_clusters"):
        fitted(grouped(0), n_clusters=bad)


def test_a_pair_that_so_few_samples_cannot_show_is_refused():
    with pytest.raises(ParameterError, match=r"asks for 8 clusters or more, but 40 samples can show at most 6"):
        fitted(noise(n=40), n_clusters=(8, 12))


def test_more_clusters_than_samples_are_refused():
    with pytest.raises(ValueError, match="n_clusters"):
        fitted(noise(n=10), n_clusters=11)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_moons(150, noise=0.05, random_state=0),
        lambda: make_circles(150, noise=0.04, factor=0.4, random_state=0),
    ],
    ids=["moons", "circles"],
)
def test_moons_and_circles_are_found_with_class_defaults(make):
    X, y = make()
    model = GraphFusionClustering(random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert same_clusters(model.labels_, y)


def test_digits_that_kmeans_tells_apart_are_told_apart():
    digits = load_digits()
    keep = np.flatnonzero(np.isin(digits.target, [0, 4, 6]))[:150]
    y = digits.target[keep]
    model = fitted(digits.data[keep])
    assert adjusted_rand_score(y, model.labels_) > 0.97
    plain = KMeans(3, n_init=5, random_state=0).fit_predict(digits.data[keep])
    assert adjusted_rand_score(model.labels_, plain) > 0.9


# --- warnings --------------------------------------------------------------------------------------------------------


def checked(views, **options):
    return fitted(views, check_views=True, **options)


def test_a_view_of_noise_is_named():
    with pytest.warns(ViewWarning, match="View 'lost' shows no groups and does not support the joint clusters"):
        model = checked({"one": grouped(0), "two": grouped(1), "lost": noise()})
    assert model.view_agreement_[2] < 0.3 < 0.9 < model.view_agreement_[:2].min()
    assert len(model.warnings_) == 1


def test_a_view_that_contradicts_the_others_is_named():
    other = grouped(2, y=np.random.default_rng(3).permutation(GROUPS))
    with pytest.warns(ViewWarning, match=r"View 'third' has groups of its own \(about 3\) that contradict"):
        model = checked({"one": grouped(0), "two": grouped(1), "third": other})
    assert len(model.warnings_) == 1


def test_clusters_of_one_view_alone_are_said_to_be():
    with pytest.warns(ViewWarning) as caught:
        checked({"one": grouped(0), "lost": noise(1), "also lost": noise(2)})
    assert "The clusters are those of view 'one' alone." in [str(each.message) for each in caught]


def test_views_that_agree_are_not_warned_about():
    model = checked([grouped(0), grouped(1), documents()])
    assert model.warnings_ == ()


def test_views_are_not_checked_where_not_asked_for_or_few_samples():
    views = {"one": grouped(0), "two": grouped(1), "lost": noise()}
    assert fitted(views).warnings_ == ()
    few = {name: X[:19] for name, X in views.items()}
    assert np.isnan(checked(few).view_agreement_).all()


def test_samples_that_nothing_joins_to_others_are_warned_about():
    X = documents().tolil()
    X[[3, 50]] = 0.0
    with pytest.warns(ViewWarning, match=r"2 of 90 samples have nothing in common with any other, in any view"):
        model = fitted(sp.csr_array(X))
    np.testing.assert_array_equal(model.predict(sp.csr_array(X)), model.labels_)
    fitted([sp.csr_array(X), grouped(0)])  # another view joins them


def test_an_empty_histogram_is_absent_and_zeros_among_few_columns_are_a_place():
    X = np.abs(grouped(0, d=12))
    X[[3, 50]] = 0.0
    with pytest.warns(ViewWarning, match=r"2 of 90 samples have nothing in common"):
        model = fitted(X)
    assert np.diff(model.affinity_.indptr)[[3, 50]].tolist() == [0, 0]
    rest = fitted(np.delete(X, [3, 50], axis=0))
    kept = np.delete(np.arange(N), [3, 50])
    assert same_clusters(model.labels_[kept], rest.labels_)
    both = fitted([X, grouped(1)])  # another view joins them
    assert np.diff(both.affinity_.indptr).min() > 0
    few = fitted(X[:, :9])
    assert np.diff(few.affinity_.indptr).min() > 0


def test_samples_that_are_all_equal_are_not_called_isolated():
    model = fitted(np.ones((30, 2)), n_clusters=1)
    assert model.warnings_ == ()


# --- cost ------------------------------------------------------------------------------------------------------------


def test_no_matrix_of_all_pairs_is_made_where_the_number_is_given():
    X = grouped(0, y=np.arange(3000) % 3)
    fitted(X[:50])  # compiled once
    tracemalloc.start()
    model = fitted(X, n_init=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # 3000 x 3000 numbers are 72 MB
    assert model.affinity_.nnz < 100 * 3000
