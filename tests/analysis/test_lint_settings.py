"""Lint: joined limits, and the errors retried by default."""

from retrykit import Policy, presets, schedules as s
from retrykit.analysis.lint import check

DELAYS = s.constant(10).jitter(0.5)


def found(**settings):
    policy = Policy(on=OSError, **{"schedule": DELAYS} | settings)
    return {each.rule: str(each) for each in check(policy)}


def joined(most, allowed, **settings):
    return found(max_attempts=most, max_elapsed=allowed, limits="all", **settings)


def test_joined_limits_that_are_reached_need_no_warning():
    assert joined(3, 40) == joined(5, 20) == joined(1, 40) == {}


def test_one_attempt_is_not_the_last_if_time_is_left():
    assert "never-retries" in found(max_attempts=1)
    assert "never-retries" not in joined(1, 40)


def test_a_short_time_leaves_no_attempt_out():
    assert joined(3, 0) == joined(3, 1) == {}


def test_delays_beyond_the_last_limit_are_never_used():
    delays = s.sequence([10] * 9).jitter(0.5)
    time = joined(3, 25, schedule=delays)
    assert time["delays-never-used"] == (
        "delays-never-used: max_elapsed=25.0 ends every call after 5 of the 9 delays "
        "of its schedule; a shorter schedule, or max_elapsed=136"
    )
    longer = joined(3, 136, schedule=delays), joined(10, 3, schedule=delays)
    assert [each for each in longer if "delays-never-used" in each] == []


def test_many_attempts_are_limited_by_one_of_both():
    quick = s.constant(1).jitter(0.5)
    many = joined(3, "10m", schedule=quick)["too-many-attempts"]
    assert many.endswith('; max_attempts=10 and limits="any"')
    assert "too-many-attempts" not in found(max_attempts=10)


def test_a_long_call_is_limited_by_one_of_both():
    long = joined(9, 60, schedule=s.constant("1h").jitter(0.5))
    assert long["call-outlives-process"].endswith(
        ', or set max_elapsed=3600.0, limits="any"'
    )


MANY = {"max_attempts": 9, "schedule": DELAYS}


def test_only_an_explicit_exception_is_called_every_exception():
    assert check(Policy(**MANY)) == check(presets.google(), rules=[EVERY]) == ()
    [finding] = check(Policy(on=Exception, **MANY))
    assert finding.rule == EVERY
    [finding] = check(Policy(on=(OSError, Exception), **MANY))
    assert finding.rule == EVERY


EVERY = "retries-every-exception"
