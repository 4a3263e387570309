"""The driver of awaited calls: it calls, sleeps, and judges nothing.

Its twin is `retrykit._sync`, the same program blocking; a test compares them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from retrykit._book import Book
from retrykit._nesting import Call, current
from retrykit._outcomes import aaccepts as accepts, afails as fails
from retrykit.budget import adeposit as deposit
from retrykit.clocks import task as clock
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
    own, now, budget = Book(policy, name, clock, resumed), clock.real.now, policy.budget
    # As in the twin, where the result of the first success is looked at.
    watch: Sequence[object] = (own,)

    async def call_with_retries(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912
        nonlocal watch
        book = own
        call: Call = [book, now(), None]
        call[2] = token = _enter(call)
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
                    if call[2] is token:
                        call.clear()
                        if budget is not None:
                            await deposit(budget, None)
                        return result
                except Exception as error:
                    delay = await fails(book, call, error)
                    if delay is None and not call:
                        raise
                else:
                    if await accepts(book, call, result):
                        watch = own.watch
                        return result
                    delay = await fails(book, call, None, result)
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
