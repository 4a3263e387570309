"""Hint that reads the structured header RateLimit of a response."""

import re
from collections.abc import Iterator

from retrykit.hints._base import SerializableHint
from retrykit.hints._retry_after_header import DECIMAL, header_values, log_unread
from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["rate_limit"]


def rate_limit() -> SerializableHint:
    """Return the hint that reads ``RateLimit`` and ``RateLimit-Policy``.

    >>> from types import SimpleNamespace
    >>> response = SimpleNamespace(headers={"RateLimit": '"burst";r=0;t=30'})
    >>> rate_limit()(response)
    30.0

    Services send both with every response, so a quota counts only if nothing of it
    remains. The delay is the longest time until such a quota is renewed. For a quota
    whose time ``RateLimit`` does not give, its window in ``RateLimit-Policy`` counts.

    Source:
        "RateLimit header fields for HTTP", IETF draft 11, 2026; and the form of draft
        07, 2023: ``limit=10, remaining=0, reset=30``.
    """
    return SerializableHint("rate_limit", (), _read_rate_limit)


def _read_rate_limit(outcome: object) -> float | None:
    values = header_values(outcome, "ratelimit")
    quotas = dict(_parse_quotas(values))
    if values and not quotas:
        log_unread("RateLimit", values)
    exhausted = {
        name: quota for name, quota in quotas.items() if _number(quota, "r") == 0
    }
    if not exhausted:
        return None
    policies = dict(_parse_quotas(header_values(outcome, "ratelimit-policy")))
    delays = []
    for name, quota in exhausted.items():
        delay = _number(quota, "t")
        if delay is None:
            delay = _number(policies.get(name, {}), "w")
        delays.append(delay)
    return max((delay for delay in delays if delay is not None), default=None)


def _parse_quotas(values: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name and the parameters of each quota.

    A quota in the form of draft 07 has an empty name.
    """
    # The values were separated at each comma, also within a quoted name.
    text = ",".join(values)[:_LONGEST]
    old: dict[str, str] = {}
    position = 0
    while found := _ITEM.match(text, position):
        position = found.end()
        name, value, parameters = found.groups()
        if value is None:
            yield name, dict(_PARAMETER.findall(parameters))
        else:
            old[name] = value
    if {"remaining", "reset"} <= old.keys():
        yield "", {"r": old["remaining"], "t": old["reset"]}


def _number(quota: dict[str, str], name: str) -> float | None:
    text = quota.get(name, "")
    return min(float(text), MAX_DELAY) if DECIMAL.fullmatch(text) else None


# Limit against hostile headers.
_LONGEST = 2_000

# Lists and parameters of RFC 9651, "Structured Field Values for HTTP".
_STRING = r'"(?:[^"\\]|\\.)*"'
_ITEM = re.compile(
    rf"\s*({_STRING}|[A-Za-z*][\w.:%*/-]*)(?:=([0-9.]+))?"
    rf"((?:\s*;\s*[a-z*][\w.*-]*(?:=(?:{_STRING}|[^;,\"\s]*))?)*)\s*(?:,|$)"
)
_PARAMETER = re.compile(rf";\s*([a-z*][\w.*-]*)=({_STRING}|[^;,\"\s]*)")
