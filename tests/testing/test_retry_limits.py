"""Suites that cannot hand in a clock: fewer attempts, and no delay."""

import asyncio
import inspect
import time

import pytest
import trio

from retrykit import (
    Policy,
    RetryAfter,
    aretry,
    aretrying,
    current_state,
    presets,
    retry,
    retrying,
    state_of,
)
from retrykit._internal.clocks import sync_clock
from retrykit._internal.loop_clock import async_clock
from retrykit.errors import NestingError
from retrykit.testing import (
    AsyncScriptedFunction,
    ScriptedFunction,
    disable_retries,
    limit_retries,
    virtual_time,
)
from tests._support.side import in_thread

PATIENT = Policy(schedule=["1h"] * 5, max_attempts=None, max_elapsed=None)


def attempts(policy=PATIENT):
    """Return how many attempts a call makes that always fails."""
    script = ScriptedFunction([OSError, ...])
    with pytest.raises(OSError):
        policy.call(script)
    return len(script.calls)


class TestDisabled:
    def test_the_function_is_called_once_and_its_error_passes(self, colour, flaky):
        error = OSError("refused")
        fn = flaky(error)
        with disable_retries(), pytest.raises(OSError, match="refused") as caught:
            colour(PATIENT)(fn)()
        assert caught.value is error
        assert state_of(error).attempt == 1

    def test_the_function_is_called_once_and_its_result_passes(self, colour, flaky):
        fn = flaky("bad", "good")
        with disable_retries():
            assert colour(on_result=lambda result: result == "bad")(fn)() == "bad"
        assert fn("used") == "good"

    @pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
    def test_the_error_itself_passes_whatever_is_raised_otherwise(self, raises):
        with disable_retries(), pytest.raises(OSError):
            retry(PATIENT, raises=raises)(ScriptedFunction([OSError]))()

    def test_what_run_returns_has_the_error(self):
        with disable_retries():
            outcome = PATIENT.run(ScriptedFunction([OSError]))
        assert isinstance(outcome.error, OSError)

    def test_blocks_have_one_turn(self):
        turns = []
        with disable_retries(), pytest.raises(OSError):
            for attempt in retrying(PATIENT):
                with attempt:
                    turns.append(attempt.number)
                    raise OSError
        assert turns == [1]

    def test_async_blocks_have_one_turn(self):
        turns = []

        async def main():
            async for attempt in aretrying(PATIENT):
                with attempt:
                    turns.append(attempt.number)
                    raise OSError

        with disable_retries(), pytest.raises(OSError):
            asyncio.run(main())
        assert turns == [1]

    def test_ends_with_its_block_even_after_an_error(self):
        with pytest.raises(KeyError), disable_retries():
            raise KeyError
        with limit_retries():
            assert attempts() == 6

    def test_nests_in_itself(self):
        with disable_retries():
            with disable_retries():
                assert attempts() == 1
            assert attempts() == 1

    def test_limited_inside_of_it_allows_no_more(self):
        with disable_retries(), limit_retries(5):
            assert attempts() == 1

    def test_holds_here_only_or_everywhere(self):
        with limit_retries(process_wide=True):
            with disable_retries():
                assert in_thread(attempts) == 6
            with disable_retries(process_wide=True):
                assert in_thread(attempts) == 1


class TestLimited:
    def test_allows_fewer_attempts(self):
        with limit_retries(max_attempts=3):
            assert attempts() == 3

    def test_leaves_a_policy_that_allows_fewer(self):
        with limit_retries(max_attempts=3):
            assert attempts(PATIENT.replace(max_attempts=2)) == 2

    def test_without_a_number_the_policies_decide(self):
        with limit_retries():
            assert attempts() == 6

    def test_the_smaller_limit_holds_when_nested(self):
        with limit_retries(2):
            with limit_retries(4):
                assert attempts() == 2
            with limit_retries(1):
                assert attempts() == 1
            assert attempts() == 2

    def test_waits_for_no_delay(self, colour, flaky):
        fn = flaky(OSError(), RetryAfter("2h"), OSError())
        before = time.monotonic()
        with limit_retries():
            assert colour(PATIENT)(fn)() == "done"
        assert time.monotonic() - before < 60

    def test_delays_that_are_not_waited_for_count(self, colour, flaky):
        fn = flaky(*[OSError()] * 9)
        with limit_retries(), pytest.raises(OSError) as caught:
            colour(PATIENT, max_elapsed="3h")(fn)()
        state = state_of(caught.value)
        assert [failure.delay for failure in state.failures] == [3600.0] * 2 + [None]
        assert state.elapsed == pytest.approx(7200, abs=60)

    def test_a_call_that_only_time_ends_does_end(self):
        """Without delays it would spin for its fifteen minutes."""
        google = presets.google(randomization_factor=0)
        with virtual_time():
            waited = attempts(google)
        with limit_retries():
            assert attempts(google) == waited

    def test_tasks_do_not_spend_the_time_of_each_other(self):
        elapsed = []

        async def main():
            async def call():
                await aretry(PATIENT)(AsyncScriptedFunction([OSError, "ok"]))()
                elapsed.append(round(async_clock.now() - started))

            started = async_clock.now()
            await asyncio.gather(call(), call())

        with limit_retries():
            asyncio.run(main())
        assert elapsed == [3600, 3600]

    def test_other_tasks_have_their_turn(self):
        turns = []

        async def call(name):
            script = AsyncScriptedFunction([OSError, OSError, "ok"])

            async def attempt():
                turns.append(name)
                return await script()

            await aretry(PATIENT)(attempt)()

        async def main():
            await asyncio.gather(call("a"), call("b"))

        with limit_retries():
            asyncio.run(main())
        assert turns == ["a", "b"] * 3

    def test_the_state_is_read_from_a_worker_thread(self):
        async def fetch():
            state = current_state()
            if state.attempt == 1:
                raise OSError
            return await asyncio.to_thread(lambda: round(state.elapsed))

        with limit_retries():
            assert asyncio.run(aretry(PATIENT)(fetch)()) == 3600

    def test_works_on_the_clock_of_trio(self):
        script = AsyncScriptedFunction([OSError, "ok"])
        with limit_retries():
            assert trio.run(aretry(PATIENT)(script)) == "ok"

    def test_in_virtual_time_the_clock_stands_still(self):
        with virtual_time(start=5) as clock:
            with limit_retries():
                attempts()
            assert (clock.sleeps, clock.now()) == ([], 5.0)

    def test_does_not_count_a_delay_twice_when_nested(self):
        with limit_retries(), limit_retries():
            before = sync_clock.now()
            ScriptedFunction([OSError, "ok"])
            PATIENT.call(ScriptedFunction([OSError, "ok"]))
            assert round(sync_clock.now() - before) == 3600

    def test_does_not_count_a_delay_of_a_coroutine_twice_when_nested(self):
        async def main():
            before = async_clock.now()
            await aretry(PATIENT)(AsyncScriptedFunction([OSError, "ok"]))()
            return async_clock.now() - before

        with limit_retries(), limit_retries():
            assert round(asyncio.run(main())) == 3600

    def test_delays_can_be_kept(self):
        with virtual_time() as clock, limit_retries(2, no_delay=False):
            assert attempts() == 2
        assert clock.sleeps == [3600.0]

    def test_holds_here_only_or_everywhere(self):
        with limit_retries(2, process_wide=True):
            with limit_retries(1):
                assert (attempts(), in_thread(attempts)) == (1, 2)
            assert (attempts(), in_thread(attempts)) == (2, 2)


def test_a_block_is_opened_once_at_a_time():
    block = limit_retries(3)
    with block, pytest.raises(NestingError) as caught, block:
        pass
    assert str(caught.value) == (
        "limit_retries(3, no_delay=True, process_wide=False) must be closed before "
        "it is opened again"
    )
    with block:
        assert attempts() == 3


def test_a_block_that_is_not_open_cannot_be_closed():
    with pytest.raises(NestingError) as caught:
        disable_retries().__exit__(None, None, None)
    assert str(caught.value) == (
        "disable_retries(process_wide=False) must be opened before it is closed"
    )


def test_blocks_that_are_closed_in_the_wrong_order_name_themselves():
    outer, inner = disable_retries(), limit_retries(3, no_delay=False)
    line = inspect.currentframe().f_lineno
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(NestingError) as caught:
        outer.__exit__(None, None, None)
    assert str(caught.value) == (
        f"disable_retries(process_wide=False) (opened at {__file__}:{line + 1}) must "
        "be closed after limit_retries(3, no_delay=False, process_wide=False) "
        f"(opened at {__file__}:{line + 2}), opened inside of it"
    )
    inner.__exit__(None, None, None)
    with limit_retries():
        assert attempts() == 6


def test_blocks_decorate_nothing():
    """Above a coroutine function they would be closed before it runs."""
    with pytest.raises(TypeError):

        @limit_retries(3)
        async def fetch():
            pass
