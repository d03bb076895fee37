"""Numbers of samples: the same by the compiled loop and by the standard library."""

import numpy as np

from kernelweave.backends import digests
from kernelweave.inputs import row_digests
from kernelweave.kernels.digests import sample_digests


def test_few_and_many_samples_have_the_same_numbers(monkeypatch):
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((12, width)) for width in (4, 3)]
    wanted = row_digests(blocks)
    np.testing.assert_array_equal(sample_digests(blocks), wanted)
    monkeypatch.setattr(digests, "FEW_ROWS", 1)
    np.testing.assert_array_equal(sample_digests(blocks), wanted)
