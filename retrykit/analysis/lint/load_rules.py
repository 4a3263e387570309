"""The rules about what retrying costs: calls, time, and hidden mistakes."""

from collections.abc import Iterator

from retrykit.analysis.lint.findings import Advice, LintContext, told
from retrykit.policy.rules import types_of

__all__ = ["retries_every_exception", "too_many_calls", "window_outlives_process"]


# A policy that sets nothing makes as many, and mistakes are soon seen under it.
_FEW_CALLS = 5


def retries_every_exception(case: LintContext) -> Iterator[Advice]:
    """Warn of many calls of a function whose mistakes are retried as outages are."""
    every = Exception in types_of(case.policy.on) and case.policy.give_up_on == ()
    if every and case.most > _FEW_CALLS:
        reason = (
            "on is Exception, and give_up_on is empty: a TypeError, which no retry "
            f"mends, is raised by {case.up_to} {case.most} calls before it is seen"
        )
        yield (
            reason,
            "on=(ConnectionError, TimeoutError), or give_up_on=(TypeError, ValueError)",
        )


def window_outlives_process(case: LintContext) -> Iterator[Advice]:
    """Warn of calls that take longer than a process lives."""
    rows, worst = case.seen.rows, case.seen.worst
    if not rows or case.unbounded:
        return
    longest = rows[-1].begins_high if worst is None else worst
    if worst is None and case.policy.max_elapsed is not None:
        longest = max(longest, case.policy.max_elapsed + case.seen.attempt)
    if longest > case.lifetime:
        reason = (
            f"a call that fails every time takes up to {told(longest)}, and a "
            f"process may live for {told(case.lifetime)}: its retries end with it"
        )
        yield reason, f"run it on a durable job engine{_shorter(case)}"


def _shorter(case: LintContext) -> str:
    """Return the time that fits into the life of a process, as a way out."""
    # An attempt whose time is bounded ends in time under this rule alone.
    own = case.seen.attempt == 0 and case.policy.attempt_timeout is not None
    allowed = case.lifetime - case.seen.attempt
    if allowed <= 0:
        return ""
    late = case.policy.deadline == "overshoot" or (
        own and case.policy.deadline != "stop"
    )
    rule = ', deadline="stop"' if late else ""
    return f", or set max_elapsed={allowed!r}{rule}"


def too_many_calls(case: LintContext) -> Iterator[Advice]:
    """Warn of one request that becomes many, when all of them fail."""
    most = case.most
    if most > case.calls and not case.unbounded:
        reason = (
            f"a request that fails every time makes {case.up_to} {most} calls: an "
            f"outage multiplies the load by {most}, and by {most**2} if its caller "
            "retries as often"
        )
        yield reason, f"max_attempts={case.calls}"
