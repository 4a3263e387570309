"""Events of retried calls, which observers are notified of.

Observers are given to `Policy(observers=...)`, or to `observe`.
"""

from retrykit._core.events import (
    AttemptFailed,
    AttemptStarted,
    Event,
    EventHook,
    EventHooks,
    EventKind,
    GaveUp,
    Observer,
    RetryScheduled,
    Succeeded,
    Suspended,
    observe,
)

__all__ = ["AttemptFailed", "AttemptStarted", "Event", "EventHook", "EventHooks"]
__all__ += ["EventKind", "GaveUp", "Observer", "RetryScheduled", "Succeeded"]
__all__ += ["Suspended", "observe"]
