"""Advice for parameters of httpx-retries, beside httpx-retries itself."""

import re
from unittest.mock import patch

import httpx
import httpx_retries
import pytest

from retrykit import ConfigError, Policy
from retrykit.integrations.httpx import RetryTransport
from retrykit.schedules import constant
from retrykit.testing import virtual_time


def fetch(build, retry_after):
    """Return the number of requests, the status and the waits of a busy server."""
    requests, waits = [], []

    def busy(request):
        requests.append(request)
        return httpx.Response(503, headers={"Retry-After": retry_after})

    client = httpx.Client(transport=build(httpx.MockTransport(busy)))
    with client, patch("time.sleep", waits.append), virtual_time() as clock:
        status = client.get("http://test.invalid").status_code
    return len(requests), status, [*waits, *clock.sleeps]


@pytest.mark.parametrize("retry_after", ["9", "1", "4000"])
def test_the_advice_for_max_backoff_wait_cuts_what_the_server_asks_for(retry_after):
    with pytest.raises(ConfigError) as caught:
        Policy(max_backoff_wait=1)
    [advice] = re.findall(
        r"write hint_cap and (on_long_hint=\S+)", caught.value.message
    )
    settings = {"hint_cap": 2} | eval(f"dict({advice})")  # noqa: S307  our own text
    retry = httpx_retries.Retry(total=2, max_backoff_wait=2, backoff_jitter=0)

    def before(inner):
        return httpx_retries.RetryTransport(inner, retry)

    def after(inner):
        return RetryTransport(
            schedule=constant(0),
            max_attempts=3,
            hint_jitter=0,
            transport=inner,
            **settings,
        )

    seconds = min(float(retry_after), 2.0)
    expected = (3, 503, [seconds] * 2)
    assert fetch(before, retry_after) == fetch(after, retry_after) == expected
