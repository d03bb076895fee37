"""The suite itself: every test asserts something, named markers exist, and continuous integration skips nothing."""

import ast
import gc
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"

pytestmark = pytest.mark.skipif(not (ROOT / "scripts").is_dir(), reason="the scripts are not part of this copy")


# Assertions


@lru_cache(maxsize=4)
def tree(path):
    return ast.parse(path.read_bytes())


@lru_cache(maxsize=4)
def functions(path):
    """Return the functions of a file, also those in classes and functions, in lists by their names."""
    found = {}
    waiting = [tree(path)]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                waiting.append(node)
    return found


@lru_cache(maxsize=4)
def imported(path):
    """Return the file and name of what a file imports from other tests, by the name it has here."""
    names = {}
    for node in tree(path).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            home = ROOT / (node.module.replace(".", "/") + ".py")
            names |= {alias.asname or alias.name: (home, alias.name) for alias in node.names if home.is_file()}
    return names


def asserts_itself(function):
    """Return whether a function has an assert, or calls what numpy.testing, pytest or Playwright assert with."""
    waiting = [function]
    while waiting:
        node = waiting.pop()  # the last statements first: there it is decided early
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = called(node)
            if name in ("raises", "warns", "fail", "expect") or name.startswith("assert_"):
                return True
        waiting.extend(ast.iter_child_nodes(node))
    return False


def called(call):
    """Return the last name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def asserts(path, function):
    """Return whether a function asserts something itself or through functions of its file or of other tests."""
    waiting = [(path, function)]
    seen = set()
    while waiting:
        home, node = waiting.pop()
        if asserts_itself(node):
            return True
        for name in {called(part) for part in ast.walk(node) if isinstance(part, ast.Call)}:
            file, original = (home, name) if name in functions(home) else imported(home).get(name, (home, name))
            if (file, original) not in seen:
                seen.add((file, original))
                waiting += [(file, helper) for helper in functions(file).get(original, [])]
    return False


@pytest.fixture
def no_collections():
    """Syntax trees are many small objects without cycles: looking for garbage among them takes most of the time."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
def test_every_test_asserts_something():
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name, nodes in functions(path).items()
        for node in nodes
        if name.startswith("test_") and not asserts(path, node)
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("run()", False),
        ("check()", True),
        ("through()", True),
        ("with pytest.raises(ValueError): run()", True),
        ("np.testing.assert_allclose(run(), 1.0)", True),
        ("for _ in range(2):\n        assert run()", True),
        ("unknown()", False),
    ],
)
def test_an_assertion_is_known_directly_and_through_helpers(tmp_path, body, wanted):
    path = tmp_path / "test_case.py"
    helpers = "def run(): return through\ndef check():\n    assert run()\ndef through(): check()\n"
    path.write_text(f"{helpers}def test_case():\n    {body}\n", encoding="utf-8")
    assert asserts(path, functions(path)["test_case"][0]) is wanted


# Markers


def markers(page):
    """Return the markers that the pytest commands of a page name."""
    expressions = re.findall(r"pytest -m (\w+)|-m [\"']([^\"'\n]+)", page.read_text(encoding="utf-8"))
    words = " ".join(plain or quoted for plain, quoted in expressions).split()
    return {word.strip("()") for word in words} - {"not", "and", "or"}


def test_markers_that_are_named_exist():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = [line.split(":")[0] for line in settings["tool"]["pytest"]["ini_options"]["markers"]]
    known = {name for name in names if "(" not in name}  # others are not chosen by: they say who runs a test
    assert markers(ROOT / "CONTRIBUTING.md") == known
    for page in (ROOT / "Makefile", ROOT / "README.md", *(ROOT / "docs").glob("[!_]*/*.md")):
        assert markers(page) <= known, page
    assert markers(ROOT / "Makefile") == {"timing"}


# Continuous integration


@pytest.fixture
def ci(tmp_path):
    """Return a function that runs .ci/run in a bare checkout, whose targets print a line, and its surroundings."""
    checkout = tmp_path / "checkout"
    tools = tmp_path / "tools"
    (checkout / ".ci").mkdir(parents=True)
    tools.mkdir()
    shutil.copy(ROOT / ".ci/run", checkout / ".ci/run")
    targets = "%:\n\t@echo $@ with $(KERNELWEAVE_DATA), CI $(KERNELWEAVE_CI)\n"
    (checkout / "Makefile").write_text(targets)
    folder = tmp_path / "data"
    for name in ("bash", "dirname", "echo", "make", "sh"):
        (tools / name).symlink_to(shutil.which(name))

    def run(*, browser, data):
        (tools / "chromium").unlink(missing_ok=True)
        if browser:
            (tools / "chromium").symlink_to(shutil.which("sh"))
        if data:
            folder.mkdir(exist_ok=True)
        command = [shutil.which("bash"), checkout / ".ci/run"]
        environment = {"PATH": str(tools), "KERNELWEAVE_DATA": str(folder)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False), folder

    return run


def test_continuous_integration_ends_where_data_or_browser_are_missing(ci):
    missing, folder = ci(browser=True, data=False)
    assert missing.returncode == 1
    assert f"{folder} is not a folder" in missing.stderr
    blind, _ = ci(browser=False, data=True)
    assert blind.returncode == 1
    assert "install chromium" in blind.stderr
    assert missing.stdout == blind.stdout == ""
    whole, folder = ci(browser=True, data=True)
    assert (whole.returncode, whole.stderr) == (0, "")
    said = [line for line in whole.stdout.splitlines() if not line.startswith("make")]
    assert said == [f"{target} with {folder}, CI 1" for target in ("environments", "test", "minimum")]


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "1")], ids=["here", "worker"])
def test_continuous_integration_counts_a_skipped_test_as_failed(tmp_path, workers):
    shutil.copy(ROOT / "conftest.py", tmp_path / "conftest.py")
    cases = """
        import pytest
        def test_passes(): assert True
        @pytest.mark.xfail(reason="known")
        def test_fails_as_expected(): assert False
        def test_needs_two_cores(): pytest.skip("there is one core only")
        @pytest.mark.skipif(True, reason="no data")
        def test_needs_data(): assert True
        @pytest.fixture
        def missing(): raise OSError("no set-up")
        def test_needs_a_set_up(missing): assert True
        @pytest.fixture
        def left():
            yield
            raise OSError("no tear-down")
        def test_needs_a_tear_down(left): assert True
        """
    (tmp_path / "test_cases.py").write_text(re.sub("^ {8}", "", cases, flags=re.MULTILINE), encoding="utf-8")
    module = "import pytest\npytest.skip('no browser', allow_module_level=True)\n"
    (tmp_path / "test_module.py").write_text(module, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", *workers]
    command = [sys.executable, "-m", "pytest", *options]
    environment = os.environ | {"KERNELWEAVE_CI": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "2 passed, 1 skipped, 1 xfailed, 4 errors" in result.stdout
    assert "everything must run: no data" in result.stdout
    assert "everything must run: no browser" in result.stdout
