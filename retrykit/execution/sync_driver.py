"""Sync driver: runs attempts, sleeps between them.

The async driver is the same program with ``await``; a test compares them. The clock is
read through a local name, since tools that freeze time patch module attributes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrykit._internal.clocks import sync_clock as clock
from retrykit._internal.tracebacks import keep_context
from retrykit.budgets.base import deposit_safely
from retrykit.execution.call import Entry, FallbackValue, RetryCall, current_entry
from retrykit.execution.common_failures import catch_up
from retrykit.execution.controller import RetryController
from retrykit.execution.steps import handle_failure, handle_result, pause, start
from retrykit.state.retry_state import RetryState, give_ups

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["make_driver"]

_current, _enter, _leave = current_entry.get, current_entry.set, current_entry.reset


def make_driver(  # noqa: C901, PLR0915  one loop, to be read in one piece
    policy: "Policy",
    fn: Callable[..., Any],
    name: str,
    resumed: RetryState | None = None,
    function: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a function that calls *fn* under *policy*; events name *function*."""
    own = RetryController(policy, name, clock, resumed, function=function)
    now, watch, budget = clock.real.now, own.watch, policy.budget

    def call_with_retries(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912, PLR0915
        controller = own
        entry: Entry = [own, now(), _current(), give_ups.count]
        call: RetryCall | None = None
        token: Any = None
        try:
            token = _enter(entry)
            if watch:
                controller = own.with_overrides()
                call = controller.ensure_call(entry, args, kwargs, watched=True)
                outcome: Any = start(controller, call)
                if outcome is not None:
                    return outcome.value
                # Python 3.11 takes an interrupt at the jump back to the loop for one of
                # the statement before it, which must be in this `try`.
                outcome = None
            while True:
                try:
                    # Most calls have no keyword arguments, and fn(*args) is quicker.
                    result = fn(*args, **kwargs) if kwargs else fn(*args)
                except Exception as error:
                    if call is None:
                        answer = own.answer or own.find_answer()
                        outcome = answer(entry, error, clock)
                    else:
                        outcome = None
                    if outcome is None:
                        call = call or controller.ensure_call(entry, args, kwargs)
                        outcome = handle_failure(controller, call, error)
                        if outcome is error:
                            # No frame may keep the error that it raises.
                            del outcome
                            raise
                else:
                    if entry[0] is own and (
                        type(result) is own.plain or own.is_plain(type(result))
                    ):
                        if budget is not None:
                            entry[0] = None
                            deposit_safely(budget, None)
                        return result
                    call = call or controller.ensure_call(entry, args, kwargs)
                    if handle_result(controller, call, result):
                        return result
                    outcome = handle_failure(controller, call, None, result)
                if call is None:
                    # It was a common failure. Other threads may have made a state.
                    if entry[0] is not own:
                        catch_up(entry)
                    records = entry[1]
                    records[5].sleep(outcome)
                    records.append(records[4].time())
                    entry[3] = give_ups.count
                    if entry[0] is not own:
                        catch_up(entry)
                    continue
                if type(outcome) is float:
                    if controller.only_sleeps:
                        # Inlined from `pause`; the async driver saves a coroutine.
                        clock.sleep(outcome)
                        controller.start_next_attempt(call)
                        continue
                    outcome = pause(controller, call, outcome)
                    if outcome is None:
                        continue
                break
            if isinstance(outcome, FallbackValue):
                return outcome.value
            with keep_context(outcome):
                try:
                    raise outcome
                finally:
                    del outcome
        except BaseException as error:
            if entry[0] is not None:
                call = call or controller.ensure_call(entry, args, kwargs)
                controller.record_interruption(call, error)
            raise
        finally:
            # Contexts keep the entry, and the errors keep this frame.
            entry[1] = entry[0] = call = records = None
            try:  # noqa: SIM105  quicker, and every call comes here
                _leave(token)
            except (TypeError, ValueError):
                # An interrupt came before there was a token, or an async generator
                # is closed in another context than it began in.
                pass

    return call_with_retries
