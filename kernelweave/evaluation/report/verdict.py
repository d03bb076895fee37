"""The verdict: two sentences in plain words, the answer and what to distrust."""

from collections.abc import Sequence

from kernelweave.evaluation.report.clearness import Clearness
from kernelweave.evaluation.report.facts import ReportFacts
from kernelweave.evaluation.report.text import count, fixed, one_line, percent
from kernelweave.evaluation.report.trust import DOMINANT, MANY_DOUBTFUL

#: How clusters of each level stand to each other, by silhouettes or edges.
LEVELS = {
    "clear": "stand clearly apart",
    "overlapping": "stand apart, but overlap",
    "faint": "hardly stand apart",
}
#: The same by the confidence of a model, which is about their number as well.
SURE = {
    "clear": "stand clearly apart",
    "overlapping": "stand apart",
    "faint": "are uncertain",
    "none": "are no clearer than those of data without any",
}
# Names that a sentence lists; more are counted.
MOST_NAMED = 4


def answer(facts: ReportFacts) -> str:
    """Return how many clusters there are, how clear they are, and which views carry them."""
    n = count(facts.n_samples, facts.noun)
    clearness = facts.clearness
    if facts.n_clusters == 1:
        if clearness is None:
            return f"All {n} are in one cluster, as requested."
        why = (facts.verdict or "").partition(": ")[2]
        return f"No clear clusters were found in {n}: {why or 'nothing stands out against data without clusters.'}"
    found = f"{facts.n_clusters:,} clusters in {n}"
    chosen = "" if facts.confidence is None else f"the model chose their number, with {_sure(facts)} confidence"
    if clearness is None:
        told = f"{found}; there are too few {facts.noun}s to say how clearly they are separated"
    elif clearness.judged_by == "confidence":
        told = f"{found} {SURE[clearness.level]} ({chosen})"
    else:
        told = f"{found} {LEVELS[clearness.level]} ({_because(clearness, facts)}{f'; {chosen}' if chosen else ''})"
    return f"{told}{_carried(facts)}."


def _sure(facts: ReportFacts) -> str:
    return "no" if facts.confidence == "none" else str(facts.confidence)


def _because(clearness: Clearness, facts: ReportFacts) -> str:
    """Return the figures that the word on clearness comes from."""
    if clearness.judged_by == "edges":
        return f"edges between them have {percent(clearness.value)} of the weight expected by chance"
    return (
        f"{clearness.judged_by} {fixed(clearness.value)}, where one cloud without clusters, cut into "
        f"{facts.n_clusters:,}, has {fixed(clearness.reference)}"
    )


def _carried(facts: ReportFacts) -> str:
    names = [one_line(view.name) for view in facts.views]
    if len(names) < 2:
        return ""
    if len(facts.carrying) == len(names):
        return f", and {'both' if len(names) == 2 else f'all {len(names)}'} views carry them"
    if not facts.carrying:
        return ", and no single view carries them"
    carrying = [names[v] for v in facts.carrying]
    return f", and {listed(carrying, 'view')} {'carries' if len(carrying) == 1 else 'carry'} them"


def distrust(facts: ReportFacts, n_warnings: int) -> str:
    """Return what to distrust, or that nothing asks for it."""
    doubts = [*_doubts(facts), *_doubts_of_fit(facts, n_warnings)]
    given = "their number was given, not found" if facts.number_given and facts.n_clusters > 1 else ""
    if not doubts:
        return f"There is no evidence against them, but {given}." if given else "There is no evidence against this."
    return f"Distrust {'; '.join(doubts)}{f' (and {given})' if given else ''}."


def _doubts(facts: ReportFacts) -> list[str]:
    """Return doubts about clusters, samples and views."""
    doubts = []
    level = None if facts.clearness is None or facts.n_clusters == 1 else facts.clearness.level
    if level == "none" or (level == "faint" and facts.confidence is None):
        doubts.append("the clusters as a whole, which may be parts of one cloud")
    elif facts.confidence == "low":
        doubts.append("their number, which the model is not sure of")
    if facts.doubtful_share >= MANY_DOUBTFUL:
        lie = "lie nearer to" if facts.graph is None else "have stronger ties to"
        doubts.append(f"the {percent(facts.doubtful_share)} of {facts.noun}s that {lie} another cluster")
    largest = int(facts.sizes.argmax())
    if facts.n_clusters > 1 and facts.sizes[largest] > DOMINANT * facts.n_samples:
        share = percent(float(facts.sizes[largest]) / facts.n_samples)
        pieces = facts.graph is not None and facts.clearness is not None and facts.clearness.value == 0
        why = "the others are small pieces that no edge joins to it" if pieces else "the others are fringes"
        doubts.append(f"cluster {largest}, which holds {share} of all {facts.noun}s: {why}")
    if facts.tiny:
        numbers = [f"{c}" for c in facts.tiny]
        small = max(int(facts.sizes[c]) for c in facts.tiny)
        size = count(small, facts.noun) if len(numbers) == 1 else f"at most {count(small, facts.noun)} each"
        what = f"cluster {numbers[0]}" if len(numbers) == 1 else f"clusters {listed(numbers, 'cluster')}"
        doubts.append(f"{what}, of {size}")
    if facts.against:
        names = [one_line(facts.views[v].name) for v in facts.against]
        verb = "does" if len(names) == 1 else "do"
        doubts.append(f"{listed(names, 'view')}, which {verb} not show these clusters")
    if facts.absence is not None:
        doubts.append("what the clusters mean, because they follow which views samples are in")
    return doubts


def _doubts_of_fit(facts: ReportFacts, n_warnings: int) -> list[str]:
    """Return doubts about what was read and how the fit went."""
    doubts = []
    if facts.left_out:
        doubts.append(
            f"conclusions about all samples, because {count(facts.left_out, facts.noun)} of the input were left out"
        )
    if facts.converged is False:
        doubts.append("the fit, which stopped before it converged")
    if n_warnings:
        doubts.append(f"what {count(n_warnings, 'warning')} below {'is' if n_warnings == 1 else 'are'} about")
    return doubts


def listed(names: Sequence[str], what: str) -> str:
    """Return names as in a sentence; where there are many, the first of them and how many more."""
    if len(names) == 1:
        return names[0]
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[: MOST_NAMED - 1])} and {count(len(names) - MOST_NAMED + 1, f'other {what}')}"
    return f"{', '.join(names[:-1])} and {names[-1]}"
