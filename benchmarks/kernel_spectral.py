"""Kernel spectral clustering of several views: training against the dense problem, and the road to a million points."""

import time

import numpy as np
from scipy.linalg import eig, solve
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, in_fresh_process, seconds
from kernelweave.datasets import make_mvksc_synth2
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.solvers.spectral.kernel_spectral import coupled_kernel_spectral, degree_weights

SUITE = "kernel spectral clustering"
SIGMA = 1.0
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)

# Fits synth 1 of growing size, training on at most 1,000 samples.
GROWTH = """
import resource, sys, time
from kernelweave import MultiViewKernelSpectralClustering
from kernelweave.datasets import make_mvksc_synth1
from kernelweave.metrics import normalized_mutual_info
def fit(n):
    data = make_mvksc_synth1(n, random_state=0)
    model = MultiViewKernelSpectralClustering(
        2, kernel_params={"sigma": 1.0}, n_train_samples=min(n, 1000), random_state=0
    )
    start = time.perf_counter()
    model.fit(data.views)
    return time.perf_counter() - start, normalized_mutual_info(data.target, model.labels_)
fit(2000)
result = [(n, *fit(n)) for n in map(int, sys.argv[1:])]
"""


def run():
    return [*training(1000), *growth(SIZES)]


def problem(m):
    """Return centred kernels, inverse degrees and gamma of the three views of synth 2."""
    kernels = []
    inverses = []
    for X in make_mvksc_synth2(m, random_state=0).views.values():
        op = fit_kernel(X, "rbf", {"sigma": SIGMA}).operator("dense")
        inverses.append(degree_weights(op))
        kernels.append(np.ascontiguousarray(CentredKernel(op, inverses[-1]).block(slice(None), slice(None))))
    return kernels, inverses, np.ones(3)


def dense(kernels, inverses, gammas):
    """Return the leading eigenvalue of (15) as it is printed: unsymmetric, of size V m."""
    n_views = len(kernels)
    m = len(kernels[0])
    A = np.zeros((n_views * m, n_views * m))
    for v in range(n_views):
        B = np.eye(m) - gammas[v] / m * inverses[v][:, None] * kernels[v]
        rows = slice(v * m, (v + 1) * m)
        for u in range(n_views):
            if u != v:
                coupling = np.sqrt(inverses[v] * inverses[u])[:, None] * kernels[u]
                A[rows, u * m : (u + 1) * m] = solve(B, coupling)
    return float(np.max(eig(A, overwrite_a=True)[0].real))


def training(m, repeats=1):
    """Compare the symmetric solver with the dense unsymmetric one, blocks on the right solved beforehand."""
    kernels, inverses, gammas = problem(m)
    result = {}

    def ours():
        result["ours"] = coupled_kernel_spectral(kernels, inverses, gammas, 1).eigenvalues[0]

    def theirs():
        with threadpool_limits(1):  # ours has one thread as well, and two fight for a busy core
            result["dense"] = dense(kernels, inverses, gammas)

    ours()
    taken = {**seconds({"dense": theirs}, repeats), **seconds({"ours": ours}, 3 * repeats)}
    ratio = taken["dense"] / taken["ours"]
    apart = abs(result["ours"] / result["dense"] - 1.0)
    text = f"{ratio:.0f} x as fast as a dense unsymmetric solver ({taken['ours']:.2f} and {taken['dense']:.1f} s)"
    text += f", leading eigenvalues within {apart:.0e}"
    return [Row(SUITE, f"the coupled problem of 3 views, m = {m:,}", text, ">= 10", ratio >= 10 and apart < 1e-8)]


def growth(sizes):
    """Measure time, memory and NMI of synth 1 as it grows."""
    result, peak = in_fresh_process(GROWTH, argv=tuple(map(str, sizes)))
    n, taken, nmi = (np.array(column) for column in zip(*result, strict=True))
    times = ", ".join(f"{t:.2f} s at {int(size):,}" for size, t in zip(n, taken, strict=True))
    far = n >= 10_000
    slope = float(np.polyfit(np.log(n[far]), np.log(taken[far]), 1)[0])
    steady = nmi[n >= 1_000]
    apart = float(steady.max() - steady.min())
    megabytes = peak * 1.048576
    values = 2 * 1000 * int(n[-1])
    floor = exponentials(values)
    what = "synth 1, two views, m = 1,000"
    return [
        Row(SUITE, f"{what}, time over n", f"{times}; exponent {slope:.2f} from 10,000 on", "<= 1.1", slope <= 1.1),
        Row(SUITE, f"{what}, {int(n[-1]):,} samples", f"{taken[-1]:.1f} s", "< 120 s", taken[-1] < 120),
        Row(SUITE, f"{what}, {int(n[-1]):,} samples, peak", f"{megabytes:.0f} MB", "< 1,500 MB", megabytes < 1500),
        Row(
            SUITE,
            f"{what}, NMI from 1,000 samples on",
            f"{steady.min():.3f} to {steady.max():.3f}",
            "within 0.05",
            apart <= 0.05,
        ),
        Row(
            SUITE,
            f"{what}, {int(n[-1]):,} samples, against the exponentials alone on one thread",
            f"{taken[-1] / floor:.2f} x of {floor:.1f} s for {values:,} of them",
        ),
    ]


def exponentials(n_values, block=1_000_000):
    """Return the seconds numpy takes for so many exponentials, on one thread."""
    values = -np.random.default_rng(0).random(block)
    out = np.empty(block)
    start = time.perf_counter()
    for _ in range(20):
        np.exp(values, out=out)
    return (time.perf_counter() - start) / 20 * n_values / block
