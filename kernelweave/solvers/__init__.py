"""Pure functions: operator and arrays in, frozen result out."""

from kernelweave.solvers._affinity import Exemplars, Messages, find_exemplars, median_preference
from kernelweave.solvers._best import best_of
from kernelweave.solvers._co_regularized import CoRegularized, co_regularized
from kernelweave.solvers._co_trained import CoTrained, co_trained
from kernelweave.solvers._convex_mixture import exemplars, reference_beta
from kernelweave.solvers._correlational import Projections, kernel_cca, takes_features
from kernelweave.solvers._empty import TIE
from kernelweave.solvers._exponent import EXPONENTS, PARTS, ExponentChoice, stable_exponent
from kernelweave.solvers._global_search import Path, global_kernel_kmeans
from kernelweave.solvers._graph_search import CutPath, polish_cut, search_cuts
from kernelweave.solvers._iterative_svr import SvrRun, balanced_bias, iterative_svr
from kernelweave.solvers._kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers._kernel_spectral import (
    CoupledScores,
    ScoreModel,
    codebook,
    committee_weights,
    coupled_kernel_spectral,
    decode,
    degree_weights,
    kernel_spectral,
    score_floor,
)
from kernelweave.solvers._kmedoids import MEDOID_INITS, MedoidRun, build_medoids, k_medoids, start_medoids
from kernelweave.solvers._minmax import MinMaxRun, best_minmax, drawn_minmax, minmax_kmeans
from kernelweave.solvers._multi_view_em import (
    COVARIANCES,
    Density,
    ExchangedMixtures,
    GaussianView,
    MultinomialView,
    exchange_em,
    likeliest,
    mean_posteriors,
)
from kernelweave.solvers._multi_view_kernel_kmeans import MultiViewDescent, MultiViewKernel, multi_view_kernel_kmeans
from kernelweave.solvers._multi_view_kmeans import (
    ExchangedMeans,
    exchange_kmeans,
    joint_distances,
    joint_slack,
    nearest_joint,
)
from kernelweave.solvers._multi_view_nmf import Factors, consensus_labels, joint_factors, nmf_start
from kernelweave.solvers._multi_view_spectral import MultiViewSpectrum, multi_view_spectral
from kernelweave.solvers._optimized_kernel_kmeans import FusedClusters, Fusion, optimized_kernel_kmeans
from kernelweave.solvers._pifs import pifs_kmeans
from kernelweave.solvers._priors import Priors, solve_priors
from kernelweave.solvers._ratio_mkc import RatioRun, balanced_pairs, best_start, ratio_clustering
from kernelweave.solvers._starts import INITS, extended_labels, start_labels
from kernelweave.solvers._view_mixture import ViewMixture, solve_view_mixture
from kernelweave.solvers._view_weights import LARGEST_P, best_view_weights

__all__ = [
    "COVARIANCES",
    "EXPONENTS",
    "INITS",
    "LARGEST_P",
    "MEDOID_INITS",
    "PARTS",
    "TIE",
    "CoRegularized",
    "CoTrained",
    "CoupledScores",
    "CutPath",
    "Density",
    "Descent",
    "ExchangedMeans",
    "ExchangedMixtures",
    "Exemplars",
    "ExponentChoice",
    "Factors",
    "FusedClusters",
    "Fusion",
    "GaussianView",
    "MedoidRun",
    "Messages",
    "MinMaxRun",
    "MultiViewDescent",
    "MultiViewKernel",
    "MultiViewSpectrum",
    "MultinomialView",
    "Path",
    "Priors",
    "Projections",
    "RatioRun",
    "ScoreModel",
    "SvrRun",
    "ViewMixture",
    "balanced_bias",
    "balanced_pairs",
    "best_minmax",
    "best_of",
    "best_start",
    "best_view_weights",
    "build_medoids",
    "co_regularized",
    "co_trained",
    "codebook",
    "committee_weights",
    "consensus_labels",
    "coupled_kernel_spectral",
    "decode",
    "degree_weights",
    "drawn_minmax",
    "exchange_em",
    "exchange_kmeans",
    "exemplars",
    "extended_labels",
    "find_exemplars",
    "global_kernel_kmeans",
    "iterative_svr",
    "joint_distances",
    "joint_factors",
    "joint_slack",
    "k_medoids",
    "kernel_cca",
    "kernel_kmeans",
    "kernel_spectral",
    "likeliest",
    "mean_posteriors",
    "median_preference",
    "minmax_kmeans",
    "multi_view_kernel_kmeans",
    "multi_view_spectral",
    "nearest_joint",
    "nmf_start",
    "optimized_kernel_kmeans",
    "pifs_kmeans",
    "polish_cut",
    "ratio_clustering",
    "reference_beta",
    "score_floor",
    "search_cuts",
    "solve_priors",
    "solve_view_mixture",
    "stable_exponent",
    "start_labels",
    "start_medoids",
    "takes_features",
]
