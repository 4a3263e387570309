"""Leases of a concurrency limit: permits, and places in its queue."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final
from weakref import ReferenceType

from retrykit._internal.clocks import sync_clock
from retrykit.limits._leases import Lease, Refusal

if TYPE_CHECKING:
    from retrykit.limits._concurrency import Concurrency

__all__ = ["GIVEN_BACK", "Permit", "PermitLease", "QueuedLease"]

GIVEN_BACK: Final = Refusal("given back before its turn", None)
"""The refusal that ends a wait if the lease was given back meanwhile."""

Permit = ReferenceType["PermitLease"]
"""A weak reference to a lease, in a set of running or waiting calls.

It is removed when the lease is dropped, without Python code that an interrupt could
end.
"""


class PermitLease(Lease):
    """A running call and its permit.

    Attributes:
        limit: The limit; None once an outcome has been reported, or the call refused.
        permit: Its reference in the set of running calls.
        owner: The thread that asked for it.
        started: When it got its permit, in seconds of the clock, if the limit adapts.
        in_flight: How many calls ran then, itself included, if the limit adapts.
    """

    __slots__ = ("in_flight", "limit", "owner", "permit", "started")

    limit: "Concurrency | None"
    permit: Permit
    owner: int
    started: float
    in_flight: int

    @property
    def generation(self) -> int:
        """0, since the limit has a single state."""
        return 0

    def succeeded(self) -> None:
        """Report that the call succeeded."""
        if self.limit is not None:
            self.limit.give_back(self, False)  # noqa: FBT003  quicker than by name

    def failed(self, error: Exception | None = None) -> None:  # noqa: ARG002
        """Report that the call failed."""
        if self.limit is not None:
            self.limit.give_back(self, True)  # noqa: FBT003  same

    def ignored(self) -> None:
        """Report that the call does not count."""
        if self.limit is not None:
            self.limit.give_back(self, None)

    def __repr__(self) -> str:
        return f"<lease of {self.limit!r}>" if self.limit else "<lease that is over>"

    def __del__(self) -> None:
        try:
            limit = self.limit
        except AttributeError:
            # An interrupt came before it had one.
            return
        if limit is not None:
            limit.give_back(self, None)


@final
class QueuedLease(PermitLease):
    """A call that waits, or has waited, for a permit.

    Attributes:
        place: Its reference in the set of waiting calls.
        queued: When it began to wait, in seconds of the sync clock.
        wake: A function that wakes the waiting thread or task; None while nothing
            waits.
        refusal: Why it lost its place; None if it did not.
    """

    __slots__ = ("place", "queued", "refusal", "wake")

    delay: float = math.inf

    place: Permit
    queued: float
    wake: Callable[[], object] | None
    refusal: Refusal | None

    def wait(self, at_most: float | None = None) -> Refusal | None:
        """Block this thread until the call has a permit.

        Only one thread or task may wait with a lease.

        Args:
            at_most: The longest time to wait, in seconds, >= 0; None is as long as the
                limit allows.

        Returns:
            None if the call may be made; a refusal if the time is over, or the lease
            lost its place in the queue. After a refusal or an interrupted wait, the
            lease has been given back.
        """
        limit = self.limit
        if limit is None:
            return self.refusal or GIVEN_BACK
        try:
            wait = limit.time_to_wait(self, at_most)
            end, left = sync_clock.now() + wait, wait
            while left > 0 and limit.is_waiting(self):
                sync_clock.wait_until_woken(self._arm, left)
                left = end - sync_clock.now()
            return limit.end_wait(self, wait)
        except BaseException:
            self.ignored()
            raise

    async def wait_async(self, at_most: float | None = None) -> Refusal | None:
        """Suspend this task until the call has a permit, as `wait` does."""
        # Imported here: sync code needs no event loop.
        from retrykit._internal.loop_clock import async_clock  # noqa: PLC0415

        limit = self.limit
        if limit is None:
            return self.refusal or GIVEN_BACK
        try:
            wait = limit.time_to_wait(self, at_most)
            end, left = async_clock.now() + wait, wait
            while left > 0 and limit.is_waiting(self):
                await async_clock.wait_until_woken(self._arm, left)
                left = end - async_clock.now()
            return limit.end_wait(self, wait)
        except BaseException:
            self.ignored()
            raise

    def _arm(self, wake: Callable[[], object]) -> bool:
        limit = self.limit
        return limit is not None and limit.arm(self, wake)
