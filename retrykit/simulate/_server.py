"""The server of a simulation: a queue of requests, and slots that serve them."""

from collections import deque
from typing import TYPE_CHECKING, Final, Literal, Protocol, final

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
from retrykit.simulate._failures import BUSY, FAILED, REFUSED
from retrykit.simulate._named_values import NamedValue
from retrykit.simulate._outage import Outage

if TYPE_CHECKING:
    from retrykit.simulate._calls import Attempt

__all__ = ["Answers", "Drops", "Order", "Server", "ServiceTimes", "SimulatedServer"]

ServiceTimes = Literal["constant", "exponential"]
"""How long requests take."""

Order = Literal["oldest_first", "newest_first"]
"""The order in which requests are served."""

Drops = Literal["nothing", "abandoned", "late"]
"""The requests in the queue that a server does not serve."""

_SERVICE: Final = ("constant", "exponential")
_ORDERS: Final = ("oldest_first", "newest_first")
_DROPS: Final = ("nothing", "abandoned", "late")
_FASTEST: Final = 1e6


@final
class Server(NamedValue):
    """A server with one queue.

    >>> Server(300, queue_bound="500ms").queue_bound
    0.5

    Args:
        capacity: Requests per second, 0.001 to 1,000,000; 100 by default.
        slots: Number of requests that it serves at once. Count, >= 1; 1 by default. A
            request takes ``slots / capacity`` seconds on average.
        service: ``"constant"``, the default: every request takes as long;
            ``"exponential"``: the times are exponentially distributed.
        queue_bound: The queue holds so much work; what exceeds it is answered with a
            503 at once. A duration, in which the whole server serves a full queue;
            None, the default, is unlimited.
        order: ``"oldest_first"``, the default, or ``"newest_first"``.
        drops: What it leaves out when it takes a request from the queue: ``"nothing"``,
            the default; ``"abandoned"``, requests whose clients have timed out;
            ``"late"``, those and the ones that cannot be served in time.

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
            slots=check_integer("slots", slots, at_least=1),
            service=service,
            queue_bound=bound,
            order=order,
            drops=drops,
        )
        if self.most_waiting is not None and self.most_waiting < 1:
            rule = f"the time of one request or more, {1 / self.capacity:g} s"
            raise invalid_setting("queue_bound", rule, queue_bound)

    @property
    def most_waiting(self) -> int | None:
        """Number of requests that may wait; None if unlimited."""
        bound = self.queue_bound
        return None if bound is None else round(bound * self.capacity)


class Answers(Protocol):
    """The clients, as a server sees them."""

    def answer(self, attempt: "Attempt", failure: int | None) -> None:
        """Tell how an attempt ended: None is a success."""
        ...

    def awaits(self, attempt: "Attempt") -> bool:
        """Return whether a client still waits for the answer of an attempt."""
        ...


@final
class SimulatedServer:
    """A server that runs.

    Args:
        server: Its settings.
        outage: When and how it fails.
        events: The events of the simulation.
        seed: The seed of the simulation.
        clients: Who gets its answers.
    """

    def __init__(
        self,
        server: Server,
        outage: Outage | None,
        events: Events,
        seed: int,
        clients: Answers,
    ) -> None:
        self._events, self._clients = events, clients
        self._queue: deque[Attempt] = deque()
        self._free = server.slots
        self._service = nanoseconds(server.slots / server.capacity)
        self._exponential = server.service == "exponential"
        self._newest_first = server.order == "newest_first"
        self._leaves_out, self._late = server.drops != "nothing", server.drops == "late"
        self._most = server.most_waiting
        self._times = Stream(seed, "service times")
        self._chosen = Stream(seed, "failed requests")
        self._begin = self._end = self._slow_until = 0
        self._outage, self._paused = outage, False
        if outage is not None:
            self._begin = nanoseconds(outage.begin)
            self._end = self._begin + nanoseconds(outage.duration)
            self._slow_until = self._end + nanoseconds(outage.slow_start)
            if outage.kind != "error" and outage.share == 1:
                events.at(self._begin, self._pause, True)  # noqa: FBT003  its argument
                events.at(self._end, self._pause, False)  # noqa: FBT003  its argument

    def _pause(self, paused: bool) -> None:  # noqa: FBT001  the argument of an event
        self._paused = paused
        self._serve()

    def receive(self, attempt: "Attempt") -> None:
        """Take a request: queue it, or answer it at once."""
        outage = self._outage
        if (
            outage is not None
            and self._begin <= self._events.now < self._end
            and (outage.share == 1 or self._chosen.random() < outage.share)
        ):
            if outage.kind == "refuse":
                self._clients.answer(attempt, REFUSED)
                return
            if outage.kind == "error":
                self._clients.answer(attempt, FAILED)
                return
            if outage.share < 1:
                return
        if self._most is not None and len(self._queue) >= self._most:
            self._clients.answer(attempt, BUSY)
            return
        self._queue.append(attempt)
        if self._free:
            self._serve()

    def _serve(self) -> None:
        """Serve requests of the queue while slots are free."""
        queue, now = self._queue, self._events.now
        while queue and self._free and not self._paused:
            attempt = queue.pop() if self._newest_first else queue.popleft()
            if self._leaves_out and not self._clients.awaits(attempt):
                continue
            duration = self._service
            if self._exponential:
                duration = self._times.exponential(duration)
            if self._end <= now < self._slow_until:
                ramp = self._slow_until - self._end
                # From ten times as long, down to as long as before.
                duration = duration * 10 * ramp // (ramp + 9 * (now - self._end))
            if self._late and now + duration > attempt.deadline:
                continue
            self._free -= 1
            self._events.at(now + duration, self._finish, attempt)

    def _finish(self, attempt: "Attempt") -> None:
        self._free += 1
        self._clients.answer(attempt, None)
        self._serve()
