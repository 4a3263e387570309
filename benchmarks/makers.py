"""The libraries, each configured as its users would.

All make up to the same number of attempts on `ConnectionError`, with exponential delays
and jitter; but google-api-core has no limit of attempts, redress classifies errors
itself, and the delays of opnieuw follow from its attempts and its time. Other defaults
are kept, such as the time limit of google-api-core, the absence of one in nopanic, and
what is logged. If all logs are off, those that must be told so are told: stamina,
backoff and backon.
"""

# ruff: noqa: PLC0415  a library is imported only if it is measured

import asyncio
import functools
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from retrykit import Policy

__all__ = ["Decorator", "Maker", "Terms"]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@final
@dataclass(frozen=True)
class Terms:
    """The limits of a policy, and its delays in seconds.

    Attributes:
        attempts: The maximum number of attempts.
        first: The first delay, before jitter.
        cap: The longest delay.
        max_elapsed: The time limit of a call.
    """

    attempts: int
    first: float
    cap: float
    max_elapsed: float


Maker = Callable[[Terms], Decorator]


def nothing(*_: object) -> None:
    """Do nothing, as a hook."""


def logs_are_on() -> bool:
    """Return whether no `logging.disable` switches all logs off."""
    return logging.root.manager.disable < logging.CRITICAL


def in_each_call(make: Maker) -> Maker:
    """Return a maker that decorates the function in each call, and calls it."""

    def maker(terms: Terms) -> Decorator:
        decorate = make(terms)
        return _by_call(lambda fn, number: decorate(fn)(number))

    return maker


def _by_call(call: Callable[..., Any]) -> Decorator:
    return lambda fn: lambda number: call(fn, number)


def _in_block(
    attempts: Callable[[], Iterable[AbstractContextManager[object]]],
) -> Decorator:
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        def run(number: int) -> Any:
            for attempt in attempts():
                with attempt:
                    return fn(number)
            return None

        return run

    return decorate


def by_hand(terms: Terms) -> Decorator:
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            failures = 0
            while True:
                try:
                    return fn(*args, **kwargs)
                except ConnectionError:
                    failures += 1
                    if failures == terms.attempts:
                        raise
                delay = min(terms.first * 2 ** (failures - 1), terms.cap)
                time.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311  jitter

        return wrapper

    return decorate


def by_hand_async(terms: Terms) -> Decorator:
    def decorate(fn: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        @functools.wraps(fn)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            failures = 0
            while True:
                try:
                    return await fn(*args, **kwargs)
                except ConnectionError:
                    failures += 1
                    if failures == terms.attempts:
                        raise
                delay = min(terms.first * 2 ** (failures - 1), terms.cap)
                await asyncio.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311

        return wrapper

    return decorate


def retrykit(terms: Terms, **settings: Any) -> Decorator:
    from retrykit import retry

    return retry(_retrykit_policy(terms, **settings))


def _retrykit_policy(terms: Terms, **settings: Any) -> "Policy":
    from retrykit import Policy, schedules

    return Policy(
        on=ConnectionError,
        schedule=schedules.exponential(terms.first).cap(terms.cap).jitter(0.5),
        max_attempts=terms.attempts,
        max_elapsed=terms.max_elapsed,
        **settings,
    )


def retrykit_hook(terms: Terms) -> Decorator:
    return retrykit(terms, observers={"retry_scheduled": nothing})


def retrykit_observer(terms: Terms) -> Decorator:
    return retrykit(terms, observers=[nothing])


def retrykit_prometheus(terms: Terms) -> Decorator:
    from prometheus_client import CollectorRegistry

    from retrykit.integrations.prometheus import observer

    return retrykit(terms, observers=[observer(registry=CollectorRegistry())])


def retrykit_rules(terms: Terms) -> Decorator:
    from retrykit import Rule, schedules
    from retrykit.budgets import TokenBucket
    from retrykit.hints import retry_after

    return retrykit(
        terms,
        rules=[
            Rule(TimeoutError, schedule=schedules.exponential(1).jitter(0.5)),
            Rule(ConnectionError, max_attempts=terms.attempts),
        ],
        hint=retry_after(),
        # So large that it never runs out, and full, as it usually is.
        budget=TokenBucket(10**9, cost=1),
    )


def retrykit_block(terms: Terms) -> Decorator:
    from retrykit import retrying

    policy = _retrykit_policy(terms)
    return _in_block(lambda: retrying(policy))


def retrykit_call(terms: Terms) -> Decorator:
    return _by_call(_retrykit_policy(terms).call)


def tenacity(terms: Terms, **hooks: Any) -> Decorator:
    import tenacity as library

    decorate: Decorator = library.retry(**_tenacity_settings(terms), **hooks)
    return decorate


def _tenacity_settings(terms: Terms) -> dict[str, Any]:
    import tenacity as library

    return {
        "retry": library.retry_if_exception_type(ConnectionError),
        "stop": library.stop_after_attempt(terms.attempts),
        "wait": library.wait_random_exponential(terms.first, terms.cap),
        "reraise": True,
    }


def tenacity_logging(terms: Terms) -> Decorator:
    import tenacity as library

    log = logging.getLogger("benchmarks.tenacity")
    return tenacity(terms, before_sleep=library.before_sleep_log(log, logging.WARNING))


def tenacity_hook(terms: Terms) -> Decorator:
    return tenacity(terms, before_sleep=nothing)


def tenacity_observer(terms: Terms) -> Decorator:
    return tenacity(terms, before=nothing, after=nothing, before_sleep=nothing)


def tenacity_block(terms: Terms) -> Decorator:
    import tenacity as library

    retrying = library.Retrying(**_tenacity_settings(terms))
    return _in_block(lambda: retrying)


def tenacity_call(terms: Terms) -> Decorator:
    import tenacity as library

    return _by_call(library.Retrying(**_tenacity_settings(terms)))


def stamina(terms: Terms) -> Decorator:
    import stamina as library

    _stamina_hooks()
    return library.retry(on=ConnectionError, **_stamina_settings(terms))


def _stamina_settings(terms: Terms) -> dict[str, Any]:
    return {
        "attempts": terms.attempts,
        "timeout": terms.max_elapsed,
        "wait_initial": terms.first,
        "wait_jitter": terms.first,
        "wait_max": terms.cap,
    }


def _stamina_hooks(*hooks: Any) -> None:
    # They are of the whole process. This one is the default where neither structlog
    # nor prometheus-client is installed.
    from stamina.instrumentation import LoggingOnRetryHook, set_on_retry_hooks

    set_on_retry_hooks([*hooks, *[LoggingOnRetryHook] * logs_are_on()])


def stamina_hook(terms: Terms) -> Decorator:
    decorate = stamina(terms)
    _stamina_hooks(nothing)
    return decorate


def stamina_prometheus(terms: Terms) -> Decorator:
    from stamina.instrumentation import PrometheusOnRetryHook

    decorate = stamina(terms)
    _stamina_hooks(PrometheusOnRetryHook)
    return decorate


def stamina_block(terms: Terms) -> Decorator:
    import stamina as library

    _stamina_hooks()
    settings = _stamina_settings(terms)
    return _in_block(lambda: library.retry_context(on=ConnectionError, **settings))


def stamina_call(terms: Terms) -> Decorator:
    import stamina as library

    _stamina_hooks()
    caller = library.RetryingCaller(**_stamina_settings(terms))
    return _by_call(caller.on(ConnectionError))


def backoff(terms: Terms, **hooks: Any) -> Decorator:
    import backoff as library

    settings = _expo_settings(terms) | hooks
    return library.on_exception(library.expo, ConnectionError, **settings)


def _expo_settings(terms: Terms) -> dict[str, Any]:
    settings = {
        "max_tries": terms.attempts,
        "factor": terms.first,
        "max_value": terms.cap,
    }
    return settings if logs_are_on() else settings | {"logger": None}


def backoff_hook(terms: Terms) -> Decorator:
    return backoff(terms, on_backoff=nothing)


def backoff_call(terms: Terms) -> Decorator:
    # Each function that one decorator decorates adds a handler to those before it.
    return _by_call(lambda fn, number: backoff(terms)(fn)(number))


def backoff_observer(terms: Terms) -> Decorator:
    return backoff(terms, on_success=nothing, on_backoff=nothing, on_giveup=nothing)


def google(terms: Terms, **hooks: Any) -> Decorator:
    from google.api_core import retry

    return _google(retry.Retry, terms, **hooks)


def google_async(terms: Terms) -> Decorator:
    from google.api_core import retry

    return _google(retry.AsyncRetry, terms)


def _google(kind: Any, terms: Terms, **hooks: Any) -> Decorator:
    from google.api_core import retry

    decorate: Decorator = kind(
        predicate=retry.if_exception_type(ConnectionError),
        initial=terms.first,
        maximum=terms.cap,
        timeout=terms.max_elapsed,
        **hooks,
    )
    return decorate


def google_hook(terms: Terms) -> Decorator:
    return google(terms, on_error=nothing)


def redress(terms: Terms, **hooks: Any) -> Decorator:
    import redress as library

    return library.retry(**_redress_settings(terms), **hooks)


def _redress_settings(terms: Terms) -> dict[str, Any]:
    import redress as library

    return {
        "strategy": library.decorrelated_jitter(terms.first, terms.cap),
        "max_attempts": terms.attempts,
        "deadline_s": terms.max_elapsed,
    }


def redress_hook(terms: Terms) -> Decorator:
    return redress(terms, before_sleep=nothing)


def redress_observer(terms: Terms) -> Decorator:
    return redress(terms, on_metric=nothing)


def redress_prometheus(terms: Terms) -> Decorator:
    from prometheus_client import CollectorRegistry, Counter
    from redress import prometheus_metric_hook

    labels = ["event", "class", "operation", "err", "stop_reason"]
    counter = Counter("redress", "Events.", labels, registry=CollectorRegistry())
    return redress(terms, on_metric=prometheus_metric_hook(counter))


def redress_call(terms: Terms) -> Decorator:
    import redress as library

    settings = _redress_settings(terms)
    policy = library.RetryPolicy(classifier=library.default_classifier, **settings)
    return lambda fn: lambda number: policy.call(lambda: fn(number))


def _nopanic(terms: Terms, **hooks: Any) -> Any:
    import nopanic as library

    library.unsubscribe(nothing)
    delays = library.backoff.full_jitter(terms.first, cap=terms.cap)
    return library.retry(terms.attempts, ConnectionError, delays, **hooks)


def nopanic(terms: Terms) -> Decorator:
    decorate: Decorator = _nopanic(terms)
    return decorate


def nopanic_hook(terms: Terms) -> Decorator:
    decorate: Decorator = _nopanic(terms, before_sleep=nothing)
    return decorate


def nopanic_observer(terms: Terms) -> Decorator:
    import nopanic as library

    decorate = nopanic(terms)
    library.subscribe(nothing)
    return decorate


def nopanic_call(terms: Terms) -> Decorator:
    return _by_call(_nopanic(terms).call)


def resilix(terms: Terms, **hooks: Any) -> Decorator:
    from resilix import protect

    return protect.when(
        ConnectionError,
        retry=terms.attempts,
        delay=terms.first,
        backoff="exponential",
        jitter=True,
        max_delay=terms.cap,
        **hooks,
    )


def resilix_hook(terms: Terms) -> Decorator:
    return resilix(terms, notify=nothing)


def resilix_observer(terms: Terms) -> Decorator:
    from resilix import protect

    notified = resilix(terms, notify=nothing)
    observed = protect.observe(on_start=nothing, on_finish=nothing)
    return lambda fn: observed(notified(fn))


def opnieuw(terms: Terms) -> Decorator:
    import opnieuw as library

    return library.retry(
        retry_on_exceptions=ConnectionError,
        max_calls_total=terms.attempts,
        retry_window_after_first_call_in_seconds=int(terms.max_elapsed),
    )


def backon(terms: Terms, **hooks: Any) -> Decorator:
    import backon as library

    settings = _expo_settings(terms) | hooks
    return library.on_exception(library.expo, ConnectionError, **settings)


def backon_hook(terms: Terms) -> Decorator:
    return backon(terms, on_backoff=nothing)


def backon_observer(terms: Terms) -> Decorator:
    names = "on_attempt", "on_success", "on_backoff", "on_giveup"
    return backon(terms, **dict.fromkeys(names, nothing))


def backon_block(terms: Terms) -> Decorator:
    import backon as library

    retrying = library.Retrying(exception=ConnectionError, **_expo_settings(terms))
    return _in_block(lambda: retrying)


def backon_call(terms: Terms) -> Decorator:
    import backon as library

    return _by_call(
        library.RetryingCaller(exception=ConnectionError, **_expo_settings(terms))
    )
