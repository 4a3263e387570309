"""Retry budgets that processes share through Redis.

Needs the extra ``retrykit[redis]``. `RedisBudget` is for `retry`, and
`AsyncRedisBudget` for `aretry`.
"""

from retrykit.integrations._extras import needs

with needs("redis"):
    from retrykit.integrations.redis.budgets import AsyncRedisBudget, RedisBudget

__all__ = ["AsyncRedisBudget", "RedisBudget"]
