"""Who is measured, each set up as its users would set it up.

All make up to `ATTEMPTS` attempts on `ConnectionError`, with delays that grow
exponentially and are jittered; but google-api-core counts no attempts, and
redress retries what it classifies itself. What a library does by default beside
that, it does here, too: stamina and backoff log each retry, google-api-core
keeps time.
"""

# ruff: noqa: PLC0415  a peer is imported only where it is asked for

import asyncio
import functools
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

__all__ = ["ASLEEP", "ATTEMPTS", "CONTENDERS", "USUAL", "Contender", "Terms"]
__all__ += ["importable", "installed"]

ATTEMPTS = 4
"""Most calls of the function in all, so that three may fail."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Nap = Callable[[float], None]


@final
@dataclass(frozen=True)
class Terms:
    """How long to wait.

    Attributes:
        first: The first delay, before jitter, in seconds.
        longest: The bound on one delay, in seconds.
        allowed: The time allowed in all, in seconds.
    """

    first: float
    longest: float
    allowed: float


USUAL = Terms(first=0.5, longest=60.0, allowed=60.0)

# Long enough that of thousands of jittered delays none ends while we look.
ASLEEP = Terms(first=1e6, longest=1e7, allowed=1e9)


@contextmanager
def _without_sleep(nap: Nap) -> Iterator[None]:
    """Call *nap* wherever the standard library is asked to sleep.

    Every peer looks the function up when it sleeps, so none has to be set up
    otherwise than in earnest.
    """

    async def anap(delay: float) -> None:
        nap(delay)

    kept = time.sleep, asyncio.sleep
    time.sleep, asyncio.sleep = nap, anap  # type: ignore[assignment]
    try:
        yield
    finally:
        time.sleep, asyncio.sleep = kept


@final
@dataclass(frozen=True, kw_only=True)
class Contender:
    """One way of retrying.

    Attributes:
        name: What it is called, and the distribution that it comes in.
        module: What its users import; empty for what they write themselves.
        make: Takes terms and returns a decorator of functions.
        amake: The same for coroutine functions.
        stub: Calls a function of the delay instead of sleeping.
        counts: Whether it stops after `ATTEMPTS`, and not by time alone.
    """

    name: str
    module: str
    make: Callable[[Terms], Decorator]
    amake: Callable[[Terms], Decorator]
    stub: Callable[[Nap], AbstractContextManager[None]] = _without_sleep
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
                    if failures == ATTEMPTS:
                        raise
                delay = min(terms.first * 2 ** (failures - 1), terms.longest)
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
                    if failures == ATTEMPTS:
                        raise
                delay = min(terms.first * 2 ** (failures - 1), terms.longest)
                await asyncio.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311

        return wrapper

    return decorate


def _retrykit(terms: Terms) -> Decorator:
    from retrykit import retry, schedules

    delays = schedules.exponential(terms.first).cap(terms.longest).jitter(0.5)
    return retry(
        on=ConnectionError,
        schedule=delays,
        max_attempts=ATTEMPTS,
        max_elapsed=terms.allowed,
    )


def _tenacity(terms: Terms) -> Decorator:
    import tenacity

    return tenacity.retry(
        retry=tenacity.retry_if_exception_type(ConnectionError),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_random_exponential(terms.first, terms.longest),
        reraise=True,
    )


def _stamina(terms: Terms) -> Decorator:
    import stamina

    return stamina.retry(
        on=ConnectionError,
        attempts=ATTEMPTS,
        timeout=terms.allowed,
        wait_initial=terms.first,
        wait_jitter=terms.first,
        wait_max=terms.longest,
    )


def _backoff(terms: Terms) -> Decorator:
    import backoff

    return backoff.on_exception(
        backoff.expo,
        ConnectionError,
        max_tries=ATTEMPTS,
        factor=terms.first,
        max_value=terms.longest,
    )


def _google(terms: Terms, *, awaited: bool) -> Decorator:
    from google.api_core import retry

    kind = retry.AsyncRetry if awaited else retry.Retry
    decorate: Decorator = kind(
        predicate=retry.if_exception_type(ConnectionError),
        initial=terms.first,
        maximum=terms.longest,
        timeout=terms.allowed,
    )
    return decorate


def _redress(terms: Terms) -> Decorator:
    import redress

    return redress.retry(
        strategy=redress.decorrelated_jitter(terms.first, terms.longest),
        max_attempts=ATTEMPTS,
        deadline_s=terms.allowed,
    )


CONTENDERS = (
    Contender(name="hand-written", module="", make=_by_hand, amake=_by_hand_async),
    Contender(
        name="retrykit",
        module="retrykit",
        make=_retrykit,
        amake=_retrykit,
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
    """Return the contenders that can be imported here, hand-written first."""
    return [c for c in CONTENDERS if not c.module or importable(c.module)]


def importable(module: str) -> bool:
    """Return whether a module can be imported here."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True
