"""tenacity."""

import time
from typing import Any

import tenacity

from benchmarks.comparison.behavior import Flaky, check_types, error_of, fail, give_up
from benchmarks.comparison.claims import YES, Answer, Library, partly_if
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
    return tenacity.retry(
        retry=tenacity.retry_if_exception_type(on),
        stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_before_delay(limit),
        wait=tenacity.wait_fixed(delay),
    )


def bare() -> Decorator:
    return tenacity.retry


def original_error() -> Answer:
    """`reraise` is off by default."""
    stop = tenacity.stop_after_attempt(2)
    raised = type(error_of(tenacity.retry(stop=stop, reraise=True)(fail)))
    return partly_if(raised is ConnectionError, "with `reraise=True`")


def history() -> Answer:
    error = give_up(LIBRARY)
    return partly_if(isinstance(error, tenacity.RetryError), "the last one")


def retry_after() -> Answer:
    """`wait_exception` asks a function of the user."""
    error = ConnectionError(0.2)
    wait = tenacity.wait_exception(lambda e: float(e.args[0]))
    answer = honors_hint(tenacity.retry(wait=wait), error)
    return partly_if(answer is YES, "your function reads it")


def testing() -> Answer:
    """Each function has an attribute that replaces its sleep."""
    flaky, waits = Flaky(1), list[float]()
    call: Any = retry(delay=60, limit=3600)(flaky.call)
    call.retry.sleep = waits.append
    begin = time.monotonic()
    call()
    soon = waits == [60] and time.monotonic() - begin < 1
    return partly_if(soon, "one function at a time")


LIBRARY = Library(
    name="tenacity",
    module="tenacity",
    retry=retry,
    bare=bare,
    programs={
        "blocks": lambda: repeats_block(tenacity.Retrying),
        "original_error": original_error,
        "history": history,
        "retry_after": retry_after,
        "testing": testing,
        "typed": lambda: check_types(
            "tenacity", "import tenacity", "tenacity.retry(reraise=True)"
        ),
    },
)
