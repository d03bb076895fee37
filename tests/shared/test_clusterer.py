"""What all estimators have in common."""

import numpy as np
import pytest

from kernelweave import ConvexMixture, CoTrainedSpectralClustering, GraphCut, KernelKMeans

X = np.array([[0.0], [1.0], [8.0], [9.0], [100.0]])


@pytest.mark.parametrize(
    ("estimator", "sense"),
    [
        (KernelKMeans(), "minimize"),
        (ConvexMixture(), "maximize"),
        (CoTrainedSpectralClustering(), "maximize"),
        (GraphCut(objective="ratio_cut"), "minimize"),
        (GraphCut(objective="ratio_association"), "maximize"),
    ],
)
def test_tags_name_the_sense_of_the_objective(estimator, sense):
    assert estimator.__sklearn_tags__().objective == sense


def test_fit_predict_hands_weights_on():
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    options = {"kernel": "linear", "init": np.array([0, 0, 1, 1, 1]), "n_init": 1}
    model = KernelKMeans(2, **options).fit(X, sample_weight=weights)
    labels = KernelKMeans(2, **options).fit_predict(X, sample_weight=weights)
    np.testing.assert_array_equal(labels, model.labels_)
    assert labels.tolist() == [0, 0, 1, 1, 1]
    assert KernelKMeans(2, **options).fit_predict(X).tolist() != labels.tolist()
