"""Presets by name, as in files and on the command line."""

import pytest

from retrykit import ConfigError, presets
from retrykit._internal.validation import did_you_mean, safe_repr
from retrykit.config._preset_names import BUILT_IN, parse_preset

UNIT = "write the unit (us, ms, s, m, h, d, w)"

NAMED = {
    "zizq": presets.zizq(),
    "google": presets.google(),
    "hostname-verification": presets.hostname_verification(),
    "hostname_verification": presets.hostname_verification(),
    " zizq ": presets.zizq(),
    "zizq:retry_limit=10,jitter=5s": presets.zizq(retry_limit=10, jitter=5),
    "zizq: base = 1m , exponent=2.5": presets.zizq(base=60, exponent=2.5),
    "zizq:exponent=2": presets.zizq(exponent=2),
    "aws-standard:version=2.0,max_attempts=5": presets.aws_standard(
        version="2.0", max_attempts=5
    ),
    "aws-standard:throttled=BlockingIOError": presets.aws_standard(
        throttled=BlockingIOError
    ),
    "temporal:maximum_interval=1h": presets.temporal(maximum_interval="1h"),
    "celery:retry_jitter=none,retry_backoff=5": presets.celery(
        retry_jitter="none", retry_backoff=5
    ),
    "google:multiplier=2,max_interval=1h30m": presets.google(
        multiplier=2, max_interval="1h30m"
    ),
}


@pytest.mark.parametrize(("text", "settings"), NAMED.items(), ids=NAMED)
def test_a_preset_is_found_by_its_name_and_accepts_parameters(text, settings):
    # Each has its own budget.
    assert parse_preset(text).replace(budget=settings.budget) == settings


PRESET = "preset must be the name of one, got"
LISTED = "the command retrykit presets lists them"
EVERY_PART = "with each parameter once"
WRONG = {
    "zizk": f"{PRESET} 'zizk'; did you mean zizq?",
    "ZIZQ": f"{PRESET} 'ZIZQ'; did you mean zizq?",
    "hostname": f"{PRESET} 'hostname'; {LISTED}",
    "": f"{PRESET} ''; {LISTED}",
    "os:system": f"{PRESET} 'os'; {LISTED}",
    "zizq:": f"preset must be zizq, or zizq:parameter=value,... {EVERY_PART}, got "
    "'zizq:'",
    "zizq:retry_limit": "preset must be zizq, or zizq:parameter=value,... "
    f"{EVERY_PART}, got 'zizq:retry_limit'",
    "zizq:base=1s,base=2s": "preset must be zizq, or zizq:parameter=value,... "
    f"{EVERY_PART}, got 'zizq:base=1s,base=2s'",
    "zizq:retry_limt=3": "retry_limt is not a parameter of zizq, got '3'; did you mean "
    "retry_limit?",
    "zizq:color=3": "color is not a parameter of zizq, "
    "got '3'; the parameters are retry_limit, "
    "base, exponent, jitter",
    "hostname-verification:cap=3": "cap is not a parameter of hostname-verification, "
    "got "
    "'3'; it has none",
    "zizq:retry_limit=ten": "retry_limit must be an integer >= 0, got 'ten'",
    "zizq:retry_limit=2.5": "retry_limit must be an integer >= 0, got '2.5'",
    "zizq:retry_limit=" + "9" * 5000: "retry_limit must be an integer >= 0, got "
    f"{safe_repr('9' * 5000)}",
    "zizq:exponent=four": "exponent must be a finite number >= 0, got 'four'",
    "zizq:exponent=nan": "exponent must be a finite number >= 0, got nan",
    "zizq:base=5": 'base must be a duration such as "12.5s", "500ms" or "1h30m", got '
    f"'5'; {UNIT}",
}


@pytest.mark.parametrize(
    ("text", "message"), WRONG.items(), ids=[text[:30] for text in WRONG]
)
def test_an_invalid_preset_name_is_rejected_with_a_suggestion(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_preset(text)
    assert caught.value.message == message


def test_every_preset_is_found_by_its_name():
    names = {name.replace("-", "_"): build for name, build in BUILT_IN.items()}
    assert names == {name: getattr(presets, name) for name in presets.__all__}


def test_only_the_first_thousand_names_are_compared():
    known = (f"policy{place}" for place in range(10**6))
    assert did_you_mean("polcy7", known) == "did you mean policy7?"
    assert next(known) == "policy1000"
