"""Policies rendered as Python and TOML, and read again."""

import enum
import json
import ssl
import sys
import threading
import time
import tomllib
import xml.parsers.expat
import zipfile
from concurrent import futures
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Hedge, Policy, hints, limits, presets, schedules as s
from retrykit._core.rules import Rule
from retrykit._core.timeouts import AsArgument
from retrykit.budgets import FleetBudget, RatioBudget, Throttle, TokenBucket, shared
from retrykit.config._files import policy_names
from retrykit.config.grpc_service_config import StatusCodes
from retrykit.config.rendering import (
    to_data,
    to_expression,
    to_python,
    to_toml,
)
from retrykit.testing.strategies import policies


class BusyError(Exception):
    class AgainError(Exception):
        """A nested type."""


class StrSubclass(enum.StrEnum):
    RED = "red"


class IntSubclass(enum.IntEnum):
    THREE = 3


def execute(text):
    """Execute Python, and return the policies that it names."""
    names = {}
    exec(text, names)  # noqa: S102  under test
    return {name: each for name, each in names.items() if isinstance(each, Policy)}


POLICIES = {
    "default": Policy(),
    "zizq": presets.zizq(),
    "google": presets.google(),
    "verification": presets.hostname_verification(),
    "a_type": Policy(on=OSError, give_up_on=ConnectionError),
    "types": Policy(on=(OSError, ValueError), give_up_on=(TimeoutError,)),
    "types_of_modules": Policy(on=(zipfile.BadZipFile, ssl.SSLError)),
    "of_a_submodule": Policy(on=xml.parsers.expat.ExpatError),
    "of_a_private_module": Policy(on=futures.CancelledError),
    "nested": Policy(on=BusyError, give_up_on=BusyError.AgainError),
    "every_other": Policy(
        schedule=[1],
        max_attempts=None,
        max_elapsed=0.0,
        deadline="clip",
        raises="group",
        redact=False,
        keep_tracebacks=True,
        max_failures=2,
        seed=2**64 - 1,
    ),
    "rules": Policy(
        on=OSError,
        rules=[
            Rule(on=zipfile.BadZipFile, schedule=s.linear(1).full_jitter()),
            Rule(on=(TimeoutError, ssl.SSLError), max_attempts=2),
            Rule(on=BusyError, hint=hints.attribute("wait")),
            Rule(on=Exception, schedule=[1, 5], max_attempts=3),
        ],
    ),
    "of_rules": Policy(on=(), rules=[Rule(on=OSError, max_attempts=2)]),
    "joined": Policy(max_attempts=9, max_elapsed=60, limits="all"),
    "groups": Policy(exception_groups="whole"),
    "a_hint": Policy(hint=hints.retry_after(), hint_cap=None, on_long_hint="clip"),
    "hints": Policy(
        hint=hints.first_of(
            hints.milliseconds("retry-after-ms"),
            hints.attribute("response.wait", "ms"),
            hints.retry_after(),
        ),
        nested="retry",
    ),
    "a_budget": Policy(budget=shared("key:test_source", RatioBudget)),
    "a_fleet": Policy(
        budget=shared(
            "host:test_fleet",
            lambda: FleetBudget(timeouts=(zipfile.BadZipFile, ssl.SSLError)),
        )
    ),
    "a_bucket": Policy(
        budget=shared(
            "host:test_source",
            lambda: TokenBucket(costs=[(zipfile.BadZipFile, 3), (ssl.SSLError, 1)]),
        )
    ),
    "limits": Policy(
        admission=[
            limits.shared("key:a_source", limits.CircuitBreaker),
            limits.shared(
                "key:types",
                lambda: limits.CircuitBreaker(
                    on=(zipfile.BadZipFile, ssl.SSLError),
                    open_for=s.exponential(5).cap(60),
                    failure_rate=0.25,
                ),
            ),
        ],
        on_refused="wait",
    ),
    "a_hedge": Policy(hedge=Hedge("50ms", at_most=3, idempotent=True)),
    "a_quantile": Policy(hedge=Hedge(quantile=0.9, extra=1, idempotent=True)),
    "a_timeout": Policy(attempt_timeout=0.5),
    "a_timeout_that_is_told": Policy(attempt_timeout=AsArgument(5)),
    "named": Policy(name='pay "now" it\'s\n\x7f\x00\\ \U0001f600\u2028'),
    "enums": Policy(
        name=StrSubclass.RED,
        seed=IntSubclass.THREE,
        schedule=s.constant(1).take(IntSubclass.THREE),
    ),
}
every_policy = pytest.mark.parametrize(
    ("name", "policy"), POLICIES.items(), ids=POLICIES
)


@every_policy
def test_the_python_of_a_policy_builds_it(name, policy):
    assert execute(to_python(name, policy)) == {name: policy}


@given(policies())
def test_the_python_of_any_policy_builds_it(policy):
    assert execute(to_python("any", policy)) == {"any": policy}


def test_the_python_of_status_codes_builds_them():
    policy = Policy(on=StatusCodes([14, "aborted"]), give_up_on=zipfile.BadZipFile)
    assert execute(to_python("grpc", policy)) == {"grpc": policy}
    assert "on=StatusCodes(['ABORTED', 'UNAVAILABLE'])" in to_python("grpc", policy)


def test_the_python_of_a_budget_builds_a_new_one():
    text = to_python("fetch", Policy(budget=Throttle(20)))
    assert text.splitlines() == [
        "from retrykit import Policy",
        "from retrykit.budgets import Throttle",
        "",
        "fetch = Policy(budget=Throttle(max_tokens=20))",
    ]
    assert execute(text)["fetch"].budget.settings == Throttle(20).settings


def test_rules_are_inline_tables_in_toml():
    rules = [Rule(on=OSError, schedule=[1, 5]), Rule(on=KeyError, max_attempts=2)]
    assert to_toml("fetch", Policy(rules=rules)).splitlines()[1] == (
        'rules = [{on = "OSError", schedule = "sequence([1.0, 5.0])"}, '
        '{on = "KeyError", max_attempts = 2}]'
    )


def test_to_python_imports_only_the_names_that_it_uses():
    policy = Policy(schedule=s.sequence([1]).then(s.exponential(1)), name="linear(x)")
    assert to_python("fetch", policy).splitlines()[:3] == [
        "from retrykit import Policy",
        "from retrykit.schedules import exponential, sequence",
        "",
    ]
    assert to_python("default", Policy()).splitlines() == [
        "from retrykit import Policy",
        "",
        "default = Policy()",
    ]


@pytest.mark.parametrize("name", ["zizq:base=1s", "class", "None", "a.b", "", "1st"])
def test_a_name_that_is_no_identifier_becomes_policy(name):
    assert execute(to_python(name, Policy())) == {"policy": Policy()}


@pytest.mark.parametrize("name", ["Policy", "constant", "zipfile", "größe"])
def test_a_name_may_shadow_an_import(name):
    policy = Policy(schedule=s.constant(1), on=zipfile.BadZipFile)
    assert execute(to_python(name, policy)) == {name: policy}


@every_policy
@pytest.mark.parametrize("form", [to_toml, None], ids=["toml", "json"])
def test_a_policy_survives_a_file(form, name, policy, tmp_path):
    path = tmp_path / f"policies.{'toml' if form else 'json'}"
    text = (
        form(name, policy)
        if form
        else json.dumps({"policies": {name: to_data(policy)}})
    )
    path.write_text(text, "utf-8")
    assert Policy.from_toml(path, name) == policy


@given(policies(), st.text(st.characters(codec="utf-8")))
def test_any_policy_survives_toml_under_any_name(policy, name):
    tables = tomllib.loads(to_toml(name, policy))["tool"]["retrykit"]["policies"]
    assert list(tables) == [name]
    assert Policy.from_dict(tables[name]) == policy
    assert Policy.from_dict(json.loads(json.dumps(to_data(policy)))) == policy


NAMES = ["a b", "a.b", "ä", 'quo"te', "it's", "", "back\\slash\n", "\x7f", "]"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_quoted_if_toml_requires_it(name, tmp_path):
    path = tmp_path / "policies.toml"
    path.write_text(to_toml(name, Policy(seed=7)), "utf-8")
    assert policy_names(path) == [name]
    assert Policy.from_toml(path, name) == Policy(seed=7)


@every_policy
def test_default_settings_are_left_out(name, policy):
    assert to_data(policy).keys() == policy.non_default_settings().keys()
    _, *lines = to_toml(name, policy).split("\n")
    assert [line.partition(" = ")[0] for line in lines] == [
        *policy.non_default_settings()
    ]


def delays():
    yield 1.0


class UnimportableError(Exception):
    __qualname__ = "Missing"


CODE = {
    "a function": {"on": callable},
    "a lambda": {"on": lambda _: True},
    "a lambda in give_up_on": {"give_up_on": lambda _: True},
    "a predicate of results": {"on_result": callable},
    "observers": {"observers": [print]},
    "observers by event": {"observers": {"gave_up": print}},
    "a fallback": {"fallback": None},
    "an event": {"stop_event": threading.Event()},
    "a way to sleep": {"sleep": time.sleep},
    "a generator function": {"schedule": delays},
    "a generator function in a sum": {"schedule": s.constant(1) + s.sequence(delays)},
    "a predicate in a rule": {"rules": [Rule(on=callable, max_attempts=2)]},
    "a generator function in a rule": {"rules": [Rule(on=OSError, schedule=delays)]},
    "results in a rule": {"rules": [Rule(on_result=callable, schedule=[1])]},
    "a hint": {"hint": callable},
    "a hint in first_of": {"hint": hints.first_of(hints.retry_after(), callable)},
    "a cost": {"budget": TokenBucket(costs=[(callable, 1)])},
    "a type that cannot be imported": {"on": (OSError, UnimportableError)},
}


@pytest.mark.parametrize("settings", CODE.values(), ids=CODE)
def test_code_is_rejected_like_by_to_dict(settings):
    policy = Policy(**settings)
    with pytest.raises(ConfigError) as caught:
        policy.to_dict()
    for write in (lambda: to_python("a", policy), lambda: to_toml("a", policy)):
        with pytest.raises(ConfigError) as again:
            write()
        assert again.value.message == caught.value.message


def test_a_type_that_cannot_be_imported_is_rejected_in_python_only():
    own = type("OwnError", (OSError,), {"__module__": "not-a-name"})
    sys.modules["not-a-name"] = ModuleType("not-a-name")
    sys.modules["not-a-name"].OwnError = own
    try:
        assert to_data(Policy(on=own)) == {"on": "not-a-name:OwnError"}
        with pytest.raises(ConfigError, match="types that Python can import"):
            to_python("mine", Policy(on=own))
    finally:
        del sys.modules["not-a-name"]


def test_conditions_are_written_as_data():
    assert to_toml("grpc", Policy(on=StatusCodes([14]))).endswith(
        'on = ["grpc=UNAVAILABLE"]'
    )


def test_an_expression_lists_each_import_once():
    kinds = (zipfile.BadZipFile, zipfile.LargeZipFile)
    assert to_expression("on", kinds).imports == ("import zipfile",)


def test_each_module_is_imported_once():
    rule = Rule(on=zipfile.BadZipFile, schedule=s.constant(5))
    text = to_python("own", Policy(schedule=[1], rules=[rule]))
    assert text.splitlines()[:4] == [
        "import zipfile",
        "",
        "from retrykit import Policy, Rule",
        "from retrykit.schedules import constant, sequence",
    ]
