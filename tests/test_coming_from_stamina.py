"""Rows of stamina in ``docs/migrating.md``, beside stamina itself."""

import re

import pytest
import stamina

from retrykit import Policy, RetryAfter
from retrykit.schedules import constant
from retrykit.testing import ScriptedFunction, limit_retries
from tests._support.side_by_side import run
from tests.test_coming_from import TABLES

SECTION = TABLES.partition("\n## stamina\n")[2].partition("\n## ")[0]


def test_a_hook_may_return_a_delay_longer_than_an_hour():
    row = r"^\| `on=backoff_hook`, which returns a delay \| `(.+?)`"
    [cell] = re.findall(row, SECTION, re.MULTILINE)
    names = {
        "predicate": lambda error: isinstance(error, OSError),
        "function": lambda error: RetryAfter(float(str(error))),
    }
    policy = Policy(
        schedule=constant(0),
        max_attempts=None,
        **eval(f"dict({cell})", names),  # noqa: S307  from our own document
    )
    theirs = stamina.RetryingCaller(attempts=None, timeout=None)
    script = [OSError("7200"), OSError("1"), "page"]
    before = run(lambda server: theirs(lambda error: float(str(error)), server), script)
    after = run(policy.call, script)
    assert after == before
    assert before.waits == [7200.0, 1.0]


@pytest.mark.parametrize(("own", "calls"), [(1, 1), (2, 2), (5, 3)])
def test_in_testing_a_number_of_attempts_is_lowered_but_not_raised(own, calls):
    row = r"`set_active\(False\)`, `(.+?)` \|.* `limit_retries\((\d)\)`"
    [theirs, ours] = re.search(row, SECTION).groups()
    assert (theirs, ours) == ("set_testing(True, attempts=2, cap=True)", "2")
    with stamina.set_testing(True, attempts=3, cap=True):
        assert count(stamina.retry(on=OSError, attempts=own)) == calls
    with limit_retries(3):
        policy = Policy(on=OSError, schedule=constant(0), max_attempts=own)
        assert count(lambda server: lambda: policy.call(server)) == calls
    with stamina.set_testing(True, attempts=3):
        assert count(stamina.retry(on=OSError, attempts=own)) == 3


def count(decorate):
    """Return how often a decorated function is called that always fails."""
    server = ScriptedFunction([OSError, ...])
    with pytest.raises(OSError):
        decorate(server)()
    return len(server.calls)
