"""Lint rules of circuit breakers, other limits and hedges."""

from threading import Event

import pytest

from retrykit import Hedge, Policy, schedules as s
from retrykit._core.timeouts import AsArgument
from retrykit.analysis.lint import Finding, check
from retrykit.analysis.lint._stage_rules import STAGE_RULES
from retrykit.limits import AdaptiveRateLimit, CircuitBreaker, Lease, Limit


class Own(Limit):
    """A limit that allows everything."""

    state = "open"

    def acquire(self):
        return Lease()


def hedge(delay="50ms", **settings):
    settings = {"quantile": 0.95} if delay is None else {"delay": delay, **settings}
    return Hedge(**settings, idempotent=True)


def breaker(**settings):
    return {"admission": [CircuitBreaker(**settings)], "attempt_timeout": "5s"}


def findings(**settings):
    return check(Policy(**{"on": OSError} | settings))


def names(**settings):
    return [finding.rule for finding in findings(**settings)]


WAITS = {"on_refused": "wait"}

EXACT = {
    "no timeout": (
        breaker() | {"attempt_timeout": None},
        Finding(
            "breaker-without-timeout",
            "attempt_timeout is None: a call that hangs is never a failure for the "
            "circuit breaker, and as its probe keeps others out",
            'attempt_timeout="10s", or AsArgument("10s") for blocking code; ignore '
            "this rule if the function has a timeout inside",
        ),
    ),
    "probes": (
        breaker(probe_timeout="4s", name="api"),
        Finding(
            "probe-timeout-too-short",
            "the circuit breaker 'api' drops a probe after probe_timeout=4s, and an "
            "attempt may take 5s: a slow success does not close it",
            "probe_timeout of at least 5s",
        ),
    ),
    "hedge": (
        {"hedge": hedge("5s"), "attempt_timeout": "5s"},
        Finding(
            "hedge-after-timeout",
            "a hedge is sent after 5s, and each send ends after attempt_timeout=5s: no "
            "second send ever runs beside the first",
            "a shorter delay, such as the 95th percentile of the latency",
        ),
    ),
    "forever": (
        breaker() | WAITS | {"max_attempts": 5},
        Finding(
            "waits-forever",
            'on_refused is "wait", and no time limit ends the wait: a call waits for '
            "as long as a limit refuses it, such as a breaker that was isolated",
            'max_elapsed="1m", or a stop_event',
        ),
    ),
    "too short": (
        breaker(open_for="90s") | WAITS | {"max_elapsed": "1m"},
        Finding(
            "wait-too-short",
            'on_refused is "wait", but the circuit breaker opens for 1m30s, longer '
            "than max_elapsed=1m: a call that opens it gives up at once",
            'max_elapsed above 1m30s, or on_refused="give_up"',
        ),
    ),
}


@pytest.mark.parametrize(("settings", "finding"), EXACT.values(), ids=EXACT)
def test_a_warning_has_a_reason_and_a_fix(settings, finding):
    assert findings(**settings) == (finding,)


def test_every_rule_is_in_the_table():
    assert {finding.rule for _, finding in EXACT.values()} == STAGE_RULES.keys()


@pytest.mark.parametrize(
    "unlimited",
    [
        {"max_elapsed": "1m", "deadline": "overshoot"},
        {"max_elapsed": "1m", "max_attempts": 5, "limits": "all"},
    ],
    ids=["overshoot", "all"],
)
def test_a_time_limit_that_does_not_end_the_wait_is_none(unlimited):
    [finding] = findings(**breaker(open_for="2m"), **WAITS, **unlimited)
    assert finding.rule == "waits-forever"
    stop = 'max_elapsed="1m" with limits="any" and deadline="stop"'
    assert finding.fix == f"{stop}, or a stop_event"


def test_a_limit_of_your_own_may_refuse_for_ever():
    assert names(admission=[Own()], max_attempts=5, **WAITS) == ["waits-forever"]


def test_the_first_opening_of_a_schedule_counts():
    growing = s.exponential("90s").jitter(0.5)
    patient = WAITS | {"max_elapsed": "1m"}
    assert names(**breaker(open_for=growing), **patient) == []
    growing = s.exponential("200s").jitter(0.5)
    assert names(**breaker(open_for=growing), **patient) == ["wait-too-short"]


@pytest.mark.parametrize(
    "settings",
    [
        breaker(),
        breaker(probe_timeout="5s"),
        breaker() | {"attempt_timeout": AsArgument("5s")},
        breaker(open_for="90s"),
        breaker() | WAITS,
        breaker(open_for="1m") | WAITS | {"max_elapsed": "1m"},
        breaker() | WAITS | {"max_attempts": 5, "stop_event": Event()},
        {"admission": [AdaptiveRateLimit()], "max_attempts": 5} | WAITS,
        {"admission": [Own()]},
        {"hedge": hedge("5s")},
        {"hedge": hedge("4s"), "attempt_timeout": "5s"},
        {"hedge": hedge("5s"), "attempt_timeout": AsArgument("5s")},
        {"hedge": hedge(None), "attempt_timeout": "5ms"},
        {"hedge": hedge(), "attempt_timeout": "5s", **WAITS},
    ],
)
def test_other_policies_cause_no_warning(settings):
    assert names(**settings) == []
