"""Circuit breaker, which refuses calls for a time after too many have failed."""

import math
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final, TypeVar, final

from retrykit._conditions import (
    Condition,
    default_condition,
    format_value,
    matches_condition,
    read_answer,
)
from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import Duration, parse_positive_duration
from retrykit._internal.error_texts import log_fault, type_to_name
from retrykit._internal.fast_path import blockers
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import (
    check_integer,
    check_text,
    invalid_setting,
    user_facing,
)
from retrykit.errors import CircuitOpenError
from retrykit.limits._base import Conditions
from retrykit.limits._circuit_lease import CircuitLease, ProbeLease
from retrykit.limits._circuit_settings import (
    DEFAULT_RATE,
    MOST_PROBES,
    as_fraction,
    check_minimum,
    check_on,
    check_on_result,
    check_open_for,
    check_rate,
    check_successes,
    check_window,
)
from retrykit.limits._circuit_state import (
    CircuitChange,
    CircuitMetrics,
    CircuitState,
    Closed,
    HalfOpen,
    Isolated,
    Open,
    Opening,
    Standing,
    State,
    Successes,
    is_valid,
)
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._shared_limits import SerializableLimit
from retrykit.limits._windows import CountWindow, TimeWindow, Window
from retrykit.schedules._base import Schedule, ScheduleLike
from retrykit.schedules._randomness import call_random, new_seed

__all__ = ["CircuitBreaker", "Observer"]

Observer = Callable[[CircuitChange], object]
"""A function that is notified of changes of a breaker."""

F = TypeVar("F", bound=Callable[..., Any])

_OPEN_FOR: Final = 30.0


@final
class CircuitBreaker(SerializableLimit):
    """Refuses calls for a time after too many have failed, then tries a few.

    It is *closed* at first, and lets calls through. It *opens* when too many of the
    recent calls failed or were slow, or too many in a row failed. While it is open it
    refuses calls, for the time *open_for*. Then it is *half-open*: it lets a few calls
    through as probes, and their outcomes close it or open it again.

    >>> breaker = CircuitBreaker(window=10, minimum_calls=4, name="api")
    >>> @breaker
    ... def fetch(broken):
    ...     return 1 / 0 if broken else "fetched"
    >>> breaker.state, fetch(broken=False)
    ('closed', 'fetched')

    Several threads, tasks and event loops may share it. No lock is held while a call
    runs. A success that is reported while another thread reports a failure, or changes
    the state, may be counted before or after that. The breaker reads the monotonic
    clock, which tests replace by `virtual_time`.

    Args:
        failure_rate: Share of failed calls at which it opens, 0 < rate <= 1. By default
            0.5, unless *consecutive_failures* is given.
        window: The calls that the rates cover: a number of calls, 1 to 100,000, or a
            time as text or timedelta, 1 s to 1 d. A call may drop out of a window of
            time early, by up to a tenth of that time.
        minimum_calls: Number of calls in the window below which no rate opens it, >= 1.
            By default 20, or the size of a smaller window.
        consecutive_failures: Number of failures in a row at which it opens, >= 1.
        slow_after: Calls that take longer are slow. A duration > 0. A slow probe counts
            as a failed one.
        slow_rate: Share of slow calls at which it opens, 0 < rate <= 1. By default 0.5,
            if *slow_after* is given.
        open_for: How long it stays open: a duration > 0; or a schedule, whose n-th
            delay is for the n-th opening in a row, and whose last one is repeated.
        probes: Number of calls that it lets through when it is half-open, 1 to 10,000.
        successes: How many of the probes must succeed to close it: a number, or a float
            for a share of them, 0 < share <= 1. By default all of them. It opens again
            once too many have failed for that.
        probe_timeout: How long a probe may take, a duration > 0. After that, another
            call may take its place, and the outcome of the probe does not count.
        on: Which errors are failures: exception types or a predicate, as in a policy's
            `on`. Other errors and cancellations do not count.
        on_result: A predicate of results that are failures, for calls of a policy and
            of decorated functions.
        name: Its name in errors. By default the scope, or the key of a `Registry`.
        observers: Functions that are notified of changes, while no lock is held. An
            error that one raises is logged. Observers are not written, copied or
            pickled.

    Attributes:
        observers: The list of observers, which may be changed.

    Source:
        M. Nygard, "Release It!", 2007; the defaults of Hystrix for *failure_rate* and
        *minimum_calls*.
    """

    kind = "circuit_breaker"

    @user_facing
    def __init__(  # noqa: PLR0913  its settings
        self,
        *,
        failure_rate: float | None = None,
        window: int | str | timedelta = "30s",
        minimum_calls: int | None = None,
        consecutive_failures: int | None = None,
        slow_after: Duration | None = None,
        slow_rate: float | None = None,
        open_for: Duration | ScheduleLike = "30s",
        probes: int = 1,
        successes: float | None = None,
        probe_timeout: Duration = "60s",
        on: Condition = default_condition,
        on_result: Callable[[Any], bool] | None = None,
        name: str | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        if consecutive_failures is not None:
            consecutive_failures = check_integer(
                "consecutive_failures", consecutive_failures, at_least=1
            )
        elif failure_rate is None:
            failure_rate = DEFAULT_RATE
        self.consecutive_failures: int | None = consecutive_failures
        self.failure_rate: float | None = check_rate("failure_rate", failure_rate)
        self.window: int | str
        self._seconds: float | None
        self.window, self._seconds = check_window(window)
        self.minimum_calls: int = check_minimum(minimum_calls, self.window)
        self.slow_after: float | None = None
        if slow_after is not None:
            self.slow_after = parse_positive_duration("slow_after", slow_after)
            slow_rate = DEFAULT_RATE if slow_rate is None else slow_rate
        elif slow_rate is not None:
            rule = "a duration if slow_rate is given"
            raise invalid_setting(
                "slow_after", rule, None, 'write slow_after="5s"', code="contradiction"
            )
        self.slow_rate: float | None = check_rate("slow_rate", slow_rate)
        self.open_for: float | Schedule = check_open_for(open_for)
        self.probes: int = check_integer(
            "probes", probes, at_least=1, at_most=MOST_PROBES
        )
        self.successes: int = check_successes(successes, self.probes)
        self.probe_timeout: float = parse_positive_duration(
            "probe_timeout", probe_timeout
        )
        self.on: Any = check_on(on)
        self.on_result: Callable[[Any], bool] | None = check_on_result(on_result)
        self.judges_results: bool = on_result is not None
        self.name: str | None = None if name is None else check_text("name", name)
        self.observers: list[Observer] = [*observers]
        self._failure_limit = as_fraction(self.failure_rate)
        self._slow_limit = as_fraction(self.slow_rate)
        # Neither a window of calls nor failures in a row depend on the time.
        self._needs_time = self.slow_after is not None or self._seconds is not None
        self._may_be_quiet = self.slow_after is None and _HAS_GIL
        self._successes = Successes()
        self._state: State = self._new_closed(0)
        self._succeeded = self._failed = self._ignored = self._refused = 0
        self._conditions: Conditions | None = None
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the breaker, except its observers, keyed by name."""
        return {name: getattr(self, name) for name in _SETTINGS}

    @property
    def state(self) -> CircuitState:
        """The current state: "closed", "open", "half-open" or "isolated".

        An open breaker becomes half-open at the first call after its open time.
        """
        return self._state.name

    @property
    def metrics(self) -> CircuitMetrics:
        """The counts of calls, for gauges and counters."""
        with self._lock:
            calls, failures, slow = self._state.count(self._now())
            succeeded = self._succeeded + self._successes.total()
        return CircuitMetrics(
            calls,
            failures,
            slow,
            failures / calls if calls else None,
            slow / calls if calls else None,
            succeeded,
            self._failed,
            self._ignored,
            self._refused,
        )

    def acquire(self) -> Lease | Refusal:
        """Ask to make one call, without waiting.

        >>> breaker = CircuitBreaker(consecutive_failures=1, open_for="10s")
        >>> lease = breaker.acquire()
        >>> lease.failed(OSError())
        >>> breaker.acquire().reason
        'open, as the last call failed'

        Returns:
            A lease, to which the outcome must be reported; or a refusal.
        """
        state = self._state
        if isinstance(state, Closed):
            # Without the lock, which all calls of all threads would wait for, and
            # without a function that sets the attributes, as this is every call.
            lease = CircuitLease()
            lease.breaker, lease.state = self, state
            if self.slow_after is not None:
                lease.started = self._now()
            return lease
        return self._acquire_when_not_closed()

    def is_failure(self, error: Exception, /) -> bool | None:
        """Return whether `on` matches; None if `on` was not given."""
        if self.on is default_condition:
            return None
        return matches_condition("on", self.on, error)

    def is_failed_result(self, result: object, /) -> bool | None:
        """Return the answer of `on_result`; None if there is none."""
        predicate = self.on_result
        if predicate is None:
            return None
        return read_answer("on_result", predicate, predicate(result))

    def refusal_after(self, delay: float, /) -> Refusal | None:
        """Return the refusal of an attempt after a delay, if it is certain; else None.

        It is certain if the breaker is isolated, or open for longer than the delay.
        """
        state = self._state
        if isinstance(state, Isolated):
            return _ISOLATED
        if not isinstance(state, Open):
            return None
        left = state.since + self._opening_of(state).delay - self._now()
        return Refusal(f"open, as {state.reason}", left) if left > delay else None

    @user_facing
    def join(self, conditions: Conditions, /) -> None:
        """Raise an error if policies that share the breaker judge failures differently.

        A breaker with an `on` of its own judges errors itself, and accepts any policy.
        """
        if self.on is not default_condition:
            return
        with self._lock:
            known = self._conditions = self._conditions or conditions
        own = {"on_result"} if self.judges_results else set()
        for name, text in conditions.items():
            if name not in own and text != known[name]:
                rule = f"a breaker of policies with the same {name}, here {known[name]}"
                suggestion = "give each its own breaker, or the breaker its own on"
                raise invalid_setting(
                    "admission",
                    f"{rule}, not {text}",
                    self,
                    suggestion,
                    code="contradiction",
                )

    def error_of(self, refusal: Refusal) -> CircuitOpenError:
        """Return the error of a call that this breaker refused."""
        return CircuitOpenError(self.label, refusal.reason, refusal.retry_in)

    def open(self) -> None:
        """Open the breaker now, for as long as the next opening in a row would last.

        If it is open, that time starts now; if it is isolated, nothing changes.
        """
        with self._lock:
            if isinstance(self._state, Isolated):
                return
            change = self._open("it was opened by hand")
        self._finish_opening(change)

    def open_for_others(self, generation: int, delay: float, reason: str) -> None:
        """Open a closed breaker as other processes decided, unless its state changed.

        Its own calls did not fail, so this does not count among its openings in a row.

        Args:
            generation: The number of the state that this breaker last reported to them;
                in any other state, nothing changes.
            delay: How long it stays open. Seconds, > 0.
            reason: Why, in words.
        """
        opening = Opening(0, new_seed(), delay)
        with self._lock:
            state, now = self._state, self._now()
            if not isinstance(state, Closed) or state.generation != generation:
                return
            opened = Open(generation + 1, now, None, reason, state.count(now))
            opened.opening_or(opening)
            change = self._enter(opened, reason)
        self._finish_opening(change)

    def standing(self) -> Standing:
        """Return the state, and the opening unless other processes decided on it."""
        state = self._state
        opening = self._opening_of(state) if isinstance(state, Open) else None
        if not isinstance(state, Open) or opening is None or not opening.number:
            return Standing(state.generation, state.name, None, 0.0)
        # Time goes back if the clock was replaced.
        passed = max(self._now() - state.since, 0.0)
        left = max(opening.delay - passed, 0.0)
        return Standing(state.generation, "open", passed, left)

    def close(self) -> None:
        """Close the breaker, with an empty window, whatever its state."""
        with self._lock:
            closed = self._new_closed(self._state.generation + 1)
            change = self._enter(closed, "it was closed by hand")
        self._notify(change)

    def isolate(self) -> None:
        """Refuse all calls until `close`."""
        with self._lock:
            state = self._state
            change = self._enter(
                Isolated(state.generation + 1, state.count(self._now())),
                "it was isolated by hand",
            )
        self._notify(change)

    def format_setting(self, value: object) -> str:
        """Return the value of a setting as an expression."""
        code = isinstance(value, type | tuple) or callable(value)
        is_schedule = isinstance(value, Schedule)
        return format_value(value) if code and not is_schedule else repr(value)

    @user_facing
    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, for JSON and TOML, without observers.

        Raises:
            ConfigError: A setting is code, such as a predicate or a schedule of your
                own, or a type that cannot be imported by name.
        """
        data = super().to_dict()
        if self.on_result is not None:
            rule = "left out of a breaker that is written as data"
            raise invalid_setting(
                "on_result", rule, self.on_result, code="not-expressible"
            )
        if self.on is default_condition:
            # It has no name, as it is the default.
            del data["on"]
        elif isinstance(self.on, tuple):
            data["on"] = [type_to_name("on", kind) for kind in self.on]
        else:
            data["on"] = type_to_name("on", self.on)
        if isinstance(self.open_for, Schedule):
            # Imported on demand: it takes a millisecond.
            from retrykit.schedules._parsing import schedule_to_text  # noqa: PLC0415

            data["open_for"] = schedule_to_text(self.open_for)
        return {name: value for name, value in data.items() if value is not None}

    def settle(self, lease: CircuitLease, failed: bool) -> None:  # noqa: FBT001
        """Count a call, and change the state if that is due."""
        change = None
        with self._lock:
            if lease.breaker is None:
                return
            state = self._state
            if lease.state is state:
                if isinstance(state, Closed):
                    now = 0.0
                    if self._needs_time:
                        now = sync_clock.now() if blockers else _real_now()
                    slow = self.slow_after is not None and self._is_slow(lease, now)
                    change = self._count_call(state, now, failed, slow)
                elif isinstance(state, HalfOpen):  # pragma: no branch  (no other gives)
                    change = self._count_probe(state, lease, failed=failed)
            if failed:
                self._failed += 1
            else:
                self._succeeded += 1
            # Last: if this is interrupted, the lease still gives its place back.
            lease.breaker = None
        if change is not None:
            self._finish_opening(change)

    def ignore(self, lease: CircuitLease) -> None:
        """Count a call as ignored, and give its place back."""
        with self._lock:
            if lease.breaker is not None:
                state = self._state
                if lease.state is state and isinstance(state, HalfOpen):
                    state.granted.pop(id(lease), None)
                self._ignored += 1
                lease.breaker = None

    def _count_call(
        self,
        state: Closed,
        now: float,
        failed: bool,  # noqa: FBT001
        slow: bool,  # noqa: FBT001
    ) -> CircuitChange | None:
        """Count a call; return the change if it opens the breaker."""
        state.catch_up()
        if not state.window.add(now, failed, slow):
            # Mostly, all is well.
            state.failures = 0
            state.quiet = self._may_be_quiet
            return None
        state.failures = state.failures + 1 if failed else 0
        if failed and state.failures == self.consecutive_failures:
            many = state.failures > 1
            text = f"{state.failures} calls in a row" if many else "the last call"
            return self._open(f"{text} failed")
        calls, failures, slow_calls = state.window.count(now)
        if calls >= self.minimum_calls:
            if _reaches(failures, calls, self._failure_limit):
                return self._open(f"{failures} of {calls} calls failed")
            if _reaches(slow_calls, calls, self._slow_limit):
                return self._open(f"{slow_calls} of {calls} calls were slow")
        elif self._failure_limit is not None:
            # The success that completes the minimum may open it.
            return None
        # Below the rate, successes only lower it.
        state.quiet = self._may_be_quiet
        return None

    def _count_probe(
        self, state: HalfOpen, lease: CircuitLease, *, failed: bool
    ) -> CircuitChange | None:
        """Count a probe, unless it has expired; return the change if there is one."""
        now = self._now()
        granted = state.granted.pop(id(lease), None)
        if granted is None or not is_valid(granted, now, self.probe_timeout):
            return None
        state.add(failed=failed, slow=self._is_slow(lease, now))
        return self._judge(state)

    def _judge(self, state: HalfOpen) -> CircuitChange | None:
        """Close or open the breaker if enough probes have ended, with the lock held.

        Returns:
            The change; None if more probes are needed.
        """
        if state.good >= self.successes:
            closed = self._new_closed(state.generation + 1)
            text = f"{state.good} of {_many(self.probes, 'probe')} succeeded"
            return self._enter(closed, text)
        if state.bad > self.probes - self.successes:
            text = f"{state.bad} of {_many(self.probes, 'probe')} failed"
            return self._open(text)
        return None

    def _is_slow(self, lease: CircuitLease, now: float) -> bool:
        return self.slow_after is not None and now - lease.started > self.slow_after

    def _acquire_when_not_closed(self) -> Lease | Refusal:
        while True:
            state = self._state
            if isinstance(state, HalfOpen):
                answer = self._acquire_probe(state)
            elif isinstance(state, Open):
                answer = self._acquire_when_open(state)
            elif isinstance(state, Isolated):
                answer = _ISOLATED
            else:
                # Closed meanwhile.
                return self.acquire()
            if answer is not None:
                break
        if isinstance(answer, Refusal):
            self._refused += 1
        return answer

    def _acquire_when_open(self, state: Open) -> Refusal | None:
        """Return a refusal; None if the open time is over.

        If it is over, the breaker becomes half-open, unless its state has changed.
        """
        opening = self._opening_of(state)
        change = None
        with self._lock:
            now = self._now()
            # Time goes back if the clock was replaced: then it starts over.
            state.since = min(state.since, now)
            left = state.since + opening.delay - now
            if left > 0:
                return Refusal(f"open, as {state.reason}", left)
            if self._state is state:
                half_open = HalfOpen(state.generation + 1, opening)
                change = self._enter(half_open, "its time is over")
        self._notify(change)
        return None

    def _acquire_probe(self, state: HalfOpen) -> Lease | Refusal | None:
        """Return a probe, or a refusal; None if the state changed."""
        with self._lock:
            if self._state is not state:
                return None
            now = self._now()
            state.drop_expired(now, self.probe_timeout)
            running = len(state.granted)
            if running + state.good + state.bad < self.probes:
                # Made before it is granted: if this is interrupted, it is dropped,
                # and gives its place back.
                lease = ProbeLease()
                lease.started, lease.state, lease.breaker = now, state, self
                state.granted[id(lease)] = now
                return lease
            # The report of the last probe may have been interrupted.
            change = self._judge(state)
        if change is not None:
            self._finish_opening(change)
            return None
        return Refusal(f"half-open, and waits for {_many(running, 'probe')}", None)

    def _enter(self, state: State, reason: str) -> CircuitChange | None:
        """Replace the state, with the lock held; return the change for observers.

        None if the new state has the same name.
        """
        old = self._state
        if isinstance(old, Closed):
            old.quiet = False
        self._state = state
        if old.name == state.name:
            return None
        return CircuitChange(self, old.name, state.name, reason, state.generation, None)

    def _open(self, reason: str) -> CircuitChange | None:
        """Open the breaker, with the lock held; return the change for observers.

        None if it was open.
        """
        state, now = self._state, self._now()
        previous = None
        if isinstance(state, HalfOpen):
            previous = state.opening
        elif isinstance(state, Open):
            # If its delay is still unknown, it was as short as can be.
            previous = state.opening or state.previous
        opened = Open(state.generation + 1, now, previous, reason, state.count(now))
        return self._enter(opened, reason)

    def _finish_opening(self, change: CircuitChange | None) -> None:
        """Notify observers of a change, if there is one, without the lock.

        If the breaker is open, this first finds out for how long.
        """
        state = self._state
        if isinstance(state, Open):
            delay = self._opening_of(state).delay
            if change is not None and change.generation == state.generation:
                change = change._replace(retry_in=delay)
        self._notify(change)

    def _opening_of(self, state: Open) -> Opening:
        """Return the current opening, with its delay.

        A schedule may be the user's code, which runs without the lock. If that is
        interrupted, the next call runs it again.
        """
        if state.opening is not None:
            return state.opening
        number, seed, delay = state.previous or (0, new_seed(), 0.0)
        previous = delay if number else None
        opening = Opening(number + 1, seed, self._draw(number + 1, seed, previous))
        return state.opening_or(opening)

    def _draw(self, number: int, seed: int, previous: float | None) -> float:
        """Return how long an opening lasts, in seconds."""
        schedule = self.open_for
        if not isinstance(schedule, Schedule):
            return schedule
        default = _OPEN_FOR if previous is None else previous
        try:
            delay = schedule.delay(number, previous, call_random(seed, number))
            return default if delay is None else _as_seconds(delay)
        except Exception as fault:  # noqa: BLE001  the call that failed is not about it
            text = "a circuit breaker opens for %s s, because its schedule failed"
            log_fault(logging.ERROR, fault, text, default)
            return default

    def _notify(self, change: CircuitChange | None) -> None:
        if change is None:
            return
        for observer in [*self.observers]:
            try:
                observer(change)
            except Exception as fault:  # noqa: BLE001  the call continues
                text = "an observer of a circuit breaker failed"
                log_fault(logging.ERROR, fault, text)

    def _new_closed(self, generation: int) -> Closed:
        """Return a closed state with an empty window."""
        seen = self._successes.total()
        if self._seconds is None:
            window: Window = CountWindow(int(self.window), seen)
        else:
            window = TimeWindow(self._seconds, seen=seen)
        return Closed(generation, window, self._successes)

    def _now(self) -> float:
        return sync_clock.now() if blockers else _real_now()


_ISOLATED: Final = Refusal("isolated until close() is called", None)

# Without it, another thread runs between any two instructions, and `itertools.count`
# may lose steps, as in Python 3.13.
_HAS_GIL: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()

_real_now: Final[Callable[[], float]] = sync_clock.real.now


_SETTINGS: Final = (
    "failure_rate",
    "window",
    "minimum_calls",
    "consecutive_failures",
    "slow_after",
    "slow_rate",
    "open_for",
    "probes",
    "successes",
    "probe_timeout",
    "on",
    "on_result",
    "name",
)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _as_seconds(delay: float) -> float:
    """Return a schedule's delay, checked, since a user's class may return anything."""
    if not 0 <= delay < math.inf:
        msg = f"its delay is {delay!r}"
        raise ValueError(msg)
    return float(delay)


def _reaches(part: int, calls: int, limit: tuple[int, int] | None) -> bool:
    return limit is not None and part > 0 and part * limit[1] >= calls * limit[0]
