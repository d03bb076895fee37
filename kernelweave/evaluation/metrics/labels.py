"""Agreement of a partition with known classes.

Input       two labellings of the same n samples, integers or strings; only who shares a label counts
Notation    n_kh samples of class h in cluster k, n_k in cluster k, N in all
Cost        O(N log N) for sorting the labels, plus O(M C) for M clusters and C classes
"""

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.special import entr

from kernelweave.evaluation.metrics.checks import encode_pair
from kernelweave.foundation.errors import ParameterError
from kernelweave.solvers.shared.rand_index import rand_index


def normalized_mutual_info(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Mutual information of clusters and classes over the arithmetic mean of their entropies.

    .. math:: \mathrm{NMI} = \frac{2 \sum_{k,h} \frac{n_{kh}}{N}
              \log \frac{n_{kh} N}{n_k n_h}}{H_M + H_C}

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Classes, integers or strings.
    labels_pred : array-like of shape (n_samples,)
        Clusters, integers or strings.

    Returns
    -------
    float
        In [0, 1]; 1 for equal partitions (also when both have a single group), 0 for independent
        ones and when exactly one of the two has a single group. Symmetric in its arguments.

    See Also
    --------
    adjusted_rand_index : corrected for chance; better when partitions have many small clusters.

    References
    ----------
    G. Tzortzis, PhD thesis, *Clustering Using Similarity and Kernel Matrices*, 2014, (2.11).

    Examples
    --------
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> normalized_mutual_info(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    >>> round(normalized_mutual_info([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8
    """
    true, pred = encode_pair(labels_true, labels_pred)
    classes = np.bincount(true)
    clusters = np.bincount(pred)
    if len(classes) == 1 or len(clusters) == 1:  # a single group has no entropy
        return 1.0 if len(classes) == len(clusters) else 0.0
    shared = _mutual_information(true, pred, classes, clusters)
    return shared / ((_entropy(classes) + _entropy(clusters)) / 2.0) if shared > 0.0 else 0.0


def adjusted_rand_index(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Share of pairs of samples on which two partitions agree, corrected for chance.

    .. math:: \mathrm{ARI} = \frac{R - E[R]}{\max R - E[R]}, \qquad
              R = \sum_{k,h} \binom{n_{kh}}{2}

    with the expectation over labellings that keep the sizes of clusters and classes.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Classes, integers or strings.
    labels_pred : array-like of shape (n_samples,)
        Clusters, integers or strings.

    Returns
    -------
    float
        In [-0.5, 1]; 1 for equal partitions, 0 on average for random ones. Symmetric.

    References
    ----------
    L. Hubert and P. Arabie, *Comparing partitions*, Journal of Classification 2, 1985.

    Examples
    --------
    >>> from kernelweave.metrics import adjusted_rand_index
    >>> adjusted_rand_index([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return rand_index(*encode_pair(labels_true, labels_pred))


def average_entropy(labels_true: ArrayLike, labels_pred: ArrayLike, *, base: float | None = None) -> float:
    r"""Entropy of the classes inside a cluster, averaged over the clusters by their size.

    .. math:: H = \sum_k \frac{n_k}{N} \Bigl(- \sum_h \frac{n_{kh}}{n_k} \log \frac{n_{kh}}{n_k} \Bigr)

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Classes, integers or strings.
    labels_pred : array-like of shape (n_samples,)
        Clusters, integers or strings.
    base : float, default=None
        Base of the logarithm, above 1; None for the natural logarithm.

    Returns
    -------
    float
        In [0, log C]; 0 when every cluster holds a single class, so lower is better. More and smaller
        clusters can only lower it: compare partitions with the same number of clusters.

    Notes
    -----
    The formula is printed without a base. Tables 3.1 and 3.3 of the thesis fit the natural logarithm; table 3.7
    seems to be in bits (``base=2``): it has 0.517 for 2369 images of the Internet Advertisements set, whose 458
    advertisements would allow at most 0.491 with the natural logarithm.

    References
    ----------
    G. Tzortzis, PhD thesis, *Clustering Using Similarity and Kernel Matrices*, 2014, (3.19).

    Examples
    --------
    >>> from kernelweave.metrics import average_entropy
    >>> round(average_entropy([0, 1, 1, 1], [0, 0, 1, 1]), 4)  # half of log 2
    0.3466
    >>> average_entropy([0, 1, 1, 1], [0, 0, 1, 1], base=2)
    0.5
    """
    counts = _contingency(labels_true, labels_pred)
    sizes = counts.sum(axis=1)
    entropies = entr(counts / sizes[:, None]).sum(axis=1)
    return float(sizes @ entropies / sizes.sum() / _log_of_base(base))


def clustering_accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Share of samples classified correctly by the best one-to-one match of clusters with classes.

    .. math:: \mathrm{ACC} = \frac{1}{N} \max_\pi \sum_k n_{k, \pi(k)}

    The match is optimal (Hungarian method). With more clusters than classes, the samples of unmatched
    clusters count as wrong; with fewer, those of unmatched classes do.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Classes, integers or strings.
    labels_pred : array-like of shape (n_samples,)
        Clusters, integers or strings; their number may differ from that of the classes.

    Returns
    -------
    float
        In (0, 1]; 1 for equal partitions. Symmetric in its arguments.

    See Also
    --------
    misclassification_error : every cluster takes its majority class, several may take the same one.

    References
    ----------
    H. W. Kuhn, *The Hungarian method for the assignment problem*, Naval Research Logistics 2, 1955.

    Examples
    --------
    >>> from kernelweave.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [7, 7, 3, 7])
    0.75
    """
    counts = _contingency(labels_true, labels_pred)
    clusters, classes = linear_sum_assignment(counts, maximize=True)
    return float(counts[clusters, classes].sum() / counts.sum())


def misclassification_error(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Share of samples that are not of the majority class of their cluster.

    .. math:: \mathrm{ME} = 1 - \frac{1}{N} \sum_k \max_h n_{kh}

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Classes, integers or strings.
    labels_pred : array-like of shape (n_samples,)
        Clusters, integers or strings.

    Returns
    -------
    float
        In [0, 1 - 1/C]; 0 when every cluster holds a single class (also with one sample per cluster:
        compare partitions with the same number of clusters). Not symmetric.

    See Also
    --------
    clustering_accuracy : no class may be taken by two clusters.

    References
    ----------
    G. Tzortzis, MSc thesis, *Efficient Kernel-based Clustering*, 2008, section 5.2.

    Examples
    --------
    >>> from kernelweave.metrics import misclassification_error
    >>> misclassification_error(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.25
    """
    counts = _contingency(labels_true, labels_pred)
    return float((counts.sum() - counts.max(axis=1).sum()) / counts.sum())


def _contingency(labels_true: ArrayLike, labels_pred: ArrayLike) -> np.ndarray:
    """Return n_kh, shape (clusters, classes)."""
    true, pred = encode_pair(labels_true, labels_pred)
    shape = pred.max() + 1, true.max() + 1
    return np.bincount(np.ravel_multi_index((pred, true), shape), minlength=shape[0] * shape[1]).reshape(shape)


# Both are added up as scikit-learn does, whose checks of labels take ten times as long as the sums: scores are the same
# to the last bit.


def _mutual_information(true: np.ndarray, pred: np.ndarray, classes: np.ndarray, clusters: np.ndarray) -> float:
    """Return the mutual information of two labellings, whose groups have the sizes given."""
    pairs, both = np.unique(true * len(clusters) + pred, return_counts=True)
    shares = both / len(true)
    alone = classes[pairs // len(clusters)] * clusters[pairs % len(clusters)]
    by_chance = -np.log(alone) + math.log(len(true)) + math.log(len(true))
    terms = shares * (np.log(both) - math.log(len(true))) + shares * by_chance
    return max(float(np.where(np.abs(terms) < np.finfo(np.float64).eps, 0.0, terms).sum()), 0.0)


def _entropy(sizes: np.ndarray) -> float:
    """Return the entropy of groups of these sizes."""
    total = int(sizes.sum())
    return -float(((sizes / total) * (np.log(sizes) - math.log(total))).sum())


def _log_of_base(base: float | None) -> float:
    if base is None:
        return 1.0
    if not isinstance(base, Real) or not 1 < base < np.inf:
        raise ParameterError(f"base={base!r} cannot be used. Give a finite number above 1, or None for e.")
    return float(np.log(base))
