"""The decision after a failed attempt: which delay, or why to stop.

Nothing here sleeps or changes the state, and the same seed gives the same delays. Only
the policy's own predicates, hints and schedules may read a clock.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from retrykit._internal.error_conditions import (
    BY_TYPE,
    amatches_condition,
    matches_condition,
)
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError
from retrykit.hints.base import read_hint, requested_delay
from retrykit.schedules.randomness import MAX_DELAY, CallRandom
from retrykit.state.failures import Evaluation, Failure, StopReason
from retrykit.state.fault_log import note_policy_fault
from retrykit.state.retry_state import RetryState
from retrykit.state.signals import GiveUp, RetryAfter, Signal

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["Again", "Decision", "Stop", "amatch_error", "decide", "evaluate"]
__all__ += ["match_error"]


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
        reason: Why.
    """

    __slots__ = ("reason",)
    reason: StopReason


Decision = Again | Stop
"""The decision after a failed attempt; match it exhaustively."""

# Tolerance for floating-point error in clock arithmetic, in seconds: 0.1 + 0.1 + 0.1
# is in time for 0.3, and a sleep up to the limit may end just below it.
_EPSILON: Final = 1e-6
_MARGINS: Final = {"stop": 0.0, "clip": -_EPSILON, "overshoot": _EPSILON}

# Tuples, since every failure is compared with them, and a union is slower.
_OWN_ERRORS: Final = (Signal, ConfigError)


def match_error(
    policy: "Policy", error: Exception, *, own_timeout: bool = False
) -> StopReason | int | None:
    """Match an error against the policy's rules.

    A predicate that fails is noted on the error and logged, and the error is not
    retried.

    Args:
        policy: Its conditions and rules.
        error: The error that the attempt raised.
        own_timeout: Whether it is the policy's own attempt timeout, which is
            retried whatever `on` says.

    Returns:
        The index of the rule that matches, from 0; None if the error is retried
        without a rule; a stop reason if it is not retried.
    """
    if isinstance(error, _OWN_ERRORS):
        return _signal_reason(error)
    give_up_on, on = policy.give_up_on, policy.on
    try:
        if give_up_on and matches_condition("give_up_on", give_up_on, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for index, rule in enumerate(policy.rules):
                if matches_condition("on", rule.on, error):
                    return index
        # Most policies name types, and need no further call.
        by_type = isinstance(error, on) if isinstance(on, BY_TYPE) else None
        if own_timeout or by_type:
            return None
        if by_type is None and matches_condition("on", on, error):
            return None
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(error, fault)
    return StopReason.NOT_RETRYABLE


async def amatch_error(
    policy: "Policy", error: Exception, *, own_timeout: bool = False
) -> StopReason | int | None:
    """Match an error against the policy's rules, as `match_error` does."""
    if isinstance(error, _OWN_ERRORS):
        return _signal_reason(error)
    give_up_on, on = policy.give_up_on, policy.on
    try:
        if give_up_on and await amatches_condition("give_up_on", give_up_on, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for index, rule in enumerate(policy.rules):
                if await amatches_condition("on", rule.on, error):
                    return index
        by_type = isinstance(error, on) if isinstance(on, BY_TYPE) else None
        if own_timeout or by_type:
            return None
        if by_type is None and await amatches_condition("on", on, error):
            return None
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(error, fault)
    return StopReason.NOT_RETRYABLE


def _signal_reason(error: Exception) -> StopReason | None:
    """Return the stop reason of a signal or a ConfigError, which recurs each time."""
    if isinstance(error, ConfigError):
        return StopReason.NOT_RETRYABLE
    return StopReason.GAVE_UP if isinstance(error, GiveUp) else None


def evaluate(  # noqa: PLR0913, PLR0917  all that is known of an attempt
    policy: "Policy",
    state: RetryState,
    elapsed: float,
    error: Exception | None,
    result: object,
    matched: StopReason | int | None,
    exhausted: object = None,
    already_warned: Callable[[], bool] | None = None,
) -> Evaluation:
    """Evaluate a failed attempt: nesting, hint, decision.

    Args:
        policy: The policy.
        state: The history before this failure.
        elapsed: Seconds since the call began, >= 0.
        error: The error that the attempt raised; None if its result was rejected.
        result: The rejected result.
        matched: The answer of `match_error`.
        exhausted: The outcome of a nested call that has given up, or None.
        already_warned: Returns whether a warning was logged before for this call;
            it counts one as logged from then on.
    """
    # Stop reasons are strings; to compare with the enumeration takes longer.
    hint, retryable = None, not isinstance(matched, str)
    if retryable and exhausted is not None:
        # For a budget, a nested call that has given up is not another failure.
        matched, retryable = StopReason.NESTED, False
    elif policy.hint is not None and retryable and not isinstance(error, Signal):
        outcome = result if error is None else error
        hint = read_hint(policy.hint, outcome, error, already_warned)
    attempt, started = state.attempt, state.attempt_started
    try:
        decision = decide(policy, state, attempt, elapsed, error, matched, hint)
    except Exception as fault:
        if error is None:
            raise
        note_policy_fault(error, fault)
        decision = StopReason.NOT_RETRYABLE
    failure = _new(
        Failure,
        (
            attempt,
            error.error if isinstance(error, Signal) else error,
            result,
            started,
            elapsed - started,
            None if isinstance(decision, str) else decision,
            matched if retryable else None,
            hint if hint is None else requested_delay(hint),
        ),
    )
    return _new(Evaluation, (failure, decision, retryable))


# Builds a named tuple without its Python-level constructor.
_new: Final = tuple.__new__


def decide(  # noqa: C901, PLR0911, PLR0913, PLR0917  all rules, in their order
    policy: "Policy",
    state: RetryState,
    attempt: int,
    elapsed: float,
    error: object = None,
    matched: StopReason | int | None = None,
    hint: float | RetryAfter | GiveUp | None = None,
) -> float | StopReason:
    """Decide what follows a failed attempt.

    Args:
        policy: The policy.
        state: The history before this failure.
        attempt: Number of the failed attempt, from 1, and of the retry after it.
        elapsed: Seconds since the call began, >= 0.
        error: The error that the attempt raised; None if its result was rejected.
        matched: The answer of `match_error`.
        hint: The answer of the policy's hint.

    Returns:
        The delay before the next attempt, in seconds, or why there is none.

    Raises:
        ConfigError: A custom schedule returned an invalid delay.
    """
    if isinstance(matched, str):
        return matched
    if policy.max_attempts is not None and attempt >= policy.max_attempts:
        return StopReason.ATTEMPTS
    allowed = policy.max_elapsed
    if allowed is not None and elapsed >= allowed + _MARGINS[policy.deadline]:
        return StopReason.ELAPSED
    random = CallRandom()
    random.seed, random.draw = state.seed, attempt << 32
    if policy.rules:
        delay = _delay_by_rule(policy, state, attempt, matched, random)
        if isinstance(delay, str):
            return delay
    else:
        failures = state.failures
        previous = failures[-1].delay if failures else None
        delay = policy.schedule.delay(attempt, previous, random)
    if delay is None:
        return StopReason.SCHEDULE_ENDED
    if not 0 <= delay <= MAX_DELAY:
        wanted = "a schedule of finite numbers >= 0"
        raise invalid_setting("schedule", wanted, delay, "see its delay method")
    if isinstance(error, RetryAfter):
        delay = error.delay
    elif type(delay) is not float:
        # A custom schedule may return another kind of number.
        delay = float(delay)
    if hint is not None:
        return _apply_hint(policy, state, elapsed, delay, hint)
    if state.outer_deadline is None and (
        allowed is None or elapsed + delay < allowed - _EPSILON
    ):
        return delay
    return _apply_deadline(policy, state, elapsed, delay)


def _apply_hint(
    policy: "Policy",
    state: RetryState,
    elapsed: float,
    delay: float,
    hint: float | RetryAfter | GiveUp,
) -> float | StopReason:
    """Return the delay that an outcome asks for, if the policy allows it."""
    if isinstance(hint, GiveUp):
        return StopReason.GAVE_UP
    exact = isinstance(hint, RetryAfter)
    asked, cap = hint.delay if isinstance(hint, RetryAfter) else hint, policy.hint_cap
    if cap is not None and asked > cap and policy.on_long_hint != "honor":
        if policy.on_long_hint == "give_up":
            return StopReason.HINT
        asked = cap
    # To retry sooner than requested would do harm.
    if _apply_deadline(policy, state, elapsed, asked) != asked:
        return StopReason.HINT
    if exact:
        return asked
    return _apply_deadline(policy, state, elapsed, max(delay, asked))


def _apply_deadline(
    policy: "Policy", state: RetryState, elapsed: float, delay: float
) -> float | StopReason:
    """Return the delay, clipped by the deadline rule, or why it is too long."""
    allowed, rule = policy.max_elapsed, policy.deadline
    # An attempt that ends at the limit must start before it.
    margin = _EPSILON if policy.attempt_timeout is None else -_EPSILON
    if allowed is not None and rule != "overshoot":
        late = elapsed + delay > allowed + (margin if rule == "stop" else _EPSILON)
        if late and rule == "stop":
            return StopReason.ELAPSED
        delay = allowed - elapsed if late else delay
    if (
        state.outer_deadline is not None
        and elapsed + delay > state.outer_deadline + margin
    ):
        return StopReason.ELAPSED
    return delay


def _delay_by_rule(
    policy: "Policy",
    state: RetryState,
    attempt: int,
    index: int | None,
    random: CallRandom,
) -> float | StopReason | None:
    """Return the delay by the schedule of the rule that matched, or of the policy.

    Each schedule counts its own failures and has its own previous delay.
    """
    rules = policy.rules
    with_schedule = {n for n, rule in enumerate(rules) if rule.schedule is not None}
    schedule, position = policy.schedule, attempt
    for n, failures in enumerate(state.rule_counts):
        position -= failures if n in with_schedule else 0
    if index is not None:
        rule, counts = rules[index], state.rule_counts
        count = (counts[index] if index < len(counts) else 0) + 1
        if rule.max_attempts is not None and count >= rule.max_attempts:
            return StopReason.ATTEMPTS
        if rule.schedule is not None:
            schedule, position = rule.schedule, count
    source = index if index in with_schedule else None
    previous = None
    for failure in state.failures:
        if (failure.rule if failure.rule in with_schedule else None) == source:
            previous = failure.delay
    return schedule.delay(position, previous, random)
