"""Errors in environment variables name the variable."""

import sys

import pytest

from retrykit import ConfigError, Policy
from retrykit._internal.validation import safe_repr
from retrykit.schedules._kinds import CONSTRUCTORS

FORMULA = {"BACKOFF_BASE": "500", "BACKOFF_EXPONENT": "2.5", "BACKOFF_JITTER": "12.5s"}


def policy_of(**texts):
    environ = {f"APP_RETRY_{key}": text for key, text in texts.items()}
    return Policy.from_env("APP_RETRY", environ=environ)


def error_of(**texts):
    with pytest.raises(ConfigError) as caught:
        policy_of(**texts)
    return caught.value.message


MILLISECONDS = 'a number of milliseconds, or a duration such as "12.5s"'
WRONG = [
    (
        {"MAX_ATTEMPTS": "five"},
        (
            "_MAX_ATTEMPTS must be an integer >= 1, got 'five'; the first attempt "
            "counts; 'unlimited' is no limit"
        ),
    ),
    (
        {"MAX_ELAPSED": "30"},
        (
            '_MAX_ELAPSED must be a duration with its unit, such as "90s" or "1h30m", '
            "or unlimited, got '30'"
        ),
    ),
    (
        {"DEADLINE": "never"},
        (
            "_DEADLINE must be one of 'stop', 'clip', 'overshoot', got 'never'; for a "
            "time limit use max_elapsed"
        ),
    ),
    (
        {"RAISES": "all"},
        "_RAISES must be one of 'last', 'retry_error', 'group', got 'all'",
    ),
    (
        {"HINT": "retry_before"},
        (
            "_HINT must be a string that names a built-in hint, got 'retry_before'; "
            "did you mean retry_after?"
        ),
    ),
    (
        {"HINT_CAP": "30"},
        (
            '_HINT_CAP must be a duration with its unit, such as "90s" or "1h30m", or '
            "unlimited, got '30'"
        ),
    ),
    (
        {"ATTEMPT_TIMEOUT": "0s"},
        "_ATTEMPT_TIMEOUT must be a duration > 0, got 0.0; None is unlimited",
    ),
    (
        {"NESTED": "no"},
        "_NESTED must be one of 'respect', 'retry', 'raise', got 'no'",
    ),
    ({"SEED": "x"}, "_SEED must be an integer >= 0, got 'x'"),
    (
        {"MAX_FAILURES": "1"},
        (
            "_MAX_FAILURES must be an integer >= 2, got 1; the first and the last "
            "are always kept"
        ),
    ),
    (
        {"ON": "OSError,"},
        (
            "_ON must be the name of an exception type, such as OSError or "
            "module:Name, got ''; write module:Name for a type that is not built in"
        ),
    ),
    (
        {"GIVE_UP_ON": "this:Error"},
        (
            "_GIVE_UP_ON must be the name of an exception type, such as OSError or "
            "module:Name, got 'this:Error'; import this first"
        ),
    ),
    (
        {"ON": "KeyboardInterrupt"},
        (
            "_ON must be an Exception type, since no other is ever retried, got <class "
            "'KeyboardInterrupt'>; write Exception, or narrower"
        ),
    ),
    (
        {"SCHEDULE": "__import__('this')"},
        (
            "_SCHEDULE must be made of constructors, methods and operators of "
            "schedules, got '__import__'; the constructors are "
            f"{', '.join(CONSTRUCTORS)}"
        ),
    ),
    (
        {"SCHEDULE": "1s, -1s"},
        (
            '_SCHEDULE[1] must be a duration such as "12.5s", "500ms" or "1h30m", got '
            "'-1s'; write the unit (us, ms, s, m, h, d, w)"
        ),
    ),
    (
        {"SCHEDULE": "linear(-1)"},
        "_SCHEDULE: step must be a finite number >= 0, got -1",
    ),
    (
        {"EXTENDS": "gogle"},
        ("_EXTENDS must be the name of one, got 'gogle'; did you mean google?"),
    ),
    (
        {"EXTENDS": "zizq:retry_limt=3"},
        (
            "_EXTENDS: retry_limt is not a parameter of zizq, got '3'; did you mean "
            "retry_limit?"
        ),
    ),
    ({"RETRY_LIMIT": "-1"}, "_RETRY_LIMIT must be an integer >= 0, got -1"),
    ({"RETRY_LIMIT": "2.5"}, "_RETRY_LIMIT must be an integer >= 0, got '2.5'"),
    (
        FORMULA | {"BACKOFF_BASE": "-500"},
        f"_BACKOFF_BASE must be {MILLISECONDS}, got '-500'",
    ),
    (
        FORMULA | {"BACKOFF_JITTER": "soon"},
        f"_BACKOFF_JITTER must be {MILLISECONDS}, got 'soon'",
    ),
    (
        FORMULA | {"BACKOFF_JITTER": "9" * 400},
        f"_BACKOFF_JITTER must be {MILLISECONDS}, got {safe_repr('9' * 400)}",
    ),
    (
        FORMULA | {"BACKOFF_EXPONENT": "four"},
        "_BACKOFF_EXPONENT must be a finite number >= 0, got 'four'",
    ),
    (
        FORMULA | {"BACKOFF_EXPONENT": "inf"},
        "_BACKOFF_EXPONENT must be a finite number >= 0, got inf",
    ),
    (
        {"RETRY_LIMIT": "3", "MAX_ATTEMPTS": "4"},
        "_MAX_ATTEMPTS must be left out if APP_RETRY_RETRY_LIMIT is given, got '4'",
    ),
    (
        FORMULA | {"SCHEDULE": "[1]"},
        "_SCHEDULE must be left out if APP_RETRY_BACKOFF_BASE is given, got '[1]'",
    ),
    (
        {"MAX_ELAPSED": "unlimited", "DEADLINE": "clip"},
        (
            "_DEADLINE must be 'stop' where max_elapsed is None, got 'clip'; set "
            "max_elapsed, or deadline='stop'"
        ),
    ),
]


@pytest.mark.parametrize(
    ("texts", "message"), WRONG, ids=[message[:40] for _, message in WRONG]
)
def test_an_error_names_the_variable_as_it_was_typed(texts, message):
    assert "this" not in sys.modules
    assert error_of(**texts) == f"APP_RETRY{message}"
    assert "this" not in sys.modules


NEAR = {
    "MAX_ATTEMPT": "MAX_ATTEMPTS",
    "max_attempts": None,
    "RETRY_LIMITS": "RETRY_LIMIT",
    "SHEDULE": "SCHEDULE",
    "BACKOFF_EXPONENTS": "BACKOFF_EXPONENT",
    "SCHEDULER": None,
    "NAMES": None,
    "LIMIT": None,
    "LIMIT_PER_HOST": None,
    "ONE": None,
    "PORT": None,
    "URL": None,
    "": None,
}


@pytest.mark.parametrize(("key", "meant"), NEAR.items(), ids=str)
def test_a_misspelled_variable_is_rejected(key, meant):
    assert policy_of(**{key: ""}) == Policy()
    if meant is None:
        assert policy_of(**{key: "s3cret"}) == Policy()
    else:
        assert error_of(**{key: "s3cret"}) == (
            f"APP_RETRY_{key} is not a policy setting; did you mean APP_RETRY_{meant}?"
        )


MEANT = {
    "ATTEMPTS": "write APP_RETRY_MAX_ATTEMPTS, which includes the first attempt",
    "MAX_RETRIES": "write APP_RETRY_MAX_ATTEMPTS, which includes the first attempt",
    "TRIES": "write APP_RETRY_MAX_ATTEMPTS, which includes the first attempt",
    "MAX_TIME": "write APP_RETRY_MAX_ELAPSED",
    "BACKOFF_FACTOR": "write APP_RETRY_SCHEDULE=exponential(first, factor=...)",
    "RETRY_BUDGET": "write base=Policy(budget=...)",
}


@pytest.mark.parametrize(("key", "advice"), MEANT.items(), ids=MEANT)
def test_a_setting_of_another_library_is_rejected(key, advice):
    assert error_of(**{key: "s3cret"}) == (
        f"APP_RETRY_{key} is not a policy setting; {advice}"
    )


CODE = ["RULES", "BUDGET", "ADMISSION", "HEDGE", "FALLBACK", "STOP_EVENT", "SLEEP"]


@pytest.mark.parametrize("key", [*CODE, "OBSERVERS"])
def test_a_setting_that_is_written_in_code_is_rejected(key):
    assert error_of(**{key: "s3cret"}) == (
        f"APP_RETRY_{key} is not a setting that a variable can have; "
        f"write base=Policy({key.lower()}=...)"
    )


@pytest.mark.parametrize(
    "key",
    ["RETRY_METHODS", "RATE", "LOG_LEVEL", "TIMEOUT", "TOTAL", "WORKERS", "attempts"],
)
def test_a_variable_that_may_be_for_something_else_is_left_alone(key):
    assert policy_of(**{key: "s3cret"}) == Policy()
