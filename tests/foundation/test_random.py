"""One seed in, streams out: the i-th stream depends on the seed and on i alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.foundation.random_streams import PURPOSES, streams

quick = settings(max_examples=50, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def first_draws(random_state, count):
    return [stream.random(4).tolist() for stream in streams(random_state, count)]


@quick
@given(seed=seeds, few=st.integers(0, 5), more=st.integers(0, 5))
def test_more_streams_leave_the_first_ones_as_they_were(seed, few, more):
    assert first_draws(seed, few + more)[:few] == first_draws(seed, few)


@quick
@given(seed=seeds)
def test_streams_can_be_used_in_any_order(seed):
    backwards = [stream.random(4).tolist() for stream in reversed(streams(seed, 4))]
    assert backwards[::-1] == first_draws(seed, 4)


@quick
@given(seed=seeds)
def test_streams_of_one_seed_differ_from_each_other(seed):
    drawn = first_draws(seed, 6)
    assert len({tuple(values) for values in drawn}) == 6


def test_streams_of_one_seed_are_not_correlated():
    drawn = np.array([stream.standard_normal(4000) for stream in streams(0, 8)])
    correlations = np.corrcoef(drawn)[np.triu_indices(8, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(4000)  # five standard errors


def test_different_seeds_give_different_streams():
    assert len({tuple(first_draws(seed, 1)[0]) for seed in range(50)}) == 50


def test_a_random_state_gives_what_its_seed_gives_and_moves_on():
    state = np.random.RandomState(3)
    assert first_draws(state, 2) == first_draws(3, 2)
    assert first_draws(state, 2) != first_draws(3, 2)


def test_how_many_streams_are_taken_does_not_change_what_the_random_state_gives_next():
    after = []
    for count in (1, 10):
        state = np.random.RandomState(5)
        streams(state, count)
        after.append(state.randint(10**6))
    assert after[0] == after[1]


def test_without_a_seed_every_call_is_new():
    assert first_draws(None, 1) != first_draws(None, 1)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first_draws(7, 3)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("bad", ["seed", -1, 1.5])
def test_what_is_no_seed_is_refused(bad):
    with pytest.raises(ValueError, match=r"[Ss]eed"):
        streams(bad, 2)


@quick
@given(seed=seeds)
def test_streams_of_different_purposes_share_nothing(seed):
    drawn = [tuple(stream.random(4)) for purpose in PURPOSES for stream in streams(seed, 10, purpose)]
    assert len(set(drawn)) == 10 * len(PURPOSES)


def test_an_unknown_purpose_is_a_mistake_in_the_library():
    with pytest.raises(KeyError, match="luck"):
        streams(0, 1, "luck")
