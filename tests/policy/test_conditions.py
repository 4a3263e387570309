import asyncio
import functools
import inspect
import types

import pytest

from retrykit import Policy, aretry, retry, state_of


class Asker:
    """A predicate that is an object, and must be awaited."""

    async def __call__(self, error):
        await asyncio.sleep(0)
        return isinstance(error, OSError)


@pytest.mark.parametrize("where", ["on", "give_up_on"])
def test_an_error_in_an_async_predicate_does_not_replace_the_users(where, caplog):
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


def test_an_object_may_be_an_async_predicate(clock):
    calls = []

    @aretry(on=Asker(), schedule=[1, 1])
    async def fetch():
        calls.append(1)
        raise OSError

    with pytest.raises(OSError):
        asyncio.run(fetch())
    assert len(calls) == 3
    assert clock.sleeps == [1.0, 1.0]


def test_an_async_predicate_may_refuse_results(clock):
    async def empty(result):
        return result is None

    results = [None, "value"]

    @aretry(on_result=empty, schedule=[1])
    async def fetch():
        return results.pop(0)

    assert asyncio.run(fetch()) == "value"
    assert clock.sleeps == [1.0]


def test_async_conditions_may_give_up(clock):
    async def gone(error):
        return "gone" in error.args

    errors = [OSError("busy"), OSError("gone")]

    @aretry(give_up_on=gone, on=OSError, schedule=[1, 1])
    async def fetch():
        raise errors.pop(0)

    with pytest.raises(OSError, match="gone"):
        asyncio.run(fetch())
    assert clock.sleeps == [1.0]


def test_a_plain_function_that_answers_with_a_coroutine_is_no_yes(clock, caplog):
    async def answer():
        return False

    error = OSError("refused")

    @retry(on=lambda _: answer())
    def fetch():
        raise error

    with pytest.raises(OSError) as caught:
        fetch()
    assert caught.value is error
    assert "use aretry for async functions" in error.__notes__[0]
    assert clock.sleeps == []
    assert caplog.records


def test_a_plain_function_that_answers_with_another_awaitable_is_no_yes(caplog):
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


def test_an_error_that_refuses_attributes_is_annotated_too(clock):
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


def test_an_error_with_odd_code_is_annotated_too(clock):
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


def test_a_predicate_may_be_a_function_that_does_not_say_what_it_takes():
    policy = Policy(schedule=[0], on_result=max)
    assert policy.call(lambda: [0]) == [0]
    assert policy.run(lambda: [1]).ok is False
    bound = types.MethodType(max, [0])
    assert Policy(schedule=[0], on_result=bound).run(lambda: [1]).ok is False


def test_a_predicate_may_say_what_is_not_true_of_it():
    @functools.wraps(fail_as)
    def known(error):
        return str(error) == "busy"

    known.__signature__ = inspect.Signature()
    assert Policy(on=known, schedule=[0]).run(fail_as("busy")).state.attempt == 2


def test_a_predicate_may_be_a_wrapper_of_one_that_takes_more():
    def busy(words, error):
        return str(error) in words

    @functools.wraps(busy)
    def known(error):
        return busy(["busy"], error)

    assert Policy(on=known, schedule=[0]).run(fail_as("busy")).state.attempt == 2


def fail_as(text):
    def fail():
        raise OSError(text)

    return fail
