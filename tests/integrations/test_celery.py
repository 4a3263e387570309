"""Jobs on Celery: one message is one wake-up, and none counts twice."""

import json

import pytest

from retrykit import GiveUp, Policy, RetryAfter, current_state
from retrykit._internal.clocks import wall, wall_clock_override
from retrykit.integrations.celery import DurableTask, dead, status
from retrykit.integrations.celery.messages import HEADER
from tests._support import celery_desk
from tests._support.celery_desk import HOURLY, Desk, Verify

clock, desk = celery_desk.clock, celery_desk.desk


class TestAJob:
    def test_returns_what_the_function_returns(self, desk):
        result = desk.sent(Verify(value={"verified": True}))
        assert desk.work() == 1
        assert result.result == {"verified": True}
        assert status(desk.app, "job-7").result == {"verified": True}

    def test_continues_with_another_message_after_a_failure(self, desk, clock):
        verify = Verify(fails=1)
        result = desk.sent(verify)
        desk.wake()
        assert (result.state, desk.envelope()["counts"]) == (
            "PENDING",
            {"ConnectionError": 1},
        )
        desk.due(clock)
        desk.wake()
        assert result.result == "verified"
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_waits_in_hops_that_are_not_attempts(self, desk, clock):
        verify = Verify(fails=1)
        desk.sent(verify, max_hold="10m")
        desk.wake()
        for hop in range(1, 6):
            clock.advance(600)
            [headers] = desk.lying()
            assert headers["retries"] == hop
            desk.wake()
        assert verify.keys == ["job-7:1"]
        clock.advance(600)
        desk.wake()
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_is_never_held_longer_than_a_hop(self, desk):
        desk.sent(Verify(fails=1), max_hold=7)
        desk.wake()
        assert desk.held() == pytest.approx(7, abs=1)
        assert desk.envelope()["due"] - wall() == 3600

    def test_waits_no_longer_if_the_clock_is_set_back(self, desk, clock):
        verify = Verify(fails=1)
        clock.advance(86_400)
        desk.sent(verify)
        desk.wake()
        now = wall_clock_override.get()
        with wall_clock_override.push("a clock", lambda: now() - 86_400):
            desk.wake()
            clock.advance(3600)
            desk.wake()
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_fails_with_its_own_error_when_it_gives_up(self, desk):
        def verify(host):
            raise GiveUp(ValueError(host))

        result = desk.sent(verify)
        desk.work()
        assert isinstance(result.result, ValueError)
        assert (desk.state(), desk.buried()) == ("FAILURE", 1)
        assert "gave up" in status(desk.app, "job-7").reason

    def test_fails_if_its_result_is_rejected_too_often(self, desk):
        policy = Policy(schedule=[], on_result=lambda result: result == "pending")
        result = desk.sent(lambda host: "pending", policy)
        desk.work()
        assert isinstance(result.result, Exception)
        assert status(desk.app, "job-7").status == "dead"

    def test_waits_as_long_as_the_error_requests(self, desk):
        def verify(host):
            raise RetryAfter("3d", ConnectionError())

        desk.sent(verify)
        desk.wake()
        assert desk.envelope()["due"] - wall() == 3 * 86_400

    def test_is_not_held_if_its_delay_is_zero(self, desk):
        desk.sent(Verify(fails=1), HOURLY.replace(schedule=[0]))
        desk.wake()
        [headers] = desk.lying()
        assert headers["eta"] is None

    def test_sees_its_state_and_its_request(self, desk):
        def verify(self, host):
            return [self.request.id, current_state().attempt, host]

        sent_to = desk.task(verify, HOURLY, bind=True)
        result = sent_to.apply_async(["example.com"], task_id="job-7")
        desk.work()
        assert result.result == ["job-7", 1, "example.com"]

    def test_may_call_its_own_task(self, desk):
        def countdown(self, left):
            return [left, *(self(left - 1) if left else [])]

        task = desk.task(countdown, HOURLY, bind=True)
        result = task.delay(2)
        assert desk.work() == 1
        assert result.result == [2, 1, 0]

    def test_starts_after_a_countdown_of_any_length(self, desk, clock):
        verify = Verify()
        task = desk.task(verify, HOURLY)
        task.apply_async(task_id="job-7", countdown=30 * 86_400)
        assert desk.held() == pytest.approx(60, abs=1)
        desk.wake()
        assert verify.keys == []
        desk.due(clock)
        desk.wake()
        assert verify.keys == ["job-7:1"]

    def test_starts_at_an_aware_datetime(self, desk):
        from datetime import UTC, datetime

        task = desk.task(lambda: None, HOURLY)
        when = datetime.fromtimestamp(wall() + 86_400, UTC)
        task.apply_async(eta=when)
        assert desk.envelope()["due"] == when.timestamp()

    def test_keeps_the_headers_of_its_sender(self, desk):
        task = desk.task(Verify(fails=1), HOURLY)
        given = {"trace": "abc"}
        task.apply_async(headers=given)
        desk.wake()
        [headers] = desk.lying()
        assert (headers["trace"], given) == ("abc", {"trace": "abc"})


class TestAnId:
    def test_of_an_existing_job_starts_no_second_one(self, desk):
        desk.sent(Verify(fails=1))
        desk.wake()
        desk.app.tasks["verify"].apply_async(["example.com"], task_id="job-7")
        assert len(desk.lying()) == 1

    def test_can_be_sent_again_until_a_worker_has_seen_it(self, desk):
        """Its sender may have been killed between the ledger and the message."""
        verify = Verify()
        desk.sent(verify)
        desk.app.tasks["verify"].apply_async(["example.com"], task_id="job-7")
        assert desk.work() == 2
        assert verify.keys == ["job-7:1"]


class TestACall:
    def test_is_the_function(self, desk):
        task = desk.task(lambda host: host.upper(), HOURLY)
        assert task("example.com") == "EXAMPLE.COM"

    def test_is_retried_in_place_in_eager_mode(self, clock):
        tries = []

        def verify():
            tries.append(wall())
            if len(tries) < 3:
                raise ConnectionError
            return "verified"

        desk = Desk(task_always_eager=True)
        assert desk.task(verify, HOURLY).delay().result == "verified"
        assert clock.sleeps == [3600, 3600]


class TestAnEnvelope:
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (lambda kept: json.dumps(kept)[:100], "envelope must be"),
            (lambda kept: json.dumps(kept | {"version": 99}), "upgrade retrykit"),
            (lambda kept: json.dumps(kept | {"due": "soon"}), "envelope must be"),
            (lambda kept: json.dumps(kept | {"policy": "other"}), "previous_names"),
        ],
        ids=["cut off", "newer", "edited", "unknown policy"],
    )
    def test_that_is_invalid_goes_to_the_dead_letter_queue(
        self, desk, clock, change, why
    ):
        verify = Verify(fails=5)
        desk.sent(verify)
        desk.wake()
        desk.due(clock)
        desk.wake(**{HEADER: change(desk.envelope())})
        report = status(desk.app, "job-7")
        assert (report.status, report.envelope.failed) == ("dead", 1)
        assert why in report.reason
        assert (desk.state(), desk.buried(), desk.lying()) == ("FAILURE", 1, [])
        assert verify.keys == ["job-7:1"]

    def test_of_a_renamed_policy_is_accepted(self, desk, clock):
        verify = Verify(fails=1)
        desk.sent(verify, previous_names=["once"])
        desk.wake()
        desk.due(clock)
        desk.wake(**{HEADER: json.dumps(desk.envelope() | {"policy": "once"})})
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_that_is_something_else_goes_to_the_dead_letter_queue(self, desk):
        task = desk.task(lambda: None, HOURLY)
        desk.app.send_task(task.name, task_id="job-7", headers={HEADER: "{"})
        desk.work()
        report = status(desk.app, "job-7")
        assert (report.status, report.envelope) == ("dead", None)

    def test_is_not_needed_from_a_sender_without_the_task(self, desk, clock):
        verify = Verify(fails=1)
        desk.task(verify, HOURLY)
        desk.app.send_task("verify", task_id="job-7")
        desk.wake(killed="acknowledging")
        desk.wake()
        desk.wake()
        desk.due(clock)
        desk.work()
        assert verify.keys == ["job-7:1", "job-7:2"]

    def test_is_created_once_for_such_a_sender(self, desk):
        def killed():
            from celery.exceptions import WorkerTerminate

            seeds.append(current_state().seed)
            if len(seeds) == 1:
                raise WorkerTerminate

        seeds = []
        desk.task(killed, HOURLY)
        desk.app.send_task("verify", task_id="job-7")
        desk.work()
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
    def test_fits_into_the_headers_of_rabbitmq(self, desk, make):
        def verify(host):
            if "value" in make():
                return make()["value"]
            raise make()["error"]

        policy = HOURLY.replace(schedule=[0] * 100, on_result=lambda found: found != [])
        desk.sent(verify, policy)
        for _ in range(30):
            desk.wake()
        [headers] = desk.lying()
        assert len(headers[HEADER].encode()) < 100_000


class TestWhatCannotBeSaid:
    def test_fails_the_job_as_its_result(self, desk):
        result = desk.sent(lambda host: {1, 2})
        desk.work()
        assert "got {1, 2}" in str(result.result)
        assert (status(desk.app, "job-7").status, desk.buried()) == ("dead", 1)

    def test_fails_the_job_as_its_arguments(self, clock):
        desk = Desk(accept_content=["json", "pickle"])
        desk.task(lambda what: Verify(fails=9)(), HOURLY)
        desk.app.send_task("verify", [{1}], task_id="job-7", serializer="pickle")
        desk.work()
        report = status(desk.app, "job-7")
        assert (report.status, report.envelope.failed) == ("dead", 1)
        assert [each.job for each in dead(desk.app)] == ["job-7"]


def test_a_task_may_be_a_class():
    class Verify(DurableTask):
        name = "verify"
        policy = HOURLY

        def run(self, host):
            return host

    desk = Desk()
    task = desk.app.register_task(Verify())
    result = task.delay("example.com")
    desk.work()
    assert result.result == "example.com"
