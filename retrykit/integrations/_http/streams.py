"""Downloads and event streams of HTTP clients, sync or async.

The module of a client sends the requests; `range_downloads` and `event_streams` decide
what the requests ask for, and what the responses mean.
"""

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
)
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self, cast

from retrykit._core.admission import at_host
from retrykit._core.decorators import retry
from retrykit._core.policy import Policy
from retrykit._core.stream_calls import note_progress
from retrykit._core.stream_modes import Position, make_mode
from retrykit._internal.validation import invalid_setting
from retrykit.hints._base import first_of
from retrykit.integrations._http.event_streams import EventStream, ServerSentEvent
from retrykit.integrations._http.policy import Transient
from retrykit.integrations._http.range_downloads import RangeDownload, Reply

if TYPE_CHECKING:
    from retrykit._core.async_streams import AsyncStream
    from retrykit._core.streams import Stream

__all__ = ["READ_TIMEOUT", "AsyncRequester", "Request", "Requester", "save_download"]
__all__ += ["stream_download", "stream_events"]

READ_TIMEOUT = 60.0
"""The usual limit on how long a stream may be silent, in seconds.

Event servers send a comment every 15 seconds or so, as the standard recommends.
"""


class Requester(ABC):
    """Sends the requests of one download or event stream."""

    awaited = False

    @abstractmethod
    def get(self, headers: dict[str, str], /) -> AbstractContextManager[Reply]:
        """Return a context manager that sends a request, and closes its response."""

    @abstractmethod
    def ended(self, text: str, /) -> Exception:
        """Return the client's error for a body that has ended too early."""


class AsyncRequester(ABC):
    """Sends the requests of one download or event stream of an async client."""

    awaited = True

    @abstractmethod
    def get(self, headers: dict[str, str], /) -> AbstractAsyncContextManager[Reply]:
        """Return a context manager that sends a request, and closes its response."""

    @abstractmethod
    def ended(self, text: str, /) -> Exception:
        """Return the client's error for a body that has ended too early."""


class Request(NamedTuple):
    """The arguments that a user has given for the requests of a stream.

    Attributes:
        options: The arguments of the client's function, without headers.
        headers: The headers, keyed by name in lower case.
        raw: Whether bodies are handed out without decoding their content coding.
    """

    options: dict[str, Any]
    headers: dict[str, Any]
    raw: bool

    @classmethod
    def for_download(cls, options: dict[str, Any]) -> Self:
        """Return the request of a download, from the options that a user gave."""
        headers = _check_headers(options, {"range", "if-range"})
        return cls(options, headers, raw=True)

    @classmethod
    def for_events(cls, options: dict[str, Any]) -> Self:
        """Return the request of an event stream, from the options that a user gave."""
        return cls(options, _check_headers(options, {"last-event-id"}), raw=False)

    def with_headers(self, headers: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the client's function.

        The headers of the stream, *headers*, replace those that the user has given.
        """
        return {**self.options, "headers": self.headers | headers}


def _check_headers(options: dict[str, Any], reserved: set[str]) -> dict[str, Any]:
    """Remove the headers from options; return them, keyed by name in lower case.

    Raises:
        ConfigError: One of the reserved headers is given.
    """
    given = options.pop("headers", None)
    headers = {
        (
            name.decode("latin-1") if isinstance(name, bytes) else str(name)
        ).lower(): value
        for name, value in dict(given or {}).items()
    }
    for name in reserved & headers.keys():
        rule = f"headers without {name!r}, which the stream sets"
        raise invalid_setting("headers", rule, given)
    return headers


def stream_download(
    requester: Any, transient: Transient, policy: Policy | None, host: str | None
) -> Any:
    """Return a stream of a file's chunks; the download never starts over."""
    download = RangeDownload()
    return _open_download(requester, download, transient, policy, host)


def _open_download(
    requester: Requester | AsyncRequester,
    download: RangeDownload,
    transient: Transient,
    policy: Policy | None,
    host: str | None,
) -> Any:
    policy = _stream_policy(transient, policy, host)
    mode = make_mode("resume", download.position, failures="in_a_row")
    read: Any = aread_download if requester.awaited else read_download
    return cast("Any", retry(policy, stream=mode)(read))(requester, download)


def stream_events(
    requester: Requester | AsyncRequester,
    transient: Transient,
    policy: Policy | None,
    host: str | None,
    last_event_id: str | None,
) -> Any:
    """Return a stream of a server's events.

    Raises:
        ConfigError: The policy or the id is invalid.
    """
    given: Any = "" if last_event_id is None else last_event_id
    if not isinstance(given, str) or {*"\r\n\0"} & {*given}:
        rule = "a string without line breaks and NUL"
        raise invalid_setting("last_event_id", rule, given)
    events = EventStream(given)
    if policy is None:
        # Without a time limit: events may come once an hour.
        policy = Policy(max_attempts=_ATTEMPTS)
    policy = _stream_policy(transient, policy, host)
    known = [] if policy.hint is None else [policy.hint]
    policy = policy.replace(hint=first_of(*known, events.requested_delay))

    def continue_from(_last: object, _state: object) -> Position:
        return Position(events.position(), gap=events.gap())

    mode = make_mode("resume", continue_from, failures="in_a_row")
    read: Any = aread_events if requester.awaited else read_events
    return cast("Any", retry(policy, stream=mode)(read))(requester, events)


def read_download(
    requester: Requester,
    download: RangeDownload,
    offset: int = 0,  # noqa: ARG001  for the positions of the stream
    begun: int = 1,  # noqa: ARG001  for the positions of the stream
) -> Generator[bytes]:
    """Yield the bytes that one request gets; none if the download is complete.

    Raises:
        Exception: The client's error, if a body ends too early.
    """
    if download.is_complete:
        return
    with requester.get(download.request_headers()) as reply:
        if not download.begin(reply):
            return
        for each in reply.chunks:
            chunk = download.take(each)
            if chunk:
                yield chunk
    missing = download.missing()
    if missing is not None:
        raise requester.ended(missing)


async def aread_download(
    requester: AsyncRequester,
    download: RangeDownload,
    offset: int = 0,  # noqa: ARG001  for the positions of the stream
    begun: int = 1,  # noqa: ARG001  for the positions of the stream
) -> AsyncGenerator[bytes]:
    """Yield the bytes that one request gets; none if the download is complete.

    Raises:
        Exception: The client's error, if a body ends too early.
    """
    if download.is_complete:
        return
    async with requester.get(download.request_headers()) as reply:
        if not download.begin(reply):
            return
        async for each in reply.chunks:
            chunk = download.take(each)
            if chunk:
                yield chunk
    missing = download.missing()
    if missing is not None:
        raise requester.ended(missing)


def read_events(
    requester: Requester,
    events: EventStream,
    last_event_id: str = "",  # noqa: ARG001  for the positions of the stream
    seen: int = 0,  # noqa: ARG001  for the positions of the stream
) -> Generator[ServerSentEvent]:
    """Yield the events of one response; return only if the stream has ended.

    Raises:
        Exception: The client's error, since a response that ends can be continued.
    """
    with requester.get(events.request_headers()) as reply:
        if not events.begin(reply):
            return
        alive = False
        for chunk in reply.chunks:
            if alive:
                # As comments show, which servers send to keep a connection open.
                note_progress()
            alive = True
            for event in events.read(chunk):  # noqa: UP028  as its async twin
                yield event
    raise requester.ended(_ENDED)


async def aread_events(
    requester: AsyncRequester,
    events: EventStream,
    last_event_id: str = "",  # noqa: ARG001  for the positions of the stream
    seen: int = 0,  # noqa: ARG001  for the positions of the stream
) -> AsyncGenerator[ServerSentEvent]:
    """Yield the events of one response; return only if the stream has ended.

    Raises:
        Exception: The client's error, since a response that ends can be continued.
    """
    async with requester.get(events.request_headers()) as reply:
        if not events.begin(reply):
            return
        alive = False
        async for chunk in reply.chunks:
            if alive:
                # As comments show, which servers send to keep a connection open.
                note_progress()
            alive = True
            for event in events.read(chunk):
                yield event
    raise requester.ended(_ENDED)


def save_download(
    requester: Requester | AsyncRequester,
    transient: Transient,
    policy: Policy | None,
    host: str | None,
    path: str | os.PathLike[str],
) -> Any:
    """Download a file to a path; return its size in bytes, or an awaitable of it."""
    download = RangeDownload(restarts=_RESTARTS)
    stream = _open_download(requester, download, transient, policy, host)
    write: Any = awrite_download if requester.awaited else write_download
    return write(stream, download, Path(path))


def write_download(
    stream: "Stream[bytes, None, None]", download: RangeDownload, path: Path
) -> int:
    """Write the chunks of a download to a path, and return the file's size in bytes."""
    with _new_file(path) as file:
        with stream:
            for chunk in stream:
                _write(file, download.offset - len(chunk), chunk)
        file.truncate(download.offset)
    return download.offset


async def awrite_download(
    stream: "AsyncStream[bytes, None]", download: RangeDownload, path: Path
) -> int:
    """Write the chunks of a download to a path, and return the file's size in bytes."""
    with _new_file(path) as file:
        async with stream:
            async for chunk in stream:
                _write(file, download.offset - len(chunk), chunk)
        file.truncate(download.offset)
    return download.offset


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, which replaces the file at a path if the block succeeds.

    If the block raises an error, the new file is removed.

    Raises:
        IsADirectoryError: The path is a folder.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with part.open("xb") as file:
            if path.exists():
                # Users who must not read the old file must not read the new one.
                shutil.copymode(path, part)
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write(file: IO[bytes], position: int, chunk: bytes) -> None:
    """Write a chunk at a position, over earlier chunks if the download started over."""
    if file.tell() != position:
        file.seek(position)
    file.write(chunk)


def _stream_policy(
    transient: Transient, base: Policy | None, host: str | None
) -> Policy:
    """Return the policy of a stream: with a name, the limits of its host, and defaults.

    The client's condition on results is left out: a stream has no result to judge.
    """
    policy = transient.policy(base)
    if policy.on_result is transient:
        policy = policy.replace(on_result=None)
    if policy.name is None:
        policy = policy.replace(name=f"GET {host or ''}".rstrip())
    return at_host(policy, host)


_ENDED = "the server ended the event stream"
# As in the default policy.
_ATTEMPTS = 5
# A file that changes more often during its download is not one to wait for.
_RESTARTS = 10
