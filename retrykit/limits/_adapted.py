"""Adapters that turn other libraries' limiters, such as semaphores, into limits."""

import threading
from typing import Any, final

from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import check_text, invalid_setting, user_facing
from retrykit.limits._base import Limit
from retrykit.limits._leases import Lease, Refusal

__all__ = ["Adapted"]


@final
class Adapted(Limit):
    """A limiter of another library as a limit.

    It is for the semaphores of `threading` and `asyncio`, the ``CapacityLimiter`` of
    anyio and trio, and the ``AsyncLimiter`` of aiolimiter: for any object with an
    ``acquire`` that waits for a permit, and takes a ``timeout`` if it blocks the
    thread. Its ``release``, if it has one, returns the permit. Functions wait in their
    thread, and coroutines in their event loop, as the limiter does.

    >>> import threading
    >>> connections = Adapted(threading.BoundedSemaphore(2), name="connections")
    >>> with connections.guard():
    ...     print("at most two at once")
    at most two at once

    Each attempt asks the limiter. A call may wait as long as the policy's `max_elapsed`
    allows. The limiter cannot say how long a wait will be, so a call that waits too
    long is refused only at the end of that time; `RateLimit` refuses it at once.

    Args:
        limiter: The limiter. It may be shared with code that uses it directly.
        name: Its name in errors.

    Raises:
        ConfigError: *limiter* is a class, or has no ``acquire``.
    """

    @user_facing
    def __init__(self, limiter: Any, *, name: str | None = None) -> None:
        if isinstance(limiter, type) or not callable(getattr(limiter, "acquire", None)):
            rule = "an object with acquire(), such as a semaphore"
            raise invalid_setting("limiter", rule, limiter)
        self.limiter: Any = limiter
        self.name: str | None = None if name is None else check_text("name", name)

    @property
    def state(self) -> str:
        """The text ``"adapted"``, since limiters have no state in common."""
        return "adapted"

    def acquire(self) -> Lease | Refusal:
        """Return a lease that waits for the limiter."""
        return AdaptedLease(self.limiter)

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={self.name!r}"
        return f"Adapted({self.limiter!r}{name})"


@final
class AdaptedLease(Lease):
    """A permit of another library's limiter, for which a call waits.

    Capacity limiters identify each permit by its borrower: this lease.
    """

    __slots__ = ("_held", "_limiter", "_lock", "delay")

    def __init__(self, limiter: Any) -> None:
        self._limiter = limiter
        self._held = False
        self._lock = threading.Lock()
        self.delay: float = float("inf")

    @property
    def generation(self) -> int:
        """0, since reports never come too late."""
        return 0

    def wait(self, at_most: float | None = None) -> Refusal | None:
        """Block this thread until the limiter gives a permit."""
        acquire = self._limiter.acquire
        if is_coroutine_function(acquire):
            rule = "a limiter whose acquire() blocks, where nothing can await it"
            suggestion = "use it under aretry, or a threading.Semaphore"
            raise invalid_setting(
                "limiter", rule, self._limiter, suggestion, code="async-mismatch"
            )
        if not acquire(timeout=at_most):
            return _TOO_LONG
        self._held, self.delay = True, 0.0
        return None

    async def wait_async(self, at_most: float | None = None) -> Refusal | None:
        """Suspend this task until the limiter gives a permit."""
        # Imported here: sync code needs no event loop.
        from retrykit._internal.loop_clock import move_on_after  # noqa: PLC0415

        limiter = self._limiter
        acquire: Any = getattr(limiter, "acquire_on_behalf_of", None)
        arguments: tuple[object, ...] = (self,)
        if acquire is None:
            acquire, arguments = limiter.acquire, ()
        if not is_coroutine_function(acquire):
            rule = "a limiter whose acquire() can be awaited, in an event loop"
            suggestion = "a threading.Semaphore would block it: use asyncio.Semaphore"
            raise invalid_setting(
                "limiter", rule, limiter, suggestion, code="async-mismatch"
            )
        with move_on_after(float("inf") if at_most is None else at_most):
            await acquire(*arguments)
            self._held, self.delay = True, 0.0
        return None if self._held else _TOO_LONG

    def succeeded(self) -> None:
        """Hand the permit back to the limiter."""
        self.ignored()

    def failed(self, error: Exception | None = None) -> None:  # noqa: ARG002
        """Hand the permit back to the limiter."""
        self.ignored()

    def ignored(self) -> None:
        """Hand the permit back, if there is one."""
        with self._lock:
            held, self._held = self._held, False
        if not held:
            return
        limiter = self._limiter
        release = getattr(limiter, "release_on_behalf_of", None)
        if release is not None:
            release(self)
        elif hasattr(limiter, "release"):
            limiter.release()


_TOO_LONG = Refusal("busy for longer than the call may wait", None)
