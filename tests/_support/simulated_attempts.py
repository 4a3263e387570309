"""Attempts of a simulation, to compare them with those computed by hand."""

from retrykit.simulate._failures import (
    BUSY,
    FAILED,
    FAILED_CALL,
    OWN_TIMEOUT,
    REFUSED,
    TIMED_OUT,
)
from retrykit.simulate._simulate import run

__all__ = ["FAILURES", "attempts_of"]

FAILURES = {TIMED_OUT: "timeout", REFUSED: "refused", FAILED: "503", BUSY: "busy"}
FAILURES |= {FAILED_CALL: "failed call", OWN_TIMEOUT: "own timeout"}


def attempts_of(policy, load, **settings):
    """Return the attempts that ended: call, number, sent, ended, failure, delay.

    Times are in seconds. The calls are counted from 0 as they began.
    """
    calls, ended = {}, []

    def take(call, attempt, now, failure, delay):
        number = calls.setdefault(call, (call.began, len(calls)))
        kind = "" if failure is None else FAILURES[failure]
        ended.append((number, call.attempt, attempt.sent / 1e9, now / 1e9, kind, delay))

    settings = {"horizon": "20s", "hopeless": True} | settings
    run(policy, load=load, told=take, **settings)
    order = {each: index for index, each in enumerate(sorted(calls.values()))}
    return [(order[number], *others) for number, *others in ended]
