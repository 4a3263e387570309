"""Policies from environment variables, and flags that override them."""

import json
import os
import subprocess
import sys

import pytest

from retrykit import ConfigError, Policy, hints, presets, schedules as s
from retrykit._core.settings import SETTINGS
from retrykit.config._environment import VARIABLES, policy_from_env

FORMULA = {"BACKOFF_BASE": "500", "BACKOFF_EXPONENT": "2.5", "BACKOFF_JITTER": "12.5s"}


def env(texts, prefix="APP_RETRY"):
    return {f"{prefix}_{key}": text for key, text in texts.items()}


def policy_of(prefix="APP_RETRY", base=None, **texts):
    return Policy.from_env(prefix, base=base, environ=env(texts, prefix))


def error_of(prefix="APP_RETRY", base=None, **texts):
    with pytest.raises(ConfigError) as caught:
        policy_of(prefix, base, **texts)
    return caught.value.message


HINT_IN_MS = hints.milliseconds("retry-after-ms")
EACH = {
    "SCHEDULE": (
        "exponential('500ms').cap('1m')",
        {"schedule": s.exponential(0.5).cap(60)},
    ),
    "SCHEDULE as delays": ("1s, 5s", {"schedule": [1, 5]}),
    "SCHEDULE as a list": ('[1, "5s"]', {"schedule": [1, 5]}),
    "MAX_ATTEMPTS": ("8", {"max_attempts": 8}),
    "MAX_ATTEMPTS without end": ("unlimited", {"max_attempts": None}),
    "MAX_ELAPSED": ("1h30m", {"max_elapsed": 5400}),
    "MAX_ELAPSED without end": ("unlimited", {"max_elapsed": None}),
    "DEADLINE": ("clip", {"deadline": "clip"}),
    "ON": ("OSError", {"on": OSError}),
    "ON of several": (
        "OSError, json.decoder:JSONDecodeError",
        {"on": (OSError, json.JSONDecodeError)},
    ),
    "GIVE_UP_ON": ("OSError,ValueError", {"give_up_on": (OSError, ValueError)}),
    "HINT": ("retry_after", {"hint": hints.retry_after()}),
    "HINT of several": (
        "milliseconds:retry-after-ms, retry_after",
        {"hint": hints.first_of(HINT_IN_MS, hints.retry_after())},
    ),
    "HINT_CAP": ("5m", {"hint_cap": 300}),
    "HINT_CAP without end": ("unlimited", {"hint_cap": None}),
    "ON_LONG_HINT": ("clip", {"on_long_hint": "clip"}),
    "HINT_JITTER": ("0.25", {"hint_jitter": 0.25}),
    "ATTEMPT_TIMEOUT": ("500ms", {"attempt_timeout": 0.5}),
    "ATTEMPT_TIMEOUT without end": ("unlimited", {"attempt_timeout": None}),
    "NESTED": ("retry", {"nested": "retry"}),
    "LIMITS": ("all", {"limits": "all"}),
    "EXCEPTION_GROUPS": ("any", {"exception_groups": "any"}),
    "RAISES": ("group", {"raises": "group"}),
    "REDACT": ("False", {"redact": False}),
    "REDACT again": ("true", {"redact": True}),
    "KEEP_TRACEBACKS": ("true", {"keep_tracebacks": True}),
    "MAX_FAILURES": ("9", {"max_failures": 9}),
    "SEED": ("7", {"seed": 7}),
    "NAME": (" fetch ", {"name": "fetch"}),
}


@pytest.mark.parametrize(("key", "case"), EACH.items(), ids=EACH)
def test_each_setting_has_a_variable(key, case):
    text, settings = case
    policy = policy_of(**{key.split()[0]: text})
    assert policy == Policy(**settings)
    assert type(policy) is Policy


def test_every_setting_that_can_be_a_string_has_a_variable():
    code = {"fallback", "stop_event", "sleep", "observers"}
    known = {name.lower() for name in VARIABLES}
    names = {*SETTINGS}
    assert names - known == code | {"rules", "budget", "admission", "hedge"}


@pytest.mark.parametrize("prefix", ["APP_RETRY", "APP_RETRY_"])
def test_the_prefix_may_end_with_an_underscore(prefix):
    environ = {"APP_RETRY_SEED": "7", "MY_APP_RETRY_SEED": "8"}
    assert Policy.from_env(prefix, environ=environ).seed == 7


def test_without_variables_the_base_is_unchanged():
    assert policy_of() == Policy()
    assert policy_of(base=presets.google()) == presets.google()
    assert policy_of(MAX_ATTEMPTS="", SEED=" ", BACKOFF_BASE="") == Policy()


def test_the_environment_wins_over_its_base():
    base = Policy(max_attempts=9, on=OSError, name="fetch")
    assert policy_of(base=base, MAX_ATTEMPTS="2") == base.replace(max_attempts=2)


def test_a_preset_replaces_the_base():
    policy = policy_of(base=Policy(name="fetch"), EXTENDS="google", SEED="7")
    assert policy == presets.google().replace(seed=7)
    limited = policy_of(EXTENDS="zizq:retry_limit=10,jitter=5s")
    assert limited == presets.zizq(retry_limit=10, jitter=5)


def test_zizq_variables_have_the_defaults_of_zizq():
    assert policy_of("ZIZQ_DEFAULT") == presets.zizq()
    assert policy_of("ZIZQ_DEFAULT_") == presets.zizq()


@pytest.mark.parametrize("prefix", ["ZIZQ_DEFAULT", "APP_RETRY"])
def test_zizq_variables_mean_what_zizq_documents(prefix):
    assert policy_of(prefix, RETRY_LIMIT="3") == presets.zizq(retry_limit=3)
    assert policy_of(prefix, RETRY_LIMIT="0") == presets.zizq(retry_limit=0)
    assert policy_of(prefix, RETRY_LIMIT="200") == presets.zizq(retry_limit=200)
    formula = presets.zizq(base=0.5, exponent=2.5, jitter=12.5)
    assert policy_of(prefix, **FORMULA) == formula
    both = presets.zizq(retry_limit=3, base=0.5, exponent=2.5, jitter=12.5)
    assert policy_of(prefix, **FORMULA, RETRY_LIMIT="3") == both


BASES = {"15000": 15, "0": 0, "0.5": 0.0005, "12.5s": 12.5, "1m30s": 90, "250ms": 0.25}


@pytest.mark.parametrize(("text", "seconds"), BASES.items(), ids=BASES)
def test_a_bare_number_of_zizq_is_milliseconds(text, seconds):
    formula = FORMULA | {"BACKOFF_BASE": text, "BACKOFF_JITTER": text}
    expected = presets.zizq(base=seconds, exponent=2.5, jitter=seconds)
    assert policy_of(**formula) == expected


def test_zizq_on_a_base_changes_its_limit_and_its_formula_alone():
    base = Policy(on=OSError, max_elapsed="1h", max_failures=10)
    limited = policy_of(base=base, RETRY_LIMIT="25")
    assert limited == base.replace(max_attempts=26, max_failures=26)
    assert policy_of(base=base, RETRY_LIMIT="3").max_failures == 10
    with_max_failures = policy_of(base=base, RETRY_LIMIT="25", MAX_FAILURES="5")
    assert with_max_failures.max_failures == 5
    formula = presets.zizq(base=0.5, exponent=2.5, jitter=12.5).schedule
    assert policy_of(base=base, **FORMULA) == base.replace(schedule=formula)


PARTS = [
    (["BASE"], ["EXPONENT", "JITTER"]),
    (["EXPONENT"], ["BASE", "JITTER"]),
    (["JITTER"], ["BASE", "EXPONENT"]),
    (["BASE", "EXPONENT"], ["JITTER"]),
    (["BASE", "JITTER"], ["EXPONENT"]),
    (["EXPONENT", "JITTER"], ["BASE"]),
]


@pytest.mark.parametrize(("given", "missing"), PARTS, ids=str)
@pytest.mark.parametrize("base", [None, presets.zizq()], ids=["alone", "on a base"])
def test_an_incomplete_formula_is_rejected_with_what_is_missing(given, missing, base):
    texts = {f"BACKOFF_{part}": FORMULA[f"BACKOFF_{part}"] for part in given}
    empty = {f"BACKOFF_{part}": "" for part in missing}
    named = " and ".join(f"ZIZQ_DEFAULT_BACKOFF_{part}" for part in missing)
    first = f"BACKOFF_{given[0]}"
    assert error_of("ZIZQ_DEFAULT", base, **texts, **empty) == (
        f"ZIZQ_DEFAULT_{first} must be given together with {named}, got "
        f"{FORMULA[first]!r}; they are one formula"
    )


FLAGS = {
    f"ZIZQ_DEFAULT_{key}": f"--default-{key.lower().replace('_', '-')}"
    for key in ("RETRY_LIMIT", *FORMULA)
}


def overlay(flags, texts):
    """Read variables and flags like a command line: flags win, errors name them."""
    variables = {flag: name for name, flag in FLAGS.items()}
    given = {variables[flag]: text for flag, text in flags.items()}
    environ = env(texts, "ZIZQ_DEFAULT")
    shown = given.keys() | FLAGS.keys() - environ.keys() if given else ()
    display_names = {name: FLAGS[name] for name in shown}
    return policy_from_env("ZIZQ_DEFAULT", environ | given, display_names=display_names)


def test_flags_win_over_the_environment():
    settings = overlay({"--default-retry-limit": "3"}, {"RETRY_LIMIT": "9"})
    assert settings.max_attempts == 4


def test_flags_and_environment_make_one_formula():
    flags = {"--default-backoff-jitter": "1s"}
    texts = {"BACKOFF_BASE": "500", "BACKOFF_EXPONENT": "2"}
    expected = presets.zizq(base=0.5, exponent=2, jitter=1)
    assert overlay(flags, texts).schedule == expected.schedule


def test_an_error_names_the_flag():
    with pytest.raises(ConfigError, match=r"^--default-retry-limit must be an integer"):
        overlay({"--default-retry-limit": "many"}, {"RETRY_LIMIT": "9"})
    with pytest.raises(
        ConfigError, match=r"^ZIZQ_DEFAULT_RETRY_LIMIT must be an integer"
    ):
        overlay({}, {"RETRY_LIMIT": "many"})
    with pytest.raises(ConfigError) as caught:
        overlay({"--default-backoff-jitter": "1s"}, {"BACKOFF_BASE": "500"})
    assert caught.value.message == (
        "ZIZQ_DEFAULT_BACKOFF_BASE must be given together with "
        "--default-backoff-exponent, got '500'; they are one formula"
    )


@pytest.mark.parametrize("prefix", ["", "_"], ids=repr)
def test_an_empty_prefix_is_rejected(prefix):
    with pytest.raises(ConfigError, match=r"^prefix must be a name such as APP_RETRY"):
        Policy.from_env(prefix, environ={})


def test_variables_that_are_not_strings_are_rejected():
    with pytest.raises(ConfigError, match=r"^prefix must be a str, got 5"):
        Policy.from_env(5, environ={})
    with pytest.raises(ConfigError, match=r"^APP_SEED must be a str, got 5"):
        Policy.from_env("APP", environ={"APP_SEED": 5})
    with pytest.raises(ConfigError, match=r"^base must be a Policy, got 5"):
        Policy.from_env("APP", base=5, environ={})


@pytest.mark.needs("processes")
def test_the_environment_is_read_at_the_call():
    script = (
        "import os; from retrykit import Policy; os.environ['APP_SEED'] = '7'; "
        "print(Policy.from_env('APP'), Policy.from_env('APP', environ={}))"
    )
    environ = os.environ | {"APP_SEED": "x", "APP_NAME": "fetch"}
    process = subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        text=True,
        env=environ,
    )
    assert process.stdout == "Policy(seed=7, name='fetch') Policy()\n"


SERVICE = Policy(max_attempts=5, schedule=s.exponential(1).cap(60), on=OSError)
CHANGED = {
    "a short time": ({"MAX_ELAPSED": "2s"}, (5, 2.0)),
    "many attempts": ({"MAX_ATTEMPTS": "900", "MAX_ELAPSED": "1m"}, (900, 60.0)),
    "a schedule that ends before": ({"SCHEDULE": "1s, 2s"}, (5, None)),
    "a time for fewer attempts of a preset": (
        {"EXTENDS": "zizq", "MAX_ELAPSED": "1m"},
        (presets.zizq().max_attempts, 60.0),
    ),
    "a retry limit that time ends": (
        {"RETRY_LIMIT": "99", "MAX_ELAPSED": "1m"},
        (100, 60.0),
    ),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_variable_may_set_a_limit_that_another_one_makes_useless(change, caplog):
    texts, limits = CHANGED[change]
    policy = policy_of(base=SERVICE, **texts)
    assert (policy.max_attempts, policy.max_elapsed) == limits
    assert caplog.records == []


LEAVES_NO_RETRY = {
    "MAX_ELAPSED": ("10ms", "max_elapsed must be at least 1s, the first delay"),
    "SCHEDULE": ("[]", "schedule must be at least one delay"),
}


@pytest.mark.parametrize("key", LEAVES_NO_RETRY)
def test_a_variable_that_leaves_no_retry_is_warned_of_and_taken(key, caplog):
    text, reason = LEAVES_NO_RETRY[key]
    policy = policy_of(base=SERVICE, **{key: text})
    assert policy != SERVICE
    [record] = caplog.records
    assert record.getMessage().startswith(
        f"the variables APP_RETRY_... leave no retry: {reason}"
    )
    # The next variable is no reason to warn again, and one attempt may be wanted.
    policy_of(base=policy, NAME="fetch")
    policy_of(base=SERVICE, MAX_ATTEMPTS="1", MAX_ELAPSED="0s")
    assert caplog.records == [record]


def test_unlimited_time_needs_no_rule_for_its_end():
    base = Policy(max_attempts=9, max_elapsed=60, deadline="clip")
    policy = policy_of(base=base, MAX_ELAPSED="unlimited")
    assert (policy.max_elapsed, policy.deadline) == (None, "stop")
    policy = policy_of(EXTENDS="google", MAX_ELAPSED="unlimited")
    assert (policy.max_elapsed, policy.deadline) == (None, "stop")
    assert "deadline must be 'stop'" in error_of(
        base=base, MAX_ELAPSED="unlimited", DEADLINE="clip"
    ).replace("APP_RETRY_DEADLINE", "deadline")
