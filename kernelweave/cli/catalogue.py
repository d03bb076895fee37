"""The methods by their names on the command line: what they take, when to use them, what they cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Kinds of input.
TABLE = "table"
VIEWS = "views"
KERNEL = "kernel matrix"
GRAPH = "graph"
#: The same in messages.
KINDS = {TABLE: "one table", VIEWS: "several views", KERNEL: "a kernel matrix", GRAPH: "a graph"}
# Every view as a graph of neighbours, divided by degrees: what the guide recommends where little is known.
GRAPHS: Mapping[str, Any] = {
    "kernel": "nearest_neighbors",
    "kernel_params": {"weights": "self_tuning", "symmetrize": "max"},
    "normalize": "degrees",
    "p": 5.0,
}
MEDIAN: Mapping[str, Any] = {"kernel": "rbf", "kernel_params": {"gamma": "median"}}


@dataclass(frozen=True)
class Method:
    """One method."""

    name: str
    estimator: str
    takes: tuple[str, ...]
    when: str
    cost: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "auto"  # what --scale auto does to tables
    negative: bool = True  # whether it takes negative numbers
    chooses: bool = False  # whether it can choose the number of clusters
    ranges: bool = False  # whether it can choose from a range
    embeds: bool = False  # whether it has joint coordinates of the samples, an embedding or scores
    baseline: bool = False  # of another library, for comparisons alone


METHODS = (
    Method(
        "graph-fusion",
        "GraphFusionClustering",
        (TABLE, VIEWS, KERNEL, GRAPH),
        "always, to begin with: groups of any shape, their number, and which views show them",
        "neighbours n^2 d (n^1.5 d beyond 10,000 samples), then edges times clusters",
        scale="none",
        chooses=True,
        ranges=True,
        embeds=True,
    ),
    Method(
        "multi-view-spectral",
        "MultiViewSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "nothing is known of the views; clusters are connected rather than compact; weights of views are wanted",
        "tens of sparse products per step",
        GRAPHS,
        chooses=True,
        embeds=True,
    ),
    Method(
        "multi-view-kernel-kmeans",
        "MultiViewKernelKMeans",
        (TABLE, VIEWS, KERNEL),
        "clusters are compact; weights of views that follow the clusters; new samples by distance to centres",
        "n^2 per view once, then rows of samples that move; linear kernels n d k a step",
        MEDIAN,
    ),
    Method(
        "multi-view-kernel-spectral",
        "MultiViewKernelSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "very many samples: trained on some, the rest assigned; views should agree",
        "V m^3 for m training samples, then n m",
        MEDIAN,
        embeds=True,
    ),
    Method(
        "multi-view-convex-mixture",
        "MultiViewConvexMixture",
        (TABLE, VIEWS),
        "clusters shown by one of their members, without a start; probabilities; noisy views of one kind",
        "n^2 per view and step",
    ),
    Method(
        "kernel-kmeans",
        "KernelKMeans",
        (TABLE, KERNEL),
        "one table or one similarity matrix; compact clusters in the kernel's feature space",
        "n^2 once, then rows of samples that move",
        MEDIAN,
        chooses=True,
    ),
    Method(
        "global-kernel-kmeans",
        "GlobalKernelKMeans",
        (TABLE, KERNEL),
        "the same without a start; every number of clusters up to k on the way",
        "n^2 per cluster (fast search)",
        {**MEDIAN, "search": "fast"},
    ),
    Method(
        "kernel-spectral",
        "KernelSpectralClustering",
        (TABLE, KERNEL),
        "one table of very many samples: trained on some, the rest assigned",
        "m^2 k for m training samples, then n m",
        MEDIAN,
        embeds=True,
    ),
    Method(
        "k-means",
        "KernelKMeans",
        (TABLE,),
        "plain k-means: compact clusters of similar size in one table; to compare with",
        "n d k a step",
        {"kernel": "linear"},
    ),
    Method(
        "minmax-kmeans",
        "MinMaxKMeans",
        (TABLE,),
        "k-means that does not depend on its start; clusters of similar variance",
        "n d k a step",
    ),
    Method(
        "minmax-kernel-kmeans",
        "MinMaxKernelKMeans",
        (TABLE, KERNEL),
        "the same in a kernel's feature space",
        "n^2 once, then rows of samples that move",
        MEDIAN,
    ),
    Method("pifs-kmeans", "PifsKMeans", (TABLE,), "clusters of similar size; to compare with", "n d k a step"),
    Method(
        "convex-mixture",
        "ConvexMixture",
        (TABLE, KERNEL),
        "clusters shown by one of their members, with a proof of optimality; probabilities",
        "n^2 and some tens of steps",
    ),
    Method(
        "ratio-kernels",
        "RatioMultipleKernelClustering",
        (TABLE, VIEWS, KERNEL),
        "two clusters and the weights of many kernels, by the ratio of variance to margin",
        "n^2 per kernel and step",
    ),
    Method(
        "iterative-svr",
        "IterativeSVR",
        (TABLE, KERNEL),
        "two clusters by the margin alone; to compare with",
        "n^2 and some tens of support vector machines",
        MEDIAN,
    ),
    Method(
        "ng-spectral",
        "NgSpectralClustering",
        (TABLE, KERNEL),
        "spectral clustering of one table or similarity matrix; to compare with",
        "tens of products with the kernel",
        {name: value for name, value in GRAPHS.items() if name.startswith("kernel")},
        embeds=True,
    ),
    Method(
        "co-regularized-spectral",
        "CoRegularizedSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "eigenvectors of the views drawn to each other; to compare with",
        "eigenvectors of every view, some tens of times",
        {name: value for name, value in GRAPHS.items() if name.startswith("kernel")},
        embeds=True,
    ),
    Method(
        "co-trained-spectral",
        "CoTrainedSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "similarities of a view cleaned by the eigenvectors of the others; to compare with",
        "n^2 k per view and round",
        {name: value for name, value in GRAPHS.items() if name.startswith("kernel")},
        embeds=True,
    ),
    Method(
        "correlational-spectral",
        "CorrelationalSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "directions in which the views go together (kernel CCA); to compare with",
        "n^3 per view once",
        embeds=True,
    ),
    Method(
        "nemo",
        "NEMO",
        (TABLE, VIEWS),
        "neighbourhoods averaged over the views that have both samples; to compare with",
        "n^2 d per view once",
        {"standardize": False},
        embeds=True,
    ),
    Method(
        "similarity-network-fusion",
        "SimilarityNetworkFusion",
        (TABLE, VIEWS),
        "networks of the views made alike round by round; to compare with",
        "n^2 per view and round, times neighbours",
        {"standardize": False},
        embeds=True,
    ),
    Method(
        "optimized-kernel-kmeans",
        "OptimizedKernelKMeans",
        (TABLE, VIEWS, KERNEL),
        "kernel k-means with coefficients of the views by a Fisher criterion; to compare with",
        "n^3 per step",
        MEDIAN,
    ),
    Method(
        "kmedoids",
        "KMedoids",
        (TABLE,),
        "clusters shown by one of their members, any metric; to compare with",
        "n^2 per pass",
    ),
    Method(
        "affinity-propagation",
        "AffinityPropagation",
        (TABLE, KERNEL),
        "exemplars by messages between samples; to compare with",
        "n^2 per step",
    ),
    Method(
        "multi-view-kmeans",
        "MultiViewKMeans",
        (TABLE, VIEWS),
        "k-means whose views hand each other their clusters; to compare with",
        "n d k a step",
    ),
    Method(
        "multi-view-em",
        "MultiViewEM",
        (TABLE, VIEWS),
        "mixtures whose views hand each other their probabilities; to compare with",
        "n d k a step",
    ),
    Method(
        "multi-view-nmf",
        "MultiViewNMF",
        (TABLE, VIEWS),
        "counts and other numbers that are not negative; to compare with",
        "n d k a step",
        scale="none",
        negative=False,
    ),
    Method(
        "graph-cut",
        "GraphCut",
        (GRAPH,),
        "a graph as a list of edges; normalized cut, ratio cut or ratio association",
        "edges times steps",
        chooses=True,
    ),
    Method(
        "sklearn-kmeans",
        "PlainKMeans",
        (TABLE, VIEWS),
        "scikit-learn's k-means, columns of all views side by side; in comparisons alone",
        "n d k a step",
        {"n_init": 10},
        baseline=True,
    ),
    Method(
        "sklearn-spectral",
        "PlainSpectral",
        (TABLE, VIEWS, KERNEL, GRAPH),
        "scikit-learn's spectral clustering, columns of all views side by side; in comparisons alone",
        "n^2 d for neighbours, then eigenvectors",
        {"affinity": "nearest_neighbors"},
        baseline=True,
    ),
)
#: The default method of each kind of input.
DEFAULTS = dict.fromkeys((TABLE, VIEWS, KERNEL, GRAPH), "graph-fusion")

#: The same where the user names a kernel, or says how equal view weights are.
WITH_KERNEL = DEFAULTS | {TABLE: "kernel-kmeans", VIEWS: "multi-view-kernel-kmeans", KERNEL: "kernel-kmeans"}


WITH_P = DEFAULTS | {TABLE: "multi-view-spectral", VIEWS: "multi-view-spectral"}


def default_for(kind: str, parameters: Mapping[str, Any]) -> str:
    """Return the default method for a kind of input that has the parameters."""
    if "kernel" in parameters or "kernel_params" in parameters:
        return WITH_KERNEL[kind]
    return (WITH_P if "p" in parameters else DEFAULTS)[kind]


def estimator_of(method: Method) -> Any:
    """Return the class of a method's estimator."""
    if method.baseline:
        from kernelweave.cli import baselines

        return getattr(baselines, method.estimator)
    import kernelweave

    return getattr(kernelweave, method.estimator)


def suits(method: Method, kind: str) -> bool:
    """Whether a method takes this kind of input."""
    return kind in method.takes
