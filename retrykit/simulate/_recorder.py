"""Counts of what happens in a simulation, second by second."""

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate, islice
from operator import add, sub
from typing import Final, final

from retrykit.simulate._events import SECOND

__all__ = ["Recorder", "Waits"]

# Times are counted with this many binary digits: to within 1 part in 256.
_DIGITS: Final = 8
_MANY: Final = 4096


@final
class Waits:
    """A histogram of times, in which similar ones are counted together.

    Attributes:
        total: The sum of the times, in nanoseconds.
    """

    def __init__(self) -> None:
        self.total = self._counted = 0
        self._similar: Counter[int] = Counter()
        self._new: list[int] = []

    @property
    def count(self) -> int:
        """The number of times."""
        return self._counted + len(self._new)

    def add(self, time: int) -> None:
        """Count a time, in nanoseconds, >= 0."""
        self.total += time
        self._new.append(time)
        if len(self._new) > _MANY:
            self._sort()

    def _sort(self) -> None:
        times, self._new = self._new, []
        for bits in (16, 8, 0):
            # Times of this many digits are similar if they differ only in the last
            # bits.
            least = 1 << bits + _DIGITS if bits else 0
            alike = Counter([time >> bits for time in times if time >= least])
            times = [time for time in times if time < least]
            for time, count in alike.items():
                self.add_similar(time << bits, count)

    def add_similar(self, time: int, count: int) -> None:
        """Count times with the same first binary digits, but do not add to `total`.

        Args:
            time: One of the times, in nanoseconds.
            count: Number of times.
        """
        self._counted += count
        shift = max(time.bit_length() - _DIGITS, 0)
        # Rounded to the middle of those with the same first digits.
        self._similar[(time >> shift << shift) + (1 << shift >> 1)] += count

    def mean(self) -> float | None:
        """Return the mean, in seconds; None if there are no times."""
        return self.total / self.count / SECOND if self.count else None

    def quantile(self, share: float) -> float | None:
        """Return the time that a share of the times does not exceed, in seconds.

        None if there are no times.
        """
        self._sort()
        wanted, found = share * self.count, 0
        for time, count in sorted(self._similar.items()):
            found += count
            if found >= wanted:
                return time / SECOND
        return None


@final
class Recorder:
    """Counts for each second of a simulation; what happens after its end is left out.

    Attributes:
        end: The end of what is counted, in nanoseconds.
        begun: Number of calls that have begun in the present second, each with its
            first attempt. `end_second` adds this number and the next three to the lists
            below.
        resent: Number of attempts in the present second beyond the first of each call.
        won: Number of calls that have succeeded in the present second.
        lost: Number of calls that have given up in the present second.
        pending: Number of attempts that are counted and have not ended.
        calls: Number of calls that began, in each second.
        sent: Number of attempts that were sent.
        succeeded: Number of attempts sent that succeeded.
        failed: Number of attempts sent that failed, then or later, and of attempts
            that failed without being sent.
        replaced: Number of attempts sent that another one has replaced.
        goodput: Number of calls that succeeded.
        given_up: Number of calls that gave up.
        last_failed: When the last attempt that failed was sent, in nanoseconds; -1 if
            none failed.
        retried: Number of attempts beyond the first of each call.
        failures: Number of attempts that failed in each second.
        queued: Number of requests that had to wait for their service.
        served: Number of these requests whose service began.
        over: Number of seconds that are over.
        queue: Number of requests in the queue of the server, at the end of each second
            that is over.
        waiting: Number of calls that wait for their next attempt, at these times.
        waits: How long the successful calls took.
    """

    def __init__(self, seconds: int) -> None:
        self.end = seconds * SECOND
        self.calls = [0] * seconds
        self.sent = [0] * seconds
        self.succeeded = [0] * seconds
        self.failed = [0] * seconds
        self.replaced = [0] * seconds
        self.goodput = [0] * seconds
        self.given_up = [0] * seconds
        self.last_failed = [-1] * seconds
        self.failures = [0] * seconds
        self.queued = [0] * seconds
        self.served = [0] * seconds
        self.over = self.begun = self.resent = self.won = self.lost = 0
        self.queue: list[int] = []
        self.waiting: list[int] = []
        self.retried = [0] * seconds
        self.pending = self._open = 0
        self.waits = Waits()

    def settle(self) -> None:
        """Compute the counts that follow from other counts.

        These are `sent`, `retried`, `queue` and `waiting`, for engines that count only
        calls, the ends of attempts, and the requests that were queued and served.
        """
        ends = zip(self.succeeded, self.failed, strict=True)
        self.sent = [succeeded + failed for succeeded, failed in ends]
        # Every call sends its first attempt as it begins.
        self.retried = [*map(sub, self.sent, self.calls)]
        self.queue = self._sums(self.queued, self.served)
        self.waiting = self._sums(self.failures, map(add, self.given_up, self.retried))

    def _sums(self, come: Iterable[int], gone: Iterable[int]) -> list[int]:
        """Return how many have come and not gone, at the end of each second.

        Args:
            come: How many come in each second.
            gone: How many go in each second.
        """
        return [*islice(accumulate(map(sub, come, gone)), self.over)]

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
                self.retried[now // SECOND] += 1

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

    def finish_request(self, sent: int, *, succeeded: bool | None) -> None:
        """Count the end of a request; None for *succeeded* if another replaces it."""
        if succeeded is not None:
            self.finish(sent, succeeded=succeeded)
        elif sent < self.end:
            self.pending -= 1
            self.replaced[sent // SECOND] += 1

    def refuse(self, now: int) -> None:
        """Count an attempt that fails without being sent."""
        if now < self.end:
            self.failed[now // SECOND] += 1
            self.last_failed[now // SECOND] = now

    def succeed(self, began: int, now: int) -> None:
        """Count a call that succeeds."""
        if now < self.end:
            self.goodput[now // SECOND] += 1
            self.waits.add(now - began)

    def give_up(self, now: int) -> None:
        """Count a call that gives up."""
        if now < self.end:
            self.given_up[now // SECOND] += 1

    def begin_with(self, calls: int) -> None:
        """Count calls that wait for a retry at the beginning."""
        self._open += calls

    @property
    def rests(self) -> bool:
        """True if no request and no retry was waiting at the end of the last second."""
        return not self.queue[-1] and not self.waiting[-1]

    def end_second(self, queue: int) -> None:
        """Note the state at the end of a second, with the length of the queue."""
        second = self.over
        sent = self.begun + self.resent
        self.calls[second] += self.begun
        self.sent[second] += sent
        self.pending += sent
        self.retried[second] += self.resent
        self.goodput[second] += self.won
        self.given_up[second] += self.lost
        self.begun = self.resent = self.won = self.lost = 0
        ended = self.goodput[second] + self.given_up[second]
        self._open += self.calls[second] - ended
        self.queue.append(queue)
        self.over += 1
        self.waiting.append(self._open - self.pending)

    def cut(self, seconds: int) -> None:
        """Forget what was counted after this many seconds, except the waits."""
        self.end = seconds * SECOND
        for counts in vars(self).values():
            if isinstance(counts, list):
                del counts[seconds:]

    def recovery(self, since: int, seconds: int | None = None) -> int | None:
        """Return when attempts succeed again, in nanoseconds after a time.

        A recovery needs five seconds in a row in each of which at least 95 % of the
        attempts succeed. Its time is when the last failed attempt up to the end of the
        first of them was sent. A second without attempts is a good one, too, but not
        five of them.

        Args:
            since: The end of the outage, in nanoseconds.
            seconds: Number of seconds that are over; by default all are.

        Returns:
            >= 0; None if there are no such seconds, or if attempts sent in or before
            them have not ended yet.
        """
        row = 0
        for second in range(
            -(-since // SECOND), len(self.sent) if seconds is None else seconds
        ):
            succeeded, failed = self.succeeded[second], self.failed[second]
            ended = succeeded + failed + self.replaced[second]
            if ended < self.sent[second]:
                break
            row = row + 1 if succeeded * 5 >= failed * 95 else 0
            begin = second - _ROW + 1
            if row >= _ROW and any(self.succeeded[begin : second + 1]):
                last = max(self.last_failed[: begin + 1])
                return max(last - since, 0)
        return None

    def last_relapse(self, since: int) -> int | None:
        """Return when attempts fail for the last time after a recovery.

        That is the end of the last ten seconds in a row in which less than 90 % of the
        attempts succeed, in seconds; None if there are none.

        Args:
            since: When the server recovered, in nanoseconds. The five good seconds
                after that are left out.
        """
        for end in range(len(self.sent), since // SECOND + _ROW + _WINDOW - 1, -1):
            succeeded = sum(self.succeeded[end - _WINDOW : end])
            failed = sum(self.failed[end - _WINDOW : end])
            if succeeded < failed * 9:
                return end
        return None


_ROW: Final = 5
_WINDOW: Final = 10
