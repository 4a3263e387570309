"""Envoy's retries, as set in files of Envoy and Istio.

Source:
    Envoy 1.37, ``source/common/router/retry_state_impl.cc`` and
    ``source/common/common/backoff_strategy.cc``; "Router", section "x-envoy-retry-on",
    Envoy documentation. Where the formula there differs from the code, the code counts.
"""

from collections.abc import Collection, Sequence
from typing import Any

from retrykit._core.policy import Policy
from retrykit.conditions import HttpFailures, StatusCodes, any_of
from retrykit.config._foreign._section import Section
from retrykit.errors import AttemptTimeout
from retrykit.schedules import constant, exponential
from retrykit.schedules._base import Schedule

__all__ = ["WORDS", "back_off", "build_policy", "conditions"]


def build_policy(
    route: Section,
    section: Section,
    retries: int,
    failures: dict[str, Any],
    timeouts: tuple[float, float],
    **settings: Any,
) -> Policy:
    """Return the policy for a number of retries and for two timeouts.

    Args:
        route: The table with the timeout for all attempts together.
        section: The table of the retries.
        retries: The number of retries.
        failures: The settings from `conditions`; empty if nothing is retried.
        timeouts: The time limits of an attempt, and of all attempts together, in
            seconds; 0 means no limit.
        **settings: Other settings, such as the schedule.
    """
    attempt, total = timeouts
    if retries and not failures:
        section.note("retry_on", "selects nothing, so nothing is retried")
    if not (retries and failures):
        return Policy(max_attempts=1)
    if attempt and total and attempt >= total:
        text = f"has no effect, since all attempts together have {total:g} s"
        section.note("per_try_timeout", text)
        attempt = 0.0
    if total and not attempt:
        text = "also ends a running attempt; max_elapsed ends only the retries"
        route.note("timeout", text)
    if attempt and not _retries_resets(failures["on"]):
        # An attempt timeout is retried unless the policy says otherwise.
        settings["give_up_on"] = AttemptTimeout
    return Policy(
        max_attempts=retries + 1,
        max_elapsed=total or None,
        attempt_timeout=attempt or None,
        **failures,
        **settings,
    )


def _retries_resets(on: Any) -> bool:
    parts = getattr(on, "conditions", [on])
    return any(isinstance(x, HttpFailures) and x.connections for x in parts)


def conditions(
    section: Section, key: str, words: Collection[str], statuses: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the conditions of a policy for words that select failures.

    Differences from Envoy are recorded as remarks.

    Args:
        section: The table, for remarks.
        key: The key of the words in that table.
        words: Some of `WORDS`.
        statuses: Further statuses that are retried.

    Returns:
        The settings `on` and `on_result`; empty if nothing is retried.
    """
    _remark(section, key, words, statuses)
    listed: list[int | str] = [*statuses]
    for word, named in _STATUSES.items():
        listed += named if word in words else ()
    connections = not _RESETS.isdisjoint(words)
    unprocessed = not (connections or _UNPROCESSED.isdisjoint(words))
    found: list[Any] = []
    if listed or connections or unprocessed:
        found.append(HttpFailures(listed, connections, unprocessed))
    if codes := [each for each in _CODES if each in words]:
        found.append(StatusCodes([_CODES[each] for each in codes]))
    if not found:
        return {}
    by_status = {"on_result": HttpFailures(listed)} if listed else {}
    return {"on": any_of(found)} | by_status


def _remark(
    section: Section, key: str, words: Collection[str], statuses: Sequence[int]
) -> None:
    for word, text in _DIFFERENCES.items():
        if word in words:
            section.differs(key, f"{word}: {text}")
    if _TOO_EARLY in statuses:
        section.differs(key, "425: waits before the retry, which Envoy makes at once")
    if _RESETS.isdisjoint(words):
        _remark_unprocessed(section, key, words)
    if "http3-post-connect-failure" in words:
        section.note(key, "http3-post-connect-failure has no effect without HTTP/3")
    if codes := [each for each in _CODES if each in words]:
        section.note(key, f"{codes[0]}: Envoy reads it in the headers, not in trailers")


_TOO_EARLY = 425


def _remark_unprocessed(section: Section, key: str, words: Collection[str]) -> None:
    if "reset-before-request" in words:
        text = "a connection that is lost before the request is sent is not retried"
        section.differs(key, f"reset-before-request: {text}")
    elif "refused-stream" in words and "connect-failure" not in words:
        text = "a connection that could not be made is also retried"
        section.differs(key, f"refused-stream: {text}")
    elif "connect-failure" in words and "refused-stream" not in words:
        text = "a stream that HTTP/2 refuses is also retried"
        section.differs(key, f"connect-failure: {text}")


_STATUSES: dict[str, list[int | str]] = {
    "5xx": ["5xx"],
    "gateway-error": [502, 503, 504],
    "retriable-4xx": [409],
}
_RESETS = {"5xx", "gateway-error", "reset"}
_UNPROCESSED = {"connect-failure", "refused-stream", "reset-before-request"}
_CODES = {
    "cancelled": "CANCELLED",
    "deadline-exceeded": "DEADLINE_EXCEEDED",
    "internal": "INTERNAL",
    "resource-exhausted": "RESOURCE_EXHAUSTED",
    "unavailable": "UNAVAILABLE",
}
_DIFFERENCES = {
    "envoy-ratelimited": "a response is not retried because of x-envoy-ratelimited",
    "retriable-headers": "a response is not retried because of its headers",
}
WORDS = (
    *(*_STATUSES, "reset", *sorted(_UNPROCESSED), *_CODES, *_DIFFERENCES),
    *("retriable-status-codes", "http3-post-connect-failure"),
)
"""All words that select failures."""


def back_off(base: float, longest: float | None = None) -> Schedule:
    """Return the random delays for a base and a maximum, in whole milliseconds.

    >>> back_off(0.025)
    exponential(0.025, factor=2.0).cap(0.25).full_jitter().round_down(0.001)

    Args:
        base: Seconds, > 0; at least a millisecond is used.
        longest: Seconds, not below *base*; by default ten times *base*.
    """
    first = _milliseconds(base)
    most = first * 10 if longest is None else _milliseconds(longest)
    doubled = exponential(first / 1000, factor=2)
    limited = doubled.cap(most / 1000)
    steps = ((most - 1) // first).bit_length() - 1
    if steps > 0 and first << steps == most - 1:
        # The code compares with half of the maximum, rounded down.
        limited = doubled.switch(after=steps, to=constant(most / 1000))
    return limited.full_jitter().round_down(0.001)


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000 + 1e-6))
