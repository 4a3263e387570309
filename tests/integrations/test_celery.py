"""Jobs on Celery: one message is one wake-up, and none counts twice."""

import json
from asyncio import CancelledError
from contextlib import suppress

import pytest
from celery import Celery
from celery.exceptions import (
    Ignore,
    Reject,
    SoftTimeLimitExceeded,
    TaskRevokedError,
    WorkerLostError,
)

from retrykit import ConfigError, GiveUp, Policy, RetryAfter, current_state
from retrykit._internal.clocks import wall, wall_clock_override
from retrykit.durable import JobFailed, idempotency_key
from retrykit.integrations.celery import DurableTask, jobs, status
from retrykit.integrations.celery._messages import HEADER
from tests._support import celery_worker, leftovers
from tests._support.celery_worker import HOURLY, InMemoryWorker, Verify

clock, worker = celery_worker.clock, celery_worker.worker


class TestAJob:
    def test_returns_what_the_function_returns(self, worker):
        result = worker.send(Verify(value={"verified": True}))
        assert worker.handle_all() == 1
        assert result.result == {"verified": True}
        assert status(worker.app, "job-7").result == {"verified": True}

    def test_continues_with_another_message_after_a_failure(self, worker, clock):
        verify = Verify(fails=1)
        result = worker.send(verify)
        worker.handle_next()
        assert (result.state, worker.envelope()["counts"]) == (
            "PENDING",
            {"ConnectionError": 1},
        )
        worker.advance_to_due(clock)
        worker.handle_next()
        assert result.result == "verified"
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_waits_in_hops_that_are_not_attempts(self, worker, clock):
        verify = Verify(fails=1)
        worker.send(verify, max_hold="10m")
        worker.handle_next()
        for hop in range(1, 6):
            clock.advance(600)
            [headers] = worker.messages()
            assert headers["retries"] == hop
            worker.handle_next()
        assert verify.keys == ["job-7:1"]
        clock.advance(600)
        worker.handle_next()
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_is_never_held_longer_than_a_hop(self, worker):
        worker.send(Verify(fails=1), max_hold=7)
        worker.handle_next()
        assert worker.hold_time() == pytest.approx(7, abs=1)
        assert worker.envelope()["due"] - wall() == 3600

    def test_waits_no_longer_if_the_clock_is_set_back(self, worker, clock):
        verify = Verify(fails=1)
        clock.advance(86_400)
        worker.send(verify)
        worker.handle_next()
        now = wall_clock_override.get()
        with wall_clock_override.push("a clock", lambda: now() - 86_400):
            worker.handle_next()
            clock.advance(3600)
            worker.handle_next()
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_fails_with_the_reason_when_it_gives_up(self, worker):
        def verify(host):
            raise GiveUp(ValueError(host))

        result = worker.send(verify)
        worker.handle_all()
        assert isinstance(result.result, JobFailed)
        assert str(result.result).endswith("last failure: ValueError: example.com")
        assert (worker.state(), worker.count_dead()) == ("FAILURE", 1)
        assert "gave up" in status(worker.app, "job-7").reason

    def test_fails_if_its_result_is_rejected_too_often(self, worker):
        policy = Policy(max_attempts=1, on_result=lambda result: result == "pending")
        result = worker.send(lambda host: "pending", policy)
        worker.handle_all()
        assert isinstance(result.result, Exception)
        assert status(worker.app, "job-7").status == "dead"

    def test_waits_as_long_as_the_error_requests(self, worker):
        def verify(host):
            raise RetryAfter("3d", ConnectionError())

        worker.send(verify)
        worker.handle_next()
        assert worker.envelope()["due"] - wall() == 3 * 86_400

    def test_is_not_held_if_its_delay_is_zero(self, worker):
        worker.send(Verify(fails=1), HOURLY.replace(schedule=[0]))
        worker.handle_next()
        [headers] = worker.messages()
        assert headers["eta"] is None

    def test_sees_its_state_and_its_request(self, worker):
        def verify(self, host):
            return [self.request.id, current_state().attempt, host]

        sent_to = worker.task(verify, HOURLY, bind=True)
        result = sent_to.apply_async(["example.com"], task_id="job-7")
        worker.handle_all()
        assert result.result == ["job-7", 1, "example.com"]

    def test_may_call_its_own_task(self, worker):
        def countdown(self, count):
            return [count, *(self(count - 1) if count else [])]

        task = worker.task(countdown, HOURLY, bind=True)
        result = task.delay(2)
        assert worker.handle_all() == 1
        assert result.result == [2, 1, 0]

    def test_starts_after_a_countdown_of_any_length(self, worker, clock):
        verify = Verify()
        task = worker.task(verify, HOURLY)
        task.apply_async(task_id="job-7", countdown=30 * 86_400)
        assert worker.hold_time() == pytest.approx(60, abs=1)
        worker.handle_next()
        assert verify.keys == []
        worker.advance_to_due(clock)
        worker.handle_next()
        assert verify.keys == ["job-7:1"]

    def test_starts_at_an_aware_datetime(self, worker):
        from datetime import UTC, datetime

        task = worker.task(lambda: None, HOURLY)
        when = datetime.fromtimestamp(wall() + 86_400, UTC)
        task.apply_async(eta=when)
        assert worker.envelope()["due"] == when.timestamp()

    def test_keeps_the_headers_of_its_sender(self, worker):
        task = worker.task(Verify(fails=1), HOURLY)
        own_headers = {"trace": "abc"}
        task.apply_async(headers=own_headers)
        worker.handle_next()
        [headers] = worker.messages()
        assert (headers["trace"], own_headers) == ("abc", {"trace": "abc"})


class TestAnId:
    def test_of_an_existing_job_starts_no_second_one(self, worker):
        worker.send(Verify(fails=1))
        worker.handle_next()
        worker.app.tasks["verify"].apply_async(["example.com"], task_id="job-7")
        assert len(worker.messages()) == 1

    def test_can_be_sent_again_until_a_worker_has_seen_it(self, worker):
        """Its sender may have been killed between the ledger and the message."""
        verify = Verify()
        worker.send(verify)
        worker.app.tasks["verify"].apply_async(["example.com"], task_id="job-7")
        assert worker.handle_all() == 2
        assert verify.keys == ["job-7:1"]


class TestACall:
    def test_is_the_function(self, worker):
        task = worker.task(lambda host: host.upper(), HOURLY)
        assert task("example.com") == "EXAMPLE.COM"

    def test_is_retried_in_place_in_eager_mode(self, clock):
        tries = []

        def verify():
            tries.append(wall())
            if len(tries) < 3:
                raise ConnectionError
            return "verified"

        worker = InMemoryWorker(task_always_eager=True)
        assert worker.task(verify, HOURLY).delay().result == "verified"
        assert clock.sleeps == [3600, 3600]


class OddError(Exception):
    """An error that can neither be copied nor be printed."""

    def __init__(self, one, two):
        super().__init__()
        self.stored = one, two, lambda: None

    def __str__(self):
        raise LookupError

    __repr__ = __str__


class Stops(BaseException):
    pass


class TestAnErrorOfAJob:
    """A worker of Celery does not survive every class."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda: KeyError("host"),
            lambda: OddError(1, 2),
            lambda: GiveUp(OddError(1, 2)),
            lambda: ExceptionGroup("both", [KeyError(1), OSError(2)]),
            lambda: Ignore("the message"),
            lambda: Reject("the message", requeue=False),
            lambda: Reject("the message", requeue=True),
            lambda: SoftTimeLimitExceeded(9),
            lambda: TaskRevokedError("revoked"),
            lambda: WorkerLostError("lost"),
        ],
        ids=lambda make: repr(type(make())),
    )
    def test_reaches_celery_as_a_failed_job(self, worker, make):
        def verify(host):
            raise make()

        result = worker.send(verify)
        worker.handle_next()
        assert (worker.state(), worker.messages()) == ("FAILURE", [])
        assert type(result.result) is JobFailed
        assert result.result.args == (status(worker.app, "job-7").reason,)
        assert (worker.entry().status, worker.count_dead()) == ("dead", 1)

    @pytest.mark.parametrize(
        "error", [SystemExit(1), KeyboardInterrupt(), Stops(), CancelledError()],
        ids=repr,
    )  # fmt: skip
    def test_that_would_stop_its_worker_fails_the_job_at_once(self, worker, error):
        def verify(host):
            keys.append(idempotency_key())
            raise error

        keys = []
        result = worker.send(verify)
        worker.handle_all()
        assert (keys, type(result.result)) == (["job-7:1"], JobFailed)
        reason = f"the job would have stopped its worker: {error!r}"
        assert status(worker.app, "job-7").reason == reason

    def test_with_wrong_arguments_is_not_started(self, worker):
        @worker.app.task(base=DurableTask, policy=HOURLY, shared=False)
        def verify(host):
            return host

        with pytest.raises(TypeError, match="host"):
            verify.apply_async([], task_id="job-7")
        with pytest.raises(ConfigError, match="job-7"):
            status(worker.app, "job-7")

    def test_that_its_worker_raises_interrupts_the_attempt(self, worker):
        def verify(host):
            # As in the signal handler of a process of its pool.
            exec("raise SystemExit(-241)", {"__name__": "billiard.common"})  # noqa: S102

        worker.send(verify)
        # The pool of this worker has no processes, and cannot lose one.
        with suppress(TypeError):
            worker.handle_next()
        assert (worker.entry().status, worker.count_dead()) == ("running", 0)


class TestAnEnvelope:
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (lambda data: json.dumps(data)[:100], "envelope must be"),
            (lambda data: json.dumps(data | {"version": 99}), "upgrade retrykit"),
            (lambda data: json.dumps(data | {"due": "soon"}), "envelope.due must be"),
            (lambda data: json.dumps(data | {"policy": "other"}), "previous_names"),
            (
                lambda data: json.dumps(data | {"job": "job-8"}),
                "envelope.job must be 'job-7', the job with which it is stored",
            ),
        ],
        ids=["cut off", "newer", "edited", "unknown policy", "of another job"],
    )
    def test_that_is_invalid_goes_to_the_dead_letter_queue(
        self, worker, clock, change, why
    ):
        verify = Verify(fails=5)
        worker.send(verify)
        worker.handle_next()
        worker.advance_to_due(clock)
        worker.handle_next(**{HEADER: change(worker.envelope())})
        report = status(worker.app, "job-7")
        assert (report.status, report.envelope.failed_attempts) == ("dead", 1)
        assert why in report.reason
        assert (worker.state(), worker.count_dead(), worker.messages()) == (
            "FAILURE",
            1,
            [],
        )
        assert verify.keys == ["job-7:1"]
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]

    def test_of_a_renamed_policy_is_accepted(self, worker, clock):
        verify = Verify(fails=1)
        worker.send(verify, previous_names=["once"])
        worker.handle_next()
        worker.advance_to_due(clock)
        worker.handle_next(
            **{HEADER: json.dumps(worker.envelope() | {"policy": "once"})}
        )
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_that_is_something_else_goes_to_the_dead_letter_queue(self, worker):
        task = worker.task(lambda: None, HOURLY)
        worker.app.send_task(task.name, task_id="job-7", headers={HEADER: "{"})
        worker.handle_all()
        report = status(worker.app, "job-7")
        assert (report.status, report.envelope) == ("dead", None)

    def test_is_not_needed_from_a_sender_without_the_task(self, worker, clock):
        verify = Verify(fails=1)
        worker.task(verify, HOURLY)
        worker.app.send_task("verify", task_id="job-7")
        worker.handle_next(killed="acknowledging")
        worker.handle_next()
        worker.handle_next()
        worker.advance_to_due(clock)
        worker.handle_all()
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_is_created_once_for_such_a_sender(self, worker):
        def killed():
            from celery.exceptions import WorkerTerminate

            seeds.append(current_state().seed)
            if len(seeds) == 1:
                raise WorkerTerminate

        seeds = []
        worker.task(killed, HOURLY)
        worker.app.send_task("verify", task_id="job-7")
        worker.handle_all()
        assert len(seeds) == 2
        assert len({*seeds}) == 1

    @pytest.mark.parametrize(
        "make",
        [
            lambda: {"error": ConnectionError("\u62d2" * 10_000)},
            lambda: {"error": ConnectionError("\0" * 10_000)},
            lambda: {"error": ConnectionError("\U0001f30a" * 10_000)},
            lambda: {"value": "\u62d2" * 10_000},
            lambda: {"value": [{"pending": "\u62d2" * 100}] * 1_000},
        ],
        ids=[
            "long errors",
            "odd errors",
            "wide errors",
            "long results",
            "many results",
        ],
    )
    def test_fits_into_the_headers_of_rabbitmq(self, worker, make):
        def verify(host):
            if "value" in make():
                return make()["value"]
            raise make()["error"]

        policy = HOURLY.replace(schedule=[0] * 100, on_result=lambda found: found != [])
        worker.send(verify, policy)
        for _ in range(30):
            worker.handle_next()
        [headers] = worker.messages()
        assert len(headers[HEADER].encode()) < 100_000


class TestUnserializableValues:
    def test_a_result_fails_the_job(self, worker):
        result = worker.send(lambda host: {1, 2})
        worker.handle_all()
        assert "got {1, 2}" in str(result.result)
        assert (status(worker.app, "job-7").status, worker.count_dead()) == ("dead", 1)

    def test_arguments_fail_the_job(self, clock):
        worker = InMemoryWorker(accept_content=["json", "pickle"])
        worker.task(lambda what: Verify(fails=9)(), HOURLY)
        worker.app.send_task("verify", [{1}], task_id="job-7", serializer="pickle")
        worker.handle_all()
        report = status(worker.app, "job-7")
        assert (report.status, report.envelope.failed_attempts) == ("dead", 1)
        assert [each.job for each in jobs(worker.app, status="dead")] == ["job-7"]


def test_a_task_may_be_a_class():
    class Verify(DurableTask):
        name = "verify"
        policy = HOURLY

        def run(self, host):
            return host

    worker = InMemoryWorker()
    task = worker.app.register_task(Verify())
    result = task.delay("example.com")
    worker.handle_all()
    assert result.result == "example.com"


def test_a_task_that_a_test_leaves_to_every_app_is_named_and_removed():
    celery = Celery(set_as_current=False)
    before = leftovers.snapshot()
    celery.task(name="left")(print)
    assert "shared tasks of Celery" in "\n".join(leftovers.restore(before))
    assert leftovers.restore(before) == []
