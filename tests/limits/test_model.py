"""A circuit breaker against a simple model, by random sequences of steps."""

from fractions import Fraction

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from retrykit.limits import CircuitBreaker, Lease
from retrykit.testing import virtual_time

OPEN_FOR = [4, 7, 11]
PROBE_TIMEOUT = 9


class Model(RuleBasedStateMachine):
    """The breaker and what it must do, with all calls in one list.

    The model keeps each call as it is, and counts afresh at each step.
    """

    leases = Bundle("leases")

    @initialize(
        window=st.integers(1, 6),
        rate=st.sampled_from([0.2, 0.5, 2 / 3, 1.0]),
        in_a_row=st.sampled_from([None, 1, 3]),
        probes=st.integers(1, 3),
        data=st.data(),
    )
    def make(self, window, rate, in_a_row, probes, data):
        self.time = virtual_time()
        self.clock = self.time.__enter__()
        self.changes = []
        self.minimum = data.draw(st.integers(1, window))
        self.needed = data.draw(st.integers(1, probes))
        self.window, self.rate, self.in_a_row = window, rate, in_a_row
        self.probes = probes
        self.breaker = CircuitBreaker(
            window=window,
            failure_rate=rate,
            minimum_calls=self.minimum,
            consecutive_failures=in_a_row,
            slow_after=5,
            slow_rate=1.0,
            probes=probes,
            successes=self.needed,
            probe_timeout=PROBE_TIMEOUT,
            open_for=OPEN_FOR,
            observers=[lambda change: self.changes.append((change.old, change.new))],
        )
        self.seen = []
        self.enter("closed", openings=0)
        self.totals = {"succeeded": 0, "failed": 0, "ignored": 0, "refused": 0}

    def enter(self, state, openings):
        if self.seen and self.seen[-1] != state:
            self.expected.append((self.seen[-1], state))
        if not self.seen:
            self.expected = []
        self.seen.append(state)
        self.state, self.openings, self.calls = state, openings, []
        self.since, self.running = self.clock.now(), {}
        self.generation = len(self.seen)

    def open(self):
        self.enter("open", self.openings + 1)

    @rule(seconds=st.sampled_from([0.5, 1, 3, 5, 8]))
    def wait(self, seconds):
        self.clock.advance(seconds)

    @rule(target=leases)
    def acquire(self):
        now = self.clock.now()
        if self.state == "open":
            delay = OPEN_FOR[min(self.openings, len(OPEN_FOR)) - 1]
            if now - self.since >= delay:
                self.enter("half-open", self.openings)
        for key, granted in [*self.running.items()]:
            if now - granted >= PROBE_TIMEOUT:
                del self.running[key]
        allowed = self.state == "closed" or (
            self.state == "half-open"
            and len(self.running) + len(self.calls) < self.probes
        )
        answer = self.breaker.acquire()
        assert isinstance(answer, Lease) == allowed
        if not allowed:
            self.totals["refused"] += 1
            expected = self.since + delay - now if self.state == "open" else None
            assert answer.retry_in == expected
            return multiple()
        key = object()
        if self.state == "half-open":
            self.running[key] = now
        return {
            "lease": answer,
            "key": key,
            "generation": self.generation,
            "granted": now,
        }

    @rule(given=leases, outcome=st.sampled_from(["succeeded", "failed", "ignored"]))
    def report(self, given, outcome):
        getattr(given["lease"], outcome)()
        if given.setdefault("outcome", outcome) is not outcome or "told" in given:
            return
        given["told"] = True
        self.totals[outcome] += 1
        took = self.clock.now() - given["granted"]
        if given["generation"] != self.generation:
            return
        if self.state == "half-open":
            in_time = self.running.pop(given["key"], None) is not None
            if outcome == "ignored" or not in_time or took >= PROBE_TIMEOUT:
                return
            self.calls.append((outcome == "failed", took > 5))
            bad = sum(failed or slow for failed, slow in self.calls)
            if len(self.calls) - bad == self.needed:
                self.enter("closed", openings=0)
            elif bad > self.probes - self.needed:
                self.open()
        elif outcome != "ignored":
            self.calls.append((outcome == "failed", took > 5))
            if self.must_open():
                self.open()

    def must_open(self):
        last = [failed for failed, _ in self.calls]
        if self.in_a_row and last[-self.in_a_row :] == [True] * self.in_a_row:
            return True
        recent = self.calls[-self.window :]
        failures = sum(failed for failed, _ in recent)
        slow = sum(slow for _, slow in recent)
        rate = Fraction(self.rate).limit_denominator(10)
        return len(recent) >= self.minimum and (
            Fraction(failures, len(recent)) >= rate or slow == len(recent)
        )

    @rule()
    def open_by_hand(self):
        self.breaker.open()
        if self.state != "isolated":
            self.open()

    @rule()
    def close_by_hand(self):
        self.breaker.close()
        self.enter("closed", openings=0)

    @rule()
    def isolate(self):
        self.breaker.isolate()
        self.enter("isolated", openings=0)

    @invariant()
    def agree(self):
        assert self.breaker.state == self.state
        metrics = self.breaker.metrics
        assert self.changes == self.expected
        assert self.totals == {
            name: getattr(metrics, f"total_{name}") for name in self.totals
        }
        if self.state in {"closed", "half-open"}:
            recent = (
                self.calls[-self.window :] if self.state == "closed" else self.calls
            )
            assert metrics.calls == len(recent)
            assert metrics.failures == sum(failed for failed, _ in recent)
            assert metrics.slow_calls == sum(slow for _, slow in recent)

    def teardown(self):
        if hasattr(self, "time"):
            self.time.__exit__(None, None, None)


TestModel = Model.TestCase
