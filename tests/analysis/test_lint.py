"""Lint rules: the policies that each of them warns of."""

import time

import pytest
from hypothesis import given

from retrykit import AsArgument, Policy, presets, schedules as s
from retrykit._core.rules import Rule
from retrykit.analysis.lint import RULES, check
from retrykit.analysis.lint._cap_analysis import caps
from retrykit.analysis.lint._stage_rules import STAGE_RULES
from retrykit.testing import strategies
from tests.analysis.test_lint_fleets import RULES_OF_FLEETS


def polite(**settings):
    """A policy without warnings, with some settings changed."""
    return Policy(**{"on": OSError} | settings)


def from_variables(**variables):
    """A policy of variables, which may leave no retry."""
    return Policy.from_env(
        "FETCH", environ={f"FETCH_{x}": y for x, y in variables.items()}
    )


def rule_names(policy, **thresholds):
    return {finding.rule for finding in check(policy, **thresholds)}


class CustomSchedule(s.Schedule):
    """A user-defined schedule around another."""

    def delay(self, retry, _previous, _random, /):
        return 1.5 * retry

    def bounds(self, retry, /):
        return 1.5 * retry, 2.0 * retry


def halving():
    yield from (4.0, 2.0)


def doubling():
    for exponent in range(20):
        yield 2.0**exponent


class OfLibrary:
    """A condition of a library, with the expression that ends its own retries."""

    def __init__(self, own_retries):
        self.own_retries = own_retries

    def __call__(self, _outcome):
        return True


ONE, OTHER = OfLibrary("one(retries=0)"), OfLibrary("other(retries=0)")


GROWING = s.exponential(1).jitter(0.5)
# Its limits are not checked when it is written, since it is user code.
OWN = s.sequence(doubling).jitter(0.5)
POLICIES = {
    "the default": (Policy(), set()),
    "the default, written": (Policy(on=Exception, give_up_on=()), set()),
    "more attempts than by default": (Policy(max_attempts=6), set()),
    "every exception": (
        Policy(on=Exception, max_attempts=6),
        {"retries-every-exception"},
    ),
    "some errors": (polite(), set()),
    "a predicate": (Policy(on=callable), set()),
    "Exception in a tuple": (
        Policy(on=(Exception, OSError), max_attempts=6),
        {"retries-every-exception"},
    ),
    "all but some errors": (Policy(give_up_on=TypeError, max_attempts=6), set()),
    "all but those of a predicate": (
        Policy(give_up_on=callable, max_attempts=6),
        set(),
    ),
    "a condition of a library": (Policy(on=ONE), {"library-retries-too"}),
    "no limit": (polite(max_attempts=None), {"unbounded"}),
    "no limit but its schedule": (
        polite(schedule=GROWING.take(4)),
        set(),
    ),
    "one attempt": (Policy(max_attempts=1), {"never-retries"}),
    "no delay": (from_variables(SCHEDULE="[]"), {"never-retries"}),
    "no delay and no time": (
        from_variables(SCHEDULE="[]", MAX_ELAPSED="0s"),
        {"never-retries"},
    ),
    "one attempt in no time": (
        Policy(max_attempts=1, max_elapsed=0),
        {"never-retries"},
    ),
    "no time": (polite(schedule=OWN, max_elapsed=0), {"deadline-before-first-delay"}),
    "time for the shortest delay": (
        polite(schedule=GROWING, max_elapsed=0.5, max_attempts=2),
        set(),
    ),
    "time for less than that": (
        polite(schedule=OWN, max_elapsed=0.49, max_attempts=2),
        {"deadline-before-first-delay"},
    ),
    "a delay that is clipped": (
        polite(schedule=[9], max_elapsed=1, deadline="clip"),
        set(),
    ),
    "a delay that overshoots": (
        polite(schedule=[9], max_elapsed=1, deadline="overshoot"),
        set(),
    ),
    "time for all attempts": (
        polite(schedule=GROWING, max_attempts=5, max_elapsed=7.5),
        set(),
    ),
    "time for all but one": (
        polite(schedule=OWN, max_attempts=5, max_elapsed=7.4),
        {"max-attempts-unreachable"},
    ),
    "time for half of the attempts": (
        polite(max_attempts=9, max_elapsed="2s"),
        {"max-attempts-unreachable"},
    ),
    "time for all attempts, however long": (
        polite(schedule=GROWING, max_attempts=3, max_elapsed="61s", attempt_timeout=9),
        {"max-elapsed-unreachable"},
    ),
    "time for all attempts but the longest": (
        polite(schedule=GROWING, max_attempts=3, max_elapsed=20, attempt_timeout=9),
        set(),
    ),
    "a schedule shorter than by default": (polite(schedule=GROWING.take(2)), set()),
    "a schedule shorter than max_attempts": (
        polite(schedule=halving, max_attempts=5),
        {"max-attempts-unreachable"},
    ),
    "a schedule as long as max_attempts": (
        polite(schedule=GROWING.take(3), max_attempts=4),
        set(),
    ),
    "a schedule longer than max_attempts": (
        polite(schedule=GROWING.take(4), max_attempts=4),
        {"delays-never-used"},
    ),
    "a schedule longer than the time": (
        polite(schedule=[1, 5, "1m"], max_elapsed="1m"),
        {"delays-never-used"},
    ),
    "a schedule longer than the time, and attempts beyond it": (
        polite(
            schedule=GROWING.take(5), max_elapsed=5, max_attempts=6, deadline="clip"
        ),
        {"delays-never-used", "max-attempts-unreachable"},
    ),
    "a cap on the longest delay": (
        polite(schedule=s.linear(2).cap(8).jitter(1)),
        set(),
    ),
    "a cap above the longest delay": (
        polite(schedule=s.linear(2).cap(8.1).jitter(1)),
        set(),
    ),
    "a cap above every delay of the schedule": (
        polite(schedule=s.constant(5).jitter(0.5).cap(60)),
        {"cap-never-reached"},
    ),
    "a cap above every delay of a part": (
        polite(schedule=(s.constant(5).cap(60) + s.linear(2)).jitter(1)),
        {"cap-never-reached"},
    ),
    "a cap on a jittered delay": (polite(schedule=GROWING.cap(11.9)), set()),
    "a cap above every jittered delay": (
        polite(schedule=GROWING.cap(12.1)),
        set(),
    ),
    "a cap that another is below": (
        polite(schedule=s.exponential(1).cap(60).cap(4).jitter(0.5)),
        set(),
    ),
    "a cap that is rounded": (
        polite(schedule=s.linear(2).cap(8).round_down(1).full_jitter()),
        set(),
    ),
    "a cap in the second part": (
        polite(schedule=GROWING.take(2).then(s.linear(4).cap(8).full_jitter())),
        set(),
    ),
    "a cap in a part that is not reached": (
        polite(schedule=GROWING.switch(after=4, to=s.constant(9).cap(5).jitter(0.1))),
        set(),
    ),
    "a cap in the default schedule": (polite(max_attempts=9), set()),
    "no retry to come to a cap": (
        polite(schedule=s.constant(1).cap(5), max_attempts=1),
        {"never-retries"},
    ),
    "an interval at its maximum": (
        polite(schedule=s.google_interval(max_interval="1.687s")),
        set(),
    ),
    "an interval below its maximum": (
        polite(schedule=s.google_interval(max_interval="1.688s")),
        set(),
    ),
    "an interval that starts at its maximum": (
        polite(schedule=s.google_interval(1, max_interval=1), max_attempts=2),
        set(),
    ),
    "a constant delay": (polite(schedule=s.constant(1)), {"no-jitter"}),
    "four delays": (polite(schedule=[1, 2, 3, 4]), set()),
    "five delays": (polite(schedule=[1, 2, 3, 4, 5]), {"no-jitter"}),
    "a poll": (
        Policy(schedule=s.constant(1), max_elapsed="10m", on=(), on_result=callable),
        set(),
    ),
    "results and errors": (
        polite(schedule=s.constant(1), max_elapsed="10m", on_result=callable),
        {"no-jitter", "too-many-attempts"},
    ),
    "one delay": (polite(schedule=[1]), set()),
    "one delay after none": (polite(schedule=[0, 1]), set()),
    "one jittered delay": (polite(schedule=s.sequence([1]).then(GROWING)), set()),
    "jitter of nothing": (polite(schedule=s.linear(1).jitter(0)), {"no-jitter"}),
    "one retry at once": (polite(schedule=[0]), set()),
    "two retries at once": (polite(schedule=[0, 0]), {"retries-at-once"}),
    "two retries that may be at once": (
        polite(schedule=s.constant(1).full_jitter()),
        set(),
    ),
    "jitter that is capped once": (polite(schedule=GROWING.cap(3)), set()),
    "jitter that is capped twice": (polite(schedule=GROWING.cap(2)), {"capped-jitter"}),
    "jitter that is all capped": (
        polite(schedule=GROWING.cap(0.5)),
        {"capped-jitter", "no-jitter"},
    ),
    "a cap of nothing": (polite(schedule=GROWING.cap(0)), {"retries-at-once"}),
    "a cap before the jitter": (
        polite(schedule=s.exponential(1).cap(2).jitter(0.5)),
        set(),
    ),
    "a seed": (polite(seed=7), {"fixed-seed"}),
    "a seed without chance": (polite(schedule=[1], seed=7), set()),
    "ten calls": (polite(schedule=s.constant(1).jitter(0.1), max_attempts=10), set()),
    "eleven calls": (
        polite(schedule=s.constant(1).jitter(0.1), max_attempts=11),
        {"too-many-attempts"},
    ),
    "ever so many calls in a minute": (
        polite(schedule=s.constant(0), max_elapsed="1m"),
        {"retries-at-once", "too-many-attempts"},
    ),
    "a hundred calls, each after half a minute": (
        polite(schedule=s.constant(30).jitter(0.1), max_attempts=100),
        set(),
    ),
    "a timeout as long as the time": (
        polite(attempt_timeout="1m"),
        {"timeout-never-retried"},
    ),
    "a timeout and a delay as long as the time": (
        polite(schedule=OWN, max_elapsed=5, attempt_timeout=4.5),
        {"timeout-never-retried"},
    ),
    "a timeout as an argument": (
        polite(max_elapsed=5, attempt_timeout=AsArgument(5)),
        {"timeout-never-retried"},
    ),
    "a timeout as long as the time, late": (
        polite(max_elapsed=5, attempt_timeout=5, deadline="overshoot"),
        {"timeout-never-retried"},
    ),
    "a timeout that leaves time, late": (
        polite(schedule=OWN, max_elapsed=5, attempt_timeout=4.5, deadline="clip"),
        set(),
    ),
    "a timeout that leaves time": (polite(max_elapsed=9, attempt_timeout=4), set()),
    "a timeout without a limit of time": (
        polite(max_attempts=3, attempt_timeout="10m"),
        set(),
    ),
    "a timeout of the only attempt": (
        polite(max_attempts=1, max_elapsed=5, attempt_timeout=5),
        {"never-retries"},
    ),
    "a timeout where both limits must be reached": (
        polite(max_attempts=3, max_elapsed=5, attempt_timeout=5, limits="all"),
        set(),
    ),
    "an hour": (
        polite(schedule=["30m", "30m"]),
        set(),
    ),
    "more than an hour": (
        polite(schedule=["30m", "31m"]),
        {"call-outlives-process"},
    ),
    "a schedule of one's own": (polite(schedule=CustomSchedule()), set()),
    "a generator function": (polite(schedule=halving), set()),
    "google": (presets.google(), set()),
    "zizq": (
        presets.zizq(),
        {"retries-every-exception", "call-outlives-process"},
    ),
    "hostname verification": (
        presets.hostname_verification(),
        {
            "no-jitter",
            "call-outlives-process",
        },
    ),
}


@pytest.mark.parametrize(("policy", "rules"), POLICIES.values(), ids=POLICIES)
def test_each_rule_warns_about_the_expected_policies(policy, rules):
    assert rule_names(policy) == rules


def test_every_rule_is_in_the_table():
    # Others are in test_lint_fleets.py and test_lint_stages.py.
    assert (
        set().union(*(rules for _, rules in POLICIES.values()))
        == RULES.keys() - STAGE_RULES - RULES_OF_FLEETS
    )


def test_every_rule_has_a_stable_name_and_a_description():
    assert list(RULES) == [
        "unbounded",
        "never-retries",
        "deadline-before-first-delay",
        "timeout-never-retried",
        "max-attempts-unreachable",
        "max-elapsed-unreachable",
        "delays-never-used",
        "cap-never-reached",
        "no-jitter",
        "capped-jitter",
        "fixed-seed",
        "retries-at-once",
        "retries-every-exception",
        "too-many-attempts",
        "reserve-of-each-process",
        "recent-after-timeout",
        "retry-storm",
        "library-retries-too",
        "call-outlives-process",
        "breaker-without-timeout",
        "probe-timeout-too-short",
        "hedge-after-timeout",
        "waits-forever",
        "wait-too-short",
    ]
    assert all(0 < len(rule.summary) <= 64 for rule in RULES.values())


def test_findings_are_in_the_order_of_the_rules():
    policy = presets.hostname_verification()
    broken = [finding.rule for finding in check(policy)]
    assert broken == sorted(broken, key=list(RULES).index)


def test_checks_only_the_selected_rules():
    policy = presets.hostname_verification()
    assert rule_names(policy, rules=["no-jitter", "unbounded"]) == {"no-jitter"}
    assert check(policy, rules=()) == ()
    assert rule_names(policy, rules=iter(RULES)) == rule_names(policy)


@pytest.mark.parametrize(
    ("attempts", "rules"),
    [(4, {"too-many-attempts"}), (5, set()), (6, set())],
    ids=["one less", "as many", "one more"],
)
def test_warns_about_more_attempts_than_allowed(attempts, rules):
    assert rule_names(polite(), attempts=attempts) == rules


@pytest.mark.parametrize(
    ("lifetime", "rules"),
    [("59s", {"call-outlives-process"}), ("1m", set()), ("61s", set())],
    ids=["shorter", "as long", "longer"],
)
def test_warns_about_calls_longer_than_the_lifetime_of_a_process(lifetime, rules):
    assert rule_names(polite(schedule=[60]), lifetime=lifetime) == rules


def test_the_duration_of_attempts_counts():
    policy = polite(schedule=GROWING.take(3), max_attempts=4, max_elapsed="1m")
    assert rule_names(policy, attempt="15s") == set()
    assert rule_names(policy, attempt="20s") == {
        "delays-never-used",
        "max-attempts-unreachable",
    }
    assert rule_names(policy, attempt="1h") == {"deadline-before-first-delay"}


def test_following_a_fix_removes_the_warning():
    policy = polite(schedule=s.sequence([5, 0]).take(2), max_attempts=3, max_elapsed=5)
    assert rule_names(policy) == {
        "delays-never-used",
        "max-attempts-unreachable",
    }
    [finding] = check(policy, rules=["delays-never-used"])
    assert finding.fix == "a shorter schedule, or max_elapsed=6"
    assert rule_names(policy.replace(max_elapsed=6)) == set()


def test_only_the_five_outermost_caps_are_checked():
    schedule = s.linear(1)
    for limit in range(99):
        schedule = schedule.cap(limit)
    assert [cap.text for cap in caps(schedule)][::4] == [".cap(98.0)", ".cap(94.0)"]


def test_finds_the_caps_of_a_schedule_and_when_they_are_reached():
    within = s.exponential(1).cap(4).jitter(0.5).within(40)
    assert [(cap.text, cap.reached(2), cap.reached(3)) for cap in caps(within)] == [
        (".cap(4.0)", False, True)
    ]
    assert list(caps(CustomSchedule().take(3))) == []
    both = s.constant(1).cap(2) | s.google_interval(max_interval=3).cap(4)
    assert [cap.text for cap in caps(both)] == [
        ".cap(2.0)",
        ".cap(4.0)",
        "max_interval=3.0",
    ]


@given(strategies.policies())
def test_every_policy_can_be_checked(policy):
    started = time.perf_counter()
    findings = check(policy)
    assert time.perf_counter() - started < 10
    assert {finding.rule for finding in findings} <= set(RULES)
    assert all(finding.reason and finding.fix for finding in findings)


def test_the_fix_of_a_long_call_shortens_it():
    slow = polite(
        schedule=s.constant(100).jitter(0.5),
        max_attempts=10,
        max_elapsed=7200,
        deadline="overshoot",
    )
    [rule_names] = check(slow, lifetime=600, attempt=5, rules=["call-outlives-process"])
    assert rule_names.fix.endswith('or set max_elapsed=595.0, deadline="stop"')
    shorter = slow.replace(max_elapsed=595.0, deadline="stop")
    assert check(shorter, lifetime=600, attempt=5) == ()
    [rule_names] = check(slow, lifetime=60, attempt=61, rules=["call-outlives-process"])
    assert rule_names.fix == "run it on a durable job engine"


def test_retries_beyond_the_checked_ones_are_not_assumed_absent():
    far = polite(
        schedule=s.exponential(0.1, factor=1.003).cap(60).jitter(0.5),
        max_attempts=3000,
    )
    assert "cap-never-reached" not in rule_names(far)
    ends = polite(schedule=s.constant(1).jitter(0.5).take(3000))
    assert "unbounded" not in rule_names(ends)
    month = polite(schedule=s.constant(1).jitter(0.5), max_elapsed="30d")
    assert "call-outlives-process" in rule_names(month)


def test_full_jitter_is_checked_for_its_fewest_calls():
    full = Policy(schedule=s.exponential(1).cap(10).full_jitter(), max_elapsed=60)
    full = full.replace(on=Exception)
    [every] = check(full)
    assert "at least 9 attempts" in every.reason


@pytest.mark.parametrize(
    ("policy", "fixes"),
    [
        (Policy(on=ONE), [ONE]),
        (Policy(on_result=ONE), [ONE]),
        (Policy(on=ONE, on_result=ONE), [ONE]),
        (polite(rules=[Rule(on=ONE, schedule=[1])]), [ONE]),
        (polite(rules=[Rule(on_result=ONE, schedule=[1])]), [ONE]),
        (Policy(on=OTHER, rules=[Rule(on=ONE, schedule=[1])]), [OTHER, ONE]),
        (Policy(on=ONE, max_attempts=1), []),
        (Policy(on=OfLibrary(None)), []),
        (Policy(on=OfLibrary(True)), []),
        (Policy(on=callable), []),
    ],
    ids=lambda value: None if isinstance(value, Policy) else str(len(value)),
)
def test_own_retries_of_the_library_are_reported_once_for_each_library(policy, fixes):
    found = check(policy, rules=["library-retries-too"])
    assert [each.fix for each in found] == [
        f"switch them off: {each.own_retries}; then ignore this rule" for each in fixes
    ]


def tripling():
    delay = 1
    while True:
        yield delay
        delay *= 3


@pytest.mark.parametrize(
    "policy",
    [
        Policy(schedule=s.sequence(tripling).cap("1d")),
        Policy(schedule=tripling, max_attempts=1000, max_elapsed=100),
        Policy(schedule=tripling, max_elapsed=100),
    ],
    ids=["a cap", "attempts that no call comes to", "a limit of the time"],
)
def test_user_code_is_not_called_beyond_the_end_of_calls(policy):
    """From retry 648 on, the generator's numbers are too large for a delay."""
    assert "cap-never-reached" not in [finding.rule for finding in check(policy)]
