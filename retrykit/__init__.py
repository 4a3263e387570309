"""Retry calls that sometimes fail, and record what happened.

>>> from retrykit import retry
>>> @retry(on=ConnectionError, max_attempts=4)
... def fetch(url): ...

`retry` and `aretry` decorate a function; a `Policy` has the settings, `schedules`
the delays; `state_of` returns the history of a call that gave up.
"""

from typing import TYPE_CHECKING

from retrykit._internal.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from retrykit import budgets, hints, presets as presets, schedules
    from retrykit.errors import (
        AttemptTimeout,
        ConfigError,
        GiveUp,
        NestedRetryError,
        RetryAfter,
        RetryError,
        RetrykitError,
    )
    from retrykit.execution.backoff import STOP, Backoff
    from retrykit.execution.blocks import aretrying, retrying
    from retrykit.execution.call import current_state
    from retrykit.execution.decorators import (
        aretry,
        policy_of,
        resume,
        retry,
        with_policy,
    )
    from retrykit.policy.decision import Again, Decision, Stop
    from retrykit.policy.fallback import last_result
    from retrykit.policy.outcome import Outcome
    from retrykit.policy.policy import Policy
    from retrykit.policy.rules import Rule
    from retrykit.policy.timeouts import AsArgument
    from retrykit.state.events import observe
    from retrykit.state.final_error import state_of
    from retrykit.state.retry_state import Failure, RetryState, StopReason
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "errors": "AttemptTimeout ConfigError GiveUp NestedRetryError RetryAfter "
            "RetryError RetrykitError",
            "execution.backoff": "STOP Backoff",
            "execution.blocks": "aretrying retrying",
            "execution.decorators": "aretry policy_of resume retry with_policy",
            "execution.call": "current_state",
            "policy.decision": "Again Decision Stop",
            "policy.fallback": "last_result",
            "policy.outcome": "Outcome",
            "policy.policy": "Policy",
            "policy.rules": "Rule",
            "policy.timeouts": "AsArgument",
            "state.events": "observe",
            "state.final_error": "state_of",
            "state.retry_state": "Failure RetryState StopReason",
        },
        modules=["budgets", "presets", "hints", "schedules"],
    )

__all__ = ["STOP", "Again", "AsArgument", "AttemptTimeout", "Backoff", "ConfigError"]
__all__ += ["Decision", "Failure", "GiveUp", "NestedRetryError", "Outcome", "Policy"]
__all__ += ["RetryAfter", "RetryError", "RetryState", "RetrykitError", "Rule", "Stop"]
__all__ += ["StopReason", "aretry", "aretrying", "budgets", "current_state", "hints"]
__all__ += ["last_result", "observe", "policy_of", "presets", "resume", "retry"]
__all__ += ["retrying", "schedules", "state_of", "with_policy"]

__version__ = "0.1.0"
