"""Verdicts of simulations: whether a server recovers from its outage."""

import math
from typing import Final, Literal, NamedTuple, final

from retrykit._internal.durations import duration_in_words
from retrykit.simulate._events import SECOND, nanoseconds
from retrykit.simulate._outage import Outage
from retrykit.simulate._recorder import Recorder

__all__ = ["Outcome", "Verdict", "judge"]

Outcome = Literal[
    "recovers",
    "does not recover",
    "fails again",
    "not decided",
    "no outage",
    "interrupted",
]
"""The verdict about a simulation in a few words."""

# A recovery later in the time that was watched may be luck.
_DECIDED: Final = 0.75


@final
class Verdict(NamedTuple):
    """The verdict about a simulation.

    Attributes:
        outcome: The verdict in a few words.
        recovery: Time from the end of the outage to the recovery, in seconds; None if
            there is none.
        final_load: Attempts per second, as a multiple of *normal*, in the last quarter
            of the time that was watched after the outage, or of all seconds if the
            outage has not ended.
        text: The verdict in a sentence.
    """

    outcome: Outcome
    recovery: float | None
    final_load: float
    text: str


def judge(
    recorder: Recorder,
    outage: Outage | None,
    *,
    horizon: float,
    seconds: int,
    normal: float,
) -> Verdict:
    """Return the verdict about a simulation that has ended or was interrupted.

    Args:
        recorder: Its counts.
        outage: The outage; None if there was none.
        horizon: How long the time after the outage is, in seconds.
        seconds: Number of seconds that were to be simulated.
        normal: Calls per second without an outage.
    """
    done = len(recorder.sent)
    ended = 0.0 if outage is None else outage.begin + outage.duration
    watched = min(horizon, done - ended) if done > ended else done
    last = recorder.sent[-math.ceil((1 - _DECIDED) * watched) :]
    final_load = sum(last) / len(last) / normal
    recovery = again = None
    if outage is not None:
        end = nanoseconds(outage.begin) + nanoseconds(outage.duration)
        found = recorder.recovery(end)
        if found is not None:
            recovery, again = found / SECOND, recorder.last_relapse(end + found)
    outcome = _outcome(recovery, horizon, fails_again=again == done)
    if outage is None:
        outcome = "no outage"
    elif not any(recorder.sent[int(ended) :]):
        outcome = "not decided"
    text = _text(outcome, recovery, horizon, final_load)
    if outage is None:
        text = f"no outage: {_succeeded(recorder)}"
    elif outcome == "recovers" and again is not None:
        text += f", and for good after {duration_in_words(again - ended)}"
    if done < seconds:
        outcome = "interrupted"
        text = f"interrupted after {duration_in_words(done)} of "
        text += duration_in_words(seconds)
        if outage is not None:
            text += _so_far(recovery, final_load, early=done < ended)
            if recovery is not None and again == done:
                text += _relapse(final_load)
    return Verdict(outcome, recovery, final_load, text)


def _outcome(recovery: float | None, horizon: float, *, fails_again: bool) -> Outcome:
    if recovery is None:
        return "does not recover"
    if recovery > _DECIDED * horizon:
        return "not decided"
    return "fails again" if fails_again else "recovers"


def _text(
    outcome: Outcome, recovery: float | None, horizon: float, final_load: float
) -> str:
    watched = duration_in_words(horizon)
    if recovery is None and outcome == "not decided":
        return f"not decided: no calls within {watched} after the outage"
    if recovery is None:
        return f"does not recover within {watched}{_load(final_load)}"
    text = f"recovers {_when(recovery)}"
    if outcome == "fails again":
        return text + _relapse(final_load)
    if outcome == "recovers":
        return text
    return f"not decided: {text}, which is near the horizon of {watched}"


def _so_far(recovery: float | None, final_load: float, *, early: bool) -> str:
    if early:
        return ", before the end of the outage"
    if recovery is None:
        return f": it has not recovered{_load(final_load, ',')}"
    return f": it has recovered {_when(recovery)}"


def _relapse(final_load: float) -> str:
    return f", but fails again{_load(final_load)}"


def _when(recovery: float) -> str:
    if not recovery:
        return "at once"
    return f"{duration_in_words(recovery)} after the outage"


def _load(final_load: float, sign: str = ":") -> str:
    """Return a load in words, for the end of a sentence.

    Args:
        final_load: The load, as a multiple of the normal load.
        sign: The sign before it, unless it is normal.
    """
    shown = f"{final_load:.1f}"
    return (
        ", at its normal load" if shown == "1.0" else f"{sign} {shown} times its load"
    )


def _succeeded(recorder: Recorder) -> str:
    calls = sum(recorder.calls)
    if not calls:
        return "no calls"
    return f"{sum(recorder.goodput) / calls:.1%} of the calls succeed"
