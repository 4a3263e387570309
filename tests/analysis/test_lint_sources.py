"""Lint of source code: it is read, and neither imported nor executed."""

import sys
from datetime import timedelta
from importlib import import_module
from textwrap import dedent

import pytest

import retrykit
from retrykit import ConfigError, Policy, presets, schedules
from retrykit._own_retries import OWN_RETRIES
from retrykit.analysis.lint import RULES, check, discover
from retrykit.analysis.lint._static import _METHODS, _NAMES, _OWN_RETRIES
from retrykit.audit import RULES as RULES_OF_SITES, audit
from retrykit.audit._rules import RULES_OF_POLICIES
from retrykit.budgets import RatioBudget

HEAD = """\
import shop_settings
from datetime import timedelta
from retrykit import AsArgument, Hedge, Policy, RefusedError, Rule, aretry, retry
from retrykit import retrying
from retrykit import hints, limits, presets, schedules, budgets
from retrykit.schedules import constant, exponential, linear
from shop_settings import POLICY as OTHER
raise SystemExit("executed")
class ShopError(ConnectionError): pass
class OrderError(ShopError): pass
LIMITS = dict(max_attempts=4)
"""


@pytest.fixture
def read(tmp_path):
    """Return a function that returns what is found in a text."""

    def discover_text(text):
        path = tmp_path / "jobs.py"
        path.write_text(HEAD + dedent(text), "utf-8")
        found = discover(path)
        assert "jobs" not in sys.modules
        return found

    return discover_text


def only(discovery):
    [found] = discovery.found
    assert discovery.failures == ()
    return found


SAME = [
    "Policy()",
    "Policy(max_attempts=3, on=OSError)",
    "Policy(**dict(max_attempts=4), on=(OSError, TimeoutError))",
    "Policy(schedule=exponential('500ms').cap('30s').full_jitter())",
    "Policy(schedule=[1, 5, '1m'])",
    "Policy(schedule=[1] * 3 + [4])",
    "Policy(schedule=2 * constant(1) + linear(2) | schedules.fibonacci())",
    "Policy(schedule=constant(1).take(2).then(linear(1)))",
    "Policy(max_elapsed=timedelta(minutes=2))",
    "Policy(attempt_timeout=AsArgument('10s'), hint=hints.retry_after())",
    "Policy(hint=hints.first_of(hints.retry_after(), hints.milliseconds('X-Ms')))",
    "Policy(rules=[Rule(OSError, max_attempts=2)])",
    "Policy(hedge=Hedge('50ms', idempotent=True), attempt_timeout=5)",
    "Policy(admission=[limits.RateLimit(3)], on=RefusedError)",
    "Policy(on=tuple((OSError,)), seed=-(-3))",
    "Policy(max_attempts=Policy(max_attempts=9).max_attempts)",
    "Policy(observers={'gave_up': OTHER}, fallback=OTHER).replace(name='a')",
    "presets.zizq(retry_limit=10)",
    "presets.zizq().replace(max_attempts=3)",
    "Policy(on=OSError).replace(max_attempts=3).replace(max_elapsed=9)",
]


def expected_of(text):
    names = vars(retrykit.schedules) | vars(presets)
    names |= {each: getattr(retrykit, each) for each in retrykit.__all__}
    left_out = "observers={'gave_up': OTHER}, fallback=OTHER"
    return eval(text.replace(left_out, ""), names | {"timedelta": timedelta})  # noqa: S307  of this test


@pytest.mark.parametrize("text", SAME)
def test_a_policy_is_made_from_its_source_code(read, text):
    found = [each for each in read(f"A = {text}").found if each.name == "A"]
    assert len(found) == 1
    assert repr(found[0].policy) == repr(expected_of(text))


def test_a_budget_that_is_not_known_has_no_reserve(read):
    policy = only(read("A = Policy(budget=OTHER)")).policy
    assert repr(policy.budget) == repr(RatioBudget(0.1, reserve=0))


DECORATED = {
    "@retry": Policy(),
    "@retry()": Policy(),
    "@retry(max_attempts=3)": Policy(max_attempts=3),
    "@retry(presets.zizq())": presets.zizq(),
    "@retry(policy=Policy(on=OSError), max_attempts=3)": Policy(
        on=OSError, max_attempts=3
    ),
    "@aretry(max_attempts=3, stream='restart')": Policy(max_attempts=3),
    "@retry(OTHER)": None,
    "@retry(policy=OTHER)": None,
    "@retry(presets.zizq(retry_limit=OTHER), max_attempts=2)": None,
    "@retry(shop_settings.policy())": None,
    "@retry([1, 2])": None,
    "@retry(policy=lambda: Policy())": None,
}


@pytest.mark.parametrize(("line", "policy"), DECORATED.items(), ids=DECORATED)
def test_a_decorator_gives_its_policy_to_a_function(read, line, policy):
    found = read(f"{line}\nasync def fetch(): ...\n").found
    assert {each.name for each in found} == {"fetch"}
    assert found[0].policy == policy


def test_blocks_calls_and_methods_are_found(read):
    found = read(
        """
        def plain():
            for attempt in retrying(max_attempts=3):
                with attempt: ...
            retry(plain)()
            Policy(max_attempts=2).call(plain)

        class Client:
            OWN = Policy(max_attempts=5)

            @retry(OWN)
            def send(self): ...

            @staticmethod
            @retry(on=OSError)
            def ask(): ...

        CALLS = [Policy(max_attempts=7)]
        """
    ).found
    assert [
        (each.name, each.policy and each.policy.max_attempts) for each in found
    ] == [
        ("plain", 3),
        ("plain", 5),
        ("plain", 2),
        ("Client.OWN", 5),
        ("Client.ask", 5),
        ("", 7),
    ]
    assert str(found[0]).endswith("jobs.py:14: plain")
    assert str(found[-1]).endswith("jobs.py:29")


def test_equal_policies_have_names_of_their_own(read):
    found = read("A = Policy(on=OSError)\nB = Policy(on=OSError)\n").found
    assert [each.name for each in found] == ["A", "B"]


PARTLY = [
    "Policy(max_attempts=shop_settings.attempts)",
    "Policy(**shop_settings.limits)",
    "Policy(schedule=Own())",
    "Policy(schedule=Own)",
    "Policy(schedule=lambda: [1])",
    "Policy(schedule=[1] * 100_000)",
    "Policy(schedule=constant(1).map(print))",
    "Policy(schedule=constant(1) - constant(1))",
    "Policy(schedule=OTHER.schedule)",
    "Policy(schedule=[1, OTHER])",
    "Policy(max_attempts=3 if OTHER else 4)",
    "Policy(max_attempts=len('abc'))",
    "Policy(max_attempts=hints.states)",
    "Policy(rules=[OTHER])",
    "Policy(admission=3 if OTHER else 4, max_attempts=OTHER)",
    "Policy(on=OTHER, on_result=OTHER)",
    "Policy(**{OTHER: 3})",
    "Policy(max_attempts=Policy().call)",
    "presets.zizq(retry_limit=OTHER)",
    "presets.zizq(schedule)",
    "RetryAdapter(max_attempts=3)",
]


@pytest.mark.parametrize("text", PARTLY)
def test_a_policy_with_an_unknown_setting_is_known_in_part(read, text):
    source = f"from retrykit.integrations.requests import RetryAdapter\nA = {text}\n"
    discovery = read(source)
    assert discovery.failures == ()
    assert [each.policy for each in discovery.found if each.name == "A"] == [None]


def test_only_rules_that_need_no_object_judge_a_policy_that_is_known_in_part(read):
    found = only(
        read("A = Policy(attempt_timeout=OTHER, max_attempts=None, on=Exception)\n")
    )
    assert [each.rule for each in found.check()] == [
        "unbounded",
        "retries-every-exception",
    ]
    assert found.check(rules=["no-jitter"]) == ()
    some = "A = Policy(attempt_timeout=OTHER, on=Exception, give_up_on=OSError)\n"
    assert only(read(some)).check() == ()
    for arguments in ({"rules": ["such"]}, {"attempts": 0}):
        with pytest.raises(ConfigError):
            found.check(**arguments)


def test_these_rules_judge_both_policies_and_sites():
    both = RULES.keys() & RULES_OF_SITES.keys()
    assert both == {
        "unbounded",
        "retries-at-once",
        "no-jitter",
        "retries-every-exception",
        "timeout-never-retried",
        "max-attempts-unreachable",
        "library-retries-too",
    }


WARNED = {
    "Policy(on=Exception, max_attempts=7)": ["retries-every-exception"],
    "Policy(on=Exception, give_up_on=OTHER, max_attempts=7)": [],
    "Policy(on=OTHER, max_attempts=7)": [],
    "Policy(on=lambda error: True, max_attempts=7)": [],
    "Policy(on=(OSError, OTHER.Error), max_attempts=None)": ["unbounded"],
    "Policy(schedule=[1, 2, 3, 4, 5], on=shop_settings.ApiError)": ["no-jitter"],
    "Policy(admission=[limits.CircuitBreaker()])": ["breaker-without-timeout"],
    "Policy(admission=OTHER)": [],
    "Policy(on=openai.transient)": ["library-retries-too"],
    "Policy(on=httpx.transient)": [],
    "Policy(on=httpx.Other)": [],
    "Policy(budget=budgets.RatioBudget(reserve=10))": ["reserve-of-each-process"],
    "Policy(on_result=lambda found: found is None)": [],
    "Policy(hint=lambda error: 3)": [],
    "Policy(stop_event=OTHER)": [],
}


@pytest.mark.parametrize(("text", "rules"), WARNED.items(), ids=WARNED)
def test_what_is_not_known_gives_no_warning(read, text, rules):
    imports = "from retrykit.integrations import httpx, openai\n"
    found = only(read(f"{imports}A = {text}\n"))
    assert found.policy is not None
    assert [each.rule for each in found.check()] == rules


def test_a_class_of_errors_has_the_bases_that_are_known(read):
    found = only(read("A = Policy(on=(OrderError, ShopError, OrderError))\n"))
    order, shop, again = found.policy.on
    assert order is again
    assert (order.__name__, order.__bases__, shop.__bases__) == (
        "OrderError",
        (shop,),
        (ConnectionError,),
    )
    assert found.check(load=0.7) == ()


def test_a_class_that_is_its_own_base_is_one_of_errors(read):
    text = "class Loop(Loop): pass\nclass Base(shop_settings.base()): pass\n"
    found = only(read(f"{text}A = Policy(on=(Loop, Base))\n"))
    assert [each.__bases__ for each in found.policy.on] == [(Exception,)] * 2


INVALID = {
    "A = Policy(max_attempts=0)": "A: max_attempts must be an integer >= 1, got 0",
    "A = Policy(max_elapsed='60')": "A: max_elapsed must be a duration",
    "@retry(max_tries=3)\ndef fetch(): ...": "fetch: max_tries is not a policy setting",
    "A = Policy(schedule=exponential(-1))": "A: first must be a finite number",
    "A = presets.zizq(retries=3)": "A: retries is not a parameter of zizq",
    "[Policy(hedge=3)]": "hedge must be ",
}


@pytest.mark.parametrize(("text", "reason"), INVALID.items(), ids=INVALID)
def test_an_invalid_policy_is_told_and_the_others_are_found(read, text, reason):
    discovery = read(f"{text}\nGOOD = Policy()\n")
    assert [each.name for each in discovery.found] == ["GOOD"]
    [failure] = discovery.failures
    assert failure.reason.startswith(reason)
    assert failure.line == HEAD.count("\n") + 1


def test_comments_ignore_rules(read):
    line = "Policy(on=Exception, max_attempts=None)  # retrykit: ignore"
    assert only(read(f"A = {line}\n")).check() == ()
    [finding] = only(read(f"A = {line}[unbounded]\n")).check()
    assert finding.rule == "retries-every-exception"


def test_the_auditor_knows_that_lint_has_rules_of_its_own(tmp_path):
    own = RULES.keys() - RULES_OF_SITES.keys()
    assert own == RULES_OF_POLICIES
    line = (
        "from retrykit import Policy\nA = Policy()  # retrykit: ignore[never-retries]"
    )
    (tmp_path / "a.py").write_text(line)
    assert audit([tmp_path]).problems == ()


def test_a_syntax_error_is_told(read):
    discovery = read("A = Policy(\n")
    assert discovery.found == ()
    assert "not Python" in discovery.failures[0].reason


def test_tests_in_a_folder_are_left_out(tmp_path):
    text = "from retrykit import Policy\nA = Policy()\n"
    names = ["a.py", "test_a.py", "conftest.py", "tests/b.py", "shop/c.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def files_in(folder):
        found = discover(folder).found
        return [each.site.path.removeprefix(f"{tmp_path}/") for each in found]

    assert files_in(tmp_path) == ["a.py", "shop/c.py"]
    assert files_in(tmp_path / "tests") == ["tests/b.py"]
    assert files_in(tmp_path / "test_a.py") == ["test_a.py"]


def test_constants_of_other_files_are_followed(tmp_path):
    (tmp_path / "shared.py").write_text("ATTEMPTS = 3\n")
    text = "from retrykit import Policy\nfrom shared import ATTEMPTS\n"
    (tmp_path / "a.py").write_text(f"{text}A = Policy(max_attempts=ATTEMPTS)\n")
    assert only(discover(tmp_path)).policy == Policy(max_attempts=3)


def test_modules_are_found_by_their_names(tmp_path, monkeypatch):
    (tmp_path / "shop").mkdir()
    text = "from retrykit import Policy\nA = Policy()\n"
    for name in ("shop/__init__.py", "shop/jobs.py", "lonely.py"):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    counts = {name: len(discover(name).found) for name in ("shop", "shop.jobs")}
    assert counts | {"lonely": len(discover("lonely").found)} == {
        "shop": 2,
        "shop.jobs": 1,
        "lonely": 1,
    }
    assert {"shop", "lonely"} & sys.modules.keys() == set()
    for name in ("shop.no", "shop.jobs.no", "no", "sys", "a b"):
        with pytest.raises(ConfigError, match="must be a file, a folder or a module"):
            discover(name)


def test_progress_is_told(tmp_path):
    (tmp_path / "a.py").write_text("")
    told = []
    discover(tmp_path, progress=lambda done, count: told.append((done, count)))
    assert told == [(1, 1)]


def test_names_that_are_called_are_public():
    for module, names in _NAMES.items():
        public = import_module(module).__all__
        assert set(names.split()) <= set(public), module
    assert set(_OWN_RETRIES.values()) <= OWN_RETRIES.keys()
    assert all(hasattr(schedules.Schedule, each) for each in _METHODS.split())


@pytest.mark.parametrize("name", presets.__all__)
def test_a_preset_is_that_of_the_package(read, name):
    found = only(read(f"A = presets.{name}()\n"))
    expected = check(getattr(presets, name)())
    assert found.check() == expected
