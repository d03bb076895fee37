import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import GraphCut, KernelKMeans, KMedoids, MultiViewKMeans
from kernelweave.model_selection import choose_n_clusters

X, Y = make_blobs(160, centers=[[0, 0], [7, 0], [0, 7], [7, 7]], random_state=1)
NOISE = np.random.default_rng(1).normal(size=(150, 5))


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        (KernelKMeans(random_state=0), X),
        (make_pipeline(StandardScaler(), KernelKMeans(random_state=0)), X),
        (KernelKMeans(kernel="precomputed", random_state=0), rbf_kernel(X, gamma=0.1)),
        (MultiViewKMeans(random_state=0), [X, X[:, ::-1] * 2]),
        (GraphCut(random_state=0), (rbf_kernel(X, gamma=0.5) > 0.2).astype(float)),
    ],
    ids=["table", "pipeline", "kernel", "views", "graph"],
)
def test_the_clearest_number_is_chosen_whatever_x_holds(estimator, data):
    chosen = choose_n_clusters(estimator, data, range(2, 9), criterion="clearness", random_state=0)
    assert chosen.n_clusters == 4
    assert chosen.confidence in ("high", "moderate")
    assert chosen.verdict.startswith("4 clusters, ")
    assert np.nanmax(chosen.scores) > 0
    final = chosen.best_estimator[-1] if hasattr(chosen.best_estimator, "steps") else chosen.best_estimator
    assert adjusted_rand_score(final.labels_, Y) > 0.9


def test_noise_is_one_cluster():
    chosen = choose_n_clusters(KernelKMeans(random_state=0), NOISE, criterion="clearness", random_state=0)
    assert chosen.n_clusters == 1
    assert chosen.confidence == "none"
    assert "No cl" in chosen.verdict


def test_distances_are_refused_with_a_remedy():
    model = KMedoids(metric="precomputed", random_state=0)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    with pytest.raises(ValueError, match=r"criterion='clearness' needs features.*X holds distances"):
        choose_n_clusters(model, D, criterion="clearness")
