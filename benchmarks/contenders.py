"""The libraries to compare, each configured as its users would.

All make up to `ATTEMPTS` attempts on `ConnectionError`, with exponential delays and
jitter; but google-api-core has no limit of attempts, and redress classifies errors
itself. Other defaults are kept, such as the time limit of google-api-core, but for the
logs: retrykit, stamina and backoff log each retry by default, and here none does.
"""

# ruff: noqa: PLC0415  a library is imported only if it is measured

import asyncio
import functools
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, final

__all__ = ["ASLEEP", "ATTEMPTS", "CONTENDERS", "PATIENT", "USUAL", "Contender"]
__all__ += ["Terms", "importable", "installed"]

ATTEMPTS = 4
"""Maximum number of attempts of a call, so that three may fail."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Sleep = Callable[[float], None]


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


USUAL = Terms(attempts=ATTEMPTS, first=0.5, cap=60.0, max_elapsed=60.0)
PATIENT = Terms(attempts=20, first=0.5, cap=60.0, max_elapsed=3600.0)

# Delays so long that none of thousands ends during a measurement.
ASLEEP = Terms(attempts=ATTEMPTS, first=1e6, cap=1e7, max_elapsed=1e9)


@contextmanager
def _replace_sleep(sleep: Sleep) -> Iterator[None]:
    """Replace `time.sleep` and `asyncio.sleep`.

    All of these libraries look the function up whenever they sleep, so none needs
    another configuration.
    """

    async def asleep(delay: float) -> None:
        sleep(delay)

    original = time.sleep, asyncio.sleep
    time.sleep, asyncio.sleep = sleep, asleep  # type: ignore[assignment]
    try:
        yield
    finally:
        time.sleep, asyncio.sleep = original


# As an application switches it off.
logging.getLogger("retrykit.retries").setLevel("ERROR")


@final
@dataclass(frozen=True, kw_only=True)
class Contender:
    """A library, or the hand-written loop.

    Attributes:
        name: The name of its distribution.
        module: The module that users import; empty for the hand-written loop.
        make: Takes terms, and returns a decorator of functions.
        amake: The same for coroutine functions.
        stub: A context manager that replaces sleeping by a function of the delay.
        with_rules: As `make` and `amake`, with all that a policy may have: rules, a
            hint and a budget; None for libraries without them.
        counts: Whether it can limit the number of attempts.
    """

    name: str
    module: str
    make: Callable[[Terms], Decorator]
    amake: Callable[[Terms], Decorator]
    stub: Callable[[Sleep], AbstractContextManager[None]] = _replace_sleep
    with_rules: Callable[[Terms], Decorator] | None = None
    counts: bool = True


def _by_hand(terms: Terms) -> Decorator:
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


def _by_hand_async(terms: Terms) -> Decorator:
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


def _by_hand_either(terms: Terms) -> Decorator:
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        by_hand = _by_hand_async if iscoroutinefunction(fn) else _by_hand
        return by_hand(terms)(fn)

    return decorate


def _retrykit(terms: Terms) -> Decorator:
    from retrykit import retry, schedules

    delays = schedules.exponential(terms.first).cap(terms.cap).jitter(0.5)
    return retry(
        on=ConnectionError,
        schedule=delays,
        max_attempts=terms.attempts,
        max_elapsed=terms.max_elapsed,
    )


def _retrykit_with_rules(terms: Terms) -> Decorator:
    from retrykit import Rule, retry, schedules
    from retrykit.budgets import TokenBucket
    from retrykit.hints import retry_after

    delays = schedules.exponential(terms.first).cap(terms.cap).jitter(0.5)
    return retry(
        on=ConnectionError,
        rules=[
            Rule(TimeoutError, schedule=delays * 2),
            Rule(ConnectionError, max_attempts=terms.attempts),
        ],
        hint=retry_after(),
        # So large that it never runs out, and full, as it usually is.
        budget=TokenBucket(10**9, cost=1),
        schedule=delays,
        max_attempts=terms.attempts,
        max_elapsed=terms.max_elapsed,
    )


def _tenacity(terms: Terms) -> Decorator:
    import tenacity

    return tenacity.retry(
        retry=tenacity.retry_if_exception_type(ConnectionError),
        stop=tenacity.stop_after_attempt(terms.attempts),
        wait=tenacity.wait_random_exponential(terms.first, terms.cap),
        reraise=True,
    )


def _stamina(terms: Terms) -> Decorator:
    import stamina

    stamina.instrumentation.set_on_retry_hooks([])
    return stamina.retry(
        on=ConnectionError,
        attempts=terms.attempts,
        timeout=terms.max_elapsed,
        wait_initial=terms.first,
        wait_jitter=terms.first,
        wait_max=terms.cap,
    )


def _backoff(terms: Terms) -> Decorator:
    import backoff

    return backoff.on_exception(
        backoff.expo,
        ConnectionError,
        max_tries=terms.attempts,
        factor=terms.first,
        max_value=terms.cap,
    )


def _google(terms: Terms, *, awaited: bool) -> Decorator:
    from google.api_core import retry

    kind = retry.AsyncRetry if awaited else retry.Retry
    decorate: Decorator = kind(
        predicate=retry.if_exception_type(ConnectionError),
        initial=terms.first,
        maximum=terms.cap,
        timeout=terms.max_elapsed,
    )
    return decorate


def _redress(terms: Terms) -> Decorator:
    import redress

    return redress.retry(
        strategy=redress.decorrelated_jitter(terms.first, terms.cap),
        max_attempts=terms.attempts,
        deadline_s=terms.max_elapsed,
    )


CONTENDERS = (
    Contender(
        name="hand-written",
        module="",
        make=_by_hand,
        amake=_by_hand_async,
        with_rules=_by_hand_either,
    ),
    Contender(
        name="retrykit",
        module="retrykit",
        make=_retrykit,
        amake=_retrykit,
        with_rules=_retrykit_with_rules,
    ),
    Contender(name="tenacity", module="tenacity", make=_tenacity, amake=_tenacity),
    Contender(name="stamina", module="stamina", make=_stamina, amake=_stamina),
    Contender(name="backoff", module="backoff", make=_backoff, amake=_backoff),
    Contender(
        name="google-api-core",
        module="google.api_core.retry",
        make=functools.partial(_google, awaited=False),
        amake=functools.partial(_google, awaited=True),
        counts=False,
    ),
    Contender(name="redress", module="redress", make=_redress, amake=_redress),
)


def installed() -> list[Contender]:
    """Return the contenders that are installed, the hand-written loop first."""
    return [c for c in CONTENDERS if not c.module or importable(c.module)]


def importable(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True
