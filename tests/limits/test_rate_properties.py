"""Rate limits: never too many calls in any period, and a simple model."""

from bisect import bisect_left
from collections import Counter
from fractions import Fraction

from hypothesis import given, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from retrykit.limits import Lease, RateLimit
from retrykit.testing import virtual_time

# In 1/64 s, which floats add without rounding.
TICK = 1 / 64
EXACT = st.integers(0, 80).map(lambda ticks: ticks * TICK)
ANY = st.floats(0, 3)


def most_within(starts, per):
    """Return the largest number of starts in a period, wherever that begins."""
    starts = sorted(starts)
    ends = [bisect_left(starts, start + per) for start in starts]
    return max((end - index for index, end in enumerate(ends)), default=0)


def start_all(limit, clock, steps):
    """Return when calls start that come after the pauses of steps, some cancelled."""
    starts = []
    for pause, cancelled in steps:
        clock.advance(pause)
        answer = limit.acquire()
        if not isinstance(answer, Lease):
            continue
        if cancelled and answer.delay:
            answer.ignored()
        else:
            answer.succeeded()
            starts.append(clock.now() + answer.delay)
    return starts


@given(
    calls=st.integers(1, 7),
    per=st.integers(1, 128),
    spread=st.booleans(),
    max_wait=st.sampled_from([0, 1, 60]),
    steps=st.lists(st.tuples(EXACT, st.booleans()), max_size=60),
)
def test_no_period_has_more_calls_than_allowed(calls, per, spread, max_wait, steps):
    # A power of two, so that the distance of spread calls is exact.
    calls = 2 ** (calls % 4) if spread else calls
    limit = RateLimit(calls, per * TICK, spread=spread, max_wait=max_wait)
    with virtual_time() as clock:
        starts = start_all(limit, clock, steps)
    assert most_within(starts, per * TICK) <= calls
    if spread:
        assert most_within(starts, per * TICK / calls) <= 1


@given(
    calls=st.integers(1, 7),
    per=st.floats(1e-3, 10),
    spread=st.booleans(),
    start=st.floats(0, 1e6),
    steps=st.lists(st.tuples(ANY, st.booleans()), max_size=60),
)
def test_nor_has_one_that_is_shorter_by_what_floats_are_rounded(
    calls, per, spread, start, steps
):
    limit = RateLimit(calls, per, spread=spread)
    with virtual_time(start=start) as clock:
        starts = start_all(limit, clock, steps)
    assert most_within(starts, per - 1e-7) <= calls


@given(
    calls=st.integers(1, 5),
    per=st.integers(1, 128),
    pauses=st.lists(EXACT, max_size=60),
)
def test_no_call_waits_for_longer_than_it_must(calls, per, pauses):
    limit, starts = RateLimit(calls, per * TICK), []
    with virtual_time() as clock:
        for pause in pauses:
            clock.advance(pause)
            lease = limit.acquire()
            lease.succeeded()
            starts.append(clock.now() + lease.delay)
            if lease.delay:
                assert starts[-1] == starts[-1 - calls] + per * TICK


class Model(RuleBasedStateMachine):
    """The limit and a list of every call that ever got a time."""

    leases = Bundle("leases")

    @initialize(
        calls=st.integers(1, 4),
        per=st.sampled_from([1, 3, 8]),
        spread=st.booleans(),
        max_wait=st.sampled_from([0, 4, 20]),
    )
    def make(self, calls, per, spread, max_wait):
        calls = 2 ** (calls % 3) if spread else calls
        self.time = virtual_time()
        self.clock = self.time.__enter__()
        self.limit = RateLimit(calls, per, spread=spread, max_wait=max_wait)
        self.room = 1 if spread else calls
        self.window = Fraction(per, calls) if spread else Fraction(per)
        self.times, self.free = [], Counter()
        self.totals = [0, 0, 0]

    def next_time(self):
        now = Fraction(self.clock.now())
        free = [time for time, number in self.free.items() if number and time >= now]
        if free:
            return min(free)
        # Not before others, and with so few before it that one more is allowed.
        time = max([now, *self.times])
        earlier = [each + self.window for each in self.times]
        for candidate in sorted({max(now, each) for each in [now, *earlier]}):
            last = [each for each in self.times if each > candidate - self.window]
            if len(last) < self.room and candidate >= max([now, *self.times]):
                time = candidate
                break
        return time

    @rule(seconds=st.sampled_from([0.25, 0.5, 1, 2, 5]))
    def wait(self, seconds):
        self.clock.advance(seconds)

    @rule(target=leases)
    def acquire(self):
        time, now = self.next_time(), Fraction(self.clock.now())
        answer = self.limit.acquire()
        if time - now > self.limit.max_wait:
            assert answer.retry_in == time - now
            self.totals[2] += 1
            return multiple()
        assert answer.delay == time - now
        self.totals[0] += 1
        if self.free[time]:
            self.free[time] -= 1
        else:
            self.times.append(time)
        return {"lease": answer, "time": time}

    @rule(given=leases, report=st.sampled_from(["succeeded", "failed", "ignored"]))
    def report(self, given, report):
        getattr(given["lease"], report)()
        if "told" in given:
            return
        given["told"] = True
        if report == "ignored" and given["time"] > self.clock.now():
            self.totals[1] += 1
            self.free[given["time"]] += 1
            # Sorted in when it is looked for, by the time it has then.
            assert self.limit.metrics

    @invariant()
    def agree(self):
        now = Fraction(self.clock.now())
        while self.times and self.times[-1] >= now and self.free[self.times[-1]]:
            self.free[self.times.pop()] -= 1
        metrics = self.limit.metrics
        assert [*metrics[3:]] == self.totals
        assert metrics.delay == self.next_time() - now
        assert (self.limit.state == "busy") == (metrics.delay > 0)
        last = [each for each in self.times if now - Fraction(self.limit.per) < each]
        assert metrics.calls == sum(each <= now for each in last)
        waiting = [each for each in last if each > now]
        free = sum(number for time, number in self.free.items() if time >= now)
        assert metrics.waiting == len(waiting) - free

    def teardown(self):
        if hasattr(self, "time"):
            self.time.__exit__(None, None, None)


TestModel = Model.TestCase
