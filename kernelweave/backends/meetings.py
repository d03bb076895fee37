"""Where runs from many candidates end, of which most met another one on their way."""

import numpy as np

from kernelweave.foundation.array_types import Ints

#: How a run ended: not begun, at a fixed point, on the path of another run, or where the general solver must take over.
UNDONE = -1
ENDED = 0
MET = 1
LEFT = 2


def ends_of_runs(candidates: Ints, meetings: Ints, states: Ints, max_iter: int) -> Ints:
    """Return for each candidate the position of the run that reached its end, along the chain of meetings.

    ``meetings`` holds the candidate whose path a run met, the step in which that one had been there, and its own steps.
    A run stands for itself where the one it met was cut short by ``max_iter``, or where both stretches together would
    have been; the general solver then runs it. -1 marks runs that time left out.
    """
    place = {int(candidate): at for at, candidate in enumerate(candidates)}
    ends = np.arange(len(candidates))
    steps = meetings[:, 2].copy()
    for start in np.flatnonzero(states == MET).tolist():
        chain = [start]
        at = place[int(meetings[start, 0])]
        while states[at] == MET and ends[at] == at and at not in chain:
            chain.append(at)
            at = place[int(meetings[at, 0])]
        for link in reversed(chain):
            met = place[int(meetings[link, 0])]
            total = meetings[link, 2] + steps[met] - meetings[link, 1]
            whole = states[ends[met]] != UNDONE and steps[ends[met]] < max_iter
            if whole and total < max_iter and (states[met] != MET or ends[met] != met):
                ends[link] = ends[met]
                steps[link] = total
    return np.where(states == UNDONE, -1, ends)
