"""Hint that reads the pushback of a gRPC server; grpc is not imported."""

import re

from retrykit.hints.base import SerializableHint
from retrykit.state.signals import GiveUp, RetryAfter

__all__ = ["grpc_pushback"]


def grpc_pushback() -> SerializableHint:
    """Return the hint that reads the pushback of a gRPC server.

    The metadata ``grpc-retry-pushback-ms`` is an integer: the next attempt is
    made after exactly that many milliseconds. If it is negative or malformed, the
    call is not retried.

    Source:
        gRPC proposal A6, "gRPC Retry Design", section "Pushback", 2017.
    """
    return SerializableHint("grpc_pushback", (), _read_pushback)


def _read_pushback(error: object) -> RetryAfter | GiveUp | None:
    try:
        # On a call that has not failed, reading would block or need an await.
        failed = isinstance(error, Exception)
        read = getattr(error, "trailing_metadata", tuple) if failed else tuple
        delays = [_parse_milliseconds(value) for key, value in read() if key == _KEY]
    except Exception:  # noqa: BLE001  the error may be anyone's code
        return None
    if None in delays:
        return GiveUp()
    # As for a header, the longest wait satisfies all values.
    longest = max((delay for delay in delays if delay is not None), default=None)
    return None if longest is None else RetryAfter(longest)


def _parse_milliseconds(value: object) -> float | None:
    text = str(value)
    if not _INTEGER.fullmatch(text) or int(text) > _LARGEST:
        return None
    return int(text) / 1_000


_KEY = "grpc-retry-pushback-ms"

# A 32-bit signed integer without leading zeros, as the proposal says.
_INTEGER = re.compile(r"0|[1-9][0-9]{0,9}")
_LARGEST = 2**31 - 1
