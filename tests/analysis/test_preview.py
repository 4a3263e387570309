"""Previews: rows, ends, limits, times and arguments."""

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from retrykit import AsArgument, ConfigError, Policy, Rule, presets, schedules as s
from retrykit._cli.summary import summarize
from retrykit._core.limits import override
from retrykit.analysis.preview import EndOfCall, preview
from retrykit.hints import retry_after
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing.strategies import durations, policies
from tests._support.reference_data import reference_data

DAY = 86_400
LIMITS = reference_data("limits")["cases"]


@pytest.mark.parametrize("case", LIMITS, ids=[case["name"] for case in LIMITS])
def test_limits_have_the_numbers_calculated_by_hand(case):
    policy = Policy.from_dict(case["policy"])
    seen = preview(policy, attempt=case["attempt"], retries=case["retries"], samples=0)
    rows = [[row.low, row.high, row.total_low, row.total_high] for row in seen.rows]
    assert rows == case["rows"]
    assert (seen.min_retries, seen.worst_case) == (
        case["min_retries"],
        case["worst_case"],
    )
    assert (seen.end and seen.end.max_retries) == case["max_retries"]
    assert (seen.end and list(seen.end.reasons)) == case["reasons"]


def test_the_duration_of_attempts_counts():
    seen = preview(Policy(schedule=[1, 2, 3]), attempt="10s")
    assert [row.total_low for row in seen.rows] == [1.0, 3.0, 6.0]
    assert [row.start_low for row in seen.rows] == [11.0, 23.0, 36.0]
    assert [row.start_high for row in seen.rows] == [11.0, 23.0, 36.0]
    assert (seen.attempt, seen.worst_case) == (10.0, 46.0)


def test_hostname_verification_has_the_delays_of_its_table():
    """Row 0 is the delay before the first retry."""
    table = reference_data("hostname_verification")["rows"]
    seen = preview(presets.hostname_verification())
    assert len(seen.rows) == 75
    for row, expected in zip(seen.rows, table, strict=False):
        assert row.retry == expected["retry_attempt"] + 1
        assert row.low == row.mean == row.high == expected["seconds"]
        assert round(row.low / 60, 6) == expected["minutes"]
        assert round(row.low / 3600, 6) == expected["hours"]
        assert row.mean_error == 0.0
    assert seen.rows[9].total_low == seen.rows[9].total_high == 751
    assert round(seen.worst_case / DAY, 2) == 7.06
    assert str(seen.end) == "stops after retry 75: schedule"
    assert seen.limits == {"schedule": seen.end}
    assert (seen.attempts, seen.samples, seen.total_wait.mean) == (
        (76, 76),
        0,
        seen.worst_case,
    )


def test_zizq_lasts_as_long_as_its_formula_says():
    reference = reference_data("zizq")
    seen = preview(presets.zizq())
    last = seen.rows[-1]
    days = reference["total_window_days"]
    assert last.total_low / DAY == pytest.approx(days["low"], rel=1e-12)
    assert last.total_high / DAY == pytest.approx(days["high"], rel=1e-12)
    for row in reference["bounds"]:
        found = seen.rows[row["a"] - 1]
        assert (found.low, found.high) == (row["low_s"], row["high_s"])
        assert found.mean == pytest.approx((row["low_s"] + row["high_s"]) / 2)
    assert seen.total_wait.mean == pytest.approx((last.total_low + last.total_high) / 2)
    assert str(seen.end) == "stops after retry 25: max_attempts"


def test_google_has_the_randomized_intervals_of_its_table():
    reference = reference_data("exponential_backoff")
    seen = preview(presets.google())
    for request in reference["example"][:9]:
        row = seen.rows[request["request"] - 1]
        low, high = request["randomized_interval_s"]
        # The original draws whole milliseconds, and its table truncates them.
        assert (row.low, row.high) == pytest.approx((low, high), abs=0.0011)
        assert row.mean == pytest.approx(request["retry_interval_s"], abs=0.001)
    assert seen.end.reasons == ("max_elapsed", "max_elapsed")
    assert seen.worst_case == pytest.approx(900 + 90, abs=0.001)


def one_delay():
    yield 4


FOURS = s.constant(4)
ENDS = {
    "max_attempts": ({"max_attempts": 4}, "stops after retry 3: max_attempts"),
    "max_elapsed": ({"max_elapsed": 10}, "stops after retry 2: max_elapsed"),
    "clipped": (
        {"max_elapsed": 10, "deadline": "clip"},
        "stops after retry 3: max_elapsed",
    ),
    "schedule": ({"schedule": FOURS.take(2)}, "stops after retry 2: schedule"),
    "ends at once": (
        {"schedule": [], "rules": [Rule(on=OSError, schedule=[1])]},
        "never retries: schedule",
    ),
    "one attempt": ({"max_attempts": 1}, "never retries: max_attempts"),
    "no time": (
        {"schedule": one_delay, "max_elapsed": 0},
        "never retries: max_elapsed",
    ),
    "chance": (
        {"schedule": FOURS.full_jitter(), "max_elapsed": 7, "max_attempts": 5},
        "stops after retry 1 to 4: max_elapsed or max_attempts",
    ),
}


@pytest.mark.parametrize(("changes", "text"), ENDS.values(), ids=ENDS)
def test_each_end_names_its_setting(changes, text):
    whole = {"schedule": FOURS, "max_attempts": None, "max_elapsed": None} | changes
    seen = preview(Policy(**whole))
    assert str(seen.end) == text
    assert len(seen.rows) == seen.end.max_retries
    assert seen.attempts == (seen.end.min_retries + 1, seen.end.max_retries + 1)
    assert seen.total_wait.attempts >= seen.attempts[0]


NEVER_REACHED = {
    "attempts": ({"max_attempts": 9, "max_elapsed": 10}, ("max_attempts",)),
    "attempts, by the schedule": (
        {"max_attempts": 9, "schedule": FOURS.take(2)},
        ("max_attempts",),
    ),
    "schedule": ({"max_attempts": 3, "schedule": FOURS.take(9)}, ("schedule",)),
    "attempts and schedule": (
        {"max_attempts": 9, "max_elapsed": 9, "schedule": FOURS.take(7)},
        ("max_attempts", "schedule"),
    ),
    "time": (
        {"max_attempts": 3, "max_elapsed": 60, "attempt_timeout": 5},
        ("max_elapsed",),
    ),
    "time, if attempts may take longer": ({"max_attempts": 3, "max_elapsed": 60}, ()),
    "time, if clients may take longer": (
        {"max_attempts": 3, "max_elapsed": 60, "attempt_timeout": AsArgument(5)},
        (),
    ),
    "either": (
        {"schedule": FOURS.full_jitter(), "max_elapsed": 7, "max_attempts": 5},
        (),
    ),
    "both": ({"max_attempts": 9, "max_elapsed": 10, "limits": "all"}, ()),
    "a hint": ({"max_attempts": 9, "max_elapsed": 10, "hint": retry_after()}, ()),
    "no end": ({}, ()),
}


@pytest.mark.parametrize(
    ("changes", "names"), NEVER_REACHED.values(), ids=NEVER_REACHED
)
def test_a_preview_names_the_limits_that_no_call_reaches(changes, names):
    whole = {"schedule": FOURS, "max_attempts": None, "max_elapsed": None} | changes
    assert preview(Policy(**whole)).never_reached == names


def test_a_summary_tells_which_limit_is_never_reached():
    def ends(**settings):
        return {x: y for x, *y in summarize(preview(Policy(**settings)))}["ends"]

    assert ends(schedule=FOURS, max_attempts=9, max_elapsed=10) == [
        "stops after retry 2: max_elapsed",
        "max_attempts alone: stops after retry 8; never reached",
    ]
    # What is beyond the table has no end of its own.
    assert ends(schedule=FOURS.take(2), max_attempts=9) == [
        "stops after retry 2: schedule",
        "max_attempts is never reached",
    ]
    assert ends(max_attempts=2, max_elapsed="1w", attempt_timeout=5) == [
        "stops after retry 1: max_attempts",
        "max_elapsed is never reached",
    ]


def test_each_limit_is_shown_independently_of_the_others():
    limits = {"max_attempts": 9, "max_elapsed": 10, "deadline": "clip"}
    seen = preview(Policy(schedule=FOURS.jitter(0.5).take(20), **limits))
    assert seen.limits == {
        "max_attempts": EndOfCall(8, 8, ("max_attempts", "max_attempts")),
        "max_elapsed": EndOfCall(2, 5, ("max_elapsed", "max_elapsed")),
        "schedule": EndOfCall(20, 20, ("schedule", "schedule")),
    }
    few = preview(seen.policy.replace(max_attempts=2))
    assert few.limits == seen.limits | {"max_attempts": few.end}
    # A limit after the end of the schedule does not count.
    short = preview(override(seen.policy, schedule=FOURS.take(1)))
    assert short.limits == {"schedule": EndOfCall(1, 1, ("schedule", "schedule"))}
    some = preview(Policy(schedule=FOURS.full_jitter().take(3), max_elapsed=7))
    assert some.limits["max_elapsed"] == EndOfCall(1, 3, ("max_elapsed", "schedule"))


@pytest.mark.parametrize("most", [None, 10**6], ids=str)
def test_an_end_beyond_the_projected_retries_is_none(most):
    seen = preview(Policy(max_attempts=most), retries=50)
    assert len(seen.rows) == 50
    assert (seen.end, seen.total_wait, seen.attempts, seen.worst_case) == (None,) * 4
    assert (seen.limits, seen.samples) == ({}, 0)


def test_an_end_reached_only_by_long_delays_is_none():
    policy = Policy(schedule=FOURS.full_jitter(), max_elapsed="1m")
    seen = preview(policy, retries=50)
    assert (seen.end, seen.limits, len(seen.rows)) == (None, {}, 50)
    assert seen.rows[-1].total_high == 60.0


def test_an_end_at_the_last_projected_retry_is_known():
    seen = preview(Policy(schedule=FOURS, max_attempts=4), retries=3)
    assert str(seen.end) == "stops after retry 3: max_attempts"
    assert preview(seen.policy, retries=2).end is None
    assert (
        preview(Policy(schedule=[4] * 3), retries=3).limits["schedule"].max_retries == 3
    )
    assert "schedule" not in preview(Policy(schedule=[4] * 3), retries=2).limits


def test_an_attempt_may_take_longer_than_max_elapsed():
    seen = preview(Policy(max_elapsed=10), attempt=11)
    assert str(seen.end) == "never retries: max_elapsed"
    assert (seen.rows, seen.worst_case, seen.total_wait.mean) == ((), 11.0, 0.0)


def test_rounding_beyond_the_limit_does_not_lower_the_total():
    """Under `overshoot` 10.0000008 is still in time for 10."""
    policy = Policy(
        schedule=s.constant(5.0000004), max_elapsed=10, deadline="overshoot"
    )
    rows = preview(policy).rows
    assert len(rows) == 3
    assert all(row.total_low == row.total_high for row in rows)


def test_times_saturate():
    seen = preview(Policy(schedule=[MAX_DELAY] * 2), attempt=MAX_DELAY)
    assert [row.start_high for row in seen.rows] == [MAX_DELAY, MAX_DELAY]
    assert [row.total_high for row in seen.rows] == [MAX_DELAY, MAX_DELAY]
    assert seen.worst_case == MAX_DELAY


AT_NOON = datetime(2024, 3, 30, 12, 0)  # noqa: DTZ001  naive, under test


def test_rows_have_the_time_of_their_retry():
    policy = Policy(schedule=s.constant("1d").equal_jitter())
    row = preview(policy, attempt="1h").rows[0]
    half, day = timedelta(hours=13), timedelta(hours=25)
    assert row.at(AT_NOON) == (AT_NOON + half, AT_NOON + day)
    aware = AT_NOON.replace(tzinfo=UTC)
    assert row.at(aware) == (aware + half, aware + day)


def test_daylight_saving_time_does_not_shift_times():
    """In the night to 31 March 2024 clocks in Paris went from 2 to 3."""
    noon = AT_NOON.replace(tzinfo=ZoneInfo("Europe/Paris"))
    row = preview(Policy(schedule=["1d"])).rows[0]
    soonest, latest = row.at(noon)
    assert soonest == latest
    assert soonest.isoformat() == "2024-03-31T13:00:00+02:00"


def test_times_beyond_the_calendar_are_none():
    policy = Policy(schedule=s.sequence([MAX_DELAY]).full_jitter())
    row = preview(policy).rows[0]
    assert row.at(AT_NOON) == (AT_NOON, None)
    assert row.at(datetime.max.replace(tzinfo=UTC))[1] is None


class CustomSchedule(s.Schedule):
    """A schedule of random delays between 0 and 8 seconds."""

    __slots__ = ("draws",)

    def __init__(self, draws):
        super().__init__()
        object.__setattr__(self, "draws", draws)

    def delay(self, retry, previous, random, /):
        return self.draws(retry, random.random())

    def bounds(self, retry, /):
        return Fraction(0), Fraction(8)


def custom(draws, **changes):
    return Policy(schedule=CustomSchedule(draws), **{"max_elapsed": None} | changes)


def test_means_of_a_custom_schedule_are_sampled():
    seen = preview(custom(lambda _, chance: Fraction(8 * chance * chance)))
    assert [type(row.high) for row in seen.rows] == [float] * 4
    for row in seen.rows:
        assert 0 < row.mean_error < 0.15
        assert abs(row.mean - 8 / 3) <= 2 * row.mean_error
    assert abs(seen.total_wait.mean - 32 / 3) <= 2 * seen.total_wait.error
    assert seen.samples == seen.total_wait.samples == 2000
    assert preview(seen.policy, samples=1).rows[0].mean_error == 8.0
    unknown = preview(seen.policy, samples=0)
    assert [row.mean for row in unknown.rows] == [None] * 4
    assert (unknown.total_wait, unknown.samples) == (None, 0)


def test_fractions_become_seconds():
    class Halves(CustomSchedule):
        def bounds(self, retry, /):
            return Fraction(retry, 2), Fraction(retry, 2)

    row = preview(Policy(schedule=Halves(None))).rows[0]
    assert {type(row.low), type(row.mean), type(row.total_high)} == {float}
    assert row.low == row.mean == row.total_high == 0.5


def test_means_are_sampled_only_if_they_have_no_formula():
    schedule = (
        s.constant(3)
        .full_jitter()
        .take(1)
        .then(CustomSchedule(lambda _, chance: chance))
    )
    endless = Policy(schedule=schedule, max_attempts=None)
    seen = preview(endless, retries=9)
    first, second = seen.rows[:2]
    assert (first.mean, first.mean_error) == (1.5, 0.0)
    assert abs(second.mean - 0.5) <= 2 * second.mean_error
    assert (seen.end, seen.total_wait, seen.samples) == (None, None, 2000)


def test_a_custom_schedule_gets_the_previous_delay():
    class Adding(CustomSchedule):
        def delay(self, retry, previous, random, /):
            return (previous or 0.0) + random.random()

    seen = preview(Policy(schedule=Adding(None)))
    for row in seen.rows:
        assert abs(row.mean - row.retry / 2) <= 2 * row.mean_error


def test_a_custom_schedule_may_end_randomly():
    seen = preview(custom(lambda n, chance: 1.0 if n == 1 and chance < 0.5 else None))
    assert [row.mean for row in seen.rows] == [1.0, None, None, None]
    assert 1.4 < seen.total_wait.attempts < 1.6


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf], ids=str)
@pytest.mark.parametrize("most", [None, 3], ids=str)
def test_an_invalid_delay_is_rejected(wrong, most):
    """Also beyond max_elapsed, and without an end."""
    policy = custom(lambda retry, chance: wrong if chance < 0.01 else 1.0)
    with pytest.raises(ConfigError, match="schedule must be a schedule of finite"):
        preview(policy.replace(max_attempts=most))


def test_an_invalid_delay_beyond_max_elapsed_is_rejected():
    policy = custom(lambda retry, _: 9.0 if retry == 1 else -1.0, max_elapsed=7)
    with pytest.raises(ConfigError, match="schedule must be a schedule of finite"):
        preview(policy)


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf], ids=str)
def test_invalid_bounds_are_rejected(wrong):
    class InvalidBounds(CustomSchedule):
        def bounds(self, retry, /):
            return wrong, wrong

    with pytest.raises(ConfigError, match="schedule must be a schedule of finite"):
        preview(Policy(schedule=InvalidBounds(None)))


def test_an_error_of_a_custom_schedule_is_raised():
    with pytest.raises(ZeroDivisionError):
        preview(custom(lambda retry, chance: 1 / 0))


def doubling():
    delay = 1.0
    while True:
        yield delay
        delay *= 2


def test_a_generator_function_is_read_as_far_as_needed():
    seen = preview(Policy(schedule=doubling), retries=100)
    assert [row.mean for row in seen.rows] == [1.0, 2.0, 4.0, 8.0]
    assert (seen.samples, seen.worst_case) == (0, 15.0)


def tripling():
    delay = 1
    while True:
        yield delay
        delay *= 3


class Tripling(s.Schedule):
    def delay(self, retry, _previous, _random, /):
        if retry > 4:
            raise AssertionError
        return 3.0 ** (retry - 1)

    def bounds(self, retry, /):
        delay = self.delay(retry, None, None)
        return delay, delay


@pytest.mark.parametrize(
    "schedule",
    [tripling, Tripling(), Tripling().cap("1h"), s.sequence(tripling).jitter(0)],
    ids=["generator", "class", "class inside", "generator inside"],
)
def test_user_code_is_called_only_for_delays_of_calls(schedule):
    policy = Policy(schedule=schedule, max_attempts=5)
    seen = preview(policy)
    assert [row.mean for row in seen.rows] == [1.0, 3.0, 9.0, 27.0]
    assert str(seen.end) == "stops after retry 4: max_attempts"
    assert list(seen.limits) == ["max_attempts"]
    short = preview(policy.replace(max_elapsed=10))
    assert str(short.end) == "stops after retry 2: max_elapsed"
    assert list(short.limits) == ["max_elapsed"]
    once = preview(policy.replace(max_attempts=1))
    assert (once.rows, list(once.limits)) == ((), ["max_attempts"])


def test_limits_beyond_the_end_are_known_for_built_in_schedules():
    policy = Policy(schedule=s.exponential(1), max_attempts=5, max_elapsed=100)
    limits = preview(policy).limits
    assert {name: end.max_retries for name, end in limits.items()} == {
        "max_attempts": 4,
        "max_elapsed": 6,
    }


FULL = s.exponential(1).cap(10).full_jitter()


def test_delays_near_zero_have_no_latest_end_but_a_worst_case():
    policy = Policy(schedule=FULL, max_attempts=None, max_elapsed=60)
    seen = preview(policy, samples=500)
    assert (seen.end, seen.attempts, seen.min_retries) == (None, None, 8)
    assert seen.worst_case == 60
    assert seen.total_wait.samples == seen.samples == 500
    assert 9 < seen.total_wait.attempts < 25
    assert seen.total_wait.mean < 60
    assert preview(policy, samples=0).total_wait is None


def test_overshoot_without_a_latest_end_has_no_worst_case():
    policy = Policy(
        schedule=FULL, max_attempts=None, max_elapsed=60, deadline="overshoot"
    )
    assert preview(policy, samples=0).worst_case is None


def test_calls_not_sampled_to_their_end_have_no_total_wait():
    policy = Policy(schedule=FULL, max_attempts=None, max_elapsed="1d")
    seen = preview(policy, retries=20, samples=50)
    assert (seen.min_retries, seen.total_wait, seen.worst_case) == (None, None, None)
    soon = policy.replace(schedule=s.constant(4).full_jitter(), max_elapsed=60)
    seen = preview(soon, retries=20, samples=50)
    assert (seen.min_retries, seen.total_wait, seen.worst_case) == (15, None, 60)


@given(policies(), durations())
def test_every_number_is_finite(policy, taken):
    seen = preview(policy, attempt=taken, retries=10, samples=20)
    for row in seen.rows:
        assert row.low <= row.mean <= row.high
        assert row.total_low <= row.total_high
        numbers = (row.mean_error, row.total_high, row.start_low, row.start_high)
        assert all(0 <= number < math.inf for number in numbers)
        assert row.start_low <= row.start_high
    if seen.end:
        assert seen.worst_case < math.inf
        assert all(max(q.value, q.error) < math.inf for q in seen.total_wait.quantiles)
        # Sums in another order differ by rounding errors.
        assert 0 <= seen.total_wait.mean <= seen.worst_case * (1 + 1e-9)
