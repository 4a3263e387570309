"""Controllers, which record retried calls, trim tracebacks and notify observers.

`retrykit._core.steps` decides what is recorded.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from retrykit._conditions import reject_awaitable
from retrykit._core import events
from retrykit._core.call import (
    BEFORE,
    DRAWS,
    ERROR,
    FIRST_ATTEMPT,
    GIVE_UPS,
    NOTHING_EARLIER,
    NUMBER,
    OWNER,
    START,
    TAPE,
    TRACE,
    Entry,
    RetryCall,
    as_failure,
    open_entry,
    outer_call,
    state_lock,
)
from retrykit._core.call_record import SUCCEEDED, Arguments, Terms, give_ups
from retrykit._core.common_failures import (
    Answer,
    Evaluator,
    answer_of,
    evaluator_of,
    leave_to_steps,
)
from retrykit._core.failures import NEVER_RETRIED, Evaluation, Failure, StopReason
from retrykit._core.final_error import (
    NO_FALLBACK,
    attach_record,
    build_final_error,
    has_value,
    state_of,
)
from retrykit._core.ineffective import (
    LAZY,
    longest_first_delay,
    warn_of_blocking,
    warn_of_clients,
    warn_of_frozen_time,
    warn_of_lazy_result,
    warn_of_repeated_client,
    would_block,
)
from retrykit._core.limits import (
    describe_give_up,
    describe_limit,
    retry_overrides,
)
from retrykit._core.nesting import (
    has_exhausted_retries,
    limit_by_outer_call,
    limit_nested_states,
    mark_exhausted,
    warn_if_idle,
)
from retrykit._core.plan import Plan
from retrykit._core.result_conditions import release_before
from retrykit._core.retry_log import (
    RetryMessage,
    describe_last_failure,
    is_logged,
    log_check,
    log_retry,
    logs_retries,
)
from retrykit._core.retry_state import RetryState
from retrykit._internal import fast_path
from retrykit._internal.clocks import AsyncClock, Clock, ClockSource, read_together
from retrykit._internal.introspection import qualified_name
from retrykit._internal.late_modules import LateModule
from retrykit._internal.tracebacks import (
    WITHOUT_DICT,
    add_note_once,
    close_errors,
    drop_frames,
    reduce_error,
    skip_wrapper_frames,
    trim_traceback,
    with_traceback,
)
from retrykit.errors import Signal
from retrykit.schedules._randomness import new_draws

if TYPE_CHECKING:
    from retrykit._core.policy import Policy
    from retrykit.limits._base import Limit
    from retrykit.limits._leases import Lease, Refusal

__all__ = ["CHAIN_MARK", "Asked", "RetryController"]

CHAIN_MARK: Final = "__retrykit_chain__"
"""The attribute of a chain's function that holds the names of the chained functions."""

# Imported with the first policy that has limits.
admission: Any = LateModule("retrykit._core.admission")

Asked = tuple[list["Lease"], "Lease | Refusal"]
"""The leases that the first limits of a policy gave, and the next limit's answer."""


class RetryController:
    """Records and reports the calls of a function, a block or a client.

    Args:
        policy: The policy of the calls.
        name: The name of the calls, if the policy has none; None to use the function's.
        clock: The clock of the driver.
        resumed: The state that a call continues, or None.
        function: The function that events name, with its arguments; None for a block
            or a client.
        driven: Whether a driver calls the function: its frame is then the first one
            in the traceback of every error.
        runner: The loop of a retried block, or the attempt of a job; the call ends
            when it is gone. Referred to weakly.

    Attributes:
        policy: The policy of the calls.
        answer: The function that answers common failures; None while `find_answer` must
            find it.
        budget: The policy's budget, or None.
        clock: The clock of the driver.
        function: The function that events name; None for a block or a client.
        can_be_stopped: Whether the policy has a `stop_event`.
        only_sleeps: Whether the pause before a retry is nothing but a sleep.
        limits: The limits that are asked before each attempt.
        admits: Whether `limits` is not empty.
        report_success: `admission.report_success`; only set if `admits`.
        parts: The `parts` of the clock.
        begins_late: Whether the first attempt may wait for the rest of a delay, or for
            limits.
        plain: The type of the last result that could be returned as it is; None if
            there was none, or if the policy has limits or a budget.
        judges: The conditions on results that the policy and its rules have.
        is_logged: Returns whether retries are logged at a level, such as 30 for
            warnings.
        watch: Not empty if a call must be prepared before it begins: for limits,
            observers, a resumed state, or whatever blocks the fast path.
    """

    __slots__ = (
        "_client_gave_up",
        "_delivers",
        "_direct",
        "_driven",
        "_evaluator",
        "_has_not_failed",
        "_is_watched",
        "_limits_judge",
        "_name",
        "_observers",
        "_plan",
        "_resumed",
        "_runner",
        "_terms",
        "_wraps",
        "admits",
        "answer",
        "begins_late",
        "budget",
        "can_be_stopped",
        "clock",
        "function",
        "is_logged",
        "judges",
        "limits",
        "only_sleeps",
        "parts",
        "plain",
        "policy",
        "report_success",
        "watch",
    )

    def __init__(  # noqa: PLR0913  what the calls of a function have in common
        self,
        policy: "Policy",
        name: str | None,
        clock: ClockSource[Clock] | ClockSource[AsyncClock],
        resumed: RetryState | None,
        *,
        function: Callable[..., Any] | None = None,
        driven: bool = True,
        runner: object = None,
    ) -> None:
        self._plan = plan = policy._derive(Plan)
        self._driven, self.function = driven, function
        # Whether there are frames of this package between a driver and the function.
        self._wraps = plan.timed or hasattr(function, CHAIN_MARK)
        self._runner = None if runner is None else weakref.ref(runner)
        # What is checked once, at the first failure. Blocks do it by themselves.
        self._has_not_failed = runner is None
        # Whether it was a client of an integration, in an attempt of some call.
        self._client_gave_up = False
        self.policy, self.budget = policy, policy.budget
        self.answer: Answer | None = None
        self.is_logged: Callable[[int], bool] = is_logged
        self._evaluator: Evaluator | None = None
        self.plain = plan.plain
        self._direct: type | None = None
        self._observers = observers = policy.observers
        # The attempts of a block end in a ``with``, which cannot await.
        self._delivers = bool(observers) and clock.awaited and driven
        self._name = policy.name or name
        self._terms: Terms | None = None
        self.clock: ClockSource[Any] = clock
        self.parts = clock.parts
        self._resumed = resumed
        self.can_be_stopped = plan.can_be_stopped
        self.only_sleeps = plan.only_sleeps and not self._delivers
        self.judges = plan.judges
        self.limits = plan.limits
        self._limits_judge = plan.limits_judge
        self.admits = bool(plan.limits)
        self.begins_late = self.admits or resumed is not None
        if self.admits:
            # Of the module, which takes longer to ask at each call.
            self.report_success = admission.report_success
        self._is_watched = bool(observers or resumed)
        watched = self._is_watched or self.admits
        self.watch: Sequence[object] = (policy,) if watched else fast_path.blockers

    def with_overrides(self) -> "RetryController":
        """Return the controller for a call that begins now, with overrides of tests."""
        if not fast_path.blockers:
            return self
        overrides = retry_overrides.get()
        policy = overrides.apply_to(self.policy)
        if policy is self.policy:
            return self
        runner = None if self._runner is None else self._runner()
        other = type(self)(
            policy,
            self._name,
            self.clock,
            self._resumed,
            function=self.function,
            driven=self._driven,
            runner=runner,
        )
        if overrides.disabled:
            other.judges = ()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        # With a driver that is pickled by value.
        parts = self.policy, self._name, self.clock, self._resumed, self.function
        return _restore_controller, (type(self), *parts)

    def find_name(self) -> str:
        """Return the name of the calls, and keep it."""
        name = self._name
        if name is None:
            self._name = name = qualified_name(self.function)
        return name

    def find_terms(self) -> Terms:
        """Return what is known of each call before it begins, and keep it."""
        policy, plan = self.policy, self._plan
        most, limit, polls = plan.most_attempts, plan.time_limit, policy.on == ()
        kept, redact = policy.max_failures, policy.redact
        chain, name = getattr(self.function, CHAIN_MARK, None), self.find_name()
        self._terms = terms = Terms(name, limit, kept, most, redact, polls, chain)
        return terms

    def find_answer(self, arguments: Arguments, error: Exception) -> Answer:
        """Find the function that answers common failures, when the first one occurs."""
        if self._client_gave_up:
            # `record_failure` sees whether its retries are repeated.
            return leave_to_steps
        self.answer, self.is_logged = answer_of(self.policy), log_check()
        if self._has_not_failed:
            self.check_surroundings(arguments, error)
        return self.answer

    def log_failure(self, entry: Entry) -> None:
        """Log the retry after a common failure."""
        call, failure = entry[OWNER], as_failure(entry[TAPE][-1])
        request = call.request if type(call) is RetryCall else None
        elapsed = failure.started + failure.duration
        terms = self._terms or self.find_terms()
        message = RetryMessage(terms, request, failure, elapsed)
        events.notify_one(log_retry, message, None)

    def check_surroundings(
        self,
        arguments: Arguments,
        error: Exception | None,
        call: RetryCall | None = None,
    ) -> None:
        """Warn, at the first failure, of a blocked event loop and of nested retries.

        The first delay of sync code may block an event loop. A client in the function,
        or where its error comes from, may retry by itself. *call* is the retried call,
        in which the client of an integration may have given up.
        """
        self._has_not_failed = False
        if hasattr(self.function, CHAIN_MARK):
            # Each attempt calls another function, so that nothing is repeated.
            return
        if call is not None and self._client_gave_up:
            self._client_gave_up = False
            warn_of_repeated_client(call, self.policy)
        if self._runner is not None:
            return
        blocking = not self.clock.awaited and would_block(self.clock)
        if blocking and longest_first_delay(self.policy) > 0:
            warn_of_blocking(self.find_name())
        if self.function is not None:
            name = self.find_name()
            warn_of_clients(name, self.policy, self.function, arguments, error)

    def accepts(self, result: object, leases: "list[Lease] | None") -> bool:
        """Return whether a result can be returned as it is; if so, report it to limits.

        The type of the last such result is remembered, unless the policy has limits or
        a budget.
        """
        kind = type(result)
        if self.judges or not (kind is self._direct or self.is_direct(kind)):
            return False
        if leases and self._limits_judge:
            self.report_success(self.limits, leases, result)
        elif leases:
            # Inlined, since every call comes here.
            try:
                while leases:
                    leases.pop().succeeded()
            except Exception as fault:  # noqa: BLE001  the result must come through
                admission.log_fault_of_lease(fault)
                self.report_success(self.limits, leases, result)
        elif self.budget is None and not self.admits:
            self.plain = kind
            if kind.__name__ not in LAZY:
                self._plan.plain = kind
        return True

    def is_direct(self, kind: type) -> bool:
        """Return whether results of a type are not awaitable; warn of lazy ones."""
        if kind is self._direct:
            return True
        direct = not hasattr(kind, "__await__")
        if direct and kind.__name__ in LAZY:
            warn_of_lazy_result(self.find_name(), kind)
        if direct and self._direct is None:
            self._direct = kind
        return direct

    def runner_is_gone(self) -> bool:
        """Return whether the runner is gone, so that nothing else will end the call."""
        return self._runner is not None and self._runner() is None

    def ensure_call(
        self,
        entry: Entry,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        leases: "list[Lease] | None" = None,
    ) -> RetryCall:
        """Return the `RetryCall` of an entry; create it if there is none.

        It is None if another thread has just ended the call.

        Args:
            entry: The entry of a call that began earlier, timed by the real clock.
            args: The positional arguments of the call.
            kwargs: Its keyword arguments; None if the caller does not know them.
            leases: The leases of its first attempt; None if the call already has them,
                or there are none.
        """
        owner = entry[OWNER]
        if not isinstance(owner, RetryCall):
            # Without a lock: clocks and outer calls run other code.
            call = self._find_call(entry)
            # Threads that the function starts may ask at once, and must share one call;
            # a signal handler may ask as well.
            with state_lock:
                if entry[OWNER] is owner:
                    entry[OWNER] = call
                    if entry[START] is None:
                        # The call has ended meanwhile.
                        entry[OWNER] = None
            owner = entry[OWNER]
        ensured: RetryCall = owner
        if kwargs is not None:
            ensured.arguments = args, kwargs or {}
        if leases:
            ensured.leases = leases
        return ensured

    def begin(
        self,
        entry: Entry,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> RetryCall:
        """Begin a call, timed by its context's clock, and return its `RetryCall`.

        Nobody else knows the entry yet. *args* and *kwargs* are as in `ensure_call`.
        """
        read_clock, started, epoch = self.clock.reader(), entry[START], None
        if read_clock is not None:
            epoch, started = read_together(read_clock)
        # As `open_entry`.
        draws, number = self._plan.same_draws or new_draws()
        tape = [draws, number, NOTHING_EARLIER, None, FIRST_ATTEMPT]
        entry.append(tape)
        call = self._make_call(entry, tape, started, read_clock)
        if self._resumed is None:
            call.epoch = epoch
        else:
            self._resume(call, self._resumed)
        if entry[BEFORE] is not None:
            limit_by_outer_call(call)
        if kwargs is not None:
            call.arguments = args, kwargs
        entry[OWNER] = call
        return call

    def _find_call(self, entry: Entry) -> RetryCall | None:
        """Return a `RetryCall` for an entry; None if its call has just ended."""
        tape, started = self.open_entry(entry), entry[START]
        if tape is None or started is None:
            return None
        call = self._make_call(entry, tape, started, self.clock.real_reader())
        if entry[BEFORE] is not None:
            limit_by_outer_call(call)
        return call

    def _make_call(
        self,
        entry: Entry,
        tape: list[Any],
        started: float,
        read_clock: Callable[[], float] | None,
    ) -> RetryCall:
        call = RetryCall()
        call.entry, call.tape, call.controller = entry, tape, self
        call.terms = self._terms or self.find_terms()
        call.started, call.read_clock = started, read_clock
        call.seed = tape[DRAWS].seed + tape[NUMBER]
        return call

    def _resume(self, call: RetryCall, state: RetryState) -> None:
        """Continue the call that a state describes."""
        # The time that was spent before counts.
        call.started -= state.elapsed_at_end
        call.terms = call.terms.replace(name=state.name)
        call.resume(state)

    def open_entry(self, entry: Entry) -> list[Any] | None:
        """Return the tape of an entry, added if needed; None if the call has ended."""
        if len(entry) > TAPE:
            tape: list[Any] | None = entry[TAPE]
            return tape
        return open_entry(entry, self._plan.same_draws or new_draws())

    def start(self, call: RetryCall) -> None:
        """Record that a watched call begins with an attempt."""
        if self.admits:
            call.tape[-1] = call.elapsed
        if self._observers or events.process_observers:
            self._notify(call, events.AttemptStarted)

    def resumed_delay(self, call: RetryCall) -> float | None:
        """Return the rest of a resumed call's delay, in seconds, or None."""
        delay = None if self._resumed is None else call.next_delay
        if delay is None:
            return None
        waited, last = 0.0, call.last_failure
        if last is not None:
            waited = max(call.elapsed - (last.started + last.duration), 0.0)
        return max(delay - waited, 0.0)

    def attach_clock(self, call: RetryCall) -> Callable[[], float]:
        """Find, keep and return the clock reader, which was unknown at first."""
        # Drivers run in the event loop, where there always is one.
        reader = cast("Callable[[], float]", self.clock.reader())
        call.read_clock = reader
        return reader

    def evaluate_usual(
        self, call: RetryCall, error: Exception | None
    ) -> Evaluation | None:
        """Return the evaluation of an error by the policy's `Evaluator`, or None."""
        if self._wraps or error is None:
            return None
        evaluate = self._evaluator
        if evaluate is None:
            evaluate = self._evaluator = evaluator_of(self.policy)
        return evaluate(call, error, driven=self._driven)

    def trim_tracebacks(self, call: RetryCall, error: Exception) -> bool:
        """Trim an error's traceback; release the previous error's frames if not kept.

        Returns:
            Whether the error is bare: it has no cause, no context, no members and no
            attributes, such as the state of a call that has given up.
        """
        alone = error.__context__ is None and error.__cause__ is None
        alone = alone and not isinstance(error, BaseExceptionGroup)
        last = None
        before = call.last_failure
        if before is not None:
            last = before.error
            release = last is not error and not self._plan.keeps_frames
            if release and isinstance(last, Exception):
                locations = drop_frames(last, None if alone else error)
                call.keep_locations(before.attempt, locations)
                reduced = reduce_error(last)
                has_dict = len(reduced) > WITHOUT_DICT
                if len(locations) > 1 or (has_dict and reduced[WITHOUT_DICT]):
                    # It has related errors, or attributes.
                    close_errors(last, error)
        trace = error.__traceback__
        if self._driven and trace is not None:
            trace = trace.tb_next
            if self._wraps:
                trace = skip_wrapper_frames(trace)
            with_traceback(error, trace)
        if last is error:
            trim_traceback(trace, call.tape[TRACE])
        call.tape[TRACE] = trace
        # Not through __dict__, which would create it.
        return alone and len(reduce_error(error)) == WITHOUT_DICT

    def apply_budget(
        self, call: RetryCall, evaluation: Evaluation, cost: float | None
    ) -> Evaluation:
        """Record a retry's cost; return the evaluation, or a stop if the cost is None.

        Args:
            call: The call.
            evaluation: The evaluation; if it has no retry, it is returned as it is.
            cost: What the retry costs; None if the budget does not pay for it.
        """
        failure, decision, retryable = evaluation
        if isinstance(decision, str):
            return evaluation
        call.retry_cost = cost
        if cost is not None:
            return evaluation
        return Evaluation(failure._replace(delay=None), StopReason.BUDGET, retryable)

    def record_last_failure(self, call: RetryCall, evaluation: Evaluation) -> None:
        """Record a failed attempt after which the call is interrupted."""
        call.add_failure(evaluation.failure._replace(delay=None))

    def record_failure(
        self,
        call: RetryCall,
        error: Exception | None,
        evaluation: Evaluation,
        exhausted: object | None,
    ) -> float | Exception:
        """Record a failed attempt, and end the call if it is not retried.

        Returns:
            The delay before the next attempt, in seconds, or the error to raise.
        """
        failure, decision, retryable = evaluation
        # Without a name for the failure before, whose error may be dropped.
        tape = call.tape
        has_failed = isinstance(tape[-2], tuple)
        if has_failed and (error is None or tape[-2][ERROR] is None):
            keeps = self._plan.keeps_frames
            release_before(self.policy, call, error, failure.result, keeps=keeps)
        call.add_failure(failure)
        if not isinstance(decision, str):
            if self._observers or events.process_observers:
                self._notify(call, events.AttemptFailed, failure)
                self._notify(call, events.RetryScheduled, decision)
            if self._has_not_failed:
                self.check_surroundings(call.known_arguments(), error, call)
            if is_logged() and not self._logs_retries():
                before = 0 if call.stream is None else call.stream.attempts_before
                elapsed = call.elapsed
                message = RetryMessage(
                    call.terms, call.request, failure, elapsed, before
                )
                events.notify_one(log_retry, message, None)
            return decision
        if decision is StopReason.NESTED:
            call.nested_state = limit_nested_states(state_of(exhausted))
            warn_if_idle(self.policy, call)
        if decision is StopReason.GAVE_UP:
            detail: str | None = describe_give_up(error, hinted=retryable)
        else:
            detail = describe_limit(self.policy, call, decision, failure)
        # Of a refusal it is known already.
        call.end(decision, detail or call.stop_detail)
        return self._give_up(call, decision, failure, error, failed_now=True)

    def record_stop(self, call: RetryCall) -> Exception:
        """End a call whose wait was ended by the policy's event.

        Returns:
            The error to raise.
        """
        failure, error = call.last_failure, None
        if failure is None:
            # It waited for a limit, before its first attempt.
            call.unrecorded = -1
        elif isinstance(failure.error, Exception):
            error = failure.error
        self.give_back(call)
        reason = StopReason.STOPPED
        call.end(reason)
        return self._give_up(call, reason, failure, error, failed_now=False)

    def ask_at_once(self) -> "tuple[list[Lease] | None, Asked | None]":
        """Ask the limits for the first attempt of a call that nothing else watches.

        Returns:
            The leases, or None if the call must be watched; and the answers that limits
            have already given to such a call, or None.
        """
        if self._is_watched or fast_path.blockers:
            return None, None
        leases: list[Any] = []
        for limit in self.limits:
            answer = limit.acquire()
            # The delay of a refusal is infinite.
            if answer.delay:
                return None, (leases, answer)
            leases.append(answer)
        return leases, None

    def record_refusal(
        self, call: RetryCall, limit: "Limit", refusal: "Refusal"
    ) -> Exception:
        """End a call whose next attempt a limit refused.

        A retry that the budget has paid for is refunded.

        Returns:
            The error to raise.
        """
        error: Exception | None = admission.note_refusal(call, limit, refusal)
        failure, reason = call.last_failure, StopReason.REFUSED
        if failure is None:
            # No attempt was made.
            call.unrecorded = -1
        else:
            error = failure.error if isinstance(failure.error, Exception) else None
            if self.budget is not None and call.retry_cost is not None:
                self.budget.refund(call.retry_cost)
        call.end(reason, call.stop_detail)
        return self._give_up(call, reason, failure, error, failed_now=False)

    def give_back(self, call: RetryCall) -> None:
        """Hand back the leases of an attempt that is not made."""
        if call.leases:
            admission.give_back(call.leases)

    def record_hedge(self, call: RetryCall, number: int) -> None:
        """Record that the running attempt was sent again.

        Args:
            call: The call.
            number: The number of the send in its attempt, from 2.
        """
        call.hedges += 1
        if self._observers or events.process_observers:
            self._notify(call, events.HedgeStarted, number)

    def kept_failure(self, call: RetryCall) -> Failure | None:
        """Return the last failure if it is a result that is not yet released, or None.

        A call that is stopped or refused while it waits gives up with that result.
        """
        may_end = self.can_be_stopped or self.admits
        last = call.last_failure if may_end else None
        return last if last is not None and last.error is None else None

    def _give_up(
        self,
        call: RetryCall,
        reason: StopReason,
        failure: Failure | None,
        error: Exception | None,
        *,
        failed_now: bool,
    ) -> Exception:
        """Notify observers of the end of a call; return the error that it raises."""
        policy = self.policy
        if policy.fallback is not NO_FALLBACK:
            retried = reason not in NEVER_RETRIED
            call.used_fallback = retried and has_value(policy.fallback, failure)
        call.controller, call.function = None, self.function
        if self._observers or events.process_observers:
            if failed_now:
                self._notify(call, events.AttemptFailed, failure)
            self._notify(call, events.GaveUp)
        nested = reason is StopReason.NESTED and policy.nested == "raise"
        cause = error.error if isinstance(error, Signal) else error
        form = "nested" if nested else policy.raises
        if failure is None:
            # There is nothing but the refusal to raise.
            form = "last"
        final_error = build_final_error(form, call, cause)
        outer = None if call.before is None else outer_call(call)
        if outer is not None and has_exhausted_retries(call):
            mark_exhausted(final_error, outer)
            if self._driven and self.function is None and outer.controller is not None:
                outer.exhausted_client = outer.attempt, call.terms.name, call.attempt
                outer.controller.expect_repetition()
        return final_error

    def expect_repetition(self) -> None:
        """Have the next failure checked: a retry would repeat a client's retries."""
        self._has_not_failed = self._client_gave_up = True
        self.answer = None

    def start_next_attempt(self, call: RetryCall, *, waited: bool = True) -> None:
        """Record that the next attempt begins.

        Args:
            call: The call.
            waited: Whether this process has waited for the delay. A durable job's delay
                passes elsewhere, and the job may begin before it is due.
        """
        call.begin_attempt(call.elapsed)
        call.entry[GIVE_UPS] = give_ups.count
        if waited and self.policy.max_attempts is None:
            warn_of_frozen_time(call)
        if self._observers or events.process_observers:
            self._notify(call, events.AttemptStarted)

    def record_success(self, call: RetryCall, result: object) -> float | None:
        """Record that the call has its result.

        Returns:
            What its last retry cost the budget; None if no retry was paid for.

        Raises:
            ConfigError: The result of a sync function is awaitable.
        """
        kind = type(result)
        known = kind is self._direct or self.is_direct(kind)
        if not known and not self.clock.awaited:
            rule = "a function that returns its result directly, under retry"
            reject_awaitable(self.find_name(), result, rule, "decorate it with aretry")
        if call.leases:
            self.report_success(self.limits, call.leases, result)
        call.controller = None
        call.end(SUCCEEDED)
        if self._observers or events.process_observers:
            self._notify(call, events.Succeeded)
        return call.retry_cost

    def record_interruption(self, call: RetryCall, error: BaseException) -> None:
        """Record that the call was ended by something other than its attempts.

        This is cancellation, Ctrl-C, or an `Exception` such as one from `on_result`.
        """
        if call.pending:
            events.discard(call.pending)
        self.give_back(call)
        if call.controller is None:
            if call.stop_reason is StopReason.STOPPED and self._driven:
                # It was raised again, by the driver.
                trace = error.__traceback__
                with_traceback(error, trace and trace.tb_next)
            return
        call.controller = None
        if call.read_clock is None:
            call.read_clock = self.clock.reader()
        cancelled = not isinstance(error, Exception)
        call.end(StopReason.CANCELLED if cancelled else StopReason.NOT_RETRYABLE)
        if cancelled and call.last_failure is not None:
            # An outer timeout hides the error that was retried.
            text = f"{call.state.describe()}; {describe_last_failure(call)}"
            add_note_once(error, text)
        if is_observed := bool(self._observers or events.process_observers):
            # The event shows the error itself.
            call.notify()
        attach_record(error, call)
        if is_observed:
            self._notify(call, events.GaveUp)
        call.leave_to_view(error)
        if call.pending:
            events.discard(call.pending)

    def record_suspension(self, call: RetryCall) -> None:
        """Record that the call continues elsewhere, from its state."""
        call.controller = None
        self._notify(call, events.Suspended)

    def time_left(self, call: RetryCall) -> float | None:
        """Return the time that calls nested in this one may take, in seconds.

        It is negative once `max_elapsed` has passed; None if it is unlimited, or cannot
        be known in this thread.
        """
        limit = self._plan.time_limit
        if limit is None or self.policy.deadline == "overshoot":
            return None
        left = limit + call.row_began - call.elapsed
        return None if call.read_clock is None else left

    def _logs_retries(self) -> bool:
        """Return whether an observer logs the retries."""
        others = (each.observer for each in [*events.process_observers])
        return any(map(logs_retries, (*self._observers, *others)))

    def _notify(
        self, call: RetryCall, kind: type[events.Event], detail: object = None
    ) -> None:
        """Notify the observers of an event."""
        others, pending = events.process_observers, None
        if self._delivers:
            pending = call.pending = [] if call.pending is None else call.pending
        if others:
            # A slice may crash CPython 3.11: while it is made, a garbage collection can
            # let another thread shorten the list.
            others = [*others]
            others = [x for x in others if call.has_failed or not x.failures_only]
        if not call.notified:
            call.notify()
        event = events.make_event(kind, call, self.function, detail)
        for observer in self._observers:
            events.notify_one(observer, event, pending)
        for each in others:
            events.notify_one(each.observer, event, None)


def _restore_controller(  # noqa: PLR0913, PLR0917  as the class
    kind: type[RetryController],
    policy: "Policy",
    name: str | None,
    clock: ClockSource[Any],
    resumed: RetryState | None,
    function: Callable[..., Any] | None,
) -> RetryController:
    return kind(policy, name, clock, resumed, function=function)
