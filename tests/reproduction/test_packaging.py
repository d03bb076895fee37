"""What is distributed: the wheel is the library alone, the source distribution is the whole project."""

import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
wheel = pytest.importorskip("hatchling.builders.wheel")
sdist = pytest.importorskip("hatchling.builders.sdist")


VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
#: Folders that builds and tests write; none of them is distributed.
WRITTEN = {"__pycache__", "_build", "gallery", "generated", "reproduce-cache"}


def own(path):
    """Return whether a file belongs to the project: source, a page, a setting, and not what a build has written."""
    return path.suffix in {".md", ".py", ".toml", ".yml"} and not WRITTEN & set(path.parts)


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
    assert path.endswith(f"kernelweave-{VERSION}-py3-none-any.whl")


def test_the_source_distribution_has_all_that_tests_and_documentation_need(tmp_path):
    (path,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    needed = ["kernelweave", "reproduction", "tests", "benchmarks", "docs", "examples", "scripts", "mutants", ".github"]
    for folder in needed:
        here = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if own(path)}
        assert here, folder
        assert here <= set(names), folder
    files = {"conftest.py", "Makefile", "pyproject.toml", ".ci/run", "changelog.d/README.md", "CITATION.cff", "LICENSE"}
    assert files | {path.name for path in ROOT.glob("*.md")} <= set(names)
