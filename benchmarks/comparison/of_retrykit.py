"""retrykit."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from benchmarks.comparison.behavior import Flaky, check_types, give_up
from benchmarks.comparison.claims import Answer, Library, partly_if, yes_if
from benchmarks.comparison.patterns import (
    breaks,
    cuts_coroutines,
    hedges,
    honors_hint,
    limits_concurrency,
    limits_rate,
    repeats_block,
    saves_retries,
)
from benchmarks.makers import Decorator
from retrykit import (
    AsArgument,
    Hedge,
    Policy,
    hints,
    retry as retrykit_retry,
    retrying,
    state_of,
    streams,
)
from retrykit._cli import main
from retrykit._internal.distribution import NAME
from retrykit.budgets import RatioBudget
from retrykit.integrations import prometheus
from retrykit.limits import CircuitBreaker, Concurrency, RateLimit
from retrykit.testing import virtual_time

__all__ = ["LIBRARY"]


def retry(
    on: type[BaseException] = ConnectionError,
    *,
    attempts: int = 2,
    delay: float = 0.0,
    limit: float = 9.0,
    awaits: bool = False,
    **settings: Any,
) -> Decorator:
    del awaits
    settings |= {"max_attempts": attempts, "max_elapsed": limit}
    make: Any = retrykit_retry
    decorate: Decorator = make(on=on, schedule=[delay] * (attempts - 1), **settings)
    return decorate


def bare() -> Decorator:
    return retrykit_retry


def numbers(after: int = 0, *, opened: list[int]) -> Iterator[int]:
    """Yield 1 and 2; fail between them when first opened."""
    opened.append(after)
    if after == 0:
        yield 1
    if len(opened) == 1:
        raise ConnectionError
    yield 2


def resumes() -> Answer:
    decorate = retry(stream=streams.resume(lambda last, _: {"after": last}))
    return yes_if([*decorate(numbers)(opened=[])] == [1, 2])


def sync_timeout() -> Answer:
    """No thread is stopped: the function gets the time as its parameter."""
    seen: list[float] = []

    def fetch(timeout: float) -> None:
        seen.append(timeout)

    retry(attempt_timeout=AsArgument(0.05))(fetch)()
    return partly_if(seen == [0.05], "passed to the function")


def history() -> Answer:
    state = state_of(give_up(LIBRARY))
    return yes_if(state and len(state.failures) == 3)  # noqa: PLR2004


class BusyError(ConnectionError):
    """As a client raises it for a status 429."""

    def __init__(self) -> None:
        self.response = SimpleNamespace(headers={"Retry-After": "0.2"})


def retry_after() -> Answer:
    return honors_hint(retry(hint=hints.retry_after()), BusyError())


def budget() -> Answer:
    shared = RatioBudget(0, reserve=0)
    return saves_retries(retry(attempts=3, budget=shared))


def breaker() -> Answer:
    return breaks(retry(attempts=1, admission=[CircuitBreaker(minimum_calls=2)]))


def testing() -> Answer:
    flaky = Flaky(1)
    begin = time.monotonic()
    with virtual_time() as clock:
        retry(delay=60, limit=3600)(flaky.call)()
    return yes_if(clock.sleeps == [60] and time.monotonic() - begin < 1)


TOML = """
[policies.fetch]
on = ["ConnectionError"]
max_attempts = 4
"""


def in_file(use: Callable[[Path], object]) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policies.toml")
        path.write_text(TOML, "utf-8")
        return yes_if(use(path))


def config() -> Answer:
    return in_file(lambda path: Policy.from_toml(path, "fetch").max_attempts == 4)  # noqa: PLR2004


def preview() -> Answer:
    """``retrykit show`` prints the delays, and ``retrykit lint`` checks a policy."""
    with redirect_stdout(StringIO()):
        return in_file(
            lambda path: all(main([each, f"{path}:fetch"]) == 0 for each in COMMANDS)
        )


COMMANDS = ["show", "lint"]
ENGINES = ["dbos", "celery", "procrastinate"]


def durable() -> Answer:
    """It has a module for each of the engines that store the calls."""
    found = [find_spec(f"retrykit.integrations.{each}") for each in ENGINES]
    return partly_if(all(found), "with a job engine")


def metrics() -> Answer:
    """There is one for OpenTelemetry, too."""
    registry = CollectorRegistry()
    observers = [prometheus.observer(registry=registry)]
    retry(observers=observers)(Flaky(1).call)()
    counted = "retrykit_retries" in {each.name for each in registry.collect()}
    return yes_if(counted and find_spec("retrykit.integrations.opentelemetry"))


LIBRARY = Library(
    name=NAME,
    module="retrykit",
    retry=retry,
    bare=bare,
    programs={
        "blocks": lambda: repeats_block(
            lambda: retrying(on=ConnectionError, schedule=[0])
        ),
        "streams": resumes,
        "attempt_timeout": lambda: cuts_coroutines(retry(attempt_timeout=0.05)),
        "sync_timeout": sync_timeout,
        "history": history,
        "retry_after": retry_after,
        "budget": budget,
        "breaker": breaker,
        "hedging": lambda: hedges(Hedge(0.02, idempotent=True)),
        "rate_limit": lambda: limits_rate(RateLimit(2, per=0.2)),
        "concurrency": lambda: limits_concurrency(Concurrency(1)),
        "testing": testing,
        "typed": lambda: check_types(
            "retrykit", "from retrykit import retry", "retry(max_attempts=3)"
        ),
        "preview": preview,
        "config": config,
        "durable": durable,
        "metrics": metrics,
    },
)
