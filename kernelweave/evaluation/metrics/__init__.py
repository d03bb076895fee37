"""Measures of a partition, grouped by what they are computed from.

labels       two labellings of the same samples: NMI, ARI, entropy, accuracy, misclassification
variances    a kernel or vectors, and labels: E_sum and E_max
silhouette   a kernel and labels: silhouette with distances in feature space
graphs       an affinity matrix and labels: normalized cut, ratio cut, ratio association
scores       spectral score vectors and labels: BLF and BAF

No measure changes its arguments, or copies a kernel of floating-point numbers.
"""

from kernelweave.evaluation.metrics.graphs import normalized_cut, ratio_association, ratio_cut
from kernelweave.evaluation.metrics.labels import (
    adjusted_rand_index,
    average_entropy,
    clustering_accuracy,
    misclassification_error,
    normalized_mutual_info,
)
from kernelweave.evaluation.metrics.scores import balanced_angular_fit, balanced_line_fit
from kernelweave.evaluation.metrics.silhouette import kernel_silhouette, kernel_silhouette_samples
from kernelweave.evaluation.metrics.variances import cluster_variances, max_variance, sum_of_variances

__all__ = [
    "adjusted_rand_index",
    "average_entropy",
    "balanced_angular_fit",
    "balanced_line_fit",
    "cluster_variances",
    "clustering_accuracy",
    "kernel_silhouette",
    "kernel_silhouette_samples",
    "max_variance",
    "misclassification_error",
    "normalized_cut",
    "normalized_mutual_info",
    "ratio_association",
    "ratio_cut",
    "sum_of_variances",
]
