"""Kernels of several views: fitted once, brought to one scale, summed, and the same for new samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave import NotPSDWarning, ViewError
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    is_precomputed,
    set_kernel_tags,
    why_without_distances,
)
from kernelweave.estimators.shared.view_kernels import (
    WeightedViewKernels,
    divide_by_degrees,
    fit_view_kernels,
    scale_factors,
    set_view_kernel_tags,
    sum_view_kernels,
)
from kernelweave.inputs import as_views
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures

RNG = np.random.default_rng(1)
N = 30
DATA = {"front": RNG.normal(size=(N, 2)), "back": 5.0 * RNG.normal(size=(N, 3))}
VIEWS = as_views(DATA)
NEW = as_views({"front": RNG.normal(size=(8, 2)), "back": 5.0 * RNG.normal(size=(8, 3))})
ONES = np.ones(N)
WEIGHTS = RNG.uniform(0.0, 2.0, N)
WHOLE = slice(None)


def mean_squared_distance(K, weights):
    shares = weights / weights.sum()
    return 2 * (shares @ np.diag(K) - shares @ K @ shares)


def fitted(kernel="rbf", params=None, **options):
    return fit_view_kernels(VIEWS, kernel, params, **{"centre_features": False, "weights": ONES, **options})


def summed(kernels, normalize, weights=ONES, storage="auto", memory_limit=2048):
    return sum_view_kernels(kernels, weights, normalize=normalize, storage=storage, memory_limit=memory_limit)


def test_every_view_gets_its_kernel_and_its_parameters():
    kernels = fitted({"front": "rbf", "back": "linear"}, {"front": {"gamma": 0.3}, "back": {}})
    front, back = kernels.operators("dense", np.inf)
    np.testing.assert_allclose(front.block(WHOLE, WHOLE), rbf_kernel(DATA["front"], gamma=0.3))
    np.testing.assert_allclose(back.block(WHOLE, WHOLE), linear_kernel(DATA["back"]))


def test_features_are_centred_where_allowed_alone():
    moved, stayed = (fitted("linear", centre_features=centre).operators("auto", np.inf) for centre in (True, False))
    centred = DATA["back"] - DATA["back"].mean(axis=0)
    np.testing.assert_allclose(moved[1].block(WHOLE, WHOLE), linear_kernel(centred), atol=1e-12)
    np.testing.assert_allclose(stayed[1].block(WHOLE, WHOLE), linear_kernel(DATA["back"]), atol=1e-12)


def test_a_view_with_an_indefinite_kernel_is_named_unless_nobody_needs_a_feature_space():
    A = RNG.normal(size=(N, N))
    odd = as_views({"fine": np.eye(N), "odd": A + A.T})
    kernels = fit_view_kernels(odd, "precomputed", None, centre_features=False)
    with pytest.warns(NotPSDWarning, match="of view 'odd'"):
        kernels.operators("auto", np.inf)
    kernels.operators("auto", np.inf, check_definite=False)  # a warning would be an error here


@pytest.mark.parametrize("weights", [ONES, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_normalised_kernels_have_a_mean_squared_distance_of_one_and_new_samples_meet_the_same(kernel, weights):
    kernels = fitted(kernel, {"gamma": 0.1} if kernel == "rbf" else None, weights=weights)
    result = summed(kernels, True, weights)
    plain = [rbf_kernel(B, gamma=0.1) if kernel == "rbf" else linear_kernel(B) for B in VIEWS]
    rows = [
        rbf_kernel(A, B, gamma=0.1) if kernel == "rbf" else linear_kernel(A, B) for A, B in zip(NEW, VIEWS, strict=True)
    ]
    spreads = [mean_squared_distance(K, weights) for K in plain]
    np.testing.assert_allclose(
        result.operator.block(WHOLE, WHOLE), sum(0.5 * K / s for K, s in zip(plain, spreads, strict=True)), atol=1e-10
    )
    cross = result.new_samples.cross(NEW, np.array([0.2, 3.0]))
    np.testing.assert_allclose(
        cross.block(WHOLE, WHOLE), 0.2 * rows[0] / spreads[0] + 3.0 * rows[1] / spreads[1], atol=1e-10
    )
    fixed = WeightedViewKernels(result.new_samples, np.array([0.2, 3.0])).cross(NEW)
    np.testing.assert_array_equal(fixed.block(WHOLE, WHOLE), cross.block(WHOLE, WHOLE))


def test_without_normalisation_kernels_stay_as_they_are():
    result = summed(fitted("linear"), False)
    expected = 0.5 * sum(linear_kernel(B) for B in VIEWS)
    np.testing.assert_allclose(result.operator.block(WHOLE, WHOLE), expected, atol=1e-10)
    rows = result.new_samples.cross(NEW, np.ones(2)).block(WHOLE, WHOLE)
    np.testing.assert_allclose(rows, sum(linear_kernel(A, B) for A, B in zip(NEW, VIEWS, strict=True)), atol=1e-10)


def test_degrees_of_training_and_new_samples_are_among_the_training_samples():
    result = summed(fitted("rbf", {"gamma": 0.1}, weights=WEIGHTS), "degrees", WEIGHTS)
    plain = [rbf_kernel(B, gamma=0.1) for B in VIEWS]
    rows = [rbf_kernel(A, B, gamma=0.1) for A, B in zip(NEW, VIEWS, strict=True)]
    degrees = [K @ WEIGHTS for K in plain]
    expected = sum(0.5 * K / np.sqrt(np.outer(d, d)) for K, d in zip(plain, degrees, strict=True))
    np.testing.assert_allclose(result.operator.block(WHOLE, WHOLE), expected, rtol=1e-10)
    expected = sum(R / np.sqrt(np.outer(R @ WEIGHTS, d)) for R, d in zip(rows, degrees, strict=True))
    np.testing.assert_allclose(result.new_samples.cross(NEW, np.ones(2)).block(WHOLE, WHOLE), expected, rtol=1e-10)


def test_a_flat_view_among_others_is_an_error_that_names_it_and_flat_views_alone_are_not():
    flat = as_views({"front": DATA["front"], "flat": np.ones((N, 2))})
    operators = fit_view_kernels(flat, "linear", None, centre_features=False).operators("auto", np.inf)
    with pytest.raises(ViewError, match=r"look the same in view 'flat'"):
        scale_factors(operators, ONES, flat.names)
    assert scale_factors(operators[1:], ONES, ["flat"]) == [1.0]
    assert scale_factors(operators[:1], ONES, ["front"], normalize=False) == [1.0]


def test_the_memory_of_all_views_together_is_bounded():
    both = 2 * N**2 * 8 / 2**20
    assert not summed(fitted(), True, memory_limit=both).operator.recomputed
    assert summed(fitted(), True, memory_limit=0.9 * both).operator.recomputed
    assert summed(fitted(), True, storage="blockwise").operator.recomputed


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_features_are_kept_once_where_the_sum_holds_them_all(form):
    views = as_views({name: form(block) for name, block in DATA.items()})
    kernels = fit_view_kernels(views, "linear", None, centre_features=False)
    result = summed(kernels, True)
    assert isinstance(result.operator, JoinedFeatures)
    assert result.operator.explicit_features
    for kernel, block in zip(result.new_samples.kernels, DATA.values(), strict=True):
        features = kernel.kernel.features
        if form is np.asarray:
            assert np.shares_memory(features, result.operator.Phi)
        np.testing.assert_array_equal(features.toarray() if sp.issparse(features) else features, block)


def test_kernels_that_are_not_all_features_are_summed_one_by_one():
    result = summed(fitted(["linear", "rbf"]), True)
    assert isinstance(result.operator, CompositeKernel)
    assert not result.operator.explicit_features
    assert result.operator.view_features() is None


def test_approximations_follow_the_seed_and_the_number_of_components():
    options = {"approximation": "nystroem", "n_components": 7, "random_state": 3}
    one, other = (fitted(**options).kernels[0].features for _ in range(2))
    assert one.shape == (N, 7)
    np.testing.assert_array_equal(one, other)
    single = fit_or_approximate(DATA["front"], "rbf", None, centre_features=True, weights=ONES, **options)
    np.testing.assert_array_equal(single.features, one)
    other = fitted(**{**options, "random_state": 4}).kernels[0].features
    assert not np.allclose(other, one)


def test_degrees_are_named_by_their_view_where_they_cannot_be_taken():
    odd = [DenseKernel(-np.eye(N))]
    with pytest.raises(ValueError, match="of view 'odd'"):
        divide_by_degrees(odd, ONES, ["odd"])


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("precomputed", True),
        ("rbf", False),
        (["rbf", "precomputed"], True),
        ({"a": "rbf", "b": ("precomputed",)}, True),
        (rbf_kernel, False),
        ([], False),
    ],
)
def test_a_precomputed_kernel_is_noticed_alone_or_among_others(kernel, expected):
    assert is_precomputed(kernel) is expected
    assert (why_without_distances(kernel) is not None) is expected


class Tags:
    sparse = pairwise = positive_only = None


@pytest.mark.parametrize(
    ("kernel", "views", "expected"),
    [
        ("rbf", None, (True, False, False)),
        ("precomputed", None, (True, True, False)),
        ("precomputed", [slice(0, 2)], (True, False, False)),
        ("chi2", None, (True, False, True)),
    ],
)
def test_tags_follow_the_kernel_and_the_views(kernel, views, expected):
    tags = Tags()
    set_view_kernel_tags(tags, kernel, views)
    assert (tags.sparse, tags.pairwise, tags.positive_only) == expected
    if views is None:
        tags = Tags()
        set_kernel_tags(tags, kernel)
        assert (tags.sparse, tags.pairwise, tags.positive_only) == expected


def test_operators_say_whether_they_are_computed_again():
    lazy = fit_kernel(DATA["front"], "rbf").operator("blockwise")
    stored = fit_kernel(DATA["front"], "rbf").operator("dense")
    assert lazy.recomputed
    assert not stored.recomputed
    assert CompositeKernel([stored, lazy], [1.0, 1.0]).recomputed
    assert not CompositeKernel([stored, stored], [1.0, 1.0]).recomputed
    assert divide_by_degrees([lazy], ONES, ["front"])[0].recomputed


@pytest.mark.parametrize("n_views", [1, 2, 4])
def test_what_is_free_whatever_the_limit_is_so_once_for_all_views(n_views):
    limit = 12.0
    samples = np.random.default_rng(0).standard_normal((n_views, 680, 1000))
    for n in range(80, 700, 20):
        views = as_views([view[:n] for view in samples])
        fitted = fit_view_kernels(views, "rbf", None, centre_features=False)
        operators = fitted.operators("auto", limit / n_views)
        kept = sum(kernel.kept_mib for kernel in fitted.kernels)
        stored = sum(op.stored_matrix() is not None for op in operators) * n**2 * 8 / 2**20
        assert stored == 0 or kept + stored <= limit + max(1.0, 0.1 * limit)
