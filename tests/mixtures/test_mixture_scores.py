"""Scores of convex mixtures: the mean log-likelihood of samples, with and without the factor of densities."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

from kernelweave import ConvexMixture, MultiViewConvexMixture, ParameterError
from tests.estimators.discovery import blobs
from tests.reference import convex_mixture as oracle

X = blobs(20, spread=4.0)[0]
NEW = blobs(7, seed=5, spread=4.0)[0]
VIEWS = [X[:, :2], X[:, 2:]]
NEW_VIEWS = [NEW[:, :2], NEW[:, 2:]]
WEIGHTS = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
CHOICES = {
    "learned": {},
    "uniform": {"view_weights": "uniform"},
    "fixed": {"view_weights": [1.0, 3.0]},
    "one of two": {"view_weights": [1.0, 0.0]},
}
choices = pytest.mark.parametrize("choice", CHOICES)
normalizers = pytest.mark.parametrize("normalizer", [None, "gaussian"])


def squares(A, B):
    return oracle.divergences("sqeuclidean", A, B)


def log_mixture(samples, components, priors, beta):
    """Return log sum_j q_j exp(-beta d_j) of every sample."""
    return logsumexp(-beta * squares(samples, components), b=priors, axis=1)


# --- the objective ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalizer": "gaussian"},
        {"divergence": "kernel"},
        {"divergence": "exponential", "smoothing": 0.1},
        {"beta_scale": 20.0},
        {"refine": "kernel_kmeans"},
        {"n_clusters": 12, "beta_scale": 0.5},
        {"memory_limit": 1e-3},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero")
def test_the_score_of_the_training_samples_is_the_objective(options, weights):
    table = np.abs(X) + 0.1
    model = ConvexMixture(**{"n_clusters": 3, **options}).fit(table, sample_weight=weights)
    assert model.score(table, sample_weight=weights) == pytest.approx(model.objective_, abs=1e-9)
    assert model.objective_ == model.log_likelihood_ == model.objective_path_[-1]


@choices
@normalizers
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_score_of_the_training_samples_is_the_objective_of_several_views(choice, normalizer, weights):
    model = MultiViewConvexMixture(3, normalizer=normalizer, **CHOICES[choice]).fit(VIEWS, sample_weight=weights)
    assert model.score(VIEWS, sample_weight=weights) == pytest.approx(model.objective_, abs=1e-9)


def test_divergences_alone_have_a_score():
    D = squares(X, X)
    model = ConvexMixture(3, divergence="precomputed").fit(D)
    plain = ConvexMixture(3).fit(X)
    assert model.score(D) == pytest.approx(model.objective_, abs=1e-9)
    assert model.score(squares(NEW, X)) == pytest.approx(plain.score(NEW), abs=1e-5)


# --- new samples -----------------------------------------------------------------------------------------------------


def test_all_components_count_not_the_exemplars_alone():
    model = ConvexMixture(2, beta_scale=3.0).fit(X)
    assert np.count_nonzero(model.priors_) > 2
    expected = log_mixture(NEW, X, model.priors_, model.beta_).mean()
    assert model.score(NEW) == pytest.approx(expected)


@choices
def test_views_count_as_in_the_objective(choice):
    model = MultiViewConvexMixture(3, **CHOICES[choice]).fit(VIEWS)
    logs = [
        log_mixture(new, view, model.priors_, beta)
        for new, view, beta in zip(NEW_VIEWS, VIEWS, model.betas_, strict=True)
    ]
    if choice == "learned":
        expected = logsumexp(logs, b=model.view_weights_[:, None], axis=0).mean()
    else:
        expected = sum(w * log.mean() for w, log in zip(model.view_weights_, logs, strict=True) if w > 0)
    assert model.score(NEW_VIEWS) == pytest.approx(expected)


def test_weights_of_new_samples_count_as_repetitions():
    model = ConvexMixture(3).fit(X)
    counts = np.random.default_rng(1).integers(0, 4, len(NEW))
    assert model.score(NEW, sample_weight=counts) == pytest.approx(model.score(np.repeat(NEW, counts, axis=0)))
    assert model.score(NEW, sample_weight=7 * counts) == pytest.approx(model.score(NEW, sample_weight=counts))


def test_a_sample_that_no_component_allows_makes_the_score_infinite_unless_its_weight_is_zero():
    bits = np.repeat(np.eye(3), 5, axis=0)
    foreign = np.concatenate([bits[:2], np.ones((1, 3))])
    model = ConvexMixture(3, divergence="bernoulli", beta=1.0).fit(bits)
    assert model.score(foreign) == -np.inf
    assert model.score(foreign, sample_weight=[1.0, 1.0, 0.0]) == pytest.approx(np.log(1 / 3))
    pair = MultiViewConvexMixture(3, divergence="bernoulli", beta=1.0).fit([bits, bits])
    assert np.isfinite(pair.score([foreign, bits[:3]]))  # the other view allows it
    equal = MultiViewConvexMixture(3, divergence="bernoulli", beta=1.0, view_weights="uniform").fit([bits, bits])
    assert equal.score([foreign, bits[:3]]) == -np.inf


def test_rows_of_precomputed_kernels_have_no_score():
    K = rbf_kernel(X, gamma=0.01)
    for model in (
        ConvexMixture(3, divergence="kernel", kernel="precomputed").fit(K),
        MultiViewConvexMixture(3, divergence=["kernel", "precomputed"], kernel="precomputed"),
        MultiViewConvexMixture(3, divergence={"a": "kernel", "b": "kernel"}, kernel={"a": "precomputed", "b": "rbf"}),
    ):
        assert not hasattr(model, "score")
        with pytest.raises(AttributeError) as refusal:
            _ = model.score
        assert "do not hold k(x, x), so their likelihood is not known" in str(refusal.value.__cause__)
    assert hasattr(ConvexMixture(kernel="precomputed"), "score")  # the kernel is not used
    assert hasattr(MultiViewConvexMixture(divergence=["sqeuclidean", "kernel"]), "score")
    odd = MultiViewConvexMixture(3, divergence=["kernel", "sqeuclidean"], kernel=["rbf", "precomputed"]).fit(VIEWS)
    assert odd.score(VIEWS) == pytest.approx(odd.objective_, abs=1e-9)


def test_mixtures_maximise():
    for cls in (ConvexMixture, MultiViewConvexMixture):
        assert get_tags(cls()).objective == "maximize"


# --- densities -------------------------------------------------------------------------------------------------------


def test_with_the_normaliser_the_score_is_that_of_gaussian_densities():
    model = ConvexMixture(3, normalizer="gaussian", beta_scale=2.0).fit(X)
    used = np.flatnonzero(model.priors_)
    densities = [multivariate_normal(x, np.eye(4) / (2 * model.beta_)).pdf(NEW) for x in X[used]]
    assert model.score(NEW) == pytest.approx(np.log(model.priors_[used] @ np.array(densities)).mean())


def test_the_normaliser_adds_a_constant_and_changes_nothing_else():
    plain, dense = ConvexMixture(4).fit(X), ConvexMixture(4, normalizer="gaussian").fit(X)
    constant = 2.0 * np.log(plain.beta_ / np.pi)
    np.testing.assert_array_equal(dense.priors_, plain.priors_)
    np.testing.assert_array_equal(dense.predict_proba(NEW), plain.predict_proba(NEW))
    np.testing.assert_allclose(dense.objective_path_ - plain.objective_path_, constant)
    assert dense.score(NEW) - plain.score(NEW) == pytest.approx(constant)


@pytest.mark.parametrize("weights", ["uniform", [1.0, 3.0]])
def test_without_a_mixture_of_views_the_constants_are_averaged(weights):
    plain, dense = (
        MultiViewConvexMixture(3, view_weights=weights, normalizer=normalizer).fit(VIEWS)
        for normalizer in (None, "gaussian")
    )
    np.testing.assert_array_equal(dense.labels_, plain.labels_)
    constants = np.log(plain.betas_ / np.pi)  # two features each
    assert dense.objective_ - plain.objective_ == pytest.approx(plain.view_weights_ @ constants)


@normalizers
def test_posteriors_of_a_mixture_of_views_weigh_their_densities(normalizer):
    views = [X[:, :2], 0.7 * X[:, 2:]]  # so that neither density drives out the other
    new = [NEW[:, :2], 0.7 * NEW[:, 2:]]
    model = MultiViewConvexMixture(3, normalizer=normalizer).fit(views)
    assert (model.view_weights_ > 0.1).all()
    chosen = model.exemplar_indices_
    joint = np.zeros((len(NEW), 3))
    for rows, block, beta, weight in zip(new, views, model.betas_, model.view_weights_, strict=True):
        factor = 1.0 if normalizer is None else (beta / np.pi) ** (0.5 * block.shape[1])
        joint += weight * factor * np.exp(-beta * squares(rows, block[chosen]))
    joint *= model.priors_[chosen]
    np.testing.assert_allclose(model.predict_proba(new), joint / joint.sum(axis=1, keepdims=True), rtol=1e-6)


def test_one_view_has_the_densities_of_a_mixture_of_one_view():
    one = MultiViewConvexMixture(3, normalizer="gaussian").fit(X)
    assert one.objective_ == pytest.approx(ConvexMixture(3, normalizer="gaussian").fit(X).objective_)


def test_densities_allow_a_search_for_beta_by_cross_validation():
    rng = np.random.default_rng(0)
    groups = rng.normal(3.0 * rng.integers(0, 2, (120, 1)), 0.5, (120, 2))
    grid = {"beta_scale": [0.001, 1.0, 1000.0]}
    for normalizer, best in ((None, 0.001), ("gaussian", 1.0)):
        search = GridSearchCV(ConvexMixture(2, normalizer=normalizer), grid, cv=3, error_score="raise")
        with pytest.warns(UserWarning, match="Only .* samples have a prior above zero"):
            search.fit(groups)
        assert search.best_params_ == {"beta_scale": best}


@pytest.mark.parametrize("name", ["poisson", "kernel", "precomputed"])
def test_the_normaliser_of_one_view_belongs_to_squared_distances(name):
    with pytest.raises(ParameterError, match=rf"normalizer='gaussian' belongs to .*, but divergence='{name}'"):
        ConvexMixture(2, divergence=name, normalizer="gaussian").fit(np.abs(X[:4]))
