"""A process's view of the tokens on Redis, for the sync and the async budget.

Nothing here does I/O: the ledger returns requests to send, and takes their results.
"""

import logging
import threading
from typing import NamedTuple

from retrykit._internal.clocks import sync_clock
from retrykit._internal.fast_path import blockers
from retrykit.budgets import TokenBucket

__all__ = ["LocalLedger", "ScriptRequest"]

# Pauses after consecutive failures of Redis, in seconds.
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


class ScriptRequest(NamedTuple):
    """A request to run the script on Redis.

    Attributes:
        cost: Cost of a retry, in tokens; 0 if none is paid.
        change: Tokens to add before paying, or to take if < 0.
        failures: Number of consecutive failures of Redis at the time of the request.
    """

    cost: int
    change: int
    failures: int


class LocalLedger:
    """The tokens of a key, as known to this process; thread-safe.

    Rewards are sent once, and lost if there is no reply. Costs that were paid locally
    are sent again until there is a reply.

    Args:
        bucket: The settings; its own tokens are not used.
        flush_every: How long rewards are collected. Seconds, >= 0.
        name: Name of the budget in logs.

    Attributes:
        tokens: Tokens in the last reply of Redis, or the capacity before the first one;
            while Redis is unavailable, the tokens that this process has left.
    """

    def __init__(self, bucket: TokenBucket, flush_every: float, name: str) -> None:
        self.tokens = bucket.capacity
        self._bucket = bucket
        self._flush_every = flush_every
        self._name = name
        self._unsent = 0
        # Consecutive failures of Redis; 0 while it replies.
        self._failures = 0
        self._pause_start = _now()
        self._pause = flush_every
        # Reentrant, since a signal handler that interrupts this may make retried calls.
        self._lock = threading.RLock()

    @property
    def unsent(self) -> int:
        """Tokens gained (or paid, if < 0) that have not been sent yet."""
        return self._unsent

    def cost(self, error: Exception | None) -> int:
        """Return the cost of a retry after this error."""
        return self._bucket.costs.cost_after(error, self._bucket.cost)

    def next_request(self, cost: int = 0) -> ScriptRequest | None:
        """Return the request to send now; None in a pause after a failure of Redis."""
        now = _now()
        with self._lock:
            if self._failures and self._is_paused(now):
                return None
            return self._new_request(cost, now)

    def pay_locally(self, cost: int) -> int | None:
        """Pay with local tokens; return *cost*, or None if there are too few tokens."""
        with self._lock:
            if self.tokens < cost:
                return None
            self.tokens -= cost
            self._unsent -= cost
        return cost

    def add_reward(self, cost: int | None) -> ScriptRequest | None:
        """Add the tokens of a successful call; return the request to send, if any.

        Args:
            cost: The cost of the call's last retry; None if its first attempt
                succeeded.
        """
        now = _now()
        with self._lock:
            refunded = None if not self._bucket.refunds else cost
            self.add(self._bucket.reward if refunded is None else refunded)
            if (cost is None or self._failures) and self._is_paused(now):
                return None
            return self._new_request(0, now)

    def add(self, gain: int) -> None:
        """Add tokens, which the next request sends.

        While Redis is unavailable, they are also added to the local tokens, and those
        beyond the capacity are dropped.
        """
        with self._lock:
            if self._failures:
                gain = min(gain, self._bucket.capacity - self.tokens)
                self.tokens += gain
            self._unsent += gain

    def apply_reply(self, request: ScriptRequest, tokens: int) -> None:
        """Record a reply with the remaining tokens, unless Redis has failed since."""
        with self._lock:
            # A request from before a failure does not show that Redis is back.
            if request.failures != self._failures:
                return
            self.tokens = tokens
            recovered, self._failures = self._failures > 0, 0
            if recovered:
                self._start_pause(_now(), self._flush_every)
        if recovered:
            _log.info("%s: Redis is available, the tokens are shared again", self._name)

    def apply_failure(self, request: ScriptRequest, fault: Exception) -> int | None:
        """Record a failure of Redis, and pay for the retry as `pay_locally` does."""
        with self._lock:
            first = request.failures == self._failures == 0
            self._unsent += min(request.change, 0)
            # Concurrent requests that fail count as one failure.
            if request.failures == self._failures:
                self._failures += 1
                self._start_pause(_now(), _PAUSES[min(self._failures, 6) - 1])
            paid = self.pay_locally(request.cost)
        if first:
            text = "%s: Redis is unavailable, so tokens are counted locally: %s: %s"
            _log.warning(text, self._name, type(fault).__name__, fault)
        return paid

    def _new_request(self, cost: int, now: float) -> ScriptRequest:
        change, self._unsent = self._unsent, 0
        # If there is no reply to this request, the next one is sent after the pause.
        self._start_pause(now, _PAUSES[-1] if self._failures else self._flush_every)
        return ScriptRequest(cost, change, self._failures)

    def _is_paused(self, now: float) -> bool:
        # A time before the start comes from another clock, and does not count.
        return 0 <= now - self._pause_start < self._pause

    def _start_pause(self, now: float, pause: float) -> None:
        self._pause_start, self._pause = now, pause


_log = logging.getLogger("retrykit")


def _now() -> float:
    return sync_clock.now() if blockers else sync_clock.real.now()
