"""Pure functions: operator and arrays in, frozen result out."""

from kernelweave.solvers._best import best_of
from kernelweave.solvers._convex_mixture import exemplars, reference_beta
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
)
from kernelweave.solvers._minmax import MinMaxRun, best_minmax, drawn_minmax, minmax_kmeans
from kernelweave.solvers._multi_view_kernel_kmeans import MultiViewDescent, MultiViewKernel, multi_view_kernel_kmeans
from kernelweave.solvers._multi_view_spectral import MultiViewSpectrum, multi_view_spectral
from kernelweave.solvers._pifs import pifs_kmeans
from kernelweave.solvers._priors import Priors, solve_priors
from kernelweave.solvers._ratio_mkc import RatioRun, balanced_pairs, best_start, ratio_clustering
from kernelweave.solvers._starts import INITS, extended_labels, start_labels
from kernelweave.solvers._view_mixture import ViewMixture, solve_view_mixture
from kernelweave.solvers._view_weights import LARGEST_P, best_view_weights

__all__ = [
    "EXPONENTS",
    "INITS",
    "LARGEST_P",
    "PARTS",
    "TIE",
    "CoupledScores",
    "CutPath",
    "Descent",
    "ExponentChoice",
    "MinMaxRun",
    "MultiViewDescent",
    "MultiViewKernel",
    "MultiViewSpectrum",
    "Path",
    "Priors",
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
    "codebook",
    "committee_weights",
    "coupled_kernel_spectral",
    "decode",
    "degree_weights",
    "drawn_minmax",
    "exemplars",
    "extended_labels",
    "global_kernel_kmeans",
    "iterative_svr",
    "kernel_kmeans",
    "kernel_spectral",
    "minmax_kmeans",
    "multi_view_kernel_kmeans",
    "multi_view_spectral",
    "pifs_kmeans",
    "polish_cut",
    "ratio_clustering",
    "reference_beta",
    "search_cuts",
    "solve_priors",
    "solve_view_mixture",
    "stable_exponent",
    "start_labels",
]
