"""A predicate of results lets go of what it refused and another attempt replaces."""

import asyncio
import logging

import pytest

from retrykit import Policy, RetryError, aretry, retrying, state_of


class Full:
    """Refuses a number of results, and keeps what it was told to release."""

    def __init__(self, fault=None):
        self.released = []
        self._fault = fault

    def __call__(self, result):
        return result != "good"

    def release(self, result):
        self.released.append(result)
        if self._fault:
            raise self._fault


class AwaitedFull(Full):
    async def release(self, result):
        await asyncio.sleep(0)
        self.released.append(result)


def test_each_result_that_is_replaced_is_released_once(colour, flaky, clock):
    full = Full()
    fetch = colour(schedule=[1, 1, 1], on_result=full)(flaky("one", "two", "good"))
    assert fetch() == "good"
    assert full.released == ["one", "two"]


def test_the_last_one_is_left_to_the_caller(colour, flaky, clock):
    full = Full()
    fetch = colour(schedule=[1], on_result=full)(flaky("one", "two"))
    with pytest.raises(RetryError) as caught:
        fetch()
    assert full.released == ["one"]
    assert state_of(caught.value).failures[-1].result == "two"


def test_it_is_released_before_the_delay(colour, flaky, clock):
    class Late(Full):
        def release(self, result):
            self.released.append((result, clock.now()))

    late = Late()
    colour(schedule=[5], on_result=late)(flaky("one", "good"))()
    assert late.released == [("one", 0.0)]


def test_errors_are_not_released(colour, flaky, clock):
    full = Full()
    colour(schedule=[1], on_result=full)(flaky(OSError("down"), "good"))()
    assert full.released == []


def test_what_cannot_be_released_is_logged_and_the_call_goes_on(
    colour, flaky, clock, caplog
):
    full = Full(OSError("already gone"))
    assert colour(schedule=[1], on_result=full)(flaky("one", "good"))() == "good"
    [line] = caplog.records
    assert line.levelno == logging.WARNING
    assert "could not be released" in line.getMessage()
    assert "already gone" in caplog.text


def test_it_may_be_awaited():
    full = AwaitedFull()
    results = iter(["one", "good"])

    @aretry(schedule=[0], on_result=full)
    async def fetch():
        return next(results)

    assert asyncio.run(fetch()) == "good"
    assert full.released == ["one"]


def test_what_must_be_awaited_is_told_of_where_it_cannot_be(caplog):
    results = iter(["one", "good"])
    assert Policy(schedule=[0], on_result=AwaitedFull()).call(next, results) == "good"
    assert "use aretry for async functions" in caplog.text


def test_blocks_release_too():
    full = Full()
    results = iter(["one", "good"])
    for attempt in retrying(schedule=[0], on_result=full):
        with attempt:
            attempt.set_result(next(results))
    assert full.released == ["one"]
