"""Sync and async rate limits on Redis: one script for each call."""

import math
from typing import Any, Generic, NoReturn, TypeVar, final

import redis
import redis.asyncio

from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import duration_in_words
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.loop_clock import async_clock
from retrykit._internal.validation import (
    check_instance,
    check_text,
    invalid_setting,
    user_facing,
)
from retrykit.integrations.redis._availability import Availability
from retrykit.limits._base import Limit
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._rate import RateLimit, RateState

__all__ = ["RATE_SCRIPT", "AsyncRedisRateLimit", "RedisRateLimit", "parse_time"]

Client = TypeVar("Client")


class _BaseRedisRateLimit(Limit, Generic[Client]):
    """The part that sync and async limits share; it sends no requests."""

    _awaited: bool

    @user_facing
    def __init__(
        self,
        client: Client,
        name: str,
        limit: RateLimit,
        *,
        local: RateLimit | None = None,
    ) -> None:
        self.name: str = check_text("name", name)
        suggestion = 'write RateLimit(100, per="1s")'
        self.limit: RateLimit = check_instance("limit", limit, RateLimit, suggestion)
        self.local: RateLimit = limit
        if local is not None:
            self.local = check_instance("local", local, RateLimit, suggestion)
        self._script = self._register_script(client)
        self._keys = [f"retrykit:rate:{name}"]
        # At most `room` calls in any `window` seconds.
        room = 1 if limit.spread else limit.calls
        window = limit.per / limit.calls if limit.spread else limit.per
        self._arguments = [room, _microseconds(window), _microseconds(limit.max_wait)]
        many = f"{limit.calls} call{'' if limit.calls == 1 else 's'}"
        self._reason = f"busy: {many} per {duration_in_words(limit.per)}"
        self._is_busy = False
        self._availability = Availability(
            repr(self), "each process counts its own calls"
        )

    def _register_script(self, client: Any) -> Any:
        register = getattr(client, "register_script", None)
        script = register(RATE_SCRIPT) if register else None
        if script is None or is_coroutine_function(script) != self._awaited:
            sync, asynchronous = "a redis.Redis", "a redis.asyncio.Redis"
            rule, suggestion = sync, f"AsyncRedisRateLimit takes {asynchronous}"
            if self._awaited:
                rule, suggestion = asynchronous, f"RedisRateLimit takes {sync}"
            # Only its type, since its repr may contain its password.
            raise invalid_setting(
                "client", rule, type(client), suggestion, code="async-mismatch"
            )
        return script

    @property
    def state(self) -> RateState:
        """The state at the last reply of Redis: "free", or "busy" if a call must wait.

        While Redis is unavailable, it is the state of this process's limit.
        """
        if self._availability.failures:
            return self.local.state
        return "busy" if self._is_busy else "free"

    def acquire(self) -> Lease | Refusal:
        """Ask to make one call, without waiting, and without a request.

        Returns:
            A lease with an infinite delay, which asks Redis when it is waited for. In a
            pause after a failure of Redis, the answer of this process's limit.
        """
        failures = self._availability.begin()
        return self.local.acquire() if failures is None else _Lease(self, failures)

    def ask(self, failures: int, at_most: float | None) -> Refusal | None:  # noqa: ARG002
        """Raise a TypeError; `RedisRateLimit` waits for a call's turn here."""
        raise self._wrong_kind()

    async def ask_async(
        self,
        failures: int,  # noqa: ARG002
        at_most: float | None,  # noqa: ARG002
    ) -> Refusal | None:
        """Raise a TypeError; `AsyncRedisRateLimit` waits for a call's turn here."""
        raise self._wrong_kind()

    def _wrong_kind(self) -> TypeError:
        other, calls = "AsyncRedisRateLimit", "coroutines"
        if self._awaited:
            other, calls = "RedisRateLimit", "sync functions"
        return TypeError(f"{self!r} is not for {calls}; use {other}")

    def _script_arguments(self, at_most: float | None) -> dict[str, list[Any]]:
        longest = self.limit.max_wait
        if at_most is not None:
            longest = min(longest, at_most)
        return {"keys": self._keys, "args": [*self._arguments, _microseconds(longest)]}

    def _read(self, failures: int, reply: object) -> tuple[float, Refusal | None]:
        """Return how long the call must wait, in seconds, and its refusal or None."""
        granted, delay = parse_time(reply)
        self._availability.reply(failures)
        self._is_busy = delay > 0
        return delay, None if granted else Refusal(self._reason, delay)

    def __repr__(self) -> str:
        # Without the client, whose repr contains its address and maybe a password.
        return f"<{type(self).__name__} {self.name!r} of {self.limit.expression}>"

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        msg = f"cannot pickle a {kind}, as its client is a connection"
        msg += "; create one in each process, with the same name"
        raise TypeError(msg)


@final
class RedisRateLimit(_BaseRedisRateLimit[redis.Redis]):
    """Rate limit that processes share on Redis, for sync functions.

    All processes together make at most as many calls in any period as *limit* allows,
    whenever the period begins. Each call gets its own time from one atomic script, and
    waits for it; or it is refused, and uses up no time.

    >>> from redis import Redis
    >>> client = Redis(socket_connect_timeout=0.5, socket_timeout=0.5)
    >>> RedisRateLimit(client, "api", RateLimit(100, per="1s"))
    <RedisRateLimit 'api' of RateLimit(100)>

    Each call waits for Redis. `acquire` does not: the request is sent when its lease is
    waited for, which policies, decorators and blocks do. Times are measured by the
    server's clock, in microseconds. A time that was given out stays used up if its call
    is interrupted.

    **While Redis is unavailable** each process counts its own calls, with *local*:
    together they may exceed the limit, so give each process its share if that matters.
    The logger ``retrykit`` gets one warning, and one info message when Redis is back.
    Requests are tried again after 1, 2, 4, ... 30 s.

    Args:
        client: Redis client. Give it short timeouts, and no retries: a script that is
            sent twice uses up the times of two calls.
        name: Name of the limit in Redis and in errors. All limits with the same name
            must have the same settings.
        limit: The settings. Redis keeps the times of as many calls as the limit allows
            in a period.
        local: The limit of this process while Redis is unavailable; by default *limit*.

    Raises:
        ConfigError: *client* is async, or another argument is invalid.

    Source:
        A log of the times of the last calls, as in `RateLimit`. It does not use the
        library "limits" (5.8), whose strategies answer yes or no: they reserve no time
        to wait for, and its moving window uses each client's clock.
    """

    _awaited = False

    def ask(self, failures: int, at_most: float | None) -> Refusal | None:
        """Wait until a call may begin, as `Lease.wait` does."""
        try:
            reply = self._script(**self._script_arguments(at_most))
            delay, refusal = self._read(failures, reply)
        except Exception as fault:  # noqa: BLE001  no failure of Redis may end the call
            self._availability.fail(failures, fault)
            answer = self.local.acquire()
            if isinstance(answer, Refusal):
                return answer
            return answer.wait(at_most) if answer.delay else None
        if refusal is None and delay:
            sync_clock.sleep(delay)
        return refusal


@final
class AsyncRedisRateLimit(_BaseRedisRateLimit[redis.asyncio.Redis]):
    """Rate limit that processes share on Redis, for asyncio coroutines.

    It may share a name with a `RedisRateLimit`, takes the same arguments, and raises
    the same errors, but the client must be async, and used in a single event loop. If
    a call is cancelled while it waits, its time stays used up.

    >>> from redis.asyncio import Redis
    >>> limit = AsyncRedisRateLimit(Redis(), "mail", RateLimit(1, per="2s"))
    >>> limit.state
    'free'
    """

    _awaited = True

    async def ask_async(self, failures: int, at_most: float | None) -> Refusal | None:
        """Wait until a call may begin, as `Lease.wait_async` does."""
        try:
            reply = await self._script(**self._script_arguments(at_most))
            delay, refusal = self._read(failures, reply)
        except Exception as fault:  # noqa: BLE001  no failure of Redis may end the call
            self._availability.fail(failures, fault)
            answer = self.local.acquire()
            if isinstance(answer, Refusal):
                return answer
            return await answer.wait_async(at_most) if answer.delay else None
        if refusal is None and delay:
            await async_clock.sleep(delay)
        return refusal


@final
class _Lease(Lease):
    """A lease that gets the time of its call only when it is waited for."""

    __slots__ = ("_failures", "_limit")

    delay = math.inf

    def __init__(self, limit: _BaseRedisRateLimit[Any], failures: int) -> None:
        self._limit = limit
        self._failures = failures

    @property
    def generation(self) -> int:
        """0, since the limit does not count its states."""
        return 0

    def succeeded(self) -> None:
        """Do nothing: the time of the call is used up."""

    def failed(self, error: Exception | None = None) -> None:
        """Do nothing, as `succeeded` does."""

    def ignored(self) -> None:
        """Do nothing, as `succeeded` does."""

    def wait(self, at_most: float | None = None) -> Refusal | None:
        """Ask Redis for a time; block this thread until then, or return a refusal."""
        return self._limit.ask(self._failures, at_most)

    async def wait_async(self, at_most: float | None = None) -> Refusal | None:
        """Ask Redis for a time; suspend this task until then, or return a refusal."""
        return await self._limit.ask_async(self._failures, at_most)

    def __repr__(self) -> str:
        return f"<lease of {self._limit!r}>"


def _microseconds(seconds: float) -> int:
    # More than a year is as good as forever, and fits into a Lua number.
    return math.ceil(min(seconds, _LONGEST) * 1e6)


# In seconds.
_LONGEST = 400 * 86_400.0

# The list has the last times that were given, in order. A last time that no call could
# have been given shows that the server's clock was set back.
RATE_SCRIPT = """\
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local room, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = tonumber(redis.call('LINDEX', KEYS[1], -1) or 0)
local at, given = math.max(now, last), redis.call('LLEN', KEYS[1])
if last > now + tonumber(ARGV[3]) then
    redis.call('DEL', KEYS[1])
    at = now
elseif given >= room then
    at = math.max(now, redis.call('LINDEX', KEYS[1], given - room) + window)
end
local delay = at - now
if delay > tonumber(ARGV[4]) then
    return {0, delay}
end
redis.call('RPUSH', KEYS[1], string.format('%.0f', at))
redis.call('LTRIM', KEYS[1], -room, -1)
redis.call('PEXPIRE', KEYS[1], math.ceil((delay + window) / 1000))
return {1, delay}
"""
"""Lua script that gives a time to a call.

Its arguments are the key, the number of calls in any period, and in microseconds: the
period, the longest time that any call waits, and the longest time that this one waits.
It returns 1 if it gave a time, else 0; and the microseconds until then.
"""


def parse_time(reply: object) -> tuple[int, float]:
    """Parse the reply of the script.

    >>> parse_time([1, 2500])
    (1, 0.0025)
    >>> parse_time(b"OK")
    Traceback (most recent call last):
    ...
    ValueError: the script replied b'OK'

    Returns:
        1 if a time was given, else 0; and the delay in seconds.
    """
    match reply:
        case [int(granted), int(delay)]:
            return granted, delay / 1e6
    msg = f"the script replied {reply!r}"
    raise ValueError(msg)
