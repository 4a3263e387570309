"""Answers common failures in one step, without the state of the call.

Most failures are common: the policy retries errors of this type, no limit is near, and
nothing else has a say, such as a rule, a hint, an observer or a call around this one.
The driver keeps what happened in the entry of the call, and `replay` applies it to
the state if somebody asks for one. All other failures, and those that follow them in
the same call, are left to `retrykit.execution.steps`.

At the first failure, `Records` take the place of the start in the entry of the call.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from retrykit._internal.clocks import ClockSource, time_passed
from retrykit._internal.error_conditions import BY_TYPE, default_condition
from retrykit._internal.fast_path import blockers
from retrykit._internal.tracebacks import (
    WITHOUT_DICT,
    locations_of,
    reduce_error,
    with_traceback,
)
from retrykit.execution.call import Entry, RetryCall, state_lock
from retrykit.policy.decision import EPSILON, match_error
from retrykit.policy.rules import types_of
from retrykit.schedules.base import Schedule
from retrykit.schedules.randomness import call_random, mix, new_seed, step_to
from retrykit.schedules.structure import has_user_code, is_uniform
from retrykit.state.events import process_observers
from retrykit.state.failures import Failure
from retrykit.state.retry_log import WARNING, retry_log
from retrykit.state.signals import Signal

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["Answer", "Records", "answer_of", "catch_up", "replay"]

Answer = Callable[[Entry, Exception, ClockSource[Any]], float | None]
"""Takes the entry, the error and the driver's clock. Returns the delay before the next
attempt, in seconds; None if the failure is not common, and nothing was recorded."""

Records = list[Any]
"""[start, seed, trace, now], and five items for each failure.

The first are the clock's reading when the call began, in seconds; its seed; the
traceback of the last error; and the function that reads the clock. Those of a failure
are the locations of the error before, if its frames were released, or None; the error;
the clock's reading when the attempt failed; the delay after it, in seconds; and the
clock's reading when the next attempt began, which the driver adds.

It is flat to keep the memory of a waiting call small."""

Spread = tuple[float, float, int | None]
"""The shortest and the longest delay before a retry, in seconds, and the step to the
number of its draw; None if they are the same."""

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


def _make_answer(policy: "Policy") -> Answer:  # noqa: C901, PLR0915  with its function
    schedule, seed, allowed = policy.schedule, policy.seed, policy.max_elapsed
    most = policy.max_attempts
    if policy.limits == "all":
        # Until the attempts are used, the time does not count.
        allowed = None
    last = policy.max_failures if most is None else min(most - 1, policy.max_failures)
    limit = math.inf if allowed is None else allowed - EPSILON
    keeps_frames = policy.keep_tracebacks or policy.raises == "group"
    uniform, known = is_uniform(schedule), dict[int, Spread]()
    retried: type | None = None

    def answer(  # noqa: C901, PLR0911, PLR0912  one step, to be read in one piece
        entry: Entry, error: Exception, clock: ClockSource[Any]
    ) -> float | None:
        nonlocal retried
        if (
            blockers
            or process_observers
            or error.__context__ is not None
            or error.__cause__ is not None
            or len(reduce_error(error)) != WITHOUT_DICT
        ):
            return None
        if type(error) is not retried:
            if isinstance(error, _SPECIAL) or match_error(policy, error) is not None:
                return None
            retried = type(error)
        records: Any = entry[1]
        now: Any
        attempt, previous = 1, None
        if type(records) is list:
            size = len(records)
            attempt, previous = size // 5 + 1, records[size - 4]
            start, own_seed, now = records[0], records[1], records[3]
            if previous is error or (most is None and _stands_still(records)):
                return None
        elif entry[2] is not None or retry_log().isEnabledFor(WARNING):
            return None
        else:
            start, own_seed = records, new_seed() if seed is None else seed
            now = clock.real_reader()
        if attempt > last:
            return None
        failed = now()
        try:
            if uniform:
                spread = known.get(attempt) or _remember(schedule, attempt, known)
                delay, high, step = spread
                if step is not None:
                    # As `uniform_between`.
                    drawn = delay + (high - delay) * mix(own_seed + step)
                    delay = drawn if drawn < high else high
            else:
                before = None if previous is None else records[-2]
                random = call_random(own_seed, attempt)
                delay = _existing(schedule.delay(attempt, before, random))
        except Exception:  # noqa: BLE001  it ended or failed, as `steps` will tell
            return None
        if failed - start + delay >= limit:
            return None
        trace = error.__traceback__
        if trace is not None:  # pragma: no branch  (it was raised)
            # Without the frame of the driver.
            trace = trace.tb_next
            with_traceback(error, trace)
        if previous is None:
            entry[1] = [start, own_seed, trace, now, None, error, failed, delay]
        else:
            locations = None
            if not keeps_frames:
                locations = locations_of(records[2])
                with_traceback(previous, None)
            records[2] = trace
            records += (locations, error, failed, delay)
        if type(entry[0]) is RetryCall:
            catch_up(entry)
        return delay

    return answer


T = TypeVar("T")


def _existing(value: T | None) -> T:
    if value is None:
        raise LookupError
    return value


def _remember(schedule: Schedule, attempt: int, known: dict[int, Spread]) -> Spread:
    bounds = _existing(schedule.bounds(attempt))
    step = None if bounds[0] == bounds[1] else step_to((attempt << 32) + 1)
    spread = known[attempt] = (*bounds, step)
    if len(known) > _MAX_KNOWN:
        known.clear()
    return spread


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


def replay(call: RetryCall, records: Records) -> None:
    """Apply the records of a call to its state, each of them once."""
    # A copy, since the driver may add to them.
    state, records = call.state, records[:]
    _, state.seed, call.last_traceback, _ = records[:4]
    began_at = state._started_at_clock
    for position in range(5 * state.attempt - 1, len(records), 5):
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
