"""Retries for aiohttp.

Needs the extra ``retrykit[aiohttp]``. Best is a decorator around the whole of
what is done with a response, which sees a body that is cut short::

    from retrykit import retry
    from retrykit.integrations import aiohttp as retries

    @retry(retries.policy(max_attempts=4))
    async def fetch(session, url):
        async with session.get(url) as response:
            response.raise_for_status()
            return await response.json()

aiohttp itself sends an idempotent request again, once and at once, when its
connection breaks before the answer: a server may see two for each attempt. Not
so under a middleware, where the policy alone decides, be it with
``max_attempts=1``. It sends requests again, up to the head of the response;
`state_of` of a response or an error has its history::

    retrying = retries.RetryMiddleware(max_attempts=4)
    session = aiohttp.ClientSession(middlewares=[retrying])
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, Unpack, cast, final
from weakref import ref

import aiohttp

from retrykit._internal.validation import invalid_setting
from retrykit.integrations._http.bodies import ready, rewinding, together
from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    Transient,
    merge_client_defaults,
    refuses_certificate,
    retry_after,
    transient_status,
)
from retrykit.integrations._http.transport import AsyncSender, HttpRequest
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import AsArgument
from retrykit.policy.validators import Changes
from retrykit.state.final_error import attach_state, state_of
from retrykit.state.retry_state import RetryState
from retrykit.state.signals import GiveUp

__all__ = ["IDEMPOTENT", "RetryMiddleware", "policy", "retry_after", "transient"]


@final
class _Transient(Transient):
    """Whether what came of a request is worth another attempt.

    Of errors: connections that fail, break or are reset, answers that are cut
    short, timeouts of every kind; not a certificate or a fingerprint that is not
    accepted, nor what the program does to its own connections. Of responses, and
    of the errors that have a status: 408, 425, 429, 500, 502, 503 and 504, and 413
    with a ``Retry-After``.
    """

    def __call__(self, outcome: Any, /) -> bool:
        if isinstance(outcome, aiohttp.ClientResponse | aiohttp.ClientResponseError):
            return transient_status(outcome.status, outcome.headers)
        return isinstance(outcome, _PASSING) and not refuses_certificate(outcome)

    def release(self, response: aiohttp.ClientResponse, /) -> None:
        """Give back the connection of a response, or close it."""
        response.release()


_PASSING = (
    aiohttp.ClientOSError,
    aiohttp.ClientPayloadError,
    aiohttp.ServerDisconnectedError,
    ConnectionError,
    TimeoutError,
)

transient: Final = _Transient()
"""The condition of errors and responses: for `on`, and for `on_result`."""


def policy(base: Policy | None = None, /, **changes: Unpack[Changes]) -> Policy:
    """Return a policy for aiohttp: `transient` and `retry_after` joined to one.

    >>> policy(max_attempts=3)
    Policy(max_attempts=3, on=transient, on_result=transient, hint=retry_after())

    Args:
        base: What it is derived from; by default `Policy()`. What it says itself
            of errors, results and hints is kept.
        **changes: Settings, as for `Policy`.

    Raises:
        ConfigError: A setting is wrong.
    """
    return merge_client_defaults(base, changes, transient)


@final
class RetryMiddleware:
    """Sends the requests of a session again, under a policy.

    It is for the ``middlewares`` of a session or a request. Put it first: others
    then see each attempt. One around it sees responses, and connections that
    cannot be made, as ever. When a connection breaks that was made, aiohttp would
    begin all the attempts anew if that were raised. So ``await handler(request)``
    raises nothing then: what it returns raises a ``ClientConnectionError`` when
    it is looked at, with the error as its ``__cause__``. Returned without a look,
    the caller gets the error as it was.

    It ends with the head of a response: a body that is cut short raises the
    client's error, and nothing is sent again. Sent again are idempotent methods
    and what has an ``Idempotency-Key``, with a body that can be read twice: from
    memory, or from a file that can seek. Every response, and every error, has its
    history, which `state_of` reads; so has the error of its ``raise_for_status``,
    and the response as its ``response``. When the policy gives up, the last
    response is returned; what is raised is an error of aiohttp, or a
    `TimeoutError`, as it is there. Each hop of a redirect is a request of its own.
    The cookies of responses that another attempt replaces are not kept.

    The ``total`` of ``aiohttp.ClientTimeout`` bounds all attempts and the delays
    between them: where it ends a delay, the history is that of the error's
    ``__cause__``. So does every `TimeoutError` that is no ``ServerTimeoutError``
    end a call. To bound each attempt, give the policy an `attempt_timeout`.

    Args:
        policy: As for `policy`.
        methods: The HTTP methods that are sent again; None is every one.
        **changes: Settings, as for `Policy`.

    Raises:
        ConfigError: A setting is wrong, or a middleware cannot follow it, such as
            ``nested="raise"``.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        methods: Iterable[str] | None = IDEMPOTENT,
        **changes: Unpack[Changes],
    ) -> None:
        held = merge_client_defaults(policy, changes, transient)
        given = held.attempt_timeout
        if isinstance(given, AsArgument):
            rule = "a duration in a middleware, to which aiohttp gives no timeouts"
            suggestion = f"write attempt_timeout={given.seconds}"
            raise invalid_setting("attempt_timeout", rule, given, suggestion)
        self._sender = AsyncSender(held, _send, transient, methods)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sender.policy!r})"

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request, and again when the policy says so."""
        sending = HttpRequest(
            (request, handler),
            request.method,
            request.url.host or "",
            request.headers,
            _rewind(request.body),
        )
        try:
            response: aiohttp.ClientResponse = await self._sender.send(sending)
            vars(response)["raise_for_status"] = _raising(response)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            # Without a name: the error holds this frame, and is not to hold that.
            return cast("aiohttp.ClientResponse", _Failed(error))
        return response


async def _send(
    sending: tuple[aiohttp.ClientRequest, aiohttp.ClientHandlerType], _: object, /
) -> Any:
    request, handler = sending
    try:
        response: Any = await handler(request)
    except TimeoutError as error:
        if isinstance(error, aiohttp.ServerTimeoutError):
            raise
        # The total of the session: aiohttp would let a request out, and fail.
        raise GiveUp from error
    # That of another of these, within this one, raises its error.
    return response.end() if type(response) is _Failed else response


def _rewind(body: object) -> Callable[[], object] | None:
    """Return what makes a body ready to be sent again, if that can be done.

    aiohttp takes files back, too, and sends nothing of one that it cannot.
    """
    if isinstance(body, aiohttp.MultipartWriter):
        return together(_rewind(part) for part, *_ in body)
    if isinstance(body, aiohttp.IOBasePayload):
        # The file has no public name: where this is another one day, the body
        # counts as one that cannot be sent again.
        return rewinding(getattr(body, "_value", iter(())))
    return ready if isinstance(body, bytes | aiohttp.BytesPayload) else None


def _raising(response: aiohttp.ClientResponse) -> Callable[[], None]:
    """Return its ``raise_for_status``, with an error that knows the response."""
    # Held by the response itself, which frees its connection when it is gone.
    held = ref(response)

    def raise_for_status() -> None:
        response: Any = held()
        try:
            type(response).raise_for_status(response)
        except aiohttp.ClientResponseError as error:
            # As with other clients; by it calls around this one see its end.
            vars(error)["response"] = response
            attach_state(error, cast("RetryState", state_of(response)))
            raise

    return raise_for_status


@final
class _Failed:
    """Stands for the response of a request that failed: to look at it raises why.

    Raised by a middleware, an error that aiohttp takes for a connection which was
    kept for too long would make it begin all the attempts anew.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def end(self) -> NoReturn:
        """Raise the error itself, and hold it no longer, as its frames hold this."""
        error, self._error = self._error, aiohttp.ClientConnectionError("it broke")
        try:
            raise error
        finally:
            del error

    def __getattr__(self, name: str) -> NoReturn:
        # aiohttp itself, which looks at a private part first, is past the place
        # where it begins anew; who looks at a public one may be a middleware.
        if name.startswith("_"):
            self.end()
        raise _told(self._error) from self._error


def _told(error: Exception) -> Exception:
    """Return an error that says the same, of a kind which aiohttp lets out."""
    told = aiohttp.ClientConnectionError(str(error))
    state = state_of(error)
    if state is not None:
        attach_state(told, state)
    return told
