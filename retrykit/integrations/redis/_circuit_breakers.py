"""Circuit breaker whose state processes share on Redis."""

import uuid
from typing import Any, NoReturn, final

import redis

from retrykit._internal.clocks import sync_clock
from retrykit._internal.durations import Duration, parse_positive_duration
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_number,
    check_text,
    invalid_setting,
    user_facing,
)
from retrykit.errors import CircuitOpenError
from retrykit.integrations.redis._background_thread import background_thread
from retrykit.integrations.redis._fleet_view import FleetState, FleetView, Report
from retrykit.limits._base import Conditions, Limit
from retrykit.limits._circuit_breaker import CircuitBreaker
from retrykit.limits._circuit_state import CircuitChange, CircuitMetrics, CircuitState
from retrykit.limits._leases import Lease, Refusal

__all__ = ["CIRCUIT_SCRIPT", "RedisCircuitBreaker", "parse_fleet"]


@final
class RedisCircuitBreaker(ForkSafe, Limit):
    """Circuit breaker that opens in all processes when it is open in many of them.

    Each process has its own *breaker*, which decides by its own calls, and tells the
    others through Redis whether it is open. Once the breakers of a quorum of the
    processes that make calls are open, the breaker opens in each of them, so that a
    process does not have to fail first to learn what the others know. One process in
    trouble, such as one with a broken network, opens its own breaker only.

    >>> from redis import Redis
    >>> client = Redis(socket_connect_timeout=0.5, socket_timeout=0.5)
    >>> breaker = RedisCircuitBreaker(client, "api", CircuitBreaker(open_for="10s"))
    >>> breaker
    <RedisCircuitBreaker 'api' of CircuitBreaker(open_for=10.0)>
    >>> breaker.state
    'closed'

    **No call waits for Redis**, in threads or in coroutines: a thread that lives while
    calls are made sends one script every *refresh_every*, and at once if the breaker
    opens or closes. So a process learns about the others up to *refresh_every* late.
    Under `virtual_time` there is no thread: call `refresh`.

    **It opens for all** when the breakers of at least *at_least* processes are open,
    and of at least the share *quorum* of the live processes. All processes count alike,
    however many calls they make. A process is alive until *expire_after* has passed
    since its last report; it reports while it makes calls, and while it is open. A
    process whose own calls opened its breaker refuses calls until its open time ends;
    the others refuse them until enough open times have ended for the quorum to be lost.
    In either case, the breaker is half-open after that, and sends its own probes. A
    breaker that opened only because of the others is not counted as open, so openings
    do not sustain themselves.

    **It closes as each breaker does**: a breaker whose probes succeeded, or that was
    closed by hand, stays closed whatever the others reported earlier. Only their later
    openings open it again.

    **While Redis is unavailable** each process decides alone, with its own breaker. The
    logger ``retrykit`` gets one warning, and one info message when Redis is back.
    Requests are tried again after 1, 2, 4, ... 30 s.

    **Time** is measured by the server: processes report how long ago they opened or
    closed, and for how long they stay open. Their clocks need not agree.

    Args:
        client: A sync Redis client, even for coroutines. Give it short timeouts.
        name: Name of the breaker in Redis and in errors: processes that call the same
            service use the same name.
        breaker: The breaker of this process; a new `CircuitBreaker` by default.
        quorum: Share of the processes that must be open, 0 < quorum <= 1.
        at_least: Number of processes that must be open. Count, >= 2.
        refresh_every: How often the processes exchange their states. A duration > 0.
        expire_after: How long a process counts after its last report. A duration, at
            least twice *refresh_every*; by default 5 times *refresh_every*.

    Attributes:
        breaker: The breaker of this process, with its `observers`, `metrics`, and
            `open`, `close` and `isolate` for this process.

    Raises:
        ConfigError: *client* is async, or another argument is invalid.
    """

    @user_facing
    def __init__(  # noqa: PLR0913  its settings
        self,
        client: redis.Redis,
        name: str,
        breaker: CircuitBreaker | None = None,
        *,
        quorum: float = 0.5,
        at_least: int = 2,
        refresh_every: Duration = 1.0,
        expire_after: Duration | None = None,
    ) -> None:
        self.name: str = check_text("name", name)
        self.breaker: CircuitBreaker = check_instance(
            "breaker",
            CircuitBreaker() if breaker is None else breaker,
            CircuitBreaker,
            "write CircuitBreaker()",
        )
        share = check_number("quorum", quorum, at_most=1, suggestion=_SHARE)
        if not share:
            raise invalid_setting(
                "quorum", "a number > 0 and <= 1", quorum, _SHARE, code="out-of-range"
            )
        check_integer("at_least", at_least, at_least=2, suggestion=_ALONE)
        self.refresh_every: float = parse_positive_duration(
            "refresh_every", refresh_every
        )
        self.expire_after: float = 5 * self.refresh_every
        if expire_after is not None:
            self.expire_after = parse_positive_duration("expire_after", expire_after)
        if self.expire_after < 2 * self.refresh_every:
            rule = f"at least twice refresh_every, {self.refresh_every!r}"
            raise invalid_setting(
                "expire_after", rule, expire_after, code="contradiction"
            )
        self.judges_results: bool = self.breaker.judges_results
        self._script = _register_script(client)
        self._keys = [f"{{retrykit:circuit:{name}}}:{each}" for each in _KEYS]
        self._thread = background_thread(client)
        self._view = FleetView(
            share,
            at_least,
            self.refresh_every,
            self.breaker.standing().generation,
            repr(self),
        )
        self._acquire = self.breaker.acquire
        super().__init__()
        self.breaker.observers.append(self._notice)

    @property
    def state(self) -> CircuitState:
        """The state in this process: "closed", "open", "half-open" or "isolated"."""
        return self.breaker.state

    @property
    def metrics(self) -> CircuitMetrics:
        """The counts of the calls of this process."""
        return self.breaker.metrics

    @property
    def fleet(self) -> FleetState | None:
        """The processes in the last reply of Redis; None while it is unavailable.

        It is also None before the first reply. Reading it sends no request; `refresh`
        does.
        """
        return self._view.state

    def acquire(self) -> Lease | Refusal:
        """Ask the breaker of this process, without waiting, whether a call may begin.

        Returns:
            A lease, to which the outcome must be reported; or a refusal.
        """
        self._is_used = True
        if not self._is_active:
            self._activate()
        return self._acquire()

    def refresh(self) -> FleetState | None:
        """Exchange states with the other processes now, in this thread.

        Call it before the first call, so that a new process knows of an outage. It
        waits for Redis as long as the client does; in a coroutine, call it in a thread.

        Returns:
            The processes; None if Redis is unavailable.
        """
        report = self._view.next_report(self.breaker.standing(), sync_clock.now())
        try:
            reply = self._script(keys=self._keys, args=self._script_arguments(report))
            alive, ends = parse_fleet(reply)
        except Exception as fault:  # noqa: BLE001  this process decides alone
            self._view.apply_failure(report, fault)
            return None
        opening = self._view.apply_reply(report, alive, ends)
        if opening is not None:
            self.breaker.open_for_others(report.generation, *opening)
        return self._view.state

    def is_failure(self, error: Exception, /) -> bool | None:
        """Return whether the breaker's `on` matches an error; None if it has none."""
        return self.breaker.is_failure(error)

    def is_failed_result(self, result: object, /) -> bool | None:
        """Return the answer of the breaker's `on_result`; None if it has none."""
        return self.breaker.is_failed_result(result)

    def refusal_after(self, delay: float, /) -> Refusal | None:
        """Return the refusal that is certain after a delay; None if there is none."""
        return self.breaker.refusal_after(delay)

    def join(self, conditions: Conditions, /) -> None:
        """Raise a ConfigError if two of its policies judge failures differently."""
        self.breaker.join(conditions)

    def error_of(self, refusal: Refusal) -> CircuitOpenError:
        """Return the error of a call that this breaker refused."""
        return CircuitOpenError(self.name, refusal.reason, refusal.retry_in)

    def run(self) -> float | None:
        """Exchange states, as a job of the background thread.

        Returns:
            The seconds until the next exchange; None if no call was made since the last
            one, and the breaker is not open.
        """
        if not self._is_used and not self.breaker.standing().left:
            self._is_active = False
            return None
        self._is_used = False
        self.refresh()
        return self._view.pause

    def give_up(self, fault: Exception, /) -> None:
        """Decide alone, since no background thread could be started."""
        self._is_active = False
        report = self._view.next_report(self.breaker.standing(), sync_clock.now())
        self._view.apply_failure(report, fault)

    def _activate(self) -> None:
        # A virtual clock runs at another speed than the server.
        if sync_clock.current() is sync_clock.real:
            self._is_active = True
            self._thread.hurry(self)

    def _notice(self, change: CircuitChange) -> None:
        """Report to the others at once if this process opened or closed its breaker."""
        if change.new == "closed" or self.breaker.standing().left:
            self._is_used = True
            self._activate()

    def _script_arguments(self, report: Report) -> list[Any]:
        keep = int(self.expire_after * 1000)
        return [self._member, keep, report.opened, report.left, report.closed]

    def _renew(self) -> None:
        super()._renew()
        # A forked child is another process, and has no thread.
        self._member = uuid.uuid4().hex
        self._is_active = self._is_used = False

    def __repr__(self) -> str:
        # Without the client, whose repr contains its address and maybe a password.
        return f"<RedisCircuitBreaker {self.name!r} of {self.breaker.expression}>"

    def __reduce__(self) -> NoReturn:
        msg = "cannot pickle a RedisCircuitBreaker, as its client is a connection"
        msg += "; create one in each process, with the same name"
        raise TypeError(msg)


_KEYS = ("alive", "open")
_SHARE = "0.5 is half of the processes"
_ALONE = "otherwise one process in trouble opens it for all"


def _register_script(client: Any) -> Any:
    register = getattr(client, "register_script", None)
    script = register(CIRCUIT_SCRIPT) if register else None
    if script is None or is_coroutine_function(script):
        rule, suggestion = "a redis.Redis", "it is used in a thread of its own"
        # Only its type, since its repr may contain its password.
        raise invalid_setting("client", rule, type(client), suggestion)
    return script


# Open processes are in a separate hash, so that while all is well the script takes as
# long for a thousand processes as for one.
CIRCUIT_SCRIPT = """\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local member, keep = ARGV[1], tonumber(ARGV[2])
local opened, left = tonumber(ARGV[3]), tonumber(ARGV[4])
local closed, since = tonumber(ARGV[5]), -1
if closed >= 0 then
    since = now - closed
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + keep, member)
if left > 0 then
    local record = string.format('%.0f %.0f %.0f', now - opened, now + left, now + keep)
    redis.call('HSET', KEYS[2], member, record)
else
    redis.call('HDEL', KEYS[2], member)
end
local ends = {}
local records = redis.call('HGETALL', KEYS[2])
for index = 1, #records, 2 do
    local began, stop, heard = string.match(records[index + 1], '(%d+) (%d+) (%d+)')
    if tonumber(stop) <= now or tonumber(heard) <= now then
        redis.call('HDEL', KEYS[2], records[index])
    elseif tonumber(began) > since then
        table.insert(ends, stop - now)
    end
end
for _, key in ipairs(KEYS) do
    if redis.call('PTTL', key) < keep then
        redis.call('PEXPIRE', key, keep)
    end
end
return {redis.call('ZCARD', KEYS[1]), ends}
"""
"""Lua script that records a process, and reads the records of all processes.

Its keys are a sorted set of live processes, and a hash of open processes. Its arguments
are the id of the process, and in milliseconds: how long it is kept, how long ago it
opened (or -1), how long it stays open (or 0), and how long ago it closed (or -1). It
returns the number of live processes; and for each process that opened after this one
closed, the milliseconds until its open time ends.
"""


def parse_fleet(reply: Any) -> tuple[int, list[int]]:
    """Parse the reply of the script.

    >>> parse_fleet([8, [2500, 4000]])
    (8, [2500, 4000])
    >>> parse_fleet(b"OK")
    Traceback (most recent call last):
    ...
    ValueError: the script replied b'OK'

    Returns:
        The number of processes, and the milliseconds until each open time ends.
    """
    match reply:
        case [int(alive), [*ends]]:
            return alive, [int(each) for each in ends]
    msg = f"the script replied {reply!r}"
    raise ValueError(msg)
