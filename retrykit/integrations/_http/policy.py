"""What the clients have in common, for their modules beside this one.

Which statuses pass, which methods may be sent twice, and how a policy gets the
parts that a client has for it. No client is imported.
"""

import ssl
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from typing import Any

from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.hints import retry_after as _retry_after
from retrykit.hints.base import Hint
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes

__all__ = ["IDEMPOTENT", "Transient", "checked_methods", "merge_client_defaults"]
__all__ += ["refuses_certificate", "retry_after", "transient_status"]

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""The HTTP methods that mean the same when they are sent twice.

Source:
    RFC 9110, "HTTP Semantics", section 9.2.2, 2022.
"""

retry_after = _retry_after()
"""The hint that reads ``Retry-After``; see `retrykit.hints.retry_after`."""


class Transient(ABC):
    """Whether what came of a request is worth another attempt: of one client.

    It is shown, and pickled, by its name in the module of its client.
    """

    @abstractmethod
    def __call__(self, outcome: Any, /) -> bool:
        """Return whether an error or a response is."""

    @abstractmethod
    def release(self, response: Any, /) -> Any:
        """Close a response that another attempt replaces."""

    def __repr__(self) -> str:
        return "transient"

    def __reduce__(self) -> str:
        return "transient"


def merge_client_defaults(
    base: Policy | None,
    changes: Changes,
    transient: Transient,
    hint: Hint = retry_after,
) -> Policy:
    """Return a policy with the parts of a client, where it has none of its own.

    One that has the client's condition has got its parts already: what it lacks,
    it is to lack.

    Args:
        base: The policy; None is `Policy()`.
        changes: Settings that are changed, whatever is joined.
        transient: The client's condition, of errors and of responses.
        hint: The client's hint.

    Raises:
        ConfigError: *base* is no policy, or a setting is wrong.
    """
    suggestion = "write settings by their names, as max_attempts=4"
    policy = (
        Policy() if base is None else check_instance("policy", base, Policy, suggestion)
    )
    if transient not in (policy.on, policy.on_result):
        policy = policy.replace(
            on=transient if policy.on is Exception else policy.on,
            on_result=transient if policy.on_result is None else policy.on_result,
            hint=hint if policy.hint is None else policy.hint,
        )
    return policy.replace(**changes)


def transient_status(status: int, headers: Container[str] | None) -> bool:
    """Return whether a response is worth another attempt, by its status.

    Args:
        status: The HTTP status.
        headers: Its headers, by their names in any case; None if there are none. They
            count with 413, "Content Too Large", which passes where it has a
            ``Retry-After``.

    Source:
        RFC 9110, "HTTP Semantics", section 15.5.14, 2022.
    """
    if status == _TOO_LARGE:
        return headers is not None and "Retry-After" in headers
    return status in _TRANSIENT


_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_TOO_LARGE = 413


def refuses_certificate(error: BaseException | None) -> bool:
    """Return whether an error comes from a certificate that is not accepted.

    Clients tell of it as of a connection that failed. It stays what it is.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def checked_methods(methods: Iterable[str] | None) -> frozenset[str] | None:
    """Return the methods that may be sent again, in capitals; None is every one.

    Raises:
        ConfigError: They are no collection of names.
    """
    if methods is None:
        return None
    given: list[object] = [] if isinstance(methods, str) else [*methods]
    names = [each.upper() for each in given if isinstance(each, str) and each]
    if not names or len(names) < len(given):
        rule = "a set of HTTP methods, at least one"
        raise invalid_setting("methods", rule, methods, "None is every method")
    return frozenset(names)
