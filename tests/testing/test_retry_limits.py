"""Retries switched off, limited or without delays, and the blocks inside each other."""

import asyncio
import inspect
import time

import pytest

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
from retrykit._core.limits import retry_overrides
from retrykit._internal.clocks import sync_clock
from retrykit._internal.loop_clock import async_clock
from retrykit.errors import NestingError
from retrykit.schedules import constant
from retrykit.testing import (
    AsyncScriptedFunction,
    ScriptedFunction,
    disable_retries,
    limit_retries,
    virtual_time,
)
from tests._support.concurrency import in_thread
from tests._support.optional_trio import trio

PATIENT = Policy(schedule=["1h"] * 5, max_attempts=None)


def count_attempts(policy=PATIENT):
    """Return the number of attempts of a call that always fails."""
    script = ScriptedFunction([OSError, ...])
    with pytest.raises(OSError):
        policy.call(script)
    return len(script.calls)


class TestDisableRetries:
    def test_calls_the_function_once_and_raises_its_error(self, backend, flaky):
        error = OSError("refused")
        fn = flaky(error)
        with disable_retries(), pytest.raises(OSError, match="refused") as caught:
            backend(PATIENT)(fn)()
        assert caught.value is error
        assert state_of(error).attempt == 1

    def test_calls_the_function_once_and_returns_its_result(self, backend, flaky):
        fn = flaky("bad", "good")
        with disable_retries():
            assert backend(on_result=lambda result: result == "bad")(fn)() == "bad"
        assert fn("used") == "good"

    @pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
    def test_raises_the_error_itself_whatever_the_raises_setting_is(self, raises):
        with disable_retries(), pytest.raises(OSError):
            retry(PATIENT, raises=raises)(ScriptedFunction([OSError]))()

    def test_the_outcome_of_run_has_the_error(self):
        with disable_retries():
            outcome = PATIENT.run(ScriptedFunction([OSError]))
        assert isinstance(outcome.error, OSError)

    def test_blocks_run_once(self):
        numbers = []
        with disable_retries(), pytest.raises(OSError):
            for attempt in retrying(PATIENT):
                with attempt:
                    numbers.append(attempt.number)
                    raise OSError
        assert numbers == [1]

    def test_async_blocks_run_once(self):
        numbers = []

        async def main():
            async for attempt in aretrying(PATIENT):
                with attempt:
                    numbers.append(attempt.number)
                    raise OSError

        with disable_retries(), pytest.raises(OSError):
            asyncio.run(main())
        assert numbers == [1]

    def test_ends_with_its_block_after_an_error(self):
        with pytest.raises(KeyError), disable_retries():
            raise KeyError
        with limit_retries():
            assert count_attempts() == 6

    def test_can_be_nested(self):
        with disable_retries():
            with disable_retries():
                assert count_attempts() == 1
            assert count_attempts() == 1

    def test_applies_to_one_thread_or_the_process(self):
        with limit_retries(process_wide=True):
            with disable_retries():
                assert in_thread(count_attempts) == 6
            with disable_retries(process_wide=True):
                assert in_thread(count_attempts) == 1


class TestLimitRetries:
    def test_allows_fewer_attempts(self):
        with limit_retries(max_attempts=3):
            assert count_attempts() == 3

    def test_keeps_a_smaller_max_attempts_of_the_policy(self):
        with limit_retries(max_attempts=3):
            assert count_attempts(PATIENT.replace(max_attempts=2)) == 2

    def test_keeps_the_limits_of_policies_without_a_number(self):
        with limit_retries():
            assert count_attempts() == 6

    def test_does_not_sleep(self, backend, flaky):
        fn = flaky(OSError(), RetryAfter("2h"), OSError())
        before = time.monotonic()
        with limit_retries():
            assert backend(PATIENT)(fn)() == "done"
        assert time.monotonic() - before < 60

    def test_skipped_delays_count_as_elapsed_time(self, backend, flaky):
        fn = flaky(*[OSError()] * 9)
        with limit_retries(), pytest.raises(OSError) as caught:
            backend(PATIENT, max_elapsed="3h")(fn)()
        state = state_of(caught.value)
        assert [failure.delay for failure in state.failures] == [3600.0] * 2 + [None]
        assert state.elapsed == pytest.approx(7200, abs=60)

    def test_a_call_limited_only_by_time_ends(self):
        """If skipped delays did not count, it would run for 15 real minutes."""
        google = presets.google(randomization_factor=0)
        with virtual_time():
            waited = count_attempts(google)
        with limit_retries():
            assert count_attempts(google) == waited

    def test_skipped_delays_of_other_tasks_do_not_count(self):
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

    def test_other_tasks_run_between_attempts(self):
        numbers = []

        async def call(name):
            script = AsyncScriptedFunction([OSError, OSError, "ok"])

            async def attempt():
                numbers.append(name)
                return await script()

            await aretry(PATIENT)(attempt)()

        async def main():
            await asyncio.gather(call("a"), call("b"))

        with limit_retries():
            asyncio.run(main())
        assert numbers == ["a", "b"] * 3

    @pytest.mark.needs("threads")
    def test_elapsed_is_the_same_in_a_worker_thread(self):
        async def fetch():
            state = current_state()
            if state.attempt == 1:
                raise OSError
            return await asyncio.to_thread(lambda: round(state.elapsed))

        with limit_retries():
            assert asyncio.run(aretry(PATIENT)(fetch)()) == 3600

    def test_works_on_trio(self):
        script = AsyncScriptedFunction([OSError, "ok"])
        with limit_retries():
            assert trio.run(aretry(PATIENT)(script)) == "ok"

    def test_virtual_time_does_not_advance(self):
        with virtual_time(start=5) as clock:
            with limit_retries():
                count_attempts()
            assert (clock.sleeps, clock.now()) == ([], 5.0)

    def test_counts_a_delay_once_when_nested(self):
        with limit_retries(), limit_retries():
            before = sync_clock.now()
            PATIENT.call(ScriptedFunction([OSError, "ok"]))
            assert round(sync_clock.now() - before) == 3600

    def test_counts_a_delay_of_a_coroutine_once_when_nested(self):
        async def main():
            before = async_clock.now()
            await aretry(PATIENT)(AsyncScriptedFunction([OSError, "ok"]))()
            return async_clock.now() - before

        with limit_retries(), limit_retries():
            assert round(asyncio.run(main())) == 3600

    def test_sleeps_with_no_delay_false(self):
        with virtual_time() as clock, limit_retries(2, no_delay=False):
            assert count_attempts() == 2
        assert clock.sleeps == [3600.0]

    def test_applies_to_one_thread_or_the_process(self):
        with limit_retries(2, process_wide=True):
            with limit_retries(1):
                assert (count_attempts(), in_thread(count_attempts)) == (1, 2)
            assert (count_attempts(), in_thread(count_attempts)) == (2, 2)


class TestTheInnermostBlock:
    """It alone applies: `disable_retries`, `limit_retries` or `virtual_time`."""

    def test_a_limit_switches_retries_on_again(self, backend, flaky):
        fn = flaky(OSError(), OSError())
        with disable_retries():
            with limit_retries(3):
                assert backend(PATIENT)(fn)() == "done"
            assert count_attempts() == 1

    def test_virtual_time_switches_retries_on_again(self, backend, flaky):
        fn = flaky(OSError(), OSError())
        with disable_retries():
            with virtual_time() as clock:
                assert backend(PATIENT)(fn)() == "done"
            assert count_attempts() == 1
        assert clock.sleeps == [3600.0, 3600.0]

    @pytest.mark.needs("threads")
    def test_one_test_of_a_session_without_retries_has_them(self):
        with disable_retries(process_wide=True):
            with virtual_time(process_wide=True):
                assert (count_attempts(), in_thread(count_attempts)) == (6, 6)
            with limit_retries(3):
                assert (count_attempts(), in_thread(count_attempts)) == (3, 1)
            assert (count_attempts(), in_thread(count_attempts)) == (1, 1)

    def test_retries_can_be_disabled_in_virtual_time_and_in_a_limit(self):
        for outer in (virtual_time(), limit_retries(5)):
            with outer, disable_retries():
                assert count_attempts() == 1

    def test_a_limit_replaces_that_of_a_block_around_it(self):
        with limit_retries(2):
            for limit, attempts in [(4, 4), (1, 1), (10, 6), (None, 6)]:
                with limit_retries(limit):
                    assert count_attempts() == attempts
            assert count_attempts() == 2

    def test_virtual_time_replaces_a_limit(self):
        with limit_retries(3), virtual_time() as clock:
            assert count_attempts() == 6
        assert clock.sleeps == [3600.0] * 5

    def test_a_limit_without_no_delay_sleeps_inside_one_that_skips_delays(self):
        with virtual_time() as clock, limit_retries():
            with limit_retries(no_delay=False):
                count_attempts()
            assert clock.sleeps == [3600.0] * 5

    def test_a_limit_without_no_delay_sleeps_in_coroutines_too(self):
        call = aretry(PATIENT)(AsyncScriptedFunction([OSError, "ok"]))
        with virtual_time() as clock, limit_retries(), limit_retries(no_delay=False):
            assert asyncio.run(call()) == "ok"
        assert clock.sleeps == [3600.0]

    @pytest.mark.parametrize(
        ("block", "source"),
        [
            (disable_retries(process_wide=True), "disable_retries()"),
            (limit_retries(3, no_delay=False), "limit_retries(3)"),
            (limit_retries(), "limit_retries()"),
            (virtual_time(start=5), "virtual_time()"),
        ],
        ids=["disable", "limit", "no limit", "virtual time"],
    )
    def test_has_its_name_in_the_overrides(self, block, source):
        with disable_retries(), block:
            assert retry_overrides.get().source == source
        assert retry_overrides.get().source is None


def test_a_block_cannot_be_opened_twice_at_once():
    block = limit_retries(3)
    with block, pytest.raises(NestingError) as caught, block:
        pass
    assert str(caught.value) == (
        "limit_retries(3, no_delay=True, process_wide=False) must be closed before "
        "it is opened again"
    )
    with block:
        assert count_attempts() == 3


def test_a_block_cannot_be_closed_before_it_is_opened():
    with pytest.raises(NestingError) as caught:
        disable_retries().__exit__(None, None, None)
    assert str(caught.value) == (
        "disable_retries(process_wide=False) must be opened before it is closed"
    )


def test_an_error_names_both_blocks_that_are_closed_in_the_wrong_order():
    outer, inner = disable_retries(), limit_retries(3, no_delay=False)
    line = inspect.currentframe().f_lineno
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(NestingError) as caught:
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert str(caught.value) == (
        f"disable_retries(process_wide=False) (opened at {__file__}:{line + 1}) must "
        "be closed after limit_retries(3, no_delay=False, process_wide=False) "
        f"(opened at {__file__}:{line + 2}), opened inside it"
    )
    with limit_retries():
        assert count_attempts() == 6


def test_blocks_cannot_be_used_as_decorators():
    """Around a coroutine function they would be closed before it runs."""
    with pytest.raises(TypeError):

        @limit_retries(3)
        async def fetch():
            pass


@pytest.mark.parametrize("most", [1, 2, 5])
def test_joined_limits_are_limited_too(clock, flaky, most):
    policy = Policy(
        limits="all", max_attempts=3, max_elapsed="1h", schedule=constant(1)
    )
    errors = flaky(*[OSError()] * 9)
    block = disable_retries() if most == 1 else limit_retries(most)
    with block, pytest.raises(OSError) as caught:
        policy.call(errors)
    assert state_of(caught.value).attempt == most
