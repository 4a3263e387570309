"""Retry calls that sometimes fail, and know afterwards what happened.

>>> from retrykit import retry
>>> @retry(on=ConnectionError, max_attempts=4)
... def fetch(url): ...

`retry` and `aretry` decorate a function; a `Policy` says when it is called
again; `schedules` are the delays; `state_of` tells what happened.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrykit import dialects, schedules
    from retrykit._call import current_state
    from retrykit._decide import Again, Decision, Stop
    from retrykit.blocks import aretrying, retrying
    from retrykit.decorators import aretry, policy_of, resume, retry, with_policy
    from retrykit.errors import ConfigError, RetrykitError
    from retrykit.events import observe
    from retrykit.policy import Outcome, Policy
    from retrykit.signals import GiveUp, RetryAfter
    from retrykit.state import Failure, RetryState, StopReason
    from retrykit.verdicts import RetryError, state_of

__all__ = [
    "Again",
    "ConfigError",
    "Decision",
    "Failure",
    "GiveUp",
    "Outcome",
    "Policy",
    "RetryAfter",
    "RetryError",
    "RetryState",
    "RetrykitError",
    "Stop",
    "StopReason",
    "aretry",
    "aretrying",
    "current_state",
    "dialects",
    "observe",
    "policy_of",
    "resume",
    "retry",
    "retrying",
    "schedules",
    "state_of",
    "with_policy",
]

_HOMES = {
    "_call": ["current_state"],
    "_decide": ["Again", "Decision", "Stop"],
    "blocks": ["aretrying", "retrying"],
    "decorators": ["aretry", "policy_of", "resume", "retry", "with_policy"],
    "errors": ["ConfigError", "RetrykitError"],
    "events": ["observe"],
    "policy": ["Outcome", "Policy"],
    "signals": ["GiveUp", "RetryAfter"],
    "state": ["Failure", "RetryState", "StopReason"],
    "verdicts": ["RetryError", "state_of"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for; a command line needs few."""
    if name in {"dialects", "schedules"}:
        return import_module(f"retrykit.{name}")
    if name not in _HOME:
        msg = f"module 'retrykit' has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(f"retrykit.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
