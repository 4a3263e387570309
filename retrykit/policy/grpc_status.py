"""Predicate of errors with one of some gRPC status codes.

gRPC is not imported: an error is recognized by its method ``code``.
"""

from collections.abc import Iterable
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import invalid_setting

__all__ = ["STATUS_CODES", "StatusCodes"]


@final
class StatusCodes(Frozen):
    """Predicate of errors with one of some gRPC status codes.

    True for an error whose method ``code`` returns an object with such a ``name``.

    >>> StatusCodes([14, "aborted"])
    StatusCodes(codes=('ABORTED', 'UNAVAILABLE'))
    >>> StatusCodes(["UNAVAILABLE"])(ConnectionError("refused"))
    False

    Args:
        codes: Names, in any case, or numbers, 1 to 16; at least one.

    Raises:
        ConfigError: A code is unknown, or is OK, which is no failure.
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
    raise invalid_setting("codes", rule, code)


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
"""The names of the status codes of failures, by number, from 1."""
