"""Nothing leaks: with the collector off, a failed attempt dies with its job."""

import asyncio
import gc
import weakref

import pytest

from retrykit import state_of
from retrykit.durable import Job
from tests._support.carried import HOURLY, Made


@pytest.fixture(params=["blocking", "awaited"])
def made(request):
    def make(fn, policy=HOURLY):
        return Made(request.param, fn, policy)

    return make


class Local:
    """Something that a failed attempt keeps in a local variable."""


@pytest.fixture
def kept():
    gc.disable()
    yield []
    gc.enable()


def holding(kept, outcome):
    """A function that holds on to a local variable, and fails."""

    def fetch():
        local = Local()
        kept.append(weakref.ref(local))
        # A new error each time: one that this function keeps would keep its frame.
        if isinstance(outcome, type):
            raise outcome("failed")
        return outcome

    return fetch


WAYS = {
    "waits": (ConnectionError, {}),
    "dies": (ConnectionError, {"max_attempts": 1}),
    "dies with a group": (ConnectionError, {"max_attempts": 1, "raises": "group"}),
    "dies with an error": (
        ConnectionError,
        {"max_attempts": 1, "raises": "retry_error"},
    ),
    "is not retried": (ValueError, {}),
    "succeeds": ("value", {}),
    "is refused its result": ("value", {"on_result": lambda _: True}),
}


class TestNothingLeaks:
    @pytest.mark.parametrize(("outcome", "changes"), WAYS.values(), ids=WAYS)
    def test_locals_are_freed_with_the_outcome(self, made, kept, outcome, changes):
        made(holding(kept, outcome), HOURLY.replace(**changes)).once()
        assert [local() for local in kept] == [None]

    @pytest.mark.parametrize("exit_", [KeyboardInterrupt, asyncio.CancelledError])
    def test_locals_are_freed_when_the_attempt_is_interrupted(self, kept, exit_):
        def make():
            job = Job(holding(kept, exit_), HOURLY)
            try:
                job.attempt(job.envelope("job-7"), [], {})
            except exit_ as caught:
                assert state_of(caught).failures == ()

        make()
        assert [local() for local in kept] == [None]

    def test_locals_are_freed_when_the_policy_fails(self, kept):
        def is_busy(_result):
            local = Local()
            kept.append(weakref.ref(local))
            raise ZeroDivisionError

        def make():
            job = Job(int, HOURLY.replace(on_result=is_busy))
            came = job.attempt(job.envelope("job-7"), [], {})
            assert came.envelope.status == "dead"
            assert kept[0]() is not None, "its traceback holds them until then"
            del came

        make()
        assert [local() for local in kept] == [None]
