"""Results of simulations, and their verdicts."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any, Final, final

from retrykit._internal.frozen import Frozen, fields_of
from retrykit.simulate._outage import Outage
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._verdict import Outcome, judge

__all__ = ["Simulation", "summarize"]


@final
class Simulation(Frozen):
    """The result of a simulation: what a fleet of clients and a server did.

    Loads are attempts per second; normal is the rate at which calls are made.

    Attributes:
        verdict: What follows the outage, in words.
        outcome: ``"recovers"``: five seconds in a row have at least 95 % successful
            attempts; ``"does not recover"`` if there are no such seconds within the
            horizon; ``"fails again"`` if it recovers, but less than 90 % of the
            attempts of the last ten seconds succeed, since calls with long delays
            return; ``"not decided"`` if it recovers in the last quarter of the horizon,
            or no attempt is sent after the outage; ``"no outage"`` if there was none;
            ``"interrupted"`` if the simulation did not end.
        recovery: Time from the end of the outage to the recovery, in seconds, >= 0;
            None if there is none. The recovery is when the last failed attempt in or
            before the first of these five seconds was sent.
        normal: Calls per second without an outage. With users or recorded calls, it is
            counted before the outage, or in all seconds if there is no outage; if there
            are no calls then, it is the rate of all recorded calls, or of users whose
            calls take no time.
        peak: The highest load from the beginning of the outage on, as a multiple of
            normal.
        final_load: The load in the last quarter of the time that was watched after the
            outage, as a multiple of normal; if the outage has not ended, in the last
            quarter of all seconds.
        calls: Number of calls.
        succeeded: Number of calls that succeeded.
        given_up: Number of calls that gave up.
        attempts: Number of attempts.
        retries: Number of attempts beyond the first of each call.
        amplification: Attempts per call; it may be below 1 if limits refuse calls
            before their first attempts. 1 without calls.
        requests: Number of requests to each server, from the first one on: the requests
            to the first one are the attempts.
        mean_wait: Mean time of a call that succeeds, in seconds; None if none does.
        p50: The median of these times, in seconds, to within 0.4 %.
        p95: Their 95th percentile.
        p99: Their 99th percentile.
        load: The load in each second.
        goodput: Calls that succeeded in each second.
        queue: Requests in the queue of the server, at the end of each second.
        pending: Calls that wait for their next attempt, at the end of each second.
        outage: When the outage begins and ends, in seconds; None if there was none.
        settings: All settings, including the defaults, as they are written.
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
    """Return the result of a simulation that has ended or was interrupted.

    Args:
        recorder: Its counts.
        rate: Calls per second; 0 if they are to be counted before the outage.
        usual: Calls per second if there are none before the outage, > 0.
        outage: The outage; None if there was none.
        horizon: How long the time after the outage is, in seconds.
        settings: All settings, as they are written.
        behind: The counts of the requests to each server behind the first one.
        seconds: Number of seconds that were to be simulated.
    """
    calls, attempts = sum(recorder.calls), sum(recorder.sent)
    begin, failing = 0, None
    if outage is not None:
        begin = int(outage.begin)
        failing = (outage.begin, outage.begin + outage.duration)
    before = recorder.calls if outage is None else recorder.calls[:begin]
    counted = sum(before) / max(len(before), 1)
    normal = rate or counted or usual
    found = judge(recorder, outage, horizon=horizon, seconds=seconds, normal=normal)
    waits = recorder.waits
    return Simulation(
        verdict=found.text,
        outcome=found.outcome,
        recovery=found.recovery,
        normal=normal,
        peak=max(recorder.sent[begin:], default=0) / normal,
        final_load=found.final_load,
        calls=calls,
        succeeded=sum(recorder.goodput),
        given_up=sum(recorder.given_up),
        attempts=attempts,
        retries=sum(recorder.retried),
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
