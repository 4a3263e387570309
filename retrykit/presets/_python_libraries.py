"""Policies of libraries that retry, in Python."""

from retrykit._core.policy import Policy
from retrykit.hints import retry_after
from retrykit.presets._form import Attempts, Growth, Number, Retries, Wait, preset
from retrykit.schedules import constant, exponential, uniform

__all__ = ["stamina", "urllib3"]


@preset
def stamina(  # noqa: PLR0913  the parameters of stamina
    *,
    attempts: Attempts = 10,
    timeout: Wait = 45,
    wait_initial: Wait = 0.1,
    wait_max: Wait = 5,
    wait_jitter: Wait = 1,
    wait_exp_base: Growth = 2,
) -> Policy:
    """Return the policy of ``stamina.retry``.

    The delay of retry n is ``wait_initial * wait_exp_base ** (n - 1)``, and a random 0
    to *wait_jitter* more, capped at *wait_max*. There is no retry once *timeout* has
    passed, or if it would pass in the delay.

    >>> [stamina().schedule.bounds(retry) for retry in (1, 4, 7)]
    [(0.1, 1.1), (0.8, 1.8), (5.0, 5.0)]

    Args:
        attempts: Maximum number of attempts, including the first. Count, >= 1.
        timeout: Time limit of the whole call. A duration, >= 0.
        wait_initial: Shortest first delay. A duration, >= 0.
        wait_max: Longest delay. A duration, >= 0.
        wait_jitter: Largest random part of a delay. A duration, >= 0.
        wait_exp_base: Growth of the delay. Dimensionless, >= 1.

    Source:
        `stamina.retry`, stamina 26.1.
    """
    delays = exponential(wait_initial, factor=wait_exp_base) + uniform(0, wait_jitter)
    return Policy(
        schedule=delays.cap(wait_max), max_attempts=attempts, max_elapsed=timeout
    )


@preset
def urllib3(
    *,
    total: Retries = 10,
    backoff_factor: Number = 0,
    backoff_max: Wait = 120,
    backoff_jitter: Wait = 0,
    retry_after_max: Wait = 21_600,
) -> Policy:
    """Return the waits of urllib3's `Retry`.

    The first retry is immediate. The delay of each later one is
    ``backoff_factor * 2 ** (n - 1)`` s and a random 0 to *backoff_jitter* more, capped
    at *backoff_max*. A Retry-After takes the place of the delay; here, if it is longer.

    >>> [urllib3(backoff_factor=0.5).schedule.bounds(retry) for retry in (1, 2, 3)]
    [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]

    Args:
        total: Maximum number of retries. Count, >= 0.
        backoff_factor: Half of the second delay, in seconds, >= 0.
        backoff_max: Longest delay. A duration, >= 0.
        backoff_jitter: Largest random part of a delay. A duration, >= 0.
        retry_after_max: Longest delay of a Retry-After. A duration, >= 0.

    Source:
        `Retry`, urllib3 2.8.
    """
    delays = exponential(backoff_factor)
    if backoff_jitter:
        delays += uniform(0, backoff_jitter)
    return Policy(
        schedule=constant(0).switch(after=1, to=delays.cap(backoff_max)),
        max_attempts=total + 1,
        hint=retry_after(),
        hint_cap=retry_after_max,
        on_long_hint="clip",
        hint_jitter=0,
    )
