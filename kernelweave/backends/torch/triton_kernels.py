"""Passes over kernels as Triton programs. Imported on a GPU only; each has a twin in plain torch that says the same."""

import torch
import triton
import triton.language as tl

from kernelweave.backends.torch.shapes import Shape

#: Gamma and coef0 of a kernel in double precision, its kind and its degree, as programs take them.
Form = tuple[torch.Tensor, str, int]


def _piece(width: int, shape: Shape) -> int:
    """Return how many features are multiplied together: all, or as many as leave room for tiles loaded ahead."""
    return width if width <= shape.piece else min(shape.piece, 64)


@triton.jit
def _products_of_halves(  # type: ignore[no-untyped-def]
    high_x, low_x, i, xh, xl, high_y, low_y, j, WIDTH: tl.constexpr, PIECE: tl.constexpr, PARTS: tl.constexpr
):
    """Return inner products of rows i and rows j in single precision; xh and xl hold the rows i where they fit."""
    d = tl.arange(0, PIECE)
    at_y = j[:, None].to(tl.int64) * WIDTH + d[None, :]
    if WIDTH == PIECE:
        yh = tl.load(high_y + at_y)
        if PARTS == 3:
            yl = tl.load(low_y + at_y)
            products = tl.dot(xl, tl.trans(yh))
            products = tl.dot(xh, tl.trans(yl), products)
            products = tl.dot(xh, tl.trans(yh), products)
        else:
            products = tl.dot(xh, tl.trans(yh))
    else:
        at_x = i[:, None].to(tl.int64) * WIDTH + d[None, :]
        products = tl.zeros((i.shape[0], j.shape[0]), tl.float32)
        for d0 in range(0, WIDTH, PIECE):
            some_xh = tl.load(high_x + at_x + d0)
            some_yh = tl.load(high_y + at_y + d0)
            if PARTS == 3:
                some_xl = tl.load(low_x + at_x + d0)
                some_yl = tl.load(low_y + at_y + d0)
                products = tl.dot(some_xl, tl.trans(some_yh), products)
                products = tl.dot(some_xh, tl.trans(some_yl), products)
            products = tl.dot(some_xh, tl.trans(some_yh), products)
    return products


@triton.jit
def _rows_of_halves(high, low, i, WIDTH: tl.constexpr, PIECE: tl.constexpr, PARTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the halves of rows i, or of their first features where they do not fit."""
    at = i[:, None].to(tl.int64) * WIDTH + tl.arange(0, PIECE)[None, :]
    xh = tl.load(high + at)
    xl = xh
    if PARTS == 3:
        xl = tl.load(low + at)
    return xh, xl


@triton.jit
def _add_group_sums_of_halves(  # type: ignore[no-untyped-def]
    high_x,
    low_x,
    half_x,
    high_y,
    low_y,
    half_y,
    weights,
    starts,
    plus,
    minus,
    sums,
    n,
    n_groups,
    unit,
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Add the sums over groups of columns to those of clusters, for ROWS rows; nobody else writes to these."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = i < n
    i = tl.minimum(i, n - 1)
    hx = tl.load(half_x + i)
    xh, xl = _rows_of_halves(high_x, low_x, i, WIDTH, PIECE, PARTS)
    for g in range(n_groups):
        first = tl.load(starts + g)
        last = tl.load(starts + g + 1)
        total = tl.zeros((ROWS,), tl.float64)
        for j0 in range(first, last, COLUMNS):
            j = j0 + tl.arange(0, COLUMNS)
            hy = tl.load(half_y + j)
            products = _products_of_halves(high_x, low_x, i, xh, xl, high_y, low_y, j, WIDTH, PIECE, PARTS)
            values = tl.exp2(products * unit + (hx[:, None] + hy[None, :]))
            if WEIGHTED:
                values *= tl.load(weights + j)[None, :]
            total += tl.sum(values, axis=1).to(tl.float64)
        into = sums + tl.load(plus + g).to(tl.int64) * n + i
        tl.store(into, tl.load(into) + total, mask=there)
        source = tl.load(minus + g).to(tl.int64)
        if source >= 0:
            out_of = sums + source * n + i
            tl.store(out_of, tl.load(out_of) - total, mask=there)


def add_group_sums_of_halves(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    columns: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
    groups: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    sums: torch.Tensor,
    *,
    unit: float,
    parts: int,
    weighted: bool,
    shape: Shape,
) -> None:
    """Add sums of groups of columns: a program for some rows, which passes over all columns."""
    n, width = rows[0].shape
    _add_group_sums_of_halves[(triton.cdiv(n, shape.rows),)](
        *rows,
        *columns,
        *groups,
        sums,
        n,
        len(groups[1]),
        unit,
        width,
        _piece(width, shape),
        shape.rows,
        shape.columns,
        parts,
        weighted,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )


@triton.jit
def _add_all_sums_of_halves(  # type: ignore[no-untyped-def]
    high,
    low,
    half,
    weights,
    starts,
    clusters,
    sums,
    n_blocks,
    n_clusters,
    unit,
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
    SIDE: tl.constexpr,
    PARTS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Add the sums between a block of samples and half of the others, both ways: each pair is computed once.

    Samples are sorted by cluster. Blocks lie on a circle: every block takes those that follow it, half way round.
    """
    own = tl.program_id(0)
    size = n_blocks.to(tl.int64) * SIDE
    o = tl.arange(0, SIDE)
    i = own * SIDE + o
    hx = tl.load(half + i)
    xh, xl = _rows_of_halves(high, low, i, WIDTH, PIECE, PARTS)
    mine = tl.load(clusters + own)
    into = sums + mine.to(tl.int64) * size
    carried = hx
    if WEIGHTED:
        carried = tl.load(weights + i)
    # The block and itself.
    products = _products_of_halves(high, low, i, xh, xl, high, low, i, WIDTH, PIECE, PARTS)
    values = tl.exp2(products * unit + (hx[:, None] + hx[None, :]))
    if WEIGHTED:
        values *= carried[None, :]
    tl.atomic_add(into + i, tl.sum(values, axis=1).to(tl.float64), sem="relaxed")
    half_way = n_blocks // 2
    end = own + half_way + 1
    if (n_blocks % 2 == 0) & (own >= half_way):  # a block that lies opposite has taken this pair
        end = own + half_way
    for s in range(n_clusters + 1):
        c = mine + s
        round_the_circle = 0
        if c >= n_clusters:
            c = c - n_clusters
            round_the_circle = n_blocks
        lo = tl.maximum(tl.load(starts + c) + round_the_circle, own + 1)
        hi = tl.minimum(tl.load(starts + c + 1) + round_the_circle, end)
        total = tl.zeros((SIDE,), tl.float64)
        for block in range(lo, hi):
            j = (block - round_the_circle) * SIDE + o
            hy = tl.load(half + j)
            products = _products_of_halves(high, low, i, xh, xl, high, low, j, WIDTH, PIECE, PARTS)
            values = tl.exp2(products * unit + (hx[:, None] + hy[None, :]))
            if WEIGHTED:
                total += tl.sum(values * tl.load(weights + j)[None, :], axis=1).to(tl.float64)
                values *= carried[:, None]
            else:
                total += tl.sum(values, axis=1).to(tl.float64)
            tl.atomic_add(into + j, tl.sum(values, axis=0).to(tl.float64), sem="relaxed")
        if hi > lo:
            tl.atomic_add(sums + c.to(tl.int64) * size + i, total, sem="relaxed")


def all_sums_of_halves(
    samples: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
    blocks: tuple[torch.Tensor, torch.Tensor],
    *,
    unit: float,
    parts: int,
    weighted: bool,
    shape: Shape,
) -> torch.Tensor:
    """Return the (k, size) sums of samples that are sorted by cluster, in blocks of one cluster each.

    ``blocks`` are the first block of every cluster and the cluster of every block.
    """
    size, width = samples[0].shape
    starts, clusters = blocks
    n_clusters = len(starts) - 1
    sums = torch.zeros(n_clusters, size, dtype=torch.float64, device=starts.device)
    _add_all_sums_of_halves[(len(clusters),)](
        *samples,
        starts,
        clusters,
        sums,
        len(clusters),
        n_clusters,
        unit,
        width,
        _piece(width, shape),
        shape.rows,
        parts,
        weighted,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return sums


@triton.jit
def _wide_values(  # type: ignore[no-untyped-def]
    X,
    half_x,
    i,
    Y,
    half_y,
    j,
    numbers,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
):
    """Return the kernel between rows i and rows j in double precision."""
    values = tl.zeros((i.shape[0], j.shape[0]), tl.float64)
    if KIND == "laplacian":
        at_x = i.to(tl.int64) * WIDTH
        at_y = j.to(tl.int64) * WIDTH
        for d in range(0, WIDTH):
            values += tl.abs(tl.load(X + at_x + d)[:, None] - tl.load(Y + at_y + d)[None, :])
        values = tl.exp2(values * tl.load(numbers))
    else:
        d = tl.arange(0, PIECE)
        at_x = i[:, None].to(tl.int64) * WIDTH + d[None, :]
        at_y = j[:, None].to(tl.int64) * WIDTH + d[None, :]
        for d0 in range(0, WIDTH, PIECE):
            values += tl.dot(tl.load(X + at_x + d0), tl.trans(tl.load(Y + at_y + d0)))
        if KIND == "gaussian":
            hx = tl.load(half_x + i)
            hy = tl.load(half_y + j)
            values = tl.exp2(tl.minimum(values + (hx[:, None] + hy[None, :]), 0.0))
        else:
            base = values * tl.load(numbers) + tl.load(numbers + 1)
            values = base
            for _ in tl.static_range(1, DEGREE):
                values *= base
    return values


@triton.jit
def _add_group_sums(  # type: ignore[no-untyped-def]
    X,
    half_x,
    Y,
    half_y,
    weights,
    starts,
    plus,
    minus,
    sums,
    n,
    n_groups,
    numbers,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Add the sums over groups of columns in double precision, for ROWS rows; nobody else writes to these."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = i < n
    i = tl.minimum(i, n - 1)
    for g in range(n_groups):
        first = tl.load(starts + g)
        last = tl.load(starts + g + 1)
        total = tl.zeros((ROWS,), tl.float64)
        for j0 in range(first, last, COLUMNS):
            j = j0 + tl.arange(0, COLUMNS)
            values = _wide_values(X, half_x, i, Y, half_y, j, numbers, KIND, DEGREE, WIDTH, PIECE)
            if WEIGHTED:
                values *= tl.load(weights + j)[None, :]
            total += tl.sum(values, axis=1)
        into = sums + tl.load(plus + g).to(tl.int64) * n + i
        tl.store(into, tl.load(into) + total, mask=there)
        source = tl.load(minus + g).to(tl.int64)
        if source >= 0:
            out_of = sums + source * n + i
            tl.store(out_of, tl.load(out_of) - total, mask=there)


def add_group_sums(
    rows: tuple[torch.Tensor, torch.Tensor],
    columns: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    groups: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    sums: torch.Tensor,
    *,
    form: Form,
    weighted: bool,
    shape: Shape,
) -> None:
    """Add sums of groups of columns in double precision: a program for some rows, which passes over all columns."""
    n, width = rows[0].shape
    _add_group_sums[(triton.cdiv(n, shape.rows),)](
        *rows,
        *columns,
        *groups,
        sums,
        n,
        len(groups[1]),
        *form,
        width,
        _piece(width, shape),
        shape.rows,
        shape.columns,
        weighted,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )


@triton.jit
def _sums_of_few_rows(  # type: ignore[no-untyped-def]
    X,
    half_x,
    Y,
    half_y,
    labels,
    weights,
    sums,
    n_rows,
    n,
    share,
    numbers,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
    CLUSTERS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write the sums of ROWS rows over a share of the columns, by cluster."""
    o = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = tl.minimum(o, n_rows - 1)
    c = tl.arange(0, CLUSTERS)
    total = tl.zeros((ROWS, CLUSTERS), tl.float64)
    first = tl.program_id(1) * share
    for j0 in range(first, tl.minimum(first + share, n), COLUMNS):
        j = j0 + tl.arange(0, COLUMNS)
        there = j < n
        j = tl.minimum(j, n - 1)
        values = _wide_values(X, half_x, i, Y, half_y, j, numbers, KIND, DEGREE, WIDTH, PIECE)
        carried = tl.load(weights + j, mask=there, other=0.0)
        indicators = tl.where(tl.load(labels + j)[:, None] == c[None, :], carried[:, None], 0.0)
        total += tl.dot(values, indicators)
    at = tl.program_id(1).to(tl.int64) * n_rows * CLUSTERS + o[:, None].to(tl.int64) * CLUSTERS + c[None, :]
    tl.store(sums + at, total, mask=o[:, None] < n_rows)


def sums_of_few_rows(
    rows: tuple[torch.Tensor, torch.Tensor],
    columns: tuple[torch.Tensor, torch.Tensor],
    labels: torch.Tensor,
    weights: torch.Tensor,
    n_clusters: int,
    *,
    form: Form,
    programs: int,
    shape: Shape,
) -> torch.Tensor:
    """Return the (k, rows) sums of some rows in double precision: several programs share the columns of a row."""
    n_rows, width = rows[0].shape
    n = len(labels)
    height = triton.cdiv(n_rows, shape.rows)
    share = triton.cdiv(triton.cdiv(n, triton.cdiv(programs, height)), shape.columns) * shape.columns
    pieces = triton.cdiv(n, share)
    clusters = max(16, triton.next_power_of_2(n_clusters))
    sums = torch.empty(pieces, n_rows, clusters, dtype=torch.float64, device=labels.device)
    _sums_of_few_rows[(height, pieces)](
        *rows,
        *columns,
        labels,
        weights,
        sums,
        n_rows,
        n,
        share,
        *form,
        width,
        _piece(width, shape),
        clusters,
        shape.rows,
        shape.columns,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return sums.sum(dim=0)[:, :n_clusters].T


@triton.jit
def _pairs_within(  # type: ignore[no-untyped-def]
    X,
    half,
    weights,
    starts,
    clusters,
    totals,
    numbers,
    KIND: tl.constexpr,
    DEGREE: tl.constexpr,
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
    SIDE: tl.constexpr,
):
    """Write the sum over the pairs of a block of samples with half of its cluster, those of two blocks twice."""
    own = tl.program_id(0)
    o = tl.arange(0, SIDE)
    i = own * SIDE + o
    c = tl.load(clusters + own)
    first = tl.load(starts + c)
    count = tl.load(starts + c + 1) - first
    place = own - first
    half_way = count // 2
    steps = half_way + 1
    if (count % 2 == 0) & (place >= half_way):  # a block that lies opposite has taken this pair
        steps = half_way
    total = tl.zeros((SIDE,), tl.float64)
    for s in range(steps):
        j = (first + (place + s) % count) * SIDE + o
        values = _wide_values(X, half, i, X, half, j, numbers, KIND, DEGREE, WIDTH, PIECE)
        times = tl.where(s == 0, 1.0, 2.0)
        total += tl.sum(values * tl.load(weights + j)[None, :], axis=1) * times
    tl.store(totals + own, tl.sum(total * tl.load(weights + i), axis=0))


def pairs_within(
    samples: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    blocks: tuple[torch.Tensor, torch.Tensor],
    *,
    form: Form,
    shape: Shape,
) -> torch.Tensor:
    """Return what every block of samples adds to the pairs inside its cluster; arguments as of ``all_sums_of_halves``.

    Each pair is computed once, in double precision.
    """
    starts, clusters = blocks
    width = samples[0].shape[1]
    totals = torch.empty(len(clusters), dtype=torch.float64, device=starts.device)
    _pairs_within[(len(clusters),)](
        *samples,
        starts,
        clusters,
        totals,
        *form,
        width,
        _piece(width, shape),
        shape.rows,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return totals


@triton.jit
def _add_stored_rows(  # type: ignore[no-untyped-def]
    K,
    indicators,
    sums,
    n,
    n_columns,
    stride,
    CLUSTERS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write the product of some rows of a stored kernel with indicators of clusters, in double precision."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, CLUSTERS)
    total = tl.zeros((ROWS, CLUSTERS), tl.float64)
    for j0 in range(0, n_columns, COLUMNS):
        j = j0 + tl.arange(0, COLUMNS)
        there = (i[:, None] < n) & (j[None, :] < n_columns)
        values = tl.load(K + i[:, None].to(tl.int64) * stride + j[None, :], mask=there, other=0.0)
        weights = tl.load(indicators + j[:, None] * CLUSTERS + c[None, :], mask=j[:, None] < n_columns, other=0.0)
        total += tl.dot(values.to(tl.float64), weights)
    tl.store(sums + i[:, None].to(tl.int64) * CLUSTERS + c[None, :], total, mask=i[:, None] < n)


def stored_products(K: torch.Tensor, indicators: torch.Tensor, shape: Shape) -> torch.Tensor:
    """Return K @ indicators in double precision, K read once in the precision it is stored in."""
    n, n_columns = K.shape
    width = max(16, triton.next_power_of_2(indicators.shape[1]))
    padded = torch.zeros(n_columns, width, dtype=torch.float64, device=K.device)
    padded[:, : indicators.shape[1]] = indicators
    out = torch.empty(n, width, dtype=torch.float64, device=K.device)
    _add_stored_rows[(triton.cdiv(n, shape.rows),)](
        K,
        padded,
        out,
        n,
        n_columns,
        K.stride(0),
        width,
        shape.rows,
        shape.columns,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return out[:, : indicators.shape[1]]


@triton.jit
def _stored_sums(  # type: ignore[no-untyped-def]
    K,
    labels,
    weights,
    sums,
    n,
    n_columns,
    n_clusters,
    stride,
    CLUSTERS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write the sums of some rows of a stored kernel by cluster, in double precision."""
    o = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = tl.minimum(o, n - 1)
    c = tl.arange(0, CLUSTERS)
    total = tl.zeros((ROWS, CLUSTERS), tl.float64)
    for j0 in range(0, n_columns, COLUMNS):
        j = j0 + tl.arange(0, COLUMNS)
        there = j < n_columns
        values = tl.load(K + i[:, None].to(tl.int64) * stride + j[None, :], mask=there[None, :], other=0.0)
        label = tl.load(labels + j, mask=there, other=-1)
        carried = tl.load(weights + j, mask=there, other=0.0)
        indicators = tl.where(label[:, None] == c[None, :], carried[:, None], 0.0)
        total += tl.dot(values.to(tl.float64), indicators)
    at = c[None, :].to(tl.int64) * n + o[:, None]
    tl.store(sums + at, total, mask=(o[:, None] < n) & (c[None, :] < n_clusters))


def stored_sums(
    K: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, n_clusters: int, shape: Shape
) -> torch.Tensor:
    """Return the (k, n) sums by cluster in double precision, K read once in the precision it is stored in."""
    n, n_columns = K.shape
    sums = torch.empty(n_clusters, n, dtype=torch.float64, device=K.device)
    _stored_sums[(triton.cdiv(n, shape.rows),)](
        K,
        labels,
        weights,
        sums,
        n,
        n_columns,
        n_clusters,
        K.stride(0),
        max(16, triton.next_power_of_2(n_clusters)),
        shape.rows,
        shape.columns,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return sums


@triton.jit
def _nearest_means(  # type: ignore[no-untyped-def]
    Phi,
    centers,
    norms,
    coefs,
    diag,
    labels,
    chosen,
    least,
    leads,
    tolerance,
    n,
    width,
    CLUSTERS: tl.constexpr,
    ROWS: tl.constexpr,
    PIECE: tl.constexpr,
):
    """Write the nearest mean of ROWS rows, how far it is, and the least lead of those that stay."""
    o = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = o < n
    i = tl.minimum(o, n - 1)
    c = tl.arange(0, CLUSTERS)
    d = tl.arange(0, PIECE)
    products = tl.zeros((ROWS, CLUSTERS), tl.float64)
    for d0 in range(0, width, PIECE):
        known = d0 + d < width
        rows = tl.load(Phi + i[:, None].to(tl.int64) * width + d0 + d[None, :], mask=known[None, :], other=0.0)
        means = tl.load(centers + c[:, None] * width + d0 + d[None, :], mask=known[None, :], other=0.0)
        products += tl.dot(rows.to(tl.float64), tl.trans(means))
    far = float("inf")
    norm = tl.load(norms + c)
    values = tl.load(coefs + c)[None, :] * ((norm[None, :] - 2.0 * products) + tl.load(diag + i)[:, None])
    values = tl.where(norm[None, :] == far, far, values)
    own = tl.load(labels + i)
    mine = c[None, :] == own[:, None]
    kept = tl.min(tl.where(mine, values, far), axis=1)
    others = tl.where(mine, far, values)
    low = tl.min(others, axis=1)
    limit = tl.load(tolerance)
    moves = low < kept - limit
    first = tl.min(tl.where(others <= (low + limit)[:, None], c[None, :], CLUSTERS), axis=1)
    value = tl.min(tl.where(c[None, :] == first[:, None], values, far), axis=1)
    tl.store(chosen + o, tl.where(moves, first.to(tl.int64), own), mask=there)
    tl.store(least + o, tl.where(moves, value, kept), mask=there)
    lead = tl.where(moves | ~there, far, low - kept + limit)
    tl.store(leads + tl.program_id(0), tl.min(lead, axis=0))


def nearest_means(
    Phi: torch.Tensor,
    centers: torch.Tensor,
    norms: torch.Tensor,
    coefs: torch.Tensor,
    diag: torch.Tensor,
    labels: torch.Tensor,
    tolerance: float,
    shape: Shape,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the nearest mean of every row, its value, and the least lead of rows that stay; Phi is read once.

    An infinite norm stands for a cluster without a mean.
    """
    n, width = Phi.shape
    k = len(norms)
    clusters = max(16, triton.next_power_of_2(k))
    device = Phi.device
    means = torch.zeros(clusters, width, dtype=torch.float64, device=device)
    means[:k] = centers
    far = torch.full((clusters,), torch.inf, dtype=torch.float64, device=device)
    far[:k] = norms
    factors = torch.ones(clusters, dtype=torch.float64, device=device)
    factors[:k] = coefs
    programs = triton.cdiv(n, shape.rows)
    chosen = torch.empty(n, dtype=torch.int64, device=device)
    least = torch.empty(n, dtype=torch.float64, device=device)
    leads = torch.empty(programs, dtype=torch.float64, device=device)
    _nearest_means[(programs,)](
        Phi,
        means,
        far,
        factors,
        diag,
        labels,
        chosen,
        least,
        leads,
        torch.full((1,), tolerance, dtype=torch.float64, device=device),
        n,
        width,
        clusters,
        shape.rows,
        shape.piece,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )
    return chosen, least, leads.amin()
