"""Caveats of a preview: settings that can make a live call differ from it."""

from collections.abc import Iterator

from retrykit._conditions import format_value
from retrykit._core.final_error import NO_FALLBACK
from retrykit._core.policy import Policy
from retrykit._core.rules import Rule
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.durations import format_duration

__all__ = ["caveats", "has_other_delays"]


def has_other_delays(policy: Policy) -> bool:
    """Return whether rules or hints may replace the delays of the schedule.

    >>> has_other_delays(Policy())
    False
    """
    by_rule = any(x.schedule is not None or x.hint is not None for x in policy.rules)
    return by_rule or policy.hint is not None


def caveats(policy: Policy) -> Iterator[str]:
    """Yield a clause for each setting that a preview ignores or assumes.

    >>> list(caveats(Policy(attempt_timeout="10s")))
    ['each attempt takes 10s at most']
    """
    delayed = [rule for rule in policy.rules if rule.schedule is not None]
    limited = [x for x in policy.rules if x.max_attempts is not None]
    parts = {
        "delays": delayed,
        "max_attempts": [rule for rule in limited if rule not in delayed],
        "hint": [rule for rule in policy.rules if rule.hint is not None],
    }
    for text, rules in parts.items():
        if rules:
            yield f"separate {text} for {', '.join(map(_format_failures, rules))}"
    if policy.hint is not None:
        cap = policy.hint_cap
        most = "" if cap is None else f", up to {format_duration(cap)}"
        yield f"a hint may ask for other delays{most}"
    if policy.budget is not None:
        yield "a budget must allow each retry"
    yield from _attempt_caveats(policy)
    if policy.nested != "respect":
        effect = "is retried" if policy.nested == "retry" else "is a NestedRetryError"
        yield f"a nested call that has given up {effect}"
    if policy.stop_event is not None:
        yield "stop_event may end the call sooner"
    if policy.fallback is not NO_FALLBACK:
        yield "a call that gives up returns its fallback"


def _attempt_caveats(policy: Policy) -> Iterator[str]:
    """Yield a clause for each stage of an attempt."""
    if policy.admission:
        waits = ", or are waited for" if policy.on_refused == "wait" else ""
        yield f"limits must allow each attempt{waits}"
    hedge, limit = policy.hedge, timeout_seconds(policy.attempt_timeout)
    if hedge is not None:
        yield f"each attempt may be sent {hedge.at_most} times"
    if limit is not None:
        what = "attempt" if hedge is None else "send"
        yield f"each {what} takes {format_duration(limit)} at most"


def _format_failures(rule: Rule) -> str:
    """Return the failures of a rule as the expressions of its conditions."""
    errors = [] if rule.on == () else [format_value(rule.on)]
    rejects = rule.on_result
    results = [] if rejects is None else [f"on_result={format_value(rejects)}"]
    return " and ".join(errors + results)
