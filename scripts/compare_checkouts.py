"""Show that two checkouts give the same labels at a similar speed, both measured in the same run.

``python scripts/compare_checkouts.py labels OLD [NEW]`` fits every public estimator in both, on several data sets, with
several seeds and with every named option of its parameters, and exits with 1 if anything differs. ``speed OLD [NEW]``
times workloads in both by turns. NEW is by default the checkout that holds this script. Every process has its checkout
as PYTHONPATH and as working folder; the interpreter is the one that runs this script.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from checkout_processes import IMPORT_NAME, WORKER, output, timed
from sklearn.metrics import adjusted_rand_score

SEEDS = (0, 1, 2)
TOLERANCE = 1e-9


# Labels


def cases_of(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fits of one estimator, made only with what both checkouts take."""
    options = {key: [v for v in old["options"][key] if v in new["options"][key]] for key in shared(old, new)}
    kernel_matters = {"divergence": "kernel"} if "divergence" in options else {}
    if "weighted" in options and kernel_matters:
        kernel_matters["weighted"] = False
    seeds = SEEDS if "random_state" in options else SEEDS[:1]
    multi_view = "views" in options
    cases: list[dict[str, Any]] = []

    def add(label: str, data: str, seeds: tuple[int, ...] = (0,), form: str = "", **changes: Any) -> None:
        plan = {"as_views": multi_view, "weights": False, "form": form or old["form"], "estimator": name, "data": data}
        plan |= {key: changes.pop(key) for key in ("as_views", "weights") if key in changes}
        for seed in seeds:
            small = {"n_clusters": None, "n_init": 3, "random_state": seed}
            params = {key: value for key, value in small.items() if key in options} | changes
            cases.append({**plan, "params": params, "key": f"{name}, {label}, seed {seed}"})

    for data in ("blobs", "rings", "digits"):
        add(data, data, seeds)
    if old["sparse"] and new["sparse"]:
        add("sparse table", "sparse", seeds, "graph" if old["form"] == "kernel" else "")
    if old["weights"] and new["weights"]:
        add("blobs, weights", "blobs", seeds, weights=True)
    if multi_view:
        add("blobs, one table", "blobs", seeds, as_views=False)
        add("blobs, columns as views", "blobs", seeds, as_views=False, views=None)
    if "kernel_params" in options:
        add("blobs, gamma=0.05", "blobs", seeds, kernel="rbf", kernel_params={"gamma": 0.05}, **kernel_matters)
    for parameter, values in options.items():
        partners = kernel_matters if parameter == "kernel" else {}
        for value in values:
            label = f"shares, {parameter}={value}"
            if value == "precomputed":
                add(label, "shares", seeds, parameter, **partners, **{parameter: value})
            else:
                add(label, "shares", **partners, **{parameter: value})
    return cases


def shared(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [name for name in old["options"] if name in new["options"]]


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return how the results of one case differ."""
    if ("error" in old) != ("error" in new):
        return [f"fails in the {'new' if 'error' in new else 'old'} checkout only: {(old | new)['error']}"]
    notes = []
    for field in sorted(set(old) | set(new)):
        name = field.rstrip("_").replace("_", " ")
        if field not in old or field not in new:
            notes.append(f"{name} in the {'new' if field in new else 'old'} checkout only")
        elif field == "error":
            if str(old[field]).split(":")[0] != str(new[field]).split(":")[0]:
                notes.append(f"refused with '{old[field]}' and now with '{new[field]}'")
        elif old[field].shape != new[field].shape:
            notes.append(f"{name} had shape {old[field].shape} and now {new[field].shape}")
        elif field in ("labels", "predictions"):
            if not np.array_equal(old[field], new[field]):
                notes.append(f"{name} differ (ARI {adjusted_rand_score(old[field], new[field]):.4f})")
        elif not np.allclose(old[field], new[field], rtol=TOLERANCE, atol=1e-14, equal_nan=True):
            gap = np.max(np.abs(old[field] - new[field]) / np.maximum(np.abs(old[field]), 1e-300))
            notes.append(f"{name} differs by rel {gap:.1e}")
    return notes


def results(checkout: Path, cases: list[dict[str, Any]], folder: Path, threads: int) -> list[dict[str, Any]]:
    """Fit all cases in one checkout and return what came of each."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps(cases), encoding="utf-8")
    fields: list[dict[str, Any]] = [{} for _ in cases]
    output(checkout, str(WORKER), "fit", str(plan), str(folder / "results.npz"), threads=threads)
    with np.load(folder / "results.npz") as arrays:
        for key in arrays:
            at, _, field = key.partition(":")
            fields[int(at)][field] = arrays[key]
    return fields


def unlike(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the parameters and options that only one checkout has, and which are therefore not compared."""
    notes = []
    for one, other, where in ((old["options"], new["options"], "old"), (new["options"], old["options"], "new")):
        for parameter, values in one.items():
            if parameter not in other:
                notes.append(f"parameter {parameter} in the {where} checkout only, not compared")
            else:
                rest = [value for value in values if value not in other[parameter]]
                notes += [f"{parameter}={value} in the {where} checkout only, not compared" for value in rest]
    return notes


def compare_labels(options: argparse.Namespace) -> int:
    old, new = (json.loads(output(checkout, str(WORKER), "describe")) for checkout in (options.old, options.new))
    names = chosen(sorted(set(old) | set(new)), options.only)
    for name in set(options.expect_different) - set(names):
        raise SystemExit(f"{name} is expected to differ but is not among the estimators: {', '.join(names)}.")
    counts: Counter[str] = Counter()
    different: Counter[str] = Counter()
    cases = []
    for name in names:
        if name not in old or name not in new:
            print(f"{name}: in the {'old' if name in old else 'new'} checkout only")
            different[name] += 1
            continue
        for ability in ("weights", "sparse", "form"):
            if old[name][ability] != new[name][ability]:
                print(f"{name}: {ability} was {old[name][ability]} and is {new[name][ability]}")
                different[name] += 1
        notes = unlike(old[name], new[name])
        counts["parameters or options not compared"] += len(notes)
        for note in notes:
            print(f"{name}: {note}")
        cases += cases_of(name, old[name], new[name])
    with tempfile.TemporaryDirectory() as folder:
        fitted = [results(checkout, cases, Path(folder), options.threads) for checkout in (options.old, options.new)]
    for case, before, after in zip(cases, *fitted, strict=True):
        notes = differences(before, after)
        outcome = "different" if notes else f"refused by both ({before['error']})" if "error" in before else "same"
        counts[outcome.split(" (")[0]] += 1
        different[case["estimator"]] += bool(notes)
        if notes or not options.brief:
            print(f"{case['key']}: {'; '.join(notes) or outcome}")
    print(f"\n{len(cases)} cases: " + ", ".join(f"{number} {outcome}" for outcome, number in (+counts).items()))
    unexpected = {name for name in +different if name not in options.expect_different}
    for name, number in (+different).items():
        print(f"{name}: {number} different{'' if name in unexpected else ', as expected'}")
    return 1 if unexpected else 0


# Speed


def compare_speed(options: argparse.Namespace) -> int:
    names = chosen([*output(options.new, str(WORKER), "names").splitlines(), IMPORT_NAME], options.only)
    print("Seconds on the clock; the last column is the ratio of the least processor times.\n")
    print("| workload | threads | old min | new min | new / old | old median | new median | new / old | processor |")
    print("|---|" + "---:|" * 8)
    ratios: dict[str, dict[str, float]] = {"clock": {}, "processor": {}}
    failures = 0
    for name in names:
        all_threads = options.threads or [1, 2]
        for threads in all_threads[:1] if name == IMPORT_NAME else all_threads:
            runs = timed([options.old, options.new], name, threads, options.seconds, options.rounds)
            if isinstance(runs[0], str):
                print(f"| {name} | {threads} | failed; old: {runs[0]}; new: {runs[1]} |" + " |" * 6, flush=True)
                failures += 1
                continue
            row = [name, str(threads)]
            for measure in (min, statistics.median):
                before, after = (measure(run.clock for run in column) for column in runs)
                row += [f"{before:.4f}", f"{after:.4f}", f"{after / before:.2f}"]
            for clock, values in ratios.items():
                before, after = (min(getattr(run, clock) for run in column) for column in runs)
                values[f"{name}, threads: {threads}"] = after / before
            print("|", " | ".join([*row, f"{after / before:.2f}"]), "|", flush=True)
    for clock, values in ratios.items():
        if values:
            worst = max(values, key=values.__getitem__)
            mean = statistics.geometric_mean(values.values())
            print(f"\nNew / old by the {clock}: {mean:.3f} in the mean, {values[worst]:.2f} at most ({worst}).")
    return 1 if failures else 0


def chosen(names: list[str], parts: list[str] | None) -> list[str]:
    """Return the names that are asked for, whole or in part; all of them unless something is asked for."""
    for part in parts or []:
        if not any(part in name for name in names):
            raise SystemExit(f"Nothing is called {part}; there is: {'; '.join(names)}.")
    return [name for name in names if not parts or any(part in name for part in parts)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    labels = commands.add_parser("labels", help="compare labels, objectives, view weights and predictions")
    labels.add_argument("--expect-different", action="append", default=[], metavar="NAME", help="may differ")
    labels.add_argument("--brief", action="store_true", help="print differences only")
    labels.add_argument("--threads", type=int, default=1)
    labels.set_defaults(run=compare_labels)
    speed = commands.add_parser("speed", help="time workloads by turns")
    speed.add_argument("--seconds", type=float, default=2.0, help="how long to repeat a workload, all rounds together")
    speed.add_argument(
        "--rounds", type=int, default=2, help="how often to start new processes; two runs in each at least"
    )
    speed.add_argument("--threads", type=int, action="append", help="repeatable; 1 and 2 unless given")
    speed.set_defaults(run=compare_speed)
    for command in (labels, speed):
        command.add_argument("old", type=Path)
        command.add_argument("new", type=Path, nargs="?", default=Path(__file__).resolve().parents[1])
        command.add_argument("--only", action="append", help="part of an estimator's or workload's name; repeatable")
    options = parser.parse_args()
    options.old = options.old.resolve()
    options.new = options.new.resolve()
    for checkout in (options.old, options.new):
        if not (checkout / "kernelweave").is_dir():
            parser.error(f"{checkout} is not a checkout: it has no folder kernelweave")
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
