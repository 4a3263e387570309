"""Answers common failures in one step, without the state of the call.

Most failures are common: the policy retries errors of this type, no limit is near, and
nothing else has a say, such as a rule, a hint, an observer or a call around this one.
The driver keeps what happened in the entry of the call, and `replay` applies it to
the state if somebody asks for one. All other failures, and those that follow them in
the same call, are left to `retrykit.execution.steps`.

At the first failure, `Records` take the place of the start in the entry of the call.
"""

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from retrykit._internal.clocks import LONGEST_SLEEP, ClockSource, time_passed
from retrykit._internal.error_conditions import BY_TYPE, default_condition
from retrykit._internal.fast_path import failure_blockers
from retrykit._internal.tracebacks import (
    WITHOUT_DICT,
    Location,
    location,
    locations_of,
    reduce_error,
)
from retrykit.execution.call import Entry, RetryCall, innermost_running, state_lock
from retrykit.policy.decision import EPSILON, match_error
from retrykit.policy.rules import types_of
from retrykit.schedules.randomness import SharedDraws, call_random, new_draws
from retrykit.schedules.structure import has_user_code, is_uniform
from retrykit.state.failures import Failure
from retrykit.state.retry_log import is_logged
from retrykit.state.signals import Signal

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["Answer", "Records", "answer_of", "catch_up", "replay"]

Answer = Callable[[Entry, Exception, ClockSource[Any]], float | None]
"""Takes the entry, the error and the driver's clock. Returns the delay before the next
attempt, in seconds; None if the failure is not common, and nothing was recorded."""

Records = list[Any]
"""[start, draws, number, trace, timer, sleeper], and five items for each failure.

The first are the clock's reading when the call began, in seconds; the draws of the
call, and its number among those that share them; the traceback of the last error; and
the parts of the clock: objects with a `time` and a `sleep`. Those of a failure are the
locations of the error before, if its frames were released, or None; the error; the
clock's reading when the attempt failed; the delay after it, in seconds; and the clock's
reading when the next attempt began, which the driver adds.

It is flat to keep the memory of a waiting call small."""

Spread = tuple[float, float | None]
"""The shortest delay before a retry, and what each unit of its draw adds, in seconds;
None if the delay does not depend on one draw alone."""

# The delays of so many attempts are remembered.
_MAX_KNOWN: Final = 256


def answer_of(policy: "Policy") -> Answer:
    """Return the answer to the common failures of a policy, which is made once."""
    answer = policy._answer
    if answer is None:
        answer = _make_answer(policy) if _allows(policy) else _answer_nothing
        vars(policy)["_answer"] = answer
    return answer


def _allows(policy: "Policy") -> bool:
    """Return whether a policy leaves common failures to types, delays and limits."""
    others = (
        policy.hint,
        policy.budget,
        policy.attempt_timeout,
        policy.on_result,
        policy.stop_event,
        policy.sleep,
    )
    conditions = (policy.on, policy.give_up_on)
    kinds = {type(kind) for each in conditions for kind in types_of(each)}
    return (
        not policy.rules
        and not policy.observers
        and all(each is None for each in others)
        and all(x is default_condition or isinstance(x, BY_TYPE) for x in conditions)
        # Other metaclasses may decide by more than the type.
        and kinds <= {type}
        and not has_user_code(policy.schedule)
    )


def _answer_nothing(_entry: Entry, _error: Exception, _clock: object) -> None:
    """Leave every failure to the general path."""


def _make_answer(policy: "Policy") -> Answer:  # noqa: C901  with its function
    allowed = math.inf if policy.max_elapsed is None else policy.max_elapsed
    # Until the attempts are used, the time does not count.
    limit = math.inf if policy.limits == "all" else allowed - EPSILON
    keeps_frames = policy.keep_tracebacks or policy.raises == "group"
    is_endless, seed = policy.max_attempts is None, policy.seed
    same_draws = None if seed is None else (SharedDraws(seed), 0)
    delays = _Delays(policy)
    retried: type | None = None

    def answer(  # noqa: C901, PLR0911, PLR0912  one step, to be read in one piece
        entry: Entry, error: Exception, clock: ClockSource[Any]
    ) -> float | None:
        nonlocal retried
        if (
            failure_blockers
            or error.__context__ is not None
            or error.__cause__ is not None
            or len(reduce_error(error)) != WITHOUT_DICT
        ):
            return None
        if type(error) is not retried:
            if (
                isinstance(error, _SPECIAL)
                or type(error).__setattr__ is not BaseException.__setattr__
                or match_error(policy, error) is not None
            ):
                return None
            retried = type(error)
        records = entry[1]
        previous = sleeper = None
        if type(records) is list:
            size = len(records)
            attempt, previous = size // 5, records[size - 4]
            if previous is error or (is_endless and _stands_still(records)):
                return None
            start, draws, number = records[0], records[1], records[2]
            timer = records[4]
        elif (entry[2] and innermost_running(entry[2])) or is_logged():
            return None
        else:
            attempt, start, (timer, sleeper) = 1, records, clock.real.parts()
            draws, number = same_draws or new_draws()
        failed = timer.time()
        try:
            delay, step = delays[attempt]
            if step:
                # As `uniform_between`.
                delay += step * draws[attempt][number]
            elif step is None:
                last = None if previous is None else records[-2]
                delay = delays.draw(attempt, last, draws.seed + number)
        except Exception:  # noqa: BLE001  `steps` will tell
            return None
        if failed - start + delay >= limit:
            return None
        # Without the frame of the driver.
        trace: Any = error.__traceback__
        trace = error.__traceback__ = trace.tb_next
        if previous is None:
            entry[1] = [
                start,
                draws,
                number,
                trace,
                timer,
                sleeper,
                None,
                error,
                failed,
                delay,
            ]
            return delay
        locations: tuple[Location, ...] | None = None
        if not keeps_frames:
            last_trace = records[3]
            if last_trace is None or last_trace.tb_next is not None:
                locations = locations_of(last_trace)
            else:
                # Most have one frame, and a call would take longer.
                locations = (location(last_trace),)
            previous.__traceback__ = None
        records[3] = trace
        records += (locations, error, failed, delay)
        return delay

    return answer


@final
class _Delays(dict[int, Spread]):
    """The delays of a policy before its retries, as far as they are known."""

    def __init__(self, policy: "Policy") -> None:
        most, self._last = policy.max_attempts, policy.max_failures
        if most is not None:
            self._last = min(self._last, most - 1)
        self._schedule = policy.schedule
        self._uniform = is_uniform(policy.schedule)

    def __missing__(self, retry: int) -> Spread:
        if len(self) > _MAX_KNOWN:
            self.clear()
        self[retry] = spread = self._find(retry)
        return spread

    def _find(self, retry: int) -> Spread:
        if retry > self._last:
            return _NOT_COMMON
        if not self._uniform:
            return 0.0, None
        bounds = self._schedule.bounds(retry)
        if bounds is None or bounds[1] > LONGEST_SLEEP:
            return _NOT_COMMON
        low, high = bounds
        step = (high - low) * 2.0**-53
        # A smaller step has lost digits.
        exact = low == high or step >= sys.float_info.min
        return (low, step) if exact else _NOT_COMMON

    def draw(self, retry: int, previous: float | None, seed: int) -> float:
        """Return the delay before a retry that depends on more than one draw."""
        random = call_random(seed, retry)
        delay = self._schedule.delay(retry, previous, random)
        return math.inf if delay is None or delay > LONGEST_SLEEP else delay


# Beyond every limit of time.
_NOT_COMMON: Final = math.inf, 0.0
_SPECIAL: Final = (Signal, BaseExceptionGroup)


def _stands_still(records: Records) -> bool:
    """Return whether the clock did not advance in the last delay, as `steps` warns."""
    failed, delay, begun = records[-3:]
    return not time_passed(delay, begun - failed)


def catch_up(entry: Entry) -> None:
    """Apply what was recorded while another thread made the state.

    The driver asks for it after each record, `ensure_call` after it has put the call
    into the entry: so one of the two finds the record.
    """
    with state_lock:
        call, records = entry[:2]
        if records is None:
            # It has ended meanwhile.
            entry[0] = None
        elif type(records) is list:
            replay(call, records)
            call.give_ups_before = entry[3]


def replay(call: RetryCall, records: Records) -> None:
    """Apply the records of a call to its state, each of them once."""
    # A copy, since the driver may add to them.
    state, records = call.state, records[:]
    _, draws, number, call.last_traceback, *_ = records[:6]
    state.seed = draws.seed + number
    began_at = state._started_at_clock
    for position in range(5 * state.attempt + 1, len(records), 5):
        locations, error, failed, delay, *begun = records[position : position + 5]
        if state.next_delay is None:
            if locations is not None:
                state._keep_locations(state.attempt - 1, (locations,))
            started, elapsed = state.attempt_started, failed - began_at
            state._record(
                Failure(state.attempt, error, None, started, elapsed - started, delay)
            )
        for each in begun:
            state._begin_attempt(each - began_at)
            call.exhausted_marker = None
