"""Server-sent events: a parser, and a stream that continues after reconnections.

Nothing here sends a request.

Source:
    WHATWG, "HTML Living Standard", section 9.2, "Server-sent events".
"""

import codecs
import re
from collections.abc import Iterator
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit.errors import EventStreamError, GiveUp
from retrykit.integrations._http.range_downloads import Reply

__all__ = ["EventParser", "EventStream", "ServerSentEvent"]


@final
class ServerSentEvent(Frozen):
    r"""An event that a server has sent.

    >>> ServerSentEvent("price", '{"EUR": 7}', "41", None)
    ServerSentEvent(event='price', data='{"EUR": 7}', id='41', retry=None)

    Attributes:
        event: The type of the event, ``"message"`` by default.
        data: The data, whose lines are joined by ``"\n"``.
        id: The last id that the server has sent, with this event or before it; if it
            has sent none, the *last_event_id* of the stream. The stream can be
            continued after it: pass it as *last_event_id*. ``""`` if there is no id, or
            an empty one.
        retry: The reconnection delay that the server has sent with this event, in
            milliseconds, at most 366 days; None if it has sent none.
    """

    __slots__ = ("data", "event", "id", "retry")
    event: str
    data: str
    id: str
    retry: int | None


@final
class EventParser:
    r"""Parses the bytes of one response into events.

    >>> parser = EventParser("")
    >>> [*parser.feed(b"data: one\r")], [*parser.feed(b"\nid: 4\n\n")]
    ([], [ServerSentEvent(event='message', data='one', id='4', retry=None)])

    Args:
        last_event_id: The last id of the previous response; empty if there is none.

    Attributes:
        last_event_id: The last id in a complete frame; before the first one, the
            argument.
        reconnect_after: The last delay that ``retry:`` has set, in milliseconds; None
            if it has set none.
        is_at_id: Whether the last frame with data or an id had an id; True before the
            first such frame.
    """

    def __init__(self, last_event_id: str) -> None:
        self.last_event_id = last_event_id
        self.reconnect_after: int | None = None
        self.is_at_id = True
        # It leaves out a byte order mark at the start.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._line: list[str] = []
        self._after_cr = False
        self._id = last_event_id
        self._begin_frame()

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that a chunk completes, and update the attributes."""
        text = self._decode(chunk)
        if not text:
            return
        if self._after_cr and text[0] == "\n":
            text = text[1:]
        self._after_cr = text.endswith("\r")
        # Not by splitlines(), which has more kinds of line ends.
        *lines, rest = _LINE_END.split(text)
        for line in lines:
            whole = "".join([*self._line, line])
            self._line.clear()
            event = self._read_line(whole)
            if event is not None:
                yield event
        if rest:
            self._line.append(rest)

    def _begin_frame(self) -> None:
        self._event, self._data = "", list[str]()
        self._retry: int | None = None
        self._has_id = False

    def _read_line(self, line: str) -> ServerSentEvent | None:
        """Read a line, and return the event that it completes, or None."""
        if not line:
            return self._end_frame()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id, self._has_id = value, True
        elif name == "retry" and _DIGITS.fullmatch(value):
            digits = value.lstrip("0")
            delay = int(digits or 0) if len(digits) < _MANY_DIGITS else _LONGEST
            self._retry = self.reconnect_after = min(delay, _LONGEST)
        return None

    def _end_frame(self) -> ServerSentEvent | None:
        event, data, retry = self._event or "message", self._data, self._retry
        if self._has_id:
            self.is_at_id = True
        elif data:
            self.is_at_id = False
        self.last_event_id = self._id
        self._begin_frame()
        if not data:
            return None
        return ServerSentEvent(event, "\n".join(data), self.last_event_id, retry)


@final
class EventStream:
    """A stream of events that continues across requests.

    Args:
        last_event_id: The id after which the stream begins; if it is empty, the server
            chooses.
    """

    def __init__(self, last_event_id: str) -> None:
        self._parser = EventParser(last_event_id)
        self._seen = 0

    @property
    def last_event_id(self) -> str:
        """The id after which the next request continues; empty if there is none."""
        return self._parser.last_event_id

    def gap(self) -> str | None:
        """Return what may be lost or repeated by a reconnection; None if nothing."""
        if not self.last_event_id:
            return "events of the time without a connection: the last id is empty"
        if not self._parser.is_at_id:
            last = f"id {self.last_event_id!r}"
            return f"events behind {last} had no id: they may come again, or be lost"
        return None

    def position(self) -> dict[str, object]:
        """Return the arguments that say where the next attempt continues.

        They are the last id, and the number of events that have been read.
        """
        return {"last_event_id": self.last_event_id, "seen": self._seen}

    def requested_delay(self, _: object) -> float | None:
        """Return the reconnection delay that the server has set, in seconds.

        None if it has set none. This method is a hint for policies.
        """
        delay = self._parser.reconnect_after
        return None if delay is None else delay / 1000

    def request_headers(self) -> dict[str, str]:
        """Return the headers of the next request."""
        headers = {"accept": _EVENT_STREAM, "cache-control": "no-store"}
        # Spaces around a value are not part of it.
        if last_event_id := self.last_event_id.strip(" \t"):
            headers["last-event-id"] = last_event_id
        return headers

    def begin(self, reply: Reply) -> bool:
        """Read the head of a response, and return whether events follow.

        None follow a response with the status 204.

        Raises:
            Exception: The error of the client, if the status is an error.
            GiveUp: The stream cannot continue, or the response is not a stream of
                events; its `cause` is an `EventStreamError`.
        """
        if reply.status == _NO_CONTENT:
            return False
        if reply.status in _LOST and (self._seen or self.last_event_id):
            try:
                reply.raise_for_status()
            except Exception as error:
                lost = self._lost(reply.status)
                lost.__cause__ = error
                raise GiveUp(lost) from error
        reply.raise_for_status()
        kind = reply.headers.get("content-type", "")
        if reply.status != _OK or kind.partition(";")[0].strip().lower() != (
            _EVENT_STREAM
        ):
            found = f"status {reply.status} and content type {kind!r}"
            reason = f"the server answered with {found}, not with events"
            raise GiveUp(EventStreamError(self.last_event_id, reason))
        before = self._parser
        self._parser = EventParser(before.last_event_id)
        self._parser.reconnect_after = before.reconnect_after
        self._parser.is_at_id = before.is_at_id
        return True

    def read(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that a chunk completes, and count them."""
        for event in self._parser.feed(chunk):
            self._seen += 1
            yield event

    def _lost(self, status: int) -> EventStreamError:
        behind = "the last one"
        if self.last_event_id:
            behind = f"id {self.last_event_id!r}"
        reason = f"the server answered with status {status}: events behind {behind} "
        return EventStreamError(self.last_event_id, f"{reason}are lost")


_OK, _NO_CONTENT = 200, 204
# The server does not know the last id any more.
_LOST = {400, 410}
_EVENT_STREAM = "text/event-stream"
_LINE_END = re.compile("\r\n|\n|\r")
_DIGITS = re.compile("[0-9]+")
# A year, in milliseconds.
_LONGEST = 366 * 86_400_000
# More digits than the longest delay has: an endless number would take forever.
_MANY_DIGITS = 18
