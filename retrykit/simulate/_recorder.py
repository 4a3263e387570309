"""Counts of what happens in a simulation, second by second."""

from collections import Counter
from typing import Final, final

from retrykit.simulate._events import SECOND

__all__ = ["Recorder", "Waits"]

# Times are counted with so many binary digits: to within 1 part in 256.
_DIGITS: Final = 8


@final
class Waits:
    """Times, of which only the numbers of similar ones are kept.

    Attributes:
        count: Number of times.
        total: Their sum, in nanoseconds.
    """

    def __init__(self) -> None:
        self.count = self.total = 0
        self._similar: Counter[int] = Counter()

    def add(self, time: int) -> None:
        """Count a time, in nanoseconds, >= 0."""
        self.count += 1
        self.total += time
        shift = max(time.bit_length() - _DIGITS, 0)
        # Rounded to the middle of those with the same first digits.
        self._similar[(time >> shift << shift) + (1 << shift >> 1)] += 1

    def mean(self) -> float | None:
        """Return the mean, in seconds; None of no times."""
        return self.total / self.count / SECOND if self.count else None

    def quantile(self, share: float) -> float | None:
        """Return the time that a share of the times does not exceed, in seconds."""
        wanted, found = share * self.count, 0
        for time, count in sorted(self._similar.items()):
            found += count
            if found >= wanted:
                return time / SECOND
        return None


@final
class Recorder:
    """Counts for each second of a simulation; what happens later is not counted.

    Attributes:
        end: The end of what is counted, in nanoseconds.
        pending: Number of attempts that are counted and have not ended.
        calls: Number of calls that began, in each second.
        sent: Number of attempts that were sent.
        succeeded: Number of those of them that succeeded.
        failed: Number of those of them that failed.
        goodput: Number of calls that succeeded.
        given_up: Number of calls that gave up.
        last_failed: When the last attempt was sent that failed, in nanoseconds, -1
            if none failed.
        retries: Number of attempts besides the first ones.
        waits: How long the calls took that succeeded.
    """

    def __init__(self, seconds: int) -> None:
        self.end = seconds * SECOND
        self.calls = [0] * seconds
        self.sent = [0] * seconds
        self.succeeded = [0] * seconds
        self.failed = [0] * seconds
        self.goodput = [0] * seconds
        self.given_up = [0] * seconds
        self.last_failed = [-1] * seconds
        self.retries = self.pending = 0
        self.waits = Waits()

    def begin(self, now: int) -> None:
        """Count a call that begins."""
        if now < self.end:
            self.calls[now // SECOND] += 1

    def send(self, now: int, *, first: bool) -> None:
        """Count an attempt that is sent."""
        if now < self.end:
            self.sent[now // SECOND] += 1
            self.pending += 1
            if not first:
                self.retries += 1

    def finish(self, sent: int, *, succeeded: bool) -> None:
        """Count the end of an attempt, in the second in which it was sent."""
        if sent >= self.end:
            return
        second = sent // SECOND
        self.pending -= 1
        if succeeded:
            self.succeeded[second] += 1
            return
        self.failed[second] += 1
        self.last_failed[second] = max(self.last_failed[second], sent)

    def succeed(self, began: int, now: int) -> None:
        """Count a call that succeeds."""
        if now < self.end:
            self.goodput[now // SECOND] += 1
            self.waits.add(now - began)

    def give_up(self, now: int) -> None:
        """Count a call that gives up."""
        if now < self.end:
            self.given_up[now // SECOND] += 1

    def recovery(self, since: int) -> int | None:
        """Return when attempts succeed again, in nanoseconds after a time.

        That is when the last attempt was sent that failed before five seconds in a row
        in each of which at least 95 % of the attempts succeed.

        Args:
            since: The end of the outage, in nanoseconds.

        Returns:
            >= 0; None if there are no such seconds.
        """
        row = 0
        for second in range(-(-since // SECOND), len(self.sent)):
            succeeded, failed = self.succeeded[second], self.failed[second]
            row = row + 1 if succeeded * 5 >= failed * 95 else 0
            if row == _ROW:
                last = max(self.last_failed[: second - _ROW + 2])
                return max(last - since, 0)
        return None


_ROW: Final = 5
