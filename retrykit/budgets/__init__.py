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

from retrykit.budget import Budget
from retrykit.budgets.described import balances, shared
from retrykit.budgets.ratio import RatioBudget
from retrykit.budgets.registry import Registry
from retrykit.budgets.stored import budget_from
from retrykit.budgets.throttle import Throttle
from retrykit.budgets.token_bucket import TokenBucket

__all__ = ["Budget", "RatioBudget", "Registry", "Throttle", "TokenBucket"]
__all__ += ["balances", "budget_from", "shared"]
