"""Hedged requests: several sends of one request, and one response."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrykit._core.hedging import hedged
from retrykit._internal.introspection import is_coroutine_function
from retrykit.integrations._http.bodies import no_rewind
from retrykit.integrations._http.policy import IDEMPOTENT

if TYPE_CHECKING:
    from retrykit._core.hedge import Hedge
    from retrykit._core.policy import Policy
    from retrykit.integrations._http.policy import Transient
    from retrykit.integrations._http.transport import HttpRequest

__all__ = ["hedge_requests"]


def hedge_requests(
    transient: "Transient",
    policy: "Policy",
    hedge: "Hedge",
    attempt: Callable[..., Any],
) -> Callable[..., Any]:
    """Return a function that hedges the attempts of requests that may be repeated.

    Args:
        transient: The client's condition, which copies requests and releases responses.
        policy: The policy of the requests.
        hedge: The hedge, which decides when a request is sent again.
        attempt: A function, sync or async, that sends a request once. It takes the
            arguments of the returned function: the client's function that sends, the
            request, and the record of the request in flight.
    """

    def send_once(send: Callable[..., Any], request: "HttpRequest") -> Any:
        sent = transient.copy_request(request.request)
        return attempt(send, request._replace(request=sent), _Send())

    async def asend_once(send: Callable[..., Any], request: "HttpRequest") -> Any:
        sent = transient.copy_request(request.request)
        return await attempt(send, request._replace(request=sent), _Send())

    def hedged_attempt(
        send: Callable[..., Any], request: "HttpRequest", in_flight: Any
    ) -> Any:
        if not _may_race(request, promised):
            return attempt(send, request, in_flight)
        in_flight.start_attempt(request)
        in_flight.response = race(send, request)
        return in_flight.response

    async def ahedged_attempt(
        send: Callable[..., Any], request: "HttpRequest", in_flight: Any
    ) -> Any:
        if not _may_race(request, promised):
            return await attempt(send, request, in_flight)
        in_flight.start_attempt(request)
        in_flight.response = await race(send, request)
        return in_flight.response

    promised = hedge.idempotent
    awaited = is_coroutine_function(attempt)
    once = asend_once if awaited else send_once
    race = hedged(policy, hedge, once, transient.release)
    return ahedged_attempt if awaited else hedged_attempt


def _may_race(request: "HttpRequest", promised: bool) -> bool:  # noqa: FBT001
    """Return whether a request that may be retried may also be sent twice at once.

    It may not with a file, whose position the sends would share, nor with ``Expect``,
    since only one send could wait for the server to agree.

    Args:
        request: The request.
        promised: Whether the hedge is marked as idempotent. If it is not, the request
            must be idempotent, or have an ``Idempotency-Key``.
    """
    if not promised and request.not_repeatable_because(IDEMPOTENT) is not None:
        # The user only wants it to be retried.
        return False
    return request.rewind is no_rewind and "Expect" not in request.headers


class _Send:
    """One send of a hedged attempt, whose start is already recorded."""

    response: Any = None

    def start_attempt(self, request: "HttpRequest") -> None:
        """Do nothing: the body is in memory."""
