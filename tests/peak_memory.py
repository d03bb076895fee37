"""What work allocates at most: NumPy's arrays are traced, buffers of linear algebra are not."""

import tracemalloc

from kernelweave.foundation.errors import ParameterError


def peak_of(work):
    """Return a result, or the refusal that came in its place, and the MiB at the peak beside what was there before."""
    tracemalloc.start()
    try:
        result = work()
    except ParameterError as refusal:
        result = refusal
    finally:
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return result, peak
