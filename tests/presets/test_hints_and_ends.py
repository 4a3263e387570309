"""What presets do with a Retry-After, and where a limit of time ends them.

The expected delays are those of the originals, which were run for them.
"""

import itertools

import pytest

from retrykit.config._preset_names import parse_preset
from tests._support.exhausted_calls import exhaust


class BusyError(ConnectionError):
    """The error of a client, with a response that asks for a delay."""

    def __init__(self, seconds):
        super().__init__(seconds)
        self.response = type("Response", (), {"headers": {"Retry-After": seconds}})()


RETRY_AFTER = {
    ("axios-retry", "3"): (3, 3, 3),
    ("axios-retry", "86400"): (86_400, 86_400, 86_400),
    ("curl:retry=2", "3"): (3, 3),
    ("curl:retry=2", "86400"): (21_600, 21_600),
    ("got:noise=0s", "5"): (5, 5),
    ("got:max_retry_after=4s", "5"): (),
    ("got", "2200000"): (),
    ("ky", "2"): (2, 2),
    ("ky:max_retry_after=1s", "9"): (1, 1),
    ("undici:max_retries=2", "2"): (2, 2),
    ("undici:max_retries=2", "3600"): (30, 30),
}


@pytest.mark.parametrize(("asked", "expected"), RETRY_AFTER.items(), ids=str)
def test_a_preset_obeys_a_retry_after_as_its_original_does(
    backend, clock, asked, expected
):
    text, seconds = asked

    def fail():
        raise BusyError(seconds)

    with pytest.raises(BusyError):
        backend(parse_preset(text))(fail)()
    assert clock.sleeps == [pytest.approx(each) for each in expected]


# The times of the attempts.
ENDS = {
    "node-retry:min_timeout=100ms,max_retry_time=250ms": [0, 0.1, 0.3],
    "p-retry:min_timeout=100ms,max_retry_time=450ms": [0, 0.1, 0.3, 0.45],
    "curl:retry=5,retry_max_time=2s": [0, 1, 3],
}


@pytest.mark.parametrize(("text", "expected"), ENDS.items(), ids=ENDS)
def test_a_preset_ends_when_its_original_does(backend, clock, text, expected):
    calls, _ = exhaust(backend, parse_preset(text))
    assert calls == len(expected)
    found = itertools.accumulate(clock.sleeps, initial=0)
    assert list(found) == pytest.approx(expected)
