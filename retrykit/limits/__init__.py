"""Limits around an attempt: circuit breakers, rates, concurrency.

A limit is asked before an attempt is made. It answers with a `Lease`, to which the
outcome is reported, or with a `Refusal`.

>>> breaker = CircuitBreaker(consecutive_failures=2, open_for="30s")
>>> lease = breaker.acquire()
>>> lease.failed()
>>> breaker.acquire().failed()
>>> breaker.state, breaker.acquire().reason
('open', 'open, as 2 calls in a row failed')

A `CircuitBreaker` refuses calls for a time after too many have failed. `Concurrency`
limits how many calls run at once, and `RateLimit` how many there are in any period:
others wait, or are refused. An `AdaptiveRateLimit` delays calls once a service
has throttled one of them. `Adapted` wraps a limiter from another library. Limits go in
the `admission` of a policy, decorate functions, and guard blocks: ``with
breaker.guard():``. Threads and tasks may share them. A `Registry` holds one limit for
each key, such as a host; `shared` returns the limit that the whole process shares for a
scope, and `states` lists the states of these shared limits.

`AIMD`, `Gradient2` and `Vegas` adapt how many calls may run at once to how long calls
take.

The state of a limit never leaves its process: copied, pickled or written with
``to_dict()``, a limit comes back as a new one, and a limit with a scope comes back as
the shared limit of that scope. A forked child process continues with the current state,
and never waits for a thread of its parent. `Adapted` limits are an exception: only
their limiter has a state, and copies share it.
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.limits._adapted import Adapted
    from retrykit.limits._adaptive import AIMD, AdaptiveLimit, Gradient2, Vegas
    from retrykit.limits._adaptive_rate import AdaptiveRateLimit, AdaptiveRateMetrics
    from retrykit.limits._base import Limit
    from retrykit.limits._circuit_breaker import CircuitBreaker
    from retrykit.limits._circuit_state import CircuitChange, CircuitMetrics
    from retrykit.limits._concurrency import Adaptive, Concurrency, ConcurrencyMetrics
    from retrykit.limits._leases import Lease, Refusal
    from retrykit.limits._rate import RateLimit, RateMetrics
    from retrykit.limits._registry import Registry
    from retrykit.limits._serialization import limit_from_dict
    from retrykit.limits._shared_limits import shared, states
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "limits._adapted": "Adapted",
            "limits._adaptive": "AIMD AdaptiveLimit Gradient2 Vegas",
            "limits._adaptive_rate": "AdaptiveRateLimit AdaptiveRateMetrics",
            "limits._base": "Limit",
            "limits._circuit_breaker": "CircuitBreaker",
            "limits._circuit_state": "CircuitChange CircuitMetrics",
            "limits._concurrency": "Adaptive Concurrency ConcurrencyMetrics",
            "limits._leases": "Lease Refusal",
            "limits._rate": "RateLimit RateMetrics",
            "limits._registry": "Registry",
            "limits._serialization": "limit_from_dict",
            "limits._shared_limits": "shared states",
        },
    )

__all__ = ["AIMD", "Adapted", "Adaptive", "AdaptiveLimit", "AdaptiveRateLimit"]
__all__ += ["AdaptiveRateMetrics", "CircuitBreaker", "CircuitChange"]
__all__ += ["CircuitMetrics", "Concurrency", "ConcurrencyMetrics", "Gradient2", "Lease"]
__all__ += ["Limit", "RateLimit", "RateMetrics", "Refusal", "Registry", "Vegas"]
__all__ += ["limit_from_dict", "shared", "states"]
