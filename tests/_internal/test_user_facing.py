"""Public functions that check their arguments."""

import doctest
import inspect
import pickle
import traceback

import pytest

from retrykit import Policy, schedules
from retrykit._internal.validation import undecorated, user_facing
from retrykit.schedules import _basic as basic, constant


def test_an_error_of_the_function_itself_is_not_changed():
    @user_facing
    def fails(error):
        raise error

    for error in (TypeError("inside"), KeyError("id")):
        with pytest.raises(type(error)) as caught:
            fails(error)
        names = [f.f_code.co_name for f, _ in traceback.walk_tb(error.__traceback__)]
        assert caught.value is error
        assert names[-1] == "fails"


class Unsized:
    def __iter__(self):
        raise TypeError("cannot be iterated")


def test_an_error_of_the_users_code_keeps_its_frames():
    with pytest.raises(TypeError, match="cannot be iterated") as caught:
        Policy(schedule=Unsized())
    frames = traceback.walk_tb(caught.value.__traceback__)
    assert [*frames][-1][0].f_code.co_name == "__iter__"


def test_a_decorated_function_is_still_a_documented_function():
    signature = inspect.signature(schedules.exponential)
    assert [*signature.parameters] == ["first", "factor"]
    assert pickle.loads(pickle.dumps(schedules.exponential)) is schedules.exponential  # noqa: S301
    tests = doctest.DocTestFinder().find(basic)
    assert "retrykit.schedules._basic.exponential" in {each.name for each in tests}
    assert undecorated(constant).__globals__ is constant.__globals__ is vars(basic)
