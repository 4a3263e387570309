"""Requests of simulated clients whose attempts have layers below them.

A process sends requests on its connections. Above these are the retries of an SDK and
the hedge of the policy, if the clients have them, and at the top the retries of the
policy, which ask its limits. Each is a `Layer` that sends through the one below it.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol, final

from retrykit.simulate._calls import Call
from retrykit.simulate._events import Event, Events
from retrykit.simulate._failures import TIMED_OUT
from retrykit.simulate._recorder import Recorder

__all__ = ["NEVER", "Connections", "Done", "Layer", "Line", "Request", "Sending"]
__all__ += ["Whole"]

NEVER = 1 << 100
"""A time that no simulation reaches, in nanoseconds."""

Done = Callable[[int | None], None]
"""Takes how a send ended: None means success."""


@final
class Whole:
    """A call of a client, with all that is sent for it.

    Attributes:
        user: The number of the user who makes it; None if the load is open.
        call: What the decisions of its policy need to know.
        requests: Number of requests that were sent.
        active: Whether it has not ended.
        succeed: Ends the call with success, when the answer to an earlier request comes
            late.
    """

    __slots__ = ("active", "call", "requests", "succeed", "user")

    call: Call
    succeed: Callable[[], None]

    def __init__(self, user: int | None) -> None:
        self.user = user
        self.requests = 0
        self.active = True


class Sending(Protocol):
    """A request under way, or several, one after another or at once."""

    def cancel(self, *, succeeded: bool | None) -> None:
        """Cancel all that is in progress.

        Args:
            succeeded: Whether the requests count as succeeded or as failed; None if
                others replace them.
        """
        ...


class Layer(Protocol):
    """A layer of a process that sends something."""

    def send(self, whole: Whole, deadline: int, done: Done, /) -> Sending:
        """Begin to send.

        Args:
            whole: The call that the sending belongs to.
            deadline: When the layer above cancels the sending, in nanoseconds.
            done: Called when the sending ends without being cancelled, after this
                method has returned.
        """
        ...


@final
class Line:
    """The way from clients to their server.

    Attributes:
        send: Sends each request to the server.
        events: The events of the simulation.
        recorder: Counts what happens.
        late_answers: Whether the answer to an attempt that has timed out ends its call.
    """

    send: Callable[["Request"], None]

    def __init__(
        self, events: Events, recorder: Recorder, *, late_answers: bool
    ) -> None:
        self.events, self.recorder = events, recorder
        self.late_answers = late_answers


@final
class Request:
    """A request on its way to the server and back.

    Attributes:
        whole: The call that it belongs to.
        sent: When it was sent, in nanoseconds; None while it waits for a connection.
        deadline: When its client gives it up, in nanoseconds.
        open: Whether somebody waits for its answer.
        arrives: When it reaches the server, in nanoseconds; -1 until that is known.
        number: The number of its arrival among the events; -1 until that is known.
        connections: The connections of its process.
        done: Called when it ends without being cancelled.
        timer: The event of its own timeout; None if it has none.
    """

    __slots__ = (
        "arrives",
        "connections",
        "deadline",
        "done",
        "number",
        "open",
        "sent",
        "timer",
        "whole",
    )

    def __init__(
        self, connections: "Connections", whole: Whole, deadline: int, done: Done
    ) -> None:
        self.connections, self.whole = connections, whole
        self.deadline, self.done = deadline, done
        self.sent: int | None = None
        self.timer: Event | None = None
        self.open = True
        self.arrives = self.number = -1

    def cancel(self, *, succeeded: bool | None) -> None:
        """Stop waiting for the answer, and count the request as `Sending` says."""
        self.connections.end(self, succeeded=succeeded)


@final
class Connections:
    """The connections of a process, each of which has one request at a time.

    Args:
        line: The way to the server.
        timeout: How long a request waits for a connection and its answer, in
            nanoseconds.
        number: Number of connections; None is unlimited.
    """

    def __init__(self, line: Line, timeout: int, number: int | None) -> None:
        self._line, self._timeout = line, timeout
        self._free = number
        self._waiting: deque[Request] = deque()

    def send(self, whole: Whole, deadline: int, done: Done, /) -> Request:
        """Send a request, once there is a connection."""
        own = self._line.events.now + self._timeout
        request = Request(self, whole, min(own, deadline), done)
        if own < deadline:
            request.timer = self._line.events.at(own, self._time_out, request)
        if self._free is None:
            self._transmit(request)
        elif self._free:
            self._free -= 1
            self._transmit(request)
        else:
            self._waiting.append(request)
        return request

    def end(self, request: Request, *, succeeded: bool | None) -> None:
        """Count the end of a request, and give its connection to the next one."""
        request.open = False
        if request.timer is not None:
            self._line.events.cancel(request.timer)
            request.timer = None
        recorder = self._line.recorder
        if request.sent is None:
            if succeeded is False:  # pragma: no branch  (an attempt that is cut short)
                recorder.refuse(self._line.events.now)
            return
        recorder.finish_request(request.sent, succeeded=succeeded)
        if self._free is None:
            return
        while self._waiting:
            following = self._waiting.popleft()
            if following.open:
                self._transmit(following)
                return
        self._free += 1

    def _transmit(self, request: Request) -> None:
        line, whole = self._line, request.whole
        request.sent = now = line.events.now
        line.recorder.send(now, first=not whole.requests)
        whole.requests += 1
        line.send(request)

    def _time_out(self, request: Request) -> None:
        request.timer = None
        self.end(request, succeeded=False)
        request.done(TIMED_OUT)
