"""MultiViewConvexMixture on views that lack samples: objective, labels, new samples, faults and saved models."""

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from kernelweave import (
    ConvexMixture,
    MultiViewConvexMixture,
    ParameterError,
    ViewError,
    ViewWarning,
    load_model,
    save_model,
)
from kernelweave.plots import EmbeddingDisplay, ExemplarDisplay
from tests.reference import convex_mixture as complete
from tests.reference import masked_multi_view
from tests.reference import observed_mixture as oracle

K = 3
N = 36
CHOICES = {"learned": {}, "uniform": {"view_weights": "uniform"}, "fixed": {"view_weights": [3.0, 2.0, 1.0]}}
choices = pytest.mark.parametrize("choice", CHOICES)


def groups(seed=0, n=N, spread=0.8):
    """Return three views of three groups, and the groups."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    return [4.0 * np.eye(K, width)[y] + spread * rng.standard_normal((n, width)) for width in (3, 4, 3)], y


def with_absent(views, rate=0.3, seed=0):
    """Return the views with rows of NaN, and who is there."""
    mask = np.random.default_rng([seed, 1]).random((len(views[0]), len(views))) >= rate
    mask[~mask.any(axis=1), 0] = True
    return [np.where(mask[:, [v]], X, np.nan) for v, X in enumerate(views)], mask


COMPLETE, Y = groups()
VIEWS, MASK = with_absent(COMPLETE)
NEW, NEW_MASK = with_absent(groups(seed=5, n=9)[0], seed=5)


def fitted(X=VIEWS, weights=None, **options):
    return MultiViewConvexMixture(**{"n_clusters": K} | options).fit(X, sample_weight=weights)


def squares(A, B):
    return ((A[:, None] - B[None]) ** 2).sum(axis=2)


def values(model, rows=COMPLETE):
    """Return the components' values of samples in every view, absent ones included."""
    return [complete.components(squares(A, B), beta) for A, B, beta in zip(rows, COMPLETE, model.betas_, strict=True)]


def in_matrix_form(matrices, mask=MASK):
    """Return matrices with NaN in rows and columns of absent samples."""
    matrices = [matrix.copy() for matrix in matrices]
    for v, matrix in enumerate(matrices):
        matrix[~mask[:, v]] = np.nan
        matrix[:, ~mask[:, v]] = np.nan
    return matrices


def new_rows(compare):
    """Return what new samples have in common with the training samples, as matrices, view by view."""
    pairs = [compare(np.nan_to_num(A), B) for A, B in zip(NEW, COMPLETE, strict=True)]
    return [np.where(NEW_MASK[:, [v]], rows, np.nan) for v, rows in enumerate(pairs)]


def in_fewer_columns(rows):
    """Return rows of matrices with NaN in the columns of absent training samples."""
    return [np.where(MASK[:, v], matrix, np.nan) for v, matrix in enumerate(rows)]


# --- what is maximised -----------------------------------------------------------------------------------------------


@choices
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_score_and_labels_are_those_of_the_formulas(choice, weighted):
    weights = np.random.default_rng(1).integers(1, 4, N).astype(float) if weighted else None
    model = fitted(weights=weights, **CHOICES[choice])
    shares = complete.uniform(N) if weights is None else weights / weights.sum()
    f, chosen = values(model), model.exemplar_indices_
    likelihood, posteriors = (
        (oracle.likelihood, oracle.posteriors)
        if choice == "learned"
        else (oracle.fixed_likelihood, oracle.fixed_posteriors)
    )
    assert model.objective_ == pytest.approx(likelihood(f, MASK, shares, model.priors_, model.view_weights_))
    assert model.score(VIEWS, sample_weight=weights) == pytest.approx(model.objective_, abs=1e-9)
    assert (np.diff(model.objective_path_) >= -1e-10).all()
    table = posteriors(f, MASK, model.priors_, model.view_weights_, chosen)
    np.testing.assert_array_equal(model.labels_, complete.assign(table, chosen))
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)
    rows = values(model, [np.nan_to_num(X) for X in NEW])
    table = posteriors(f, MASK, model.priors_, model.view_weights_, chosen, rows, NEW_MASK)
    expected = table / table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(NEW), expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW), expected.argmax(axis=1))


@pytest.mark.parametrize("choice", ["uniform", "fixed"])
def test_no_other_priors_are_better_by_more_than_the_gap(choice):
    model = fitted(tol=1e-7, **CHOICES[choice])
    f, shares = values(model), complete.uniform(N)
    gradient = oracle.fixed_gradient(f, MASK, shares, model.priors_, model.view_weights_)
    assert model.optimality_gap_ == pytest.approx(gradient.max() - 1.0, abs=1e-9)
    assert model.optimality_gap_ <= 1e-7


@choices
def test_the_groups_are_seen_and_who_is_where_is_kept(choice):
    model = fitted(**CHOICES[choice])
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    np.testing.assert_array_equal(model.observed_, MASK)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert MASK[model.exemplar_indices_].sum(axis=1).min() >= 2  # those with more views explain more


@choices
def test_complete_views_take_no_notice_of_the_parameter(choice):
    plain, dropping = fitted(COMPLETE, **CHOICES[choice]), fitted(COMPLETE, missing="drop", **CHOICES[choice])
    for name in ("priors_", "view_weights_", "labels_", "objective_path_"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(dropping, name))
    assert plain.observed_.all()


@choices
@pytest.mark.parametrize("normalizer", [None, "gaussian"])
def test_sharpness_and_normalisers_come_from_the_samples_that_are_there(choice, normalizer):
    model = fitted(normalizer=normalizer, **CHOICES[choice])
    there = [X[MASK[:, v]] for v, X in enumerate(COMPLETE)]
    betas = [complete.reference_beta(squares(X, X)) for X in there]
    np.testing.assert_allclose(model.betas_, betas)
    assert model.score(VIEWS) == pytest.approx(model.objective_, abs=1e-9)
    if choice != "learned" and normalizer is not None:
        counts = model.view_weights_ * MASK.sum(axis=0)
        constants = [0.5 * X.shape[1] * np.log(beta / np.pi) for X, beta in zip(there, betas, strict=True)]
        plain = fitted(**CHOICES[choice]).objective_
        assert model.objective_ - plain == pytest.approx(counts @ constants / counts.sum())


def test_with_the_weight_on_one_view_it_is_the_mixture_of_its_samples():
    there = np.flatnonzero(MASK[:, 1])
    alone = ConvexMixture(K).fit(COMPLETE[1][there])
    with pytest.warns(ViewWarning, match=rf"^{N - len(there)} samples share no view that has a weight with any"):
        model = fitted(view_weights=[0, 1, 0])
    np.testing.assert_allclose(model.priors_[there], alone.priors_, atol=1e-6)
    np.testing.assert_array_equal(model.exemplar_indices_, there[alone.exemplar_indices_])
    np.testing.assert_array_equal(model.labels_[there], alone.labels_)
    np.testing.assert_array_equal(model.labels_[~MASK[:, 1]], 0)
    assert model.objective_ == pytest.approx(alone.objective_)
    assert model.score(VIEWS) == pytest.approx(alone.objective_)
    with pytest.raises(ViewError, match="All 2 samples of X are in views of weight 0 alone"):
        model.score([COMPLETE[0][:2], np.full((2, 4), np.nan), COMPLETE[2][:2]])


# --- laws ------------------------------------------------------------------------------------------------------------


@choices
def test_the_order_of_samples_and_views_plays_no_part(choice):
    rng = np.random.default_rng(2)
    rows, order = rng.permutation(N), rng.permutation(3)
    options = CHOICES[choice]
    if choice == "fixed":
        options = {"view_weights": np.array(options["view_weights"])[order].tolist()}
    one, other = fitted(**CHOICES[choice]), fitted([VIEWS[v][rows] for v in order], **options)
    assert adjusted_rand_score(one.labels_[rows], other.labels_) == 1.0
    np.testing.assert_allclose(other.view_weights_, one.view_weights_[order], atol=1e-4)
    assert other.objective_ == pytest.approx(one.objective_, abs=1e-6)


@choices
def test_a_weight_equals_repetition(choice):
    times = np.arange(N) % 2 + 1
    options = CHOICES[choice] | {"beta": [0.5, 0.4, 0.3]}
    weighted = fitted(weights=times, **options)
    repeated = fitted([np.repeat(X, times, axis=0) for X in VIEWS], **options)
    assert repeated.objective_ == pytest.approx(weighted.objective_, abs=1e-5)
    np.testing.assert_allclose(repeated.view_weights_, weighted.view_weights_, atol=1e-4)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    np.testing.assert_array_equal(first[weighted.exemplar_indices_], repeated.exemplar_indices_)


def test_a_sample_of_weight_zero_is_no_component_and_gets_a_label():
    weights = np.ones(N)
    weights[::5] = 0.0
    kept = weights > 0
    model, without = fitted(weights=weights), fitted([X[kept] for X in VIEWS])
    assert not model.priors_[~kept].any()
    assert model.objective_ == pytest.approx(without.objective_, abs=1e-9)
    np.testing.assert_array_equal(model.labels_[kept], without.labels_)
    assert adjusted_rand_score(Y, model.labels_) > 0.9


@choices
def test_samples_are_equal_where_they_lack_the_same_views(choice):
    # Samples 0 and 1 are equal and both lack view 1; sample 2 is equal to them in what they have, and has view 1.
    views = [X.copy() for X in COMPLETE]
    for X in views:
        X[1:3] = X[0]
    views[1][:2] = np.nan
    model = fitted(views, n_clusters=None, beta_scale=200.0, **CHOICES[choice])
    chosen = set(model.exemplar_indices_.tolist())
    assert not {0, 1} <= chosen
    assert 2 in chosen
    # At this sharpness every other sample is its own exemplar.
    assert len(chosen) >= N - 3


# --- divergences -----------------------------------------------------------------------------------------------------


@choices
def test_divergences_alone_give_what_features_give(choice):
    matrices = [squares(X, X) for X in COMPLETE]
    by_features = fitted(**CHOICES[choice])
    model = fitted(in_matrix_form(matrices), divergence="precomputed", **CHOICES[choice])
    np.testing.assert_allclose(model.priors_, by_features.priors_, atol=1e-5)
    np.testing.assert_array_equal(model.labels_, by_features.labels_)
    new = new_rows(squares)
    np.testing.assert_array_equal(model.predict(new), by_features.predict(NEW))
    np.testing.assert_array_equal(model.predict(in_fewer_columns(new)), by_features.predict(NEW))


@pytest.mark.filterwarnings("ignore:Only .* samples have a prior")
def test_kernels_of_features_and_precomputed_ones_agree():
    gammas = [{"gamma": 0.05}] * 3
    options = {"divergence": "kernel", "view_weights": "uniform"}
    by_features = fitted(kernel_params=gammas, **options)
    kernels = in_matrix_form([rbf_kernel(X, gamma=0.05) for X in COMPLETE])
    model = fitted(kernels, kernel="precomputed", **options)
    np.testing.assert_array_equal(model.labels_, by_features.labels_)
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    assert model.objective_ == pytest.approx(by_features.objective_)
    new = new_rows(lambda A, B: rbf_kernel(A, B, gamma=0.05))
    np.testing.assert_array_equal(model.predict(new), by_features.predict(NEW))
    refined = fitted(kernels, kernel="precomputed", refine="kernel_kmeans", **options)
    np.testing.assert_array_equal(refined.predict(new), refined.predict(in_fewer_columns(new)))
    refined_by_features = fitted(kernel_params=gammas, refine="kernel_kmeans", **options)
    np.testing.assert_array_equal(refined.predict(new), refined_by_features.predict(NEW))


def test_sparse_views_give_what_dense_ones_give():
    dense, sparse = fitted(), fitted([sp.csr_array(X) for X in VIEWS])
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    assert sparse.objective_ == pytest.approx(dense.objective_, abs=1e-6)
    np.testing.assert_array_equal(sparse.predict([sp.csr_array(X) for X in NEW]), dense.predict(NEW))


@pytest.mark.filterwarnings("ignore:.* samples share no view")
@pytest.mark.filterwarnings("ignore:The clusters agree with which")
def test_smoothing_moves_components_towards_the_mean_of_those_that_are_there():
    counts = [np.random.default_rng(v).poisson(np.array([[9, 1, 1], [1, 9, 1], [1, 1, 9]])[Y]) for v in range(2)]
    views = [np.where(MASK[:, [v]] | (v == 0), X, np.nan) for v, X in enumerate(counts)]
    model = fitted(views, divergence="poisson", smoothing=0.05, view_weights=[0.0, 1.0], beta=0.5)
    there = np.flatnonzero(MASK[:, 1])
    alone = ConvexMixture(K, divergence="poisson", smoothing=0.05, beta=0.5).fit(counts[1][there])
    np.testing.assert_array_equal(model.labels_[there], alone.labels_)
    assert model.objective_ == pytest.approx(alone.objective_)


@choices
def test_kernel_k_means_goes_on_over_what_is_there(choice):
    noisy = groups(seed=3, n=60, spread=2.0)[0]
    views, mask = with_absent(noisy, seed=3)
    model = fitted(views, refine="kernel_kmeans", **CHOICES[choice])
    plain = (noisy, mask, model.labels_, np.ones(60), K, model.view_weights_, 1.0)
    assert model.inertia_ == pytest.approx(masked_multi_view.objective(*plain))
    np.testing.assert_array_equal(masked_multi_view.step(*plain), model.labels_)
    before = masked_multi_view.objective(*plain[:2], fitted(views, **CHOICES[choice]).labels_, *plain[3:])
    assert model.inertia_ < before
    np.testing.assert_allclose(model._centers.prices, model.view_weights_ / mask.sum(axis=0))
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_after_kernel_k_means_on_complete_views_new_samples_may_lack_some():
    model = fitted(COMPLETE, refine="kernel_kmeans")
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


# --- new samples -----------------------------------------------------------------------------------------------------


@choices
@pytest.mark.parametrize("training", [COMPLETE, VIEWS], ids=["complete", "with absent"])
def test_new_samples_may_lack_views(choice, training):
    model = fitted(dict(zip("abc", training, strict=True)), **CHOICES[choice])
    new, y = groups(seed=7, n=12, spread=0.4)
    names = np.array([np.bincount(model.labels_[c == Y]).argmax() for c in range(K)])
    for name, X in zip("abc", new, strict=True):
        np.testing.assert_array_equal(model.predict({name: X}), names[y])
        np.testing.assert_allclose(model.predict_proba({name: X}).sum(axis=1), 1.0)
        assert np.isfinite(model.score({name: X}))
    some = dict(zip("abc", with_absent(new, seed=7)[0], strict=True))
    np.testing.assert_array_equal(model.predict(some), names[y])
    one_by_one = [model.predict({name: X[i : i + 1] for name, X in some.items()})[0] for i in range(12)]
    np.testing.assert_array_equal(one_by_one, names[y])


def test_a_view_that_lost_its_weight_still_decides_on_samples_that_have_no_other():
    model = fitted(COMPLETE, init_view_weights=[1, 1, 0])
    assert model.view_weights_[2] == 0
    new, y = groups(seed=7, n=12, spread=0.4)
    alone = [np.full_like(new[0], np.nan), np.full_like(new[1], np.nan), new[2]]
    np.testing.assert_array_equal(model.predict(alone), model.predict(new))
    assert adjusted_rand_score(y, model.predict(alone)) == 1.0
    assert np.isfinite(model.score(alone))


def test_clusters_that_follow_absence_are_named():
    views = [COMPLETE[0], np.where((Y == 2)[:, None], np.nan, COMPLETE[1])]
    with pytest.warns(ViewWarning, match="clusters agree with which views"):
        fitted(views, view_weights="uniform")


@pytest.mark.filterwarnings("ignore:View .* shares")
@pytest.mark.filterwarnings("ignore:The clusters agree with which")
@pytest.mark.parametrize("choice", ["learned", "uniform"])
def test_a_sample_that_shares_no_view_with_an_exemplar_gets_the_first_cluster(choice):
    views = [COMPLETE[0].copy(), np.full((N, 2), np.nan)]
    views[1][:4] = np.random.default_rng(0).normal(size=(4, 2))
    views[0][:4] = [[np.nan] * 3, [np.nan] * 3, [40.0] * 3, [-40.0] * 3]  # who is in both is not an exemplar for others
    options = {"beta": 0.3} | CHOICES[choice]
    with pytest.warns(ViewWarning, match="^2 samples share no view that has a weight with any exemplar"):
        model = fitted(views, **options)
    assert model.labels_[:2].tolist() == [0, 0]
    alone = {"view_1": np.zeros((3, 2))}
    with pytest.warns(ViewWarning, match="^3 samples share no view"):
        assert model.predict(alone).tolist() == [0, 0, 0]
    priors = model._model.exemplar_priors
    with pytest.warns(ViewWarning, match="^3 samples share no view"):
        np.testing.assert_allclose(model.predict_proba(alone), np.tile(priors / priors.sum(), (3, 1)))


# --- faults ----------------------------------------------------------------------------------------------------------


def test_samples_absent_from_every_view_are_named():
    nowhere = [X.copy() for X in VIEWS]
    for X in nowhere:
        X[4] = np.nan
    with pytest.raises(ViewError, match=rf"1 of {N} samples are absent from every view \(rows 4\)"):
        fitted(nowhere)
    with pytest.raises(ViewError, match=rf"1 of {N} samples are absent from every view \(the first is row 4\)"):
        fitted().predict(nowhere)


def test_cells_are_refused_filled_or_their_samples_dropped():
    holed = [X.copy() for X in COMPLETE]
    holed[0][3, 0] = np.nan
    with pytest.raises(ViewError, match=r"contains NaN in 1 cells of 1 rows"):
        fitted(holed)
    assert not fitted(holed, missing="drop").observed_[3, 0]
    filled = fitted(holed, missing="mean")
    assert filled.observed_.all()
    assert filled.predict([X[3:4] for X in holed]).tolist() == [filled.labels_[3]]
    assert not get_tags(MultiViewConvexMixture()).input_tags.allow_nan
    assert get_tags(MultiViewConvexMixture(missing="knn")).input_tags.allow_nan


def test_a_view_whose_samples_have_no_weight_is_refused():
    views = [COMPLETE[0], COMPLETE[1].copy()]
    views[1][10:] = np.nan
    weights = np.ones(N)
    weights[:10] = 0.0
    with pytest.raises(ViewError, match=r"All 10 samples that view 'view_1' has are of weight 0"):
        fitted(views, weights)


def test_learning_cannot_start_without_a_weight_for_some_samples():
    views = [COMPLETE[0], COMPLETE[1].copy(), COMPLETE[2]]
    views[0] = np.where(np.isin(np.arange(N), [5, 9])[:, None], np.nan, views[0])
    views[2] = np.where(np.isin(np.arange(N), [5, 9])[:, None], np.nan, views[2])
    with pytest.raises(ParameterError, match=r"init_view_weights=\[1, 0, 1\].* 2 samples .*first is sample 5"):
        fitted(views, init_view_weights=[1, 0, 1])


def test_values_outside_the_range_of_a_divergence_are_refused_with_their_view():
    views = [np.abs(X) for X in VIEWS]
    views[2][np.flatnonzero(MASK[:, 2])[0], 0] = -1.0
    with pytest.raises(ParameterError, match=r"view 'view_2' \(absent samples left out\)\[0, 0\] = -1.0"):
        fitted(views, divergence="exponential")


def test_a_picture_of_exemplars_needs_places_for_samples_that_are_absent():
    model = fitted()
    with pytest.raises(ParameterError, match=rf"{np.count_nonzero(~MASK.all(axis=1))} samples of X are absent.*embedd"):
        ExemplarDisplay.from_estimator(model, VIEWS, ax=Figure().subplots())
    points = EmbeddingDisplay.from_estimator(model, VIEWS, ax=Figure().subplots()).points
    display = ExemplarDisplay.from_estimator(model, VIEWS, embedding=points, ax=Figure().subplots())
    assert len(display.exemplars_) == K


# --- saved models ----------------------------------------------------------------------------------------------------

SAVED = {
    "learned": {},
    "uniform": {"view_weights": "uniform"},
    "kernel": {"divergence": "kernel"},
    "refined": {"refine": "kernel_kmeans"},
    "refined kernel": {"refine": "kernel_kmeans", "divergence": "kernel"},
    "filled": {"missing": "median"},
}


@pytest.mark.parametrize("options", SAVED.values(), ids=SAVED)
def test_models_come_back_from_files(options, tmp_path):
    model = fitted(**options)
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.observed_, MASK)
    assert again.score(NEW) == model.score(NEW)


def test_models_of_divergences_come_back_from_files(tmp_path):
    matrices = in_matrix_form([squares(X, X) for X in COMPLETE])
    model = fitted(matrices, divergence="precomputed")
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    np.testing.assert_array_equal(again.predict([D[:5] for D in matrices]), model.labels_[:5])


@pytest.mark.parametrize("field", ["known", "columns"])
def test_saved_components_must_be_those_that_each_view_has(field, tmp_path):
    model = fitted(in_matrix_form([squares(X, X) for X in COMPLETE]), divergence="precomputed")
    placement = next(each for each in model._model.placements if not each.known.all())
    wrong = np.ones_like(placement.known) if field == "known" else placement.columns + N
    object.__setattr__(placement, field, wrong)
    with pytest.raises(ParameterError, match="has 'placements' of other components"):
        save_model(model, tmp_path / "model.kwm")
