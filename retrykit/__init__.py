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
    from retrykit import budgets, dialects, hints, schedules
    from retrykit._decide import Again, Decision, Stop
    from retrykit._nesting import current_state
    from retrykit.blocks import aretrying, retrying
    from retrykit.decorators import aretry, policy_of, resume, retry, with_policy
    from retrykit.errors import AttemptTimeout, ConfigError, RetrykitError
    from retrykit.events import observe
    from retrykit.policy import Outcome, Policy
    from retrykit.rules import Rule
    from retrykit.signals import GiveUp, RetryAfter
    from retrykit.state import Failure, RetryState, StopReason
    from retrykit.timeouts import AsArgument
    from retrykit.verdicts import NestedRetryError, RetryError, state_of

__all__ = [
    "Again",
    "AsArgument",
    "AttemptTimeout",
    "ConfigError",
    "Decision",
    "Failure",
    "GiveUp",
    "NestedRetryError",
    "Outcome",
    "Policy",
    "RetryAfter",
    "RetryError",
    "RetryState",
    "RetrykitError",
    "Rule",
    "Stop",
    "StopReason",
    "aretry",
    "aretrying",
    "budgets",
    "current_state",
    "dialects",
    "hints",
    "observe",
    "policy_of",
    "resume",
    "retry",
    "retrying",
    "schedules",
    "state_of",
    "with_policy",
]

__version__ = "0.1.0"

_HOMES = {
    "_nesting": ["current_state"],
    "_decide": ["Again", "Decision", "Stop"],
    "blocks": ["aretrying", "retrying"],
    "decorators": ["aretry", "policy_of", "resume", "retry", "with_policy"],
    "errors": ["AttemptTimeout", "ConfigError", "RetrykitError"],
    "events": ["observe"],
    "policy": ["Outcome", "Policy"],
    "rules": ["Rule"],
    "signals": ["GiveUp", "RetryAfter"],
    "state": ["Failure", "RetryState", "StopReason"],
    "timeouts": ["AsArgument"],
    "verdicts": ["NestedRetryError", "RetryError", "state_of"],
}
_MODULES = {"budgets", "dialects", "hints", "schedules"}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for; a command line needs few."""
    if name in _MODULES:
        return import_module(f"retrykit.{name}")
    if name not in _HOME:
        msg = f"module 'retrykit' has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(f"retrykit.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
