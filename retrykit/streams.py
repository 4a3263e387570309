"""Streams: retried generators, in a mode given to ``retry(stream=...)``.

>>> from retrykit import retry, streams
>>> lines = ["one", "two", "three"]
>>> def behind(last_line, state):
...     return {"start": state.stream.items}
>>> @retry(stream=streams.resume(behind), on=ConnectionError, schedule=[0, 0])
... def read(start=0):
...     yield lines[start]
...     if start < 2:
...         raise ConnectionError("cut off")
>>> list(read())
['one', 'two', 'three']

A generator function fails while its consumer iterates. Items handed out by then cannot
be taken back, so a mode must be chosen:

- ``"until-first-item"``, or `until_first_item`: retried until its first item. Later
  errors are raised.
- ``"restart"``, or `restart`: started over, with all items again; or without the items
  that were handed out, for a source that gives the same items again.
- `resume`: continued where a function says.

Nothing is retried after the consumer has closed the stream, nor after an error that the
consumer throws into the generator.
"""

from typing import TYPE_CHECKING, Any

from retrykit._core.async_streams import AsyncStream
from retrykit._core.stream_facts import StreamProgress
from retrykit._core.stream_modes import (
    FailureCount,
    Position,
    StreamMode,
    check_function,
    make_mode,
)
from retrykit._core.streams import Stream
from retrykit._internal.durations import Duration
from retrykit._internal.validation import user_facing
from retrykit.errors import StreamChangedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AsyncStream", "Position", "Stream", "StreamChangedError", "StreamMode"]
__all__ += ["StreamProgress", "restart", "resume", "until_first_item"]


@user_facing
def until_first_item(
    *,
    first_item_timeout: Duration | None = None,
    item_timeout: Duration | None = None,
) -> StreamMode:
    """Retry a generator until it has handed out its first item.

    >>> until_first_item(first_item_timeout="30s")
    streams.until_first_item(first_item_timeout=30.0)

    Args:
        first_item_timeout: Time limit of the first item, for async generators: a
            duration, > 0; by default unlimited.
        item_timeout: Time limit of each further item, likewise.

    Raises:
        ConfigError: A timeout is invalid.
    """
    return make_mode(
        "until-first-item",
        first_item_timeout=first_item_timeout,
        item_timeout=item_timeout,
    )


@user_facing
def restart(
    *,
    skip_seen: bool = False,
    failures: FailureCount = "in_all",
    first_item_timeout: Duration | None = None,
    item_timeout: Duration | None = None,
) -> StreamMode:
    """Start a generator over; unless *skip_seen*, its consumer gets all items again.

    >>> restart(skip_seen=True)
    streams.restart(skip_seen=True)

    Args:
        skip_seen: Leave out as many items as were handed out, for a source that gives
            the same ones in the same order. If it has fewer, `StreamChangedError` is
            raised.
        failures: Which failures the policy's limits count: ``"in_all"``, all failures
            of the call; or ``"in_a_row"``, only those since the last new item.
        first_item_timeout: Time limit of the first item of each attempt, for async
            generators: a duration, > 0; by default unlimited.
        item_timeout: Time limit of each further item, likewise.

    Raises:
        ConfigError: An argument is invalid.
    """
    return make_mode(
        "restart",
        failures=failures,
        first_item_timeout=first_item_timeout,
        item_timeout=item_timeout,
        skip_seen=skip_seen,
    )


@user_facing
def resume(
    continue_from: "Callable[..., Any]",
    /,
    *,
    failures: FailureCount = "in_a_row",
    first_item_timeout: Duration | None = None,
    item_timeout: Duration | None = None,
) -> StreamMode:
    """Continue a generator after the last item that it has handed out.

    >>> resume(lambda last_page, state: {"cursor": last_page["next"]})
    streams.resume(<lambda>)

    Args:
        continue_from: A function of the last item and the `RetryState`, called before
            an attempt if there are new items. It returns the arguments that differ from
            those of the call, as a dict keyed by parameter name, or a `Position`. It
            belongs to the attempt: its errors are retried as the policy says, and
            `GiveUp` ends the stream. For async generators it may be async. Until the
            first item, the call is started over without it.
        failures: Which failures the policy's limits count: ``"in_a_row"``, only those
            since the last item; or ``"in_all"``, all failures of the call.
        first_item_timeout: Time limit of the first item of each attempt, for async
            generators: a duration, > 0; by default unlimited.
        item_timeout: Time limit of each further item, likewise.

    Raises:
        ConfigError: An argument is invalid.
    """
    return make_mode(
        "resume",
        check_function(continue_from),
        failures=failures,
        first_item_timeout=first_item_timeout,
        item_timeout=item_timeout,
    )
