"""nopanic."""

import contextlib
import time
from collections.abc import Iterator

import nopanic
from nopanic.testing import capture_events, instant

from benchmarks.comparison.behavior import Flaky, check_types, give_up
from benchmarks.comparison.claims import YES, Answer, Library, partly_if, yes_if
from benchmarks.comparison.patterns import (
    breaks,
    cuts_coroutines,
    cuts_functions,
    hedges,
    honors_hint,
    limits_concurrency,
    limits_rate,
    saves_retries,
)
from benchmarks.makers import Decorator

__all__ = ["LIBRARY"]


def retry(
    on: type[BaseException] = ConnectionError,
    *,
    attempts: int = 2,
    delay: float = 0.0,
    limit: float = 9.0,
    awaits: bool = False,
) -> Decorator:
    del awaits
    return nopanic.retry(attempts, on, delay, max_time=limit)


def bare() -> Decorator:
    return nopanic.retry()


def streams() -> Answer:
    """It retries a generator until the first item only."""
    opened = 0

    def numbers() -> Iterator[int]:
        nonlocal opened
        opened += 1
        if opened == 1:
            raise ConnectionError
        yield 1
        raise ConnectionError

    items: list[int] = []
    with contextlib.suppress(ConnectionError):
        items += nopanic.retry(2, backoff=0)(numbers)()
    return partly_if(opened == 2, "until the first item")  # noqa: PLR2004


def history() -> Answer:
    return yes_if(vars(give_up(LIBRARY)))


class BusyError(ConnectionError):
    """An error with a hint, as the documentation advises."""

    retry_after = 0.2


def retry_after() -> Answer:
    decorate: Decorator = nopanic.retry(2, backoff=0)
    answer = honors_hint(decorate, BusyError())
    return partly_if(answer is YES, "as an attribute of the error")


def testing() -> Answer:
    flaky = Flaky(1)
    begin = time.monotonic()
    with instant() as sleeps:
        retry(delay=60, limit=3600)(flaky.call)()
    return yes_if(sleeps == [60] and time.monotonic() - begin < 1)


def metrics() -> Answer:
    """It has events, which a function of the user counts."""
    with capture_events() as seen:
        retry()(Flaky(1).call)()
    return partly_if(seen, "events")


def timeout(seconds: float) -> Decorator:
    once: Decorator = nopanic.timeout(seconds)
    again: Decorator = nopanic.retry(2, TimeoutError, 0)
    return lambda function: again(once(function))


LIBRARY = Library(
    name="nopanic",
    module="nopanic",
    retry=retry,
    bare=bare,
    programs={
        # Its policies are decorators; they can be called, and not entered.
        "blocks": lambda: yes_if(hasattr(nopanic.retry, "__iter__")),
        "streams": streams,
        "attempt_timeout": lambda: cuts_coroutines(timeout(0.05)),
        "sync_timeout": lambda: cuts_functions(timeout(0.05)),
        "history": history,
        "retry_after": retry_after,
        "budget": lambda: saves_retries(
            nopanic.retry(
                3, backoff=0, budget=nopanic.RetryBudget(0, min_retries_per_sec=0)
            )
        ),
        "breaker": lambda: breaks(nopanic.circuit_breaker()),
        "hedging": lambda: hedges(nopanic.hedge(delay=0.02)),
        "rate_limit": lambda: limits_rate(nopanic.rate_limit(2, 0.2)),
        "concurrency": lambda: limits_concurrency(nopanic.bulkhead(1)),
        "testing": testing,
        "typed": lambda: check_types(
            "nopanic", "import nopanic", "nopanic.retry(attempts=3)"
        ),
        "metrics": metrics,
    },
)
