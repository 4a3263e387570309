"""The rules about where a call ends: which of its limits are at work."""

from collections.abc import Iterator
from math import floor

from retrykit.analysis.lint.findings import CENTURY, Advice, LintContext, told
from retrykit.analysis.preview import preview
from retrykit.policy.policy import Policy
from retrykit.schedules.parts import has_user_code

__all__ = ["deadline_before_first_delay", "delays_never_used"]
__all__ += ["max_attempts_unreachable", "never_retries", "unbounded"]


def never_retries(case: LintContext) -> Iterator[Advice]:
    """Warn of a first attempt that is the last."""
    if case.policy.max_attempts == 1:
        reason = "max_attempts=1 counts the first call: no retry is ever made"
        yield reason, "max_attempts=2 for one retry"
    elif case.policy.schedule.bounds(1) is None and case.scheduled:
        reason = "the schedule has no delay: no retry is ever made"
        yield reason, "schedule=[1.0] for one retry after a second"


def deadline_before_first_delay(case: LintContext) -> Iterator[Advice]:
    """Warn of a time that is over before a retry can be made."""
    bounds, end = case.policy.schedule.bounds(1), case.seen.end
    if (
        case.scheduled
        and bounds
        and end
        and (end.latest, end.reasons[1]) == (0, "max_elapsed")
    ):
        soonest, latest = (told(each + case.seen.attempt) for each in bounds)
        reason = (
            f"max_elapsed={case.policy.max_elapsed!r}, and retry 1 comes after "
            f"{soonest} at the soonest: no retry is ever made"
        )
        yield reason, f"max_elapsed above {latest}, or a shorter first delay"


def max_attempts_unreachable(case: LintContext) -> Iterator[Advice]:
    """Warn of attempts that no call comes to."""
    most, last = case.policy.max_attempts, case.seen.limits.get("schedule")
    known = case.scheduled and case.seen.rows and case.seen.end
    if not known or most is None or case.most >= most:
        return
    reason = f"every call after {case.most} of max_attempts={most}"
    fix = f"max_attempts={case.most}"
    if last is None or last.latest + 1 >= most:
        longer = _longer(case, most)
        yield f"max_elapsed={case.policy.max_elapsed!r} ends {reason}", f"{fix}{longer}"
    elif most != Policy().max_attempts:
        # Who leaves max_attempts alone has not asked for that many.
        yield f"the schedule ends {reason}", f"{fix}, or a longer schedule"


def delays_never_used(case: LintContext) -> Iterator[Advice]:
    """Warn of delays that a schedule has, and no call comes to."""
    end, last = case.seen.end, case.seen.limits.get("schedule")
    if case.seen.rows and end and last and end.latest < last.soonest:
        if end.reasons[1] == "max_elapsed" and not case.scheduled:
            return
        limit, count = end.reasons[1], last.soonest
        reason = (
            f"{limit}={getattr(case.policy, limit)!r} ends every call after "
            f"{end.latest} of the {count} delays of its schedule"
        )
        if limit == "max_attempts":
            yield reason, f"a shorter schedule, or max_attempts={count + 1}"
        else:
            yield reason, f"a shorter schedule{_longer(case, count + 1)}"


def unbounded(case: LintContext) -> Iterator[Advice]:
    """Warn of calls that never end."""
    if case.unbounded:
        ends = (
            "never ends"
            if case.policy.budget is None
            else "goes on while its budget pays"
        )
        reason = (
            "neither max_attempts nor max_elapsed is set, and the schedule goes on "
            f"after retry {len(case.seen.rows)}: a call that fails every time {ends}"
        )
        yield reason, 'max_attempts=5, or max_elapsed="1m"'


def _longer(case: LintContext, attempts: int) -> str:
    """Return the time that would do for so many attempts, as a way out."""
    if has_user_code(case.policy.schedule):
        # It may fail beyond the end of the calls.
        return ""
    free = case.policy.replace(max_attempts=attempts, max_elapsed=None, deadline="stop")
    seen = preview(free, attempt=case.seen.attempt, samples=0)
    if seen.end is None or seen.rows[-1].begins_high > CENTURY:
        return ""
    # More than that: a retry without a delay is not made at the limit itself.
    return f", or max_elapsed={floor(seen.rows[-1].begins_high) + 1}"
