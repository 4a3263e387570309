"""Downloads that continue with range requests: the headers, and the responses.

Bytes of two versions of a file are never mixed: a download continues only with a strong
validator. Nothing here sends a request.

Source:
    RFC 9110, "HTTP Semantics", sections 8.8, 13.1.5 and 14, 2022.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from retrykit.errors import DownloadError, GiveUp, RetryAfter
from retrykit.hints._retry_after_header import parse_http_date

__all__ = ["RangeDownload", "Reply"]


class Reply(NamedTuple):
    """A response to a request, whose body has not been read.

    Attributes:
        status: The HTTP status.
        headers: The headers, case-insensitive.
        chunks: The body as an iterable of bytes, async for an async client.
        raise_for_status: Raises the client's error, if the status is an error.
    """

    status: int
    headers: Mapping[str, str]
    chunks: Any
    raise_for_status: Callable[[], object]


@final
class RangeDownload:
    """A download that continues across requests.

    Args:
        restarts: How often the download may start over if it cannot continue; the bytes
            that were handed out before are then void. If it would have to start over
            more often, it ends with a `DownloadError`.

    Attributes:
        offset: Number of bytes handed out since the download last started.
        total: Number of bytes of the whole file; None while it is unknown.
        begun: How often the download has started, >= 1.
    """

    def __init__(self, restarts: int = 0) -> None:
        self.offset = 0
        self.total: int | None = None
        self.begun = 1
        self._restarts = restarts
        # The strong validator of the file, as If-Range takes it, and its header.
        self._validator: tuple[str, str] | None = None
        self._skipped = 0
        # After the last byte that the answer should have.
        self._end: int | None = None

    @property
    def is_complete(self) -> bool:
        """True if the size of the file is known, and all its bytes were handed out."""
        return self.offset == self.total

    def position(self, *_: object) -> dict[str, int]:
        """Return the arguments that say where the next attempt continues.

        They are the offset, and how often the download has started.
        """
        return {"offset": self.offset, "begun": self.begun}

    def request_headers(self) -> dict[str, str]:
        """Return the headers of the next request.

        They ask for no content coding, so that offsets count the bytes handed out.

        Raises:
            GiveUp: The download can neither continue nor start over; its `cause` is a
                `DownloadError`.
        """
        headers = {"accept-encoding": "identity"}
        if self.offset and self._validator is None:
            self._begin_anew("the server has sent no strong ETag or Last-Modified")
        if self.offset and self._validator is not None:
            headers["range"] = f"bytes={self.offset}-"
            headers["if-range"] = self._validator[1]
        return headers

    def begin(self, reply: Reply) -> bool:
        """Read the head of a response, and return whether its body is to be read.

        Raises:
            Exception: The error of the client, if the status is an error.
            GiveUp: The download can neither continue nor start over, or the status is
                unexpected; its `cause` is a `DownloadError`.
            RetryAfter: The download starts over, with another request.
        """
        self._skipped = 0
        if reply.status == _PARTIAL:
            return self._continue(reply.headers)
        if reply.status == _UNSATISFIABLE and self.offset:
            return self._check_end(reply.headers)
        if reply.status not in _WHOLE:
            reply.raise_for_status()
            reason = f"the server answered with status {reply.status}"
            raise self._error(reason)
        validator = _strong_validator(reply.headers)
        total = _parse_length(reply.headers.get("content-length"))
        # A date alone does not prove that the earlier bytes are the same.
        by_tag = validator is not None and validator[0] == "etag"
        same = by_tag and validator == self._validator
        if self.offset and same and not self._has_other_size(total):
            # The same bytes, from a server that ignores ranges.
            self._skipped = self.offset
        elif self.offset:
            self._begin_anew("the file has changed")
        self._validator = validator
        self.total = self._end = total
        return True

    def take(self, chunk: bytes) -> bytes:
        """Return the part of a chunk that is to be handed out; it may be empty."""
        if self._skipped:
            skipped = min(self._skipped, len(chunk))
            self._skipped -= skipped
            chunk = chunk[skipped:]
        if self._end is not None:
            chunk = chunk[: self._end - self.offset]
        self.offset += len(chunk)
        return chunk

    def missing(self) -> str | None:
        """Return a text about the bytes missing at the end of a body; None if none are.

        A body of unknown size counts as complete, unless it repeats fewer bytes than
        were handed out before.
        """
        received = self.offset - self._skipped
        if self.total not in {None, received}:
            return f"the body ended after {received} of {self.total} bytes"
        if self._skipped:
            before = f"{self.offset} had been received before"
            return f"the body ended after {received} bytes; {before}"
        return None

    def _continue(self, headers: Mapping[str, str]) -> bool:
        found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
        start, end = (-1, -1) if found is None else (int(found[1]), int(found[2]))
        total = None if found is None or found[3] == "*" else int(found[3])
        size = self.total if total is None else total
        beyond = size is not None and end >= size
        if start != self.offset or end < start or beyond:
            reason = f"the server sent other bytes than those from {self.offset}"
            raise self._ask_anew(reason)
        if self.offset and self._has_changed(headers, total):
            # The bytes that follow belong to another file.
            reason = "the file has changed, and the server ignored If-Range"
            raise self._ask_anew(reason)
        self._validator = self._validator or _strong_validator(headers)
        self.total, self._end = size, end + 1
        return True

    def _has_other_size(self, total: int | None) -> bool:
        return None not in {total, self.total} and total != self.total

    def _has_changed(self, headers: Mapping[str, str], total: int | None) -> bool:
        if self._has_other_size(total):
            return True
        name, value = self._validator or ("", "")
        sent = headers.get(name)
        return sent is not None and sent.strip() != value

    def _check_end(self, headers: Mapping[str, str]) -> bool:
        """Return False, as no body is to be read: all bytes were handed out before.

        Raises:
            GiveUp: The file has changed, and the download may not start over.
            RetryAfter: The file has changed; the download starts over.
        """
        found = _UNSATISFIED.fullmatch(headers.get("content-range", "").strip())
        total = self.total if found is None else int(found[1])
        if total != self.offset or self._has_changed(headers, total):
            reason = "the file has changed: it has no more bytes"
            raise self._ask_anew(reason)
        self.total = total
        return False

    def _begin_anew(self, reason: str) -> None:
        if self.begun > self._restarts:
            raise self._error(reason)
        self.begun += 1
        self.offset, self.total, self._validator = 0, None, None

    def _ask_anew(self, reason: str) -> RetryAfter:
        """Start the download over, and return the signal for another request.

        Raises:
            GiveUp: The download may not start over.
        """
        error = DownloadError(self.offset, reason)
        self._begin_anew(reason)
        return RetryAfter(0, error)

    def _error(self, reason: str) -> GiveUp:
        return GiveUp(DownloadError(self.offset, reason))


def _strong_validator(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the name and value of the header for ``If-Range``; None if none is strong.

    ``Last-Modified`` is strong only if there is no entity tag, and if it is at least
    60 s before the response's ``Date``: the file cannot have changed again in the
    second that the header names, even if a clock is wrong.
    """
    tag = headers.get("etag", "").strip()
    if tag:
        return ("etag", tag) if _STRONG_TAG.fullmatch(tag) else None
    changed = headers.get("last-modified", "").strip()
    then, sent = (
        parse_http_date(each, 0.0) for each in (changed, headers.get("date", ""))
    )
    if then is None or sent is None or sent - then < _CLOCK_SKEW:
        return None
    return "last-modified", changed


def _parse_length(text: str | None) -> int | None:
    text = "" if text is None else text.strip()
    return int(text) if _NUMBER.fullmatch(text) else None


_PARTIAL, _UNSATISFIABLE = 206, 416
# The second is sent by a proxy that has changed the response.
_WHOLE = {200, 203}
# In seconds, from RFC 7232, section 2.2.2.
_CLOCK_SKEW = 60
_NUMBER = re.compile("[0-9]{1,18}")
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_UNSATISFIED = re.compile(r"bytes \*/([0-9]{1,18})")
_STRONG_TAG = re.compile('"[^"]*"')
