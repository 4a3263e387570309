"""Caveats of a preview: settings that can make a live call differ from it."""

from collections.abc import Iterator

from retrykit._internal.durations import format_duration
from retrykit.policy.conditions import format_value
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import timeout_seconds

__all__ = ["caveats", "has_other_delays"]


def has_other_delays(policy: Policy) -> bool:
    """Return whether rules or a hint may replace the delays of the schedule.

    >>> has_other_delays(Policy())
    False
    """
    by_rule = any(rule.schedule is not None for rule in policy.rules)
    return by_rule or policy.hint is not None


def caveats(policy: Policy) -> Iterator[str]:
    """Yield a clause for each setting that a preview ignores or assumes.

    >>> list(caveats(Policy(attempt_timeout="10s")))
    ['each attempt takes 10s at most']
    """
    for text, scheduled in (("delays", True), ("max_attempts", False)):
        conditions = [
            format_value(rule.on)
            for rule in policy.rules
            if (rule.schedule is not None) == scheduled
        ]
        if conditions:
            yield f"separate {text} for {', '.join(conditions)}"
    if policy.hint is not None:
        cap = policy.hint_cap
        most = "" if cap is None else f", up to {format_duration(cap)}"
        yield f"a hint may ask for other delays{most}"
    if policy.budget is not None:
        yield "a budget must allow each retry"
    limit = timeout_seconds(policy.attempt_timeout)
    if limit is not None:
        yield f"each attempt takes {format_duration(limit)} at most"
    if policy.nested != "respect":
        effect = "is retried" if policy.nested == "retry" else "is a NestedRetryError"
        yield f"a nested call that has given up {effect}"
