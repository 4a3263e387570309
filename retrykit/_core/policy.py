"""The policy of retried calls."""

import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from operator import itemgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NoReturn,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    final,
)

from retrykit._conditions import Condition, default_condition, format_value, types_of
from retrykit._core.decision import (
    Again,
    Decision,
    Stop,
    decide,
    find_hint,
    match_error,
    match_group,
)
from retrykit._core.drivers import build_driver
from retrykit._core.events import Event, EventHook, Observer
from retrykit._core.failures import ErrorRecord
from retrykit._core.final_error import NO_FALLBACK, is_own_timeout
from retrykit._core.limits import DECIDING, check_limits, default_limits
from retrykit._core.result_conditions import ResultCondition, check_predicates
from retrykit._core.retry_state import Failure, RetryState, StopReason, view
from retrykit._core.settings import (
    SETTINGS,
    DeadlineRule,
    GroupRule,
    LimitRule,
    LongHintRule,
    NestedRule,
    Raises,
    RefusedRule,
    SleepFunction,
    StopEvent,
    suggest_setting,
    takes_settings,
)
from retrykit._internal.frozen import Frozen
from retrykit._internal.late_modules import LateModule
from retrykit._internal.redaction import Redaction
from retrykit._internal.validation import (
    check_instance,
    check_number,
    invalid_setting,
    safe_repr,
    user_facing,
)
from retrykit.errors import ConfigError, GiveUp, RetryAfter
from retrykit.schedules._base import Schedule
from retrykit.schedules._basic import exponential

if TYPE_CHECKING:
    from retrykit._core import outcome as outcomes
    from retrykit._core.hedge import Hedge
    from retrykit._core.outcome import Outcome
    from retrykit._core.rules import Rule
    from retrykit._core.setting_types import PolicySettings
    from retrykit._core.timeouts import AsArgument
    from retrykit.budgets._base import Budget
    from retrykit.hints._base import Hint
    from retrykit.limits._base import Limit
    from retrykit.limits._registry import Registry
else:
    outcomes = LateModule("retrykit._core.outcome")
    # Python compiles the names of types that are not imported, which takes long.
    PolicySettings = Any

__all__ = ["Policy", "check_settings"]

P = ParamSpec("P")
T = TypeVar("T")


# The delays of Google's ExponentialBackOff.
_DEFAULT_SCHEDULE = exponential(0.5, factor=1.5).cap(60).jitter(0.5)


@final
class Policy(Frozen):
    """Settings of retried calls: which failures to retry, when, and how often.

    Policies are immutable: they compare by their settings, are hashable if these are,
    and can be shared by threads and tasks. Their `repr` is the expression that builds
    them. A duration is a number of seconds, a `timedelta`, or a string such as
    ``"1h30m"``.

    >>> patient = Policy(schedule=[1, 5, "1m"], max_attempts=4, on=ConnectionError)
    >>> patient
    Policy(schedule=sequence([1.0, 5.0, 60.0]), max_attempts=4, on=ConnectionError)
    >>> patient.replace(max_attempts=None, max_elapsed="1h").max_elapsed
    3600.0
    >>> Policy(max_attempts=0)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: max_attempts must be an integer >= 1, got 0; \
the first attempt counts; None is unlimited  [out-of-range]

    Args:
        schedule: Delays before the retries: a schedule, a re-iterable of durations,
            or a generator function. When it ends, retrying stops. By default
            ``exponential(0.5, factor=1.5).cap(60).jitter(0.5)``.
        max_attempts: Maximum number of attempts, including the first. Count, >= 1;
            None is unlimited. By default 5, or unlimited where `max_elapsed` or a
            schedule that ends is given.
        max_elapsed: Time within which attempts may start, from the start of the
            first. It does not interrupt a running attempt; see `attempt_timeout`.
            A duration, >= 0; None is unlimited. By default 60 s, or unlimited where
            `schedule`, a rule's schedule or `max_attempts` is given.
        limits: Which of `max_attempts` and `max_elapsed` ends a call: ``"any"``, the
            default, the first that is reached; ``"all"``, the last.
        deadline: What to do if the next attempt would start after `max_elapsed`:
            ``"stop"``, the default, gives up without waiting; ``"clip"`` makes a
            last attempt at the limit; ``"overshoot"`` makes it late.
        on: Errors to retry: an Exception type, a tuple of them, or a predicate of
            the error, which may be async under `aretry`. ``()`` matches no error, for a
            policy that judges results. By default every `Exception` except those that a
            mistake in the code raises, such as a `TypeError` or a `NameError`; nothing
            wider than `Exception` is ever retried. Exceptions that are control flow,
            such as `StopIteration` or the ``Retry`` of Celery, are retried only if a
            type in `on` names them.
        give_up_on: Errors not to retry even if `on` or a rule matches them, in the
            same forms as `on`. ``()``, the default, matches no error.
        on_result: Predicate of the result: true rejects it, and the attempt counts
            as failed. None by default.
        exception_groups: When to retry an ExceptionGroup, such as one from an
            `asyncio.TaskGroup`: ``"all"``, the default, if `on` or a rule matches all
            errors in it; ``"any"``, if one; ``"whole"``, if it matches the group
            itself, whatever is in it. Unless ``"whole"``, `give_up_on` matches any
            error in it, and of several hints the longest applies.
        rules: Failures with their own schedule, limit or hint: a list of `Rule`, of
            which the first that matches applies. Empty by default.
        hint: Reads the delay that an error or a rejected result asks for: one of
            `retrykit.hints`, or a function. If it returns a duration, the delay is
            that, spread by `hint_jitter`, or the schedule's, whichever is longer; a
            `RetryAfter` sets the delay exactly; a `GiveUp` ends the call. So does a
            hint beyond `max_elapsed`, unless ``deadline="overshoot"``. None by
            default.
        hint_cap: Longest delay that a hint may ask for. A duration, >= 0; None is
            unlimited; 1 h by default.
        on_long_hint: What to do with a hint above `hint_cap`: ``"give_up"``, the
            default, ends the call; ``"clip"`` waits for `hint_cap`; ``"ignore"``
            waits for the next hint of `first_of`, or as the schedule says;
            ``"honor"`` waits as long as the hint asks.
        hint_jitter: Longest random addition to a hint, as a fraction of it, so that
            clients that were told the same time do not all return at once. The sum
            stays within `hint_cap` and `max_elapsed`. Dimensionless, 0 to 1; 0.1 by
            default; 0 adds nothing.
        budget: Limit on retries that many calls share: one of `retrykit.budgets`,
            or a subclass of `retrykit.budgets.Budget`. None by default.
        admission: Limits from `retrykit.limits`, such as a `CircuitBreaker`, that are
            asked in this order before each attempt, the first included. They are told
            whether the attempt failed: whether the conditions of this policy allow a
            retry. An attempt that is refused is not made, costs no budget, and is not a
            failure. In an HTTP client a `retrykit.limits.Registry` has a limit for each
            host. Empty by default.
        on_refused: What to do when a limit refuses an attempt: ``"give_up"``, the
            default, ends the call with its last error, or with a `RefusedError` if
            there is none; ``"wait"`` waits until the limit allows it, if `max_elapsed`
            does.
        hedge: When an attempt that takes long is sent again while its first send
            continues: a `Hedge`. The first success counts. Each send has an
            `attempt_timeout`, and the `budget` pays for each except the first.
            Functions and HTTP clients can be hedged. None by default.
        attempt_timeout: Time limit of each attempt. A duration, > 0; None, the
            default, is unlimited. Under `aretry` the attempt is cancelled, and fails
            with an `AttemptTimeout`, which is retried whatever `on` says. Blocking
            code cannot be cancelled: pass it the time limit with `AsArgument`.
            Under ``deadline="stop"`` it is at most the time left of `max_elapsed`.
        nested: What to do after a retried call inside this one has given up:
            ``"respect"``, the default, does not retry its error, nor one raised
            from it or while it was handled; ``"retry"`` retries them; ``"raise"``
            raises a `NestedRetryError`. In all three, the time limit of the outer
            call bounds the delays of the inner one.
        raises: What to raise on giving up: ``"last"``, the default, the last error,
            or a `RetryError` if the last result was rejected; ``"retry_error"``, a
            `RetryError` from it; ``"group"``, an ExceptionGroup of all errors that
            the state keeps, except records that were read from data. An error that `on`
            does not include is always raised directly.
        fallback: Value to return instead of raising an error on giving up; or a
            function of the state that returns the value, such as `last_result`, and may
            be async under `aretry`. The state has the ``args``, ``kwargs`` and
            ``function`` of the call. An error that `on` does not include is raised all
            the same. By default there is none.
        stop_event: A `threading.Event`, or under `aretry` an event of asyncio or trio,
            that ends the call before its next attempt. The wait for that attempt ends
            at once, unless `sleep` waits. None by default.
        sleep: Function that waits for a number of seconds in place of `time.sleep` or
            the sleep of the event loop. It may be async under `aretry`, and is not
            called in virtual time. None by default.
        redact: Whether to leave secrets out of logs, notes, states as data and
            durable histories: a failed request is described by error type, method,
            host, port, path and status, and URLs lose their user info, their query
            and each segment of the path that may be a token. A function gets each
            text after that, and returns it without further secrets. The message of
            the error itself is never changed. True by default.
        keep_tracebacks: Whether errors before the last keep their tracebacks, and so
            the local variables of every frame, until the call ends; they do under
            ``raises="group"``. By default they keep the file, line and function of
            each frame, for `RetryState.to_dict`.
        max_failures: Maximum number of failures that the state keeps: the first and
            the last ones. Count, >= 2; 100 by default. Before the last failure, an
            error is kept without its frames, and closed if it is an open response or
            has one; a rejected result that may be large, and whose predicate has no
            ``release``, is reduced to its type and the beginning of its ``repr``.
            Anything else that an error refers to, such as a body in an attribute, is
            kept.
        seed: Seed of the random delays of every call, for tests. Integer of at most
            64 bits, >= 0; None, the default, draws one for each call.
        observers: Functions called with every event of every call; or a dict of
            functions keyed by event name, as ``{"retry_scheduled": warn}``. The
            functions may be async under `aretry`. Empty by default.
        name: Name of the calls in logs, notes and states; by default the name of the
            function or the request.

    Raises:
        ConfigError: A setting is unknown, is invalid, or contradicts another.
    """

    schedule: Schedule = _DEFAULT_SCHEDULE
    max_attempts: int | None = 5
    max_elapsed: float | None = 60.0
    limits: LimitRule = "any"
    deadline: DeadlineRule = "stop"
    on: Condition = default_condition
    give_up_on: Condition = ()
    on_result: ResultCondition | None = None
    exception_groups: GroupRule = "all"
    rules: "tuple[Rule, ...]" = ()
    hint: "Hint | None" = None
    hint_cap: float | None = 3600.0
    on_long_hint: LongHintRule = "give_up"
    hint_jitter: float = 0.1
    budget: "Budget | None" = None
    admission: "tuple[Limit | Registry[Any], ...]" = ()
    on_refused: RefusedRule = "give_up"
    hedge: "Hedge | None" = None
    attempt_timeout: "float | AsArgument | None" = None
    nested: NestedRule = "respect"
    raises: Raises = "last"
    fallback: Any = NO_FALLBACK
    stop_event: StopEvent | None = None
    sleep: SleepFunction | None = None
    redact: Redaction = True
    keep_tracebacks: bool = False
    max_failures: int = 100
    seed: int | None = None
    observers: tuple[Observer, ...] = ()
    name: str | None = None
    limited_by: ClassVar[str | None] = None
    """The override that limits attempts in a test, as ``limit_retries(3)``; or None."""
    # The settings of DECIDING that were written. Not a setting, so not a field.
    _written: ClassVar[frozenset[str]] = frozenset()

    @takes_settings
    def __init__(self, **settings: Unpack[PolicySettings]) -> None:
        self._set(settings, _DEFAULTS, frozenset())

    def _set(
        self,
        given: Mapping[str, object],
        others: Mapping[str, object],
        written: frozenset[str],
        *,
        may_idle: bool = False,
    ) -> None:
        """Set the given settings, take all others from *others*, and check the policy.

        *may_idle* allows a policy that never retries.
        """
        checked = check_settings(given)
        values: dict[str, Any] = dict(zip(SETTINGS, _settings_of(others), strict=True))
        values |= checked
        if not (DECIDING | {"rules"}).isdisjoint(given):
            written |= DECIDING.intersection(given)
            elapsed = values["max_elapsed"] if "max_elapsed" in written else None
            # Delays of a rule also count as written.
            ruled = {"schedule"} if any(x.schedule for x in values["rules"]) else set()
            values |= default_limits(written | ruled, values["schedule"], elapsed)
        vars(self).update(values, _written=written)
        self._check_contradictions()
        if not may_idle and not _RELATED.isdisjoint(given):
            check_limits(self)

    def _check_contradictions(self) -> None:
        if self.deadline != "stop" and self.max_elapsed is None:
            rule = "'stop' where max_elapsed is None"
            suggestion = "set max_elapsed, or deadline='stop'"
            raise invalid_setting(
                "deadline", rule, self.deadline, suggestion, code="contradiction"
            )
        if self.limits == "all" and None in {self.max_attempts, self.max_elapsed}:
            rule = "'any' unless both max_attempts and max_elapsed are set"
            raise invalid_setting("limits", rule, self.limits, code="contradiction")
        excluded = types_of(self.give_up_on)
        retried = types_of(self.on)
        if self.on == () and not self.rules and self.on_result is None:
            rule = "at least one Exception type where no result is judged"
            raise invalid_setting(
                "on",
                rule,
                self.on,
                "write Exception, or on_result",
                code="never-retries",
            )
        if retried and not self.rules and _all_within(retried, excluded):
            rule = "narrower than on, or nothing is ever retried"
            suggestion = f"on is {format_value(self.on)}"
            raise invalid_setting(
                "give_up_on", rule, self.give_up_on, suggestion, code="never-retries"
            )
        for each in self.rules:
            if types_of(each.on) and _all_within(types_of(each.on), excluded):
                rule = "narrower than the on of each rule, or the rule never applies"
                suggestion = f"it includes all errors of {each!r}"
                raise invalid_setting(
                    "give_up_on",
                    rule,
                    self.give_up_on,
                    suggestion,
                    code="never-retries",
                )

    @takes_settings
    def replace(self, **changes: Unpack[PolicySettings]) -> Self:  # type: ignore[override]
        """Return a copy of this policy with some settings changed.

        Limits set neither in this policy nor by the changes have their defaults:

        >>> Policy().max_elapsed, Policy().replace(max_attempts=20).max_elapsed
        (60.0, None)

        Raises:
            ConfigError: A setting is unknown, is invalid, or contradicts another.
        """
        return self._replace(changes)

    def _replace(
        self, changes: Mapping[str, object], *, may_idle: bool = False
    ) -> Self:
        """Return a copy with some settings changed; *may_idle* is as in `_set`."""
        other = object.__new__(type(self))
        other._set(changes, vars(self), self._written, may_idle=may_idle)
        return other

    # For copy.replace.
    __replace__ = replace

    def _derive(self, make: Callable[["Policy"], T]) -> T:
        """Return the result of *make* for this policy, and keep it for the next use."""
        try:
            found: T = vars(self)["_derived"][make]
        except KeyError:
            pass  # An error of *make* does not show this one.
        else:
            return found
        made = make(self)
        vars(self).setdefault("_derived", {})[make] = made
        return made

    def non_default_settings(self) -> dict[str, Any]:
        """Return the settings that are not left to the defaults, in order.

        >>> Policy(max_attempts=5, redact=True).non_default_settings()
        {'max_attempts': 5}

        Returns:
            `schedule` and the limits if they were written, since they decide which
            limits the policy has by default; other settings if they differ from the
            defaults.
        """
        values = {name: getattr(self, name) for name in SETTINGS}
        return {
            name: value
            for name, value in values.items()
            if (name in self._written)
            or (name not in DECIDING and _differs(value, _DEFAULTS[name]))
        }

    @user_facing
    def decide(
        self, state: RetryState, failure: Failure, *, budgeted: bool = True
    ) -> Decision:
        """Decide whether to retry after a failure.

        Pure: the same arguments give the same answer; it does not sleep, read a
        clock or change anything. (A failing predicate is noted on the error and
        logged, as in a call, and a hint that parses a date may read the clock.)
        Nested calls that gave up do not count: only a running call knows them.

        >>> state = RetryState("fetch", seed=7, epoch=0.0)
        >>> failure = Failure(1, OSError("refused"), None, 0.0, 0.1, None)
        >>> Policy(schedule=[2.5]).decide(state, failure)
        Again(delay=2.5)
        >>> Policy(on=ValueError).decide(state, failure)
        Stop(reason=<StopReason.NOT_RETRYABLE: 'not_retryable'>)

        Args:
            state: The history before this failure.
            failure: The failed attempt; without an error, its result was rejected.
                An `ErrorRecord` counts as a retryable error, with the rule and the
                hint of the failure. If a failure has a hint, that hint counts, and none
                is read.
            budgeted: Whether the policy's budget, if it has one, pays for a retry.
                A budget has state, so the caller asks it and passes its answer.

        Returns:
            `Again` with the delay in seconds, >= 0, or `Stop` with the reason.

        Raises:
            ConfigError: *state* or *failure* is of the wrong type, a function of the
                policy is async, or a schedule returned an invalid delay.
        """
        _check_history(state, failure)
        check_predicates(self)
        error, matched = failure.error, self._match(failure)
        hint: float | RetryAfter | GiveUp | None = failure.hint
        unread = hint is None and not isinstance(error, ErrorRecord)
        if unread and not isinstance(matched, str):
            raised = error if isinstance(error, Exception) else None
            hint = find_hint(self, raised, failure.result, matched)
        elapsed = failure.started + failure.duration
        record, attempt = state._record, failure.attempt
        decision = decide(self, record, attempt, elapsed, error, matched, hint)
        if isinstance(decision, StopReason):
            return Stop(decision)
        return Again(decision) if budgeted else Stop(StopReason.BUDGET)

    def _match(self, failure: Failure) -> StopReason | int | None:
        error = failure.error
        if isinstance(error, Exception):
            own = self.attempt_timeout is not None and is_own_timeout(error)
            if isinstance(error, ExceptionGroup):
                return match_group(self, error)
            return match_error(self, error, own_timeout=own)
        if isinstance(error, BaseException):
            return StopReason.CANCELLED
        return failure.rule

    @user_facing
    def advance(
        self, state: RetryState, failure: Failure, decision: Again
    ) -> RetryState:
        """Return the state at the beginning of the attempt that `decide` decided on.

        Pure, like `decide`: with both, a call is replayed or simulated.

        >>> policy = Policy(schedule=[2.5, 5])
        >>> state = RetryState("fetch", seed=7, epoch=0.0)
        >>> failure = Failure(1, OSError("refused"), None, 0.0, 0.1, None)
        >>> later = policy.advance(state, failure, policy.decide(state, failure))
        >>> later.attempt, later.attempt_started, later.total_delay
        (2, 2.6, 2.5)
        >>> policy.decide(later, failure._replace(attempt=2, started=2.6))
        Again(delay=5.0)

        Args:
            state: The history before this failure; it is left as it is.
            failure: The failed attempt.
            decision: What `decide` returned for them.

        Returns:
            A new state, with the failure and its delay, in the next attempt, which
            begins when the delay is over.

        Raises:
            ConfigError: An argument is of the wrong type, such as a `Stop`; the failure
                is not the running attempt's; or a time is not a finite number >= 0.
        """
        _check_history(state, failure)
        check_instance("decision", decision, Again)
        if failure.attempt != state.attempt:
            expected = (
                f"{state.attempt}, the number of the attempt that the state is in"
            )
            raise invalid_setting(
                "failure.attempt", expected, failure.attempt, code="wrong-state"
            )
        check_number("failure.started", failure.started)
        check_number("failure.duration", failure.duration)
        check_number("decision.delay", decision.delay)
        matched, delay = self._match(failure), decision.delay
        rule = None if isinstance(matched, str) else matched
        record = state._record.copy()
        record.read_clock = None
        record.add_failure(failure._replace(delay=delay, rule=rule))
        record.begin_attempt(failure.started + failure.duration + delay)
        return view(record)

    def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function under this policy, without decorating it.

        >>> Policy().call(int, "7")
        7

        Raises:
            ConfigError: The function is async or cannot be retried, or the policy does
                not suit it.
        """
        result: T = build_driver(self, fn, awaited=False)(*args, **kwargs)
        return result

    async def acall(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call an async function under this policy, without decorating it.

        Raises:
            ConfigError: The function returns no awaitable or cannot be retried, or the
                policy does not suit it.
        """
        result: T = await build_driver(self, fn, awaited=True)(*args, **kwargs)
        return result

    def run(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> "Outcome[T]":
        """Call a function under this policy, and return its outcome.

        >>> outcome = Policy(schedule=[0, 0]).run(int, "seven")
        >>> outcome.ok, len(outcome.state.errors), outcome.state.stop_reason.value
        (False, 3, 'schedule_ended')
        >>> outcome.value_or(7)
        7

        Returns:
            An outcome with the state of the call, and with its value or the error that
            it gave up with.

        Raises:
            Exception: An error that `on` does not include, unchanged; or an error that
                the `fallback` raised.
            ConfigError: The function is async or cannot be retried, or the policy does
                not suit it.
        """
        # Imported before the call, which may use up what an import needs.
        with_value, with_error = outcomes.WithValue, outcomes.WithError
        events: deque[Event] = deque(maxlen=1)
        try:
            call = build_driver(self._with_observer(events.append), fn, awaited=False)
            return with_value(call(*args, **kwargs), events[-1].state)
        except Exception as error:
            if _is_unhandled(events):
                raise
            return with_error(error, events[-1].state)
        finally:
            # The tracebacks of the errors refer to this frame: break the cycle.
            events.clear()

    async def arun(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> "Outcome[T]":
        """Call an async function and return its outcome, as `run` does."""
        with_value, with_error = outcomes.WithValue, outcomes.WithError
        events: deque[Event] = deque(maxlen=1)
        try:
            call = build_driver(self._with_observer(events.append), fn, awaited=True)
            return with_value(await call(*args, **kwargs), events[-1].state)
        except Exception as error:
            if _is_unhandled(events):
                raise
            return with_error(error, events[-1].state)
        finally:
            # The tracebacks of the errors refer to this frame: break the cycle.
            events.clear()

    def _with_observer(self, observer: Observer) -> Self:
        return self.replace(observers=(*self.observers, observer))

    @user_facing
    def to_dict(self) -> dict[str, Any]:
        """Return this policy as plain data, for JSON and TOML.

        >>> Policy(max_attempts=None).to_dict()["max_attempts"]
        'unlimited'

        The schedule and the limits are left out if they were not written. A hint
        becomes its expression, and a budget its settings without its current level:
        the policy that is read back has a full one or, if the budget has a scope, the
        budget shared by that scope.

        Raises:
            ConfigError: A setting cannot be written as data: code, such as a predicate
                or an observer, a custom hint, budget or limit, or an exception type
                that cannot be imported.
        """
        # Imported here and below: most programs do not serialize policies.
        from retrykit._core.serialization import policy_to_dict  # noqa: PLC0415

        unwritten = DECIDING - self._written
        return policy_to_dict(
            {x: getattr(self, x) for x in SETTINGS if x not in unwritten}
        )

    @classmethod
    @user_facing
    def from_dict(cls, data: object) -> Self:
        """Return the policy that `to_dict` wrote.

        A missing setting has its default.

        >>> Policy.from_dict({"schedule": ["1s", "1m"], "on": "OSError"})
        Policy(schedule=sequence([1.0, 60.0]), on=OSError)

        Exception types are written as ``OSError`` or ``module:Name``; no module is
        imported to find them. A rule is a dict of ``on`` and ``schedule``,
        ``max_attempts`` or ``hint``; a hint is a string such as ``retry_after`` (see
        `retrykit.hints.parse_hint`); a budget is a dict of its ``kind``, its settings
        and its ``scope`` (see `retrykit.budgets.budget_from_dict`); and an `AsArgument`
        timeout is a dict such as ``{"argument": "timeout", "seconds": 5}``.

        Raises:
            ConfigError: A setting is unknown or invalid.
        """
        from retrykit._core.serialization import settings_from_dict  # noqa: PLC0415

        return cls(**settings_from_dict(data))

    @classmethod
    @user_facing
    def from_toml(cls, path: str | os.PathLike[str], name: str) -> "Policy":
        """Read a policy from a TOML file such as pyproject.toml, or from a JSON file.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "pyproject.toml")
        ...     _ = path.write_text('''
        ...         [tool.retrykit.policies.fetch]
        ...         extends = "zizq:retry_limit=10"
        ...         on = ["ConnectionError", "TimeoutError"]
        ...     ''')
        ...     policy = Policy.from_toml(path, "fetch")
        >>> policy.max_attempts, policy.on
        (11, (<class 'ConnectionError'>, <class 'TimeoutError'>))

        Reading imports no module and runs no code.

        Args:
            path: A file with a table ``[tool.retrykit.policies.NAME]``, or
                ``[policies.NAME]`` in a file without ``[tool.retrykit]``. If its
                name ends in ``.json``, it is JSON of the same structure.
            name: The name of the policy in the file. Its table has the keys of
                `from_dict`, and ``extends``: another policy of the file, or a
                preset, that gives the missing settings.

        Raises:
            ConfigError: The file cannot be read or has no such policy, or a
                setting is unknown or invalid.
        """
        from retrykit.config._files import load_policy  # noqa: PLC0415

        return load_policy(path, name)

    @classmethod
    @user_facing
    def from_env(
        cls,
        prefix: str,
        *,
        base: "Policy | None" = None,
        environ: Mapping[str, str] | None = None,
    ) -> "Policy":
        """Read a policy from environment variables.

        >>> environ = {"APP_RETRY_MAX_ATTEMPTS": "8", "APP_RETRY_ON": "OSError"}
        >>> Policy.from_env("APP_RETRY", environ=environ)
        Policy(max_attempts=8, on=OSError)

        The variable of a setting is the prefix and its name in capitals. A duration has
        a unit, such as ``90s``; ``unlimited`` sets a limit to None. A schedule is a
        list of durations such as ``1s, 5s, 1m``, or an expression such as
        ``exponential("500ms").cap("1m").full_jitter()``; `on` and `give_up_on` are
        names of exception types, separated by commas; a hint is an expression such as
        ``retry_after``; a flag is ``true`` or ``false``. APP_RETRY_EXTENDS is a preset
        such as ``zizq:retry_limit=10`` that replaces *base*. Rules, budgets, limits,
        hedges and code have no variable; they come from *base*.

        The variables of the job queue Zizq are _RETRY_LIMIT, _BACKOFF_BASE,
        _BACKOFF_EXPONENT and _BACKOFF_JITTER; base and jitter are milliseconds, or
        have a unit, and the three are given together. Without *base*, the other
        settings are then those of `retrykit.presets.zizq`, as they are with the
        prefix ``ZIZQ_DEFAULT``.

        >>> environ = {"ZIZQ_DEFAULT_RETRY_LIMIT": "3"}
        >>> Policy.from_env("ZIZQ_DEFAULT", environ=environ).max_attempts
        4

        Args:
            prefix: The beginning of the names of the variables, with or without
                the underscore after it. An empty variable counts as missing.
            base: The policy that gives the other settings, for example
                ``Policy.from_toml("policies.toml", "fetch")``.
            environ: The variables; by default the current ones of this process.

        Raises:
            ConfigError: A variable is invalid or misspelled, contradicts another, or
                has the name of a setting of another library or of one that is written
                in code; or only some of the three variables of Zizq's delays are set.
        """
        from retrykit.config._environment import policy_from_env  # noqa: PLC0415

        environ = os.environ if environ is None else environ
        return policy_from_env(prefix, environ, base=base)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        msg = f"Policy is frozen: {name} cannot be set; use its replace method"
        raise AttributeError(msg)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name != "_derived"}

    def __repr__(self) -> str:
        settings = self.non_default_settings()
        parts = (f"{name}={_format_setting(name, x)}" for name, x in settings.items())
        return f"Policy({', '.join(parts)})"


def _values(policy: Policy) -> tuple[object, ...]:
    return tuple(getattr(policy, name) for name in SETTINGS)


_DEFAULTS: dict[str, Any] = {name: getattr(Policy, name) for name in SETTINGS}

# In their order, without a loop of Python: a block often makes a policy when it runs.
_settings_of = itemgetter(*SETTINGS)

# The settings that decide whether a limit can take effect.
_RELATED = DECIDING | {"deadline", "hint", "limits", "rules"}


def _format_setting(name: str, value: Any) -> str:
    """Return a setting as an expression; observers of single events as a dict."""
    if name == "observers" and all(isinstance(each, EventHook) for each in value):
        functions = {each.kind: each.function for each in value}
        if len(functions) == len(value):
            items = (f"{kind!r}: {format_value(x)}" for kind, x in functions.items())
            return f"{{{', '.join(items)}}}"
    return format_value(value)


def _differs(value: object, default: object) -> bool:
    # A fallback may be anything, such as an array, which compares its elements.
    return value is not NO_FALLBACK if default is NO_FALLBACK else value != default


def _all_within(types: tuple[type, ...], others: tuple[type, ...]) -> bool:
    return all(issubclass(each, others) for each in types)


def _check_history(state: object, failure: object) -> None:
    check_instance("state", state, RetryState)
    check_instance("failure", failure, Failure)


def check_settings(given: Mapping[str, object]) -> dict[str, object]:
    """Return the values of settings; raise an error if one is unknown or invalid."""
    for name, value in given.items():
        if name not in SETTINGS:
            raise _unknown_setting(name, value)
    return {name: SETTINGS[name].check(name, value) for name, value in given.items()}


def _unknown_setting(name: str, value: object) -> ConfigError:
    suggestion = suggest_setting(name, SETTINGS)
    shown = safe_repr(name).strip("'")
    message = f"{shown} is not a policy setting, got {safe_repr(value)}; {suggestion}"
    return ConfigError(message, "unknown-name")


def _is_unhandled(events: deque[Event]) -> bool:
    """Return whether `Policy.run` raises the error of a call.

    It does if the call did not begin, its fallback failed, or the error is not one to
    retry.
    """
    if not events or events[-1].state.used_fallback:
        return True
    return events[-1].state.stop_reason is StopReason.NOT_RETRYABLE
