"""The public API: names, docstrings and lazy imports."""

import ast
import importlib
import inspect
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import get_origin, get_type_hints

import pytest

import retrykit
import retrykit.testing
from retrykit import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._core.settings import SETTINGS
from tests._support import required

PACKAGE = Path(retrykit.__file__).parent
MODULES = sorted(
    ".".join(
        ("retrykit", *path.relative_to(PACKAGE).with_suffix("").parts)
    ).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if not required.missing(path)
)


def test_the_package_exports_these_names_and_no_others():
    assert retrykit.__all__ == [
        "STOP",
        "Again",
        "AsArgument",
        "AttemptTimeout",
        "Backoff",
        "CircuitOpenError",
        "ConfigError",
        "Decision",
        "Failure",
        "GiveUp",
        "Hedge",
        "Layer",
        "Layers",
        "NestedRetryError",
        "Outcome",
        "Policy",
        "RefusedError",
        "RetryAfter",
        "RetryError",
        "RetryState",
        "RetrykitError",
        "Rule",
        "Stop",
        "StopReason",
        "WithError",
        "WithValue",
        "aretry",
        "aretrying",
        "budgets",
        "chain",
        "current_state",
        "hints",
        "last_result",
        "layers",
        "limits",
        "observe",
        "policy_of",
        "presets",
        "resume",
        "retry",
        "retrying",
        "schedules",
        "state_of",
        "streams",
        "with_policy",
    ]


def test_every_module_has_a_docstring_and_all():
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__, f"{name} needs a docstring"
        assert sorted(set(module.__all__)) == sorted(module.__all__), name
        absent = [each for each in module.__all__ if not hasattr(module, each)]
        assert absent == [], name


@pytest.mark.thorough
def test_every_public_name_has_a_docstring():
    for name in MODULES:
        module = importlib.import_module(name)
        written = docstrings(Path(module.__file__))
        own = set(module.__all__) & written.keys()
        assert {each for each in own if not written[each]} == set(), name


def test_every_exported_name_has_a_docstring():
    written = {}
    for module in MODULES:
        written |= docstrings(Path(importlib.import_module(module).__file__))
    for name in retrykit.__all__:
        value = getattr(retrykit, name)
        # A union of types has only the docstring that is written below it.
        assert value.__doc__ or get_origin(value), name
        assert inspect.ismodule(value) or written[name], name


@pytest.mark.parametrize(
    "name",
    [name for name in retrykit.__all__ if inspect.isclass(getattr(retrykit, name))],
)
def test_every_public_method_has_a_docstring(name):
    kind = getattr(retrykit, name)
    own = {
        each: value
        for base in kind.__mro__
        if base.__module__.startswith("retrykit")
        for each, value in vars(base).items()
        if not each.startswith("_")
    }
    methods = {each for each, value in own.items() if is_method(value)}
    assert {each for each in methods if not inspect.getdoc(own[each])} == set()


def is_method(value):
    kinds = (property, classmethod, staticmethod)
    return inspect.isfunction(value) or isinstance(value, kinds)


@cache
def docstrings(path):
    """Return the docstring of each name that a module defines, or None."""
    found = {}
    body = ast.parse(path.read_text("utf-8")).body
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = ast.get_docstring(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            text = after.value if isinstance(after, ast.Expr) else None
            docstring = isinstance(text, ast.Constant) and text.value
            found |= {t.id: docstring for t in targets if isinstance(t, ast.Name)}
    return found


def test_the_typed_settings_are_those_of_a_policy():
    assert {*PolicySettings.__annotations__} == {*SETTINGS}
    assert PolicySettings.__required_keys__ == frozenset()


def test_the_docstring_of_policy_explains_every_setting():
    explained = inspect.getdoc(Policy).split("Args:")[1].split("Raises:")[0]
    for name in SETTINGS:
        assert f"\n    {name}: " in explained, name


def test_every_public_function_has_resolvable_annotations():
    for name in retrykit.__all__:
        value = getattr(retrykit, name)
        if inspect.isfunction(value):
            # Not those of its signature, which lists the settings of a policy.
            own, *others = inspect.getargs(inspect.unwrap(value).__code__)
            parameters = {*own, *filter(None, others)}
            assert get_type_hints(value).keys() == parameters | {"return"}, name


def loaded_by(script):
    """Return the modules that a new interpreter has loaded after a script."""
    return subprocess.run(  # noqa: S603  a fixed command
        [sys.executable, "-c", f"{script}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split()


def test_import_star_loads_no_integration_and_no_library():
    loaded = loaded_by("from retrykit import *")
    leaves = {"retrykit.testing", "retrykit._cli", "retrykit.testing.pytest_plugin"}
    assert leaves & set(loaded) == set()
    assert [name for name in loaded if name.startswith("retrykit.integrations")] == []
    assert {"trio", "anyio", "pytest", "hypothesis", "httpx", "redis"} & set(
        loaded
    ) == set()
    assert {"rich", "click", "matplotlib", "tomllib"} & set(loaded) == set()
    assert "retrykit._core.policy" in loaded
    # Proxies need wrapt, and coroutines an event loop.
    assert {"wrapt", "asyncio"} & set(loaded) == set()
    # Only users with stored settings need the config room.
    readers = {"retrykit.config", "retrykit.schedules._parsing"}
    assert readers & set(loaded) == set()
    assert "difflib" not in loaded


DECORATED = """
from retrykit import retry
@retry(on=ConnectionError, max_attempts=4)
def fetch(url): ...
"""
# They take long to import, and calls seldom need them.
SLOW = {"ast", "asyncio", "dataclasses", "datetime", "decimal", "difflib", "dis"}
SLOW |= {"hashlib", "inspect", "json", "logging", "numbers", "pathlib", "pickle"}
SLOW |= {"random", "statistics", "string", "textwrap", "threading", "tokenize"}
SLOW |= {"traceback", "urllib.parse", "uuid", "wrapt"}
UNUSED = {"retrykit.schedules._composition", "retrykit.schedules._randomized"}
UNUSED |= {"retrykit.schedules._sequences", "retrykit.budgets", "retrykit.hints"}
UNUSED |= {"retrykit._core.policy_source", "retrykit._core.records"}
UNUSED |= {"retrykit._core.rules", "retrykit._core.timeouts"}
UNUSED |= {"retrykit._core.outcome", "retrykit._core.setting_types"}


@pytest.mark.parametrize("script", ["from retrykit import retry", DECORATED])
def test_a_decorated_function_loads_only_what_its_calls_need(script):
    # Not what an environment loads at startup, such as coverage.
    startup = {*loaded_by("")}
    loaded = {*loaded_by(script)} - startup
    assert "retrykit._core.sync_driver" in loaded
    assert loaded & (SLOW | UNUSED) == set()


def test_a_failure_that_is_logged_loads_no_parser_of_urls():
    script = """
import time
from retrykit import retry
time.sleep = print
errors = [OSError()]
@retry
def fetch():
    if errors:
        raise errors.pop()
fetch()
"""
    loaded = {*loaded_by(script)} - {*loaded_by("")}
    assert "logging" in loaded
    assert {"datetime", "inspect", "urllib.parse"} & loaded == set()


def test_a_name_is_imported_on_first_access():
    loaded = loaded_by("import retrykit; retrykit.Policy().call(int)")
    assert "retrykit._core.policy" in loaded
    assert "retrykit._core.decorators" not in loaded
    for name in ("presets", "schedules"):
        assert f"retrykit.{name}" in loaded_by(f"import retrykit; retrykit.{name}")


@pytest.mark.parametrize(
    "package",
    [
        retrykit,
        retrykit.budgets,
        retrykit.hints,
        retrykit.limits,
        retrykit.schedules,
        retrykit.testing,
    ],
    ids=lambda package: package.__name__,
)
def test_every_name_is_what_type_checkers_see(package):
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    [guard] = [node for node in tree.body if isinstance(node, ast.If)]
    names = {alias.name for node in guard.body for alias in node.names}
    assert names - {"__version__"} == {*package.__all__}
    for node in guard.body:
        home = importlib.import_module(node.module)
        for alias in node.names:
            assert getattr(package, alias.name) is getattr(home, alias.name)


def test_an_unknown_name_raises_attribute_error():
    assert set(retrykit.__all__) <= set(dir(retrykit))
    with pytest.raises(AttributeError, match="'retrykit' has no attribute 'Retry'"):
        _ = retrykit.Retry
