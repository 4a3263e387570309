"""Conditions as texts, in policies that are kept as data."""

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, Rule
from retrykit.conditions import (
    ErrorNames,
    Excluding,
    HttpFailures,
    StatusCodes,
    any_of,
)
from retrykit.config.rendering import to_python, to_toml

STATUSES = st.integers(100, 599) | st.sampled_from(["1xx", "4xx", "5xx"])
FAILURES = st.builds(HttpFailures, st.lists(STATUSES, min_size=1), st.booleans())
CONDITIONS = (
    st.sampled_from([OSError, TimeoutError, (EOFError, KeyError)])
    | st.builds(ErrorNames, st.lists(st.text(min_size=1), min_size=1))
    | st.builds(Excluding, st.just([OSError]) | st.just([EOFError, KeyError]))
    | st.builds(StatusCodes, st.lists(st.integers(1, 16), min_size=1))
    | FAILURES
)
ERRORS = [OSError(), EOFError(), KeyError(), type("Busy", (Exception,), {})()]


@given(st.lists(CONDITIONS, min_size=1, max_size=3), FAILURES)
def test_a_condition_is_read_back_as_one_that_matches_the_same(parts, failures):
    rule = Rule(on=any_of(parts), on_result=failures, max_attempts=2)
    policy = Policy(on=any_of(parts), on_result=failures, rules=[rule])
    again = Policy.from_dict(policy.to_dict())
    assert Policy.from_dict(again.to_dict()) == again
    assert (again.on_result, again.rules[0].on_result) == (failures, failures)
    for own, other in ((policy, again), (policy.rules[0], again.rules[0])):
        for error in ERRORS:
            match = (_matches(own.on, error), _matches(other.on, error))
            assert match in {(True, True), (False, False)}


def _matches(condition, error):
    if isinstance(condition, type | tuple):
        return isinstance(error, condition)
    return condition(error)


def test_each_has_its_text():
    busy = HttpFailures([429, "5xx"], connections=True, unprocessed=True)
    on = any_of([OSError, ErrorNames(["Busy"]), StatusCodes([14]), busy])
    assert to_toml("x", Policy(on=on, on_result=busy)).splitlines()[1:] == [
        (
            'on = ["OSError", "name=Busy", "grpc=UNAVAILABLE", "http=429", "http=5xx", '
            '"http=connections", "http=unprocessed"]'
        ),
        'on_result = ["http=429", "http=5xx", "http=connections", "http=unprocessed"]',
    ]
    policy = Policy(on=Excluding([OSError]))
    assert policy.to_dict()["on"] == ["not=OSError"]
    scope = {}
    exec(to_python("x", Policy(on=on, on_result=busy)), scope)  # noqa: S102  our own
    assert scope["x"] == Policy(on=on, on_result=busy)


def test_a_variable_may_have_several():
    environ = {"A_ON": "OSError, http=5xx", "A_ON_RESULT": "http=503, http=5xx"}
    policy = Policy.from_env("A", environ=environ)
    assert policy.on == any_of([OSError, HttpFailures(["5xx"])])
    assert policy.on_result == HttpFailures([503, "5xx"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"on": ["nme=Busy"]},
            (
                "on must be the name of an exception type, or one of name=Name, "
                "http=503, http=5xx, http=connections, grpc=UNAVAILABLE, not=OSError, "
                "got 'nme=Busy'; did you mean name?"
            ),
        ),
        ({"on": ["http=5xx", 3]}, "on must be the name of an exception type, such as"),
        (
            {"on": "http=999"},
            "on: statuses must be a list of statuses, 100 to 599, and",
        ),
        ({"on": "http=\u0663"}, "on: statuses must be"),
        ({"on": "grpc=BUSY"}, "on: codes must be names of status codes of failures"),
        ({"on": "name="}, "on: names must be a list of names, at least one"),
        ({"on": "not=Busy"}, "on must be the name of an exception type, such as"),
        (
            {"on_result": "OSError"},
            (
                'on_result must be a text such as "http=503" or "http=5xx", or a list '
                "of them, got 'OSError'; add another predicate with "
                ".replace(on_result=...)"
            ),
        ),
        ({"on_result": []}, "on_result must be a text such as"),
    ],
)
def test_what_is_no_condition_is_refused(data, message):
    with pytest.raises(ConfigError) as info:
        Policy.from_dict(data)
    assert info.value.message.startswith(message)


def test_other_predicates_are_code():
    with pytest.raises(ConfigError, match="on_result must be left out of a policy"):
        Policy(on_result=lambda _: False).to_dict()
    with pytest.raises(ConfigError, match="on must be importable exception types in"):
        Policy(on=any_of([OSError, lambda _: False])).to_dict()
