"""A policy that is idle since a nested call gives up says so, once for each name."""

import asyncio
import logging

import pytest

from retrykit import Policy, aretry, retry, retrying
from retrykit._core import ineffective
from retrykit._core.nesting import warned_names
from retrykit.testing import (
    disable_retries,
    limit_retries,
    virtual_time,
)

# Only warnings about the policy are counted.
pytestmark = pytest.mark.usefixtures("quiet")

TWICE = Policy(schedule=[0, 0], on=OSError)
WARNING = (
    "sync_all: not retried, since fetch, which is retried inside it, gave up; "
    'nested="retry" on the outer policy retries it anyway'
)


@pytest.fixture(autouse=True)
def _no_names():
    before = {*warned_names}
    warned_names.clear()
    yield
    warned_names.clear()
    warned_names.update(before)


def fails():
    raise OSError("dead")


def nested(backend, inner=TWICE, **outer):
    fetch = backend(inner, name="fetch")(fails)
    return retry(TWICE.replace(name="sync_all", **outer))(fetch)


def test_logs_a_warning_the_first_time_only(backend, caplog):
    sync_all = nested(backend)
    for _ in range(2):
        with pytest.raises(OSError, match="dead"):
            sync_all()
    assert caplog.record_tuples == [("retrykit", logging.WARNING, WARNING)]


def test_a_coroutine_logs_it_too(caplog):
    async def fetch():
        fails()

    inner = aretry(TWICE, name="fetch")(fetch)
    with pytest.raises(OSError, match="dead"):
        asyncio.run(aretry(TWICE, name="sync_all")(inner)())
    assert caplog.messages == [WARNING]


def test_a_block_logs_it_too(caplog):
    with pytest.raises(OSError, match="dead"):
        for attempt in retrying(TWICE, name="sync_all"):
            with attempt:
                retry(TWICE, name="fetch")(fails)()
    assert caplog.messages == [WARNING]


@pytest.mark.parametrize("rule", ["retry", "raise"])
def test_other_rules_log_nothing(backend, caplog, rule):
    with pytest.raises(Exception, match=r"dead|is retried inside"):
        nested(backend, nested=rule)()
    assert caplog.messages == []


def one_minute():
    yield 60


@pytest.mark.parametrize(
    "outer",
    [
        {"max_attempts": 1},
        {"max_elapsed": 0},
        {"schedule": one_minute, "max_elapsed": 59},
        {"on": ValueError},
    ],
    ids=["attempts", "time", "deadline", "error"],
)
def test_a_call_that_would_not_be_retried_anyway_logs_nothing(backend, caplog, outer):
    with pytest.raises(OSError, match="dead"):
        nested(backend, **outer)()
    assert caplog.messages == []


def test_a_nested_call_that_used_up_the_time_of_the_outer_one_logs_nothing(caplog):
    inner = Policy(schedule=[4] * 9, max_attempts=None, max_elapsed=None)
    fetch = retry(inner, name="fetch")(fails)
    with virtual_time(), pytest.raises(OSError, match="dead"):
        retry(schedule=[4], max_elapsed=10)(fetch)()
    assert caplog.messages == []


def test_a_schedule_that_fails_logs_nothing(caplog, backend):
    def broken():
        raise ZeroDivisionError
        yield

    with pytest.raises(OSError, match="dead"):
        nested(backend, schedule=broken)()
    assert caplog.messages == []


def test_calls_without_retries_log_nothing(backend, caplog):
    for block in (disable_retries(), limit_retries(1)):
        with block, pytest.raises(OSError, match="dead"):
            nested(backend)()
    assert caplog.messages == []


def test_every_layer_names_the_innermost_call(caplog):
    call = retry(TWICE, name="fetch")(fails)
    for name in ("page", "sync_all"):
        call = retry(TWICE, name=name)(call)
    with pytest.raises(OSError, match="dead"):
        call()
    assert caplog.messages == [WARNING.replace("sync_all", "page"), WARNING]


def test_a_member_of_a_group_names_no_call(caplog):
    """It has no state: the group has that of the nested call."""
    fetch = retry(TWICE, raises="group", name="fetch")(fails)

    @retry(TWICE, name="sync_all")
    def sync_all():
        try:
            fetch()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    with pytest.raises(OSError, match="dead"):
        sync_all()
    assert caplog.messages == [WARNING.replace("fetch", "a call")]


@pytest.mark.needs("speed")
def test_a_thousand_names_are_enough(caplog, monkeypatch):
    monkeypatch.setattr(ineffective, "searched", {})
    fetch = retry(TWICE, name="fetch")(fails)
    for number in range(1001):
        with pytest.raises(OSError, match="dead"):
            retry(TWICE, name=f"sync {number}")(fetch)()
    assert len(caplog.messages) == len(warned_names) == 1000
