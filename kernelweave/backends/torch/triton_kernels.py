"""Passes over kernels as Triton programs. Imported on a GPU only; each has a twin in plain torch that says the same."""

import torch
import triton
import triton.language as tl

from kernelweave.backends.torch.fused import Shape

# Rows and columns of a tile of a stored kernel.
STORED_ROWS = 64
STORED_COLUMNS = 64


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
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Add the sums over groups of columns to those of clusters, for ROWS rows; nobody else writes to these."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = i < n
    d = tl.arange(0, PIECE)
    hx = tl.load(half_x + i, mask=there, other=0.0)
    x = tl.load(X + i[:, None].to(tl.int64) * WIDTH + d[None, :], mask=there[:, None], other=0.0)
    for g in range(n_groups):
        first = tl.load(starts + g)
        last = tl.load(starts + g + 1)
        total = tl.zeros((ROWS,), tl.float64)
        for j0 in range(first, last, COLUMNS):
            j = j0 + tl.arange(0, COLUMNS)
            hy = tl.load(half_y + j)
            y = tl.load(Y + j[:, None].to(tl.int64) * WIDTH + d[None, :])
            products = tl.dot(x, tl.trans(y), input_precision=PRECISION)
            for d0 in tl.static_range(PIECE, WIDTH, PIECE):
                more_x = tl.load(X + i[:, None].to(tl.int64) * WIDTH + d0 + d[None, :], mask=there[:, None], other=0.0)
                more_y = tl.load(Y + j[:, None].to(tl.int64) * WIDTH + d0 + d[None, :])
                products += tl.dot(more_x, tl.trans(more_y), input_precision=PRECISION)
            values = tl.exp2(tl.minimum(products + (hx[:, None] + hy[None, :]), 0.0))
            if WEIGHTED:
                values *= tl.load(weights + j)[None, :]
            total += tl.sum(values, axis=1).to(tl.float64)
        into = sums + tl.load(plus + g).to(tl.int64) * n + i
        tl.store(into, tl.load(into, mask=there, other=0.0) + total, mask=there)
        source = tl.load(minus + g).to(tl.int64)
        if source >= 0:
            out_of = sums + source * n + i
            tl.store(out_of, tl.load(out_of, mask=there, other=0.0) - total, mask=there)


def launch(
    rows: tuple[torch.Tensor, torch.Tensor],
    sources: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    groups: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    sums: torch.Tensor,
    *,
    weighted: bool,
    precision: str,
    shape: Shape,
) -> None:
    """Run the kernel: a program for some rows, which passes over all columns."""
    X, half_x = rows
    n, width = X.shape
    _add_group_sums[(triton.cdiv(n, shape.rows),)](
        X,
        half_x,
        *sources,
        *groups,
        sums,
        n,
        len(groups[1]),
        width,
        min(width, shape.piece),
        shape.rows,
        shape.columns,
        precision,
        weighted,
        num_warps=shape.warps,
        num_stages=shape.stages,
    )


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


def stored_products(K: torch.Tensor, indicators: torch.Tensor) -> torch.Tensor:
    """Return K @ indicators in double precision, K read once in the precision it is stored in."""
    n, n_columns = K.shape
    width = max(16, triton.next_power_of_2(indicators.shape[1]))
    padded = torch.zeros(n_columns, width, dtype=torch.float64, device=K.device)
    padded[:, : indicators.shape[1]] = indicators
    out = torch.empty(n, width, dtype=torch.float64, device=K.device)
    _add_stored_rows[(triton.cdiv(n, STORED_ROWS),)](
        K,
        padded,
        out,
        n,
        n_columns,
        K.stride(0),
        width,
        STORED_ROWS,
        STORED_COLUMNS,
        num_warps=4,
        num_stages=4,
    )
    return out[:, : indicators.shape[1]]
