"""What the server of a gRPC call asks for, by the metadata of its error.

gRPC itself is not imported: its errors are known by what they have.
"""

import re
from typing import final

from retrykit.hints.serializable import SerializableHint
from retrykit.state.signals import GiveUp, RetryAfter

__all__ = ["GrpcPushback", "grpc_pushback"]


def grpc_pushback() -> "GrpcPushback":
    """Return the hint that reads the pushback of a gRPC server.

    The metadata ``grpc-retry-pushback-ms`` is a whole number of milliseconds,
    after which, and no later, the next attempt is made. If it is negative or
    cannot be read, no attempt is made.

    Source:
        gRPC proposal A6, "gRPC Retry Design", section "Pushback", 2017.
    """
    return GrpcPushback()


@final
class GrpcPushback(SerializableHint):
    """The hint of a gRPC server; `grpc_pushback` builds it."""

    __slots__ = ()
    kind = "grpc_pushback"

    def __call__(self, error: object, /) -> RetryAfter | GiveUp | None:
        """Return what an error of gRPC asks for; None for anything else."""
        try:
            # Of a call that has not failed, it would be waited for or awaited.
            failed = isinstance(error, Exception)
            read = getattr(error, "trailing_metadata", tuple) if failed else tuple
            asked = [_delay(value) for key, value in read() if key == _KEY]
        except Exception:  # noqa: BLE001  an error that cannot tell asks for nothing
            return None
        if None in asked:
            return GiveUp()
        # As for a header, the longest wait disobeys none of them.
        longest = max((delay for delay in asked if delay is not None), default=None)
        return None if longest is None else RetryAfter(longest)


def _delay(value: object) -> float | None:
    text = str(value)
    if not _INTEGER.fullmatch(text) or int(text) > _LARGEST:
        return None
    return int(text) / 1_000


_KEY = "grpc-retry-pushback-ms"

# Without unnecessary zeros, and 32 bits with a sign, as the proposal says.
_INTEGER = re.compile(r"0|[1-9][0-9]{0,9}")
_LARGEST = 2**31 - 1
