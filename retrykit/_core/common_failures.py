"""Fast answers to common failures, and fast evaluations of most others.

Most failures are common: the policy retries errors of this type, no limit is near, and
nothing else has a say, such as a rule, a hint or an observer. They are answered in one
step. All others are left to `retrykit._core.steps`, which writes the same record, and
whose evaluation of most errors is also here.
"""

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from retrykit._conditions import BY_TYPE, default_condition, types_of
from retrykit._core.call import (
    ATTEMPT,
    DRAWS,
    ERROR,
    FIRST,
    FIRST_ATTEMPT,
    NOTHING_EARLIER,
    NUMBER,
    TRACE,
    Entry,
    RetryCall,
    as_failure,
    innermost_running,
)
from retrykit._core.decision import (
    EPSILON,
    apply_hint,
    hints as late_hints,
    match_error,
)
from retrykit._core.failures import Evaluation, Failure, StopReason
from retrykit._internal.clocks import LONGEST_SLEEP, time_passed
from retrykit._internal.fast_path import failure_blockers
from retrykit._internal.tracebacks import (
    WITHOUT_DICT,
    has_attributes,
    location,
    locations_of,
    reduce_error,
)
from retrykit.errors import Signal, requested_delay
from retrykit.schedules._base import Schedule, has_user_code, is_uniform
from retrykit.schedules._randomness import (
    SharedDraws,
    call_random,
    first_draw,
)

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["Answer", "Evaluator", "answer_of", "evaluator_of", "leave_to_steps"]

Answer = Callable[[Entry, list[Any] | None, Exception, Any], float | None]
"""Takes the entry, its tape (None before the first failure), the error, and an object
whose `time` reads the clock of the call. Records the failure, and returns the delay
before the next attempt, in seconds. If the failure is not common, returns None and
records nothing."""

Evaluator = Callable[..., Evaluation | None]
"""Takes a call, an error, and whether a driver called the function. Trims the traceback
and returns the evaluation of the failure; or does nothing and returns None, which
leaves the failure to `retrykit._core.decision`."""

Spread = tuple[float, float | None]
"""The shortest delay before a retry, and what each unit of the random draw adds to it,
in seconds. The latter is None if only `Delays.draw` can find the delay."""

# The number of attempts whose delays are remembered.
_MAX_KNOWN: Final = 256


def answer_of(policy: "Policy") -> Answer:
    """Return the function that answers a policy's common failures, and keep it."""
    return policy._derive(_make_answer)


def evaluator_of(policy: "Policy") -> Evaluator:
    """Return the function that evaluates most errors of a policy fast, and keep it."""
    return policy._derive(_make_evaluator)


def _is_by_type(policy: "Policy") -> bool:
    """Return whether a policy selects errors by type, and has built-in schedules.

    The default condition also selects by type.
    """
    rules = policy.rules
    conditions = (policy.on, policy.give_up_on, *(rule.on for rule in rules))
    schedules = (policy.schedule, *(x.schedule for x in rules if x.schedule))
    kinds = {type(kind) for each in conditions for kind in types_of(each)}
    return (
        all(x is default_condition or isinstance(x, BY_TYPE) for x in conditions)
        # Other metaclasses may decide by more than the type.
        and kinds <= {type}
        and not any(map(has_user_code, schedules))
    )


def _allows(policy: "Policy") -> bool:
    """Return whether only types, delays and limits decide about a policy's failures."""
    others = (
        policy.hint,
        policy.budget,
        policy.attempt_timeout,
        policy.hedge,
        policy.on_result,
        policy.stop_event,
        policy.sleep,
    )
    return (
        not policy.rules
        and not policy.observers
        and not policy.admission
        and all(each is None for each in others)
        and _is_by_type(policy)
    )


def _evaluate_nothing(_call: RetryCall, _error: Exception, **_: object) -> None:
    """Return None, which leaves every error to `retrykit._core.decision`."""


def _make_evaluator(  # noqa: C901, PLR0915  with its function
    policy: "Policy",
) -> Evaluator:
    if policy.limits == "all" or not _is_by_type(policy):
        return _evaluate_nothing
    rules, most = policy.rules, policy.max_attempts or math.inf
    allowed = policy.max_elapsed
    limit = math.inf if allowed is None else allowed - EPSILON
    keeps_frames = policy.keep_tracebacks or policy.raises == "group"
    # The delays by the schedule of the policy, and by those of its rules.
    own = Delays(policy.schedule)
    tables: list[Delays | None] = [
        None if x.schedule is None else Delays(x.schedule) for x in rules
    ]
    hints = [rule.hint or policy.hint for rule in rules]
    has_hint = policy.hint is not None or any(hints)
    read_hint: Any = late_hints.read_hint if has_hint else None
    longest = policy.hint_cap if policy.on_long_hint == "ignore" else None
    known: dict[type, int | None] = {}

    def evaluate(  # noqa: C901, PLR0911, PLR0912, PLR0915  to be read in one piece
        call: RetryCall, error: Exception, *, driven: bool
    ) -> Evaluation | None:
        kind, tape = type(error), call.tape
        before = tape[-2] if len(tape) > FIRST + 1 else None
        previous: Any = None if before is None else before[ERROR]
        if (
            error.__context__ is not None
            or error.__cause__ is not None
            or has_attributes(error)
            or previous is error
            or call.outer_deadline is not None
        ):
            return None
        if kind not in known:
            if (
                len(known) >= _MAX_KNOWN
                or isinstance(error, _SPECIAL)
                or kind.__setattr__ is not BaseException.__setattr__
            ):
                return None
            matched = match_error(policy, error)
            if isinstance(matched, str):
                return None
            known[kind] = matched
        rule = known[kind]
        started = tape[-1]
        attempt = (0 if before is None else before[ATTEMPT]) + 1 + call.unrecorded
        if before is not None and (
            not _is_bare(previous)
            # It was the cause of a signal, whose frames these are.
            or previous.__traceback__ is not tape[TRACE]
        ):
            return None
        count, table, hint = attempt, own, policy.hint
        if rules:
            counts = call.rule_counts
            if rule is not None:
                hint = hints[rule]
                own_count = (counts[rule] if rule < len(counts) else 0) + 1
                if own_count >= (rules[rule].max_attempts or math.inf):
                    return None
                by_rule = tables[rule]
                if by_rule is not None:
                    count, table = own_count, by_rule
            if table is own:
                count = attempt
                for by, failures in zip(tables, counts, strict=False):
                    count -= 0 if by is None else failures
        read_clock = call.read_clock
        if read_clock is None:
            return None
        elapsed = read_clock() - call.started
        decision: float | StopReason = _ATTEMPTS
        asked, delay = None, 0.0
        if attempt < most:
            try:
                delay, step = table[count]
            except Exception:  # noqa: BLE001  `decide` will tell
                return None
            if step is None:
                return None
            if step:
                # As `uniform_between`.
                delay += step * tape[DRAWS][attempt][tape[NUMBER]]
            if elapsed + delay >= limit:
                return None
            decision = delay
        elif hint is not None:
            return None
        if hint is not None:
            asked = read_hint(hint, error, error, call.already_warned, longest)
            if asked is not None:
                decision = apply_hint(
                    policy, call, attempt, elapsed, allowed, delay, asked
                )
        trace = error.__traceback__
        if driven and trace is not None:
            # Without the frame of the driver.
            trace = error.__traceback__ = trace.tb_next
        if previous is not None and before is not None and not keeps_frames:
            call.keep_locations(before[ATTEMPT], (locations_of(tape[TRACE]),))
            previous.__traceback__ = None
        tape[TRACE] = trace
        scheduled = None if isinstance(decision, str) else decision
        requested = None if asked is None else requested_delay(asked)
        took = elapsed - started
        fields = attempt, error, None, started, took, scheduled, rule, requested
        return _new(Evaluation, (_new(Failure, fields), decision, True))

    return evaluate


def _is_bare(error: object) -> bool:
    """Return whether an error has no related errors, no members and no attributes."""
    return (
        isinstance(error, Exception)
        and error.__context__ is None
        and error.__cause__ is None
        and not isinstance(error, BaseExceptionGroup)
        and not has_attributes(error)
        and type(error).__setattr__ is BaseException.__setattr__
    )


def leave_to_steps(_entry: Entry, *_others: object) -> None:
    """Return None, which leaves every failure to `retrykit._core.steps`."""


def _make_answer(  # noqa: C901, PLR0915  with its function
    policy: "Policy",
) -> Answer:
    if not _allows(policy):
        return leave_to_steps
    allowed = math.inf if policy.max_elapsed is None else policy.max_elapsed
    # Until the attempts are used, the time does not count.
    limit = math.inf if policy.limits == "all" else allowed - EPSILON
    keeps_frames = policy.keep_tracebacks or policy.raises == "group"
    same_draws = None if policy.seed is None else _first_of(SharedDraws(policy.seed))
    most = math.inf if policy.max_attempts is None else policy.max_attempts - 1
    delays = Delays(policy.schedule, min(policy.max_failures, most))
    is_endless = policy.max_attempts is None
    retried: type | None = None

    def answer(  # noqa: C901, PLR0911, PLR0912  one step, to be read in one piece
        entry: Entry, tape: Any, error: Any, timer: Any
    ) -> float | None:
        # Numbers in place of the names of `call`, which are looked up at each use. Of
        # an entry: 1 start, 2 before, 4 tape; of a tape: 0 draws, 1 number, 3 trace,
        # 4 first; of a failure: 0 attempt, 1 error, 5 delay.
        nonlocal retried
        draw: int | None
        if (
            failure_blockers
            or error.__context__ is not None
            or error.__cause__ is not None
            or len(reduce_error(error)) != WITHOUT_DICT
        ):
            return None
        if type(error) is not retried:
            kind: Any = type(error)
            if (
                isinstance(error, _SPECIAL)
                or kind.__setattr__ is not BaseException.__setattr__
                or match_error(policy, error) is not None
            ):
                return None
            retried = kind
        if tape is None:
            if entry[2] and innermost_running(entry[2]):
                return None
            shared, number, draw = same_draws or first_draw()
            # As `open_entry`.
            tape = [shared, number, NOTHING_EARLIER, None, FIRST_ATTEMPT]
            entry.append(tape)
            if entry[4] is not tape:
                # The function or another thread has asked for the state.
                tape, draw = entry[4], None
            now, attempt, started, failure, previous = 4, 1, 0.0, None, None
        else:
            # Indices from the end take longer.
            now = len(tape) - 1
            failure, started = tape[now - 1], tape[now]
            attempt, previous, draw = failure[0] + 1, failure[1], None
            if previous is error or (
                is_endless and failure[5] >= _LONG and _stands_still(tape)
            ):
                return None
        elapsed = timer.time() - entry[1]
        try:
            delay, step = delays[attempt]
            if step:
                # As `uniform_between`.
                delay += step * (tape[0][attempt][tape[1]] if draw is None else draw)
            elif step is None:
                last = failure and failure[5]
                delay = delays.draw(attempt, last, tape[0].seed + tape[1])
        except Exception:  # noqa: BLE001  `steps` will tell
            return None
        if elapsed + delay >= limit:
            return None
        # Without the frame of the driver.
        trace = error.__traceback__ = error.__traceback__.tb_next
        if previous is None or keeps_frames:
            tape[3] = trace
            tape[now] = attempt, error, None, started, elapsed, delay
            return delay
        last_trace = tape[3]
        if last_trace is None or last_trace.tb_next is not None:
            locations = locations_of(last_trace)
        else:
            # Most have one frame, and a call would take longer.
            locations = (location(last_trace),)
        previous.__traceback__ = None
        tape[3] = trace
        tape[now] = attempt, error, None, started, elapsed, delay, locations
        return delay

    return answer


def _first_of(draws: SharedDraws) -> tuple[SharedDraws, int, int]:
    """Return what `first_draw` would return for the first call with these draws."""
    return draws, 0, draws[1][0]


def _stands_still(tape: list[Any]) -> bool:
    """Return whether the clock stood still in the last delay; `steps` then warns."""
    last, begun = as_failure(tape[-2]), tape[-1]
    return not time_passed(last.delay or 0.0, begun - last.started - last.duration)


@final
class Delays(dict[int, Spread]):
    """The delays of a schedule, computed when they are needed, keyed by retry number.

    Args:
        schedule: The schedule.
        last: Number of the last retry that can follow a common failure.
    """

    def __init__(self, schedule: Schedule, last: float = math.inf) -> None:
        self._schedule, self._last = schedule, last
        self._uniform = is_uniform(schedule)

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
        """Return a delay that is not known to be uniform, in seconds.

        It is infinite if the schedule has ended, or the delay is too long.
        """
        random = call_random(seed, retry)
        delay = self._schedule.delay(retry, previous, random)
        return math.inf if delay is None or delay > LONGEST_SLEEP else delay


_new: Final = tuple.__new__

# In seconds: only a longer delay tells whether a clock stands still.
_LONG: Final = 0.1

# Beyond every limit of time.
_NOT_COMMON: Final = math.inf, 0.0
_SPECIAL: Final = (Signal, BaseExceptionGroup)
# Quicker than the attribute, on Python 3.11.
_ATTEMPTS: Final = StopReason.ATTEMPTS
