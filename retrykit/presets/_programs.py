"""Policies of command-line programs and system services."""

from typing import Annotated

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration
from retrykit.presets._form import (
    Growth,
    Period,
    Retries,
    Wait,
    add_random,
    check_order,
    client_policy,
    lasting,
    limit_time,
    preset,
    seconds,
)
from retrykit.presets._javascript import timeouts
from retrykit.presets._python_libraries import urllib3
from retrykit.schedules import constant, exponential, linear, sequence

__all__ = ["apt", "curl", "kubernetes", "npm", "pip", "systemd", "uv", "wget"]


@preset
def apt(*, retries: Retries = 3, delay_maximum: Wait = "30s") -> Policy:
    """Return the retries of a download by APT.

    The delay of retry n is ``2 ** (n - 1)`` s, capped at *delay_maximum*. A Retry-After
    is ignored.

    >>> list(apt().schedule.take(7).draw())
    [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]

    Args:
        retries: ``Acquire::Retries``, the maximum number of retries. Count, >= 0.
        delay_maximum: ``Acquire::Retries::Delay::Maximum``. A duration, >= 0.

    Source:
        `apt.conf`, manual of APT 2.6, and a run of it.
    """
    return Policy(schedule=exponential(1).cap(delay_maximum), max_attempts=retries + 1)


@preset
def curl(
    *,
    retry: Retries = 7,
    retry_delay: Wait = 0,
    retry_max_time: Period | None = None,
) -> Policy:
    """Return the policy of ``curl --retry``, by default the example of its manual.

    The delay of retry n is ``2 ** (n - 1)`` s, capped at 10 min, or *retry_delay*,
    unless that is 0. *retry_max_time* is compared before the delay, so that a retry may
    come later (the rule ``"overshoot"``). In curl, a Retry-After of up to 6 h replaces
    the delay, and curl gives up if it would end after *retry_max_time*. Here it
    replaces only a shorter delay, and is obeyed even then.

    >>> list(curl().schedule.take(11).draw())[8:]
    [256.0, 512.0, 600.0]

    Args:
        retry: Maximum number of retries. Count, >= 0.
        retry_delay: Delay of each retry. A duration, >= 0; 0 means growing delays.
        retry_max_time: Time after which there is no retry. A duration, > 0; None is
            unlimited.

    Source: "curl.1", manual of curl 8.22, its code, and a run of curl 7.88.
    """
    growing = exponential(1).cap("10m")
    delays = constant(retry_delay) if seconds(retry_delay) else growing
    policy = client_policy(retry, delays, longest_hint="6h")
    return limit_time(policy, retry_max_time, "overshoot")


@preset
def kubernetes(
    *, max_container_restart_period: Annotated[Duration, lasting(1, 300)] = "5m"
) -> Policy:
    """Return the restarts of a container by Kubernetes, known as CrashLoopBackOff.

    The first restart is immediate. The next ones come 10 s, 20 s, 40 s ... after the
    container has ended, up to *max_container_restart_period*, and without end. A
    container that has run for twice that period starts again without a delay, which no
    policy can express.

    >>> list(kubernetes().schedule.take(8).draw())
    [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]

    Args:
        max_container_restart_period: Longest delay. A duration, 1 s to 5 min.

    Source:
        `doBackOff` of the kubelet, Kubernetes 1.34.
    """
    backoff = exponential(10).cap(max_container_restart_period)
    return Policy(schedule=sequence([0]).then(backoff), max_attempts=None, on=Exception)


@preset
def npm(
    *,
    fetch_retries: Retries = 2,
    fetch_retry_factor: Growth = 10,
    fetch_retry_mintimeout: Wait = "10s",
    fetch_retry_maxtimeout: Wait = "1m",
) -> Policy:
    """Return the retries of a download by npm.

    The delay of retry n is ``fetch_retry_mintimeout * fetch_retry_factor ** (n - 1)``,
    capped at *fetch_retry_maxtimeout*, as in `node_retry`. A Retry-After is ignored.

    >>> list(npm().schedule.take(3).draw())
    [10.0, 60.0, 60.0]

    Args:
        fetch_retries: Maximum number of retries. Count, >= 0.
        fetch_retry_factor: Growth of the delay. Dimensionless, >= 1.
        fetch_retry_mintimeout: First delay. A duration, >= 0; less than 1 ms is 1 ms.
        fetch_retry_maxtimeout: Longest delay. A duration, >= *fetch_retry_mintimeout*.

    Source:
        `promiseRetry`, npm 12.2.
    """
    first, longest = seconds(fetch_retry_mintimeout), seconds(fetch_retry_maxtimeout)
    check_order(fetch_retry_mintimeout=first, fetch_retry_maxtimeout=longest)
    delays = timeouts(max(first, 0.001), fetch_retry_factor).cap(longest)
    return Policy(schedule=delays, max_attempts=fetch_retries + 1)


@preset
def pip(*, retries: Retries = 5) -> Policy:
    """Return the retries of a download by pip, which retries as `urllib3` does.

    >>> list(pip().schedule.take(5).draw())
    [0.0, 0.5, 1.0, 2.0, 4.0]

    Args:
        retries: Maximum number of retries. Count, >= 0.

    Source:
        `PipSession`, pip 26.3.
    """
    return urllib3(total=retries, backoff_factor=0.25)


@preset
def systemd(
    *,
    restart_sec: Wait = "100ms",
    restart_steps: Retries = 0,
    restart_max_delay_sec: Wait | None = None,
    restart_randomized_delay_sec: Wait = 0,
) -> Policy:
    """Return the restarts of a service by systemd.

    Each delay is *restart_sec*. With *restart_steps* and *restart_max_delay_sec* it
    grows by the same factor each time, and reaches the longest delay after that many
    steps. A random time of up to *restart_randomized_delay_sec* is added. The restarts
    have no end; systemd also limits the number of starts in a period, by default 5 in
    10 s, which no policy can express.

    >>> policy = systemd(restart_sec=1, restart_steps=4, restart_max_delay_sec=16)
    >>> list(policy.schedule.take(6).draw())
    [1.0, 2.0, 4.0, 8.0, 16.0, 16.0]

    Args:
        restart_sec: First delay. A duration, >= 0; 0 does not grow.
        restart_steps: Number of steps to the longest delay. Count, >= 0; 0 means that
            delays do not grow.
        restart_max_delay_sec: Longest delay before the random part. A duration, >= 0;
            None means that delays do not grow. One shorter than *restart_sec* is
            ignored.
        restart_randomized_delay_sec: Largest random part, in systemd 262 and later. A
            duration, >= 0.

    Source:
        `service_restart_usec_next`, systemd 262.
    """
    first, schedule = seconds(restart_sec), constant(restart_sec)
    if restart_steps and restart_max_delay_sec is not None:
        longest = seconds(restart_max_delay_sec)
        if 0 < first < longest:
            factor = (longest / first) ** (1 / restart_steps)
            growing = exponential(first, factor=factor).round_down("1us")
            schedule = growing.take(restart_steps).then(constant(longest))
    schedule = add_random(schedule, restart_randomized_delay_sec)
    return Policy(schedule=schedule, max_attempts=None, on=Exception)


@preset
def uv(*, http_retries: Retries = 3) -> Policy:
    """Return the retries of a download by uv.

    The delay of retry n is uniform from 1 s to ``2 ** n`` s, with this bound capped at
    30 s. A Retry-After is ignored.

    >>> [uv().schedule.bounds(retry) for retry in (1, 2, 3, 9)]
    [(1.0, 2.0), (1.0, 4.0), (1.0, 8.0), (1.0, 30.0)]

    Args:
        http_retries: ``UV_HTTP_RETRIES``, the maximum number of retries. Count, >= 0.

    Source:
        `retry_policy`, uv 0.13, and `Jitter::Bounded`, retry-policies 0.5.
    """
    longest = sequence([1, 3, 7, 15, 29], repeat_last=True)
    return Policy(
        schedule=constant(1) + longest.full_jitter(), max_attempts=http_retries + 1
    )


@preset
def wget(*, tries: Retries = 20, waitretry: Retries = 10) -> Policy:
    """Return the retries of wget.

    The delay of retry n is n s, capped at *waitretry*. A Retry-After is ignored.

    >>> list(wget(waitretry=3).schedule.take(4).draw())
    [1.0, 2.0, 3.0, 3.0]

    Args:
        tries: Maximum number of attempts, including the first. Count; 0 is unlimited.
        waitretry: Longest delay. Whole seconds, >= 0.

    Source:
        "Download Options", manual of wget 1.21, and a run of it.
    """
    return Policy(schedule=linear(1).cap(waitretry), max_attempts=tries or None)
