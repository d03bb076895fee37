"""Rules that choose the number of clusters without labels, judged on cases where it is known.

``python -m benchmarks.cluster_counts`` runs all of ``cluster_count_cases``, the suite of ``python -m benchmarks`` some.
"""

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks import cluster_count_cases as known
from benchmarks._harness import Row

SUITE = "cluster counts"
GROUPS = ("synthetic", "null", "graph", "warnings", "omics", "noise", "real")
DRAWS = {"omics": 20, "noise": 200}
#: Of each kind of warning, what its sentence holds; the first that fits counts.
WORDING = (
    (known.NOT_TOGETHER, re.compile(r"not together")),
    (known.ONE_VIEW, re.compile(r"those of .* alone")),
    (known.OWN_GROUPS, re.compile(r"groups of its own|contradict")),
    (known.NO_GROUPS, re.compile(r"no groups")),
)
ANY_VIEW = 0


@dataclass(frozen=True)
class Answer:
    """What a rule says of one case."""

    n_clusters: int
    confidence: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """One case as it was answered, in values that JSON can hold; ``truth`` is None where the number is open."""

    group: str
    name: str
    seed: int
    truth: int | None
    answer: int
    confidence: str
    seconds: float
    warnings: list[str]
    expected: list[list]
    error: str = ""

    @property
    def hit(self) -> bool:
        return self.answer == self.truth

    @property
    def near(self) -> bool:
        """Whether the answer is within one or 20 %; clusters against none are never close."""
        if self.truth in (None, 1) or self.answer <= 1:
            return self.hit
        return abs(self.answer - self.truth) <= max(1.0, 0.2 * self.truth)


def library_choice(case, random_state=0):
    """Answer with the library's own rule; views are named so that its warnings can be read."""
    from kernelweave import GraphFusionClustering

    if case.graph is not None:
        model = GraphFusionClustering(n_clusters="auto", view_types="graph", random_state=random_state)
        model.fit(case.graph)
    else:
        model = GraphFusionClustering(n_clusters="auto", random_state=random_state)
        model.fit({f"view {v}": X for v, X in enumerate(case.views, 1)})
    return Answer(model.n_clusters_, model.confidence_, tuple(model.warnings_))


# --- Judging ----------------------------------------------------------------------------------------------------------


def judge(case, seed, choose, clock=time.perf_counter):
    """Return the record of one case; a rule that fails has answered wrongly."""
    start = clock()
    error = ""
    try:
        answer = choose(case)
    except Exception as reason:  # one failure must not lose the other cases
        answer = Answer(0, "failed")
        error = f"{type(reason).__name__}: {reason}"
    return Record(
        group=case.group,
        name=case.name,
        seed=seed,
        truth=case.n_clusters,
        answer=int(answer.n_clusters),
        confidence=answer.confidence,
        seconds=clock() - start,
        warnings=list(answer.warnings),
        expected=[[remark.kind, remark.view] for remark in case.expected_warnings],
        error=error,
    )


def remarks_of(sentences):
    """Return what warnings say of which view; sentences of no known kind are left out."""
    remarks = []
    for sentence in sentences:
        kind = next((kind for kind, wording in WORDING if wording.search(sentence)), None)
        if kind is not None:
            views = [int(v) for v in re.findall(r"view (\d+)", sentence)] or [ANY_VIEW]
            remarks += [(kind, view) for view in views]
    return remarks


def warnings_of(record):
    """Count the warnings of a record: main one found or missed, and how many are untrue.

    The main warning is the first expected one. Where several views deserve it, one of them will do.
    """
    raised = remarks_of(record.warnings)
    true = {(kind, view) for kind, view in record.expected}
    true |= {(kind, ANY_VIEW) for kind, _ in true}
    main = record.expected[0][0] if record.expected else None
    found = any(remark in true and remark[0] == main for remark in raised)
    return {"found": found, "missed": main is not None and not found, "untrue": sum(r not in true for r in raised)}


# --- Running ----------------------------------------------------------------------------------------------------------


def tasks_of(group, seed=0, draws=None):
    """Return (group, name, seed) of every case of a group; draws have no name, only a seed."""
    if group in DRAWS:
        return [(group, "", seed + i) for i in range(DRAWS[group] if draws is None else draws)]
    if group != "real":
        return [(group, name, seed) for name in known.RECIPES[group]]
    if not os.environ.get("KERNELWEAVE_DATA"):
        print("The real sets are left out: set KERNELWEAVE_DATA to their folder.", file=sys.stderr)
        return []
    return [(group, case.name, seed) for case in known.real_cases()]


def make(group, name, seed):
    if group == "real":
        return known.real_case(name)
    if group in DRAWS:
        return {"omics": known.omics, "noise": known.noise}[group](seed)
    return known.RECIPES[group][name](seed)


def answer_task(task, choose):
    return task, judge(make(*task), task[-1], choose)


def key_of(task):
    return json.dumps(task)


def measure(tasks, choose, jobs=1, path=None, rule=""):
    """Return the records of all tasks in order; those already in the file at ``path`` are not run again.

    The file says which rule answered, and another rule is refused; failures are tried again.
    """
    stored = read_records(path, rule)
    missing = [task for task in tasks if key_of(task) not in stored]
    work = (delayed(answer_task)(task, choose) for task in missing)
    done = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(work)
    for count, (task, record) in enumerate(done, 1):
        stored[key_of(task)] = record
        print(f"{count}/{len(missing)} {record.name}: {record.answer} ({record.seconds:.1f} s)", file=sys.stderr)
        if path is not None:
            write_records(path, rule, stored)
    return [stored[key_of(task)] for task in tasks]


def read_records(path, rule):
    if path is None or not Path(path).exists():
        return {}
    content = json.loads(Path(path).read_text())
    if content["rule"] != rule:
        raise SystemExit(f"{path} holds answers of {content['rule']}, not of {rule}: name another file.")
    records = {key: Record(**fields) for key, fields in content["records"].items()}
    return {key: record for key, record in records.items() if not record.error}


def write_records(path, rule, records):
    """Write a whole new file before it takes the place of the old one."""
    content = {"rule": rule, "records": {key: asdict(record) for key, record in records.items()}}
    draft = Path(path).with_name(f"{Path(path).name}.part")
    draft.write_text(json.dumps(content, indent=1))
    draft.replace(path)


# --- Tables -----------------------------------------------------------------------------------------------------------


def as_markdown(head, rows):
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def mark(record):
    if record.error:
        return record.error.replace("|", "/").splitlines()[0]
    if record.truth is None:
        return "open"
    return "yes" if record.hit else "near" if record.near else "NO"


def warning_mark(record):
    counts = warnings_of(record)
    words = ["found"] * counts["found"] + ["missed"] * counts["missed"]
    words += [f"{counts['untrue']} untrue"] * (counts["untrue"] > 0)
    return ", ".join(words)


def case_table(records):
    """Return one line per case; with what became of the warnings where they are the matter."""
    about_warnings = any(scored_on_warnings(r) for r in records)
    head = ["case", "truth", "answer", "confidence", "seconds", "hit"] + ["warnings"] * about_warnings
    rows = []
    for r in records:
        truth = "-" if r.truth is None else r.truth
        row = [r.name, truth, r.answer, r.confidence, f"{r.seconds:.2f}", mark(r)]
        rows.append(row + [warning_mark(r)] * about_warnings)
    return as_markdown(head, rows)


def scored_on_warnings(record):
    """Whether a warning is called for; with no clusters at all nothing needs to be said of the views."""
    return bool(record.expected) and record.truth != 1


def share(part, whole):
    return f"{part} of {whole}" if whole else "-"


def summary(records):
    """Return the figures of one group, by name."""
    scored = [r for r in records if r.truth is not None]
    nulls = [r for r in scored if r.truth == 1]
    clustered = [r for r in scored if r.truth > 1]
    high = [r for r in scored if r.confidence == "high"]
    called_for = [r for r in records if scored_on_warnings(r)]
    warned = Counter()
    for r in records:
        warned.update(warnings_of(r) if r.group != "real" else {})
    return {
        "hits": share(sum(r.hit for r in scored), len(scored)),
        "hits and near": share(sum(r.near for r in scored), len(scored)),
        "clusters overlooked": share(sum(r.answer == 1 for r in clustered), len(clustered)),
        "false structure": share(sum(r.answer > 1 for r in nulls), len(nulls)),
        "high and right": share(sum(r.hit for r in high), len(high)),
        "warnings found": share(sum(warnings_of(r)["found"] for r in called_for), len(called_for)),
        "untrue": warned["untrue"],
        "failed": sum(bool(r.error) for r in records),
        "median seconds": f"{np.median([r.seconds for r in records]):.2f}" if records else "-",
    }


def summary_table(by_group):
    summaries = {group: summary(records) for group, records in by_group.items()}
    if len(by_group) > 1:
        summaries["all"] = summary([record for records in by_group.values() for record in records])
    head = ["group", *next(iter(summaries.values()))]
    return as_markdown(head, [[group, *figures.values()] for group, figures in summaries.items()])


# --- The short form ---------------------------------------------------------------------------------------------------


def spread(tasks, count):
    """Return ``count`` tasks at even distances, the first and the last among them."""
    return [tasks[i] for i in np.linspace(0, len(tasks) - 1, count).round().astype(int)]


def run():
    for group, count in (("synthetic", 10), ("null", 5), ("graph", 3), ("omics", 2)):
        tasks = spread(tasks_of(group), count)
        records = measure(tasks, library_choice)
        figures = summary(records)
        shown = ("hits", "hits and near", "false structure", "high and right", "median seconds")
        text = ", ".join(f"{name}: {figures[name]}" for name in shown if figures[name] != "-")
        reasons = [record.error for record in records if record.error]
        failed = f", failed: {len(reasons)} ({reasons[0]})" if reasons else ""
        yield Row(SUITE, f"{count} of the cases {group!r}, number of clusters chosen without labels", text + failed)


def find_rule(text, seed):
    """Return the callable named MODULE:FUNCTION, or the library's own."""
    if text == "library":
        return partial(library_choice, random_state=seed)
    module, _, function = text.partition(":")
    return getattr(import_module(module), function)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_counts", description=__doc__)
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=GROUPS, help="which cases; all unless given")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases and of the rule")
    parser.add_argument("--draws", type=int, help=f"draws of each group that is drawn anew, {DRAWS} unless given")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--json", metavar="FILE", help="keep answers here, and go on from those it already holds")
    parser.add_argument(
        "--choose", metavar="MODULE:FUNCTION", default="library", help="another rule: takes a Case, returns an Answer"
    )
    chosen = parser.parse_args()
    rule = find_rule(chosen.choose, chosen.seed)
    by_group = {}
    for group in chosen.group:
        tasks = tasks_of(group, chosen.seed, chosen.draws)
        if tasks:
            by_group[group] = measure(tasks, rule, chosen.jobs, chosen.json, chosen.choose)
            print(f"## {group}\n\n{case_table(by_group[group])}", flush=True)
    if by_group:
        print(f"## Summary\n\n{summary_table(by_group)}")


if __name__ == "__main__":
    main()
