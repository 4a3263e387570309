"""Policy: an immutable, validated, printable value."""

import copy
import json
import pickle
from datetime import timedelta
from time import sleep

import pytest
from hypothesis import given

from retrykit import Hedge, Policy, hints, limits, presets, schedules as s
from retrykit._conditions import default_condition
from retrykit._core.final_error import NO_FALLBACK
from retrykit._core.rules import Rule
from retrykit._core.settings import SETTINGS
from retrykit._core.timeouts import AsArgument
from retrykit.budgets import TokenBucket, shared
from retrykit.limits import CircuitBreaker
from retrykit.testing.strategies import policies
from tests._support.exports import exports_of


class BusyError(Exception):
    pass


def is_busy(error):
    return isinstance(error, BusyError)


def is_empty(result):
    return not result


def observe_nothing(_event): ...


class NeverSet:
    """An event that can be copied and pickled."""

    def is_set(self):
        return False

    def wait(self, seconds): ...

    def __reduce__(self):
        return "NEVER"


NEVER = NeverSet()


# For each setting, a value that is not the default.
OTHER = {
    "schedule": s.constant(1),
    "max_attempts": 6,
    "max_elapsed": 61.0,
    "limits": "all",
    "deadline": "clip",
    "on": OSError,
    "give_up_on": KeyError,
    "on_result": is_empty,
    "exception_groups": "any",
    "rules": (Rule(on=TimeoutError, schedule=[1]),),
    "hint": hints.retry_after(),
    "hint_cap": None,
    "on_long_hint": "clip",
    "hint_jitter": 0.0,
    "budget": shared("key:test_policy", TokenBucket),
    "admission": (limits.shared("key:test_policy", CircuitBreaker),),
    "on_refused": "wait",
    "hedge": Hedge("50ms", idempotent=True),
    "attempt_timeout": 5.0,
    "nested": "raise",
    "raises": "group",
    "fallback": None,
    "stop_event": NEVER,
    "sleep": sleep,
    "redact": False,
    "keep_tracebacks": True,
    "max_failures": 99,
    "seed": 0,
    "observers": (observe_nothing,),
    "name": "fetch",
}


def test_the_default_policy_is_safe():
    """Google's delays, 5 attempts, 60 s in all, on all but programming errors."""
    policy = Policy()
    assert {name: getattr(policy, name) for name in SETTINGS} == {
        "schedule": s.exponential(0.5, factor=1.5).cap(60).jitter(0.5),
        "max_attempts": 5,
        "max_elapsed": 60.0,
        "limits": "any",
        "deadline": "stop",
        "on": default_condition,
        "give_up_on": (),
        "on_result": None,
        "exception_groups": "all",
        "rules": (),
        "hint": None,
        "hint_cap": 3600.0,
        "on_long_hint": "give_up",
        "hint_jitter": 0.1,
        "budget": None,
        "admission": (),
        "on_refused": "give_up",
        "hedge": None,
        "attempt_timeout": None,
        "nested": "respect",
        "raises": "last",
        "fallback": NO_FALLBACK,
        "stop_event": None,
        "sleep": None,
        "redact": True,
        "keep_tracebacks": False,
        "max_failures": 100,
        "seed": None,
        "observers": (),
        "name": None,
    }


def test_no_attribute_of_a_policy_can_be_set_or_deleted():
    policy = Policy()
    with pytest.raises(AttributeError):
        policy.max_attempts = 9
    with pytest.raises(AttributeError):
        del policy.max_attempts
    assert policy == Policy()


def test_a_misspelled_attribute_raises_attribute_error():
    policy = Policy()
    with pytest.raises(AttributeError):
        policy.max_attemps = 9


def test_policies_with_equal_settings_are_equal():
    one = Policy(**OTHER)
    two = Policy(**OTHER)
    assert one == two
    assert hash(one) == hash(two)
    assert {one: "found"}[two] == "found"


@pytest.mark.parametrize("name", OTHER)
def test_policies_that_differ_in_one_setting_are_not_equal(name):
    changed = Policy().replace(**{name: OTHER[name]})
    assert changed != Policy()
    assert getattr(changed, name) == OTHER[name]
    default = {name: getattr(Policy(), name)}
    assert changed.replace(**default) == Policy(**default)


def test_equivalent_forms_of_a_setting_are_equal():
    assert Policy(schedule=[1, "1m", timedelta(hours=1)]).schedule == s.sequence(
        [1.0, 60.0, 3600.0]
    )
    assert Policy(max_elapsed="1h30m").max_elapsed == 5400.0
    assert Policy(max_elapsed=timedelta(minutes=1)).max_elapsed == 60.0
    assert Policy(observers=iter([observe_nothing])).observers == (observe_nothing,)
    assert Policy(hint_cap="2h", attempt_timeout="1m").hint_cap == 7200.0
    assert Policy(attempt_timeout=timedelta(minutes=1)).attempt_timeout == 60.0
    rule = Rule(on=OSError, schedule=["1s", "1m"])
    assert Policy(rules=[rule]).rules == (Rule(OSError, s.sequence([1.0, 60.0])),)


class Rows:
    """A fallback that compares its elements, as an array does."""

    def __eq__(self, other):
        return self

    def __hash__(self):
        return 7

    def __bool__(self):
        raise ValueError

    def __repr__(self):
        return "rows"


def test_a_fallback_may_be_anything():
    assert repr(Policy(fallback=Rows())) == "Policy(fallback=rows)"
    assert repr(Policy(fallback=None)) == "Policy(fallback=None)"
    assert Policy(fallback=None) != Policy()


def test_changing_a_list_does_not_change_the_policy():
    delays, observers = [1, 2], [observe_nothing]
    policy = Policy(schedule=delays, observers=observers)
    delays.append(3)
    observers.clear()
    assert policy == Policy(schedule=[1, 2], observers=[observe_nothing])


# Names that an expression may contain.
NAMES = {
    "AsArgument": AsArgument,
    "Policy": Policy,
    "Rule": Rule,
    "TokenBucket": TokenBucket,
    "shared": shared,
    **exports_of(hints),
    **exports_of(s),
}
EXPRESSIONS = [
    "Policy()",
    "Policy(max_attempts=None, max_elapsed=None)",
    "Policy(schedule=sequence([1.0, 5.0]), max_elapsed=0.0, deadline='overshoot')",
    "Policy(schedule=exponential(0.5, factor=2.0).cap(60.0).full_jitter())",
    "Policy(on=OSError)",
    "Policy(on=(ConnectionError, TimeoutError), give_up_on=(BrokenPipeError,))",
    "Policy(on=json.decoder.JSONDecodeError)",
    "Policy(on=is_busy, give_up_on=is_busy, on_result=is_empty)",
    "Policy(raises='retry_error', max_failures=2, seed=7, name='fetch')",
    "Policy(observers=(observe_nothing,))",
    "Policy(observers={'gave_up': observe_nothing, 'succeeded': is_empty})",
    "Policy(limits='all', exception_groups='whole', fallback=None, sleep=is_empty)",
    "Policy(rules=(Rule(on=OSError, on_result=is_empty, hint=retry_after()),))",
    "Policy(rules=(Rule(on=OSError, schedule=constant(1.0), max_attempts=3),))",
    "Policy(on=OSError, rules=(Rule(on=(KeyError,), max_attempts=1),))",
    "Policy(hint=first_of(milliseconds('ms'), retry_after()), hint_cap=None)",
    "Policy(hint_cap=5.0, on_long_hint='honor', nested='retry')",
    "Policy(budget=shared('key:test_policy', make=TokenBucket))",
    "Policy(attempt_timeout=AsArgument(5.0, 'patience'))",
    "Policy(schedule=constant(15.0) + polynomial(4.0, first=1.0), max_attempts=26)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_its_repr_is_an_expression_that_builds_it(text):
    names = {
        "json": json,
        "is_busy": is_busy,
        "is_empty": is_empty,
        "observe_nothing": observe_nothing,
    }
    policy = eval(text, {**NAMES, **names})  # noqa: S307  under test
    assert repr(policy) == text


@given(policies())
def test_the_repr_of_any_policy_builds_it(policy):
    assert eval(repr(policy), NAMES) == policy  # noqa: S307  under test


def test_its_repr_has_only_written_limits_and_non_default_settings():
    policy = Policy(max_attempts=5, max_elapsed="1m", redact=True, name="fetch")
    assert repr(policy) == "Policy(max_attempts=5, max_elapsed=60.0, name='fetch')"
    assert repr(Policy(redact=True, name="fetch")) == "Policy(name='fetch')"


def test_replace_does_not_change_the_policy():
    policy = Policy(on=OSError, max_attempts=3)
    assert policy.replace(max_attempts=None) == Policy(on=OSError, max_attempts=None)
    assert policy == Policy(on=OSError, max_attempts=3)
    assert policy.replace() == policy


def test_copy_replace_replaces_settings():
    policy = Policy(on=OSError)
    # What copy.replace calls from Python 3.13 on.
    assert policy.__replace__(max_elapsed="2m") == Policy(on=OSError, max_elapsed=120)


def test_replace_rejects_contradicting_limits():
    policy = Policy(on=OSError, deadline="clip")
    with pytest.raises(ValueError, match="deadline must be 'stop'"):
        policy.replace(max_elapsed=None)
    with pytest.raises(ValueError, match="give_up_on must be narrower"):
        policy.replace(give_up_on=(KeyError, OSError))


def test_overlapping_conditions_are_accepted():
    assert Policy(on=OSError, give_up_on=ConnectionError)
    assert Policy(on=(OSError, KeyError), give_up_on=OSError)
    assert Policy(on=OSError, give_up_on=is_busy)
    assert Policy(on=is_busy, give_up_on=Exception)


@pytest.mark.parametrize(
    "policy",
    [Policy(), Policy(**OTHER), presets.google(), presets.zizq()],
    ids=["default", "everything set", "google", "zizq"],
)
def test_copies_of_a_policy_are_equal_to_it(policy):
    stored = pickle.dumps(policy)
    assert pickle.loads(stored) == policy  # noqa: S301  pickled here
    assert copy.copy(policy) == policy
    assert copy.deepcopy(policy) == policy


class Delays:
    def __iter__(self):
        return iter([1.0])

    def __eq__(self, other):
        return isinstance(other, Delays)

    __hash__ = None


def test_a_policy_hashes_if_its_parts_do():
    policy = Policy(schedule=Delays())
    assert policy == Policy(schedule=Delays())
    with pytest.raises(TypeError, match="unhashable"):
        hash(policy)
