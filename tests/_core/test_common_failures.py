"""Common failures, answered in one step: the same as by the general path."""

import asyncio
import contextvars
import copy
import gc
import itertools
import pickle
import threading
import time
import traceback
import weakref
from contextlib import suppress
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings, strategies as st

from retrykit import Policy, RetryAfter, aretry, current_state, retry, schedules as s
from retrykit._core import call as calls, common_failures
from retrykit._core.call import OWNER, TAPE
from retrykit._core.controller import RetryController
from retrykit._core.failures import StopReason
from retrykit._core.final_error import state_of
from retrykit._core.limits import override
from retrykit._internal.clocks import SystemClock, sync_clock
from retrykit._internal.context import ContextOverride
from retrykit.budgets import Budget
from retrykit.events import observe
from tests._support.concurrency import in_thread, switching_often
from tests._support.optional_trio import trio

# Only failures that are not logged are answered in one step.
pytestmark = pytest.mark.usefixtures("quiet")

SCHEDULES = [
    s.exponential(0.5).cap(60).jitter(0.5),
    s.exponential(0.5).jitter(0.5).cap(3),
    s.constant(0),
    s.constant(2).take(3),
    s.sequence([1, 5, 15, 960]),
    s.sequence([1, 2]).then(s.uniform(1, 9)),
    s.decorrelated(0.5).cap(20),
    s.google_interval(),
    s.polly_interval(),
    s.linear(1).full_jitter() + s.constant(1),
    s.exponential(1).equal_jitter().within("30s"),
    s.constant(1).switch(after=2, to=s.fibonacci().full_jitter()),
]
CONDITIONS = [ConnectionError, (ConnectionError, TimeoutError), Exception]


@st.composite
def policies(draw):
    """Draw policies that leave common failures to the short path."""
    limit = draw(st.sampled_from(["attempts", "elapsed", "both", "all"]))
    settings = {
        "schedule": draw(st.sampled_from(SCHEDULES)),
        "max_attempts": draw(st.integers(1, 6)) if limit != "elapsed" else None,
        "max_elapsed": draw(st.sampled_from([1, 8, 90]))
        if limit != "attempts"
        else None,
        "seed": draw(st.integers(0, 2**64 - 1)),
        "max_failures": draw(st.integers(2, 4)),
        "give_up_on": draw(st.sampled_from([(), ConnectionRefusedError])),
        "keep_tracebacks": draw(st.booleans()),
        "raises": draw(st.sampled_from(["last", "retry_error", "group"])),
    }
    if draw(st.booleans()):
        settings["on"] = draw(st.sampled_from(CONDITIONS))
    if limit != "attempts":
        settings["deadline"] = draw(st.sampled_from(["stop", "clip", "overshoot"]))
    if limit == "all":
        settings["limits"] = "all"
    try:
        return Policy(**settings)
    except ValueError:
        # Its limits contradict each other.
        return Policy(seed=settings["seed"], schedule=settings["schedule"])


def attempts():
    return st.fixed_dictionaries(
        {
            "fails": st.sampled_from([*["plain"] * 8, *["shared"] * 3, *FAILURES]),
            "takes": st.sampled_from([0.0, 0.0, 0.25, 3.0]),
            "asks": st.sampled_from([False, False, False, True]),
            "observes": st.sampled_from([*[None] * 9, "all", "failures"]),
            "sleep": st.sampled_from([*["ends"] * 9, "interrupted", "shorter"]),
        }
    )


class SealedError(ConnectionError):
    """An error whose class does not allow attributes to be set."""

    def __setattr__(self, name, value):
        raise AttributeError(name)


FAILURES = {
    "plain": lambda number: ConnectionError(f"refused {number}"),
    "other": lambda _number: TimeoutError(),
    "narrower": lambda _number: ConnectionRefusedError(),
    "shared": None,
    "attribute": lambda number: with_attribute(ConnectionError(number)),
    "caused": lambda number: caused(ConnectionError(number), KeyError("cause")),
    "exhausted": lambda _number: in_thread(give_up),
    "by_exhausted": lambda number: caused(ConnectionError(number), in_thread(give_up)),
    "signal": lambda _number: RetryAfter(2),
    "unretried": lambda _number: TypeError("a mistake"),
    "group": lambda _number: ExceptionGroup("several", [ConnectionError()]),
    "mistakes": lambda _number: ExceptionGroup("several", [TypeError()]),
    "interrupt": lambda _number: KeyboardInterrupt(),
    "sealed": SealedError,
}


def with_attribute(error):
    error.attribute = 1
    return error


def caused(error, cause):
    error.__cause__ = raised(cause)
    return error


def give_up():
    """Return the error of a call that has given up."""
    policy = Policy(hint=lambda _error: "2h", on=ConnectionError, seed=7)
    return policy.run(fail).error


def fail(*_):
    raise ConnectionError


def ending(policy):
    """Return the state of a call that fails every time."""
    with pytest.raises(ConnectionError) as caught:
        policy.call(fail)
    return state_of(caught.value)


def noting(seen):
    return lambda event: seen.append(type(event).__name__)


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of a test."""

    def time(self):
        return self.now


def run(policy, script, *, awaited, monkeypatch):  # noqa: C901, PLR0915  a world of its own
    """Return all that users see of a call, by the time of a test."""
    seen, observers, start = [], [], 1000.0
    clock = SimpleNamespace(now=start)
    steps = iter(script)
    current = {}

    def attempt():
        current.clear()
        current.update(next(steps, {"fails": None, "takes": 0.0}))
        clock.now += current["takes"]
        if current.get("asks"):
            seen.append(plain(current_state()))
        if current.get("observes"):
            failures_only = current["observes"] == "failures"
            observers.append(observe(noting(seen), failures_only=failures_only))
        if current["fails"] == "shared":
            raise shared
        if current["fails"]:
            raise FAILURES[current["fails"]](len(seen))
        return "a result"

    def sleep(delay):
        seen.append(delay)
        if current["asks"]:
            seen.append(plain(current_state()))
        if current["sleep"] == "interrupted":
            raise KeyboardInterrupt
        clock.now += delay / 2 if current["sleep"] == "shorter" else delay

    async def asleep(delay):
        sleep(delay)

    async def aattempt():
        return attempt()

    shared = ConnectionError("the same object")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", sleep)
            patched.setattr(time, "time", lambda: clock.now)
            patched.setattr(asyncio, "sleep", asleep)
            patched.setattr("retrykit._internal.clocks.monotonic", lambda: clock.now)
            real = SystemClock()
            real.now = lambda: clock.now
            parts = SimpleNamespace(time=real.now), time
            patched.setattr(sync_clock, "parts", parts)
            patched.setattr(sync_clock, "real", real)
            patched.setattr(sync_clock, "_real_now", real.now)
            patched.setattr(sync_clock, "_override", ContextOverride(real))
            if awaited:
                loop = Loop()
                type(loop).now = property(lambda _loop: clock.now)
                with asyncio.Runner(loop_factory=lambda: loop) as runner:
                    seen.append(runner.run(aretry(policy)(aattempt)()))
            else:
                seen.append(retry(policy)(attempt)())
    except BaseException as error:  # noqa: BLE001  interrupts, too
        frames = traceback.extract_tb(error.__traceback__)
        lines = [(x.name, x.lineno) for x in frames if x.filename == __file__]
        seen += [repr(error), getattr(error, "__notes__", []), lines]
        seen.append(plain(state_of(error)))
    finally:
        for each in observers:
            each.close()
    return seen


def plain(state):
    if state is None:
        return None
    data = state.to_dict()
    causes = [error.__cause__ for error in state.errors if error.__cause__]
    kept = [error.__traceback__ is not None for error in (*state.errors, *causes)]
    return data, kept, state.elapsed, [repr(error) for error in state.errors]


def refused(**changes):
    ordinary = {"takes": 0.25, "asks": False, "observes": None, "sleep": "ends"}
    return {"fails": "plain"} | ordinary | changes


FIVE = Policy(schedule=[1, 2, 3, 4], on=ConnectionError, seed=7)


@pytest.mark.parametrize("awaited", [False, True])
@given(policy=policies(), script=st.lists(attempts(), max_size=9))
@example(policy=FIVE, script=[refused()] * 4)
@example(policy=FIVE, script=[refused(asks=True)] * 2)
@example(policy=FIVE, script=[refused(), refused(asks=True), refused()])
@example(policy=FIVE.replace(keep_tracebacks=True), script=[refused()] * 4)
def test_the_short_path_has_the_results_of_the_general_one(awaited, policy, script):
    monkeypatch = pytest.MonkeyPatch()
    with monkeypatch.context() as patched:
        patched.setattr(common_failures, "_allows", lambda _policy: False)
        # Of its own, since a policy remembers how its failures are answered.
        other = policy.replace()
        expected = run(other, script, awaited=awaited, monkeypatch=monkeypatch)
    found = run(policy, script, awaited=awaited, monkeypatch=monkeypatch)
    assert found == expected


def test_a_call_around_this_one_has_a_say():
    """Its time limit ends this one before a delay of ten seconds."""
    policy = Policy(schedule=[10, 10], on=ConnectionError)
    inner = Policy(max_elapsed=5, nested="raise").run(policy.call, fail)
    assert inner.state.nested_state.stop_reason is StopReason.ELAPSED


@pytest.mark.parametrize("fails", ["shared " * 2, "shared " * 4, "shared plain shared"])
def test_an_error_that_several_attempts_raise_has_the_frames_of_the_last(fails):
    policy = Policy(schedule=[1] * (len(fails.split()) - 1), on=ConnectionError)
    step = {"takes": 0.0, "sleep": "ends", "asks": False}
    script = [{"fails": each, **step} for each in fails.split()]
    seen = run(policy, script, awaited=False, monkeypatch=pytest.MonkeyPatch())
    assert [name for name, _ in seen[-2]] == ["run", "attempt"]


def test_a_schedule_that_fails_is_left_to_the_general_path(monkeypatch):
    policy = Policy(schedule=s.constant(0), max_attempts=3, on=ConnectionError)
    monkeypatch.setattr("retrykit.schedules._basic.Constant.bounds", fail)
    assert ending(policy).attempt == 3


@pytest.mark.parametrize("schedule", [s.constant("90d"), s.decorrelated("90d")])
def test_a_delay_of_months_is_slept_in_parts(monkeypatch, schedule):
    """A timer of the platform may not hold it."""
    sleeps = []
    monkeypatch.setattr(time, "sleep", sleeps.append)
    monkeypatch.setattr("retrykit._internal.clocks.monotonic", lambda: sum(sleeps))
    policy = Policy(schedule=schedule.take(1), on=ConnectionError, max_elapsed=None)
    delay = ending(policy).failures[0].delay
    assert sum(sleeps) == pytest.approx(delay)
    assert max(sleeps) == 30 * 86_400
    assert len(sleeps) >= 3


def test_ranges_too_narrow_for_all_digits_of_a_draw():
    schedule = s.uniform(0, 1e-310)
    policy = Policy(schedule=schedule, on=ConnectionError, max_attempts=5, seed=7)
    delays = [failure.delay for failure in ending(policy).failures[:4]]
    assert delays == [*itertools.islice(schedule.draw(7), 4)]


def test_trio_sleeps_between_common_failures():
    fails = iter([True, True, False])
    policy = Policy(schedule=[600, 1800], on=ConnectionError, max_elapsed=3600)
    states = []

    @aretry(policy)
    async def fetch():
        if next(fails):
            raise ConnectionError
        states.append(current_state())
        await trio.lowlevel.checkpoint()

    trio.run(fetch, clock=trio.testing.MockClock(autojump_threshold=0))
    assert states[0].elapsed == pytest.approx(2400)
    assert [x.started for x in states[0].failures] == pytest.approx([0, 600])


def test_locals_are_freed_with_an_error_that_is_raised_again():
    alive = []

    def fetch():
        local = {0}
        alive.append(weakref.ref(local))
        # No frame may refer to the error.
        raise RAISED_AGAIN[0]

    RAISED_AGAIN.append(ConnectionError())
    gc.disable()
    try:
        with suppress(ConnectionError):
            Policy(schedule=[0, 0], on=ConnectionError).call(fetch)
        RAISED_AGAIN.clear()
        assert [each() for each in alive] == [None] * 3
    finally:
        gc.enable()


RAISED_AGAIN = []


def test_an_interrupted_first_attempt_has_a_state_before_and_after_a_success():
    results = iter([KeyboardInterrupt(), "a result", KeyboardInterrupt()])

    @retry
    def fetch():
        result = next(results)
        if isinstance(result, KeyboardInterrupt):
            raise result

    states = []
    for _ in range(3):
        try:
            fetch()
        except KeyboardInterrupt as error:
            states.append(state_of(error))
    assert [x.stop_reason for x in states] == [StopReason.CANCELLED] * 2


class Interrupted(Budget):
    """A budget that is interrupted when it counts a success."""

    balance = 1.0

    def withdraw(self, error):
        return 0.0

    def deposit(self, cost):
        raise KeyboardInterrupt


def test_a_call_that_was_interrupted_after_its_end_has_no_state():
    policy = Policy(budget=Interrupted())
    with pytest.raises(KeyboardInterrupt) as caught:
        policy.call(int)
    assert state_of(caught.value) is None
    with pytest.raises(KeyboardInterrupt) as caught:
        asyncio.run(policy.acall(asyncio.sleep, 0))
    assert state_of(caught.value) is None


def test_a_policy_that_has_answered_can_be_copied():
    policy = Policy(schedule=[0, 0, 0], on=ConnectionError)
    assert ending(policy).attempt == 4
    copies = [copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))]  # noqa: S301
    copies += [override(policy, max_attempts=2), policy.replace(max_attempts=2)]
    assert [ending(each).attempt for each in copies] == [4, 4, 2, 2]
    assert copies[:2] == [policy, policy]


def test_a_log_of_retries_has_a_say(caplog):
    with caplog.at_level("WARNING", "retrykit.retries"):
        Policy(schedule=[0, 0], on=ConnectionError).run(fail)
    assert len(caplog.records) == 2


def test_a_clock_that_stands_still_is_noticed(monkeypatch, caplog):
    """Without max_attempts, only time ends the call."""
    monkeypatch.setattr(time, "sleep", lambda _delay: None)
    fails = iter([True] * 4)

    def fetch():
        if next(fails, False):
            raise ConnectionError

    Policy(schedule=s.constant(1), max_elapsed=60).call(fetch)
    assert [x.message for x in caplog.records if "is sleep mocked" in x.message]
    assert len(caplog.records) == 1


def test_a_call_that_ends_while_its_state_is_made_has_none():
    policy = Policy(schedule=[1], on=ConnectionError)
    controller = RetryController(policy, "fetch", sync_clock, None)

    class EndingEntry(list):
        """Ends, in another thread, before it gets the call."""

        def __setitem__(self, index, value):
            if value is not None:
                super().__setitem__(1, None)
            super().__setitem__(index, value)

    entry = EndingEntry([controller, time.monotonic(), None, 0])
    assert controller.ensure_call(entry) is None
    assert entry[:TAPE] == [None, None, None, 0]
    assert controller.ensure_call([controller, None, None, 0]) is None


def test_more_delays_than_are_remembered():
    policy = Policy(
        schedule=s.constant(0),
        max_attempts=600,
        max_failures=600,
        on=ConnectionError,
    )
    failures = ending(policy).failures
    assert [failure.attempt for failure in failures] == [*range(1, 601)]


def test_a_failure_that_is_recorded_while_the_state_is_made_is_not_lost():
    """Both write to the tape of the entry, of which there is one."""
    policy = Policy(schedule=[1, 2], on=ConnectionError, max_elapsed=None)
    answer = common_failures.answer_of(policy)

    class LateEntry(list):
        """Gets a failure from the driver, in another thread, before the call."""

        def __setitem__(self, index, value):
            if index == OWNER:
                assert answer(self, None, raised(ConnectionError()), time_) == 1
            super().__setitem__(index, value)

    time_, _ = sync_clock.parts
    controller = RetryController(policy, "fetch", sync_clock, None)
    entry = LateEntry([controller, time.monotonic(), None, 0])
    state = controller.ensure_call(entry).state
    assert [failure.delay for failure in state.failures] == [1]
    assert state.next_delay == 1


def raised(error):
    try:
        raise error
    except type(error):
        return error


@pytest.mark.thorough
@pytest.mark.needs("threads")
def test_threads_that_ask_at_any_moment_see_every_failure_once():
    """They make the state while the driver records the next failure."""
    runs = 9_000 if settings().max_examples >= 200 else 1_000
    policy = Policy(schedule=s.uniform(0, 1e-9), max_attempts=6, on=ConnectionError)
    asking, seen, looks = None, [], 0
    go = threading.Barrier(2, timeout=20)

    @retry(policy)
    def fetch(left):
        nonlocal asking
        if asking is None:
            asking = contextvars.copy_context()
            go.wait()
        if left:
            left.pop()
            raise ConnectionError

    def ask():
        while go.wait() is not None and asking is not None:
            context, states = asking, []
            with suppress(LookupError):
                while not over.is_set():
                    states.append(context.run(current_state))
            seen.append(states)
            go.wait()

    over = threading.Event()
    thread = threading.Thread(target=ask)
    thread.start()
    with switching_often():
        for number in itertools.islice(itertools.cycle([1, 2, 3, 4, 5]), runs):
            over.clear()
            fetch([None] * number)
            over.set()
            go.wait()
            asking, states = None, seen.pop()
            looks += bool(states)
            for state in states[:1]:
                assert all(each is state for each in states)
                assert [x.attempt for x in state.failures] == [*range(1, number + 1)]
                delays = itertools.islice(policy.schedule.draw(state.seed), number)
                assert [x.delay for x in state.failures] == [*delays]
                assert (state.attempt, state.next_delay) == (number + 1, None)
        go.wait()
    thread.join()
    assert looks > runs / 100


def test_the_numbers_in_drivers_and_answers_are_those_of_their_names():
    entry = (calls.OWNER, calls.START, calls.BEFORE, calls.GIVE_UPS, calls.TAPE)
    tape = (calls.DRAWS, calls.NUMBER, calls.EARLIER, calls.TRACE, calls.FIRST)
    assert entry == tape == (0, 1, 2, 3, 4)
    assert (calls.ATTEMPT, calls.ERROR, calls.DELAY) == (0, 1, 5)
