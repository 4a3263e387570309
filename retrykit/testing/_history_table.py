"""The history of a call as a plain table, for the report of a failed test.

The columns are aligned here, since a library for tables may not be installed where
tests run.
"""

from retrykit._core.failures import result_text
from retrykit._core.retry_state import Failure, RetryState, StopReason
from retrykit._internal.durations import format_duration
from retrykit._internal.error_texts import safe_str
from retrykit._internal.redaction import Redaction

__all__ = ["history"]

_HEAD: tuple[str, ...] = ("attempt", "began after", "took", "next after", "outcome")
_GAP: tuple[str, ...] = ("...", "", "", "", "")

# Of a longer history, the first and the last rows are shown.
_ROWS = 20
_WIDTH = 100


def history(state: RetryState) -> str:
    """Return the history of a call as a table, one row for each attempt.

    >>> from retrykit import Policy
    >>> from retrykit.testing import ScriptedFunction, virtual_time
    >>> with virtual_time():
    ...     fetch = ScriptedFunction([OSError, "ok"])
    ...     outcome = Policy(schedule=[2], name="fetch").run(fetch)
    >>> print(history(outcome.state))
    fetch succeeded after 2 attempts in 2 s
      attempt  began after  took  next after  outcome
      1        0s           0s    2s          OSError
      2        2s           0s                succeeded

    Of more than 20 failures, the first and the last ten are shown. For a running call
    this reads the clock; if the clock raises an error, a line about the error is
    returned in place of the table.
    """
    try:
        return _table(state)
    except Exception as error:  # noqa: BLE001  the clock may be the user's own
        reason = f"{type(error).__name__}: {safe_str(error)}"
        return f"{state.name}: its history cannot be read: {reason}"


def _table(state: RetryState) -> str:
    shown = state.failures
    if len(shown) > _ROWS:
        shown = shown[: _ROWS // 2] + shown[-_ROWS // 2 :]
    rows, last = [_HEAD], 0
    for failure in shown:
        if last < failure.attempt - 1:
            rows.append(_GAP)
        rows.append(_row(failure, redact=state.redact))
        last = failure.attempt
    if last < state.attempt:
        rows.append(_unfailed(state))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n  ".join([f"{state.name} {state.describe()}", *lines])


def _row(failure: Failure, *, redact: Redaction) -> tuple[str, ...]:
    delay = "" if failure.delay is None else format_duration(failure.delay)
    outcome = failure.describe(redact=redact)
    if failure.error is None:
        # In full, since a test report is not a log.
        outcome = f"the result {result_text(failure.result, redact=redact)}"
    outcome = " ".join(outcome.split())
    times = format_duration(failure.started), format_duration(failure.duration)
    if len(outcome) > _WIDTH:
        outcome = f"{outcome[: _WIDTH - 3]}..."
    return (str(failure.attempt), *times, delay, outcome)


def _unfailed(state: RetryState) -> tuple[str, ...]:
    """Return the row of an attempt that has not failed."""
    began = state.attempt_started
    outcome: str = state.status
    if state.stop_reason is StopReason.CANCELLED:
        outcome = "cancelled"
    took = max(state.elapsed - began, 0.0)
    return (
        str(state.attempt),
        format_duration(began),
        format_duration(took),
        "",
        outcome,
    )
