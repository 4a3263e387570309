"""The functions and classes of other libraries that retry."""

from collections.abc import Callable
from typing import Final, NamedTuple

from retrykit.migrate import _backoff, _retrying, _stamina, _tenacity, _urllib3
from retrykit.migrate._settings import Settings, Use
from retrykit.migrate._source import Arguments

__all__ = ["ENTRIES", "LEFT", "Entry"]


class Entry(NamedTuple):
    """A function or class of a library that retries.

    Attributes:
        kind: What it makes: ``"function"`` (a decorator), ``"block"``, ``"object"``,
            ``"caller"``, or a ``"value"``, which is used as before.
        settings: Returns the settings for its arguments.
        parameters: The names of its positional parameters, separated by spaces.
        origins: For each setting, the parameter from which it gets its comments.
        awaited: Whether what it retries is awaited; None if that is not known.
        head: The class that makes the value; empty for other kinds.
        adapter: The function that makes a policy from unknown arguments; empty if none
            does.
    """

    kind: str
    settings: Callable[[Arguments, Use], Settings]
    parameters: str
    origins: dict[str, str]
    awaited: bool | None = None
    head: str = ""
    adapter: str = ""


_TENACITY: Final = {
    "max_attempts": "stop",
    "max_elapsed": "stop",
    "schedule": "wait",
    "on": "retry",
    "on_result": "retry",
    "raises": "reraise",
    "fallback": "retry_error_callback",
    "observers": "before_sleep",
}
_BACKOFF: Final = {
    "max_attempts": "max_tries",
    "max_elapsed": "max_time",
    "on": "exception",
    "on_result": "predicate",
    "give_up_on": "giveup",
    "schedule": "jitter",
    "observers": "on_backoff",
    "fallback": "raise_on_giveup",
}
_STAMINA: Final = {
    "on": "on",
    "max_attempts": "attempts",
    "max_elapsed": "timeout",
    "schedule": "wait_max",
}
_RETRYING: Final = {
    "max_attempts": "stop_max_attempt_number",
    "max_elapsed": "stop_max_delay",
    "schedule": "wait_fixed",
    "on": "retry_on_exception",
    "on_result": "retry_on_result",
}
_URLLIB3: Final = {"max_attempts": "total", "schedule": "backoff_factor"}

_OF_TENACITY: Final = Entry(
    "object",
    _tenacity.settings,
    _tenacity.PARAMETERS,
    _TENACITY,
    awaited=False,
    adapter=f"{_tenacity.ADAPTERS}.policy",
)
_OF_STAMINA: Final = Entry("block", _stamina.settings, _stamina.PARAMETERS, _STAMINA)
_CALLER: Final = Entry(
    "caller", _stamina.caller_settings, _stamina.OF_CALLERS, _STAMINA, awaited=False
)
_OF_RETRYING: Final = Entry(
    "object", _retrying.settings, _retrying.PARAMETERS, _RETRYING, awaited=False
)
_OF_URLLIB3: Final = Entry(
    "value", _urllib3.settings, _urllib3.PARAMETERS, _URLLIB3, head=_urllib3.HEAD
)


def _decorator(entry: Entry) -> Entry:
    return entry._replace(kind="function", awaited=None)


ENTRIES: Final = {
    ("tenacity", "retry"): _decorator(_OF_TENACITY),
    ("tenacity", "Retrying"): _OF_TENACITY,
    ("tenacity", "AsyncRetrying"): _OF_TENACITY._replace(awaited=True),
    ("backoff", "on_exception"): Entry(
        "function", _backoff.exception_settings, _backoff.OF_EXCEPTIONS, _BACKOFF
    ),
    ("backoff", "on_predicate"): Entry(
        "function", _backoff.result_settings, _backoff.OF_RESULTS, _BACKOFF
    ),
    ("stamina", "retry"): _decorator(_OF_STAMINA),
    ("stamina", "retry_context"): _OF_STAMINA,
    ("stamina", "RetryingCaller"): _CALLER,
    ("stamina", "AsyncRetryingCaller"): _CALLER._replace(awaited=True),
    ("retrying", "retry"): _decorator(_OF_RETRYING),
    ("retrying", "Retrying"): _OF_RETRYING,
    ("urllib3", "Retry"): _OF_URLLIB3,
    ("requests", "Retry"): _OF_URLLIB3,
}
"""The functions and classes to translate, keyed by library and name."""

LEFT: Final = {
    ("tenacity", "TornadoRetrying"): "retrykit has nothing for coroutines of Tornado",
    ("stamina", "set_active"): "in tests, write retrykit.testing.disable_retries()",
    ("stamina", "set_testing"): "in tests, write retrykit.testing.limit_retries(n)",
}
"""Why usages of other names are always left, keyed by library and name."""
