"""Sync and async budgets on Redis; they send the requests of a `LocalLedger`."""

import atexit
import weakref
from typing import Any, Generic, NoReturn, TypeVar, final

import redis
import redis.asyncio

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.budgets import TokenBucket
from retrykit.budgets._base import Budget
from retrykit.integrations.redis._local_ledger import LocalLedger, ScriptRequest

__all__ = ["SCRIPT", "AsyncRedisBudget", "RedisBudget", "flush_all", "parse_reply"]

Client = TypeVar("Client")

_YEAR = 365 * 86_400


class _BaseRedisBudget(Budget, Generic[Client]):
    """The part that sync and async budgets share; it sends no requests."""

    _awaited: bool

    @user_facing
    def __init__(
        self,
        client: Client,
        bucket: TokenBucket,
        *,
        key: str,
        flush_every: Duration = 1.0,
        expire_after: Duration = "1h",
    ) -> None:
        self.bucket: TokenBucket = check_instance(
            "bucket", bucket, TokenBucket, "write TokenBucket(500)"
        )
        self.key: str = _check_key(key)
        self.flush_every: float = parse_duration("flush_every", flush_every)
        self.expire_after: float = parse_duration("expire_after", expire_after)
        if not 1 <= self.expire_after <= _YEAR:
            raise invalid_setting(
                "expire_after",
                "a duration from 1s to 365d",
                expire_after,
                code="out-of-range",
            )
        self._script = self._register_script(client)
        self._ledger = LocalLedger(bucket, self.flush_every, repr(self))
        _budgets.add(self)

    def _register_script(self, client: Any) -> Any:
        register = getattr(client, "register_script", None)
        script = register(SCRIPT) if register else None
        if script is None or is_coroutine_function(script) != self._awaited:
            sync, asynchronous = "a redis.Redis", "a redis.asyncio.Redis"
            rule, suggestion = sync, f"AsyncRedisBudget takes {asynchronous}"
            if self._awaited:
                rule, suggestion = asynchronous, f"RedisBudget takes {sync}"
            # Only its type, since its repr may contain its password.
            raise invalid_setting(
                "client", rule, type(client), suggestion, code="async-mismatch"
            )
        return script

    @property
    def balance(self) -> float:
        """Tokens in the last reply of Redis; local tokens while it is unavailable.

        Before the first reply it is *capacity*. Reading it sends no request; `flush`
        does.
        """
        return float(self._ledger.tokens)

    def refund(self, cost: float, /) -> None:
        """Refund the cost of a retry that was not made, with the next request."""
        self._ledger.add(int(cost))

    def _script_arguments(self, request: ScriptRequest) -> dict[str, list[Any]]:
        expiry = int(self.expire_after * 1000)
        args = [self.bucket.capacity, request.change, request.cost, expiry]
        return {"keys": [self.key], "args": args}

    def __repr__(self) -> str:
        # Without the client, whose repr contains its address and maybe a password.
        name = type(self).__name__
        return f"<{name} of {self.bucket.expression}, key={self.key!r}>"

    def __reduce__(self) -> NoReturn:
        msg = f"cannot pickle a {type(self).__name__}, as its client is a connection"
        msg += "; create one in each process, with the same key"
        raise TypeError(msg)


def _check_key(key: object) -> str:
    if not isinstance(key, str) or not key:
        rule = "a non-empty string such as 'retrykit:payments'"
        raise invalid_setting("key", rule, key)
    return key


_budgets: "weakref.WeakSet[_BaseRedisBudget[Any]]" = weakref.WeakSet()


@final
class RedisBudget(_BaseRedisBudget[redis.Redis]):
    """Token bucket that processes share through Redis, for `retry`.

    The tokens are a number under one key. Each withdrawal is one atomic script, so that
    no token is spent twice. In an event loop use `AsyncRedisBudget`, since this one
    would block the loop.

    >>> from redis import Redis
    >>> from redis.backoff import NoBackoff
    >>> from redis.retry import Retry
    >>> client = Redis(
    ...     socket_connect_timeout=0.1,  # a retry may wait this long for Redis
    ...     socket_timeout=0.1,
    ...     retry=Retry(NoBackoff(), 0),  # otherwise redis-py may pay twice
    ... )
    >>> RedisBudget(client, TokenBucket(capacity=1000), key="retrykit:payments")
    <RedisBudget of TokenBucket(capacity=1000), key='retrykit:payments'>

    **Rewards** for calls that succeed at once are collected locally, and sent by the
    first call after *flush_every*, or with the next withdrawal. They are also sent by
    `flush`, and when the interpreter exits. They are lost if a process is killed, or if
    a process of `multiprocessing` does not flush. The refund of a retried call is sent
    at once.

    **While Redis is unavailable** (down, slow, read-only, full, loading, or with
    another type of value under the key) each process counts its own tokens: it starts
    with the last reply of Redis, or with *capacity* if there was none yet. The logger
    ``retrykit`` gets one warning, and one info message when Redis is back. Requests are
    tried again after 1, 2, 4, ... 30 s. Once Redis is back, the costs paid locally,
    less the rewards, are subtracted from its tokens, which do not fall below 0.

    **When in doubt, there are fewer retries**: if a script is sent and there is no
    reply, the rewards that it carried are lost, and a retry may be paid twice.

    **The key** expires if it is unused for *expire_after*; an absent key is a full
    bucket. All budgets with the same key must have the same settings.

    Args:
        client: Redis client. Give it short timeouts, and no retries.
        bucket: The settings: capacity, cost, costs, reward and refunds, of at most
            2**53 - 1 tokens. The tokens of this object are not used.
        key: Key of the tokens. No other program may use it.
        flush_every: How long rewards are collected. A duration, >= 0.
        expire_after: How long an unused key is kept. A duration, from 1 s to 365 d.

    Raises:
        ConfigError: *client* is async, or another argument is invalid.
    """

    _awaited = False

    def withdraw(self, error: Exception | None, /) -> float | None:
        """Pay for a retry; return its cost, or None if the tokens do not suffice."""
        cost = self._ledger.cost(error)
        request = self._ledger.next_request(cost)
        return (
            self._ledger.pay_locally(cost) if request is None else self._send(request)
        )

    def deposit(self, cost: float | None, /) -> None:
        """Refund *cost* if there is one and the bucket refunds; else add the reward."""
        request = self._ledger.add_reward(None if cost is None else int(cost))
        if request is not None:
            self._send(request)

    def flush(self) -> float:
        """Send the collected rewards, and return how many tokens Redis has.

        While Redis is unavailable, the local tokens are returned.
        """
        request = self._ledger.next_request()
        if request is not None:
            self._send(request)
        return self.balance

    def _send(self, request: ScriptRequest) -> int | None:
        try:
            reply = self._script(**self._script_arguments(request))
            granted, tokens = parse_reply(reply)
        except Exception as fault:  # noqa: BLE001  no failure of Redis may end the call
            return self._ledger.apply_failure(request, fault)
        self._ledger.apply_reply(request, tokens)
        return request.cost if granted else None


@final
class AsyncRedisBudget(_BaseRedisBudget[redis.asyncio.Redis]):
    """Token bucket that processes share through Redis, for `aretry`.

    It may share a key with a `RedisBudget`. Nothing is sent when the interpreter exits:
    await `flush` before you close the client, or the last rewards are lost. If a call
    is cancelled during a request, the rewards in that request are lost.

    >>> from redis.asyncio import Redis
    >>> budget = AsyncRedisBudget(Redis(), TokenBucket(), key="retrykit:mail")
    >>> budget.balance
    500.0

    It takes the arguments of `RedisBudget`, and raises the same errors, but the client
    must be async, and used in a single asyncio event loop.
    """

    _awaited = True

    async def withdraw(self, error: Exception | None, /) -> float | None:
        """Pay for a retry; return its cost, or None if the tokens do not suffice."""
        cost = self._ledger.cost(error)
        request = self._ledger.next_request(cost)
        if request is None:
            return self._ledger.pay_locally(cost)
        return await self._send(request)

    async def deposit(self, cost: float | None, /) -> None:
        """Refund *cost* if there is one and the bucket refunds; else add the reward."""
        request = self._ledger.add_reward(None if cost is None else int(cost))
        if request is not None:
            await self._send(request)

    async def flush(self) -> float:
        """Send the collected rewards, as `RedisBudget.flush` does."""
        request = self._ledger.next_request()
        if request is not None:
            await self._send(request)
        return self.balance

    async def _send(self, request: ScriptRequest) -> int | None:
        try:
            reply = await self._script(**self._script_arguments(request))
            granted, tokens = parse_reply(reply)
        except Exception as fault:  # noqa: BLE001  no failure of Redis may end the call
            return self._ledger.apply_failure(request, fault)
        self._ledger.apply_reply(request, tokens)
        return request.cost if granted else None


@atexit.register
def flush_all() -> None:
    """Send the rewards that the sync budgets of this process have collected."""
    for budget in list(_budgets):
        if isinstance(budget, RedisBudget) and budget._ledger.unsent:  # noqa: SLF001  its own
            budget.flush()


# An absent key means a full bucket, so a full bucket needs no key. A request without
# change and cost writes nothing: monitoring may read from a replica, and does not keep
# the key alive.
SCRIPT = """\
local capacity, change = tonumber(ARGV[1]), tonumber(ARGV[2])
local cost, keep = tonumber(ARGV[3]), ARGV[4]
local held = redis.call('GET', KEYS[1])
if held and not string.find(held, '^%d+$') then
    return redis.error_reply('WRONGTYPE the key holds no number of tokens')
end
local left = held and tonumber(held) or capacity
left = math.min(math.max(left + change, 0), capacity)
local granted = cost <= left
if granted then
    left = left - cost
end
if change ~= 0 or cost ~= 0 then
    if left < capacity then
        redis.call('SET', KEYS[1], left, 'PX', keep)
    elseif held then
        redis.call('DEL', KEYS[1])
    end
end
return {granted and 1 or 0, left}
"""
"""Lua script that applies a change to the tokens of a key, then pays for a retry.

Its arguments are the key, and the capacity, the change, the cost and the expiry of the
key in milliseconds. It returns 1 if the retry is paid, else 0; and the remaining
tokens.
"""


def parse_reply(reply: object) -> tuple[int, int]:
    """Parse the reply of the script.

    >>> parse_reply([1, 495])
    (1, 495)
    >>> parse_reply(b"OK")
    Traceback (most recent call last):
    ...
    ValueError: the script replied b'OK'

    Returns:
        1 if the retry is paid, else 0; and the remaining tokens.
    """
    match reply:
        case [int(granted), int(tokens)]:
            return granted, tokens
    msg = f"the script replied {reply!r}"
    raise ValueError(msg)
