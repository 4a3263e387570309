"""Events: which are emitted, in which order, and to which observers."""

import asyncio
import contextvars
import threading

import pytest

from retrykit import Policy, RetryState, StopReason, observe, resume, retry, retrying
from retrykit._core.call import RetryCall, current_entry
from retrykit._internal import fast_path
from retrykit._internal.clocks import sync_clock
from retrykit._internal.loop_clock import async_clock
from retrykit.events import (
    AttemptFailed,
    AttemptStarted,
    GaveUp,
    RetryScheduled,
    Succeeded,
)
from tests._support.concurrency import switching_often

POLICY = Policy(schedule=[1, 2], on=OSError)

STARTED, FAILED, SCHEDULED = "AttemptStarted", "AttemptFailed", "RetryScheduled"
SUCCEEDED, GAVE_UP = "Succeeded", "GaveUp"


class Recorder:
    """An observer that records events, and the attempt at the time of each."""

    def __init__(self):
        self.events = []
        self.received = []

    def __call__(self, event):
        self.events.append(event)
        self.received.append((type(event).__name__, event.state.attempt))

    @property
    def last_event(self):
        return self.events[-1]


class InterruptedClock:
    """A sync and async clock whose sleep ends with Ctrl-C."""

    now = staticmethod(lambda: 0.0)

    def sleep(self, _delay, /):
        raise KeyboardInterrupt


@pytest.fixture
def recorder():
    return Recorder()


def test_a_success_at_once_emits_started_and_succeeded(backend, clock, flaky, recorder):
    backend(POLICY, observers=[recorder])(flaky("value"))()
    assert recorder.received == [(STARTED, 1), (SUCCEEDED, 1)]
    assert recorder.last_event.state.stop_reason is StopReason.SUCCEEDED
    assert clock.sleeps == []


def test_retries_emit_events_in_order(backend, clock, flaky, recorder):
    errors = [OSError("one"), OSError("two")]
    backend(POLICY, observers=[recorder])(flaky(*errors, "value"))()
    assert recorder.received == [
        (STARTED, 1), (FAILED, 1), (SCHEDULED, 1),
        (STARTED, 2), (FAILED, 2), (SCHEDULED, 2),
        (STARTED, 3), (SUCCEEDED, 3),
    ]  # fmt: skip  # one line for each attempt
    failures = [e.failure for e in recorder.events if isinstance(e, AttemptFailed)]
    assert [failure.error for failure in failures] == errors
    assert tuple(failures) == recorder.last_event.state.failures
    delays = [e.delay for e in recorder.events if isinstance(e, RetryScheduled)]
    assert delays == clock.sleeps == [1.0, 2.0]


def test_giving_up_emits_attempt_failed_and_gave_up(backend, clock, flaky, recorder):
    error = OSError("three")
    fetch = backend(POLICY, observers=[recorder])(flaky(OSError(), OSError(), error))
    with pytest.raises(OSError, match="three"):
        fetch()
    assert recorder.received[6:] == [(STARTED, 3), (FAILED, 3), (GAVE_UP, 3)]
    assert recorder.events[-2].failure.error is error
    assert recorder.events[-2].failure.delay is None
    assert recorder.last_event.state.stop_reason is StopReason.SCHEDULE_ENDED
    assert recorder.last_event.state.elapsed == sum(clock.sleeps)


def test_an_error_that_is_not_retryable_emits_gave_up(backend, flaky, recorder):
    fetch = backend(POLICY, observers=[recorder])(flaky(KeyError("id")))
    with pytest.raises(KeyError):
        fetch()
    assert recorder.received == [(STARTED, 1), (FAILED, 1), (GAVE_UP, 1)]
    assert recorder.last_event.state.stop_reason is StopReason.NOT_RETRYABLE


def test_a_rejected_result_emits_attempt_failed(backend, clock, flaky, recorder):
    changes = {"on_result": lambda result: result == "busy", "observers": [recorder]}
    backend(POLICY, **changes)(flaky("busy", "value"))()
    assert recorder.received == [
        (STARTED, 1), (FAILED, 1), (SCHEDULED, 1),
        (STARTED, 2), (SUCCEEDED, 2),
    ]  # fmt: skip  # one line for each attempt
    failure = recorder.events[1].failure
    assert (failure.error, failure.result, failure.delay) == (None, "busy", 1.0)
    assert clock.sleeps == [1.0]


def test_an_interrupted_attempt_emits_gave_up(backend, flaky, recorder):
    fetch = backend(POLICY, observers=[recorder])(flaky(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        fetch()
    assert recorder.received == [(STARTED, 1), (GAVE_UP, 1)]
    assert recorder.last_event.state.stop_reason is StopReason.CANCELLED


def test_an_interrupted_sleep_emits_gave_up(backend, flaky, recorder):
    fetch = backend(POLICY, observers=[recorder])(flaky(OSError()))
    clock = InterruptedClock()
    with (
        sync_clock.use(clock),
        async_clock.use(clock),
        pytest.raises(KeyboardInterrupt),
    ):
        fetch()
    assert recorder.received == [
        (STARTED, 1),
        (FAILED, 1),
        (SCHEDULED, 1),
        (GAVE_UP, 1),
    ]
    assert recorder.last_event.state.stop_reason is StopReason.CANCELLED
    assert recorder.last_event.state.next_delay == 1.0


def test_a_block_emits_the_same_events_as_a_function(clock, flaky, recorder):
    fetch, block = flaky(OSError(), OSError(), "value"), Recorder()
    POLICY.replace(observers=[recorder]).call(fetch)
    fetch = flaky(OSError(), OSError(), "value")
    for attempt in retrying(POLICY.replace(observers=[block])):
        with attempt:
            fetch()
    assert block.received == recorder.received
    assert clock.sleeps == [1.0, 2.0, 1.0, 2.0]


def test_observe_receives_every_call(backend, clock, flaky, recorder):
    with observe(recorder):
        backend(POLICY)(flaky(OSError()))()
        backend(POLICY)(flaky())()
    backend(POLICY)(flaky())()
    assert recorder.received == [
        (STARTED, 1), (FAILED, 1), (SCHEDULED, 1),
        (STARTED, 2), (SUCCEEDED, 2),
        (STARTED, 1), (SUCCEEDED, 1),
    ]  # fmt: skip  # one line for each attempt
    assert clock.sleeps == [1.0]


def test_the_observers_of_a_policy_are_notified_first(flaky):
    order = []
    policy = Policy(observers=[lambda _: order.append(1), lambda _: order.append(2)])
    with observe(lambda _: order.append(3)), observe(lambda _: order.append(4)):
        policy.call(flaky())
    assert order == [1, 2, 3, 4] * 2


def test_observe_blocks_can_be_nested(flaky):
    outer, inner = Recorder(), Recorder()
    with observe(outer):
        with observe(inner):
            POLICY.call(flaky())
        POLICY.call(flaky())
    assert (len(outer.received), len(inner.received)) == (4, 2)


def test_an_observer_registered_twice_is_notified_twice(flaky, recorder):
    first, second = observe(recorder), observe(recorder)
    POLICY.call(flaky())
    assert recorder.received == [(STARTED, 1)] * 2 + [(SUCCEEDED, 1)] * 2
    first.close()
    first.close()
    POLICY.call(flaky())
    assert recorder.received[4:] == [(STARTED, 1), (SUCCEEDED, 1)]
    second.close()
    POLICY.call(flaky())
    assert len(recorder.received) == 6


def test_an_observer_registered_during_a_call_receives_the_rest(
    backend, clock, recorder
):
    observing = []

    def fetch():
        if observing:
            return "value"
        observing.append(observe(recorder))
        raise OSError

    backend(POLICY)(fetch)()
    observing[0].close()
    assert recorder.received == [
        (FAILED, 1),
        (SCHEDULED, 1),
        (STARTED, 2),
        (SUCCEEDED, 2),
    ]
    assert clock.sleeps == [1.0]


LATE = [
    pytest.param(0, ["succeeded"], id="in the attempt after a failure"),
    pytest.param(1, ["attempt_started", "succeeded"], id="in the delay"),
]


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("in_delay", "kinds"), LATE)
def test_an_observer_registered_after_a_common_failure_receives_the_rest(
    in_delay, kinds, awaited, monkeypatch
):
    found, observers, attempts = [], [], []

    def register(_delay=0.0):
        observers.append(observe(lambda event: found.append(event.kind)))

    def fetch():
        attempts.append(len(attempts))
        if attempts == [0]:
            raise ConnectionError
        if not in_delay:
            register()

    async def afetch():
        fetch()

    async def asleep(_delay):
        wait(_delay)

    wait = register if in_delay else lambda _: None
    policy = Policy(schedule=[0.01, 0.01], on=ConnectionError)
    try:
        if awaited:
            monkeypatch.setattr("asyncio.sleep", asleep)
            asyncio.run(policy.acall(afetch))
        else:
            monkeypatch.setattr("time.sleep", wait)
            policy.call(fetch)
    finally:
        for each in observers:
            each.close()
    assert found == kinds


@pytest.mark.needs("threads")
def test_observe_receives_calls_of_other_threads(flaky, recorder):
    with observe(recorder):
        worker = threading.Thread(target=POLICY.call, args=[flaky()])
        worker.start()
        worker.join()
    assert recorder.received == [(STARTED, 1), (SUCCEEDED, 1)]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "kind", [AttemptStarted, AttemptFailed, RetryScheduled, Succeeded, GaveUp]
)
def test_a_failing_observer_does_not_affect_the_call(backend, flaky, recorder, kind):
    def broken(event):
        if isinstance(event, kind):
            raise ZeroDivisionError

    error = OSError("refused")
    with observe(broken), observe(recorder):
        retried = backend(POLICY, observers=[broken])
        assert retried(flaky(error, "value"))() == "value"
        with pytest.raises(OSError, match="refused") as caught:
            retried(flaky(error, error, error))()
    assert caught.value is error
    assert [len(error.__notes__), len(recorder.received)] == [1, 5 + 9]


def test_a_failing_observer_is_logged_each_time(flaky, caplog):
    def broken(event):
        raise ZeroDivisionError(event.state.attempt)

    Policy(observers=[broken]).call(flaky())
    with observe(broken):
        POLICY.call(flaky())
    assert [
        (record.name, record.levelname, record.getMessage().splitlines()[0])
        for record in caplog.records
    ] == [
        ("retrykit", "ERROR", f"an observer of AttemptStarted failed: {broken!r}"),
        ("retrykit", "ERROR", f"an observer of Succeeded failed: {broken!r}"),
    ] * 2
    last_event = {record.getMessage().splitlines()[-1] for record in caplog.records}
    assert last_event == {"ZeroDivisionError: 1"}


def test_an_awaitable_of_an_observer_of_the_process_is_never_awaited(clock, caplog):
    """Also beside observers of the policy, which may be async."""

    async def log(_event):
        pass

    async def fetch():
        pass

    # A coroutine function would be refused.
    with observe(lambda event: log(event)):  # noqa: PLW0108
        asyncio.run(Policy(observers=[log]).acall(fetch))
    assert len(caplog.records) == 2
    assert "observers must be a sync function under retry" in caplog.text


def test_ctrl_c_in_an_observer_is_raised(backend, flaky):
    def interrupted(_event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backend(POLICY, observers=[interrupted])(flaky())()


@pytest.mark.needs("threads")
def test_observers_can_be_registered_in_several_threads_at_once():
    counts, received_lists = [], []

    def come_and_go(name):
        for _ in range(1000):
            received = []
            with observe(received.append):
                Policy(name=name).call(int)
            counts.append([event.state.name for event in received].count(name))
            received_lists.append(received)

    workers = [threading.Thread(target=come_and_go, args=[str(n)]) for n in range(4)]
    with switching_often():
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    before = list(map(len, received_lists))
    Policy().call(int)
    assert counts == [2] * 4000
    assert list(map(len, received_lists)) == before


def test_the_fast_path_is_unblocked_after_the_last_observer(recorder):
    def blockers():
        return len(fast_path.blockers), len(fast_path.failure_blockers)

    calls, failures = blockers()
    with observe(recorder) as first, observe(recorder):
        first.close()
        assert blockers() == (calls + 1, failures + 1)
    assert blockers() == (calls, failures)
    with observe(recorder, failures_only=True) as only:
        assert blockers() == (calls, failures + 1)
        only.close()
        assert blockers() == (calls, failures)


def test_an_observer_is_not_notified_of_its_own_calls():
    """9. Observers cannot hurt."""
    sent, received = [], []

    @retry(schedule=[0])
    def send(event):
        sent.append(type(event).__name__)
        raise OSError

    with observe(send), observe(received.append):
        Policy(name="outer").call(int)
    assert sent == ["AttemptStarted", "AttemptStarted", "Succeeded", "Succeeded"]
    names = [event.state.name for event in received]
    assert names.count("outer") == 2
    assert len(names) > 2


def test_an_observer_is_notified_of_calls_in_a_context_that_it_copied(recorder):
    contexts = []

    def start(event):
        recorder(event)
        contexts.append(contextvars.copy_context())

    with observe(start):
        Policy(name="first").call(int)
        contexts[-1].run(Policy(name="second").call, int)
    assert [event.state.name for event in recorder.events] == [
        *["first"] * 2,
        *["second"] * 2,
    ]


class Sender:
    """An observer that is a new bound method at each access."""

    def __init__(self):
        self.sent = []

    def on(self, event):
        self.sent.append(event)
        Policy(observers=[self.on]).call(int)


def test_observers_are_compared_by_equality():
    sender = Sender()
    Policy(observers=[sender.on]).call(int)
    assert len(sender.sent) == 2


class TestFailuresOnly:
    def test_receives_a_call_from_its_first_failure(
        self, backend, clock, flaky, recorder
    ):
        with observe(recorder, failures_only=True):
            backend(POLICY)(flaky(OSError("one"), OSError("two"), "value"))()
        assert recorder.received == [
            (FAILED, 1), (SCHEDULED, 1),
            (STARTED, 2), (FAILED, 2), (SCHEDULED, 2),
            (STARTED, 3), (SUCCEEDED, 3),
        ]  # fmt: skip  # one line for each attempt
        assert clock.sleeps == [1.0, 2.0]

    def test_receives_a_call_that_gives_up_at_once(self, backend, flaky, recorder):
        with observe(recorder, failures_only=True), pytest.raises(KeyError):
            backend(POLICY)(flaky(KeyError("id")))()
        assert recorder.received == [(FAILED, 1), (GAVE_UP, 1)]

    def test_receives_a_rejected_result(self, backend, clock, flaky, recorder):
        busy = POLICY.replace(on_result=lambda result: result == "busy")
        with observe(recorder, failures_only=True):
            backend(busy)(flaky("value"))()
            assert recorder.received == []
            backend(busy)(flaky("busy", "value"))()
        assert recorder.received == [
            (FAILED, 1),
            (SCHEDULED, 1),
            (STARTED, 2),
            (SUCCEEDED, 2),
        ]

    def test_receives_an_interrupted_sleep(self, backend, flaky, recorder):
        clock = InterruptedClock()
        with (
            observe(recorder, failures_only=True),
            sync_clock.use(clock),
            async_clock.use(clock),
            pytest.raises(KeyboardInterrupt),
        ):
            backend(POLICY)(flaky(OSError()))()
        assert recorder.received == [(FAILED, 1), (SCHEDULED, 1), (GAVE_UP, 1)]

    def test_does_not_receive_an_interrupted_first_attempt(self, flaky, recorder):
        fetch = retry(POLICY, observers=[other := Recorder()])(
            flaky(KeyboardInterrupt())
        )
        with observe(recorder, failures_only=True), pytest.raises(KeyboardInterrupt):
            fetch()
        assert recorder.received == []
        assert other.received == [(STARTED, 1), (GAVE_UP, 1)]

    def test_receives_blocks(self, clock, flaky, recorder):
        fetch = flaky(OSError(), "value")
        with observe(recorder, failures_only=True):
            for attempt in retrying(POLICY):
                with attempt:
                    fetch()
            for attempt in retrying(POLICY):
                with attempt:
                    fetch()
        assert recorder.received == [
            (FAILED, 1),
            (SCHEDULED, 1),
            (STARTED, 2),
            (SUCCEEDED, 2),
        ]

    def test_receives_a_call_that_is_resumed_after_a_failure(
        self, clock, flaky, recorder
    ):
        state = RetryState("fetch", seed=7, epoch=0.0, attempt=3)
        failing = POLICY.run(flaky(*[OSError()] * 3)).state
        with observe(recorder, failures_only=True):
            resume(flaky("value"), state, POLICY)()
            assert recorder.received == []
            resume(flaky("value"), failing, POLICY)()
        assert recorder.received == [(STARTED, 4), (SUCCEEDED, 4)]

    def test_does_not_receive_successes_beside_another_observer(
        self, backend, clock, flaky, recorder
    ):
        other = Recorder()
        with observe(recorder, failures_only=True), observe(other):
            backend(POLICY)(flaky("value"))()
            assert recorder.received == []
            backend(POLICY, observers=[Recorder()])(flaky(OSError(), "value"))()
        assert recorder.received == [
            (FAILED, 1),
            (SCHEDULED, 1),
            (STARTED, 2),
            (SUCCEEDED, 2),
        ]
        assert other.received == [
            (STARTED, 1),
            (SUCCEEDED, 1),
            (STARTED, 1),
            *recorder.received,
        ]

    def test_keeps_the_fast_path_of_calls_that_succeed_at_once(self, backend, recorder):
        """They get no state; only the first call of a function takes the slow path."""
        states = []
        before = len(fast_path.blockers)
        with observe(recorder, failures_only=True):
            assert len(fast_path.blockers) == before
            fetch = backend(POLICY)(lambda: states.append(current_entry.get()[0]))
            fetch()
            fetch()
            with observe(Recorder()):
                fetch()
        assert [isinstance(owner, RetryCall) for owner in states[1:]] == [False, True]
        assert recorder.received == []

    def test_can_be_closed_twice(self, flaky, recorder):
        before = len(fast_path.blockers)
        with observe(Recorder()):
            observing = observe(recorder, failures_only=True)
            observing.close()
            observing.close()
            assert len(fast_path.blockers) == before + 1
            with pytest.raises(KeyError):
                POLICY.call(flaky(KeyError("id")))
        assert recorder.received == []

    @pytest.mark.usefixtures("quiet")
    def test_a_failing_observer_does_not_affect_the_call(self, clock, flaky, caplog):
        def broken(_event):
            raise ZeroDivisionError

        with observe(broken, failures_only=True):
            assert POLICY.call(flaky(OSError(), "value")) == "value"
        assert len(caplog.records) == 4


class Strict:
    """An observer whose errors end the call.

    Args:
        kind: The kind of the event at which it fails.
    """

    raises_errors = True

    def __init__(self, kind):
        self.kind, self.seen = kind, []

    def __call__(self, event):
        self.seen.append(event.kind)
        if event.kind == self.kind:
            raise LookupError(event.kind)


ENDS = {
    "attempt_started": (0, ["value"]),
    "attempt_failed": (1, ["value"]),
    "retry_scheduled": (1, ["value"]),
    "succeeded": (2, ["value"]),
    "gave_up": (3, []),
}


@pytest.mark.parametrize(("kind", "case"), ENDS.items(), ids=ENDS)
def test_the_error_of_an_observer_may_end_the_call(
    backend, clock, flaky, recorder, kind, case
):
    attempts, outcome = case
    function = flaky(OSError(), *outcome) if outcome else flaky(*map(OSError, "123"))
    strict = Strict(kind)
    with pytest.raises(LookupError, match=kind):
        backend(POLICY, observers=[strict, recorder])(function)()
    assert len(function.calls) == attempts
    assert strict.seen.count(kind) == 1


def test_the_error_of_an_async_observer_may_end_the_call(clock):
    class AsyncStrict(Strict):
        async def __call__(self, event):
            Strict.__call__(self, event)

    async def fail():
        raise OSError

    async def never(_event):
        """Be closed, not awaited."""

    observers = [AsyncStrict("retry_scheduled"), never]
    with pytest.raises(LookupError, match="retry_scheduled"):
        asyncio.run(POLICY.replace(observers=observers).acall(fail))


def test_the_error_of_a_hook_of_one_kind_may_end_the_call(clock, flaky):
    strict = Strict("retry_scheduled")
    policy = POLICY.replace(observers={"retry_scheduled": strict})
    with pytest.raises(LookupError):
        policy.call(flaky(OSError(), "value"))
    assert strict.seen == ["retry_scheduled"]


def test_the_error_of_an_observer_may_end_a_block(clock):
    strict = Strict("retry_scheduled")
    with pytest.raises(LookupError):
        for attempt in retrying(POLICY, observers=[strict]):
            with attempt:
                raise OSError
    assert strict.seen[:3] == ["attempt_started", "attempt_failed", "retry_scheduled"]
