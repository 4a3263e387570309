"""The page computes what the library computes."""

import math
import tomllib
from functools import reduce
from operator import add
from random import Random

import pytest
from hypothesis import given, strategies as st

from retrykit import Policy, dialects, schedules as s
from retrykit.durations import readable, seconds
from retrykit.jitter import LONGEST
from retrykit.preview import preview
from retrykit.preview.course import course_of
from retrykit.schedules import Schedule
from retrykit.testing import strategies
from tests import browsing
from tests.browsing import near


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing.started(tmp_path_factory.mktemp("browser")) as browser:
        browser.open({"blank": Policy()})
        yield browser


def rows(policy, attempt=0.0, retries=100):
    return [
        (row.retry, row.low, row.high, row.total_low, row.total_high)
        for row in course_of(policy, attempt, retries).rows
    ]


def test_the_page_knows_every_kind_of_schedule(browser):
    kinds = {name: list(kind.parts) for name, kind in Schedule.kinds.items()}
    known = browser.run("return Object.keys(retrykit.kinds.bounds)")
    assert set(known) == set(kinds)
    parts = browser.run(
        "const parts = Object.entries(retrykit.kinds.parts);"
        "return parts.map(([kind, own]) => [kind, Object.keys(own)])"
    )
    nested = {"of", "other", "to", "left", "right"}
    assert dict(parts) == {
        name: [part for part in own if part not in nested]
        for name, own in kinds.items()
    }


ENDLESS = ["temporal", "tenacity_default"]
ENDING = [name for name in dialects.__all__ if name not in ENDLESS]


@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize("attempt", [0.0, 2.5], ids=["at once", "2.5 s each"])
def test_a_dialect_has_the_numbers_of_the_library(browser, name, attempt):
    policy = getattr(dialects, name)()
    browser.open({name: policy}, attempt=attempt)
    assert near(browser.rows(), rows(policy, attempt))
    seen = preview(policy, attempt=attempt, samples=0)
    assert browser.text(".ending") == str(seen.end)
    worst = browser.text(".end div:last-child .exact")
    assert math.isclose(float(worst.removesuffix(" s")), seen.worst, rel_tol=1e-12)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_dialect_that_never_ends_goes_on_beyond_what_is_shown(browser, name):
    policy = getattr(dialects, name)()
    browser.open({name: policy})
    assert near(browser.rows(), rows(policy))
    assert preview(policy, samples=0).end is None
    told = "goes on beyond retry 100, the last one shown"
    assert browser.text(".ending") == told


RETRIES = [*range(1, 41), 78, 79, 1000, 1475, 1476, 1477, 10**5]


@given(st.lists(strategies.schedules(), min_size=8, max_size=16))
def test_bounds_are_those_of_the_library(browser, drawn):
    found = browser.run(
        "const [drawn, retries] = arguments;"
        "return drawn.map((s) => retries.map((n) => retrykit.bounds(s, n)))",
        [schedule.to_dict() for schedule in drawn],
        RETRIES,
    )
    for schedule, ours in zip(drawn, found, strict=True):
        theirs = [schedule.bounds(retry) for retry in RETRIES]
        assert [each is None for each in ours] == [each is None for each in theirs]
        going = [each for each in theirs if each is not None]
        assert near([each for each in ours if each is not None], going), schedule


def as_on_the_page(policy):
    limits = ("max_attempts", "max_elapsed", "deadline")
    shown = {name: getattr(policy, name) for name in limits}
    return shown | {"schedule": policy.schedule.to_dict()}


def assert_course(browser, calls):
    """Compare what becomes of calls, given as their policies and attempts."""
    found = browser.run(
        "return arguments[0].map(([p, attempt]) => retrykit.preview(p, attempt, 50))",
        [(as_on_the_page(policy), attempt) for policy, attempt in calls],
    )
    for (policy, attempt), ours in zip(calls, found, strict=True):
        course = course_of(policy, attempt, 50)
        theirs = rows(policy, attempt, 50)
        assert near([tuple(row.values()) for row in ours["rows"]], theirs), policy
        begins = [row.begins_high for row in course.rows]
        worst = min(max(begins, default=0.0) + attempt, LONGEST)
        assert math.isclose(ours["worst"], worst, rel_tol=1e-12)
        end = course.end
        ends = [ours["soonest"], ours["latest"]]
        if end is None:
            assert ends[1] is None
            continue
        assert [each["retry"] for each in ends] == [end.soonest, end.latest]
        assert tuple(each["reason"] for each in ends) == end.reasons


@given(
    st.lists(
        st.tuples(
            strategies.policies(), st.just(0.0) | strategies.durations(at_most=1e6)
        ),
        min_size=4,
        max_size=8,
    )
)
def test_limits_are_those_of_the_library(browser, drawn):
    assert_course(browser, drawn)


def test_sums_that_are_off_by_a_hair_are_judged_as_the_library_judges_them(browser):
    def endless(delay):
        return Policy(schedule=s.constant(delay), max_attempts=None)

    # Added one by one: from Python 3.12 on, sum() makes up for what is lost.
    assert reduce(add, [0.1] * 3) > 0.3
    assert reduce(add, [0.1] * 8) < 0.8
    edges = [
        (endless(delay).replace(max_elapsed=allowed, deadline=rule), attempt)
        for delay in (0.0, 0.1)
        for allowed in (0.0, 0.3, 0.8, 1.0)
        for rule in ("stop", "clip", "overshoot")
        for attempt in (0.0, 0.1)
    ]
    assert_course(browser, edges)


@given(st.lists(strategies.schedules(), min_size=8, max_size=16))
def test_expressions_are_those_of_the_library(browser, drawn):
    data = [schedule.to_dict() for schedule in drawn]
    found = browser.run(
        "return arguments[0].map((each) => retrykit.expression(each))", data
    )
    assert found == [repr(schedule) for schedule in drawn]


@given(st.lists(st.floats(0, 1e12) | strategies.durations()))
def test_durations_are_told_as_the_library_tells_them(browser, drawn):
    found = browser.run("return arguments[0].map(retrykit.readable)", drawn)
    assert found == [readable(duration) for duration in drawn]


def test_halves_are_rounded_as_the_library_rounds_them(browser):
    halves = [number / 2 for number in range(119, 7400)]
    halves += [number / 8 for number in range(1, 480)] + [86_400e6, 1e12, 1.5e300]
    found = browser.run("return arguments[0].map(retrykit.readable)", halves)
    assert found == [readable(duration) for duration in halves]
    intervals = [s.google_interval(number / 2000) for number in range(2, 30)]
    data = [interval.to_dict() for interval in intervals]
    found = browser.run("return arguments[0].map((s) => retrykit.bounds(s, 1))", data)
    assert found == [[*interval.bounds(1)] for interval in intervals]


def test_durations_are_read_as_the_library_reads_them(browser):
    texts = [
        "0s",
        "12.5s",
        "500ms",
        "1h30m",
        "1h 30m",
        " 7us ",
        "2w",
        "0.1s0.2s",
        "3ms",
    ]
    found = browser.run("return arguments[0].map(retrykit.parsed)", texts)
    assert found == [seconds("wait", text) for text in texts]
    wrong = ["", "90", "1h-3m", "s", "1.s", ".5s", "1y", "1h;", "\u0661s"]
    assert set(browser.run("return arguments[0].map(retrykit.parsed)", wrong)) == {None}


# One of each kind, with parts that have fields of their own.
ONE = s.constant(1)
KINDS = {
    "constant": ONE,
    "linear": s.linear(1),
    "exponential": s.exponential(1),
    "polynomial": s.polynomial(1),
    "fibonacci": s.fibonacci(),
    "sequence": s.sequence([1, 2]),
    "decorrelated": s.decorrelated(1),
    "google_interval": s.google_interval(),
    "polly_interval": s.polly_interval(),
    "cap": s.exponential(1).cap(5),
    "at_least": s.exponential(1).at_least(5),
    "round_down": s.exponential(1).round_down(1),
    "times": s.linear(1) * 2,
    "full_jitter": s.linear(1).full_jitter(),
    "equal_jitter": s.exponential(1).equal_jitter(),
    "jitter": s.exponential(1).cap(60).jitter(0.5),
    "take": s.fibonacci().take(7),
    "within": s.linear(1).at_least(1).within(60),
    "then": s.exponential(1).take(3).then([5, 6]),
    "switch": s.exponential(1).switch(after=4, to=s.linear(1).equal_jitter()),
    "plus": ONE + s.polynomial(4) + s.linear(30).full_jitter(),
    "both": s.linear(1).jitter(0.2) & s.fibonacci() * 2,
    "either": (s.decorrelated(1) | s.sequence([9, 9])) * 0.5,
}
POLICIES = {name: Policy(schedule=schedule) for name, schedule in KINDS.items()}


# What is typed for each part: durations are drawn over six powers of ten, what
# else there is between two numbers.
DURATIONS = {
    "median_first_retry_delay",
    "wait",
    "step",
    "first",
    "limit",
    "unit",
    "max_elapsed",
}
BETWEEN = {
    "initial_interval": (0.001, 10),
    "max_interval": (10, 5000),
    "total": (10, 5000),
    "multiplier": (1, 4),
    "randomization_factor": (0, 0.99),
    "exponent": (0, 6),
    "exponential factor": (1, 4),
    "decorrelated factor": (1, 4),
    "times factor": (0, 3),
    "jitter factor": (0, 1),
}


def drawn(kind, part, random):
    if part == "delays":
        return [random.randint(0, 900) / 2 for _ in range(random.randint(0, 6))]
    if part in {"retries", "after", "max_attempts"}:
        return random.randint(1, 40)
    if part in DURATIONS:
        return float(f"{10 ** random.uniform(-2, 4):.3g}")
    least, most = BETWEEN.get(part) or BETWEEN[f"{kind} {part}"]
    return round(random.uniform(least, most), 3)


def changed(data, path, random):
    """Change a part of a policy's data, and return what is typed for that."""
    *parents, part = path.split(".")
    for name in parents:
        data = data[name]
    value = data[part] = drawn(data.get("kind"), part, random)
    return ", ".join(map(str, value)) if part == "delays" else str(value)


def on_screen(browser, name):
    """Return the policies that the two texts of the page give."""
    names = {}
    exec(browser.text("#python"), names)  # noqa: S102  it is what is copied and run
    tables = tomllib.loads(browser.text("#toml"))["tool"]["retrykit"]["policies"]
    return names["policy"], Policy.from_dict(tables[name])


def test_each_kind_is_typed_into():
    assert set(KINDS) == set(Schedule.kinds)
    assert all(KINDS[name].kind in {name, "times"} for name in KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_typed_has_the_numbers_of_the_library(browser, name):
    random = Random(name)  # noqa: S311  the same parameters in every run
    browser.open({name: POLICIES[name]})
    data = POLICIES[name].to_dict()
    fields = browser.attributes("[data-path]", "data-path")
    browser.limit("max_elapsed", wanted=True)
    for path in fields:
        if path.startswith("schedule"):
            browser.type(path, changed(data, path, random))
    for path in ("max_attempts", "max_elapsed"):
        limited = random.random() < 0.6
        browser.limit(path, wanted=limited)
        data[path] = "unlimited"
        if limited:
            browser.type(path, changed(data, path, random))
    if data["max_elapsed"] != "unlimited":
        data["deadline"] = random.choice(["stop", "clip", "overshoot"])
        browser.select("deadline", data["deadline"])
    attempt = random.choice([0.0, 0.25, 3.0])
    browser.type("attempt", str(attempt))
    policy = Policy.from_dict(data)
    assert browser.all("[aria-invalid='true']") == []
    assert near(browser.rows(), rows(policy, attempt)), policy
    end = course_of(policy, attempt, 100).end
    if end:
        assert browser.text(f"[data-name='{name}'] .ending") == str(end)
    assert on_screen(browser, name) == (policy, policy)
