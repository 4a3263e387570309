"""Timeouts, HTTP methods and ignored Retry-After headers of the repeated calls."""

import math
import re
from collections.abc import Iterator
from typing import Final

from retrykit.audit._arguments import Arguments, seconds
from retrykit.audit._libraries import RETRIERS
from retrykit.audit._module import Called, Definition
from retrykit.audit._repeated import Repeated
from retrykit.audit._sites import Site
from retrykit.audit._values import Call, Operation, Reference, Value

__all__ = ["with_context"]

_HTTP: Final = frozenset(["requests", "httpx", "aiohttp", "niquests", "httpx2"])
_CLIENTS: Final = frozenset(
    ["Session", "session", "Client", "AsyncClient", "ClientSession"]
)
_CLIENT_WORD = re.compile("session|client|http", re.IGNORECASE)
_BODIES: Final = frozenset(["json", "data", "content", "files"])
_METHODS: Final = frozenset(["post", "patch"])
_TAKE_LONG: Final = frozenset(
    [
        "get",
        "post",
        "put",
        "patch",
        "delete",
        "head",
        "options",
        "request",
        "send",
        "urlopen",
        "fetch",
    ]
)
# Requests that change nothing, though their method may.
_READS = re.compile(
    r"search|query|graphql|token|oauth|auth|login|predict|chat|complet|embed|generat"
    r"|infer|translat|classif|rpc|lookup|list|read|fetch|^get|_get|load|download|ask"
    r"|check|valid|status|poll|transcri|token|count|preview|render|test|ping|health",
    re.IGNORECASE,
)
# Of a request that has not been answered, or that has been refused.
_NOT_DONE: Final = frozenset(
    [
        "ConnectError",
        "ConnectTimeout",
        "NewConnectionError",
        "ConnectionRefusedError",
        "RateLimitError",
        "TooManyRequests",
        "PoolTimeout",
        "ClientConnectorError",
    ]
)
_THROTTLED: Final = frozenset(
    ["RateLimitError", "TooManyRequests", "RateLimitException", "RateLimited"]
)
_HINT = re.compile("retry", re.IGNORECASE)
_IDEMPOTENT = re.compile("idempot", re.IGNORECASE)


def with_context(site: Site, repeated: Repeated) -> Site:
    """Return a site whose behavior includes facts about the calls that it repeats."""
    if site.library != "loop" and site.library not in RETRIERS:
        return site
    calls = [*repeated.calls(site)]
    within = [*repeated.definitions(site)]
    if not calls:
        return site
    behavior = site.behavior
    changes: dict[str, object] = {}
    if behavior.timeout is None and behavior.elapsed not in (None, math.inf):
        changes["timeout"] = max(_timeouts(repeated, calls), default=None)
    if behavior.methods is None and _may_repeat_effects(site, within):
        found = {x for x in (_method(repeated, each) for each in calls) if x}
        changes["methods"] = frozenset(found) or None
    if behavior.hint is None and _ignores_hints(site, repeated, within):
        changes["hint"] = False
    return site.replace(behavior=behavior.replace(**changes)) if changes else site


def _timeouts(repeated: Repeated, calls: list[Called]) -> Iterator[float]:
    for call in calls:
        if call.timeout is None or _last(call.function) not in _TAKE_LONG:
            continue
        found = _seconds(repeated.project.resolve(call.timeout))
        if found is not None:
            yield found


def _seconds(value: Value) -> float | None:
    """Return a timeout in seconds, the longest of several; None if it is unknown."""
    if type(value) is tuple and value:
        # To connect, and to read.
        parts = [_seconds(each) for each in value]
        return None if None in parts else max(x for x in parts if x is not None)
    if type(value) is Call and _last(value.function) in ("Timeout", "ClientTimeout"):
        arguments = Arguments(value, ["total"])
        return seconds(arguments.get("total", arguments.get("timeout")))
    return seconds(value)


def _last(value: Value) -> str:
    """Return the last part of a name, such as ``post`` in ``client.post``, else ""."""
    if type(value) is Reference:
        return value.last
    return value.right if type(value) is Operation and value.sign == "." else ""


def _may_repeat_effects(site: Site, within: list[Definition]) -> bool:
    retried = site.behavior.retried
    if not retried or _NOT_DONE.issuperset(retried):
        return False
    names = [each.name.rpartition(".")[2] for each in within]
    words = [word for each in within for word in each.words]
    return not any(map(_READS.search, names)) and not any(
        map(_IDEMPOTENT.search, words)
    )


def _method(repeated: Repeated, call: Called) -> str:
    """Return the HTTP method of a request that may take effect twice, else ""."""
    method = _last(call.function)
    if method == "request" and call.first.lower() in _METHODS:
        method = call.first.lower()
    if method not in _METHODS or _READS.search(call.first):
        return ""
    return method.upper() if _is_request(repeated, call) else ""


def _is_request(repeated: Repeated, call: Called) -> bool:
    function = repeated.project.resolve(call.function)
    if type(function) is Operation and type(function.left) is Call:
        made = function.left.function
        if type(made) is Reference:
            return made.last in _CLIENTS
    if type(function) is Reference and function.library in _HTTP:
        return True
    # Perhaps only its name is known, as for `self.session.post`.
    parts = call.function.name.split(".") if type(call.function) is Reference else []
    owner = "".join(parts[-2:-1])
    return _CLIENT_WORD.search(owner) is not None and not _BODIES.isdisjoint(call.named)


def _ignores_hints(site: Site, repeated: Repeated, within: list[Definition]) -> bool:
    """Return whether a site visibly retries 429 or 503 without reading Retry-After."""
    if site.behavior.delays.shape == "unknown" or not site.behavior.retries:
        return False
    module = repeated.module_of(site)
    near = () if module is None else module.definitions
    if any(_HINT.search(word) for each in near for word in each.words):
        return False
    if _THROTTLED.intersection(site.behavior.retried or ()):
        return True
    return any(
        site.library != "loop" or site.line <= line <= site.end_line
        for each in within
        for line in each.throttled
    )
