"""The log lines of the observer that writes to a logger."""

import logging
from types import SimpleNamespace

import pytest

from retrykit import (
    ConfigError,
    GiveUp,
    Policy,
    RetryError,
    RetryState,
    observe,
    resume,
)
from retrykit.durable import Job
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


def test_escape_sequences_do_not_act_on_a_terminal(backend, flaky, log):
    call = backend(POLICY, observers=[observer()], raises="retry_error")
    with pytest.raises(RetryError):
        call(flaky(*[OSError("\x1b[31mred")] * 3))()
    for _, text in log.lines:
        assert r"OSError: \x1b[31mred" in text


def test_each_retry_is_a_warning_and_the_success_an_info(backend, flaky, log):
    backend(POLICY, observers=[observer()])(flaky(OSError("busy"), OSError()))()
    assert log.lines == [
        ("WARNING", "retrying fetch in 1 s after OSError: busy (attempt 2 of 3)"),
        ("WARNING", "retrying fetch in 1 min 40 s after OSError (attempt 3 of 3)"),
        ("INFO", "fetch succeeded after 3 attempts in 1 min 41 s"),
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
    line = "gave up after 3 attempts in 1 min 41 s: the schedule has ended"
    assert log.lines[2:] == [("ERROR", f"fetch {line}; TimeoutError: slow")]
    assert log.fields[-1] == fields(attempt=3, elapsed=101.0, reason="schedule_ended")


def test_a_retry_has_the_maximum_number_of_attempts(backend, flaky, log):
    policy = POLICY.replace(max_attempts=3, observers=[observer()])
    backend(policy)(flaky(OSError("busy")))()
    line = "retrying fetch in 1 s after OSError: busy (attempt 2 of 3)"
    assert log.lines[0] == ("WARNING", line)


@pytest.mark.parametrize(
    "outcome",
    [KeyError("id"), KeyboardInterrupt()],
    ids=["not retryable", "cancelled"],
)
def test_a_call_that_had_nothing_to_retry_is_not_logged(flaky, log, outcome):
    with pytest.raises(type(outcome)):
        POLICY.replace(observers=[observer()]).call(flaky(outcome))
    assert log.lines == []


TWICE = "after 2 attempts in 1 s"


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (
            KeyError("id"),
            f"gave up {TWICE}: the error is not retryable; KeyError: 'id'",
        ),
        (KeyboardInterrupt(), f"was cancelled {TWICE}; OSError"),
        (
            GiveUp(OSError("gone")),
            f"gave up {TWICE}: GiveUp was raised; OSError: gone",
        ),
    ],
    ids=["not retryable", "cancelled", "GiveUp"],
)
def test_a_call_that_ends_after_a_retry_is_an_error(flaky, log, outcome, line):
    with pytest.raises((KeyError, KeyboardInterrupt, OSError)):
        POLICY.replace(observers=[observer()]).call(flaky(OSError(), outcome))
    assert log.lines[1:] == [("ERROR", f"fetch {line}")]


def test_a_first_attempt_that_gives_up_is_an_error(flaky, log):
    with pytest.raises(OSError, match="gone"):
        POLICY.replace(observers=[observer()]).call(flaky(GiveUp(OSError("gone"))))
    assert [level for level, _ in log.lines] == ["ERROR"]


@pytest.mark.usefixtures("quiet")
def test_a_resumed_call_logs_the_error_of_the_other_process(flaky, log):
    outcomes = flaky(OSError("busy"), KeyboardInterrupt())
    events = []
    with pytest.raises(KeyboardInterrupt):
        POLICY.replace(observers=[events.append]).call(outcomes)
    state = RetryState.from_dict(events[-1].state.to_dict())
    with pytest.raises(KeyboardInterrupt):
        resume(flaky(KeyboardInterrupt()), state, POLICY, observers=[observer()])()
    line = "fetch was cancelled after 2 attempts in 1 s; OSError: busy"
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
    line = "gave up after 3 attempts in 1 min 41 s: the schedule has ended"
    assert log.lines == [
        ("WARNING", f"retrying {name} in 1 s after a rejected result (attempt 2 of 3)"),
        (
            "WARNING",
            f"retrying {name} in 1 min 40 s after a rejected result (attempt 3 of 3)",
        ),
        ("ERROR", f"{name} {line}; OSError: busy"),
    ]
    assert "secret" not in str(log.everything)


def test_logs_as_retrykit(flaky, log):
    POLICY.replace(observers=[observer()]).call(flaky(OSError()))
    assert [record["name"] for record in log.everything] == ["retrykit"] * 2


def test_logs_to_the_given_logger(flaky, log):
    watch = observer(logging.getLogger("shop.retries"))
    POLICY.replace(observers=[watch]).call(flaky(OSError()))
    assert [record["name"] for record in log.everything] == ["shop.retries"] * 2


@pytest.mark.usefixtures("quiet")
def test_logs_every_call_of_the_process(flaky, log):
    with observe(observer()):
        POLICY.call(flaky(OSError()))
    POLICY.call(flaky(OSError()))
    assert [level for level, _ in log.lines] == ["WARNING", "INFO"]


def test_percent_signs_in_names_and_messages_are_not_format_directives(flaky, log):
    policy = POLICY.replace(name="100%s", observers=[observer()])
    policy.call(flaky(OSError("at 50%d")))
    line = "retrying 100%s in 1 s after OSError: at 50%d (attempt 2 of 3)"
    assert log.lines[0][1] == line


def test_an_error_whose_str_fails_is_logged(flaky, log):
    class SilentError(OSError):
        def __str__(self):
            raise ZeroDivisionError

    POLICY.replace(observers=[observer()]).call(flaky(SilentError()))
    assert [level for level, _ in log.lines] == ["WARNING", "INFO"]
    assert "SilentError" in log.lines[0][1]


class TestLevels:
    def watch(self, levels):
        return POLICY.replace(observers=[observer(levels=levels)])

    def test_of_the_other_events_are_none_by_default(self, flaky, log):
        levels = {
            "attempt_started": "DEBUG",
            "attempt_failed": "info",
            "retry_scheduled": None,
            "succeeded": logging.CRITICAL,
        }
        self.watch(levels).call(flaky(OSError("busy")))
        assert log.lines == [
            ("DEBUG", "fetch: attempt 1 has started"),
            ("INFO", "fetch: attempt 1 failed; OSError: busy"),
            ("DEBUG", "fetch: attempt 2 has started"),
            ("CRITICAL", "fetch succeeded after 2 attempts in 1 s"),
        ]

    def test_a_level_changes_that_of_its_event_alone(self, flaky, log):
        with pytest.raises(OSError, match="busy"):
            self.watch({"gave_up": "CRITICAL"}).call(flaky(*[OSError("busy")] * 3))
        assert [level for level, _ in log.lines] == ["WARNING", "WARNING", "CRITICAL"]

    @pytest.mark.parametrize("kind", ["gave_up", "succeeded"])
    def test_none_logs_nothing(self, flaky, log, kind):
        outcomes = [OSError()] * (3 if kind == "gave_up" else 1)
        self.watch({kind: None}).run(flaky(*outcomes))
        assert {level for level, _ in log.lines} == {"WARNING"}

    def test_a_success_at_once_has_no_text_at_any_level(self, flaky, log):
        self.watch({"succeeded": "ERROR"}).call(flaky())
        assert log.lines == []

    def test_a_suspended_job_has_a_text(self, log):
        def fail():
            raise OSError("busy")

        job = Job(fail, self.watch({"suspended": "INFO"}))
        job.attempt(job.envelope("job-7"), [], {})
        assert log.lines == [
            ("WARNING", "retrying job-7 in 1 s after OSError: busy (attempt 2 of 3)"),
            (
                "INFO",
                "job-7: attempt 1 failed, and the next one waits in the job engine",
            ),
        ]

    @pytest.mark.parametrize(
        ("levels", "message"),
        [
            ({"retries": "INFO"}, "levels must be one of 'attempt_started', "),
            ({"gave_up": "LOUD"}, r"levels\['gave_up'\] must be a level of logging"),
            ({"gave_up": 20.0}, r"levels\['gave_up'\] must be a level of logging"),
            ({"gave_up": True}, r"levels\['gave_up'\] must be a level of logging"),
            ("INFO", "levels must be a dict"),
            ([("gave_up", 20)], "levels must be a dict"),
        ],
    )
    def test_an_unknown_one_is_an_error(self, levels, message):
        with pytest.raises(ConfigError, match=message):
            observer(levels=levels)


class Lines:
    """A logger with the methods that all loggers have, and no others."""

    def __init__(self):
        self.lines = []
        for name in ("debug", "info", "warning", "error"):
            setattr(self, name, self.method(name))

    def method(self, name):
        return lambda text: self.lines.append((name, text))


class BoundLines(Lines):
    """A logger whose fields are bound to it."""

    def __init__(self):
        super().__init__()
        self.bound = []

    def bind(self, **fields):
        self.bound.append(fields)
        return self


LEVELS = {
    "attempt_started": 5,
    "attempt_failed": "INFO",
    "retry_scheduled": 35,
    "succeeded": "CRITICAL",
}


class TestOtherLoggers:
    @pytest.mark.parametrize("kind", [Lines, BoundLines])
    def test_get_each_record_by_the_method_of_its_level(self, flaky, kind):
        log = kind()
        POLICY.replace(observers=[observer(log, levels=LEVELS)]).call(flaky(OSError()))
        assert log.lines == [
            ("debug", "fetch: attempt 1 has started"),
            ("info", "fetch: attempt 1 failed; OSError"),
            ("warning", "retrying fetch in 1 s after OSError (attempt 2 of 3)"),
            ("debug", "fetch: attempt 2 has started"),
            ("error", "fetch succeeded after 2 attempts in 1 s"),
        ]

    def test_get_the_fields_by_bind(self, flaky):
        log = BoundLines()
        POLICY.replace(observers=[observer(log)]).call(flaky(OSError()))
        assert log.bound == [
            {"retrykit": fields(attempt=1, elapsed=0.0, delay=1.0)},
            {"retrykit": fields(attempt=2, elapsed=1.0, reason="succeeded")},
        ]

    def test_an_adapter_of_logging_is_a_logger_of_logging(self, flaky, log):
        adapter = logging.LoggerAdapter(logging.getLogger("shop.retries"), {})
        watch = observer(adapter, levels={"succeeded": 35})
        POLICY.replace(observers=[watch]).call(flaky(OSError()))
        assert [record["levelno"] for record in log.everything] == [30, 35]

    @pytest.mark.parametrize(
        "logger",
        ["shop", print, logging.Logger, SimpleNamespace(error=print)],
        ids=["name", "function", "type", "error alone"],
    )
    def test_what_is_no_logger_is_an_error(self, logger):
        with pytest.raises(ConfigError, match="logger must be a logger"):
            observer(logger)
