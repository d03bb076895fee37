"""What a fitted model measured: the only place that asks one.

clustering   the estimator at the end of pipelines and searches, the samples as it received them, its clusters
views        what every view holds, and how the model compares samples in it
distances    distances between samples: as they are given, and as the model measures them
graphs       where the nodes of a graph lie
kernels      kernel values a fitted model works with
silhouettes  silhouettes of the samples as they are given, and with the distances of the model
results      cluster sizes, weights of views and kernels, the objective and its path
names        names of the samples
typical      samples that stand for a cluster
references   distances of all samples to some of them
samples      what the model says about every sample: silhouette, runner-up, confidence, the view that disagrees
description  all of it for one model

The report, the criteria of searches, the plots and the command line ask here, so that they say the same.
"""

from kernelweave.evaluation.describe.clustering import Clustering, final_step, read_clustering, samples_for_final_step
from kernelweave.evaluation.describe.description import Description, describe
from kernelweave.evaluation.describe.samples import SampleDescriptions, describe_samples

__all__ = [
    "Clustering",
    "Description",
    "SampleDescriptions",
    "describe",
    "describe_samples",
    "final_step",
    "read_clustering",
    "samples_for_final_step",
]
