"""The HTML report computes the numbers of the library."""

import inspect
import math
from functools import reduce
from operator import add
from random import Random
from zipfile import BadZipFile

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, presets, schedules as s
from retrykit._core.limits import override
from retrykit._core.timeouts import timeout_seconds
from retrykit._internal.durations import format_duration, parse_duration
from retrykit.analysis.preview import preview
from retrykit.analysis.preview._projection import project
from retrykit.schedules._kinds import SCHEDULE_KINDS
from retrykit.testing import strategies
from tests._support import chromium
from tests._support.chromium import almost_equal
from tests._support.reference_data import reference_data
from tests._support.schedule_data import schedule_data, schedule_from


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.started(tmp_path_factory.mktemp("browser")) as browser:
        browser.open({"blank": Policy()})
        yield browser


def rows(policy, attempt=0.0, retries=100):
    return [
        (row.retry, row.low, row.high, row.total_low, row.total_high)
        for row in project(policy, attempt, retries).rows
    ]


def test_the_page_knows_every_kind_of_schedule(browser):
    kinds = {name: list(kind._field_names) for name, kind in SCHEDULE_KINDS.items()}
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


ENDLESS = ["backoff_expo", "kubernetes", "procrastinate", "systemd", "temporal"]
ENDLESS += ["tenacity_default"]
# All its delays may be 0 s.
MAY_BE_ENDLESS = ["google_api_core"]
ENDING = [x for x in presets.__all__ if x not in {*ENDLESS, *MAY_BE_ENDLESS}]


@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize("attempt", [0.0, 2.5], ids=["at once", "2.5 s each"])
def test_a_preset_has_the_numbers_of_the_library(browser, name, attempt):
    policy = getattr(presets, name)()
    browser.open({name: policy}, attempt=attempt)
    assert almost_equal(browser.rows(), rows(policy, attempt))
    seen = preview(policy, attempt=attempt, samples=0)
    assert browser.text(".ending") == str(seen.end)
    worst = browser.text(".worst .exact")
    assert math.isclose(float(worst.removesuffix(" s")), seen.worst_case, rel_tol=1e-12)


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_preset_has_the_numbers_of_the_library(browser, name):
    policy = getattr(presets, name)()
    browser.open({name: policy})
    assert almost_equal(browser.rows(), rows(policy))
    assert preview(policy, samples=0).end is None
    assert browser.text(".ending") == "goes on beyond retry 1000"
    assert browser.text("#more") == "Retries beyond 100 are not shown."
    assert browser.texts(".gives-up dd, .worst dd") == ["never", "no limit"]


@pytest.mark.parametrize("name", MAY_BE_ENDLESS)
def test_a_preset_that_may_be_endless_has_the_numbers_of_the_library(browser, name):
    policy = getattr(presets, name)()
    browser.open({name: policy})
    assert almost_equal(browser.rows(), rows(policy))
    assert preview(policy, samples=0).end is None
    assert browser.text(".ending").endswith("or goes on beyond retry 1000")


RETRIES = [*range(1, 41), 78, 79, 1000, 1475, 1476, 1477, 10**5]


@given(st.lists(strategies.schedules(), min_size=8, max_size=16))
def test_bounds_are_those_of_the_library(browser, drawn):
    found = browser.run(
        "const [drawn, retries] = arguments;"
        "return drawn.map((s) => retries.map((n) => retrykit.bounds(s, n)))",
        [schedule_data(schedule) for schedule in drawn],
        RETRIES,
    )
    for schedule, ours in zip(drawn, found, strict=True):
        theirs = [schedule.bounds(retry) for retry in RETRIES]
        assert [each is None for each in ours] == [each is None for each in theirs]
        going = [each for each in theirs if each is not None]
        assert almost_equal([each for each in ours if each is not None], going), (
            schedule
        )


def as_on_the_page(policy):
    limits = ("max_attempts", "max_elapsed", "limits", "deadline")
    shown = {name: getattr(policy, name) for name in limits}
    shown["attempt_timeout"] = timeout_seconds(policy.attempt_timeout)
    return shown | {"schedule": schedule_data(policy.schedule)}


PREVIEWS = (
    "return arguments[0].map(([p, attempt, n]) => retrykit.preview(p, attempt, n))"
)


def assert_previews(browser, calls, retries=50):
    """Compare the page's previews with the library's, of policies and attempts."""
    given = [(as_on_the_page(policy), attempt, retries) for policy, attempt in calls]
    found = browser.run(PREVIEWS, given)
    for (policy, attempt), ours in zip(calls, found, strict=True):
        seen = preview(policy, attempt=attempt, retries=retries, samples=0)
        theirs = rows(policy, seen.attempt, retries)
        assert almost_equal([tuple(row.values()) for row in ours["rows"]], theirs), (
            policy
        )
        assert ours["attempt"] == seen.attempt
        worst = [
            [] if each is None else [each] for each in (ours["worst"], seen.worst_case)
        ]
        assert almost_equal(worst[:1], worst[1:]), policy
        ends = [ours["earliest"], ours["latest"]]
        numbers = [end and end["retry"] for end in ends]
        assert numbers == [seen.min_retries, seen.end and seen.end.max_retries]
        if seen.end:
            assert tuple(each["reason"] for each in ends) == seen.end.reasons


def policies_with_timeouts(policies):
    """Draw policies with and without an attempt timeout, and attempt durations."""
    timeouts = st.none() | strategies.durations(at_least=1e-6)
    drawn = st.builds(
        lambda policy, timeout: policy.replace(attempt_timeout=timeout),
        policies,
        timeouts,
    )
    return st.tuples(drawn, st.just(0.0) | strategies.durations(at_most=1e6))


@given(st.lists(policies_with_timeouts(strategies.policies()), min_size=4, max_size=8))
def test_previews_are_those_of_the_library(browser, drawn):
    assert_previews(browser, drawn)


CASES = reference_data("limits")


def test_limits_have_the_numbers_calculated_by_hand(browser):
    cases = CASES["cases"]
    given = [
        (as_on_the_page(Policy.from_dict(c["policy"])), c["attempt"], c["retries"])
        for c in cases
    ]
    for case, ours in zip(cases, browser.run(PREVIEWS, given), strict=True):
        found = [list(row.values())[1:] for row in ours["rows"]]
        assert found == case["rows"], case["name"]
        ends = [ours["earliest"], ours["latest"]]
        numbers = [end and end["retry"] for end in ends]
        assert numbers == [case["min_retries"], case["max_retries"]], case["name"]
        if case["reasons"]:
            assert [end["reason"] for end in ends] == case["reasons"], case["name"]
        assert ours["worst"] == case["worst_case"], case["name"]


def test_an_end_beyond_the_shown_rows_is_known(browser):
    policy = Policy(schedule=s.exponential(1, factor=1000), max_attempts=110)
    browser.open({"long": policy})
    assert len(browser.rows()) == 100
    assert browser.text("#more") == "Retries beyond 100 are not shown."
    assert browser.text(".ending") == str(preview(policy).end)
    browser.type("max_attempts", "90")
    assert browser.text(".ending") == "stops after retry 89: max_attempts"
    assert not browser.find("#more").is_displayed()


def test_rounding_errors_of_sums_are_tolerated_like_by_the_library(browser):
    def endless(delay):
        return Policy(schedule=s.constant(delay), max_attempts=None)

    # Added one by one: since Python 3.12, sum() compensates rounding errors.
    assert reduce(add, [0.1] * 3) > 0.3
    assert reduce(add, [0.1] * 8) < 0.8
    edges = [
        (override(endless(delay), max_elapsed=allowed, deadline=rule), attempt)
        for delay in (0.0, 0.1)
        for allowed in (0.0, 0.3, 0.8, 1.0)
        for rule in ("stop", "clip", "overshoot")
        for attempt in (0.0, 0.1)
    ]
    edges += [(override(each, attempt_timeout=0.1), took) for each, took in edges]
    assert_previews(browser, edges)


@given(st.lists(strategies.schedules(), min_size=8, max_size=16))
def test_expressions_are_those_of_the_library(browser, drawn):
    data = [schedule_data(schedule) for schedule in drawn]
    found = browser.run(
        "return arguments[0].map((each) => retrykit.expression(each))", data
    )
    assert found == [repr(schedule) for schedule in drawn]


@given(st.lists(st.floats(0, 1e12) | strategies.durations()))
def test_durations_are_formatted_like_by_the_library(browser, drawn):
    found = browser.run("return arguments[0].map(retrykit.formatDuration)", drawn)
    assert found == [format_duration(duration) for duration in drawn]


def test_halves_are_rounded_like_by_the_library(browser):
    halves = [number / 2 for number in range(119, 7400)]
    halves += [number / 8 for number in range(1, 480)] + [86_400e6, 1e12, 1.5e300]
    found = browser.run("return arguments[0].map(retrykit.formatDuration)", halves)
    assert found == [format_duration(duration) for duration in halves]
    intervals = [s.google_interval(number / 2000) for number in range(2, 30)]
    intervals.append(s.google_interval("24d", max_interval="24d"))
    data = [schedule_data(interval) for interval in intervals]
    found = browser.run("return arguments[0].map((s) => retrykit.bounds(s, 1))", data)
    assert found == [[*interval.bounds(1)] for interval in intervals]


def test_durations_are_parsed_like_by_the_library(browser):
    texts = [
        "0s",
        "12.5s",
        "500ms",
        "1h30m",
        "1 min 30 secs",
        "5 microseconds",
        "2msec",
        "P1DT2H3M4.5S",
        " P2W ",
        "1h 30m",
        " 7us ",
        "2w",
        "0.1s0.2s",
        "3ms",
    ]
    found = browser.run("return arguments[0].map(retrykit.parseDuration)", texts)
    assert found == [parse_duration("wait", text) for text in texts]
    wrong = ["", "90", "1h-3m", "s", "1.s", ".5s", "1y", "1h;", "\u0661s"]
    wrong += ["\u00a01s", "1s\u00a02s", "1234567890123456s"]
    assert set(
        browser.run("return arguments[0].map(retrykit.parseDuration)", wrong)
    ) == {None}


# One schedule of each kind that has its own fields.
ONE = s.constant(1)
KINDS = {
    "constant": ONE,
    "linear": s.linear(1, first=4),
    "exponential": s.exponential(1),
    "decay": s.decay(8),
    "polynomial": s.polynomial(1),
    "fibonacci": s.fibonacci(),
    "sequence": s.sequence([1, 2]),
    "uniform": s.uniform(1, 10),
    "decorrelated": s.decorrelated(1),
    "google_interval": s.google_interval(),
    "polly_interval": s.polly_interval(),
    "cap": s.exponential(1).cap(5),
    "at_least": s.exponential(1).at_least(5),
    "round_down": s.exponential(1).round_down(1),
    "scale": s.linear(1) * 2,
    "full_jitter": s.linear(1).full_jitter(),
    "equal_jitter": s.exponential(1).equal_jitter(),
    "jitter": s.exponential(1).cap(60).jitter(0.5),
    "take": s.fibonacci().take(7),
    "within": s.linear(1).at_least(1).within(60),
    "then": s.exponential(1).take(3).then([5, 6]),
    "switch": s.exponential(1).switch(after=4, to=s.linear(1).equal_jitter()),
    "sum": ONE + s.polynomial(4) + s.linear(30).full_jitter(),
    "intersection": s.linear(1).jitter(0.2) & s.fibonacci() * 2,
    "union": (s.decorrelated(1) | s.sequence([9, 9])) * 0.5,
}
POLICIES = {name: Policy(schedule=schedule) for name, schedule in KINDS.items()}


# The input for each number: durations over six powers of ten, others between two
# bounds.
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
    "low": (0, 10),
    "high": (10, 5000),
    "multiplier": (1, 4),
    "randomization_factor": (0, 0.99),
    "exponent": (0, 6),
    "exponential factor": (1, 4),
    "rate": (0, 4),
    "decorrelated factor": (1, 4),
    "scale factor": (0, 3),
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


def change_a_number(data, path, random):
    """Change a number of a policy's data, and return the text to type for it."""
    *parents, part = path.split(".")
    for name in parents:
        data = data[name]
    value = data[part] = drawn(data.get("kind"), part, random)
    return ", ".join(map(str, value)) if part == "delays" else str(value)


def on_screen(browser, name, folder):
    """Return the policies that the page's Python and TOML make."""
    names = {}
    exec(browser.text("#python"), names)  # noqa: S102  under test
    path = folder / "policies.toml"
    path.write_text(browser.text("#toml"), "utf-8")
    return names["policy"], Policy.from_toml(path, name)


def test_each_kind_has_an_input_for_every_number():
    assert set(KINDS) == set(SCHEDULE_KINDS)
    assert all(KINDS[name].kind in {name, "scale"} for name in KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_typed_numbers_have_the_results_of_the_library(browser, name, tmp_path):
    random = Random(name)  # noqa: S311  the same parameters in every run
    browser.open({name: POLICIES[name]})
    data = POLICIES[name].to_dict()
    data["schedule"] = schedule_data(POLICIES[name].schedule)
    fields = browser.attributes("[data-path]", "data-path")
    browser.set_limit("max_elapsed", enabled=True)
    for path in fields:
        if path.startswith("schedule"):
            browser.type(path, change_a_number(data, path, random))
    for path in ("max_attempts", "max_elapsed"):
        limited = random.random() < 0.6
        browser.set_limit(path, enabled=limited)
        data[path] = "unlimited"
        if limited:
            browser.type(path, change_a_number(data, path, random))
    if data["max_elapsed"] != "unlimited":
        data["deadline"] = random.choice(["stop", "clip", "overshoot"])
        browser.select("deadline", data["deadline"])
    attempt = random.choice([0.0, 0.25, 3.0])
    browser.type("attempt", str(attempt))
    data["schedule"] = repr(schedule_from(data["schedule"]))
    policy = without_contradictions(browser, data)
    assert browser.all("[aria-invalid='true']") == []
    assert almost_equal(browser.rows(), rows(policy, attempt)), policy
    end = project(policy, attempt, 100).end
    if end:
        assert browser.text(f"[data-name='{name}'] .ending") == str(end)
    assert on_screen(browser, name, tmp_path) == (policy, policy)


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [
        (s.linear(1, first=4), "-1.5", s.linear(-1.5, first=4)),
        (s.linear(-120, first=400), "-90", s.linear(-90, first=400)),
        (s.linear(1), "1.5", s.linear(1.5)),
    ],
    ids=str,
)
def test_delays_from_a_first_one_may_fall(browser, schedule, step, expected, tmp_path):
    policy = Policy(schedule=schedule, max_attempts=7)
    browser.open({"linear": policy})
    assert almost_equal(browser.rows(), rows(policy, 0.0))
    browser.type("schedule.step", step)
    changed = policy.replace(schedule=expected)
    assert almost_equal(browser.rows(), rows(changed, 0.0))
    assert on_screen(browser, "linear", tmp_path) == (changed, changed)
    paths = browser.attributes("[data-path]", "data-path")
    assert ("schedule.first" in paths) is (schedule.first is not None)


def test_without_a_first_delay_no_step_is_negative(browser):
    browser.open({"linear": Policy(schedule=s.linear(1), max_attempts=7)})
    browser.type("schedule.step", "-1")
    [message] = [text for text in browser.texts(".error") if text]
    with pytest.raises(ConfigError) as caught:
        s.linear(-1)
    assert message == caught.value.message


def without_contradictions(browser, data):
    """Return the policy of the data, without limits that make each other useless."""
    for path in ("max_attempts", "max_elapsed"):
        try:
            return Policy.from_dict(data)
        except ConfigError:
            browser.set_limit(path, enabled=False)
            data[path] = "unlimited"
    data.pop("deadline", None)
    return Policy.from_dict(data)


# The input for each parameter of a preset.
TYPED = {
    "google": {
        "initial_interval": "200ms",
        "randomization_factor": 0.25,
        "multiplier": 3,
        "max_interval": 90,
        "max_elapsed_time": "1h30m",
    },
    "polly": {"median_first_retry_delay": "2.5s", "retry_count": 7},
    "zizq": {"base": 20, "exponent": 3.5, "jitter": "5m", "retry_limit": 30},
}


def type_in(browser, typed):
    """Type values into fields found by their labels."""
    paths = dict(
        browser.run(
            "return [...document.querySelectorAll('.input > label')]"
            ".map((each) => [each.textContent, each.control.dataset.path])"
        )
    )
    for label, value in typed.items():
        browser.type(paths[label], str(value))


@pytest.mark.parametrize("name", TYPED)
def test_a_preset_is_shown_by_its_own_parameters(browser, name, tmp_path):
    make = getattr(presets, name)
    assert {*inspect.signature(make).parameters} == {*TYPED[name]}
    browser.open({name: make()})
    assert browser.text("legend code") == f"{name}(…)"
    assert on_screen(browser, name, tmp_path) == (make(), make())
    type_in(browser, TYPED[name])
    policy = make(**TYPED[name])
    assert on_screen(browser, name, tmp_path) == (policy, policy)
    head, extends = browser.text("#toml").splitlines()
    assert head == f"[tool.retrykit.policies.{name}]"
    assert extends.startswith(f'extends = "{name}:')
    assert f"policy = presets.{name}(" in browser.text("#python")
    assert almost_equal(browser.rows(), rows(policy))
    assert browser.console_messages() == []


def test_changes_of_a_preset_are_written_beside_it(browser, tmp_path):
    policy = presets.google().replace(on=BadZipFile, deadline="clip")
    browser.open({"google": policy})
    assert on_screen(browser, "google", tmp_path) == (policy, policy)
    browser.select("deadline", "stop")
    browser.set_limit("max_attempts", enabled=True)
    browser.type("max_attempts", "7")
    policy = policy.replace(deadline="stop", max_attempts=7)
    assert on_screen(browser, "google", tmp_path) == (policy, policy)


def test_a_number_that_a_preset_cannot_express_is_in_the_schedule(browser, tmp_path):
    browser.open({"zizq": presets.zizq()})
    type_in(browser, {"base": "1e-7"})
    policy = presets.zizq(base=1e-7)
    assert on_screen(browser, "zizq", tmp_path) == (policy, policy)
    assert "schedule = 'constant(1e-07) +" in browser.text("#toml")


@pytest.mark.parametrize("parameter", TYPED["zizq"])
def test_an_invalid_parameter_has_the_message_of_the_preset(browser, parameter):
    with pytest.raises(ConfigError) as caught:
        presets.zizq(**{parameter: -1})
    browser.open({"zizq": presets.zizq()})
    type_in(browser, {parameter: -1})
    [error] = filter(None, browser.texts(".error"))
    assert error == caught.value.message
