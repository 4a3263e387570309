"""Adaptive rate limit, which sends fewer calls once a service throttles them."""

import math
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, final

from retrykit._conditions import (
    Condition,
    default_condition,
    format_value,
    matches_condition,
    read_answer,
)
from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.error_texts import log_fault, type_to_name
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import check_text, invalid_setting, user_facing
from retrykit._throttling import throttling
from retrykit.errors import Signal
from retrykit.limits._circuit_settings import check_on, check_on_result
from retrykit.limits._cubic_rate import MEASURED_EVERY, CubicRate, start_rate
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._shared_limits import SerializableLimit

__all__ = ["AdaptiveRateLimit", "AdaptiveRateMetrics"]


class AdaptiveRateMetrics(NamedTuple):
    """The rates of an adaptive rate limit, and counts of its calls.

    Attributes:
        fill_rate: Tokens per second: the rate at which calls go out once the limit is
            on.
        capacity: Number of tokens that can be saved, >= 1: the largest burst.
        tokens: Number of tokens available now; below 0, the number owed to waiting
            calls.
        expected_wait: How long a call that asks now would wait, in seconds, >= 0.
        measured_rate: Number of calls that ended per second, smoothed over half
            seconds.
        last_max: The rate of calls when one was throttled last, per second.
        total_throttled: Number of calls that were throttled.
        total_others: Number of calls that succeeded, or failed without being throttled.
        total_ignored: Number of calls that were reported as ignored.
        total_refused: Number of calls that were refused.
    """

    fill_rate: float
    capacity: float
    tokens: float
    expected_wait: float
    measured_rate: float
    last_max: float
    total_throttled: int
    total_others: int
    total_ignored: int
    total_refused: int


@final
class AdaptiveRateLimit(SerializableLimit):
    """Slows calls to the rate that a service accepts: the adaptive mode of AWS SDKs.

    It is *off* at first, and only counts calls. The first throttled call turns it on
    for good: from then on it is *limiting*, and each attempt takes a token, whether it
    is the first or a retry. Tokens come at a rate that is cut to 70 % when a call is
    throttled, and grows again along a cubic curve: fast, then slowly near the rate that
    was too much, and then faster again. The rate is at most twice the measured rate of
    calls, and at least one call in 2 s.

    >>> limit = AdaptiveRateLimit(on=ConnectionError, name="dynamodb")
    >>> limit.state
    'off'
    >>> limit.acquire().failed(ConnectionError("slow down"))
    >>> limit.state
    'limiting'

    One limit belongs to one client, or to all calls that a service counts together.
    Several threads, tasks and event loops may share it, and no lock is held while a
    call waits or runs. It reads the monotonic clock, which tests replace by
    `virtual_time`.

    A call that waits has its token reserved: calls go in the order in which they asked,
    one at a time. It checks the rate every 0.5 s, and waits longer or shorter if the
    rate changed. In the SDKs a call that finds no token waits as long as one token
    takes, and then competes for it with all other waiting calls. For a single caller
    there is no difference.

    Args:
        on: Which errors are throttling: exception types or a predicate, as in a
            policy's `on`. By default the throttling errors of AWS clients, as
            `retrykit.integrations.botocore.throttling` recognizes them. Other errors
            count like successes.
        on_result: A predicate of results that are throttling, such as responses with
            the status 429. With it, a failure that is reported without an error counts
            as throttling.
        max_wait: The longest wait for a token; a call that would wait longer is
            refused. A duration, >= 0; None, as in the SDKs, is unlimited.
        name: Its name in errors. By default the scope, or the key of a `Registry`.

    Source:
        `ClientRateLimiter`, botocore 1.44; "Retry behavior", AWS SDKs and Tools
        Reference Guide, 2026; S. Ha, I. Rhee, L. Xu, "CUBIC: A New TCP-Friendly
        High-Speed TCP Variant", 2008.
    """

    kind = "adaptive_rate"

    @user_facing
    def __init__(
        self,
        *,
        on: Condition = throttling,
        on_result: Callable[[Any], bool] | None = None,
        max_wait: Duration | None = None,
        name: str | None = None,
    ) -> None:
        self.on: Any = check_on(on)
        self.on_result: Callable[[Any], bool] | None = check_on_result(on_result)
        self.judges_results: bool = on_result is not None
        self.max_wait: float | None = (
            None if max_wait is None else parse_duration("max_wait", max_wait)
        )
        self.name: str | None = None if name is None else check_text("name", name)
        self._state: CubicRate = start_rate(sync_clock.now())
        self._throttled = self._others = self._ignored = self._refused = 0
        super().__init__()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the limit was made with, keyed by name."""
        return {name: getattr(self, name) for name in _SETTINGS}

    @property
    def state(self) -> Literal["off", "limiting"]:
        """The current state: "off" until a call is throttled, then "limiting"."""
        return "limiting" if self._state.limiting else "off"

    @property
    def metrics(self) -> AdaptiveRateMetrics:
        """The current rates, and counts of calls, for gauges and counters."""
        with self._lock:
            state, now = self._fill()
        return AdaptiveRateMetrics(
            state.fill_rate,
            state.capacity,
            state.tokens,
            _until(1 - state.tokens, state, now) if state.limiting else 0.0,
            state.measured_rate,
            state.last_max,
            self._throttled,
            self._others,
            self._ignored,
            self._refused,
        )

    def acquire(self) -> Lease | Refusal:
        """Ask to make one call, without waiting.

        >>> AdaptiveRateLimit().acquire().delay
        0.0

        Returns:
            A lease, to which the outcome must be reported; or a refusal, which takes no
            token. The delay of a lease is the time until its token is there, if that is
            at most 0.5 s; otherwise it is infinite, since the rate may change
            meanwhile: `Lease.wait` follows the rate.
        """
        lease = AdaptiveRateLease()
        if not self._state.limiting:
            # Without the lock, which all calls of all threads would wait for.
            lease.limit = self
            return lease
        refusal = None
        with self._lock:
            while lease.limit is None:
                before, now = self._state, sync_clock.now()
                state = before.fill(now)
                delay = _until(1 - state.tokens, state, now)
                if self.max_wait is not None and delay - self.max_wait > _SHORTEST:
                    self._refused += 1
                    text = "throttled, and its next token comes after max_wait"
                    refusal = Refusal(text, delay - self.max_wait)
                    break
                after = state.add(-1)
                lease.delay = delay if delay <= MEASURED_EVERY else math.inf
                lease.due = state.filled - after.tokens
                # A signal handler or a finalizer may have replaced it in this thread.
                # Between the next lines there is no call, and so no interrupt.
                if self._state is before:
                    self._state = after
                    lease.limit = self
        return lease if refusal is None else refusal

    def is_failure(self, error: Exception, /) -> bool | None:
        """Return True, or None for a mistake in the code that `on` does not match.

        All other errors count, throttling or not. For a mistake, the policy decides
        whether the call counts.
        """
        if default_condition(error):
            return True
        return matches_condition("on", self.on, error) or None

    def is_failed_result(self, result: object, /) -> bool | None:
        """Return the answer of `on_result`; None if there is none."""
        predicate = self.on_result
        if predicate is None:
            return None
        return read_answer("on_result", predicate, predicate(result))

    def format_setting(self, value: object) -> str:
        """Return the value of a setting as an expression."""
        code = isinstance(value, type | tuple) or callable(value)
        return format_value(value) if code else repr(value)

    @user_facing
    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, for JSON and TOML.

        Raises:
            ConfigError: A setting is a predicate of your own, or a type that cannot be
                imported by name.
        """
        data = super().to_dict()
        if self.on_result is not None:
            rule = "left out of a limit that is written as data"
            raise invalid_setting(
                "on_result", rule, self.on_result, code="not-expressible"
            )
        if self.on is throttling:
            # It has no name, as it is the default.
            del data["on"]
        elif isinstance(self.on, tuple):
            data["on"] = [type_to_name("on", kind) for kind in self.on]
        else:
            data["on"] = type_to_name("on", self.on)
        return {name: value for name, value in data.items() if value is not None}

    def is_throttling(self, error: Exception | None) -> bool:
        """Return whether a failure is throttling.

        A failure without an error is throttling if there is an `on_result`.
        """
        if error is None:
            return self.on_result is not None
        try:
            cause = error.error if isinstance(error, Signal) else error
            return matches_condition("on", self.on, cause)
        except Exception as fault:  # noqa: BLE001  it must not hide the error of the call
            text = "an error is not throttling, because the condition of its limit "
            log_fault(logging.ERROR, fault, f"{text}failed")
            return False

    def settle(self, lease: "AdaptiveRateLease", *, throttled: bool) -> None:
        """Count a call that ended, and change the rate."""
        with self._lock:
            while lease.limit is not None:
                before = self._state
                after = before.after_call(sync_clock.now(), throttled=throttled)
                # As in `acquire`.
                if self._state is before:
                    self._state = after
                    lease.limit = None
                    if throttled:
                        self._throttled += 1
                    else:
                        self._others += 1

    def give_back(self, lease: "AdaptiveRateLease") -> None:
        """Count a call as ignored, and give its token back."""
        with self._lock:
            while lease.limit is not None:
                after = before = self._state
                if lease.due is not None:
                    after = before.fill(sync_clock.now()).add(1)
                # As in `acquire`.
                if self._state is before:
                    self._state = after
                    lease.limit = None
                    self._ignored += 1

    def time_left(self, lease: "AdaptiveRateLease") -> float:
        """Return how long a call still waits at the present rate, in seconds."""
        with self._lock:
            state, now = self._fill()
            if lease.due is not None:
                # No longer than all who wait: some of them may have given up.
                lease.due = min(lease.due, state.filled - state.tokens)
        tokens = 0.0 if lease.due is None else lease.due - state.filled
        return _until(tokens, state, now)

    def _fill(self) -> tuple[CubicRate, float]:
        """Add tokens up to now, with the lock held; return the state and the time.

        The new state is stored, so that time continues after the clock was replaced by
        an earlier one.
        """
        while True:
            before, now = self._state, sync_clock.now()
            state = before.fill(now)
            # As in `acquire`.
            if self._state is before:
                self._state = state
                return state, now

    def _renew(self) -> None:
        super()._renew()
        state = getattr(self, "_state", None)
        if state is not None and state.tokens < 0:
            # The calls that waited are not in this process.
            self._state = state._replace(tokens=0.0)


@final
class AdaptiveRateLease(Lease):
    """A call that an adaptive rate limit let through, and its token.

    Attributes:
        limit: The limit; None once an outcome has been reported.
        due: The number of tokens, counted since the limit was made, that must be added
            before the call has its own; None if it needs none.
    """

    __slots__ = ("delay", "due", "limit")

    limit: AdaptiveRateLimit | None
    due: float | None
    delay: float

    def __init__(self) -> None:
        self.limit = self.due = None
        self.delay = 0.0

    @property
    def generation(self) -> int:
        """0, since reports of any age count."""
        return 0

    def succeeded(self) -> None:
        """Report that the call was not throttled."""
        if self.limit is not None:
            self.limit.settle(self, throttled=False)

    def failed(self, error: Exception | None = None) -> None:
        """Report that the call failed; the limit decides whether it was throttled."""
        limit = self.limit
        if limit is not None:
            limit.settle(self, throttled=limit.is_throttling(error))

    def ignored(self) -> None:
        """Report that the call does not count, and give its token back."""
        if self.limit is not None:
            self.limit.give_back(self)

    def wait(self, at_most: float | None = None) -> Refusal | None:
        """Block this thread until the call has its token, however the rate changes."""
        end = self._end(at_most)
        try:
            while left := self._time_left():
                if sync_clock.now() + left > end:
                    return self._refuse(left)
                sync_clock.sleep(min(left, MEASURED_EVERY))
        except BaseException:
            self.ignored()
            raise
        return None

    async def wait_async(self, at_most: float | None = None) -> Refusal | None:
        """Suspend this task until the call has its token, as `wait` does."""
        # Imported here: sync code needs no event loop.
        from retrykit._internal.loop_clock import async_clock  # noqa: PLC0415

        end = self._end(at_most)
        try:
            while left := self._time_left():
                now, pause = sync_clock.now(), min(left, MEASURED_EVERY)
                if now + left > end:
                    return self._refuse(left)
                await async_clock.sleep(pause)
                if sync_clock.now() - now < pause / 2:
                    # The loop has a clock of its own, which the limit cannot read.
                    await async_clock.sleep(left - pause)
                    return None
        except BaseException:
            self.ignored()
            raise
        return None

    def _end(self, at_most: float | None) -> float:
        """Return when the wait must end, in clock seconds; infinity if unlimited."""
        limits = [at_most, None if self.limit is None else self.limit.max_wait]
        known = [each for each in limits if each is not None]
        return sync_clock.now() + min(known) + _SHORTEST if known else math.inf

    def _time_left(self) -> float:
        return 0.0 if self.limit is None else self.limit.time_left(self)

    def _refuse(self, left: float) -> Refusal:
        self.ignored()
        return Refusal("throttled for longer than the call may wait", left)

    def __repr__(self) -> str:
        return f"<lease of an adaptive rate limit, due in {self.delay:.3g} s>"

    def __del__(self) -> None:
        # An interrupt may come before it has a limit.
        if getattr(self, "due", None) is not None:
            self.ignored()


def _until(tokens: float, state: CubicRate, now: float) -> float:
    """Return how long it takes to add this many tokens, in seconds.

    0 if it is too short for a clock: a caller that slept for it would spin.
    """
    delay = tokens / state.fill_rate
    return delay if delay > _SHORTEST and now + delay > now else 0.0


# In seconds.
_SHORTEST: Final = 1e-9

_SETTINGS: Final = ("on", "on_result", "max_wait", "name")
