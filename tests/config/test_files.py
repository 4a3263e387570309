"""Policies in files: reading, `extends` and errors."""

import json
import sys
import tempfile
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given

from retrykit import ConfigError, Policy, presets, schedules as s
from retrykit.config._files import policy_names
from retrykit.config._preset_names import BUILT_IN
from retrykit.schedules._kinds import CONSTRUCTORS
from retrykit.testing.strategies import policies


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file, and returns its path."""

    def write(text, name="policies.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def error_of(path, name="fetch"):
    with pytest.raises(ConfigError) as caught:
        Policy.from_toml(path, name)
    return caught.value.message.replace(f"{path}", path.name)


FETCH = Policy(schedule=[1, 5], max_attempts=3, on=OSError)
SETTINGS = 'schedule = "1s, 5s"\nmax_attempts = 3\non = "OSError"\n'
PLACES = {
    "pyproject.toml": f"[project]\nname = 'shop'\n[tool.retrykit.policies.fetch]\n"
    f"{SETTINGS}",
    "policies.toml": f"[policies.fetch]\n{SETTINGS}",
    "policies.json": '{"policies": {"fetch": {"schedule": [1, "5s"], '
    '"max_attempts": 3, "on": "OSError"}}}',
    "nested.json": '{"tool": {"retrykit": {"policies": {"fetch": {"schedule": [1, 5], '
    '"max_attempts": 3, "on": "OSError"}}}}}',
    "both.toml": f"[policies.fetch]\nmax_attempts = 9\n[tool.retrykit.policies.fetch]\n"
    f"{SETTINGS}",
    "other_tool.toml": f"[tool.other]\nx = 1\n[policies.fetch]\n{SETTINGS}",
    "tool_is_no_table.toml": f"tool = 5\n[policies.fetch]\n{SETTINGS}",
    "lines.toml": f"[policies.fetch]\n{SETTINGS}".replace("\n", "\r\n"),
    "mark.toml": f"\N{ZERO WIDTH NO-BREAK SPACE}[policies.fetch]\n{SETTINGS}",
    "mark.json": '\N{ZERO WIDTH NO-BREAK SPACE}{"policies": {"fetch": {"schedule": '
    '[1, 5], "max_attempts": 3, "on": "OSError"}}}',
    "no_suffix": f"[policies.fetch]\n{SETTINGS}",
}


@pytest.mark.parametrize(("file", "text"), PLACES.items(), ids=PLACES)
def test_a_policy_is_read_from_a_file(write, file, text):
    path = write(text, file)
    assert Policy.from_toml(path, "fetch") == FETCH
    assert Policy.from_toml(str(path), "fetch") == FETCH
    assert policy_names(path) == ["fetch"]


@given(policies())
def test_any_policy_survives_toml_and_json(policy):
    data = {"policies": {"a policy": policy.to_dict()}}
    with tempfile.TemporaryDirectory() as folder:
        toml, plain = Path(folder, "some.toml"), Path(folder, "some.json")
        toml.write_text(tomli_w.dumps(data), "utf-8")
        plain.write_text(json.dumps(data), "utf-8")
        assert Policy.from_toml(toml, "a policy") == policy
        assert Policy.from_toml(plain, "a policy") == policy


NAMES = ["fetch", "a.b", "", "5", "größe", "two words", "tool", "extends", "__class__"]


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_may_have_any_name(write, name):
    data = {"policies": {name: {"max_attempts": 3}, "other": {}}}
    path = write(tomli_w.dumps(data))
    assert Policy.from_toml(path, name) == Policy(max_attempts=3)
    assert policy_names(path) == [name, "other"]


def test_a_policy_is_not_named_after_its_key(write):
    path = write("[policies.fetch]\n[policies.pay]\nname = 'payment'")
    assert Policy.from_toml(path, "fetch").name is None
    assert Policy.from_toml(path, "pay").name == "payment"


def test_a_policy_extends_another_of_the_same_file(write):
    path = write("""
        [policies.fetch]
        extends = "polite"
        max_attempts = 3
        [policies.polite]
        extends = "patient"
        schedule = "sequence([1, 90]).cap('1m')"
        [policies.patient]
        max_elapsed = "1h"
        name = "patient"
    """)
    assert Policy.from_toml(path, "fetch") == Policy(
        schedule=s.sequence([1, 90]).cap(60),
        max_attempts=3,
        max_elapsed=3600,
        name="patient",
    )


def test_a_key_overrides_the_whole_key_of_its_base(write):
    path = write("""
        [policies.base]
        on = ["OSError", "ValueError"]
        schedule = "exponential('1s', factor=3)"
        [policies.fetch]
        extends = "base"
        on = "OSError"
        schedule = "exponential('2s')"
    """)
    expected = Policy(on=OSError, schedule=s.exponential(2))
    assert Policy.from_toml(path, "fetch") == expected


PRESETS = {
    "zizq": presets.zizq(),
    "zizq:retry_limit=10,jitter=5s": presets.zizq(retry_limit=10, jitter=5),
    "hostname_verification": presets.hostname_verification(),
}


@pytest.mark.parametrize(("text", "policy"), PRESETS.items(), ids=PRESETS)
def test_a_policy_extends_a_preset(write, text, policy):
    path = write(f"[policies.fetch]\nextends = {text!r}\nname = 'fetch'")
    assert Policy.from_toml(path, "fetch") == policy.replace(name="fetch")


def test_a_policy_of_the_file_hides_a_preset(write):
    path = write("[policies.zizq]\n[policies.fetch]\nextends = 'zizq'")
    assert Policy.from_toml(path, "fetch") == Policy()


def test_ten_thousand_policies_extend_one_another(write):
    chain = {f"p{n}": {"extends": f"p{n + 1}"} for n in range(10_000)}
    last = {"p10000": {"max_attempts": 3}}
    path = write(json.dumps({"policies": chain | last}), "chain.json")
    assert Policy.from_toml(path, "p0") == Policy(max_attempts=3)


ATTEMPTS = "max_attempts must be an integer >= 1, got 0; the first attempt counts; "
WRONG = {
    "a wrong setting": (
        "[policies.fetch]\nmax_attempts = 0",
        f"policies.toml, policy 'fetch': {ATTEMPTS}'unlimited' is no limit",
    ),
    "a wrong setting of what is extended": (
        "[policies.fetch]\nextends = 'slow'\n[policies.slow]\nmax_attempts = 0",
        f"policies.toml, policy 'slow': {ATTEMPTS}'unlimited' is no limit",
    ),
    "an unknown setting": (
        "[policies.fetch]\nmax_attemps = 3",
        (
            "policies.toml, policy 'fetch': max_attemps is not a policy setting, "
            "got 3; did you mean max_attempts?"
        ),
    ),
    "a setting of another library": (
        "[policies.fetch]\nretries = 3",
        (
            "policies.toml, policy 'fetch': retries is not a policy setting, got 3; "
            "write max_attempts, which includes the first attempt"
        ),
    ),
    "an expression that runs code": (
        "[policies.fetch]\nschedule = \"__import__('this')\"",
        (
            "policies.toml, policy 'fetch': schedule must be made of constructors, "
            "methods and operators of schedules, got '__import__'; the constructors "
            f"are {', '.join(CONSTRUCTORS)}"
        ),
    ),
    "a type that would have to be imported": (
        "[policies.fetch]\non = 'this:Error'",
        (
            "policies.toml, policy 'fetch': on must be the name of an exception type, "
            "such as OSError or module:Name, got 'this:Error'; import this first"
        ),
    ),
    "a date for a duration": (
        "[policies.fetch]\nmax_elapsed = 00:01:00",
        (
            "policies.toml, policy 'fetch': max_elapsed must be a finite number >= 0, "
            "got datetime.time(0, 1); give seconds as a number, a timedelta, or text "
            'such as "1h30m"'
        ),
    ),
    "a base that does not exist": (
        "[policies.base]\n[policies.fetch]\nextends = 'bsae'",
        (
            "policies.toml, policy 'fetch': extends must be a policy in the same "
            "file, or a preset, got 'bsae'; did you mean base?"
        ),
    ),
    "a base like nothing there is": (
        "[policies.fetch]\nextends = 'color'",
        (
            "policies.toml, policy 'fetch': extends must be a policy in the same "
            "file, or a preset, got 'color'; the names are fetch, "
            f"{', '.join(BUILT_IN)}"
        ),
    ),
    "a preset that is mistyped": (
        "[policies.fetch]\nextends = 'zizk'",
        (
            "policies.toml, policy 'fetch': extends must be a policy in the same "
            "file, or a preset, got 'zizk'; did you mean zizq?"
        ),
    ),
    "a parameter that is mistyped": (
        "[policies.fetch]\nextends = 'zizq:retry_limt=3'",
        (
            "policies.toml, policy 'fetch': retry_limt is not a parameter of zizq, got "
            "'3'; did you mean retry_limit?"
        ),
    ),
    "a base that is no text": (
        "[policies.fetch]\nextends = ['base']",
        "policies.toml, policy 'fetch': extends must be a str, got ['base']",
    ),
    "a circle": (
        "policies = {fetch.extends = 'a', a.extends = 'b', b.extends = 'a'}",
        (
            "policies.toml, policy 'b': extends must be a policy that does not extend "
            "this one, got 'a'; fetch -> a -> b -> a"
        ),
    ),
    "a policy that extends itself": (
        "[policies.fetch]\nextends = 'fetch'",
        (
            "policies.toml, policy 'fetch': extends must be a policy that does not "
            "extend this one, got 'fetch'; fetch -> fetch"
        ),
    ),
    "a policy that is no table": (
        "policies.fetch = 5",
        "policies.toml, policy 'fetch': policy must be a table of settings, got 5",
    ),
    "a policy that is an array of tables": (
        "[[policies.fetch]]\nmax_attempts = 3",
        (
            "policies.toml, policy 'fetch': policy must be a table of settings, got "
            "[{'max_attempts': 3}]"
        ),
    ),
    "a policy that is not there": (
        "[policies.ftech]\n[policies.pay]",
        (
            "name must be the name of a policy in policies.toml, got 'fetch'; did you "
            "mean ftech?"
        ),
    ),
    "no policy at all": (
        "[policies]",
        (
            "name must be the name of a policy in policies.toml, got 'fetch'; the "
            "file has none"
        ),
    ),
    "no table of policies": (
        "[limits.fetch]\nmax_attempts = 3\n[tool.poetry.plugins]\n[tool.pytest]",
        (
            "policies.toml must be a file with a table [policies.NAME] for each "
            "policy, got ['limits', 'tool']; in pyproject.toml, under [tool.retrykit]"
        ),
    ),
    "a table that is mistyped": (
        "[title]\n[polices.fetch]\nmax_attempts = 3",
        (
            "policies.toml must be a file with a table [policies.NAME] for each "
            "policy, got 'polices'; did you mean policies?"
        ),
    ),
    "a table of its own that is mistyped": (
        "[tool.retrykit.polices.fetch]\nmax_attempts = 3",
        (
            "policies.toml must be a file with a table [tool.retrykit.policies.NAME] "
            "for each policy, got 'tool.retrykit.polices'; did you mean "
            "tool.retrykit.policies?"
        ),
    ),
    "a tool that is mistyped": (
        "[tool.ruff]\n[tool.retrykt.policies.fetch]\nmax_attempts = 3",
        (
            "policies.toml must be a file with a table [policies.NAME] for each "
            "policy, got 'tool.retrykt'; did you mean tool.retrykit?"
        ),
    ),
    "no table of policies of its own": (
        "[tool.retrykit.limits.fetch]\n[policies.fetch]",
        (
            "policies.toml must be a file with a table [tool.retrykit.policies.NAME] "
            "for each policy, got ['limits']"
        ),
    ),
    "an array of policies": (
        "[[policies]]\nname = 'fetch'",
        (
            "policies.toml must be a file with a table [policies.NAME] for each "
            "policy, got [{'name': 'fetch'}]; in pyproject.toml, under [tool.retrykit]"
        ),
    ),
    "a tool that is no table": (
        "tool.retrykit = 5",
        (
            "policies.toml must be a file with a table [tool.retrykit.policies.NAME] "
            "for each policy, got 5"
        ),
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_an_error_is_shown_with_its_file_and_key(write, text, message):
    assert "this" not in sys.modules
    assert error_of(write(text)) == message
    assert "this" not in sys.modules


@pytest.mark.parametrize("name", [5, None, ["fetch"]], ids=repr)
def test_a_policy_name_must_be_a_string(write, name):
    path = write("[policies.fetch]")
    with pytest.raises(ConfigError, match=r"^name must be a str, got "):
        Policy.from_toml(path, name)
