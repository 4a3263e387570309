"""Sync driver, which runs attempts and sleeps between them.

The async driver is the same program with ``await``; a test compares them. The clock is
read through a local name, since tools that freeze time patch module attributes.
"""

# What the first failure binds, the later ones use.
# pyright: reportPossiblyUnboundVariable=false

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from retrykit._core.call import (
    Entry,
    FallbackValue,
    current_entry,
)
from retrykit._core.call_record import give_ups
from retrykit._core.controller import RetryController
from retrykit._core.retry_state import RetryState
from retrykit._core.steps import (
    deposit_safely,
    handle_failure,
    handle_result,
    judge,
    pause,
    start,
)
from retrykit._internal.clocks import sync_clock as clock
from retrykit._internal.tracebacks import keep_context

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["make_driver"]

_current, _enter, _leave = current_entry.get, current_entry.set, current_entry.reset

_NONE: Final[dict[str, Any]] = {}
"""The keyword arguments of a call without any; no code of users gets this dict."""


def make_driver(  # noqa: C901, PLR0915  one loop, to be read in one piece
    policy: "Policy",
    fn: Callable[..., Any],
    name: str | None,
    resumed: RetryState | None = None,
    function: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a function that calls *fn* under *policy*; events name *function*."""
    own = RetryController(policy, name, clock, resumed, function=function)
    now = clock.real.now

    def call_with_retries(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912, PLR0915
        # Numbers in place of the names of `call`, which are looked up at each use: 0
        # owner, 1 start, 3 give-ups, 4 tape.
        entry: Entry = [own, now(), _current(), give_ups.count]
        outcome: Any
        call: Any = None
        tape: Any = None
        leases: Any = None
        try:
            if own.watch:
                outcome = None
                if own.admits:
                    leases, outcome = own.ask_at_once()
                if leases is None:
                    # Before others can find its entry.
                    call = own.with_overrides().begin(entry, args, kwargs)
                    token = _enter(entry)
                    outcome = start(call.controller, call, outcome)
                    if outcome is not None:
                        return outcome.value
                else:
                    token = _enter(entry)
                # Python 3.11 takes an interrupt at the jump back to the loop for one of
                # the statement before it, which must be in this `try`.
                outcome = None
            else:
                token = _enter(entry)
            while True:
                try:
                    # Most calls have no keyword arguments, and fn(*args) is quicker.
                    outcome = fn(*args, **kwargs) if kwargs else fn(*args)
                except Exception as error:
                    if call is None:
                        if tape is None:
                            timer, sleeper = own.parts or clock.real.find_parts()
                            # In two steps, which Python 3.11 takes quicker than a
                            # call of an attribute; 30 is the level of warnings.
                            logs: Any = own.is_logged
                            logs = logs(30)
                            # Without an empty dict while the call waits.
                            kwargs = kwargs or _NONE
                        outcome = own.answer
                        if outcome is None:
                            outcome = own.find_answer((args, kwargs), error)
                        outcome = outcome(entry, tape, error, timer)
                    else:
                        outcome = None
                    if outcome is None:
                        call = call or own.ensure_call(entry, args, kwargs, leases)
                        outcome = handle_failure(call.controller, call, error)
                        if outcome is error:
                            # No frame may keep the error that it raises.
                            del outcome
                            raise
                else:
                    if tape is not None and own.watch and call is None:
                        # Somebody began to observe after the last failure.
                        call = own.ensure_call(entry, args, kwargs)
                    if entry[0] is own and type(outcome) is own.plain:
                        return outcome
                    if entry[0] is own and own.accepts(outcome, leases):
                        if own.budget is not None:
                            entry[0] = None
                            deposit_safely(own.budget, None)
                        return outcome
                    if call is None:
                        call = judge(entry, args, kwargs, outcome, leases)
                        if call is None:
                            return outcome
                    elif handle_result(call.controller, call, outcome):
                        return outcome
                    outcome = handle_failure(call.controller, call, None, outcome)
                if call is None:
                    # It was a common failure.
                    if tape is None:
                        tape = entry[4]
                    if logs:
                        own.log_failure(entry)
                    sleeper.sleep(outcome)
                    if own.watch:
                        # Somebody began to observe during the delay.
                        call = own.ensure_call(entry, args, kwargs)
                        call.controller.start_next_attempt(call)
                    else:
                        tape.append(timer.time() - entry[1])
                        entry[3] = give_ups.count
                    continue
                if type(outcome) is float:
                    if call.controller.only_sleeps:
                        # Inlined from `pause`; the async driver saves a coroutine.
                        clock.sleep(outcome)
                        call.controller.start_next_attempt(call)
                        continue
                    outcome = pause(call.controller, call, outcome)
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
                call = call or own.ensure_call(entry, args, kwargs, leases)
                (call.controller or own).record_interruption(call, error)
            raise
        finally:
            # Contexts keep the entry, and the errors keep this frame.
            entry[1] = entry[0] = None
            if call is not None:
                call.release()
                call = tape = None
            elif tape is not None:
                entry[4] = tape = None
            try:  # noqa: SIM105  quicker, and every call comes here
                _leave(token)
            except (NameError, TypeError, ValueError):
                # An interrupt came before there was a token, or an async generator
                # is closed in another context than it began in.
                pass

    return call_with_retries
