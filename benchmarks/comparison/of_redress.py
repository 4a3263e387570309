"""redress."""

import contextlib
import time
from types import MappingProxyType
from typing import Any

import redress
from redress.cli import main
from redress.testing import instant_retries

from benchmarks.comparison.behavior import Flaky, check_types, fail
from benchmarks.comparison.claims import Answer, Library, partly_if, yes_if
from benchmarks.comparison.patterns import (
    breaks,
    cuts_coroutines,
    cuts_functions,
    honors_hint,
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
    **settings: Any,
) -> Decorator:
    del awaits

    def classify(error: BaseException) -> redress.ErrorClass:
        kinds = redress.ErrorClass
        return kinds.TRANSIENT if isinstance(error, on) else kinds.PERMANENT

    return redress.retry(
        classifier=classify,
        strategy=lambda _: delay,
        max_attempts=attempts,
        deadline_s=limit,
        **settings,
    )


def bare() -> Decorator:
    return redress.retry


def blocks() -> Answer:
    """The block of `context` gets a function to call; it is not entered again."""
    entered = 0
    policy = redress.RetryPolicy(
        classifier=redress.default_classifier, strategy=lambda _: 0.0
    )
    with contextlib.suppress(ConnectionError), policy.context():
        entered += 1
        raise ConnectionError
    return yes_if(entered > 1)


def history() -> Answer:
    """`execute` returns a timeline, and no error."""
    policy = redress.RetryPolicy(
        classifier=redress.default_classifier, strategy=lambda _: 0.0, max_attempts=3
    )
    timeline = policy.execute(fail, capture_timeline=True).timeline
    return partly_if(timeline and timeline.events, "in the result of `execute`")


class TooManyError(Exception):
    """As a client raises it for a status 429."""

    status = 429
    headers = MappingProxyType({"Retry-After": "1"})


def retry_after() -> Answer:
    classifier = redress.http_retry_after_classifier
    strategy = redress.retry_after_or(lambda _: 0.0, jitter_s=0)
    decorate = redress.retry(classifier=classifier, strategy=strategy)
    return honors_hint(decorate, TooManyError())


def budget() -> Answer:
    shared = redress.Budget(max_retries=1, window_s=60)
    return saves_retries(retry(attempts=3, budget=shared))


def breaker() -> Answer:
    policy = redress.Policy(circuit_breaker=redress.CircuitBreaker(failure_threshold=2))
    return breaks(lambda function: lambda: policy.call(function))


def testing() -> Answer:
    """`instant_retries` replaces the delays of one policy."""
    begin = time.monotonic()
    redress.retry(strategy=instant_retries)(Flaky(1).call)()
    return partly_if(time.monotonic() - begin < 1, "one policy at a time")


def preview() -> Answer:
    """``redress doctor`` checks a policy; nothing shows its delays."""
    return partly_if(main(["doctor", f"{__name__}:CONFIG"]) == 0, "checks")


def metrics() -> Answer:
    seen: list[str] = []

    class Meter:
        def create_counter(self, name: str) -> Any:
            seen.append(name)
            return self

        def add(self, *_: object, **__: object) -> None:
            seen.append("add")

    hook = redress.otel_metric_hook(Meter())
    retry(on_metric=hook)(Flaky(1).call)()
    return yes_if("add" in seen)


CONFIG = redress.RetryConfig(default_strategy=redress.decorrelated_jitter())

LIBRARY = Library(
    name="redress",
    module="redress",
    retry=retry,
    bare=bare,
    programs={
        "blocks": blocks,
        "attempt_timeout": lambda: cuts_coroutines(
            retry(Exception, attempt_timeout_s=0.05)
        ),
        "sync_timeout": lambda: cuts_functions(
            retry(Exception, attempt_timeout_s=0.05)
        ),
        "history": history,
        "retry_after": retry_after,
        "budget": budget,
        "breaker": breaker,
        "testing": testing,
        "preview": preview,
        "typed": lambda: check_types(
            "redress", "import redress", "redress.retry(max_attempts=3)"
        ),
        "metrics": metrics,
    },
)
