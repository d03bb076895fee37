"""Arrays and verbs on them, wherever the data live: plain NumPy and compiled loops on this machine."""

from kernelweave.backends.protocol import Assignment, Backend, BackendArray, CandidateRuns, Moves, Steps
from kernelweave.backends.registry import BACKENDS, get_backend, get_device_backend

__all__ = [
    "BACKENDS",
    "Assignment",
    "Backend",
    "BackendArray",
    "CandidateRuns",
    "Moves",
    "Steps",
    "get_backend",
    "get_device_backend",
]
