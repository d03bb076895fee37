"""The shape of the package: public names, what importing it costs, and habits no linter checks."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kernelweave

PACKAGE = Path(kernelweave.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

PUBLIC = {
    "AffinityPropagation",
    "CoRegularizedSpectralClustering",
    "CoTrainedSpectralClustering",
    "ConvergenceWarning",
    "ConvexMixture",
    "CorrelationalSpectralClustering",
    "DataError",
    "GlobalKernelKMeans",
    "GraphCut",
    "GraphFusionClustering",
    "IterativeSVR",
    "KMedoids",
    "KernelError",
    "KernelKMeans",
    "KernelSpectralClustering",
    "MinMaxKMeans",
    "MinMaxKernelKMeans",
    "MultiViewConvexMixture",
    "MultiViewEM",
    "MultiViewKMeans",
    "MultiViewKernelKMeans",
    "MultiViewKernelSpectralClustering",
    "MultiViewNMF",
    "MultiViewSpectralClustering",
    "NEMO",
    "NgSpectralClustering",
    "NotPSDWarning",
    "OptimizedKernelKMeans",
    "ParameterError",
    "PifsKMeans",
    "Plan",
    "RatioMultipleKernelClustering",
    "SimilarityNetworkFusion",
    "ViewError",
    "ViewWarning",
    "WorkersLostError",
    "__version__",
    "align",
    "config_context",
    "datasets",
    "explain",
    "get_config",
    "load_model",
    "metrics",
    "model_selection",
    "plan",
    "plots",
    "preprocessing",
    "read_notes",
    "report",
    "save_model",
}


def in_fresh_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_public_names_change_only_on_purpose():
    assert set(kernelweave.__all__) == PUBLIC
    assert set(dir(kernelweave)) == PUBLIC
    assert all(getattr(kernelweave, name) is not None for name in PUBLIC)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'KernelKMean'"):
        _ = kernelweave.KernelKMean


def test_using_an_estimator_imports_no_compiler_and_no_extra():
    code = (
        "import sys; sys.modules['pandas'] = None; import kernelweave; kernelweave.KernelKMeans;"
        "print([m for m in 'numba matplotlib pandas torch cupy dask tslearn typer'.split() if sys.modules.get(m)])"
    )
    assert in_fresh_python(code) == "[]"


def test_the_command_line_loads_without_the_numerical_stack():
    code = "import sys, kernelweave.cli; print([m for m in ('numpy', 'sklearn', 'numba') if m in sys.modules])"
    assert in_fresh_python(code) == "[]"


def test_importing_the_package_changes_no_random_state_and_no_warning_filter():
    code = (
        "import numpy as np, warnings, sklearn.cluster;"
        "before = np.random.get_state()[1].tobytes(), len(warnings.filters);"
        "import kernelweave; kernelweave.KernelKMeans; kernelweave.metrics; kernelweave.datasets;"
        "print(before == (np.random.get_state()[1].tobytes(), len(warnings.filters)))"
    )
    assert in_fresh_python(code) == "True"


# Programs travel between the processes of one cluster as Dask's own tasks do; nothing comes from a file.
UNPICKLES = {"backends/blocks/dask_workers.py": ("pickle import",)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_opens_with_a_docstring_and_never_unpickles_or_seeds_globally(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    allowed = UNPICKLES.get(str(path.relative_to(PACKAGE)), ())
    for forbidden in ("import pickle", "pickle import", "np.random.seed", "allow_pickle=True", "fastmath=True"):
        assert forbidden not in text or forbidden in allowed


def test_layers_are_folders_and_nothing_else_lies_at_the_top():
    found = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()} - {"__pycache__"}
    layers = {"foundation", "inputs", "backends", "partitions", "kernels", "solvers", "estimators", "datasets"}
    layers |= {"persistence", "preprocessing", "evaluation", "cli"}
    files = {"__init__.py", "__main__.py"}
    files |= {"explain.py", "metrics.py", "model_selection.py", "plots.py", "report.py"}
    assert found == layers | files


def test_one_estimator_does_not_load_the_others():
    code = (
        "import sys; from kernelweave import KernelKMeans; from kernelweave.estimators.registry import HOMES;"
        "homes = {f'kernelweave.estimators.{home}' for home in HOMES.values()};"
        "print(sorted(homes & set(sys.modules)))"
    )
    assert in_fresh_python(code) == "['kernelweave.estimators.kmeans.kernel_kmeans']"
