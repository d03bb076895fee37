"""What is released and how: lowest versions, the changelog, one version everywhere, and the workflow of public CI."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / "scripts").is_dir(), reason="the scripts are not part of this copy")

PROJECT = {
    "dependencies": ["numpy>=2.0", "typer>=0.16"],
    "optional-dependencies": {"io": ["pandas>=2.2.2,<4"], "dask": ["dask[array,dataframe]>=2024.8"], "bad": ["zarr"]},
}
CHANGELOG = "# Changelog\n\n<!-- releases -->\n\n## 0.1.0 (2026-11-17)\n\n### Added\n\n- First.\n"


def script(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        return importlib.import_module(name)


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# Lowest versions


def test_lowest_versions_are_those_declared_without_extras_of_requirements():
    lowest = script("lowest")
    core = {"numpy": "2.0", "typer": "0.16"}
    assert lowest.lowest(PROJECT, []) == core
    assert lowest.lowest(PROJECT, ["io", "dask"]) == core | {"pandas": "2.2.2", "dask": "2024.8"}


@pytest.mark.parametrize(
    ("project", "extras", "message"),
    [
        (PROJECT, ["bad"], "'zarr' in pyproject.toml has no lowest version"),
        (PROJECT, ["none"], "no extra 'none'; it has io, dask, bad"),
        (PROJECT | {"dependencies": ["pandas>=2.1"]}, ["io"], "two lowest versions of pandas: 2.1, 2.2.2"),
    ],
)
def test_requirements_without_one_lowest_version_are_refused(project, extras, message):
    with pytest.raises(SystemExit, match=re.escape(message)):
        script("lowest").lowest(project, extras)


def test_installed_versions_are_compared_by_their_numbers(monkeypatch):
    lowest = script("lowest")
    installed = {"numpy": "2.0.0", "typer": "0.16.1", "rich": "13.7.0.post1"}

    def version(name):
        if name not in installed:
            raise lowest.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(lowest, "version", version)
    assert lowest.differences({"numpy": "2.0", "rich": "13.7"}) == []
    assert lowest.differences({"typer": "0.16", "scipy": "1.13"}) == [
        "typer 0.16.1 is installed; the lowest version is 0.16.",
        "scipy is not installed; the lowest version is 1.13.",
    ]


def test_the_script_prints_a_constraint_for_every_requirement_of_the_core_and_of_extras(capsys):
    lowest = script("lowest")
    assert lowest.main(["plots", "io"]) == 0
    lines = capsys.readouterr().out.split()
    project = pyproject()["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["plots"]]
    assert {line.replace(">=", "==") for line in wanted} <= set(lines)
    assert len(lines) == len(set(lines)) == len(wanted) + len(project["optional-dependencies"]["io"])


def test_every_optional_requirement_has_one_lowest_version():
    project = pyproject()["project"]
    everything = script("lowest").lowest(project, list(project["optional-dependencies"]))
    assert {"numpy", "matplotlib", "pandas", "torch", "dask", "sphinx", "pytest"} <= set(everything)


# Changelog


def test_fragments_become_a_version_above_the_others_grouped_by_heading_the_latest_first():
    fragments = {
        "0031-a.md": "### Fixed\n\n- Old fault.\n\n### Added\n\n- Old thing.\n",
        "0032-b.md": "### Added\n\n- New thing,\n  in two lines.\n",
    }
    assert script("changelog").released(CHANGELOG, fragments, "0.2.0", "2027-01-31") == (
        "# Changelog\n\n<!-- releases -->\n\n## 0.2.0 (2027-01-31)\n\n"
        "### Added\n\n- New thing,\n  in two lines.\n- Old thing.\n\n### Fixed\n\n- Old fault.\n\n"
        "## 0.1.0 (2026-11-17)\n\n### Added\n\n- First.\n"
    )


def test_fragments_are_added_to_a_version_that_is_there():
    changelog = script("changelog")
    later = CHANGELOG.replace("## 0.1.0", "## 0.2.0 (2027-01-31)\n\n- Second.\n\n## 0.1.0")
    assert changelog.released(later, {"1.md": "### Changed\n\n- More.\n"}, "0.2.0", "2028-01-01") == later.replace(
        "- Second.\n", "- Second.\n\n### Changed\n\n- More.\n"
    )
    last = changelog.released(CHANGELOG, {"1.md": "### Changed\n\n- More.\n"}, "0.1.0", "2028-01-01")
    assert last == CHANGELOG + "\n### Changed\n\n- More.\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- No heading.\n", "1.md has text before its first heading or no heading"),
        ("### News\n\n- Thing.\n", "1.md has the heading 'News'; use one of Added, Changed"),
        ("### Added\n\n### Fixed\n\n- Fault.\n", "1.md has nothing under 'Added'"),
    ],
)
def test_fragments_that_cannot_be_placed_are_refused(text, message):
    with pytest.raises(SystemExit, match=re.escape(message)):
        script("changelog").released(CHANGELOG, {"1.md": text}, "0.2.0", "2027-01-31")


def test_a_release_writes_the_changelog_and_deletes_the_fragments_alone(tmp_path, capsys):
    changelog = script("changelog")
    folder = tmp_path / "changelog.d"
    folder.mkdir()
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    (folder / "README.md").write_text("# Fragments\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="nothing to release"):
        changelog.main(["0.2.0"], tmp_path)
    (folder / "0031-a.md").write_text("### Added\n\n- Thing.\n", encoding="utf-8")
    changelog.main(["0.2.0", "--date", "2027-01-31"], tmp_path)
    assert [path.name for path in folder.iterdir()] == ["README.md"]
    assert "## 0.2.0 (2027-01-31)\n\n### Added\n\n- Thing.\n" in (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "1 fragments are now under 0.2.0" in capsys.readouterr().out


def test_fragments_that_are_here_can_be_released():
    changelog = script("changelog")
    fragments = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "changelog.d").glob("[0-9]*.md")}
    text = changelog.released((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), fragments, "99.0.0", "2099-01-01")
    assert "## 99.0.0 (2099-01-01)\n" in text


# One version


def test_all_places_name_the_same_version(capsys):
    assert script("release_version").main([]) == 0
    assert capsys.readouterr().out == "All places name the same version.\n"


def test_places_that_name_another_version_are_named():
    disagreements = script("release_version").disagreements
    project = '[project]\nversion = "0.1.0"\n'
    citation = 'version: 0.1.0\ndate-released: "2026-11-17"\n'
    assert disagreements(project, citation, CHANGELOG, "v0.1.0") == []
    assert disagreements(project, citation.replace("0.1.0", "0.0.9"), CHANGELOG) == [
        "CITATION.cff has version 0.0.9; pyproject.toml has 0.1.0."
    ]
    assert disagreements(project, citation.replace("11-17", "11-18"), CHANGELOG) == [
        "CITATION.cff has the date 2026-11-18; CHANGELOG.md has 2026-11-17."
    ]
    assert disagreements(project, citation, "# Changelog\n", "v0.1.1") == [
        "CHANGELOG.md has no heading '## 0.1.0 (date)'; run scripts/changelog.py 0.1.0.",
        "The tag is v0.1.1; pyproject.toml has 0.1.0, whose tag is v0.1.0.",
    ]


def test_the_citation_has_what_its_format_asks_for():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == pyproject()["project"]["license"]
    assert citation["authors"] == pyproject()["project"]["authors"]


# Public CI


def workflow():
    return yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))


def commands(jobs):
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def make_targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)[1].split()
    return {target for target in phony if re.search(rf"^{target}:", text, flags=re.MULTILINE)}


def test_commands_of_the_workflow_are_targets_scripts_and_tests_that_exist():
    found = "\n".join(commands(workflow()["jobs"]))
    targets = set(re.findall(r"\bmake (\w+)", found))
    assert {"lint", "test", "minimum", "package", "docs"} == targets
    assert targets <= make_targets()
    paths = re.findall(r"\b(?:tests|scripts)/[\w./]+", found)
    assert len(paths) > 5
    assert all((ROOT / path).exists() for path in paths)
    extras = re.search(r"-e \.\[([\w,]+)\]", found)[1].split(",")
    assert set(extras) <= set(pyproject()["project"]["optional-dependencies"])


def test_the_workflow_runs_on_three_systems_and_all_versions_of_python_that_are_declared():
    jobs = workflow()["jobs"]
    declared = [line.split(" :: ")[-1] for line in pyproject()["project"]["classifiers"] if "Python :: 3." in line]
    assert declared == ["3.11", "3.12", "3.13"]
    for name in ("tests", "tests-windows", "package"):
        assert jobs[name]["strategy"]["matrix"]["python"] == declared
    systems = {*jobs["tests"]["strategy"]["matrix"]["system"], jobs["tests-windows"]["runs-on"]}
    assert systems == {"ubuntu-latest", "macos-latest", "windows-latest"}


def test_a_release_waits_for_all_other_jobs_and_is_trusted_without_a_password():
    jobs = workflow()["jobs"]
    assert set(jobs["release"]["needs"]) == set(jobs) - {"release"}
    assert jobs["release"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")


def test_templates_of_issues_are_forms_that_can_be_read():
    forms = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert len(forms) == 3
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= set(form)
        questions = [part for part in form["body"] if part["type"] != "markdown"]
        assert len({part["id"] for part in questions}) == len(questions)
        assert any(part.get("validations", {}).get("required") for part in questions)


def test_targets_that_pages_for_contributors_name_exist():
    for name in ("CONTRIBUTING.md", ".github/pull_request_template.md", "docs/develop/releasing.md", "docs/install.md"):
        named = re.findall(r"`make (\w+)", (ROOT / name).read_text(encoding="utf-8"))
        assert set(named) <= make_targets(), name


# The round from files that a package is tried with


def test_tables_of_the_round_have_the_same_ids_in_both_views(tmp_path):
    check = script("check_package")
    check.write_tables(tmp_path)
    for stem, each in (("", check.PER_CENTRE), ("new_", check.NEW_PER_CENTRE)):
        tables = [(tmp_path / f"{stem}{view}.csv").read_text(encoding="utf-8") for view in ("place", "size")]
        ids = [[line.split(",")[0] for line in table.splitlines()[1:]] for table in tables]
        assert ids[0] == ids[1]
        assert len(set(ids[0])) == 3 * each


def test_labels_of_the_round_are_read_by_group_and_counted(tmp_path):
    check = script("check_package")
    file = tmp_path / "labels.csv"
    rows = [f"new_{name}{i},{label}" for label, name in enumerate(check.CENTRES) for i in range(check.NEW_PER_CENTRE)]
    file.write_text("\n".join(["id,label", *rows]), encoding="utf-8")
    assert check.groups(file, "new_") == {"left": {"0"}, "right": {"1"}, "top": {"2"}}
    file.write_text("\n".join(["id,label", *rows[1:]]), encoding="utf-8")
    with pytest.raises(SystemExit, match="has 11 rows; 12 were expected"):
        check.groups(file, "new_")
