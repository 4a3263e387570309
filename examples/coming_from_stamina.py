"""Four usages of stamina, and below each the same with retrykit.

Run it to see that both do the same with a server that fails as scripted. Time is
virtual, so nothing waits.

Prints, where ``...`` stands for random waits::

    usage                  library   calls  waits in s       outcome
    retry                  stamina       4  ...  OSError
                           retrykit      4  ...  OSError
    retry_context          stamina       3  2 4              'page'
                           retrykit      3  2 4              'page'
    backoff hook           stamina       4  1 20 4           StatusError
                           retrykit      4  1 20 4           StatusError
    RetryingCaller, hook   stamina       3  0.5 0.5          [(1, 0.5), (2, 0.5)]
                           retrykit      3  0.5 0.5          [(1, 0.5), (2, 0.5)]
"""

from typing import Any
from unittest.mock import MagicMock

from side_by_side import Server, Usage, show

from retrykit import Policy, RetryAfter, observe, retry, retrying
from retrykit.events import Event, RetryScheduled
from retrykit.schedules import constant, exponential, uniform

try:
    import stamina
except ImportError:
    # Stands in for it below. Only the functions of retrykit are called then.
    stamina = MagicMock()


# ---- retry: all parameters


@stamina.retry(
    on=OSError,
    attempts=4,
    timeout=45,
    wait_initial=0.5,
    wait_max=30,
    wait_jitter=2,
    wait_exp_base=3,
)
async def fetch_stamina(server: Server) -> object:
    return server()


@retry(
    on=OSError,
    max_attempts=4,
    max_elapsed=45,
    deadline="overshoot",
    schedule=(exponential(0.5, factor=3) + uniform(0, 2)).cap(30),
)
async def fetch_retrykit(server: Server) -> object:
    return server()


# ---- retry_context: a block of code


def copy_stamina(server: Server) -> object:
    for attempt in stamina.retry_context(
        on=OSError, attempts=3, timeout=None, wait_initial=2, wait_jitter=0
    ):
        with attempt:
            page = server()
    return page


def copy_retrykit(server: Server) -> object:
    for attempt in retrying(on=OSError, max_attempts=3, schedule=exponential(2).cap(5)):
        with attempt:
            page = server()
    return page


# ---- Backoff hook: `on` decides, and may return the delay


class StatusError(Exception):
    def __init__(self, status: int, retry_after: float | None = None) -> None:
        super().__init__(status)
        self.status, self.retry_after = status, retry_after


def ask_error(error: Exception) -> bool | float:
    if not isinstance(error, StatusError) or error.status < 429:
        return False
    return error.retry_after or True


@stamina.retry(on=ask_error, timeout=None, wait_initial=1, wait_jitter=0)
def search_stamina(server: Server) -> object:
    return server()


def is_transient(error: Exception) -> bool:
    return isinstance(error, StatusError) and error.status >= 429


def requested_delay(error: Any) -> RetryAfter | None:
    # A number alone would be waited only if it is longer than the schedule's delay.
    return RetryAfter(error.retry_after) if error.retry_after else None


@retry(
    on=is_transient,
    hint=requested_delay,
    max_attempts=10,
    schedule=exponential(1).cap(5),
)
def search_retrykit(server: Server) -> object:
    return server()


# ---- RetryingCaller, and a hook that is called for every retry of the process


def load_stamina(server: Server) -> object:
    log: list[object] = []

    def report(details: Any) -> None:
        log.append((details.retry_num, details.wait_for))

    caller = stamina.RetryingCaller(
        attempts=3, wait_initial=0.5, wait_exp_base=1, wait_jitter=0
    )
    stamina.instrumentation.set_on_retry_hooks([report])
    caller(OSError, server)
    stamina.instrumentation.set_on_retry_hooks([])
    return log


def load_retrykit(server: Server) -> object:
    log: list[object] = []

    def report(event: Event) -> None:
        if isinstance(event, RetryScheduled):
            log.append((event.state.attempt, event.delay))

    policy = Policy(on=OSError, max_attempts=3, schedule=constant(0.5))
    with observe(report):
        policy.call(server)
    return log


USAGES = [
    Usage("retry", [OSError, ...], fetch_stamina, fetch_retrykit),
    Usage("retry_context", [OSError, OSError, "page"], copy_stamina, copy_retrykit),
    Usage(
        "backoff hook",
        [StatusError(503), StatusError(429, 20), StatusError(503), StatusError(404)],
        search_stamina,
        search_retrykit,
    ),
    Usage(
        "RetryingCaller, hook", [OSError, OSError, "page"], load_stamina, load_retrykit
    ),
]

if __name__ == "__main__":
    # Otherwise it logs each retry.
    stamina.instrumentation.set_on_retry_hooks([])
    show(USAGES, "stamina", installed=not isinstance(stamina, MagicMock))
