"""The catalogue: one module of this folder per table or group of tables.

To add a table, write a module here that defines ``EXPERIMENTS``, a tuple of :class:`~reproduction.Experiment`. Nothing
else needs to change: the command line, the reports and the golden tests go through the catalogue.
"""

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from kernelweave.foundation.errors import ParameterError
from reproduction.experiment import Experiment
from reproduction.quick import with_quick_cells


def catalogue() -> dict[str, Experiment]:
    """Return every declared experiment by its id, in the order of modules and declarations."""
    declared = discover(sys.modules[__name__])
    return {experiment.id: experiment for experiment in with_quick_cells(declared.values())}


def by_module() -> dict[str, list[Experiment]]:
    """Return the experiments by the module that declares them."""
    known = catalogue()
    package = sys.modules[__name__]
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in _modules(package)}
    return {name: [known[each.id] for each in module.EXPERIMENTS] for name, module in modules.items()}


def _modules(package: ModuleType) -> list[str]:
    return sorted(entry.name for entry in pkgutil.iter_modules(package.__path__) if not entry.name.startswith("_"))


def discover(package: ModuleType) -> dict[str, Experiment]:
    """Return the experiments of all public modules of ``package`` by their ids."""
    known: dict[str, Experiment] = {}
    for name in _modules(package):
        _add(known, importlib.import_module(f"{package.__name__}.{name}"))
    return known


def _add(known: dict[str, Experiment], module: ModuleType) -> None:
    declared = getattr(module, "EXPERIMENTS", ())
    if not declared:
        raise TypeError(f"{module.__name__} does not declare EXPERIMENTS; each module of the catalogue must.")
    for experiment in declared:
        if experiment.id in known:
            raise ValueError(f"Two experiments are called {experiment.id!r}; the second is in {module.__name__}.")
        known[experiment.id] = experiment


def select(ids: Sequence[str], *, quick: bool = False) -> list[Experiment]:
    """Return the experiments of these ids, each once; ``"all"`` means every one.

    With ``quick``, ``"all"`` leaves out those without a quick cell, and naming one of them is an error.
    """
    known = catalogue()
    unknown = [name for name in ids if name not in known and name != "all"]
    if unknown:
        raise ParameterError(f"There is no experiment called {', '.join(map(repr, unknown))}; {_known(known)}.")
    slow = [name for name in ids if quick and name != "all" and not known[name].selected(quick=True)]
    if slow:
        raise ParameterError(f"{', '.join(map(repr, slow))}: no cell is in the quick subset; leave quick out.")
    chosen = known if "all" in ids else dict.fromkeys(ids)
    return [known[name] for name in chosen if known[name].selected(quick=quick)]


def _known(known: dict[str, Experiment]) -> str:
    return f"'list' shows the {len(known)} known ones"
