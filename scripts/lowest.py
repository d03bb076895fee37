"""The lowest versions that pyproject.toml declares, as constraints for pip, and whether they are what is installed.

``python scripts/lowest.py plots io`` prints ``numpy==2.0`` and so on for the core and the extras named.
``python scripts/lowest.py --check plots io`` compares them with the environment that it runs in.
"""

import argparse
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=(?P<version>[0-9][0-9.]*)(?:,[^;]*)?")


def lowest(project: dict, extras: list[str]) -> dict[str, str]:
    """Return the lowest version of every requirement of the core and of the extras."""
    optional = project["optional-dependencies"]
    unknown = sorted(set(extras) - set(optional))
    if unknown:
        raise SystemExit(f"pyproject.toml has no extra {unknown[0]!r}; it has {', '.join(optional)}.")
    versions: dict[str, str] = {}
    for requirement in [*project["dependencies"], *(line for extra in extras for line in optional[extra])]:
        found = REQUIREMENT.fullmatch(requirement)
        if found is None:
            raise SystemExit(f"{requirement!r} in pyproject.toml has no lowest version; write it as name>=version.")
        if versions.setdefault(found["name"], found["version"]) != found["version"]:
            first = versions[found["name"]]
            raise SystemExit(f"pyproject.toml has two lowest versions of {found['name']}: {first}, {found['version']}.")
    return versions


def release(text: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at its end, so that 2.0 and 2.0.0 are equal."""
    numbers = [int(number) for number in re.match(r"[0-9]+(?:\.[0-9]+)*", text)[0].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def differences(versions: dict[str, str]) -> list[str]:
    """Return a sentence for each requirement whose installed version is not the lowest."""
    found = []
    for name, wanted in versions.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            found.append(f"{name} is not installed; the lowest version is {wanted}.")
            continue
        if release(installed) != release(wanted):
            found.append(f"{name} {installed} is installed; the lowest version is {wanted}.")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extras", nargs="*", help="extras of pyproject.toml beside the core")
    parser.add_argument("--check", action="store_true", help="compare with what is installed")
    asked = parser.parse_args(arguments)
    with open(ROOT / "pyproject.toml", "rb") as file:
        versions = lowest(tomllib.load(file)["project"], asked.extras)
    if not asked.check:
        print("\n".join(f"{name}=={number}" for name, number in versions.items()))
        return 0
    found = differences(versions)
    print("\n".join(found) if found else f"{len(versions)} requirements are installed at their lowest versions.")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
