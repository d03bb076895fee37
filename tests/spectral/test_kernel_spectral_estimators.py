"""KernelSpectralClustering and MultiViewKernelSpectralClustering: against the plain oracle, laws, streams, errors."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, silhouette_samples
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from threadpoolctl import threadpool_limits

from kernelweave import (
    KernelError,
    KernelSpectralClustering,
    MultiViewKernelSpectralClustering,
    ParameterError,
    ViewError,
)
from kernelweave.backends.host import HostBackend
from kernelweave.datasets import make_mvksc_synth2, make_two_rings
from kernelweave.estimators.shared import scores as streaming
from kernelweave.estimators.spectral.training_samples import SWAPS
from kernelweave.foundation.random_streams import streams
from kernelweave.metrics import normalized_mutual_info
from kernelweave.solvers.spectral import kernel_spectral as solver
from kernelweave.solvers.spectral.kernel_spectral import committee_weights
from tests.estimators.discovery import blobs, same
from tests.reference import kernel_spectral as oracle
from tests.strategies import samples

SIGMA = 1.5
RBF = {"kernel_params": {"sigma": SIGMA}}
both = pytest.mark.parametrize("cls", [KernelSpectralClustering, MultiViewKernelSpectralClustering])
assignments = pytest.mark.parametrize("assignment", ["joint", "per_view"])
quick = settings(max_examples=30, deadline=None)


def overlapping(sizes=(14, 11, 8), seed=0, spread=1.0):
    """Return three views of the same overlapping groups, the last of them faint, and the groups."""
    rng = np.random.default_rng([7, seed])
    y = rng.permutation(np.repeat(np.arange(3), sizes))
    centres = np.random.default_rng(4).standard_normal((3, 3, 3))  # the same for every seed
    return [
        scale * centres[v][y] + spread * rng.standard_normal((len(y), 3)) for v, scale in enumerate((2.5, 2.0, 0.7))
    ], y


VIEWS, TRUTH = overlapping()
NEW = overlapping((5, 4, 4), seed=1)[0]
N = len(TRUTH)
NAMES = ("front", "back", "faint")
NAMED = dict(zip(NAMES, VIEWS, strict=True))
NEW_NAMED = dict(zip(NAMES, NEW, strict=True))
CLEAR, CLEAR_TRUTH = blobs(15)
CLEAR_VIEWS = [CLEAR[:, :2], CLEAR[:, 2:]]


def rbf(A, B=None, sigma=SIGMA):
    """Return the plain Gaussian kernel."""
    return rbf_kernel(A, A if B is None else B, gamma=0.5 / sigma**2)


def given_as(cls, X, other=None):
    """Return samples as a class wants them: as they are, or as two views."""
    return X if cls is KernelSpectralClustering else [X, X if other is None else other]


def same_partition(one, other):
    return adjusted_rand_score(one, other) == 1.0


def fit_unless_alike(model, data):
    """Return the fitted model, or None where there are fewer sign patterns than clusters."""
    try:
        return model.fit(data)
    except ParameterError as error:
        if "distinct sign pattern" not in str(error):
            raise
        return None


def ksc(n_clusters=3, X=VIEWS[0], **options):
    return KernelSpectralClustering(n_clusters, **(RBF | options)).fit(X)


def mvksc(n_clusters=3, X=VIEWS, **options):
    return MultiViewKernelSpectralClustering(n_clusters, **(RBF | options)).fit(X)


# --- one view against the oracle -------------------------------------------------------------------------------------

PLAIN = {
    "rbf": (RBF, rbf),
    "laplacian": (
        {"kernel": "laplacian", "kernel_params": {"gamma": 0.3}},
        lambda A, B=None: laplacian_kernel(A, B, gamma=0.3),
    ),
    "poly": (
        {"kernel": "poly", "kernel_params": {"gamma": 0.1, "degree": 2}},
        lambda A, B=None: polynomial_kernel(A, B, degree=2, gamma=0.1),
    ),
    "a function": ({"kernel": rbf, "kernel_params": None}, rbf),
}


@pytest.mark.parametrize("kernel", PLAIN)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_one_view_is_the_plain_oracle(kernel, k):
    options, fill = PLAIN[kernel]
    model, K = ksc(k, **options), fill(VIEWS[0])
    values, alphas, bias, scores = oracle.ksc(K, k)
    factors = oracle.factors(scores, model.scores_)
    np.testing.assert_allclose(model.eigenvalues_, values[: k - 1], rtol=1e-8)
    np.testing.assert_allclose(model.scores_, scores * factors, atol=1e-7)
    np.testing.assert_allclose(model.dual_coef_, alphas * factors, atol=1e-7)
    np.testing.assert_allclose(model.bias_, bias * factors, atol=1e-7)
    np.testing.assert_array_equal(model.labels_, oracle.labelled(scores, k))
    np.testing.assert_array_equal(model.codebook_, np.array(oracle.codebook(scores, k)) * np.sign(factors))
    new = oracle.ksc_scores(fill(NEW[0], VIEWS[0]), alphas, bias)
    np.testing.assert_allclose(model.transform(NEW[0]), new * factors, atol=1e-7)
    np.testing.assert_array_equal(model.predict(NEW[0]), oracle.decoded(new, oracle.codebook(scores, k)))


def test_one_view_keeps_what_its_docstring_lists():
    model = ksc()
    K = rbf(VIEWS[0])
    assert model.objective_ == pytest.approx(model.eigenvalues_.sum())
    np.testing.assert_allclose(model.objective_path_, [model.objective_])
    assert (model.n_iter_, model.converged_, model.n_features_in_) == (1, True, 3)
    assert model.scores_.shape == model.dual_coef_.shape == (N, 2)
    np.testing.assert_allclose(model.scores_, K @ model.dual_coef_ + model.bias_, atol=1e-10)
    np.testing.assert_array_equal(model.train_indices_, np.arange(N))
    assert set(np.unique(model.codebook_)) <= {-1.0, 1.0}
    assert (np.diff(model.eigenvalues_) <= 0).all()
    assert model.eigenvalues_[0] <= 1 + 1e-12
    assert list(model.get_feature_names_out()) == ["kernelspectralclustering0", "kernelspectralclustering1"]


@pytest.mark.parametrize("data", ["blobs", "rings"])
def test_one_view_agrees_with_random_walk_spectral_clustering(data):
    X, y = blobs(25) if data == "blobs" else make_two_rings(200, random_state=0)
    K = rbf(X, sigma=4.0 if data == "blobs" else 0.3)
    k = len(np.unique(y))
    walk = SpectralClustering(k, affinity="precomputed", assign_labels="kmeans", random_state=0).fit(K)
    model = KernelSpectralClustering(k, kernel="precomputed").fit(K)
    assert same_partition(walk.labels_, y)
    assert same_partition(model.labels_, walk.labels_)


def test_scores_are_all_but_constant_within_clear_clusters():
    model = ksc(X=CLEAR)
    for c in range(3):
        scores = model.scores_[model.labels_ == c] / np.sqrt(model.degrees_[model.labels_ == c])[:, None]
        assert (np.sign(scores) == model.codebook_[c]).all()
    assert same_partition(model.labels_, CLEAR_TRUTH)
    assert model.eigenvalues_.min() > 0.95


# --- several views against the oracle --------------------------------------------------------------------------------

GAMMAS = [0.4, 2.0, 1.0]
gammas = pytest.mark.parametrize(
    ("gamma", "each"),
    [
        (0.7, [0.7] * 3),
        (GAMMAS, GAMMAS),
        (tuple(GAMMAS), GAMMAS),
        ({"faint": 1.0, "front": 0.4, "back": 2.0}, GAMMAS),
        (0, [0.0] * 3),
    ],
    ids=["one for all", "list", "tuple", "by name", "zero"],
)


@gammas
@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("k", [2, 3])
def test_several_views_are_the_plain_oracle(gamma, each, n_views, k):
    names = NAMES[:n_views]
    if isinstance(gamma, dict):
        gamma = {name: gamma[name] for name in gamma if name in names}
    elif isinstance(gamma, list | tuple):
        gamma = gamma[:n_views]
    views, new = {name: NAMED[name] for name in names}, {name: NEW_NAMED[name] for name in names}
    kernels = [rbf(X) for X in views.values()]
    values, alphas, scores = oracle.mvksc(kernels, each[:n_views], k)
    later = oracle.new_scores([rbf(new[name], views[name]) for name in names], kernels, alphas)

    model = mvksc(k, views, gamma=gamma)
    factors = oracle.factors(scores, model.scores_)
    np.testing.assert_allclose(model.eigenvalues_, values[: k - 1], rtol=1e-7)
    assert model.objective_ == pytest.approx(values[: k - 1].sum())
    np.testing.assert_allclose(model.scores_, scores * factors, atol=1e-6)
    np.testing.assert_array_equal(model.labels_, oracle.labelled(oracle.joint(scores), k))
    np.testing.assert_allclose(model.gamma_limits_, [oracle.gamma_limit(K) for K in kernels], rtol=1e-7)
    np.testing.assert_allclose(model.view_weights_, 1.0 / n_views)
    np.testing.assert_allclose(model.transform_views(new), later * factors, atol=1e-6)
    np.testing.assert_allclose(model.transform(new), oracle.joint(later) * factors, atol=1e-6)
    book = oracle.codebook(oracle.joint(scores), k)
    np.testing.assert_array_equal(model.predict(new), oracle.decoded(oracle.joint(later), book))

    model = mvksc(k, views, gamma=gamma, assignment="per_view")
    for v in range(n_views):
        book = oracle.codebook(scores[v], k)
        np.testing.assert_array_equal(model.view_labels_[v], oracle.decoded(scores[v], book))
        np.testing.assert_array_equal(model.predict_views(new)[v], oracle.decoded(later[v], book))
        np.testing.assert_array_equal(model.view_codebooks_[v], np.array(book) * np.sign(factors))


@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        (["rbf", "laplacian", "poly"], [PLAIN[name][0]["kernel_params"] for name in ("rbf", "laplacian", "poly")]),
        (
            {"faint": "poly", "back": "laplacian", "front": "rbf"},
            {
                name: PLAIN[kind][0]["kernel_params"]
                for name, kind in zip(NAMES, ("rbf", "laplacian", "poly"), strict=True)
            },
        ),
    ],
    ids=["lists", "by name"],
)
def test_every_view_may_have_a_kernel_of_its_own(kernel, params):
    kernels = [PLAIN[kind][1](X) for kind, X in zip(("rbf", "laplacian", "poly"), VIEWS, strict=True)]
    values, _, scores = oracle.mvksc(kernels, [1.0] * 3, 3)
    model = mvksc(3, NAMED, kernel=kernel, kernel_params=params)
    np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-7)
    np.testing.assert_allclose(model.scores_, scores * oracle.factors(scores, model.scores_), atol=1e-6)
    np.testing.assert_array_equal(model.labels_, oracle.labelled(oracle.joint(scores), 3))


def test_given_and_named_kernels_may_be_mixed():
    model = mvksc(3, [VIEWS[0], rbf(VIEWS[1])], kernel=["rbf", "precomputed"], kernel_params=[{"sigma": SIGMA}, None])
    plain = mvksc(3, VIEWS[:2])
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict([NEW[0], rbf(NEW[1], VIEWS[1])]), plain.predict(NEW[:2]))


@pytest.mark.parametrize("weights", [[1.0, 2.0, 5.0], (0.0, 1.0, 0.0), np.array([3, 1, 0])], ids=str)
def test_given_weights_of_the_views_are_those_of_the_average(weights):
    shares = np.array(weights, dtype=float) / np.sum(weights)
    _, _, scores = oracle.mvksc([rbf(X) for X in VIEWS], [1.0] * 3, 3)
    model = mvksc(view_weights=weights)
    np.testing.assert_allclose(model.view_weights_, shares)
    np.testing.assert_array_equal(model.labels_, oracle.labelled(oracle.joint(scores, shares), 3))
    np.testing.assert_allclose(model.transform(NEW), oracle.joint(model.transform_views(NEW), shares), atol=1e-12)
    named = mvksc(X=NAMED, view_weights=dict(zip(NAMES[::-1], list(weights)[::-1], strict=True)))
    np.testing.assert_array_equal(named.labels_, model.labels_)
    np.testing.assert_allclose(named.view_weights_, shares)


def test_several_views_keep_what_the_docstring_lists():
    model = mvksc(X=NAMED)
    assert model.view_names_ == list(NAMES)
    assert (model.n_iter_, model.converged_, model.n_features_in_) == (1, True, 9)
    assert model.scores_.shape == (3, N, 2)
    assert model.degrees_.shape == (3, N)
    assert model.codebook_.shape == (3, 2)
    np.testing.assert_allclose(model.objective_path_, [model.objective_])
    np.testing.assert_array_equal(model.train_indices_, np.arange(N))
    assert not hasattr(model, "view_labels_")
    assert list(model.get_feature_names_out()) == [f"multiviewkernelspectralclustering{i}" for i in range(2)]


# --- predict, transform and what they agree with ---------------------------------------------------------------------

RNG = np.random.default_rng(2)
POSITIVE = 1.0 + 9.0 * np.eye(3)[np.arange(45) % 3] + RNG.uniform(0.0, 1.0, (45, 3))
NAMED_KERNELS = {
    "rbf": {"kernel_params": {"sigma": 4.0}},
    "rbf, width by rule": {"kernel": "rbf"},
    "laplacian": {"kernel": "laplacian"},
    "linear": {"kernel": "linear"},
    "cosine": {"kernel": "cosine"},
    "chi2": {"kernel": "chi2", "kernel_params": {"gamma": 0.2}},
    "poly": {"kernel": "poly", "kernel_params": {"degree": 2, "gamma": 0.1}},
    "normalized_poly": {"kernel": "normalized_poly"},
    "nearest_neighbors": {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 8}},
    "self-tuned neighbours": {
        "kernel": "nearest_neighbors",
        "kernel_params": {"n_neighbors": 20, "weights": "self_tuning", "symmetrize": "max"},
    },
    "self_tuning": {"kernel": "self_tuning", "kernel_params": {"n_neighbors": 20}},
    "precomputed": {"kernel": "precomputed"},
    "precomputed, sparse": {"kernel": "precomputed"},
}


@pytest.mark.parametrize("name", NAMED_KERNELS)
@pytest.mark.parametrize("n_train", [None, 30])
@both
def test_training_samples_are_placed_where_they_were(cls, name, n_train):
    X = POSITIVE if "precomputed" not in name else rbf(POSITIVE, sigma=4.0)
    X = sp.csr_array(X) if name.endswith("sparse") else X
    data = given_as(cls, X)
    model = cls(3, n_train_samples=n_train, random_state=0, **NAMED_KERNELS[name]).fit(data)
    np.testing.assert_array_equal(model.predict(data), model.labels_)
    np.testing.assert_array_equal(model.predict(given_as(cls, X[10:13])), model.labels_[10:13])
    if n_train is None:
        scores = model.scores_ if cls is KernelSpectralClustering else model.scores_.mean(axis=0)
        np.testing.assert_allclose(model.transform(data), scores, atol=1e-9)
    assert same_partition(model.labels_, np.arange(45) % 3) or "neighbo" in name


@both
def test_fit_predict_and_fit_transform_are_fit_and_then_the_other(cls):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    model = cls(3, n_train_samples=20, random_state=0, **RBF).fit(data)
    np.testing.assert_array_equal(clone(model).fit_predict(data), model.labels_)
    np.testing.assert_array_equal(clone(model).fit_transform(data), model.transform(data))
    assert model.transform(data).shape == (N, 2)


@both
def test_row_sums_of_the_training_samples_are_their_degrees(cls):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    model = cls(3, **RBF).fit(data)
    plain = rbf(VIEWS[0]).sum(axis=1) if cls is KernelSpectralClustering else [rbf(X).sum(axis=1) for X in VIEWS[:2]]
    np.testing.assert_allclose(model.degrees_, plain, rtol=1e-10)
    np.testing.assert_allclose(model.kernel_row_sums(data), model.degrees_, rtol=1e-10)
    new = given_as(cls, NEW[0], NEW[1])
    parts = [rbf(A, B).sum(axis=1) for A, B in zip(NEW[:2], VIEWS[:2], strict=True)]
    np.testing.assert_allclose(
        model.kernel_row_sums(new), parts[0] if cls is KernelSpectralClustering else parts, rtol=1e-10
    )


def test_row_sums_of_a_part_belong_to_the_samples_trained_on():
    model = ksc(n_train_samples=15, random_state=0)
    np.testing.assert_allclose(model.kernel_row_sums(VIEWS[0])[model.train_indices_], model.degrees_, rtol=1e-10)
    assert model.degrees_.shape == (15,)


@both
@pytest.mark.parametrize("method", ["predict", "transform", "kernel_row_sums", "predict_views", "transform_views"])
def test_nothing_is_predicted_before_fit(cls, method):
    if not hasattr(cls, method):
        assert cls is KernelSpectralClustering
        return
    with pytest.raises(NotFittedError):
        getattr(cls(3), method)(given_as(cls, VIEWS[0]))


@both
def test_a_fitted_model_survives_pickling_without_a_kernel_matrix(cls):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    model = cls(3, **RBF).fit(data)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(data), model.labels_)
    many = [np.vstack([X] * 20) for X in VIEWS[:2]]
    large = cls(3, n_train_samples=600, random_state=0, **RBF).fit(given_as(cls, *many))
    assert len(pickle.dumps(large)) < 600**2 * 8 / 2


@both
def test_arguments_and_data_are_left_as_they_were(cls):
    data = given_as(cls, VIEWS[0].copy(), VIEWS[1].copy())
    options = {"kernel_params": {"sigma": SIGMA}}
    if cls is MultiViewKernelSpectralClustering:
        options |= {"gamma": [0.5, 1.0], "view_weights": np.array([2.0, 1.0])}
    for part in [data] if cls is KernelSpectralClustering else [*data, options["view_weights"]]:
        part.setflags(write=False)
    model = cls(3, n_train_samples=20, selection="entropy", random_state=0, **options)
    before = clone(model).get_params()
    model.fit(data).predict(data)
    assert same(list(before.values()), list(model.get_params().values()))


# --- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 2, 0), (0, 2, 1)])
@pytest.mark.parametrize(
    ("assignment", "weights"), [("joint", "uniform"), ("joint", "silhouette"), ("per_view", "uniform")]
)
def test_the_order_of_the_views_does_not_matter(assignment, order, weights):
    gamma = dict(zip(NAMES, GAMMAS, strict=True))
    options = {"gamma": gamma, "assignment": assignment, "view_weights": weights}
    here, there = mvksc(X=NAMED, **options), mvksc(X={NAMES[v]: VIEWS[v] for v in order}, **options)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.predict(NEW_NAMED), here.predict(NEW_NAMED))
    np.testing.assert_allclose(there.view_weights_, here.view_weights_[list(order)], atol=1e-8)
    if assignment == "per_view":
        assert here.best_view_ == there.best_view_
        np.testing.assert_array_equal(there.view_labels_, here.view_labels_[list(order)])


@pytest.mark.parametrize(
    ("assignment", "weights"),
    [("joint", "uniform"), ("joint", "silhouette"), ("joint", [2.0]), ("per_view", "uniform")],
)
@pytest.mark.parametrize("gamma", [1.0, 1e6])
def test_a_single_view_is_kernel_spectral_clustering(assignment, weights, gamma):
    plain = ksc()
    for data in ([VIEWS[0]], VIEWS[0]):
        model = mvksc(X=data, assignment=assignment, view_weights=weights, gamma=gamma)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_allclose(model.scores_[0], plain.scores_, atol=1e-10)
        np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-10)
        np.testing.assert_array_equal(model.codebook_, plain.codebook_)
        np.testing.assert_allclose(model.degrees_[0], plain.degrees_)
    np.testing.assert_allclose(model.transform(NEW[0]), plain.transform(NEW[0]), atol=1e-9)
    np.testing.assert_array_equal(model.predict(NEW[0]), plain.predict(NEW[0]))
    assert model.view_weights_.tolist() == [1.0]


def grouped(rng, n_groups):
    """Return clear groups of different sizes in two views, shuffled, and the groups."""
    y = rng.permutation(np.repeat(np.arange(n_groups), np.arange(4, 4 + 2 * n_groups, 2)))
    centres = [9.0 * np.eye(3)[:n_groups], 9.0 * np.eye(3)[::-1][:n_groups]]
    return [centre[y] + 0.6 * rng.standard_normal((len(y), 3)) for centre in centres], y


@quick
@given(seed=st.integers(0, 2**16), n_groups=st.integers(2, 3))
@both
def test_the_order_of_the_samples_does_not_matter(cls, seed, n_groups):
    rng = np.random.default_rng(seed)
    views, y = grouped(rng, n_groups)
    order = rng.permutation(len(y))
    model = cls(n_groups, **RBF).fit(given_as(cls, *views))
    if len(set(oracle.patterns(model.transform(given_as(cls, *views))))) > n_groups:
        return  # a group lies across zero, once in some hundred draws: which patterns are equally frequent is chance
    moved = cls(n_groups, **RBF).fit(given_as(cls, *(X[order] for X in views)))
    np.testing.assert_array_equal(moved.labels_, model.labels_[order])
    np.testing.assert_allclose(moved.eigenvalues_, model.eigenvalues_, rtol=1e-8)
    assert same_partition(model.labels_, y)
    np.testing.assert_array_equal(model.labels_, n_groups - 1 - y)  # the most frequent pattern comes first


@quick
@given(X=samples(min_n=5, max_n=14), seed=st.integers(0, 2**16), sigma=st.sampled_from([0.5, 1.0, 2.0]))
@both
def test_scores_follow_the_samples_in_any_order(cls, X, seed, sigma):
    order = np.random.default_rng(seed).permutation(len(X))
    kernels = [rbf(X, sigma=sigma), rbf(np.tanh(X), sigma=sigma)]
    if cls is KernelSpectralClustering:
        values = oracle.ksc(kernels[0], 2)[0]
    else:
        values = oracle.mvksc(kernels, [1.0, 1.0], 2)[0]
    if values[0] - values[1] < 1e-3 * values[0] or values[0] < 1e-3:
        return  # nearly equal eigenvalues: their vectors are any
    data = given_as(cls, *kernels)
    model = fit_unless_alike(cls(2, kernel="precomputed"), data)
    if model is None:
        return
    moved = given_as(cls, *(K[np.ix_(order, order)] for K in kernels))
    there = cls(2, kernel="precomputed").fit(moved)
    expected = model.scores_[..., order, :]
    np.testing.assert_allclose(expected, there.scores_ * oracle.factors(there.scores_, expected), atol=1e-6)


@quick
@given(
    X=samples(min_n=4, max_n=8, kinds=("general",)),
    seed=st.integers(0, 2**16),
    k=st.integers(2, 4),
    n=st.integers(1, 9),
)
@both
def test_equal_samples_share_their_cluster(cls, X, seed, k, n):
    rng = np.random.default_rng(seed)
    which = rng.permutation(np.concatenate([np.arange(len(X)), rng.integers(len(X), size=n)]))
    data = given_as(cls, X[which], X[which] ** 3)
    model = fit_unless_alike(cls(k, **RBF), data)
    if model is None:
        return
    first = {sample: model.labels_[place] for place, sample in reversed(list(enumerate(which)))}
    assert [first[sample] for sample in which] == model.labels_.tolist()
    np.testing.assert_array_equal(model.predict(data), model.labels_)


@quick
@given(X=samples(min_n=4), k=st.integers(2, 4), power=st.integers(-12, 12), sigma=st.sampled_from([0.5, 1.0, 2.0]))
@both
def test_a_kernel_times_a_constant_gives_the_same_clusters(cls, X, k, power, sigma):
    kernels = [rbf(X, sigma=sigma), rbf(np.tanh(X), sigma=2 * sigma)]
    outcomes = []
    for factor in (1.0, 4.0**power):  # whose root is exact, so that nothing is rounded another way
        try:
            model = cls(k, kernel="precomputed").fit(given_as(cls, *(factor * K for K in kernels)))
        except ParameterError as error:
            outcomes.append(str(error))
        else:
            outcomes.append(model.labels_.tolist())
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("factors", [(3e-9, 3e-9), (7e8, 7e8)])
@both
def test_kernels_times_any_constant_give_the_same_clusters(cls, factors):
    kernels = [rbf(X) for X in VIEWS[:2]]
    plain = cls(3, kernel="precomputed").fit(given_as(cls, *kernels))
    scaled = cls(3, kernel="precomputed").fit(
        given_as(cls, *(c * K for c, K in zip(factors, kernels, strict=True))),
    )
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_allclose(scaled.eigenvalues_, plain.eigenvalues_, rtol=1e-9)


def test_scaling_one_view_leaves_the_clusters_of_every_view():
    kernels = [rbf(X) for X in VIEWS]
    options = {"kernel": "precomputed", "kernel_params": None, "assignment": "per_view"}
    plain = mvksc(X=kernels, **options)
    scaled = mvksc(X=[kernels[0], 1e-6 * kernels[1], 37.0 * kernels[2]], **options)
    np.testing.assert_array_equal(scaled.view_labels_, plain.view_labels_)
    np.testing.assert_allclose(scaled.gamma_limits_, plain.gamma_limits_, rtol=1e-9)
    assert scaled.best_view_ == plain.best_view_


@both
@assignments
def test_one_cluster_holds_all_samples(cls, assignment):
    options = {} if cls is KernelSpectralClustering else {"assignment": assignment}
    data = given_as(cls, VIEWS[0], VIEWS[1])
    for n_train in (None, 7):
        model = cls(1, n_train_samples=n_train, random_state=0, **options).fit(data)
        assert model.labels_.tolist() == [0] * N
        assert model.predict(data).tolist() == [0] * N
        assert model.transform(data).shape == (N, 0)
        assert model.codebook_.shape == (1, 0)
        assert model.eigenvalues_.shape == (0,)
        assert model.objective_ == 0.0
        np.testing.assert_allclose(model.kernel_row_sums(data)[..., model.train_indices_], model.degrees_)


@both
@pytest.mark.parametrize("small", [10, 1200])
def test_the_iterative_eigenvectors_give_the_clusters_of_the_dense_ones(cls, small, monkeypatch):
    monkeypatch.setattr(solver, "SMALL", small)
    monkeypatch.setattr(HostBackend, "direct_limit", small)
    data = given_as(cls, VIEWS[0], VIEWS[1])
    model = cls(3, **RBF).fit(data)
    kernels = [rbf(X) for X in VIEWS[:2]]
    if cls is KernelSpectralClustering:
        expected = oracle.labelled(oracle.ksc(kernels[0], 3)[3], 3)
    else:
        expected = oracle.labelled(oracle.joint(oracle.mvksc(kernels, [1.0, 1.0], 3)[2]), 3)
    np.testing.assert_array_equal(model.labels_, expected)


@both
def test_stored_and_computed_kernels_give_the_same_clusters(cls):
    if cls is MultiViewKernelSpectralClustering:
        assert "storage" not in cls().get_params()  # its kernels are always stored
        return
    models = [ksc(storage=storage) for storage in ("auto", "dense", "blockwise")]
    models.append(ksc(memory_limit=1e-6))
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_allclose(model.scores_, models[0].scores_, atol=1e-9)


@both
def test_the_number_of_threads_does_not_matter(cls, monkeypatch):
    monkeypatch.setattr(solver, "SMALL", 100)
    monkeypatch.setattr(HostBackend, "direct_limit", 100)
    views, _ = overlapping((150, 130, 120), spread=1.4)
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = cls(4, n_train_samples=300, selection="entropy", random_state=0, **RBF)
            models.append(model.fit(given_as(cls, *views[:2])))
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    np.testing.assert_array_equal(models[0].train_indices_, models[1].train_indices_)
    np.testing.assert_allclose(models[0].scores_, models[1].scores_, atol=1e-9)


# --- weights by silhouettes ------------------------------------------------------------------------------------------


def kernel_silhouettes(K, labels):
    """Return the silhouettes with the distances of a kernel's feature space, by scikit-learn."""
    D = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K) - 2 * K, 0.0))
    np.fill_diagonal(D, 0.0)
    return silhouette_samples(D, labels, metric="precomputed")


@pytest.mark.parametrize("n_views", [2, 3])
@quick
@given(seed=st.integers(0, 2**16), shared=st.floats(0.0, 1.0))
def test_committee_weights_are_the_best_of_the_simplex(n_views, seed, shared):
    rng = np.random.default_rng(seed)
    errors = np.abs(shared * rng.random(12) + (1 - shared) * rng.random((n_views, 12)) * rng.random((n_views, 1)))
    weights = committee_weights(errors)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1.0)
    least, at = oracle.best_committee(errors, 100 if n_views == 2 else 25)
    error = oracle.committee_error(errors, weights)
    assert error <= least * (1 + 1e-9)
    step = 1 / (100 if n_views == 2 else 25)
    # The best point of the grid is no better than what lies within a step of the weights found.
    assert least - error <= 4 * step * errors.max() ** 2
    assert n_views == 3 or shared > 0.9 or abs(weights[0] - at[0]) <= 0.2


def test_committee_weights_worked_out_by_hand():
    # Errors that have nothing to do with each other get weights of one over their squares.
    errors = np.array([[1.0, -1.0, 1.0, -1.0], [2.0, 2.0, -2.0, -2.0]])
    np.testing.assert_allclose(committee_weights(errors), [0.8, 0.2], atol=1e-12)
    # A view that errs like the first but twice as much is of no use.
    np.testing.assert_allclose(committee_weights(np.array([[1.0, 0.5], [2.0, 1.0]])), [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(committee_weights(1e-150 * errors), [0.8, 0.2], atol=1e-9)


def test_silhouette_weights_are_those_of_the_committee_of_least_error():
    kernels = [rbf(X) for X in VIEWS]
    _, _, scores = oracle.mvksc(kernels, [1.0] * 3, 3)
    errors = np.stack(
        [(1 - kernel_silhouettes(K, oracle.labelled(rows, 3))) / 2 for K, rows in zip(kernels, scores, strict=True)]
    )
    model = mvksc(view_weights="silhouette")
    least, at = oracle.best_committee(errors, 100)
    assert oracle.committee_error(errors, model.view_weights_) <= least * (1 + 1e-9)
    np.testing.assert_allclose(model.view_weights_, at, atol=0.02)
    np.testing.assert_array_equal(model.labels_, oracle.labelled(oracle.joint(scores, model.view_weights_), 3))
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


@pytest.mark.parametrize("seed", range(4))
def test_noise_gets_no_more_weight_than_a_clear_view(seed):
    X, y = blobs(15, seed=seed)
    noise = np.random.default_rng(seed).standard_normal((len(y), 2))
    model = mvksc(3, {"noise": noise, "clear": X}, kernel_params=None, view_weights="silhouette")
    noisy, clear = model.view_weights_
    assert noisy <= clear
    assert noisy >= 0
    assert noisy + clear == pytest.approx(1.0)


def test_silhouettes_of_a_single_cluster_still_give_weights():
    model = mvksc(1, view_weights="silhouette")
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert (model.view_weights_ >= 0).all()
    assert set(model.labels_) == {0}


# --- view by view ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_train", [None, 20])
def test_view_by_view_there_are_labels_codebooks_and_scores_of_each(n_train):
    model = mvksc(3, NAMED, assignment="per_view", n_train_samples=n_train, random_state=0)
    m = n_train or N
    assert model.view_labels_.shape == (3, N)
    assert model.scores_.shape == (3, m, 2)
    assert [book.shape for book in model.view_codebooks_] == [(3, 2)] * 3
    assert model.predict_views(NEW_NAMED).shape == (3, 13)
    assert model.transform_views(NEW_NAMED).shape == (3, 13, 2)
    np.testing.assert_array_equal(model.predict_views(NAMED), model.view_labels_)
    best = NAMES.index(model.best_view_)
    np.testing.assert_array_equal(model.labels_, model.view_labels_[best])
    np.testing.assert_array_equal(model.codebook_, model.view_codebooks_[best])
    np.testing.assert_array_equal(model.predict(NEW_NAMED), model.predict_views(NEW_NAMED)[best])
    np.testing.assert_array_equal(model.transform(NEW_NAMED), model.transform_views(NEW_NAMED)[best])
    np.testing.assert_allclose(model.view_weights_, 1 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_view_has_the_largest_mean_silhouette(seed):
    views = dict(zip(NAMES, overlapping(seed=seed)[0], strict=True))
    model = mvksc(3, views, assignment="per_view")
    each = [
        kernel_silhouettes(rbf(X), labels).mean() for X, labels in zip(views.values(), model.view_labels_, strict=True)
    ]
    assert model.best_view_ == NAMES[int(np.argmax(each))]


def test_a_new_fit_forgets_what_belonged_to_the_other_assignment():
    model = mvksc(assignment="per_view")
    model.set_params(assignment="joint").fit(VIEWS)
    for name in ("view_labels_", "view_codebooks_", "best_view_"):
        assert not hasattr(model, name)
    np.testing.assert_array_equal(model.labels_, mvksc().labels_)


def test_labels_of_every_view_need_an_assignment_view_by_view():
    with pytest.raises(ParameterError, match=r"assignment='joint' makes one codebook .* assignment='per_view'"):
        mvksc().predict_views(VIEWS)


@pytest.mark.parametrize("weights", ["silhouette", [1.0, 1.0, 1.0], {"view_0": 1, "view_1": 1, "view_2": 1}])
def test_weights_of_views_make_no_sense_view_by_view(weights):
    with pytest.raises(ParameterError, match=r"view_weights=.* has no effect with assignment='per_view'"):
        mvksc(assignment="per_view", view_weights=weights)


# --- training on a part ----------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("selection", ["random", "entropy"])
def test_a_part_of_the_samples_is_trained_on_and_all_get_labels(cls, selection):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    options = {"n_train_samples": 20, "selection": selection, **RBF}
    model = cls(3, random_state=0, **options).fit(data)
    chosen = model.train_indices_
    assert len(chosen) == 20
    assert (np.diff(chosen) > 0).all()
    assert chosen.min() >= 0
    assert chosen.max() < N
    assert model.labels_.shape == (N,)
    assert model.scores_.shape[-2:] == (20, 2)
    np.testing.assert_array_equal(cls(3, random_state=0, **options).fit(data).train_indices_, chosen)
    if selection == "random":  # swaps may end at the same samples from any start
        assert not np.array_equal(cls(3, random_state=1, **options).fit(data).train_indices_, chosen)
    # It is the model of these samples alone.
    part = cls(3, **RBF).fit(given_as(cls, VIEWS[0][chosen], VIEWS[1][chosen]))
    np.testing.assert_array_equal(part.predict(data), model.labels_)
    np.testing.assert_allclose(part.scores_, model.scores_, atol=1e-10)


@both
@pytest.mark.parametrize("n_train", [N, N + 5])
def test_no_fewer_than_there_are_means_all(cls, n_train):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    model = cls(3, n_train_samples=n_train, selection="entropy", random_state=0, **RBF).fit(data)
    np.testing.assert_array_equal(model.train_indices_, np.arange(N))
    np.testing.assert_array_equal(model.labels_, cls(3, **RBF).fit(data).labels_)


@both
@pytest.mark.parametrize("seed", range(5))
def test_samples_chosen_by_entropy_are_less_alike_than_random_ones(cls, seed):
    views, _ = overlapping((60, 30, 10), seed=2)
    kernels = [rbf(X) for X in views[: 1 if cls is KernelSpectralClustering else 2]]
    sums = {}
    for selection in ("random", "entropy"):
        model = cls(3, n_train_samples=25, selection=selection, random_state=seed, **RBF)
        chosen = model.fit(given_as(cls, *views[:2])).train_indices_
        sums[selection] = sum(K[np.ix_(chosen, chosen)].sum() for K in kernels)
    assert sums["entropy"] < sums["random"]


@both
@pytest.mark.parametrize("seed", range(3))
def test_swaps_for_entropy_are_those_of_a_plain_loop(cls, seed):
    views, _ = overlapping((60, 30, 10), seed=2)
    kernels = [rbf(X) for X in views[: 1 if cls is KernelSpectralClustering else 2]]
    model = cls(3, n_train_samples=25, selection="entropy", random_state=seed, **RBF).fit(given_as(cls, *views[:2]))
    expected = oracle.spread_out(sum(kernels), 25, SWAPS * 25, streams(seed, 1, "training samples")[0])
    np.testing.assert_array_equal(model.train_indices_, expected)


@pytest.mark.parametrize("name", ["precomputed", "precomputed, sparse", "nearest_neighbors", "self_tuning", "linear"])
@both
def test_entropy_works_for_kernels_of_every_form(cls, name):
    X = POSITIVE if "precomputed" not in name else rbf(POSITIVE, sigma=4.0)
    X = sp.csr_array(X) if name.endswith("sparse") else X
    options = {"n_train_samples": 30, "selection": "entropy", "random_state": 0, **NAMED_KERNELS[name]}
    model = cls(2, **options).fit(given_as(cls, X))
    np.testing.assert_array_equal(model.predict(given_as(cls, X)), model.labels_)
    assert len(np.unique(model.train_indices_)) == 30


@pytest.mark.parametrize("selection", ["random", "entropy"])
def test_a_part_of_the_second_synthetic_set_does_about_as_well_as_all(selection):
    data = make_mvksc_synth2(500, random_state=0)
    options = {"kernel_params": {"sigma": 1.0}, "random_state": 0}
    full = MultiViewKernelSpectralClustering(2, **options).fit(data.views)
    part = MultiViewKernelSpectralClustering(2, n_train_samples=150, selection=selection, **options).fit(data.views)
    reached = normalized_mutual_info(data.target, full.labels_)
    assert reached > 0.5
    assert normalized_mutual_info(data.target, part.labels_) > reached - 0.15


# --- streams ---------------------------------------------------------------------------------------------------------


def cut(data, width):
    """Yield blocks of samples in the form they were given in."""
    if isinstance(data, dict):
        n = len(next(iter(data.values())))
        yield from ({name: X[lo : lo + width] for name, X in data.items()} for lo in range(0, n, width))
    elif isinstance(data, list):
        yield from ([X[lo : lo + width] for X in data] for lo in range(0, len(data[0]), width))
    else:
        yield from (data[lo : lo + width] for lo in range(0, len(data), width))


def methods(model):
    """Return the names of the methods that read samples."""
    names = ["predict", "transform", "kernel_row_sums"]
    names += ["transform_views"] if hasattr(model, "transform_views") else []
    return names + (["predict_views"] if hasattr(model, "view_codebooks_") else [])


STREAMED = {
    "one view": (ksc, VIEWS[0]),
    "list of views": (mvksc, VIEWS),
    "dict of views": (lambda: mvksc(X=NAMED), NAMED),
    "view by view": (lambda: mvksc(X=NAMED, assignment="per_view"), NAMED),
    "one table": (
        lambda: mvksc(X=np.hstack(VIEWS), views=[slice(0, 3), slice(3, 6), slice(6, 9)]),
        np.hstack(VIEWS),
    ),
}
streamed = pytest.mark.parametrize("form", STREAMED)


@streamed
@pytest.mark.parametrize("width", [1, 5, N])
def test_blocks_of_a_generator_give_what_the_whole_gives(form, width):
    make, data = STREAMED[form]
    model = make()
    for method in methods(model):
        whole = getattr(model, method)(data)
        result = getattr(model, method)(cut(data, width))
        assert result.shape == whole.shape
        np.testing.assert_allclose(result, whole, atol=1e-10)


@streamed
@pytest.mark.parametrize("chunk", [1, 7, N - 1])
def test_long_arrays_are_read_a_chunk_at_a_time(form, chunk, monkeypatch):
    make, data = STREAMED[form]
    model, lengths = make(), []
    whole = {method: getattr(model, method)(data) for method in methods(model)}

    def watched(X):
        for block in streaming_chunks(X):
            parts = block.values() if isinstance(block, dict) else block if isinstance(block, list) else [block]
            lengths.append({len(part) for part in parts})
            yield block

    streaming_chunks = streaming.chunks
    monkeypatch.setattr(streaming, "CHUNK", chunk)
    monkeypatch.setattr(streaming, "chunks", watched)
    for method in methods(model):
        lengths.clear()
        np.testing.assert_allclose(getattr(model, method)(data), whole[method], atol=1e-10)
        assert lengths == [{min(chunk, N - lo)} for lo in range(0, N, chunk)]


@streamed
def test_arrays_mapped_from_disk_are_read_like_others(form, tmp_path, monkeypatch):
    make, data = STREAMED[form]
    model = make()
    whole = {method: getattr(model, method)(data) for method in methods(model)}

    def mapped(X, name):
        np.save(tmp_path / f"{name}.npy", X)
        return np.load(tmp_path / f"{name}.npy", mmap_mode="r")

    if isinstance(data, dict):
        disk = {name: mapped(X, name) for name, X in data.items()}
    elif isinstance(data, list):
        disk = [mapped(X, str(v)) for v, X in enumerate(data)]
    else:
        disk = mapped(data, "X")
    monkeypatch.setattr(streaming, "CHUNK", 10)
    for method in methods(model):
        np.testing.assert_allclose(getattr(model, method)(disk), whole[method], atol=1e-10)
    again = clone(model).fit(disk)
    np.testing.assert_array_equal(again.labels_, model.labels_)


@both
def test_frames_and_sparse_matrices_are_cut_like_arrays(cls, monkeypatch):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    model = cls(3, **RBF).fit(data)
    monkeypatch.setattr(streaming, "CHUNK", 10)
    np.testing.assert_array_equal(model.predict(given_as(cls, *map(sp.csr_matrix, VIEWS[:2]))), model.labels_)
    frames = [pd.DataFrame(X, columns=list("abc")) for X in VIEWS[:2]]
    named = cls(3, **RBF).fit(given_as(cls, *frames))
    np.testing.assert_array_equal(named.predict(given_as(cls, *frames)), model.labels_)


@both
def test_a_part_is_trained_on_and_the_rest_is_labelled_in_chunks(cls, monkeypatch):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    whole = cls(3, n_train_samples=20, random_state=0, **RBF).fit(data)
    monkeypatch.setattr(streaming, "CHUNK", 4)
    chunked = cls(3, n_train_samples=20, random_state=0, **RBF).fit(data)
    np.testing.assert_array_equal(chunked.labels_, whole.labels_)


@both
def test_a_stream_needs_memory_for_a_block_only(cls):
    m, d, width, n_blocks = 100, 40, 400, 80
    rng = np.random.default_rng(0)
    training = [rng.standard_normal((m, d)) + 4 * (np.arange(m) % 2)[:, None] for _ in range(2)]
    model = cls(2).fit(given_as(cls, *training))

    def stream():
        for block in range(n_blocks):
            rng = np.random.default_rng(block)
            yield given_as(cls, rng.standard_normal((width, d)), rng.standard_normal((width, d)))

    model.predict(given_as(cls, *training))  # whatever is loaded on first use
    tracemalloc.start()
    try:
        labels = model.predict(stream())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert labels.shape == (width * n_blocks,)
    # A few arrays of the size of a block's kernel rows or of the block itself, and the labels in parts and joined.
    rows, block = width * m * 8, width * d * 8
    assert peak < 4 * rows + 6 * block + 2 * labels.nbytes
    # All blocks together, or all kernel rows, are several times as much.
    assert 4 * rows + 6 * block + 2 * labels.nbytes < n_blocks * min(rows, block) / 3


# --- samples that are like none --------------------------------------------------------------------------------------


def with_an_empty_row(X, i=4):
    K = rbf(X)
    K[i, :] = K[:, i] = 0.0
    return K


def test_a_training_sample_that_is_like_none_takes_no_part_and_gets_a_label():
    K = with_an_empty_row(VIEWS[0])
    model = KernelSpectralClustering(3, kernel="precomputed").fit(K)
    values, _, _, scores = oracle.ksc(K, 3)
    np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-8)
    np.testing.assert_allclose(model.scores_, scores * oracle.factors(scores, model.scores_), atol=1e-7)
    np.testing.assert_array_equal(model.labels_, oracle.labelled(scores, 3))
    assert model.degrees_[4] == 0.0
    assert (model.degrees_[5:] > 0).all()
    np.testing.assert_array_equal(model.predict(K), model.labels_)


def test_a_training_sample_that_is_like_none_in_one_view_gets_a_label():
    kernels = [with_an_empty_row(VIEWS[0]), rbf(VIEWS[1])]
    values, _, scores = oracle.mvksc(kernels, [1.0, 1.0], 3)
    model = mvksc(3, kernels, kernel="precomputed", kernel_params=None)
    np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-7)
    np.testing.assert_array_equal(model.labels_, oracle.labelled(oracle.joint(scores), 3))
    assert model.degrees_[0, 4] == 0.0
    assert model.degrees_[1, 4] > 0.0


@both
def test_a_new_sample_that_is_like_none_gets_a_label(cls):
    data = given_as(cls, VIEWS[0], VIEWS[1])
    model = cls(3, **RBF).fit(data)
    far = given_as(cls, np.full((2, 3), 1e4), np.full((2, 3), -1e4))
    assert set(model.predict(far)) <= {0, 1, 2}
    assert np.isfinite(model.transform(far)).all()
    np.testing.assert_array_equal(model.kernel_row_sums(far), np.zeros_like(model.kernel_row_sums(far)))
    if cls is KernelSpectralClustering:
        np.testing.assert_allclose(model.transform(far), [model.bias_] * 2)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_gamma_at_and_above_its_limit_is_refused_and_just_below_it_works():
    limits = mvksc(X=NAMED).gamma_limits_
    for v, name in enumerate(NAMES):
        gamma = dict.fromkeys(NAMES, 1.0)
        for factor in (1.0, 1.0001, 50.0):
            value = factor * limits[v]
            with pytest.raises(
                ParameterError, match=rf"gamma={value:g} of view '{name}' is at or above its limit of {limits[v]:.6g}"
            ):
                mvksc(X=NAMED, gamma=gamma | {name: value})
        model = mvksc(X=NAMED, gamma=gamma | {name: 0.999 * limits[v]}, assignment="per_view")
        assert np.isfinite(model.scores_).all()
        values, _, _ = oracle.mvksc([rbf(X) for X in VIEWS], [*(gamma | {name: 0.999 * limits[v]}).values()], 3)
        np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-5)


@pytest.mark.parametrize(
    ("gamma", "kind", "message"),
    [
        (-1.0, ValueError, "'gamma' parameter"),
        (float("nan"), ValueError, "'gamma' parameter"),
        (float("inf"), ValueError, "'gamma' parameter"),
        ("wide", ValueError, "'gamma' parameter"),
        (None, ValueError, "'gamma' parameter"),
        ([1.0, -0.5, 1.0], ParameterError, r"gamma=\[1.0, -0.5, 1.0\] must hold finite numbers that are not negative"),
        ([1.0, float("nan"), 1.0], ParameterError, "must hold finite numbers"),
        ([1.0, float("inf"), 1.0], ParameterError, "must hold finite numbers"),
        ([1.0, "wide", 1.0], ParameterError, "must hold numbers, one for all views or one per view"),
        ([1.0, None, 1.0], ParameterError, "must hold numbers"),
        ([1.0, [2.0], 1.0], ParameterError, "must hold numbers"),
        ([1.0, 1.0], ViewError, "gamma has 2 entries for 3 views"),
        ([], ViewError, "gamma has 0 entries for 3 views"),
        ({"front": 1.0, "back": 1.0}, ViewError, r"gamma names views \['back', 'front'\]"),
        ({"up": 1.0, "down": 1.0}, ParameterError, "must hold numbers"),
    ],
    ids=str,
)
def test_gamma_that_cannot_be_used_is_named(gamma, kind, message):
    with pytest.raises(kind, match=message):
        mvksc(X=NAMED, gamma=gamma)


@pytest.mark.parametrize(
    ("weights", "kind", "message"),
    [
        ("balanced", ValueError, "'view_weights' parameter"),
        ([1.0, 1.0], ViewError, "view_weights has 2 entries for 3 views"),
        ([1.0, -1.0, 1.0], ViewError, "must be finite, not negative and not all zero"),
        ([0.0, 0.0, 0.0], ViewError, "must be finite, not negative and not all zero"),
        ({"front": 1.0}, ViewError, r"view_weights names views \['front'\]"),
        (["a", "b", "c"], ViewError, "must hold one number per view"),
    ],
    ids=str,
)
def test_view_weights_that_cannot_be_used_are_named(weights, kind, message):
    with pytest.raises(kind, match=message):
        mvksc(X=NAMED, view_weights=weights)


@both
def test_more_clusters_than_sign_patterns_are_refused(cls):
    X = np.repeat([[0.0], [5.0]], 6, axis=0)
    with pytest.raises(ParameterError, match=r"n_clusters=3, but the scores show only 2 distinct sign pattern"):
        cls(3, **RBF).fit(given_as(cls, X))
    assert same_partition(cls(2, **RBF).fit(given_as(cls, X)).labels_, np.repeat([0, 1], 6))


def test_view_by_view_the_view_without_enough_sign_patterns_is_named():
    rng = np.random.default_rng(0)
    views = {"fine": rng.standard_normal((30, 2)), "coarse": rng.integers(3, size=(30, 1)).astype(float)}
    with pytest.raises(ParameterError, match=r"the scores of view 'coarse' show only 3 distinct sign pattern"):
        mvksc(4, views, assignment="per_view")


@both
def test_more_clusters_than_samples_are_refused(cls):
    with pytest.raises(ParameterError, match=r"n_samples=5 should be >= n_clusters=6"):
        cls(6, **RBF).fit(given_as(cls, VIEWS[0][:5]))


@both
def test_fewer_training_samples_than_clusters_are_refused(cls):
    with pytest.raises(ParameterError, match=r"n_train_samples=2 is fewer than n_clusters=3"):
        cls(3, n_train_samples=2).fit(given_as(cls, VIEWS[0]))


@pytest.mark.parametrize(
    "options",
    [{"n_train_samples": 0}, {"n_train_samples": 2.5}, {"selection": "first"}, {"n_clusters": 0}, {"memory_limit": 0}],
    ids=str,
)
@both
def test_parameters_out_of_range_are_named(cls, options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter"):
        cls(**({"n_clusters": 3} | options)).fit(given_as(cls, VIEWS[0]))


def test_kernels_beyond_the_memory_limit_are_refused_beforehand():
    X = np.random.default_rng(0).standard_normal((600, 2))
    with pytest.raises(
        ParameterError, match=r"2 kernels and .* of 600 samples take 27\.5 MiB, more than memory_limit=4\."
    ):
        mvksc(2, [X, X], memory_limit=4)
    assert mvksc(2, [X, X], memory_limit=4, n_train_samples=220, random_state=0).labels_.shape == (600,)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda v: {"front": v["front"], "back": v["back"]}, ViewError, r"fitted on views .* but X has"),
        (lambda v: v | {"more": v["front"]}, ViewError, r"fitted on views .* but X has"),
        (lambda v: list(v.values()), ViewError, r"fitted on views .* but X has \['view_0'"),
        (lambda v: v | {"back": v["back"][:, :2]}, ViewError, "View 'back' has 2 features, but .* fitted on 3"),
        (lambda v: v | {"back": v["back"][:5]}, ViewError, "Views disagree on the number of samples.*'back' has 5"),
        (lambda v: v | {"back": np.full_like(v["back"], np.nan)}, ViewError, "View 'back'.*NaN"),
        (lambda v: np.hstack(list(v.values()))[:, :4], ValueError, "X has 4 features, .* expecting 9"),
    ],
    ids=["missing", "one more", "without names", "width", "length", "not a number", "table"],
)
@pytest.mark.parametrize("method", ["predict", "transform", "transform_views", "kernel_row_sums"])
def test_new_samples_must_have_the_views_of_training(change, kind, message, method):
    model = mvksc(X=NAMED)
    with pytest.raises(kind, match=message):
        getattr(model, method)(change(NEW_NAMED))
    with pytest.raises(kind, match=message):
        getattr(model, method)(iter([NEW_NAMED, change(NEW_NAMED)]))


def test_new_views_by_name_may_come_in_any_order():
    model = mvksc(X=NAMED)
    reordered = {name: NEW_NAMED[name] for name in NAMES[::-1]}
    np.testing.assert_array_equal(model.predict(reordered), model.predict(NEW_NAMED))
    np.testing.assert_array_equal(model.transform_views(reordered), model.transform_views(NEW_NAMED))


def test_new_samples_of_one_view_must_have_its_width():
    with pytest.raises(ValueError, match="X has 2 features, but KernelSpectralClustering is expecting 3"):
        ksc().predict(NEW[0][:, :2])
    with pytest.raises(ValueError, match=f"X has 5 features, but KernelSpectralClustering is expecting {N}"):
        KernelSpectralClustering(2, kernel="precomputed", n_train_samples=9).fit(rbf(VIEWS[0])).predict(np.ones((2, 5)))


def test_negative_degrees_are_refused_by_sample_and_view():
    X = np.vstack([np.full((6, 2), 3.0), [[-1.0, -1.0]], np.full((3, 2), 2.0)])
    with pytest.raises(KernelError, match=r"Sample 6 has a degree \(sum of similarities\) of -"):
        KernelSpectralClustering(2, kernel="linear").fit(X)
    with pytest.raises(KernelError, match=r"Sample 6 of view 'odd' has a degree"):
        mvksc(2, {"fine": np.abs(X), "odd": X}, kernel="linear", kernel_params=None)


def test_kernels_without_any_similarity_are_refused():
    with pytest.raises(ParameterError, match=r"The similarities of every sample add up to zero"):
        KernelSpectralClustering(2, kernel="precomputed").fit(np.zeros((5, 5)))
    with pytest.raises(ParameterError, match=r"The similarities of every sample of view 'none' add up to zero"):
        mvksc(2, {"fine": rbf(VIEWS[0]), "none": np.zeros((N, N))}, kernel="precomputed", kernel_params=None)


@both
def test_a_kernel_matrix_must_be_square_and_symmetric(cls):
    for K in (np.ones((6, 5)), np.triu(np.ones((6, 6)))):
        for n_train in (None, 4):
            with pytest.raises(ValueError, match=r"square|symmetric"):
                cls(2, kernel="precomputed", n_train_samples=n_train, random_state=0).fit(given_as(cls, K))


# --- faults that were found and mended -------------------------------------------------------------------------------


def symmetric_lines():
    """Yield samples on a line, the same on both sides of zero: the score of those in the middle is zero."""
    for n in (3, 5, 7, 11, 21):
        for copies in (1, 2, 3, 7):
            yield np.repeat(np.linspace(-3.0, 3.0, n)[:, None], copies, axis=0)


# A score that is zero but for rounding must not get its sign from rounding, which another order of summation turns
# round (the kernel is computed anew in predict).
@both
def test_training_samples_whose_score_is_zero_are_placed_where_they_were(cls):
    for X in symmetric_lines():
        for sigma in (0.7, 1.0, 2.0, 3.0):
            data = given_as(cls, X, X**3)
            model = cls(2, kernel_params={"sigma": sigma}).fit(data)
            np.testing.assert_array_equal(model.predict(data), model.labels_)


# The last of the samples at zero may be summed by another branch of BLAS and get the other sign.
def test_equal_samples_whose_score_is_zero_share_their_cluster():
    for n_zero in range(1, 40, 2):
        X = np.concatenate([np.repeat([[-0.5], [0.5]], 15, axis=0), np.zeros((n_zero, 1))])
        for sigma in (0.5, 1.0, 2.0, 4.0):
            model = KernelSpectralClustering(2, kernel_params={"sigma": sigma}).fit(X)
            assert len(set(model.labels_[30:])) == 1


# What centring leaves of a flat kernel is rounding, for some numbers of samples nothing at all.
@pytest.mark.parametrize("n", [38, 44, 64, 98])
def test_a_view_in_which_all_samples_are_alike_is_refused_by_name(n):
    X = blobs(50)[0][:n]
    with pytest.raises(ParameterError, match="All samples look the same in view 'flat'"):
        mvksc(3, {"good": X, "flat": np.full((n, 2), 3.7)})


@both
@pytest.mark.parametrize("method", ["predict", "transform", "kernel_row_sums"])
def test_an_empty_stream_is_refused_with_a_sentence(cls, method):
    model = cls(3, **RBF).fit(given_as(cls, VIEWS[0]))
    with pytest.raises(ValueError, match=r"iterator|no blocks|no samples|0 sample"):
        getattr(model, method)(iter([]))


def test_the_memory_that_is_needed_is_never_said_to_be_nothing():
    with pytest.raises(ParameterError, match=r"3 kernels and .* of 33 samples take (?!0 MiB)"):
        mvksc(memory_limit=0.01)


def test_gamma_written_as_text_is_refused():
    with pytest.raises(ParameterError, match="must hold numbers"):
        mvksc(gamma=["1.0", 1.0, 1.0])


def test_views_that_err_alike_share_the_weight():
    np.testing.assert_allclose(committee_weights(np.ones((3, 5))), 1 / 3, atol=1e-9)
    np.testing.assert_allclose(committee_weights(np.zeros((2, 5))), 1 / 2, atol=1e-9)
    twice = mvksc(X=[VIEWS[0], VIEWS[0]], view_weights="silhouette")
    np.testing.assert_allclose(twice.view_weights_, 1 / 2, atol=1e-6)
