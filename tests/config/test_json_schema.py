"""The JSON Schema of policies accepts what the loader accepts."""

import copy
import inspect
import json
import math
import re

import pytest
from hypothesis import example, given, strategies as st
from jsonschema import Draft202012Validator

from retrykit import ConfigError, Policy
from retrykit._core.settings import SETTINGS
from retrykit._internal.durations import DURATION_PATTERN, parse_duration
from retrykit.budgets._serialization import KINDS
from retrykit.config._files import policy_names
from retrykit.config.json_schema import policy_schema
from retrykit.limits._serialization import KINDS as LIMIT_KINDS
from retrykit.schedules._base import iter_parts
from retrykit.schedules._kinds import SCHEDULE_KINDS
from retrykit.schedules._randomness import MAX_DELAY
from retrykit.testing.strategies import policies
from tests._support.policies_as_data import INVALID, LOADER_ONLY, VALID

SCHEMA = policy_schema()
FILE = Draft202012Validator(SCHEMA)
ALONE = Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": "#/$defs/policy"})


def loads(data):
    try:
        return Policy.from_dict(data)
    except ConfigError:
        return None


def test_the_schema_is_valid():
    Draft202012Validator.check_schema(SCHEMA)


def test_every_setting_has_a_description():
    settings = SCHEMA["$defs"]["policy"]["properties"]
    budgets = [SCHEMA["$defs"][kind]["properties"] for kind in KINDS]
    parts = [part for each in budgets for name, part in each.items() if name != "kind"]
    for setting in [*settings.values(), *SCHEMA["$defs"].values(), *parts]:
        assert setting.get("description") or setting["$ref"] in SHARED


SHARED = {"#/$defs/scope"}


def test_the_schema_has_every_setting_that_is_data():
    settings = SCHEMA["$defs"]["policy"]["properties"]
    code = {"fallback", "stop_event", "sleep", "observers"}
    names = [*SETTINGS]
    assert list(settings) == [name for name in names if name not in code]
    named = SCHEMA["$defs"]["named_policy"]["properties"]
    assert set(named) == {"extends", *settings}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_has_every_setting_of_a_budget(kind):
    properties = SCHEMA["$defs"][kind]["properties"]
    defaults = KINDS[kind]().to_dict()
    assert set(properties) == {*defaults, "scope"}
    given = {x: each["default"] for x, each in properties.items() if "default" in each}
    assert given | {"kind": kind} == defaults


def test_the_defaults_of_the_schema_are_those_of_a_policy():
    settings = SCHEMA["$defs"]["policy"]["properties"]
    defaults = {
        name: setting["default"]
        for name, setting in settings.items()
        if "default" in setting
    }
    # No name in a file stands for the errors that are retried by default.
    assert settings.keys() - defaults.keys() == {"on"}
    policy = Policy.from_dict(defaults)
    assert all(getattr(policy, x) == getattr(Policy(), x) for x in settings)
    assert ALONE.is_valid(defaults)


@pytest.mark.parametrize("data", VALID.values(), ids=VALID)
def test_valid_data_is_accepted_by_both(data):
    assert [error.message for error in ALONE.iter_errors(data)] == []
    assert loads(data)


@pytest.mark.parametrize("data", INVALID.values(), ids=INVALID)
def test_invalid_data_is_rejected_by_both(data):
    assert not ALONE.is_valid(data)
    assert loads(data) is None
    # In a file, another policy may provide the missing keys.
    extending = data == {"extends": "base"}
    assert FILE.is_valid({"policies": {"a": data}}) is extending


@pytest.mark.parametrize(("rule", "data"), LOADER_ONLY.values(), ids=LOADER_ONLY)
def test_the_loader_checks_rules_that_no_schema_can_state(rule, data):
    assert ALONE.is_valid(data)
    # One of them is rejected because of what was loaded before.
    assert loads(VALID["a budget of a host"])
    with pytest.raises(ConfigError, match=rule):
        Policy.from_dict(data)


def test_every_kind_is_in_the_valid_data():
    schedules = [loads(data).schedule for data in VALID.values()]
    kinds = {part.kind for each in schedules for _, part in iter_parts(each)}
    assert kinds == set(SCHEDULE_KINDS)
    budgets = [data["budget"] for data in VALID.values() if data.get("budget")]
    assert {each["kind"] for each in budgets} == set(KINDS)


def test_every_limit_is_in_the_schema():
    assert {*SCHEMA["$defs"]["limit"]["properties"]["kind"]["enum"]} == {*LIMIT_KINDS}
    for kind, make in LIMIT_KINDS.items():
        names = {*inspect.signature(make).parameters} - {"on_result", "observers"}
        known = {*SCHEMA["$defs"][kind]["properties"]} - {"kind", "scope"}
        assert known == names


@given(policies())
def test_every_policy_written_as_data_is_valid(policy):
    data = json.loads(json.dumps(policy.to_dict()))
    assert ALONE.is_valid(data)
    assert FILE.is_valid({"policies": {"a": data, "b": data | {"extends": "a"}}})
    assert loads(data) == policy


FILES = {
    "empty": (True, {"policies": {}}),
    "extending": (True, {"policies": {"a": {}, "b": {"extends": "a"}}}),
    "extending a preset": (True, {"policies": {"a": {"extends": "google"}}}),
    "and its parameters": (
        True,
        {"policies": {"a": {"extends": "zizq:retry_limit=10"}}},
    ),
    "with more in it": (True, {"policies": {}, "title": "ours"}),
    "no policies": (False, {}),
    "a list": (False, {"policies": []}),
    "two bases": (False, {"policies": {"a": {"extends": ["b", "c"]}}}),
    "no dict": (False, []),
}


@pytest.mark.parametrize(("valid", "file"), FILES.values(), ids=FILES)
def test_a_file_contains_policies_by_name(valid, file, tmp_path):
    path = tmp_path / "policies.json"
    path.write_text(json.dumps(file))
    assert FILE.is_valid(file) is valid
    try:
        loaded = [Policy.from_toml(path, name) for name in policy_names(path)]
    except ConfigError:
        assert not valid
    else:
        assert valid
        assert len(loaded) == len(file["policies"])


def bounded():
    """Yield every number of the schema, with a function that makes its data."""
    for name, setting in SCHEMA["$defs"]["policy"]["properties"].items():
        for form in setting.get("anyOf", [setting]):
            # Otherwise the first delay is a bound, too.
            others = {"deadline": "clip"} if name == "max_elapsed" else {}
            yield name, form, lambda value, x=name, y=others: {x: value} | y
    for kind in KINDS:
        for part, form in SCHEMA["$defs"][kind]["properties"].items():

            def pay(value, part=part, kind=kind):
                return {"budget": {"kind": kind, part: value}}

            yield f"{kind}.{part}", form, pay


NUMBERS = {
    name: (form, write)
    for name, form, write in bounded()
    if form.get("type") in ["integer", "number"]
    or form.get("$ref") == "#/$defs/duration"
}


@pytest.mark.parametrize("name", NUMBERS)
def test_schema_and_loader_have_the_same_bounds(name):
    form, write = NUMBERS[name]
    bounds = {0, 1, 2} | {form[key] for key in form if key.lower().endswith("imum")}
    near = {
        bound + step for bound in bounds for step in (-1, 0, 1) if bound < MAX_DELAY
    }
    if form.get("type") == "integer":
        near |= {0.5, 1.5, 10**309}
    else:
        near |= {math.nextafter(x, y) for x in bounds for y in (-math.inf, math.inf)}
        near |= {MAX_DELAY, int(MAX_DELAY), int(MAX_DELAY) + 1, math.inf, -0.0, 10**309}
    accepted = {x for x in near if ALONE.is_valid(write(x))}
    assert accepted == {x for x in near if loads(write(x))}
    assert accepted
    assert accepted != near


@pytest.mark.parametrize("whole", [name for name in NUMBERS if "." not in name])
def test_a_boolean_is_not_a_number(whole):
    _, write = NUMBERS[whole]
    assert not ALONE.is_valid(write(True))
    assert loads(write(True)) is None


DURATION = Draft202012Validator(SCHEMA["$defs"]["duration"])
written = st.text("0123456789.usmhdw \n\v\x1c\xa0٣+-", max_size=12)


@pytest.mark.thorough
@given(written | st.from_regex(DURATION_PATTERN) | st.text())
@example("9" * 15 + "w" + "9" * 15 + "w")
@example("1" * 16 + "s")
@example("1s" + " " * 10_000 + "x")
def test_both_accept_the_same_strings_as_durations(text):
    try:
        accepted = math.isfinite(parse_duration("wait", text))
    except ConfigError:
        accepted = False
    assert DURATION.is_valid(text) is accepted


def paths(data, path=()):
    """Yield the path of every value in data."""
    yield path
    items = data.items() if isinstance(data, dict) else ()
    items = enumerate(data) if isinstance(data, list) else items
    for key, part in items:
        yield from paths(part, (*path, key))


JUNK = [None, True, False, 0, 1, -1, 2.0, 0.5, -0.5, 1e300, 10**309, math.inf, math.nan]
JUNK += ["", " ", "5s", "5", "unlimited", "stop", "OSError", "a:b", "constant", [], {}]
JUNK += [[1], ["1s"], [[]], [None], {"kind": "throttle"}, {"a": 1}]


@st.composite
def changed_policy(draw):
    """Draw the data of a policy with one value changed."""
    data = {"data": copy.deepcopy(draw(policies()).to_dict())}
    # Only the loader parses strings.
    for each in [data["data"], *data["data"]["rules"]]:
        if "schedule" in each:
            each["schedule"] = draw(
                st.lists(st.sampled_from([0, 1.5, "5s"]), max_size=3)
            )
    *path, last = draw(st.sampled_from([*paths(data)][1:]))
    holder = data
    for key in path:
        holder = holder[key]
    change = draw(st.sampled_from(["put", "drop", "add"]))
    if change == "put" or not path:
        holder[last] = draw(st.sampled_from(JUNK) | st.integers() | st.text())
    elif change == "drop":
        del holder[last]
    elif isinstance(holder[last], dict):
        name = st.sampled_from(["kind", "seed", "extends"]) | st.text()
        holder[last][draw(name)] = draw(st.sampled_from(JUNK))
    return data["data"]


def has_a_string_for_a_schedule(data):
    rules = data.get("rules") if isinstance(data, dict) else None
    holders = [data, *(rules if isinstance(rules, list) else [])]
    return any(
        isinstance(each, dict) and isinstance(each.get("schedule"), str)
        for each in holders
    )


def test_a_policy_that_extends_another_may_have_its_limits(tmp_path):
    base = {"max_attempts": 9, "max_elapsed": 60, "rules": RULES}
    own = {"limits": "all", "deadline": "clip", "on": [], "extends": "a"}
    file = {"policies": {"a": base, "b": own}}
    assert FILE.is_valid(file)
    path = tmp_path / "policies.json"
    path.write_text(json.dumps(file))
    policy = Policy.from_toml(path, "b")
    assert (policy.limits, policy.max_attempts, policy.on) == ("all", 9, ())


RULES = [{"on": "OSError", "max_attempts": 2}]


@pytest.mark.thorough
@given(changed_policy())
def test_changed_data_is_rejected_by_both_or_by_neither(data):
    if has_a_string_for_a_schedule(data):
        return
    try:
        Policy.from_dict(data)
    except ConfigError as error:
        rules = (rule for rule, _ in LOADER_ONLY.values())
        known = any(re.search(rule, str(error)) for rule in rules)
        assert known or not ALONE.is_valid(data), error
    else:
        assert ALONE.is_valid(data)
