"""Decides what follows a failed attempt: another one, or the end.

Everything that a policy demands is judged here. Nothing here sleeps, reads a
clock or draws chance of its own: the same call gives the same answer.
"""

from typing import TYPE_CHECKING, Final, final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.schedules.randomness import MAX_DELAY, CallRandom
from retrykit.state.retry_state import RetryState, StopReason
from retrykit.state.signals import GiveUp, RetryAfter

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["Again", "Decision", "Stop", "decide"]


@final
class Again(Frozen):
    """Make another attempt.

    Attributes:
        delay: After this time, in seconds, >= 0.
    """

    __slots__ = ("delay",)
    delay: float


@final
class Stop(Frozen):
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
_EPSILON: Final = 1e-6
_MARGINS: Final = {"stop": 0.0, "clip": -_EPSILON, "overshoot": _EPSILON}


def decide(  # noqa: C901, PLR0911, PLR0913, PLR0917  rules in order; facts made once
    settings: "Policy",
    state: RetryState,
    attempt: int,
    elapsed: float,
    error: object = None,
    ruled: StopReason | int | None = None,
    hint: float | RetryAfter | GiveUp | None = None,
) -> float | StopReason:
    """Decide what follows a failed attempt.

    Args:
        settings: The policy.
        state: The history before this failure.
        attempt: Number of the attempt that failed, from 1; so is the retry.
        elapsed: Seconds since the call began, >= 0.
        error: What the attempt raised; None if its result was refused.
        ruled: Why the error may not be retried, or the place of the rule that
            holds for it; None if the policy's own settings do. The answer of
            the policy's conditions, which may have had to be awaited.
        hint: What the outcome asks for, as the policy's hint reads it.

    Returns:
        The delay before another attempt, in seconds, or why there is none.

    Raises:
        ConfigError: The user's own schedule gave what is no delay.
    """
    if isinstance(ruled, str):
        return ruled
    if settings.max_attempts is not None and attempt >= settings.max_attempts:
        return StopReason.ATTEMPTS
    allowed = settings.max_elapsed
    if allowed is not None and elapsed >= allowed + _MARGINS[settings.deadline]:
        return StopReason.ELAPSED
    if settings.rules:
        delay = _delay_by_rule(settings, state, attempt, ruled)
        if isinstance(delay, str):
            return delay
    else:
        failures = state.failures
        previous = failures[-1].delay if failures else None
        delay = settings.schedule.delay(
            attempt, previous, CallRandom(state.seed, attempt)
        )
    if delay is None:
        return StopReason.SCHEDULE_ENDED
    if not 0 <= delay <= MAX_DELAY:
        wanted = "a schedule of finite numbers >= 0"
        raise invalid_setting("schedule", wanted, delay, "see its delay method")
    if isinstance(error, RetryAfter):
        delay = error.delay
    elif type(delay) is not float:
        # A schedule of the user's may give what is a number, and no float.
        delay = float(delay)
    if hint is not None:
        return _apply_hint(settings, state, elapsed, delay, hint)
    if state.outer_deadline is None and (
        allowed is None or elapsed + delay < allowed - _EPSILON
    ):
        return delay
    return _apply_deadline(settings, state, elapsed, delay)


def _apply_hint(
    settings: "Policy",
    state: RetryState,
    elapsed: float,
    delay: float,
    hint: float | RetryAfter | GiveUp,
) -> float | StopReason:
    """Return the delay that an outcome asks for, and its policy allows."""
    if isinstance(hint, GiveUp):
        return StopReason.GAVE_UP
    exact = isinstance(hint, RetryAfter)
    asked, cap = hint.delay if isinstance(hint, RetryAfter) else hint, settings.hint_cap
    if cap is not None and asked > cap and settings.on_long_hint != "honor":
        if settings.on_long_hint == "give_up":
            return StopReason.HINT
        asked = cap
    # An attempt that comes sooner than it was asked for does harm.
    if _apply_deadline(settings, state, elapsed, asked) != asked:
        return StopReason.HINT
    if exact:
        return asked
    return _apply_deadline(settings, state, elapsed, max(delay, asked))


def _apply_deadline(
    settings: "Policy", state: RetryState, elapsed: float, delay: float
) -> float | StopReason:
    """Return the delay before an attempt that starts in time."""
    allowed, rule = settings.max_elapsed, settings.deadline
    # An attempt whose time is bounded by the limit must start before it.
    hair = _EPSILON if settings.attempt_timeout is None else -_EPSILON
    if allowed is not None and rule != "overshoot":
        late = elapsed + delay > allowed + (hair if rule == "stop" else _EPSILON)
        if late and rule == "stop":
            return StopReason.ELAPSED
        delay = allowed - elapsed if late else delay
    if (
        state.outer_deadline is not None
        and elapsed + delay > state.outer_deadline + hair
    ):
        return StopReason.ELAPSED
    return delay


def _delay_by_rule(
    settings: "Policy", state: RetryState, attempt: int, place: int | None
) -> float | StopReason | None:
    """Return the delay by the rule that holds, or by none.

    Every schedule counts the failures that are its own, and knows its own
    delays; the chance is that of the attempt.
    """
    rules = settings.rules
    own = {n for n, rule in enumerate(rules) if rule.schedule is not None}
    schedule, position = settings.schedule, attempt
    for n, failures in enumerate(state.rule_counts):
        position -= failures if n in own else 0
    if place is not None:
        rule, count = rules[place], state.position(place)
        if rule.max_attempts is not None and count >= rule.max_attempts:
            return StopReason.ATTEMPTS
        if rule.schedule is not None:
            schedule, position = rule.schedule, count
    source = place if place in own else None
    previous = None
    for failure in state.failures:
        if (failure.rule if failure.rule in own else None) == source:
            previous = failure.delay
    return schedule.delay(position, previous, CallRandom(state.seed, attempt))
