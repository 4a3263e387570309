"""The driver of awaited calls: it calls, sleeps, and judges nothing.

Its twin is `retrykit.execution.sync_driver`, the same program blocking; a test
compares them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from retrykit._internal.clocks import task as clock
from retrykit.budgets.base import adeposit as deposit
from retrykit.execution.controller import Book
from retrykit.execution.nesting import Call, current, replaces
from retrykit.execution.outcomes import aaccepts as accepts, afails as fails
from retrykit.policy.settings import Settings
from retrykit.state.retry_state import RetryState

__all__ = ["drive"]

_current, _enter, _leave = current.get, current.set, current.reset


def drive(  # noqa: C901, PLR0915  one loop, to be read in one piece
    policy: Settings,
    fn: Callable[..., Any],
    name: str,
    resumed: RetryState | None = None,
) -> Callable[..., Any]:
    """Return *fn* under *policy*: a function that makes the attempts."""
    own, now, budget = Book(policy, name, clock, resumed), clock.real.now, policy.budget
    # As in the twin, where results must not be awaitable.
    watch: Sequence[object] = (own,)

    async def call_with_retries(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912
        nonlocal watch
        book = own
        call: Call = [book, now(), _current()]
        token: Any = None
        try:
            token = _enter(call)
            if watch:
                book = call[0] = own.limited()
                delay = book.begin(call)
                if delay is not None:
                    await clock.sleep(delay)
                    book.again(call)
            while True:
                try:
                    # No names are the rule, and to hand them on anyway takes time.
                    result = await (fn(*args, **kwargs) if kwargs else fn(*args))
                except Exception as error:
                    delay = await fails(book, call, error)
                    if delay is None and not replaces(call):
                        raise
                else:
                    if type(call[2]) is not RetryState and (
                        type(result) is own.plain
                        or not hasattr(type(result), "__await__")
                    ):
                        call[0] = None
                        if budget is not None:
                            await deposit(budget, None)
                        return result
                    if await accepts(book, call, result):
                        watch, own.plain = own.watch, type(result)
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
            except (TypeError, ValueError):
                # As in the twin; or its task is gone, and this context is another.
                pass

    return call_with_retries
