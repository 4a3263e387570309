"""Calls of a simulation, and the decisions of their policy after each failure."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from retrykit._conditions import BY_TYPE, default_condition, matches_condition
from retrykit._core.call_record import CallRecord, Terms, new_record
from retrykit._core.common_failures import Delays
from retrykit._core.decision import (
    EPSILON,
    apply_hint,
    decide,
    find_hint,
    match_error,
    match_group,
)
from retrykit._core.failures import Failure
from retrykit._core.final_error import is_own_timeout
from retrykit._core.limits import most_attempts
from retrykit._core.policy import Policy
from retrykit._core.result_conditions import check_predicates
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import invalid_setting
from retrykit.budgets._base import Budget
from retrykit.budgets._fleet import FleetBudget
from retrykit.budgets._shared_budgets import SerializableBudget
from retrykit.errors import AttemptTimeout, Signal
from retrykit.schedules._base import is_uniform
from retrykit.schedules._randomness import SharedDraws
from retrykit.simulate._events import SECOND, Event, nanoseconds
from retrykit.simulate._failures import TIMED_OUT

if TYPE_CHECKING:
    from retrykit.simulate._clients import Clients

__all__ = ["Attempt", "BySchedule", "Call", "Process", "Rules", "check_policy"]
__all__ += ["new_budget"]


@final
class Call:
    """A call, from its first attempt until it succeeds or gives up.

    Attributes:
        process: The process that makes it.
        began: When it began, in nanoseconds.
        attempt: Number of the running or last attempt, from 1; 0 before the first.
        waiting: The attempt whose answer it waits for; None if there is none.
        timer: The event of that attempt's timeout, or of the next attempt; None if
            there is none.
        cost: What the last retry cost the budget; None if no retry was paid for.
        draws: The draws of its delays, which several calls share.
        number: Its number in these draws, from 0.
        record: What the policy has to know about earlier failures; None if nothing.
        user: The number of the user who makes it; None if the load is open.
    """

    __slots__ = (
        "attempt",
        "began",
        "cost",
        "draws",
        "number",
        "process",
        "record",
        "timer",
        "user",
        "waiting",
    )

    def __init__(
        self,
        process: "Process",
        began: int,
        draws: tuple[SharedDraws, int],
        user: int | None,
    ) -> None:
        self.process, self.began = process, began
        self.draws, self.number = draws
        self.user = user
        self.attempt = 0
        self.waiting: Attempt | None = None
        self.timer: Event | None = None
        self.cost: float | None = None
        self.record: CallRecord | None = None


@final
class Attempt:
    """An attempt on its way to the server and back.

    Attributes:
        call: Its call.
        sent: When it was sent, in nanoseconds.
        deadline: When it times out, in nanoseconds.
        arrives: When it reaches the server, in nanoseconds; -1 until that is known.
        number: The number of its arrival among the events; -1 until that is known.
    """

    __slots__ = ("arrives", "call", "deadline", "number", "sent")

    def __init__(self, call: Call, sent: int, deadline: int) -> None:
        self.call, self.sent, self.deadline = call, sent, deadline
        self.arrives = self.number = -1


@final
class BySchedule(NamedTuple):
    """Decisions that depend only on the attempt, its draw and the time.

    Attributes:
        kinds: For each way to fail, whether it is retried and these decisions apply.
        most: Maximum number of attempts, or infinity.
        limit: A retry before this time, in seconds since the call began, is made;
            `Rules.delay_after` decides about later ones.
        delays: The lowest delay before a retry, and its step for each unit of the draw.
        time_limit: When the attempts of a call are ended, in nanoseconds since it
            began; None if no such limit applies.
    """

    kinds: list[bool]
    most: float
    limit: float
    delays: Delays
    time_limit: int | None


@final
class Rules:
    """The decisions of one policy, as `Policy.decide` makes them.

    Conditions and hints are asked once for each way to fail, since all attempts that
    fail in the same way raise the same error.

    Args:
        policy: The policy.
        errors: The error of each way to fail.
        own_timeout: The way to fail that is the timeout of the policy.

    Attributes:
        time_limit: When the attempts of a call are ended, in nanoseconds since it
            began; None if no such limit applies.
    """

    def __init__(
        self,
        policy: Policy,
        errors: Sequence[Exception],
        own_timeout: int = TIMED_OUT,
    ) -> None:
        self._policy = policy
        self._errors: list[Exception] = [*errors]
        own = policy.attempt_timeout
        if isinstance(own, int | float):
            self._errors[own_timeout] = AttemptTimeout(own)
        self._answers = [_answer(policy, error) for error in self._errors]
        # The delays of such a policy depend on the attempt and its draw alone.
        self._simple = (
            is_uniform(policy.schedule) and not policy.rules and policy.limits == "any"
        )
        self._by_schedule = [
            self._simple and hint is None and not isinstance(error, Signal)
            for error, (_, hint) in zip(self._errors, self._answers, strict=True)
        ]
        self._delays = Delays(policy.schedule)
        allowed = policy.max_elapsed
        self._limit = math.inf if allowed is None else allowed - EPSILON
        self._most = most_attempts(policy) or math.inf
        self._terms = Terms(
            "simulated",
            allowed,
            policy.max_failures,
            policy.max_attempts,
        )
        self.time_limit: int | None = None
        ends = policy.deadline == "stop" and policy.limits == "any"
        if own is not None and allowed is not None and ends:
            self.time_limit = nanoseconds(allowed)

    @property
    def forgetful(self) -> bool:
        """True if decisions do not depend on earlier delays and errors."""
        return self._simple

    def by_schedule(self) -> "BySchedule":
        """Return the decisions for which `delay_after` need not be called."""
        return BySchedule(
            [
                known and self.retries(kind)
                for kind, known in enumerate(self._by_schedule)
            ],
            self._most,
            self._limit,
            self._delays,
            self.time_limit,
        )

    def retries(self, kind: int) -> bool:
        """Return whether the conditions allow a retry after a way to fail."""
        return not isinstance(self._answers[kind][0], str)

    def error(self, kind: int) -> Exception:
        """Return the error of a way to fail."""
        return self._errors[kind]

    def time_left(self, call: Call, now: int) -> int | None:
        """Return the time that a call has left, in nanoseconds, >= 0.

        None if its attempts have no such limit.
        """
        limit = self.time_limit
        return None if limit is None else max(0, call.began + limit - now)

    def delay_after(self, call: Call, now: int, kind: int) -> float | None:
        """Return the delay before the next attempt, in seconds; None if none follows.

        Args:
            call: The call, whose attempt has failed.
            now: The time, in nanoseconds.
            kind: The way in which it failed.
        """
        matched, hint = self._answers[kind]
        if isinstance(matched, str):
            return None
        attempt, elapsed = call.attempt, (now - call.began) / SECOND
        if self._by_schedule[kind]:
            if attempt >= self._most:
                return None
            delay, step = self._delays[attempt]
            if step:
                # As `uniform_between`.
                delay += step * call.draws[attempt][call.number]
            if elapsed + delay < self._limit:
                return delay
        record, error = self._record_of(call), self._errors[kind]
        decision = decide(self._policy, record, attempt, elapsed, error, matched, hint)
        if isinstance(decision, str):
            return None
        if not self._simple:
            record.add_failure(
                Failure(attempt, error, None, elapsed, 0.0, decision, matched)
            )
        return decision

    def match(self, kind: int) -> Any:
        """Return the answer of `match_error` to a way to fail.

        That is the index of a rule, None, or why the attempt is not retried.
        """
        return self._answers[kind][0]

    def delay_of_hint(self, call: Call, now: int, hint: Any) -> float | None:
        """Return the delay that a hint asks for, in seconds; None if not allowed."""
        policy, elapsed = self._policy, (now - call.began) / SECOND
        allowed = None if policy.limits == "all" else policy.max_elapsed
        record = self._record_of(call)
        delay = apply_hint(policy, record, call.attempt, elapsed, allowed, 0.0, hint)
        return None if isinstance(delay, str) else delay

    def _record_of(self, call: Call) -> CallRecord:
        """Return the record of a call, with its current attempt."""
        record = call.record
        if record is None:
            seed = call.draws.seed + call.number
            record = call.record = new_record(self._terms, seed)
        record.attempt = call.attempt
        return record


@final
class Process:
    """A process of a fleet, with a budget of its own.

    Attributes:
        clients: The clients that it belongs to.
        rules: The decisions of their policy.
        timeout: How long it waits for an answer, in nanoseconds.
        time_limit: As in `Rules`.
        seed: The seed of the policy; None if calls have seeds of their own.
        budget: Its budget; None if the policy has none.
        delay_after: A function of a call, the time, and the way in which its attempt
            failed then. It pays for the retry, and returns the delay before it, in
            seconds; None if no attempt follows.
    """

    __slots__ = (
        "budget",
        "clients",
        "delay_after",
        "rules",
        "seed",
        "time_limit",
        "timeout",
    )

    def __init__(self, clients: "Clients", rules: Rules) -> None:
        self.clients, self.rules = clients, rules
        self.timeout, self.time_limit = nanoseconds(clients.timeout), rules.time_limit
        self.seed = clients.policy.seed
        self.budget = new_budget(clients.policy.budget)
        self.delay_after: Callable[[Call, int, int], float | None]
        self.delay_after = rules.delay_after if self.budget is None else self._pay

    def _pay(self, call: Call, now: int, kind: int) -> float | None:
        """Pay for the next attempt, and return the delay before it.

        None if no attempt follows.
        """
        return self.pay(call, kind, self.rules.delay_after(call, now, kind))

    def pay(self, call: Call, kind: int, delay: float | None) -> float | None:
        """Record a failure in the budget, and pay for a retry.

        Returns:
            *delay*; None if it was None, or the budget does not pay.
        """
        budget = self.budget
        if budget is None:
            return delay
        # In the order of a call.
        retryable = self.rules.retries(kind)
        budget.failed(first=call.attempt == 1, retryable=retryable)
        if delay is None:
            return None
        cost: Any = budget.withdraw(self.rules.error(kind))
        if cost is None:
            return None
        call.cost = cost
        return delay

    def succeed(self, call: Call) -> None:
        """Tell the budget that a call has succeeded."""
        if self.budget is not None:
            self.budget.deposit(call.cost)


def _answer(policy: Policy, error: Exception) -> tuple[Any, Any]:
    """Return the answers of the conditions and of the hint to an error.

    The hint is not asked about an error that is not retried.
    """
    if isinstance(error, ExceptionGroup):
        matched = match_group(policy, error)
    else:
        own = policy.attempt_timeout is not None and is_own_timeout(error)
        matched = match_error(policy, error, own_timeout=own)
    if isinstance(matched, str):
        return matched, None
    return matched, find_hint(policy, error, None, matched)


def new_budget(budget: Budget | None) -> Budget | None:
    """Return a new budget with the settings of another one; None for None.

    A budget of the user's own class is copied with its state.
    """
    if isinstance(budget, SerializableBudget):
        return type(budget)(**budget.settings)
    return copy.deepcopy(budget)


def check_policy(
    policy: Policy,
    errors: Sequence[Exception],
    needed: int | None,
    own_timeout: int = TIMED_OUT,
) -> Rules:
    """Return the decisions of a policy, if it can be simulated.

    Args:
        policy: The policy.
        errors: The error of each way to fail.
        needed: The way in which attempts fail in the outage, which the policy must
            retry; None if it need not retry any.
        own_timeout: The way to fail that is the timeout of the policy.

    Raises:
        ConfigError: It cannot.
    """
    check_predicates(policy, "write a sync one for the simulation")
    for name, none in _NOT_SIMULATED.items():
        value = getattr(policy, name)
        if value != none:
            rule = f"{none!r} in a simulation"
            suggestion = f"it is not simulated: policy.replace({name}={none!r})"
            raise invalid_setting(name, rule, value, suggestion, code="not-here")
    for each in policy.rules:
        if each.on_result is not None:
            rule = "None in the rules of a simulated policy"
            suggestion = "leave out the rule: every answer of the server is a success"
            raise invalid_setting(
                "on_result", rule, each.on_result, suggestion, code="not-here"
            )
    _check_user_code(policy, errors)
    _check_budget(policy.budget)
    rules = Rules(policy, errors, own_timeout)
    if needed is not None and not rules.retries(needed):
        error = rules.error(needed)
        rule = f"a condition that matches {error!r}, with which the outage is simulated"
        suggestion = "give the error that your client raises: simulate(errors=...)"
        raise invalid_setting("on", rule, policy.on, suggestion, code="contradiction")
    return rules


_NOT_SIMULATED: Final[dict[str, Any]] = {
    "stop_event": None,
    "sleep": None,
    "on_result": None,
}


def _check_user_code(policy: Policy, errors: Sequence[Exception]) -> None:
    """Raise an error if a predicate or a hint fails on the simulated errors."""
    asked: list[tuple[str, Any]] = [
        ("on", policy.on),
        ("give_up_on", policy.give_up_on),
    ]
    if isinstance(policy.budget, FleetBudget):
        asked.append(("timeouts", policy.budget.timeouts))
    hints: list[Any] = [policy.hint]
    for each in policy.rules:
        asked.append(("on", each.on))
        hints.append(each.hint)
    for error in errors:
        for name, condition in asked:
            if isinstance(condition, BY_TYPE) or condition is default_condition:
                continue
            try:
                matches_condition(name, condition, error)
            except Exception as fault:  # noqa: BLE001  any code may be in it
                raise _needs_more(name, condition, error, fault) from None
        for hint in hints:
            try:
                if hint is not None:
                    hint(error)
            except Exception as fault:  # noqa: BLE001  any code may be in it
                raise _needs_more("hint", hint, error, fault) from None


def _needs_more(name: str, code: object, error: Exception, fault: Exception) -> Any:
    rule = f"code that can be asked about {error!r}, but it raised {fault!r}"
    suggestion = "give an error that your client raises: simulate(errors=...)"
    return invalid_setting(name, rule, code, suggestion)


def _check_budget(budget: Budget | None) -> None:
    """Raise an error if processes cannot have budgets of their own in virtual time."""
    if budget is None or isinstance(budget, SerializableBudget):
        return
    rule = "a budget of retrykit.budgets, or one that copy.deepcopy can copy"
    suggestion = "simulate the policy with a local budget: policy.replace(budget=...)"
    if is_coroutine_function(budget.withdraw):
        raise invalid_setting(
            "budget", "sync in a simulation", budget, suggestion, code="async-mismatch"
        )
    try:
        copy.deepcopy(budget)
    except Exception:  # noqa: BLE001  any code may be in it
        raise invalid_setting(
            "budget", rule, budget, suggestion, code="not-here"
        ) from None
