"""The methods by their names on the command line: what input they take, when to use them, what they cost."""

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
        "a first look at any data: finds groups of any shape, their number, and which views show them",
        "O(n^2 d) for neighbours, O(n^1.5 d) beyond 10,000 samples, then edges times clusters",
        scale="none",
        chooses=True,
        ranges=True,
        embeds=True,
    ),
    Method(
        "multi-view-spectral",
        "MultiViewSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "nothing is known about the views; clusters are connected rather than compact; view weights are wanted",
        "a few dozen sparse products per iteration",
        GRAPHS,
        chooses=True,
        embeds=True,
    ),
    Method(
        "multi-view-kernel-kmeans",
        "MultiViewKernelKMeans",
        (TABLE, VIEWS, KERNEL),
        "clusters are compact; view weights should follow the clusters; new samples go to the nearest centre",
        "O(n^2) per view once, then rows of samples that move; O(n d k) per iteration with linear kernels",
        MEDIAN,
    ),
    Method(
        "multi-view-kernel-spectral",
        "MultiViewKernelSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "very many samples: it trains on some and assigns the rest; views should agree",
        "O(V m^3) for V views of m training samples, then O(n m)",
        MEDIAN,
        embeds=True,
    ),
    Method(
        "multi-view-convex-mixture",
        "MultiViewConvexMixture",
        (TABLE, VIEWS),
        "each cluster has an exemplar among the samples; no initialisation; probabilities; noisy views of one kind",
        "O(n^2) per view and iteration",
    ),
    Method(
        "kernel-kmeans",
        "KernelKMeans",
        (TABLE, KERNEL),
        "one table or one similarity matrix; compact clusters in the kernel's feature space",
        "O(n^2) once, then rows of samples that move",
        MEDIAN,
        chooses=True,
    ),
    Method(
        "global-kernel-kmeans",
        "GlobalKernelKMeans",
        (TABLE, KERNEL),
        "kernel k-means without initialisation; solutions for every number of clusters up to k",
        "O(n^2) per cluster (fast search)",
        {**MEDIAN, "search": "fast"},
    ),
    Method(
        "kernel-spectral",
        "KernelSpectralClustering",
        (TABLE, KERNEL),
        "one table of very many samples: it trains on some and assigns the rest",
        "O(m^2 k) for m training samples, then O(n m)",
        MEDIAN,
        embeds=True,
    ),
    Method(
        "k-means",
        "KernelKMeans",
        (TABLE,),
        "plain k-means: compact clusters of similar size in one table; a baseline",
        "O(n d k) per iteration",
        {"kernel": "linear"},
    ),
    Method(
        "minmax-kmeans",
        "MinMaxKMeans",
        (TABLE,),
        "k-means that hardly depends on its initialisation; clusters of similar variance",
        "O(n d k) per iteration",
    ),
    Method(
        "minmax-kernel-kmeans",
        "MinMaxKernelKMeans",
        (TABLE, KERNEL),
        "MinMax k-means in a kernel's feature space",
        "O(n^2) once, then rows of samples that move",
        MEDIAN,
    ),
    Method("pifs-kmeans", "PifsKMeans", (TABLE,), "clusters of similar size; a baseline", "O(n d k) per iteration"),
    Method(
        "convex-mixture",
        "ConvexMixture",
        (TABLE, KERNEL),
        "each cluster has an exemplar among the samples; certified optimum; probabilities",
        "O(n^2) per iteration, a few dozen iterations",
    ),
    Method(
        "ratio-kernels",
        "RatioMultipleKernelClustering",
        (TABLE, VIEWS, KERNEL),
        "two clusters; weights of many kernels, by the ratio of variance to margin",
        "O(n^2) per kernel and iteration",
    ),
    Method(
        "iterative-svr",
        "IterativeSVR",
        (TABLE, KERNEL),
        "two clusters by the margin alone; a baseline",
        "O(n^2) and a few dozen support vector machines",
        MEDIAN,
    ),
    Method(
        "ng-spectral",
        "NgSpectralClustering",
        (TABLE, KERNEL),
        "spectral clustering of one table or similarity matrix; a baseline",
        "a few dozen products with the kernel",
        {name: value for name, value in GRAPHS.items() if name.startswith("kernel")},
        embeds=True,
    ),
    Method(
        "co-regularized-spectral",
        "CoRegularizedSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "eigenvectors of the views pulled towards each other; a baseline",
        "eigenvectors of every view, a few dozen times",
        {name: value for name, value in GRAPHS.items() if name.startswith("kernel")},
        embeds=True,
    ),
    Method(
        "co-trained-spectral",
        "CoTrainedSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "similarities of each view projected onto the eigenvectors of the others; a baseline",
        "O(n^2 k) per view and round",
        {name: value for name, value in GRAPHS.items() if name.startswith("kernel")},
        embeds=True,
    ),
    Method(
        "correlational-spectral",
        "CorrelationalSpectralClustering",
        (TABLE, VIEWS, KERNEL),
        "directions in which the views correlate (kernel CCA); a baseline",
        "O(n^3) per view once",
        embeds=True,
    ),
    Method(
        "nemo",
        "NEMO",
        (TABLE, VIEWS),
        "neighbourhoods averaged over the views that have both samples; a baseline",
        "O(n^2 d) per view once",
        {"standardize": False},
        embeds=True,
    ),
    Method(
        "similarity-network-fusion",
        "SimilarityNetworkFusion",
        (TABLE, VIEWS),
        "networks of the views made similar round by round; a baseline",
        "O(n^2) per view and round, times neighbours",
        {"standardize": False},
        embeds=True,
    ),
    Method(
        "optimized-kernel-kmeans",
        "OptimizedKernelKMeans",
        (TABLE, VIEWS, KERNEL),
        "kernel k-means with view coefficients by a Fisher criterion; a baseline",
        "O(n^3) per iteration",
        MEDIAN,
    ),
    Method(
        "kmedoids",
        "KMedoids",
        (TABLE,),
        "each cluster has a medoid among the samples; any metric; a baseline",
        "O(n^2) per pass",
    ),
    Method(
        "affinity-propagation",
        "AffinityPropagation",
        (TABLE, KERNEL),
        "exemplars by messages between samples; a baseline",
        "O(n^2) per iteration",
    ),
    Method(
        "multi-view-kmeans",
        "MultiViewKMeans",
        (TABLE, VIEWS),
        "k-means whose views pass their clusters to each other; a baseline",
        "O(n d k) per iteration",
    ),
    Method(
        "multi-view-em",
        "MultiViewEM",
        (TABLE, VIEWS),
        "mixtures whose views pass their probabilities to each other; a baseline",
        "O(n d k) per iteration",
    ),
    Method(
        "multi-view-nmf",
        "MultiViewNMF",
        (TABLE, VIEWS),
        "counts and other non-negative numbers; a baseline",
        "O(n d k) per iteration",
        scale="none",
        negative=False,
    ),
    Method(
        "graph-cut",
        "GraphCut",
        (GRAPH,),
        "a graph as a list of edges; normalized cut, ratio cut or ratio association",
        "O(edges) per pass",
        chooses=True,
    ),
    Method(
        "sklearn-kmeans",
        "PlainKMeans",
        (TABLE, VIEWS),
        "scikit-learn's k-means, columns of all views side by side; for comparisons only",
        "O(n d k) per iteration",
        {"n_init": 10},
        baseline=True,
    ),
    Method(
        "sklearn-spectral",
        "PlainSpectral",
        (TABLE, VIEWS, KERNEL, GRAPH),
        "scikit-learn's spectral clustering, columns of all views side by side; for comparisons only",
        "O(n^2 d) for neighbours, then eigenvectors",
        {"affinity": "nearest_neighbors"},
        baseline=True,
    ),
)
#: The default method of each kind of input.
DEFAULTS = dict.fromkeys((TABLE, VIEWS, KERNEL, GRAPH), "graph-fusion")

#: The same where the user names a kernel, or gives the exponent of view weights.
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
