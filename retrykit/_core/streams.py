"""Streams: retried generators, which hand out items to their consumer.

The async streams are the same program with ``await``; a test compares them.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from types import GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, final

from retrykit._core.call import current_entry
from retrykit._core.call_record import Arguments
from retrykit._core.retry_state import RetryState
from retrykit._core.steps import begin, finish, handle_failure, pause
from retrykit._core.stream_calls import (
    StreamController,
    changed_source,
    check_arguments,
    continue_with,
    describe_stream,
    items_to_skip,
    must_continue,
    note_failure,
    open_call,
    reject_second_use,
    state_of_stream,
)
from retrykit._core.stream_facts import StreamFacts
from retrykit._core.stream_modes import StreamMode
from retrykit._internal.clocks import sync_clock as clock
from retrykit._internal.tracebacks import keep_context
from retrykit._internal.validation import user_facing

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["Stream", "make_stream_driver"]

Item_co = TypeVar("Item_co", covariant=True)
Sent_contra = TypeVar("Sent_contra", contravariant=True)
Returned_co = TypeVar("Returned_co", covariant=True)

_enter, _leave = current_entry.set, current_entry.reset


def make_stream_driver(
    policy: "Policy",
    fn: Callable[..., Any],
    mode: StreamMode,
    function: Callable[..., Any],
) -> Callable[..., Any]:
    """Return a function that returns streams of *fn*; events name *function*."""
    own = StreamController(policy, None, clock, None, function=function)

    @user_facing
    def open_stream(*args: Any, **kwargs: Any) -> Any:
        check_arguments(args, kwargs)
        begun: list[RetryState] = []
        return Stream(run_stream(own, fn, mode, (args, kwargs), begun), begun)

    return open_stream


@final
class Stream(Generator[Item_co, Sent_contra, Returned_co]):
    """The items of a generator function that is retried when it fails.

    A generator that can be iterated once; ``with`` closes it.
    """

    __slots__ = ("_begun", "_items")

    def __init__(
        self,
        items: Any,
        begun: list[RetryState],
    ) -> None:
        self._items = cast("GeneratorType[Item_co, Sent_contra, Returned_co]", items)
        self._begun = begun

    @property
    def state(self) -> RetryState:
        """The state of the call, which begins when its first item is asked for.

        Raises:
            LookupError: Nobody has asked for the first item.
        """
        return state_of_stream(self._begun)

    def __iter__(self) -> Generator[Item_co, Sent_contra, Returned_co]:
        if self._items.gi_frame is None:
            reject_second_use(self)
        # Without a frame of this class for each item.
        return self._items

    def __next__(self) -> Item_co:
        return next(self._items)

    def send(self, value: Sent_contra, /) -> Item_co:
        """Send a value to the generator, and return the next item."""
        return self._items.send(value)

    def throw(self, *error: Any) -> Item_co:
        """Raise an error where the generator waits, and return the next item.

        An error that the generator then raises ends the stream without a retry.
        """
        return self._items.throw(*error)

    def close(self) -> None:
        """Close the generator; no further attempt is made."""
        self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
        /,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return describe_stream(self, self._begun)


def run_stream(  # noqa: C901, PLR0912, PLR0915  one loop, to be read in one piece
    own: StreamController,
    fn: Callable[..., Any],
    mode: StreamMode,
    arguments: Arguments,
    begun: Any,
) -> Generator[Any, Any, Any]:
    """Yield the items of a stream; append the state of its call to *begun*."""
    call: Any = open_call(own, mode, arguments)
    entry, facts, controller = call.entry, call.stream, call.controller
    begun.append(call.state)
    item = last = source = step = send = sent = None
    resumes = mode.continue_from is not None
    token = _enter(entry)
    try:
        outcome: Any = begin(controller, call)
        while outcome is None:
            ends = False
            try:
                if must_continue(mode, facts):
                    arguments = continue_stream(own.function, mode, call, last)
                source = fn(*arguments[0], **arguments[1])
                step = partial(first_item, source, items_to_skip(mode, facts), facts)
                # Looked up once: items may be many.
                send, sent = source.send, None
                while True:
                    try:
                        item = step(sent)
                    except StopIteration as end:
                        ends = True
                        finish(controller, call, None)
                        return end.value
                    facts.items += 1
                    if resumes:
                        last = item
                    # It may be an error that was thrown.
                    sent = None
                    _leave(token)
                    try:
                        try:
                            sent = yield item
                        finally:
                            token = _enter(entry)
                    except GeneratorExit:
                        ends = True
                        source.close()
                        finish(controller, call, None)
                        raise
                    except BaseException as error:  # noqa: BLE001  forwarded
                        ends, step, sent = True, source.throw, error
                    else:
                        ends, step = False, send
            except Exception as error:
                if ends:
                    # It is the consumer's, or was raised while that was handled.
                    raise
                note_failure(mode, call, facts)
                outcome = handle_failure(controller, call, error)
                if outcome is error:
                    # No frame may keep the error that it raises.
                    del outcome
                    raise
            if type(outcome) is float:
                outcome = pause(controller, call, outcome)
        with keep_context(outcome):
            try:
                raise outcome
            finally:
                del outcome
    except BaseException as error:
        controller.record_interruption(call, error)
        raise
    finally:
        try:
            if source is not None:
                source.close()
        finally:
            call.release()
            call = begun = item = last = source = step = send = sent = None
            with suppress(RuntimeError, ValueError):
                # It has been left, or is closed in another context.
                _leave(token)


def first_item(
    source: Generator[Any, Any, Any], skipped: int, facts: StreamFacts, sent: Any
) -> Any:
    """Return the first item of an attempt, after the skipped ones.

    Raises:
        StreamChangedError: There are fewer items than are to be skipped.
    """
    for index in range(skipped):
        try:
            next(source)
        except StopIteration:
            raise changed_source(facts, index) from None
    return source.send(sent)


def continue_stream(fn: Any, mode: StreamMode, call: Any, last: object) -> Arguments:
    """Return the arguments of an attempt that continues after the *last* item."""
    answer = cast("Any", mode).continue_from(last, call.state)
    return continue_with(fn, call.stream, call.arguments, answer)
