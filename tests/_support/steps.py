"""Policies whose delays are whole steps, of which sums are exact."""

from retrykit.testing.strategies import durations, policies, schedules

__all__ = ["STEP", "STEPPING", "STEPS"]

# Whole steps, whose sums are the same in any order: else rounding decides where
# a delay ends just at a limit.
STEP = 2.0**-10
STEPS = durations(at_most="1h").map(lambda delay: delay // STEP * STEP)


def in_steps(policy):
    limit = policy.max_elapsed
    limit = limit if limit is None else min(limit, 86_400) // STEP * STEP
    rules = [rule.replace(schedule=stepping(rule.schedule)) for rule in policy.rules]
    schedule = stepping(policy.schedule)
    return policy.replace(schedule=schedule, max_elapsed=limit, rules=rules)


def stepping(schedule):
    return schedule and schedule.cap("1h").round_down(STEP)


STEPPING = policies(schedules=schedules(), max_attempts=6).map(in_steps)
