"""Texts without secrets: user info and queries of URLs, and what clients say.

No client is imported: a request is recognized by its attributes.
"""

import re

__all__ = ["redact_urls", "request_summary"]


def redact_urls(text: str) -> str:
    """Return a text with the user info and the query of each URL left out.

    >>> redact_urls("503 for url 'https://bob:secret@host/p?token=secret'")
    "503 for url 'https://host/p?...'"
    >>> redact_urls("Max retries exceeded with url: /p?token=secret (Caused by ...)")
    'Max retries exceeded with url: /p?... (Caused by ...)'
    >>> redact_urls("Invalid URL 'bob:secret@host#token=secret'")
    "Invalid URL 'host#...'"

    Args:
        text: Any text. A query ends where a space, a double quote or an angle
            bracket follows, none of which a URL can have, unless it is a value
            that begins with one. User info may be as
            wrong as people write it: with no scheme before it, or a password in
            which a slash or a question mark is not escaped.
    """
    if any(mark in text for mark in "@?&#"):
        return re.sub(_WORD, lambda word: _redact(word[0]), text)
    return text


# Not compiled at import: only failures are told.
_WORD = r'(?:[^\s"<>]|(?<==)["<])+'
# JSON may escape slashes.
_USER_INFO = r"(/\\?/)[^/?#]*@"
# What follows the colon is no port.
_UNESCAPED = r"(/\\?/)(?!\[)[^/?#@:]*:(?!\d*[/?#])[^@]*@"
_WITHOUT_SCHEME = r"(^|/)([^/:@]*):[^/]*@"

# They may be part of a query, and are more often the end of what is around a URL.
_CLOSING = "'),.;:]}"
_OPENING = "'\"([{=,;"


def _redact(word: str) -> str:
    before, at, host = word.rpartition("@")
    if "/" in before or ":" in before:
        # All three end at an @: nothing is searched to the end again and again.
        told = re.sub(_USER_INFO, r"\1", before + at)
        told = re.sub(_UNESCAPED, r"\1", told)
        word = re.sub(_WITHOUT_SCHEME, _before_user, told) + host
    start = _query_start(word)
    kept = word[start:].rstrip(_CLOSING)
    return f"{word[:start]}...{word[start + len(kept) :]}" if kept else word


def _before_user(found: re.Match[str]) -> str:
    slash, user = found.groups()
    return slash + user[: max(map(user.rfind, _OPENING)) + 1]


def _query_start(word: str) -> int:
    """Return where the query or the parameters of a fragment begin in a word.

    They follow a ?, & or #; that which is none has a slash or parameters.
    """
    slash, last = word.find("/"), word.rfind("=")
    places = [word.find("?", slash)] if slash >= 0 else []
    if last >= 0:
        places += [place for mark in "?&#" if (place := word.find(mark)) < last]
    return min((place for place in places if place >= 0), default=len(word)) + 1


def request_summary(error: object) -> str | None:
    """Return method, host and status of the request that an error is about.

    >>> from urllib.request import Request
    >>> error = OSError("cannot connect to https://host/p?token=secret")
    >>> error.request = Request("https://host/p?token=secret", method="GET")
    >>> error.request.url = error.request.full_url
    >>> request_summary(error)
    'GET host'

    Args:
        error: Any error. One of httpx, requests or aiohttp has a request or a
            response, one of urllib3 a pool and a URL; a property of it may fail.

    Returns:
        What there is of the three; None if it is about no request.
    """
    response = _get(error, "response")
    request = _get(error, "request", "request_info")
    if request is None:
        request = _get(response, "request")
    status = _get(response, "status_code", "status")
    if response is None and request is not None:
        status = _get(error, "status")
    host: object = _host(_get(request, "url"))
    if request is None and _get(error, "url") is not None:
        host = _get(_get(error, "pool"), "host")
    parts = [x for x in (_get(request, "method"), host) if isinstance(x, str)]
    told = [" ".join(parts)] if parts else []
    if isinstance(status, int):
        told.append(f"status {int(status)}")
    return ", ".join(told) or None


def _get(value: object, *names: str) -> object:
    """Return the first attribute that there is, or None; one that fails is none."""
    for name in names:
        try:
            found = getattr(value, name, None)
        except Exception:  # noqa: BLE001, S112  a property may be anyone's code
            continue
        if found is not None:
            return found
    return None


def _host(url: object) -> str | None:
    # Imported here: only errors about requests need it.
    from urllib.parse import urlsplit  # noqa: PLC0415

    try:
        return None if url is None else urlsplit(str(url)).hostname
    except Exception:  # noqa: BLE001  as above
        return None
