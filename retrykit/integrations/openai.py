"""Retries for OpenAI's SDK.

Needs the extra ``openai``. The client retries twice by itself: switch that
off, or each attempt is up to three requests::

    import openai

    from retrykit import retry
    from retrykit.integrations import openai as retries

    client = openai.OpenAI(max_retries=0)

    @retry(retries.policy(max_attempts=4))
    def ask(question):
        answer = client.responses.create(model="gpt-5", input=question)
        return answer.output_text

A generator function that yields the tokens of a stream is retried until it has yielded
its first token, with ``@retry(retries.policy(), stream="until-first-item")``.

Requests of this API are POSTs. The service may have executed, and charged for, a
request whose answer was lost; the SDK itself repeats it all the same. If the service
requests a delay above 120 s, the SDK raises the error; a policy waits for up to its
`hint_cap`, which is an hour by default: ``policy(hint_cap="2m")`` works like the SDK.
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
    is_transient_cause,
    is_transient_response,
)
from retrykit.integrations._transient import TransientErrors

with needs("openai"):
    import openai

__all__ = ["policy", "retry_after", "transient"]

retry_after: Final = first_of(
    milliseconds("retry-after-ms"),
    _retry_after(),
    reset_at("x-ratelimit-reset-tokens"),
    reset_at("x-ratelimit-reset-requests"),
)
"""Hint that reads the requested delay, or when an exhausted rate limit resets."""


class _Transient(TransientErrors):
    """Condition that matches transient errors of OpenAI's SDK.

    They are timeouts, failed and broken connections, but not a rejected certificate;
    and responses that ``x-should-retry`` declares transient, or, without that header,
    responses with the status 408, 409, 429, or 500 and above. An exhausted quota or
    budget, which also has the status 429, is permanent. The error that the SDK raises
    in a stream, for an event with a nested ``error`` object, is transient if it reports
    an overload, a rate limit or an error of the server. The events ``error`` and
    ``response.failed`` of the Responses API are yielded: the function must raise an
    error itself.

    Source:
        "Error codes" and "Rate limits", OpenAI; the SDK's own retries.
    """

    hint: Hint | None = staticmethod(retry_after)
    own_retries: OwnRetries | None = OWN_RETRIES["openai"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, openai.APIConnectionError):
            return is_transient_cause(error, _CONNECTION)
        if not isinstance(error, openai.APIError):
            return isinstance(error, _CONNECTION)
        reasons = error.code, error.type
        if any(reason in _SPENT for reason in reasons):
            return False
        if isinstance(error, openai.APIStatusError):
            return is_transient_response(error.response)
        return any(reason in _IN_STREAM for reason in reasons)


_CONNECTION = connection_errors(openai)

# Tuples: a service might send something unhashable.
_SPENT = (
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "project_spend_limit_exceeded",
)
_IN_STREAM = (
    "rate_limit_error",
    "rate_limit_exceeded",
    "server_error",
    "server_is_overloaded",
    "service_unavailable_error",
    "slow_down",
)

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
