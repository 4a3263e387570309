"""All the rules in one table, and what holds a policy to them."""

from collections.abc import Iterable

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.validation import check_choice, check_integer
from retrykit.analysis.lint.delay_rules import (
    cap_never_reached,
    capped_jitter,
    fixed_seed,
    no_jitter,
    retries_at_once,
)
from retrykit.analysis.lint.findings import Finding, LintContext, LintRule
from retrykit.analysis.lint.limit_rules import (
    deadline_before_first_delay,
    delays_never_used,
    max_attempts_unreachable,
    never_retries,
    unbounded,
)
from retrykit.analysis.lint.load_rules import (
    retries_every_exception,
    too_many_calls,
    window_outlives_process,
)
from retrykit.analysis.preview import preview
from retrykit.policy.policy import Policy

__all__ = ["RULES", "check"]

RULES = {
    "unbounded": LintRule("nothing ends a call that fails every time", unbounded),
    "never-retries": LintRule("the first attempt is the last", never_retries),
    "deadline-before-first-delay": LintRule(
        "max_elapsed is over before the first retry", deadline_before_first_delay
    ),
    "max-attempts-unreachable": LintRule(
        "max_elapsed or the schedule ends every call before max_attempts",
        max_attempts_unreachable,
    ),
    "delays-never-used": LintRule(
        "a limit ends every call before its schedule ends", delays_never_used
    ),
    "cap-never-reached": LintRule("no delay comes to a cap", cap_never_reached),
    "no-jitter": LintRule("callers that fail together retry together", no_jitter),
    "capped-jitter": LintRule("a cap takes away the jitter before it", capped_jitter),
    "fixed-seed": LintRule("a seed gives every call the same delays", fixed_seed),
    "retries-at-once": LintRule("several retries have no delay", retries_at_once),
    "retries-every-exception": LintRule(
        "mistakes in the code are retried often", retries_every_exception
    ),
    "too-many-calls": LintRule(
        "one request that fails becomes many calls", too_many_calls
    ),
    "window-outlives-process": LintRule(
        "a call may take longer than its process lives", window_outlives_process
    ),
}
"""The rules by their names, in the order in which they warn."""


def check(
    policy: Policy,
    *,
    attempt: Duration = 0.0,
    calls: int = 10,
    lifetime: Duration = 3600.0,
    rules: Iterable[str] = RULES.keys(),
) -> tuple[Finding, ...]:
    """Return the warnings about a policy.

    The policy is looked at as `preview` shows it, for up to 1000 retries; no
    condition of it is asked.

    >>> from retrykit.schedules import constant
    >>> [found] = check(Policy(schedule=constant(1).jitter(0.5), max_attempts=6))
    >>> found.rule
    'retries-every-exception'
    >>> [found] = check(Policy(on=OSError, schedule=[1, 5, 9]))
    >>> print(found.reason)
    none of its 3 delays is left to chance: callers that fail together come back \
together, 1s later and each time after that
    >>> check(Policy())
    ()

    Args:
        policy: The policy.
        attempt: How long each attempt takes. A duration, >= 0.
        calls: Most calls that one request should make. Count, >= 1.
        lifetime: How long a process lives at the least: what takes longer
            needs a job engine. A duration, >= 0.
        rules: The names of the rules that it is held to; all by default.

    Returns:
        Findings in the order of `RULES`.

    Raises:
        ConfigError: An argument is none of these, or the user's own schedule
            gave what is no delay.
    """
    chosen = {check_choice("rules", name, RULES) for name in rules}
    seen = preview(policy, attempt=attempt, samples=0)
    most = check_integer("calls", calls, at_least=1)
    case = LintContext(seen, most, parse_duration("lifetime", lifetime))
    return tuple(
        Finding(name, reason, fix)
        for name, rule in RULES.items()
        if name in chosen
        for reason, fix in rule.find(case)
    )
