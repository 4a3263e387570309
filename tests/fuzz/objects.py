"""Target: errors and results whose methods fail or return wrong values."""

import json

from retrykit import Policy, RetryError, RetryState, state_of
from retrykit.hints import attribute, first_of, milliseconds, reset_at, retry_after
from retrykit.integrations.logging import observer
from retrykit.testing import virtual_time
from tests.fuzz.target import Target

__all__ = ["TARGETS"]

_HINT = first_of(
    milliseconds("retry-after-ms"),
    reset_at(),
    attribute("response.wait"),
    retry_after(),
)
_METHODS = (
    *("__str__", "__repr__", "__eq__", "__bool__", "__len__", "__iter__", "__int__"),
    *("__getitem__", "__getattr__", "__call__", "__format__", "__contains__"),
)
_PROPERTIES = (
    *("__dict__", "__class__", "args", "headers", "response", "status", "request"),
    *("status_code", "wait", "items", "trailing_metadata", "__cause__", "__doc__"),
)
_NEEDED_BY_PYTHON = {"__dict__", "__class__", "__cause__"}
_ANSWERS = {
    "fails": lambda _: _fail(),
    "recurses": lambda own: repr(own) + str(own),
    "itself": lambda own: own,
    "none": lambda _: None,
    "long": lambda _: "x" * 10**5,
    "odd text": lambda _: "\ud800\0\x1b[31m\n",
    "number": lambda _: 10**400,
    "endless": lambda _: iter(int, 1),
}


def _fail():
    raise ValueError("of the object itself")


def _draw(random):
    """Return the base class of an object, and its broken methods and properties."""
    how = random.choice(["raised", "returned"])
    # Python itself cannot print or annotate an error that fails there.
    known = {*_METHODS, *_PROPERTIES} - (
        _NEEDED_BY_PYTHON if how == "raised" else set()
    )
    names = random.sample(sorted(known), random.randint(1, 4))
    answers = {name: random.choice([*_ANSWERS]) for name in names}
    return how, answers, random.choice(["last", "retry_error", "group"])


def _broken_object(how, answers):
    parts = {"__hash__": object.__hash__}
    for name, answer in answers.items():
        parts[name] = _method(_ANSWERS[answer])
        if name in _PROPERTIES:
            parts[name] = property(parts[name])
    return type("Odd", (Exception if how == "raised" else object,), parts)()


def _method(answer):
    return lambda self, *_args: answer(self)


def _call(case):
    """Call a function that raises or returns an object, until the call gives up."""
    how, answers, raises = case
    instance = _broken_object(how, answers)

    def function():
        if how == "raised":
            raise instance
        return instance

    policy = Policy(
        schedule=[1, 2],
        on_result=lambda _: True,
        hint=_HINT,
        observers=[observer()],
        raises=raises,
    )
    with virtual_time():
        try:
            policy.call(function)
        except Exception as error:  # noqa: BLE001  its type is checked
            assert _is_expected(error, instance, raises), type(error)
            return state_of(error)
    msg = "the call has not failed"
    raise AssertionError(msg)


def _is_expected(error, instance, raises):
    if raises == "group" and issubclass(type(error), ExceptionGroup):
        return True
    return error is instance or type(error) is RetryError


def _check(state, _random):
    assert state.describe()
    assert [failure.describe() for failure in state.failures]
    data = json.loads(json.dumps(state.to_dict()))
    assert RetryState.from_dict(data).to_dict() == data


TARGETS = (Target("objects", 20, _draw, _call, _check),)
