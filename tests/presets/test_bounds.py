"""The shortest and the longest delays of each preset, as its original has them.

`nox -s originals` compares whole distributions; this is what it found, for the default
and for other parameters. The last number is that of the attempts; None is no limit.
"""

import pytest

from retrykit.config._preset_names import parse_preset

BOUNDS = {
    "stamina": ([(0.1, 1.1), (0.2, 1.2), (0.4, 1.4), (0.8, 1.8)], 10),
    "urllib3": ([(0, 0), (0, 0)], 11),
    "urllib3:total=5,backoff_factor=2,backoff_max=20s,backoff_jitter=3s": (
        [(0, 0), (4, 7), (8, 11), (16, 19), (20, 20)],
        6,
    ),
}


@pytest.mark.parametrize(("text", "expected"), BOUNDS.items(), ids=BOUNDS)
def test_a_preset_has_the_delays_of_its_original(text, expected):
    bounds, attempts = expected
    policy = parse_preset(text)
    found = [policy.schedule.bounds(retry) for retry in range(1, len(bounds) + 1)]
    assert found == [pytest.approx(each) for each in bounds]
    assert policy.max_attempts == attempts
