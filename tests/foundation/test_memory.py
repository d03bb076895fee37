"""What a limit of memory leaves room for."""

import numpy as np
import pytest

from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import batches_within, check_matrices, matrices_mib, room_beside, rows_within


def test_a_refusal_says_what_would_fit():
    with pytest.raises(
        ParameterError, match=r"^Three of 1,024 samples take 24 MiB, more than memory_limit=6\. Raise it"
    ):
        check_matrices(3, 1024, 6, what="Three", remedy="do without")
    with pytest.raises(ParameterError, match=r"to 24, or do without: 512 samples would fit\.$"):
        check_matrices(3, 1024, 6, what="Three", remedy="do without")
    check_matrices(3, 512, 6, what="Three", remedy="do without")
    with pytest.raises(ParameterError, match="528 samples"):
        check_matrices(3, 528, 6, what="Three", remedy="do without")  # a sixteenth more is too much
    assert matrices_mib(3, 512) == 6


def test_samples_and_what_is_there_anyway_are_counted_beside_matrices():
    # Two matrices of 512 samples take 4 MiB, 8 KiB of each sample 4 more; of 10 MiB one is free for these.
    named = {"what": "They", "remedy": "do without"}
    check_matrices(2, 512, 10, row_bytes=2**13, **named)
    check_matrices(2, 512, 10, row_bytes=2**13, beside=3 * 2**20, **named)
    with pytest.raises(
        ParameterError, match=r"They of 512 samples take 10\.5 MiB, .* to 11, .*: 490 samples would fit"
    ):
        check_matrices(2, 512, 10, row_bytes=2**13, beside=3.5 * 2**20, **named)
    with pytest.raises(ParameterError, match="514 samples"):
        check_matrices(2, 514, 7, row_bytes=2**13, **named)
    check_matrices(2, 511, 7, row_bytes=2**13, **named)
    with pytest.raises(ParameterError, match=r"Raise it to 16, or do without\.$"):
        check_matrices(2, 514, 7, row_bytes=2**13, beside=2**23, **named)


@pytest.mark.parametrize("limit", [0.01, 1.0, 10.0, 1e3])
def test_batches_stay_within_the_limit_and_leave_work_for_two_threads(limit):
    batches = batches_within(limit, 8192, most=1000)
    assert 1 <= batches.size <= 1000
    assert batches.at_once == 1 or batches.size * batches.at_once * 8192 <= limit * 2**20
    assert batches.at_once >= 2 or batches.size == 1


def test_without_a_limit_batches_are_as_large_as_they_may_be():
    assert batches_within(np.inf, 8, most=77).size == 77
    assert rows_within(np.inf, 8, most=77) == 77
    assert rows_within(0.0, 8, most=77) == 1


def test_work_within_a_tenth_of_the_limit_leaves_all_of_it():
    assert room_beside(9.0, 100.0) == 100.0
    assert room_beside(30.0, 100.0) == pytest.approx(80.0)
    assert room_beside(300.0, 100.0) == 0.0
