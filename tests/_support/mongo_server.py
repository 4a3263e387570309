"""The only member of a replica set, as far as MongoDB's wire protocol needs it.

It answers each command with the next scripted document, or resets the connection.
"""

import struct

import bson

from tests._support.socket_server import SocketServer

__all__ = ["RESET", "MongoServer"]

RESET = "reset"

_HEADER = struct.Struct("<iiii")
_OP_REPLY, _OP_MSG = 1, 2013
_HANDSHAKES = {"hello", "ismaster", "isMaster"}


class MongoServer(SocketServer):
    """A server that accepts every command but those with a scripted reply.

    Attributes:
        replies: The next replies to a command, by its name; `RESET` closes its
            connection.
        commands: The names of all commands of an application, in order.
    """

    def __init__(self):
        super().__init__()
        self.replies = {}
        self.commands = []
        self.listen()

    def handler_for(self, connection):
        return lambda: self._serve_commands(connection)

    def _serve_commands(self, connection):
        while request := _receive(connection.sock, _HEADER.size):
            length, number, _, kind = _HEADER.unpack(request)
            body = _receive(connection.sock, length - _HEADER.size)
            reply = self._reply(_parse(kind, body))
            if reply == RESET:
                connection.reset()
                return
            connection.send(_build(kind, number, bson.encode({"ok": 1} | reply)))

    def _reply(self, command):
        name = next(iter(command))
        if name in _HANDSHAKES:
            return self._description()
        if name != "endSessions":
            self.commands.append(name)
        scripted = self.replies.get(name)
        return scripted.pop(0) if scripted else {"n": 1}

    def _description(self):
        address = f"127.0.0.1:{self.port}"
        return {
            "isWritablePrimary": True,
            "ismaster": True,
            "setName": "tests",
            "hosts": [address],
            "me": address,
            "logicalSessionTimeoutMinutes": 30,
            "maxWireVersion": 21,
            "minWireVersion": 0,
        }


def _receive(sock, size):
    """Return so many bytes, or fewer if the client closes."""
    data = b""
    while len(data) < size and (more := sock.recv(size - len(data))):
        data += more
    return data


def _parse(kind, body):
    """Return the document of a request."""
    # Flags and the kind of the first section; or flags, a name and two numbers.
    start = 5 if kind == _OP_MSG else body.index(0, 4) + 9
    (size,) = struct.unpack_from("<i", body, start)
    return bson.decode(body[start : start + size])


def _build(kind, number, document):
    """Return the reply to a request."""
    if kind == _OP_MSG:
        code, body = _OP_MSG, struct.pack("<iB", 0, 0) + document
    else:
        code, body = _OP_REPLY, struct.pack("<iqii", 8, 0, 0, 1) + document
    return _HEADER.pack(_HEADER.size + len(body), 0, number, code) + body
