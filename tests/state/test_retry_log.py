"""The log record of every scheduled retry."""

import errno
import logging
import os
import threading
from contextlib import suppress

import pytest

from retrykit import Policy, aretrying, observe, retry, retrying
from retrykit.durable import Job
from retrykit.integrations.logging import observer
from retrykit.state import retry_log
from retrykit.testing import ScriptedFunction, limit_retries

POLICY = Policy(schedule=[2.4, 90], on=OSError, name="fetch")


@pytest.fixture(autouse=True)
def records(caplog):
    """Return the records of retrykit, as (logger, level, message)."""
    caplog.set_level("DEBUG")
    caplog.set_level("DEBUG", "retrykit.retries")
    return lambda: [each for each in caplog.record_tuples if each[0] != "asyncio"]


def line(text):
    return "retrykit.retries", logging.WARNING, f"retrying fetch in {text}"


def test_each_scheduled_retry_is_a_warning(backend, clock, flaky, records):
    policy = POLICY.replace(max_attempts=3)
    assert backend(policy)(flaky(ConnectionError("refused"), OSError()))() == "done"
    assert records() == [
        line("2.4 s after ConnectionError: refused (attempt 2 of 3)"),
        line("1 min 30 s after OSError (attempt 3 of 3)"),
    ]


def test_without_a_limit_of_attempts_their_number_is_left_out(clock, flaky, records):
    POLICY.call(flaky(OSError("a\n b")))
    assert records() == [line("2.4 s after OSError: a b (attempt 2)")]


def test_joined_limits_tell_no_last_attempt(clock, flaky, records):
    policy = POLICY.replace(limits="all", max_attempts=2, max_elapsed="1h")
    policy.call(flaky(OSError()))
    assert records() == [line("2.4 s after OSError (attempt 2)")]


def test_a_rejected_result_is_not_shown(clock, flaky, records):
    policy = POLICY.replace(on_result=lambda x: x == "secret")
    policy.call(flaky("secret"))
    assert records() == [line("2.4 s after a rejected result (attempt 2)")]


def test_nothing_else_is_logged(backend, clock, flaky, records):
    for outcome in ("data", OSError(), KeyError("id"), KeyboardInterrupt()):
        with suppress(OSError, KeyError, KeyboardInterrupt):
            backend(POLICY, max_attempts=1)(flaky(outcome))()
    assert records() == []


def test_blocks_and_jobs_are_logged_too(clock, flaky, records):
    fetch = flaky(OSError())
    for attempt in retrying(POLICY):
        with attempt:
            fetch()
    job = Job(ScriptedFunction([OSError()]), POLICY, "job")
    job.attempt(job.envelope("job-7"), (), {})
    assert records() == [
        line("2.4 s after OSError (attempt 2)"),
        (*line("")[:2], "retrying job-7 in 2.4 s after OSError (attempt 2)"),
    ]


def test_it_has_the_fields_of_the_observer(clock, flaky, caplog):
    POLICY.call(flaky(OSError()))
    assert caplog.records[0].retrykit == {
        "name": "fetch",
        "attempt": 1,
        "elapsed": 0.0,
        "delay": 2.4,
        "reason": None,
    }


def test_one_line_switches_it_off(clock, flaky, records, caplog):
    caplog.set_level("ERROR", "retrykit.retries")
    POLICY.call(flaky(OSError()))
    assert records() == []


def test_an_observer_that_logs_replaces_it(clock, flaky, records):
    POLICY.replace(observers=[observer()]).call(flaky(OSError()))
    with observe(observer()):
        POLICY.call(flaky(OSError()))
    loggers = {logger for logger, _, _ in records()}
    assert loggers == {"retrykit"}
    POLICY.replace(observers=[print]).call(flaky(OSError()))
    assert records()[-1][0] == "retrykit.retries"


def test_an_observer_that_logs_retries_alone_replaces_it(clock, flaky, records):
    hooks = {"retry_scheduled": observer(), "gave_up": print}
    POLICY.replace(observers=hooks).call(flaky(OSError()))
    assert [logger for logger, _, _ in records()] == ["retrykit"]


def test_an_observer_that_logs_the_end_alone_does_not_replace_it(clock, flaky, records):
    POLICY.replace(observers={"gave_up": observer()}).call(flaky(OSError()))
    assert records() == [line("2.4 s after OSError (attempt 2)")]


def test_a_handler_that_retries_is_not_told_of_its_own_calls(clock, flaky):
    sent = []

    class Sending(logging.Handler):
        def emit(self, record):
            sent.append(record.getMessage())
            POLICY.replace(name="send").call(flaky(OSError()))

    handler = Sending()
    logging.getLogger("retrykit").addHandler(handler)
    try:
        POLICY.call(flaky(OSError()))
    finally:
        logging.getLogger("retrykit").removeHandler(handler)
    assert [text.split()[1] for text in sent] == ["fetch"]


def test_a_handler_that_fails_does_not_hurt_the_call(clock, flaky, caplog):
    class Broken(logging.Filter):
        def filter(self, record):
            raise LookupError

    broken = Broken()
    log = logging.getLogger("retrykit.retries")
    log.addFilter(broken)
    try:
        assert POLICY.call(flaky(OSError())) == "done"
    finally:
        log.removeFilter(broken)
    assert "LookupError" in caplog.text


def test_the_errors_of_requests_are_redacted(clock, flaky, records):
    POLICY.call(flaky(OSError("http://user:secret@host/path?token=secret")))
    assert "secret" not in records()[0][2]


@pytest.mark.needs("threads")
def test_threads_are_logged_alike(flaky, records):
    def run():
        POLICY.replace(schedule=[0]).call(flaky(OSError()))

    with limit_retries(process_wide=True):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(records()) == 4


def test_decorated_functions_are_named(clock, flaky, records):
    @retry(schedule=[1])
    def download(left=[1]):  # noqa: B006  counts
        if left.pop() if left else 0:
            raise OSError

    download()
    (record,) = records()
    assert "test_retry_log.test_decorated_functions_are_named" in record[2]


def test_async_blocks_are_logged_too(clock, loop, flaky, records):
    fetch = flaky(OSError())

    async def main():
        async for attempt in aretrying(POLICY):
            with attempt:
                fetch()

    loop(main)
    assert records() == [line("2.4 s after OSError (attempt 2)")]


def test_a_process_that_cannot_import_logging_retries_without_a_log(
    monkeypatch, clock, flaky, records
):
    """As one that can open no more files."""

    def no_files():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(retry_log, "_retry_log", no_files)
    assert POLICY.call(flaky(OSError(), OSError())) == "done"
    assert records() == []
