"""The server of a simulation: a queue of requests, and slots that serve them."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast, final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    check_choice,
    check_integer,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.simulate._draws import Stream
from retrykit.simulate._events import Events, nanoseconds
from retrykit.simulate._failures import BUSY, FAILED, FAILED_CALL, REFUSED
from retrykit.simulate._named_values import NamedValue
from retrykit.simulate._outage import Outage

if TYPE_CHECKING:
    from retrykit.simulate._calls import Attempt

__all__ = ["Answers", "Begin", "Drops", "Order", "Server", "ServiceTimes"]
__all__ += ["SimulatedServer", "slow_start"]

ServiceTimes = Literal["constant", "exponential"]
"""The distribution of the times that requests take."""

Order = Literal["oldest_first", "newest_first"]
"""The order in which requests are served."""

Drops = Literal["nothing", "abandoned", "late"]
"""The requests in the queue that a server does not serve."""

_SERVICE: Final = ("constant", "exponential")
_ORDERS: Final = ("oldest_first", "newest_first")
_DROPS: Final = ("nothing", "abandoned", "late")
_FASTEST: Final = 1e6
_MOST_SLOTS: Final = 1_000_000


@final
class Server(NamedValue):
    """A server with one queue.

    >>> Server(300, queue_bound="500ms").queue_bound
    0.5

    Args:
        capacity: Requests per second, 0.001 to 1,000,000; 100 by default.
        slots: Number of requests that it serves at once. Count, 1 to 1,000,000; 1 by
            default. A request takes ``slots / capacity`` seconds on average.
        service: ``"constant"``, the default: every request takes equally long;
            ``"exponential"``: the times are exponentially distributed.
        queue_bound: How long the whole server takes to serve a full queue; requests
            beyond it are answered with a 503 at once. A duration, long enough for one
            request; None, the default, is unlimited.
        order: ``"oldest_first"``, the default, or ``"newest_first"``.
        drops: What it leaves out when it takes a request from the queue: ``"nothing"``,
            the default; ``"abandoned"``, requests whose clients have timed out;
            ``"late"``, these and requests that cannot be served in time.

    Raises:
        ConfigError: A setting is invalid.
    """

    __slots__ = ("capacity", "drops", "order", "queue_bound", "service", "slots")
    capacity: float
    slots: int
    service: ServiceTimes
    queue_bound: float | None
    order: Order
    drops: Drops

    @user_facing
    def __init__(  # noqa: PLR0913  named
        self,
        capacity: float = 100.0,
        *,
        slots: int = 1,
        service: ServiceTimes = "constant",
        queue_bound: Duration | None = None,
        order: Order = "oldest_first",
        drops: Drops = "nothing",
    ) -> None:
        check_choice("service", service, _SERVICE)
        check_choice("order", order, _ORDERS)
        check_choice("drops", drops, _DROPS)
        bound = queue_bound
        if bound is not None:
            bound = parse_duration("queue_bound", bound)
        Frozen.__init__(
            self,
            capacity=check_number(
                "capacity", capacity, at_least=1e-3, at_most=_FASTEST
            ),
            slots=check_integer("slots", slots, at_least=1, at_most=_MOST_SLOTS),
            service=service,
            queue_bound=bound,
            order=order,
            drops=drops,
        )
        if self.most_waiting is not None and self.most_waiting < 1:
            rule = f"the time of one request or more, {1 / self.capacity:g} s"
            raise invalid_setting(
                "queue_bound", rule, queue_bound, code="contradiction"
            )

    @property
    def most_waiting(self) -> int | None:
        """The number of requests that may wait; None if unlimited."""
        bound = self.queue_bound
        return None if bound is None else round(bound * self.capacity)


Begin = Callable[[None, Callable[[int | None], None]], None]
"""Begins a call to the next server; its second argument takes how the call failed."""


class Answers(Protocol):
    """The clients, as a server sees them."""

    def answer(self, attempt: Any, failure: int | None, /) -> None:
        """Handle the answer to an attempt; *failure* is None for a success."""
        ...

    def awaits(self, attempt: Any, /) -> bool:
        """Return whether a client still waits for the answer to an attempt."""
        ...


@final
class SimulatedServer:
    """A running server, with its queue and its slots.

    Args:
        server: Its settings.
        outage: When and how it fails.
        events: The events of the simulation.
        seed: The seed of the simulation.
        network: Time from a client to the server, in nanoseconds.
        clients: The clients that get its answers.
        begin: Begins the call of a request to the next server; None if there is no
            next one.
    """

    def __init__(  # noqa: PLR0913, PLR0917  its surroundings
        self,
        server: Server,
        outage: Outage | None,
        events: Events,
        seed: int,
        network: int,
        clients: Answers,
        begin: Begin | None = None,
    ) -> None:
        self._begin_call = begin
        self._served = self._finish if begin is None else self._call
        self._events, self._clients, self._network = events, clients, network
        self._queue: deque[Attempt] = deque()
        self._newest_first = server.order == "newest_first"
        self._take = self._queue.pop if self._newest_first else self._queue.popleft
        self._most = server.most_waiting
        self._waking = self._paused = False
        self._free = server.slots
        self._service = nanoseconds(server.slots / server.capacity)
        self._times: Iterator[int] | None = None
        if server.service == "exponential":
            self._times = Stream(seed, "service times").exponentials(self._service)
        self._leaves_out, self._late = server.drops != "nothing", server.drops == "late"
        self._chosen = Stream(seed, "failed requests").random
        self._outage, self._begin, self._end, self._slow_until = outage, 0, 0, 0
        answers = False
        if outage is not None:
            self._begin = nanoseconds(outage.begin)
            self._end = self._begin + nanoseconds(outage.duration)
            self._slow_until = self._end + nanoseconds(outage.slow_start)
            if outage.kind != "error" and outage.share == 1:
                events.at(self._begin, self._pause, True)  # noqa: FBT003  its argument
                events.at(self._end, self._pause, False)  # noqa: FBT003  its argument
            answers = outage.kind != "hang" or outage.share < 1
        # Whether more than the queue matters when a request arrives, and when it is
        # served.
        self._looks = answers or self._newest_first or self._most is not None
        self._varies = self._leaves_out or self._times is not None
        self._varies = self._varies or self._slow_until > self._end

    def _pause(self, paused: bool) -> None:  # noqa: FBT001  the argument of an event
        self._paused = paused
        self._serve()

    @property
    def waiting(self) -> int:
        """The number of requests in the queue, without those on their way."""
        now, found = self._events.now, len(self._queue)
        while found and self._queue[found - 1].arrives >= now:
            found -= 1
        return found

    def begin_with(self, abandoned: Sequence["Attempt"]) -> None:
        """Begin with requests in the queue whose clients have timed out.

        Requests beyond the bound of the queue are dropped.
        """
        self._queue.extend(abandoned[: self._most])
        self._serve()

    def send(self, attempt: "Attempt") -> None:
        """Take note of a request on its way, which arrives later.

        Its arrival is an event only if it changes something: a request that has to wait
        is found in the queue when a slot is free.
        """
        events = self._events
        attempt.arrives = events.now + self._network
        if self._looks and self._look(attempt):
            return
        events.made = attempt.number = events.made + 1
        if self._free and not (self._queue or self._waking or self._paused):
            self._wait_for(attempt)
        self._queue.append(attempt)

    def _look(self, attempt: "Attempt") -> bool:
        """Handle an arrival that changes something.

        Returns:
            Whether the request has been handled; False if it goes into the queue.
        """
        events, outage, arrives = self._events, self._outage, attempt.arrives
        if (
            outage is not None
            and self._begin <= arrives < self._end
            and (outage.share == 1 or self._chosen() < outage.share)
        ):
            if outage.kind != "hang":
                failure = REFUSED if outage.kind == "refuse" else FAILED
                events.at(arrives, self._fail, (attempt, failure))
                return True
            if outage.share < 1:
                return True
        if self._newest_first or self._most is not None:
            events.at(arrives, self._receive, attempt)
            return True
        return False

    def _fail(self, failed: tuple["Attempt", int]) -> None:
        self._clients.answer(*failed)

    def _receive(self, attempt: "Attempt") -> None:
        """Queue a request that arrives; answer it with a 503 if the queue is full."""
        if self._most is not None and len(self._queue) >= self._most:
            self._clients.answer(attempt, BUSY)
            return
        self._queue.append(attempt)
        if self._free:
            self._serve()

    def _wait_for(self, attempt: "Attempt") -> None:
        """Schedule the arrival of a request that can be served at once."""
        self._waking = True
        self._events.put([attempt.arrives, attempt.number, self._wake, None])

    def _wake(self, _: None) -> None:
        self._waking = False
        self._serve()

    def _serve(self) -> None:
        """Serve requests of the queue while slots are free."""
        queue, events = self._queue, self._events
        now = events.now
        while self._free and queue and not self._paused:
            attempt = self._take()
            if attempt.arrives >= now and (
                attempt.arrives > now or attempt.number > events.number
            ):
                queue.appendleft(attempt)
                if not self._waking:
                    self._wait_for(attempt)
                return
            duration = self._service
            if self._varies:
                varied = self._duration(attempt, now)
                if varied is None:
                    continue
                duration = varied
            self._free -= 1
            events.at(now + duration, self._served, attempt)

    def _duration(self, attempt: "Attempt", now: int) -> int | None:
        """Return how long a request takes, in nanoseconds; None if it is left out."""
        if self._leaves_out and not self._clients.awaits(attempt):
            return None
        duration = self._service if self._times is None else next(self._times)
        if self._end <= now < self._slow_until:
            ramp = self._slow_until - self._end
            duration = slow_start(duration, now - self._end, ramp)
        if self._late and now + duration > attempt.deadline:
            return None
        return duration

    def _finish(self, attempt: "Attempt") -> None:
        self._free += 1
        self._clients.answer(attempt, None)
        if self._queue:
            self._serve()

    def _call(self, attempt: "Attempt") -> None:
        """Call the next server for a request, whose slot stays taken meanwhile."""
        begin = cast("Begin", self._begin_call)
        begin(None, partial(self._end_call, attempt))

    def _end_call(self, attempt: "Attempt", failure: int | None) -> None:
        self._free += 1
        self._clients.answer(attempt, None if failure is None else FAILED_CALL)
        self._serve()


def slow_start(duration: int, passed: int, ramp: int) -> int:
    """Return how long a request takes in the slow start after an outage.

    The time falls from ten times the normal time to the normal time.

    Args:
        duration: The normal time.
        passed: The time since the outage.
        ramp: How long the slow start takes, > 0.
    """
    return duration * 10 * ramp // (ramp + 9 * passed)
