"""The answers at the top of the HTML report, and its median time of a call."""

import math

import pytest

from retrykit import Policy, presets, schedules as s
from retrykit.analysis.html_report._policy_data import policy_data
from retrykit.analysis.preview import preview
from tests._support.page_scripts import run_in_node

RETRIES = 1000


def answers(policies, attempt=0.0):
    """Return when each policy gives up, its worst case, and its median."""
    return run_in_node(
        "return given[0].map((policy) => {"
        "  const found = preview(policy, given[1], given[2]);"
        "  const median = medianTime(policy, given[1], found, given[2]);"
        "  return [describeGivingUp(policy, found), found.worst, median];"
        "})",
        [policy_data("page", policy) for policy in policies],
        attempt,
        RETRIES,
    )


GIVES_UP = {
    "after 5 attempts": Policy(),
    "after the first attempt": Policy(max_attempts=1),
    "after 3 attempts": Policy(schedule=[1, 2]),
    "after 15m": presets.google(),
    "within 1m": Policy(schedule=s.constant(7), max_elapsed=60),
    "after 4 to 5 attempts, or within 10s": Policy(
        schedule=s.uniform(1, 3), max_attempts=5, max_elapsed=10
    ),
    "after 3 attempts and 1m": Policy(
        schedule=s.constant(7), max_attempts=3, max_elapsed=60, limits="all"
    ),
    "never": Policy(max_attempts=None),
    "after more than 1001 attempts": Policy(max_attempts=5000),
    "within 20s": Policy(schedule=s.constant(9).full_jitter(), max_elapsed=20),
}


def test_says_when_a_policy_gives_up():
    said = [each[0] for each in answers(GIVES_UP.values())]
    assert said == [*GIVES_UP]


@pytest.mark.thorough
def test_half_of_the_calls_take_no_longer_than_the_median_of_the_library():
    """Exact where delays are fixed or uniform, else from the same draws."""
    exact = [
        Policy(),
        Policy(schedule=[1, 2, 4]),
        Policy(schedule=s.exponential(0.5).jitter(0.3), max_attempts=6),
        Policy(schedule=s.constant(5), max_elapsed=60),
    ]
    drawn = [
        presets.google(),
        Policy(schedule=s.decorrelated(0.1, factor=3).cap(20), max_attempts=9, seed=7),
        Policy(schedule=s.uniform(1, 9), max_elapsed="1m"),
        Policy(schedule=s.uniform(0, 2), max_elapsed=9, max_attempts=None),
    ]
    found = answers([*exact, *drawn])
    for policy, (_, _, median) in zip([*exact, *drawn], found, strict=True):
        wait = preview(policy, samples=500).total_wait
        theirs = next(each for each in wait.quantiles if each.probability == 0.5)
        assert math.isclose(median["time"], theirs.value, rel_tol=1e-9), policy
        assert median["exact"] == (policy in exact), policy


def test_the_median_includes_the_attempts():
    found = answers([Policy(schedule=[1, 2]), Policy(attempt_timeout=0.5)], attempt=3)
    assert found[0][1:] == [12.0, {"time": 12.0, "exact": True}]
    assert found[1][2]["time"] == answers([Policy()])[0][2]["time"] + 5 * 0.5


def test_attempts_of_unknown_duration_time_out_as_in_the_worst_case():
    limited = Policy(
        schedule=s.constant(1), max_elapsed=10, attempt_timeout=3, max_attempts=9
    )
    _, worst, median = answers([limited])[0]
    assert median == {"time": worst, "exact": True} == {"time": 10.0, "exact": True}


def test_calls_without_an_end_have_no_median():
    _, worst, median = answers([Policy(max_attempts=None)])[0]
    assert (worst, median) == (None, None)


def test_the_median_is_said_beside_the_worst_case():
    said = run_in_node(
        "return given[0].map((each) => describeMedian(...each))",
        [
            [{"time": 4.06, "exact": True}, 6.09, True],
            [{"time": 930, "exact": False}, 990, False],
            [{"time": 3, "exact": True}, 3, True],
            [{"time": 3, "exact": False}, None, True],
            [None, None, True],
            [None, 60, True],
        ],
    )
    half = "half of the calls that fail every time take less than"
    assert said == [
        f"{half} 4.06s",
        f"{half} about 15m30s; attempts not counted",
        "so do all calls that fail every time",
        f"{half} about 3s",
        "a call that fails every time goes on",
        "",
    ]


def test_the_load_is_a_multiple():
    said = run_in_node("return [16.46, 1.04].map((peak) => describePeak({ peak }))")
    assert said == ["up to 16.5 times its normal load", "no more than its normal load"]
