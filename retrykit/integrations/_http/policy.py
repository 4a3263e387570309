"""Policy defaults of HTTP clients: transient statuses, idempotent methods, hints."""

from abc import abstractmethod
from collections.abc import Container, Iterable
from typing import Any, Final

from retrykit._core.final_error import check_no_fallback
from retrykit._core.policy import Policy
from retrykit._internal.validation import invalid_setting
from retrykit.hints import Hint, retry_after as _retry_after
from retrykit.integrations._transient import TransientErrors

__all__ = ["IDEMPOTENT", "Transient", "check_client_policy", "check_methods"]
__all__ += ["is_transient_status", "retry_after"]

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""The idempotent HTTP methods.

Source:
    RFC 9110, "HTTP Semantics", section 9.2.2, 2022.
"""

retry_after: Final = _retry_after()
"""Hint that reads ``Retry-After``; see `retrykit.hints.retry_after`."""


class Transient(TransientErrors):
    """Condition that matches a client's transient errors and responses."""

    hint: Hint | None = retry_after
    matches_results: bool = True

    @abstractmethod
    def __call__(self, outcome: Any, /) -> bool:
        """Return whether an error or a response is transient."""

    @abstractmethod
    def release(self, response: Any, /) -> Any:
        """Close a rejected response; return None or an awaitable."""

    def copy_request(self, request: Any, /) -> Any:
        """Return a request that can be sent while the given one is being sent.

        By default, it is the given request itself: most clients do not change a request
        when they send it.
        """
        return request


def check_client_policy(policy: Policy) -> None:
    """Raise an error if a policy's calls do not end as the client's own do.

    Raises:
        ConfigError: The policy has a fallback, or raises errors of retrykit instead of
            the client's.
    """
    check_no_fallback(policy)
    place = "in a client, whose callers expect its own errors"
    if policy.raises != "last":
        raise invalid_setting(
            "raises", f"'last' {place}", policy.raises, code="not-here"
        )
    if policy.nested == "raise":
        rule = f"'respect' or 'retry' {place}"
        raise invalid_setting("nested", rule, policy.nested, code="not-here")


def is_transient_status(status: int, headers: Container[str] | None) -> bool:
    """Return whether a response is transient, by its status.

    Args:
        status: The HTTP status.
        headers: The headers, case-insensitive; None if there are none. They matter
            for 413, "Content Too Large", which is transient with a ``Retry-After``.

    Source:
        RFC 9110, "HTTP Semantics", section 15.5.14, 2022.
    """
    if status == _TOO_LARGE:
        return headers is not None and "Retry-After" in headers
    return status in _TRANSIENT


_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_TOO_LARGE = 413


def check_methods(methods: Iterable[str] | None) -> frozenset[str] | None:
    """Return the HTTP methods to retry, in upper case; None means all.

    Raises:
        ConfigError: *methods* is a string or empty, or has a member that is not a
            string or is empty.
    """
    if methods is None:
        return None
    listed: list[object] = [] if isinstance(methods, str) else [*methods]
    names = [each.upper() for each in listed if isinstance(each, str) and each]
    if not names or len(names) < len(listed):
        rule = "a set of HTTP methods, at least one"
        raise invalid_setting("methods", rule, methods, "None means every method")
    return frozenset(names)
