# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of budgets on Redis; checked, never run."""

import redis
import redis.asyncio

from retrykit import Policy
from retrykit.budgets import TokenBucket
from retrykit.integrations.redis import AsyncRedisBudget, RedisBudget

BLOCKING = redis.Redis()
AWAITED = redis.asyncio.Redis()
BUCKET = TokenBucket()


async def flushed() -> tuple[float, float | None, float]:
    budget = AsyncRedisBudget(AWAITED, BUCKET, key="k", flush_every="500ms")
    await budget.deposit(None)
    return await budget.flush(), await budget.withdraw(OSError()), budget.balance


def flushed_blocking() -> tuple[float, float | None, float]:
    budget = RedisBudget(BLOCKING, BUCKET, key="k", expire_after="1d")
    budget.deposit(5)
    return budget.flush(), budget.withdraw(None), budget.balance


Policy(budget=RedisBudget(BLOCKING, BUCKET, key="k"))
Policy(budget=AsyncRedisBudget(AWAITED, BUCKET, key="k"))
RedisBudget(AWAITED, BUCKET, key="k")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
AsyncRedisBudget(BLOCKING, BUCKET, key="k")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
RedisBudget(BLOCKING, key="k")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
