"""Pipelines whose first steps are plain transformers of scikit-learn: saved, read, and the same answers."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kernelweave import KernelKMeans, load_model, save_model
from kernelweave.foundation.errors import DataError, ParameterError

N = 40


@pytest.fixture(scope="module")
def data():
    """Tables with holes, complete ones, columns of several kinds, and texts."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N, 2)) + np.repeat([[0.0, 0.0], [5.0, 5.0]], N // 2, axis=0)
    holes = numbers.copy()
    holes[3, 0] = np.nan
    mixed = pd.DataFrame({"a": holes[:, 0], "b": holes[:, 1]})
    mixed["colour"] = rng.choice(["red", "green"], N)
    mixed["grade"] = np.array([1, 2.5, None, True])[np.arange(N) % 4]
    texts = ["red green", "blue red", "green", "blue blue"] * (N // 4)
    return {"holes": holes, "numbers": numbers, "positive": np.abs(numbers), "mixed": mixed, "texts": texts}


def columns(*parts, **options):
    return [ColumnTransformer([(f"part_{i}", *part) for i, part in enumerate(parts)], **options)]


FILLED = make_pipeline(SimpleImputer(), StandardScaler())
STEPS = {
    "filled": ("holes", [SimpleImputer(), StandardScaler()]),
    "filled, marked": ("holes", [SimpleImputer(strategy="most_frequent", add_indicator=True)]),
    "filled by neighbours": ("holes", [KNNImputer()]),
    "columns": ("mixed", columns((FILLED, ["a", "b"]), (OneHotEncoder(handle_unknown="ignore"), ["colour"]))),
    "categories of all kinds": ("mixed", columns((OneHotEncoder(sparse_output=False), ["grade"]))),
    "rest passed through": ("numbers", columns((RobustScaler(), [0]), remainder="passthrough")),
    "columns by type": ("mixed", columns((FILLED, make_column_selector(dtype_include=float)))),
    "codes": ("mixed", columns((OrdinalEncoder(), ["colour"]))),
    "union": ("numbers", [FeatureUnion([("few", PCA(1)), ("all", RobustScaler())])]),
    "powers": ("numbers", [PowerTransformer(), PolynomialFeatures(), VarianceThreshold()]),
    "quantiles": ("numbers", [QuantileTransformer(n_quantiles=10)]),
    "bins": ("numbers", [KBinsDiscretizer(3, strategy="uniform")]),
    "logarithms": ("positive", [FunctionTransformer(np.log1p)]),
    "nothing, then two values": ("numbers", [FunctionTransformer(), Binarizer()]),
    "words": ("texts", [TfidfVectorizer(dtype=np.float32)]),
    "counts": ("texts", [CountVectorizer(), TfidfTransformer(), TruncatedSVD(2, random_state=0)]),
    "hashed words": ("texts", [HashingVectorizer(n_features=32)]),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_pipeline_answers_as_before_it_was_saved(name, data, tmp_path):
    kind, steps = STEPS[name]
    X = data[kind]
    pipe = make_pipeline(*steps, KernelKMeans(2, kernel="linear", random_state=0)).fit(X)
    again = load_model(save_model(pipe, tmp_path / "model.kwm"))
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))
    np.testing.assert_array_equal(again.transform(X), pipe.transform(X))
    kinds = {name: value for name, value in pipe.get_params().items() if isinstance(value, type)}
    assert {name: again.get_params()[name] for name in kinds} == kinds
    assert all(isinstance(again.get_params()[name], type) for name in kinds)


@pytest.mark.parametrize(
    ("step", "match"),
    [
        (FunctionTransformer(lambda X: X), "Python function '<lambda>'"),
        (
            FunctionTransformer(np.linalg.norm, kw_args={"axis": 1, "keepdims": True}),
            "_ArrayFunctionDispatcher, which cannot be saved",
        ),
    ],
)
def test_functions_are_not_saved(step, match, data, tmp_path):
    pipe = make_pipeline(step, KernelKMeans(2, kernel="linear", random_state=0)).fit(data["positive"])
    with pytest.raises(ParameterError, match=match):
        save_model(pipe, tmp_path / "model.kwm")
    assert not (tmp_path / "model.kwm").exists()


def altered(path, change):
    """Rewrite the description of a saved model, without the sums that would notice."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if name.endswith("model.json"))
    members[name] = change(members[name].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            if "SUMS" not in member:
                archive.writestr(member, content)


@pytest.mark.parametrize(
    ("new", "how"),
    [
        ('{"$ufunc": "save"}', "'save' is not a NumPy function"),
        ('{"$ufunc": 3}', "3 is not a NumPy function"),
        ('{"$type": "eval"}', "'eval' is not a plain type"),
        ('{"$kind": ["V8", true]}', "'V8' is not a kind of number"),
        ('{"$categories": [[1]]}', "categories are something else"),
        ('{"$arrays": [1]}', "a list of arrays holds something else"),
    ],
)
def test_altered_files_are_refused(new, how, data, tmp_path):
    pipe = make_pipeline(FunctionTransformer(np.log1p), KernelKMeans(2, random_state=0)).fit(data["positive"])
    path = save_model(pipe, tmp_path / "model.kwm")
    altered(path, lambda text: text.replace('{"$ufunc": "log1p"}', new))
    with pytest.raises(DataError, match=f"the saved model is damaged: {how}"):
        load_model(path)


def test_transformers_of_another_version_are_warned_of(data, tmp_path):
    pipe = make_pipeline(SimpleImputer(), KernelKMeans(2, random_state=0)).fit(data["holes"])
    path = save_model(pipe, tmp_path / "model.kwm")

    def older(text):
        tree = json.loads(text)
        tree["scikit-learn"] = "1.4.2"
        return json.dumps(tree)

    altered(path, older)
    with pytest.warns(UserWarning, match=r"SimpleImputer was saved with scikit-learn 1\.4\.2"):
        load_model(path)
