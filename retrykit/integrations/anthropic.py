"""Retries for Anthropic's SDK.

Needs the extra ``anthropic``. The client retries twice by itself: switch that
off, or each attempt is up to three requests::

    import anthropic

    from retrykit import retry
    from retrykit.integrations import anthropic as retries

    client = anthropic.Anthropic(max_retries=0)

    @retry(retries.policy(max_attempts=4))
    def ask(question):
        messages = [{"role": "user", "content": question}]
        return client.messages.create(
            model="claude-sonnet-4-5", max_tokens=999, messages=messages
        )

A generator function that yields the text of a stream is retried until it has yielded
its first piece, with ``@retry(retries.policy(), stream="until-first-item")``.

Requests of this API are POSTs. The service may have executed, and charged for, a
request whose answer was lost; the SDK itself repeats it all the same. The SDK waits for
any delay that the service requests; a policy gives up if the delay is above its
`hint_cap`.
"""

from typing import Any, Final

from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.hints import (
    Hint,
    first_of,
    milliseconds,
    reset_at,
    retry_after as _retry_after,
)
from retrykit.integrations._sdk import (
    connection_errors,
    field,
    is_transient_cause,
    is_transient_response,
)
from retrykit.integrations._transient import TransientErrors

with needs("anthropic"):
    import anthropic

__all__ = ["policy", "retry_after", "transient"]

retry_after: Final = first_of(
    milliseconds("retry-after-ms"),
    _retry_after(),
    reset_at("anthropic-ratelimit-tokens-reset"),
    reset_at("anthropic-ratelimit-input-tokens-reset"),
    reset_at("anthropic-ratelimit-output-tokens-reset"),
    reset_at("anthropic-ratelimit-requests-reset"),
)
"""Hint that reads the requested delay, or when an exhausted rate limit resets."""


class _Transient(TransientErrors):
    """Condition that matches transient errors of Anthropic's SDK.

    They are timeouts, failed and broken connections, but not a rejected certificate;
    and responses that ``x-should-retry`` declares transient, or, without that header,
    responses with the status 408, 409, 429, or 500 and above, such as 529 (overloaded).
    A spend limit, which also has the status 429, is permanent. In a stream, error
    events are transient if they report an overload, a rate limit, a timeout or an error
    of the server. The SDK's ``RetryableError`` is transient, too.

    Source:
        "Errors" and "Rate limits", Anthropic; the SDK's own retries.
    """

    hint: Hint | None = staticmethod(retry_after)
    own_retries: OwnRetries | None = OWN_RETRIES["anthropic"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, anthropic.APIConnectionError):
            return is_transient_cause(error, _CONNECTION)
        if not isinstance(error, anthropic.APIStatusError):
            return isinstance(error, _OTHERS)
        if field(error.body, "error", "details", "error_code") in _SPENT:
            return False
        # The error event of a stream comes with the response that began the stream.
        if error.response.is_success:
            return field(error.body, "error", "type") in _IN_STREAM
        return is_transient_response(error.response)


_CONNECTION = connection_errors(anthropic)

# The last one asks for a retry by its type; older versions do not have it.
_OTHERS = (*_CONNECTION, getattr(anthropic, "RetryableError", ()))

# Tuples: a service might send something unhashable.
_SPENT = ("contract_spend_limit_reached", "enforced_spend_limit_reached")
_IN_STREAM = ("api_error", "overloaded_error", "rate_limit_error", "timeout_error")

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
