"""Compiled moves of single nodes between the clusters of a graph.

The cost of a cluster is (cut_share * degree - association) / mass, where association counts the edges inside (each from
both ends), degree all edge ends, and mass is the degree or the number of nodes. Moving a node changes the cost of two
clusters and needs the edges of that node alone.

Per-cluster numbers travel in one (4, k) array: association, degree, mass, number of nodes with a mass.
"""

import numpy as np
from numba import njit

from kernelweave.foundation.array_types import Floats, Ints


@njit(nogil=True, cache=True)
def _cost(association: float, degree: float, mass: float, cut_share: float) -> float:
    """Return the cost of a cluster; one without mass costs nothing."""
    return (cut_share * degree - association) / mass if mass > 0.0 else 0.0


@njit(nogil=True, cache=True)
def _links(
    indptr: Ints, indices: Ints, data: Floats, labels: Ints, node: int, links: Floats, near: Ints
) -> tuple[int, float]:
    """Add up the edges of a node by cluster; lists the clusters met and returns their number and the self-loop."""
    n_near = 0
    loop = 0.0
    for e in range(indptr[node], indptr[node + 1]):
        other = indices[e]
        if other == node:
            loop += data[e]
            continue
        c = labels[other]
        if links[c] == 0.0:
            near[n_near] = c
            n_near += 1
        links[c] += data[e]
    return n_near, loop


@njit(nogil=True, cache=True)
def inner_links(indptr: Ints, indices: Ints, data: Floats, labels: Ints, out: Floats, lo: int, hi: int) -> None:
    """Write the edges of nodes lo:hi to other nodes of their own cluster."""
    for node in range(lo, hi):
        own = labels[node]
        total = 0.0
        for e in range(indptr[node], indptr[node + 1]):
            other = indices[e]
            if other != node and labels[other] == own:
                total += data[e]
        out[node] = total


@njit(nogil=True, cache=True)
def _gain(
    stats: Floats,
    old: int,
    new: int,
    link_old: float,
    link_new: float,
    loop: float,
    degree: float,
    mass: float,
    cut_share: float,
) -> float:
    """Return how much the cost changes when a node goes from ``old`` to ``new``."""
    before = _cost(stats[0, old], stats[1, old], stats[2, old], cut_share)
    before += _cost(stats[0, new], stats[1, new], stats[2, new], cut_share)
    after = _cost(stats[0, old] - 2.0 * link_old - loop, stats[1, old] - degree, stats[2, old] - mass, cut_share)
    after += _cost(stats[0, new] + 2.0 * link_new + loop, stats[1, new] + degree, stats[2, new] + mass, cut_share)
    return after - before


@njit(nogil=True, cache=True)
def _move(
    stats: Floats,
    labels: Ints,
    node: int,
    new: int,
    link_old: float,
    link_new: float,
    loop: float,
    degree: float,
    mass: float,
) -> None:
    old = labels[node]
    stats[0, old] -= 2.0 * link_old + loop
    stats[0, new] += 2.0 * link_new + loop
    stats[1, old] -= degree
    stats[1, new] += degree
    stats[2, old] -= mass
    stats[2, new] += mass
    stats[3, old] -= 1.0
    stats[3, new] += 1.0
    labels[node] = new


@njit(nogil=True, cache=True)
def _best_move(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    degrees: Floats,
    masses: Floats,
    labels: Ints,
    stats: Floats,
    node: int,
    cut_share: float,
    tolerance: float,
    links: Floats,
    near: Ints,
) -> float:
    """Make the move of a node that lowers the cost most, if any does by more than the tolerance; returns the change.

    Any cluster may be the target: a node can gain by leaving for one it has no edge to.
    """
    if not masses[node] > 0.0 or stats[3, labels[node]] <= 1.0:
        return 0.0
    old = labels[node]
    n_near, loop = _links(indptr, indices, data, labels, node, links, near)
    best = -tolerance
    target = -1
    for c in range(stats.shape[1]):
        if c != old and stats[3, c] > 0.0:
            change = _gain(stats, old, c, links[old], links[c], loop, degrees[node], masses[node], cut_share)
            if change < best:
                best = change
                target = c
    if target >= 0:
        _move(stats, labels, node, target, links[old], links[target], loop, degrees[node], masses[node])
    for s in range(n_near):
        links[near[s]] = 0.0
    return best if target >= 0 else 0.0


@njit(nogil=True, cache=True)
def sweep(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    degrees: Floats,
    masses: Floats,
    labels: Ints,
    stats: Floats,
    cut_share: float,
    tolerance: float,
    max_sweeps: int,
) -> tuple[int, int]:
    """Move single nodes to any cluster, in order, until none lowers the cost; returns sweeps and moves made."""
    links = np.zeros(stats.shape[1])
    near = np.empty(stats.shape[1], np.int64)
    moves = 0
    for done in range(max_sweeps):
        before = moves
        for node in range(labels.size):
            change = _best_move(
                indptr, indices, data, degrees, masses, labels, stats, node, cut_share, tolerance, links, near
            )
            moves += change < 0.0
        if moves == before:
            return done, moves
    return max_sweeps, moves


@njit(nogil=True, cache=True)
def _before(key: float, order: int, other_key: float, other_order: int) -> bool:
    """Whether a node comes out of the heap before another: larger key first, then the one reached earlier."""
    return key > other_key or (key == other_key and order < other_order)


@njit(nogil=True, cache=True)
def _push(keys: Floats, heap: Ints, size: int, key: float, order: int, node: int) -> int:
    """Add a node to the heap, held as keys and rows (order, node); returns the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(key, order, keys[parent], heap[parent, 0]):
            break
        keys[at] = keys[parent]
        heap[at, 0] = heap[parent, 0]
        heap[at, 1] = heap[parent, 1]
        at = parent
    keys[at] = key
    heap[at, 0] = order
    heap[at, 1] = node
    return size + 1


@njit(nogil=True, cache=True)
def _pop(keys: Floats, heap: Ints, size: int) -> int:
    """Take the first node off the heap, whose place 0 the caller has read; returns the new size."""
    size -= 1
    key = keys[size]
    order = heap[size, 0]
    node = heap[size, 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(keys[child + 1], heap[child + 1, 0], keys[child], heap[child, 0]):
            child += 1
        if not _before(keys[child], heap[child, 0], key, order):
            break
        keys[at] = keys[child]
        heap[at, 0] = heap[child, 0]
        heap[at, 1] = heap[child, 1]
        at = child
    keys[at] = key
    heap[at, 0] = order
    heap[at, 1] = node
    return size


@njit(nogil=True, cache=True)
def grow(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    degrees: Floats,
    masses: Floats,
    loops: Floats,
    labels: Ints,
    stats: Floats,
    inner: Floats,
    cut_share: float,
    seeds: Ints,
    changes: Floats,
    sizes: Ints,
    order: Ints,
    lo: int,
    hi: int,
) -> None:
    """Let each of seeds[lo:hi] grow a new cluster inside its own and find where it had best stop.

    The cluster takes in the node with the largest share of its edges inside, the one reached earlier of equals, up to
    half the mass of the old cluster. Writes the least change of the cost on the way and the number of nodes there;
    ``order`` holds the nodes of the last seed as they came. ``inner`` are the edges of each node inside its cluster.
    """
    n = labels.size
    keys = np.empty(indices.size + n + 1)
    heap = np.empty((indices.size + n + 1, 2), np.int64)
    link = np.zeros(n)
    seen = np.zeros(n, np.int64)
    reached = np.empty(n, np.int64)
    for t in range(lo, hi):
        seed = seeds[t]
        home = labels[seeds[t]]
        changes[t] = np.inf
        sizes[t] = 0
        if not masses[seed] > 0.0 or stats[3, home] <= 1.0:
            continue
        old_a = stats[0, home]
        old_d = stats[1, home]
        old_m = stats[2, home]
        # half the mass, with room for the rounding of its sum
        left = stats[3, home]
        start = _cost(old_a, old_d, old_m, cut_share)
        half = 0.5 * old_m * (1.0 + 1e-12)
        new_a = 0.0
        new_d = 0.0
        new_m = 0.0
        size = _push(keys, heap, 0, 0.0, 0, seed)
        met = 1
        taken = 0
        reached[0] = seed
        seen[seed] = 1
        while size > 0 and left > 1.0:
            key = keys[0]
            node = heap[0, 1]
            size = _pop(keys, heap, size)
            share = link[node] / degrees[node] if degrees[node] > 0.0 else 0.0
            if seen[node] < 0 or key != share:
                continue  # taken already, or an entry from before it gained a link
            if new_m + masses[node] > half and taken > 0:
                break
            seen[node] = -seen[node]
            left -= 1.0
            old_a -= 2.0 * (inner[node] - link[node]) + loops[node]
            new_a += 2.0 * link[node] + loops[node]
            old_d -= degrees[node]
            new_d += degrees[node]
            old_m -= masses[node]
            new_m += masses[node]
            order[taken] = node
            taken += 1
            change = _cost(old_a, old_d, old_m, cut_share) + _cost(new_a, new_d, new_m, cut_share) - start
            if change < changes[t]:
                changes[t] = change
                sizes[t] = taken
            for e in range(indptr[node], indptr[node + 1]):
                other = indices[e]
                if other == node or labels[other] != home or seen[other] < 0 or not masses[other] > 0.0:
                    continue
                if seen[other] == 0:
                    reached[met] = other
                    met += 1
                    seen[other] = met
                link[other] += data[e]
                size = _push(keys, heap, size, link[other] / degrees[other], seen[other], other)
        for s in range(met):
            link[reached[s]] = 0.0
            seen[reached[s]] = 0


@njit(nogil=True, cache=True)
def farthest(indptr: Ints, indices: Ints, labels: Ints, start: int) -> int:
    """Return the node of a cluster that breadth-first search from ``start`` reaches last."""
    n = labels.size
    queue = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    queue[0] = start
    seen[start] = True
    head = 0
    tail = 1
    while head < tail:
        node = queue[head]
        head += 1
        for e in range(indptr[node], indptr[node + 1]):
            other = indices[e]
            if not seen[other] and labels[other] == labels[start]:
                seen[other] = True
                queue[tail] = other
                tail += 1
    return queue[tail - 1]
