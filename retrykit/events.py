"""Events of retried calls, which observers are notified of.

Observers are given to `Policy(observers=...)`, or to `observe`.
"""

from retrykit._core.events import (
    AttemptFailed,
    AttemptStarted,
    Event,
    EventHook,
    EventKind,
    GaveUp,
    HedgeStarted,
    Observer,
    RetryScheduled,
    Succeeded,
    Suspended,
    observe,
)
from retrykit._core.setting_types import EventHooks

__all__ = ["AttemptFailed", "AttemptStarted", "Event", "EventHook", "EventHooks"]
__all__ += ["EventKind", "GaveUp", "HedgeStarted", "Observer", "RetryScheduled"]
__all__ += ["Succeeded", "Suspended", "observe"]
