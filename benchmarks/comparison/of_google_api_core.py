"""google-api-core."""

from typing import Any

from google.api_core import retry as google

from benchmarks.comparison.behavior import check_types, give_up
from benchmarks.comparison.claims import Answer, Library, partly_if
from benchmarks.makers import Decorator

__all__ = ["LIBRARY"]

RETRY = "google.api_core.retry"


def retry(
    on: type[BaseException] = ConnectionError,
    *,
    attempts: int = 2,
    delay: float = 0.0,
    limit: float = 9.0,
    awaits: bool = False,
) -> Decorator:
    del attempts  # it has no limit of attempts
    kind: Any = google.AsyncRetry if awaits else google.Retry
    decorate: Decorator = kind(
        predicate=google.if_exception_type(on),  # type: ignore[arg-type]
        initial=max(delay, 0.001),
        maximum=max(delay, 0.001),
        multiplier=1,
        timeout=limit,
    )
    return decorate


def bare() -> Decorator:
    return google.Retry(predicate=google.if_exception_type(ConnectionError))


def streams() -> Answer:
    """`StreamingRetry` begins the stream again."""
    opened = 0

    def numbers() -> Any:
        nonlocal opened
        opened += 1
        yield 1
        if opened == 1:
            raise ConnectionError
        yield 2

    is_lost = google.if_exception_type(ConnectionError)
    decorate = google.StreamingRetry(predicate=is_lost, initial=0.001)
    return partly_if([*decorate(numbers)()] == [1, 1, 2], "from the start")


def history() -> Answer:
    error = give_up(LIBRARY)
    return partly_if(type(error.__cause__) is ConnectionError, "the last one")


def original_error() -> Answer:
    error = give_up(LIBRARY)
    return partly_if(type(error.__cause__) is ConnectionError, "as the cause")


LIBRARY = Library(
    name="google-api-core",
    module=RETRY,
    retry=retry,
    bare=bare,
    programs={
        "streams": streams,
        "original_error": original_error,
        "history": history,
        "typed": lambda: check_types(
            "google.api_core", f"from {RETRY} import Retry", "Retry()"
        ),
    },
)
