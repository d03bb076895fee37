"""Rates of the machine, for tests of plans."""

from contextlib import contextmanager

import pytest

from kernelweave.evaluation.plan import rates


def forget_rates():
    """Let the next plan measure again."""
    for each in vars(rates).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()


@contextmanager
def rough_rates():
    """Let plans measure on few samples and once, where the numbers do not matter."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PAIRED_ROWS", "SPECTRAL_ROWS", "SEARCHED"):
            patch.setattr(rates, name, 100)
        patch.setattr(rates, "FEATURE_NUMBERS", 1000)
        patch.setattr(rates, "PATIENCE", 0.0)
        patch.setattr(rates, "DISK_BYTES", 2**20)
        yield
    forget_rates()
