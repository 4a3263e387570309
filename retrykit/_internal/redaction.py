"""Redaction: removes the secrets of URLs and requests from texts.

No client is imported: a request is recognized by its attributes.
"""

import re

__all__ = ["is_response", "redact_urls", "request_summary"]


def redact_urls(text: str) -> str:
    """Remove the user info and the query of each URL from a text.

    >>> redact_urls("503 for url 'https://bob:secret@host/p?token=secret'")
    "503 for url 'https://host/p?...'"
    >>> redact_urls("Max retries exceeded with url: /p?token=secret (Caused by ...)")
    'Max retries exceeded with url: /p?... (Caused by ...)'
    >>> redact_urls("Invalid URL 'bob:secret@host#token=secret'")
    "Invalid URL 'host#...'"

    Args:
        text: Any text. A query ends at a space, a double quote or an angle bracket,
            which no URL has, unless it begins a value. User info may be malformed:
            without a scheme before it, or with an unescaped slash or question mark
            in the password.
    """
    if any(mark in text for mark in "@?&#"):
        return re.sub(_WORD, lambda word: _redact(word[0]), text)
    return text


# Not compiled at import: only failures need it.
_WORD = r'(?:[^\s"<>]|(?<==)["<])+'
# JSON may escape slashes.
_USER_INFO = r"(/\\?/)[^/?#]*@"
# A password may contain an unescaped slash or question mark, but no port follows its
# colon. Anchored: after a host, it would take the query of a valid URL for user info.
_UNESCAPED = r"^([^/]*/\\?/)(?!\[)[^/?#@:]*:(?!\d*[/?#])[^@]*@"
_WITHOUT_SCHEME = r"^()(?![^/:@]*\[[\da-fA-F:.]*\])([^/:@?#]*):(?!\d*[/?#])[^/]*@"
_IN_A_PATH = r"(/)([^/:@?#]*):[^/?#]*@"

# At the end of a query, these more often belong to the text around the URL.
_CLOSING = "'),.;:]}"
_OPENING = "'\"([{=,;"


def _redact(word: str) -> str:
    before, at, host = word.rpartition("@")
    if "/" in before or ":" in before:
        # All four end at an @, so no search runs to the end of the text repeatedly.
        user_info = re.sub(_USER_INFO, r"\1", before + at)
        user_info = re.sub(_UNESCAPED, r"\1", user_info)
        user_info = re.sub(_WITHOUT_SCHEME, _before_user, user_info)
        word = re.sub(_IN_A_PATH, _before_user, user_info) + host
    start = _query_start(word)
    query = word[start:].rstrip(_CLOSING)
    return f"{word[:start]}...{word[start + len(query) :]}" if query else word


def _before_user(found: re.Match[str]) -> str:
    slash, user = found.groups()
    return slash + user[: max(map(user.rfind, _OPENING)) + 1]


def _query_start(word: str) -> int:
    """Return the index after the mark of a query, or of a fragment with parameters.

    They follow a ?, & or #. Without one, the index is after the end of the word.
    """
    slash, last = word.find("/"), word.rfind("=")
    marks = [word.find("?", slash)] if slash >= 0 else []
    if last >= 0:
        marks += [index for mark in "?&#" if (index := word.find(mark)) < last]
    return min((index for index in marks if index >= 0), default=len(word)) + 1


def request_summary(error: object) -> str | None:
    """Return method, host and status of the request that an error is about.

    >>> from urllib.request import Request
    >>> error = OSError("cannot connect to https://host/p?token=secret")
    >>> error.request = Request("https://host/p?token=secret", method="GET")
    >>> error.request.url = error.request.full_url
    >>> request_summary(error)
    'GET host'

    Returns:
        Those of the three that are known; None if the error is about no request.
    """
    response = _get(error, "response")
    request = _get(error, "request", "request_info")
    if request is None:
        request = _get(response, "request")
    status = _get(response, "status_code", "status")
    if response is None and (request is not None or is_response(error)):
        status = _get(error, "status")
    host: object = _host(_get(request, "url"))
    if request is None and _get(error, "url") is not None:
        host = _get(_get(error, "pool"), "host")
    parts = [x for x in (_get(request, "method"), host) if isinstance(x, str)]
    summary = [" ".join(parts)] if parts else []
    if isinstance(status, int):
        summary.append(f"status {int(status)}")
    return ", ".join(summary) or None


def is_response(error: object) -> bool:
    """Return whether an error is itself a response, all of which is in its text."""
    try:
        parts = vars(error)
        return parts["headers"] is not None and {"body", "status"} <= parts.keys()
    except Exception:  # noqa: BLE001  it has none of these, or they run user code
        return False


def _get(value: object, *names: str) -> object:
    """Return the first attribute that exists and does not fail, or None."""
    for name in names:
        try:
            found = getattr(value, name, None)
        except Exception:  # noqa: BLE001, S112  a property may run user code
            continue
        if found is not None:
            return found
    return None


def _host(url: object) -> str | None:
    if url is None:
        return None
    # Imported here: only failed requests need it.
    from urllib.parse import urlsplit  # noqa: PLC0415

    try:
        return urlsplit(str(url)).hostname
    except Exception:  # noqa: BLE001  as above
        return None
