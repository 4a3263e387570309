"""Facts of a retried stream: items handed out, positions, gaps, failures in a row."""

from collections import deque
from typing import TYPE_CHECKING, Any, final

from retrykit._core.failures import Evaluation, StopReason
from retrykit._internal.frozen import Frozen

if TYPE_CHECKING:
    from retrykit._core.call_record import CallFacts

__all__ = ["StreamFacts", "StreamProgress"]


@final
class StreamProgress(Frozen):
    """The progress of a retried stream so far.

    Attributes:
        items: Number of items that the consumer got, >= 0.
        positions: The arguments with which attempts continued, as dicts keyed by name,
            in order; the last 100 of them.
        gaps: What could not be read again, as the function of `streams.resume` reported
            it in a `Position`; the last 100 of them.
    """

    __slots__ = ("gaps", "items", "positions")
    items: int
    positions: tuple[dict[str, Any], ...]
    gaps: tuple[object, ...]


@final
class StreamFacts:
    """Facts of a stream, written by the code that runs it.

    Args:
        in_a_row: Whether the limits of the policy count failures in a row: each item
            begins a new row.

    Attributes:
        items: Number of items that the consumer got.
        items_before: Number of those items when an attempt last failed; -1 if progress
            without an item was noted since.
        items_continued: Number of those items at the last position.
        attempts_before: Number of attempts before the current row of failures.
        row_began: When that row began, in seconds since the call began.
        positions: The last 100 positions from which attempts continued.
        gaps: The last 100 gaps, as in `StreamProgress`.
        ended_because: Why no further attempt may be made; None if one may.
        kept: What an observer keeps for the stream; a context variable would not do,
            since the consumer of the stream changes the context.
    """

    __slots__ = (
        "attempts_before",
        "ended_because",
        "gaps",
        "in_a_row",
        "items",
        "items_before",
        "items_continued",
        "kept",
        "positions",
        "row_began",
    )

    def __init__(self, *, in_a_row: bool) -> None:
        self.in_a_row = in_a_row
        self.items = self.items_before = self.items_continued = 0
        self.attempts_before = 0
        self.row_began = 0.0
        self.positions: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self.gaps: deque[object] = deque(maxlen=_KEPT)
        self.ended_because: str | None = None
        self.kept: Any = None

    def progress(self) -> StreamProgress:
        """Return the progress of the stream so far."""
        return StreamProgress(self.items, tuple(self.positions), tuple(self.gaps))

    def begin_row(self, record: "CallFacts") -> None:
        """Begin a new row of failures, if there was progress since the last failure.

        All failures are one row unless `in_a_row`.

        Args:
            record: The record of the call, before this failure.
        """
        if self.in_a_row and self.items > self.items_before:
            self.attempts_before = record.attempt - 1
            self.row_began, record.rule_counts = record.elapsed, ()
        self.items_before = self.items

    def note_progress(self) -> None:
        """Begin a new row of failures with the next failure, as after an item."""
        self.items_before = -1

    def row_begins(self, elapsed: float) -> float:
        """Return when the row of failures began, in seconds since the call began.

        Under `in_a_row`, an attempt that has handed out items is not limited: its row
        begins when it fails.
        """
        flows = self.in_a_row and self.items > self.items_before
        return elapsed if flows else self.row_began

    def judge(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation, without a retry if the stream cannot continue."""
        failure, decision, retryable = evaluation
        if self.ended_because is None or isinstance(decision, str):
            return evaluation
        failure = failure._replace(delay=None)
        return Evaluation(failure, StopReason.NOT_RETRYABLE, retryable)


_KEPT = 100
