"""Policies as plain data, through JSON and TOML."""

import json
import sys
import threading
import time
import tomllib
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, hints, presets, schedules as s
from retrykit._core.rules import Rule
from retrykit._core.settings import SETTINGS
from retrykit._core.timeouts import AsArgument
from retrykit.budgets import FleetBudget, RatioBudget, Throttle, TokenBucket, shared
from retrykit.budgets._base import Budget
from retrykit.schedules._kinds import SCHEDULE_KINDS
from retrykit.schedules._parsing import parse_schedule
from retrykit.testing.strategies import policies, schedules
from tests._support.schedule_data import kinds_of


class BusyError(Exception):
    class AgainError(Exception):
        pass


POLICIES = {
    "default": Policy(),
    "hostname verification": presets.hostname_verification(),
    "google": presets.google(),
    "zizq": presets.zizq(),
    "unlimited": Policy(max_attempts=None, max_elapsed=None),
    "one type": Policy(on=OSError, give_up_on=ConnectionError),
    "a tuple of one type": Policy(on=(OSError,), give_up_on=(ConnectionError,)),
    "some types": Policy(
        on=(OSError, json.JSONDecodeError), give_up_on=(TimeoutError,)
    ),
    "types of a module": Policy(on=BusyError, give_up_on=BusyError.AgainError),
    "every other setting": Policy(
        deadline="clip",
        max_elapsed=0.0,
        max_failures=2,
        name="fetch",
        raises="retry_error",
        redact=False,
        keep_tracebacks=True,
        schedule=[1],
        seed=0,
    ),
    "rules": Policy(
        on=OSError,
        rules=[
            Rule(on=(TimeoutError,), schedule=s.constant(1).full_jitter()),
            Rule(on=BlockingIOError, max_attempts=2),
            Rule(on=BusyError, schedule=[1], max_attempts=1),
        ],
    ),
    "a rule of a hint": Policy(
        rules=[Rule(on=OSError, hint=hints.retry_after(), max_attempts=2)]
    ),
    "no errors but those of a rule": Policy(
        on=(), rules=[Rule(on=OSError, schedule=[1])]
    ),
    "joined limits": Policy(max_attempts=9, max_elapsed=60, limits="all"),
    "joined default limits": Policy(limits="all"),
    "groups with such an error": Policy(exception_groups="any"),
    "a hint": Policy(hint=hints.retry_after(), hint_cap=5, on_long_hint="clip"),
    "several hints": Policy(
        hint=hints.first_of(
            hints.milliseconds("retry-after-ms"),
            hints.attribute("response.wait", "ms"),
            hints.grpc_pushback(),
        ),
        hint_cap=None,
        on_long_hint="honor",
    ),
    "a shared budget": Policy(
        budget=shared(
            "key:test_policy_data", lambda: TokenBucket(costs=((BusyError, 3),))
        )
    ),
    "an attempt timeout": Policy(attempt_timeout=0.5),
    "a timeout as an argument": Policy(attempt_timeout=AsArgument(5, "stall_timeout")),
    "an outer rule": Policy(nested="raise"),
    "the whole algebra": Policy(
        schedule=(
            s.sequence([9, 0.25]).then(s.fibonacci(2).take(3))
            | s.linear(1).switch(after=2, to=s.decorrelated(1)).equal_jitter()
            | (s.constant(5) + s.polynomial(0.5)).at_least(2).within(100) * 3
            | s.exponential(1).full_jitter().round_down(0.5).jitter(0.25)
            | s.uniform(1, 2) + s.decay(8)
            & s.google_interval(1).cap(30) + s.polly_interval(2)
        )
    ),
}
every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def toml(value):
    if isinstance(value, dict):
        parts = (f"{toml(key)} = {toml(part)}" for key, part in value.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


@every_policy
def test_a_policy_survives_json(policy):
    text = json.dumps(policy.to_dict(), allow_nan=False)
    assert Policy.from_dict(json.loads(text)) == policy


@given(policies())
def test_any_policy_survives_json(policy):
    text = json.dumps(policy.to_dict(), allow_nan=False)
    assert Policy.from_dict(json.loads(text)) == policy


@every_policy
def test_a_policy_survives_toml(policy):
    text = f"policy = {toml(policy.to_dict())}"
    assert Policy.from_dict(tomllib.loads(text)["policy"]) == policy


@every_policy
def test_data_has_only_plain_types(policy):
    waiting = [policy.to_dict()]
    while waiting:
        value = waiting.pop()
        assert type(value) in {dict, list, str, bool, int, float}
        waiting += value.values() if isinstance(value, dict) else ()
        waiting += value if isinstance(value, list) else ()


def test_every_kind_of_schedule_is_tested():
    data = POLICIES["the whole algebra"].to_dict()
    assert kinds_of(parse_schedule(data["schedule"])) == set(SCHEDULE_KINDS)


def test_reads_a_policy_written_by_hand_in_toml():
    text = """
        max_attempts = 4
        max_elapsed = "1h30m"
        on = ["ConnectionError", "json.decoder:JSONDecodeError"]
        give_up_on = "BrokenPipeError"
        schedule = "sequence(['500ms', 2, '1m30s']).cap('1m').jitter(0.5)"
    """
    assert Policy.from_dict(tomllib.loads(text)) == Policy(
        schedule=s.sequence([0.5, 2, 90]).cap(60).jitter(0.5),
        max_attempts=4,
        max_elapsed=5400,
        on=(ConnectionError, json.JSONDecodeError),
        give_up_on=BrokenPipeError,
    )


def test_reads_budget_and_rules_written_by_hand_in_toml():
    text = """
        hint = "milliseconds:retry-after-ms, retry_after"
        hint_cap = "5m"
        on_long_hint = "clip"
        attempt_timeout = {argument = "timeout", seconds = "2s"}
        nested = "retry"
        budget = {kind = "throttle", max_tokens = 100, scope = "host:toml.example"}

        [[rules]]
        on = ["BlockingIOError", "TimeoutError"]
        schedule = "30s, 2m"

        [[rules]]
        on = "ConnectionError"
        max_attempts = 2
        schedule = "linear('1s')"
    """
    assert Policy.from_dict(tomllib.loads(text)) == Policy(
        rules=[
            Rule(on=(BlockingIOError, TimeoutError), schedule=[30, 120]),
            Rule(on=ConnectionError, schedule=s.linear(1), max_attempts=2),
        ],
        hint=hints.first_of(hints.milliseconds("retry-after-ms"), hints.retry_after()),
        hint_cap=300,
        on_long_hint="clip",
        budget=shared("host:toml.example", lambda: Throttle(100)),
        attempt_timeout=AsArgument(2, "timeout"),
        nested="retry",
    )


BUDGETS = [TokenBucket(7, cost=2, reward=3), Throttle(20, 0.5), RatioBudget(0.1)]
BUDGETS += [FleetBudget(0.1, timeouts=OSError), TokenBucket(refunds=False)]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_a_budget_that_is_not_shared_is_read_as_a_new_one(budget):
    budget.withdraw(OSError())
    data = Policy(budget=budget).to_dict()
    again = Policy.from_dict(tomllib.loads(f"policy = {toml(data)}")["policy"])
    assert again.to_dict() == data
    assert again.budget is not budget
    assert again.budget.balance == type(budget)(**budget.settings).balance


TEXTS = {
    "1s, 1m": s.sequence([1, 60]),
    '[1, "1m"]': s.sequence([1, 60]),
    'exponential("500ms").cap("1m").jitter(0.5)': (
        s.exponential(0.5).cap(60).jitter(0.5)
    ),
}


@pytest.mark.parametrize(("text", "schedule"), TEXTS.items(), ids=TEXTS)
def test_reads_a_schedule_written_as_a_string(text, schedule):
    assert Policy.from_dict({"schedule": text}) == Policy(schedule=schedule)


@given(policies(schedules=schedules()))
def test_a_schedule_is_written_as_its_expression(policy):
    written = policy.replace(schedule=policy.schedule)
    assert written.to_dict()["schedule"] == repr(policy.schedule)


def test_none_is_no_limit():
    data = {"max_attempts": None, "max_elapsed": None, "hint_cap": None}
    assert Policy.from_dict(data) == Policy(**data)
    assert Policy.from_dict(data | {"attempt_timeout": None}) == Policy(**data)


def test_missing_settings_have_their_defaults():
    assert Policy.from_dict({}) == Policy()
    assert Policy.from_dict({"max_attempts": 2}) == Policy(max_attempts=2)


def test_no_limit_is_written_as_unlimited():
    limits = {"max_attempts": None, "max_elapsed": None, "hint_cap": None}
    data = Policy(**limits).to_dict()
    assert {data[name] for name in limits} == {"unlimited"}
    read = dict.fromkeys((*limits, "attempt_timeout"), "unlimited")
    assert Policy.from_dict(read) == Policy(**limits)


def test_optional_settings_may_be_none():
    data = {"hint": None, "budget": None, "seed": None, "name": None, "rules": []}
    assert Policy.from_dict(data) == Policy()


NEVER = {"on": "OSError", "max_attempts": 0}


def test_an_invalid_setting_in_data_has_the_message_of_code():
    with pytest.raises(ConfigError, match="max_attempts must be an integer >= 1"):
        Policy.from_dict({"max_attempts": 0})
    with pytest.raises(
        ConfigError, match=r"^rules\[1\]: max_attempts must be an integer"
    ):
        Policy.from_dict({"rules": [{"on": "OSError", "schedule": [1]}, NEVER]})
    with pytest.raises(ConfigError, match="limit must be a duration such as"):
        Policy.from_dict({"schedule": "fibonacci().cap('soon')"})


def test_no_module_is_imported_to_find_a_type():
    assert "this" not in sys.modules
    with pytest.raises(ConfigError, match="import this first"):
        Policy.from_dict({"on": "this:Error"})
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "name", ["print", "json:loads", "sys:path", "OSError.errno", "", ":", "json:"]
)
def test_a_name_of_something_else_is_rejected_as_a_type(name):
    with pytest.raises(ConfigError, match="on must be the name of an exception type"):
        Policy.from_dict({"on": name})


@pytest.mark.parametrize("name", [":OSError", 7, None, ["OSError"], OSError], ids=repr)
def test_an_invalid_type_name_is_rejected(name):
    with pytest.raises(ConfigError, match="on must be the name of an exception type"):
        Policy.from_dict({"on": [name]})


class LazyModule:
    """A module that runs code when an attribute is read."""

    def __init__(self):
        self.accessed = []

    @property
    def error(self):
        self.accessed.append("error")
        return OSError

    def __getattr__(self, name):
        self.accessed.append(name)
        return OSError


@pytest.mark.parametrize("name", ["error", "other"])
def test_no_code_is_run_to_find_a_type(name):
    module = ModuleType("lazy_errors")
    module.lazy = LazyModule()
    sys.modules["lazy_errors"] = module
    try:
        with pytest.raises(ConfigError, match="on must be the name of an exception"):
            Policy.from_dict({"on": f"lazy_errors:lazy.{name}"})
        assert module.lazy.accessed == []
    finally:
        del sys.modules["lazy_errors"]


@pytest.mark.parametrize("name", ["fallback", "stop_event", "sleep", "observers"])
@pytest.mark.parametrize("value", [None, [], print], ids=repr)
def test_code_in_data_is_rejected(name, value):
    with pytest.raises(ConfigError, match=f"{name} must be left out of a policy"):
        Policy.from_dict({name: value})


@pytest.mark.parametrize("name", ["int", "KeyboardInterrupt", "json:JSONDecoder"])
def test_a_type_that_is_never_retried_is_rejected(name):
    with pytest.raises(ConfigError, match="on must be an Exception type"):
        Policy.from_dict({"on": name})


@pytest.mark.parametrize(
    ("name", "code"),
    {
        "on": callable,
        "give_up_on": callable,
        "on_result": callable,
        "observers": {"gave_up": print},
        "fallback": 0,
        "stop_event": threading.Event(),
        "sleep": time.sleep,
        "schedule": lambda: (yield 1),
        "hint": hints.first_of(hints.retry_after(), print),
        "budget": TokenBucket(costs=[(callable, 1)]),
    }.items(),
)
def test_code_cannot_be_written_as_data(name, code):
    policy = Policy(**{name: code})
    with pytest.raises(ConfigError, match=f"({name}|costs) must be"):
        policy.to_dict()


class Endless(Budget):
    balance = 1.0

    def withdraw(self, _error, /):
        return 0.0

    def deposit(self, _cost, /): ...


def test_a_custom_budget_cannot_be_written_as_data():
    with pytest.raises(ConfigError, match=r"budget must be one of retrykit\.budgets"):
        Policy(budget=Endless()).to_dict()


@pytest.mark.parametrize(
    "rule",
    [
        Rule(on=callable, schedule=[1]),
        Rule(on=OSError, schedule=lambda: (yield 1)),
        Rule(on=OSError, on_result=callable, schedule=[1]),
        Rule(on=OSError, hint=hints.first_of(callable)),
    ],
    ids=["on", "schedule", "on_result", "hint"],
)
def test_code_in_a_rule_cannot_be_written_as_data(rule):
    first = Rule(on=KeyError, max_attempts=2)
    rule_1 = r"^rules\[1\]: .* must be .* written as data"
    with pytest.raises(ConfigError, match=rule_1):
        Policy(rules=[first, rule]).to_dict()


@pytest.mark.parametrize("value", [None, (), 0, False, []], ids=repr)
def test_every_fallback_is_rejected_as_data(value):
    with pytest.raises(ConfigError, match=r"fallback must be left out of a policy"):
        Policy(fallback=value).to_dict()


def test_a_local_type_cannot_be_written_as_data():
    class LocalError(Exception):
        pass

    with pytest.raises(ConfigError, match="on must be"):
        Policy(on=LocalError).to_dict()


def nested_data(depth, wrap):
    data = [1]
    for _ in range(depth):
        data = wrap(data)
    return data


@pytest.mark.needs("deep recursion")
@pytest.mark.parametrize(
    "wrap",
    {
        "a list": lambda data: [data],
        "a kind": lambda data: {"kind": "cap", "of": data, "limit": 1},
        "no kind": lambda data: {"kind": data},
    }.values(),
    ids=["a list", "a kind", "no kind"],
)
def test_data_nested_too_deeply_raises_config_error(wrap):
    for name in ("schedule", "max_elapsed", "on", "unknown"):
        with pytest.raises(ConfigError):
            Policy.from_dict({name: nested_data(10**3, wrap)})
    # Deeper than the recursion limit.
    with pytest.raises(ConfigError):
        Policy.from_dict({"schedule": nested_data(10**5, wrap)})


# Python does not print such integers; TOML may contain them, in hexadecimal.
LONG = 10**5000


@pytest.mark.parametrize(
    "data", [LONG, -LONG, [-LONG], {"kind": LONG}, {LONG: 1}], ids=type
)
@pytest.mark.parametrize("name", [*SETTINGS, "unknown"])
def test_a_number_that_cannot_be_printed_raises_config_error(name, data):
    with pytest.raises(ConfigError, match=f"^{name}.* cannot be shown>"):
        Policy.from_dict({name: data})


@pytest.mark.parametrize("name", ["\udcff", "\ud800\udc00"])
def test_a_name_that_files_cannot_store_is_rejected(name):
    with pytest.raises(ConfigError, match="name must be encodable as UTF-8"):
        Policy.from_dict({"name": name})
    data = {"kind": "throttle", "scope": f"host:{name}"}
    with pytest.raises(ConfigError, match="scope must be encodable as UTF-8"):
        Policy.from_dict({"budget": data})


def test_a_name_of_a_million_dots_is_rejected_quickly():
    start = time.process_time()
    with pytest.raises(ConfigError, match="name of an exception type"):
        Policy.from_dict({"on": "." * 10**6})
    assert time.process_time() - start < 2


def data_of_kinds(parts):
    return st.sampled_from(sorted(SCHEDULE_KINDS)).flatmap(
        lambda kind: st.fixed_dictionaries(
            {"kind": st.just(kind)}
            | dict.fromkeys(SCHEDULE_KINDS[kind]._field_names, parts)
        )
    )


numbers = st.integers() | st.floats() | st.sampled_from([10**309, -(10**309)])
texts = st.text() | st.sampled_from(["5s", "OSError", "json:Error", "unlimited"])
leaves = st.none() | st.booleans() | numbers | texts
junk = st.recursive(
    leaves,
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.dictionaries(leaves, parts, max_size=3)
        | data_of_kinds(parts | st.just([1]))
    ),
    max_leaves=20,
)
settings = st.sampled_from([*Policy().to_dict(), "seed", "name", "observers"])


@given(junk | st.dictionaries(settings, junk, max_size=3))
def test_any_data_is_a_policy_or_raises_config_error(data):
    try:
        policy = Policy.from_dict(data)
    except ConfigError:
        return
    assert Policy.from_dict(policy.to_dict()) == policy


def test_a_schedule_that_cannot_be_read_again_is_not_written():
    schedule = s.constant(1)
    for _ in range(99):
        schedule = schedule.cap(2)
    deepest = Policy(schedule=schedule)
    assert Policy.from_dict(deepest.to_dict()) == deepest
    rule = Rule(OSError, schedule=schedule.cap(2))
    for deeper in (Policy(schedule=rule.schedule), Policy(rules=[rule])):
        with pytest.raises(ConfigError, match="of at most 100 levels, got 101"):
            deeper.to_dict()
