"""Errors by their names, all but some, and conditions joined."""

import pickle

import pytest

from retrykit import ConfigError, Policy
from retrykit.conditions import AnyOf, ErrorNames, Excluding, StatusCodes, any_of


def test_a_name_is_that_of_the_class_and_not_of_those_it_derives_from():
    named = ErrorNames(["TimeoutError", "Busy", "Busy"])
    assert named.names == ("TimeoutError", "Busy")
    assert named(TimeoutError())
    assert named(type("Busy", (Exception,), {})())
    assert not named(OSError())


def test_all_but_some_are_those_of_no_type():
    others = Excluding((OSError, EOFError))
    assert [others(each()) for each in (KeyError, EOFError, TimeoutError)] == [
        *(True, False, False)
    ]


def test_types_that_are_joined_stay_types():
    assert any_of([OSError]) is OSError
    assert any_of([(OSError, EOFError), OSError, KeyError]) == (
        *(OSError, EOFError, KeyError),
    )
    named = ErrorNames(["X"])
    assert any_of([named, named]) is named


def test_joined_conditions_match_what_any_of_them_does():
    joined = any_of([OSError, any_of([ErrorNames(["KeyError"]), (EOFError,)])])
    assert joined == AnyOf([OSError, ErrorNames(["KeyError"]), EOFError])
    assert [
        joined(each()) for each in (TimeoutError, KeyError, EOFError, ValueError)
    ] == [*(True, True, True, False)]


def test_an_excluded_error_is_not_retried():
    policy = Policy(on=Excluding([OSError]), schedule=[0, 0])
    calls = []

    def fail(error):
        calls.append(error)
        raise error

    for error in (TimeoutError(), KeyError()):
        with pytest.raises(type(error)):
            policy.call(fail, error)
    assert len(calls) == 1 + 3


@pytest.mark.parametrize(
    "condition",
    [ErrorNames(["X"]), Excluding([OSError]), any_of([OSError, StatusCodes([14])])],
    ids=repr,
)
def test_conditions_are_values(condition):
    again = pickle.loads(pickle.dumps(condition))  # noqa: S301  our own
    assert again == condition
    assert hash(again) == hash(condition)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ErrorNames("Busy"),
            "names must be a list of names, at least one, got",
        ),
        (lambda: ErrorNames([]), "names must be a list of names, at least one, got []"),
        (lambda: ErrorNames([""]), "names must be a list of names, at least one"),
        (
            lambda: Excluding([]),
            "types must be a list of exception types, at least one",
        ),
        (lambda: Excluding([3]), "types must be a list of exception types"),
        (lambda: Excluding([SystemExit]), "types must be an Exception type, since no"),
        (lambda: any_of([OSError, 3]), "conditions[1] must be an Exception type, a"),
    ],
)
def test_what_is_no_condition_is_refused(make, message):
    with pytest.raises(ConfigError) as info:
        make()
    assert info.value.message.startswith(message)
