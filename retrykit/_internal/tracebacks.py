"""Notes and tracebacks of exceptions.

A traceback holds the frames of its functions, and they hold all local variables. An
error may be an open response itself, as in `urllib`, or refer to one.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from types import CodeType, CoroutineType, TracebackType

from retrykit._internal.late_modules import traceback

__all__ = ["WITHOUT_DICT", "FrameLocations", "Location", "add_note_once"]
__all__ += [
    "close_errors",
    "drop_frames",
    "drop_own_frame",
    "format_traceback",
    "keep_context",
    "location",
    "locations_of",
]
__all__ += [
    "has_attributes",
    "reduce_error",
    "related_errors",
    "skip_wrapper_frames",
    "trim_traceback",
]
__all__ += ["with_traceback"]

with_traceback = BaseException.with_traceback
"""Sets the traceback of an error; its class may override the method."""


def drop_own_frame(error: BaseException) -> None:
    """Remove the first frame from the traceback of an error.

    It is the frame of a function that only raises the error again.
    """
    trace = error.__traceback__
    with_traceback(error, trace and trace.tb_next)


reduce_error = BaseException.__reduce__
"""Returns the parts of an error for pickle; its class may override the method."""

WITHOUT_DICT = 2
"""How many parts `reduce_error` returns for an error without attributes. To read its
``__dict__`` instead would create the dict."""


def has_attributes(error: BaseException) -> bool:
    """Return whether an error has attributes, or notes, without creating its dict."""
    return len(reduce_error(error)) > WITHOUT_DICT


def add_note_once(error: BaseException, text: str) -> None:
    """Add a note to an error; replace retrykit's note that begins with the same word.

    One error object may be raised by every attempt, and must not collect notes.
    """
    start = f"retrykit: {text.split(maxsplit=1)[0]} "
    notes = vars(error).get("__notes__")
    notes = notes if isinstance(notes, list | tuple) else ()
    others = [x for x in notes if not (isinstance(x, str) and x.startswith(start))]
    vars(error)["__notes__"] = [*others, f"retrykit: {text}"]


class keep_context:  # noqa: N801  used as a function
    """Keep the ``__context__`` of an error that the ``with`` block raises.

    If it is raised inside an ``except`` clause of the caller, Python would replace
    its context with the error of that clause.
    """

    __slots__ = ("_context", "_error")

    def __init__(self, error: BaseException) -> None:
        self._error, self._context = error, error.__context__

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        # The class of the error may override its own method.
        BaseException.__setattr__(self._error, "__context__", self._context)


def skip_wrapper_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the leading frames of retrykit's wrappers."""
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _WRAPPERS:
        trace = trace.tb_next
    return trace


_WRAPPERS = {
    "retrykit._core.async_streams",
    "retrykit._core.attempt_timeout",
    "retrykit._core.chains",
    "retrykit._core.drivers",
    "retrykit._core.hedging",
    "retrykit._core.item_timeouts",
    "retrykit._core.streams",
}


def trim_traceback(trace: TracebackType | None, old: TracebackType | None) -> None:
    """Cut the frames of an earlier attempt off a traceback.

    Python puts the new frames before the old ones: an error object that is raised by
    every attempt would keep the frames of all of them.
    """
    while trace is not None and trace.tb_next is not old:
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = None


Location = tuple[CodeType, int]
"""The code of a frame, and the offset of its last instruction, in bytes."""

FrameLocations = tuple[tuple[Location, ...], ...]
"""The frame locations of an error and of each error that belongs to its traceback."""


def drop_frames(error: BaseException, last: BaseException | None) -> FrameLocations:
    """Release the frames of an error, and return their locations.

    A frame holds all local variables of its function, a location none. The frames of
    the errors that belong to its traceback are released as well, except the frames of
    errors that also belong to the traceback of *last*, a later error.
    """
    lone = last is None and error.__context__ is None and error.__cause__ is None
    if lone and not isinstance(error, BaseExceptionGroup):
        return (_release(error),)
    kept = set() if last is None else {id(each) for each in related_errors(last)}
    return tuple(
        locations_of(each.__traceback__) if id(each) in kept else _release(each)
        for each in related_errors(error)
    )


def _release(error: BaseException) -> tuple[Location, ...]:
    """Release the frames of one error, and return their locations."""
    trace = error.__traceback__
    with_traceback(error, None)
    return locations_of(trace)


def close_errors(error: BaseException, last: BaseException | None) -> None:
    """Close the responses of an error and of the errors that belong to its traceback.

    >>> from io import BytesIO
    >>> from urllib.error import HTTPError
    >>> error = HTTPError("http://localhost", 503, "Unavailable", {}, BytesIO(b"busy"))
    >>> close_errors(error, None)
    >>> error.closed
    True

    Args:
        error: The error.
        last: A later error, or None. The responses that it refers to stay open.
    """
    kept = {id(x) for each in _related(last) for x in _held(each)}
    for each in _related(error):
        for held in _held(each):
            if id(held) not in kept:
                _close(held)


def _related(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else related_errors(error)


def _held(error: BaseException) -> tuple[object, ...]:
    """Return an error and the response that it refers to, or None."""
    try:
        return error, getattr(error, "response", None)
    except Exception:  # noqa: BLE001  it may be a property
        return (error,)


def _close(held: object) -> None:
    # An error whose `close` means something else cannot be read.
    with suppress(Exception):
        close = getattr(held, "close", None)
        if callable(close) and any(hasattr(held, name) for name in _READS):
            closing = close()
            if isinstance(closing, CoroutineType):
                # It would need an event loop.
                closing.close()


_READS = ("read", "iter_content", "iter_bytes")


location: Callable[[TracebackType], Location] = attrgetter(
    "tb_frame.f_code", "tb_lasti"
)
"""Returns the location of the first frame of a traceback."""


def locations_of(trace: TracebackType | None) -> tuple[Location, ...]:
    """Return the locations of the frames of a traceback."""
    locations: tuple[Location, ...] = ()
    while trace is not None:
        locations += (location(trace),)
        trace = trace.tb_next
    return locations


def format_traceback(error: BaseException, locations: FrameLocations) -> str:
    """Format the traceback of an error, with its notes and its causes.

    Where an error has no frames, its *locations* are formatted.
    """
    formatted = traceback.TracebackException.from_exception(error, compact=True)
    known = dict(zip(map(id, related_errors(error)), locations, strict=False))
    pending = [(formatted, error)]
    while pending:
        part, of = pending.pop()
        if of.__traceback__ is None and id(of) in known:
            frames = [_summary(*location) for location in known[id(of)]]
            part.stack = traceback.StackSummary.from_list(frames)
        others = [(part.__cause__, of.__cause__), (part.__context__, of.__context__)]
        if isinstance(of, BaseExceptionGroup):
            others += zip(part.exceptions or (), of.exceptions, strict=False)
        pending += [(x, y) for x, y in others if x is not None and y is not None]
    return "".join(formatted.format())


def related_errors(error: BaseException) -> list[BaseException]:
    """Return an error and the errors that belong to its traceback."""
    found, seen = [error], {id(error)}
    for each in found:
        others = [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            others += each.exceptions
        for other in others:
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                found.append(other)
    return found


def _summary(code: CodeType, offset: int) -> "traceback.FrameSummary":
    # An instruction takes two bytes.
    line, end, column, end_column = next(islice(code.co_positions(), offset // 2, None))
    return traceback.FrameSummary(
        code.co_filename,
        line,
        code.co_name,
        end_lineno=end,
        colno=column,
        end_colno=end_column,
    )
