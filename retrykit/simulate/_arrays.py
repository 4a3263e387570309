"""Simulations that are computed with numpy, many attempts at a time.

What is sent within the time of one timeout cannot depend on what else is sent in it, if
attempts fail by timeouts alone. So the attempts of such a window are sorted, and a
running maximum gives the ends of their service.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, cast, final

import numpy as np

from retrykit.schedules._randomness import FACTORS, STEP, SharedDraws
from retrykit.simulate._deal import first_seed
from retrykit.simulate._draws import LOG_2, TERMS, Stream
from retrykit.simulate._events import SECOND, nanoseconds
from retrykit.simulate._failures import TIMED_OUT
from retrykit.simulate._fifo import NEVER, AmbiguousOrderError
from retrykit.simulate._load import OpenLoad, RecordedLoad
from retrykit.simulate._progress import Watcher
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._scene import Plan, Scene

__all__ = ["delay_draws", "exponentials", "run_windows", "uniforms"]

Array = Any
"""An array of numpy; its items are of int64 unless it says otherwise."""

_CHUNK: Final = 1 << 16
_MASK: Final = 2**64 - 1
# Beyond it, a delay is later than every simulation, in seconds.
_LONG: Final = 1e9


def uniforms(stream: Stream) -> Any:
    """Return the generator of numpy that continues a stream, to the bit."""
    state = stream.state()
    generator = np.random.RandomState()
    keys = np.array(state[:-1], np.uint32)
    generator.set_state(
        {"bit_generator": "MT19937", "state": {"key": keys, "pos": state[-1]}}
    )
    return generator.random_sample


def exponentials(uniform: Any, mean: int, count: int) -> Array:
    """Return what `Stream.exponentials` yields, from a generator of `uniforms`."""
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


def delay_draws(seeds: Array, retry: int) -> Array:
    """Return the first draws of a retry, in units of 2**-53, as `SharedDraws`.

    Args:
        seeds: Those of the calls.
        retry: The number of the retry.

    Returns:
        Floats, which are integers.
    """
    z = seeds.astype(np.uint64) + np.uint64(((retry << 32) + 1) * STEP & _MASK)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FACTORS[0])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(FACTORS[1])
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64)


@final
class _Calls:
    """When calls begin, with what orders them among retries."""

    def __init__(self, scene: Scene) -> None:
        self._chunks = _times(scene)
        self._times = np.empty(0, np.int64)
        self._number = 0
        self._last = -1

    def until(self, end: int) -> tuple[Array, Array, Array]:
        """Return those that begin before a time: when, the one before, the numbers."""
        times = self._times
        while not len(times) or times[-1] < end:
            more = next(self._chunks, None)
            if more is None:
                break
            times = np.concatenate([times, more])
        count = int(np.searchsorted(times, end))
        found, self._times = times[:count], times[count:]
        before = np.empty(count, np.int64)
        if count:
            before[0], before[1:] = self._last, found[:-1]
            self._last = int(found[-1])
        numbers = np.arange(self._number, self._number + count)
        self._number += count
        return found, before, numbers


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
        if outage is not None:
            self._begin = nanoseconds(outage.begin)
            self._end = self._begin + nanoseconds(outage.duration)
            self._share = outage.share

    def serve(self, times: Array) -> Array:
        """Return when the services of requests end that arrive at some times."""
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
    """Return when each of some requests is served, one after another."""
    served = np.cumsum(services)
    waits = np.maximum.accumulate(np.maximum(times - (served - services), free))
    return waits + served


def run_windows(scene: Scene, recorder: Recorder, watcher: Watcher) -> None:
    """Run a simulation in which attempts fail by timeouts alone.

    Raises:
        AmbiguousOrderError: The order of two events is unknown.
    """
    counts, end = _Counts(recorder), recorder.end
    ((clients, rules),) = scene.populations
    retries = _Retries(Plan(clients, rules), clients.policy.seed, scene.seed, end)
    calls, server = _Calls(scene), _Server(scene, counts)
    timeout, order = nanoseconds(clients.timeout), 0
    width = min(timeout, nanoseconds(_CHUNK / scene.load.rate))
    retries.width = width
    try:
        for window in range(-(-end // width)):
            watcher.reach(window * width, recorder)
            times, before, numbers = calls.until(min((window + 1) * width, end))
            counts.count("calls", times)
            ones = np.ones(len(times), np.int64)
            sends: _Sends = (times, before, numbers, ones, times, numbers)
            later = retries.waiting.pop(window, None)
            if later:
                sends = _merge([sends, *later])
            times, *_ = sends
            if not len(times):
                continue
            finish = server.serve(times + scene.network)
            ok = finish < times + timeout
            counts.succeed(times[ok], finish[ok], sends[4][ok])
            failed = np.flatnonzero(~ok)
            if len(failed):
                times = times[failed]
                counts.fail(times)
                fails = times + timeout
                counts.count("failures", fails[fails < end])
                attempts, began, numbers = (each[failed] for each in sends[3:])
                given_up = retries.add(fails, order + failed, attempts, began, numbers)
                counts.count("given_up", given_up[given_up < end])
            order += len(finish)
        watcher.reach(end, recorder)
    finally:
        counts.settle()


_Sends = tuple[Array, Array, Array, Array, Array, Array]
"""Times of attempts, and of what made them: the failure before a retry, or the call
before a first attempt; the numbers of the sends that failed, or of the calls; the
numbers of the attempts; when their calls began, and the numbers of these."""


def _merge(parts: list[_Sends]) -> _Sends:
    """Return attempts in the order of their sends."""
    fields = [np.concatenate(each) for each in zip(*parts, strict=True)]
    times = fields[0]
    order = np.argsort(times, kind="stable")
    times = times[order]
    if (times[1:] == times[:-1]).any():
        made, number, attempts = fields[1:4]
        order = np.lexsort((number, made, fields[0]))
        times, made, first = fields[0][order], made[order], attempts[order] == 1
        alike = (times[1:] == times[:-1]) & (made[1:] == made[:-1])
        if (alike & (first[1:] != first[:-1])).any():
            raise AmbiguousOrderError
    return cast("_Sends", tuple(each[order] for each in fields))


@final
class _Retries:
    """The retries to come.

    Attributes:
        waiting: Those of each window.
        width: The time of a window, in nanoseconds.
    """

    width: int

    def __init__(self, plan: Plan, seed: int | None, of_all: int, end: int) -> None:
        self.waiting: defaultdict[int, list[_Sends]] = defaultdict(list)
        self._plan, self._seed, self._end = plan, seed, end
        self._first = first_seed(of_all)

    def add(
        self,
        failed: Array,
        order: Array,
        attempts: Array,
        began: Array,
        numbers: Array,
    ) -> Array:
        """Add what follows attempts that have failed.

        Args:
            failed: When they failed.
            order: The numbers of their sends.
            attempts: The numbers of the attempts.
            began: When their calls began.
            numbers: The numbers of the calls.

        Returns:
            When calls gave up.
        """
        delays = np.full(len(failed), math.inf)
        for attempt in range(int(attempts.min()), int(attempts.max()) + 1):
            chosen = np.flatnonzero(attempts == attempt)
            if len(chosen):
                delays[chosen] = self._delays(
                    attempt, failed[chosen], began[chosen], numbers[chosen]
                )
        given_up = failed[delays < 0]
        times = failed + np.rint(np.minimum(delays, _LONG) * SECOND).astype(np.int64)
        again = np.flatnonzero((delays >= 0) & (times < self._end))
        windows = times[again] // self.width
        sorted_ = np.argsort(windows, kind="stable")
        again, windows = again[sorted_], windows[sorted_]
        fields = times, failed, order, attempts + 1, began, numbers
        if not len(again):
            return given_up
        ends = np.flatnonzero(windows[1:] != windows[:-1]) + 1
        for part in np.split(again, ends):
            place = int(times[part[0]] // self.width)
            self.waiting[place].append(
                cast("_Sends", tuple(each[part] for each in fields))
            )
        return given_up

    def _delays(
        self, attempt: int, failed: Array, began: Array, numbers: Array
    ) -> Array:
        """Return the delays before retries, in seconds; -1 of no retry."""
        plan, own = self._plan, self._seed
        if attempt >= plan.most:
            return np.full(len(failed), -1.0)
        low, step = plan.delays[attempt]
        delays = np.full(len(failed), low)
        seeds = self._first + numbers
        if own is not None:
            seeds = np.full(len(failed), own)
        if step:
            delays += step * delay_draws(seeds, attempt)
        near = ~((failed - began) / SECOND + delays < plan.limit)
        for index in np.flatnonzero(near):
            draws = SharedDraws(int(seeds[index])), 0
            call = int(began[index]), *draws
            found = plan.delay_after(call, attempt, int(failed[index]), TIMED_OUT)
            delays[index] = -1.0 if found is None else found
        return delays


@final
class _Counts:
    """Counts for a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._waits = np.zeros(64 << _DIGITS, np.int64)

    def count(self, name: str, times: Array) -> None:
        """Count times in each second of an attribute."""
        if not len(times):
            return
        seconds = times // SECOND
        first = int(seconds.min())
        kept = getattr(self._recorder, name)
        for second, number in enumerate(np.bincount(seconds - first).tolist(), first):
            kept[second] += number

    def queue(self, times: Array, starts: Array) -> None:
        """Count requests that wait, by when they arrive and are served."""
        end = self._recorder.end
        waits = (starts > times) & (times < end)
        self.count("queued", times[waits])
        starts = starts[waits]
        self.count("served", starts[starts < end])

    def fail(self, sent: Array) -> None:
        """Count attempts that fail, by the times when they were sent, in order."""
        self.count("failed", sent)
        last = np.flatnonzero(np.diff(sent // SECOND, append=-1))
        for time in sent[last].tolist():
            self._recorder.last_failed[time // SECOND] = time

    def succeed(self, sent: Array, finish: Array, began: Array) -> None:
        """Count attempts and calls that succeed."""
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
        """Hand over what was counted by itself."""
        waits = self._recorder.waits
        for alike in np.flatnonzero(self._waits).tolist():
            shift, digits = divmod(alike, 1 << _DIGITS)
            waits.add_similar(digits << shift, int(self._waits[alike]))
        self._recorder.settle()


_DIGITS: Final = 8
