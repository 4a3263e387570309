"""Why a call made no further attempt; nothing here knows of calls."""

from enum import StrEnum
from typing import final

__all__ = ["StopReason"]


@final
class StopReason(StrEnum):
    """Why a call made no further attempt."""

    SUCCEEDED = "succeeded"
    ATTEMPTS = "attempts"
    ELAPSED = "elapsed"
    SCHEDULE_ENDED = "schedule ended"
    NOT_RETRYABLE = "not retryable"
    GAVE_UP = "gave up"
    HINT = "hint"
    BUDGET = "budget"
    NESTED = "nested"
    CANCELLED = "cancelled"

    @property
    def explanation(self) -> str:
        """The reason as the end of a sentence."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    StopReason.SUCCEEDED: "it succeeded",
    StopReason.ATTEMPTS: "every attempt is used up",
    StopReason.ELAPSED: "the next attempt could not start in time",
    StopReason.SCHEDULE_ENDED: "the schedule has ended",
    StopReason.NOT_RETRYABLE: "the error is not one to retry",
    StopReason.GAVE_UP: "it was told to give up",
    StopReason.HINT: "it was asked to wait longer than is allowed",
    StopReason.BUDGET: "the budget for retries is spent",
    StopReason.NESTED: "a retried call inside of it had given up",
    StopReason.CANCELLED: "it was cancelled",
}
