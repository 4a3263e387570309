"""A process's view of the breakers of all processes, without I/O."""

import math
from fractions import Fraction
from typing import NamedTuple, final

from retrykit.integrations.redis._availability import Availability
from retrykit.limits._circuit_state import Standing

__all__ = ["FleetState", "FleetView", "Report"]


class FleetState(NamedTuple):
    """The processes that share a breaker.

    Attributes:
        alive: Number of processes that reported recently, including this one.
        open: Number of processes whose own calls opened their breaker, after the
            breaker of this process last closed.
        needed: Number of open processes at which the breaker opens for all.
    """

    alive: int
    open: int
    needed: int


class Report(NamedTuple):
    """The report of a process to the others, with times in milliseconds.

    Attributes:
        generation: The number of the state of its breaker.
        opened: How long ago it opened; -1 if it is not open, or if others opened it.
        left: How long it stays open; 0 if *opened* is -1.
        closed: How long ago it last closed after it was open; -1 if it never was open.
        failures: Number of consecutive failures of Redis at the time of the report.
    """

    generation: int
    opened: int
    left: int
    closed: int
    failures: int


@final
class FleetView:
    """The latest news of all processes, and when this one's breaker last closed.

    Reports may overlap: each change is one assignment, and a late reply opens a breaker
    only if the breaker is still in the state that was reported.

    Attributes:
        state: The processes in the last reply of Redis; None before the first one, and
            while Redis is unavailable.
    """

    def __init__(
        self,
        quorum: float,
        at_least: int,
        refresh_every: float,
        generation: int,
        name: str,
    ) -> None:
        self.state: FleetState | None = None
        # The fraction that was meant: 0.7 of 10 is 7.
        self._quorum = Fraction(quorum).limit_denominator(100_000)
        self._at_least = at_least
        self._refresh_every = refresh_every
        self._availability = Availability(name, "each process decides alone")
        self._known = generation
        self._closed_at: float | None = None

    @property
    def pause(self) -> float:
        """The time until the next report, in seconds."""
        return max(self._availability.pause, self._refresh_every)

    def next_report(self, standing: Standing, now: float) -> Report:
        """Return the report to send now."""
        if standing.name == "closed" and standing.generation != self._known:
            self._known, self._closed_at = standing.generation, now
        closed, opened = self._closed_at, standing.opened
        return Report(
            standing.generation,
            -1 if opened is None else _milliseconds(opened),
            _milliseconds(standing.left),
            -1 if closed is None else _milliseconds(max(now - closed, 0.0)),
            self._availability.failures,
        )

    def apply_reply(
        self, report: Report, alive: int, ends: list[int]
    ) -> tuple[float, str] | None:
        """Record a reply; return how long the others open this breaker, and why.

        Args:
            report: The report that was sent.
            alive: Number of processes.
            ends: When each open time ends, in milliseconds from now.

        Returns:
            Seconds, and the reason in words; None if too few processes are open.
        """
        needed = max(self._at_least, math.ceil(self._quorum * alive))
        self.state = FleetState(alive, len(ends), needed)
        self._availability.reply(report.failures)
        if len(ends) < needed:
            return None
        # When this one ends, too few are open.
        left = sorted(ends)[len(ends) - needed]
        return left / 1000, f"{len(ends)} of {alive} processes are"

    def apply_failure(self, report: Report, fault: Exception) -> None:
        """Record a failure of Redis: this process decides alone."""
        self.state = None
        self._availability.fail(report.failures, fault)


def _milliseconds(seconds: float) -> int:
    return math.ceil(seconds * 1000)
