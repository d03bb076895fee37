"""Products of a stored kernel with indicators of clusters that are exact, at the speed of small integers.

An indicator is 0 or 1. A kernel in fixed point, its numbers cut into digits of seven bits, can then be multiplied digit
by digit in integers: 8 bits wide, added up in 32, without any rounding. Seven digits hold 49 bits, as many as matter of
a double precision number beside others of its size. On a GPU this is many times faster than double precision.
"""

import torch

#: Digits, and bits of each. Balanced digits lie between -64 and 63.
DIGITS = 7
BITS = 7
# Sides of integer products are multiples of this.
MULTIPLE = 16
# Rows that are cut at a time.
ROWS = 1024


class DigitMatrix:
    """w_j K_ij in fixed point, for one sum over j after another.

    A processor has no fast way to products of small integers: numbers stay ``whole`` there, in double precision.
    """

    def __init__(self, K: torch.Tensor, weights: torch.Tensor, *, whole: bool | None = None) -> None:
        n = len(K)
        side = -(-n // MULTIPLE) * MULTIPLE
        self.n = n
        self._whole = K.to(torch.float64) * weights if (not K.is_cuda if whole is None else whole) else None
        if self._whole is not None:
            return
        self.unit = float(_largest(K, weights)) * 2.0 ** (2 - DIGITS * BITS)
        self.digits = torch.zeros(DIGITS, side, side, dtype=torch.int8, device=K.device)
        for lo in range(0, n, ROWS):
            rows = slice(lo, min(lo + ROWS, n))
            left = torch.round(K[rows].to(torch.float64) * weights / (self.unit or 1.0)).to(torch.int64)
            for d in range(DIGITS):
                digit = ((left + 64) & 127) - 64
                left = (left - digit) >> BITS
                self.digits[d, rows, :n] = digit.to(torch.int8)

    def sums(self, indicators: torch.Tensor) -> torch.Tensor:
        """Return for every row of zeros and ones (int8) the sum over its ones, of all samples: (rows, n) in float64."""
        if self._whole is not None:
            return indicators.to(torch.float64) @ self._whole.T
        count = len(indicators)
        side = self.digits.shape[1]
        padded = torch.zeros(
            max(32, -(-count // MULTIPLE) * MULTIPLE), side, dtype=torch.int8, device=indicators.device
        )
        padded[:count, : self.n] = indicators
        total = torch.zeros(count, self.n, dtype=torch.float64, device=indicators.device)
        for d in reversed(range(DIGITS)):
            total.mul_(2.0**BITS).add_(_integer_products(padded, self.digits[d].T)[:count, : self.n])
        return total.mul_(self.unit)


def _largest(K: torch.Tensor, weights: torch.Tensor) -> float:
    parts = (K[lo : lo + ROWS].to(torch.float64).mul(weights).abs().max() for lo in range(0, len(K), ROWS))
    return max(float(part) for part in parts)


def _integer_products(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """Return A @ B of small integers, exactly."""
    if A.is_cuda:
        return torch._int_mm(A, B)
    return A.to(torch.float64) @ B.to(torch.float64)
