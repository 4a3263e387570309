"""Leases of a circuit breaker."""

from typing import TYPE_CHECKING, Any, Final, final

from retrykit._internal.clocks import sync_clock
from retrykit._internal.fast_path import blockers
from retrykit.limits._circuit_state import State
from retrykit.limits._leases import Lease

if TYPE_CHECKING:
    from retrykit.limits._circuit_breaker import CircuitBreaker

__all__ = ["CircuitLease", "ProbeLease"]


class CircuitLease(Lease):
    """A call that a breaker let through.

    Attributes:
        breaker: The breaker; None once an outcome has been reported.
        state: The state that let it through.
        started: When it was let through, in seconds of the clock; set only for probes,
            and if the breaker has a `slow_after`.
    """

    __slots__ = ("breaker", "started", "state")

    breaker: "CircuitBreaker | None"
    state: State
    started: float

    @property
    def generation(self) -> int:
        """The number of the state that granted the lease, from 0."""
        return self.state.generation

    def succeeded(self) -> None:
        """Report that the call succeeded."""
        state: Any = self.state
        quiet, timed = state.quiet, state.timed
        if quiet and timed is not None:
            now = sync_clock.now() if blockers else _real_now()
            quiet = now // timed.width == timed.index and state.quiet
        # From here to the step there is no call, after which another thread could run,
        # or an interrupt could come.
        if self.breaker is None:
            return
        if quiet:
            self.breaker = None
            next(state.steps)
        else:
            self.breaker.settle(self, False)  # noqa: FBT003  quicker than by name

    def failed(self, error: Exception | None = None) -> None:  # noqa: ARG002
        """Report that the call failed."""
        if self.breaker is not None:
            self.breaker.settle(self, True)  # noqa: FBT003  same

    def ignored(self) -> None:
        """Report that the call does not count."""
        if self.breaker is not None:
            self.breaker.ignore(self)

    def __repr__(self) -> str:
        return f"<lease of a breaker that was {self.state.name}>"


_real_now: Final = sync_clock.real.now


@final
class ProbeLease(CircuitLease):
    """A call that a half-open breaker let through.

    Only such a call has a place to give back.
    """

    __slots__ = ()

    def succeeded(self) -> None:
        """Report that the call succeeded."""
        if self.breaker is not None:
            self.breaker.settle(self, False)  # noqa: FBT003  as above

    def __del__(self) -> None:
        # An interrupt may come before it has a breaker.
        if getattr(self, "breaker", None) is not None:
            self.ignored()
