"""The structure of the package, counted: what was once mended must not come back."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / "scripts").is_dir(), reason="the scripts are not part of this copy")


@pytest.fixture(scope="module")
def counts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        house = importlib.import_module("house")
        return house.survey(ROOT, house.STRUCTURE)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("isinstance on kernel operators in solvers", 0),
        ("isinstance on kernel operators outside the folder of KernelOperator", 0),
        ("import_module outside registries", 0),
        ("intermediate estimator classes", 6),
        ("underscored modules imported from other folders", 0),
        ("underscored names imported from other modules", 0),
    ],
)
def test_counts_of_the_structure_do_not_grow(counts, name, most):
    count = counts[name]
    assert int(count.value) <= most, "\n".join(count.places)


def test_hardly_any_assignment_packs_several_targets_into_one_line(counts):
    (name,) = (name for name in counts if name.startswith("packed assignments"))
    share = float(counts[name].value.split(" %")[0])
    assert share < 2.0, "\n".join(counts[name].places)


def test_no_file_name_has_an_underscore_in_front():
    names = [path for path in (ROOT / "kernelweave").rglob("_*.py") if not path.name.startswith("__")]
    assert names == []


@pytest.mark.parametrize("family", ["kmeans", "spectral", "mixtures", "margin", "graph", "comparators"])
def test_a_family_has_a_folder_of_its_name_for_solvers_estimators_and_tests(family):
    for home in ("kernelweave/solvers", "kernelweave/estimators", "tests"):
        assert (ROOT / home / family / "__init__.py").is_file()
