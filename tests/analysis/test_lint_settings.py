"""Lint: joined limits, the errors retried by default, and policies from functions."""

import pytest

from retrykit import Policy, presets, schedules as s
from retrykit.analysis.lint import check, discover
from tests._support import source_folders
from tests._support.source_folders import found_names
from tests._support.terminal import run_command

no_imports_left = source_folders.no_imports_left
write = source_folders.write

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


def lint(folder, target):
    printed = run_command("lint", target, folder=folder)
    return printed.code, printed.out.splitlines()


def test_a_bare_decorator_gives_no_warning(write):
    folder = write(
        jobs="""
        @retry
        def fetch(): ...

        @retry()
        def read(): ...

        @aretry
        async def afetch(): ...
        """,
        wide="""
        @retry(on=Exception, max_attempts=6)
        def fetch(): ...
        """,
    )
    assert lint(folder, "jobs.py") == (0, ["no warnings in 3 policies"])
    code, [warning, _] = lint(folder, "wide.py")
    assert (code, "fetch: retries-every-exception: " in warning) == (1, True)


def test_a_function_that_returns_the_policy_is_asked_once(write):
    folder = write(
        jobs="""
        asked = []

        def current():
            asked.append(len(asked))
            return Policy(max_attempts=3 + len(asked))

        @retry(policy=current)
        def fetch(): ...

        @retry(policy=lambda: Policy(on=Exception, max_attempts=7))
        def wide(): ...
        """,
        other="from jobs import fetch, asked\n",
    )
    found = {str(each): each.policy for each in discover(str(folder)).found}
    assert found == {
        "jobs:fetch": Policy(max_attempts=4),
        "jobs:wide": Policy(on=Exception, max_attempts=7),
    }


@pytest.mark.parametrize("fault", ["os.environ['ABSENT']", "1", "None"])
def test_a_function_that_returns_no_policy_is_skipped(write, fault):
    folder = write(
        jobs=f"""
        import os

        @retry(policy=lambda: {fault})
        def fetch(): ...

        @retry(max_attempts=3)
        def read(): ...
        """
    )
    assert found_names(folder) == ["jobs:read"]
    assert lint(folder, "jobs.py") == (0, ["no warnings in 1 policy"])
