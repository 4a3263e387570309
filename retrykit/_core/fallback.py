"""The value that a call returns in place of the error that it gives up with."""

from typing import TYPE_CHECKING, Any, Final, final

from retrykit._core.failures import Failure
from retrykit._core.retry_state import RetryState
from retrykit._internal.introspection import accepts_one_argument
from retrykit._internal.validation import invalid_setting

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["NO_FALLBACK", "NoFallback", "check_fallback", "check_no_fallback"]
__all__ += ["has_value", "last_result"]


@final
class NoFallback:
    """The type of `NO_FALLBACK`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_FALLBACK"

    def __reduce__(self) -> str:
        return "NO_FALLBACK"


NO_FALLBACK: Final = NoFallback()
"""The fallback of a policy that has none: None is a value like any other."""


def last_result(state: RetryState) -> Any:
    """Return the last rejected result, as the fallback of a policy.

    A call whose last attempt raised an error raises it, as without a fallback.

    >>> from retrykit import Policy
    >>> policy = Policy(schedule=[0], on_result=lambda x: x < 9, fallback=last_result)
    >>> policy.call(int, "7")
    7
    """
    return state.failures[-1].result


def has_value(fallback: object, failure: Failure) -> bool:
    """Return whether a fallback replaces the error after this last failure."""
    if fallback is last_result:
        return failure.error is None
    return fallback is not NO_FALLBACK


def check_no_fallback(policy: "Policy") -> None:
    """Check that a policy has no fallback, where no function returns it."""
    if policy.fallback is not NO_FALLBACK:
        rule = "left out where no function can return it: in a block, a client or a job"
        suggestion = "handle the error there, or write Policy.run"
        raise invalid_setting("fallback", rule, policy.fallback, suggestion)


def check_fallback(name: str, value: Any) -> Any:
    """Return *value* if it is a value, or a function of the state."""
    if isinstance(value, type):
        rule = "a value, or a function of the state"
        suggestion = f"write lambda state: {value.__name__}() for a new object each"
        raise invalid_setting(name, rule, value, suggestion)
    if callable(value) and not accepts_one_argument(value):
        rule = "a value, or a function that takes the state"
        raise invalid_setting(name, rule, value, "write lambda state: ...")
    return value
