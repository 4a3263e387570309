"""Retry calls that sometimes fail, and record what happened.

>>> from retrykit import retry
>>> @retry(on=ConnectionError, max_attempts=4)
... def fetch(url): ...

`retry` and `aretry` decorate a function; a `Policy` holds the settings, and `schedules`
builds the delays; `state_of` returns the history of a call that gave up.
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit import budgets, hints, limits, presets as presets, schedules, streams
    from retrykit._core.blocks import aretrying, retrying
    from retrykit._core.call import current_state
    from retrykit._core.chains import chain
    from retrykit._core.decision import Again, Decision, Stop
    from retrykit._core.decorators import (
        aretry,
        policy_of,
        resume,
        retry,
        with_policy,
    )
    from retrykit._core.events import observe
    from retrykit._core.final_error import last_result, state_of
    from retrykit._core.hedge import Hedge
    from retrykit._core.layers import Layer, Layers, layers
    from retrykit._core.outcome import Outcome, WithError, WithValue
    from retrykit._core.policy import Policy
    from retrykit._core.retry_state import Failure, RetryState, StopReason
    from retrykit._core.rules import Rule
    from retrykit._core.timeouts import AsArgument
    from retrykit._internal.version import __version__ as __version__
    from retrykit.backoff import STOP, Backoff
    from retrykit.errors import (
        AttemptTimeout,
        CircuitOpenError,
        ConfigError,
        GiveUp,
        NestedRetryError,
        RefusedError,
        RetryAfter,
        RetryError,
        RetrykitError,
    )
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "errors": "AttemptTimeout CircuitOpenError ConfigError GiveUp "
            "NestedRetryError RefusedError RetryAfter RetryError RetrykitError",
            "backoff": "STOP Backoff",
            "_core.blocks": "aretrying retrying",
            "_core.decorators": "aretry policy_of resume retry with_policy",
            "_core.call": "current_state",
            "_core.chains": "chain",
            "_core.decision": "Again Decision Stop",
            "_core.policy": "Policy",
            "_core.rules": "Rule",
            "_core.timeouts": "AsArgument",
            "_core.events": "observe",
            "_core.final_error": "last_result state_of",
            "_core.hedge": "Hedge",
            "_core.layers": "Layer Layers layers",
            "_core.outcome": "Outcome WithError WithValue",
            "_core.retry_state": "Failure RetryState StopReason",
            "_internal.version": "__version__",
        },
        modules=["budgets", "limits", "presets", "hints", "schedules", "streams"],
    )

__all__ = ["STOP", "Again", "AsArgument", "AttemptTimeout", "Backoff"]
__all__ += ["CircuitOpenError", "ConfigError", "Decision", "Failure", "GiveUp"]
__all__ += [
    "Hedge",
    "Layer",
    "Layers",
    "NestedRetryError",
    "Outcome",
    "Policy",
    "RefusedError",
]
__all__ += ["RetryAfter", "RetryError", "RetryState", "RetrykitError", "Rule", "Stop"]
__all__ += ["StopReason", "WithError", "WithValue", "aretry", "aretrying", "budgets"]
__all__ += [
    "chain",
    "current_state",
    "hints",
    "last_result",
    "layers",
    "limits",
    "observe",
]
__all__ += ["policy_of", "presets", "resume", "retry", "retrying", "schedules"]
__all__ += ["state_of", "streams", "with_policy"]
