"""A durable job that dies is one event of Sentry, though its engine logs a line."""

import logging

import pytest
import sentry_sdk
from celery.signals import task_failure

from retrykit import Policy
from tests._support import celery_worker, sentry_events
from tests._support.celery_worker import Verify

clock, worker = celery_worker.clock, celery_worker.worker
initialize, sent = sentry_events.initialize, sentry_events.sent


@pytest.fixture
def _captures_failures():
    """Capture the errors of tasks, as the integration of Sentry for Celery does."""

    def capture(exception, **_):
        sentry_sdk.capture_exception(exception)

    task_failure.connect(capture)
    yield
    task_failure.disconnect(capture)


@pytest.mark.usefixtures("_captures_failures")
def test_a_dead_job_is_one_event(worker, clock, sent):
    policy = Policy(schedule=["1h"], on=ConnectionError)
    worker.send(Verify(fails=2), policy)
    worker.handle_next()
    assert sent == []
    worker.advance_to_due(clock)
    worker.handle_next()
    assert [event["tags"]["retry.name"] for event in sent] == ["job-7"]


def test_a_line_about_a_job_that_was_not_reported_is_an_event(sent):
    logging.getLogger("retrykit.durable").error("job-8: dead, its message is unusable")
    assert [event["logentry"]["message"] for event in sent] == [
        "job-8: dead, its message is unusable"
    ]
