"""Hedges of simulated attempts: further sends, by the rules of `Race`."""

from typing import Any, Final, cast, final

from retrykit._core.failures import StopReason
from retrykit._core.hedge import Hedge
from retrykit._core.hedging import Race
from retrykit._core.sends import SentOutcome
from retrykit._core.steps import report_failed_send, withdraw_hedge
from retrykit.errors import GiveUp, RetryAfter
from retrykit.simulate._calls import Call, Process
from retrykit.simulate._events import SECOND, Event, nanoseconds
from retrykit.simulate._requests import Done, Layer, Line, Sending, Whole

__all__ = ["Hedged", "Hedges"]


@final
class Hedges:
    """The hedge of a process; each process counts its own extra load.

    Args:
        process: The process, whose policy has a hedge.
        line: The way to the server.
        below: Sends each attempt.
    """

    def __init__(self, process: Process, line: Line, below: Layer) -> None:
        self.process, self.line, self.below = process, line, below
        given = cast("Hedge", process.clients.policy.hedge)
        self.hedge: Final = Hedge(**given.settings)

    def send(self, whole: Whole, deadline: int, done: Done, /) -> "Hedged":
        """Send an attempt, and send it again if it is slow or a send fails."""
        self.hedge.begin()
        hedged = Hedged(self, whole, deadline, done)
        hedged.begin()
        return hedged


@final
class SimulatedRace(Race):
    """The sends of one attempt of a simulated call, and the outcome that counts."""

    def __init__(self, hedges: Hedges, call: Call, now: float) -> None:
        super().__init__(hedges.process.clients.policy, hedges.hedge, now)
        self._hedges, self._call = hedges, call

    def succeeded(self, outcome: SentOutcome, now: float) -> None:
        """End the race with a successful send, and note how long the attempt took."""
        self._hedge.note(now - self._begun)
        self._end(outcome)

    def _allowed_delay(self, hint: float | RetryAfter | GiveUp) -> float | StopReason:
        now = self._hedges.line.events.now
        delay = self._hedges.process.rules.delay_of_hint(self._call, now, hint)
        return StopReason.HINT if delay is None else delay

    def _end(self, outcome: SentOutcome) -> None:
        # Without notes on errors, which all attempts share.
        self.outcome = outcome
        for each in self._failed:
            if each is not outcome:
                report_failed_send(self._hedges.process.budget)


@final
class Hedged:
    """The sends of one attempt."""

    __slots__ = (
        "_deadline",
        "_done",
        "_failures",
        "_hedges",
        "_race",
        "_sent",
        "_timer",
        "_whole",
    )

    def __init__(self, hedges: Hedges, whole: Whole, deadline: int, done: Done) -> None:
        self._hedges, self._whole = hedges, whole
        self._deadline, self._done = deadline, done
        self._race = SimulatedRace(hedges, whole.call, self._now())
        self._sent: dict[int, Sending] = {}
        self._failures: dict[int, int] = {}
        self._timer: Event | None = None

    def _now(self) -> float:
        return self._hedges.line.events.now / SECOND

    def begin(self) -> None:
        """Make the first send, and schedule the next one."""
        self._send(1)
        self._wait()

    def _send(self, number: int) -> None:
        def done(failure: int | None) -> None:
            self._take(number, failure)

        send = self._hedges.below.send
        self._sent[number] = send(self._whole, self._deadline, done)

    def _wait(self) -> None:
        """Schedule the next send, if there is one."""
        events = self._hedges.line.events
        delay = self._race.time_to_next(self._now())
        if delay is not None:
            due = events.now + nanoseconds(delay)
            self._timer = events.at(due, self._send_again, None)

    def _send_again(self, _: object) -> None:
        self._timer = None
        hedge, race = self._hedges.hedge, self._race
        if not hedge.may_send():
            race.stop()
        elif not withdraw_hedge(self._hedges.process.budget):
            hedge.give_back()
            race.stop()
        else:
            self._send(race.sent(self._now()))
            self._wait()
        self._end_if_over()

    def _take(self, number: int, failure: int | None) -> None:
        """Handle the end of a send."""
        del self._sent[number]
        self._stop_timer()
        race, now = self._race, self._now()
        if failure is None:
            race.succeeded(race.received(SentOutcome(number, None, None)), now)
        else:
            rules = self._hedges.process.rules
            self._failures[number] = failure
            outcome = SentOutcome(number, None, rules.error(failure))
            race.ended(race.received(outcome), cast("Any", rules.match(failure)), now)
        if race.outcome is None:
            self._wait()
        self._end_if_over()

    def _end_if_over(self) -> None:
        outcome = self._race.outcome
        if outcome is not None:
            self.cancel(succeeded=None)
            self._done(self._failures.get(outcome.number))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._hedges.line.events.cancel(self._timer)
            self._timer = None

    def cancel(self, *, succeeded: bool | None) -> None:
        """Cancel the sends in progress, and schedule no other."""
        self._stop_timer()
        for each in [*self._sent.values()]:
            each.cancel(succeeded=succeeded)
        self._sent.clear()
