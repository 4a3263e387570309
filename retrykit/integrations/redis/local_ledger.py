"""What one process knows of tokens that many share, and what it owes to them.

Nothing here waits or sends: it says what is to be asked, and is told what came
of it. So the blocking and the awaited budget count alike.
"""

import logging
import threading
from typing import NamedTuple, final

from retrykit._internal.clocks import sync_clock
from retrykit._internal.fast_path import blockers
from retrykit.budgets import TokenBucket

__all__ = ["Ask", "LocalLedger"]

# A Redis that is away is asked again after one pause, then after the next.
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


class Ask(NamedTuple):
    """What is to be asked of Redis.

    Attributes:
        cost: What a retry takes, in tokens; 0 if none is paid for.
        change: Tokens to add before that, or to take if < 0.
        failed: How often Redis had failed in a row when this was written.
    """

    cost: int
    change: int
    failed: int


@final
class LocalLedger:
    """The tokens of a key, as far as this process knows. Threads may share it.

    What is given is sent once, so it is lost if it is not known whether it
    came. What was taken without asking Redis is sent until that is known.

    Args:
        bucket: Its settings; how much is in it is not asked.
        flush_every: How long rewards are gathered. Seconds, >= 0.
        name: The budget as logs tell it.

    Attributes:
        tokens: What Redis said last; while it is away, what is left here.
    """

    def __init__(self, bucket: TokenBucket, flush_every: float, name: str) -> None:
        self.tokens = bucket.capacity
        self._bucket = bucket
        self._flush_every = flush_every
        self._name = name
        self._due = 0
        # How often Redis failed in a row: 0 while it answers.
        self._failed = 0
        self._since = _now()
        self._pause = flush_every
        # Reentrant, since a signal handler may retry in the midst of this.
        self._lock = threading.RLock()

    @property
    def due(self) -> int:
        """Tokens that are given or, if < 0, taken, and not yet sent."""
        return self._due

    def cost(self, error: Exception | None) -> int:
        """Return what a retry after this error costs."""
        return self._bucket.costs.of(error, self._bucket.cost)

    def next_request(self, cost: int = 0) -> Ask | None:
        """Return what to ask of Redis now; None while it is away."""
        now = _now()
        with self._lock:
            if self._failed and self._waits(now):
                return None
            return self._ask(cost, now)

    def pay_locally(self, cost: int) -> int | None:
        """Pay for a retry with what is left here; None if that is too little."""
        with self._lock:
            if self.tokens < cost:
                return None
            self.tokens -= cost
            self._due -= cost
        return cost

    def add_reward(self, cost: int | None) -> Ask | None:
        """Gather what a call gives that has its result.

        Args:
            cost: What its last retry had cost; None if there was none.

        Returns:
            What to ask of Redis now, if anything. A reward waits for more.
        """
        now = _now()
        with self._lock:
            gain = self._bucket.reward if cost is None else cost
            if self._failed:
                gain = min(gain, self._bucket.capacity - self.tokens)
                self.tokens += gain
            self._due += gain
            if (cost is None or self._failed) and self._waits(now):
                return None
            return self._ask(0, now)

    def apply_reply(self, ask: Ask, tokens: int) -> None:
        """Take note of what Redis has left."""
        with self._lock:
            # What was asked before it failed says nothing of how it is now.
            if ask.failed != self._failed:
                return
            self.tokens = tokens
            back, self._failed = self._failed > 0, 0
            if back:
                self._wait(_now(), self._flush_every)
        if back:
            _log.info("%s is shared again: Redis answers", self._name)

    def failed(self, ask: Ask, fault: Exception) -> int | None:
        """Take note that Redis failed, and pay for the retry here."""
        with self._lock:
            first = ask.failed == self._failed == 0
            self._due += min(ask.change, 0)
            # Many may have asked at once; that is one failure.
            if ask.failed == self._failed:
                self._failed += 1
                self._wait(_now(), _PAUSES[min(self._failed, 6) - 1])
            paid = self.pay_locally(ask.cost)
        if first:
            text = "%s is counted in this process alone until Redis answers: %s: %s"
            _log.warning(text, self._name, type(fault).__name__, fault)
        return paid

    def _ask(self, cost: int, now: float) -> Ask:
        change, self._due = self._due, 0
        # Of who asks it may never be heard; then another one asks.
        self._wait(now, _PAUSES[-1] if self._failed else self._flush_every)
        return Ask(cost, change, self._failed)

    def _waits(self, now: float) -> bool:
        # Where time goes back another clock is read, which knows no such pause.
        return 0 <= now - self._since < self._pause

    def _wait(self, now: float, pause: float) -> None:
        self._since, self._pause = now, pause


_log = logging.getLogger("retrykit")


def _now() -> float:
    return sync_clock.now() if blockers else sync_clock.real.now()
