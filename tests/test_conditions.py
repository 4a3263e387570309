import asyncio

import pytest

from retrykit import Policy, aretry, retry


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
    assert clock.naps == [1.0, 1.0]


def test_an_async_predicate_may_refuse_results(clock):
    async def empty(result):
        return result is None

    results = [None, "value"]

    @aretry(on_result=empty, schedule=[1])
    async def fetch():
        return results.pop(0)

    assert asyncio.run(fetch()) == "value"
    assert clock.naps == [1.0]


def test_async_conditions_may_give_up(clock):
    async def gone(error):
        return "gone" in error.args

    errors = [OSError("busy"), OSError("gone")]

    @aretry(give_up_on=gone, on=OSError, schedule=[1, 1])
    async def fetch():
        raise errors.pop(0)

    with pytest.raises(OSError, match="gone"):
        asyncio.run(fetch())
    assert clock.naps == [1.0]


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
    assert "use aretry for one that is awaited" in error.__notes__[0]
    assert clock.naps == []
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


def test_a_frozen_error_is_annotated_too(clock):
    import dataclasses  # noqa: PLC0415

    @dataclasses.dataclass(frozen=True)
    class FrozenError(Exception):
        code: int

        __traceback__ = None

    assert dataclasses.is_dataclass(FrozenError)
    assert clock.naps == []
