"""The retries of the AWS SDKs."""

from collections.abc import Mapping

from retrykit._internal.error_conditions import Condition
from retrykit._internal.validation import check_choice, check_integer
from retrykit.budgets import TokenBucket
from retrykit.hints import milliseconds
from retrykit.policy.policy import Policy
from retrykit.policy.rules import Rule
from retrykit.schedules import exponential

__all__ = ["aws_adaptive", "aws_standard", "throttling"]


def aws_standard(
    *,
    version: str = "2.1",
    max_attempts: int = 3,
    throttled: Condition | None = None,
) -> Policy:
    """Return the standard mode of the AWS SDKs.

    In 2.1, the default of the SDKs since November 2026, retry n waits anything
    up to ``0.05 * 2 ** (n - 1)`` s, capped at 20 s before the chance; in 2.0 up
    to ``2 ** (n - 1)`` s, with what is drawn capped at 20 s. Errors that say
    that the caller is throttled wait as if 0.05 s were 1 s in 2.1: name them,
    as `throttling` of `retrykit.presets.aws` does. DynamoDB begins at 0.025 s
    and makes 4 attempts.

    Its budget has 500 tokens. In 2.1 a retry costs 14 of them, and 5 after
    throttling; in 2.0 it costs 5, and 10 after a timeout. A success gives back
    what its last retry cost, and one token if it needed none. Every call of
    this function makes a new budget.

    >>> aws_standard(version="2.0").schedule
    exponential(1.0, factor=2.0).full_jitter().cap(20.0)
    >>> aws_standard(throttled=ConnectionRefusedError).budget
    TokenBucket(cost=14, costs=((ConnectionRefusedError, 5),))

    In 2.1 a response may ask for a wait by its header x-amz-retry-after. The
    SDKs wait up to 5 s longer than the delay for it; here it is up to 5 s in all,
    or the delay if that is longer.

    Args:
        version: ``"2.0"``, or ``"2.1"`` as revised in 2026.
        max_attempts: Most attempts, the first included. Count, >= 1.
        throttled: The errors of a caller that is throttled, in the forms of a
            policy's `on`; none by default. In 2.0 they are like others.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026, and
        "Updated default retry behavior", AWS Developer Tools Blog, 2026.
    """
    limit = check_integer("max_attempts", max_attempts, at_least=1)
    common = Policy(max_attempts=limit, max_elapsed=None)
    if check_choice("version", version, ("2.0", "2.1")) == "2.0":
        schedule = exponential(1).full_jitter().cap(20)
        return common.replace(schedule=schedule, budget=TokenBucket())
    common = common.replace(
        schedule=exponential("50ms").cap(20).full_jitter(),
        hint=milliseconds("x-amz-retry-after"),
        hint_cap=5,
        on_long_hint="clip",
    )
    if throttled is None:
        return common.replace(budget=TokenBucket(cost=14, costs=()))
    slower = Rule(on=throttled, schedule=exponential(1).cap(20).full_jitter())
    budget = TokenBucket(cost=14, costs=[(throttled, 5)])
    return common.replace(rules=[slower], budget=budget)


def aws_adaptive(
    *,
    version: str = "2.1",
    max_attempts: int = 3,
    throttled: Condition | None = None,
) -> Policy:
    """Return what a policy has of the adaptive mode of the AWS SDKs.

    That is the standard mode: its retries are the same. What makes it adaptive
    is no retrying. It measures how many requests a client sends, cuts that
    rate to 70 % when it is throttled, lets it grow again along a cubic curve,
    and keeps back each request, the first one too, until a token is there. A
    policy never delays the first attempt: put a rate limiter before it.

    >>> aws_adaptive().schedule == aws_standard().schedule
    True

    Args:
        version: As for `aws_standard`.
        max_attempts: Most attempts, the first included. Count, >= 1.
        throttled: As for `aws_standard`.

    Raises:
        ConfigError: A setting is out of its bounds.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026.
    """
    return aws_standard(version=version, max_attempts=max_attempts, throttled=throttled)


def throttling(error: Exception) -> bool:
    """Return whether an error of an AWS client says that it is throttled.

    >>> throttling(OSError("refused"))
    False

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026.
    """
    answer = getattr(error, "response", None)
    told = answer.get("Error") if isinstance(answer, Mapping) else None
    return isinstance(told, Mapping) and told.get("Code") in _THROTTLED


_THROTTLED = {
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
}
