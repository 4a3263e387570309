"""Redaction, which removes the secrets of URLs and requests from texts.

No client is imported: a request is recognized by its attributes.
"""

import re
from collections.abc import Callable

__all__ = ["Redaction", "combine_redactions", "is_response", "redact_text"]
__all__ += ["redact_urls", "request_summary", "request_target"]

Redaction = bool | Callable[[str], str]
"""Whether secrets are left out of texts, or a function that leaves out more of them."""


def redact_text(text: str, redact: Redaction) -> str:
    """Return a text redacted by `redact_urls` and by *redact*, if that is a function.

    >>> redact_text("bob: https://host/p?token=a", lambda text: text[5:])
    'https://host/p?...'

    If *redact* is False, the text is returned as it is. If the function fails or
    returns no text, a placeholder takes the place of the whole text.
    """
    if redact is False:
        return text
    text = redact_urls(text)
    if redact is True:
        return text
    try:
        redacted = redact(text)
    except Exception as fault:  # noqa: BLE001  the text must not be shown instead
        return f"<{type(fault).__name__} in redact>"
    # By type(), since __class__ may be a property of the user's.
    if not issubclass(type(redacted), str):
        return f"<{type(redacted).__name__} from redact, not a str>"
    return redacted


def combine_redactions(outer: Redaction, inner: Redaction) -> Redaction:
    """Return a redaction that leaves out what either of two calls leaves out."""
    if callable(outer) and callable(inner) and outer is not inner:
        first, second = inner, outer
        return lambda text: second(first(text))
    return inner if callable(inner) else outer or inner


def redact_urls(text: str) -> str:
    """Remove the user info, the query and possible tokens in the path of each URL.

    A segment of a path may be a token if it has more than 16 characters, or both
    letters and digits, or a colon. It becomes ``*``. A version such as ``v1`` is kept.

    >>> redact_urls("503 for url 'https://bob:secret@host/p?token=secret'")
    "503 for url 'https://host/p?...'"
    >>> redact_urls("404 for https://host/bot123:secret/getMe")
    '404 for https://host/*/getMe'
    >>> redact_urls("Max retries exceeded with url: /p?token=secret (Caused by ...)")
    'Max retries exceeded with url: /p?... (Caused by ...)'
    >>> redact_urls("Invalid URL 'bob:secret@host#token=secret'")
    "Invalid URL 'host#...'"

    Args:
        text: Any text. A query ends at a space, a double quote or an angle bracket,
            none of which a URL has; a quote or a bracket after ``=`` begins a value.
            User info may be malformed: without a scheme before it, or with an unescaped
            slash or question mark in the password. A path belongs to a URL if it
            follows a scheme or a host, a method of HTTP, or a word such as ``url:``,
            unless it may be the path of a file.
    """
    if not _MARKS.isdisjoint(text):
        text = re.sub(_WORD, _redact_word, text)
        if "/" in text:
            text = re.sub(_AFTER_A_NAME, _redact_found_path, text)
    return text


# A word without any of them is not part of a URL.
_MARKS = frozenset("@?&#/")
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


def _redact_word(found: re.Match[str]) -> str:
    word = found[0]
    if _MARKS.isdisjoint(word):
        return word
    before, at, host = word.rpartition("@")
    if "/" in before or ":" in before:
        # All four end at an @, so no search runs to the end of the text repeatedly.
        user_info = re.sub(_USER_INFO, r"\1", before + at)
        user_info = re.sub(_UNESCAPED, r"\1", user_info)
        user_info = re.sub(_WITHOUT_SCHEME, _before_user, user_info)
        word = re.sub(_IN_A_PATH, _before_user, user_info) + host
    start = _query_start(word)
    query = word[start:].rstrip(_CLOSING)
    rest = f"...{word[start + len(query) :]}" if query else word[start:]
    path = word[:start]
    if "/" in path:
        path = re.sub(_AFTER_A_HOST, _redact_found_path, path)
    return path + rest


# A scheme and a host, or a host that cannot be a folder: with a port, of several
# labels of which the last has letters alone, or of numbers. With an empty host, the
# path is that of a file.
_AFTER_A_HOST = (
    r"((?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}:\\?/\\?/[^/\\?#]+"
    r"|(?<![\w./\\-])(?:(?:[\w-]+\.)+[A-Za-z]{2,}|(?:\d+\.){3}\d+|localhost)(?::\d+)?"
    r"|(?<![\w./\\-])(?:[\w-]+|\[[\da-fA-F:.]+\]):\d+)"
    r"(\\?/[^?]*)"
)
_AFTER_A_NAME = (
    r"(\b(?:(?i:ur[il]|path|endpoint)['\"]?[ \t]?[:=]?[ \t]?"
    r"|(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT)[ \t]+)"
    r"['\"(]{0,3})"
    r"(\\?/[^\s\"<>?]*)"
)
_SEGMENT = r"[^/\\#]+"


def _redact_found_path(found: re.Match[str]) -> str:
    before, path = found.groups()
    return f"{before}{_redact_path(path)}"


def _redact_path(path: str) -> str:
    return re.sub(_SEGMENT, _redact_segment, path)


def _redact_segment(found: re.Match[str]) -> str:
    segment = found[0]
    name = segment.rstrip(_CLOSING)
    mixed = any(map(str.isalpha, name)) and any(map(str.isdigit, name))
    if mixed and re.fullmatch(_VERSION, name):
        return segment
    if len(name) > _LONGEST_NAME or mixed or ":" in name:
        return f"*{segment[len(name) :]}"
    return segment


_LONGEST_NAME = 16
_VERSION = r"v\d{1,2}"


def _before_user(found: re.Match[str]) -> str:
    slash, user = found.groups()
    return slash + user[: max(map(user.rfind, _OPENING)) + 1]


def _query_start(word: str) -> int:
    """Return the index after the mark of a query, or of a fragment with parameters.

    A query or such a fragment follows a ?, & or #. Without either, the index is beyond
    the end of the word.
    """
    slash, last = word.find("/"), word.rfind("=")
    marks = [word.find("?", slash)] if slash >= 0 else []
    if last >= 0:
        marks += [index for mark in "?&#" if (index := word.find(mark)) < last]
    return min((index for index in marks if index >= 0), default=len(word)) + 1


def request_summary(error: object) -> str | None:
    """Return the method, host, port, path and status of an error's request.

    >>> from urllib.request import Request
    >>> error = OSError("cannot connect to https://host/p?token=secret")
    >>> error.request = Request("https://host/p?token=secret", method="GET")
    >>> error.request.url = error.request.full_url
    >>> request_summary(error)
    'GET host/p'

    Returns:
        The parts that are known, without tokens in the path; None if none is known.
    """
    response = _get(error, "response")
    request = _get(error, "request", "request_info")
    if request is None:
        request = _get(response, "request")
    status = _get(response, "status_code", "status")
    if response is None and (request is not None or is_response(error)):
        status = _get(error, "status")
    place = _place(_get(request, "url"))
    if request is None and _get(error, "url") is not None:
        place = _place_in_pool(_get(error, "pool"), _get(error, "url"))
    parts = [x for x in (_get(request, "method"), place) if isinstance(x, str)]
    summary = [" ".join(parts)] if parts else []
    if isinstance(status, int):
        summary.append(f"status {int(status)}")
    return ", ".join(summary) or None


def request_target(method: str, url: object) -> str:
    """Return the method, the host, the port and the path of a request.

    >>> request_target("GET", "https://bob:secret@host:8080/orders/7?token=secret")
    'GET host:8080/orders/7'
    """
    return f"{method} {_place(url) or ''}".rstrip()


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


def _place(url: object) -> str | None:
    """Return the host, the port and the path of a URL, without tokens; or None."""
    if url is None:
        return None
    # Imported here: only failed requests need it.
    from urllib.parse import urlsplit  # noqa: PLC0415

    try:
        parts = urlsplit(str(url))
        return _join_place(parts.hostname, parts.port, parts.path)
    except Exception:  # noqa: BLE001  as above
        return None


def _place_in_pool(pool: object, url: object) -> str | None:
    """Return the place of a request whose URL has no host, from its pool; or None."""
    place = _place(url) or ""
    host, port = _get(pool, "host"), _get(pool, "port")
    if not isinstance(host, str):
        return None
    if place and not place.startswith("/"):
        # The URL of a request to a proxy has one.
        return place
    return _join_place(host, port if isinstance(port, int) else None, place)


def _join_place(host: str | None, port: int | None, path: str) -> str | None:
    name = f"[{host}]" if host and ":" in host and "[" not in host else host or ""
    shown = name if port is None else f"{name}:{port}"
    return f"{shown}{_redact_path(path)}" or None
