"""Policies of the AWS SDKs."""

from functools import partial
from typing import Literal

from retrykit._conditions import Condition
from retrykit._core.policy import Policy
from retrykit._core.rules import Rule
from retrykit._internal.durations import Duration
from retrykit._throttling import throttling
from retrykit.budgets import TokenBucket
from retrykit.hints import milliseconds, retry_after
from retrykit.limits import AdaptiveRateLimit, shared
from retrykit.presets._form import Attempts, client_policy, preset
from retrykit.schedules import constant, exponential

__all__ = ["aws_adaptive", "aws_dynamodb", "aws_legacy", "aws_sdk", "aws_standard"]

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
    example with `retrykit.integrations.botocore.throttling`. Here n then counts the
    throttling errors of the call; in the SDKs it counts all failures. In 2.0 the delay
    is uniform from 0 to ``2 ** (n - 1)`` s, and then capped at 20 s. `aws_dynamodb` has
    shorter delays and 4 attempts.

    The budget has 500 tokens. In 2.1 a retry costs 14 of them, or 5 after throttling;
    in 2.0 it costs 5, or 10 after a timeout. A success returns the cost of its last
    retry, or one token if it needed none. Each call of this function creates a budget.

    >>> aws_standard(version="2.0").schedule
    exponential(1.0, factor=2.0).full_jitter().cap(20.0)
    >>> aws_standard(throttled=ConnectionRefusedError).budget
    TokenBucket(cost=14, costs=((ConnectionRefusedError, 5),))

    In 2.1 a response may ask for a delay in its header x-amz-retry-after. The SDKs then
    wait up to 5 s longer than their own delay; this policy waits up to 5 s in all, or
    for its own delay if that is longer.

    Args:
        version: ``"2.0"``, or ``"2.1"`` as revised in 2026.
        max_attempts: Maximum number of attempts, including the first. Count, >= 1.
        throttled: Throttling errors, in the forms of a policy's `on`; none by
            default. 2.0 does not distinguish them.

    Source:
        "Retry behavior", AWS SDKs and Tools Reference Guide, 2026, and
        "Updated default retry behavior", AWS Developer Tools Blog, 2026.
    """
    if version == "2.0":
        schedule = exponential(1).full_jitter().cap(20)
        budget = TokenBucket()
        return Policy(schedule=schedule, max_attempts=max_attempts, budget=budget)
    return _revised("50ms", max_attempts, throttled)


def _revised(first: Duration, max_attempts: int, throttled: Condition | None) -> Policy:
    delays = exponential(first).cap(20).full_jitter()
    hint = milliseconds("x-amz-retry-after")
    common = client_policy(max_attempts - 1, delays, longest_hint=5, hint=hint)
    if throttled is None:
        return common.replace(budget=TokenBucket(cost=14, costs=()))
    slower = Rule(on=throttled, schedule=exponential(1).cap(20).full_jitter())
    budget = TokenBucket(cost=14, costs=[(throttled, 5)])
    return common.replace(rules=[slower], budget=budget)


@preset
def aws_dynamodb(
    *, max_attempts: Attempts = 4, throttled: Condition | None = None
) -> Policy:
    """Return the standard mode of the AWS SDKs for DynamoDB.

    It equals version 2.1 of `aws_standard` with shorter delays: the delay of retry n is
    uniform from 0 to ``0.025 * 2 ** (n - 1)`` s, with this bound capped at 20 s.

    >>> aws_dynamodb().schedule, aws_dynamodb().max_attempts
    (exponential(0.025, factor=2.0).cap(20.0).full_jitter(), 4)

    Args:
        max_attempts: Maximum number of attempts, including the first. Count, >= 1.
        throttled: As in `aws_standard`.

    Source:
        `ExponentialBackoff` and `register_retry_handler`, botocore 1.44.
    """
    return _revised("25ms", max_attempts, throttled)


@preset
def aws_legacy(*, service: Literal["dynamodb", "other"] = "other") -> Policy:
    """Return the legacy mode of boto3, its default up to botocore 1.43.

    The delay of retry n is uniform from 0 to ``2 ** (n - 1)`` s, in 5 attempts. For
    DynamoDB it is ``0.05 * 2 ** (n - 1)`` s, in 10 attempts. There is no cap, no budget
    and no hint.

    >>> aws_legacy().schedule, aws_legacy(service="dynamodb").schedule
    (exponential(1.0, factor=2.0).full_jitter(), exponential(0.05, factor=2.0))

    Args:
        service: ``"dynamodb"``, or ``"other"``.

    Source:
        `delay_exponential` and `_retry.json`, botocore 1.44.
    """
    if service == "dynamodb":
        return Policy(schedule=exponential("50ms"), max_attempts=10)
    return Policy(schedule=exponential(1).full_jitter(), max_attempts=5)


@preset
def aws_sdk(*, sdk: Literal["cpp", "dotnet", "go", "java", "js"] = "js") -> Policy:
    """Return the default retries of another AWS SDK before its revision of 2026.

    Since then the SDKs retry as `aws_standard` does. The delay of retry n was uniform
    from 0 to a bound, capped at 20 s: for JavaScript and Java ``0.1 * 2 ** (n - 1)`` s,
    for .NET ``2 ** (n - 1)`` s, and for Go ``2 ** n`` s. From the fifth retry on, Go
    waited exactly 20 s. C++ retried at once, and then after ``0.025 * 2 ** (n - 1)`` s,
    without a cap. Delays are whole milliseconds, except in Go.

    JavaScript also obeys a Retry-After, up to 20 s. After throttling errors JavaScript
    and Java wait longer; this policy does not.

    >>> [aws_sdk(sdk="go").schedule.bounds(retry) for retry in (1, 2)]
    [(0.0, 2.0), (0.0, 4.0)]
    >>> aws_sdk(sdk="cpp").max_attempts, aws_sdk(sdk="java").max_attempts
    (11, 4)

    Args:
        sdk: The SDK: version 2 for Go and Java, 3 for JavaScript.

    Source:
        Code of the SDKs, 2025.
    """
    tenths, whole = exponential("100ms"), exponential(1).full_jitter().cap(20)
    schedules = {
        "cpp": constant(0).switch(after=1, to=exponential("25ms")),
        # It rounds to the nearest millisecond.
        "dotnet": (whole + constant("0.5ms")).round_down("1ms"),
        "go": exponential(2).full_jitter().switch(after=4, to=constant(20)),
        "java": tenths.cap(20).full_jitter().round_down("1ms"),
        "js": tenths.full_jitter().cap(20).round_down("1ms"),
    }
    budgets = {"cpp": None, "java": TokenBucket(costs=())}
    policy = Policy(
        schedule=schedules[sdk],
        max_attempts={"cpp": 11, "java": 4}.get(sdk, 3),
        budget=budgets.get(sdk, TokenBucket()),
    )
    if sdk != "js":
        return policy
    hint = retry_after()
    return policy.replace(hint=hint, hint_cap=20, on_long_hint="clip", hint_jitter=0)


@preset
def aws_adaptive(
    *,
    version: Version = "2.1",
    max_attempts: Attempts = 3,
    throttled: Condition | None = None,
    scope: str | None = None,
) -> Policy:
    """Return the adaptive mode of the AWS SDKs.

    It is the standard mode with an `AdaptiveRateLimit` in its `admission`: once a call
    is throttled, each attempt waits for a token, including the first. The rate of
    tokens is cut to 70 % when a call is throttled, and grows again along a cubic curve.

    One limit belongs to one client. Without *scope*, each call of this function makes a
    new limit; with it, all policies of that scope share one limit.

    >>> aws_adaptive().schedule == aws_standard().schedule
    True
    >>> aws_adaptive().admission
    (AdaptiveRateLimit(),)

    Args:
        version: As in `aws_standard`.
        max_attempts: Maximum number of attempts, including the first. Count, >= 1.
        throttled: Throttling errors, in the forms of a policy's `on`. By default the
            rate limit uses the throttling errors of AWS clients, and the delays and the
            budget use none, as in `aws_standard`.
        scope: The scope of the client, such as ``"key:dynamodb"``; see
            `retrykit.limits.shared`.

    Source:
        `ClientRateLimiter`, botocore 1.44; "Retry behavior", AWS SDKs and Tools
        Reference Guide, 2026.
    """
    make = partial(AdaptiveRateLimit, on=throttling if throttled is None else throttled)
    limit = make() if scope is None else shared(scope, make=make)
    policy = aws_standard(
        version=version, max_attempts=max_attempts, throttled=throttled
    )
    return policy.replace(admission=[limit])
