"""Move the fragments of changelog.d into CHANGELOG.md, under a version that is about to be released.

``python scripts/changelog.py 0.2.0`` dates the version today, ``--date 2027-01-31`` on another day. Entries are grouped
by their headings, those of the latest fragment first, and the fragments are deleted. If the version is already there,
entries are added to it. Read the result as somebody who has not followed the work, and reword it by hand.
"""

import argparse
import datetime
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARK = "<!-- releases -->\n"
HEADINGS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Performance")


def entries(text: str, name: str) -> dict[str, str]:
    """Return the entries of one fragment by their headings."""
    before, *rest = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    if before.strip() or not rest:
        raise SystemExit(f"{name} has text before its first heading or no heading; begin it with '### Added' or so.")
    found: dict[str, str] = {}
    for heading, body in zip(map(str.strip, rest[::2]), rest[1::2], strict=True):
        if heading not in HEADINGS:
            raise SystemExit(f"{name} has the heading {heading!r}; use one of {', '.join(HEADINGS)}.")
        if not body.strip():
            raise SystemExit(f"{name} has nothing under {heading!r}; write an entry or delete the heading.")
        found[heading] = f"{found[heading]}\n{body.strip()}" if heading in found else body.strip()
    return found


def sections(fragments: dict[str, str]) -> str:
    """Return the entries of all fragments, each heading once."""
    by_name = [entries(fragments[name], name) for name in sorted(fragments, reverse=True)]
    texts = []
    for heading in HEADINGS:
        bodies = [found[heading] for found in by_name if heading in found]
        if bodies:
            texts.append(f"### {heading}\n\n" + "\n".join(bodies) + "\n")
    return "\n".join(texts)


def released(changelog: str, fragments: dict[str, str], version: str, date: str) -> str:
    """Return the changelog with the fragments under the version."""
    if MARK not in changelog:
        raise SystemExit(f"CHANGELOG.md lacks the line {MARK.strip()!r}, below which versions are put.")
    head, tail = changelog.split(MARK)
    text = sections(fragments)
    title = re.compile(rf"^## {re.escape(version)} .*\n(?:(?!## ).*\n?)*", flags=re.MULTILINE)
    there = title.search(tail)
    if there is None:
        return f"{head}{MARK}\n## {version} ({date})\n\n{text}{tail}"
    return f"{head}{MARK}{tail[: there.start()]}{there[0].rstrip()}\n\n{text}\n{tail[there.end() :]}".rstrip() + "\n"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="the version, as 0.2.0")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="the day of the release")
    asked = parser.parse_args(arguments)
    paths = sorted((root / "changelog.d").glob("[0-9]*.md"))
    if not paths:
        raise SystemExit("changelog.d has no fragments: there is nothing to release.")
    changelog = root / "CHANGELOG.md"
    fragments = {path.name: path.read_text(encoding="utf-8") for path in paths}
    text = released(changelog.read_text(encoding="utf-8"), fragments, asked.version, asked.date)
    changelog.write_text(text, encoding="utf-8")
    for path in paths:
        path.unlink()
    print(f"{len(paths)} fragments are now under {asked.version} in CHANGELOG.md.")


if __name__ == "__main__":
    main()
