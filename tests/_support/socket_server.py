"""Base class of the test servers: accepts connections, and leaves nothing behind.

It knows no protocol. One thread accepts on 127.0.0.1, and each connection has its own
thread; every wait ends when the server is closed, or after TIMEOUT.
"""

import contextlib
import socket
import struct
import threading

__all__ = ["TIMEOUT", "Connection", "SocketServer"]

TIMEOUT = 30.0
"""How long a socket may wait, in seconds: longer than any test takes."""

_ABORT = struct.pack("ii", 1, 0)


class Connection:
    """A connection, for the thread that serves it."""

    def __init__(self, sock, number, ending):
        self.sock = sock
        self.number = number
        self.ending = ending
        self.others = []

    def send(self, data):
        self.sock.sendall(data)

    def reset(self):
        """Close it with RST when its thread has finished."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)

    def pause(self, seconds):
        """Wait, or raise as soon as the server closes."""
        if self.ending.wait(seconds):
            raise ConnectionAbortedError

    def drain(self):
        """Read without answering until the other side closes."""
        while self.sock.recv(65536):
            pass

    def interrupt(self):
        """End all reads and writes of its thread."""
        for sock in [self.sock, *self.others]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class SocketServer:
    """A server on a free port, which stays reserved while it does not listen."""

    def __init__(self):
        self.accepted = 0
        self._connections = {}
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._listening = False
        self._bound = self._bind(0)
        self.port = self._bound.getsockname()[1]
        self._thread = None

    def handler_for(self, connection):
        """Return the function that serves a connection; called in order of arrival."""
        raise NotImplementedError

    @property
    def open(self):
        """The number of open connections."""
        with self._changed:
            return len(self._connections)

    def wait_for_open(self, count=0, within=2.0):
        """Return whether the number of open connections becomes *count* in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: len(self._connections) == count, within
            )

    def listen(self):
        """Accept connections, if it does not already."""
        if not self._listening:
            self._join()
            self._listening = True
            self._bound.listen(1024)
            self._thread = threading.Thread(target=self._accept, daemon=True)
            self._thread.start()

    def refuse(self):
        """Refuse new connections; open ones stay open."""
        if self._listening:
            self._listening = False
            # A connection wakes the accepting thread, which closes the socket itself:
            # the system would keep it open for as long as a thread waits on it.
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
        self._join()

    def close(self):
        """End every thread and close every socket."""
        self._ending.set()
        self.refuse()
        with self._changed:
            running = list(self._connections.items())
        for connection, _ in running:
            connection.interrupt()
        for _, thread in running:
            thread.join(TIMEOUT)
            assert not thread.is_alive(), "a connection outlived its server"
        self._bound.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _bind(self, port):
        # A bound socket that does not listen refuses, and keeps the port reserved.
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        return sock

    def _join(self):
        if self._thread is not None:
            self._thread.join(TIMEOUT)
            assert not self._thread.is_alive(), "the accepting thread does not end"

    def _accept(self):
        while True:
            sock, _ = self._bound.accept()
            start = self._prepare(sock) if self._listening else sock.close
            if not self._listening:
                # Before it is served: its client may reconnect as soon as it is.
                self._bound.close()
                self._bound = self._bind(self.port)
                start()
                return
            start()

    def _prepare(self, sock):
        sock.settimeout(TIMEOUT)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.accepted += 1
        connection = Connection(sock, self.accepted, self._ending)
        work = self.handler_for(connection)
        thread = threading.Thread(
            target=self._serve, args=(connection, work), daemon=True
        )
        with self._changed:
            self._connections[connection] = thread
            self._changed.notify_all()
        return thread.start

    def _serve(self, connection, work):
        try:
            with connection.sock, contextlib.suppress(OSError):
                work()
        finally:
            with self._changed:
                del self._connections[connection]
                self._changed.notify_all()
