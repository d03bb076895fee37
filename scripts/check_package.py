"""Build the wheel and the source distribution, check both, and use each from an empty environment.

``python scripts/check_package.py`` builds into ``dist`` and tries both files with the Python that runs it;
``--python python3.12 python3.13`` names other ones. Each file is installed into a new environment with nothing beside
what it asks for. There, in an empty folder, ``kernelweave demo`` runs, then a round from files: two tables are
clustered, new rows assigned, and a report is written. Needs ``build`` and ``twine``.
"""

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
CENTRES = {"left": (0.0, 0.0), "right": (6.0, 0.0), "top": (3.0, 6.0)}
PER_CENTRE = 30
NEW_PER_CENTRE = 4


def run(command: list, folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command and return what it prints; end with that where it fails."""
    found = subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{found.stdout}{found.stderr}")
    return found.stdout


def build(folder: Path) -> list[Path]:
    """Build both distributions into a folder and check what a package index would show of them."""
    for old in folder.glob("kernelweave-*"):
        old.unlink()
    run([sys.executable, "-m", "build", "--outdir", folder, ROOT], ROOT)
    files = sorted(folder.glob("kernelweave-*"))
    print(run([sys.executable, "-m", "twine", "check", "--strict", *files], ROOT).strip())
    for file in files:
        print(f"{file.name}: {file.stat().st_size / 1000:,.0f} kB")
    return files


def write_tables(folder: Path) -> None:
    """Write two tables of three groups of samples, and two of new samples."""
    chance = random.Random(0)
    for stem, per_centre in (("", PER_CENTRE), ("new_", NEW_PER_CENTRE)):
        ids = [f"{stem}{name}{number}" for name in CENTRES for number in range(per_centre)]
        for view, columns in (("place", 2), ("size", 3)):
            with open(folder / f"{stem}{view}.csv", "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["id", *(f"{view}{column}" for column in range(columns))])
                for each in ids:
                    centre = CENTRES[each.removeprefix(stem).rstrip("0123456789")]
                    writer.writerow([each, *(round(centre[c % 2] + chance.gauss(0, 0.5), 4) for c in range(columns))])


def groups(path: Path, stem: str = "") -> dict[str, set[str]]:
    """Return the labels of each group of samples in a file of labels."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, set[str]] = {name: set() for name in CENTRES}
    for row in rows:
        found[row["id"].removeprefix(stem).rstrip("0123456789")].add(row["label"])
    expected = len(CENTRES) * (NEW_PER_CENTRE if stem else PER_CENTRE)
    if len(rows) != expected:
        raise SystemExit(f"{path.name} has {len(rows)} rows; {expected} were expected.")
    return found


def files_round(kernelweave: Path, folder: Path, environment: dict[str, str]) -> None:
    """Cluster two tables, assign new rows and write a report; the three groups must be found."""
    write_tables(folder)
    run([kernelweave, "cluster", "place.csv", "size.csv", "-k", 3, "-o", "out"], folder, environment)
    new = ["place=new_place.csv", "size=new_size.csv"]
    run([kernelweave, "predict", "out/model.kwm", *new, "-o", "new.csv"], folder, environment)
    run([kernelweave, "report", "out/model.kwm", "place.csv", "size.csv", "-o", "page.html"], folder, environment)
    found = groups(folder / "out/labels.csv")
    if sorted(map(len, found.values())) != [1, 1, 1] or len(set.union(*found.values())) != 3:
        raise SystemExit(f"The three groups were not found: {found}")
    if groups(folder / "new.csv", "new_") != found:
        raise SystemExit("New samples were not assigned to the groups that they belong to.")
    if "</html>" not in (folder / "page.html").read_text(encoding="utf-8"):
        raise SystemExit("The report is not a whole page.")


def try_out(file: Path, python: str) -> str:
    """Install a distribution into an empty environment, use it from an empty folder, and return the times as a row."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        work = place / "work"
        work.mkdir()
        # Nothing of this checkout or of the caller's environment is to be found from there.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment["NUMBA_CACHE_DIR"] = str(place / "numba")
        environment["PYTHONIOENCODING"] = "utf-8"
        started = time.perf_counter()
        run([python, "-m", "venv", place / "env"], work)
        programs = place / "env" / PROGRAMS
        run([programs / "python", "-m", "pip", "install", "--quiet", file], work, environment)
        installed = time.perf_counter()
        version = run([programs / "python", "-c", "import platform; print(platform.python_version())"], work).strip()
        named = run([programs / "kernelweave", "--version"], work, environment).split()[-1]
        if named != file.name.split("-")[1].removesuffix(".tar.gz"):
            raise SystemExit(f"{file.name} calls itself {named}.")
        before_demo = time.perf_counter()
        if "graph fusion" not in (shown := run([programs / "kernelweave", "demo"], work, environment)):
            raise SystemExit(f"kernelweave demo printed no table:\n{shown}")
        after_demo = time.perf_counter()
        files_round(programs / "kernelweave", work, environment)
        ended = time.perf_counter()
    kind = "wheel" if file.suffix == ".whl" else "sdist"
    seconds = (installed - started, after_demo - before_demo, ended - after_demo)
    return f"| {version} | {kind} | " + " | ".join(f"{each:.0f} s" for each in seconds) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters to try both files with")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for both files")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    files = build(asked.output.resolve())
    print("\n| Python | file | install | demo | cluster, predict, report |\n|---|---|---|---|---|", flush=True)
    for python in asked.python:
        for file in files:
            print(try_out(file, python), flush=True)


if __name__ == "__main__":
    main()
