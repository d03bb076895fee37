"""What exchanges between views have in common, also where samples are absent from some of them.

A view works on the samples it has. What it finds out replaces what these samples were handed on with; the others keep
what the last view that has them said.
"""

from collections.abc import Sequence

import numpy as np

from kernelweave.foundation.array_types import Bools, Floats, Index


def turns(n_views: int) -> list[int]:
    """Return the views in the order of a round: the first, where runs begin, comes last."""
    return [*range(1, n_views), 0]


def next_to_learn(known: Bools, samples: Sequence[Index], weights: Floats) -> int | None:
    """Return the view that carries a start on to samples of which nothing is known yet, None where there are none.

    Of the views that have such samples, the one whose other samples weigh most; ``samples`` are those of every view.
    Samples of positive weight must connect the views.
    """
    lacking = [v for v, here in enumerate(samples) if not known[here].all()]
    if not lacking:
        return None
    learned = [float(weights[samples[v]][known[samples[v]]].sum()) for v in lacking]
    best = int(np.argmax(learned))
    assert learned[best] > 0, "no sample of positive weight connects the views"
    return lacking[best]
