"""Fewer attempts, or no delay, for suites that cannot hand in a clock."""

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from typing import final

from retrykit._internal.clocks import AsyncClock, Clock, LoopClock, task, thread
from retrykit._internal.validation import instance, whole
from retrykit.execution.attempt_timeout import Limit, limit
from retrykit.execution.overrides import Limits, limits
from retrykit.testing.context_block import Block

__all__ = ["limited", "retries_disabled"]


@final
class retries_disabled(Block[None]):  # noqa: N801  used as a function
    """Let every function be called exactly once.

    Its error passes through, whatever the policy makes of it otherwise, and so
    does a result that the policy refuses.

    >>> from retrykit import retry
    >>> @retry
    ... def fetch():
    ...     print("called")
    ...     raise ConnectionError
    >>> with retries_disabled():
    ...     try:
    ...         fetch()
    ...     except ConnectionError:
    ...         print("failed")
    called
    failed

    Args:
        everywhere: Whether it holds for every thread and task of the process;
            by default for this one, and for the tasks that it starts.
    """

    def __init__(self, *, everywhere: bool = False) -> None:
        self._everywhere = instance("everywhere", everywhere, bool)
        super().__init__()

    def __repr__(self) -> str:
        return f"retries_disabled(everywhere={self._everywhere})"

    def _open(self, opened: ExitStack) -> None:
        everywhere = self._everywhere
        held = Limits(max_attempts=None, disabled=True)
        opened.enter_context(limits.hold(self.what, held, everywhere=everywhere))


@final
class limited(Block[None]):  # noqa: N801  used as a function
    """Let calls make few attempts, and wait for none of them.

    Delays that are not waited for count as if they were: a call whose time is
    limited ends where it would have ended. Within another such block the
    smaller limit holds, and delays are waited for only if both say so.

    >>> from retrykit import retry, state_of
    >>> @retry(schedule=["1h"] * 5, max_elapsed="3h")
    ... def fetch():
    ...     raise ConnectionError("refused")
    >>> with limited(max_attempts=3):
    ...     try:
    ...         fetch()
    ...     except ConnectionError as error:
    ...         round(state_of(error).elapsed)
    7200

    Args:
        max_attempts: Most calls of each function; a policy that allows fewer
            keeps its own limit. Count, >= 1; by default the policies decide.
        no_delay: Whether delays are left out, sync and async.
        everywhere: Whether it holds for every thread and task of the process;
            by default for this one, and for the tasks that it starts.

    Raises:
        ConfigError: *max_attempts* is no count, or another argument no bool.
    """

    def __init__(
        self,
        max_attempts: int | None = None,
        *,
        no_delay: bool = True,
        everywhere: bool = False,
    ) -> None:
        if max_attempts is not None:
            way_out = "the first call counts"
            whole("max_attempts", max_attempts, at_least=1, way_out=way_out)
        self._max_attempts = max_attempts
        self._no_delay = instance("no_delay", no_delay, bool)
        self._everywhere = instance("everywhere", everywhere, bool)
        super().__init__()

    def __repr__(self) -> str:
        settings = f"no_delay={self._no_delay}, everywhere={self._everywhere}"
        return f"limited({self._max_attempts}, {settings})"

    def _open(self, opened: ExitStack) -> None:
        what, everywhere = self.what, self._everywhere
        outer = limits.get()
        known = (outer.max_attempts, self._max_attempts)
        fewest = min((most for most in known if most is not None), default=None)
        held = outer.replaced(max_attempts=fewest)
        opened.enter_context(limits.hold(what, held, everywhere=everywhere))
        if self._no_delay:
            blocking, awaited = _Skipping(thread.chosen()), _Awaited(task.chosen())
            opened.enter_context(thread.use(blocking, what, everywhere=everywhere))
            opened.enter_context(task.use(awaited, what, everywhere=everywhere))


_skipped: ContextVar[float] = ContextVar("retrykit skipped delays", default=0.0)
"""Seconds of delay that were left out: by this thread or task, so that calls
which run side by side do not spend each other's time."""


@final
class _Skipping:
    """A clock on which a delay takes no time, although it counts."""

    def __init__(self, clock: Clock) -> None:
        # On a clock that skips already it would count twice.
        self.counted: Clock = clock.counted if isinstance(clock, _Skipping) else clock

    def now(self) -> float:
        return self.counted.now() + _skipped.get()

    def sleep(self, delay: float, /) -> None:
        _skipped.set(_skipped.get() + delay)


@final
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

    def limit(self, timeout: float, /) -> Limit:
        return limit(timeout, self.counted)

    async def sleep(self, delay: float, /) -> None:
        _skipped.set(_skipped.get() + delay)
        # Other tasks get their turn, and a cancellation arrives.
        await task.real.sleep(0)
