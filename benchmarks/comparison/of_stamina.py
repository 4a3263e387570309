"""stamina."""

import time
from typing import Any

import stamina
from stamina.instrumentation import PrometheusOnRetryHook, set_on_retry_hooks

from benchmarks.comparison.behavior import Flaky, check_types, give_up
from benchmarks.comparison.claims import YES, Answer, Library, partly_if, yes_if
from benchmarks.comparison.patterns import honors_hint, repeats_block
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
    waits: dict[str, Any] = {"wait_initial": delay, "wait_max": delay, "wait_jitter": 0}
    return stamina.retry(on=on, attempts=attempts, timeout=limit, **waits)  # type: ignore[arg-type]


def bare() -> Decorator:
    return stamina.retry(on=ConnectionError)


def retry_after() -> Answer:
    """The hook `on` may return a delay."""
    error = ConnectionError(0.2)
    answer = honors_hint(stamina.retry(on=lambda e: float(e.args[0])), error)
    return partly_if(answer is YES, "your function reads it")


def history() -> Answer:
    return yes_if({*vars(give_up(LIBRARY))} - {"__notes__"})


def testing() -> Answer:
    flaky = Flaky(1)
    begin = time.monotonic()
    with stamina.set_testing(True, attempts=2):
        retry(delay=60)(flaky.call)()
    return yes_if(time.monotonic() - begin < 1)


def metrics() -> Answer:
    set_on_retry_hooks([PrometheusOnRetryHook])
    retry()(Flaky(1).call)()
    counter = stamina.instrumentation.get_prometheus_counter()
    return partly_if(counter, "Prometheus")


LIBRARY = Library(
    name="stamina",
    module="stamina",
    retry=retry,
    bare=bare,
    programs={
        "blocks": lambda: repeats_block(
            lambda: stamina.retry_context(on=ConnectionError, wait_max=0)
        ),
        "history": history,
        "retry_after": retry_after,
        "testing": testing,
        "typed": lambda: check_types(
            "stamina", "import stamina", "stamina.retry(on=OSError)"
        ),
        "metrics": metrics,
    },
)
