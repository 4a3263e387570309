"""Ten usages of tenacity, and below each the same with retrykit.

Run it to see that both do the same with a server that fails as scripted. Time is
virtual, so nothing waits.

Prints, where ``...`` stands for random waits::

    usage                  library   calls  waits in s       outcome
    stop, wait, retry      tenacity      3  1 2              ConnectionError
                           retrykit      3  1 2              ConnectionError
    retry_error_callback   tenacity      4  1 ...  None
                           retrykit      4  1 ...  None
    retry_if_result        tenacity      3  5 5              False
                           retrykit      3  5 5              False
    stop_after_delay       tenacity      4  10 10 10         'queued'
                           retrykit      4  10 10 10         'queued'
    after, before_sleep    tenacity      3  2 2              ['drop', 2.0, 'drop', 2.0]
                           retrykit      3  2 2              ['drop', 2.0, 'drop', 2.0]
    wait_chain             tenacity      5  5 15 960 960     PermissionError
                           retrykit      5  5 15 960 960     PermissionError
    wait_chain, random     tenacity      5  0.5 0.5 ...  OSError
                           retrykit      5  0.5 0.5 ...  OSError
    AsyncRetrying          tenacity      3  ...  'text'
                           retrykit      3  ...  'text'
    stop_when_event_set    tenacity      2  5                ConnectionError
                           retrykit      2  5                ConnectionError
    TryAgain               tenacity      3  3 3              'page'
                           retrykit      3  3 3              'page'
"""

import logging
import threading
from typing import Any
from unittest.mock import MagicMock

from side_by_side import Server, Usage, show

from retrykit import Policy, RetryAfter, aretrying, last_result, retry
from retrykit.schedules import constant, exponential, sequence, uniform

try:
    import tenacity
except ImportError:
    # Stands in for it below. Only the functions of retrykit are called then.
    tenacity = MagicMock()

log = logging.getLogger(__name__)


# ---- Stop, wait, retry: settings that several functions share

SETTINGS: dict[str, Any] = {
    "retry": tenacity.retry_if_exception_type((ConnectionError, TimeoutError)),
    "stop": tenacity.stop_after_attempt(3),
    "wait": tenacity.wait_exponential(min=1, max=10),
    "reraise": True,
}


@tenacity.retry(**SETTINGS)  # type: ignore[untyped-decorator]
async def embed_tenacity(server: Server) -> object:
    return server()


POLICY = Policy(
    on=(ConnectionError, TimeoutError),
    max_attempts=3,
    schedule=exponential(1).cap(10),
)


@retry(POLICY)
async def embed_retrykit(server: Server) -> object:
    return server()


# ---- retry_error_callback: a value instead of the error
# Only the distribution differs: tenacity draws from 1 s on, retrykit from 0 s on, and
# then raises shorter delays to 1 s.


@tenacity.retry(
    stop=tenacity.stop_after_attempt(4),
    wait=tenacity.wait_random_exponential(min=1, max=60),
    retry_error_callback=lambda _: None,
)
def complete_tenacity(server: Server) -> object:
    return server()


@retry(
    max_attempts=4,
    schedule=exponential(1).cap(60).full_jitter().at_least(1),
    fallback=None,
)
def complete_retrykit(server: Server) -> object:
    return server()


# ---- retry_if_result: results are retried, errors are not


@tenacity.retry(
    retry=tenacity.retry_if_result(lambda ready: not ready),
    stop=tenacity.stop_after_attempt(3),
    wait=tenacity.wait_fixed(5),
    retry_error_callback=lambda _: False,
)
def is_ready_tenacity(server: Server) -> object:
    return server()


@retry(
    on=(),
    on_result=lambda ready: not ready,
    max_attempts=3,
    schedule=constant(5),
    fallback=False,
)
def is_ready_retrykit(server: Server) -> object:
    return server()


# ---- stop_after_delay: a time that the last wait may exceed; then the last result


@tenacity.retry(
    retry=tenacity.retry_if_result(lambda status: status != "done"),
    stop=tenacity.stop_after_delay(25) | tenacity.stop_after_attempt(100),
    wait=tenacity.wait_fixed(10),
    retry_error_callback=lambda state: state.outcome and state.outcome.result(),
)
def status_tenacity(server: Server) -> object:
    return server()


@retry(
    on=(),
    on_result=lambda status: status != "done",
    max_elapsed=25,
    deadline="overshoot",
    max_attempts=100,
    schedule=constant(10),
    fallback=last_result,
)
def status_retrykit(server: Server) -> object:
    return server()


# ---- after, before_sleep: hooks that need the arguments, here `self`


async def report_tenacity(state: tenacity.RetryCallState) -> None:
    state.args[0].log.append(state.upcoming_sleep)


class ChannelTenacity:
    def __init__(self, server: Server) -> None:
        self.server, self.log = server, list[object]()

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_fixed(2),
        after=lambda state: state.args[0].log.append("drop"),
        before_sleep=report_tenacity,
    )
    async def publish(self) -> object:
        self.server()
        return self.log


async def report_retrykit(event: Any) -> None:
    event.args[0].log.append(event.delay)


class ChannelRetrykit:
    def __init__(self, server: Server) -> None:
        self.server, self.log = server, list[object]()

    @retry(
        max_attempts=3,
        schedule=constant(2),
        observers={
            "attempt_failed": lambda event: event.args[0].log.append("drop"),
            "retry_scheduled": report_retrykit,
        },
    )
    async def publish(self) -> object:
        self.server()
        return self.log


async def publish_tenacity(server: Server) -> object:
    return await ChannelTenacity(server).publish()


async def publish_retrykit(server: Server) -> object:
    return await ChannelRetrykit(server).publish()


# ---- wait_chain: the last delay is repeated
# before_sleep_log: retrykit logs each retry by itself


@tenacity.retry(
    retry=tenacity.retry_if_not_exception_type(PermissionError),
    stop=tenacity.stop_after_attempt(10),
    wait=tenacity.wait_chain(*map(tenacity.wait_fixed, [5, 15, 960])),
    before_sleep=tenacity.before_sleep_log(log, logging.WARNING),
)
def tweets_tenacity(server: Server) -> object:
    return server()


@retry(
    give_up_on=PermissionError,
    max_attempts=10,
    schedule=sequence(["5s", "15s", "16m"], repeat_last=True),
)
def tweets_retrykit(server: Server) -> object:
    return server()


# ---- wait_chain: first fixed delays, then random ones that continue the numbering


@tenacity.retry(
    stop=tenacity.stop_after_attempt(5),
    wait=tenacity.wait_chain(
        *[tenacity.wait_fixed(0.5)] * 2, tenacity.wait_random_exponential(max=10)
    ),
    reraise=True,
)
def query_tenacity(server: Server) -> object:
    return server()


@retry(
    max_attempts=5,
    schedule=constant(0.5).switch(after=2, to=exponential(1).cap(10).full_jitter()),
)
def query_retrykit(server: Server) -> object:
    return server()


# ---- AsyncRetrying: a block of code


async def translate_tenacity(server: Server) -> object:
    async for attempt in tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(4),
        wait=tenacity.wait_exponential(max=60) + tenacity.wait_random(0, 1),
        reraise=True,
    ):
        with attempt:
            text = server()
    return text


async def translate_retrykit(server: Server) -> object:
    async for attempt in aretrying(
        max_attempts=4, schedule=exponential(1).cap(60) + uniform(0, 1)
    ):
        with attempt:
            text = server()
    return text


# ---- stop_when_event_set: no attempt after a signal
# It also ends a wait. With sleep_using_event tenacity's wait ends, too, but another
# attempt follows.


def work_tenacity(server: Server) -> object:
    stopping = threading.Event()

    @tenacity.retry(
        stop=tenacity.stop_when_event_set(stopping),
        wait=tenacity.wait_fixed(5),
        reraise=True,
    )
    def work() -> None:
        if server() == "SIGTERM":
            stopping.set()
        raise ConnectionError

    return work()


def work_retrykit(server: Server) -> object:
    stopping = threading.Event()

    @retry(stop_event=stopping, max_attempts=None, schedule=constant(5))
    def work() -> None:
        if server() == "SIGTERM":
            stopping.set()
        raise ConnectionError

    return work()


# ---- TryAgain: the function asks for another attempt


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(ConnectionError),
    stop=tenacity.stop_after_attempt(5),
    wait=tenacity.wait_fixed(3),
)
def read_tenacity(server: Server) -> object:
    page = server()
    if page == "empty":
        raise tenacity.TryAgain
    return page


@retry(on=ConnectionError, max_attempts=5, schedule=constant(3))
def read_retrykit(server: Server) -> object:
    page = server()
    if page == "empty":
        raise RetryAfter
    return page


USAGES = [
    Usage(
        "stop, wait, retry",
        [ConnectionError, TimeoutError, ConnectionError],
        embed_tenacity,
        embed_retrykit,
    ),
    Usage("retry_error_callback", [OSError, ...], complete_tenacity, complete_retrykit),
    Usage("retry_if_result", [False, ...], is_ready_tenacity, is_ready_retrykit),
    Usage("stop_after_delay", ["queued", ...], status_tenacity, status_retrykit),
    Usage(
        "after, before_sleep",
        [OSError, OSError, "ok"],
        publish_tenacity,
        publish_retrykit,
    ),
    Usage(
        "wait_chain",
        [*[OSError] * 4, PermissionError],
        tweets_tenacity,
        tweets_retrykit,
    ),
    Usage("wait_chain, random", [OSError, ...], query_tenacity, query_retrykit),
    Usage(
        "AsyncRetrying",
        [OSError, OSError, "text"],
        translate_tenacity,
        translate_retrykit,
    ),
    Usage("stop_when_event_set", ["job", "SIGTERM"], work_tenacity, work_retrykit),
    Usage("TryAgain", ["empty", "empty", "page"], read_tenacity, read_retrykit),
]

if __name__ == "__main__":
    show(USAGES, "tenacity", installed=not isinstance(tenacity, MagicMock))
