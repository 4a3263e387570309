"""A concurrency limit against a simple model, by random sequences of steps."""

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from retrykit.limits import Concurrency, Lease
from retrykit.testing import virtual_time

MAX_WAIT = 9


class Call:
    """A call that has a lease, until it drops it.

    What hypothesis draws it may keep: that must not be the lease.
    """

    def __init__(self, lease, since):
        self.lease, self.since = lease, since


class Model(RuleBasedStateMachine):
    """The limit and what it must do: two lists of calls, one step after the other."""

    @initialize(
        at_most=st.integers(1, 3),
        queue=st.integers(0, 3),
        order=st.sampled_from(["fifo", "lifo"]),
        bounded=st.booleans(),
    )
    def make(self, at_most, queue, order, bounded):
        self.time = virtual_time()
        self.clock = self.time.__enter__()
        order = order if queue else "fifo"
        self.max_wait = MAX_WAIT if bounded and queue else None
        self.limit = Concurrency(
            at_most, queue=queue, order=order, max_wait=self.max_wait
        )
        self.at_most, self.queue, self.order = at_most, queue, order
        self.running, self.waiting = [], []
        self.lost, self.over = [], []
        self.granted = self.refused = self.timed_out = self.displaced = 0

    def grant(self):
        while self.waiting and len(self.running) < self.at_most:
            index = 0 if self.order == "fifo" else -1
            self.running.append(self.waiting.pop(index))
            self.granted += 1

    @rule(seconds=st.sampled_from([1, 4]))
    def pass_time(self, seconds):
        self.clock.advance(seconds)

    @rule()
    def acquire(self):
        answer = self.limit.acquire()
        if not self.waiting and len(self.running) < self.at_most:
            assert isinstance(answer, Lease)
            assert answer.delay == 0
            self.running.append(Call(answer, None))
            self.granted += 1
            return
        if len(self.waiting) >= self.queue:
            if self.order == "fifo" or not self.queue:
                self.refused += 1
                running, waiting = len(self.running), len(self.waiting)
                assert not isinstance(answer, Lease)
                assert f": {running} call" in answer.reason
                assert (f"and {waiting} wait" in answer.reason) == bool(self.queue)
                return
            self.lost.append(self.waiting.pop(0))
            self.displaced += 1
        assert answer.delay == float("inf")
        self.waiting.append(Call(answer, self.clock.now()))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), report=st.sampled_from(["succeeded", "failed", "ignored"]))
    def end(self, data, report):
        call = data.draw(st.sampled_from(self.running))
        self.running.remove(call)
        self.over.append(call)
        getattr(call.lease, report)()
        self.grant()

    @precondition(lambda self: self.running or self.waiting)
    @rule(data=st.data())
    def drop(self, data):
        call = data.draw(st.sampled_from(self.running + self.waiting))
        (self.running if call in self.running else self.waiting).remove(call)
        del call.lease
        self.grant()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def leave(self, data):
        call = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(call)
        self.over.append(call)
        call.lease.ignored()

    @precondition(lambda self: self.running + self.waiting + self.lost)
    @rule(data=st.data(), at_most=st.sampled_from([0, 2, MAX_WAIT]))
    def wait(self, data, at_most):
        """Nobody else acts meanwhile: a call has its permit, or waits for too long."""
        call = data.draw(st.sampled_from(self.running + self.waiting + self.lost))
        before = self.clock.now()
        refusal = call.lease.wait(at_most)
        if call in self.running:
            assert refusal is None
            assert self.clock.now() == before
        elif call in self.lost:
            assert refusal.reason == "full: a newer call took its place"
        else:
            if self.max_wait is not None:
                left = call.since + self.max_wait - before
                at_most = max(min(at_most, left), 0)
            assert self.clock.now() == before + at_most
            assert refusal.reason == f"full: waited {at_most:g} s for a place"
            self.waiting.remove(call)
            self.over.append(call)
            self.timed_out += 1

    @precondition(lambda self: self.over)
    @rule(data=st.data(), report=st.sampled_from(["succeeded", "failed", "ignored"]))
    def report_again(self, data, report):
        getattr(data.draw(st.sampled_from(self.over)).lease, report)()

    @rule(at_most=st.integers(1, 4))
    def resize(self, at_most):
        self.at_most = at_most
        self.limit.resize(at_most)
        self.grant()

    @invariant()
    def agree(self):
        assert self.limit.metrics == (
            len(self.running),
            len(self.waiting),
            self.at_most,
            self.granted,
            self.refused,
            self.timed_out,
            self.displaced,
        )
        full = len(self.running) >= self.at_most
        assert self.limit.state == ("full" if full else "free")
        queued = [each.lease for each in self.running if each.lease.delay]
        assert not any(map(self.limit.is_waiting, queued))
        assert all(self.limit.is_waiting(each.lease) for each in self.waiting)

    def teardown(self):
        if hasattr(self, "time"):
            self.time.__exit__(None, None, None)


TestModel = Model.TestCase
