"""How long an attempt may take, where the attempt itself sees to it.

It knows nothing of calls: `retrykit.execution.attempt_timeout` hands the timeout on.
"""

from typing import final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting

__all__ = ["AsArgument", "timeout_seconds"]


@final
class AsArgument(Frozen):
    """A timeout that is handed to the function itself, as one of its arguments.

    For clients that have a timeout of their own, which blocking ones need: no
    thread can be stopped from outside.

    >>> AsArgument("5s")
    AsArgument(5.0, 'timeout')

    Args:
        seconds: How long an attempt may take. A duration, > 0. Near the end of
            a call it is given what remains, if that is less.
        name: The parameter that takes it, in seconds.

    Raises:
        ConfigError: *seconds* is no duration, or zero, or *name* is no name.
    """

    __slots__ = ("name", "seconds")
    seconds: float
    name: str

    def __init__(self, seconds: Duration, name: str = "timeout") -> None:
        Frozen.__init__(self, name=_identifier(name), seconds=_positive(seconds))

    def __repr__(self) -> str:
        return f"AsArgument({self.seconds!r}, {self.name!r})"


def timeout_seconds(timeout: float | AsArgument | None) -> float | None:
    """Return how long an attempt may take; None is unlimited.

    >>> timeout_seconds(AsArgument("5s")), timeout_seconds(2.0)
    (5.0, 2.0)

    Args:
        timeout: The `attempt_timeout` of a policy.
    """
    return timeout.seconds if isinstance(timeout, AsArgument) else timeout


def _identifier(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise invalid_setting("name", "the name of a parameter", name)
    return name


def _positive(length: object) -> float:
    found = parse_duration("seconds", length)
    if not found:
        rule, suggestion = "a duration > 0", "nothing is done in no time"
        raise invalid_setting("seconds", rule, length, suggestion)
    return found
