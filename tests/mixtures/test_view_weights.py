"""View weights of convex mixtures: learned, equal or fixed, and the parameters that say so."""

import numpy as np
import pytest

from kernelweave import ConvexMixture, MultiViewConvexMixture, ParameterError
from tests.estimators.discovery import blobs
from tests.reference import convex_mixture as oracle

X = blobs(20, seed=1, spread=4.0)[0]
VIEWS = {"front": X[:, :2], "back": X[:, 2:]}
NEW = {name: view[:9] + 0.5 for name, view in VIEWS.items()}
TIGHT = {"tol": 1e-7}


def fit(**options):
    return MultiViewConvexMixture(3, **TIGHT, **options).fit(VIEWS)


def components(model):
    return [
        oracle.components(oracle.divergences("sqeuclidean", view), beta)
        for view, beta in zip(VIEWS.values(), model.betas_, strict=True)
    ]


@pytest.mark.parametrize("weights", [[1, 1], [0.25, 0.25], {"back": 2.0, "front": 2.0}])
def test_equal_fixed_weights_are_uniform_ones(weights):
    fixed, uniform = fit(view_weights=weights), fit(view_weights="uniform")
    np.testing.assert_array_equal(fixed.view_weights_, [0.5, 0.5])
    np.testing.assert_array_equal(fixed.priors_, uniform.priors_)
    np.testing.assert_array_equal(fixed.predict_proba(NEW), uniform.predict_proba(NEW))
    assert fixed.objective_ == uniform.objective_


@pytest.mark.parametrize("weights", [[3.0, 1.0], [0.1, 0.9]])
def test_fixed_weights_weigh_the_log_likelihoods_of_the_views(weights):
    model = fit(view_weights=weights)
    shares = np.array(weights) / np.sum(weights)
    np.testing.assert_allclose(model.view_weights_, shares)
    f = components(model)
    logs = np.array([np.log(each @ model.priors_).mean() for each in f])
    assert model.objective_ == pytest.approx(shares @ logs)
    # No other priors are better by more than the gap: the gradient says so, and priors drawn at random agree.
    gradient = sum(w * (each / (each @ model.priors_)[:, None]).mean(axis=0) for w, each in zip(shares, f, strict=True))
    assert model.optimality_gap_ == pytest.approx(gradient.max() - 1.0, abs=1e-9)
    assert model.optimality_gap_ <= 1e-7
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = rng.dirichlet(np.full(60, 0.05))
        with np.errstate(divide="ignore"):
            assert shares @ [np.log(each @ other).mean() for each in f] <= model.objective_ + model.optimality_gap_


def test_fixed_weights_weigh_the_posteriors_of_the_views():
    model = fit(view_weights={"back": 1.0, "front": 4.0})
    chosen = model.exemplar_indices_
    values = np.zeros((9, 3))
    for new, view, beta, weight in zip(NEW.values(), VIEWS.values(), model.betas_, (0.8, 0.2), strict=True):
        f = oracle.components(oracle.divergences("sqeuclidean", new, view), beta)
        values += weight * model.priors_[chosen] * f[:, chosen] / (f @ model.priors_)[:, None]
    np.testing.assert_allclose(model.predict_proba(NEW), values / values.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize(("weights", "name"), [([1, 0], "front"), ([0, 1], "back")])
def test_a_view_of_weight_zero_has_no_say(weights, name):
    model = fit(view_weights=weights)
    alone = ConvexMixture(3, **TIGHT).fit(VIEWS[name])
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_array_equal(model.exemplar_indices_, alone.exemplar_indices_)
    np.testing.assert_allclose(model.predict_proba(NEW), alone.predict_proba(NEW[name]), atol=1e-6)
    assert model.objective_ == pytest.approx(alone.objective_)


def test_refinement_uses_the_fixed_weights():
    model = fit(view_weights=[1, 0], refine="kernel_kmeans")
    alone = ConvexMixture(3, refine="kernel_kmeans", **TIGHT).fit(VIEWS["front"])
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_array_equal(model.predict(NEW), alone.predict(NEW["front"]))
    assert model.inertia_ == pytest.approx(alone.inertia_)


def test_learning_starts_from_other_weights_where_asked_to():
    assert not np.array_equal(fit(init_view_weights=[0.9, 0.1]).objective_path_, fit().objective_path_)
    np.testing.assert_array_equal(fit(init_view_weights=[5, 5]).objective_path_, fit().objective_path_)


@pytest.mark.parametrize(
    "options",
    [
        {"weighted": True, "view_weights": "uniform"},
        {"weighted": True, "view_weights": [1.0, 2.0]},
        {"weighted": False, "view_weights": [1.0, 1.0]},
        {"weighted": False, "view_weights": {"front": 1.0, "back": 2.0}},
    ],
    ids=str,
)
def test_two_ways_to_say_it_must_not_contradict_each_other(options):
    meant = "learned" if options["weighted"] else "uniform"
    with pytest.raises(ParameterError, match=rf"weighted={options['weighted']} means view_weights='{meant}', which"):
        fit(**options)


@pytest.mark.parametrize("options", [{"weighted": True}, {"weighted": False}, {"weighted": None}], ids=str)
def test_saying_it_twice_is_allowed(options):
    word = "uniform" if options["weighted"] is False else "learned"
    twice, once = fit(view_weights=word, **options), fit(view_weights=word)
    np.testing.assert_array_equal(twice.priors_, once.priors_)
    np.testing.assert_array_equal(twice.view_weights_, once.view_weights_)


@pytest.mark.parametrize("options", [{"view_weights": [2, 1]}, {"weighted": False}])
def test_a_start_of_learning_without_learning_is_refused(options):
    with pytest.raises(ParameterError, match=r"init_view_weights=\[1, 2\] is what learning starts from"):
        fit(init_view_weights=[1, 2], **options)


def test_precomputed_kernels_can_be_placed_with_fixed_weights():
    kernels = [view @ view.T for view in VIEWS.values()]
    options = {"divergence": "kernel", "view_weights": [2.0, 1.0]}
    model = MultiViewConvexMixture(3, kernel="precomputed", **options).fit(kernels)
    features = MultiViewConvexMixture(3, kernel="linear", **options).fit(VIEWS)
    rows = [new @ view.T for new, view in zip(NEW.values(), VIEWS.values(), strict=True)]
    np.testing.assert_array_equal(model.predict(rows), features.predict(NEW))
