"""A logger of loguru gets the fields of each record."""

import pytest
from loguru import logger

from retrykit import Policy
from retrykit.integrations.logging import observer

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def records():
    """Return the records so far."""
    records = []
    sink = logger.add(lambda message: records.append(message.record), level=0)
    yield records
    logger.remove(sink)


def test_each_record_has_its_level_and_its_fields(flaky, records):
    watch = observer(logger, levels={"attempt_started": "DEBUG"})
    policy = Policy(schedule=[1], on=OSError, name="{fetch}", observers=[watch])
    policy.call(flaky(OSError("busy")))
    assert [(record["level"].name, record["message"]) for record in records] == [
        ("DEBUG", "{fetch}: attempt 1 has started"),
        ("WARNING", "retrying {fetch} in 1 s after OSError: busy (attempt 2 of 2)"),
        ("DEBUG", "{fetch}: attempt 2 has started"),
        ("INFO", "{fetch} succeeded after 2 attempts in 1 s"),
    ]
    delays = [record["extra"]["retrykit"]["delay"] for record in records]
    assert delays == [None, 1.0, None, None]


def test_a_record_has_the_line_that_made_the_call(flaky, records):
    policy = Policy(schedule=[1], on=OSError, observers=[observer(logger)])
    policy.call(flaky(OSError("busy")))
    name = "test_a_record_has_the_line_that_made_the_call"
    assert {record["function"] for record in records} == {name}
