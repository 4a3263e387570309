"""Limits of a policy: their defaults, checks, descriptions, and overrides by tests.

The defaults are for a policy without a limit of its own: `max_attempts`, `max_elapsed`,
or a schedule that ends.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, final

from retrykit._conditions import find_members
from retrykit._core.call_record import CallFacts
from retrykit._core.failures import Failure, StopReason
from retrykit._internal.context import ContextOverride
from retrykit._internal.durations import duration_in_words, format_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError, GiveUp
from retrykit.schedules._base import Schedule, has_user_code, is_endless

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["DECIDING", "RetryOverrides", "check_limits", "default_limits"]
__all__ += ["describe_give_up", "describe_limit", "find_idle_limit", "most_attempts"]
__all__ += ["override", "retry_overrides", "shift_time_limit"]


DECIDING: Final = frozenset({"schedule", "max_attempts", "max_elapsed"})
"""The settings that decide which limits a policy has by default."""

# An interactive caller can wait for five attempts within a minute.
_ATTEMPTS: Final = 5
_ELAPSED: Final = 60.0

# User code is called no further to find out whether its schedule ends.
_SEARCHED: Final = 1_000


def default_limits(
    written: Collection[str], schedule: Schedule, max_elapsed: float | None
) -> dict[str, Any]:
    """Return the default values of the limits that a policy does not set.

    >>> from retrykit.schedules import constant
    >>> default_limits((), constant(1), None)
    {'max_attempts': 5, 'max_elapsed': 60.0}
    >>> default_limits({"schedule"}, constant(1), None)
    {'max_attempts': 5, 'max_elapsed': None}

    Args:
        written: The names of the settings that were written.
        schedule: The schedule.
        max_elapsed: The time limit, in seconds, if it was written; else None.
    """
    own = DECIDING.intersection(written)
    limits: dict[str, Any] = {}
    if "max_attempts" not in own:
        bounded = bool(own) and (max_elapsed is not None or _ends(schedule))
        limits["max_attempts"] = None if bounded else _ATTEMPTS
    if "max_elapsed" not in own:
        limits["max_elapsed"] = None if own else _ELAPSED
    return limits


def _ends(schedule: Schedule) -> bool:
    """Return whether a schedule ends; within 1,000 retries if it is user code."""
    try:
        if has_user_code(schedule):
            return schedule.bounds(_SEARCHED) is None
        return not is_endless(schedule)
    except Exception:  # noqa: BLE001  it is reported when a call needs it
        return False


def describe_limit(  # noqa: PLR0911  one return for each limit
    policy: "Policy", record: CallFacts, reason: StopReason, failure: Failure
) -> str | None:
    """Return a description of what ended a call; None if its reason says enough.

    >>> from retrykit import Policy
    >>> from retrykit._core.call_record import Terms, new_record
    >>> record = new_record(Terms("fetch"), seed=7)
    >>> failure = Failure(1, OSError(), None, 0.0, 70.0, None)
    >>> describe_limit(Policy(max_elapsed=60), record, StopReason.ELAPSED, failure)
    'max_elapsed=1m reached'
    """
    elapsed, allowed = failure.started + failure.duration, policy.max_elapsed
    attempt, stream, row = record.attempt, record.stream, ""
    if stream is not None:
        attempt, elapsed = attempt - stream.attempts_before, elapsed - stream.row_began
        row = " by failures in a row" if stream.in_a_row else ""
        if reason is StopReason.NOT_RETRYABLE:
            return stream.ended_because
        if reason is StopReason.SCHEDULE_ENDED and row:
            return "the schedule has ended after failures in a row"
    if reason is StopReason.ATTEMPTS:
        most = policy.max_attempts
        if most is not None and attempt >= most:
            by = f", set by {policy.limited_by}" if policy.limited_by else ""
            return f"max_attempts={most} reached{row}{by}"
        index = failure.rule or 0
        return (
            f"max_attempts={policy.rules[index].max_attempts} of rules[{index}] reached"
        )
    if reason is StopReason.ELAPSED:
        outer = record.outer_deadline
        if allowed is None or (outer is not None and outer < allowed):
            return "the time limit of the call around it would be exceeded"
        # Joined, the attempts were reached before, or now.
        joined = policy.limits == "all"
        both = f"max_attempts={policy.max_attempts} and " if joined else ""
        how = "reached" if elapsed >= allowed else "would be exceeded"
        return f"{both}max_elapsed={format_duration(allowed)} {how}{row}"
    if reason is StopReason.HINT and failure.hint is not None:
        cap, asked = policy.hint_cap, duration_in_words(failure.hint)
        limit = (
            f"max_elapsed={format_duration(allowed)} allows" if allowed else "allowed"
        )
        if cap is not None and failure.hint > cap and policy.on_long_hint == "give_up":
            limit = f"hint_cap={format_duration(cap)}"
        return f"it was asked to wait {asked}, longer than {limit}"
    return None


def most_attempts(policy: "Policy") -> int | None:
    """Return how many attempts a call makes at most, if that is known.

    >>> from retrykit import Policy
    >>> most_attempts(Policy(max_attempts=3)), most_attempts(Policy(schedule=[1, 2]))
    (3, 3)

    Returns:
        The count, from `max_attempts`, a list of delays or another short schedule; None
        if these do not tell it, as with rules or user code.
    """
    most, schedule = policy.max_attempts, policy.schedule
    if most is not None or policy.rules:
        return most
    whole: Any = schedule
    if has_user_code(schedule):
        return None
    if whole.kind == "sequence":
        return len(whole.delays) + 1
    found = (n for n in range(1, _SHORT) if not _has_delay(schedule, n))
    return None if _has_delay(schedule, _SHORT) else next(found, None)


# Longer schedules are not searched for their end.
_SHORT: Final = 100


def override(policy: "Policy", **changes: Any) -> "Policy":
    """Return a policy with other values, for one call or for an analysis.

    Neither the values nor their combination is checked. Other limits stay as they are,
    as if all of them had been written.
    """
    other = object.__new__(type(policy))
    vars(other).update(vars(policy), **changes, _written=DECIDING, _derived={})
    return other


def shift_time_limit(policy: "Policy", seconds: float) -> "Policy":
    """Return a policy whose `max_elapsed` begins *seconds* after a call's start."""
    if policy.max_elapsed is None or not seconds:
        return policy
    return override(policy, max_elapsed=policy.max_elapsed + seconds)


def check_limits(policy: "Policy") -> None:
    """Raise `ConfigError` if a policy never retries, or never makes all its attempts.

    The latter is checked under ``limits="all"``, where `max_attempts` must be reached;
    under ``"any"``, another limit may end every call earlier. ``max_attempts=1`` is how
    to ask for a single attempt.
    """
    joined = policy.limits == "all"
    if policy.max_attempts == 1 and not joined:
        return
    idle = find_idle_limit(policy)
    if idle is not None:
        raise invalid_setting(
            *idle, "for a single attempt write max_attempts=1", code="never-retries"
        )
    most, schedule = policy.max_attempts, policy.schedule
    other_delays = policy.rules or policy.hint is not None or has_user_code(schedule)
    if joined and most is not None and not other_delays:
        # Imported here: only joined limits need it.
        from retrykit._internal.binary_search import first_where  # noqa: PLC0415

        ended = first_where(lambda n: not _has_delay(schedule, n), 1, most)
        if ended < most:
            delays = f"{ended - 1} delay{'s' * (ended != 2)}"  # noqa: PLR2004
            rule = f"at most {ended}, since the schedule ends after {delays}"
            suggestion = "with limits='any' the first that is reached ends a call"
            raise invalid_setting(
                "max_attempts", rule, most, suggestion, code="never-retries"
            )


def find_idle_limit(policy: "Policy") -> tuple[str, str, object] | None:
    """Return why a policy never retries: a setting, its rule and its value.

    None if its delays allow a retry, or are not known before a call, as with rules.
    """
    schedule, allowed = policy.schedule, policy.max_elapsed
    if any(rule.schedule is not None for rule in policy.rules):
        return None
    if (policy.max_attempts, allowed) != (None, None) and has_user_code(schedule):
        # It was not asked whether it ends, and is not called for this alone.
        return None
    try:
        bounds = schedule.bounds(1)
    except Exception:  # noqa: BLE001  it is reported when a call needs it
        return None
    if bounds is None:
        return "schedule", "at least one delay, or nothing is ever retried", schedule
    timed = policy.deadline == "stop" and policy.limits == "any"
    known = timed and not policy.rules and policy.hint is None
    if allowed is None or not known or bounds[0] <= allowed * (1 + 1e-9):
        return None
    least = format_duration(bounds[0])
    rule = f"at least {least}, the first delay, or nothing is ever retried"
    return "max_elapsed", rule, allowed


def _has_delay(schedule: Schedule, retry: int) -> bool:
    try:
        return schedule.bounds(retry) is not None
    except ConfigError:
        # It is too far to be searched for.
        return True


def describe_give_up(error: Exception | None, *, hinted: bool) -> str:
    """Return a description of what ended a call: `give_up_on`, `GiveUp` or a hint.

    Args:
        error: The error that ended the call; None if a result did.
        hinted: Whether the error or the result is one to retry, so that only a hint
            can have ended the call.
    """
    if hinted:
        return "the hint returned GiveUp"
    if isinstance(error, ExceptionGroup):
        raised = any(isinstance(each, GiveUp) for each in find_members(error))
    else:
        raised = isinstance(error, GiveUp)
    return "GiveUp was raised" if raised else "give_up_on includes the error"


@final
class RetryOverrides(Frozen):
    """Limits that apply to the calls that begin in a context.

    Attributes:
        max_attempts: Maximum number of attempts; None leaves it to the policies.
        disabled: Whether calls make one attempt, whose outcome is final.
        source: The call that set the limits, as text, such as ``limit_retries(3)``;
            None if nothing has set them.
    """

    __slots__ = ("disabled", "max_attempts", "source")
    max_attempts: int | None
    disabled: bool
    source: str | None

    def apply_to(self, policy: "Policy") -> "Policy":
        """Return *policy* with these limits; unchanged if it is at least as strict."""
        if self.disabled:
            return override(
                policy,
                max_attempts=1,
                limits="any",
                raises="last",
                limited_by=self.source,
            )
        limit, allowed = self.max_attempts, policy.max_attempts
        joined = policy.limits == "all"
        if limit is None or (allowed is not None and allowed <= limit and not joined):
            return policy
        changes = {"limits": "any", "limited_by": self.source}
        return override(policy, max_attempts=limit, **changes)


retry_overrides = ContextOverride(
    RetryOverrides(max_attempts=None, disabled=False, source=None)
)
"""The overrides of the current context."""
