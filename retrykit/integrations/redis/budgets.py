"""Budgets on Redis, one for each colour: they ask, and `LocalLedger` counts."""

import atexit
import weakref
from typing import Any, Generic, NoReturn, TypeVar, final

import redis
import redis.asyncio

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.budgets import TokenBucket
from retrykit.budgets.base import Budget
from retrykit.integrations.redis.local_ledger import Ask, LocalLedger
from retrykit.integrations.redis.script import SCRIPT, understood

__all__ = ["AsyncRedisBudget", "RedisBudget", "flush_all"]

Client = TypeVar("Client")

_YEAR = 365 * 86_400


class _OnRedis(Budget, Generic[Client]):
    """What both colours are; no call is made here."""

    _awaited: bool

    def __init__(
        self,
        client: Client,
        bucket: TokenBucket,
        *,
        key: str,
        flush_every: Duration = 1.0,
        expire_after: Duration = "1h",
    ) -> None:
        self.bucket = check_instance(
            "bucket", bucket, TokenBucket, "write TokenBucket(500)"
        )
        self.key = _checked(key)
        self.flush_every = parse_duration("flush_every", flush_every)
        self.expire_after = parse_duration("expire_after", expire_after)
        if not 1 <= self.expire_after <= _YEAR:
            raise invalid_setting(
                "expire_after", "a duration from 1s to 365d", expire_after
            )
        self._script = self._scripted(client)
        self._account = LocalLedger(bucket, self.flush_every, repr(self))
        _made.add(self)

    def _scripted(self, client: Any) -> Any:
        register = getattr(client, "register_script", None)
        script = register(SCRIPT) if register else None
        if script is None or is_coroutine_function(script) != self._awaited:
            kinds = ["a redis.Redis", "a redis.asyncio.Redis"]
            other = "RedisBudget" if self._awaited else "AsyncRedisBudget"
            suggestion = f"{other} takes {kinds[not self._awaited]}"
            # Of its type only is told, as its repr may tell its password.
            raise invalid_setting(
                "client", kinds[self._awaited], type(client), suggestion
            )
        return script

    @property
    def balance(self) -> float:
        """Tokens that Redis had last; while it is away, those that are left here.

        It is read without asking Redis; `flush` asks.
        """
        return float(self._account.tokens)

    def _sent(self, ask: Ask) -> dict[str, list[Any]]:
        keep = int(self.expire_after * 1000)
        args = [self.bucket.capacity, ask.change, ask.cost, keep]
        return {"keys": [self.key], "args": args}

    def __repr__(self) -> str:
        # The client may tell its password, and does tell where it goes.
        name = type(self).__name__
        return f"<{name} of {self.bucket.expression}, key={self.key!r}>"

    def __reduce__(self) -> NoReturn:
        msg = f"cannot pickle a {type(self).__name__}, as its client is a connection"
        msg += "; make one in each process, with the same key"
        raise TypeError(msg)


def _checked(key: object) -> str:
    if not isinstance(key, str) or not key:
        raise invalid_setting(
            "key", "a non-empty string such as 'retrykit:payments'", key
        )
    return key


_made: "weakref.WeakSet[_OnRedis[Any]]" = weakref.WeakSet()


@final
class RedisBudget(_OnRedis[redis.Redis]):
    """A `TokenBucket` that processes share, for `retry`: it blocks.

    The tokens are a number under one key. Each withdrawal is one script, which
    Redis runs at once and alone, so no token is given twice. In an event loop
    use `AsyncRedisBudget`: this one would stop the loop while it asks.

    >>> from redis import Redis
    >>> from redis.backoff import NoBackoff
    >>> from redis.retry import Retry
    >>> client = Redis(
    ...     socket_connect_timeout=0.1,  # a retry may wait for Redis so long
    ...     socket_timeout=0.1,
    ...     retry=Retry(NoBackoff(), 0),  # else redis-py asks, and pays, again
    ... )
    >>> RedisBudget(client, TokenBucket(capacity=1000), key="retrykit:payments")
    <RedisBudget of TokenBucket(capacity=1000), key='retrykit:payments'>

    **Rewards** for calls that succeed at once are gathered here and sent once in
    *flush_every*, by a call that is made then, or with the next withdrawal;
    `flush` sends them too, and so does the end of the interpreter. A process
    that is killed loses them, and so does one of `multiprocessing` that does not
    flush. What a retried call gives back is sent at once.

    **While Redis is away** (it is gone, slow, read-only, full, loading, or has
    something else under the key) each process counts for itself: it starts with
    what Redis had last, or *capacity* if it never answered. The logger
    ``retrykit`` is told one warning, and one info when Redis is back; it is
    asked again after 1, 2, 4, ... 30 s. Then what was taken meanwhile is
    charged, less what was given, and never below 0.

    **In doubt there are fewer retries**: when a script is sent and no answer
    comes, rewards that went with it are lost, and a retry may be paid twice.

    **The key** expires when nothing is taken or given for *expire_after*; an
    absent key is a full bucket. The budgets of a key must have equal settings.

    Args:
        client: What talks to Redis. Give it short timeouts, and no retries.
        bucket: The settings: capacity, cost, costs and reward, of 2**53 - 1
            tokens at most. The bucket itself is left as it is.
        key: Under what the tokens are kept, by this and no other program.
        flush_every: How long rewards are gathered. A duration, >= 0.
        expire_after: How long the key is kept if it is not used. A duration,
            from 1 s to 365 d.

    Raises:
        ConfigError: A parameter is none of these.
    """

    _awaited = False

    def withdraw(self, error: Exception | None, /) -> float | None:
        """Take what a retry after this error costs, if there is as much."""
        cost = self._account.cost(error)
        ask = self._account.next_request(cost)
        return self._account.pay_locally(cost) if ask is None else self._answer(ask)

    def deposit(self, cost: float | None, /) -> None:
        """Give back what the last retry had taken, or the reward for none."""
        ask = self._account.add_reward(None if cost is None else int(cost))
        if ask is not None:
            self._answer(ask)

    def flush(self) -> float:
        """Send what is gathered, and return how many tokens Redis has.

        While it is away, nothing is sent, and what is left here is returned.
        """
        ask = self._account.next_request()
        if ask is not None:
            self._answer(ask)
        return self.balance

    def _answer(self, ask: Ask) -> int | None:
        try:
            granted, tokens = understood(self._script(**self._sent(ask)))
        except Exception as fault:  # noqa: BLE001  whatever it is, the call goes on
            return self._account.failed(ask, fault)
        self._account.apply_reply(ask, tokens)
        return ask.cost if granted else None


@final
class AsyncRedisBudget(_OnRedis[redis.asyncio.Redis]):
    """A `RedisBudget` for `aretry`: it awaits a client of `redis.asyncio`.

    Both may share a key. As nothing can be awaited when the interpreter ends,
    await `flush` before the client is closed, or the last rewards are lost. A
    call that is cancelled while it asks loses what it sent.

    >>> from redis.asyncio import Redis
    >>> budget = AsyncRedisBudget(Redis(), TokenBucket(), key="retrykit:mail")
    >>> budget.balance
    500.0

    Args:
        client: What talks to Redis, in one event loop of asyncio.
        bucket: As for `RedisBudget`, and so are the others.
        key: Under what the tokens are kept.
        flush_every: How long rewards are gathered. A duration, >= 0.
        expire_after: How long the key is kept if it is not used. A duration,
            from 1 s to 365 d.

    Raises:
        ConfigError: A parameter is none of these.
    """

    _awaited = True

    async def withdraw(self, error: Exception | None, /) -> float | None:
        """Take what a retry after this error costs, if there is as much."""
        cost = self._account.cost(error)
        ask = self._account.next_request(cost)
        return (
            self._account.pay_locally(cost) if ask is None else await self._answer(ask)
        )

    async def deposit(self, cost: float | None, /) -> None:
        """Give back what the last retry had taken, or the reward for none."""
        ask = self._account.add_reward(None if cost is None else int(cost))
        if ask is not None:
            await self._answer(ask)

    async def flush(self) -> float:
        """Send what is gathered, and return how many tokens Redis has.

        While it is away, nothing is sent, and what is left here is returned.
        """
        ask = self._account.next_request()
        if ask is not None:
            await self._answer(ask)
        return self.balance

    async def _answer(self, ask: Ask) -> int | None:
        try:
            granted, tokens = understood(await self._script(**self._sent(ask)))
        except Exception as fault:  # noqa: BLE001  whatever it is, the call goes on
            return self._account.failed(ask, fault)
        self._account.apply_reply(ask, tokens)
        return ask.cost if granted else None


@atexit.register
def flush_all() -> None:
    """Send what every `RedisBudget` of this process has gathered, if anything."""
    for budget in list(_made):
        if isinstance(budget, RedisBudget) and budget._account.due:  # noqa: SLF001  its own
            budget.flush()
