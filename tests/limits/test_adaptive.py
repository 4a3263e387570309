"""Adaptive limits: vectors of their originals, oracles by their formulas, settings."""

import copy
import json
import math
import pickle

import pytest
from hypothesis import given, strategies as st

from retrykit.limits._adaptive import AIMD, Gradient2, Vegas, adaptive_from_dict


def sample(limit, rtt, in_flight, *, dropped=False):
    return limit.sample(rtt=rtt, in_flight=in_flight, dropped=dropped)


class HalvingVegas(Vegas):
    """As with ``decreaseFunction(current -> current / 2)``."""

    def shrink(self, limit):
        return limit / 2


class TestVegasLimitTest:
    """The tests of that name in concurrency-limits, commit 78a74b9 of 2026-01."""

    # There, alpha is 3 and beta 6 for any limit; below 100, they are so by default.
    @pytest.fixture
    def limit(self):
        return Vegas(alpha=3, beta=6, initial_limit=10, max_limit=20)

    def test_large_limit_increase(self):
        limit = Vegas(initial_limit=10_000, max_limit=20_000)
        assert sample(limit, 10, 5000) == 10_000
        assert sample(limit, 10, 6000) == 10_024

    def test_increase_limit(self, limit):
        assert sample(limit, 0.010, 10) == 10
        assert sample(limit, 0.010, 11) == 16

    def test_decrease_limit(self, limit):
        assert sample(limit, 0.010, 10) == 10
        assert sample(limit, 0.050, 11) == 9

    def test_no_change_if_within_thresholds(self, limit):
        assert sample(limit, 0.010, 10) == 10
        assert sample(limit, 0.014, 14) == 10

    @pytest.mark.parametrize(
        ("smoothing", "limits"), [(0.5, [100, 75, 56]), (1.0, [100, 50, 25])]
    )
    def test_decrease_with_and_without_smoothing(self, smoothing, limits):
        limit = HalvingVegas(smoothing=smoothing, initial_limit=100, max_limit=200)
        assert [sample(limit, rtt, 100) for rtt in [0.010, 0.020, 0.020]] == limits


class TestAIMDLimitTest:
    """The tests of that name; initial limits below the minimum are errors here."""

    def test_default(self):
        assert AIMD(initial_limit=10, min_limit=10).limit == 10

    def test_increase_on_success(self):
        assert sample(AIMD(initial_limit=20), 0.001, 10) == 21

    def test_decrease_on_drops(self):
        assert sample(AIMD(initial_limit=30), 0, 0, dropped=True) == 27

    def test_success_overflow(self):
        limit = AIMD(initial_limit=21, max_limit=21, min_limit=1)
        assert sample(limit, 0.001, 10) == 21


def test_average_of_exp_avg_measurement_test():
    """``ExpAvgMeasurementTest.testWarmup``."""
    gradient = Gradient2(long_window=100)
    averages = [gradient._add(10 + i) for i in range(10)]  # noqa: SLF001
    assert averages == [10, 10.5, 11, 11.5, 12, 12.5, 13, 13.5, 14, 14.5]
    assert gradient._add(100) == pytest.approx(16.2, abs=0.1)  # noqa: SLF001


def drawn_samples(number):
    """Yield times in ns, calls in flight and drops: the same ones each time."""
    seed = 7
    for _ in range(number):
        draws = []
        for _ in range(4):
            seed = (seed * 1_103_515_245 + 12_345) % 2**31
            draws.append(seed >> 16)
        slow, time, in_flight, drop = draws
        rtt = 10_000_000 + time * (60 if slow % 4 else 2000)
        yield rtt, 5 + in_flight % 60, drop % 16 == 0


# Printed by the classes of concurrency-limits, commit 78a74b9, for those samples.
PRINTED = {
    "aimd": (
        AIMD(timeout=0.05),
        [
            21,
            22,
            23,
            24,
            25,
            26,
            27,
            28,
            29,
            29,
            30,
            27,
            28,
            29,
            29,
            30,
            31,
            31,
            32,
            33,
            33,
            29,
            26,
            27,
            28,
            29,
            30,
            31,
            32,
            33,
            29,
            30,
            31,
            27,
            28,
            29,
            30,
            30,
            31,
            32,
        ],
    ),
    "vegas": (
        Vegas(probe_every=10**6),
        [
            20,
            20,
            26,
            26,
            26,
            25,
            26,
            27,
            33,
            33,
            34,
            33,
            39,
            39,
            39,
            39,
            38,
            38,
            38,
            38,
            38,
            37,
            36,
            42,
            42,
            42,
            42,
            41,
            41,
            41,
            41,
            41,
            41,
            40,
            40,
            40,
            40,
            40,
            40,
            40,
        ],
    ),
    "vegas, smoothed": (
        Vegas(initial_limit=60, smoothing=0.3, probe_every=10**6),
        [
            60,
            60,
            60,
            59,
            59,
            59,
            59,
            59,
            61,
            61,
            61,
            60,
            62,
            62,
            62,
            62,
            62,
            62,
            62,
            62,
            62,
            62,
            61,
            62,
            62,
            62,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
            61,
        ],
    ),
    "gradient2": (
        Gradient2(),
        [
            20,
            21,
            22,
            23,
            24,
            23,
            23,
            24,
            25,
            25,
            26,
            27,
            27,
            28,
            28,
            29,
            27,
            27,
            28,
            29,
            29,
            27,
            25,
            26,
            27,
            27,
            28,
            28,
            29,
            30,
            28,
            28,
            29,
            27,
            28,
            29,
            29,
            29,
            30,
            31,
        ],
    ),
    "gradient2, quick": (
        Gradient2(
            initial_limit=40,
            min_limit=5,
            max_limit=60,
            smoothing=0.7,
            queue_size=2,
            long_window=15,
            tolerance=1.0,
        ),
        [
            40,
            41,
            42,
            44,
            44,
            30,
            31,
            32,
            34,
            34,
            35,
            37,
            38,
            39,
            39,
            41,
            28,
            28,
            29,
            31,
            31,
            21,
            15,
            16,
            18,
            16,
            18,
            19,
            20,
            22,
            15,
            17,
            18,
            13,
            14,
            16,
            17,
            19,
            20,
            21,
        ],
    ),
}


@pytest.mark.parametrize(("limit", "printed"), PRINTED.values(), ids=PRINTED)
def test_limits_are_those_of_the_original(limit, printed):
    limit = copy.copy(limit)
    limits = [
        sample(limit, rtt / 1e9, in_flight, dropped=dropped)
        for rtt, in_flight, dropped in drawn_samples(len(printed))
    ]
    assert limits == printed
    assert len({*limits}) >= 4


SAMPLES = st.lists(
    st.tuples(st.floats(1e-6, 100), st.integers(1, 300), st.booleans()), max_size=80
)


@given(
    limits=st.lists(st.integers(1, 300), min_size=3, max_size=3).map(sorted),
    smoothing=st.floats(0.01, 1),
    queue_size=st.integers(0, 9),
    window=st.integers(1, 50),
    tolerance=st.floats(1, 3),
    samples=SAMPLES,
)
def test_gradient2_is_its_formula(
    limits, smoothing, queue_size, window, tolerance, samples
):
    low, limit, high = limits
    gradient = Gradient2(
        initial_limit=limit,
        min_limit=low,
        max_limit=high,
        smoothing=smoothing,
        queue_size=queue_size,
        long_window=window,
        tolerance=tolerance,
    )
    rtts, average = [], 0
    for rtt, in_flight, dropped in samples:
        rtts.append(rtt)
        if len(rtts) <= 10:
            # The mean of the first ones, whatever was taken off meanwhile.
            average = sum(rtts) / len(rtts)
        else:
            average += (rtt - average) * 2 / (window + 1)
        slope = tolerance * average / rtt
        if average > 2 * rtt:
            average *= 0.95
        if 2 * in_flight >= limit:
            wanted = limit * min(1, max(0.5, slope)) + queue_size
            limit += (wanted - limit) * smoothing
            limit = min(high, max(low, limit))
        new = sample(gradient, rtt, in_flight, dropped=dropped)
        # Rounded down, which is one less if the rounding of floats differs.
        assert new in {int(limit - 1e-6), int(limit + 1e-6)}
        assert gradient.limit == new


@given(
    limit=st.integers(1, 2000),
    smoothing=st.floats(0.01, 1),
    alpha=st.integers(1, 5),
    more=st.integers(0, 5),
    samples=SAMPLES,
)
def test_vegas_is_its_formula(limit, smoothing, alpha, more, samples):
    beta, high = alpha + more, 2500
    vegas = Vegas(
        initial_limit=limit,
        max_limit=high,
        smoothing=smoothing,
        alpha=alpha,
        beta=beta,
        probe_every=10_000,
    )
    shortest = math.inf
    for rtt, in_flight, dropped in samples:
        before = vegas._estimate  # noqa: SLF001  so that rounding does not add up
        new = sample(vegas, rtt, in_flight, dropped=dropped)
        change = 0
        if rtt >= shortest:
            unit = max(1, math.floor(math.log10(math.floor(before)) + 1e-12))
            queued = math.ceil(before * (1 - shortest / rtt))
            if dropped:
                change = -unit
            elif 2 * in_flight >= before:
                grows = [(queued <= unit, beta), (queued < alpha * unit, 1)]
                grows += [(queued > beta * unit, -1), (True, 0)]
                change = next(by for applies, by in grows if applies) * unit
        shortest = min(shortest, rtt)
        wanted = before
        if change:
            wanted += (min(high, max(1, before + change)) - before) * smoothing
        assert new in {int(wanted - 1e-6), int(wanted + 1e-6)}
        assert 1 <= new <= high


class TestProbes:
    def probes(self, vegas, number):
        """Return after how many calls the shortest time was measured afresh."""
        found = []
        for count in range(1, number + 1):
            # Longer each time, so that no shorter one is found.
            sample(vegas, count, 1)
            if vegas._shortest == count:  # noqa: SLF001
                found.append(count)
        return found[1:]

    def test_the_shortest_time_is_measured_afresh_at_random(self):
        vegas = Vegas(initial_limit=10, seed=3)
        found = self.probes(vegas, 2000)
        gaps = [b - a for a, b in zip([0, *found], found, strict=False)]
        assert all(150 <= gap <= 300 for gap in gaps)
        assert len({*gaps}) > 3
        assert self.probes(Vegas(initial_limit=10, seed=3), 2000) == found
        assert self.probes(Vegas(initial_limit=10, seed=4), 2000) != found

    def test_a_new_seed_is_drawn_for_each_without_one(self):
        every = [self.probes(Vegas(initial_limit=10), 500) for _ in range(4)]
        assert len({tuple(found) for found in every}) > 1

    def test_a_server_that_became_slower_is_not_taken_for_a_busy_one(self):
        vegas = Vegas(initial_limit=10, max_limit=10, probe_every=1)
        sample(vegas, 1, 10)
        for _ in range(50):
            limit = sample(vegas, 5, 10)
        assert limit == 10


@pytest.mark.parametrize("make", [AIMD, Gradient2, Vegas])
class TestAnyOfThem:
    def test_calls_that_took_no_time_tell_nothing(self, make):
        limit = make()
        for _ in range(100):
            assert sample(limit, 0.0, 20) == 20
        assert sample(limit, 0.5, 1) == 20

    def test_an_idle_limit_does_not_grow(self, make):
        limit = make(initial_limit=40)
        assert {sample(limit, 0.5, 19) for _ in range(100)} == {40}

    def test_a_limit_in_use_grows_to_its_maximum(self, make):
        limit = make(max_limit=50)
        for _ in range(200):
            sample(limit, 0.5, limit.limit)
        assert limit.limit == 50

    def test_data_and_back(self, make):
        limit = make(max_limit=77)
        data = json.loads(json.dumps(limit.to_dict()))
        assert data["kind"] == make.kind
        assert adaptive_from_dict(data) == limit
        assert adaptive_from_dict({"kind": make.kind}) == make()

    def test_its_expression_makes_an_equal_one(self, make):
        limit = make(initial_limit=30, max_limit=77)
        assert repr(limit) == f"{make.__name__}(initial_limit=30, max_limit=77)"
        assert eval(repr(limit)) == limit  # noqa: S307
        assert hash(eval(repr(limit))) == hash(limit)  # noqa: S307
        assert limit != make()
        assert limit != 5

    @pytest.mark.parametrize(
        "again",
        [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],  # noqa: S301
        ids=["copy", "deepcopy", "pickle"],
    )
    def test_a_copy_begins_anew(self, make, again):
        limit = make(max_limit=77)
        for _ in range(5):
            sample(limit, 0.5, 20)
        copied = again(limit)
        assert copied == limit
        assert (limit.limit > 20, copied.limit) == (True, 20)


def test_a_dropped_call_that_took_no_time_shrinks_those_that_count_drops():
    assert sample(Vegas(), 0.0, 20, dropped=True) == 19
    assert sample(AIMD(initial_limit=50), 0.0, 20, dropped=True) == 45
    assert sample(Gradient2(initial_limit=50), 0.0, 20, dropped=True) == 50


def test_data_of_all_settings():
    assert Vegas(seed=7).to_dict() == {
        "kind": "vegas",
        "initial_limit": 20,
        "max_limit": 1000,
        "alpha": 3,
        "beta": 6,
        "smoothing": 1.0,
        "probe_every": 30,
        "seed": 7,
    }
    assert AIMD(timeout="2s").to_dict() == {
        "kind": "aimd",
        "initial_limit": 20,
        "min_limit": 20,
        "max_limit": 200,
        "backoff_ratio": 0.9,
        "timeout": 2.0,
    }
    assert Gradient2().to_dict() == {
        "kind": "gradient2",
        "initial_limit": 20,
        "min_limit": 20,
        "max_limit": 200,
        "smoothing": 0.2,
        "queue_size": 4,
        "long_window": 600,
        "tolerance": 1.5,
    }
