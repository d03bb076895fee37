"""The classes that may occur in a saved model, and the names that files know them by.

A file names a class by kind and name, such as ``kernel/FormulaKernel``. These names belong to the format and not to the
code: they stay as they are when a module moves or a class is renamed. ``CLASSES`` is the whole list; a name that is not
in it is refused, so nothing else can ever be made from a file.

When the code changes:

a class moves or is renamed   change the import and the right-hand side in ``CLASSES``; the name in quotes stays
a class is new                add a line to ``CLASSES``, and one to ``SIZES`` in ``sizes`` for arrays that compiled
                              loops read; what an estimator holds in ``_model`` goes into ``MODELS``, too
a class is gone               take it out of ``CLASSES``, and say in ``REPLACED`` which one took its place
its fields change             write an upgrade (see ``upgrades``)

Lines of ``REPLACED`` and ``VERSION_1`` are never removed.
"""

from types import UnionType

from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kernelweave import estimators
from kernelweave.estimators.comparators.affinity_propagation import ExemplarModel
from kernelweave.estimators.comparators.correlational import ProjectedViews
from kernelweave.estimators.comparators.k_medoids import MedoidModel
from kernelweave.estimators.comparators.multi_view_em import ViewMixtures
from kernelweave.estimators.comparators.multi_view_kmeans import JointCenters
from kernelweave.estimators.comparators.networks import NetworkView, Propagation
from kernelweave.estimators.graph import fusion_views
from kernelweave.estimators.graph.graph_fusion import FusionExtension
from kernelweave.estimators.margin.basis_kernels import BasisKernels, KernelObject
from kernelweave.estimators.margin.division import DivisionModel, Split
from kernelweave.estimators.mixtures.model import MixtureModel
from kernelweave.estimators.shared import embedding, scores, view_kernels
from kernelweave.estimators.shared.models import CenterModel, MeanModel, ObservedCenters
from kernelweave.inputs.arrays.absence import CellFiller
from kernelweave.kernels import divergences, representations
from kernelweave.kernels.spec import fitting, formulas
from kernelweave.kernels.spec.neighbors import NeighborGraph
from kernelweave.preprocessing.view_scaler import ViewScaler
from kernelweave.solvers.comparators.multi_view_em import Density

#: Number of the format; it grows when older readers would go wrong. See ``upgrades``.
VERSION = 2

#: Every class that may occur in a model, by the name that is written.
CLASSES: dict[str, type] = {
    "estimator/AffinityPropagation": estimators.AffinityPropagation,
    "estimator/CoRegularizedSpectralClustering": estimators.CoRegularizedSpectralClustering,
    "estimator/CoTrainedSpectralClustering": estimators.CoTrainedSpectralClustering,
    "estimator/ConvexMixture": estimators.ConvexMixture,
    "estimator/CorrelationalSpectralClustering": estimators.CorrelationalSpectralClustering,
    "estimator/GlobalKernelKMeans": estimators.GlobalKernelKMeans,
    "estimator/GraphCut": estimators.GraphCut,
    "estimator/GraphFusionClustering": estimators.GraphFusionClustering,
    "estimator/IterativeSVR": estimators.IterativeSVR,
    "estimator/KMedoids": estimators.KMedoids,
    "estimator/KernelKMeans": estimators.KernelKMeans,
    "estimator/KernelSpectralClustering": estimators.KernelSpectralClustering,
    "estimator/MinMaxKMeans": estimators.MinMaxKMeans,
    "estimator/MinMaxKernelKMeans": estimators.MinMaxKernelKMeans,
    "estimator/MultiViewConvexMixture": estimators.MultiViewConvexMixture,
    "estimator/MultiViewEM": estimators.MultiViewEM,
    "estimator/MultiViewKMeans": estimators.MultiViewKMeans,
    "estimator/MultiViewKernelKMeans": estimators.MultiViewKernelKMeans,
    "estimator/MultiViewKernelSpectralClustering": estimators.MultiViewKernelSpectralClustering,
    "estimator/MultiViewNMF": estimators.MultiViewNMF,
    "estimator/MultiViewSpectralClustering": estimators.MultiViewSpectralClustering,
    "estimator/NEMO": estimators.NEMO,
    "estimator/NgSpectralClustering": estimators.NgSpectralClustering,
    "estimator/OptimizedKernelKMeans": estimators.OptimizedKernelKMeans,
    "estimator/PifsKMeans": estimators.PifsKMeans,
    "estimator/RatioMultipleKernelClustering": estimators.RatioMultipleKernelClustering,
    "estimator/SimilarityNetworkFusion": estimators.SimilarityNetworkFusion,
    "extension/Eigenvectors": embedding.EigenvectorExtension,
    "extension/FusedGraph": FusionExtension,
    "extension/ObservedEigenvectors": embedding.ObservedExtension,
    "extension/ProjectedViews": ProjectedViews,
    "features/Fourier": fitting.FourierFeatures,
    "features/Linear": fitting.LinearFeatures,
    "features/Nystroem": fitting.NystroemFeatures,
    "filler/Cells": CellFiller,
    "formula/ChiSquared": formulas.ChiSquared,
    "formula/Gaussian": formulas.Gaussian,
    "formula/Gower": formulas.Gower,
    "formula/IntensityHistogram": formulas.IntensityHistogram,
    "formula/Laplacian": formulas.Laplacian,
    "formula/NormalizedPolynomial": formulas.NormalizedPolynomial,
    "formula/Polynomial": formulas.Polynomial,
    "formula/ProcessKernel": formulas.ProcessKernel,
    "formula/SelfTuning": formulas.SelfTuning,
    "formula/Sigmoid": formulas.Sigmoid,
    "gaussian_process/CompoundKernel": gaussian_process.CompoundKernel,
    "gaussian_process/ConstantKernel": gaussian_process.ConstantKernel,
    "gaussian_process/DotProduct": gaussian_process.DotProduct,
    "gaussian_process/ExpSineSquared": gaussian_process.ExpSineSquared,
    "gaussian_process/Exponentiation": gaussian_process.Exponentiation,
    "gaussian_process/Matern": gaussian_process.Matern,
    "gaussian_process/PairwiseKernel": gaussian_process.PairwiseKernel,
    "gaussian_process/Product": gaussian_process.Product,
    "gaussian_process/RBF": gaussian_process.RBF,
    "gaussian_process/RationalQuadratic": gaussian_process.RationalQuadratic,
    "gaussian_process/Sum": gaussian_process.Sum,
    "gaussian_process/WhiteKernel": gaussian_process.WhiteKernel,
    "kernel/BasisKernels": BasisKernels,
    "kernel/FeatureMap": fitting.FeatureMap,
    "kernel/FormulaKernel": fitting.FormulaKernel,
    "kernel/GraphFit": fitting.GraphFit,
    "kernel/KernelObject": KernelObject,
    "kernel/NeighborGraph": NeighborGraph,
    "kernel/Precomputed": fitting.Precomputed,
    "kernel/TrainedKernel": scores.TrainedKernel,
    "kernel/ViewKernel": view_kernels.ViewKernel,
    "kernel/ViewKernels": view_kernels.ViewKernels,
    "kernel/WeightedViewKernels": view_kernels.WeightedViewKernels,
    "model/Centers": CenterModel,
    "model/Density": Density,
    "model/Division": DivisionModel,
    "model/Embedding": embedding.EmbeddingModel,
    "model/Exemplars": ExemplarModel,
    "model/JointCenters": JointCenters,
    "model/Means": MeanModel,
    "model/Medoids": MedoidModel,
    "model/Mixture": MixtureModel,
    "model/ObservedCenters": ObservedCenters,
    "model/Propagation": Propagation,
    "model/Scores": scores.ScoreModel,
    "model/Split": Split,
    "model/ViewMixtures": ViewMixtures,
    "placement/ColumnPlacement": divergences.ColumnPlacement,
    "placement/FeaturePlacement": divergences.FeaturePlacement,
    "placement/KernelPlacement": divergences.KernelPlacement,
    "placement/ObservedPlacement": divergences.ObservedPlacement,
    "representation/Counts": representations.Counts,
    "representation/Hellinger": representations.Hellinger,
    "representation/Standardized": representations.Standardized,
    "scaler/MaxAbsScaler": MaxAbsScaler,
    "scaler/MinMaxScaler": MinMaxScaler,
    "scaler/Normalizer": Normalizer,
    "scaler/StandardScaler": StandardScaler,
    "scaler/ViewScaler": ViewScaler,
    "scores/Biased": scores.BiasedScores,
    "scores/Centred": scores.CentredScores,
    "scores/Codebook": scores.Codebook,
    "transformer/Binarizer": Binarizer,
    "transformer/ColumnSelector": make_column_selector,
    "transformer/ColumnTransformer": ColumnTransformer,
    "transformer/CountVectorizer": CountVectorizer,
    "transformer/FeatureUnion": FeatureUnion,
    "transformer/FunctionTransformer": FunctionTransformer,
    "transformer/HashingVectorizer": HashingVectorizer,
    "transformer/KBinsDiscretizer": KBinsDiscretizer,
    "transformer/KNNImputer": KNNImputer,
    "transformer/MissingIndicator": MissingIndicator,
    "transformer/OneHotEncoder": OneHotEncoder,
    "transformer/OrdinalEncoder": OrdinalEncoder,
    "transformer/PCA": PCA,
    "transformer/PolynomialFeatures": PolynomialFeatures,
    "transformer/PowerTransformer": PowerTransformer,
    "transformer/QuantileTransformer": QuantileTransformer,
    "transformer/RobustScaler": RobustScaler,
    "transformer/SimpleImputer": SimpleImputer,
    "transformer/TfidfTransformer": TfidfTransformer,
    "transformer/TfidfVectorizer": TfidfVectorizer,
    "transformer/TruncatedSVD": TruncatedSVD,
    "transformer/VarianceThreshold": VarianceThreshold,
    "view/Compared": fusion_views.ComparedView,
    "view/Kernel": fusion_views.KernelView,
    "view/Linked": fusion_views.LinkedView,
    "view/Network": NetworkView,
}

#: Our estimators: what a model is, or what a pipeline ends in.
ESTIMATORS = frozenset(cls for name, cls in CLASSES.items() if name.startswith("estimator/"))

#: What an estimator keeps in ``_model``; those without ``predict`` keep nothing.
MODELS: dict[type, type | UnionType] = {
    estimators.AffinityPropagation: ExemplarModel,
    estimators.ConvexMixture: MixtureModel,
    estimators.CorrelationalSpectralClustering: embedding.EmbeddingModel,
    estimators.GlobalKernelKMeans: CenterModel,
    estimators.GraphFusionClustering: embedding.EmbeddingModel,
    estimators.IterativeSVR: DivisionModel,
    estimators.KMedoids: MedoidModel,
    estimators.KernelKMeans: CenterModel,
    estimators.KernelSpectralClustering: scores.ScoreModel,
    estimators.MinMaxKMeans: MeanModel,
    estimators.MinMaxKernelKMeans: CenterModel,
    estimators.MultiViewConvexMixture: MixtureModel,
    estimators.MultiViewEM: ViewMixtures,
    estimators.MultiViewKMeans: JointCenters,
    estimators.MultiViewKernelKMeans: CenterModel | ObservedCenters,
    estimators.MultiViewKernelSpectralClustering: scores.ScoreModel,
    estimators.MultiViewSpectralClustering: embedding.EmbeddingModel,
    estimators.NEMO: Propagation,
    estimators.NgSpectralClustering: embedding.EmbeddingModel,
    estimators.PifsKMeans: MeanModel,
    estimators.RatioMultipleKernelClustering: DivisionModel,
    estimators.SimilarityNetworkFusion: Propagation,
}

#: Names of classes that are gone, by the version they were last written in, each with the name of the class that took
#: its place. An upgrade under the old name turns the fields of the one into those of the other.
REPLACED: dict[int, dict[str, str]] = {
    1: {
        "kernel/BasisKernel": "kernel/BasisKernels",
        "model/TrainedView": "scores/Centred",
        "placement/GivenPlacement": "placement/ColumnPlacement",
    },
}

# Version 1 wrote the module and the name of a class. Each group has the modules its classes were in, one after another,
# and what the names there are called now.
_WRITTEN_BY_VERSION_1: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (
        ("kernelweave.estimators",),
        {
            "AffinityPropagation": "estimator/AffinityPropagation",
            "CoRegularizedSpectralClustering": "estimator/CoRegularizedSpectralClustering",
            "CoTrainedSpectralClustering": "estimator/CoTrainedSpectralClustering",
            "ConvexMixture": "estimator/ConvexMixture",
            "CorrelationalSpectralClustering": "estimator/CorrelationalSpectralClustering",
            "GlobalKernelKMeans": "estimator/GlobalKernelKMeans",
            "GraphCut": "estimator/GraphCut",
            "IterativeSVR": "estimator/IterativeSVR",
            "KMedoids": "estimator/KMedoids",
            "KernelKMeans": "estimator/KernelKMeans",
            "KernelSpectralClustering": "estimator/KernelSpectralClustering",
            "MinMaxKMeans": "estimator/MinMaxKMeans",
            "MinMaxKernelKMeans": "estimator/MinMaxKernelKMeans",
            "MultiViewConvexMixture": "estimator/MultiViewConvexMixture",
            "MultiViewEM": "estimator/MultiViewEM",
            "MultiViewKMeans": "estimator/MultiViewKMeans",
            "MultiViewKernelKMeans": "estimator/MultiViewKernelKMeans",
            "MultiViewKernelSpectralClustering": "estimator/MultiViewKernelSpectralClustering",
            "MultiViewNMF": "estimator/MultiViewNMF",
            "MultiViewSpectralClustering": "estimator/MultiViewSpectralClustering",
            "NgSpectralClustering": "estimator/NgSpectralClustering",
            "OptimizedKernelKMeans": "estimator/OptimizedKernelKMeans",
            "PifsKMeans": "estimator/PifsKMeans",
            "RatioMultipleKernelClustering": "estimator/RatioMultipleKernelClustering",
        },
    ),
    (
        (
            "kernelweave.estimators._multi_view_kernel_spectral",
            "kernelweave.estimators.spectral.multi_view_kernel_spectral",
        ),
        {
            "MultiViewKernelSpectralClustering": "estimator/MultiViewKernelSpectralClustering",
            "TrainedView": "model/TrainedView",
        },
    ),
    (
        ("kernelweave.estimators._ratio_mkc", "kernelweave.estimators.margin.ratio_clustering"),
        {
            "BasisKernel": "kernel/BasisKernel",
            "RatioMultipleKernelClustering": "estimator/RatioMultipleKernelClustering",
        },
    ),
    (
        ("kernelweave.estimators._dividing", "kernelweave.estimators.margin.dividing"),
        {"Split": "model/Split"},
    ),
    (
        ("kernelweave.estimators._multi_view", "kernelweave.estimators.shared.multi_view"),
        {"ViewKernel": "kernel/ViewKernel"},
    ),
    (
        ("kernelweave.estimators._scaling", "kernelweave.preprocessing.view_scaler"),
        {"ViewScaler": "scaler/ViewScaler"},
    ),
    (
        ("kernelweave.operators._neighbors", "kernelweave.kernels.spec.neighbors"),
        {"NeighborGraph": "kernel/NeighborGraph"},
    ),
    (
        ("kernelweave.operators.divergences", "kernelweave.kernels.divergences"),
        {
            "FeaturePlacement": "placement/FeaturePlacement",
            "GivenPlacement": "placement/GivenPlacement",
            "KernelPlacement": "placement/KernelPlacement",
        },
    ),
    (
        ("kernelweave.operators.factory", "kernelweave.kernels.spec.fitting"),
        {
            "FeatureMap": "kernel/FeatureMap",
            "FormulaKernel": "kernel/FormulaKernel",
            "GraphFit": "kernel/GraphFit",
            "Precomputed": "kernel/Precomputed",
            "_FourierFeatures": "features/Fourier",
            "_Linear": "features/Linear",
            "_NystroemFeatures": "features/Nystroem",
        },
    ),
    (
        ("kernelweave.operators.formulas", "kernelweave.kernels.spec.formulas"),
        {
            "ChiSquared": "formula/ChiSquared",
            "Gaussian": "formula/Gaussian",
            "IntensityHistogram": "formula/IntensityHistogram",
            "Laplacian": "formula/Laplacian",
            "NormalizedPolynomial": "formula/NormalizedPolynomial",
            "Polynomial": "formula/Polynomial",
            "ProcessKernel": "formula/ProcessKernel",
            "SelfTuning": "formula/SelfTuning",
            "Sigmoid": "formula/Sigmoid",
        },
    ),
    (
        ("sklearn.gaussian_process.kernels",),
        {
            "CompoundKernel": "gaussian_process/CompoundKernel",
            "ConstantKernel": "gaussian_process/ConstantKernel",
            "DotProduct": "gaussian_process/DotProduct",
            "ExpSineSquared": "gaussian_process/ExpSineSquared",
            "Exponentiation": "gaussian_process/Exponentiation",
            "Matern": "gaussian_process/Matern",
            "PairwiseKernel": "gaussian_process/PairwiseKernel",
            "Product": "gaussian_process/Product",
            "RBF": "gaussian_process/RBF",
            "RationalQuadratic": "gaussian_process/RationalQuadratic",
            "Sum": "gaussian_process/Sum",
            "WhiteKernel": "gaussian_process/WhiteKernel",
        },
    ),
    (
        ("sklearn.preprocessing",),
        {
            "MaxAbsScaler": "scaler/MaxAbsScaler",
            "MinMaxScaler": "scaler/MinMaxScaler",
            "Normalizer": "scaler/Normalizer",
            "StandardScaler": "scaler/StandardScaler",
        },
    ),
)

#: Names in files of version 1, and what they are called now.
VERSION_1: dict[str, str] = {
    f"{module}.{written}": name
    for modules, classes in _WRITTEN_BY_VERSION_1
    for module in modules
    for written, name in classes.items()
}


def name_of(cls: type) -> str | None:
    """Return the name to write for a class; None where it may not occur in a model."""
    return next((name for name, known in CLASSES.items() if known is cls), None)


def names_since(written: str, version: int) -> list[str]:
    """Return what a class named in a file is called in the version of that file and in every one since.

    The last is a name of ``CLASSES``, or the class may not occur in a model.
    """
    names = [VERSION_1.get(written, "") if version == 1 else written]
    for step in range(version, VERSION):
        names.append(REPLACED[step].get(names[-1], names[-1]))
    return names
