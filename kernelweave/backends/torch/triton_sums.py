"""Steps of partitions as Triton programs: what follows a pass over a kernel, in one read of its sums.

Imported on a GPU only; each has a twin in plain torch that says the same (``backend.py``, ``candidates.py``).
"""

import torch
import triton
import triton.language as tl

# Samples that a program takes, and threads in units of 32.
BLOCK = 1024
WARPS = 4


@triton.jit
def _segment_sums(labels, values, parts, n, n_clusters, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write the sums of BLOCK values by label."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    label = tl.load(labels + i, mask=there, other=-1)
    value = tl.load(values + i, mask=there, other=0.0)
    for c in range(n_clusters):
        tl.store(parts + tl.program_id(0) * n_clusters + c, tl.sum(tl.where(label == c, value, 0.0), axis=0))


def segment_sums(labels: torch.Tensor, values: torch.Tensor, n_clusters: int) -> torch.Tensor:
    """Return the sums of values by label, always added in the same order."""
    n = len(labels)
    programs = triton.cdiv(n, BLOCK)
    parts = torch.empty(programs, n_clusters, dtype=torch.float64, device=labels.device)
    _segment_sums[(programs,)](labels, values, parts, n, n_clusters, BLOCK, num_warps=WARPS)
    return parts.sum(dim=0)


@triton.jit
def _nearest_sums(  # type: ignore[no-untyped-def]
    sums,
    norms,
    slopes,
    coefs,
    diag,
    labels,
    tolerance,
    chosen,
    least,
    leads,
    n,
    stride,
    n_clusters,
    WEIGHED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the nearest cluster of BLOCK samples, how far it is, and the least lead of those that stay."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = o < n
    i = tl.minimum(o, n - 1)
    far = float("inf")
    own = tl.load(labels + i)
    size = tl.load(diag + i)
    kept = tl.full((BLOCK,), far, tl.float64)
    low = tl.full((BLOCK,), far, tl.float64)
    at = i.to(tl.int64)
    for c in range(n_clusters):
        norm = tl.load(norms + c)
        value = norm - tl.load(slopes + c) * tl.load(sums + at)
        if WEIGHED:
            value = tl.load(coefs + c) * (value + size)
        value = tl.where(norm == far, far, value)
        kept = tl.where(own == c, value, kept)
        low = tl.where(own == c, low, tl.minimum(low, value))
        at += stride
    limit = tl.load(tolerance)
    moves = low < kept - limit
    first = tl.full((BLOCK,), -1, tl.int64)
    found = tl.full((BLOCK,), far, tl.float64)
    at = i.to(tl.int64)
    for c in range(n_clusters):
        norm = tl.load(norms + c)
        value = norm - tl.load(slopes + c) * tl.load(sums + at)
        if WEIGHED:
            value = tl.load(coefs + c) * (value + size)
        value = tl.where(norm == far, far, value)
        here = (first < 0) & (own != c) & (value <= low + limit)
        first = tl.where(here, c, first)
        found = tl.where(here, value, found)
        at += stride
    distance = tl.where(moves, found, kept)
    if not WEIGHED:
        distance += size
    tl.store(chosen + o, tl.where(moves, first, own), mask=there)
    tl.store(least + o, distance, mask=there)
    tl.store(leads + tl.program_id(0), tl.min(tl.where(moves | ~there, far, low - kept + limit), axis=0))


def nearest_sums(
    sums: torch.Tensor,
    clusters: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    diag: torch.Tensor,
    labels: torch.Tensor,
    tolerance: float,
    *,
    weighed: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the nearest cluster of every sample, its distance, and the least lead of samples that stay.

    ``clusters`` are norms, infinite of one without weight, slopes and coefficients; these count if ``weighed``.
    """
    n = len(labels)
    programs = triton.cdiv(n, BLOCK)
    device = labels.device
    chosen = torch.empty(n, dtype=torch.int64, device=device)
    least = torch.empty(n, dtype=torch.float64, device=device)
    leads = torch.empty(programs, dtype=torch.float64, device=device)
    _nearest_sums[(programs,)](
        sums,
        *clusters,
        diag,
        labels,
        torch.full((1,), tolerance, dtype=torch.float64, device=device),
        chosen,
        least,
        leads,
        n,
        sums.stride(0),
        len(sums),
        weighed,
        BLOCK,
        num_warps=WARPS,
    )
    return chosen, least, leads.amin()


# Runs from many candidates


@triton.jit
def _decide_runs(  # type: ignore[no-untyped-def]
    sums,
    norms,
    totals,
    labels,
    runs,
    limits,
    new,
    changed,
    left_open,
    n,
    n_clusters,
    blocks,
    BLOCK: tl.constexpr,
):
    """Write the labels that BLOCK samples of a run have after a step, which clusters change, and what is left open."""
    row = tl.program_id(0)
    run = tl.load(runs + row)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = o < n
    i = tl.minimum(o, n - 1)
    tolerance = tl.load(limits)
    open_lead = tl.load(limits + 1)
    far = float("inf")
    own = tl.load(labels + run * n + i).to(tl.int32)
    kept = tl.full((BLOCK,), far, tl.float64)
    low = tl.full((BLOCK,), far, tl.float64)
    for c in range(n_clusters):
        at = run * n_clusters + c
        value = tl.load(norms + at) - (2.0 / tl.load(totals + at)) * tl.load(sums + at * n + i)
        kept = tl.where(own == c, value, kept)
        low = tl.where(own == c, low, tl.minimum(low, value))
    moves = low < kept - tolerance
    first = tl.full((BLOCK,), -1, tl.int32)
    near = tl.zeros((BLOCK,), tl.int32)
    for c in range(n_clusters):
        at = run * n_clusters + c
        value = tl.load(norms + at) - (2.0 / tl.load(totals + at)) * tl.load(sums + at * n + i)
        first = tl.where((first < 0) & (own != c) & (value <= low + tolerance), c, first)
        near += ((own != c) & (value <= low + tolerance + open_lead)).to(tl.int32)
    unclear = (tl.abs(low - (kept - tolerance)) <= open_lead) | (moves & (near > 1))
    tl.store(new + row.to(tl.int64) * n + o, tl.where(moves, first, own), mask=there)
    place = row.to(tl.int64) * blocks + tl.program_id(1)
    tl.store(left_open + place, tl.sum((unclear & there).to(tl.int32), axis=0))
    for c in range(n_clusters):
        touched = moves & there & ((own == c) | (first == c))
        tl.store(changed + place * n_clusters + c, tl.sum(touched.to(tl.int32), axis=0))


def decide_runs(
    sums: torch.Tensor,
    norms: torch.Tensor,
    totals: torch.Tensor,
    labels: torch.Tensor,
    runs: torch.Tensor,
    tolerance: float,
    open_lead: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the labels of some runs after a step, which clusters change, and whether errors leave anything open."""
    _, k, n = sums.shape
    blocks = triton.cdiv(n, BLOCK)
    device = sums.device
    new = torch.empty(len(runs), n, dtype=labels.dtype, device=device)
    left_open = torch.empty(len(runs), blocks, dtype=torch.int32, device=device)
    changed = torch.empty(len(runs), blocks, k, dtype=torch.int32, device=device)
    if len(runs):
        limits = torch.tensor([tolerance, open_lead], dtype=torch.float64, device=device)
        _decide_runs[(len(runs), blocks)](
            sums, norms, totals, labels, runs, limits, new, changed, left_open, n, k, blocks, BLOCK, num_warps=WARPS
        )
    unclear = left_open.sum(dim=1) > 0 if open_lead else torch.zeros(len(runs), dtype=torch.bool, device=device)
    return new, changed.sum(dim=1) > 0, unclear


@triton.jit
def _within_runs(  # type: ignore[no-untyped-def]
    sums,
    labels,
    runs,
    weights,
    parts,
    n,
    n_clusters,
    blocks,
    BLOCK: tl.constexpr,
):
    """Write for BLOCK samples of a run: the sums inside clusters, their weights, and how many of these are positive."""
    row = tl.program_id(0)
    run = tl.load(runs + row)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = o < n
    i = tl.minimum(o, n - 1)
    own = tl.load(labels + run * n + i).to(tl.int32)
    weight = tl.load(weights + o, mask=there, other=0.0)
    value = weight * tl.load(sums + (run * n_clusters + own) * n + i)
    place = (row.to(tl.int64) * blocks + tl.program_id(1)) * n_clusters * 3
    for c in range(n_clusters):
        mine = own == c
        tl.store(parts + place + 3 * c, tl.sum(tl.where(mine, value, 0.0), axis=0))
        tl.store(parts + place + 3 * c + 1, tl.sum(tl.where(mine, weight, 0.0), axis=0))
        tl.store(parts + place + 3 * c + 2, tl.sum((mine & (weight > 0)).to(tl.float64), axis=0))


def within_runs(
    sums: torch.Tensor, labels: torch.Tensor, runs: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return for clusters of some runs: the sums over their pairs, their weights, and whether any is positive."""
    _, k, n = sums.shape
    blocks = triton.cdiv(n, BLOCK)
    parts = torch.empty(len(runs), blocks, k, 3, dtype=torch.float64, device=sums.device)
    if len(runs):
        _within_runs[(len(runs), blocks)](sums, labels, runs, weights, parts, n, k, blocks, BLOCK, num_warps=WARPS)
    within, totals, held = parts.sum(dim=1).unbind(dim=2)
    return within, totals, held > 0


@triton.jit
def _write_indicators(  # type: ignore[no-untyped-def]
    labels,
    runs,
    clusters,
    out,
    n,
    side,
    BLOCK: tl.constexpr,
):
    """Write a one for BLOCK samples of a run that are in a cluster, zero for others and beyond the last sample."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels + tl.load(runs + row) * n + i, mask=i < n, other=0).to(tl.int32)
    inside = (label == tl.load(clusters + row).to(tl.int32)) & (i < n)
    tl.store(out + row * side + i, inside.to(tl.int8), mask=i < side)


def write_indicators(labels: torch.Tensor, runs: torch.Tensor, clusters: torch.Tensor, out: torch.Tensor) -> None:
    """Write for pairs of a run and a cluster which samples are in it, one row of ``out`` each."""
    n = labels.shape[1]
    side = out.shape[1]
    if len(runs):
        _write_indicators[(len(runs), triton.cdiv(side, BLOCK))](
            labels, runs, clusters, out, n, side, BLOCK, num_warps=WARPS
        )


@triton.jit
def _write_digits(  # type: ignore[no-untyped-def]
    products,
    rows,
    sums,
    unit,
    n,
    side,
    base,
    DIGITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Put the digits of BLOCK sums together, the highest first."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    total = tl.zeros((BLOCK,), tl.float64)
    for d in tl.static_range(DIGITS):
        digit = tl.load(products + (row * DIGITS + (DIGITS - 1 - d)) * side + i, mask=there, other=0)
        total = total * base + digit.to(tl.float64)
    tl.store(sums + tl.load(rows + row) * n + i, total * tl.load(unit), mask=there)


def write_digits(
    products: torch.Tensor, rows: torch.Tensor, sums: torch.Tensor, unit: float, base: float, digits: int
) -> None:
    """Write sums, given digit by digit side by side (the lowest first), into rows of a matrix."""
    n = sums.shape[1]
    _write_digits[(len(rows), triton.cdiv(n, BLOCK))](
        products,
        rows,
        sums,
        torch.full((1,), unit, dtype=torch.float64, device=sums.device),
        n,
        products.shape[1] // digits,
        base,
        digits,
        BLOCK,
        num_warps=WARPS,
    )
