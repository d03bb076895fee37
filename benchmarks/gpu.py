"""Fits on one GPU: ``python -m benchmarks.gpu`` on a machine that has one, ``--part`` for some of it.

Every figure is printed with what it is measured against in the same run: copies in memory, the CPU, a plain torch loop.
``twins`` compares the programs of the GPU with their twins in plain torch.
"""

import argparse
import os
import subprocess
import time
from contextlib import contextmanager

import numpy as np

import kernelweave as kw
from kernelweave import config_context

PARTS = ("machine", "twins", "passes", "fit", "labels", "stored", "views", "search", "beside")
K = 10
WIDTH = 50
#: The errors of exact global kernel k-means on all 10,992 digits with sigma = 2.1, for 2 to 10 clusters, on a CPU.
DIGITS = (9234.065, 8659.671, 8226.020, 7853.094, 7539.734, 7239.453, 6989.814, 6741.290, 6514.938)


def say(*words):
    print(*words, flush=True)


def samples(n, width=WIDTH, k=K, seed=0):
    """Return clusters that overlap, in single precision."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((k, width), dtype=np.float32)
    X = rng.standard_normal((n, width), dtype=np.float32)
    X += centres[rng.integers(k, size=n)]
    return X


def seconds(work, *args, repeats=3):
    """Return the least seconds of a few repetitions, after one that compiles."""
    import torch

    work(*args)
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work(*args)
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return min(taken)


@contextmanager
def peak():
    """Yield a function that tells the GiB that the card held at most."""
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    yield lambda: torch.cuda.max_memory_allocated() / 2**30


def machine():
    import torch
    import triton

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, "
        f"commit {commit.stdout.strip() or 'unknown'}, {os.cpu_count()} cores")  # fmt: skip
    say(f"copy: {copy_rate() / 1e12:.2f} TB/s read and written")
    A = torch.randn(8192, 8192, device="cuda")
    for name, B in (("float32", A), ("bfloat16", A.bfloat16()), ("float64", A[:4096, :4096].double().contiguous())):
        taken = seconds(torch.matmul, B, B)
        say(f"product of matrices, {name}: {2 * len(B) ** 3 / taken / 1e12:.0f} TFLOP/s")
    torch.backends.cuda.matmul.allow_tf32 = True
    say(f"product of matrices, tf32: {2 * 8192**3 / seconds(lambda: A @ A) / 1e12:.0f} TFLOP/s")
    torch.backends.cuda.matmul.allow_tf32 = False
    small = torch.randint(-64, 63, (8192, 8192), dtype=torch.int8, device="cuda")
    say(f"product of matrices, int8: {2 * 8192**3 / seconds(lambda: torch._int_mm(small, small.T)) / 1e12:.0f} TOP/s")
    x = torch.randn(2**28, device="cuda")
    y = torch.empty_like(x)
    say(f"powers of two, written to memory: {x.numel() / seconds(lambda: torch.exp2(x, out=y)) / 1e12:.2f} x 10^12/s")


def copy_rate():
    """Return the bytes a second that a copy on the card reads and writes."""
    import torch

    x = torch.empty(2**31, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.numel() / seconds(lambda: y.copy_(x))


def twins():
    import torch

    from kernelweave.backends.torch.fused import FusedSums, Groups
    from kernelweave.backends.torch.triton_kernels import stored_products

    for width in (3, 50, 200):
        X = torch.tensor(samples(5000, width), dtype=torch.float64, device="cuda") / width**0.5
        labels = torch.arange(5000, device="cuda") % K
        weights = torch.rand(5000, dtype=torch.float64, device="cuda")
        kernel = torch.exp(-0.5 * torch.cdist(X, X, compute_mode="donot_use_mm_for_euclid_dist") ** 2)
        indicators = torch.nn.functional.one_hot(labels, K).double() * weights[:, None]
        exact = (kernel @ indicators).T
        for precision in ("float64", "tf32x3", "tf32", "ieee"):
            fused = FusedSums(X, precision)
            groups = Groups.by_cluster(labels, K)
            sums = torch.zeros(K, 5000, dtype=torch.float64, device="cuda")
            fused.add_sums(sums, groups, weights)
            twin = torch.zeros_like(sums)
            fused.add_plain(fused.X, fused.half, twin, groups, weights)
            off = float(((sums - exact).abs() / exact).max())
            apart = float(((sums - twin).abs() / exact).max())
            bound = 1e-13 if precision == "float64" else float(fused.relative_errors().max())
            say(f"twins, {width} columns, {precision}: off by {off:.1e} (bound {bound:.1e}), from the twin {apart:.1e}"
                + ("" if off <= bound else "  BROKEN"))  # fmt: skip
        stored = kernel.float()
        apart = float((stored_products(stored, indicators) - stored.double() @ indicators).abs().max())
        say(f"twins, stored in single precision: {apart:.1e} of {float(exact.max()):.1f}"
            + ("" if apart < 1e-9 else "  BROKEN"))  # fmt: skip


#: Rows, columns, features multiplied together, warps and stages of tiles that are tried.
SHAPES = (
    (128, 128, 128, 8, 2), (128, 128, 128, 8, 3), (128, 128, 128, 4, 3), (64, 128, 128, 4, 3), (128, 64, 128, 4, 3),
    (128, 64, 128, 8, 3), (256, 64, 128, 8, 3), (256, 128, 128, 8, 2), (64, 256, 128, 8, 2),
)  # fmt: skip
WIDE_SHAPES = (
    (64, 64, 32, 4, 2), (64, 64, 16, 4, 3), (128, 64, 16, 8, 2), (64, 128, 16, 8, 2), (32, 64, 32, 4, 2),
    (64, 32, 64, 4, 2),
)  # fmt: skip


def passes(n=1_000_000):
    import torch

    X = torch.tensor(samples(n), dtype=torch.float64, device="cuda") / WIDTH**0.5
    labels = torch.randint(0, K, (n,), device="cuda")
    for precision in ("tf32x3", "tf32"):
        pass_rates(X, labels, precision, "TILE", SHAPES)
    pass_rates(X[: n // 4], labels[: n // 4], "float64", "WIDE_TILE", WIDE_SHAPES)


def pass_rates(X, labels, precision, tile, shapes):
    """Print the kernel values a second of a full pass, for every shape of tiles."""
    import torch

    from kernelweave.backends.torch import fused

    gaussian = fused.FusedSums(X, precision)
    groups = fused.Groups.by_cluster(labels, K)
    sums = torch.zeros(K, len(X), dtype=torch.float64, device="cuda")
    usual = getattr(fused, tile)
    for shape in shapes:
        setattr(fused, tile, fused.Shape(*shape))
        try:
            taken = seconds(gaussian.add_sums, sums, groups, None, repeats=1)
        except Exception as error:  # some shapes do not fit the card
            say(f"pass, {precision}, {shape}: {type(error).__name__}")
            continue
        say(f"pass, {precision}, {shape}: {taken:.3f} s, {len(X) ** 2 / taken / 1e12:.3f} x 10^12 values/s")
    setattr(fused, tile, usual)


def model(**changes):
    return kw.KernelKMeans(K, n_init=1, storage="blockwise", random_state=0, **changes)


def fit():
    import torch

    for n in (100_000, 1_000_000):
        X = samples(n)
        with config_context(device="cuda"):
            model().fit(X[:20_000])  # compiled once
            for repeat in range(2):
                with peak() as held:
                    began = time.perf_counter()
                    fitted = model().fit(X)
                    torch.cuda.synchronize()
                    say(f"fit, n = {n:,}: {time.perf_counter() - began:.2f} s, {fitted.n_iter_} steps, "
                        f"{held():.2f} GiB on the card, objective {fitted.objective_:.6f}, run {repeat}")  # fmt: skip


def labels():
    for n in (20_000, 100_000):
        X = samples(n)
        with config_context(device="cuda"):
            there = model().fit(X)
        began = time.perf_counter()
        here = model().fit(X)
        taken = time.perf_counter() - began
        same = float((here.labels_ == there.labels_).mean())
        apart = abs(here.objective_ - there.objective_) / here.objective_
        say(f"labels, n = {n:,}: equal {same:.6f}, objectives apart by {apart:.1e}, steps {here.n_iter_} and "
            f"{there.n_iter_}, CPU {taken:.1f} s")  # fmt: skip


def stored(n=50_000):
    import torch

    from kernelweave.backends import get_device_backend
    from kernelweave.backends.torch import TorchArray
    from kernelweave.kernels.dense import DenseKernel

    X = torch.tensor(samples(n), device="cuda") / WIDTH**0.5
    matrix = torch.empty(n, n, device="cuda")
    for lo in range(0, n, 5000):
        matrix[lo : lo + 5000] = torch.exp(-0.5 * torch.cdist(X[lo : lo + 5000], X) ** 2)
    backend = get_device_backend("cuda")
    op = DenseKernel(TorchArray(matrix), psd=True, backend=backend)
    partition = op.partition(np.arange(n) % K, np.ones(n), K)

    def step():
        partition.refresh()
        partition.nearest()

    taken = seconds(step)
    rate = copy_rate() / 2
    say(f"stored, float32, n = {n:,}: a step reads {matrix.numel() * 4 / 1e9:.1f} GB in {1e3 * taken:.2f} ms, "
        f"{matrix.numel() * 4 / taken / (2 * rate):.2f} of the bytes a second that a copy moves")  # fmt: skip


def views(n=10_000_000, n_views=5, width=20):
    import torch

    from kernelweave.backends import get_device_backend
    from kernelweave.backends.torch import TorchArray
    from kernelweave.kernels.features import FeatureKernel
    from kernelweave.kernels.weighted_sum import composite

    backend = get_device_backend("cuda")
    tables = [torch.randn(n, width, dtype=torch.float64, device="cuda") for _ in range(n_views)]
    op = composite([FeatureKernel(TorchArray(table), backend=backend) for table in tables], np.full(n_views, 0.2))
    del tables
    partition = op.view_partition(np.arange(n) % K, np.ones(n), K)

    def step():
        moves = partition.moves_to(partition.nearest().labels)
        partition.move(moves)
        partition.view_scatters()

    taken = seconds(step)
    read = n * n_views * width * 8
    say(f"views, {n:,} x {n_views} x {width}: a step {1e3 * taken:.1f} ms; features are {read / 1e9:.1f} GB, "
        f"{read / taken / copy_rate():.2f} of the bytes a second that a copy moves")  # fmt: skip


def search():
    path = os.path.join(os.environ.get("KERNELWEAVE_DATA", ""), "pendigits", "pendigits.npz")
    if not os.path.exists(path):
        say("search: KERNELWEAVE_DATA has no pendigits")
        return
    with np.load(path) as file:
        X = file["X"].astype(np.float64)
    with config_context(device="cuda"):
        kw.GlobalKernelKMeans(3, search="exact", kernel_params={"sigma": 2.1}).fit(X[:500])
        with peak() as held:
            began = time.perf_counter()
            fitted = kw.GlobalKernelKMeans(K, search="exact", kernel_params={"sigma": 2.1}, memory_limit=4096).fit(X)
            taken = time.perf_counter() - began
            say(f"search, {len(X):,} digits: {taken:.2f} s, {held():.1f} GiB on the card")
    errors = fitted.inertia_path_[1:]
    apart = np.abs(errors - np.array(DIGITS)).max()
    say("search, errors:", *np.round(errors, 3), f"apart by {apart:.4f}" + ("" if apart < 6e-4 else "  BROKEN"))


def plain_loop(X, gamma, start, most=300):
    """Return labels of the loop that a user of torch would write: the kernel stored in single precision."""
    import torch

    squares = (X * X).sum(dim=1)
    kernel = torch.exp(-gamma * (squares[:, None] + squares - 2.0 * X @ X.T).clamp(min=0.0))
    labels = start
    for step in range(most):
        indicators = torch.nn.functional.one_hot(labels, K).float()
        counts = indicators.sum(dim=0)
        sums = kernel @ indicators
        norms = (sums * indicators).sum(dim=0) / counts**2
        new = (norms - 2.0 * sums / counts).argmin(dim=1)
        if bool((new == labels).all()):
            return labels, step
        labels = new
    return labels, most


def beside():
    import torch

    for n in (20_000, 100_000):
        X = samples(n)
        start = np.random.default_rng(0).integers(K, size=n)
        gamma = 1.0 / (WIDTH * X.var())
        with config_context(device="cuda"):
            ours = seconds(kw.KernelKMeans(K, init=start, storage="blockwise").fit, X, repeats=2)
        there = torch.tensor(X, device="cuda")
        begin = torch.tensor(start, device="cuda")
        with peak() as held:
            loop = seconds(plain_loop, there, gamma, begin, repeats=2)
            say(f"beside, n = {n:,}: ours {ours:.2f} s, a plain torch loop {loop:.2f} s with {held():.1f} GiB, "
                f"ratio {loop / ours:.2f}")  # fmt: skip
        if n <= 20_000:
            began = time.perf_counter()
            kw.KernelKMeans(K, init=start, storage="blockwise").fit(X)
            say(f"beside, n = {n:,}: ours on {os.cpu_count()} cores {time.perf_counter() - began:.1f} s")
        try:
            import pykeops  # noqa: F401
        except ImportError:
            say("beside: KeOps is not installed")


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    for name in parser.parse_args().part:
        began = time.perf_counter()
        globals()[name]()
        say(f"-- {name}: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
