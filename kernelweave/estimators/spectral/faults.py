"""Faults that the solvers of kernel spectral clustering meet, in the words of a user."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kernelweave.foundation.errors import ParameterError
from kernelweave.solvers.spectral.kernel_spectral import FlatViewError, NoDegreesError, RegularizationError


@contextmanager
def explained(names: Sequence[str] = (), where: str = "") -> Iterator[None]:
    """Raise the faults of the solvers as errors that name parameter, view and remedy."""
    try:
        yield
    except NoDegreesError as fault:
        raise ParameterError(
            f"The similarities of every sample{where} add up to zero, so no sample has a degree. Choose another "
            "kernel; a linear one does not work on centred data here."
        ) from fault
    except FlatViewError as fault:
        raise ParameterError(
            f"All samples look the same in view {names[fault.view]!r}; drop it or choose another kernel."
        ) from fault
    except RegularizationError as fault:
        raise ParameterError(
            f"gamma={fault.gamma:g} of view {names[fault.view]!r} is at or above its limit of {fault.limit:.6g}, where "
            "the problem is no longer definite. Lower it."
        ) from fault
