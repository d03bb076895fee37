"""Graph partitioning objectives of a labelling of the nodes.

Notation    links(S, T) = sum of A_ij over i in S and j in T; degree(S) = links(S, V)
Input       a symmetric affinity matrix without negative entries, dense or sparse, and labels
Cost        O(nnz + n) for a sparse matrix, which stays sparse; O(n^2 k) for a dense one
Source      G. Tzortzis, MSc thesis, *Efficient Kernel-based Clustering*, 2008, section 4.3

Every edge inside a cluster counts from both its ends and a self-loop once, as the double sum has it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelweave.evaluation.metrics.checks import divide_or_zero, encode_labels
from kernelweave.evaluation.metrics.matrices import as_affinity


def normalized_cut(A: Any, labels: ArrayLike) -> float:
    r"""Weight of the edges that leave each cluster, relative to the degree of the cluster.

    .. math:: \mathrm{NC} = \sum_c \frac{\mathrm{links}(V_c, V \setminus V_c)}{\mathrm{degree}(V_c)}

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Affinities, symmetric and not negative.
    labels : array-like of shape (n_nodes,)
        The clusters, integers or strings.

    Returns
    -------
    float
        In [0, n_clusters]; 0 when no edge is cut, lower is better. A cluster of degree 0 (nodes
        without edges) cuts nothing and contributes 0.

    References
    ----------
    G. Tzortzis, MSc thesis, *Efficient Kernel-based Clustering*, 2008, (4.13).

    Examples
    --------
    A path of four nodes cut in the middle: each half has degree 3 and loses one edge.

    >>> import numpy as np
    >>> from kernelweave.metrics import normalized_cut
    >>> A = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> round(normalized_cut(A, [0, 0, 1, 1]), 4)
    0.6667
    """
    within, between, _ = _links_and_sizes(A, labels)
    return float(divide_or_zero(between, within + between).sum())


def ratio_cut(A: Any, labels: ArrayLike) -> float:
    r"""Weight of the edges that leave each cluster, relative to its number of nodes.

    .. math:: \mathrm{RC} = \sum_c \frac{\mathrm{links}(V_c, V \setminus V_c)}{|V_c|}

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Affinities, symmetric and not negative.
    labels : array-like of shape (n_nodes,)
        The clusters, integers or strings.

    Returns
    -------
    float
        In [0, inf); 0 when no edge is cut, lower is better.

    References
    ----------
    P. K. Chan, M. Schlag and J. Zien, *Spectral k-way ratio-cut partitioning and clustering*, IEEE
    Transactions on Computer-Aided Design 13, 1994; named in the MSc thesis, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.metrics import ratio_cut
    >>> A = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> ratio_cut(A, [0, 0, 1, 1])
    1.0
    """
    _, between, sizes = _links_and_sizes(A, labels)
    return float((between / sizes).sum())


def ratio_association(A: Any, labels: ArrayLike) -> float:
    r"""Weight of the edges inside each cluster, relative to its number of nodes.

    .. math:: \mathrm{RA} = \sum_c \frac{\mathrm{links}(V_c, V_c)}{|V_c|}

    Kernel k-means with the affinities as kernel maximises it: E_sum = trace(A) - RA.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Affinities, symmetric and not negative.
    labels : array-like of shape (n_nodes,)
        The clusters, integers or strings.

    Returns
    -------
    float
        In [0, inf); higher is better.

    References
    ----------
    G. Tzortzis, MSc thesis, *Efficient Kernel-based Clustering*, 2008, (4.12).

    Examples
    --------
    A path of four nodes cut in the middle: each half holds one edge, counted from both ends.

    >>> import numpy as np
    >>> from kernelweave.metrics import ratio_association
    >>> A = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> ratio_association(A, [0, 0, 1, 1])
    2.0
    """
    within, _, sizes = _links_and_sizes(A, labels)
    return float((within / sizes).sum())


def _links_and_sizes(A: Any, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes, k = encode_labels(labels)
    within, between = as_affinity(A, codes).cluster_links(codes, k)
    return within, between, np.bincount(codes)
