"""Hooks of tenacity, called by tenacity and by retrykit, in virtual time."""

import asyncio
import logging
import time
from unittest.mock import patch

import pytest
import tenacity

from retrykit import Policy, RetryError, aretry, retry, retrying, schedules
from retrykit.integrations import tenacity as hooks
from retrykit.limits import CircuitBreaker
from retrykit.testing import virtual_time
from tests._support.side_by_side import call

RETRIED = tenacity.retry_if_exception_type(OSError)
RETRIED |= tenacity.retry_if_result(lambda result: result is None)


class Log:
    """What the hooks of a call have seen, in order.

    Args:
        raises: The hook that raises.
        at: The attempt after which it does.
    """

    def __init__(self, raises=None, at=1):
        self.rows, self.raises, self.at = [], raises, at

    def hook(self, name, answer=None):
        def note(state):
            self.rows.append((name, *seen(state)))
            if (name, state.attempt_number) == (self.raises, self.at):
                raise RuntimeError(name)
            return answer(state) if callable(answer) else answer

        return note

    def ahook(self, name):
        note = self.hook(name)

        async def anote(state):
            await asyncio.sleep(0)
            return note(state)

        return anote

    def function(self, script):
        outcomes = iter(script)

        def fetch(*args, **kwargs):
            self.rows.append(("fetch", args, kwargs, round(time.monotonic(), 6)))
            time.sleep(0.5)
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return fetch


def seen(state):
    outcome = state.outcome
    if outcome is not None:
        failed = outcome.failed
        told = repr(outcome.exception()) if failed else outcome.result()
        outcome = (outcome.done(), failed, told, outcome.attempt_number)
    statistics = {
        name: round(value, 6) for name, value in state.retry_object.statistics.items()
    }
    ended = state.outcome_timestamp
    return (
        state.attempt_number,
        state.fn and state.fn.__name__,
        state.args,
        state.kwargs,
        outcome,
        round(state.start_time, 6),
        ended and round(ended, 6),
        state.seconds_since_start,
        state.idle_for,
        None if state.next_action is None else state.next_action.sleep,
        state.get_fn_name() if state.fn else None,
        statistics,
    )


def course(build, script, **settings):
    """Return what happens in a call, in virtual time."""
    log = Log(**settings)

    def run(_server):
        try:
            made = build(log, log.function(script))
        except Exception as error:  # noqa: BLE001  it is the outcome
            # Both have a RetryError of their own.
            made = repr(error).partition("(<")[0]
        log.rows.append(("end", made))

    with virtual_time() as clock:
        call(run, None, clock)
    return log.rows


def before(log, fetch):
    return tenacity.retry(
        before=log.hook("before"),
        after=log.hook("after"),
        before_sleep=log.hook("before_sleep"),
        retry_error_callback=log.hook("callback", lambda state: state.attempt_number),
        wait=tenacity.wait_exponential(),
        stop=tenacity.stop_after_attempt(4),
        retry=RETRIED,
    )(fetch)(1, key=2)


def after(log, fetch):
    callback = log.hook("callback", lambda state: state.attempt_number)
    return retry(
        on=OSError,
        on_result=lambda result: result is None,
        schedule=schedules.exponential(1),
        max_attempts=4,
        observers=[
            hooks.before_sleep(log.hook("before_sleep")),
            hooks.before(log.hook("before")),
            hooks.after(log.hook("after")),
        ],
        fallback=hooks.retry_error_callback(callback),
    )(fetch)(1, key=2)


SCRIPTS = {
    "success": ["page"],
    "success after an error": [OSError("busy"), "page"],
    "success after a result": [None, OSError("busy"), None, "page"],
    "given up on an error": [OSError("busy")] * 4,
    "given up on a result": [OSError("busy"), None, None, None],
    "not retried": [KeyError("page")],
    "not retried later": [OSError("busy"), KeyError("page")],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_hooks_see_the_same_in_the_same_order(script):
    theirs, ours = course(before, script), course(after, script)
    assert ours == theirs


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("name", ["before", "after", "before_sleep"])
def test_the_error_of_a_hook_ends_the_call(name, at):
    script = [OSError("busy"), None, "page"]
    theirs = course(before, script, raises=name, at=at)
    assert course(after, script, raises=name, at=at) == theirs
    assert theirs[-1] == ("end", f"RuntimeError({name!r})")


def test_the_error_of_a_callback_is_raised():
    script = [OSError("busy")] * 4
    theirs = course(before, script, raises="callback", at=4)
    assert course(after, script, raises="callback", at=4) == theirs


def custom_before(log, fetch):
    return tenacity.retry(
        after=log.hook("after"),
        before_sleep=log.hook("before_sleep"),
        wait=log.hook("wait", lambda state: 0.5 * state.attempt_number),
        stop=log.hook("stop", lambda state: state.upcoming_sleep >= 1.5),
        retry=log.hook("retry", RETRIED),
        reraise=True,
    )(fetch)(1, key=2)


def custom_after(log, fetch):
    predicate = log.hook("retry", RETRIED)
    return retry(
        on=hooks.retry_on_error(predicate),
        on_result=hooks.retry_on_result(predicate),
        schedule=schedules.constant(0),
        max_attempts=None,
        hint=hooks.wait(
            log.hook("wait", lambda state: 0.5 * state.attempt_number),
            stop=log.hook("stop", lambda state: state.upcoming_sleep >= 1.5),
            after=log.hook("after"),
        ),
        hint_cap=None,
        observers=[hooks.before_sleep(log.hook("before_sleep"))],
    )(fetch)(1, key=2)


ENDLESS = {
    name: [*script, OSError("late"), OSError("last")]
    for name, script in SCRIPTS.items()
}
del ENDLESS["given up on a result"]


@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
def test_functions_of_the_state_are_asked_in_the_same_order(script):
    assert course(custom_after, script) == course(custom_before, script)


@pytest.mark.parametrize("name", ["after", "wait", "stop", "before_sleep"])
def test_the_error_of_a_function_of_the_state_ends_the_call(name):
    script = [OSError("busy"), "page"]
    theirs = course(custom_before, script, raises=name)
    assert course(custom_after, script, raises=name) == theirs


def stop_before(log, fetch):
    return tenacity.retry(
        after=log.hook("after"),
        wait=tenacity.wait_fixed(2),
        stop=log.hook("stop", lambda state: state.attempt_number == 3),
        retry_error_callback=log.hook("callback", "gave up"),
    )(fetch)()


def stop_after(log, fetch):
    function = log.hook("stop", lambda state: state.attempt_number == 3)
    return retry(
        on=Exception,
        schedule=schedules.constant(2),
        max_attempts=None,
        hint=hooks.stop(function, after=log.hook("after")),
        fallback=hooks.retry_error_callback(log.hook("callback", "gave up")),
    )(fetch)()


def test_a_stop_function_ends_the_call():
    script = [OSError("busy")] * 9
    assert course(stop_after, script) == course(stop_before, script)


def test_async_hooks_are_awaited():
    def run(build):
        log = Log()

        async def fetch(_page):
            await asyncio.sleep(0.5)
            raise OSError

        with virtual_time() as clock, patch("time.monotonic", clock.now):
            log.rows.append(call(lambda _: build(log, fetch), None, clock))
        return log.rows

    def theirs(log, fetch):
        return tenacity.retry(
            before=log.ahook("before"),
            after=log.ahook("after"),
            before_sleep=log.ahook("before_sleep"),
            retry_error_callback=log.ahook("callback"),
            wait=tenacity.wait_fixed(1),
            stop=tenacity.stop_after_attempt(2),
        )(fetch)(1)

    def ours(log, fetch):
        return aretry(
            on=Exception,
            schedule=schedules.constant(1),
            max_attempts=2,
            observers=[
                hooks.before(log.ahook("before")),
                hooks.after(log.ahook("after")),
                hooks.before_sleep(log.ahook("before_sleep")),
            ],
            fallback=hooks.retry_error_callback(log.ahook("callback")),
        )(fetch)(1)

    assert run(ours) == run(theirs)


def test_the_error_of_an_async_hook_ends_the_call():
    async def fail(_state):
        raise RuntimeError

    async def fetch():
        raise OSError

    policy = Policy(schedule=[0], observers=[hooks.before_sleep(fail)])
    with pytest.raises(RuntimeError):
        asyncio.run(policy.acall(fetch))


def test_hooks_of_a_block_get_no_function():
    def blocks(log, attempts):
        for attempt in attempts:
            with attempt:
                log.rows.append("attempt")
                raise OSError

    def theirs(log, _fetch):
        attempts = tenacity.Retrying(
            before_sleep=log.hook("before_sleep"),
            stop=tenacity.stop_after_attempt(2),
            reraise=True,
        )
        blocks(log, attempts)

    def ours(log, _fetch):
        observer = hooks.before_sleep(log.hook("before_sleep"))
        blocks(log, retrying(on=Exception, schedule=[0], observers=[observer]))

    assert course(ours, []) == course(theirs, [])


LOGS = {
    "before": ("before", tenacity.before_log),
    "after": ("after", tenacity.after_log),
    "before_sleep": ("before_sleep", tenacity.before_sleep_log),
}


@pytest.mark.parametrize(("name", "make"), LOGS.values(), ids=LOGS)
def test_logs_of_tenacity_have_the_same_text(name, make, caplog):
    log = make(logging.getLogger("tests"), logging.WARNING)

    def theirs(_log, fetch):
        stop = tenacity.stop_after_attempt(3)
        return tenacity.retry(stop=stop, reraise=True, **{name: log})(fetch)(1)

    def ours(_log, fetch):
        observer = getattr(hooks, name)(log)
        return retry(on=OSError, schedule=[0, 0], observers=[observer])(fetch)(1)

    texts = []
    for each in (theirs, ours):
        caplog.clear()
        course(each, [OSError("busy"), OSError("busy"), "page"])
        texts.append([x.message for x in caplog.records if x.name == "tests"])
    assert texts[0] == texts[1]
    assert len(texts[0]) >= 2


def test_the_hook_before_a_delay_logs_in_place_of_retrykit(caplog):
    observer = hooks.before_sleep(lambda _state: None)
    Policy(schedule=[0], observers=[observer], fallback=None).call(int, "x")
    assert caplog.records == []
    Policy(schedule=[0], observers=[hooks.after(print)], fallback=None).call(int, "x")
    assert len(caplog.records) == 1


WAITS = [
    tenacity.wait_incrementing(1, 3, 8),
    tenacity.wait_chain(tenacity.wait_fixed(1), tenacity.wait_fixed(5)),
    tenacity.wait_fixed(2) + tenacity.wait_exponential(),
    tenacity.wait_exception(lambda error: float(str(error))),
]


@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: type(wait).__name__)
def test_strategies_of_tenacity_are_functions_of_the_state(wait):
    stop = tenacity.stop_after_attempt(4) | tenacity.stop_before_delay(12)

    def theirs(_log, fetch):
        return tenacity.retry(wait=wait, stop=stop, reraise=True)(fetch)()

    def ours(_log, fetch):
        return retry(
            on=Exception,
            schedule=schedules.constant(0),
            max_attempts=None,
            hint=hooks.wait(wait, stop=stop),
            hint_cap=None,
        )(fetch)()

    script = [OSError("1"), OSError("2.5"), OSError("0"), OSError("9")]
    assert course(ours, script) == course(theirs, script)


LIMITS = {
    "stop_after_delay": (30, tenacity.stop_after_delay(30)),
    "stop_after_delay, between": (25, tenacity.stop_after_delay(25)),
    "stop_after_delay, zero": (0, tenacity.stop_after_delay(0)),
    "stop_before_delay": (30, tenacity.stop_before_delay(30)),
    "stop_before_delay, between": (25, tenacity.stop_before_delay(25)),
}


@pytest.mark.parametrize(("limit", "stop"), LIMITS.values(), ids=LIMITS)
def test_a_limit_ends_the_call_when_it_is_reached_exactly(limit, stop):
    def fetch():
        times.append(time.monotonic())
        raise OSError

    def theirs(_server):
        tenacity.retry(wait=tenacity.wait_fixed(10), stop=stop, reraise=True)(fetch)()

    def ours(_server):
        name = type(stop).__name__
        schedule = getattr(hooks, name)(limit, schedules.constant(10))
        retry(on=OSError, schedule=schedule, max_attempts=None)(fetch)()

    courses = []
    for each in (theirs, ours):
        times = []
        with virtual_time() as clock, pytest.raises(OSError):
            call(each, None, clock)
        courses.append(times)
    assert courses[0] == courses[1]


def test_a_limited_schedule_can_be_looked_at():
    schedule = hooks.stop_after_delay("1m", schedules.constant(5).take(2))
    assert list(schedule.draw()) == [5.0, 5.0]
    assert [schedule.bounds(retry) for retry in (1, 3)] == [(5.0, 5.0), None]


def test_what_hooks_read_of_the_retrying_object():
    found = []

    def note(state):
        found.append(vars(state.retry_object.stop) | {"name": str(state.retry_object)})

    observer = hooks.before_sleep(note)
    policy = Policy(schedule=[0], observers=[observer], fallback=None, name="fetch")
    policy.replace(max_attempts=2, max_elapsed=60).call(int, "x")
    policy.call(int, "x")
    both = {"max_attempt_number": 2, "max_delay": 60.0, "name": "fetch"}
    assert found == [both, {"max_attempt_number": 2, "name": "fetch"}]


def test_the_repr_of_a_state_is_that_of_tenacity():
    texts = []

    def note(state):
        text = repr(state).replace(str(id(state)), "id")
        texts.append((text, repr(state.next_action)))

    def theirs(_log, fetch):
        return tenacity.retry(before=note, before_sleep=note, retry=RETRIED)(fetch)()

    def ours(_log, fetch):
        return retry(
            on=OSError,
            on_result=lambda result: result is None,
            schedule=[0, 0],
            observers=[hooks.before(note), hooks.before_sleep(note)],
        )(fetch)()

    found = []
    for each in (theirs, ours):
        texts = []
        course(each, [OSError("busy"), None, "page"])
        found.append(texts)
    assert found[0] == found[1]


class Nameless:
    def __call__(self):
        raise OSError


def test_a_function_without_a_name_is_shown_by_its_repr():
    found = []

    def note(state):
        found.append(state.get_fn_name())

    observer = hooks.before_sleep(note)
    fetch = Nameless()
    Policy(schedule=[0], observers=[observer], fallback=None).call(fetch)
    with pytest.raises(tenacity.RetryError):
        tenacity.Retrying(stop=tenacity.stop_after_attempt(2), before_sleep=note)(fetch)
    assert found[0] == found[1] == repr(fetch)


def test_an_async_predicate_is_awaited():
    async def predicate(state):
        await asyncio.sleep(0)
        return state.attempt_number < 2

    async def fetch():
        calls.append(1)
        raise OSError

    calls = []
    policy = Policy(schedule=[0] * 5, on=hooks.retry_on_error(predicate))
    with pytest.raises(OSError):
        asyncio.run(policy.acall(fetch))
    assert len(calls) == 2


def test_nothing_of_tenacity_is_imported():
    with patch.dict("sys.modules", {"tenacity": None}):
        observer = hooks.before_sleep(lambda state: state.next_action.sleep)
        Policy(schedule=[0], observers=[observer], fallback=None).call(int, "x")


def test_an_error_that_gives_up_is_not_one_to_retry_for_the_hook_after():
    seen = []
    after = hooks.after(seen.append)
    policy = Policy(schedule=[0], give_up_on=OSError, observers=[after])
    with pytest.raises(FileNotFoundError):
        policy.call(open, "/nowhere")
    with pytest.raises(ValueError, match="invalid"):
        policy.call(int, "x")
    assert [state.attempt_number for state in seen] == [1, 2]


def test_a_call_whose_first_attempt_is_refused_has_no_outcome():
    states = []
    breaker = CircuitBreaker(consecutive_failures=1)
    callback = hooks.retry_error_callback(states.append)
    policy = Policy(schedule=[0], admission=[breaker], fallback=callback)
    for _ in range(2):
        policy.call(int, "x")
    assert [state.outcome is None for state in states] == [False, True]
    assert states[1].seconds_since_start is None


POLICIES = {
    "nothing": {},
    "reraise": {"reraise": True, "wait": tenacity.wait_fixed(3), "before": None},
    "hooks": {
        "before": lambda state: SEEN.append(("before", state.attempt_number)),
        "after": lambda state: SEEN.append(("after", state.outcome.failed)),
        "before_sleep": lambda state: SEEN.append(("sleep", state.upcoming_sleep)),
        "wait": tenacity.wait_incrementing(1, 2),
    },
    "a callback": {"retry_error_callback": lambda state: state.attempt_number},
    "an error class": {"retry_error_cls": KeyError},
    "its own error class": {"retry_error_cls": tenacity.RetryError},
    "results": {"retry": RETRIED},
    "its own sleep": {"sleep": tenacity.nap.sleep, "wait": tenacity.wait_fixed(1)},
    "switched off": {"enabled": False},
    "a name": {"name": "fetching", "reraise": False},
}
SEEN = []


@pytest.mark.parametrize("given", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("failures", [0, 2, 9])
def test_a_policy_does_what_its_arguments_do_in_tenacity(given, failures):
    arguments = {"stop": tenacity.stop_after_attempt(4), **given}

    def ended(run):
        SEEN.clear()
        outcomes = iter([None if "retry" in given else OSError("x")] * failures + [7])

        def fetch():
            SEEN.append(round(time.monotonic(), 6))
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        with virtual_time() as clock:
            try:
                found = call(lambda _server: run(fetch), fetch, clock)
            except Exception as error:  # noqa: BLE001  it is the outcome
                found = type(error).__name__, type(error.__cause__).__name__
        return found, [*SEEN]

    before = ended(tenacity.Retrying(**arguments))
    assert ended(hooks.policy(**arguments).call) == before


def test_a_policy_sleeps_as_it_is_told():
    assert hooks.policy(sleep=print).sleep is print
    for usual in (tenacity.nap.sleep, time.sleep, asyncio.sleep, None):
        assert hooks.policy(sleep=usual).sleep is None


def test_a_policy_of_nothing_is_named_and_nests_as_in_tenacity():
    policy = hooks.policy(name="fetching")
    assert (policy.name, policy.nested, policy.max_attempts) == (
        "fetching",
        "retry",
        None,
    )


def test_the_last_attempt_is_that_of_either_error():
    def fail():
        raise OSError("x")

    kept = {"stop": tenacity.stop_after_attempt(2)}
    for run in (tenacity.Retrying(**kept), hooks.policy(**kept).call):
        with pytest.raises((tenacity.RetryError, RetryError)) as caught:
            run(fail)
        last = hooks.last_attempt(caught.value)
        assert (last.attempt_number, str(last.exception())) == (2, "x")
