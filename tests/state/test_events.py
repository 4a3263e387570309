"""One stream of events: what is told, in which order, and to whom."""

import contextvars
import sys
import threading

import pytest

from retrykit import Policy, RetryState, StopReason, observe, resume, retry, retrying
from retrykit._internal import fast_path
from retrykit._internal.clocks import sync_clock
from retrykit._internal.loop_clock import async_clock
from retrykit.execution.call import RetryCall, current_entry
from retrykit.state.events import (
    AttemptFailed,
    AttemptStarted,
    GaveUp,
    RetryScheduled,
    Succeeded,
)

POLICY = Policy(schedule=[1, 2], on=OSError)

STARTED, FAILED, SCHEDULED = "AttemptStarted", "AttemptFailed", "RetryScheduled"
SUCCEEDED, GAVE_UP = "Succeeded", "GaveUp"


class Ear:
    """Hears events, and writes down what they say at that moment."""

    def __init__(self):
        self.events = []
        self.heard = []

    def __call__(self, event):
        self.events.append(event)
        self.heard.append((type(event).__name__, event.state.attempt))

    @property
    def last(self):
        return self.events[-1]


class Interrupted:
    """A clock whose sleep ends with Ctrl-C; the same one blocking and awaited."""

    now = staticmethod(lambda: 0.0)

    def sleep(self, _delay, /):
        raise KeyboardInterrupt


@pytest.fixture
def ear():
    return Ear()


def test_tells_of_a_success_at_once(colour, clock, flaky, ear):
    colour(POLICY, observers=[ear])(flaky("value"))()
    assert ear.heard == [(STARTED, 1), (SUCCEEDED, 1)]
    assert ear.last.state.stop_reason is StopReason.SUCCEEDED
    assert clock.sleeps == []


def test_tells_of_a_success_after_retries(colour, clock, flaky, ear):
    errors = [OSError("one"), OSError("two")]
    colour(POLICY, observers=[ear])(flaky(*errors, "value"))()
    assert ear.heard == [
        (STARTED, 1), (FAILED, 1), (SCHEDULED, 1),
        (STARTED, 2), (FAILED, 2), (SCHEDULED, 2),
        (STARTED, 3), (SUCCEEDED, 3),
    ]  # fmt: skip  # one line for each attempt
    failures = [e.failure for e in ear.events if isinstance(e, AttemptFailed)]
    assert [failure.error for failure in failures] == errors
    assert tuple(failures) == ear.last.state.failures
    delays = [e.delay for e in ear.events if isinstance(e, RetryScheduled)]
    assert delays == clock.sleeps == [1.0, 2.0]


def test_tells_of_giving_up(colour, clock, flaky, ear):
    error = OSError("three")
    fetch = colour(POLICY, observers=[ear])(flaky(OSError(), OSError(), error))
    with pytest.raises(OSError, match="three"):
        fetch()
    assert ear.heard[6:] == [(STARTED, 3), (FAILED, 3), (GAVE_UP, 3)]
    assert ear.events[-2].failure.error is error
    assert ear.events[-2].failure.delay is None
    assert ear.last.state.stop_reason is StopReason.SCHEDULE_ENDED
    assert ear.last.state.elapsed == sum(clock.sleeps)


def test_tells_of_an_error_that_is_not_retried(colour, flaky, ear):
    fetch = colour(POLICY, observers=[ear])(flaky(KeyError("id")))
    with pytest.raises(KeyError):
        fetch()
    assert ear.heard == [(STARTED, 1), (FAILED, 1), (GAVE_UP, 1)]
    assert ear.last.state.stop_reason is StopReason.NOT_RETRYABLE


def test_tells_of_a_result_that_is_refused(colour, clock, flaky, ear):
    changes = {"on_result": lambda result: result == "busy", "observers": [ear]}
    colour(POLICY, **changes)(flaky("busy", "value"))()
    assert ear.heard == [
        (STARTED, 1), (FAILED, 1), (SCHEDULED, 1),
        (STARTED, 2), (SUCCEEDED, 2),
    ]  # fmt: skip  # one line for each attempt
    failure = ear.events[1].failure
    assert (failure.error, failure.result, failure.delay) == (None, "busy", 1.0)
    assert clock.sleeps == [1.0]


def test_tells_that_an_attempt_was_interrupted(colour, flaky, ear):
    fetch = colour(POLICY, observers=[ear])(flaky(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        fetch()
    assert ear.heard == [(STARTED, 1), (GAVE_UP, 1)]
    assert ear.last.state.stop_reason is StopReason.CANCELLED


def test_tells_that_a_sleep_was_interrupted(colour, flaky, ear):
    fetch = colour(POLICY, observers=[ear])(flaky(OSError()))
    clock = Interrupted()
    with (
        sync_clock.use(clock),
        async_clock.use(clock),
        pytest.raises(KeyboardInterrupt),
    ):
        fetch()
    assert ear.heard == [(STARTED, 1), (FAILED, 1), (SCHEDULED, 1), (GAVE_UP, 1)]
    assert ear.last.state.stop_reason is StopReason.CANCELLED
    assert ear.last.state.next_delay == 1.0


def test_a_block_tells_what_a_function_tells(clock, flaky, ear):
    fetch, block = flaky(OSError(), OSError(), "value"), Ear()
    POLICY.replace(observers=[ear]).call(fetch)
    fetch = flaky(OSError(), OSError(), "value")
    for attempt in retrying(POLICY.replace(observers=[block])):
        with attempt:
            fetch()
    assert block.heard == ear.heard
    assert clock.sleeps == [1.0, 2.0, 1.0, 2.0]


def test_an_observer_of_the_process_hears_every_call(colour, clock, flaky, ear):
    with observe(ear):
        colour(POLICY)(flaky(OSError()))()
        colour(POLICY)(flaky())()
    colour(POLICY)(flaky())()
    assert ear.heard == [
        (STARTED, 1), (FAILED, 1), (SCHEDULED, 1),
        (STARTED, 2), (SUCCEEDED, 2),
        (STARTED, 1), (SUCCEEDED, 1),
    ]  # fmt: skip  # one line for each attempt
    assert clock.sleeps == [1.0]


def test_the_observers_of_a_policy_hear_before_those_of_the_process(flaky):
    order = []
    policy = Policy(observers=[lambda _: order.append(1), lambda _: order.append(2)])
    with observe(lambda _: order.append(3)), observe(lambda _: order.append(4)):
        policy.call(flaky())
    assert order == [1, 2, 3, 4] * 2


def test_observers_of_the_process_are_nested(flaky):
    outer, inner = Ear(), Ear()
    with observe(outer):
        with observe(inner):
            POLICY.call(flaky())
        POLICY.call(flaky())
    assert (len(outer.heard), len(inner.heard)) == (4, 2)


def test_an_observer_that_is_registered_twice_hears_twice(flaky, ear):
    first, second = observe(ear), observe(ear)
    POLICY.call(flaky())
    assert ear.heard == [(STARTED, 1)] * 2 + [(SUCCEEDED, 1)] * 2
    first.close()
    first.close()
    POLICY.call(flaky())
    assert ear.heard[4:] == [(STARTED, 1), (SUCCEEDED, 1)]
    second.close()
    POLICY.call(flaky())
    assert len(ear.heard) == 6


def test_an_observer_that_comes_late_hears_the_rest(colour, clock, ear):
    observing = []

    def fetch():
        if observing:
            return "value"
        observing.append(observe(ear))
        raise OSError

    colour(POLICY)(fetch)()
    observing[0].close()
    assert ear.heard == [(FAILED, 1), (SCHEDULED, 1), (STARTED, 2), (SUCCEEDED, 2)]
    assert clock.sleeps == [1.0]


def test_an_observer_of_the_process_hears_other_threads(flaky, ear):
    with observe(ear):
        worker = threading.Thread(target=POLICY.call, args=[flaky()])
        worker.start()
        worker.join()
    assert ear.heard == [(STARTED, 1), (SUCCEEDED, 1)]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "kind", [AttemptStarted, AttemptFailed, RetryScheduled, Succeeded, GaveUp]
)
def test_an_observer_that_fails_hurts_nothing(colour, flaky, ear, kind):
    def broken(event):
        if isinstance(event, kind):
            raise ZeroDivisionError

    error = OSError("refused")
    with observe(broken), observe(ear):
        retried = colour(POLICY, observers=[broken])
        assert retried(flaky(error, "value"))() == "value"
        with pytest.raises(OSError, match="refused") as caught:
            retried(flaky(error, error, error))()
    assert caught.value is error
    assert [len(error.__notes__), len(ear.heard)] == [1, 5 + 9]


def test_an_observer_that_fails_is_logged_each_time(flaky, caplog):
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
    last = {record.getMessage().splitlines()[-1] for record in caplog.records}
    assert last == {"ZeroDivisionError: 1"}


def test_an_observer_does_not_hold_up_ctrl_c(colour, flaky):
    def interrupted(_event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        colour(POLICY, observers=[interrupted])(flaky())()


def test_observers_come_and_go_in_several_threads_at_once():
    told, gone = [], []

    def come_and_go(name):
        for _ in range(1000):
            heard = []
            with observe(heard.append):
                Policy(name=name).call(int)
            told.append([event.state.name for event in heard].count(name))
            gone.append(heard)

    workers = [threading.Thread(target=come_and_go, args=[str(n)]) for n in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    before = list(map(len, gone))
    Policy().call(int)
    assert told == [2] * 4000
    assert list(map(len, gone)) == before


def test_calls_are_no_longer_watched_once_every_observer_is_gone(ear):
    before = len(fast_path.blockers)
    with observe(ear) as first, observe(ear):
        first.close()
        assert len(fast_path.blockers) == before + 1
    assert len(fast_path.blockers) == before


def test_an_observer_is_not_told_of_the_calls_that_it_makes():
    """9. Observers cannot hurt."""
    sent, heard = [], []

    @retry(schedule=[0])
    def send(event):
        sent.append(type(event).__name__)
        raise OSError

    with observe(send), observe(heard.append):
        Policy(name="outer").call(int)
    assert sent == ["AttemptStarted", "AttemptStarted", "Succeeded", "Succeeded"]
    names = [event.state.name for event in heard]
    assert names.count("outer") == 2
    assert len(names) > 2


def test_what_an_observer_starts_is_heard_once_it_has_been_told(ear):
    contexts = []

    def start(event):
        ear(event)
        contexts.append(contextvars.copy_context())

    with observe(start):
        Policy(name="first").call(int)
        contexts[-1].run(Policy(name="second").call, int)
    assert [event.state.name for event in ear.events] == [
        *["first"] * 2,
        *["second"] * 2,
    ]


class Sender:
    """An observer that is a new bound method each time it is named."""

    def __init__(self):
        self.sent = []

    def on(self, event):
        self.sent.append(event)
        Policy(observers=[self.on]).call(int)


def test_an_observer_is_known_again_by_what_it_is_equal_to():
    sender = Sender()
    Policy(observers=[sender.on]).call(int)
    assert len(sender.sent) == 2


class TestOnlyFailing:
    def test_hears_a_call_from_its_first_failure_on(self, colour, clock, flaky, ear):
        with observe(ear, failures_only=True):
            colour(POLICY)(flaky(OSError("one"), OSError("two"), "value"))()
        assert ear.heard == [
            (FAILED, 1), (SCHEDULED, 1),
            (STARTED, 2), (FAILED, 2), (SCHEDULED, 2),
            (STARTED, 3), (SUCCEEDED, 3),
        ]  # fmt: skip  # one line for each attempt
        assert clock.sleeps == [1.0, 2.0]

    def test_hears_a_call_that_gives_up_at_once(self, colour, flaky, ear):
        with observe(ear, failures_only=True), pytest.raises(KeyError):
            colour(POLICY)(flaky(KeyError("id")))()
        assert ear.heard == [(FAILED, 1), (GAVE_UP, 1)]

    def test_hears_of_a_result_that_is_refused(self, colour, clock, flaky, ear):
        busy = POLICY.replace(on_result=lambda result: result == "busy")
        with observe(ear, failures_only=True):
            colour(busy)(flaky("value"))()
            assert ear.heard == []
            colour(busy)(flaky("busy", "value"))()
        assert ear.heard == [(FAILED, 1), (SCHEDULED, 1), (STARTED, 2), (SUCCEEDED, 2)]

    def test_hears_that_a_sleep_was_interrupted(self, colour, flaky, ear):
        clock = Interrupted()
        with (
            observe(ear, failures_only=True),
            sync_clock.use(clock),
            async_clock.use(clock),
            pytest.raises(KeyboardInterrupt),
        ):
            colour(POLICY)(flaky(OSError()))()
        assert ear.heard == [(FAILED, 1), (SCHEDULED, 1), (GAVE_UP, 1)]

    def test_does_not_hear_that_a_first_attempt_was_interrupted(self, flaky, ear):
        fetch = retry(POLICY, observers=[other := Ear()])(flaky(KeyboardInterrupt()))
        with observe(ear, failures_only=True), pytest.raises(KeyboardInterrupt):
            fetch()
        assert ear.heard == []
        assert other.heard == [(STARTED, 1), (GAVE_UP, 1)]

    def test_hears_of_blocks(self, clock, flaky, ear):
        fetch = flaky(OSError(), "value")
        with observe(ear, failures_only=True):
            for attempt in retrying(POLICY):
                with attempt:
                    fetch()
            for attempt in retrying(POLICY):
                with attempt:
                    fetch()
        assert ear.heard == [(FAILED, 1), (SCHEDULED, 1), (STARTED, 2), (SUCCEEDED, 2)]

    def test_hears_all_of_a_call_that_goes_on_after_a_failure(self, clock, flaky, ear):
        state = RetryState("fetch", seed=7, epoch=0.0, attempt=3)
        failing = POLICY.run(flaky(*[OSError()] * 3)).state
        with observe(ear, failures_only=True):
            resume(flaky("value"), state, POLICY)()
            assert ear.heard == []
            resume(flaky("value"), failing, POLICY)()
        assert ear.heard == [(STARTED, 4), (SUCCEEDED, 4)]

    def test_does_not_hear_of_success_that_another_observer_hears_of(
        self, colour, clock, flaky, ear
    ):
        other = Ear()
        with observe(ear, failures_only=True), observe(other):
            colour(POLICY)(flaky("value"))()
            assert ear.heard == []
            colour(POLICY, observers=[Ear()])(flaky(OSError(), "value"))()
        assert ear.heard == [(FAILED, 1), (SCHEDULED, 1), (STARTED, 2), (SUCCEEDED, 2)]
        assert other.heard == [(STARTED, 1), (SUCCEEDED, 1), (STARTED, 1), *ear.heard]

    def test_leaves_calls_that_succeed_at_once_unwatched(self, colour, ear):
        """No state is made for them; the first call of a function is checked."""
        states = []
        before = len(fast_path.blockers)
        with observe(ear, failures_only=True):
            assert len(fast_path.blockers) == before
            fetch = colour(POLICY)(lambda: states.append(current_entry.get()[0]))
            fetch()
            fetch()
            with observe(Ear()):
                fetch()
        assert [isinstance(owner, RetryCall) for owner in states[1:]] == [False, True]
        assert ear.heard == []

    def test_is_closed_twice_without_harm(self, flaky, ear):
        before = len(fast_path.blockers)
        with observe(Ear()):
            observing = observe(ear, failures_only=True)
            observing.close()
            observing.close()
            assert len(fast_path.blockers) == before + 1
            with pytest.raises(KeyError):
                POLICY.call(flaky(KeyError("id")))
        assert ear.heard == []

    def test_is_as_harmless_as_any_observer(self, clock, flaky, caplog):
        def broken(_event):
            raise ZeroDivisionError

        with observe(broken, failures_only=True):
            assert POLICY.call(flaky(OSError(), "value")) == "value"
        assert len(caplog.records) == 4
