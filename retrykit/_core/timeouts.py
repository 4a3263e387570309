"""Attempt timeouts that are passed to the function as an argument."""

from typing import final

from retrykit._internal.durations import Duration, parse_positive_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting, user_facing

__all__ = ["AsArgument", "timeout_seconds"]


@final
class AsArgument(Frozen):
    """An attempt timeout that is passed to the function as an argument.

    For blocking clients with their own timeout, since no thread can be stopped
    from outside.

    >>> AsArgument("5s")
    AsArgument(5.0, 'timeout')

    Args:
        seconds: Time limit of an attempt. A duration, > 0. Under ``deadline="stop"``
            the function gets the time left of the call, if that is less.
        name: The parameter that takes the time limit, in seconds.

    Raises:
        ConfigError: An argument is invalid.
    """

    __slots__ = ("name", "seconds")
    seconds: float
    name: str

    @user_facing
    def __init__(self, seconds: Duration, name: str = "timeout") -> None:
        seconds = parse_positive_duration("seconds", seconds)
        Frozen.__init__(self, name=_check_identifier(name), seconds=seconds)

    def __repr__(self) -> str:
        return f"AsArgument({self.seconds!r}, {self.name!r})"


def timeout_seconds(timeout: float | AsArgument | None) -> float | None:
    """Return the time limit of an attempt in seconds; None is unlimited.

    >>> timeout_seconds(AsArgument("5s")), timeout_seconds(2.0)
    (5.0, 2.0)
    """
    return timeout.seconds if isinstance(timeout, AsArgument) else timeout


def _check_identifier(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise invalid_setting("name", "the name of a parameter", name)
    return name
