"""Blocks in this process that note what reaches the host, as the backend in halves does."""

from functools import wraps

import numpy as np

from kernelweave.backends.blocks import BlocksBackend, Here


class WatchedBlocks(BlocksBackend):
    """``hosted`` are the shapes of arrays that solvers asked for, ``largest`` is the size of the largest sum."""

    def __init__(self, sizes, **options):
        super().__init__(Here(sizes, **options))
        self.hosted = []
        self.largest = 0
        self._inside = False

    def host(self, values):
        if not self._inside:
            self.hosted.append(values.shape)
        return super().host(values)

    def _summed(self, function, *args):
        total = super()._summed(function, *args)
        self.largest = max(self.largest, np.size(total))
        return total


def _unwatched(name):
    """Return a verb during which arrays travel to all places, by way of the host."""
    verb = getattr(BlocksBackend, name)

    @wraps(verb)
    def inside(self, *args, **kwargs):
        self._inside = True
        try:
            return verb(self, *args, **kwargs)
        finally:
            self._inside = False

    return inside


for _name in ("product", "cluster_sums", "candidate_gains"):
    setattr(WatchedBlocks, _name, _unwatched(_name))
