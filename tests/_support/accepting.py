"""What the servers of the tests share: they accept, and leave nothing behind.

It knows no protocol. One thread accepts on 127.0.0.1, and each connection has a
thread of its own; every wait ends when the server does, or after PATIENCE.
"""

import contextlib
import socket
import struct
import threading

__all__ = ["PATIENCE", "Acceptor", "Line"]

PATIENCE = 30.0
"""Seconds that a socket may wait: more than a test takes, less than for ever."""

_ABORT = struct.pack("ii", 1, 0)


class Line:
    """One connection, as the thread sees it that serves it."""

    def __init__(self, sock, number, ending):
        self.sock = sock
        self.number = number
        self.ending = ending
        self.others = []

    def send(self, data):
        self.sock.sendall(data)

    def reset(self):
        """Close it with RST, as soon as its thread is done with it."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)

    def pause(self, seconds):
        """Wait; an error ends it when the server closes meanwhile."""
        if self.ending.wait(seconds):
            raise ConnectionAbortedError

    def swallow(self):
        """Read and say nothing, until the other side has gone."""
        while self.sock.recv(65536):
            pass

    def wake(self):
        """End what its thread waits for."""
        for sock in [self.sock, *self.others]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class Acceptor:
    """A server on a free port, which stays its own while nobody listens."""

    def __init__(self):
        self.accepted = 0
        self._lines = {}
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._listening = False
        self._bound = self._bind(0)
        self.port = self._bound.getsockname()[1]
        self._thread = None

    def meet(self, line):
        """Return what serves a connection; told one by one, before it is."""
        raise NotImplementedError

    @property
    def open(self):
        """How many connections are open right now."""
        with self._changed:
            return len(self._lines)

    def settled(self, open=0, within=2.0):  # noqa: A002  as the property
        """Return whether so many connections are open, now or soon."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._lines) == open, within)

    def listen(self):
        """Accept from here on; nothing happens if it does."""
        if not self._listening:
            self._join()
            self._listening = True
            self._bound.listen(1024)
            self._thread = threading.Thread(target=self._accept, daemon=True)
            self._thread.start()

    def refuse(self):
        """Accept nobody from here on; connections that are open stay so."""
        if self._listening:
            self._listening = False
            # What accepts is woken by a connection: it alone closes its socket,
            # which the system would hold open for as long as it is waited on.
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
        self._join()

    def close(self):
        """End every thread and close every socket, whatever they wait for."""
        self._ending.set()
        self.refuse()
        with self._changed:
            running = list(self._lines.items())
        for line, _ in running:
            line.wake()
        for _, thread in running:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a connection outlived its server"
        self._bound.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _bind(self, port):
        # Bound and not listening it refuses, and no other program gets the port.
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        return sock

    def _join(self):
        if self._thread is not None:
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive(), "what accepts does not end"

    def _accept(self):
        while True:
            sock, _ = self._bound.accept()
            start = self._welcome(sock) if self._listening else sock.close
            if not self._listening:
                # Before it is served: who sees what comes of it may be back at once.
                self._bound.close()
                self._bound = self._bind(self.port)
                start()
                return
            start()

    def _welcome(self, sock):
        sock.settimeout(PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.accepted += 1
        line = Line(sock, self.accepted, self._ending)
        work = self.meet(line)
        thread = threading.Thread(target=self._serve, args=(line, work), daemon=True)
        with self._changed:
            self._lines[line] = thread
            self._changed.notify_all()
        return thread.start

    def _serve(self, line, work):
        try:
            with line.sock, contextlib.suppress(OSError):
                work()
        finally:
            with self._changed:
                del self._lines[line]
                self._changed.notify_all()
