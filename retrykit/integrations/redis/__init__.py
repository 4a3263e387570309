"""Transient errors of redis-py, and budgets and limits that processes share on Redis.

Needs the extra ``redis``. Switch off redis-py's own retries, or attempts multiply::

    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    from retrykit import retry
    from retrykit.integrations import redis as retries

    client = redis.Redis(retry=Retry(NoBackoff(), 0))

    @retry(retries.policy(max_attempts=4))
    def store(key, value):
        client.set(key, value)

A command whose reply was lost may have been executed: retry only commands that can be
repeated, such as ``SET``, and not ``INCR`` or ``LPUSH``.

`RedisBudget` is for `retry`, and `AsyncRedisBudget` for `aretry`. A
`RedisCircuitBreaker` opens in all processes when it is open in many of them. A
`RedisRateLimit`, and an `AsyncRedisRateLimit` in coroutines, limits the calls of all
processes together.
"""

from retrykit._internal.extras import needs

with needs("redis"):
    from retrykit.integrations.redis._budgets import AsyncRedisBudget, RedisBudget
    from retrykit.integrations.redis._circuit_breakers import RedisCircuitBreaker
    from retrykit.integrations.redis._fleet_view import FleetState
    from retrykit.integrations.redis._rate_limits import (
        AsyncRedisRateLimit,
        RedisRateLimit,
    )
    from retrykit.integrations.redis._transient_errors import policy, transient

__all__ = ["AsyncRedisBudget", "AsyncRedisRateLimit", "FleetState", "RedisBudget"]
__all__ += ["RedisCircuitBreaker", "RedisRateLimit", "policy", "transient"]
