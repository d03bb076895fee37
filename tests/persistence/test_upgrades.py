"""What upgrades make of files of version 1: parameters and attributes that mean today what they meant then."""

import json
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import get_args, get_type_hints

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave import load_model
from kernelweave.persistence import fields, names, sizes, steps
from tests.estimators.discovery import for_estimators
from tests.persistence.stored_models import FOLDER, FORMS, NEW, X, estimator_of
from tests.persistence.test_saved_models import packed, rewritten, unpacked

pytestmark = [
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero"),
    pytest.mark.filterwarnings("ignore:Every start left a cluster without variance"),
    pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning"),
]

FILES = sorted(FOLDER.glob("v1-*.kwm"))
for_files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def form_of(path):
    return json.loads(path.with_suffix(".json").read_text())["form"]


def stored(name):
    return load_model(FOLDER / f"v1-{name}.kwm")


# Parameters


@for_files
def test_models_can_be_fitted_again_with_their_parameters(path):
    model = load_model(path)
    again = clone(model).fit(FORMS[form_of(path)](X))
    assert estimator_of(again).labels_.shape == estimator_of(model).labels_.shape


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("ConvexMixture", {"normalizer": None, "random_state": None}),
        ("GlobalKernelKMeans", {"random_state": None}),
        ("MultiViewConvexMixture-views", {"view_weights": "learned", "init_view_weights": None, "weighted": None}),
        ("MultiViewConvexMixture-equal", {"view_weights": "uniform", "init_view_weights": None, "weighted": None}),
        ("MultiViewConvexMixture-started", {"view_weights": "learned", "init_view_weights": [0.3, 0.7]}),
        ("MultiViewKernelKMeans-views", {"view_weights": "learned", "init_view_weights": None}),
        ("MultiViewKernelKMeans-fixed", {"view_weights": [0.3, 0.7], "init_view_weights": None}),
        (
            "MultiViewKernelKMeans-started",
            {"view_weights": "learned", "init_view_weights": {"front": 0.3, "back": 0.7}},
        ),
        ("MultiViewKernelSpectralClustering-views", {"view_weights": "uniform"}),
        ("MultiViewKernelSpectralClustering-weighted", {"view_weights": "silhouette"}),
        ("MultiViewSpectralClustering-views", {"view_weights": "learned", "init_view_weights": None}),
        ("RatioMultipleKernelClustering", {"regularization": 1e-8, "n_pairs": None}),
        ("RatioMultipleKernelClustering-widths", {"regularization": 1e-6, "n_pairs": 4}),
    ],
)
def test_parameters_say_what_they_said(name, params):
    model = stored(name)
    assert {key: model.get_params()[key] for key in params} == params


# Attributes


@for_files
def test_distances_and_scores_have_names(path):
    model = load_model(path)
    if hasattr(model, "transform") and form_of(path) != "similarities":
        columns = model.transform(FORMS[form_of(path)](NEW)).shape[1]
        assert len(model.get_feature_names_out()) == columns


@pytest.mark.parametrize("name", ["MultiViewConvexMixture-normalized", "MultiViewConvexMixture-views", "ConvexMixture"])
def test_objectives_of_mixtures_are_scores_of_the_training_samples(name):
    model = stored(name)
    form = form_of(FOLDER / f"v1-{name}.kwm")
    assert model.score(FORMS[form](X)) == pytest.approx(model.objective_, rel=1e-9)
    assert model.log_likelihood_ == model.objective_ == model.objective_path_[-1]


def test_coefficients_of_kernels_add_up_to_1():
    model = stored("OptimizedKernelKMeans-views")
    np.testing.assert_allclose(model.kernel_coefficients_, model.view_weights_, rtol=1e-12)
    assert model.kernel_coefficients_.sum() == pytest.approx(1.0)


def test_medoids_have_both_names():
    model = stored("KMedoids")
    assert model.medoid_indices_ is model.exemplar_indices_
    np.testing.assert_array_equal(X[model.exemplar_indices_], model.cluster_centers_)


def test_what_nobody_can_know_is_left_out():
    assert not hasattr(stored("MultiViewKMeans-views"), "view_scatters_")


def test_centres_of_an_earlier_fit_have_no_effect(tmp_path):
    """A mixture that was refined, then fitted again without, had kept what it no longer used."""
    path = packed(tmp_path / "again.kwm", unpacked(FOLDER / "v1-ConvexMixture-refined.kwm"))
    assert load_model(path)._centers is not None
    rewritten(path, lambda tree: tree["model"]["$object"][1].update(refine=None))
    model = load_model(path)
    assert model._centers is None
    assert model.predict_proba(NEW).shape == (12, 3)


@pytest.mark.parametrize("name", ["KernelSpectralClustering-precomputed", "MultiViewKernelSpectralClustering-columns"])
def test_rows_of_precomputed_kernels_are_taken_where_training_samples_stand(name):
    model = stored(name)
    for view in model._model.views:
        assert view.trained.columns.tolist() == model.train_indices_.tolist()
    for view in stored("MultiViewKernelSpectralClustering-precomputed")._model.views:
        assert view.trained.columns is None


def test_floors_of_views_are_those_of_their_scores():
    model = stored("MultiViewKernelSpectralClustering-per_view")
    for book, scores in zip(model._model.view_codebooks, model.scores_, strict=True):
        np.testing.assert_allclose(book.floor, 1e-10 * np.abs(scores).max(axis=0))


# Steps


def test_steps_move_keep_and_drop():
    old = {"_a": 1, "b_": 2, "c": 3}
    assert steps.without(old, "_a", "d") == {"b_": 2, "c": 3}
    assert steps.taken(old, "c", "_a") == [3, 1]
    with pytest.raises(ValueError, match="it has no '_d'"):
        steps.taken(old, "_a", "_d")
    composed = steps.composed(
        {"_patterns": np.ones((2, 1)), "floor_": np.zeros(1), "c": 3},
        "_model",
        "scores/Codebook",
        kept=("floor_",),
        patterns="_patterns",
        floor="floor_",
    )
    assert composed.keys() == {"floor_", "c", "_model"}
    assert composed["_model"].floor is composed["floor_"]


# Tables


@for_estimators()
def test_every_estimator_has_the_model_that_the_table_says(case):
    model = case.make().fit(case.form(X))
    kept = vars(model).get("_model")
    assert isinstance(kept, names.MODELS.get(case.cls, type(None)))


def test_sizes_are_about_fields_that_there_are():
    for name, entries in sizes.SIZES.items():
        if not name.startswith("estimator"):
            assert entries.keys() <= {field.name for field in fields_of(names.CLASSES[name])}
    assert sizes.LABELS.keys() | sizes.SUMMED_KERNELS.keys() | sizes.OBSERVED_KERNELS.keys() <= sizes.SIZES.keys()


def _names_an_array(hint):
    return any(hint == alias for alias, _ in fields.ARRAY_KINDS) or any(map(_names_an_array, get_args(hint)))


def test_arrays_of_models_have_sizes():
    """Those without are used by NumPy alone, which checks them."""
    without = {"kernel/KernelObject.X", "model/JointCenters.origins", "model/Split.theta", "model/ViewMixtures.origins"}
    without |= {"placement/FeaturePlacement.origin"}
    arrays = set()
    for name, cls in names.CLASSES.items():
        if name.split("/")[0] in ("extension", "kernel", "model", "placement", "scores") and is_dataclass(cls):
            known = sizes.SIZES.get(name, {})
            hints = {key: hint for key, hint in get_type_hints(cls).items() if key not in known}
            arrays |= {f"{name}.{key}" for key, hint in hints.items() if _names_an_array(hint)}
    assert arrays == without
