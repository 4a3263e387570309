"""POLICYs in Python files, which are imported and forgotten."""

import sys

import pytest

from retrykit import ConfigError, Policy
from retrykit._cli.policies import find_policies

JOBS = """
from retrykit import Policy, retry
from retrykit.schedules import constant
from .settings import SHARED, shared

OWN = Policy(max_attempts=3)
AGAIN = SHARED
DELAYS = constant(1)

@retry(OWN)
def fetch(): ...

@retry(policy=lambda: OWN)
def asked(): ...

@retry(policy=lambda: undefined)
def failing(): ...

class Client:
    LIMITS = Policy(max_attempts=4)

    @retry
    def send(self): ...

class Proxy:
    def __getattr__(self, name): raise OSError(name)

PROXY = Proxy()
"""
SETTINGS = """
from retrykit import Policy, retry
SHARED = Policy(max_attempts=9)

@retry
def shared(): ...
"""


@pytest.fixture
def jobs(tmp_path):
    folder = tmp_path / "shop" / "deep"
    folder.mkdir(parents=True)
    for name in ("shop", "shop/deep"):
        (tmp_path / name / "__init__.py").touch()
    (folder / "settings.py").write_text(SETTINGS)
    (folder / "jobs.py").write_text(JOBS)
    path, modules = [*sys.path], {*sys.modules}
    yield folder / "jobs.py"
    assert sys.path == path
    assert {each for each in {*sys.modules} - modules if "shop" in each} == set()
    assert [*tmp_path.rglob("*.pyc")] == []


def test_a_file_has_what_it_defines(jobs):
    found = find_policies(str(jobs))
    assert {name: each.max_attempts for name, each in found.items()} == {
        "OWN": 3,
        "AGAIN": 9,
        "fetch": 3,
        "asked": 3,
        "Client.LIMITS": 4,
        "Client.send": 5,
    }


def test_a_name_is_any_policy_or_schedule(jobs):
    names = "SHARED", "Client.send", "DELAYS", "shared"
    found = [find_policies(f"{jobs}:{name}")[name] for name in names]
    assert [each.max_attempts for each in found] == [9, 5, None, 5]
    assert found[1] == Policy()


ERRORS = {
    ":OWM": "must be an attribute of its module, got '.*'; did you mean OWN",
    ":Client": "must be a policy, a schedule or a decorated function at",
}


@pytest.mark.parametrize(("name", "error"), ERRORS.items(), ids=ERRORS)
def test_another_name_is_an_error(jobs, name, error):
    with pytest.raises(ConfigError, match=error):
        find_policies(f"{jobs}{name}")


FAILING = {
    "raise SystemExit(3)": "must be importable, got SystemExit: 3 at .*bad.py:2",
    "x = (": "must be importable, got SyntaxError: .* at .*bad.py:2",
    "import nothing_at_all": "must be importable, got ModuleNotFoundError: .*bad.py:2",
    "import json.nothing": "must be importable, got ModuleNotFoundError",
}


@pytest.mark.parametrize(("line", "error"), FAILING.items(), ids=FAILING)
def test_a_file_that_cannot_be_imported_is_told(tmp_path, line, error):
    path = tmp_path / "bad.py"
    path.write_text(f"\n{line}\n")
    with pytest.raises(ConfigError, match=error):
        find_policies(str(path))


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ConfigError, match="must be in a file that exists"):
        find_policies(str(tmp_path / "no.py"))


def test_a_file_with_the_name_of_a_module_that_is_imported_is_told(tmp_path):
    path = tmp_path / "json.py"
    path.touch()
    with pytest.raises(ConfigError, match=r"got a module of this name from .*json"):
        find_policies(str(path))


def test_an_interrupt_goes_through(tmp_path):
    path = tmp_path / "interrupted.py"
    path.write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        find_policies(str(path))
