"""The results of sends that do not count are released, each once."""

import asyncio
import logging
import threading
from contextlib import nullcontext
from itertools import count

import pytest

from retrykit import GiveUp, Hedge, Policy, RetryAfter, RetryError, aretry
from retrykit._core.drivers import driver_factory
from retrykit._core.hedging import hedged
from retrykit.testing import virtual_time
from tests._support import required
from tests._support.hedged_sends import FORMS, Form
from tests._support.optional_trio import trio

ONCE = Policy(max_attempts=1, on_result=lambda result: "bad" in result)


@pytest.fixture(params=FORMS)
def form(request, clock):
    return Form(request.param, clock)


@pytest.fixture
def released():
    return []


def hedge(delay, at_most=2):
    return Hedge(delay, at_most=at_most, extra=9, idempotent=True)


def call(form, released, one, *script, policy=ONCE):
    """Make a call that returns a result, and return it."""
    return form.blocking(hedged(policy, one, form.function(*script), released.append))()


def test_the_only_result_is_not_released(form, released):
    assert call(form, released, hedge(5), (1, "first")) == "first"
    assert released == []


def test_of_two_that_succeed_at_once_one_is_released(form, released):
    result = call(form, released, hedge(0), (1, "a"), (1, "b"))
    form.clock.sleep(1)
    assert sorted([result, *released]) == ["a", "b"]


@pytest.mark.needs("threads")
@pytest.mark.parametrize("virtual", [True, False], ids=["virtual", "real"])
def test_a_thread_that_ends_late_releases_its_result(virtual, released):
    go, ended, numbers = threading.Event(), threading.Event(), count(1)

    def send():
        if next(numbers) == 1:
            go.wait(10)
            return "late"
        return "second"

    def release(result):
        released.append(result)
        ended.set()

    with virtual_time(stall_timeout=10) if virtual else nullcontext():
        assert hedged(ONCE, hedge(0), send, release)() == "second"
        assert released == []
        go.set()
        assert ended.wait(10)
    assert released == ["late"]


def test_a_thread_that_fails_late_has_nothing_to_release(clock, released):
    form = Form("threads", clock)
    script = (5, OSError("late")), (1, "second")
    assert call(form, released, hedge(1), *script) == "second"
    clock.sleep(5)
    assert released == []


def test_a_failure_is_released_once_another_one_has_won(form, released):
    script = (3, "first"), (1, "bad second")
    assert call(form, released, hedge(1), *script) == "first"
    assert released == ["bad second"]


def test_a_failure_is_released_once_the_next_send_has_begun(form, released):
    """Its connection may be the only one."""
    seen = []
    script = (1, "bad"), (1, lambda: seen.extend(released) or "second")
    assert call(form, released, hedge(5), *script) == "second"
    assert seen == released == ["bad"]


def test_if_all_fail_the_last_one_counts(form, released):
    script = (9, "bad first"), (1, "bad second")
    assert call(form, released, hedge(1), *script) == "bad first"
    assert released == ["bad second"]


def test_an_error_that_ends_last_counts_as_well(form, released):
    script = (9, OSError("first")), (1, "bad second")
    with pytest.raises(OSError, match="first"):
        call(form, released, hedge(1), *script)
    assert released == ["bad second"]


def test_a_failure_that_forbids_a_retry_counts(form, released):
    """In a client, which has hedging of its own, and needs no promise."""

    def hedging(policy, hedge, fn):
        return hedged(policy, hedge, fn, released.append)

    policy = Policy(
        hint=lambda result: GiveUp() if "no" in result else None,
        hedge=Hedge(1, extra=9),
        on_result=ONCE.on_result,
    )
    script = (9, "bad first"), (1, "bad, no")
    driver = driver_factory(
        policy, form.function(*script), awaited=form.in_tasks, hedging=hedging
    )
    with pytest.raises(RetryError) as caught:
        form.blocking(driver(None, None))()
    assert caught.value.state.failures[0].result == "bad, no"
    assert (len(form.sent), released) == (2, ["bad first"])


def test_a_release_that_fails_is_logged(form, caplog):
    def fail(_):
        raise LookupError("gone")

    with caplog.at_level(logging.WARNING, "retrykit"):
        script = (3, "first"), (1, "bad")
        fn = hedged(ONCE, hedge(1), form.function(*script), fail)
        assert form.blocking(fn)() == "first"
    assert "a rejected result could not be released" in caplog.text


class TestTasks:
    @pytest.fixture(params=["asyncio", "trio", "virtual loop"])
    def form(self, request, clock):
        return Form(request.param, clock)

    def test_a_release_may_be_awaited(self, form, released):
        async def release(result):
            await form.clock.asleep(0)
            released.append(result)

        fn = hedged(ONCE, hedge(1), form.function((3, "first"), (1, "bad")), release)
        assert form.blocking(fn)() == "first"
        assert released == ["bad"]

    def test_a_send_that_ends_well_when_it_is_cancelled_is_released(
        self, form, released
    ):
        sent = []

        async def send():
            sent.append(None)
            if len(sent) == 2:
                return "second"
            try:
                await form.clock.asleep(9)
            except (asyncio.CancelledError, *cancelled()):
                return "first, still"

        fn = hedged(ONCE, hedge(1), send, released.append)
        assert form.blocking(fn)() == "second"
        assert released == ["first, still"]


def cancelled():
    return [trio.Cancelled] if required.installed("trio") else []


class TestCancelledCalls:
    def cancel(self, coroutine, ready):
        async def main():
            task = asyncio.ensure_future(coroutine)
            await ready.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())

    def test_a_failure_is_released_while_the_next_send_waits(self, released):
        ready = asyncio.Event()

        async def send():
            ready.set()
            return "bad"

        policy = ONCE.replace(hint=lambda _: RetryAfter("1m"), hedge=hedge("1h"))

        @aretry(policy.replace(hedge=None, on_result=None))
        async def fetch():
            return await hedged(policy, hedge("1h"), send, released.append)()

        self.cancel(fetch(), ready)
        assert released == ["bad"]

    def test_a_result_is_released_while_it_is_judged(self, released):
        ready = asyncio.Event()

        async def judge(_):
            ready.set()
            await asyncio.Event().wait()

        async def send():
            return "result"

        policy = Policy(max_attempts=1, on_result=judge)
        self.cancel(hedged(policy, hedge(5), send, released.append)(), ready)
        assert released == ["result"]

    def test_the_outcome_is_released_while_the_others_clean_up(self, released):
        ready, sent = asyncio.Event(), []

        async def send():
            sent.append(None)
            if len(sent) == 2:
                return "second"
            try:
                await asyncio.Event().wait()
            finally:
                ready.set()
                await asyncio.Event().wait()

        self.cancel(hedged(ONCE, hedge(0), send, released.append)(), ready)
        assert released == ["second"]
