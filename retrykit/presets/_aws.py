"""Policies of the AWS SDKs."""

from collections.abc import Mapping
from typing import Literal

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._core.rules import Rule
from retrykit.budgets import TokenBucket
from retrykit.hints import milliseconds
from retrykit.presets._form import Attempts, preset
from retrykit.schedules import exponential

__all__ = ["aws_adaptive", "aws_standard", "throttling"]

Version = Literal["2.0", "2.1"]


@preset
def aws_standard(
    *,
    version: Version = "2.1",
    max_attempts: Attempts = 3,
    throttled: Condition | None = None,
) -> Policy:
    """Return the standard mode of the AWS SDKs.

    In 2.1, the default of most SDKs since November 2026, the delay of retry n is
    uniform from 0 to ``0.05 * 2 ** (n - 1)`` s, with this bound capped at 20 s. After
    throttling errors 1 s takes the place of 0.05 s; name them in *throttled*, for
    example with `retrykit.integrations.botocore.throttling`. In 2.0 the delay is
    uniform from 0 to ``2 ** (n - 1)`` s, and then capped at 20 s. DynamoDB starts at
    0.025 s and makes 4 attempts.

    The budget has 500 tokens. In 2.1 a retry costs 14 of them, or 5 after throttling;
    in 2.0 it costs 5, or 10 after a timeout. A success returns the cost of its last
    retry, or one token if it needed none. Each call of this function creates a budget.

    >>> aws_standard(version="2.0").schedule
    exponential(1.0, factor=2.0).full_jitter().cap(20.0)
    >>> aws_standard(throttled=ConnectionRefusedError).budget
    TokenBucket(cost=14, costs=((ConnectionRefusedError, 5),))

    In 2.1 a response may ask for a delay in its header x-amz-retry-after. The SDKs
    wait up to 5 s longer than their delay for it; this policy waits up to 5 s in all,
    or its delay if that is longer.

    Args:
        version: ``"2.0"``, or ``"2.1"`` as revised in 2026.
        max_attempts: Maximum number of attempts, including the first. Count, >= 1.
        throttled: Throttling errors, in the forms of a policy's `on`; none by
            default. 2.0 does not distinguish them.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026, and
        "Updated default retry behavior", AWS Developer Tools Blog, 2026.
    """
    common = Policy(max_attempts=max_attempts)
    if version == "2.0":
        schedule = exponential(1).full_jitter().cap(20)
        return common.replace(schedule=schedule, budget=TokenBucket())
    common = common.replace(
        schedule=exponential("50ms").cap(20).full_jitter(),
        hint=milliseconds("x-amz-retry-after"),
        hint_cap=5,
        on_long_hint="clip",
        hint_jitter=0,
    )
    if throttled is None:
        return common.replace(budget=TokenBucket(cost=14, costs=()))
    slower = Rule(on=throttled, schedule=exponential(1).cap(20).full_jitter())
    budget = TokenBucket(cost=14, costs=[(throttled, 5)])
    return common.replace(rules=[slower], budget=budget)


@preset
def aws_adaptive(
    *,
    version: Version = "2.1",
    max_attempts: Attempts = 3,
    throttled: Condition | None = None,
) -> Policy:
    """Return the retries of the adaptive mode of the AWS SDKs.

    They are those of the standard mode. The adaptive part is a rate limiter: it
    measures the request rate of a client, cuts it to 70 % when it is throttled, lets it
    grow again along a cubic curve, and delays every request until a token is available.
    A policy never delays the first attempt: put a rate limiter before it.

    >>> aws_adaptive().schedule == aws_standard().schedule
    True

    Args:
        version: As for `aws_standard`.
        max_attempts: Maximum number of attempts, including the first. Count, >= 1.
        throttled: As for `aws_standard`.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026.
    """
    return aws_standard(version=version, max_attempts=max_attempts, throttled=throttled)


def throttling(error: Exception) -> bool:
    """Return whether an error of an AWS client is a throttling error.

    It is one with an error code for throttling, or with the status 429 and a code that
    the model of the service does not have.

    >>> throttling(OSError("refused"))
    False

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026.
    """
    response = getattr(error, "response", None)
    if not isinstance(response, Mapping):
        return False
    error_data, metadata = response.get("Error"), response.get("ResponseMetadata")
    if isinstance(error_data, Mapping) and error_data.get("Code") in _THROTTLING:
        return True
    # The class of an error whose code the model has is made by botocore's factory.
    modeled = type(error).__module__ == "botocore.errorfactory"
    status = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
    return status == _TOO_MANY_REQUESTS and not modeled


_TOO_MANY_REQUESTS = 429
_THROTTLING = {
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
