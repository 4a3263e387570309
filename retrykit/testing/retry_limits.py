"""Overrides for tests: fewer attempts, or no delays."""

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from typing import final

from retrykit._internal.clocks import AsyncClock, Clock, sync_clock
from retrykit._internal.loop_clock import LoopClock, async_clock
from retrykit._internal.validation import check_instance, check_integer
from retrykit.execution.attempt_timeout import TimeoutScope, timeout_scope
from retrykit.execution.overrides import RetryOverrides, retry_overrides
from retrykit.testing.context_block import Block

__all__ = ["disable_retries", "limit_retries"]


@final
class disable_retries(Block[None]):  # noqa: N801  used as a function
    """Let every function be called exactly once.

    Its error is raised unchanged, and its result returned even if the policy rejects
    it.

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
            default it applies to this one and the tasks that it starts.
    """

    def __init__(self, *, process_wide: bool = False) -> None:
        self._process_wide = check_instance("process_wide", process_wide, bool)
        super().__init__()

    def __repr__(self) -> str:
        return f"disable_retries(process_wide={self._process_wide})"

    def _open(self, opened: ExitStack) -> None:
        process_wide = self._process_wide
        held = RetryOverrides(max_attempts=None, disabled=True)
        opened.enter_context(
            retry_overrides.push(self.what, held, process_wide=process_wide)
        )


@final
class limit_retries(Block[None]):  # noqa: N801  used as a function
    """Limit the attempts of calls, and skip their delays.

    Skipped delays count as elapsed time, so `max_elapsed` ends a call at the same
    attempt. Inside of another such block the smaller limit applies, and delays are
    skipped if either says so.

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
        max_attempts: Most attempts of each call; a policy that allows fewer keeps its
            own limit. Count, >= 1; None, the default, leaves it to the policies.
        no_delay: Whether delays are skipped.
        process_wide: Whether it applies to every thread and task of the process; by
            default it applies to this one and the tasks that it starts.
    """

    def __init__(
        self,
        max_attempts: int | None = None,
        *,
        no_delay: bool = True,
        process_wide: bool = False,
    ) -> None:
        if max_attempts is not None:
            suggestion = "the first attempt counts"
            check_integer(
                "max_attempts", max_attempts, at_least=1, suggestion=suggestion
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
        outer = retry_overrides.get()
        known = (outer.max_attempts, self._max_attempts)
        fewest = min((most for most in known if most is not None), default=None)
        held = outer.replace(max_attempts=fewest)
        opened.enter_context(
            retry_overrides.push(what, held, process_wide=process_wide)
        )
        if self._no_delay:
            blocking, awaited = (
                _Skipping(sync_clock.current()),
                _Awaited(async_clock.current()),
            )
            opened.enter_context(
                sync_clock.use(blocking, what, process_wide=process_wide)
            )
            opened.enter_context(
                async_clock.use(awaited, what, process_wide=process_wide)
            )


_skipped: ContextVar[float] = ContextVar("retrykit skipped delays", default=0.0)
"""Seconds of delay that were left out: by this thread or task, so that calls
which run side by side do not spend each other's time."""


class _Skipping:
    """A clock on which a delay takes no time, although it counts."""

    def __init__(self, clock: Clock) -> None:
        # On a clock that skips already it would count twice.
        self.counted: Clock = clock.counted if isinstance(clock, _Skipping) else clock

    def now(self) -> float:
        return self.counted.now() + _skipped.get()

    def sleep(self, delay: float, /) -> None:
        _skipped.set(_skipped.get() + delay)


class _Awaited:
    """The same for coroutines."""

    def __init__(self, clock: AsyncClock) -> None:
        self.counted: AsyncClock = (
            clock.counted if isinstance(clock, _Awaited) else clock
        )

    def now(self) -> float:
        return self.counted.now() + _skipped.get()

    def reader(self) -> Callable[[], float]:
        clock = self.counted
        read = clock.reader() if isinstance(clock, LoopClock) else clock.now
        return lambda: read() + _skipped.get()

    def timeout_scope(self, timeout: float, /) -> TimeoutScope:
        return timeout_scope(timeout, self.counted)

    async def sleep(self, delay: float, /) -> None:
        _skipped.set(_skipped.get() + delay)
        # Lets other tasks run, and delivers a cancellation.
        await async_clock.real.sleep(0)
