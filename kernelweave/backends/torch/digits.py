"""Products of a stored kernel with indicators of clusters that are exact, at the speed of small integers.

An indicator is 0 or 1. A kernel in fixed point, its numbers cut into digits of eight bits, can then be multiplied digit
by digit in integers: 8 bits wide, added up in 32, without any rounding. Six digits hold 48 bits, as many as matter of a
double precision number beside others of its size. On a GPU this is many times faster than double precision. Most
decisions need fewer digits: the first four leave a known error.
"""

import torch

#: Digits, bits of each, and the first digits that most decisions take. Balanced digits lie between -128 and 127.
DIGITS = 6
BITS = 8
FIRST = 4
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
        self.error = 0.0  # of a number of which the first digits alone are taken
        self._whole = K.to(torch.float64) * weights if (not K.is_cuda if whole is None else whole) else None
        if self._whole is not None:
            return
        self.unit = float(_largest(K, weights)) * 2.0 ** (2 - DIGITS * BITS)
        # The digits that follow add up to a little more than half a unit of the last that is taken.
        self.error = 0.51 * self.unit * 2.0 ** (BITS * (DIGITS - FIRST))
        self.digits = torch.zeros(DIGITS, side, side, dtype=torch.int8, device=K.device)
        for lo in range(0, n, ROWS):
            rows = slice(lo, min(lo + ROWS, n))
            left = torch.round(K[rows].to(torch.float64) * weights / (self.unit or 1.0)).to(torch.int64)
            for d in range(DIGITS):
                digit = ((left + 128) & 255) - 128
                left = (left - digit) >> BITS
                self.digits[d, rows, :n] = digit.to(torch.int8)

    def sums(self, indicators: torch.Tensor, count: int = DIGITS) -> torch.Tensor:
        """Return for every row of zeros and ones (int8) the sum over its ones, of all samples: (rows, n) in float64.

        ``count`` is the number of digits that are taken.
        """
        if self._whole is not None:
            return indicators.to(torch.float64) @ self._whole.T
        rows = len(indicators)
        padded = self._padded(indicators)
        total = torch.zeros(len(padded), len(self.digits[0]), dtype=torch.float64, device=indicators.device)
        for d in reversed(range(DIGITS - count, DIGITS)):
            total = torch.add(_integer_products(padded, self.digits[d].T), total, alpha=2.0**BITS)
        return total[:rows, : self.n] * self._unit(count)

    def write_sums(
        self,
        sums: torch.Tensor,
        labels: torch.Tensor,
        runs: torch.Tensor,
        clusters: torch.Tensor,
        count: int = DIGITS,
    ) -> None:
        """Write the sums over some clusters of some runs into their places; ``sums`` is (runs, k, n)."""
        if self._whole is not None or not sums.is_cuda:
            indicators = labels[runs] == clusters[:, None].to(labels.dtype)
            sums[runs, clusters] = self.sums(indicators.to(torch.int8), count)
            return
        from kernelweave.backends.torch.triton_sums import write_digits, write_indicators

        side = len(self.digits[0])
        indicators = torch.zeros(_height(len(runs)), side, dtype=torch.int8, device=sums.device)
        write_indicators(labels, runs, clusters, indicators)
        taken = self.digits[DIGITS - count :].view(count * side, side)
        products = torch._int_mm(indicators, taken.T)  # with all digits at once
        rows = runs * sums.shape[1] + clusters
        write_digits(products, rows, sums.view(-1, self.n), self._unit(count), 2.0**BITS, count)

    def _padded(self, indicators: torch.Tensor) -> torch.Tensor:
        """Return indicators in a matrix whose sides are as integer products take them."""
        padded = torch.zeros(_height(len(indicators)), len(self.digits[0]), dtype=torch.int8, device=indicators.device)
        padded[: len(indicators), : self.n] = indicators
        return padded

    def _unit(self, count: int) -> float:
        """Return what the last of so many digits counts in."""
        return self.unit * 2.0 ** (BITS * (DIGITS - count))


def _height(rows: int) -> int:
    """Return how many rows integer products take for so many."""
    return max(32, -(-rows // MULTIPLE) * MULTIPLE)


def _largest(K: torch.Tensor, weights: torch.Tensor) -> float:
    parts = (K[lo : lo + ROWS].to(torch.float64).mul(weights).abs().max() for lo in range(0, len(K), ROWS))
    return max(float(part) for part in parts)


def _integer_products(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """Return A @ B of small integers, exactly."""
    if A.is_cuda:
        return torch._int_mm(A, B)
    return A.to(torch.float64) @ B.to(torch.float64)
