"""Pure functions: operator and arrays in, frozen result out."""

from kernelweave.solvers._best import best_of
from kernelweave.solvers._convex_mixture import exemplars, reference_beta
from kernelweave.solvers._empty import TIE
from kernelweave.solvers._global_search import Path, global_kernel_kmeans
from kernelweave.solvers._graph_search import CutPath, polish_cut, search_cuts
from kernelweave.solvers._kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers._minmax import MinMaxRun, best_minmax, drawn_minmax, minmax_kmeans
from kernelweave.solvers._pifs import pifs_kmeans
from kernelweave.solvers._priors import Priors, solve_priors
from kernelweave.solvers._starts import INITS, start_labels
from kernelweave.solvers._view_mixture import ViewMixture, solve_view_mixture

__all__ = [
    "INITS",
    "TIE",
    "CutPath",
    "Descent",
    "MinMaxRun",
    "Path",
    "Priors",
    "ViewMixture",
    "best_minmax",
    "best_of",
    "drawn_minmax",
    "exemplars",
    "global_kernel_kmeans",
    "kernel_kmeans",
    "minmax_kmeans",
    "pifs_kmeans",
    "polish_cut",
    "reference_beta",
    "search_cuts",
    "solve_priors",
    "solve_view_mixture",
    "start_labels",
]
