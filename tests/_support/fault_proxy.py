"""A TCP proxy on 127.0.0.1 that injects the planned fault into each connection.

    with proxy(server.port, refused(), cut_down(after=10), through()) as faults:
        fetch(f"http://127.0.0.1:{faults.port}")
        faults.listen()

It knows no HTTP. Each connection takes the next plan; the last plan is repeated.
"""

import selectors
import socket
import sys
from dataclasses import dataclass

from tests._support.socket_server import TIMEOUT, SocketServer

__all__ = ["Plan", "Proxy", "cut_down", "delay", "hang", "proxy", "refused"]
__all__ += ["reset_at_once", "reset_upload", "slow", "through"]


@dataclass(frozen=True)
class Plan:
    """The plan of a connection.

    The kind is "through", "refused", "reset" or "hang". A connection that goes
    through gets the server's first byte *delay* seconds later, and its bytes in
    pieces of *size* with *pause* seconds before each. It ends *after* so many bytes,
    with RST or FIN; or with RST when the client has sent *taken* bytes.
    """

    kind: str = "through"
    delay: float = 0.0
    size: int = 65536
    pause: float = 0.0
    after: int = sys.maxsize
    reset: bool = False
    taken: int = sys.maxsize


def through():
    """Forward everything, the server's FIN and RST included."""
    return Plan()


def refused():
    """Refuse connections while this is the next plan, until `listen` is called."""
    return Plan("refused")


def reset_at_once():
    """Accept, and reset when the client begins to send, forwarding nothing.

    An earlier reset would reach some clients while they connect and some later.
    """
    return Plan("reset")


def hang():
    """Accept and read, and forward nothing, until the client closes."""
    return Plan("hang")


def cut_down(after, *, reset=False):
    """End the connection after so many of the server's bytes.

    0 ends it when the server begins to answer.
    """
    return Plan(after=after, reset=reset)


def reset_upload(taken):
    """Reset the connection when the client has sent at least so many bytes."""
    return Plan(taken=taken)


def delay(seconds):
    """Delay the server's first byte."""
    return Plan(delay=seconds)


def slow(size, pause):
    """Forward the server's bytes in pieces, with a pause before each."""
    return Plan(size=size, pause=pause)


class Proxy(SocketServer):
    """The proxy that `proxy` returns."""

    def __init__(self, target, plans):
        super().__init__()
        self._target = target
        self._plans = list(plans)
        self._accepted_before = 0
        self._listen_if_planned()

    def refuse(self):
        """Refuse connections until `listen` is called.

        Open connections stay open; the remaining plans follow later.
        """
        super().refuse()
        if self._plans[0].kind != "refused":
            self._plans.insert(0, refused())

    def listen(self):
        """Skip one plan that refuses, and listen if the next one does not refuse.

        If the last plan refuses, it refuses forever.
        """
        if self._plans[0].kind == "refused":
            self._advance()
        self._listen_if_planned()

    def attempt_failed(self):
        """Listen again if the failed attempt was refused.

        It was, if no connection was accepted since the failure before.
        """
        if self.accepted == self._accepted_before:
            self.listen()
        self._accepted_before = self.accepted

    def handler_for(self, connection):
        plan = self._plans[0]
        self._advance()
        if self._plans[0].kind == "refused":
            self._listening = False
        return lambda: self._do(connection, plan)

    def _advance(self):
        if len(self._plans) > 1:
            del self._plans[0]

    def _listen_if_planned(self):
        if self._plans[0].kind != "refused":
            super().listen()

    def _do(self, connection, plan):
        if plan.kind == "reset":
            _reset(connection)
        elif plan.kind == "hang":
            connection.drain()
        else:
            with self._reach(connection) as far:
                _forward(connection, far, plan)

    def _reach(self, connection):
        try:
            far = socket.create_connection(("127.0.0.1", self._target), TIMEOUT)
        except OSError:
            _reset(connection)
            raise
        connection.others.append(far)
        return far


def proxy(target, *plans):
    """Return a proxy in front of a port; a context manager."""
    return Proxy(target, plans or (through(),))


def _reset(connection):
    connection.sock.recv(1, socket.MSG_PEEK)
    connection.reset()


def _forward(connection, far, plan):
    with selectors.DefaultSelector() as sides:
        sides.register(connection.sock, selectors.EVENT_READ)
        sides.register(far, selectors.EVENT_READ)
        remaining, delay, taken = plan.after, plan.delay, plan.taken
        # If the proxy was closed meanwhile, it did not close the far side.
        connection.pause(0)
        while ready := {key.fileobj for key, _ in sides.select(TIMEOUT)}:
            if connection.sock in ready:
                sent = _up(connection, far)
                taken -= len(sent)
                if taken <= 0:
                    connection.reset()
                    return
                if not sent:
                    sides.unregister(connection.sock)
            if far in ready:
                data = _down(connection, far, plan.size)
                connection.pause(delay + plan.pause)
                connection.send(data[:remaining])
                remaining, delay = remaining - len(data), 0.0
                if remaining <= 0 and plan.reset:
                    connection.reset()
                if remaining <= 0 or not data:
                    return


def _up(connection, far):
    data = connection.sock.recv(65536)
    if data:
        far.sendall(data)
    else:
        far.shutdown(socket.SHUT_WR)
    return data


def _down(connection, far, size):
    try:
        return far.recv(size)
    except ConnectionResetError:
        connection.reset()
        raise
