"""Torch where it is installed; tests that need it are skipped elsewhere and say so."""

import pytest

WITHOUT_TORCH = "torch is not installed: no build for the processor could be had"


def needs_torch():
    """Return torch, or skip."""
    return pytest.importorskip("torch", reason=WITHOUT_TORCH)
