"""The header fields of an HTTP response, wherever an outcome keeps them.

Clients are told apart by what their responses and errors look like, and none
is imported. What a field means is not known here.
"""

import re
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["header_values"]

# urllib, urllib3 and aiohttp have the headers on the error or response itself,
# httpx and requests on the response of the error, botocore in a dict.
_PLACES: tuple[Callable[[Any], Any], ...] = (
    lambda outcome: outcome.headers,
    lambda outcome: outcome.response.headers,
    lambda outcome: outcome.response["ResponseMetadata"]["HTTPHeaders"],
    lambda outcome: outcome["ResponseMetadata"]["HTTPHeaders"],
)


def header_values(outcome: object, name: str) -> list[str]:
    """Return the values of a header, one for each time that it was sent.

    >>> response = {"ResponseMetadata": {"HTTPHeaders": {"Retry-After": "5, 7"}}}
    >>> header_values(response, "retry-after")
    ['5', '7']

    Args:
        outcome: An error, a response, or anything else.
        name: The name of the header, in lower case.

    Returns:
        The values without the space around them; none if there is no such
        header, or the outcome does not let itself be asked.
    """
    for place in _PLACES:
        try:
            found = _values(place(outcome), name)
        except Exception:  # noqa: BLE001, S112  attributes may be anyone's code
            continue
        if found:
            return found
    return []


def _values(headers: Any, name: str) -> list[str]:
    if hasattr(headers, "items"):
        headers = headers.items()
    # An iterator would be used up for its owner, or never end.
    elif not isinstance(headers, Collection):
        return []
    sent = [_text(value) for key, value in headers if _text(key).lower() == name]
    lines = [each.strip(" \t\r\n") for line in sent for each in _COMMA.split(line)]
    return lines[:_MOST]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


# Who sends more wants this program to be busy.
_MOST = 100

# Clients join what was sent repeatedly; dates have a comma of their own.
_COMMA = re.compile(r",(?![ \t]*[0-9]{1,2}[ -][A-Za-z])")
