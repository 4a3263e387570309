"""Spans of attempts, or events of the caller's span."""

import re
import sys
from typing import Any, Final, final

from opentelemetry.context import (
    Context,
    attach,
    create_key,
    get_current,
    get_value,
    set_value,
)
from opentelemetry.trace import (
    Link,
    Span,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from retrykit._core.call_record import CallFacts
from retrykit._internal.clocks import wall
from retrykit.events import (
    AttemptFailed,
    AttemptStarted,
    Event,
    GaveUp,
    RetryScheduled,
    Succeeded,
    Suspended,
)
from retrykit.integrations._telemetry import EventLabels, reason_of, was_interrupted

__all__ = ["AttemptSpans", "SpanEvents"]


@final
class SpanEvents:
    """Adds events to the current span; an observer."""

    def __init__(self, labels: EventLabels) -> None:
        self._labels = labels

    def __call__(self, event: Event, /) -> None:
        """Add an event, unless the call has succeeded at once."""
        record, span = event._record, get_current_span()
        if isinstance(event, AttemptStarted) or not span.is_recording():
            return
        if isinstance(event, Succeeded) and record.last_failure is None:
            return
        attributes = _attributes(event, self._labels)
        match event:
            case AttemptFailed():
                attributes["error.type"] = self._labels.error(record)
            case RetryScheduled(delay=delay):
                attributes["retrykit.retry.delay"] = delay
            case GaveUp():
                attributes["retrykit.reason"] = reason_of(record)
            case _:
                pass
        span.add_event(f"retrykit.{event.kind}", attributes)


class _CallSpans:
    """The spans of one call, in the OpenTelemetry context of its code.

    Attributes:
        record: The record of the call; None once it has ended, since tasks that an
            attempt has started may keep its context.
        caller: The context in which the call is made.
        outer: The spans of the call around it, or None.
        last: The span of the last attempt that was started, or None.
        running: The same, until it has ended.
    """

    __slots__ = ("caller", "last", "outer", "record", "running")

    record: CallFacts | None
    caller: Context
    outer: "_CallSpans | None"
    last: Span | None
    running: Span | None


@final
class AttemptSpans:
    """Makes a span for each attempt, and makes it current; an observer.

    Nothing is kept here: the context has the spans of the calls that run in it. It is
    attached and never detached, since a token is only valid in the context that made
    it, and an async generator, for instance, may end a call in another one.
    """

    def __init__(self, tracer: Tracer, labels: EventLabels) -> None:
        self._tracer, self._labels = tracer, labels
        self._key = create_key("retrykit")

    def __call__(self, event: Event, /) -> None:
        """Start or end a span. An error of its processor leaves the context right."""
        call = self._find_call(event._record)
        match event:
            case AttemptStarted():
                self._start(call or self._add_call(event._record), event)
            case AttemptFailed():
                self._fail(call or self._add_call(event._record), event)
            case Succeeded() | GaveUp() | Suspended() if call is not None:
                self._end(call, event)
            case _:
                pass

    def _find_call(self, record: CallFacts) -> _CallSpans | None:
        call = self._innermost()
        while call is not None and call.record is not record:
            call = call.outer
        return call

    def _innermost(self) -> _CallSpans | None:
        found: Any = get_value(self._key)
        call: _CallSpans | None = found
        return call

    def _add_call(self, record: CallFacts) -> _CallSpans:
        call = _CallSpans()
        call.record, call.caller, call.outer = record, get_current(), self._innermost()
        call.last = call.running = None
        return call

    def _start(self, call: _CallSpans, event: Event, began: int | None = None) -> Span:
        """Start the span of an attempt that begins now, or that began before.

        Args:
            call: The spans of the call.
            event: An event of the attempt.
            began: When it began, in nanoseconds since 1970; the span of such an
                attempt does not become current.
        """
        attributes = _attributes(event, self._labels)
        links = [] if call.last is None else [Link(call.last.get_span_context())]
        name = f"attempt {attributes['retrykit.function']}"
        span = self._tracer.start_span(
            name, call.caller, attributes=attributes, links=links, start_time=began
        )
        call.last = call.running = span
        if began is None:
            attach(set_span_in_context(span, self._context(call)))
        return span

    def _context(self, call: _CallSpans) -> Context:
        return set_value(self._key, call, call.caller)

    def _fail(self, call: _CallSpans, event: AttemptFailed) -> None:
        record, span = event._record, call.running
        if span is None:
            # The observer is not notified of the start of a call's first attempt with
            # failures_only=True.
            began = wall() - event.failure.duration
            span = self._start(call, event, int(began * 1e9))
        _set_error(span, self._labels.error(record))
        if record.stop_reason is not None:
            # The call ends with this span: GaveUp follows.
            attach(set_span_in_context(span, self._context(call)))
            return
        call.running = None
        attach(self._context(call))
        span.end()

    def _end(self, call: _CallSpans, event: Succeeded | GaveUp | Suspended) -> None:
        attach(call.caller)
        span, record = call.running, event._record
        call.record = call.last = call.running = None
        if span is None:
            return
        if isinstance(event, GaveUp):
            span.set_attribute("retrykit.reason", reason_of(record))
            if was_interrupted(record) and isinstance(sys.exception(), Exception):
                _set_error(span, self._labels.error(record))
        span.end()


def _set_error(span: Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    # Without a description: the texts of errors often contain arguments.
    span.set_status(StatusCode.ERROR)


def _attributes(event: Event, labels: EventLabels) -> dict[str, str | int | float]:
    record, name = event._record, labels.function(event)
    found: dict[str, str | int | float] = {
        "retrykit.function": name,
        "retrykit.attempt": record.attempt,
    }
    if event.function is not None:
        found["code.function.name"] = name
    elif record.attempt > 1 and _REQUEST.fullmatch(record.terms.name):
        found["http.request.resend_count"] = record.attempt - 1
    return found


_REQUEST: Final = re.compile(r"[A-Z]+ \S+")
"""The name of a request of an HTTP client: its method and its host."""
