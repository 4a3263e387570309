"""Async streams: retried async generators, the twins of `retrykit._core.streams`.

The sync streams are the same program without ``await``; a test compares them.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from functools import partial
from types import AsyncGeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, final

from retrykit._core.call import current_entry
from retrykit._core.call_record import Arguments
from retrykit._core.retry_state import RetryState
from retrykit._core.steps import (
    abegin as begin,
    afinish as finish,
    ahandle_failure as handle_failure,
    apause as pause,
)
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
from retrykit._internal.introspection import is_awaitable
from retrykit._internal.tracebacks import keep_context
from retrykit._internal.validation import user_facing

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["AsyncStream", "make_stream_driver"]

Item_co = TypeVar("Item_co", covariant=True)
Sent_contra = TypeVar("Sent_contra", contravariant=True)

_enter, _leave = current_entry.set, current_entry.reset


def make_stream_driver(
    policy: "Policy",
    fn: Callable[..., Any],
    mode: StreamMode,
    function: Callable[..., Any],
) -> Callable[..., Any]:
    """Return a function that returns streams of *fn*; events name *function*."""
    if mode.first_item_timeout is not None or mode.item_timeout is not None:
        # Imported here: few streams have timeouts.
        from retrykit._core.item_timeouts import with_timeouts  # noqa: PLC0415

        fn = with_timeouts(fn, mode.first_item_timeout, mode.item_timeout)
    # Imported here: sync code needs no event loop, but may know the class.
    from retrykit._internal.loop_clock import async_clock  # noqa: PLC0415

    own = StreamController(policy, None, async_clock, None, function=function)

    @user_facing
    def open_stream(*args: Any, **kwargs: Any) -> Any:
        check_arguments(args, kwargs)
        begun: list[RetryState] = []
        return AsyncStream(run_stream(own, fn, mode, (args, kwargs), begun), begun)

    return open_stream


@final
class AsyncStream(AsyncGenerator[Item_co, Sent_contra]):
    """The items of an async generator function that is retried when it fails.

    An async generator that can be iterated once; ``async with`` closes it.
    """

    __slots__ = ("_begun", "_items")

    def __init__(self, items: Any, begun: list[RetryState]) -> None:
        self._items = cast("AsyncGeneratorType[Item_co, Sent_contra]", items)
        self._begun = begun

    @property
    def state(self) -> RetryState:
        """The state of the call, which begins when its first item is asked for.

        Raises:
            LookupError: Nobody has asked for the first item.
        """
        return state_of_stream(self._begun)

    def __aiter__(self) -> AsyncGenerator[Item_co, Sent_contra]:
        if self._items.ag_frame is None:
            reject_second_use(self)
        # Without a frame of this class for each item.
        return self._items

    async def __anext__(self) -> Item_co:
        return await anext(self._items)

    async def asend(self, value: Sent_contra, /) -> Item_co:
        """Send a value to the generator, and return the next item."""
        return await self._items.asend(value)

    async def athrow(self, *error: Any) -> Item_co:
        """Raise an error where the generator waits, and return the next item.

        An error that the generator then raises ends the stream without a retry.
        """
        return await self._items.athrow(*error)

    async def aclose(self) -> None:
        """Close the generator; no further attempt is made."""
        await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
        /,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return describe_stream(self, self._begun)


async def run_stream(  # noqa: C901, PLR0912, PLR0915  one loop, to be read in one piece
    own: StreamController,
    fn: Callable[..., Any],
    mode: StreamMode,
    arguments: Arguments,
    begun: Any,
) -> AsyncGenerator[Any, Any]:
    """Yield the items of a stream; append the state of its call to *begun*."""
    call: Any = open_call(own, mode, arguments)
    entry, facts, controller = call.entry, call.stream, call.controller
    begun.append(call.state)
    item = last = source = step = send = sent = None
    resumes = mode.continue_from is not None
    token = _enter(entry)
    try:
        outcome: Any = await begin(controller, call)
        while outcome is None:
            ends = False
            try:
                if must_continue(mode, facts):
                    arguments = await continue_stream(own.function, mode, call, last)
                source = fn(*arguments[0], **arguments[1])
                step = partial(first_item, source, items_to_skip(mode, facts), facts)
                # Looked up once: items may be many.
                send, sent = source.asend, None
                while True:
                    try:
                        item = await step(sent)
                    except StopAsyncIteration:
                        ends = True
                        await finish(controller, call, None)
                        return
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
                        await source.aclose()
                        await finish(controller, call, None)
                        raise
                    except BaseException as error:  # noqa: BLE001  forwarded
                        ends, step, sent = True, source.athrow, error
                    else:
                        ends, step = False, send
            except Exception as error:
                if ends:
                    # It is the consumer's, or was raised while that was handled.
                    raise
                note_failure(mode, call, facts)
                outcome = await handle_failure(controller, call, error)
                if outcome is error:
                    # No frame may keep the error that it raises.
                    del outcome
                    raise
            if type(outcome) is float:
                outcome = await pause(controller, call, outcome)
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
                await source.aclose()
        finally:
            call.release()
            call = begun = item = last = source = step = send = sent = None
            with suppress(RuntimeError, ValueError):
                # It has been left, or is closed in another context.
                _leave(token)


async def first_item(
    source: AsyncGenerator[Any, Any], skipped: int, facts: StreamFacts, sent: Any
) -> Any:
    """Return the first item of an attempt, after the skipped ones.

    Raises:
        StreamChangedError: There are fewer items than are to be skipped.
    """
    for index in range(skipped):
        try:
            await anext(source)
        except StopAsyncIteration:
            raise changed_source(facts, index) from None
    return await source.asend(sent)


async def continue_stream(
    fn: Any, mode: StreamMode, call: Any, last: object
) -> Arguments:
    """Return the arguments of an attempt that continues after the *last* item."""
    answer = cast("Any", mode).continue_from(last, call.state)
    if is_awaitable(answer):
        answer = await answer
    return continue_with(fn, call.stream, call.arguments, answer)
