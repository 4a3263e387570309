"""Texts of lint warnings: every reason and every fix."""

import pytest

from retrykit import Policy, schedules as s
from retrykit.analysis.lint import RULES, Finding, check
from retrykit.analysis.lint._stage_rules import STAGE_RULES
from tests.analysis.test_lint_fleets import RULES_OF_FLEETS

GROWING = s.exponential(1).jitter(0.5)
RANDOM = s.exponential(1).full_jitter()


def halving():
    yield from (4.0, 2.0)


def polite(**settings):
    return Policy(**{"on": OSError} | settings)


class Transient:
    """A condition of a library that retries by itself."""

    own_retries = "Client(retries=0)"

    def __call__(self, error):
        raise AssertionError("a condition is not called")


EXACT = [
    Finding(
        "unbounded",
        "neither max_attempts nor max_elapsed is set, and the schedule goes on after "
        "retry 1000: a call that fails every time never ends",
        'max_attempts=5, or max_elapsed="1m"',
    ),
    Finding(
        "never-retries",
        "max_attempts=1 includes the first attempt: no retry is ever made",
        "max_attempts=2 for one retry",
    ),
    Finding(
        "never-retries",
        "the schedule has no delay: no retry is ever made",
        "schedule=[1.0] for one retry after a second",
    ),
    Finding(
        "deadline-before-first-delay",
        "max_elapsed=0.3, and retry 1 comes after 350ms at the earliest: no retry is "
        "ever made",
        "max_elapsed above 850ms, or a shorter first delay",
    ),
    Finding(
        "timeout-never-retried",
        "attempt_timeout=4s and the first delay of 1s take all of max_elapsed=5s: an "
        "attempt that times out is never retried",
        "a shorter attempt_timeout, or max_elapsed of about 9s",
    ),
    Finding(
        "timeout-never-retried",
        "attempt_timeout=5s takes all of max_elapsed=5s: an attempt that times out is "
        "never retried",
        "a shorter attempt_timeout, or max_elapsed of about 11s",
    ),
    Finding(
        "max-elapsed-unreachable",
        "max_elapsed=61.0 is never reached: up to 3 attempts of 2.0 s and their delays "
        "take 10.5s at most",
        "leave it out, or shorten it",
    ),
    Finding(
        "max-attempts-unreachable",
        "max_elapsed=64.0 ends every call after 7 of max_attempts=8",
        "max_attempts=7, or max_elapsed=198",
    ),
    Finding(
        "max-attempts-unreachable",
        "max_elapsed=9.0 ends every call after 9 of max_attempts=10000",
        "max_attempts=9",
    ),
    Finding(
        "max-attempts-unreachable",
        "max_elapsed=9.0 ends every call after 9 of max_attempts=100",
        "max_attempts=9",
    ),
    Finding(
        "max-attempts-unreachable",
        "max_elapsed=9.0 ends every call after 9 of max_attempts=10000",
        "max_attempts=9",
    ),
    Finding(
        "max-attempts-unreachable",
        "max_elapsed=4.0 ends every call after 3 of max_attempts=4",
        "max_attempts=3, or max_elapsed=14",
    ),
    Finding(
        "max-attempts-unreachable",
        "the schedule ends every call after 3 of max_attempts=4",
        "max_attempts=3, or a longer schedule",
    ),
    Finding(
        "delays-never-used",
        "max_attempts=3 ends every call after 2 of the 4 delays of its schedule",
        "a shorter schedule, or max_attempts=5",
    ),
    Finding(
        "delays-never-used",
        "max_elapsed=60.0 ends every call after 6 of the 7 delays of its schedule",
        "a shorter schedule, or max_elapsed=191",
    ),
    Finding(
        "cap-never-reached",
        ".cap(60.0) changes no delay, however many retries are made",
        "remove .cap(60.0)",
    ),
    Finding(
        "cap-never-reached",
        "max_interval=60.0 changes no delay, however many retries are made",
        "a shorter max_interval",
    ),
    Finding(
        "no-jitter",
        "none of its 4 delays is random: callers that fail together retry "
        "together, 1s later and each time after that",
        "end the schedule with .jitter(0.5)",
    ),
    Finding(
        "no-jitter",
        "none of its 5 delays is random: callers that fail together retry "
        "together, 5s later and each time after that",
        "write schedules.sequence([...]).jitter(0.5)",
    ),
    Finding(
        "capped-jitter",
        "2 of 4 delays are 2s for every caller: .cap(2.0) removes the jitter before it",
        "put .cap(2.0) before the jitter",
    ),
    Finding(
        "fixed-seed",
        "seed=7 gives every call the same delays, so jitter does not spread the calls",
        "remove seed, which is for tests",
    ),
    Finding(
        "retries-at-once",
        "2 of 3 retries have no delay: a failing service is called again "
        "before it can recover",
        "schedule=exponential(0.5).cap(60).jitter(0.5)",
    ),
    Finding(
        "retries-every-exception",
        "on is Exception, and give_up_on is empty: a TypeError, which no retry fixes, "
        "surfaces only after up to 6 attempts",
        "on=(ConnectionError, TimeoutError), or give_up_on=(TypeError, ValueError)",
    ),
    Finding(
        "too-many-attempts",
        "a call that fails every time makes up to 12 attempts: an outage multiplies "
        "the load by 12, and by 144 if its caller retries as often",
        "max_attempts=10",
    ),
    Finding(
        "too-many-attempts",
        "a call that fails every time makes at least 1001 attempts: an outage "
        "multiplies the load by 1001, and by 1002001 if its caller retries as often",
        "max_attempts=10",
    ),
    Finding(
        "library-retries-too",
        "the library whose errors are retried makes retries of its own by default: "
        "each of up to 5 attempts is then several requests",
        "switch them off: Client(retries=0); then ignore this rule",
    ),
    Finding(
        "call-outlives-process",
        "a call that fails every time takes up to 2h, and a process may live for 1h: "
        "if the process ends, the remaining retries are lost",
        "run it on a durable job engine, or set max_elapsed=3600.0",
    ),
    Finding(
        "call-outlives-process",
        "a call that fails every time takes up to 7d, and a process may live "
        "for 1h: if the process ends, the remaining retries are lost",
        "run it on a durable job engine, or set max_elapsed=3600.0",
    ),
    Finding(
        "call-outlives-process",
        "a call that fails every time takes up to over a century, and a process may "
        "live for 1h: if the process ends, the remaining retries are lost",
        "run it on a durable job engine, or set max_elapsed=3600.0",
    ),
]
# A policy, or one and the duration of its attempts.
BROKEN = [
    polite(max_attempts=None),
    polite(max_attempts=1),
    Policy.from_env("FETCH", environ={"FETCH_SCHEDULE": "[]"}),
    (polite(max_elapsed=0.3), "100ms"),
    polite(schedule=s.linear(1) * 1, max_elapsed=5, attempt_timeout=4),
    polite(schedule=[1], max_elapsed=5, attempt_timeout=5, deadline="clip"),
    polite(schedule=GROWING, max_attempts=3, max_elapsed=61, attempt_timeout=2),
    (polite(schedule=GROWING, max_attempts=8, max_elapsed=64), "1s"),
    (polite(schedule=RANDOM, max_attempts=10_000, max_elapsed=9), "1s"),
    (polite(schedule=RANDOM, max_attempts=100, max_elapsed=9), "1s"),
    (polite(schedule=s.constant(0), max_attempts=10_000, max_elapsed=9), "1s"),
    (polite(schedule=GROWING.take(3), max_attempts=4, max_elapsed=4), "1s"),
    polite(schedule=halving, max_attempts=4),
    polite(schedule=GROWING.take(4), max_attempts=3),
    polite(schedule=GROWING.take(7), max_elapsed=60),
    polite(schedule=s.sequence([4, 6]).cap(60).jitter(0.5)),
    polite(schedule=s.google_interval(1, multiplier=1)),
    polite(schedule=s.exponential(1)),
    polite(schedule=[5, 0, 7, 8, 9, 9]),
    polite(schedule=GROWING.cap(2)),
    polite(seed=7),
    polite(schedule=[0, 0, 1]),
    Policy(on=Exception, max_attempts=6),
    polite(schedule=s.constant(1).jitter(0.5), max_attempts=12),
    polite(schedule=s.constant(0.02).jitter(0.5), max_elapsed=60),
    Policy(on=Transient()),
    polite(schedule=["2h"]),
    polite(schedule=s.constant(60), max_elapsed="7d"),
    polite(schedule=[1e300]),
]


@pytest.mark.parametrize(
    ("finding", "policy"),
    list(zip(EXACT, BROKEN, strict=True)),
    ids=[f"{each.rule}: {each.reason[:30]}" for each in EXACT],
)
def test_gives_the_reason_with_the_numbers_and_the_fix(finding, policy):
    policy, attempt = policy if isinstance(policy, tuple) else (policy, 0)
    [found] = check(policy, attempt=attempt, rules=[finding.rule])
    assert found == finding


def test_every_rule_is_in_the_table():
    # Others are in test_lint_fleets.py and test_lint_stages.py.
    assert {
        finding.rule for finding in EXACT
    } == RULES.keys() - STAGE_RULES - RULES_OF_FLEETS


def test_a_finding_reads_as_one_line():
    line = str(check(Policy(on=Exception, max_attempts=6))[0])
    assert line.startswith("retries-every-exception: on is Exception, and ")
    assert line.endswith(
        "after up to 6 attempts; on=(ConnectionError, TimeoutError), or "
        "give_up_on=(TypeError, ValueError)"
    )
