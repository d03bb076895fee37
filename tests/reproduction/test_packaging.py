"""What is distributed: the wheel is the library alone, the source distribution has experiments and tests too."""

import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
wheel = pytest.importorskip("hatchling.builders.wheel")
sdist = pytest.importorskip("hatchling.builders.sdist")


def folders(names):
    return {name.split("/")[0] for name in names}


def test_the_wheel_holds_the_library_and_nothing_else(tmp_path):
    (path,) = wheel.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert {name for name in folders(names) if not name.endswith(".dist-info")} == {"kernelweave"}
    library = {each.relative_to(ROOT).as_posix() for each in (ROOT / "kernelweave").rglob("*.py")}
    assert library == {name for name in names if name.endswith(".py")}
    assert "kernelweave/datasets/contents.json" in names


def test_the_source_distribution_has_the_experiments_and_the_tests(tmp_path):
    (path,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"kernelweave", "reproduction", "tests"} <= folders(names)
    assert "reproduction/command.py" in names
    assert "reproduction/rows/minmax.py" in names
