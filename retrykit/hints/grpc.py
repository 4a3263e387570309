"""gRPC failures: a predicate for status codes, and a hint from the server's pushback.

gRPC is not imported: an error is recognized by its methods ``code`` and
``trailing_metadata``.
"""

import re
from collections.abc import Iterable
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.errors import GiveUp, RetryAfter
from retrykit.hints._base import SerializableHint

__all__ = ["STATUS_CODES", "StatusCodes", "grpc_pushback"]


@final
class StatusCodes(Frozen):
    """Predicate of errors that have one of the given gRPC status codes.

    True for an error whose method ``code`` returns an object with such a ``name``.

    >>> StatusCodes([14, "aborted"])
    StatusCodes(codes=('ABORTED', 'UNAVAILABLE'))
    >>> StatusCodes(["UNAVAILABLE"])(ConnectionError("refused"))
    False

    Args:
        codes: A list, a tuple or a set of names, in any case, or numbers, 1 to 16; at
            least one.

    Raises:
        ConfigError: *codes* is something else, or a code is unknown, or OK, which is
            not a failure.
    """

    __slots__ = ("codes",)
    codes: tuple[str, ...]

    @user_facing
    def __init__(self, codes: Iterable[str | int]) -> None:
        Frozen.__init__(self, _names_of_codes(codes))

    def __call__(self, error: Exception, /) -> bool:
        """Return whether an error has one of the codes."""
        try:
            code = getattr(error, "code", None)
            return callable(code) and getattr(code(), "name", None) in self.codes
        except Exception:  # noqa: BLE001  an error whose code fails has none
            return False


def _names_of_codes(codes: object) -> tuple[str, ...]:
    """Return the distinct names of status codes, in the order of their numbers."""
    listed = codes if isinstance(codes, list | tuple | set | frozenset) else ()
    if not listed:
        raise invalid_setting("codes", "a list of status codes, at least one", codes)
    known = {_code(code) for code in listed}
    return tuple(each for each in STATUS_CODES if each in known)


def _code(code: object) -> str:
    if isinstance(code, str) and code.isascii() and code.upper() in STATUS_CODES:
        return code.upper()
    if (
        isinstance(code, int)
        and not isinstance(code, bool)
        and 0 < code <= len(STATUS_CODES)
    ):
        return STATUS_CODES[code - 1]
    rule = "names of status codes of failures, or their numbers, 1 to 16"
    raise invalid_setting("codes", rule, code, code="unknown-name")


STATUS_CODES = (
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""The names of the status codes of failures, in the order of their numbers, from 1."""


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
