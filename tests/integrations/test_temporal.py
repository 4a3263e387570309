"""Activities of Temporal under a policy: each attempt by itself, and no server."""

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

PATIENT = Policy(schedule=["1m", "1h", "1d"], max_elapsed=None, on=ConnectionError)


class Activity:
    """One way to write an activity: blocking, or as a coroutine function."""

    def __init__(self, *, awaited):
        self.awaited = awaited

    def __call__(self, policy, fn, attempt=1, **told):
        """Make one attempt of an activity that does what *fn* does."""
        environment = ActivityEnvironment()
        now = datetime.fromtimestamp(wall(), UTC)
        told = {"scheduled_time": now, "activity_id": "5"} | told
        environment.info = replace(environment.info, attempt=attempt, **told)
        if not self.awaited:
            return environment.run(retried(policy)(fn))

        @retried(policy)
        async def coroutine():
            return fn()

        return asyncio.run(environment.run(coroutine))

    def failed(self, policy, fn, attempt=1, **told):
        """Return what Temporal is told of an attempt that fails."""
        with pytest.raises(ApplicationError) as caught:
            self(policy, fn, attempt, **told)
        return caught.value


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def attempt(request):
    return Activity(awaited=request.param)


def raises(error):
    def fail():
        raise error

    return fail


REFUSED = raises(ConnectionError("refused"))


def as_sent(error):
    """What goes to the server."""
    failure, converter = Failure(), DataConverter.default
    converter.failure_converter.to_failure(error, converter.payload_converter, failure)
    return failure


class TestAnAttempt:
    def test_that_succeeds_returns_the_result(self, attempt):
        assert attempt(PATIENT, lambda: 7) == 7

    def test_that_fails_sets_the_next_delay(self, attempt):
        told = [attempt.failed(PATIENT, REFUSED, number) for number in (1, 2, 3)]
        assert [error.next_retry_delay for error in told] == [
            timedelta(minutes=1),
            timedelta(hours=1),
            timedelta(days=1),
        ]
        assert not any(error.non_retryable or error.details for error in told)

    def test_shows_the_error_of_the_activity(self, attempt):
        refused = ConnectionError("refused")
        told = attempt.failed(PATIENT, raises(refused))
        assert (told.message, told.type) == ("refused", "ConnectionError")
        assert told.cause is refused

    def test_may_reject_a_result(self, attempt):
        policy = PATIENT.replace(on_result=lambda status: status == 503)
        told = attempt.failed(policy, lambda: 503)
        assert (told.message, told.type) == ("a rejected result of type int", None)
        assert told.next_retry_delay == timedelta(minutes=1)

    def test_has_a_number_and_a_key(self, attempt):
        def fn():
            return current_state().attempt, idempotency_key()

        assert attempt(PATIENT, fn, 3) == (3, "test/test-run/5:3")
        alone = {"workflow_id": None, "workflow_run_id": None, "activity_run_id": "r"}
        assert attempt(PATIENT, fn, **alone) == (1, "5/r:1")

    def test_waits_equally_long_on_any_worker(self, attempt):
        policy = Policy(schedule=s.constant(100).full_jitter(), max_elapsed=None)
        delays = [attempt.failed(policy, REFUSED, 2).next_retry_delay for _ in range(2)]
        other = attempt.failed(policy, REFUSED, 2, activity_id="6").next_retry_delay
        assert delays[0] == delays[1] != other


class TestTheLastAttempt:
    def test_is_not_retryable(self, attempt):
        told = attempt.failed(PATIENT, REFUSED, 4)
        assert (told.non_retryable, told.next_retry_delay) == (True, None)
        assert told.type == "ConnectionError"
        assert told.message.startswith("refused; gave up after 4 attempts in ")
        assert told.message.endswith(": the schedule has ended")

    def test_has_the_envelope_in_its_details(self, attempt):
        (kept,) = attempt.failed(PATIENT, REFUSED, 4).details
        envelope = Envelope.from_dict(kept)
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
        assert "no time is left" in late.message

    def test_is_that_of_an_error_that_is_not_retried(self, attempt):
        told = attempt.failed(PATIENT, raises(KeyError("host")))
        assert (told.non_retryable, told.type) == (True, "KeyError")

    def test_may_end_with_a_rejected_result(self, attempt):
        policy = PATIENT.replace(on_result=lambda status: status == 503)
        told = attempt.failed(policy, lambda: 503, 4)
        assert (told.non_retryable, told.type) == (True, "RetryError")
        assert told.message.startswith("test/test-run/5 gave up after 4 attempts in ")
        assert told.message.endswith(
            "has ended; last failure: a rejected result of type int"
        )

    def test_is_not_repeated_if_its_worker_was_lost(self, attempt):
        assert attempt(PATIENT.replace(max_attempts=4), lambda: 7, 4) == 7
        made = []
        told = attempt.failed(PATIENT.replace(max_attempts=4), made.append, 5)
        assert (made, told.non_retryable) == ([], True)
        assert told.message == (
            "test/test-run/5: max attempts reached, and the last was lost"
        )


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


class TestAnActivityMayAsk:
    def test_for_a_delay(self, attempt):
        busy = OSError("busy")
        told = attempt.failed(PATIENT, raises(RetryAfter("90s", busy)))
        assert told.next_retry_delay == timedelta(seconds=90)
        assert (told.type, told.cause) == ("OSError", busy)

    def test_to_give_up(self, attempt):
        revoked = PermissionError("revoked")
        told = attempt.failed(PATIENT, raises(GiveUp(revoked)))
        assert told.non_retryable
        assert (told.type, told.cause) == ("PermissionError", revoked)

    def test_for_a_delay_with_an_application_error(self, attempt):
        own = ApplicationError(
            "busy",
            {"shop": 7},
            type="Busy",
            next_retry_delay=timedelta(seconds=90),
            category=ApplicationErrorCategory.BENIGN,
        )
        told = attempt.failed(PATIENT, raises(own))
        assert (told.message, told.type, told.details) == (
            "busy",
            "Busy",
            ({"shop": 7},),
        )
        assert told.next_retry_delay == timedelta(seconds=90)
        assert told.category is ApplicationErrorCategory.BENIGN

    def test_to_give_up_with_an_application_error(self, attempt):
        own = ApplicationError("revoked", "why", type="Revoked", non_retryable=True)
        told = attempt.failed(PATIENT.replace(on=Exception), raises(own))
        assert (told.non_retryable, told.type, told.cause) == (True, "Revoked", own)
        assert told.details[0] == "why"
        assert Envelope.from_dict(told.details[-1]).status == "dead"

    def test_for_neither(self, attempt):
        own = ApplicationError("busy", type="Busy")
        told = attempt.failed(PATIENT.replace(on=ApplicationError), raises(own))
        assert told.next_retry_delay == timedelta(minutes=1)


class TestCancellation:
    @pytest.mark.parametrize("cancelled", [Cancelled("now"), KeyboardInterrupt()])
    def test_is_raised_unchanged(self, attempt, cancelled):
        heard = []
        policy = Policy(schedule=["1m"], observers=[heard.append])
        with pytest.raises(type(cancelled)) as caught:
            attempt(policy, raises(cancelled))
        assert caught.value is cancelled
        assert heard[-1].state.stop_reason.value == "cancelled"

    def test_of_a_task_is_raised_unchanged(self):
        environment = ActivityEnvironment()

        @retried(PATIENT)
        async def wait():
            environment.cancel()
            await asyncio.Event().wait()

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(environment.run(wait))


class TestWhatIsSent:
    def test_contains_the_delay(self, attempt):
        sent = as_sent(attempt.failed(PATIENT, REFUSED))
        info = sent.application_failure_info
        assert info.next_retry_delay.ToTimedelta() == timedelta(minutes=1)
        assert (info.type, sent.cause.message) == ("ConnectionError", "refused")

    @pytest.mark.parametrize(
        ("delay", "sent"),
        [(0, timedelta(microseconds=1)), (1e300, timedelta(days=36_525))],
    )
    def test_has_a_delay_within_the_limits_of_temporal(self, attempt, delay, sent):
        """One of 0 is not sent, and the backoff of the server would hold."""
        told = attempt.failed(Policy(schedule=[delay], max_elapsed=None), REFUSED)
        info = as_sent(told).application_failure_info
        assert info.next_retry_delay.ToTimedelta() == sent


class TestAnActivityUnderAPolicy:
    def test_keeps_its_definition(self):
        async def verify(host: str, port: int = 443) -> bool:
            return bool(host and port)

        bare, held = (
            activity._Definition.must_from_callable(activity.defn(fn))  # noqa: SLF001  nothing else shows it
            for fn in (verify, retried(PATIENT)(verify))
        )
        assert replace(held, fn=verify) == bare
        assert held.name == "verify"

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
        given = retry_policy(Policy(schedule=schedule, max_elapsed=None))
        assert given.initial_interval == given.maximum_interval == interval
        assert given.backoff_coefficient == 1
