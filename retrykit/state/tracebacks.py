"""Tracebacks of errors that a call keeps: what is cut off, kept and told.

A traceback holds the frames of its functions, and they hold all local variables.
"""

import traceback
from itertools import islice
from types import CodeType, TracebackType

__all__ = [
    "FrameLocations",
    "after_timeouts",
    "drop_frames",
    "format_traceback",
    "trim_traceback",
]
__all__ += ["with_traceback"]

with_traceback = BaseException.with_traceback
"""Sets the traceback of an error, whose class may have a method of that name."""


def after_timeouts(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first frame on that ends no attempt in time."""
    while trace is not None and _ends_attempts(trace):
        trace = trace.tb_next
    return trace


def _ends_attempts(trace: TracebackType) -> bool:
    name = trace.tb_frame.f_globals.get("__name__")
    return name in {
        "retrykit.execution.attempt_timeout",
        "retrykit.execution.callables",
    }


def trim_traceback(trace: TracebackType | None, old: TracebackType | None) -> None:
    """Cut off what an error that is raised again still has from its last time.

    Python puts the new traceback before the old one: an error object that is
    raised at every attempt would keep the frames of all of them.
    """
    while trace is not None and trace.tb_next is not old:
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = None


Place = tuple[CodeType, int]
"""Where a frame was: its code, and the offset of its last instruction, in bytes."""

FrameLocations = tuple[tuple[Place, ...], ...]
"""The places of the frames of an error, and of all that belong to its traceback."""


def drop_frames(error: BaseException, last: BaseException | None) -> FrameLocations:
    """Let go of the frames in which an error was raised, and return their places.

    A frame holds all local variables of its function, and a place none.

    Args:
        error: An error; those that it was raised from or while handling, and
            those of a group, lose their frames, too.
        last: Another error, which keeps its own with all that belongs to it; None
            if nothing else does.
    """
    lone = last is None and error.__context__ is None and error.__cause__ is None
    if lone and not isinstance(error, BaseExceptionGroup):
        return (_places(error, keep=False),)
    kept = set() if last is None else {id(each) for each in _related(last)}
    return tuple(_places(each, keep=id(each) in kept) for each in _related(error))


def _places(error: BaseException, *, keep: bool) -> tuple[Place, ...]:
    """Return the places of the frames of one error, and keep these or not."""
    trace = error.__traceback__
    if trace is None:
        return ()
    if not keep:
        with_traceback(error, None)
    places: tuple[Place, ...] = ((trace.tb_frame.f_code, trace.tb_lasti),)
    while (trace := trace.tb_next) is not None:
        places += ((trace.tb_frame.f_code, trace.tb_lasti),)
    return places


def format_traceback(error: BaseException, places: FrameLocations) -> str:
    """Return the traceback of an error as text, with its notes and its causes.

    Args:
        error: The error.
        places: What `drop_frames` returned, where it has no frames any more.
    """
    told = traceback.TracebackException.from_exception(error, compact=True)
    known = dict(zip(map(id, _related(error)), places, strict=False))
    left = [(told, error)]
    while left:
        part, of = left.pop()
        if of.__traceback__ is None and id(of) in known:
            frames = [_summary(*place) for place in known[id(of)]]
            part.stack = traceback.StackSummary.from_list(frames)
        others = [(part.__cause__, of.__cause__), (part.__context__, of.__context__)]
        if isinstance(of, BaseExceptionGroup):
            others += zip(part.exceptions or (), of.exceptions, strict=False)
        left += [(x, y) for x, y in others if x is not None and y is not None]
    return "".join(told.format())


def _related(error: BaseException) -> list[BaseException]:
    """Return an error, and those that belong to its traceback."""
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


def _summary(code: CodeType, offset: int) -> traceback.FrameSummary:
    # An instruction is of two bytes.
    line, end, column, end_column = next(islice(code.co_positions(), offset // 2, None))
    return traceback.FrameSummary(
        code.co_filename,
        line,
        code.co_name,
        end_lineno=end,
        colno=column,
        end_colno=end_column,
    )
