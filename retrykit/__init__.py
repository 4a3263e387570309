"""Retry calls that sometimes fail, and know afterwards what happened.

>>> from retrykit import retry
>>> @retry(on=ConnectionError, max_attempts=4)
... def fetch(url): ...

`retry` and `aretry` decorate a function; a `Policy` says when it is called
again; `schedules` are the delays; `state_of` tells what happened.
"""

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
