"""The driver of blocking calls: it calls, sleeps, and judges nothing.

Its twin is `retrykit.execution.async_driver`, the same program awaited; a test
compares them.
Time is read by a name of the function's own, and by none of the module's, which
tools that freeze time would exchange here and not elsewhere.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from retrykit._internal.clocks import sync_clock as clock
from retrykit.budgets.base import deposit_safely
from retrykit.execution.controller import RetryController
from retrykit.execution.nesting import Call, current_call, raises_another_error
from retrykit.execution.outcomes import handle_failure, handle_result
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["make_driver"]

_current, _enter, _leave = current_call.get, current_call.set, current_call.reset


def make_driver(  # noqa: C901, PLR0915  one loop, to be read in one piece
    policy: "Policy",
    fn: Callable[..., Any],
    name: str,
    resumed: RetryState | None = None,
) -> Callable[..., Any]:
    """Return *fn* under *policy*: a function that makes the attempts."""
    own, now, budget = (
        RetryController(policy, name, clock, resumed),
        clock.real.now,
        policy.budget,
    )
    # Calls are watched until one succeeds: its result must not be awaitable, nor
    # any later one, of which most have the same type.
    watch: Sequence[object] = (own,)

    def call_with_retries(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912
        nonlocal watch
        book = own
        call: Call = [book, now(), _current()]
        token: Any = None
        try:
            token = _enter(call)
            if watch:
                book = call[0] = own.with_overrides()
                delay = book.start(call)
                if delay is not None:
                    clock.sleep(delay)
                    book.start_next_attempt(call)
            while True:
                try:
                    # No names are the rule, and to hand them on anyway takes time.
                    result = fn(*args, **kwargs) if kwargs else fn(*args)
                except Exception as error:
                    delay = handle_failure(book, call, error)
                    if delay is None and not raises_another_error(call):
                        raise
                else:
                    if type(call[2]) is not RetryState and (
                        type(result) is own.plain
                        or not hasattr(type(result), "__await__")
                    ):
                        call[0] = None
                        if budget is not None:
                            deposit_safely(budget, None)
                        return result
                    if handle_result(book, call, result):
                        watch, own.plain = own.watch, type(result)
                        return result
                    delay = handle_failure(book, call, None, result)
                if delay is None:
                    ending = call.pop()
                    context = ending.__context__
                    try:
                        raise ending
                    finally:
                        # What was handled before stays, and no frame keeps it.
                        BaseException.__setattr__(ending, "__context__", context)
                        del ending, context
                clock.sleep(delay)
                book.start_next_attempt(call)
        except BaseException as exit_:
            book.record_interruption(call, exit_)
            raise
        finally:
            try:  # noqa: SIM105  nothing may be made on the way of success
                _leave(token)
            except (TypeError, ValueError):
                # An interrupt came before there was a token; the call has ended.
                pass

    return call_with_retries
