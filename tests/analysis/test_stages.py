"""The order of the stages of a policy, as the show command and the page print it."""

import pytest

from retrykit import Hedge, Policy, presets
from retrykit._cli.summary import summarize
from retrykit._core.timeouts import AsArgument
from retrykit.analysis.html_report._policy_data import policy_data
from retrykit.analysis.preview import preview
from retrykit.limits import AdaptiveRateLimit, CircuitBreaker
from tests._support import chromium

browser = chromium.browser

HEDGE = Hedge("50ms", idempotent=True)
BREAKER = CircuitBreaker(name="api")
ALL = (
    "fallback='stale' ( max_elapsed=1m ( retry max_attempts=1 "
    "( CircuitBreaker(name='api') ( AdaptiveRateLimit(name='aws') "
    "( Hedge(0.05, idempotent=True) ( attempt_timeout=5s ( call )))))))"
)


def order_of(**settings):
    rows = {label: lines for label, *lines in summarize(preview(Policy(**settings)))}
    return rows.get("order")


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({}, None),
        ({"attempt_timeout": "5s", "fallback": 0, "max_elapsed": "1m"}, None),
        (
            {"admission": [BREAKER], "max_attempts": 5},
            "retry max_attempts=5 ( CircuitBreaker(name='api') ( call ))",
        ),
        (
            {"hedge": HEDGE, "schedule": [1, 2]},
            "retry ( Hedge(0.05, idempotent=True) ( call ))",
        ),
        (
            {"hedge": HEDGE, "max_attempts": 1},
            "Hedge(0.05, idempotent=True) ( call )",
        ),
        (
            {
                "fallback": "stale",
                "max_elapsed": "1m",
                "max_attempts": 1,
                "limits": "all",
                "admission": [BREAKER, AdaptiveRateLimit(name="aws")],
                "hedge": HEDGE,
                "attempt_timeout": AsArgument("5s"),
            },
            ALL,
        ),
    ],
    ids=["none", "no limit", "limit", "hedge", "hedge alone", "all"],
)
def test_the_order_is_shown_from_the_outermost_stage(browser, settings, order):
    assert order_of(**settings) == (order and [order])
    browser.open({"it": Policy(**settings)})
    assert browser.texts(".order") == ([f"Order: {order}"] if order else [])


def test_the_page_has_the_stages_that_it_cannot_change():
    policy = Policy(admission=[BREAKER], hedge=HEDGE, fallback=None)
    assert policy_data("it", policy)["stages"] == {
        "outer": ["fallback=None"],
        "inner": ["CircuitBreaker(name='api')", "Hedge(0.05, idempotent=True)"],
    }
    assert policy_data("it", presets.zizq())["stages"] is None
