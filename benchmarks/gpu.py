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
from kernelweave.datasets import standardize

PARTS = (
    "machine", "twins", "tiles", "passes", "fit", "labels", "kernels", "stored", "views", "neighbours", "search",
    "beside",
)  # fmt: skip
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

    from kernelweave.backends.torch import shapes
    from kernelweave.backends.torch.fused import FusedSums, Groups
    from kernelweave.backends.torch.pairs import PairForm
    from kernelweave.backends.torch.triton_kernels import stored_products

    n = 5000
    labels = torch.arange(n, device="cuda") % K
    weights = torch.rand(n, dtype=torch.float64, device="cuda")
    indicators = torch.nn.functional.one_hot(labels, K).double() * weights[:, None]
    some = torch.randperm(n, device="cuda")[:300]

    def compare(name, found, exact, bound):
        off = float(
            (found - exact).abs().max() / exact.abs().max()
            if exact.min() <= 0
            else ((found - exact) / exact).abs().max()
        )
        say(f"twins, {name}: off by {off:.1e} (bound {bound:.1e})" + ("" if off <= bound else "  BROKEN"))

    for width in (3, 50, 128, 200, 784):
        X = torch.tensor(samples(n, width), dtype=torch.float64, device="cuda") / width**0.5
        for form in (PairForm("gaussian"), PairForm("laplacian", 0.5), PairForm("polynomial", 0.5, 1.0, 3)):
            kernel = form.values(X, X)
            exact = (kernel @ indicators).T
            within = torch.stack([indicators[:, c] @ kernel @ indicators[:, c] for c in range(K)])
            for precision in ("float64", "tf32x3", "tf32") if form.kind == "gaussian" else ("float64",):
                fused = FusedSums(X, precision, form.fused)
                wide = precision == "float64"
                bound = 1e-12 if wide else float(fused.relative_errors().max())
                name = f"{width} columns, {form.kind}, {precision}"
                compare(f"{name}, all pairs", fused.all_sums(labels, K, weights), exact, bound)
                sums = torch.zeros(K, n, dtype=torch.float64, device="cuda")
                fused.add_sums(sums, Groups.by_cluster(labels, K), weights)
                compare(f"{name}, groups", sums, exact, bound)
                if form.kind == "gaussian":
                    twin = torch.zeros_like(sums)
                    fused.add_plain(twin, Groups.by_cluster(labels, K), weights)
                    compare(f"{name}, groups and twin", sums, twin, bound)
                if wide:
                    compare(f"{name}, few rows", fused.sums_of(some, labels, weights, K), exact[:, some], bound)
                    compare(f"{name}, within", fused.within_sums(labels, weights, K), within, bound)
            if form.kind == "gaussian":
                stored = kernel.float()
                found = stored_products(stored, indicators, shapes.STORED_TILE)
                compare(f"{width} columns, stored in single precision", found, stored.double() @ indicators, 1e-12)


#: Tiles that are tried, by the name of the shape.
TRIED = {
    "ROUND_TILE": ((128, 128, 64, 4, 2), (128, 128, 64, 4, 1), (128, 128, 64, 8, 2), (64, 64, 64, 4, 2)),
    "TILE": ((128, 64, 128, 4, 3), (128, 128, 128, 8, 2), (256, 64, 128, 8, 3)),
    "WIDE_TILE": ((64, 32, 64, 4, 2), (64, 64, 32, 4, 2), (32, 64, 32, 4, 2)),
    "WITHIN_TILE": ((64, 64, 32, 4, 2), (32, 32, 64, 4, 2), (64, 64, 64, 8, 2), (64, 64, 64, 4, 2)),
    "FEW_ROWS_TILE": ((32, 64, 64, 4, 2), (64, 64, 64, 4, 2), (32, 32, 64, 4, 2), (16, 64, 64, 4, 2)),
    "STORED_TILE": (
        (64, 64, 64, 4, 4), (64, 128, 64, 4, 3), (128, 64, 64, 8, 4), (32, 128, 64, 4, 4), (64, 64, 64, 8, 4),
        (32, 64, 64, 4, 6), (128, 32, 64, 4, 4),
    ),
}  # fmt: skip


def tiles(n=400_000):
    """Times of every pass by the shape of its tiles."""
    import torch

    from kernelweave.backends.torch import fused, shapes
    from kernelweave.backends.torch.triton_kernels import stored_products

    X = torch.tensor(samples(n), dtype=torch.float64, device="cuda") / WIDTH**0.5
    labels = torch.randint(0, K, (n,), device="cuda")
    ones = torch.ones(n, dtype=torch.float64, device="cuda")
    rough = fused.FusedSums(X)
    exact = fused.FusedSums(X, "float64")
    groups = fused.Groups.by_cluster(labels, K)
    sums = torch.zeros(K, n, dtype=torch.float64, device="cuda")
    few = torch.arange(400, device="cuda")
    first = n // 5
    short = fused.FusedSums(X[:first], "float64")
    stored = torch.rand(30_000, 30_000, device="cuda")
    indicators = torch.nn.functional.one_hot(labels[:30_000], K).double()
    work = {
        "ROUND_TILE": (lambda: rough.all_sums(labels, K, None), n**2, "values"),
        "TILE": (lambda: rough.add_sums(sums, groups, None), n**2, "values"),
        "WIDE_TILE": (lambda: short.all_sums(labels[:first], K, ones), first**2, "values"),
        "WITHIN_TILE": (lambda: exact.within_sums(labels, ones, K), n**2 // K, "values"),
        "FEW_ROWS_TILE": (lambda: exact.sums_of(few, labels, ones, K), n * len(few), "values"),
        "STORED_TILE": (
            lambda: stored_products(stored, indicators, shapes.STORED_TILE), stored.numel() * 4, "bytes"
        ),
    }  # fmt: skip
    for name, tried in TRIED.items():
        usual = getattr(shapes, name)
        run, amount, unit = work[name]
        for shape in tried:
            setattr(shapes, name, shapes.Shape(*shape))
            try:
                taken = seconds(run)
            except Exception as error:  # some shapes do not fit the card
                say(f"tiles, {name} {shape}: {type(error).__name__}")
                continue
            mark = "  in use" if shapes.Shape(*shape) == usual else ""
            say(f"tiles, {name} {shape}: {1e3 * taken:.2f} ms, {amount / taken / 1e12:.3f} x 10^12 {unit}/s{mark}")
        setattr(shapes, name, usual)


def passes(n=1_000_000):
    """Kernel values a second of full passes over all pairs, beside what the units of the card could do."""
    import torch

    from kernelweave.backends.torch.fused import FusedSums

    X = torch.tensor(samples(n), dtype=torch.float64, device="cuda") / WIDTH**0.5
    labels = torch.randint(0, K, (n,), device="cuda")
    A = torch.randn(8192, 8192, device="cuda").half()
    products = 2 * 8192**3 / seconds(torch.matmul, A, A, repeats=5)
    card = torch.cuda.get_device_properties(0)
    clock = getattr(card, "clock_rate", 1_980_000) * 1e3
    powers = card.multi_processor_count * 16 * clock
    for precision, parts in (("tf32x3", 3), ("tf32", 1)):
        fused = FusedSums(X, precision)
        taken = seconds(lambda fused=fused: fused.all_sums(labels, K, None), repeats=2)
        rate = n**2 / taken
        # Each pair is computed once: two values of the kernel for one of the products and one of the powers.
        say(f"pass, {precision}, n = {n:,}: {taken:.3f} s, {rate / 1e12:.3f} x 10^12 values/s; limits: tensor cores "
            f"{2 * products / (2 * parts * fused.width) / 1e12:.1f} (measured on a product of matrices in float16), "
            f"exponentials {2 * powers / 1e12:.1f} (16 a clock and multiprocessor, {clock / 1e9:.2f} GHz)")  # fmt: skip
    ones = torch.ones(n, dtype=torch.float64, device="cuda")
    exact = FusedSums(X[: n // 4], "float64")
    taken = seconds(exact.all_sums, labels[: n // 4], K, ones[: n // 4], repeats=1)
    say(f"pass, float64, n = {n // 4:,}: {taken:.3f} s, {(n // 4) ** 2 / taken / 1e12:.3f} x 10^12 values/s")


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


def kernels(n=20_000):
    """Kernels that are summed in double precision, never stored: labels and times beside the CPU's."""
    X = samples(n)
    for kernel, params in (("laplacian", {}), ("poly", {"degree": 3, "gamma": 0.01, "coef0": 1.0}), ("cosine", {})):
        settings = {"kernel": kernel, "kernel_params": params, "max_iter": 20}
        with config_context(device="cuda"):
            model(**settings).fit(X)
            began = time.perf_counter()
            there = model(**settings).fit(X)
            taken = time.perf_counter() - began
        began = time.perf_counter()
        here = model(**settings).fit(X)
        same = float((here.labels_ == there.labels_).mean())
        say(f"kernels, {kernel}, n = {n:,}: {taken:.2f} s, CPU {time.perf_counter() - began:.2f} s, labels equal "
            f"{same:.6f}, {there.n_iter_} steps")  # fmt: skip


def neighbours(n=100_000, width=30, count=15):
    """Nearest neighbours, exact, beside the CPU's."""
    from sklearn.neighbors import NearestNeighbors

    from kernelweave.kernels.spec.neighbors import nearest

    X = samples(n, width).astype(np.float64)
    index = NearestNeighbors(n_neighbors=count + 1, algorithm="brute").fit(X)
    with config_context(device="cuda"):
        nearest(index, X[:1000])
        began = time.perf_counter()
        there = nearest(index, X)
        taken = time.perf_counter() - began
    some = np.arange(0, n, n // 2000)
    here = nearest(index, X[some])
    same = float((here[1] == there[1][some]).all(axis=1).mean())
    say(f"neighbours, {n:,} x {width}, {count} of each: {taken:.2f} s, equal to the CPU's on {same:.4f} of "
        f"{len(some)} rows")  # fmt: skip


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
        X = standardize(file["X"])
    with config_context(device="cuda"):
        # Programs are compiled once for numbers of samples that are multiples of 16, and once for others.
        kw.GlobalKernelKMeans(3, search="exact", kernel_params={"sigma": 2.1}).fit(X[:512])
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
