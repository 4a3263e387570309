"""The log record of every scheduled retry."""

import asyncio
import errno
import gc
import logging
import os
import pickle
import sys
import threading
from contextlib import suppress

import pytest

from retrykit import (
    Policy,
    RetryError,
    Rule,
    aretry,
    aretrying,
    current_state,
    observe,
    retry,
    retrying,
    with_policy,
)
from retrykit._core import retry_log
from retrykit.durable import Job
from retrykit.integrations.logging import observer
from retrykit.schedules import constant
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


def test_escape_sequences_do_not_act_on_a_terminal(backend, clock, flaky, records):
    policy = POLICY.replace(name="a\nb")
    backend(policy)(flaky(OSError("\x1b[31mred\u202e")))()
    [(_, _, text)] = records()
    assert text.startswith(r"retrying a\nb in 2.4 s after OSError: \x1b[31mred\u202e (")


def test_each_scheduled_retry_is_a_warning(backend, clock, flaky, records):
    policy = POLICY.replace(max_attempts=3)
    assert backend(policy)(flaky(ConnectionError("refused"), OSError()))() == "done"
    assert records() == [
        line("2.4 s after ConnectionError: refused (attempt 2 of 3)"),
        line("1 min 30 s after OSError (attempt 3 of 3)"),
    ]


def test_an_error_is_logged_on_one_line(clock, flaky, records):
    POLICY.call(flaky(OSError("a\n b")))
    assert records() == [line("2.4 s after OSError: a b (attempt 2 of 3)")]


def test_joined_limits_tell_no_last_attempt(clock, flaky, records):
    policy = POLICY.replace(limits="all", max_attempts=2, max_elapsed="1h")
    policy.call(flaky(OSError()))
    assert records() == [line("2.4 s after OSError (attempt 2)")]


def test_a_rejected_result_is_not_shown(clock, flaky, records):
    policy = POLICY.replace(on_result=lambda x: x == "secret")
    policy.call(flaky("secret"))
    assert records() == [line("2.4 s after a rejected result (attempt 2 of 3)")]


class Response:
    """A response of an HTTP client."""

    def __init__(self, status):
        self.status_code = status


@pytest.mark.parametrize(
    ("status", "shown"),
    [(503, "status 503"), (7, "a rejected result (status 7)")],
)
def test_a_rejected_response_is_shown_by_its_status(
    clock, flaky, records, status, shown
):
    policy = POLICY.replace(on_result=lambda x: isinstance(x, Response))
    policy.call(flaky(Response(status)))
    assert records() == [line(f"2.4 s after {shown} (attempt 2 of 3)")]


@pytest.mark.parametrize(
    ("redact", "shown"),
    [(True, "GET here:8080/a"), (False, "GET http://here:8080/a?token=1")],
)
def test_a_request_is_named_without_its_query(clock, records, redact, shown):
    def get():
        state = current_state()
        # As the transports do.
        state._record.request = "GET", "http://here:8080/a?token=1"
        if state.attempt == 1:
            raise OSError

    POLICY.replace(redact=redact).call(get)
    [(_, _, text)] = records()
    assert text == f"retrying {shown} in 2.4 s after OSError (attempt 2 of 3)"


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
        line("2.4 s after OSError (attempt 2 of 3)"),
        (*line("")[:2], "retrying job-7 in 2.4 s after OSError (attempt 2 of 3)"),
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
    assert records() == [line("2.4 s after OSError (attempt 2 of 3)")]


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
    assert "an observer of RetryScheduled failed" in caplog.text


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
    assert records() == [line("2.4 s after OSError (attempt 2 of 3)")]


def test_a_process_that_cannot_import_logging_retries_without_a_log(
    monkeypatch, clock, flaky, records
):
    """As one that can open no more files."""

    def no_files():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(retry_log, "_retry_log", no_files)
    monkeypatch.setattr(retry_log, "_log", None)
    assert POLICY.call(flaky(OSError(), OSError())) == "done"
    assert records() == []


POLL = POLICY.replace(on=(), on_result=lambda status: status != "done")


def test_polling_is_logged_at_the_level_debug(backend, clock, flaky, records):
    assert backend(POLL)(flaky("queued"))() == "done"
    text = "retrying fetch in 2.4 s after a rejected result (attempt 2 of 3)"
    assert records() == [("retrykit.retries", logging.DEBUG, text)]


def test_polling_is_not_logged_at_the_level_of_warnings(clock, flaky, records, caplog):
    caplog.set_level("INFO", "retrykit.retries")
    POLL.call(flaky("queued"))
    assert records() == []


def test_a_policy_for_errors_and_results_warns_of_both(clock, flaky, records):
    POLL.replace(on=OSError).call(flaky("queued", OSError()))
    assert [level for _, level, _ in records()] == [logging.WARNING] * 2


def test_a_poll_that_retries_errors_by_a_rule_warns_of_them(clock, flaky, records):
    rules = [Rule(on=OSError, schedule=[1])]
    policy = POLL.replace(rules=rules, max_attempts=4)
    policy.call(flaky("queued", OSError()))
    policy.replace(observers=[observer()]).call(flaky("queued", OSError()))
    levels = [level for _, level, text in records() if "retrying" in text]
    assert levels == [logging.DEBUG, logging.WARNING] * 2


def test_an_observer_logs_polls_at_debug_or_at_its_own_level(clock, flaky, records):
    for levels in (None, {"retry_scheduled": "INFO"}):
        POLL.replace(observers=[observer(levels=levels)]).call(flaky("queued"))
    levels = [level for _, level, text in records() if "retrying" in text]
    assert levels == [logging.DEBUG, logging.INFO]


def test_the_end_of_a_poll_is_an_error_of_the_observer(clock, flaky, records):
    with pytest.raises(RetryError):
        POLL.replace(observers=[observer()]).call(flaky(*["queued"] * 3))
    levels = [level for _, level, _ in records()]
    assert levels == [logging.DEBUG, logging.DEBUG, logging.ERROR]


TOTALS = {
    "a list": ({"schedule": [1, 2]}, " of 3"),
    "an endless schedule": ({"schedule": constant(1)}, " of 5"),
    "no limit": ({"schedule": constant(1), "max_attempts": None}, ""),
    "taken": ({"schedule": constant(1).take(9)}, " of 10"),
    "a long list": ({"schedule": [1] * 100}, " of 101"),
    "a time": ({"schedule": constant(1), "max_elapsed": "1h"}, ""),
    "rules": ({"schedule": [1, 2], "rules": [Rule(on=KeyError, schedule=[1])]}, ""),
    "user code": ({"schedule": lambda: iter([1, 2])}, ""),
    "a hint": ({"schedule": [1, 2], "hint": lambda _: 1, "hint_jitter": 0}, " of 3"),
}


@pytest.mark.parametrize(("settings", "total"), TOTALS.values(), ids=TOTALS)
def test_the_number_of_attempts_is_shown_where_it_is_known(
    clock, flaky, records, settings, total
):
    if callable(settings["schedule"]):
        settings = settings | {"schedule": two_delays}
    Policy(on=OSError, name="fetch", **settings).call(flaky(OSError()))
    [(_, _, text)] = records()
    assert text == f"retrying fetch in 1 s after OSError (attempt 2{total})"


def two_delays():
    yield from [1, 2]


def here():
    """Return the name of the function that calls this, and the line."""
    frame = sys._getframe(1)  # noqa: SLF001
    return frame.f_code.co_name, frame.f_lineno


@pytest.fixture(params=["the default", "an observer"])
def policy(request):
    """Return a policy whose retries are logged in one way or the other."""
    observers = [observer()] if request.param == "an observer" else []
    return POLICY.replace(observers=observers)


@pytest.fixture
def places(caplog):
    """Return the functions and lines of the records so far."""
    own = ("retrykit", "retrykit.retries")
    return lambda: {(x.funcName, x.lineno) for x in caplog.records if x.name in own}


def test_a_record_has_the_line_that_called_the_function(clock, flaky, policy, places):
    fetch = retry(policy)(flaky(OSError(), OSError()))
    place = fetch(), here()
    assert places() == {place[1]}


def test_a_record_has_the_line_that_called_a_method_or_passed_a_function(
    clock, flaky, policy, places
):
    class Client:
        fetch = retry(policy)(flaky(OSError()))

        @retry(policy)
        def send(self):
            return server()

    server = flaky(OSError())
    lines = [
        (Client().send(), here())[1],
        (Client.fetch(), here())[1],
        (policy.call(flaky(OSError())), here())[1],
        (policy.run(flaky(OSError())), here())[1],
        (with_policy(flaky(OSError()), policy)(), here())[1],
        (retry(policy=lambda: policy)(flaky(OSError()))(), here())[1],
    ]
    assert places() == {*lines}


def test_a_record_has_the_line_of_the_block(clock, flaky, policy, places):
    server = flaky(OSError(), OSError())
    for attempt in retrying(policy):
        line = here()
        with attempt:
            server()
    assert {function for function, _ in places()} == {line[0]}
    assert all(line[1] < number <= line[1] + 2 for _, number in places())


def test_a_record_has_the_line_that_awaits_the_coroutine(loop, flaky, policy, places):
    fetch = aretry(policy.replace(schedule=[0]))(as_coroutine(flaky(OSError())))

    async def user():
        return await fetch(), here()

    _, line = loop(user)
    assert line in places()


def as_coroutine(function):
    async def fetch():
        return function()

    return fetch


# In a browser, the loop is that of the page.
@pytest.mark.needs("sockets")
def test_a_task_of_its_own_has_the_line_that_runs_the_loop(policy, flaky, places):
    fetch = aretry(policy.replace(schedule=[0]))(as_coroutine(flaky(OSError())))
    line = asyncio.run(fetch()), here()
    assert places() == {line[1]}


@pytest.mark.needs("threads")
def test_a_thread_of_its_own_has_a_line_outside_of_the_package(policy, flaky, caplog):
    fetch = retry(policy.replace(schedule=[0]))(flaky(OSError()))
    thread = threading.Thread(target=fetch)
    thread.start()
    thread.join()
    assert {each.module for each in caplog.records} == {"threading"}


def test_the_text_of_a_record_is_made_when_a_handler_asks_for_it(
    clock, flaky, monkeypatch
):
    """A filter, or a handler that writes no text, costs none."""
    made, seen = [], []
    text_of = retry_log.text_of
    monkeypatch.setattr(
        retry_log, "text_of", lambda *args, **_: made.append(args) or text_of(*args)
    )
    logger = logging.getLogger("retrykit.retries")
    unwanted = lambda record: bool(seen.append(record))  # noqa: E731
    logger.addFilter(unwanted)
    try:
        retry(POLICY)(flaky(OSError(), OSError()))()
    finally:
        logger.removeFilter(unwanted)
    assert (len(seen), made) == (2, [])
    first, _ = seen
    text = "retrying fetch in 2.4 s after OSError (attempt 2 of 3)"
    assert (first.getMessage(), first.getMessage()) == (text, text)
    assert len(made) == 1


def test_a_record_that_is_kept_keeps_no_error_once_it_was_read(clock, flaky, caplog):
    retry(POLICY)(flaky(OSError()))()
    [record] = caplog.records
    [message] = record.args
    assert not any(isinstance(x, BaseException) for x in gc.get_referents(message))
    assert str(message) == repr(message) == record.message


def test_a_record_crosses_processes_as_text(clock, flaky, caplog):
    """Handlers of queues and sockets pickle it."""
    retry(POLICY)(flaky(OSError()))()
    [record] = caplog.records
    copied = pickle.loads(pickle.dumps(record))  # noqa: S301  our own
    assert copied.args == ("retrying fetch in 2.4 s after OSError (attempt 2 of 3)",)
    assert copied.getMessage() == record.message


def test_a_record_has_a_format_and_its_arguments(clock, flaky, caplog):
    """Some handlers send a message without arguments as it is, and need a text."""
    retry(POLICY)(flaky(OSError()))()
    [record] = caplog.records
    assert (record.msg, len(record.args)) == ("%s", 1)
