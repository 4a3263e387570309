"""One attempt of a job: outcome, events, interruption and timeout."""

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
    schedules as s,
    state_of,
)
from retrykit._core.attempt_timeout import AttemptTimeout
from retrykit._core.timeouts import AsArgument
from retrykit.budgets._base import Budget
from retrykit.durable import Job, idempotency_key
from retrykit.testing import disable_retries, limit_retries, virtual_time
from tests._support.durable_jobs import (
    HOURLY,
    PATIENT,
    JobHarness,
    attempt_when_due,
    fail_to_connect,
    failed_envelope,
)


class TestResult:
    def test_is_the_result_of_a_job_that_succeeds(self, make_job):
        attempt = make_job(lambda host: {"host": host})("example.com")
        assert (attempt.result, attempt.error) == ({"host": "example.com"}, None)
        assert (attempt.envelope.status, attempt.envelope.due) == ("succeeded", None)
        assert attempt.envelope.key == "job-7:1"

    def test_may_be_a_result_of_any_type(self, make_job):
        attempt = make_job(lambda: {1, 2})()
        assert (attempt.result, attempt.envelope.status) == ({1, 2}, "succeeded")

    def test_is_a_waiting_job_after_a_failure(self, make_job):
        attempt = make_job(fail_to_connect)()
        assert (attempt.envelope.status, attempt.envelope.key) == ("waiting", "job-7:2")
        assert (attempt.result, str(attempt.error)) == (None, "connection refused")

    def test_is_the_error_inside_a_signal(self, make_job):
        error = ConnectionError("later")

        def fail():
            raise RetryAfter(5, error)

        attempt = make_job(fail)()
        assert attempt.error is error
        assert attempt.envelope.state.next_delay == 5.0

    def test_is_the_error_itself_if_the_job_gives_up(self, make_job):
        error = ZeroDivisionError("odd")

        def fail():
            raise error

        attempt = make_job(fail)()
        assert attempt.error is error
        assert attempt.envelope.status == "dead"
        assert state_of(error).stop_reason is StopReason.NOT_RETRYABLE

    def test_is_a_retry_error_if_the_last_result_is_rejected(self, make_job):
        busy = HOURLY.replace(on_result=lambda _: True, max_attempts=1)
        attempt = make_job(lambda: "busy", busy)()
        assert isinstance(attempt.error, RetryError)
        assert attempt.envelope.counts == {"rejected result": 1}

    def test_is_a_waiting_job_if_a_result_is_rejected(self, make_job):
        busy = HOURLY.replace(on_result=lambda _: True)
        attempt = make_job(object, busy)()
        assert (attempt.result, attempt.error) == (None, None)
        assert attempt.envelope.status == "waiting"
        assert attempt.envelope.state.failures[0].result.type == "object"


class TestAFaultOfThePolicy:
    """A retry would fail in the same way, so the job is dead."""

    def test_makes_the_job_dead(self, make_job):
        def is_busy(_result):
            raise ZeroDivisionError("in the predicate")

        events = []
        policy = HOURLY.replace(on_result=is_busy, observers=[events.append])
        attempt = make_job(int, policy)()
        assert str(attempt.error) == "in the predicate"
        assert attempt.envelope.status == "dead"
        assert attempt.envelope.counts == {"ZeroDivisionError": 1}
        assert [type(event).__name__ for event in events] == [
            "AttemptStarted",
            "GaveUp",
        ]
        assert str(attempt.envelope.state.errors[0]) == (
            "ZeroDivisionError: in the predicate"
        )

    def test_includes_predicates_that_return_awaitables(self):
        async def answer():
            return "late"

        attempt = JobHarness("sync", [answer()].pop)()
        assert "returns its result directly" in str(attempt.error)
        assert attempt.envelope.status == "dead"

    def test_keeps_earlier_failures(self, make_job):
        def is_busy(_result):
            raise ZeroDivisionError

        job = make_job(int, HOURLY.replace(on_result=is_busy))
        job.envelope = make_job(fail_to_connect)().envelope
        after = job().envelope
        assert [failure.attempt for failure in after.state.failures] == [1, 2]
        assert after.counts == {"ConnectionError": 1, "ZeroDivisionError": 1}


class CustomExit(BaseException):
    """A BaseException that is not an Exception."""


def interrupted(harness, kind):
    """Return the state of an attempt that is interrupted."""
    with pytest.raises(kind) as caught:
        harness()
    return state_of(caught.value)


EXITS = [
    KeyboardInterrupt,
    SystemExit,
    asyncio.CancelledError,
    GeneratorExit,
    CustomExit,
]


class TestAnInterruptedAttempt:
    @pytest.mark.parametrize("exit_", EXITS)
    def test_leaves_the_envelope_unchanged(self, exit_):
        def fail():
            raise exit_

        events = []
        policy = HOURLY.replace(observers=[events.append])
        harness = JobHarness("sync", fail, policy)
        harness.envelope = failed_envelope(2, HOURLY)
        before = harness.envelope.to_dict()
        state = interrupted(harness, exit_)
        assert harness.envelope.to_dict() == before
        assert state.stop_reason is StopReason.CANCELLED
        emitted = [(type(event).__name__, event.state.attempt) for event in events]
        assert emitted == [("AttemptStarted", 3), ("GaveUp", 3)]
        assert harness.envelope.key == "job-7:3", "it will be repeated"

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
            return envelope, events[-1].state.stop_reason

        started, events = asyncio.Event(), []
        with observe(events.append):
            envelope, reason = asyncio.run(main())
        assert reason is StopReason.CANCELLED
        assert (envelope.status, envelope.failed_attempts) == ("waiting", 0)

    def test_includes_an_interrupted_budget(self):
        class Slow(Budget):
            balance = 1.0

            def withdraw(self, _error):
                raise KeyboardInterrupt

            def deposit(self, cost):
                raise AssertionError

        harness = JobHarness("sync", fail_to_connect, HOURLY.replace(budget=Slow()))
        state = interrupted(harness, KeyboardInterrupt)
        assert (state.stop_reason, len(state.failures)) == (StopReason.CANCELLED, 1)
        assert harness.envelope.failed_attempts == 0

    def test_leaves_nothing_in_its_context(self):
        def fail():
            raise KeyboardInterrupt

        interrupted(JobHarness("sync", fail), KeyboardInterrupt)
        with pytest.raises(LookupError):
            idempotency_key()
        with pytest.raises(LookupError):
            current_state()


class TestANestedAttempt:
    def test_leaves_the_call_unchanged(self):
        harness = JobHarness("sync", fail_to_connect)

        def fetch():
            attempt = harness.job.attempt(harness.envelope, [], {})
            return attempt.envelope.state.name, current_state().name

        assert Policy(name="outer").call(fetch) == ("job-7", "outer")

    def test_sees_the_deadline_of_that_call(self):
        def remaining():
            return current_state().remaining

        harness = JobHarness("sync", remaining)
        policy = Policy(max_elapsed=50)
        with virtual_time():
            assert policy.call(harness.attempt).result == 50.0


class TestObservers:
    def test_are_notified_that_the_job_is_suspended(self, make_job):
        outcomes = iter([ConnectionError("one"), ConnectionError("two"), None])

        def fetch():
            error = next(outcomes)
            if error:
                raise error

        events = []
        harness = make_job(fetch)
        with observe(
            lambda event: events.append((type(event).__name__, key_of(event)))
        ):
            while harness.envelope.status == "waiting":
                harness.envelope = harness().envelope
        assert events == [
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

    def test_that_raise_do_not_fail_the_job(self, make_job):
        def broken(_event):
            raise ZeroDivisionError

        attempt = make_job(fail_to_connect, HOURLY.replace(observers=[broken]))()
        assert attempt.envelope.status == "waiting"

    def test_see_the_id_of_the_job(self, make_job):
        events = []
        make_job(fail_to_connect, HOURLY.replace(observers=[events.append]))()
        assert {event.state.name for event in events} == {"job-7"}


def key_of(event):
    """Return the idempotency key that an observer can read."""
    assert idempotency_key().endswith(f":{event.state.attempt}")
    return idempotency_key()


class TestAttemptTimeout:
    def test_a_coroutine_is_cancelled_after_its_timeout(self):
        async def hang():
            await asyncio.Event().wait()

        job = Job(hang, HOURLY.replace(attempt_timeout=5))
        with virtual_time() as clock:
            attempt = attempt_when_due(job, job.envelope("job-7"), clock)
        assert attempt.envelope.status == "waiting"
        assert attempt.envelope.counts == {"retrykit.errors.AttemptTimeout": 1}
        assert attempt.envelope.state.elapsed_at_end == 5.0

    def test_a_coroutine_gives_up_after_the_last_timeout(self):
        async def hang():
            await asyncio.Event().wait()

        policy = HOURLY.replace(attempt_timeout=5, max_attempts=1)
        job = Job(hang, policy)
        with virtual_time() as clock:
            attempt = attempt_when_due(job, job.envelope("job-7"), clock)
        assert isinstance(attempt.error, AttemptTimeout)

    def test_a_function_receives_its_timeout(self):
        def fetch(timeout):
            return timeout

        policy = HOURLY.replace(attempt_timeout=AsArgument(5))
        assert JobHarness("sync", fetch, policy)().result == 5.0

    def test_a_function_without_such_a_parameter_is_rejected(self):
        with pytest.raises(ConfigError, match="attempt_timeout must be None"):
            Job(fail_to_connect, HOURLY.replace(attempt_timeout=5))

    def test_nested_calls_see_the_deadline(self):
        policy = HOURLY.replace(max_elapsed="4h")
        remaining = []

        def fetch():
            remaining.append(
                Policy(max_elapsed=None).call(lambda: current_state().remaining)
            )
            fail_to_connect()

        harness = JobHarness("sync", fetch, policy)
        with virtual_time() as clock:
            for _ in range(2):
                harness.envelope = attempt_when_due(
                    harness.job, harness.envelope, clock
                ).envelope
        assert remaining == [4 * 3600, 3 * 3600]


class TestLimitsOfTests:
    @staticmethod
    def attempt(harness, block):
        with virtual_time() as clock, block:
            outcome = attempt_when_due(harness.job, harness.envelope, clock)
        harness.envelope = outcome.envelope
        return harness.envelope.status

    def test_a_job_without_retries_fails_at_once(self, make_job):
        harness = make_job(fail_to_connect)
        assert self.attempt(harness, disable_retries()) == "dead"

    def test_a_job_without_retries_returns_any_result(self, make_job):
        harness = make_job(int, HOURLY.replace(on_result=lambda _: True))
        assert self.attempt(harness, disable_retries()) == "succeeded"

    def test_a_job_has_at_most_the_attempts_that_tests_allow(self, make_job):
        harness = make_job(fail_to_connect)
        assert self.attempt(harness, limit_retries(2)) == "waiting"
        assert self.attempt(harness, limit_retries(2)) == "dead"


def test_an_attempt_may_begin_before_it_is_due(caplog):
    """As an operator asks for it, also where time alone ends the job."""
    policy = Policy(schedule=s.constant("1h"), max_attempts=None, max_elapsed="1d")
    job = Job(fail_to_connect, policy, "verify")
    with virtual_time():
        waiting = job.attempt(job.envelope("job-7"), [], {}).envelope
        assert job.attempt(waiting, [], {}).envelope.failed_attempts == 2
    assert "is sleep mocked" not in caplog.text


def test_a_job_makes_all_its_attempts():
    envelope = failed_envelope(76, PATIENT)
    assert (envelope.status, envelope.failed_attempts) == ("dead", 76)
    assert envelope.state.elapsed == 75 * 3600
