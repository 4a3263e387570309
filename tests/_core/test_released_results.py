"""An on_result with a `release` method releases the results that it rejects."""

import asyncio
import logging

import pytest

from retrykit import Policy, RetryError, aretry, retrying, state_of


class RejectsBad:
    """Rejects all results but "good", and records those that it releases."""

    def __init__(self, fault=None):
        self.released = []
        self._fault = fault

    def __call__(self, result):
        return result != "good"

    def release(self, result):
        self.released.append(result)
        if self._fault:
            raise self._fault


class AsyncRejectsBad(RejectsBad):
    async def release(self, result):
        await asyncio.sleep(0)
        self.released.append(result)


def test_each_rejected_result_is_released_once(backend, flaky, clock):
    rejects = RejectsBad()
    fetch = backend(schedule=[1, 1, 1], on_result=rejects)(flaky("one", "two", "good"))
    assert fetch() == "good"
    assert rejects.released == ["one", "two"]


def test_the_last_result_is_not_released(backend, flaky, clock):
    rejects = RejectsBad()
    fetch = backend(schedule=[1], on_result=rejects)(flaky("one", "two"))
    with pytest.raises(RetryError) as caught:
        fetch()
    assert rejects.released == ["one"]
    assert state_of(caught.value).failures[-1].result == "two"


def test_a_result_is_released_before_the_delay(backend, flaky, clock):
    class RecordsTime(RejectsBad):
        def release(self, result):
            self.released.append((result, clock.now()))

    rejects = RecordsTime()
    backend(schedule=[5], on_result=rejects)(flaky("one", "good"))()
    assert rejects.released == [("one", 0.0)]


def test_errors_are_not_released(backend, flaky, clock):
    rejects = RejectsBad()
    backend(schedule=[1], on_result=rejects)(flaky(OSError("down"), "good"))()
    assert rejects.released == []


@pytest.mark.usefixtures("quiet")
def test_an_error_in_release_is_logged_and_the_call_continues(
    backend, flaky, clock, caplog
):
    rejects = RejectsBad(OSError("already gone"))
    assert backend(schedule=[1], on_result=rejects)(flaky("one", "good"))() == "good"
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "could not be released" in record.getMessage()
    assert "already gone" in caplog.text


def test_release_may_be_async():
    rejects = AsyncRejectsBad()
    results = iter(["one", "good"])

    @aretry(schedule=[0], on_result=rejects)
    async def fetch():
        return next(results)

    assert asyncio.run(fetch()) == "good"
    assert rejects.released == ["one"]


def test_an_async_release_in_a_sync_call_is_logged(caplog):
    results = iter(["one", "good"])
    assert (
        Policy(schedule=[0], on_result=AsyncRejectsBad()).call(next, results) == "good"
    )
    assert "use aretry for async functions" in caplog.text


def test_blocks_release_rejected_results():
    rejects = RejectsBad()
    results = iter(["one", "good"])
    for attempt in retrying(schedule=[0], on_result=rejects):
        with attempt:
            attempt.set_result(next(results))
    assert rejects.released == ["one"]
