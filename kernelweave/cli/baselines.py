"""Methods of scikit-learn that ``compare`` runs in addition to those of this library, and what it reports of a fit."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering


class PlainKMeans(KMeans):
    """scikit-learn's k-means: samples are drawn to the nearest of k means."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "PlainKMeans":
        """Fit, and note how the fit ended."""
        super().fit(X, y, sample_weight)
        self.objective_ = float(self.inertia_)
        self.converged_ = self.n_iter_ < self.max_iter
        return self


class PlainSpectral(SpectralClustering):
    """scikit-learn's spectral clustering: k-means on eigenvectors of a graph of neighbours."""

    def fit(self, X: Any, y: Any = None) -> "PlainSpectral":
        """Fit; there is no objective to report, and one step."""
        super().fit(_with_small_indices(X) if sp.issparse(X) else X, y)
        self.objective_ = float("nan")
        self.n_iter_ = 1
        self.converged_ = True
        return self


def _with_small_indices(X: Any) -> Any:
    """Return a sparse matrix with indices of 32 bits, the only ones that scikit-learn takes here."""
    rows = sp.csr_array(X)
    if rows.nnz > np.iinfo(np.int32).max:
        return rows
    parts = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
    return sp.csr_array(parts, shape=rows.shape)


def side_by_side(X: Any) -> Any:
    """Return the columns of all views side by side; one table stays as it is."""
    if not isinstance(X, dict):
        return X
    blocks = list(X.values())
    return sp.hstack(blocks, format="csr") if any(map(sp.issparse, blocks)) else np.hstack(blocks)
