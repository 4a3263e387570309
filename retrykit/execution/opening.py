"""How the state of a call begins: anew or resumed, and within other calls."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from retrykit._internal.clocks import wall
from retrykit.execution.nesting import Call, outer_call, state_if_running
from retrykit.schedules.randomness import new_seed
from retrykit.state.retry_state import RetryState

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["new_state"]


def new_state(
    call: Call,
    name: str,
    policy: "Policy",
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
            redact=policy.redact,
            now=now,
            origin=started,
        )
    else:
        state = replace(
            resumed,
            stop_reason=None,
            nested_state=None,
            # The calls around it may be others now, or none.
            depth=0,
            outer_deadline=None,
            around=None,
            mark=None,
            max_elapsed=policy.max_elapsed,
            max_failures=policy.max_failures,
            redact=policy.redact,
            now=now,
            # It goes on from the time that it had spent before.
            origin=started - resumed.elapsed_at_end,
        )
    state.around = outer_call(call)
    if state.around is not None:
        _enclose(state, state.around)
    return state


def _enclose(state: RetryState, outer: Call) -> None:
    """Tell a call how deep it is in others, and when their time is over."""
    # The outermost first: each then knows what those around it know.
    for each in reversed(_unopened(outer)):
        state_if_running(each)
    copied = outer[:]
    held = state_if_running(copied)
    if held is not None:
        state.depth = held.depth + 1
        left = [
            copied[0].time_left(copied),
            held.outer_deadline and held.outer_deadline - held.elapsed,
        ]
        known = [each for each in left if each is not None]
        state.outer_deadline = state.elapsed + min(known) if known else None


def _unopened(outer: Call | None) -> list[Call]:
    """Return a call and those around it, the nearest first, up to one with a state."""
    found = []
    while outer is not None and not isinstance(outer[2], RetryState):
        found.append(outer)
        outer = outer_call(outer)
    return found
