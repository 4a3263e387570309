"""Functions with scripted outcomes."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrykit import Policy, aretry, retry
from retrykit.testing import (
    AsyncScriptedFunction,
    RecordedCall,
    ScriptedFunction,
    ScriptError,
    virtual_time,
)
from tests._support.concurrency import switching_often
from tests._support.optional_trio import trio


def test_raises_and_returns_its_outcomes_in_order():
    error = OSError("no route")
    script = ScriptedFunction([ConnectionError, error, 503, "ok"])
    with pytest.raises(ConnectionError):
        script()
    with pytest.raises(OSError, match="no route") as caught:
        script()
    assert caught.value is error
    assert (script(), script()) == (503, "ok")


def test_records_the_arguments_and_time_of_each_call():
    script = ScriptedFunction([TimeoutError, "ok"])
    with virtual_time(start=5):
        assert retry(schedule=[2])(script)("/", timeout=3) == "ok"
    assert script.calls == [
        RecordedCall(("/",), {"timeout": 3}, 5.0),
        RecordedCall(("/",), {"timeout": 3}, 7.0),
    ]
    assert script.times == [5.0, 7.0]


def test_raises_a_base_exception():
    with pytest.raises(KeyboardInterrupt):
        retry(ScriptedFunction([KeyboardInterrupt, "ok"]))()


def test_an_ellipsis_repeats_the_last_outcome():
    script = ScriptedFunction(["first", "again", ...])
    assert [script() for _ in range(4)] == ["first", "again", "again", "again"]
    assert script.remaining == ["again", ...]


def test_shows_the_remaining_outcomes():
    script = ScriptedFunction([TimeoutError, "ok"])
    with pytest.raises(TimeoutError):
        script()
    assert script.remaining == ["ok"]
    assert repr(script) == "<ScriptedFunction script, calls: 1>"


def test_continues_after_its_calls_are_cleared():
    script = ScriptedFunction(["first", "second"])
    script()
    script.calls.clear()
    assert (script(), len(script.calls)) == ("second", 1)


def test_an_outcome_whose_comparison_raises_is_returned():
    class Incomparable:
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError

    outcome = Incomparable()
    assert ScriptedFunction([outcome, outcome])() is outcome


def test_a_call_after_the_last_outcome_is_not_retried():
    script = ScriptedFunction([OSError], name="fetch")
    with pytest.raises(ScriptError) as caught, virtual_time() as clock:
        retry(script)()
    assert str(caught.value) == (
        "call 2 of fetch has no outcome, since the script ends after 1; "
        "end it with ... to repeat the last one"
    )
    assert len(clock.sleeps) == 1


def test_a_script_without_outcomes_cannot_be_called():
    with pytest.raises(ScriptError, match="ends after 0"):
        ScriptedFunction([])()


@pytest.mark.parametrize("run", [asyncio.run, "trio"], ids=["asyncio", "trio"])
def test_the_async_script_returns_and_records_the_same(run):
    script = AsyncScriptedFunction([ConnectionError, "ok"], name="fetch")
    call = retry(schedule=[3])(script)

    async def main():
        with virtual_time():
            return await call("/")

    result = trio.run(main) if run == "trio" else run(main())
    assert result == "ok"
    assert script.calls == [
        RecordedCall(("/",), {}, 0.0),
        RecordedCall(("/",), {}, 3.0),
    ]
    assert repr(script) == "<AsyncScriptedFunction fetch, calls: 2>"


def test_the_async_script_works_with_retry_and_aretry():
    async def main():
        return await aretry(AsyncScriptedFunction(["a"]))(), await retry(
            AsyncScriptedFunction(["b"])
        )()

    assert asyncio.run(main()) == ("a", "b")


def test_events_have_the_name_of_the_script():
    events = []
    policy = Policy(schedule=[0], observers=[events.append])
    policy.call(ScriptedFunction([OSError, "ok"], name="fetch"))
    assert {event.state.name for event in events} == {"fetch"}


@pytest.mark.needs("threads")
def test_concurrent_threads_get_each_outcome_once():
    script = ScriptedFunction(range(2000))
    with switching_often(), ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: script(), range(2000)))
    assert sorted(results) == list(range(2000))
