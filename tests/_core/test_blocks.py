"""The block form: `for attempt in retrying(policy): with attempt: ...`."""

import asyncio

import pytest

from retrykit import (
    ConfigError,
    GiveUp,
    Policy,
    RetryAfter,
    RetryError,
    RetryState,
    StopReason,
    aretrying,
    current_state,
    retrying,
    state_of,
)
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio


class SyncAsAsync:
    """A sync loop under `async for`, so that one body tests both kinds of loops."""

    def __init__(self, *args, **kwargs):
        self.attempts = retrying(*args, **kwargs)

    def __aiter__(self):
        self.turns = iter(self.attempts)
        return self

    async def __anext__(self):
        try:
            return next(self.turns)
        except StopIteration:
            raise StopAsyncIteration from None


def run_at_once(main):
    coroutine = main()
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError(coroutine)


BACKENDS = {
    "blocking": (SyncAsAsync, run_at_once),
    "asyncio": (aretrying, lambda main: asyncio.run(main())),
    "trio": (aretrying, trio.run),
}


@pytest.fixture(params=BACKENDS.values(), ids=BACKENDS)
def block(request):
    """Return a function that runs a body in each attempt, and returns the clock."""
    attempts, run = request.param

    def in_a_block(body, /, state=None, **settings):
        async def main():
            async for attempt in attempts(Policy(**settings), state=state):
                with attempt:
                    body(attempt)

        with virtual_time() as clock:
            run(main)
        return clock

    in_a_block.attempts, in_a_block.run = attempts, run
    return in_a_block


def failing(times, error):
    """Return a body that fails so many times, and records its attempts in `seen`."""

    def body(attempt):
        body.seen.append(attempt.number)
        if len(body.seen) <= times:
            raise error

    body.seen = []
    return body


def test_a_block_that_succeeds_runs_once(block):
    body = failing(0, OSError())
    assert block(body).sleeps == []
    assert body.seen == [1]


def test_a_block_that_fails_runs_again_after_each_delay(block):
    body = failing(2, OSError())
    assert block(body, schedule=[1, 2, 4]).sleeps == [1.0, 2.0]
    assert body.seen == [1, 2, 3]


def test_raises_the_last_error_with_a_note_and_its_state(block):
    error = OSError("refused")
    with pytest.raises(OSError, match="refused") as caught:
        block(failing(9, error), schedule=[1, 2])
    assert caught.value is error
    assert error.__notes__ == [
        "retrykit: gave up after 3 attempts in 3 s: the schedule has ended"
    ]
    assert error.__cause__ is None
    assert error.__context__ is None
    state = state_of(error)
    assert (state.attempt, state.total_delay, state.errors) == (3, 3.0, (error,) * 3)


def test_an_error_that_is_not_retryable_is_raised_at_once(block):
    error = KeyError("id")
    body = failing(9, error)
    with pytest.raises(KeyError) as caught:
        block(body, schedule=[1], on=OSError)
    assert caught.value is error
    assert body.seen == [1]
    assert not hasattr(error, "__notes__")
    assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE


def test_raises_a_retry_error_if_the_policy_says_so(block):
    error = OSError("refused")
    with pytest.raises(RetryError, match="gave up after 2 attempts") as caught:
        block(failing(9, error), schedule=[1], raises="retry_error")
    assert caught.value.__cause__ is error
    assert caught.value.state.errors == (error, error)


def test_raises_a_group_if_the_policy_says_so(block):
    errors = [OSError("refused"), OSError("dropped")]
    coming = iter(errors)

    def body(_attempt):
        raise next(coming)

    with pytest.raises(ExceptionGroup) as caught:
        block(body, schedule=[1], raises="group")
    assert caught.value.exceptions == tuple(errors)
    assert state_of(caught.value).errors == tuple(errors)


def test_give_up_ends_the_block_at_once(block):
    error = PermissionError("revoked")
    body = failing(9, GiveUp(error))
    with pytest.raises(PermissionError) as caught:
        block(body, schedule=[1])
    assert caught.value is error
    assert body.seen == [1]
    assert state_of(error).stop_reason is StopReason.GAVE_UP


def test_retry_after_sets_the_delay(block):
    assert block(failing(2, RetryAfter("5s")), schedule=[1, 1]).sleeps == [5.0, 5.0]


def test_a_rejected_result_is_retried(block):
    results = iter([0, 0, 4])
    clock = block(
        lambda attempt: attempt.set_result(next(results)),
        schedule=[1, 2],
        on_result=lambda result: not result,
    )
    assert clock.sleeps == [1.0, 2.0]
    assert list(results) == []


def test_conditions_and_hints_know_the_current_call(block):
    seen = []

    def note(answer):
        seen.append(current_state().attempt)
        return answer

    def body(attempt):
        if attempt.number == 1:
            raise OSError
        attempt.set_result(attempt.number)

    clock = block(
        body,
        on=lambda _error: note(True),
        on_result=lambda result: note(result < 3),
        hint=lambda _outcome: note(7),
        hint_jitter=0,
        schedule=[1, 2, 3],
    )
    assert (seen, clock.sleeps) == ([1, 1, 2, 2, 3], [7.0, 7.0])
    with pytest.raises(LookupError):
        current_state()


def test_a_result_rejected_every_time_raises_a_retry_error(block):
    with pytest.raises(RetryError, match="a rejected result of type int") as caught:
        block(
            lambda attempt: attempt.set_result(0),
            schedule=[1],
            on_result=lambda result: not result,
        )
    assert [failure.result for failure in caught.value.state.failures] == [0, 0]
    assert caught.value.__cause__ is None


def test_a_block_without_set_result_succeeds_whatever_on_result_says(block):
    events = []
    block(lambda _: None, on_result=lambda _: True, observers=[events.append])
    assert [event.kind for event in events] == ["attempt_started", "succeeded"]


@pytest.mark.parametrize("leave", ["break", "return", "continue"])
def test_leaving_a_block_early_is_a_success(block, leave):
    events = []

    async def main():
        async for attempt in block.attempts(Policy(observers=[events.append])):
            with attempt:
                if leave == "break":
                    break
                if leave == "return":
                    return "value"
                continue
            raise AssertionError(leave)
        return None

    assert block.run(main) == ("value" if leave == "return" else None)
    assert [type(event).__name__ for event in events] == ["AttemptStarted", "Succeeded"]


def test_the_state_is_current_while_the_block_runs(block):
    seen = []

    def body(attempt):
        seen.append((current_state(), attempt.state, attempt.state.attempt))
        if attempt.number < 3:
            raise OSError

    block(body, schedule=[1, 2])
    assert [number for _, _, number in seen] == [1, 2, 3]
    assert len({id(state) for two in seen for state in two[:2]}) == 1


def test_there_is_no_state_after_the_block(block):
    attempts = []
    block(attempts.append)
    with pytest.raises(LookupError, match="until the block ends"):
        _ = attempts[0].state
    with pytest.raises(LookupError, match="outside a retried call"):
        current_state()


def test_resumes_an_interrupted_block(block):
    state = RetryState(
        "fetch", seed=7, epoch=0.0, attempt=2, next_delay=3.0, elapsed_at_end=9.0
    )
    body = failing(1, OSError())
    clock = block(body, state, schedule=[1, 2, 4], max_elapsed=60)
    assert clock.sleeps == [3.0, 4.0]
    assert body.seen == [3, 4]


def test_an_attempt_that_was_not_entered_is_rejected(block):
    async def main():
        turns = aiter(block.attempts())
        await anext(turns)
        await anext(turns)

    with pytest.raises(
        ConfigError, match="attempt must be entered exactly once, in its own iteration"
    ):
        block.run(main)


def test_entering_an_attempt_twice_is_rejected(block):
    async def main():
        async for attempt in block.attempts(Policy(schedule=[0])):
            for _ in range(2):
                with attempt:
                    pass

    with pytest.raises(
        ConfigError, match="attempt must be entered exactly once, in its own iteration"
    ):
        block.run(main)


def test_the_repr_of_an_attempt_shows_its_number(block):
    seen = []
    block(lambda attempt: seen.append(repr(attempt)))
    assert seen == ["<Attempt 1>"]


def test_an_async_predicate_is_rejected(block):
    async def is_busy(_error):
        return True

    with pytest.raises(ConfigError, match="on must be a sync function"):
        block.attempts(Policy(on=is_busy))


class Shop:
    def order(self, attempts):
        return attempts()


@pytest.mark.parametrize("attempts", [retrying, aretrying])
def test_a_block_is_named_after_the_function_around_it(attempts):
    def checkout():
        return attempts()

    here = f"{__name__}.test_a_block_is_named_after_the_function_around_it"
    assert name_of_first(checkout()) == f"{here}.<locals>.checkout"
    assert name_of_first(Shop().order(attempts)) == f"{__name__}.Shop.order"
    assert name_of_first(attempts(Policy(name="orders"))) == "orders"


def name_of_first(attempts):
    async def first():
        if hasattr(attempts, "__aiter__"):
            return await anext(aiter(attempts))
        return next(iter(attempts))

    return asyncio.run(first()).state.name


def test_a_block_accepts_settings_beside_a_policy(clock):
    with pytest.raises(OSError):
        for attempt in retrying(Policy(schedule=[1, 2, 4]), max_attempts=2):
            with attempt:
                raise OSError
    assert clock.sleeps == [1.0]


@pytest.mark.parametrize("block", [retrying, aretrying])
def test_the_repr_of_a_block_shows_its_name_and_policy(block):
    kind = {retrying: "Attempts", aretrying: "AsyncAttempts"}[block]
    name = f"{__name__}.test_the_repr_of_a_block_shows_its_name_and_policy"
    assert repr(block(max_attempts=2)) == f"<{kind} of {name}, Policy(max_attempts=2)>"


@pytest.mark.parametrize("signal", [GiveUp(), RetryAfter(0)], ids=repr)
def test_a_signal_does_not_take_an_error_handled_around_the_block(block, signal):
    def fail():
        raise signal

    with virtual_time(), pytest.raises(type(signal)) as caught:
        run_in_an_except_clause(block, fail)
    assert set(state_of(caught.value).errors) == {signal}


def test_a_signal_takes_the_error_handled_in_the_block(block):
    def fail():
        try:
            raise ValueError("in the block")
        except ValueError:
            raise GiveUp  # noqa: B904  as users write it

    with virtual_time(), pytest.raises(ValueError, match="in the block"):
        run_in_an_except_clause(block, fail)


def run_in_an_except_clause(block, fail):
    """Run failing attempts inside of an ``except`` clause."""

    async def main():
        try:
            raise KeyError("around")
        except KeyError:
            async for attempt in block.attempts(Policy(max_attempts=2)):
                with attempt:
                    fail()

    block.run(main)
