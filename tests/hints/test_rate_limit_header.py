"""The structured header RateLimit, and its policies."""

from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from retrykit import Policy
from retrykit.hints import first_of, rate_limit, retry_after
from retrykit.hints._retry_after_header import unread_headers
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing import ScriptedFunction, virtual_time


def limited(limit, **others):
    headers = {"RateLimit": limit}
    headers |= {name.replace("_", "-"): value for name, value in others.items()}
    return SimpleNamespace(headers=headers)


@pytest.mark.parametrize(
    ("limit", "policy", "delay"),
    [
        ('"default";r=0;t=30', "", 30.0),
        ('"default";r=0;t=0', "", 0.0),
        ('"default" ; r=0 ; t=30 ; pk=:cHsdsRa894==:', "", 30.0),
        ("default;r=0;t=30", "", 30.0),
        ('"burst";r=0;t=5, "daily";r=0;t=600', "", 600.0),
        ('"burst";r=0;t=5,"daily";r=9;t=600', "", 5.0),
        ('"a,b";r=0;t=5', "", 5.0),
        (r'"a\";r=0;t=9";r=5;t=1, "b";r=0;t=2', "", 2.0),
        ('"default";r=0', '"default";q=100;w=10', 10.0),
        ('"a";r=0, "b";r=0;t=3', '"a";q=5;w=10, "b";q=5;w=99', 10.0),
        ('"default";r=0;t=5', '"default";q=100;w=10', 5.0),
        ("limit=10, remaining=0, reset=7", "", 7.0),
        ("limit=10, remaining=0, reset=7", "10;w=60", 7.0),
        (f'"default";r=0;t={"9" * 400}', "", MAX_DELAY),
    ],
    ids=str,
)
def test_an_exhausted_quota_asks_to_wait_until_it_is_renewed(limit, policy, delay):
    assert rate_limit()(limited(limit, RateLimit_Policy=policy)) == delay


@pytest.mark.parametrize(
    "limit",
    [
        '"default";r=5;t=30',
        '"default";t=30',
        '"default";r=0',
        '"default";r=0;t=soon',
        '"default";r=0;t="30"',
        "limit=10, remaining=3, reset=7",
    ],
)
def test_a_quota_that_is_not_known_to_be_exhausted_asks_for_nothing(limit, caplog):
    other = '"other";q=100;w=10'
    assert rate_limit()(limited(limit, RateLimit_Policy=other)) is None
    assert caplog.records == []


@pytest.mark.parametrize("limit", ["30", "-", '"default', "remaining=0"])
def test_a_header_of_another_form_is_ignored_and_logged(limit, caplog):
    unread_headers.clear()
    assert rate_limit()(limited(limit)) is None
    (record,) = caplog.records
    assert record.getMessage().startswith("ignored RateLimit, which is neither a")


def test_retry_after_takes_precedence_if_it_comes_first():
    both = first_of(retry_after(), rate_limit())
    assert both(limited('"default";r=0;t=30', Retry_After="3")) == 3.0
    assert both(limited('"default";r=0;t=30')) == 30.0


def test_a_call_waits_for_the_quota(backend):
    error = OSError("429")
    error.response = limited('"default";r=0;t=30')
    policy = Policy(schedule=[1], hint=rate_limit())
    with virtual_time():
        outcome = backend.run(policy, ScriptedFunction([error, "done"]))
    assert outcome.state.failures[0].hint == 30.0


def test_only_the_start_of_a_long_header_is_read():
    quotas = [f'"{number}";r=0;t=5' for number in range(500)]
    assert rate_limit()(limited(", ".join([*quotas, '"last";r=0;t=60']))) == 5.0


@given(limit=st.text() | st.text('"ab\\;,=rt0 1'), policy=st.text('"ab\\;,=w01'))
def test_any_header_is_a_delay_or_nothing(limit, policy):
    delay = rate_limit()(limited(limit, RateLimit_Policy=policy))
    assert delay is None or 0.0 <= delay <= MAX_DELAY
