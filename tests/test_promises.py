"""Speed the project promises, as ratios far from what noise can reach."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import convex_mixture, kernel_spectral, minmax, multi_view, quick, ratio_mkc
from benchmarks import kernel_kmeans as bench
from kernelweave import MultiViewSpectralClustering
from kernelweave.datasets import standardize
from kernelweave.foundation.threads import thread_count

pytestmark = pytest.mark.timing  # run alone: a second test beside it would spoil the ratios


def test_a_run_is_at_least_five_times_faster_than_the_textbook_loop():
    row = bench.speed(peers=False, repeats=1)[0]  # some forty times as fast: one run of the loop tells
    assert row.kept, row.result


def test_the_first_pass_takes_at_most_twice_as_long_as_reading_the_matrix():
    row = bench.first_pass()[0]
    assert row.kept, row.result


@pytest.mark.parametrize(
    ("data", "k", "steps", "limit"),
    [
        pytest.param(minmax.like_pendigits, 10, 50, 2.0, id="10,992 x 16, k = 10"),
        pytest.param(minmax.blobs, 50, 8, 1.5, id="200,000 x 50, k = 50"),
    ],
)
def test_a_step_of_minmax_kmeans_takes_little_longer_than_one_of_lloyds(data, k, steps, limit):
    fits = minmax.both_fits(data(), k)

    def ratio():
        return beside_lloyd(minmax.per_step(fits, steps, repeats=2))

    assert (result := least(ratio, limit)) <= limit, f"{result:.2f} times as long"


def test_restarts_of_minmax_kmeans_keep_two_cores_busy():
    if thread_count() < 2:
        pytest.skip("there is one core only")
    X = minmax.like_pendigits()

    def left_idle():
        busy, _, possible, _ = minmax.both_cores(X, n_init=30)
        return 1 - busy / possible

    limit = 1 - minmax.SHARE  # of two cores that nothing else uses, 1.3 are kept busy
    assert (result := least(left_idle, limit)) <= limit, f"{result:.0%} of what plain loops get is left idle"


def test_priors_of_a_convex_mixture_are_found_many_times_faster_than_by_em():
    X = standardize(minmax.like_pendigits()[:1500])

    def relative_time():
        rows = convex_mixture.compared(X, 1.0, em_steps=2_000)  # it takes far more, and would only be later
        return rows["newton"] / rows["em"]

    assert (result := least(relative_time, 1 / 20)) <= 1 / 20, f"{1 / result:.1f} times as fast"


def test_a_step_on_five_linear_views_takes_little_longer_than_lloyds_on_all_their_columns():
    views = multi_view.blobs(100_000)
    _, fits = multi_view.both_fits(views, 10)

    def ratio():
        return beside_lloyd(minmax.per_step(fits, 15, repeats=2))

    assert (result := least(ratio, 1.5)) <= 1.5, f"{result:.2f} times as long"


def test_new_view_weights_take_far_less_than_a_pass_over_the_data():
    row = multi_view.new_weights()
    assert row.kept, row.result


def test_the_duals_of_a_label_search_are_solved_faster_than_from_scratch():
    X = ratio_mkc.like_letters(800)

    def relative_time():
        ours, svc, apart = ratio_mkc.compared(X, 1.0)
        assert apart < 1e-5
        return ours / svc

    assert (result := least(relative_time, 1 / 2)) <= 1 / 2, f"{1 / result:.1f} times as fast"


def least(measure, limit, tries=3):
    """Return the least of a few measurements, the first one within the limit ending them."""
    result = [measure()]
    while result[-1] > limit and len(result) < tries:
        result.append(measure())
    return min(result)


def beside_lloyd(taken):
    """Return how many times as long a step takes; each is a difference of times, which noise can make negative."""
    return taken["ours"] / taken["lloyd"] if min(taken["ours"], taken["lloyd"]) > 0 else np.inf


def test_coupled_kernel_spectral_problems_are_solved_ten_times_faster_than_the_dense_one():
    row = kernel_spectral.training(500)[0]
    assert row.kept, row.result


def test_a_hundred_thousand_samples_of_two_views_take_no_more_than_linear_time_and_little_memory():
    for row in kernel_spectral.growth((1_000, 10_000, 100_000)):
        assert row.kept is not False, f"{row.what}: {row.result}"


def test_learned_weights_and_a_chosen_exponent_take_a_few_times_as_long_as_equal_weights():
    views = multi_view.blobs(1500, 6, 3)

    def relative_time(setting):
        fits = {
            name: lambda options=options: MultiViewSpectralClustering(6, random_state=0, **options).fit(views)
            for name, options in (("equal", {"view_weights": "uniform"}), ("other", setting))
        }
        with threadpool_limits(1):  # the processor time of threads that wait for each other is not that of the work
            result = quick.taken(fits, 2)
        return result["other"] / result["equal"]

    assert (result := least(lambda: relative_time({}), 3.0)) <= 3.0, f"learned: {result:.1f} times"
    assert (result := least(lambda: relative_time({"p": "auto"}), 4.0)) <= 4.0, f"chosen: {result:.1f} times"


def test_kernel_spectral_clustering_takes_no_longer_than_a_few_runs_of_co_regularised():
    for row in quick.scores(1500, 6):
        ratio = float(row.result.split()[0])
        assert ratio <= 6.0, f"{row.what}: {row.result}"
