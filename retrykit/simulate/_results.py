"""Results of simulations, and their verdicts."""

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any, Final, Literal, final

from retrykit._internal.durations import duration_in_words
from retrykit._internal.frozen import Frozen, fields_of
from retrykit.simulate._events import SECOND, nanoseconds
from retrykit.simulate._outage import Outage
from retrykit.simulate._recorder import Recorder

__all__ = ["DECIDED", "Outcome", "Simulation", "summarize"]

Outcome = Literal[
    "recovers",
    "does not recover",
    "fails again",
    "not decided",
    "no outage",
    "interrupted",
]
"""What follows an outage."""

DECIDED: Final = 0.75
"""A recovery later in the time that was watched may be luck."""


@final
class Simulation(Frozen):
    """The result of a simulation: what a fleet of clients and a server did.

    Loads are attempts per second; normal is the rate at which calls are made.

    Attributes:
        verdict: What follows the outage, in words.
        outcome: ``"recovers"``: five seconds in a row have at least 95 % successful
            attempts; ``"does not recover"`` within the horizon; ``"fails again"`` if it
            recovers, but less than 90 % of the attempts of the last ten seconds
            succeed, since calls whose delays are long return; ``"not decided"`` if it
            recovers in the last quarter of it, or no attempt is sent after the outage;
            ``"no outage"`` if there was none;
            ``"interrupted"`` if the simulation did not end.
        recovery: Time from the end of the outage to the last attempt that failed before
            these five seconds, in seconds, >= 0; None if there are none.
        normal: Calls per second without an outage. Those of users and recorded calls
            are counted before it; if there are none, all recorded calls count, and
            those that the users make if a call takes no time.
        peak: The highest load from the beginning of the outage on, as a multiple of
            normal.
        final_load: The load in the last quarter of the horizon, as a multiple of
            normal.
        calls: Number of calls.
        succeeded: Number of calls that succeeded.
        given_up: Number of calls that gave up.
        attempts: Number of attempts.
        retries: Number of attempts besides the first ones.
        amplification: Attempts per call, >= 1.
        requests: Number of requests to each server, from the first one on: those to the
            first one are the attempts.
        mean_wait: Mean time of a call that succeeds, in seconds; None without one.
        p50: The median of these times, in seconds, within 0.4 %.
        p95: Their 95th percentile.
        p99: Their 99th percentile.
        load: The load in each second.
        goodput: Calls that succeeded in each second.
        queue: Requests in the queue of the server, at the end of each second.
        pending: Calls that wait for their next attempt, at the end of each second.
        outage: When the outage begins and ends, in seconds; None if there was none.
        settings: All settings, those left to the defaults included, as they are
            written.
    """

    __slots__ = (
        "amplification",
        "attempts",
        "calls",
        "final_load",
        "given_up",
        "goodput",
        "load",
        "mean_wait",
        "normal",
        "outage",
        "outcome",
        "p50",
        "p95",
        "p99",
        "peak",
        "pending",
        "queue",
        "recovery",
        "requests",
        "retries",
        "settings",
        "succeeded",
        "verdict",
    )
    verdict: str
    outcome: Outcome
    recovery: float | None
    normal: float
    peak: float
    final_load: float
    calls: int
    succeeded: int
    given_up: int
    attempts: int
    retries: int
    amplification: float
    requests: tuple[int, ...]
    mean_wait: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    load: tuple[int, ...]
    goodput: tuple[int, ...]
    queue: tuple[int, ...]
    pending: tuple[int, ...]
    outage: tuple[float, float] | None
    settings: dict[str, Any]

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        data = fields_of(self)
        outage = None if self.outage is None else [*self.outage]
        lists = {name: [*data[name]] for name in (*_SERIES, "requests")}
        return data | lists | {"outage": outage}

    def to_json(self) -> str:
        """Return the result as JSON."""
        return json.dumps(self.to_dict())

    def to_csv(self) -> str:
        """Return load, goodput, queue and pending retries of each second as CSV."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["second", *_SERIES])
        series = (getattr(self, name) for name in _SERIES)
        rows.writerows(zip(range(len(self.load)), *series, strict=True))
        return text.getvalue()


_SERIES: Final = ("load", "goodput", "queue", "pending")


def summarize(  # noqa: PLR0913  named
    recorder: Recorder,
    *,
    rate: float,
    usual: float = 1.0,
    outage: Outage | None,
    horizon: float,
    settings: dict[str, Any],
    behind: Sequence[Recorder] = (),
    seconds: int,
) -> Simulation:
    """Return the result of a simulation that has ended.

    Args:
        recorder: What it has counted.
        rate: Calls per second; 0 if they are to be counted before the outage.
        usual: Calls per second if there are none before it, > 0.
        outage: The outage.
        horizon: How long the time after it is, in seconds.
        settings: As they are written.
        behind: What was counted of the requests to each server behind the first one.
        seconds: Number of seconds that were to be simulated.
    """
    calls, attempts = sum(recorder.calls), sum(recorder.sent)
    succeeded, begin, recovery = sum(recorder.goodput), 0, None
    failing = None
    if outage is not None:
        failing = (outage.begin, outage.begin + outage.duration)
        begin = int(outage.begin)
        ended = nanoseconds(outage.begin) + nanoseconds(outage.duration)
        found = recorder.recovery(ended)
        recovery = None if found is None else found / SECOND
    before = recorder.calls if outage is None else recorder.calls[:begin]
    counted = sum(before) / max(len(before), 1)
    normal = rate or counted or usual
    last = recorder.sent[-math.ceil((1 - DECIDED) * horizon) :]
    final_load = sum(last) / len(last) / normal
    outcome, again = _outcome(outage, recovery, horizon), None
    if failing is not None and not any(recorder.sent[int(failing[1]) :]):
        outcome = "not decided"
    done = len(recorder.sent)
    if failing is not None and recovery is not None and outcome == "recovers":
        again = recorder.last_relapse(nanoseconds(failing[1] + recovery))
        if again == done:
            outcome = "fails again"
    if done < seconds:
        outcome = "interrupted"
        so_far = _so_far(outage, recovery, done, final_load)
        watched = f"{duration_in_words(done)} of {duration_in_words(seconds)}"
        verdict = f"interrupted after {watched}{so_far}"
    elif outcome == "no outage":
        share = f"{succeeded / calls:.1%} of the calls succeed" if calls else "no calls"
        verdict = f"no outage: {share}"
    else:
        verdict = _verdict(outcome, recovery, horizon, final_load)
        if again is not None and failing is not None and outcome == "recovers":
            verdict += f", and for good after {duration_in_words(again - failing[1])}"
    waits = recorder.waits
    return Simulation(
        verdict=verdict,
        outcome=outcome,
        recovery=recovery,
        normal=normal,
        peak=max(recorder.sent[begin:], default=0) / normal,
        final_load=final_load,
        calls=calls,
        succeeded=succeeded,
        given_up=sum(recorder.given_up),
        attempts=attempts,
        retries=recorder.retries,
        amplification=attempts / calls if calls else 1.0,
        requests=(attempts, *(sum(each.sent) for each in behind)),
        mean_wait=waits.mean(),
        p50=waits.quantile(0.5),
        p95=waits.quantile(0.95),
        p99=waits.quantile(0.99),
        load=tuple(recorder.sent),
        goodput=tuple(recorder.goodput),
        queue=tuple(recorder.queue),
        pending=tuple(recorder.waiting),
        outage=failing,
        settings=settings,
    )


def _outcome(outage: Outage | None, recovery: float | None, horizon: float) -> Outcome:
    if outage is None:
        return "no outage"
    if recovery is None:
        return "does not recover"
    return "recovers" if recovery <= DECIDED * horizon else "not decided"


def _so_far(
    outage: Outage | None, recovery: float | None, done: int, final_load: float
) -> str:
    if outage is None:
        return ""
    if done < outage.begin + outage.duration:
        return ", before the end of the outage"
    if recovery is None:
        return f": it has not recovered, {final_load:.1f} times its load"
    return f": it {_recovers(recovery).replace('recovers', 'has recovered')}"


def _recovers(recovery: float) -> str:
    if not recovery:
        return "recovers at once"
    return f"recovers {duration_in_words(recovery)} after the outage"


def _verdict(
    outcome: Outcome, recovery: float | None, horizon: float, final_load: float
) -> str:
    watched = duration_in_words(horizon)
    if recovery is None and outcome == "not decided":
        return f"not decided: no calls within {watched} after the outage"
    if recovery is None:
        return f"does not recover within {watched}: {final_load:.1f} times its load"
    text = _recovers(recovery)
    if outcome == "fails again":
        return f"{text}, but fails again: {final_load:.1f} times its load"
    if outcome == "recovers":
        return text
    return f"not decided: {text}, which is near the horizon of {watched}"
