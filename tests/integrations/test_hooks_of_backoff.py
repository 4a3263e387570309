"""Handlers, waits and limits of backoff, called by backoff and by retrykit."""

import asyncio
from unittest.mock import patch

import backoff
import pytest

from retrykit import Policy, aretry, last_result, retry, schedules
from retrykit.integrations import backoff as hooks
from retrykit.limits import CircuitBreaker
from retrykit.testing import virtual_time
from tests._support.side_by_side import call


class Log:
    """What the handlers of a call have seen, in order.

    Args:
        raises: The handler that raises.
    """

    def __init__(self, clock, raises=None):
        self.rows, self.clock, self.raises = [], clock, raises

    def handler(self, name):
        def note(details):
            shown = dict(details, target=details["target"].__name__)
            if "exception" in shown:
                shown["exception"] = repr(shown["exception"])
            self.rows.append((name, shown, list(details), self.clock.now()))
            if name == self.raises:
                raise RuntimeError(name)

        return note

    def ahandler(self, name):
        note = self.handler(name)

        async def anote(details):
            await asyncio.sleep(0)
            note(details)

        return anote

    def function(self, script):
        outcomes = iter(script)

        def fetch(*args, **kwargs):
            self.rows.append(("fetch", args, kwargs, self.clock.now()))
            self.clock.sleep(0.5)
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return fetch


def course(build, script, raises=None):
    """Return what happens in a call, in virtual time."""
    with virtual_time() as clock:
        log = Log(clock, raises)

        def run(_server):
            try:
                made = build(log, log.function(script))
            except Exception as error:  # noqa: BLE001  it is the outcome
                made = repr(error), repr(error.__context__)
            log.rows.append(("end", made, clock.now()))

        call(run, None, clock)
    return log.rows


def handlers(log):
    return {
        "on_backoff": [log.handler("backoff"), log.handler("backoff, second")],
        "on_giveup": log.handler("giveup"),
        "on_success": log.handler("success"),
    }


def observers(log, *, success=True):
    both = log.handler("backoff"), log.handler("backoff, second")
    made = [hooks.on_backoff(*both), hooks.on_giveup(log.handler("giveup"))]
    return [*made, hooks.on_success(log.handler("success"))] if success else made


def refuses(error):
    return "refused" in str(error)


def halves(first):
    """Yield delays that depend on what was sent."""
    outcome = yield
    for delay in (first, 2, 1):
        outcome = yield delay + len(str(outcome))


def errors_before(log, fetch):
    return backoff.on_exception(
        backoff.expo,
        OSError,
        max_tries=3,
        jitter=None,
        giveup=refuses,
        **handlers(log),
    )(fetch)(1, key=2)


def errors_after(log, fetch):
    return retry(
        on=OSError,
        give_up_on=hooks.giveup(refuses, OSError),
        schedule=schedules.exponential(1),
        max_attempts=3,
        observers=observers(log),
    )(fetch)(1, key=2)


def results_before(log, fetch):
    return backoff.on_predicate(
        backoff.fibo,
        lambda result: not result,
        max_tries=3,
        jitter=None,
        **handlers(log),
    )(fetch)(1, key=2)


def results_after(log, fetch):
    accepts = hooks.predicate(lambda result: not result, log.handler("success"))
    return retry(
        on=(),
        on_result=accepts,
        schedule=schedules.fibonacci(1),
        max_attempts=3,
        fallback=last_result,
        observers=observers(log, success=False),
    )(fetch)(1, key=2)


def time_before(log, fetch):
    return backoff.on_predicate(
        backoff.constant,
        lambda result: not result,
        interval=1,
        jitter=lambda delay: delay * 1.5,
        max_time=3,
        **handlers(log),
    )(fetch)(1, key=2)


def time_after(log, fetch):
    accepts = hooks.predicate(lambda result: not result, log.handler("success"))
    schedule = schedules.constant(1)
    return retry(
        on=(),
        on_result=accepts,
        schedule=hooks.wait(schedule, jitter=lambda delay: delay * 1.5, max_time=3),
        max_attempts=None,
        fallback=last_result,
        observers=observers(log, success=False),
    )(fetch)(1, key=2)


def generator_before(log, fetch):
    return backoff.on_exception(
        halves,
        OSError,
        first=lambda: 3,
        jitter=lambda delay: delay / 2,
        giveup=refuses,
        max_time=20,
        raise_on_giveup=False,
        **handlers(log),
    )(fetch)(1, key=2)


def generator_after(log, fetch):
    return retry(
        on=OSError,
        give_up_on=hooks.giveup(refuses, OSError),
        schedule=schedules.constant(0),
        max_attempts=None,
        hint=hooks.wait_gen(
            halves, first=lambda: 3, jitter=lambda delay: delay / 2, max_time=20
        ),
        hint_cap=None,
        fallback=None,
        observers=observers(log),
    )(fetch)(1, key=2)


BUSY, REFUSED = OSError("busy"), OSError("refused")
ERRORS = {
    "success": ["page"],
    "success after errors": [BUSY, BUSY, "page"],
    "given up": [BUSY, BUSY, BUSY],
    "given up by the predicate": [BUSY, REFUSED],
    "not retried": [BUSY, KeyError("refused")],
}
RESULTS = {
    "success": ["page"],
    "success after results": [None, 0, "page"],
    "given up": [None, 0, ""],
    "an error": [None, BUSY],
}
PAIRS = {
    "errors": (errors_before, errors_after, ERRORS),
    "results": (results_before, results_after, RESULTS),
    "time and jitter": (
        time_before,
        time_after,
        {"success": [0, "page"], "given up": [0] * 9, "an error": [0, BUSY]},
    ),
    "generator": (
        generator_before,
        generator_after,
        ERRORS | {"by time": [OSError("b" * 30)] * 9},
    ),
}
CASES = {
    f"{name}, {title}": (theirs, ours, script)
    for name, (theirs, ours, scripts) in PAIRS.items()
    for title, script in scripts.items()
    # A generator that ends hides the cause of the error.
    if (name, title) != ("generator", "given up")
}


@pytest.mark.parametrize(
    "raises", [None, "backoff", "backoff, second", "giveup", "success"]
)
@pytest.mark.parametrize(("theirs", "ours", "script"), CASES.values(), ids=CASES)
def test_handlers_see_the_same_and_their_errors_end_the_call(
    theirs, ours, script, raises
):
    assert course(ours, script, raises) == course(theirs, script, raises)


def test_a_generator_that_ends_ends_the_call():
    script = [OSError("")] * 9
    theirs, ours = (
        [row[:2] for row in course(each, script)]
        for each in (generator_before, generator_after)
    )
    # backoff raises the error whatever `raise_on_giveup` says.
    assert (theirs[-1][1][0], ours[-1][1]) == ("OSError('')", None)
    assert ours[:-1] == theirs[:-1]
    assert sum(row[0] == "fetch" for row in ours) == 4


def test_each_call_has_its_own_generator():
    hint = hooks.wait_gen(halves, first=3)
    policy = Policy(schedule=schedules.constant(0), hint=hint, hint_cap=None)

    def fail(text):
        raise OSError(text)

    def delays(text):
        return [x.delay for x in policy.run(fail, text).state.failures]

    with virtual_time():
        assert delays("ab") == delays("cd") == [5.0, 4.0, 3.0, None]


@pytest.mark.parametrize("limit", [1, 2, 3, 3.5])
@pytest.mark.parametrize("slow", [0, 0.25, 0.75, 1.5])
def test_max_time_is_compared_with_the_start_of_the_attempt(limit, slow):
    def before(log, fetch):
        decorate = backoff.on_exception(
            backoff.constant, OSError, interval=0.25, jitter=None, max_time=limit
        )
        return decorate(fetch)()

    def after(log, fetch):
        schedule = hooks.wait(schedules.constant(0.25), max_time=limit)
        return retry(on=OSError, schedule=schedule, max_attempts=None)(fetch)()

    def attempts(build):
        times = []
        with virtual_time() as clock:

            def fetch():
                times.append(clock.now())
                clock.sleep(slow)
                raise OSError

            with pytest.raises(OSError):
                call(lambda _: build(None, fetch), None, clock)
        return times

    assert attempts(after) == attempts(before)


def test_a_schedule_with_a_limit_can_be_looked_at():
    whole = hooks.wait([4, 8], max_time=6)
    assert list(whole.draw()) == [4.0, 6.0]
    assert [whole.bounds(retry) for retry in (1, 2, 3)] == [(0, 4), (0, 6), None]
    plain = hooks.wait([4, 8])
    assert list(plain.draw()) == [4.0, 8.0]
    assert plain.bounds(2) == (8.0, 8.0)
    low, high = hooks.wait([4], jitter=abs).bounds(1)
    assert low == 0
    assert high > 1e300


def test_async_handlers_are_awaited_in_their_order():
    def run(build):
        async def fetch(page):
            log.rows.append(("fetch", page))
            if len(log.rows) < 8:
                raise OSError
            return page

        with virtual_time() as clock:
            log = Log(clock)
            call(lambda _: build(log, fetch), None, clock)
        return log.rows

    def theirs(log, fetch):
        return backoff.on_exception(
            backoff.constant,
            OSError,
            interval=1,
            jitter=None,
            on_backoff=[log.ahandler("a"), log.handler("b"), log.ahandler("c")],
            on_success=log.ahandler("success"),
        )(fetch)(1)

    def ours(log, fetch):
        both = log.ahandler("a"), log.handler("b"), log.ahandler("c")
        success = hooks.on_success(log.ahandler("success"))
        return aretry(
            on=OSError,
            schedule=schedules.constant(1),
            max_attempts=None,
            observers=[hooks.on_backoff(*both), success],
        )(fetch)(1)

    untimed = [
        [
            (row[0], {**row[1], "elapsed": 0}, row[2]) if len(row) > 2 else row
            for row in x
        ]
        for x in (run(theirs), run(ours))
    ]
    assert untimed[0] == untimed[1]


def test_an_async_handler_is_awaited_before_a_result_is_returned():
    async def note(details):
        await asyncio.sleep(0)
        seen.append(details["value"])

    async def fetch():
        return next(results)

    async def refuses_all(_error):
        await asyncio.sleep(0)
        return True

    seen, results = [], iter([0, 0, 7])
    accepts = hooks.predicate(lambda result: not result, note)
    policy = Policy(on=(), on_result=accepts, schedule=[0, 0])
    assert asyncio.run(policy.acall(fetch)) == 7
    assert seen == [7]
    given_up = Policy(give_up_on=hooks.giveup(refuses_all), schedule=[0], fallback=3)
    assert asyncio.run(given_up.acall(fetch_error)) == 3


async def fetch_error():
    raise OSError


def test_the_handler_before_a_delay_logs_in_place_of_retrykit(caplog):
    observer = hooks.on_backoff(lambda _details: None)
    Policy(schedule=[0], observers=[observer], fallback=None).call(int, "x")
    assert caplog.records == []


def test_a_refused_call_has_no_outcome_in_its_details():
    seen = []
    breaker = CircuitBreaker(consecutive_failures=1)
    policy = Policy(
        schedule=[0], admission=[breaker], observers=[hooks.on_giveup(seen.append)]
    )
    for _ in range(2):
        policy.run(int, "x")
    assert [sorted(set(x) & {"exception", "value"}) for x in seen] == [
        ["exception"],
        [],
    ]


def test_nothing_of_backoff_is_imported():
    with patch.dict("sys.modules", {"backoff": None}):
        observer = hooks.on_backoff(lambda details: details["wait"])
        Policy(schedule=[0], observers=[observer], fallback=None).call(int, "x")
