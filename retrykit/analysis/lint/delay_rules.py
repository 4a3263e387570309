"""The rules about delays: whether they are there, and what is left to chance."""

from collections.abc import Iterator

from retrykit.analysis.lint.cap_analysis import caps
from retrykit.analysis.lint.findings import Advice, LintContext, told
from retrykit.policy.policy import Policy
from retrykit.schedules.parts import has_user_code

__all__ = ["cap_never_reached", "capped_jitter", "fixed_seed", "no_jitter"]
__all__ += ["retries_at_once"]

# How many retries are looked at for the first one that comes to a cap.
_FAR = 1000


def retries_at_once(case: LintContext) -> Iterator[Advice]:
    """Warn of several retries without a delay; one of them does no harm."""
    rows = case.seen.rows
    at_once = sum(row.high == 0 for row in rows)
    if at_once > 1:
        reason = (
            f"{at_once} of {len(rows)} retries come at once: what has just failed is "
            "called again before it can recover"
        )
        yield reason, "schedule=exponential(0.5).cap(60).jitter(0.5)"


def no_jitter(case: LintContext) -> Iterator[Advice]:
    """Warn of delays of which nothing is left to chance."""
    waited = [row for row in case.seen.rows if row.high > 0]
    if len(waited) > 1 and all(row.low == row.high for row in waited):
        listed = case.policy.schedule.kind == "sequence"
        own = "write schedules.sequence([...])" if listed else "end the schedule with "
        reason = (
            f"none of its {len(waited)} delays is left to chance: callers that fail "
            f"together come back together, {told(waited[0].high)} later and each "
            "time after that"
        )
        yield reason, f"{own}.jitter(0.5)"


def fixed_seed(case: LintContext) -> Iterator[Advice]:
    """Warn of chance that is the same in every call."""
    if case.policy.seed is not None and any(r.low < r.high for r in case.seen.rows):
        reason = (
            f"seed={case.policy.seed} gives every call the same delays, so that its "
            "jitter spreads nothing"
        )
        yield reason, "leave out seed, which is for tests"


def capped_jitter(case: LintContext) -> Iterator[Advice]:
    """Warn of a cap that takes away what the jitter before it has drawn."""
    rows = case.seen.rows
    for cap in caps(case.policy.schedule):
        same = [row for row in rows if cap.takes_chance(row.retry)]
        if len(same) > 1:
            reason = (
                f"{len(same)} of {len(rows)} delays are {told(same[-1].high)} for "
                f"every caller: {cap.text} cuts off what the jitter before it drew"
            )
            yield reason, f"put {cap.text} before the jitter"


def cap_never_reached(case: LintContext) -> Iterator[Advice]:
    """Warn of a cap that no retry comes to."""
    schedule, rows = case.policy.schedule, case.seen.rows
    # What nobody wrote needs no one to change it; and what is not seen to its
    # end may come to a cap beyond.
    if not case.seen.end or not rows or schedule == Policy().schedule:
        return
    longest = told(max(row.high for row in rows))
    for cap in caps(schedule):
        if not any(cap.reached(row.retry) for row in rows):
            # Code of the user's may fail beyond the end of the calls.
            last = len(rows) if has_user_code(schedule) else _FAR
            later = filter(cap.reached, range(len(rows) + 1, last + 1))
            first = next(later, None)
            allow = f", or allow the {first + 1} attempts it takes" if first else ""
            reason = (
                f"no delay up to retry {len(rows)} comes to {cap.text}: the longest "
                f"is {longest}"
            )
            yield reason, f"{cap.without}{allow}"
