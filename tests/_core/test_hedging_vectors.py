"""Sequences of other libraries, and the distribution of hedged latencies."""

import asyncio
import math
import random
from statistics import NormalDist

import pytest

from retrykit import ConfigError, Hedge, aretry, observe
from retrykit.events import HedgeStarted
from retrykit.testing import virtual_time
from tests._support.hedged_sends import FORMS, Form


def hedge(delay, at_most=2, extra=9):
    return Hedge(delay, at_most=at_most, extra=extra, idempotent=True)


@pytest.fixture(params=FORMS)
def form(request, clock):
    return Form(request.param, clock)


def in_parallel(form):
    """Skip threads, which run in any order if they begin at the same time."""
    if not form.in_tasks:
        pytest.skip("threads that begin at once have no order")


class TestPolly:
    """The diagrams of ``docs/strategies/hedging.md``, version 8, of 2024.

    A request that is slow takes 5 s here, and the delay is the default, 2 s.
    """

    def test_latency_happy_path(self, form):
        assert form.call(hedge(2), (1, "R1")) == "R1"
        assert len(form.sent) == 1

    def test_latency_unhappy_path(self, form):
        assert form.call(hedge(2), (5, "R1"), (1, "R2")) == "R2"
        assert (form.sent, form.clock.now()) == ([0, 2], 3)
        assert form.cancelled == ([1] if form.in_tasks else [])

    def test_latency_the_delay_begins_with_the_last_execution(self, form):
        assert form.call(hedge(2, 3), (1, OSError("R1")), (5, "R2"), (1, "R3")) == "R3"
        assert form.sent == [0, 1, 3]

    def test_fallback_happy_path(self, form):
        """A delay below 0 there; a delay longer than all executions here."""
        assert form.call(hedge("1h"), (1, OSError("R1")), (1, "R2")) == "R2"
        assert form.sent == [0, 1]

    def test_fallback_unhappy_path(self, form):
        script = (1, OSError("R1")), (1, OSError("R2"))
        with pytest.raises(OSError, match="R1"):
            form.call(hedge("1h"), *script, max_attempts=1)
        assert form.sent == [0, 1]

    def test_parallel_happy_path(self, form):
        in_parallel(form)
        assert form.call(hedge(0), (5, "R1"), (1, "R2")) == "R2"
        assert (form.sent, form.cancelled) == ([0, 0], [1])

    def test_parallel_unhappy_path(self, form):
        """The second one fails first, and the error of the first one is raised."""
        in_parallel(form)
        script = (2, OSError("R1")), (1, OSError("R2"))
        with pytest.raises(OSError, match="R1"):
            form.call(hedge(0), *script, max_attempts=1)
        assert (form.sent, form.clock.now()) == ([0, 0], 2)


class TestFailsafeGo:
    """``test/hedgepolicy_test.go`` at 2d79a22, of 2025; a test here has its name there.

    ``CancelOnResult`` is left out: it does not end at the first success.
    """

    def numbers(self, form, one, *script):
        """Return the result and the numbers of the hedges."""
        events = []
        with observe(events.append):
            result = form.call(one, *script)
        return result, [e.number for e in events if isinstance(e, HedgeStarted)]

    def test_should_not_hedge_when_delay_not_exceeded(self, form):
        assert self.numbers(form, hedge("1s"), (0, None)) == (None, [])

    def test_should_hedge_when_delay_exceeded(self, form):
        """Only the first success ends it there if it is slow; here any does."""
        script = (0.1, True), (0.1, False), (0.1, False)
        assert self.numbers(form, hedge("10ms", 3), *script) == (True, [2, 3])
        assert form.clock.now() == 0.1

    def test_all_hedges_used(self, form):
        script = (0.1, 1), (0.1, 2), (0.1, 3)
        assert self.numbers(form, hedge("20ms", 3), *script) == (1, [2, 3])
        assert form.sent == pytest.approx([0, 0.02, 0.04])

    def test_backup_executions(self, form):
        script = (1, 1), (1, 1), (1, 1)
        assert self.numbers(form, hedge(0, 3), *script) == (1, [2, 3])
        assert form.sent == [0, 0, 0]


class TestFinagle:
    """``BackupRequestFilterTest.scala`` at 04f4281, of 2019.

    There, a backup is sent after the percentile of latencies that the extra load is
    beside, and an original that fails after it is not awaited by others.
    """

    WARM_UP = 2.0

    @pytest.fixture
    def warm(self, form):
        """Return a hedge that has seen a hundred requests of 2 s each."""
        warm = Hedge(quantile=0.99, extra=0.5, idempotent=True)
        for _ in range(100):
            warm.begin()
            warm.note(self.WARM_UP)
        assert warm.current_delay == self.WARM_UP
        return warm

    def test_extra_load_must_be_non_negative(self):
        with pytest.raises(ConfigError, match="extra must be"):
            hedge(1, extra=-5)

    def test_original_request_completes_successfully_before_timer_fires(
        self, form, warm
    ):
        assert form.call(warm, (1, "orig")) == "orig"
        assert (form.sent, form.clock.now()) == ([0], 1)

    def test_backup_request_completes_successfully_first(self, form, warm):
        """After 2 s it is sent, and 1 s later it has won."""
        assert form.call(warm, (9, "orig"), (1, "backup")) == "backup"
        assert (form.sent, form.clock.now()) == ([0, 2], 3)
        assert form.cancelled == ([1] if form.in_tasks else [])

    def test_original_request_completes_successfully_first(self, form, warm):
        assert form.call(warm, (3, "orig"), (9, "backup")) == "orig"
        assert (form.sent, form.clock.now()) == ([0, 2], 3)
        assert form.cancelled == ([2] if form.in_tasks else [])

    def test_original_request_completes_unsuccessfully_first(self, form, warm):
        """A result that is a failure by its class; the backup is awaited."""
        script = (3, "failure"), (2, "backup")
        result = form.call(warm, *script, on_result="failure".__eq__)
        assert (result, form.clock.now()) == ("backup", 4)


class Latencies:
    """Lognormal latencies of which some are ten times longer.

    Mean 5 ms, standard deviation 2 ms, 5 % slow, in ms: the example of bhope/hedge.
    """

    variance = math.log(1 + (2 / 5) ** 2)
    mean, deviation = math.log(5) - variance / 2, math.sqrt(variance)

    def draw(self, rng):
        drawn = rng.lognormvariate(self.mean, self.deviation)
        return drawn * 10 if rng.random() < 0.05 else drawn

    def survival(self, t):
        """Return S(t), the share of latencies that are longer."""
        if t <= 0:
            return 1.0
        normal = NormalDist(self.mean, self.deviation)
        return 1 - 0.95 * normal.cdf(math.log(t)) - 0.05 * normal.cdf(math.log(t / 10))

    def hedged(self, delay, t):
        """Return F(t) = 1 - S(t) S(t - d), of the first of two sends."""
        return 1 - self.survival(t) * self.survival(t - delay)

    def quantile(self, delay, share):
        low, high = 0.0, 1e3
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self.hedged(delay, middle) >= share else (middle, high)
            )
        return high


# How far a quantile of so many samples may be from the exact one: 2 % up to p99, where
# the density is high. Of 100 samples beyond p99.5, more.
CLOSED_FORM = [
    (10.0, {0.5: 0.02, 0.9: 0.02, 0.95: 0.02, 0.99: 0.02}),
    (50.0, {0.5: 0.02, 0.9: 0.02, 0.99: 0.02, 0.999: 0.02}),
]
CALLS = 12_000


@pytest.mark.thorough
@pytest.mark.parametrize(("delay", "quantiles"), CLOSED_FORM, ids=["10 ms", "50 ms"])
def test_hedged_latencies_have_the_distribution_of_the_closed_form(delay, quantiles):
    latencies, taken, sent = Latencies(), [], []
    rng = random.Random(7)  # noqa: S311  the same draws every time

    async def send():
        sent.append(None)
        await asyncio.sleep(latencies.draw(rng))

    async def main(clock):
        call = aretry(hedge=hedge(delay))(send)
        for _ in range(CALLS):
            begun = clock.now()
            await call()
            taken.append(clock.now() - begun)

    with virtual_time(allow_real_sleep=True) as clock:
        with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
            runner.run(main(clock))
    taken.sort()
    for share, tolerance in quantiles.items():
        exact = latencies.quantile(delay, share)
        assert taken[int(share * CALLS)] == pytest.approx(exact, rel=tolerance), share
    extra = len(sent) / CALLS - 1
    deviation = math.sqrt(latencies.survival(delay) / CALLS)
    assert extra == pytest.approx(latencies.survival(delay), abs=3 * deviation)
