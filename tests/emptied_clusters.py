"""Whether a run has filled a cluster that lost its samples: there a weight is not the same as repetition.

Such a cluster takes one sample: all of its weight, but one of its copies. Descents may part there.
"""

from contextlib import contextmanager

import numpy as np
import pytest

from kernelweave.partitions import observed, partition
from kernelweave.partitions.empty import reseed_empty


@contextmanager
def watched_for_emptied_clusters():
    """Yield a list to which runs meanwhile add the clusters that they find without samples."""
    emptied = []

    def watched(backend, assignment, weights, n_clusters, *others):
        emptied.extend(np.flatnonzero(backend.segment_sums(assignment.labels, weights, n_clusters) == 0))
        return reseed_empty(backend, assignment, weights, n_clusters, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "reseed_empty", watched)
        patch.setattr(observed, "reseed_empty", watched)
        yield emptied
