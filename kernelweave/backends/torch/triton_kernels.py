"""The fused pass as a Triton kernel. Imported on a GPU only; ``fused.add_plain`` says the same in plain torch."""

import torch
import triton
import triton.language as tl

from kernelweave.backends.torch.fused import Shape


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
