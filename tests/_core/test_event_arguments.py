"""Events with the function and the arguments of the call; async observers."""

import asyncio
import gc
import pickle
import weakref
from typing import get_args

import pytest

from retrykit import (
    ConfigError,
    Policy,
    aretry,
    aretrying,
    current_state,
    observe,
    retry,
    retrying,
    with_policy,
)
from retrykit.durable import Job
from retrykit.events import Event, EventHook, EventHooks, EventKind, RetryScheduled
from retrykit.testing import ScriptedFunction

ONCE = Policy(schedule=[1], on=OSError)
FAILING = ["attempt_started", "attempt_failed", "retry_scheduled", "attempt_started"]


def parts(event):
    return event.kind, event.function, event.args, event.kwargs


def test_every_event_has_the_function_and_its_arguments(backend, clock):
    seen = []
    results = iter([OSError(), "data"])

    def fetch(url, *, timeout):
        result = next(results)
        if isinstance(result, OSError):
            raise result
        return result

    policy = ONCE.replace(observers=[lambda event: seen.append(parts(event))])
    assert backend(policy)(fetch)("here", timeout=5) == "data"
    kinds, functions, args, kwargs = zip(*seen, strict=True)
    assert [*kinds] == [*FAILING, "succeeded"]
    assert {getattr(each, "__wrapped__", each) for each in functions} == {fetch}
    assert [*args] == [("here",)] * 5
    assert [*kwargs] == [{"timeout": 5}] * 5


def test_the_first_argument_of_a_method_is_its_object(clock):
    class Client:
        def __init__(self):
            self.retries, self.left = [], 2

        def reconnect(self, event):
            self.retries.append(event.delay)

        @retry(ONCE, observers={"retry_scheduled": lambda e: e.args[0].reconnect(e)})
        def fetch(self):
            self.left -= 1
            if self.left:
                raise OSError
            return "data"

    client = Client()
    assert client.fetch() == "data"
    assert client.retries == [1.0]


def test_the_observers_of_the_process_know_them_too(clock, flaky):
    seen = []
    fetch = retry(ONCE)(flaky(OSError()))
    with observe(lambda event: seen.append(event.args), failures_only=True):
        fetch("here")
    assert seen == [("here",)] * 4


def test_a_call_whose_state_was_asked_for_knows_them(clock):
    from retrykit import current_state

    seen = []

    @retry(ONCE)
    def fetch(_url):
        if current_state().attempt == 1:
            raise OSError

    with observe(lambda event: seen.append(event.args), failures_only=True):
        fetch("here")
    assert seen == [("here",)] * 4


def test_each_call_has_keyword_arguments_of_its_own(backend):
    """Even if it has none, which its driver does not keep while it waits."""
    seen, results = [], iter([OSError(), 1] * 2)

    def fetch():
        result = next(results)
        if isinstance(result, OSError):
            raise result
        seen.append(current_state().kwargs)
        seen[-1]["mine"] = len(seen)
        return result

    function = backend(ONCE.replace(schedule=[0]))(fetch)
    assert (function(), function()) == (1, 1)
    assert seen == [{"mine": 1}, {"mine": 2}]


def test_a_block_and_a_client_have_no_function(clock, flaky):
    seen, fetch = [], flaky(OSError())
    policy = ONCE.replace(observers=[lambda event: seen.append(parts(event)[1:])])
    for attempt in retrying(policy):
        with attempt:
            fetch("secret")
    assert {*map(str, seen)} == {"(None, (), {})"}


def test_they_are_left_out_of_what_is_printed_and_compared(clock, flaky):
    events = []
    policy = ONCE.replace(observers=[events.append])
    for argument in ("secret", "other"):
        retry(policy)(flaky(OSError()))(argument)
    text = repr(events)
    assert "secret" not in text
    first, other = (
        type(each)(*(getattr(each, name) for name in each._field_names))
        for each in events[:2]
    )
    assert first == events[0]
    assert other.args == ()


def test_nothing_keeps_the_arguments_after_the_call(clock):
    class Argument:
        left = 1

        def __call__(self):
            self.left -= 1
            if self.left == 0:
                raise OSError

    gc.disable()
    try:
        argument = Argument()
        alive = weakref.ref(argument)
        retry(ONCE, observers=[lambda event: event.args])(lambda each: each())(argument)
        del argument
        assert alive() is None
    finally:
        gc.enable()


class TestHooks:
    def test_a_dict_of_observers_needs_no_class(self, backend, clock, flaky):
        seen = []
        hooks = {
            "retry_scheduled": lambda event: seen.append(event.delay),
            "succeeded": lambda event: seen.append(event.state.attempt),
        }
        backend(ONCE, observers=hooks)(flaky(OSError()))()
        assert seen == [1.0, 2]

    def test_a_policy_shows_what_it_has(self):
        (hook,) = Policy(observers={"gave_up": print}).observers
        assert hook == EventHook("gave_up", print)
        assert hook(RetryScheduled(None, 1.0)) is None

    def test_two_of_a_kind_are_printed_as_they_are(self):
        hooks = [EventHook("gave_up", print)] * 2
        assert "EventHook" in repr(Policy(observers=hooks))

    @pytest.mark.parametrize(
        ("observers", "message"),
        [
            ({"before_sleep": print}, "observers must be one of 'attempt_started', "),
            ({"gave_up": 5}, r"observers\['gave_up'\] must be a function that takes"),
            ({"gave_up": lambda: 0}, "a function that takes the event, and nothing"),
        ],
        ids=["kind", "function", "parameters"],
    )
    def test_what_cannot_be_one_is_an_error(self, observers, message):
        with pytest.raises(ConfigError, match=message):
            Policy(observers=observers)


class TestAsync:
    def test_an_async_observer_is_awaited_in_order(self, library, clock):
        seen = []

        async def note(event):
            await library.sleep(0)
            seen.append(event.kind)

        policy = ONCE.replace(observers=[note])
        script = ScriptedFunction([OSError(), "data"])

        async def fetch():
            seen.append("call")
            return script()

        assert library.run(aretry(policy)(fetch)) == "data"
        started, failed, scheduled, again = FAILING
        assert seen == [started, "call", failed, scheduled, again, "call", "succeeded"]

    def test_giving_up_is_told_before_the_error_is_raised(self, clock):
        seen = []

        async def note(event):
            await asyncio.sleep(0)
            seen.append(event.kind)

        @aretry(ONCE, observers={"gave_up": note, "attempt_failed": note})
        async def fetch():
            raise OSError

        async def main():
            try:
                await fetch()
            except OSError:
                seen.append("raised")

        asyncio.run(main())
        assert seen == ["attempt_failed", "attempt_failed", "gave_up", "raised"]

    def test_a_fallback_comes_after_them(self, clock):
        seen = []

        async def note(event):
            seen.append(event.kind)

        @aretry(ONCE, observers={"gave_up": note}, fallback=seen.append)
        async def fetch():
            raise OSError

        asyncio.run(fetch())
        assert seen[0] == "gave_up"

    def test_its_error_is_logged_and_the_call_goes_on(self, clock, caplog):
        async def broken(_event):
            raise LookupError("observer")

        fetch = ScriptedFunction([OSError(), "data"])

        @aretry(ONCE, observers=[broken])
        async def afetch():
            return fetch()

        assert asyncio.run(afetch()) == "data"
        assert "an observer of RetryScheduled failed: <function" in caplog.text
        assert "LookupError: observer" in caplog.text

    def test_it_is_not_told_of_the_calls_that_it_makes(self, clock):
        seen = []

        async def note(event):
            seen.append(event.kind)
            await inner()

        @aretry(ONCE, observers=[note])
        async def inner():
            return 1

        assert asyncio.run(inner()) == 1
        assert seen == ["attempt_started", "succeeded"]

    def test_a_cancelled_call_does_not_wait_for_it(self):
        async def note(_event):
            await asyncio.sleep(3600)

        @aretry(schedule=["1h"], observers={"gave_up": note})
        async def fetch():
            raise OSError

        async def main():
            async with asyncio.timeout(0.05):
                await fetch()

        with pytest.raises(TimeoutError):
            asyncio.run(main())

    @pytest.mark.parametrize("kind", ["attempt_started", "succeeded"])
    def test_a_call_cancelled_in_one_leaves_none_unawaited(self, kind):
        futures, seen = [], []

        async def note(_event):
            seen.append("begun")
            await asyncio.sleep(3600)

        def promise(_event):
            futures.append(asyncio.get_running_loop().create_future())
            return futures[-1]

        hooks = [EventHook(kind, each) for each in (note, note, promise)]

        @aretry(ONCE, observers=hooks)
        async def fetch():
            return "data"

        async def main():
            async with asyncio.timeout(0.05):
                await fetch()

        with pytest.raises(TimeoutError):
            asyncio.run(main())
        assert seen == ["begun"]
        assert [future.done() for future in futures] == [False]

    def test_a_partial_and_a_lambda_are_awaited_too(self, clock):
        seen = []

        async def note(event):
            seen.append(event.kind)

        @aretry(ONCE, observers=[lambda event: note(event)])  # noqa: PLW0108  hidden
        async def fetch():
            return 1

        asyncio.run(fetch())
        assert seen == ["attempt_started", "succeeded"]

    @pytest.mark.parametrize(
        "write",
        [
            lambda policy: retry(policy)(print),
            retrying,
            aretrying,
            lambda policy: policy.call(print),
        ],
        ids=["decorator", "block", "async block", "call"],
    )
    @pytest.mark.parametrize("as_dict", [False, True])
    def test_it_needs_aretry(self, write, as_dict):
        async def note(_event):
            pass

        policy = Policy(observers={"gave_up": note} if as_dict else [note])
        with pytest.raises(ConfigError, match="observers must be a sync function"):
            write(policy)

    def test_a_sync_call_reports_an_awaitable(self, clock, caplog):
        async def note(_event):
            pass

        hidden = lambda event: note(event)  # noqa: E731, PLW0108
        retry(ONCE, observers=[hidden])(lambda: 1)()
        assert "observers must be a sync function under retry" in caplog.text

    def test_an_async_block_reports_an_awaitable_and_leaves_none_unawaited(
        self, clock, caplog
    ):
        async def note(_event):
            pass

        async def main():
            hidden = lambda event: note(event)  # noqa: E731, PLW0108
            async for attempt in aretrying(ONCE, observers=[hidden]):
                with attempt:
                    return

        asyncio.run(main())
        assert caplog.text.count("observers must be a sync function under retry") == 2

    def test_the_process_takes_sync_observers_alone(self):
        async def note(_event):
            pass

        with pytest.raises(ConfigError, match="a sync function that takes an event"):
            observe(note)


def test_another_policy_keeps_the_function(clock, flaky):
    seen = []
    fetch = flaky(OSError())
    other = with_policy(retry(fetch), ONCE, observers={"succeeded": seen.append})
    other("here")
    assert (seen[0].function, seen[0].args) == (fetch, ("here",))


def test_every_kind_of_events_can_have_a_function():
    assert [*EventHooks.__annotations__] == [*get_args(EventKind)]
    assert {kind.kind for kind in get_args(Event)} == {*get_args(EventKind)}


def test_an_async_job_awaits_its_observers_before_it_is_stored():
    seen = []

    async def fetch():
        raise OSError

    async def note(event):
        await asyncio.sleep(0)
        seen.append(event.kind)

    job = Job(fetch, ONCE.replace(observers=[note]))
    attempt = asyncio.run(job.aattempt(job.envelope("job-7"), [], {}))
    assert attempt.envelope.status == "waiting"
    assert seen == [*FAILING[:3], "suspended"]


def test_a_sync_job_takes_sync_observers_alone():
    async def note(_event):
        pass

    with pytest.raises(ConfigError, match="observers"):
        Job(print, Policy(observers=[note]))


def test_an_event_knows_the_record_of_its_call_also_as_a_copy():
    seen = []
    Policy(observers=[seen.append], schedule=[0]).call(int)
    assert seen
    for event in seen:
        again = pickle.loads(pickle.dumps(event))  # noqa: S301  our own
        assert event._record.attempt == again._record.attempt == 1
