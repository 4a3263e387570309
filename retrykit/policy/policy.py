"""The policy: when a failed call is retried, and when it is given up."""

import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, ParamSpec, Self, TypeVar, Unpack, final

from retrykit._internal.error_conditions import Condition
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting, safe_repr
from retrykit.budgets.base import Budget
from retrykit.errors import ConfigError
from retrykit.execution.drivers import build_driver
from retrykit.hints.base import Hint, read_hint
from retrykit.policy.conditions import (
    ResultCondition,
    check_predicates,
    format_condition,
)
from retrykit.policy.decision import Again, Decision, Stop, decide, match_error
from retrykit.policy.rules import Rule, types_of
from retrykit.policy.timeouts import AsArgument
from retrykit.policy.validators import (
    VALIDATORS,
    Changes,
    DeadlineRule,
    LongHintRule,
    NestedRule,
    Raises,
)
from retrykit.schedules import exponential
from retrykit.schedules.base import Schedule
from retrykit.state.events import Event, Observer
from retrykit.state.final_error import is_own_timeout
from retrykit.state.records import ErrorRecord
from retrykit.state.retry_state import Failure, RetryState, StopReason
from retrykit.state.signals import GiveUp, RetryAfter, Signal

__all__ = ["Outcome", "Policy"]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@final
class Outcome(Frozen, Generic[T_co]):
    """What came of a call: its value or its error, and its history.

    Attributes:
        value: The result; None if the call gave up.
        error: What the call would have raised; None if it succeeded.
        state: The history of the call.
    """

    __slots__ = ("error", "state", "value")
    value: T_co | None
    error: Exception | None
    state: RetryState

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None


# The delays of Google's ExponentialBackOff. Five attempts within a minute are what
# an interactive caller can wait for.
_DEFAULT_SCHEDULE = exponential(0.5, factor=1.5).cap(60).jitter(0.5)


@final
@dataclass(frozen=True, init=False, repr=False)
class Policy:
    """When a failed call is made again, and when no more: a frozen value.

    Policies compare, hash (if their parts do), print as the expression that
    builds them, and may be shared by threads and tasks: nothing that happens
    in a call is kept in them.

    >>> patient = Policy(schedule=[1, 5, "1m"], max_attempts=4, on=ConnectionError)
    >>> patient
    Policy(schedule=sequence([1.0, 5.0, 60.0]), max_attempts=4, on=ConnectionError)
    >>> patient.replace(max_attempts=None, max_elapsed="1h").max_elapsed
    3600.0
    >>> Policy(max_attempts=0)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: max_attempts must be a whole number >= 1, got 0; \
the first call counts; None is unlimited

    Args:
        schedule: The delays: a schedule, a re-iterable of durations, or a
            generator function. Where it ends, retrying ends. By default
            ``exponential(0.5, factor=1.5).cap(60).jitter(0.5)``.
        max_attempts: Most calls of the function in all, the first included.
            Count, >= 1; None is unlimited; 5 by default.
        max_elapsed: Time allowed in all, from the start of the first attempt.
            A duration, >= 0; None is unlimited; 60 s by default.
        deadline: What happens when the next attempt could not start within
            `max_elapsed`: ``"stop"`` does not wait for it, ``"clip"`` makes one
            last attempt at the limit, ``"overshoot"`` stops only once the
            limit has passed.
        on: The errors that deserve another attempt: an Exception type, a tuple
            of them, or a predicate of the error, which under `aretry` may be
            async. `Exception` by default; nothing wider is ever retried.
        give_up_on: Errors that end the call at once although `on` includes
            them, in the same forms; none by default.
        on_result: A predicate of the result: where it is true, the result is
            treated as a failure. None by default.
        rules: Rules for some errors (`retrykit.policy.rules.Rule`), each with its own
            delays or attempts; the first one that accepts an error holds for
            it. None by default.
        hint: A function of the error, or of the refused result, that reads how
            long it asks to wait: one of `retrykit.hints`, or your own. Of a
            duration and the schedule's delay, the longer one is waited;
            RetryAfter is waited exactly; GiveUp ends the call. None by default.
            A hint that goes beyond `max_elapsed` ends the call.
        hint_cap: The longest wait that a hint may ask for. A duration, >= 0;
            None is unlimited; 1 h by default.
        on_long_hint: What happens where a hint asks for more: ``"give_up"``, the
            default, ends the call, ``"clip"`` waits for `hint_cap`,
            ``"honor"`` waits as long as it is asked to.
        budget: What must pay for each retry, and is shared by many calls: one
            of `retrykit.budgets`, or your own. None by default.
        attempt_timeout: Time allowed for each attempt. A duration, > 0; None,
            the default, is unlimited. An attempt under `aretry` is cancelled,
            and fails with an AttemptTimeout, which is retried whatever `on`
            says. A blocking one cannot be ended: `retrykit.policy.timeouts.AsArgument`
            hands the time to a parameter of the function. Under ``"stop"`` it
            is never more than what remains of `max_elapsed`.
        nested: What happens when a retried call inside of this one has given up:
            ``"respect"``, the default, does not retry its error, nor one that
            comes from it or from handling it; ``"retry"`` does; ``"raise"``
            raises a NestedRetryError. The time of a call around bounds the
            waits inside of it, under all of them.
        raises: What a call that gives up raises: ``"last"``, the last error
            itself; ``"retry_error"``, a `RetryError` from it; ``"group"``, an
            ExceptionGroup of all errors that the state keeps (records from
            another process are no errors to raise). An error that `on` does
            not include is let out as it is. Where the last attempt gave a
            refused result there is no last error: a `RetryError` is raised.
        redact: Whether secrets are left out of what is written of errors: in logs,
            notes, states as data and durable histories. An error that has a request
            or a response is told by its type, method, host and status; user info
            and queries of URLs are left out of all texts. The error itself is never
            changed. True by default.
        keep_tracebacks: Whether errors before the last keep their tracebacks, and
            with them all local variables of the functions that raised them, until
            the call has ended; under ``raises="group"`` they do. By default they
            keep the file, line and function of each frame, for
            `RetryState.to_dict`.
        max_failures: How many failures the state keeps: the first and the last
            ones. Count, >= 2; 100 by default.
        seed: The seed of every call's chance, for tests. An integer of at most 64
            bits, >= 0; by default each call draws its own.
        observers: Functions that are told every event of every call.
        name: What calls are called in logs, notes and states; by default the
            name of the function.

    Raises:
        ConfigError: A setting is unknown or wrong, or contradicts another.
    """

    schedule: Schedule = _DEFAULT_SCHEDULE
    max_attempts: int | None = 5
    max_elapsed: float | None = 60.0
    deadline: DeadlineRule = "stop"
    on: Condition = Exception
    give_up_on: Condition = ()
    on_result: ResultCondition | None = None
    rules: tuple[Rule, ...] = ()
    hint: Hint | None = None
    hint_cap: float | None = 3600.0
    on_long_hint: LongHintRule = "give_up"
    budget: Budget | None = None
    attempt_timeout: float | AsArgument | None = None
    nested: NestedRule = "respect"
    raises: Raises = "last"
    redact: bool = True
    keep_tracebacks: bool = False
    max_failures: int = 100
    seed: int | None = None
    observers: tuple[Observer, ...] = ()
    name: str | None = None

    def __init__(self, **settings: Unpack[Changes]) -> None:
        self._set(settings, _DEFAULTS)

    def _set(self, given: Mapping[str, object], others: Mapping[str, object]) -> None:
        for name, value in given.items():
            if name not in VALIDATORS:
                raise _unknown(name, value)
        for name, check in VALIDATORS.items():
            value = check(name, given[name]) if name in given else others[name]
            object.__setattr__(self, name, value)
        self._check_together()

    def _check_together(self) -> None:
        if self.deadline != "stop" and self.max_elapsed is None:
            rule = "'stop' where max_elapsed is None"
            suggestion = (
                "set max_elapsed, the time that it is about, or deadline='stop'"
            )
            raise invalid_setting("deadline", rule, self.deadline, suggestion)
        never = types_of(self.give_up_on)
        retried = types_of(self.on)
        if retried and not self.rules and _within(retried, never):
            rule, told = "narrower than on, or nothing is ever retried", self.on
            raise invalid_setting(
                "give_up_on", rule, self.give_up_on, f"on is {format_condition(told)}"
            )
        for each in self.rules:
            if types_of(each.on) and _within(types_of(each.on), never):
                rule = "narrower than the on of each rule, or the rule never holds"
                suggestion = f"there is {each!r}"
                raise invalid_setting("give_up_on", rule, self.give_up_on, suggestion)

    def replace(self, **changes: Unpack[Changes]) -> Self:
        """Return the same policy with some settings changed.

        Args:
            **changes: Settings, as for `Policy`.

        Raises:
            ConfigError: A setting is wrong, or contradicts another.
        """
        other = object.__new__(type(self))
        other._set(changes, {name: getattr(self, name) for name in VALIDATORS})
        return other

    def decide(
        self, state: RetryState, failure: Failure, *, budgeted: bool = True
    ) -> Decision:
        """Decide what follows a failure: `Again` with a delay, or `Stop`.

        Pure: the same arguments give the same answer, and nothing is written,
        slept or read from a clock. (A predicate of the policy that fails is
        noted on the error and logged, as in a call; and a hint that reads a date
        without a clock of its own beside it reads ours.) Whether a call inside
        of this one had given up is known to a call that runs, and not here.

        >>> state = RetryState("fetch", seed=7, epoch=0.0)
        >>> failure = Failure(1, OSError("refused"), None, 0.0, 0.1, None)
        >>> Policy(schedule=[2.5]).decide(state, failure)
        Again(delay=2.5)
        >>> Policy(on=ValueError).decide(state, failure)
        Stop(reason=<StopReason.NOT_RETRYABLE: 'not retryable'>)

        Args:
            state: The history before this failure.
            failure: The failed attempt; one without an error is of a refused
                result. Conditions and the hint are asked about errors and
                results only: a record of one is decided as an error that may
                be retried, by the rule and the hint that the failure names. A
                hint that it names is not asked for again.
            budgeted: Whether the policy's budget, if it has one, pays for a
                retry. A budget is shared, so it is asked by who carries out
                the decision, and its answer is handed in.

        Returns:
            `Again` with seconds, >= 0, or `Stop` with its reason.

        Raises:
            ConfigError: A predicate of the policy must be awaited, or its
                schedule gave what is no delay.
        """
        check_predicates(self)
        error = failure.error
        ruled: StopReason | int | None = failure.rule
        if isinstance(error, Exception):
            own = self.attempt_timeout is not None and is_own_timeout(error)
            ruled = match_error(self, error, own_timeout=own)
        elif isinstance(error, BaseException):
            ruled = StopReason.CANCELLED
        hint: float | RetryAfter | GiveUp | None = failure.hint
        unread = hint is None and not isinstance(error, ErrorRecord | Signal)
        if self.hint is not None and unread and not isinstance(ruled, str):
            raised = error if isinstance(error, Exception) else None
            outcome = failure.result if raised is None else raised
            hint = read_hint(self.hint, outcome, raised)
        elapsed = failure.started + failure.duration
        follows = decide(self, state, failure.attempt, elapsed, error, ruled, hint)
        if isinstance(follows, StopReason):
            return Stop(follows)
        return Again(follows) if budgeted else Stop(StopReason.BUDGET)

    def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function under this policy, without decorating it.

        >>> Policy().call(int, "7")
        7

        Raises:
            ConfigError: The function must be awaited.
        """
        result: T = build_driver(self, fn, awaited=False)(*args, **kwargs)
        return result

    async def acall(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a coroutine function under this policy, and await it.

        Raises:
            ConfigError: What the function returns cannot be awaited.
        """
        result: T = await build_driver(self, fn, awaited=True)(*args, **kwargs)
        return result

    def run(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[T]:
        """Call a function under this policy, and return what came of it.

        >>> outcome = Policy(schedule=[0, 0]).run(int, "seven")
        >>> outcome.ok, len(outcome.state.errors), outcome.state.stop_reason.value
        (False, 3, 'schedule ended')

        Returns:
            The value or the error that the call gave up with, and its state.

        Raises:
            Exception: An error that `on` does not include, as it is.
            ConfigError: The function must be awaited.
        """
        events: deque[Event] = deque(maxlen=1)
        try:
            call = build_driver(self._heard(events), fn, awaited=False)
            return Outcome(call(*args, **kwargs), None, events[-1].state)
        except Exception as error:
            if _not_handled(events):
                raise
            return Outcome(None, error, events[-1].state)
        finally:
            # The errors' tracebacks hold this frame, and it must not hold them.
            events.clear()

    async def arun(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[T]:
        """Await a coroutine function, and return what came of it, as `run` does.

        Returns:
            What `run` returns, and it raises what `run` raises.
        """
        events: deque[Event] = deque(maxlen=1)
        try:
            call = build_driver(self._heard(events), fn, awaited=True)
            return Outcome(await call(*args, **kwargs), None, events[-1].state)
        except Exception as error:
            if _not_handled(events):
                raise
            return Outcome(None, error, events[-1].state)
        finally:
            # The errors' tracebacks hold this frame, and it must not hold them.
            events.clear()

    def _heard(self, events: deque[Event]) -> Self:
        return self.replace(observers=(*self.observers, events.append))

    def to_dict(self) -> dict[str, Any]:
        """Return this policy as plain data, for JSON and TOML.

        >>> Policy(max_elapsed=None, schedule=[1]).to_dict()["max_elapsed"]
        'unlimited'

        A hint is written as the text of its name, and a budget by its settings.
        What a budget has left is no setting: the policy that comes back has a
        new one, which is full, or, if it has a scope, the one that is shared
        by that scope.

        Raises:
            ConfigError: A setting is code: a predicate, an observer, a
                generator function, a hint or a budget of your own.
        """
        # Here and below: most programs write and read no policies.
        from retrykit.policy.serialization import policy_to_dict  # noqa: PLC0415

        return policy_to_dict(self)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the policy that `to_dict` wrote.

        A setting that is missing has its default.

        >>> Policy.from_dict({"schedule": ["1s", "1m"], "on": "OSError"})
        Policy(schedule=sequence([1.0, 60.0]), on=OSError)

        Exception types are named as ``OSError`` or ``module:Name``; no module
        is imported to find them. A rule is a dict of ``on`` and of ``schedule``,
        ``max_attempts`` or both; a hint is a text, as ``retry_after`` (see
        `retrykit.hints.hint_named`); a budget is a dict of its ``kind``, its
        settings and its ``scope`` (see `retrykit.budgets.budget_from`); and an
        ``attempt_timeout`` that the function is told is a dict, as
        ``{"argument": "timeout", "seconds": 5}``.

        Raises:
            ConfigError: A setting is unknown or wrong.
        """
        from retrykit.policy.serialization import policy_from_dict  # noqa: PLC0415

        return cls(**policy_from_dict(data))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], name: str) -> Self:
        """Return a policy of a TOML file, as pyproject.toml, or of a JSON file.

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
            name: The name of the policy in the file. What is in its table is
                what `from_dict` reads, and ``extends``: the name of another
                policy of the file, or a preset, whose settings hold where this
                table has none.

        Raises:
            ConfigError: The file cannot be read or has no such policy, or a
                setting is unknown or wrong.
        """
        # Imported here: only who keeps policies in files needs it.
        from retrykit.config.files import load_policy  # noqa: PLC0415

        return load_policy(path, name)

    @classmethod
    def from_env(
        cls,
        prefix: str,
        *,
        base: Self | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the policy that environment variables ask for.

        >>> told = {"APP_RETRY_MAX_ATTEMPTS": "8", "APP_RETRY_ON": "OSError"}
        >>> Policy.from_env("APP_RETRY", environ=told)
        Policy(max_attempts=8, on=OSError)

        With the prefix ``APP_RETRY`` they are APP_RETRY_SCHEDULE (``1s, 5s, 1m``,
        or an expression, as ``exponential("500ms").cap("1m").full_jitter()``),
        _MAX_ATTEMPTS, _MAX_ELAPSED (``90s``; both may be ``unlimited``), _DEADLINE,
        _ON and _GIVE_UP_ON (names of exception types, separated by commas),
        _HINT (as ``retry_after``), _HINT_CAP, _HINT_OVER, _ATTEMPT_TIMEOUT (both
        times may be ``unlimited``, too), _OUTER, _RAISES, _REDACT and
        _KEEP_TRACEBACKS (``true`` or ``false``), _MAX_FAILURES, _SEED, _NAME, and
        _EXTENDS, a preset such as ``zizq:retry_limit=10`` that takes the place of
        *base*. Rules and budgets have no variable: they are no matter of one text,
        and come from *base*.

        And those of the job queue Zizq: _RETRY_LIMIT, _BACKOFF_BASE,
        _BACKOFF_EXPONENT, _BACKOFF_JITTER; base and jitter are milliseconds, or
        have a unit, and the three are given together. Without *base*, the rest
        is then as in `retrykit.presets.zizq`, and so it is with the prefix
        ``ZIZQ_DEFAULT``.

        >>> told = {"ZIZQ_DEFAULT_RETRY_LIMIT": "3"}
        >>> Policy.from_env("ZIZQ_DEFAULT", environ=told).max_attempts
        4

        Args:
            prefix: What the names of the variables begin with, with or without
                the underscore after it. A variable that is empty is not given.
            base: The policy whose settings hold where no variable is given, as
                one from a file: ``base=Policy.from_toml("policies.toml", "fetch")``.
            environ: The variables; by default those of this process, as they
                are now.

        Raises:
            ConfigError: A variable is wrong or nearly one of these, contradicts
                another, or a part of the formula is missing.
        """
        # Imported here: only who keeps settings in variables needs it.
        from retrykit.config.environment import settings_from_env  # noqa: PLC0415

        told = os.environ if environ is None else environ
        return settings_from_env(prefix, told, base=base)

    def __repr__(self) -> str:
        told = (
            f"{name}={format_condition(getattr(self, name))}"
            for name in VALIDATORS
            if getattr(self, name) != _DEFAULTS[name]
        )
        return f"Policy({', '.join(told)})"


_DEFAULTS: dict[str, object] = {each.name: each.default for each in fields(Policy)}


def _within(kinds: tuple[type, ...], others: tuple[type, ...]) -> bool:
    return all(issubclass(kind, others) for kind in kinds)


def _unknown(name: str, value: object) -> ConfigError:
    # Imported here: only who mistypes needs it, and everyone would wait for it.
    from retrykit.policy.setting_aliases import suggest_setting  # noqa: PLC0415

    suggestion = suggest_setting(name, VALIDATORS)
    shown = safe_repr(name).strip("'")
    return ConfigError(
        f"{shown} is no setting of a policy, got {safe_repr(value)}; {suggestion}"
    )


def _not_handled(events: deque[Event]) -> bool:
    """Return whether an error is none of the policy's business."""
    return not events or events[-1].state.stop_reason is StopReason.NOT_RETRYABLE
