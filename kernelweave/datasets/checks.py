"""Checks shared by the generators: each refuses a bad argument in one sentence that says what to pass."""

from numbers import Integral, Real

import numpy as np

from kernelweave.foundation.errors import ParameterError


def check_count(name, value, *, least=1, most=None):
    """Return ``value`` as an int, or raise unless it is a whole number in ``[least, most]``."""
    bounds = f"at least {least}" if most is None else f"between {least} and {most}"
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        raise ParameterError(f"{name}={value!r} cannot be used: pass a whole number, {bounds}.")
    return int(value)


def check_amount(name, value, *, positive=False):
    """Return ``value`` as a float, or raise unless it is finite and not negative (or above 0)."""
    number = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(value)
    if not number or value < 0 or (positive and value == 0):
        wanted = "above 0" if positive else "of 0 or more"
        raise ParameterError(f"{name}={value!r} cannot be used: pass a finite number {wanted}.")
    return float(value)


def as_generator(random_state):
    """Return a ``numpy.random.Generator`` for None, an int, a Generator or a RandomState."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_count("random_state", random_state, least=0))


def proportional_sizes(n_samples, shares):
    """Split ``n_samples`` in proportion to ``shares``; what rounding leaves goes to the largest remainders."""
    exact = n_samples * np.asarray(shares, dtype=float) / np.sum(shares)
    sizes = np.floor(exact).astype(int)
    neediest = np.argsort(sizes - exact, kind="stable")[: n_samples - sizes.sum()]
    sizes[neediest] += 1
    return sizes
