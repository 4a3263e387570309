"""Simulations that are computed with numpy, many attempts at a time.

Within a window of at most one timeout, no attempt depends on how another is served:
attempts fail by timeouts, or at once while a server fails all of them. So the attempts
of a window are sorted, and a running maximum tells when each has been served.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast, final

import numpy as np

from retrykit.schedules._randomness import SharedDraws
from retrykit.simulate._calls import Rules
from retrykit.simulate._clients import Clients
from retrykit.simulate._deal import first_seed
from retrykit.simulate._delay_arrays import DelayArrays
from retrykit.simulate._draws import LOG_2, TERMS, Stream
from retrykit.simulate._events import SECOND, nanoseconds
from retrykit.simulate._failures import FAILED, REFUSED, TIMED_OUT
from retrykit.simulate._fifo import NEVER, AmbiguousOrderError
from retrykit.simulate._load import OpenLoad, RecordedLoad
from retrykit.simulate._progress import Watcher
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._scene import Plan, Scene

__all__ = ["exponentials", "run_windows", "uniforms"]

Array = Any
"""A numpy array, of int64 unless stated otherwise."""

_CHUNK: Final = 1 << 16
# Beyond it, a delay is later than every simulation, in seconds.
_LONG: Final = 1e9


def uniforms(stream: Stream) -> Any:
    """Return a function that draws with numpy what the stream would draw next."""
    state = stream.state()
    generator = np.random.RandomState()
    keys = np.array(state[:-1], np.uint32)
    generator.set_state(
        {"bit_generator": "MT19937", "state": {"key": keys, "pos": state[-1]}}
    )
    return generator.random_sample


def exponentials(uniform: Any, mean: int, count: int) -> Array:
    """Return the next *count* times that `Stream.exponentials` would yield.

    *uniform* is a function that `uniforms` returned.
    """
    fraction, exponent = np.frexp(1.0 - uniform(count))
    low = fraction < math.sqrt(0.5)
    fraction = np.where(low, fraction * 2, fraction)
    # As `logarithm`, to the bit.
    s = (fraction - 1.0) / (fraction + 1.0)
    square = s * s
    total = np.full(count, 1.0 / TERMS[0])
    for term in TERMS[1:]:
        total *= square
        total += 1.0 / term
    logarithms = (exponent - low) * LOG_2 + 2.0 * s * total
    return np.rint(-logarithms * mean).astype(np.int64)


@final
class _Calls:
    """The times at which calls begin, and their order among retries."""

    def __init__(self, scene: Scene) -> None:
        self._chunks = _times(scene)
        self._times = np.empty(0, np.int64)
        self._number = 0
        self._last = -1

    def until(self, end: int) -> "_Sends":
        """Take the first attempts of the next calls, those that begin before a time."""
        times = self._times
        while not len(times) or times[-1] < end:
            more = next(self._chunks, None)
            if more is None:
                break
            times = np.concatenate([times, more])
        count = int(np.searchsorted(times, end))
        found, self._times = times[:count], times[count:]
        sends = np.empty((6, count), np.int64)
        sends[_SENT] = sends[_BEGAN] = found
        if count:
            sends[_MADE, 0], sends[_MADE, 1:] = self._last, found[:-1]
            self._last = int(found[-1])
        sends[_ATTEMPT] = 1
        sends[_NUMBER] = sends[_CALL] = np.arange(self._number, self._number + count)
        self._number += count
        return sends


def _times(scene: Scene) -> Iterator[Array]:
    load = scene.load
    if isinstance(load, RecordedLoad):
        yield np.fromiter(load.times(scene.seed), np.int64)
        return
    mean = cast("OpenLoad", load).mean
    uniform, last = uniforms(Stream(scene.seed, "arrivals")), 0
    while True:
        times = last + np.cumsum(exponentials(uniform, mean, _CHUNK))
        last = int(times[-1])
        yield times


@final
class _Server:
    """A server with one slot, which serves requests in the order of their arrival."""

    def __init__(self, scene: Scene, counts: "_Counts") -> None:
        server, outage, self._counts = scene.server, scene.outage, counts
        self._service = nanoseconds(1 / server.capacity)
        self._draw = None
        if server.service == "exponential":
            self._draw = uniforms(Stream(scene.seed, "service times"))
        self._choose = uniforms(Stream(scene.seed, "failed requests"))
        self._free, self._begin, self._end, self._share = 0, -1, -1, 1.0
        if outage is not None and outage.kind != "error":
            self._begin = nanoseconds(outage.begin)
            self._end = self._begin + nanoseconds(outage.duration)
            self._share = outage.share

    def serve(self, times: Array) -> Array:
        """Return when requests that arrive at these times have been served.

        `NEVER` stands for requests that get no answer.
        """
        if not len(times):
            return times
        if self._share == 1 or times[-1] < self._begin or times[0] >= self._end:
            return self._finish(times)
        failing = (times >= self._begin) & (times < self._end)
        failing[failing] = self._choose(int(failing.sum())) < self._share
        finish = np.full(len(times), NEVER)
        if not failing.all():
            finish[~failing] = self._finish(times[~failing])
        return finish

    def _finish(self, times: Array) -> Array:
        if self._draw is None:
            each = np.full(len(times), self._service)
        else:
            each = exponentials(self._draw, self._service, len(times))
        finish = _queue(times, each, self._free)
        if self._share == 1 and self._begin < finish[-1] and self._free <= self._end:
            start = finish - each
            paused = np.flatnonzero((start >= self._begin) & (start < self._end))
            if len(paused):
                first = paused[0]
                later = np.maximum(times[first:], self._end)
                finish[first:] = _queue(later, each[first:], self._end)
        self._free = int(finish[-1])
        self._counts.queue(times, finish - each)
        return finish


def _queue(times: Array, services: Array, free: int) -> Array:
    """Return when requests have been served, one after another, by a single slot.

    Args:
        times: When they arrive.
        services: How long they take.
        free: When the slot becomes free.
    """
    served = np.cumsum(services)
    waits = np.maximum.accumulate(np.maximum(times - (served - services), free))
    return waits + served


def run_windows(scene: Scene, recorder: Recorder, watcher: Watcher) -> None:
    """Run a simulation whose attempts fail by timeouts, or as they arrive in an outage.

    Raises:
        AmbiguousOrderError: The order of two events is unknown.
    """
    counts, end, network = _Counts(recorder), recorder.end, scene.network
    ((clients, rules),) = scene.populations
    retries = _Retries(clients, rules, scene.seed, end)
    failing = _Failing(scene, retries)
    calls, server = _Calls(scene), _Server(scene, counts)
    timeout, order = nanoseconds(clients.timeout), 0
    width = min(timeout, nanoseconds(_CHUNK / scene.load.rate))
    retries.width = width
    try:
        for window in range(-(-end // width)):
            begin, over = window * width, min((window + 1) * width, end)
            watcher.reach(begin, recorder)
            begun = calls.until(over)
            counts.count("calls", begun[_SENT])
            parts = [begun, *retries.waiting.pop(window, ())]
            if failing.concerns(begin, over):
                sends, due = failing.fail(parts, over)
            else:
                sends = parts[0] if len(parts) == 1 else _in_order(parts)
                due = np.full(sends.shape[1], _SERVED)
            times = sends[_SENT]
            served = np.flatnonzero(due == _SERVED)
            sent = times[served]
            finish = server.serve(sent + network)
            ok = finish < sent + timeout
            counts.succeed(sent[ok], finish[ok], sends[_BEGAN, served[ok]])
            late = served[~ok]
            fails = times + network
            if len(late):
                fails[late] = times[late] + timeout
                of_late = sends[_ATTEMPT:].take(late, 1)
                due[late] = retries.after(TIMED_OUT, fails[late], of_late)
            failed = np.flatnonzero(due != _SERVED)
            if len(failed):
                counts.fail(times[failed])
                counts.end(fails[failed], due[failed])
                retries.add(sends, fails, due, over, order)
            order += len(times)
        watcher.reach(end, recorder)
    finally:
        counts.settle()


_Sends = Array
"""Attempts, as the columns of a two-dimensional array."""

_SENT, _MADE, _NUMBER, _ATTEMPT, _BEGAN, _CALL = range(6)
"""The rows of `_Sends`, with times in nanoseconds.

- ``_SENT``: when the attempt is sent;
- ``_MADE``: for a retry, when the attempt before it failed; for a first attempt, when
  the previous call began;
- ``_NUMBER``: for a retry, the number of the send that failed; for a first attempt, the
  number of its call;
- ``_ATTEMPT``: the number of the attempt, from 1;
- ``_BEGAN``: when its call began;
- ``_CALL``: the number of its call.
"""

_GIVEN_UP: Final = -1
_SERVED: Final = -2
"""In place of the time of the next attempt: there is none, or the server decides."""

_UNKNOWN: Final = -1
"""In place of the number of a send that has none yet."""


def _in_order(parts: Sequence[_Sends]) -> _Sends:
    """Return attempts in the order in which they were sent.

    Raises:
        AmbiguousOrderError: The order of two simultaneous attempts is unknown.
    """
    sends = np.concatenate(parts, axis=1)
    order = np.argsort(sends[_SENT], kind="stable")
    times = sends[_SENT, order]
    if (times[1:] == times[:-1]).any():
        order = np.lexsort((sends[_NUMBER], sends[_MADE], sends[_SENT]))
        times, made, number, attempts = sends[:_BEGAN, order]
        alike = (times[1:] == times[:-1]) & (made[1:] == made[:-1])
        first, unknown = attempts == 1, number == _UNKNOWN
        unclear = (first[1:] != first[:-1]) | unknown[1:] | unknown[:-1]
        if (alike & unclear).any():
            raise AmbiguousOrderError
    return sends.take(order, 1)


@final
class _Failing:
    """An outage in which a server fails each request as soon as it arrives.

    Args:
        scene: What is simulated.
        retries: The retries to come.
    """

    def __init__(self, scene: Scene, retries: "_Retries") -> None:
        outage, self._network, self._retries = scene.outage, scene.network, retries
        self._begin = self._end = -1
        if outage is not None and outage.kind != "hang":
            self._begin = nanoseconds(outage.begin)
            self._end = self._begin + nanoseconds(outage.duration)
            self._kind = REFUSED if outage.kind == "refuse" else FAILED

    def concerns(self, begin: int, over: int) -> bool:
        """Return whether requests sent in a window may fail in this outage."""
        return begin < self._end and over + self._network > self._begin

    def fail(self, parts: Sequence[_Sends], over: int) -> tuple[_Sends, Array]:
        """Return attempts, and their retries in the same window, in order.

        Args:
            parts: Attempts that are sent in the window.
            over: The end of the window.

        Returns:
            All attempts; and when the next attempt after each follows, or `_GIVEN_UP`,
            or `_SERVED` if that depends on the server.
        """
        done: list[_Sends] = []
        while parts:
            sends = np.concatenate(parts, axis=1)
            fails = sends[_SENT] + self._network
            failed = np.flatnonzero((fails >= self._begin) & (fails < self._end))
            due = np.full(len(fails), _SERVED)
            parts = []
            if len(failed):
                fails = fails[failed]
                of_failed = sends[_ATTEMPT:].take(failed, 1)
                following = self._retries.after(self._kind, fails, of_failed)
                due[failed] = following
                soon = np.flatnonzero((following >= 0) & (following < over))
                if len(soon):
                    again = sends.take(failed[soon], 1)
                    again[_SENT], again[_MADE] = following[soon], fails[soon]
                    again[_NUMBER] = _UNKNOWN
                    again[_ATTEMPT] += 1
                    parts = [again]
            done.append(np.vstack([sends, due]))
        merged = _in_order(done)
        return merged[:-1], merged[-1]


@final
class _Retries:
    """The retries to come.

    Attributes:
        waiting: The retries in each later window, keyed by its number.
        width: The length of a window, in nanoseconds.
    """

    width: int

    def __init__(self, clients: Clients, rules: Rules, of_all: int, end: int) -> None:
        self.waiting: defaultdict[int, list[_Sends]] = defaultdict(list)
        policy = clients.policy
        self._plan, self._seed, self._end = Plan(clients, rules), policy.seed, end
        self._delays = DelayArrays(policy.schedule, self._plan.delays)
        self._first = first_seed(of_all)

    def after(self, kind: int, failed: Array, sends: Array) -> Array:
        """Return when the next attempts follow, or `_GIVEN_UP`.

        Args:
            kind: How the attempts failed.
            failed: When they failed.
            sends: The rows of the attempts from `_ATTEMPT` on.
        """
        delays = self._delays_after(kind, failed, *sends)
        due = failed + np.rint(np.minimum(delays, _LONG) * SECOND).astype(np.int64)
        due[delays < 0] = _GIVEN_UP
        return due

    def add(
        self, sends: _Sends, failed: Array, due: Array, begin: int, order: int
    ) -> None:
        """Add the retries that are due after the present window.

        Args:
            sends: The attempts of the window.
            failed: When they failed.
            due: When retries follow; below 0 if none does.
            begin: The end of the window, in nanoseconds: earlier retries are among
                *sends*.
            order: The number of the first of *sends*.
        """
        again = np.flatnonzero((due >= begin) & (due < self._end))
        if not len(again):
            return
        again = again[np.argsort(due[again], kind="stable")]
        made = np.empty((6, len(again)), np.int64)
        made[_SENT], made[_MADE], made[_NUMBER] = due[again], failed[again], order
        made[_NUMBER] += again
        made[_ATTEMPT:] = sends[_ATTEMPT:].take(again, 1)
        made[_ATTEMPT] += 1
        windows = made[_SENT] // self.width
        ends = [*np.flatnonzero(windows[1:] != windows[:-1]) + 1, len(windows)]
        first = 0
        for end in ends:
            # A copy, as the others may wait for much longer.
            self.waiting[int(windows[first])].append(made[:, first:end].copy())
            first = end

    def _delays_after(
        self, kind: int, failed: Array, attempts: Array, began: Array, numbers: Array
    ) -> Array:
        """Return the delays before the next attempts, in seconds; -1 if none follows.

        Args:
            kind: How the attempts failed.
            failed: When they failed.
            attempts: Their numbers, from 1.
            began: When their calls began.
            numbers: The numbers of these calls.
        """
        plan, own = self._plan, self._seed
        seeds = self._first + numbers
        if own is not None:
            seeds = np.full(len(failed), own)
        if plan.most == math.inf:
            delays = self._delays.find(attempts, seeds)
        else:
            delays = np.full(len(failed), -1.0)
            chosen = np.flatnonzero(attempts < plan.most)
            if len(chosen):
                delays[chosen] = self._delays.find(attempts[chosen], seeds[chosen])
        at = (failed - began) / SECOND + delays
        delays[at > plan.over] = -1.0
        near = ~(at < plan.limit) & (delays >= 0)
        for index in np.flatnonzero(near):
            draws = SharedDraws(int(seeds[index])), 0
            call = int(began[index]), *draws
            attempt = int(attempts[index])
            found = plan.delay_after(call, attempt, int(failed[index]), kind)
            delays[index] = -1.0 if found is None else found
        return delays


@final
class _Counts:
    """Counts for a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._waits = np.zeros(64 << _DIGITS, np.int64)

    def count(self, name: str, times: Array) -> None:
        """Count times by second, in an attribute of the recorder."""
        if not len(times):
            return
        seconds = times // SECOND
        first = int(seconds.min())
        kept = getattr(self._recorder, name)
        for second, number in enumerate(np.bincount(seconds - first).tolist(), first):
            kept[second] += number

    def queue(self, times: Array, starts: Array) -> None:
        """Count requests that wait, in the seconds when they arrive and are served."""
        end = self._recorder.end
        waits = (starts > times) & (times < end)
        self.count("queued", times[waits])
        starts = starts[waits]
        self.count("served", starts[starts < end])

    def end(self, failed: Array, due: Array) -> None:
        """Count the ends of failed attempts, and the calls that give up."""
        counted = failed < self._recorder.end
        self.count("failures", failed[counted])
        self.count("given_up", failed[counted & (due == _GIVEN_UP)])

    def fail(self, sent: Array) -> None:
        """Count attempts that fail, in the seconds in which they were sent.

        Args:
            sent: When they were sent, in ascending order.
        """
        self.count("failed", sent)
        last = np.flatnonzero(np.diff(sent // SECOND, append=-1))
        for time in sent[last].tolist():
            self._recorder.last_failed[time // SECOND] = time

    def succeed(self, sent: Array, finish: Array, began: Array) -> None:
        """Count attempts and calls that succeed.

        Args:
            sent: When the attempts were sent.
            finish: When they succeeded.
            began: When their calls began.
        """
        self.count("succeeded", sent)
        counted = finish < self._recorder.end
        self.count("goodput", finish[counted])
        times = (finish - began)[counted]
        self._recorder.waits.total += int(times.sum())
        # The numbers of their binary digits.
        shifts = np.maximum(np.frexp(times.astype(np.float64))[1] - _DIGITS, 0)
        alike = (shifts.astype(np.int64) << _DIGITS) + (times >> shifts)
        self._waits += np.bincount(alike, minlength=len(self._waits))

    def settle(self) -> None:
        """Add the counted times to the recorder, and settle it."""
        waits = self._recorder.waits
        for alike in np.flatnonzero(self._waits).tolist():
            shift, digits = divmod(alike, 1 << _DIGITS)
            waits.add_similar(digits << shift, int(self._waits[alike]))
        self._recorder.settle()


_DIGITS: Final = 8
