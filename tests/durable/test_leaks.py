"""Nothing leaks: attempts of jobs are freed without the garbage collector."""

import asyncio
import gc
import weakref

import pytest

from retrykit import state_of
from retrykit.durable import Job
from tests._support.durable_jobs import HOURLY


class Local:
    """The value of a local variable of a failed attempt."""


@pytest.fixture
def references():
    gc.disable()
    yield []
    gc.enable()


def fail_with_local(references, outcome):
    """Return a function with a local variable that fails."""

    def fetch():
        local = Local()
        references.append(weakref.ref(local))
        # A new error, as one that the function keeps would keep the frame.
        if isinstance(outcome, type):
            raise outcome("failed")
        return outcome

    return fetch


OUTCOMES = {
    "waits": (ConnectionError, {}),
    "gives up": (ConnectionError, {"max_attempts": 1}),
    "gives up with a group": (ConnectionError, {"max_attempts": 1, "raises": "group"}),
    "gives up with a retry error": (
        ConnectionError,
        {"max_attempts": 1, "raises": "retry_error"},
    ),
    "is not retryable": (ValueError, {}),
    "succeeds": ("value", {}),
    "has its result rejected": ("value", {"on_result": lambda _: True}),
}


class TestNothingLeaks:
    @pytest.mark.parametrize(("outcome", "changes"), OUTCOMES.values(), ids=OUTCOMES)
    def test_locals_are_freed_with_the_outcome(
        self, make_job, references, outcome, changes
    ):
        make_job(
            fail_with_local(references, outcome), HOURLY.replace(**changes)
        ).attempt()
        assert [local() for local in references] == [None]

    @pytest.mark.parametrize("exit_", [KeyboardInterrupt, asyncio.CancelledError])
    def test_locals_are_freed_when_the_attempt_is_interrupted(self, references, exit_):
        def make():
            job = Job(fail_with_local(references, exit_), HOURLY)
            try:
                job.attempt(job.envelope("job-7"), [], {})
            except exit_ as caught:
                assert state_of(caught).failures == ()

        make()
        assert [local() for local in references] == [None]

    def test_locals_are_freed_when_the_policy_fails(self, references):
        def is_busy(_result):
            local = Local()
            references.append(weakref.ref(local))
            raise ZeroDivisionError

        def make():
            job = Job(int, HOURLY.replace(on_result=is_busy))
            attempt = job.attempt(job.envelope("job-7"), [], {})
            assert attempt.envelope.status == "dead"
            assert references[0]() is not None, "its traceback holds them until then"
            del attempt

        make()
        assert [local() for local in references] == [None]
