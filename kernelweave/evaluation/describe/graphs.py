"""Where the nodes of a graph lie: its spectral embedding."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator
from sklearn.utils.extmath import randomized_svd

from kernelweave.evaluation.principal import leading, with_positive_peaks
from kernelweave.foundation.array_types import Floats


def graph_places(A: sp.csr_array, count: int) -> Floats:
    """Return ``count`` coordinates of the nodes: leading eigenvectors of the random walk after the constant one.

    A node without edges lies at the origin.
    """
    n = A.shape[0]
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(degrees)
    inverse = np.divide(1.0, roots, out=np.zeros(n), where=roots > 0)
    D = sp.dia_array((inverse[None], [0]), shape=(n, n))
    N = sp.csr_array(D @ A @ D)
    constant = roots / max(float(np.linalg.norm(roots)), np.finfo(float).tiny)
    known = min(count, n - 1)

    def product(v: Floats) -> Floats:
        v = v.reshape(n, -1)
        return np.asarray(N @ v - constant[:, None] * (constant @ v))

    operator = LinearOperator((n, n), matvec=lambda v: product(v).ravel(), matmat=product, dtype=np.float64)
    try:
        vectors = leading(operator, known, tol=1e-5, maxiter=3000)[1]
    except ArpackError:  # eigenvalues too close to each other: a good subspace will do
        vectors = randomized_svd(N + sp.eye_array(n), known + 1, n_iter=30, random_state=0)[0][:, 1:]
    places = np.zeros((n, count))
    places[:, :known] = with_positive_peaks(vectors) * inverse[:, None] * roots.mean()
    return places
