"""Pure functions: operator and arrays in, frozen result out."""

from kernelweave.solvers._global_search import Path, global_kernel_kmeans
from kernelweave.solvers._kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers._starts import INITS, best_of, start_labels

__all__ = ["INITS", "Descent", "Path", "best_of", "global_kernel_kmeans", "kernel_kmeans", "start_labels"]
