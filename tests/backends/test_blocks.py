"""Arrays in blocks: what is written down is computed in one round, kept while it is in use, and dropped after."""

import gc
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import Backend, get_backend
from kernelweave.backends.blocks import BlocksBackend, Here, here, work
from kernelweave.backends.blocks.merging import merged
from kernelweave.backends.blocks.nodes import Block, Node, PerBlock, Ref, Shard, commands, in_order

SIZES = [1, 4, 2, 1]
N = sum(SIZES)
VALUES = np.arange(1.0, N + 1.0)


def backend(**options):
    return BlocksBackend(Here(SIZES, **options))


def double(block, values):
    return 2.0 * values


# Nodes


def test_nodes_are_computed_after_their_arguments_and_known_ones_not_at_all():
    a = Node(0, work.given, (PerBlock([1.0]),))
    b = Node(1, double, (a,))
    c = Node(2, double, (b,))
    assert [node.number for node in in_order([c, b], set())] == [0, 1, 2]
    assert [node.number for node in in_order([c], {1})] == [2]
    assert in_order([c], {2}) == []


def test_values_are_dropped_after_their_last_use_unless_somebody_holds_or_wants_them():
    a = Node(0, work.given, (PerBlock(["x", "y"]),))
    b = Node(1, double, (a,))
    c = Node(2, double, (b,), kept=False)
    program = commands([a, b, c], held={1, 2}, wanted={2}, blocks=[1])
    assert [command.done_with for command in program] == [(), (0,), ()]
    assert [command.keep for command in program] == [False, True, False]
    assert program[0].args == (PerBlock({1: "y"}),)
    assert program[1].args == (Ref(0),)


def test_a_shard_keeps_what_commands_say_and_forgets_what_is_dropped():
    shard = Shard()
    shard.take_over([Block(0, 0, 2)])
    a = Node(0, work.given, (PerBlock([np.ones(2)]),))
    b = Node(1, double, (a,))
    answer = dict(shard.run(commands([a, b], {0}, {1}, [0]), [1], [0]))
    assert answer[0, 0][0].tolist() == [2.0, 2.0]
    assert list(shard.values[0]) == [0]
    program = commands([b], set(), {1}, [0])
    (answer,) = shard.run(program, [1], [0], dropped_after=[0])
    assert answer[1][0].tolist() == [2.0, 2.0], "The program reads what goes after it."
    assert shard.values[0] == {}
    shard.values[0][0] = np.ones(2)
    list(shard.run([], [], [0], dropped=[0]))
    assert shard.values[0] == {}


# Merging


def outer_sum(values, lo, hi):
    """Add up neighbours, then neighbouring pairs, ...: the slow plain form of the tree."""
    if hi - lo == 1:
        return values[lo]
    width = 1
    while 2 * width < hi - lo:
        width *= 2
    return outer_sum(values, lo, lo + width) + outer_sum(values, lo + width, hi)


@given(n_blocks=st.integers(1, 40), n_places=st.integers(1, 5), seed=st.integers(0, 2**16))
@settings(max_examples=45, deadline=None)
def test_a_sum_along_the_tree_does_not_depend_on_who_adds_what(n_blocks, n_places, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n_blocks) * 10.0 ** rng.integers(-8, 8, n_blocks)
    homes = rng.integers(n_places, size=n_blocks)
    answers = {}
    for place in range(n_places):
        blocks = rng.permutation(np.flatnonzero(homes == place))
        answers |= merged(n_blocks, operator.add, [((0, int(b)), [values[b]]) for b in blocks])
    (total,) = merged(n_blocks, operator.add, answers.items()).values()
    assert total == [outer_sum(values, 0, n_blocks)]


def test_neighbours_that_lie_together_travel_as_few_parts():
    parts = merged(1000, operator.add, [((0, b), [1]) for b in range(333, 667)])
    assert sum(values[0] for values in parts.values()) == 334
    assert len(parts) <= 2 * 10


# Arrays


def test_the_backend_has_every_verb_that_these_solvers_use():
    verbs = {name for name in dir(Backend) if not name.startswith("_")}
    lacking = {name for name in verbs if not hasattr(BlocksBackend, name)}
    tiled = {name for name in verbs if name.startswith(("tiled", "filled", "asymmetry", "candidate_gains_of"))}
    of_absence = {"take", "add_to_samples", "sum_of_pairs", "add_to_pairs"}  # views that lack samples are in one place
    assert lacking == tiled | of_absence | {"assign_by_size"}


def test_arithmetic_is_that_of_numpy():
    there = backend()
    x = there.array(VALUES)
    y = there.array(VALUES[::-1].copy())
    cases = {
        "sum": (x + y, VALUES + VALUES[::-1]),
        "difference": (1.0 - x, 1.0 - VALUES),
        "quotient": (2.0 / x, 2.0 / VALUES),
        "power": (x**2, VALUES**2),
        "negative": (abs(-x), VALUES),
        "comparison": (x > y, VALUES[::-1] < VALUES),
        "both": ((x > 2.0) & (y > 2.0), (VALUES > 2.0) & (VALUES[::-1] > 2.0)),
        "minimum": (there.minimum(x, y), np.minimum(VALUES, VALUES[::-1])),
        "where": (there.where(x > 3.0, x, 0.0), np.where(VALUES > 3.0, VALUES, 0.0)),
        "column": ((x[:, None] * np.ones((1, 2)))[:, 1], VALUES),
    }
    for name, (lazy, expected) in cases.items():
        assert lazy.shape == expected.shape, name
        np.testing.assert_array_equal(there.host(lazy), expected, err_msg=name)


def test_a_change_in_place_leaves_others_as_they_were():
    there = backend()
    x = there.array(VALUES)
    y = x
    z = x * 1.0
    x += 1.0
    x *= 2.0
    np.testing.assert_array_equal(there.host(y), 2.0 * (VALUES + 1.0))
    np.testing.assert_array_equal(there.host(z), VALUES)


def test_an_array_does_not_come_to_the_host_by_accident():
    x = backend().array(VALUES)
    with pytest.raises(TypeError, match="is elsewhere"):
        np.asarray(x)
    with pytest.raises(TypeError, match="no truth value"):
        bool(x > 1.0)
    with pytest.raises(TypeError, match="indexing"):
        x[2:3, None]


def test_samples_are_numbered_among_all_blocks():
    there = backend()
    x = there.array(VALUES)
    assert there.at(x, np.array([7, 0, 4, 4])).tolist() == [8.0, 1.0, 5.0, 5.0]
    assert there.at(x, np.array([], dtype=np.intp)).tolist() == []
    assert there.first(x > 4.5) == 4
    assert there.first(x > 100.0) == -1
    assert there.host(there.replace(there.labels(np.zeros(N)), np.array([6, 1]), np.array([3, 4]))).tolist() == [
        0, 4, 0, 0, 0, 0, 3, 0
    ]  # fmt: skip
    assert there.extremes(x) == (1.0, 8.0)


@pytest.mark.parametrize("mass", [VALUES, np.where(np.arange(N) == 5, 1.0, 0.0), np.r_[0.0, np.ones(6), 0.0]])
def test_draws_are_those_of_one_machine(mass):
    there = backend()
    uniforms = np.random.default_rng(0).random(200)
    assert there.draw(there.array(mass), uniforms).tolist() == get_backend().draw(mass, uniforms).tolist()


def test_rounding_draws_no_sample_of_a_block_without_mass():
    there = backend()
    assert there.draw(there.array(np.r_[np.ones(N - 1), 0.0]), np.array([1.0])).tolist() == [N - 2]


def test_labels_come_back_as_indices_and_equal_ones_have_one_fingerprint():
    there = backend()
    labels = np.array([0, 1, 1, 300, 0, 2, 1, 0])
    back = there.host(there.labels(labels))
    assert back.dtype == np.intp
    assert back.tolist() == labels.tolist()
    assert there.fingerprint(there.labels(labels)) == there.fingerprint(there.labels(labels.copy()))
    assert there.fingerprint(there.labels(labels)) != there.fingerprint(there.labels(np.zeros(N)))


# Rounds


def test_everything_written_down_is_computed_in_one_round():
    there = backend()
    x = there.array(VALUES)
    y = x * 2.0
    z = y + x
    assert there.places.traffic.rounds == 0
    assert there.total(z) == 3.0 * VALUES.sum()
    assert there.places.traffic.rounds == 1
    assert there.total(y) == 2.0 * VALUES.sum()
    assert there.places.traffic.rounds == 2


def test_a_value_is_kept_while_it_is_held_and_forgotten_after():
    there = backend()
    x = there.array(VALUES)
    y = x * 2.0
    there.total(y)
    number = y.node.number
    assert all(number in known for known in there.places.known)
    assert all(number in values for values in there.places._shard.values.values())
    del y
    gc.collect()
    there.total(x)
    assert not any(number in known for known in there.places.known)
    assert not any(number in values for values in there.places._shard.values.values())
    assert {n for values in there.places._shard.values.values() for n in values} == {x.node.number}


def test_a_value_that_nobody_holds_any_more_is_read_by_what_was_written_down_and_forgotten_after():
    there = backend()
    x = there.array(VALUES)
    y = x * 2.0
    there.total(y)  # from here on it is kept
    number = y.node.number
    z = y + 1.0
    del y
    gc.collect()
    assert all(number in values for values in there.places._shard.values.values())
    np.testing.assert_array_equal(there.host(z), 2.0 * VALUES + 1.0)
    assert not any(number in known for known in there.places.known)
    assert not any(number in values for values in there.places._shard.values.values())


def test_where_blocks_are_streamed_samples_are_loaded_again_and_never_kept():
    there = backend(streams=True)
    loads = []

    def load(values):
        def again():
            loads.append(len(values))
            return values

        return again

    pieces = there.each([load(VALUES[lo:hi]) for lo, hi in zip(there.starts[:-1], there.starts[1:], strict=True)])
    x = there.made(work.loaded, pieces, shape=(N,), kept=False)
    assert there.total(x) == VALUES.sum()
    assert there.total(x) == VALUES.sum()
    assert loads == SIZES * 2
    assert all(values == {} for values in there.places._shard.values.values())


def test_freed_memory_goes_back_every_so_often_while_blocks_are_streamed_not_after_every_round(monkeypatch):
    clock = iter([10.0, 10.01, 10.04, 10.06, 10.07])
    returned = []
    monkeypatch.setattr(here.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(here, "return_freed_memory", lambda: returned.append(True))
    streamed = Here(SIZES, streams=True)
    counts = []
    for _ in range(5):
        streamed.send([])
        counts.append(len(returned))
    assert counts == [1, 1, 1, 2, 2]
    Here(SIZES).send([])
    assert len(returned) == 2


def test_room_is_used_up():
    places = Here(SIZES, room=100.0)
    assert places.has_room_for(60)
    assert not places.has_room_for(60)
    assert places.has_room_for(40)
    assert not Here(SIZES, streams=True).has_room_for(1)


def test_close_forgets_everything():
    there = backend()
    x = there.array(VALUES)
    there.total(x)
    there.close()
    assert there.places.known == [set()] * len(SIZES)
    assert there.total(x) == VALUES.sum(), "What is forgotten is computed again from where it came from."
