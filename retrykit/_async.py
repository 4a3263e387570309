"""The driver of awaited calls: it calls, sleeps, and judges nothing.

Its twin is `retrykit._sync`, the same program blocking; a test compares them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from retrykit._call import Book, Call, current
from retrykit.clocks import task as clock
from retrykit.conditions import arefusal as refusal, arejects as rejects
from retrykit.settings import Settings
from retrykit.state import RetryState

__all__ = ["drive"]

_enter, _leave = current.set, current.reset


def drive(  # noqa: C901  one loop, to be read in one piece
    policy: Settings,
    fn: Callable[..., Any],
    name: str,
    resumed: RetryState | None = None,
) -> Callable[..., Any]:
    """Return *fn* under *policy*: a function that makes the attempts."""
    own, now = Book(policy, name, clock, resumed), clock.real.now
    # As in the twin, where the result of the first success is looked at.
    watch: Sequence[object] = (own,)

    async def call_with_retries(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912
        nonlocal watch
        book = own
        call: Call = [book, now(), None]
        token = _enter(call)
        try:
            if watch:
                book = call[0] = own.limited()
                delay = book.begin(call)
                if delay is not None:
                    await clock.sleep(delay)
                    book.again(call)
            while True:
                try:
                    result = await fn(*args, **kwargs)
                    if call[2] is None:
                        call.clear()
                        return result
                except Exception as error:
                    refused = await refusal(book.policy, error)
                    delay = book.failed(call, error, refused)
                    if delay is None and not call:
                        raise
                else:
                    if not await rejects(book.policy, result):
                        book.succeeded(call, result)
                        watch = own.watch
                        return result
                    delay = book.failed(call, None, None, result)
                if delay is None:
                    ending = call.pop()
                    context = ending.__context__
                    try:
                        raise ending
                    finally:
                        # What was handled before stays, and no frame keeps it.
                        BaseException.__setattr__(ending, "__context__", context)
                        del ending, context
                await clock.sleep(delay)
                book.again(call)
        except BaseException as exit_:
            book.interrupted(call, exit_)
            raise
        finally:
            try:  # noqa: SIM105  nothing may be made on the way of success
                _leave(token)
            except ValueError:
                # A coroutine whose task is gone may be closed in any context.
                pass

    return call_with_retries
