"""Sync driver: runs attempts, sleeps between them.

The async driver is the same program with ``await``; a test compares them.
The clock is read through a local name, since tools that freeze time replace the names
of modules.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from retrykit._internal.clocks import sync_clock as clock
from retrykit.budgets.base import deposit_safely
from retrykit.execution.call import RetryCall, current_call
from retrykit.execution.controller import RetryController, handle_failure, handle_result
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
    """Return a function that calls *fn* under *policy*."""
    own, now, budget = (
        RetryController(policy, name, clock, resumed),
        clock.real.now,
        policy.budget,
    )
    # Calls are watched until one succeeds: its result must not be awaitable, and most
    # later results have the same type.
    watch: Sequence[object] = (own,)
    plain: type | None = None

    def call_with_retries(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912
        nonlocal watch, plain
        call = RetryCall()
        call.controller = controller = own
        call.started = now()
        call.before = _current()
        call.state = token = None
        try:
            token = _enter(call)
            if watch:
                controller = call.controller = own.with_overrides()
                delay = controller.start(call)
                if delay is not None:
                    clock.sleep(delay)
                    controller.start_next_attempt(call)
            while True:
                try:
                    # To pass no keyword arguments is the rule, and is quicker.
                    result = fn(*args, **kwargs) if kwargs else fn(*args)
                except Exception as error:
                    outcome = handle_failure(controller, call, error)
                    if outcome is error:
                        # No frame may keep the error that it raises.
                        del outcome
                        raise
                else:
                    if call.state is None and (  # type: ignore[redundant-expr]
                        type(result) is plain or not hasattr(type(result), "__await__")
                    ):
                        call.controller = None
                        if budget is not None:
                            deposit_safely(budget, None)
                        return result
                    if handle_result(controller, call, result):
                        watch, plain = own.watch, type(result)
                        return result
                    outcome = handle_failure(controller, call, None, result)
                if not isinstance(outcome, float):
                    context = outcome.__context__
                    try:
                        raise outcome
                    finally:
                        # Its context stays as it was.
                        BaseException.__setattr__(outcome, "__context__", context)
                        del outcome, context
                clock.sleep(outcome)
                controller.start_next_attempt(call)
        except BaseException as error:
            controller.record_interruption(call, error)
            raise
        finally:
            try:  # noqa: SIM105  quicker, and every call comes here
                _leave(token)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                # An interrupt came before there was a token, or an async generator
                # is closed in another context than it began in.
                pass

    return call_with_retries
