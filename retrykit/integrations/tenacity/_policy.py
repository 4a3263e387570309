"""A policy made from the arguments of tenacity's ``Retrying``."""

from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.errors import RetryError
from retrykit.integrations.tenacity._call_states import future_of, last_failure
from retrykit.integrations.tenacity._hooks import (
    before as _before,
    before_sleep as _before_sleep,
    retry_error_callback as _retry_error_callback,
    retry_error_cls as _retry_error_cls,
)
from retrykit.integrations.tenacity._strategies import (
    retry_on_error,
    retry_on_result,
    wait as _wait,
)
from retrykit.schedules import constant

__all__ = ["last_attempt", "policy"]


@user_facing
def policy(**arguments: Any) -> Policy:
    """Return the policy that does what a ``Retrying`` with these arguments does.

    Use it for arguments that are known only at run time, such as a dictionary that a
    function makes. Tenacity's strategies are kept, and called as tenacity calls them.
    If you know the arguments, write settings of `Policy` instead.

    >>> settings = {"stop": lambda state: state.attempt_number >= 3, "reraise": True}
    >>> policy(**settings).run(int, "seven").state.attempt
    3

    Args:
        **arguments: The arguments of ``Retrying``, ``AsyncRetrying`` and ``retry``.

    Raises:
        ConfigError: An argument is unknown or invalid.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    unknown = given.keys() - _PARAMETERS
    if unknown:
        name = min(unknown)
        rule = "one of the parameters of tenacity's Retrying"
        raise invalid_setting(
            name, rule, given[name], ", ".join(sorted(_PARAMETERS)), code="unknown-name"
        )
    if not given.get("enabled", True):
        return Policy(max_attempts=1, name=given.get("name"))
    settings: dict[str, Any] = {
        "on": Exception,
        "max_attempts": None,
        "schedule": constant(0),
        "hint": _wait(
            given.get("wait") or _at_once,
            stop=given.get("stop"),
            after=given.get("after"),
        ),
        "hint_cap": None,
        "nested": "retry",
        "exception_groups": "whole",
        "name": given.get("name"),
    }
    if "retry" in given:
        settings["on"] = retry_on_error(given["retry"])
        settings["on_result"] = retry_on_result(given["retry"])
    if "sleep" in given and not _is_usual(given["sleep"]):
        settings["sleep"] = given["sleep"]
    observers = [
        adapter(given[name])
        for name, adapter in (("before", _before), ("before_sleep", _before_sleep))
        if name in given
    ]
    return Policy(**settings, **_ending(given), observers=observers)


_PARAMETERS: Final = {
    *("sleep", "stop", "wait", "retry", "before", "after", "before_sleep", "reraise"),
    *("retry_error_cls", "retry_error_callback", "name", "enabled"),
}


def _at_once(_state: object) -> float:
    return 0.0


def _is_usual(sleep: Any) -> bool:
    """Return whether a function is the ``sleep`` of tenacity, time or an event loop."""
    module = str(getattr(sleep, "__module__", "")).partition(".")[0]
    usual = module in {"tenacity", "time", "asyncio", "trio", "anyio"}
    return usual and getattr(sleep, "__name__", "") == "sleep"


def _ending(given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that decide what a call that gives up raises or returns."""
    if "retry_error_callback" in given:
        return {"fallback": _retry_error_callback(given["retry_error_callback"])}
    if given.get("reraise"):
        return {}
    kind = given.get("retry_error_cls")
    if kind is None or (kind.__module__, kind.__name__) == ("tenacity", "RetryError"):
        return {"raises": "retry_error"}
    return {"fallback": _retry_error_cls(kind)}


@user_facing
def last_attempt(error: Any) -> Any:
    """Return the ``last_attempt`` of a `RetryError`, of retrykit or of tenacity.

    The attempt has the methods of a future, such as ``exception()`` and ``result()``,
    and an ``attempt_number``. If no attempt has failed, None is returned.

    >>> from retrykit import Policy, RetryError
    >>> try:
    ...     Policy(schedule=[0], raises="retry_error").call(int, "seven")
    ... except RetryError as error:
    ...     print(last_attempt(error).attempt_number, last_attempt(error).exception())
    2 invalid literal for int() with base 10: 'seven'

    Args:
        error: The error.
    """
    if isinstance(error, RetryError):
        return future_of(last_failure(error.state))
    return error.last_attempt
