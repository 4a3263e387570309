"""The decision after a failed attempt: the delay before the next, or why to stop.

Nothing here sleeps or changes the state, and the same seed gives the same delays. Only
the policy's own predicates, hints and schedules may read a clock.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast, final

from retrykit._conditions import (
    BY_TYPE,
    Condition,
    amatches_condition,
    default_condition,
    find_members,
    has_no_programming_error,
    matches_condition,
    types_of,
)
from retrykit._core.call_record import CallFacts
from retrykit._core.failures import Evaluation, Failure, StopReason
from retrykit._core.limits import shift_time_limit
from retrykit._internal.error_texts import note_policy_fault
from retrykit._internal.frozen import Frozen
from retrykit._internal.late_modules import LateModule
from retrykit._internal.tracebacks import add_note_once
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError, GiveUp, RetryAfter, Signal, requested_delay
from retrykit.schedules._randomness import MAX_DELAY, CallRandom, uniform_between

if TYPE_CHECKING:
    from retrykit._core.policy import Policy
    from retrykit._core.rules import Rule

__all__ = ["EPSILON", "Again", "Decision", "Stop", "amatch_error", "decide", "evaluate"]
__all__ += ["amatch_group", "apply_hint", "find_hint", "match_error", "match_group"]


@final
class Again(Frozen):
    """Make another attempt.

    Attributes:
        delay: The time before it, in seconds, >= 0.
    """

    __slots__ = ("delay",)
    delay: float


@final
class Stop(Frozen):
    """Make no further attempt.

    Attributes:
        reason: Why the call stops.
    """

    __slots__ = ("reason",)
    reason: StopReason


Decision = Again | Stop
"""The decision after a failed attempt; match it exhaustively."""

EPSILON: Final = 1e-6
"""Tolerance for floating-point error in clock arithmetic, in seconds.

0.1 + 0.1 + 0.1 is in time for 0.3, and a sleep up to the limit may end just before it.
"""
_MARGINS: Final = {"stop": 0.0, "clip": -EPSILON, "overshoot": EPSILON}

# Tuples, since every failure is compared with them, and a union is slower.
_OWN_ERRORS: Final = (Signal, ConfigError)


def match_error(  # noqa: C901, PLR0911  all conditions, in their order
    policy: "Policy", error: Exception, *, own_timeout: bool = False
) -> StopReason | int | None:
    """Match an error against the conditions of a policy and of its rules.

    If a predicate fails, that is noted on the error and logged, and the error is not
    retried.

    Args:
        policy: The policy.
        error: The error that the attempt raised.
        own_timeout: Whether it is the policy's own attempt timeout, which is
            retried whatever `on` says.

    Returns:
        The index of the rule that matches, from 0; None if the error is retried
        without a rule; a stop reason if it is not retried.
    """
    if isinstance(error, _OWN_ERRORS):
        return _signal_reason(error)
    flow = find_control_flow(type(error))
    if flow is not None and not names_control_flow(policy, error, flow[0]):
        return flow[1]
    give_up_on, on = policy.give_up_on, policy.on
    try:
        if give_up_on and matches_condition("give_up_on", give_up_on, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for index, rule in enumerate(policy.rules):
                if matches_condition("on", rule.on, error):
                    return index
        # Most policies name types or none, and need no further call.
        by_type = None
        if on is default_condition:
            by_type = has_no_programming_error(type(error).__mro__)
        elif isinstance(on, BY_TYPE):
            by_type = isinstance(error, on)
        if own_timeout or by_type:
            return None
        if by_type is None and matches_condition("on", on, error):
            return None
        if on is default_condition:
            _note_programming_error(error, error)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(error, fault)
    return StopReason.NOT_RETRYABLE


async def amatch_error(  # noqa: C901, PLR0911  all conditions, in their order
    policy: "Policy", error: Exception, *, own_timeout: bool = False
) -> StopReason | int | None:
    """Match an error against the conditions of a policy, as `match_error` does."""
    if isinstance(error, _OWN_ERRORS):
        return _signal_reason(error)
    flow = find_control_flow(type(error))
    if flow is not None and not names_control_flow(policy, error, flow[0]):
        return flow[1]
    give_up_on, on = policy.give_up_on, policy.on
    try:
        if give_up_on and await amatches_condition("give_up_on", give_up_on, error):
            return StopReason.GAVE_UP
        if policy.rules:
            for index, rule in enumerate(policy.rules):
                if await amatches_condition("on", rule.on, error):
                    return index
        by_type = None
        if on is default_condition:
            by_type = has_no_programming_error(type(error).__mro__)
        elif isinstance(on, BY_TYPE):
            by_type = isinstance(error, on)
        if own_timeout or by_type:
            return None
        if by_type is None and await amatches_condition("on", on, error):
            return None
        if on is default_condition:
            _note_programming_error(error, error)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(error, fault)
    return StopReason.NOT_RETRYABLE


def match_group(
    policy: "Policy", group: "ExceptionGroup[Exception]"
) -> StopReason | int | None:
    """Match an ExceptionGroup, by its members unless the policy says otherwise."""
    if policy.exception_groups == "whole":
        return match_error(policy, group)
    try:
        return match_members(policy, group)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(group, fault)
    return StopReason.NOT_RETRYABLE


async def amatch_group(
    policy: "Policy", group: "ExceptionGroup[Exception]"
) -> StopReason | int | None:
    """Match an ExceptionGroup, as `match_group` does."""
    if policy.exception_groups == "whole":
        return await amatch_error(policy, group)
    try:
        return await amatch_members(policy, group)
    except Exception as fault:  # noqa: BLE001  the user's error must come through
        note_policy_fault(group, fault)
    return StopReason.NOT_RETRYABLE


def match_members(policy: "Policy", group: Exception) -> StopReason | int | None:
    """Match the errors in an ExceptionGroup, and the group itself by its type."""
    members = find_members(group)
    reasons = [
        _signal_reason(each) if _is_own(each) else control_flow_reason(policy, each)
        for each in members
    ]
    stops = [each for each in reasons if each is not None]
    others = [each for each in members if not _is_own(each)]
    if stops or not others:
        return stops[0] if stops else None
    matches = all if policy.exception_groups == "all" else any
    condition = policy.give_up_on
    given_up = [matches_condition("give_up_on", condition, each) for each in others]
    if any(given_up) or _names(condition, group):
        return StopReason.GAVE_UP
    conditions: tuple[Rule | Policy, ...] = (*policy.rules, policy)
    for index, rule in enumerate(conditions):
        if _names(rule.on, group) or matches(
            [matches_condition("on", rule.on, each) for each in others]
        ):
            return None if rule is policy else index
    if policy.on is default_condition:
        _note_programming_error(group, *others)
    return StopReason.NOT_RETRYABLE


async def amatch_members(policy: "Policy", group: Exception) -> StopReason | int | None:
    """Match the errors in an ExceptionGroup, as `match_members` does."""
    members = find_members(group)
    reasons = [
        _signal_reason(each) if _is_own(each) else control_flow_reason(policy, each)
        for each in members
    ]
    stops = [each for each in reasons if each is not None]
    others = [each for each in members if not _is_own(each)]
    if stops or not others:
        return stops[0] if stops else None
    matches = all if policy.exception_groups == "all" else any
    condition = policy.give_up_on
    given_up = [
        await amatches_condition("give_up_on", condition, each) for each in others
    ]
    if any(given_up) or _names(condition, group):
        return StopReason.GAVE_UP
    conditions: tuple[Rule | Policy, ...] = (*policy.rules, policy)
    for index, rule in enumerate(conditions):
        if _names(rule.on, group) or matches(
            [await amatches_condition("on", rule.on, each) for each in others]
        ):
            return None if rule is policy else index
    if policy.on is default_condition:
        _note_programming_error(group, *others)
    return StopReason.NOT_RETRYABLE


def _is_own(error: Exception) -> bool:
    return isinstance(error, _OWN_ERRORS)


def _names(condition: Condition, group: Exception) -> bool:
    """Return whether a condition names the type of a group, or a base of it."""
    return isinstance(condition, BY_TYPE) and isinstance(group, condition)


def _note_programming_error(error: Exception, *members: Exception) -> None:
    kind = next(type(x).__name__ for x in members if not default_condition(x))
    text = f"not retried, since {kind} is a programming error; to retry it, write on="
    add_note_once(error, f"{text}{kind}")


def _signal_reason(error: Exception) -> StopReason | None:
    """Return the stop reason of a signal or a ConfigError; None for a `RetryAfter`."""
    if isinstance(error, ConfigError):
        return StopReason.NOT_RETRYABLE
    return StopReason.GAVE_UP if isinstance(error, GiveUp) else None


def evaluate(  # noqa: PLR0913, PLR0917  all that is known of an attempt
    policy: "Policy",
    record: CallFacts,
    elapsed: float,
    error: Exception | None,
    result: object,
    matched: StopReason | int | None,
    exhausted: object = None,
    already_warned: Callable[[], bool] | None = None,
) -> Evaluation:
    """Evaluate a failed attempt: nesting, hint, decision.

    Args:
        policy: The policy.
        record: The record of the call before this failure.
        elapsed: Seconds since the call began, >= 0.
        error: The error that the attempt raised; None if its result was rejected.
        result: The rejected result.
        matched: The rule that matches, or why there is no retry, as from `match_error`.
        exhausted: The outcome of a nested call that has given up, or None.
        already_warned: Returns whether a warning was logged for this call before; after
            its first use it returns True.
    """
    # Stop reasons are strings; to compare with the enumeration takes longer.
    hint, retryable = None, not isinstance(matched, str)
    if retryable and exhausted is not None:
        # For a budget, a nested call that has given up is not another failure.
        matched, retryable = StopReason.NESTED, False
    elif retryable and (policy.hint is not None or policy.rules):
        hint = find_hint(policy, error, result, matched, already_warned)
    attempt, started = record.attempt, record.attempt_started
    counted, limited = attempt, policy
    if record.stream is not None:
        counted -= record.stream.attempts_before
        limited = shift_time_limit(policy, record.stream.row_began)
    try:
        decision = decide(limited, record, counted, elapsed, error, matched, hint)
    except Exception as fault:
        if error is None:
            raise
        note_policy_fault(error, fault)
        decision = StopReason.NOT_RETRYABLE
    failure = _new(
        Failure,
        (
            attempt,
            error.error if isinstance(error, Signal) else error,
            result,
            started,
            elapsed - started,
            None if isinstance(decision, str) else decision,
            matched if retryable else None,
            hint if hint is None else requested_delay(hint),
        ),
    )
    return _new(Evaluation, (failure, decision, retryable))


def find_hint(
    policy: "Policy",
    error: Exception | None,
    result: object,
    matched: StopReason | int | None,
    already_warned: Callable[[], bool] | None = None,
) -> float | RetryAfter | GiveUp | None:
    """Return the answer of a hint: the matching rule's, or else the policy's.

    For an ExceptionGroup that is not judged as a whole, it is a `GiveUp` for one of its
    errors, or else the longest delay. None if there is no answer, or the error is a
    signal.
    """
    hint = policy.hint
    longest = policy.hint_cap if policy.on_long_hint == "ignore" else None
    if isinstance(matched, int) and matched < len(policy.rules):
        hint = policy.rules[matched].hint or hint
    if hint is None or isinstance(error, Signal):
        return None
    if not isinstance(error, ExceptionGroup) or policy.exception_groups == "whole":
        outcome = result if error is None else error
        answer: float | RetryAfter | GiveUp | None
        answer = hints.read_hint(hint, outcome, error, already_warned, longest)
        return answer
    members = find_members(error)
    answers: list[float | RetryAfter | GiveUp | None]
    answers = [hints.read_hint(hint, x, x, already_warned, longest) for x in members]
    ends = [each for each in answers if isinstance(each, GiveUp)]
    if ends:
        return ends[0]
    return max(answers, key=lambda each: requested_delay(each) or 0.0)


# Imported with the first policy that has a hint. A statement would ask at each failure.
hints: Any = LateModule("retrykit.hints._base")

# Builds a named tuple without its Python-level constructor.
_new: Final = tuple.__new__


def decide(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0917  all rules, in their order
    policy: "Policy",
    record: CallFacts,
    attempt: int,
    elapsed: float,
    error: object = None,
    matched: StopReason | int | None = None,
    hint: float | RetryAfter | GiveUp | None = None,
) -> float | StopReason:
    """Decide what follows a failed attempt.

    Args:
        policy: The policy.
        record: The record of the call before this failure.
        attempt: Number of the failed attempt, from 1, and of the retry after it.
        elapsed: Seconds since the call began, >= 0.
        error: The error that the attempt raised; None if its result was rejected.
        matched: The rule that matches, or why there is no retry, as from `match_error`.
        hint: The answer of the hint.

    Returns:
        The delay before the next attempt, in seconds, or why there is none.

    Raises:
        ConfigError: A custom schedule returned an invalid delay.
    """
    if isinstance(matched, str):
        return matched
    most, allowed = policy.max_attempts, policy.max_elapsed
    if allowed is not None and most is not None and policy.limits == "all":
        # The time counts once all attempts are used.
        allowed = allowed if attempt >= most else None
    elif most is not None and attempt >= most:
        return StopReason.ATTEMPTS
    if allowed is not None and elapsed >= allowed + _MARGINS[policy.deadline]:
        return StopReason.ELAPSED
    random = CallRandom()
    random.seed, random.draw = record.seed, attempt << 32
    if policy.rules:
        delay = _delay_by_rule(policy, record, attempt, matched, random)
        if isinstance(delay, str):
            return delay
    else:
        last = record.last_failure if attempt > 1 else None
        previous = None if last is None else last.delay
        delay = policy.schedule.delay(attempt, previous, random)
    if delay is None:
        return StopReason.SCHEDULE_ENDED
    if not 0 <= delay <= MAX_DELAY:
        wanted = "a schedule of finite numbers >= 0"
        raise invalid_setting(
            "schedule", wanted, delay, "see its delay method", code="out-of-range"
        )
    if isinstance(error, RetryAfter) and error.delay is not None:
        delay = error.delay
    elif type(delay) is not float:
        # A custom schedule may return another kind of number.
        delay = float(delay)
    if hint is not None:
        return apply_hint(policy, record, attempt, elapsed, allowed, delay, hint)
    if record.outer_deadline is None and (
        allowed is None or elapsed + delay < allowed - EPSILON
    ):
        return delay
    return _apply_deadline(policy, record, elapsed, allowed, delay)


def apply_hint(  # noqa: PLR0913, PLR0917  as _apply_deadline, and the hint
    policy: "Policy",
    record: CallFacts,
    attempt: int,
    elapsed: float,
    allowed: float | None,
    delay: float,
    hint: float | RetryAfter | GiveUp,
) -> float | StopReason:
    """Return the delay after a hint, or why to stop.

    The delay is exactly that of a `RetryAfter`, and at least that of any other hint;
    the call stops if its time limit does not allow that. `on_long_hint` says what to do
    with a hint above `hint_cap`.
    """
    if isinstance(hint, GiveUp):
        return StopReason.GAVE_UP
    exact = isinstance(hint, RetryAfter)
    asked, cap = requested_delay(hint) or 0.0, policy.hint_cap
    if cap is not None and asked > cap and policy.on_long_hint != "honor":
        if policy.on_long_hint == "give_up":
            return StopReason.HINT
        if policy.on_long_hint == "ignore":
            # It comes from a stored failure: one that is read now is left out before.
            return _apply_deadline(policy, record, elapsed, allowed, delay)
        asked = cap
    # To retry sooner than requested would do harm.
    if _apply_deadline(policy, record, elapsed, allowed, asked) != asked:
        return StopReason.HINT
    if exact:
        return asked
    asked = _spread(policy, record, attempt, elapsed, allowed, asked)
    return _apply_deadline(policy, record, elapsed, allowed, max(delay, asked))


def _spread(  # noqa: PLR0913, PLR0917  as apply_hint
    policy: "Policy",
    record: CallFacts,
    attempt: int,
    elapsed: float,
    allowed: float | None,
    asked: float,
) -> float:
    """Return a random delay between a hint's delay and ``1 + hint_jitter`` times that.

    It stays within the limits, if the hint does.
    """
    ends = [x for x in (allowed, record.outer_deadline) if x is not None]
    # With a margin for any deadline rule.
    limits = [MAX_DELAY, *(end - elapsed - 2 * EPSILON for end in ends)]
    if policy.hint_cap is not None and policy.on_long_hint != "honor":
        limits.append(policy.hint_cap)
    most = min(asked * (1 + policy.hint_jitter), *limits)
    if most <= asked:
        return asked
    random = CallRandom()
    # Apart from the draws of the schedule, whose number depends on it.
    random.seed, random.draw = record.seed, (attempt << 32) + _DRAW_OF_HINT
    return uniform_between(asked, most, random)


_DRAW_OF_HINT: Final = 1 << 31


def _apply_deadline(
    policy: "Policy",
    record: CallFacts,
    elapsed: float,
    allowed: float | None,
    delay: float,
) -> float | StopReason:
    """Return the delay, clipped by the deadline rule, or why to stop."""
    rule = policy.deadline
    # An attempt that ends at the limit must start before it.
    margin = EPSILON if policy.attempt_timeout is None else -EPSILON
    if allowed is not None and rule != "overshoot":
        late = elapsed + delay > allowed + (margin if rule == "stop" else EPSILON)
        if late and rule == "stop":
            return StopReason.ELAPSED
        delay = allowed - elapsed if late else delay
    if (
        record.outer_deadline is not None
        and elapsed + delay > record.outer_deadline + margin
    ):
        return StopReason.ELAPSED
    return delay


def _delay_by_rule(
    policy: "Policy",
    record: CallFacts,
    attempt: int,
    index: int | None,
    random: CallRandom,
) -> float | StopReason | None:
    """Return the delay from the schedule of the matching rule, or of the policy.

    Each schedule counts its own failures and has its own previous delay. None if the
    schedule has ended; a stop reason if the rule's `max_attempts` is reached.
    """
    rules, counts = policy.rules, record.rule_counts
    schedule, source, count = policy.schedule, None, attempt
    if index is not None:
        rule = rules[index]
        count = (counts[index] if index < len(counts) else 0) + 1
        if rule.max_attempts is not None and count >= rule.max_attempts:
            return StopReason.ATTEMPTS
        if rule.schedule is not None:
            schedule, source = rule.schedule, index
    if source is None:
        count = attempt
        for rule, failures in zip(rules, counts, strict=False):
            if rule.schedule is not None:
                count -= failures
    previous = _previous_delay(policy, record, source) if count > 1 else None
    return schedule.delay(count, previous, random)


def _previous_delay(
    policy: "Policy", record: CallFacts, source: int | None
) -> float | None:
    """Return the last delay from the schedule of rule *source*, or of the policy."""
    rules = policy.rules
    # From the end, since there may be thousands.
    for failure in record.failures_backwards():
        by = failure.rule
        if by is not None and (by >= len(rules) or rules[by].schedule is None):
            by = None
        if by == source:
            return failure.delay
    return None


# Exceptions by which a library steers the code that it runs. They derive from
# `Exception`, but nothing has failed: a job is queued again, a test is skipped, an
# iteration has ended. To retry them would do it twice.
CONTROL_FLOW: Final = {
    "Python": "builtins.StopIteration builtins.StopAsyncIteration bdb.BdbQuit "
    "asyncio.queues.QueueShutDown queue.ShutDown "
    "concurrent.futures._base.CancelledError unittest.case.SkipTest "
    "unittest.case._ShouldStop",
    "aiogram": "aiogram.dispatcher.event.bases.CancelHandler "
    "aiogram.dispatcher.event.bases.SkipHandler",
    "Airflow": "airflow.exceptions.AirflowFailException "
    "airflow.exceptions.AirflowRescheduleException "
    "airflow.exceptions.AirflowSkipException "
    "airflow.sdk.exceptions.AirflowFailException "
    "airflow.sdk.exceptions.AirflowRescheduleException "
    "airflow.sdk.exceptions.AirflowSkipException",
    "arq": "arq.worker.Retry arq.worker.RetryJob",
    "Celery": "celery.exceptions.MaxRetriesExceededError "
    "celery.exceptions.TaskPredicate celery.exceptions.TaskRevokedError "
    "billiard.exceptions.SoftTimeLimitExceeded billiard.exceptions.Terminated",
    "Click and Typer": "click.exceptions.Abort click.exceptions.Exit "
    "typer.exceptions.Abort typer.exceptions.Exit",
    "Dagster": "dagster._core.definitions.events.RetryRequested",
    "DBOS": "dbos._error.DBOSAwaitedWorkflowCancelledError",
    "Dramatiq": "dramatiq.errors.Retry dramatiq.middleware.middleware.SkipMessage",
    "Huey": "huey.exceptions.CancelExecution huey.exceptions.RetryTask",
    "Hypothesis": "hypothesis.errors.UnsatisfiedAssumption",
    "Invoke": "invoke.exceptions.Exit",
    "kopf": "kopf._core.actions.execution.PermanentError "
    "kopf._core.actions.execution.TemporaryError",
    "Locust": "locust.exception.InterruptTaskSet locust.exception.RescheduleTask "
    "locust.exception.StopUser",
    "nox": "nox.sessions._SessionQuit nox.sessions._SessionSkip",
    "Prefect": "prefect.exceptions.CancelledRun prefect.exceptions.PausedRun",
    "Procrastinate": "procrastinate.exceptions.JobAborted "
    "procrastinate.exceptions.JobRetry",
    "python-telegram-bot": "telegram.ext._application.ApplicationHandlerStop",
    "Ray": "ray.exceptions.AsyncioActorExit ray.exceptions.TaskCancelledError",
    "Robot Framework": "robot.api.exceptions.FatalError "
    "robot.api.exceptions.SkipExecution",
    "RQ": "rq.exceptions.StopRequested rq.timeouts.BaseTimeoutException",
    "Scrapy": "scrapy.exceptions.CloseSpider scrapy.exceptions.DontCloseSpider "
    "scrapy.exceptions.DropItem scrapy.exceptions.IgnoreRequest "
    "scrapy.exceptions.NotConfigured scrapy.exceptions.StopDownload",
    "taskiq": "taskiq.exceptions.NoResultError taskiq.exceptions.TaskRejectedError",
    "Temporal": "temporalio.exceptions.CancelledError",
    "Tornado": "tornado.gen.Return tornado.web.Finish",
    "Twisted": "twisted.internet.defer.CancelledError "
    "twisted.internet.error.ConnectingCancelledError "
    "twisted.trial.unittest.SkipTest",
}
"""Full names of exceptions, in one string for each library. Subclasses also count."""

CANCELLED: Final = {
    "celery.exceptions.TaskRevokedError",
    "concurrent.futures._base.CancelledError",
    "dbos._error.DBOSAwaitedWorkflowCancelledError",
    "huey.exceptions.CancelExecution",
    "prefect.exceptions.CancelledRun",
    "procrastinate.exceptions.JobAborted",
    "ray.exceptions.TaskCancelledError",
    "temporalio.exceptions.CancelledError",
    "twisted.internet.defer.CancelledError",
    "twisted.internet.error.ConnectingCancelledError",
}
"""The exceptions of `CONTROL_FLOW` that mean that the call was cancelled."""

# By name, so that nothing is imported.
_CONTROL_FLOW_NAMES = {
    name for names in CONTROL_FLOW.values() for name in names.split()
}


def _find_control_flow(kind: type) -> tuple[type, StopReason] | None:
    for each in kind.__mro__:
        name = f"{each.__module__}.{each.__qualname__}"
        if name in _CONTROL_FLOW_NAMES:
            ended = name in CANCELLED
            return each, StopReason.CANCELLED if ended else StopReason.NOT_RETRYABLE
    return None


find_control_flow: "Callable[[type], tuple[type, StopReason] | None]" = cast(
    "Any", lru_cache(maxsize=256)(_find_control_flow)
)
"""Returns the class of `CONTROL_FLOW` that a class is or derives from, and its stop
reason; None if there is none."""


def names_control_flow(policy: "Policy", error: Exception, base: type) -> bool:
    """Return whether a policy or one of its rules names the class of an error in `on`.

    It may name any class from the error's own up to *base*, a class of `CONTROL_FLOW`.
    """
    conditions = (policy.on, *(rule.on for rule in policy.rules))
    named = [kind for each in conditions for kind in types_of(each)]
    return any(isinstance(error, kind) and issubclass(kind, base) for kind in named)


def control_flow_reason(policy: "Policy", error: Exception) -> StopReason | None:
    """Return why an error is not retried, if it is control flow.

    None if it is not, or the policy names its class.
    """
    found = find_control_flow(type(error))
    if found is None or names_control_flow(policy, error, found[0]):
        return None
    return found[1]
