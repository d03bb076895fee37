"""A backend whose data lie in two halves that are never handed out whole.

It stands in for data on two machines: every array of one entry per sample is a pair of NumPy arrays, arithmetic works
half by half, and whatever a verb hands to the host is checked to be small. Written plainly, for tests alone.
"""

import operator
from functools import wraps

import numpy as np
from scipy.linalg import qr

from kernelweave.backends import Assignment, Moves, numpy_loops


class Halves:
    """An array in two halves along ``axis``; it has no other way to the host than the backend's ``host``."""

    __array_ufunc__ = None  # NumPy leaves arithmetic with it to this class

    def __init__(self, first, second, axis=0):
        self.parts = (first, second)
        self.axis = axis

    def __array__(self, *args, **kwargs):
        raise AssertionError("An array of all samples was asked for on the host.")

    def __iter__(self):
        raise AssertionError("Somebody walks over all samples on the host.")

    def __bool__(self):
        raise AssertionError("An array of all samples has no truth value.")

    def __len__(self):
        return self.shape[0]

    @property
    def shape(self):
        shape = list(self.parts[0].shape)
        shape[self.axis] += self.parts[1].shape[self.axis]
        return tuple(shape)

    @property
    def ndim(self):
        return self.parts[0].ndim

    @property
    def dtype(self):
        return self.parts[0].dtype

    @property
    def middle(self):
        return self.parts[0].shape[self.axis]

    def map(self, function, *others, axis=None):
        """Return a function of the halves; other arrays in halves take part half by half."""
        results = [
            function(part, *(other.parts[h] if isinstance(other, Halves) else other for other in others))
            for h, part in enumerate(self.parts)
        ]
        axes = [array.axis for array in (self, *others) if isinstance(array, Halves)]
        return Halves(*results, axis=max(axes) if axis is None else axis)

    def __getitem__(self, key):
        rows, columns = key
        assert rows == slice(None), "Samples are not chosen by indexing."
        assert columns is None or isinstance(columns, slice | int)
        assert self.axis == 0
        return Halves(*(part[:, columns] for part in self.parts))

    def _binary(self, other, function):
        if isinstance(other, np.ndarray):
            assert self.shape[self.axis] not in other.shape, "An array of all samples met one in halves."
        return self.map(function, other)

    def _in_place(self, other, function):
        for h, part in enumerate(self.parts):
            function(part, other.parts[h] if isinstance(other, Halves) else other)
        return self

    def __iadd__(self, other):
        return self._in_place(other, operator.iadd)

    def __imul__(self, other):
        return self._in_place(other, operator.imul)

    def __abs__(self):
        return self.map(np.abs)

    def __neg__(self):
        return self.map(np.negative)


def _arithmetic():
    names = ("add", "sub", "mul", "truediv", "pow", "gt", "ge", "lt", "le", "ne", "eq")
    for name in names:
        function = getattr(operator, name)

        def forward(self, other, function=function):
            return self._binary(other, function)

        def backward(self, other, function=function):
            return self._binary(other, lambda a, b: function(b, a))

        setattr(Halves, f"__{name}__", forward)
        setattr(Halves, f"__r{name}__", backward)


_arithmetic()
Halves.__hash__ = None


def checked(verb):
    """Let a verb return halves, numbers, and NumPy arrays none of whose sides is that of the samples."""

    @wraps(verb)
    def call(self, *args, **kwargs):
        result = verb(self, *args, **kwargs)
        for value in result if isinstance(result, tuple) else (result,):
            if isinstance(value, np.ndarray):
                assert self.n not in value.shape, f"{verb.__name__} handed out an array of all samples."
                self.largest = max(self.largest, value.size)
        return result

    return call


class HalvesBackend:
    """The verbs of the protocol on arrays in halves; ``n`` is the number of samples."""

    name = "halves"
    direct_limit = 0
    one_run_at_a_time = True
    run_candidates = None
    steps = None
    graph_moves = None
    margin_dual = None
    gaussian_sums = None

    def __init__(self, n, middle):
        self.n = n
        self.middle = middle
        self.largest = 0
        self.hosted = []

    def _split(self, values, axis=0):
        assert values.shape[axis] == self.n
        first, second = np.split(values, [self.middle], axis=axis)
        return Halves(first.copy(), second.copy(), axis)

    # Arrays

    def array(self, values, dtype=np.float64):
        return values if isinstance(values, Halves) else self._split(np.asarray(values, dtype=dtype))

    def labels(self, values):
        if isinstance(values, Halves):
            return values.map(lambda part: part.astype(np.intp, copy=True))
        return self._split(np.asarray(values, dtype=np.intp))

    def host(self, values):
        self.hosted.append(values.shape)
        return np.concatenate(values.parts, axis=values.axis)

    def ones(self, n):
        assert n == self.n
        return Halves(np.ones(self.middle), np.ones(n - self.middle))

    def where(self, condition, values, others):
        return condition.map(np.where, values, others)

    def minimum(self, values, others):
        return values.map(np.minimum, others)

    def maximum(self, values, others):
        return values.map(np.maximum, others)

    # Numbers of all samples

    def total(self, values):
        return float(sum(part.sum() for part in values.parts))

    @checked
    def dot(self, vector, values):
        product = sum(a @ b for a, b in zip(vector.parts, values.parts, strict=True))
        return float(product) if values.ndim == 1 else product

    def extremes(self, values):
        low = min(float(part.min(initial=np.inf)) for part in values.parts)
        return low, max(float(part.max(initial=-np.inf)) for part in values.parts)

    def first(self, condition):
        for h, part in enumerate(condition.parts):
            if part.any():
                return int(np.argmax(part)) + h * self.middle
        return -1

    @checked
    def at(self, values, samples):
        picked = [values.parts[int(s >= self.middle)][s - self.middle * int(s >= self.middle)] for s in samples]
        return np.array(picked)

    @checked
    def draw(self, mass, uniforms):
        totals = [part.sum() for part in mass.parts]
        drawn = []
        for goal in uniforms * sum(totals):
            h = int(goal >= totals[0])
            cumulative = np.cumsum(mass.parts[h]) + h * totals[0]
            place = min(int(np.searchsorted(cumulative, goal, side="right")), len(cumulative) - 1)
            drawn.append(place + h * self.middle)
        return np.array(drawn)

    @checked
    def draw_distinct(self, mass, count, rng):
        chosen = []
        left = mass.map(np.copy)
        while len(chosen) < count:
            new = self.draw(left, rng.random(count - len(chosen)))
            chosen += list(dict.fromkeys(new.tolist()))
            left = self._zeroed(mass, chosen)
        return np.array(chosen)

    def _zeroed(self, mass, samples):
        mass = mass.map(np.copy)
        for s in samples:
            h = int(s >= self.middle)
            mass.parts[h][s - h * self.middle] = 0.0
        return mass

    # Labels

    @checked
    def segment_sums(self, labels, values, n_clusters):
        pairs = zip(labels.parts, values.parts, strict=True)
        return sum(np.bincount(part, weights, n_clusters) for part, weights in pairs).astype(np.float64)

    def moves(self, old, new):
        samples = [np.flatnonzero(a != b) for a, b in zip(old.parts, new.parts, strict=True)]
        before = [part[where] for part, where in zip(old.parts, samples, strict=True)]
        after = [part[where] for part, where in zip(new.parts, samples, strict=True)]
        return Moves(sum(map(len, samples)), Halves(*samples), Halves(*before), Halves(*after), new)

    def _carried(self, moves, values):
        return Halves(*(part[where] for part, where in zip(values.parts, moves.samples.parts, strict=True)))

    @checked
    def moved_sums(self, moves, values, n_clusters):
        carried = self._carried(moves, values)
        return self.segment_sums(moves.new, carried, n_clusters) - self.segment_sums(moves.old, carried, n_clusters)

    def moved_sums_of(self, moves, several, n_clusters):
        return [self.moved_sums(moves, values, n_clusters) for values in several]

    def best_moves(self, old, moves, gains, count):
        ranked = sorted(
            (round(float(gain), 9), h, int(sample), int(new))
            for h in (0, 1)
            for gain, sample, new in zip(
                gains.parts[h][moves.samples.parts[h]], moves.samples.parts[h], moves.new.parts[h], strict=True
            )
        )
        labels = old.map(np.copy)
        for _, h, sample, new in ranked[:count]:
            labels.parts[h][sample] = new
        return labels

    def relabel(self, labels, target):
        return labels.map(lambda part: target[part])

    def replace(self, labels, samples, new):
        labels = labels.map(np.copy)
        for s, label in zip(samples.tolist(), new.tolist(), strict=True):
            h = int(s >= self.middle)
            labels.parts[h][s - h * self.middle] = label
        return labels

    @checked
    def farthest(self, assignment, weights, unit, count):
        rows = []
        for h in (0, 1):
            distances = assignment.distances.parts[h]
            for i in np.flatnonzero(weights.parts[h] > 0):
                rank = round(float(distances[i] / unit), 9) if unit > 0 else float(distances[i])
                rows.append((-rank, i + h * self.middle, distances[i], assignment.labels.parts[h][i]))
        rows = sorted(rows)[:count]
        return tuple(np.array([row[column] for row in rows]) for column in (1, 2, 3))

    def first_nearest(self, distances, tolerance):
        return distances.map(
            lambda part: np.asarray(part <= part.min(axis=1, keepdims=True) + tolerance).argmax(axis=1)
        )

    def compact(self, labels, n_clusters):
        return labels.map(lambda part: part.astype(np.min_scalar_type(n_clusters)))

    def fingerprint(self, labels):
        return b"|".join(part.tobytes() for part in labels.parts)

    # Stored kernels, in halves of their rows

    def diagonal(self, K):
        first, second = K.parts
        return Halves(np.diagonal(first).astype(float), np.diagonal(second[:, self.middle :]).astype(float))

    def largest_entry(self, K):
        return float(max(np.abs(part).max() for part in K.parts))

    @checked
    def block(self, K, rows, cols):
        return np.stack([K.parts[int(s >= self.middle)][s - self.middle * int(s >= self.middle)] for s in rows])[
            :, cols
        ]

    def columns(self, K, samples):
        return K.map(lambda part: part[:, samples])

    def _by_columns(self, K):
        """Yield for each half of the columns the kernel with all rows, in halves."""
        yield 0, K.map(lambda part: part[:, : self.middle])
        yield 1, K.map(lambda part: part[:, self.middle :])

    def product(self, K, H):
        H = self.array(H)
        terms = [block.map(lambda part, h=h: part @ H.parts[h]) for h, block in self._by_columns(K)]
        return terms[0] + terms[1]

    def cluster_sums(self, K, labels, weights, n_clusters):
        total = None
        for h, block in self._by_columns(K):
            members = np.zeros((len(labels.parts[h]), n_clusters))
            members[np.arange(len(members)), labels.parts[h]] = weights.parts[h]
            sums = block.map(lambda part, members=members: (part.astype(float) @ members).T, axis=1)
            total = sums if total is None else total + sums
        return total

    def move_sums(self, sums, K, moves, weights):
        carried = self._carried(moves, weights)
        for h, block in self._by_columns(K):
            pairs = zip(moves.samples.parts[h], moves.old.parts[h], moves.new.parts[h], carried.parts[h], strict=True)
            for sample, old, new, weight in pairs:
                for part, rows in zip(sums.parts, block.parts, strict=True):
                    part[old] -= weight * rows[:, sample]
                    part[new] += weight * rows[:, sample]

    def candidate_gains(self, K, diag, distances, weights):
        total = 0.0
        for h, block in self._by_columns(K):
            total = total + block.map(
                lambda part, rows, h=h: (
                    np.maximum(distances.parts[h][None, :] - (rows[:, None] + diag.parts[h][None, :] - 2.0 * part), 0.0)
                    @ weights.parts[h]
                ),
                diag,
                axis=0,
            )
        return total

    # Cluster sums, in halves of their columns

    @checked
    def within_sums(self, sums, labels, weights):
        inside = sums.map(lambda part, own: part[own, np.arange(len(own))], labels, axis=0)
        return self.segment_sums(labels, weights * inside, len(sums.parts[0]))

    @checked
    def cluster_products(self, sums, labels, weights):
        k = len(sums.parts[0])
        rows = [Halves(*(part[c] for part in sums.parts)) for c in range(k)]
        return np.stack([self.segment_sums(labels, weights * row, k) for row in rows])

    def _assignments(self, labels, each):
        out = labels.map(np.empty_like)
        values = labels.map(lambda part: np.empty(len(part)))
        leads = [each(h, out.parts[h], values.parts[h], len(values.parts[h])) for h in (0, 1)]
        return Assignment(out, values, min(leads))

    def nearest(self, sums, totals, norms, labels, tolerance, diag, coefs=None):
        slopes = np.where(totals > 0, 2.0 / np.where(totals > 0, totals, 1.0), 0.0)
        coefs = np.ones(len(totals)) if coefs is None else coefs

        def each(h, out, values, size):
            arrays = (sums.parts[h], slopes, norms, coefs, diag.parts[h], labels.parts[h])
            return numpy_loops.nearest_scaled(*arrays, tolerance, out, values, 0, size)

        return self._assignments(labels, each)

    def distances_to_clusters(self, sums, totals, norms, labels, diag):
        filled = np.where(totals > 0, totals, 1.0)
        return diag.map(
            lambda rows, part, own: rows - 2.0 * part[own, np.arange(len(own))] / filled[own] + norms[own],
            sums,
            labels,
            axis=0,
        )

    def add_to_clusters(self, sums, clusters, values):
        for part, more in zip(sums.parts, values.parts, strict=True):
            part[clusters] += more

    def stack(self, arrays):
        return list(arrays)

    def weighted_sum(self, coefficients, stack):
        first, *others = [float(c) * array for c, array in zip(coefficients, stack, strict=True)]
        for other in others:
            first = first + other
        return first

    # Features

    def squared_lengths(self, Phi):
        return Phi.map(lambda part: (part**2).sum(axis=1))

    @checked
    def feature_products(self, Phi, H):
        return sum(a.T @ b for a, b in zip(Phi.parts, self.array(H).parts, strict=True))

    def spread(self, Phi, vectors):
        return Phi.map(lambda part: part @ vectors)

    def spread_rows(self, Phi, vectors):
        return Phi.map(lambda part: vectors @ part.T, axis=1)

    @checked
    def feature_sums(self, Phi, labels, weights, n_clusters):
        sums = np.zeros((n_clusters, Phi.shape[1]))
        for part, own, weight in zip(Phi.parts, labels.parts, weights.parts, strict=True):
            np.add.at(sums, own, weight[:, None] * part)
        return sums

    @checked
    def moved_features(self, Phi, moves, weights, n_clusters):
        rows = Phi.map(lambda part, where: part[where], moves.samples)
        carried = self._carried(moves, weights)
        return self.feature_sums(rows, moves.new, carried, n_clusters) - self.feature_sums(
            rows, moves.old, carried, n_clusters
        )

    def nearest_means(self, Phi, means, norms, labels, tolerance, diag, coefs):
        columns = np.ascontiguousarray(means.T)

        def each(h, out, values, size):
            arrays = (Phi.parts[h], diag.parts[h], columns, norms, coefs, labels.parts[h])
            return numpy_loops.nearest_means(*arrays, tolerance, out, values, 0, size)

        return self._assignments(labels, each)

    def distances_to_means(self, Phi, means, norms, labels, diag):
        return Phi.map(lambda part, own, rows: rows - 2.0 * (part * means[own]).sum(axis=1) + norms[own], labels, diag)

    @checked
    def gram(self, Phi, weights):
        return sum(part.T @ (own[:, None] * part) for part, own in zip(Phi.parts, weights.parts, strict=True))

    # Thin blocks

    def start_block(self, n, width):
        rng = np.random.default_rng(0)
        block = Halves(*(rng.standard_normal((size, width)) for size in (self.middle, n - self.middle)))
        return self._orthonormal_columns(block)[0]

    @checked
    def inner(self, blocks, others):
        block = self.join(blocks)
        other = self.join(others)
        return sum(a.T @ b for a, b in zip(block.parts, other.parts, strict=True))

    def combine(self, blocks, matrix):
        return self.join(blocks).map(lambda part: part @ matrix)

    @checked
    def column_norms(self, block):
        return np.sqrt(sum((part**2).sum(axis=0) for part in block.parts))

    def join(self, blocks):
        first, *others = blocks
        return first.map(lambda *parts: np.hstack(parts), *others)

    def together(self, blocks):
        return [self.join(blocks)]

    def orthonormal(self, block, basis):
        size = self.column_norms(block).max(initial=0.0)
        for _ in range(2):
            block = block - self.combine(basis, self.inner(basis, [block]))
        Q, R = self._orthonormal_columns(block)
        keep = np.abs(np.diagonal(R)) > 1e-10 * size
        Q = Q.map(lambda part: part[:, keep])
        if keep.all() or not keep.any():
            return Q
        return self._orthonormal_columns(Q - self.combine(basis, self.inner(basis, [Q])))[0]

    def _orthonormal_columns(self, block):
        """Return Q and R of a block: a decomposition of each half, then one of both small factors."""
        decomposed = [np.linalg.qr(part) for part in block.parts]
        small, R, _ = qr(np.vstack([r for _, r in decomposed]), mode="economic", pivoting=True)
        middle = len(decomposed[0][1])
        parts = [decomposed[0][0] @ small[:middle], decomposed[1][0] @ small[middle:]]
        return Halves(*parts), R
