"""What follows a failed attempt: another one, or the end.

Everything that a policy demands is judged here. Nothing here sleeps, reads a
clock or draws chance of its own: the same call gives the same answer.
"""

from typing import Final, final

from retrykit.checks import refuse
from retrykit.jitter import LONGEST, Draws
from retrykit.settings import Settings
from retrykit.signals import RetryAfter
from retrykit.state import RetryState, StopReason
from retrykit.values import Value

__all__ = ["Again", "Decision", "Stop", "decide"]


@final
class Again(Value):
    """Make another attempt.

    Attributes:
        delay: After this time, in seconds, >= 0.
    """

    __slots__ = ("delay",)
    delay: float


@final
class Stop(Value):
    """Make no further attempt.

    Attributes:
        reason: Why not.
    """

    __slots__ = ("reason",)
    reason: StopReason


Decision = Again | Stop
"""What follows a failed attempt; match it exhaustively."""

# Sums of delays and readings of clocks are off by a hair, in seconds: 0.1 + 0.1
# + 0.1 is in time for 0.3, and a sleep up to the limit may end just below it.
_HAIR: Final = 1e-6
_MARGINS: Final = {"stop": 0.0, "clip": -_HAIR, "overshoot": _HAIR}


def decide(  # noqa: PLR0911, PLR0913, PLR0917  rules in order; facts made once
    settings: Settings,
    state: RetryState,
    attempt: int,
    elapsed: float,
    error: object = None,
    refusal: StopReason | None = None,
) -> float | StopReason:
    """Decide what follows a failed attempt.

    Args:
        settings: The policy.
        state: The history before this failure.
        attempt: Number of the attempt that failed, from 1; so is the retry.
        elapsed: Seconds since the call began, >= 0.
        error: What the attempt raised; None if its result was refused.
        refusal: Why the error may not be retried, None if it may: the answer
            of the policy's conditions, which may have had to be awaited.

    Returns:
        The delay before another attempt, in seconds, or why there is none.

    Raises:
        ConfigError: The user's own schedule gave what is no delay.
    """
    if refusal is not None:
        return refusal
    if settings.max_attempts is not None and attempt >= settings.max_attempts:
        return StopReason.ATTEMPTS
    allowed, rule = settings.max_elapsed, settings.deadline
    if allowed is not None and elapsed >= allowed + _MARGINS[rule]:
        return StopReason.ELAPSED
    failures = state.failures
    previous = failures[-1].delay if failures else None
    delay = settings.schedule.delay(attempt, previous, Draws(state.seed, attempt))
    if delay is None:
        return StopReason.SCHEDULE_ENDED
    if not 0 <= delay <= LONGEST:
        wanted = "a schedule of finite numbers >= 0"
        raise refuse("schedule", wanted, delay, "see its delay method")
    # A schedule of the user's may give what is a number, and no float.
    delay = error.delay if isinstance(error, RetryAfter) else float(delay)
    if allowed is None or elapsed + delay <= allowed + _HAIR:
        return delay
    if rule == "overshoot":
        return delay
    return allowed - elapsed if rule == "clip" else StopReason.ELAPSED
