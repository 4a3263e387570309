"""What follows a failed attempt: another one, or the end.

Everything that a policy demands is judged here. Nothing here sleeps, reads a
clock or draws chance of its own: the same call gives the same answer.
"""

from dataclasses import dataclass
from typing import Final, final

from retrykit.checks import refuse
from retrykit.jitter import LONGEST, Draws
from retrykit.settings import Settings
from retrykit.signals import RetryAfter
from retrykit.state import Failure, RetryState, StopReason

__all__ = ["Again", "Decision", "Stop", "decide", "pace"]


@final
@dataclass(frozen=True, slots=True)
class Again:
    """Make another attempt.

    Attributes:
        delay: After this time, in seconds, >= 0.
    """

    delay: float


@final
@dataclass(frozen=True, slots=True)
class Stop:
    """Make no further attempt.

    Attributes:
        reason: Why not.
    """

    reason: StopReason


Decision = Again | Stop

_ATTEMPTS: Final = Stop(StopReason.ATTEMPTS)
_ELAPSED: Final = Stop(StopReason.ELAPSED)
_SCHEDULE_ENDED: Final = Stop(StopReason.SCHEDULE_ENDED)


def decide(
    settings: Settings,
    state: RetryState,
    failure: Failure,
    refusal: StopReason | None,
) -> Decision:
    """Decide what follows a failure.

    Args:
        settings: The policy.
        state: The history before this failure.
        failure: The failed attempt.
        refusal: Why its error may not be retried, None if it may: the answer
            of the policy's conditions, which may have had to be awaited.

    Returns:
        `Again` with a delay, or `Stop` with a reason.
    """
    if refusal is not None:
        return Stop(refusal)
    error = failure.error
    return pace(
        settings,
        retry=failure.attempt,
        elapsed=failure.started + failure.duration,
        previous=state.previous_delay,
        seed=state.seed,
        asked=error.delay if isinstance(error, RetryAfter) else None,
    )


def pace(  # noqa: PLR0913  the facts that limits are about
    settings: Settings,
    *,
    retry: int,
    elapsed: float,
    previous: float | None,
    seed: int,
    asked: float | None = None,
) -> Decision:
    """Decide when a retry may begin, if the limits allow it at all.

    Args:
        settings: The policy.
        retry: The number of the retry, >= 1; so many attempts were made.
        elapsed: Seconds since the call began.
        previous: The delay before the retry before, in seconds, if any.
        seed: The seed of the call.
        asked: The delay that the failure itself asks for, in seconds, if any.

    Returns:
        `Again` with a delay, or `Stop` with a reason.

    Raises:
        ConfigError: The user's own schedule gave what is no delay.
    """
    if settings.max_attempts is not None and retry >= settings.max_attempts:
        return _ATTEMPTS
    allowed, rule = settings.max_elapsed, settings.deadline
    if allowed is not None:
        late = elapsed > allowed if rule == "overshoot" else elapsed >= allowed
        if late:
            return _ELAPSED
    delay = settings.schedule.delay(retry, previous, Draws(seed, retry))
    if delay is None:
        return _SCHEDULE_ENDED
    if not 0 <= delay <= LONGEST:
        rule_of_delay = "a schedule of finite numbers >= 0"
        raise refuse("schedule", rule_of_delay, delay, "see its delay method")
    if asked is not None:
        delay = asked
    if allowed is None or rule == "overshoot" or elapsed + delay <= allowed:
        return Again(delay)
    return Again(allowed - elapsed) if rule == "clip" else _ELAPSED
