"""Overrides for tests: fewer attempts, or no delays.

Of these blocks and `virtual_time`, the innermost applies.
"""

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, final

from retrykit._core.attempt_timeout import TimeoutScope, timeout_scope
from retrykit._core.limits import RetryOverrides, retry_overrides
from retrykit._internal.clocks import Arm, AsyncClock, Clock, sync_clock
from retrykit._internal.loop_clock import LoopClock, async_clock
from retrykit._internal.validation import check_instance, check_integer, user_facing
from retrykit.testing._context_block import Block

__all__ = ["disable_retries", "limit_retries"]


@final
class disable_retries(Block[None]):  # noqa: N801  used as a function
    """Call every function once, without retries.

    Its error is raised unchanged unless the policy has a `fallback`, and its result
    returned even if the policy rejects it. A `limit_retries` or `virtual_time` inside
    this block switches retries on again, for one test of a suite without retries.

    >>> from retrykit import retry
    >>> @retry
    ... def fetch():
    ...     print("called")
    ...     raise ConnectionError
    >>> with disable_retries():
    ...     try:
    ...         fetch()
    ...     except ConnectionError:
    ...         print("failed")
    called
    failed

    Args:
        process_wide: Whether it applies to every thread and task of the process; by
            default, it applies to the current thread or task, and the tasks it starts.
    """

    @user_facing
    def __init__(self, *, process_wide: bool = False) -> None:
        self._process_wide = check_instance("process_wide", process_wide, bool)
        super().__init__()

    def __repr__(self) -> str:
        return f"disable_retries(process_wide={self._process_wide})"

    def _open(self, opened: ExitStack) -> None:
        overrides = RetryOverrides(
            max_attempts=None, disabled=True, source="disable_retries()"
        )
        opened.enter_context(
            retry_overrides.push(self.what, overrides, process_wide=self._process_wide)
        )


@final
class limit_retries(Block[None]):  # noqa: N801  used as a function
    """Limit the attempts of calls, and skip their delays.

    Skipped delays count as elapsed time, so `max_elapsed` ends a call at the same
    attempt. Of nested blocks, including `disable_retries` and `virtual_time`, the
    innermost applies.

    >>> from retrykit import retry, state_of
    >>> @retry(schedule=["1h"] * 5, max_elapsed="3h")
    ... def fetch():
    ...     raise ConnectionError("refused")
    >>> with limit_retries(max_attempts=3):
    ...     try:
    ...         fetch()
    ...     except ConnectionError as error:
    ...         round(state_of(error).elapsed)
    7200

    Args:
        max_attempts: Maximum number of attempts of each call; a policy that allows
            fewer keeps its own limit. Count, >= 1; None, the default, leaves it to the
            policies.
        no_delay: Whether delays are skipped.
        process_wide: Whether it applies to every thread and task of the process; by
            default, it applies to the current thread or task, and the tasks it starts.
    """

    @user_facing
    def __init__(
        self,
        max_attempts: int | None = None,
        *,
        no_delay: bool = True,
        process_wide: bool = False,
    ) -> None:
        if max_attempts is not None:
            check_integer(
                "max_attempts",
                max_attempts,
                at_least=1,
                suggestion="the first attempt counts",
            )
        self._max_attempts = max_attempts
        self._no_delay = check_instance("no_delay", no_delay, bool)
        self._process_wide = check_instance("process_wide", process_wide, bool)
        super().__init__()

    def __repr__(self) -> str:
        settings = f"no_delay={self._no_delay}, process_wide={self._process_wide}"
        return f"limit_retries({self._max_attempts}, {settings})"

    def _open(self, opened: ExitStack) -> None:
        what, process_wide = self.what, self._process_wide
        limit = "" if self._max_attempts is None else self._max_attempts
        overrides = RetryOverrides(
            max_attempts=self._max_attempts,
            disabled=False,
            source=f"limit_retries({limit})",
        )
        opened.enter_context(
            retry_overrides.push(what, overrides, process_wide=process_wide)
        )
        clock: Clock = _without_skipping(sync_clock.current())
        aclock: AsyncClock = _without_skipping(async_clock.current())
        if self._no_delay:
            clock, aclock = _SkippingClock(clock), _AsyncSkippingClock(aclock)
        if clock is not sync_clock.current():
            opened.enter_context(sync_clock.use(clock, what, process_wide=process_wide))
            opened.enter_context(
                async_clock.use(aclock, what, process_wide=process_wide)
            )


_skipped: ContextVar[float] = ContextVar("retrykit skipped delays", default=0.0)
"""Seconds of skipped delays in this thread or task, so that concurrent calls do not
spend each other's time."""


def _without_skipping(clock: Any) -> Any:
    """Return the clock inside a skipping clock; return any other clock as it is."""
    skips = isinstance(clock, _SkippingClock | _AsyncSkippingClock)
    return clock.inner if skips else clock


class _SkippingClock:
    """A clock on which delays take no real time, but count as elapsed."""

    def __init__(self, clock: Clock) -> None:
        # Any, since it has more than the protocol asks for.
        self.inner: Any = clock

    def now(self) -> float:
        now: float = self.inner.now()
        return now + _skipped.get()

    def sleep(self, delay: float, /) -> None:
        _skipped.set(_skipped.get() + delay)

    def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        # Another call ends it: it is not skipped.
        self.inner.wait_until_woken(arm, delay)


class _AsyncSkippingClock:
    """A `_SkippingClock` for coroutines."""

    def __init__(self, clock: AsyncClock) -> None:
        self.inner: Any = clock

    def now(self) -> float:
        now: float = self.inner.now()
        return now + _skipped.get()

    def reader(self) -> Callable[[], float]:
        clock = self.inner
        read = clock.reader() if isinstance(clock, LoopClock) else clock.now
        return lambda: read() + _skipped.get()

    def timeout_scope(self, timeout: float, /) -> TimeoutScope:
        return timeout_scope(timeout, self.inner)

    async def sleep(self, delay: float, /) -> None:
        _skipped.set(_skipped.get() + delay)
        # Lets other tasks run, and delivers a cancellation.
        await async_clock.real.sleep(0)

    async def wait_until_woken(self, arm: Arm, delay: float, /) -> None:
        await self.inner.wait_until_woken(arm, delay)
