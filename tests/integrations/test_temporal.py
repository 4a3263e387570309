"""Attempts of Temporal activities under a policy, without a server."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import activity
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import (
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError as Cancelled,
)
from temporalio.testing import ActivityEnvironment

from retrykit import GiveUp, Policy, RetryAfter, current_state, schedules as s
from retrykit._internal.clocks import wall
from retrykit.durable import Envelope, idempotency_key
from retrykit.integrations.temporal import retried, retry_policy
from retrykit.testing import virtual_time

PATIENT = Policy(schedule=["1m", "1h", "1d"], on=ConnectionError)


class ActivityKind:
    """An activity as a function or a coroutine function."""

    def __init__(self, *, awaited):
        self.awaited = awaited

    def __call__(self, policy, fn, attempt=1, **info):
        """Make one attempt of an activity that does what *fn* does."""
        environment = ActivityEnvironment()
        now = datetime.fromtimestamp(wall(), UTC)
        info = {"scheduled_time": now, "activity_id": "5"} | info
        environment.info = replace(environment.info, attempt=attempt, **info)
        if not self.awaited:
            return environment.run(retried(policy)(fn))

        @retried(policy)
        async def coroutine():
            return fn()

        return asyncio.run(environment.run(coroutine))

    def failed(self, policy, fn, attempt=1, **info):
        """Return the error that an attempt raises to Temporal."""
        with pytest.raises(ApplicationError) as caught:
            self(policy, fn, attempt, **info)
        return caught.value


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def attempt(request):
    return ActivityKind(awaited=request.param)


def raises(error):
    def fail():
        raise error

    return fail


REFUSED = raises(ConnectionError("refused"))


def to_failure_proto(error):
    """Return the failure message that is sent to the server."""
    failure, converter = Failure(), DataConverter.default
    converter.failure_converter.to_failure(error, converter.payload_converter, failure)
    return failure


class TestAnAttempt:
    def test_that_succeeds_returns_the_result(self, attempt):
        assert attempt(PATIENT, lambda: 7) == 7

    def test_that_fails_sets_the_next_delay(self, attempt):
        errors = [attempt.failed(PATIENT, REFUSED, number) for number in (1, 2, 3)]
        assert [error.next_retry_delay for error in errors] == [
            timedelta(minutes=1),
            timedelta(hours=1),
            timedelta(days=1),
        ]
        assert not any(error.non_retryable or error.details for error in errors)

    def test_shows_the_error_of_the_activity(self, attempt):
        refused = ConnectionError("refused")
        error = attempt.failed(PATIENT, raises(refused))
        assert (error.message, error.type) == ("refused", "ConnectionError")
        assert error.cause is refused

    def test_may_reject_a_result(self, attempt):
        policy = PATIENT.replace(on_result=lambda status: status == 503)
        error = attempt.failed(policy, lambda: 503)
        assert (error.message, error.type) == ("a rejected result of type int", None)
        assert error.next_retry_delay == timedelta(minutes=1)

    def test_has_a_number_and_a_key(self, attempt):
        def fn():
            return current_state().attempt, idempotency_key()

        assert attempt(PATIENT, fn, 3) == (3, "test/test-run/5:3")
        alone = {"workflow_id": None, "workflow_run_id": None, "activity_run_id": "r"}
        assert attempt(PATIENT, fn, **alone) == (1, "5/r:1")

    def test_waits_equally_long_on_any_worker(self, attempt):
        policy = Policy(schedule=s.constant(100).full_jitter())
        delays = [attempt.failed(policy, REFUSED, 2).next_retry_delay for _ in range(2)]
        other = attempt.failed(policy, REFUSED, 2, activity_id="6").next_retry_delay
        assert delays[0] == delays[1] != other


class TestTheLastAttempt:
    def test_is_not_retryable(self, attempt):
        error = attempt.failed(PATIENT, REFUSED, 4)
        assert (error.non_retryable, error.next_retry_delay) == (True, None)
        assert error.type == "ConnectionError"
        assert error.message.startswith("refused; gave up after 4 attempts in ")
        assert error.message.endswith(": the schedule has ended")

    def test_has_the_envelope_in_its_details(self, attempt):
        (details,) = attempt.failed(PATIENT, REFUSED, 4).details
        envelope = Envelope.from_dict(details)
        assert (envelope.status, envelope.key) == ("dead", "test/test-run/5:4")
        assert envelope.counts == {"unknown": 3, "ConnectionError": 1}

    def test_is_that_at_the_deadline(self, attempt):
        policy = PATIENT.replace(max_elapsed="2h")
        with virtual_time():
            begun = wall() - 3000
            due = attempt.failed(policy, REFUSED, 2, scheduled_time=at(begun))
            late = attempt.failed(policy, REFUSED, 2, scheduled_time=at(begun - 1000))
        assert due.next_retry_delay == timedelta(hours=1)
        assert late.non_retryable
        assert "max_elapsed=2h would be exceeded" in late.message

    def test_is_that_of_an_error_that_is_not_retried(self, attempt):
        error = attempt.failed(PATIENT, raises(KeyError("host")))
        assert (error.non_retryable, error.type) == (True, "KeyError")

    def test_may_end_with_a_rejected_result(self, attempt):
        policy = PATIENT.replace(on_result=lambda status: status == 503)
        error = attempt.failed(policy, lambda: 503, 4)
        assert (error.non_retryable, error.type) == (True, "RetryError")
        assert error.message.startswith("test/test-run/5 gave up after 4 attempts in ")
        assert error.message.endswith(
            "has ended; last failure: a rejected result of type int"
        )

    def test_is_not_repeated_if_its_worker_was_lost(self, attempt):
        assert attempt(PATIENT.replace(max_attempts=4), lambda: 7, 4) == 7
        made = []
        error = attempt.failed(PATIENT.replace(max_attempts=4), made.append, 5)
        assert (made, error.non_retryable) == ([], True)
        assert error.message == (
            "test/test-run/5: max attempts reached; the last attempt timed out or "
            "was lost"
        )

    def test_follows_the_last_of_joined_limits(self, attempt):
        policy = PATIENT.replace(max_attempts=2, max_elapsed="2h", limits="all")
        with virtual_time():
            long_ago, soon = at(wall() - 9000), at(wall() - 60)
            early = attempt.failed(policy, REFUSED, 1, scheduled_time=long_ago)
            late = attempt.failed(policy, REFUSED, 2, scheduled_time=long_ago)
            assert attempt(policy, lambda: 7, 3, scheduled_time=soon) == 7
            lost = attempt.failed(policy, lambda: 7, 3, scheduled_time=long_ago)
        assert early.next_retry_delay == timedelta(minutes=1)
        assert (late.non_retryable, lost.non_retryable) == (True, True)
        assert "the last attempt timed out or was lost" in lost.message


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


class TestAnActivityMayAsk:
    def test_for_a_delay(self, attempt):
        busy = OSError("busy")
        error = attempt.failed(PATIENT, raises(RetryAfter("90s", busy)))
        assert error.next_retry_delay == timedelta(seconds=90)
        assert (error.type, error.cause) == ("OSError", busy)

    def test_for_another_attempt_without_a_delay(self, attempt):
        error = attempt.failed(PATIENT, raises(RetryAfter(cause=KeyError("host"))), 2)
        assert error.next_retry_delay == timedelta(hours=1)

    def test_to_give_up(self, attempt):
        revoked = PermissionError("revoked")
        error = attempt.failed(PATIENT, raises(GiveUp(revoked)))
        assert error.non_retryable
        assert (error.type, error.cause) == ("PermissionError", revoked)

    def test_for_a_delay_with_an_application_error(self, attempt):
        own = ApplicationError(
            "busy",
            {"shop": 7},
            type="Busy",
            next_retry_delay=timedelta(seconds=90),
            category=ApplicationErrorCategory.BENIGN,
        )
        error = attempt.failed(PATIENT, raises(own))
        assert (error.message, error.type, error.details) == (
            "busy",
            "Busy",
            ({"shop": 7},),
        )
        assert error.next_retry_delay == timedelta(seconds=90)
        assert error.category is ApplicationErrorCategory.BENIGN

    def test_to_give_up_with_an_application_error(self, attempt):
        own = ApplicationError("revoked", "why", type="Revoked", non_retryable=True)
        error = attempt.failed(PATIENT.replace(on=Exception), raises(own))
        assert (error.non_retryable, error.type, error.cause) == (True, "Revoked", own)
        assert error.details[0] == "why"
        assert Envelope.from_dict(error.details[-1]).status == "dead"

    def test_for_nothing(self, attempt):
        own = ApplicationError("busy", type="Busy")
        error = attempt.failed(PATIENT.replace(on=ApplicationError), raises(own))
        assert error.next_retry_delay == timedelta(minutes=1)


class TestCancellation:
    @pytest.mark.parametrize("cancelled", [Cancelled("now"), KeyboardInterrupt()])
    def test_is_raised_unchanged(self, attempt, cancelled):
        events = []
        policy = Policy(schedule=["1m"], observers=[events.append])
        with pytest.raises(type(cancelled)) as caught:
            attempt(policy, raises(cancelled))
        assert caught.value is cancelled
        assert events[-1].state.stop_reason.value == "cancelled"

    def test_of_a_task_is_raised_unchanged(self):
        environment = ActivityEnvironment()

        @retried(PATIENT)
        async def wait():
            environment.cancel()
            await asyncio.Event().wait()

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(environment.run(wait))


class TestFailureInfo:
    def test_contains_the_delay(self, attempt):
        sent = to_failure_proto(attempt.failed(PATIENT, REFUSED))
        info = sent.application_failure_info
        assert info.next_retry_delay.ToTimedelta() == timedelta(minutes=1)
        assert (info.type, sent.cause.message) == ("ConnectionError", "refused")

    @pytest.mark.parametrize(
        ("delay", "sent"),
        [(0, timedelta(microseconds=1)), (1e300, timedelta(days=36_525))],
    )
    def test_has_a_delay_within_the_limits_of_temporal(self, attempt, delay, sent):
        """A delay of 0 is not sent, and the server's backoff would apply."""
        error = attempt.failed(Policy(schedule=[delay]), REFUSED)
        info = to_failure_proto(error).application_failure_info
        assert info.next_retry_delay.ToTimedelta() == sent


class TestAnActivityUnderAPolicy:
    def test_keeps_its_definition(self):
        async def verify(host: str, port: int = 443) -> bool:
            return bool(host and port)

        plain, decorated = (
            activity._Definition.must_from_callable(activity.defn(fn))  # noqa: SLF001  nothing else shows it
            for fn in (verify, retried(PATIENT)(verify))
        )
        assert replace(decorated, fn=verify) == plain
        assert decorated.name == "verify"

    def test_may_be_a_method(self):
        class Shop:
            @activity.defn
            @retried(PATIENT)
            def sell(self, item):
                return self, item

        shop = Shop()
        assert ActivityEnvironment().run(shop.sell, "tea") == (shop, "tea")


class TestThePolicyOfTheServer:
    def test_is_endless(self):
        assert retry_policy(PATIENT).maximum_attempts == 0

    @pytest.mark.parametrize(
        ("schedule", "interval"),
        [
            (s.constant(8).full_jitter(), timedelta(seconds=8)),
            ([0.2], timedelta(seconds=1)),
            ([], timedelta(seconds=1)),
            ([1e300], timedelta(days=36_525)),
        ],
        ids=["jittered", "short", "none", "long"],
    )
    def test_waits_for_the_first_delay(self, schedule, interval):
        # One attempt needs no delay.
        most = None if schedule else 1
        retry_settings = retry_policy(Policy(schedule=schedule, max_attempts=most))
        assert (
            retry_settings.initial_interval
            == retry_settings.maximum_interval
            == interval
        )
        assert retry_settings.backoff_coefficient == 1
