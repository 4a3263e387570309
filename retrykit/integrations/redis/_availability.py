"""Record of the outages of Redis, with the pauses in which no request is sent."""

import logging
from typing import final

from retrykit._internal.clocks import sync_clock
from retrykit._internal.fast_path import blockers
from retrykit._internal.locks import ForkSafe

__all__ = ["Availability"]

# Pauses after consecutive failures of Redis, in seconds.
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


@final
class Availability(ForkSafe):
    """Availability of Redis for one limit; thread-safe.

    Args:
        name: Name of the limit in logs.
        alone: How the limit works without Redis, in words.

    Attributes:
        failures: Number of consecutive failures; 0 while Redis replies.
        pause: How long to wait after the last failure, or after a request that tries
            again, in seconds; 0 while Redis replies.
    """

    def __init__(self, name: str, alone: str) -> None:
        self.failures = 0
        self.pause = 0.0
        self._name = name
        self._alone = alone
        self._pause_start = _now()
        super().__init__()

    def begin(self) -> int | None:
        """Begin a request; return `failures`, or None in a pause, when none is sent.

        The number is passed to `reply` or `fail` with the outcome of the request.
        """
        if not self.failures:
            return 0
        now = _now()
        with self._lock:
            # A time before the start comes from another clock, and does not count.
            if 0 <= now - self._pause_start < self.pause:
                return None
            # If there is no reply to this request, the next is sent after the pause.
            self._pause_start, self.pause = now, _PAUSES[-1]
            return self.failures

    def reply(self, failures: int) -> None:
        """Record a reply to a request for which `begin` returned *failures*."""
        if not self.failures:
            return
        with self._lock:
            # A request from before a failure does not show that Redis is back.
            if failures != self.failures:
                return
            self.failures, self.pause = 0, 0.0
        _log.info("%s: Redis is available again", self._name)

    def fail(self, failures: int, fault: Exception) -> None:
        """Record the failure of a request for which `begin` returned *failures*."""
        now = _now()
        with self._lock:
            first = failures == self.failures == 0
            # Concurrent requests that fail count as one failure.
            if failures == self.failures:
                self.failures += 1
                self.pause = _PAUSES[min(self.failures, 6) - 1]
                self._pause_start = now
        if first:
            text = "%s: Redis is unavailable, so %s: %s: %s"
            _log.warning(text, self._name, self._alone, type(fault).__name__, fault)


_log = logging.getLogger("retrykit")


def _now() -> float:
    return sync_clock.now() if blockers else sync_clock.real.now()
