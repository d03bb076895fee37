"""Data in blocks of rows that are elsewhere: on the workers of a cluster, or in files that are read block by block."""

from kernelweave.backends.blocks.array import BlockArray
from kernelweave.backends.blocks.backend import BlocksBackend
from kernelweave.backends.blocks.here import Here
from kernelweave.backends.blocks.places import Places

__all__ = ["BlockArray", "BlocksBackend", "Here", "Places"]
