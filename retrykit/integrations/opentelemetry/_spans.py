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
    HedgeStarted,
    RetryScheduled,
    Succeeded,
)
from retrykit.integrations._telemetry import (
    EventLabels,
    reason_of,
    was_interrupted,
    was_never_made,
)

__all__ = ["AttemptSpans", "SpanEvents"]


@final
class SpanEvents:
    """An observer that adds events to the current span."""

    def __init__(self, labels: EventLabels) -> None:
        self._labels = labels

    def __call__(self, event: Event, /) -> None:
        """Add an event, but none for the start of an attempt or an instant success."""
        record, span = event._record, get_current_span()
        if isinstance(event, AttemptStarted) or not span.is_recording():
            return
        if isinstance(event, Succeeded) and record.last_failure is None:
            return
        attributes = _attributes(event, record, self._labels)
        match event:
            case AttemptFailed():
                attributes["error.type"] = self._labels.error(record)
            case RetryScheduled(delay=delay):
                attributes["retrykit.retry.delay"] = delay
            case HedgeStarted(number=number):
                attributes["retrykit.send"] = number
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
        running: That span until it has ended; then None.
    """

    __slots__ = ("caller", "last", "outer", "record", "running")

    record: CallFacts | None
    caller: Context
    outer: "_CallSpans | None"
    last: Span | None
    running: Span | None


@final
class AttemptSpans:
    """An observer that makes a span for each attempt, and makes it current.

    The observer keeps no spans: the OpenTelemetry context has the spans of the calls
    that run in it. Contexts are attached and never detached, since a token is only
    valid in the `contextvars` context that made it, and an async generator, for
    instance, may end a call in another one.

    The spans of a stream are kept by its call, and do not become current: a generator
    runs in the context of its consumer.
    """

    def __init__(self, tracer: Tracer, labels: EventLabels) -> None:
        self._tracer, self._labels = tracer, labels
        self._key = create_key("retrykit")

    def __call__(self, event: Event, /) -> None:
        """Start or end the span of an attempt, or add an event to the current span.

        An error in a span processor leaves the context valid.
        """
        if isinstance(event, RetryScheduled):
            return
        if isinstance(event, HedgeStarted):
            attributes = {"retrykit.send": event.number}
            get_current_span().add_event("retrykit.hedge_started", attributes)
            return
        record = event._record
        begins = isinstance(event, AttemptStarted | AttemptFailed)
        call = self._find(record, begins=begins)
        if call is None:
            if isinstance(event, GaveUp) and was_never_made(record):
                # There is no attempt whose span could have the reason.
                _note_end(event, record, self._labels)
            return
        if isinstance(event, AttemptStarted):
            self._start(call, event, record)
        elif isinstance(event, AttemptFailed):
            self._fail(call, event, record)
        else:
            self._end(call, event, record)

    def _find(self, record: CallFacts, *, begins: bool) -> _CallSpans | None:
        """Return the spans of a call, or None; with *begins*, make missing ones."""
        context, stream = get_current(), record.stream
        innermost: Any = get_value(self._key, context)
        call: _CallSpans | None = innermost if stream is None else stream.kept
        while call is not None and call.record is not record:
            call = call.outer
        if call is None and begins:
            call = _CallSpans()
            call.record, call.caller, call.outer = record, context, innermost
            call.last = call.running = None
            if stream is not None:
                stream.kept = call
        return call

    def _start(
        self,
        call: _CallSpans,
        event: Event,
        record: CallFacts,
        began: int | None = None,
    ) -> Span:
        """Start the span of an attempt that begins now, or that began earlier.

        Args:
            call: The spans of the call.
            event: An event of the attempt.
            record: The record of the call.
            began: When the attempt began, in nanoseconds since 1970; its span does not
                become current. None if the attempt begins now.
        """
        attributes = _attributes(event, record, self._labels)
        links = [] if call.last is None else [Link(call.last.get_span_context())]
        name = f"attempt {attributes['retrykit.function']}"
        span = self._tracer.start_span(
            name, call.caller, attributes=attributes, links=links, start_time=began
        )
        call.last = call.running = span
        if began is None:
            self._attach(call, span)
        return span

    def _attach(self, call: _CallSpans, span: Span | None) -> None:
        """Make a span current, or the caller's span if it is None; ignore streams."""
        if call.record is not None and call.record.stream is not None:
            return
        context = set_value(self._key, call, call.caller)
        attach(context if span is None else set_span_in_context(span, context))

    def _fail(self, call: _CallSpans, event: AttemptFailed, record: CallFacts) -> None:
        span = call.running
        if span is None:
            # The observer is not notified of the start of a call's first attempt with
            # failures_only=True.
            began = wall() - event.failure.duration
            span = self._start(call, event, record, int(began * 1e9))
        _set_error(span, self._labels.error(record))
        if record.stop_reason is not None:
            # The call ends with this span: GaveUp follows.
            self._attach(call, span)
            return
        call.running = None
        self._attach(call, None)
        span.end()

    def _end(self, call: _CallSpans, event: Event, record: CallFacts) -> None:
        if record.stream is None:
            attach(call.caller)
        else:
            record.stream.kept = None
        span = call.running
        call.record = call.last = call.running = None
        if span is None:
            return
        if isinstance(event, GaveUp):
            span.set_attribute("retrykit.reason", reason_of(record))
            if was_interrupted(record) and isinstance(sys.exception(), Exception):
                _set_error(span, self._labels.error(record))
        span.end()


def _note_end(event: GaveUp, record: CallFacts, labels: EventLabels) -> None:
    """Add the end of a call that gave up to the current span."""
    attributes = _attributes(event, record, labels)
    attributes["retrykit.reason"] = reason_of(record)
    get_current_span().add_event(f"retrykit.{event.kind}", attributes)


def _set_error(span: Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    # Without a description: the texts of errors often contain arguments.
    span.set_status(StatusCode.ERROR)


def _attributes(
    event: Event, record: CallFacts, labels: EventLabels
) -> dict[str, str | int | float]:
    name, attempt = labels.function(event), record.attempt
    found: dict[str, str | int | float] = {
        "retrykit.function": name,
        "retrykit.attempt": attempt,
    }
    if event.function is not None:
        found["code.function.name"] = name
    elif attempt > 1 and _REQUEST.fullmatch(record.terms.name):
        found["http.request.resend_count"] = attempt - 1
    return found


_REQUEST: Final = re.compile(r"[A-Z]+ \S+")
"""Matches the name of an HTTP client's request: its method and its host."""
