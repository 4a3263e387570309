"""Target: errors and results of called functions, whose own methods fail or lie."""

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
_HELD = {"__dict__", "__class__", "__cause__"}
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
    """Return what an object is, and what some of its methods and properties do."""
    how = random.choice(["raised", "returned"])
    # Python itself cannot print or mark an error that fails there.
    known = {*_METHODS, *_PROPERTIES} - (_HELD if how == "raised" else set())
    names = random.sample(sorted(known), random.randint(1, 4))
    odd = {name: random.choice([*_ANSWERS]) for name in names}
    return how, odd, random.choice(["last", "retry_error", "group"])


def _made(how, odd):
    parts = {"__hash__": object.__hash__}
    for name, answer in odd.items():
        parts[name] = _method(_ANSWERS[answer])
        if name in _PROPERTIES:
            parts[name] = property(parts[name])
    return type("Odd", (Exception if how == "raised" else object,), parts)()


def _method(answer):
    return lambda self, *_args: answer(self)


def _call(given):
    """Let a function raise or return an object until its call has given up."""
    how, odd, raises = given
    made = _made(how, odd)

    def function():
        if how == "raised":
            raise made
        return made

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
        except Exception as error:  # noqa: BLE001  which one it is, is checked
            assert _is_expected(error, made, raises), type(error)
            return state_of(error)
    msg = "the call has not failed"
    raise AssertionError(msg)


def _is_expected(error, made, raises):
    if raises == "group" and issubclass(type(error), ExceptionGroup):
        return True
    return error is made or type(error) is RetryError


def _check(state, _random):
    assert state.describe()
    assert [failure.describe() for failure in state.failures]
    data = json.loads(json.dumps(state.to_dict()))
    assert RetryState.from_dict(data).to_dict() == data


TARGETS = (Target("objects", 20, _draw, _call, _check),)
