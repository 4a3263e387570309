"""What pays for retries, so that they do not make an outage worse.

Backoff spreads retries out; it makes them no fewer. A budget does: it is shared
by all calls of a service, and when too many of them fail it pays for no more.

>>> bucket = TokenBucket()
>>> bucket.withdraw(OSError()), bucket.balance
(5, 495.0)

`TokenBucket` is paid by success, `RatioBudget` by requests, and `Throttle` stops
while failures are many; for one of your own derive from `Budget`. All may be
shared by threads and tasks. A `Registry` holds one for each key; `shared` finds
one by a scope in the whole process, and `balances` shows all of those.

What is left in a budget stays in its process: copied, pickled or written with
``to_dict()``, it comes back as a new one, which is full, and one with a scope as
the shared one of its scope. The child of a fork goes on with what was left, and
waits for no thread of its parent. What processes share is a `TokenBucket` on
Redis: see `retrykit.integrations.redis`.
"""

from typing import TYPE_CHECKING

from retrykit._internal.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from retrykit.budgets.base import Budget
    from retrykit.budgets.ratio import RatioBudget
    from retrykit.budgets.registry import Registry
    from retrykit.budgets.scoped import balances, shared
    from retrykit.budgets.serialization import budget_from
    from retrykit.budgets.throttle import Throttle
    from retrykit.budgets.token_bucket import TokenBucket
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "retrykit.budgets.base": ["Budget"],
            "retrykit.budgets.scoped": ["balances", "shared"],
            "retrykit.budgets.ratio": ["RatioBudget"],
            "retrykit.budgets.registry": ["Registry"],
            "retrykit.budgets.serialization": ["budget_from"],
            "retrykit.budgets.throttle": ["Throttle"],
            "retrykit.budgets.token_bucket": ["TokenBucket"],
        },
    )

__all__ = ["Budget", "RatioBudget", "Registry", "Throttle", "TokenBucket"]
__all__ += ["balances", "budget_from", "shared"]
