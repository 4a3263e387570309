"""HTTP headers of errors and responses of any client; no client is imported."""

import re
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["header_values"]

# urllib, urllib3 and aiohttp have the headers on the error or response itself,
# httpx and requests on the response of the error, botocore in a dict.
_GETTERS: tuple[Callable[[Any], Any], ...] = (
    lambda outcome: outcome.headers,
    lambda outcome: outcome.response.headers,
    lambda outcome: outcome.response["ResponseMetadata"]["HTTPHeaders"],
    lambda outcome: outcome["ResponseMetadata"]["HTTPHeaders"],
)


def header_values(outcome: object, name: str) -> list[str]:
    """Return all values of a header, in order.

    >>> response = {"ResponseMetadata": {"HTTPHeaders": {"Retry-After": "5, 7"}}}
    >>> header_values(response, "retry-after")
    ['5', '7']
    """
    for get_headers in _GETTERS:
        try:
            values = _find_values(get_headers(outcome), name)
        except Exception:  # noqa: BLE001, S112  attributes may run anyone's code
            continue
        if values:
            return values
    return []


def _find_values(headers: Any, name: str) -> list[str]:
    if hasattr(headers, "items"):
        headers = headers.items()
    # An iterator would be consumed, and may never end.
    elif not isinstance(headers, Collection):
        return []
    sent = [_text(value) for key, value in headers if _text(key).lower() == name]
    lines = [each.strip(" \t\r\n") for line in sent for each in _COMMA.split(line)]
    return lines[:_MAX_VALUES]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


# Limit against hostile headers.
_MAX_VALUES = 100

# Clients join repeated headers with commas; dates contain a comma too.
_COMMA = re.compile(r",(?![ \t]*[0-9]{1,2}[ -][A-Za-z])")
