"""Torch where it is installed; tests that need it are skipped elsewhere and say so."""

import pytest

WITHOUT_TORCH = "torch is not installed: no build for the processor was available"


def needs_torch():
    """Return torch on one thread, or skip: arrays of tests are small, and workers share the cores."""
    torch = pytest.importorskip("torch", reason=WITHOUT_TORCH)
    torch.set_num_threads(1)
    return torch
