"""What follows a failed attempt: another one, or the end.

Everything that a policy demands is judged here. Nothing here sleeps, reads a
clock or draws chance of its own: the same call gives the same answer.
"""

import math
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

_ATTEMPTS: Final = Stop(StopReason.ATTEMPTS)
_ELAPSED: Final = Stop(StopReason.ELAPSED)
_SCHEDULE_ENDED: Final = Stop(StopReason.SCHEDULE_ENDED)


def decide(  # noqa: PLR0913, PLR0917  the facts, loose so that none is made twice
    settings: Settings,
    state: RetryState,
    attempt: int,
    elapsed: float,
    error: object = None,
    refusal: StopReason | None = None,
) -> Decision:
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
        `Again` with a delay, or `Stop` with a reason.

    Raises:
        ConfigError: The user's own schedule gave what is no delay.
    """
    if refusal is not None:
        return Stop(refusal)
    if settings.max_attempts is not None and attempt >= settings.max_attempts:
        return _ATTEMPTS
    allowed, rule = settings.max_elapsed, settings.deadline
    # Sums of delays are off by a hair: 0.1 + 0.1 + 0.1 is in time for 0.3.
    in_time = math.inf if allowed is None else allowed * (1 + 1e-12)
    if allowed is not None and elapsed >= allowed:
        used_up = rule != "overshoot" or elapsed > in_time
        if used_up:
            return _ELAPSED
    failures = state.failures
    previous = failures[-1].delay if failures else None
    delay = settings.schedule.delay(attempt, previous, Draws(state.seed, attempt))
    if delay is None:
        return _SCHEDULE_ENDED
    if not 0 <= delay <= LONGEST:
        wanted = "a schedule of finite numbers >= 0"
        raise refuse("schedule", wanted, delay, "see its delay method")
    if isinstance(error, RetryAfter):
        delay = error.delay
    if allowed is None or elapsed + delay <= in_time or rule == "overshoot":
        return Again(delay)
    return Again(allowed - elapsed) if rule == "clip" else _ELAPSED
