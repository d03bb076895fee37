"""Seconds spent on compiling."""

from numba import njit

from kernelweave.foundation.registry import provided


def test_compiling_is_timed_once_and_running_is_not():
    @njit
    def added(a, b):
        return a + b

    clock = provided("clock of compilation")()
    with clock:
        assert added(1, 2) == 3
    assert clock.seconds > 0
    again = provided("clock of compilation")()
    with again:
        assert added(3, 4) == 7
    assert again.seconds == 0
