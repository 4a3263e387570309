"""Retry budgets: limits on retries that many calls share.

Backoff spreads retries out, but does not reduce their number. For that, all calls to a
service share a budget, which stops retries when too many calls fail.

>>> bucket = TokenBucket()
>>> bucket.withdraw(OSError()), bucket.balance
(5, 495.0)

`TokenBucket` is refilled by successes, `RatioBudget` by requests, and `Throttle` stops
retries while many attempts fail. Each process has its own budget; `FleetBudget` is for
services that many processes call. To write your own, subclass `Budget`. Threads and
tasks may share any budget. A `Registry` holds one budget for each key; `shared` returns
the budget that the whole process shares for a scope, and `balances` lists the balances
of these shared budgets.

The balance of a built-in budget never leaves its process. A budget that is copied,
pickled, or written with ``to_dict()`` and read by `budget_from_dict` comes back full;
if it has a scope, it comes back as the shared budget of that scope. A forked child
process continues with the current balance and never waits for a thread of its parent.
To share a `TokenBucket` between processes, see `retrykit.integrations.redis`.
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.budgets._base import Budget
    from retrykit.budgets._fleet import FleetBudget
    from retrykit.budgets._ratio import RatioBudget
    from retrykit.budgets._registry import Registry
    from retrykit.budgets._serialization import budget_from_dict
    from retrykit.budgets._shared_budgets import balances, shared
    from retrykit.budgets._throttle import Throttle
    from retrykit.budgets._token_bucket import TokenBucket
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "budgets._base": "Budget",
            "budgets._shared_budgets": "balances shared",
            "budgets._fleet": "FleetBudget",
            "budgets._ratio": "RatioBudget",
            "budgets._registry": "Registry",
            "budgets._serialization": "budget_from_dict",
            "budgets._throttle": "Throttle",
            "budgets._token_bucket": "TokenBucket",
        },
    )

__all__ = ["Budget", "FleetBudget", "RatioBudget", "Registry", "Throttle"]
__all__ += ["TokenBucket", "balances", "budget_from_dict", "shared"]
