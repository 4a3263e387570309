"""A first-in, first-out server, which knows on arrival when it will serve a request."""

from collections import deque
from collections.abc import Callable
from heapq import heapreplace
from typing import Final, cast

from retrykit._internal.durations import CENTURY
from retrykit.simulate._draws import Stream
from retrykit.simulate._events import SECOND, nanoseconds
from retrykit.simulate._failures import BUSY, FAILED, REFUSED
from retrykit.simulate._outage import Outage
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._server import Server, slow_start

__all__ = ["NEVER", "AmbiguousOrderError", "first_in_first_out"]

NEVER: Final = 2 * int(CENTURY) * SECOND
"""A time that is later than every simulation, in nanoseconds."""


class AmbiguousOrderError(Exception):
    """Two events have the same time, and their order is unknown."""


Receive = Callable[[int, int], int]
"""Takes when a request arrives, and when it was sent; returns when it has been served.

That is `NEVER` if the request gets no answer. If the request fails at once, it is -1
minus the number of the way to fail.
"""


def first_in_first_out(  # noqa: C901, PLR0915  a closure, which is quicker than an object
    server: Server, outage: Outage | None, seed: int, recorder: Recorder
) -> tuple[Receive, Callable[[], int]]:
    """Return the functions of a server that serves requests in the order of arrival.

    The server answers as `SimulatedServer` does, but without events.

    Args:
        server: Its settings.
        outage: When and how it fails.
        seed: The seed of the simulation.
        recorder: Counts the requests that have to wait.

    Returns:
        A function that receives requests, in the order of their arrival, and a function
        that returns when the service of the last accepted request starts.
    """
    service = nanoseconds(server.slots / server.capacity)
    most = server.most_waiting
    draw = None
    if server.service == "exponential":
        draw = Stream(seed, "service times").exponentials(service).__next__
    chosen = Stream(seed, "failed requests").random
    # When each slot is free, and when it started to serve.
    slots = [(0, -1)] * server.slots if server.slots > 1 else []
    free, started = 0, -1
    # When requests in the queue are served, and when the event for it was made.
    waiting: deque[tuple[int, int]] = deque()
    begin = end = slow_until = ramp = pause_begin = pause_end = -1
    share, failure = 1.0, NEVER
    if outage is not None:
        begin = nanoseconds(outage.begin)
        end = begin + nanoseconds(outage.duration)
        ramp = nanoseconds(outage.slow_start)
        slow_until, share = end + ramp, outage.share
        if outage.kind != "error" and share == 1:
            pause_begin, pause_end = begin, end
        if outage.kind != "hang":
            failure = -1 - (REFUSED if outage.kind == "refuse" else FAILED)
        elif share == 1:
            # It takes all requests.
            begin = end
    changed_until = max(end, slow_until)
    queued, served, counted_until = recorder.queued, recorder.served, recorder.end

    def receive(now: int, sent: int) -> int:  # noqa: C901  quicker in one
        nonlocal free, started
        if now < end and begin <= now and (share == 1 or chosen() < share):
            return failure
        if most is not None and is_full(now, sent):
            return -1 - BUSY
        made = started
        if slots:
            free, made = slots[0]
        start = free if free > now else now
        if start < changed_until and pause_begin <= start < pause_end:
            start = free = pause_end
            made = -1
        if most is not None and free >= now:
            waiting.append((start, made))
        if start > now and now < counted_until:
            queued[now // SECOND] += 1
            if start < counted_until:
                served[start // SECOND] += 1
        duration = service
        if draw is not None:
            duration = draw()
        if start < changed_until and end <= start:
            duration = slow_start(duration, start - end, ramp)
        started = start
        free = finish = start + duration
        if slots:
            heapreplace(slots, (finish, start))
        return finish

    def is_full(now: int, sent: int) -> bool:
        """Return whether no more requests may wait.

        Raises:
            AmbiguousOrderError: It is unknown whether a waiting request is served
                before this one arrives.
        """
        while waiting:
            start, made = waiting[0]
            if start > now or (start == now and made > sent):
                break
            if start == now and made == sent:
                raise AmbiguousOrderError
            waiting.popleft()
        return len(waiting) >= cast("int", most)

    return receive, lambda: started
