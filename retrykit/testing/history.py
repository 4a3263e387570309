"""The history of a call as a table, for the reader of a failed test.

Plain text, aligned here: it must be told wherever a test fails, and every
library that draws tables would have to be installed there.
"""

from retrykit.durations import readable
from retrykit.state import Failure, RetryState, StopReason

__all__ = ["history"]

_HEAD = ("attempt", "began after", "took", "next after", "outcome")
_GAP = ("...", "", "", "", "")

# Of a longer history the first and the last rows are shown.
_ROWS = 20
_WIDTH = 100


def history(state: RetryState) -> str:
    """Return what happened in a call, one line for each attempt.

    >>> from retrykit import Policy
    >>> from retrykit.testing import Script, virtual_time
    >>> with virtual_time():
    ...     outcome = Policy(schedule=[2], name="fetch").run(Script([OSError, "ok"]))
    >>> print(history(outcome.state))
    fetch succeeded after 2 attempts in 2s
      attempt  began after  took  next after  outcome
      1        0s           0s    2s          OSError
      2        2s           0s                succeeded
    """
    rows = [_row(failure) for failure in state.failures]
    if state.dropped:
        rows.insert(state.max_failures // 2, _GAP)
    if len(rows) > _ROWS:
        rows[_ROWS // 2 : -_ROWS // 2] = [_GAP]
    if not state.failures or state.attempt > state.failures[-1].attempt:
        rows.append(_unfailed(state))
    rows.insert(0, _HEAD)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n  ".join([f"{state.name} {state.describe()}", *lines])


def _row(failure: Failure) -> tuple[str, ...]:
    delay = "" if failure.delay is None else readable(failure.delay)
    outcome = " ".join(failure.describe().split())
    times = readable(failure.started), readable(failure.duration)
    return (str(failure.attempt), *times, delay, outcome[:_WIDTH])


def _unfailed(state: RetryState) -> tuple[str, ...]:
    """Return the row of an attempt that is no failure, or not yet."""
    began = state.attempt_started
    outcome: str = state.status
    if state.stop_reason is StopReason.CANCELLED:
        outcome = "cancelled"
    took = max(state.elapsed - began, 0.0)
    return (str(state.attempt), readable(began), readable(took), "", outcome)
