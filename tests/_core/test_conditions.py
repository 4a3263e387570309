import asyncio
import functools
import inspect
import types

import pytest

from retrykit import Policy, aretry, current_state, retry, state_of


class AsyncPredicate:
    """An async predicate that is an object."""

    async def __call__(self, error):
        await asyncio.sleep(0)
        return isinstance(error, OSError)


@pytest.mark.parametrize("where", ["on", "give_up_on"])
def test_an_error_in_an_async_predicate_does_not_replace_the_users_error(where, caplog):
    async def broken(error):
        raise ZeroDivisionError

    error = OSError("refused")

    @aretry(**{where: broken})
    async def fetch():
        raise error

    with pytest.raises(OSError) as caught:
        asyncio.run(fetch())
    assert caught.value is error
    assert "ZeroDivisionError" in error.__notes__[0]
    assert "ZeroDivisionError" in caplog.text


def test_an_async_predicate_may_be_an_object(clock):
    calls = []

    @aretry(on=AsyncPredicate(), schedule=[1, 1])
    async def fetch():
        calls.append(1)
        raise OSError

    with pytest.raises(OSError):
        asyncio.run(fetch())
    assert len(calls) == 3
    assert clock.sleeps == [1.0, 1.0]


def test_an_async_predicate_may_reject_results(clock):
    async def empty(result):
        return result is None

    results = [None, "value"]

    @aretry(on_result=empty, schedule=[1])
    async def fetch():
        return results.pop(0)

    assert asyncio.run(fetch()) == "value"
    assert clock.sleeps == [1.0]


def test_give_up_on_may_be_async(clock):
    async def is_gone(error):
        return "gone" in error.args

    errors = [OSError("busy"), OSError("gone")]

    @aretry(give_up_on=is_gone, on=OSError, schedule=[1, 1])
    async def fetch():
        raise errors.pop(0)

    with pytest.raises(OSError, match="gone"):
        asyncio.run(fetch())
    assert clock.sleeps == [1.0]


def test_a_sync_predicate_that_returns_a_coroutine_is_a_fault(clock, caplog):
    async def return_false():
        return False

    error = OSError("refused")

    @retry(on=lambda _: return_false())
    def fetch():
        raise error

    with pytest.raises(OSError) as caught:
        fetch()
    assert caught.value is error
    assert "use aretry for async functions" in error.__notes__[0]
    assert clock.sleeps == []
    assert caplog.records


def test_a_sync_predicate_that_returns_an_awaitable_is_a_fault(caplog):
    class Answer:
        def __await__(self):
            yield

    error = OSError("refused")
    with pytest.raises(OSError):
        Policy(on=lambda _: Answer()).call(raising(error))
    assert "use aretry" in error.__notes__[0]
    assert caplog.records


def raising(error):
    def fetch():
        raise error

    return fetch


def test_an_error_that_rejects_attributes_gets_a_note(clock):
    class FrozenError(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    error = FrozenError()
    with pytest.raises(FrozenError) as caught:
        retry(schedule=[1])(raising(error))()
    assert caught.value is error
    assert len(error.__notes__) == 1
    assert len(state_of(error).errors) == 2
    assert clock.sleeps == [1.0]


def test_an_error_with_broken_methods_gets_a_note(clock):
    class OddError(Exception):
        def with_traceback(self, trace):
            raise ZeroDivisionError

    class Odd:
        def __str__(self):
            raise ZeroDivisionError

    error, odd = OddError(), Odd()
    error.__notes__ = [odd]
    with pytest.raises(OddError) as caught:
        retry(schedule=[1])(raising(error))()
    assert caught.value is error
    assert error.__notes__[0] is odd
    assert error.__notes__[1].startswith("retrykit: gave up after 2")


def test_a_predicate_may_have_no_signature():
    policy = Policy(schedule=[0], on_result=max)
    assert policy.call(lambda: [0]) == [0]
    assert policy.run(lambda: [1]).ok is False
    bound = types.MethodType(max, [0])
    assert Policy(schedule=[0], on_result=bound).run(lambda: [1]).ok is False


def test_a_predicate_may_have_a_wrong_signature():
    @functools.wraps(fail_as)
    def wrapped(error):
        return str(error) == "busy"

    wrapped.__signature__ = inspect.Signature()
    assert Policy(on=wrapped, schedule=[0]).run(fail_as("busy")).state.attempt == 2


def test_a_predicate_may_wrap_a_function_with_more_parameters():
    def busy(words, error):
        return str(error) in words

    @functools.wraps(busy)
    def wrapped(error):
        return busy(["busy"], error)

    assert Policy(on=wrapped, schedule=[0]).run(fail_as("busy")).state.attempt == 2


def fail_as(text):
    def fail():
        raise OSError(text)

    return fail


def test_the_state_of_a_call_whose_first_result_is_accepted_is_ended(backend):
    """The call has its state because the function asks for it."""
    seen = []

    def fetch():
        seen.append(current_state())
        return "done"

    assert backend(on_result=str.isspace, schedule=[0])(fetch)() == "done"
    [state] = seen
    assert (state.status, state.attempt, state.failures) == ("succeeded", 1, ())


def test_a_first_result_is_judged_once(backend):
    judged = []

    def busy(result):
        judged.append(result)
        return result == "busy"

    results = iter(["busy", "done", "done"])
    fetch = backend(on_result=busy, schedule=[0])(lambda: next(results))
    assert [fetch(), fetch()] == ["done", "done"]
    assert judged == ["busy", "done", "done"]
