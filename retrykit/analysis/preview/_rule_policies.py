"""The policies that rules stand for, as if all failures of a call matched one rule."""

from retrykit._core.policy import Policy
from retrykit._core.rules import Rule

__all__ = ["has_only_rules", "rule_policies"]


def has_only_rules(policy: Policy) -> bool:
    """Return whether a policy retries only what its rules match.

    >>> has_only_rules(Policy(rules=[Rule(on=OSError, max_attempts=2)], on=()))
    True
    """
    return policy.on == () and policy.on_result is None and policy.rules != ()


def rule_policies(policy: Policy) -> tuple[Policy, ...]:
    """Return a policy for each rule, with the rule's settings and no rules.

    >>> [own] = rule_policies(Policy(rules=[Rule(on=OSError, max_attempts=2)]))
    >>> own.on, own.max_attempts
    (<class 'OSError'>, 2)
    """
    return tuple(_policy_of(rule, policy) for rule in policy.rules)


def _policy_of(rule: Rule, policy: Policy) -> Policy:
    most, longest, limits = policy.max_attempts, policy.max_elapsed, policy.limits
    own = rule.max_attempts
    if own is not None and limits == "all":
        # It ends a call on its own.
        most, longest, limits = own, None, "any"
    elif own is not None:
        most = own if most is None else min(own, most)
    return policy.replace(
        rules=(),
        on=rule.on,
        on_result=rule.on_result,
        schedule=policy.schedule if rule.schedule is None else rule.schedule,
        hint=policy.hint if rule.hint is None else rule.hint,
        max_attempts=most,
        max_elapsed=longest,
        limits=limits,
    )
