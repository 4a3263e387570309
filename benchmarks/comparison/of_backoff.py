"""backoff."""

import backoff

from benchmarks.comparison.behavior import check_types, give_up
from benchmarks.comparison.claims import YES, Answer, Library, partly_if, yes_if
from benchmarks.comparison.patterns import honors_hint
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
    return backoff.on_exception(
        backoff.constant,
        on,  # type: ignore[arg-type]
        interval=delay,
        jitter=None,
        max_tries=attempts,
        max_time=limit,
    )


def bare() -> Decorator:
    return backoff.on_exception(backoff.expo, ConnectionError)


def history() -> Answer:
    return yes_if(vars(give_up(LIBRARY)))


def retry_after() -> Answer:
    """`runtime` asks a function of the user."""
    decorate = backoff.on_exception(
        backoff.runtime,
        ConnectionError,
        value=lambda error: float(error.args[0]),
        jitter=None,
    )
    answer = honors_hint(decorate, ConnectionError(0.2))
    return partly_if(answer is YES, "your function reads it")


LIBRARY = Library(
    name="backoff",
    module="backoff",
    retry=retry,
    bare=bare,
    programs={
        "history": history,
        "retry_after": retry_after,
        "typed": lambda: check_types(
            "backoff", "import backoff", "backoff.on_exception(backoff.expo, OSError)"
        ),
    },
)
