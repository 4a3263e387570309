"""The log lines of the standard library's observer."""

import logging

import pytest

from retrykit import Policy, RetryState, observe, resume
from retrykit.integrations.logging import observer

pytestmark = pytest.mark.usefixtures("clock")

POLICY = Policy(schedule=[1, 100], on=OSError, name="fetch")


class Log:
    """The records so far."""

    def __init__(self, caplog):
        self._caplog = caplog

    @property
    def lines(self):
        return [(r.levelname, r.getMessage()) for r in self._caplog.records]

    @property
    def fields(self):
        return [record.retrykit for record in self._caplog.records]

    @property
    def everything(self):
        return [vars(record) for record in self._caplog.records]


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG, "retrykit")
    caplog.set_level(logging.DEBUG, "shop.retries")
    return Log(caplog)


def fields(**others):
    return {"name": "fetch", "delay": None, "reason": None} | others


def test_a_call_that_succeeds_at_once_is_not_logged(backend, flaky, log):
    backend(POLICY, observers=[observer()])(flaky())()
    assert log.lines == []


def test_each_retry_is_a_warning_and_the_success_an_info(backend, flaky, log):
    backend(POLICY, observers=[observer()])(flaky(OSError("busy"), OSError()))()
    assert log.lines == [
        ("WARNING", "fetch: attempt 1 failed, retrying in 1s; OSError: busy"),
        ("WARNING", "fetch: attempt 2 failed, retrying in 1m40s; OSError"),
        ("INFO", "fetch: succeeded after 3 attempts in 1m41s"),
    ]
    assert log.fields == [
        fields(attempt=1, elapsed=0.0, delay=1.0),
        fields(attempt=2, elapsed=1.0, delay=100.0),
        fields(attempt=3, elapsed=101.0, reason="succeeded"),
    ]


def test_giving_up_is_an_error(backend, flaky, log):
    error = TimeoutError("slow")
    with pytest.raises(TimeoutError):
        backend(POLICY, observers=[observer()])(flaky(error, error, error))()
    line = "gave up after 3 attempts in 1m41s: the schedule has ended"
    assert log.lines[2:] == [("ERROR", f"fetch: {line}; TimeoutError: slow")]
    assert log.fields[-1] == fields(attempt=3, elapsed=101.0, reason="schedule_ended")


@pytest.mark.parametrize(
    ("outcome", "verb", "reason"),
    [
        (KeyError("id"), "gave up", ": the error is not retryable; KeyError: 'id'"),
        (KeyboardInterrupt(), "was cancelled", ""),
    ],
    ids=["not retryable", "cancelled"],
)
def test_a_call_that_ends_without_a_retry_is_logged_as_an_error(
    flaky, log, outcome, verb, reason
):
    with pytest.raises(type(outcome)):
        POLICY.replace(observers=[observer()]).call(flaky(outcome))
    assert log.lines == [("ERROR", f"fetch: {verb} after 1 attempt in 0s{reason}")]


def test_a_resumed_call_logs_the_error_of_the_other_process(flaky, log):
    outcomes = flaky(OSError("busy"), KeyboardInterrupt())
    events = []
    with pytest.raises(KeyboardInterrupt):
        POLICY.replace(observers=[events.append]).call(outcomes)
    state = RetryState.from_dict(events[-1].state.to_dict())
    with pytest.raises(KeyboardInterrupt):
        resume(flaky(KeyboardInterrupt()), state, POLICY, observers=[observer()])()
    line = "fetch: was cancelled after 2 attempts in 1s; OSError: busy"
    assert log.lines == [("ERROR", line)]


def test_arguments_and_results_are_never_logged(backend, log):
    """Errors are logged by type and message."""
    results = iter(["the secret", "the secret"])

    def fetch(_token):
        result = next(results, None)
        if result is None:
            raise OSError("busy")
        return result

    settings = {"on_result": lambda result: "secret" in result, "name": None}
    retried = backend(POLICY, observers=[observer()], **settings)(fetch)
    with pytest.raises(OSError, match="busy"):
        retried("the secret")
    name = f"{__name__}.{fetch.__qualname__}"
    line = "gave up after 3 attempts in 1m41s: the schedule has ended"
    assert log.lines == [
        ("WARNING", f"{name}: attempt 1 failed, retrying in 1s; result rejected"),
        ("WARNING", f"{name}: attempt 2 failed, retrying in 1m40s; result rejected"),
        ("ERROR", f"{name}: {line}; OSError: busy"),
    ]
    assert "secret" not in str(log.everything)


def test_logs_as_retrykit(flaky, log):
    POLICY.replace(observers=[observer()]).call(flaky(OSError()))
    assert [record["name"] for record in log.everything] == ["retrykit"] * 2


def test_logs_to_the_given_logger(flaky, log):
    watch = observer(logging.getLogger("shop.retries"))
    POLICY.replace(observers=[watch]).call(flaky(OSError()))
    assert [record["name"] for record in log.everything] == ["shop.retries"] * 2


def test_logs_every_call_of_the_process(flaky, log):
    with observe(observer()):
        POLICY.call(flaky(OSError()))
    POLICY.call(flaky(OSError()))
    assert [level for level, _ in log.lines] == ["WARNING", "INFO"]


def test_percent_signs_in_names_and_messages_are_not_format_directives(flaky, log):
    policy = POLICY.replace(name="100%s", observers=[observer()])
    policy.call(flaky(OSError("at 50%d")))
    assert (
        log.lines[0][1] == "100%s: attempt 1 failed, retrying in 1s; OSError: at 50%d"
    )


def test_an_error_whose_str_fails_is_logged(flaky, log):
    class SilentError(OSError):
        def __str__(self):
            raise ZeroDivisionError

    POLICY.replace(observers=[observer()]).call(flaky(SilentError()))
    assert [level for level, _ in log.lines] == ["WARNING", "INFO"]
    assert "SilentError" in log.lines[0][1]
