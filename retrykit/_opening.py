"""How the state of a call begins: anew or resumed, and within other calls."""

from collections.abc import Callable
from dataclasses import replace

from retrykit._nesting import Call, around, surroundings
from retrykit.clocks import wall
from retrykit.jitter import new_seed
from retrykit.settings import Settings
from retrykit.state import RetryState

__all__ = ["open_state"]


def open_state(
    call: Call,
    name: str,
    policy: Settings,
    resumed: RetryState | None,
    now: Callable[[], float] | None,
) -> RetryState:
    """Return the state of a call that has begun.

    Args:
        call: The call, with the clock reading at its start.
        name: What it is called.
        policy: What it is held to.
        resumed: The state that it goes on from, if it began elsewhere.
        now: What reads its clock; None if that cannot be found in this thread.
    """
    started: float = call[1]
    if resumed is None:
        state = RetryState(
            name,
            new_seed() if policy.seed is None else policy.seed,
            wall() - (now() - started) if now else wall(),
            policy.max_elapsed,
            policy.max_failures,
            now=now,
            origin=started,
        )
    else:
        state = replace(
            resumed,
            stop_reason=None,
            inner=None,
            # The calls around it may be others now, or none.
            depth=0,
            bound=None,
            around=None,
            mark=None,
            max_elapsed=policy.max_elapsed,
            max_failures=policy.max_failures,
            now=now,
            # It goes on from the time that it had spent before.
            origin=started - resumed.spent,
        )
    state.around = around(call)
    if state.around is not None:
        outer = surroundings(call)
        state.depth = len(outer)
        limits = [each[0].left(each) for each in outer]
        known = [left for left in limits if left is not None]
        state.bound = state.elapsed + min(known) if known else None
    return state
