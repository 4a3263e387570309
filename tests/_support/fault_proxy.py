"""A TCP proxy on 127.0.0.1 that does to each connection what a plan says.

    with proxy(server.port, refused(), cut_down(after=10), through()) as faults:
        fetch(f"http://127.0.0.1:{faults.port}")
        faults.listen()

It knows nothing of HTTP. Each connection takes the next plan, and the last plan
is for all that follow.
"""

import selectors
import socket
import sys
from dataclasses import dataclass

from tests._support.accepting import PATIENCE, Acceptor

__all__ = ["Plan", "Proxy", "cut_down", "delay", "hang", "proxy", "refused"]
__all__ += ["reset_at_once", "reset_upload", "slow", "through"]


@dataclass(frozen=True)
class Plan:
    """What becomes of a connection.

    The kind is "through", "refused", "reset" or "hang". What goes through waits
    *delay* seconds before the server's first byte, comes from the server in
    pieces of *size* bytes with *pause* seconds before each, and ends *after*
    so many of them, with RST or with FIN; or with RST when the client has sent
    *taken* bytes.
    """

    kind: str = "through"
    delay: float = 0.0
    size: int = 65536
    pause: float = 0.0
    after: int = sys.maxsize
    reset: bool = False
    taken: int = sys.maxsize


def through():
    """Hand on all that comes, the server's FIN and RST among it."""
    return Plan()


def refused():
    """Let nobody listen while this is the next plan, until `listen` is called."""
    return Plan("refused")


def reset_at_once():
    """Accept, and reset when the client begins to send, handing nothing on.

    Sooner, it would meet some clients while they connect and some later.
    """
    return Plan("reset")


def hang():
    """Accept and read, and hand nothing on for as long as the client stays."""
    return Plan("hang")


def cut_down(after, *, reset=False):
    """End the connection after so many bytes from the server to the client.

    After 0 bytes means: when the server begins to answer.
    """
    return Plan(after=after, reset=reset)


def reset_upload(taken):
    """Reset the connection when the client has sent so many bytes, or more."""
    return Plan(taken=taken)


def delay(seconds):
    """Hold the server's first byte back."""
    return Plan(delay=seconds)


def slow(size, pause):
    """Hand the server's bytes on so many at a time, with a pause before each."""
    return Plan(size=size, pause=pause)


class Proxy(Acceptor):
    """What `proxy` gives: where it is, and who listens."""

    def __init__(self, target, plans):
        super().__init__()
        self._target = target
        self._plans = list(plans)
        self._known = 0
        self._follow()

    def refuse(self):
        """Let nobody listen from here on, until `listen` is called.

        Connections that are open stay so, and the plans that are left are kept.
        """
        super().refuse()
        if self._plans[0].kind != "refused":
            self._plans.insert(0, refused())

    def listen(self):
        """Go past one plan that refuses, and listen if the next one does not.

        As the last plan it refuses for ever.
        """
        if self._plans[0].kind == "refused":
            self._advance()
        self._follow()

    def failed(self):
        """Listen again if an attempt was refused; to be told after each failure.

        It was, if nobody was accepted since the failure before.
        """
        if self.accepted == self._known:
            self.listen()
        self._known = self.accepted

    def meet(self, line):
        plan = self._plans[0]
        self._advance()
        if self._plans[0].kind == "refused":
            self._listening = False
        return lambda: self._do(line, plan)

    def _advance(self):
        if len(self._plans) > 1:
            del self._plans[0]

    def _follow(self):
        if self._plans[0].kind != "refused":
            super().listen()

    def _do(self, line, plan):
        if plan.kind == "reset":
            _reset(line)
        elif plan.kind == "hang":
            line.swallow()
        else:
            with self._reach(line) as far:
                _carry(line, far, plan)

    def _reach(self, line):
        try:
            far = socket.create_connection(("127.0.0.1", self._target), PATIENCE)
        except OSError:
            _reset(line)
            raise
        line.others.append(far)
        return far


def proxy(target, *plans):
    """Return a proxy in front of a port, to be closed by `with`."""
    return Proxy(target, plans or (through(),))


def _reset(line):
    line.sock.recv(1, socket.MSG_PEEK)
    line.reset()


def _carry(line, far, plan):
    with selectors.DefaultSelector() as sides:
        sides.register(line.sock, selectors.EVENT_READ)
        sides.register(far, selectors.EVENT_READ)
        left, held, taken = plan.after, plan.delay, plan.taken
        # If the proxy has closed meanwhile, it did not know of the far side.
        line.pause(0)
        while ready := {key.fileobj for key, _ in sides.select(PATIENCE)}:
            if line.sock in ready:
                sent = _up(line, far)
                taken -= len(sent)
                if taken <= 0:
                    line.reset()
                    return
                if not sent:
                    sides.unregister(line.sock)
            if far in ready:
                data = _down(line, far, plan.size)
                line.pause(held + plan.pause)
                line.send(data[:left])
                left, held = left - len(data), 0.0
                if left <= 0 and plan.reset:
                    line.reset()
                if left <= 0 or not data:
                    return


def _up(line, far):
    data = line.sock.recv(65536)
    if data:
        far.sendall(data)
    else:
        far.shutdown(socket.SHUT_WR)
    return data


def _down(line, far, size):
    try:
        return far.recv(size)
    except ConnectionResetError:
        line.reset()
        raise
