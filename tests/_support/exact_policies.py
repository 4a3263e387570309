"""Policies whose delays are multiples of a power of two, so that sums are exact."""

from retrykit._core.limits import override
from retrykit.testing.strategies import durations, policies, schedules

__all__ = ["EXACT_DURATIONS", "EXACT_POLICIES", "STEP"]

# Or rounding would decide whether a sum of delays is within a limit.
STEP = 2.0**-10
EXACT_DURATIONS = durations(at_most="1h").map(lambda delay: delay // STEP * STEP)


def round_policy(policy):
    limit = policy.max_elapsed
    limit = limit if limit is None else min(limit, 86_400) // STEP * STEP
    rules = [
        rule.replace(schedule=round_schedule(rule.schedule)) for rule in policy.rules
    ]
    schedule = round_schedule(policy.schedule)
    return override(policy, schedule=schedule, max_elapsed=limit, rules=tuple(rules))


def round_schedule(schedule):
    return schedule and schedule.cap("1h").round_down(STEP)


EXACT_POLICIES = policies(schedules=schedules(), max_attempts=6).map(round_policy)
