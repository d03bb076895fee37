"""Arrays and verbs by torch, on a GPU in the first place. Imported where a torch device is asked for, not before."""

from kernelweave.backends.torch.array import TorchArray
from kernelweave.backends.torch.backend import TorchBackend

__all__ = ["TorchArray", "TorchBackend"]
