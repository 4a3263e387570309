"""Six usages of backoff, and below each the same with retrykit.

Run it to see that both do the same with a server that fails as scripted. Time is
virtual, so nothing waits.

Prints, where ``...`` stands for random waits::

    usage                  library   calls  waits in s       outcome
    on_exception, giveup   backoff       3  ...  OSError
                           retrykit      3  ...  OSError
    on_backoff             backoff       3  0.5 0.5          [(1, 0.5), (2, 0.5)]
                           retrykit      3  0.5 0.5          [(1, 0.5), (2, 0.5)]
    on_predicate           backoff       4  3 3 3            ''
                           retrykit      4  3 3 3            ''
    raise_on_giveup        backoff       5  1 1 2 3          None
                           retrykit      5  1 1 2 3          None
    max_time               backoff       5  1 2 4 3          OSError
                           retrykit      5  1 2 4 3          OSError
    runtime                backoff       5  1 7 2 11         'page'
                           retrykit      5  1 7 2 11         'page'
"""

from typing import Any, NamedTuple
from unittest.mock import MagicMock

from side_by_side import Server, Usage, show

from retrykit import Policy, last_result, retry
from retrykit.schedules import constant, exponential, fibonacci

try:
    import backoff
except ImportError:
    # Stands in for it below. Only the functions of retrykit are called then.
    backoff = MagicMock()


# ---- on_exception, giveup: full jitter, which is backoff's default


def is_permanent(error: Exception) -> bool:
    return "denied" in str(error)


@backoff.on_exception(
    backoff.expo, OSError, factor=3, base=5, max_tries=8, giveup=is_permanent
)
def fetch_backoff(server: Server) -> object:
    return server()


@retry(
    on=OSError,
    give_up_on=is_permanent,
    max_attempts=8,
    schedule=exponential(3, factor=5).full_jitter(),
)
def fetch_retrykit(server: Server) -> object:
    return server()


# ---- on_backoff: a handler that needs the arguments


def report_backoff(details: Any) -> None:
    details["args"][1].append((details["tries"], details["wait"]))


@backoff.on_exception(
    backoff.constant,
    OSError,
    interval=0.5,
    jitter=None,
    max_tries=4,
    on_backoff=report_backoff,
)
def send_backoff(server: Server, log: list[object]) -> object:
    server()
    return log


def report_retrykit(event: Any) -> None:
    event.args[1].append((event.state.attempt, event.delay))


@retry(
    on=OSError,
    max_attempts=4,
    schedule=constant(0.5),
    observers={"retry_scheduled": report_retrykit},
)
def send_retrykit(server: Server, log: list[object]) -> object:
    server()
    return log


# ---- on_predicate: the last result, if none is accepted


@backoff.on_predicate(backoff.constant, interval=3, jitter=None, max_tries=4)
def poll_backoff(server: Server) -> object:
    return server()


@retry(
    on=(),
    on_result=lambda result: not result,
    max_attempts=4,
    schedule=constant(3),
    fallback=last_result,
)
def poll_retrykit(server: Server) -> object:
    return server()


# ---- raise_on_giveup: None instead of the error


@backoff.on_exception(
    backoff.fibo, OSError, jitter=None, max_tries=5, raise_on_giveup=False
)
def ping_backoff(server: Server) -> object:
    return server()


@retry(on=OSError, max_attempts=5, schedule=fibonacci(), fallback=None)
def ping_retrykit(server: Server) -> object:
    return server()


# ---- max_time: a setting that is read at each call

CONFIG = {"patience": 10.0}


@backoff.on_exception(
    backoff.expo, OSError, jitter=None, max_time=lambda: CONFIG["patience"]
)
def load_backoff(server: Server) -> object:
    return server()


@retry(
    policy=lambda: Policy(
        on=OSError,
        max_elapsed=CONFIG["patience"],
        deadline="clip",
        schedule=exponential(1),
    )
)
def load_retrykit(server: Server) -> object:
    return server()


# ---- runtime: a delay that the server asks for, with a second decorator for errors
# A delay above an hour ends retrykit's call, unless hint_cap=None.


class Busy(NamedTuple):
    retry_after: float


@backoff.on_exception(backoff.expo, OSError, jitter=None, max_tries=3)
@backoff.on_predicate(
    backoff.runtime,
    predicate=lambda page: isinstance(page, Busy),
    value=lambda busy: busy.retry_after,
    jitter=None,
    max_tries=4,
)
def search_backoff(server: Server) -> object:
    return server()


@retry(on=OSError, max_attempts=3, schedule=exponential(1))
@retry(
    on=(),
    on_result=lambda page: isinstance(page, Busy),
    hint=lambda busy: busy.retry_after,
    hint_jitter=0,
    schedule=constant(0),
    max_attempts=4,
    fallback=last_result,
)
def search_retrykit(server: Server) -> object:
    return server()


USAGES = [
    Usage(
        "on_exception, giveup",
        [OSError("busy"), OSError("busy"), OSError("denied")],
        fetch_backoff,
        fetch_retrykit,
    ),
    Usage(
        "on_backoff",
        [OSError, OSError, "sent"],
        lambda server: send_backoff(server, []),
        lambda server: send_retrykit(server, []),
    ),
    Usage("on_predicate", ["", ...], poll_backoff, poll_retrykit),
    Usage("raise_on_giveup", [OSError, ...], ping_backoff, ping_retrykit),
    Usage("max_time", [OSError, ...], load_backoff, load_retrykit),
    Usage(
        "runtime",
        [OSError, Busy(7), OSError, Busy(11), "page"],
        search_backoff,
        search_retrykit,
    ),
]

if __name__ == "__main__":
    show(USAGES, "backoff", installed=not isinstance(backoff, MagicMock))
