"""One attempt of a job: what comes of it, who is told, and what is left of it."""

import asyncio

import pytest

from retrykit import (
    ConfigError,
    Policy,
    RetryAfter,
    RetryError,
    StopReason,
    current_state,
    observe,
    state_of,
)
from retrykit.budgets.base import Budget
from retrykit.durable import Job, idempotency_key
from retrykit.execution.attempt_timeout import AttemptTimeout
from retrykit.policy.timeouts import AsArgument
from retrykit.testing import disable_retries, limit_retries, virtual_time
from tests._support.carried import HOURLY, PATIENT, Made, carried, failed, refuse


@pytest.fixture(params=["blocking", "awaited"])
def made(request):
    def make(fn, policy=HOURLY):
        return Made(request.param, fn, policy)

    return make


class TestWhatComesOfIt:
    def test_is_the_result_of_a_job_that_succeeds(self, made):
        came = made(lambda host: {"host": host})("example.com")
        assert (came.result, came.error) == ({"host": "example.com"}, None)
        assert (came.envelope.status, came.envelope.due) == ("succeeded", None)
        assert came.envelope.key == "job-7:1"

    def test_may_be_a_result_of_any_type(self, made):
        came = made(lambda: {1, 2})()
        assert (came.result, came.envelope.status) == ({1, 2}, "succeeded")

    def test_is_a_waiting_job_after_a_failure(self, made):
        came = made(refuse)()
        assert (came.envelope.status, came.envelope.key) == ("waiting", "job-7:2")
        assert (came.result, str(came.error)) == (None, "connection refused")

    def test_is_the_error_inside_a_signal(self, made):
        error = ConnectionError("later")

        def fail():
            raise RetryAfter(5, error)

        came = made(fail)()
        assert came.error is error
        assert came.envelope.state.next_delay == 5.0

    def test_is_the_error_itself_if_the_job_gives_up(self, made):
        error = ZeroDivisionError("odd")

        def fail():
            raise error

        came = made(fail)()
        assert came.error is error
        assert came.envelope.status == "dead"
        assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE

    def test_is_a_retry_error_if_the_last_result_is_rejected(self, made):
        busy = HOURLY.replace(on_result=lambda _: True, max_attempts=1)
        came = made(lambda: "busy", busy)()
        assert isinstance(came.error, RetryError)
        assert came.envelope.counts == {"rejected result": 1}

    def test_is_a_waiting_job_if_a_result_is_rejected(self, made):
        busy = HOURLY.replace(on_result=lambda _: True)
        came = made(object, busy)()
        assert (came.result, came.error) == (None, None)
        assert came.envelope.status == "waiting"
        assert came.envelope.state.failures[0].result.type == "object"


class TestAnAttemptThatThePolicyFailsOn:
    """It would fail again: the job is dead, with a clear error, and is kept."""

    def test_is_the_last(self, made):
        def is_busy(_result):
            raise ZeroDivisionError("in the predicate")

        heard = []
        policy = HOURLY.replace(on_result=is_busy, observers=[heard.append])
        came = made(int, policy)()
        assert str(came.error) == "in the predicate"
        assert came.envelope.status == "dead"
        assert came.envelope.counts == {"ZeroDivisionError": 1}
        assert [type(event).__name__ for event in heard] == ["AttemptStarted", "GaveUp"]
        assert str(came.envelope.state.errors[0]) == (
            "ZeroDivisionError: in the predicate"
        )

    def test_includes_predicates_that_return_awaitables(self):
        async def answer():
            return "late"

        came = Made("blocking", [answer()].pop)()
        assert "returns its result directly" in str(came.error)
        assert came.envelope.status == "dead"

    def test_keeps_earlier_failures(self, made):
        def is_busy(_result):
            raise ZeroDivisionError

        job = made(int, HOURLY.replace(on_result=is_busy))
        job.envelope = made(refuse)().envelope
        after = job().envelope
        assert [failure.attempt for failure in after.state.failures] == [1, 2]
        assert after.counts == {"ConnectionError": 1, "ZeroDivisionError": 1}


class Stopped(BaseException):
    """What is no Exception."""


def interrupted(made, kind):
    """The state of an attempt that is not made to its end."""
    with pytest.raises(kind) as caught:
        made()
    return state_of(caught.value)


EXITS = [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, Stopped]


class TestAnAttemptThatIsNotMadeToItsEnd:
    @pytest.mark.parametrize("exit_", EXITS)
    def test_leaves_the_envelope_unchanged(self, exit_):
        def fail():
            raise exit_

        heard = []
        policy = HOURLY.replace(observers=[heard.append])
        made = Made("blocking", fail, policy)
        made.envelope = failed(2, HOURLY)
        before = made.envelope.to_dict()
        state = interrupted(made, exit_)
        assert made.envelope.to_dict() == before
        assert state.stop_reason is StopReason.CANCELLED
        told = [(type(event).__name__, event.state.attempt) for event in heard]
        assert told == [("AttemptStarted", 3), ("GaveUp", 3)]
        assert made.envelope.key == "job-7:3", "and it is made again"

    def test_includes_a_cancelled_task(self):
        async def hang():
            started.set()
            await asyncio.Event().wait()

        async def main():
            job = Job(hang, HOURLY)
            envelope = job.envelope("job-7")
            task = asyncio.create_task(job.aattempt(envelope, [], {}))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return envelope, heard[-1].state.stop_reason

        started, heard = asyncio.Event(), []
        with observe(heard.append):
            envelope, reason = asyncio.run(main())
        assert reason is StopReason.CANCELLED
        assert (envelope.status, envelope.failed) == ("waiting", 0)

    def test_includes_an_interrupted_budget(self):
        class Slow(Budget):
            balance = 1.0

            def withdraw(self, _error):
                raise KeyboardInterrupt

            def deposit(self, cost):
                raise AssertionError

        made = Made("blocking", refuse, HOURLY.replace(budget=Slow()))
        state = interrupted(made, KeyboardInterrupt)
        assert (state.stop_reason, len(state.failures)) == (StopReason.CANCELLED, 1)
        assert made.envelope.failed == 0

    def test_leaves_nothing_in_its_context(self):
        def fail():
            raise KeyboardInterrupt

        interrupted(Made("blocking", fail), KeyboardInterrupt)
        with pytest.raises(LookupError):
            idempotency_key()
        with pytest.raises(LookupError):
            current_state()


class TestAnAttemptInsideOfACall:
    def test_leaves_the_call_unchanged(self):
        made = Made("blocking", refuse)

        def fetch():
            came = made.job.attempt(made.envelope, [], {})
            return came.envelope.state.name, current_state().name

        assert Policy(name="outer").call(fetch) == ("job-7", "outer")

    def test_sees_the_deadline_of_that_call(self):
        def remaining():
            return current_state().remaining

        made = Made("blocking", remaining)
        policy = Policy(max_elapsed=50)
        with virtual_time():
            assert policy.call(made.once).result == 50.0


class TestObservers:
    def test_are_notified_that_the_job_is_suspended(self, made):
        outcomes = iter([ConnectionError("one"), ConnectionError("two"), None])

        def fetch():
            error = next(outcomes)
            if error:
                raise error

        heard = []
        made = made(fetch)
        with observe(lambda event: heard.append((type(event).__name__, key(event)))):
            while made.envelope.status == "waiting":
                made.envelope = made().envelope
        assert heard == [
            ("AttemptStarted", "job-7:1"),
            ("AttemptFailed", "job-7:1"),
            ("RetryScheduled", "job-7:1"),
            ("Suspended", "job-7:1"),
            ("AttemptStarted", "job-7:2"),
            ("AttemptFailed", "job-7:2"),
            ("RetryScheduled", "job-7:2"),
            ("Suspended", "job-7:2"),
            ("AttemptStarted", "job-7:3"),
            ("Succeeded", "job-7:3"),
        ]

    def test_that_raise_do_not_fail_the_job(self, made):
        def watch(_event):
            raise ZeroDivisionError

        came = made(refuse, HOURLY.replace(observers=[watch]))()
        assert came.envelope.status == "waiting"

    def test_see_the_id_of_the_job(self, made):
        heard = []
        made(refuse, HOURLY.replace(observers=[heard.append]))()
        assert {event.state.name for event in heard} == {"job-7"}


def key(event):
    """The key of the attempt that an observer is told of, where it is told."""
    assert idempotency_key().endswith(f":{event.state.attempt}")
    return idempotency_key()


class TestWithinItsTime:
    def test_a_coroutine_is_cancelled_after_its_timeout(self):
        async def hang():
            await asyncio.Event().wait()

        job = Job(hang, HOURLY.replace(attempt_timeout=5))
        with virtual_time() as clock:
            came = carried(job, job.envelope("job-7"), clock)
        assert came.envelope.status == "waiting"
        assert came.envelope.counts == {"retrykit.errors.AttemptTimeout": 1}
        assert came.envelope.state.elapsed_at_end == 5.0

    def test_a_coroutine_gives_up_after_the_last_timeout(self):
        async def hang():
            await asyncio.Event().wait()

        policy = HOURLY.replace(attempt_timeout=5, max_attempts=1)
        job = Job(hang, policy)
        with virtual_time() as clock:
            came = carried(job, job.envelope("job-7"), clock)
        assert isinstance(came.error, AttemptTimeout)

    def test_a_function_receives_its_timeout(self):
        def fetch(timeout):
            return timeout

        policy = HOURLY.replace(attempt_timeout=AsArgument(5))
        assert Made("blocking", fetch, policy)().result == 5.0

    def test_a_function_without_such_a_parameter_is_rejected(self):
        with pytest.raises(ConfigError, match="attempt_timeout must be None"):
            Job(refuse, HOURLY.replace(attempt_timeout=5))

    def test_nested_calls_see_the_deadline(self):
        policy = HOURLY.replace(max_elapsed="4h")
        remaining = []

        def fetch():
            remaining.append(
                Policy(max_elapsed=None).call(lambda: current_state().remaining)
            )
            refuse()

        made = Made("blocking", fetch, policy)
        with virtual_time() as clock:
            for _ in range(2):
                made.envelope = carried(made.job, made.envelope, clock).envelope
        assert remaining == [4 * 3600, 3 * 3600]


class TestWithinTheLimitsOfTests:
    def test_a_job_without_retries_fails_at_once(self, made):
        made = made(refuse)
        with disable_retries():
            assert made().envelope.status == "dead"

    def test_a_job_without_retries_returns_any_result(self, made):
        made = made(int, HOURLY.replace(on_result=lambda _: True))
        with disable_retries():
            assert made().envelope.status == "succeeded"

    def test_a_job_has_at_most_the_attempts_that_tests_allow(self, made):
        made = made(refuse)
        with limit_retries(2):
            made.envelope = made().envelope
            assert made.envelope.status == "waiting"
            assert made().envelope.status == "dead"


def test_a_job_makes_all_its_attempts():
    envelope = failed(76, PATIENT)
    assert (envelope.status, envelope.failed) == ("dead", 76)
    assert envelope.state.elapsed == 75 * 3600
