"""A logger of structlog gets the fields of each record, and nothing else changes."""

import logging

import pytest
import structlog

from retrykit import Policy
from retrykit.integrations.logging import observer

pytestmark = pytest.mark.usefixtures("clock")

POLICY = Policy(schedule=[1], on=OSError, name="fetch")
SCHEDULED = {
    "event": "retrying fetch in 1 s after OSError: busy (attempt 2 of 2)",
    "log_level": "warning",
    "retrykit": {
        "name": "fetch",
        "attempt": 1,
        "elapsed": 0.0,
        "delay": 1.0,
        "reason": None,
    },
}
SUCCEEDED = {
    "event": "fetch succeeded after 2 attempts in 1 s",
    "log_level": "info",
    "retrykit": {
        "name": "fetch",
        "attempt": 2,
        "elapsed": 1.0,
        "delay": None,
        "reason": "succeeded",
    },
}


def test_each_record_has_its_level_and_its_fields(flaky):
    with structlog.testing.capture_logs() as entries:
        watch = observer(structlog.get_logger())
        POLICY.replace(observers=[watch]).call(flaky(OSError("busy")))
    assert entries == [SCHEDULED, SUCCEEDED]


def test_what_is_bound_already_stays(flaky):
    with structlog.testing.capture_logs() as entries:
        watch = observer(structlog.get_logger().bind(tenant="acme"))
        POLICY.replace(observers=[watch]).call(flaky(OSError("busy")))
    assert entries == [SCHEDULED | {"tenant": "acme"}, SUCCEEDED | {"tenant": "acme"}]


def test_a_logger_around_one_of_logging_writes_to_it(flaky, caplog):
    caplog.set_level(logging.INFO, "shop")
    log = structlog.wrap_logger(
        logging.getLogger("shop"),
        processors=[structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    policy = POLICY.replace(name="100%s", observers=[observer(log)])
    policy.call(flaky(OSError("busy")))
    assert caplog.messages == [
        "retrying 100%s in 1 s after OSError: busy (attempt 2 of 2)",
        "100%s succeeded after 2 attempts in 1 s",
    ]
    assert caplog.records[0].retrykit["delay"] == 1.0


def test_retries_are_not_logged_a_second_time(flaky, caplog):
    caplog.set_level(logging.WARNING, "retrykit.retries")
    with structlog.testing.capture_logs() as entries:
        watch = observer(structlog.get_logger())
        POLICY.replace(observers=[watch]).call(flaky(OSError("busy")))
    assert len(entries) == 2
    assert caplog.messages == []
