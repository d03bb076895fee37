"""Whether pyproject.toml, CITATION.cff, CHANGELOG.md and a tag name the same version.

``python scripts/release_version.py v0.1.0`` compares all four, without a tag the three files. The version is that of
pyproject.toml: the package and the documentation read it from what is installed.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def disagreements(pyproject: str, citation: str, changelog: str, tag: str | None = None) -> list[str]:
    """Return a sentence for each place that names another version or date than pyproject.toml and the changelog."""
    version = tomllib.loads(pyproject)["project"]["version"]
    found = []
    cited = dict(re.findall(r"^(version|date-released): \"?([^\"\n]+)\"?$", citation, flags=re.MULTILINE))
    if cited.get("version") != version:
        found.append(f"CITATION.cff has version {cited.get('version')}; pyproject.toml has {version}.")
    dated = re.search(rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$", changelog, flags=re.MULTILINE)
    if dated is None:
        found.append(f"CHANGELOG.md has no heading '## {version} (date)'; run scripts/changelog.py {version}.")
    elif cited.get("date-released") != dated[1]:
        found.append(f"CITATION.cff has the date {cited.get('date-released')}; CHANGELOG.md has {dated[1]}.")
    if tag is not None and tag != f"v{version}":
        found.append(f"The tag is {tag}; pyproject.toml has {version}, whose tag is v{version}.")
    return found


def main(arguments: list[str]) -> int:
    files = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")
    found = disagreements(*((ROOT / name).read_text(encoding="utf-8") for name in files), *arguments[:1])
    print("\n".join(found) if found else "All places name the same version.")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
