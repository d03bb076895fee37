"""Measures of a partition: agreement with classes, scatter, graph cuts, silhouette, BLF and BAF."""

from kernelweave.evaluation.metrics import (
    adjusted_rand_index,
    average_entropy,
    balanced_angular_fit,
    balanced_line_fit,
    cluster_variances,
    clustering_accuracy,
    kernel_silhouette,
    kernel_silhouette_samples,
    max_variance,
    misclassification_error,
    normalized_cut,
    normalized_mutual_info,
    ratio_association,
    ratio_cut,
    sum_of_variances,
)

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
