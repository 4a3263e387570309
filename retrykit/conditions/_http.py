"""HTTP failures in the errors and responses of any client, without importing it.

Errors and responses are recognized by their attributes and class names.
"""

import socket
from collections.abc import Iterable, Iterator
from typing import Any, final

from retrykit._internal.connection_errors import (
    is_certificate_error,
    is_connection_error,
    is_unreachable,
)
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting, user_facing

__all__ = ["HttpFailures"]


@final
class HttpFailures(Frozen):
    """Predicate of HTTP failures: responses and errors of any client.

    It is for `on`, `on_result` or both: some clients return a failed response, others
    raise an error with the response or its status.

    >>> from urllib.error import HTTPError, URLError
    >>> failed = HttpFailures(["5xx", 429], connections=True)
    >>> failed(HTTPError("http://[::1]/", 503, "busy", {}, None))
    True
    >>> failed(URLError(ConnectionResetError()))
    True
    >>> HttpFailures(unprocessed=True)(URLError(ConnectionResetError()))
    False

    Args:
        statuses: A list of statuses, 100 to 599, or whole classes: ``"5xx"``.
        connections: Whether it is a failure if a connection could not be made, was lost
            or reset, or timed out, or if HTTP/2 refused the stream; a rejected
            certificate never is.
        unprocessed: Whether it is a failure if no server has processed the request: the
            connection could not be made, or HTTP/2 refused the stream.

    Raises:
        ConfigError: *statuses* is not a list or tuple of statuses, or nothing would be
            a failure.
    """

    __slots__ = ("connections", "statuses", "unprocessed")
    statuses: tuple[int | str, ...]
    connections: bool
    unprocessed: bool

    @user_facing
    def __init__(
        self,
        statuses: Iterable[int | str] = (),
        connections: bool = False,  # noqa: FBT001, FBT002  by position in pickles
        unprocessed: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        listed = statuses if isinstance(statuses, list | tuple) else [None]
        if not all(map(_is_status, listed)):
            rule = 'a list of statuses, 100 to 599, and classes such as "5xx"'
            raise invalid_setting("statuses", rule, statuses)
        if not (listed or connections or unprocessed):
            suggestion = "or set connections=True"
            raise invalid_setting("statuses", "at least one", statuses, suggestion)
        distinct = tuple(dict.fromkeys(listed))
        Frozen.__init__(
            self, statuses=distinct, connections=connections, unprocessed=unprocessed
        )

    def __repr__(self) -> str:
        flags = [name for name in ("connections", "unprocessed") if getattr(self, name)]
        parts = [repr([*self.statuses]), *(f"{name}=True" for name in flags)]
        return f"HttpFailures({', '.join(parts)})"

    def __call__(self, outcome: object, /) -> bool:
        """Return whether an error or a response is a failure."""
        status = _status_of(outcome)
        if status is not None:
            return status in self.statuses or f"{status // 100}xx" in self.statuses
        if not isinstance(outcome, Exception) or is_certificate_error(outcome):
            return False
        errors = [*_errors_in(outcome)]
        unprocessed = self.connections or self.unprocessed
        return (self.connections and any(map(_is_lost, errors))) or (
            unprocessed and any(map(_is_unprocessed, errors))
        )

    def release(self, response: Any, /) -> Any:
        """Close a rejected response; the result may be awaitable."""
        aclose = _get(response, "aclose")
        if aclose is not None and not hasattr(_get(response, "stream"), "__iter__"):
            # Both clients of httpx have one kind of response.
            return aclose()
        # The first returns the connection of aiohttp to its pool.
        close = _get(response, "release") or _get(response, "close")
        return close() if callable(close) else None


def _is_status(value: object) -> bool:
    if isinstance(value, str):
        return value in _CLASSES
    return type(value) is int and 100 <= value <= 599  # noqa: PLR2004


_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


def _status_of(outcome: object) -> int | None:
    """Return the status of a response or an error, or of the error's response.

    None if there is none.
    """
    for value in (outcome, _get(outcome, "response")):
        # First the names that clients use: the `code` of SDKs is often their own.
        for name in ("status_code", "status", "code"):
            status = _get(value, name)
            if isinstance(status, int) and _is_status(int(status)):
                return int(status)
    return None


def _get(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  a property may be anyone's code
        return None


def _errors_in(error: Exception) -> Iterator[BaseException]:
    """Yield an error and the errors that it names as cause, reason or argument.

    The errors that these name follow. Contexts are left out: such a failure may have
    been dealt with already.
    """
    found: list[BaseException] = [error]
    for each in found:
        yield each
        named = (each.__cause__, _get(each, "reason"), *_args(each))
        found += (
            x
            for x in named
            if isinstance(x, BaseException) and not any(x is y for y in found)
        )


def _is_lost(error: BaseException) -> bool:
    return is_connection_error(error) or not _LOST.isdisjoint(_names_of(error))


def _is_unprocessed(error: BaseException) -> bool:
    if isinstance(error, ConnectionRefusedError | socket.gaierror):
        return True
    if is_unreachable(error) or _is_refused_stream(error):
        return True
    return not _UNCONNECTED.isdisjoint(_names_of(error))


def _is_refused_stream(error: BaseException) -> bool:
    # The event of h2 in the error of httpcore.
    return any(_get(each, "error_code") == _REFUSED_STREAM for each in _args(error))


def _args(error: BaseException) -> tuple[Any, ...]:
    # A subclass may have others under this name.
    args = _get(error, "args")
    return args if isinstance(args, tuple) else ()


# RFC 9113, "HTTP/2", section 7, 2022.
_REFUSED_STREAM = 7


def _names_of(error: BaseException) -> Iterator[str]:
    for kind in type(error).__mro__:
        # httpx2 is httpx.
        package = kind.__module__.partition(".")[0].rstrip("2")
        yield f"{package}.{kind.__name__}"


# The server closed it, which is not an error of the operating system.
_LOST = frozenset({"aiohttp.ServerDisconnectedError", "aiohttp.ClientPayloadError"})
_LOST |= {"http.IncompleteRead", "httpcore.RemoteProtocolError"}
_LOST |= {"httpx.RemoteProtocolError", "urllib3.ProtocolError"}

_UNCONNECTED = frozenset({"aiohttp.ClientConnectorError", "httpcore.ConnectError"})
_UNCONNECTED |= {"aiohttp.ConnectionTimeoutError", "httpcore.ConnectTimeout"}
_UNCONNECTED |= {"httpx.ConnectError", "httpx.ConnectTimeout"}
_UNCONNECTED |= {"urllib3.NewConnectionError", "urllib3.ConnectTimeoutError"}
