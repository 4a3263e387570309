"""Retries for Stripe's SDK.

Needs the extra ``stripe``. A `StripeClient` retries nothing by itself,
unless it is created with ``max_network_retries``. The functions of the module, such as
``stripe.Customer.create()``, retry twice: switch that off with
``stripe.max_network_retries = 0``, or each attempt is up to three requests. The SDK
makes a new idempotency key for every call, so a retried POST needs a key of your own,
or it may be executed twice::

    import stripe

    from retrykit import retry
    from retrykit.integrations import stripe as retries

    client = stripe.StripeClient(secret)

    @retry(retries.policy(max_attempts=4))
    def pay(order, key):
        params = {"amount": order.cents, "currency": "eur"}
        options = {"idempotency_key": key}
        return client.v1.payment_intents.create(params, options)

    pay(order, key=f"order-{order.id}")
"""

from typing import Any, Final

from retrykit._internal.connection_errors import is_certificate_error
from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.hints import Hint
from retrykit.hints._retry_after_header import header_values
from retrykit.integrations._http.policy import retry_after
from retrykit.integrations._transient import TransientErrors

with needs("stripe"):
    import stripe

__all__ = ["policy", "retry_after", "transient"]


class _Transient(TransientErrors):
    """Condition that matches transient errors of Stripe's SDK.

    They are the errors that the SDK retries itself: failed connections, unless the SDK
    excludes them or a certificate was rejected; and responses that
    ``Stripe-Should-Retry`` declares transient, or, without that header, responses with
    the status 409, or 500 and above. Rate limits, which Stripe asks to retry with an
    exponential backoff, are transient as well. A declined card is permanent.

    Source:
        "Advanced error handling" and "Rate limits", Stripe; the SDK's own retries.
    """

    hint: Hint | None = retry_after
    own_retries: OwnRetries | None = OWN_RETRIES["stripe"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, stripe.APIConnectionError):
            return error.should_retry and not is_certificate_error(error)
        if not isinstance(error, stripe.StripeError):
            return False
        should_retry = header_values(error, "stripe-should-retry")
        if should_retry in (["true"], ["false"]):
            return should_retry == ["true"]
        status = error.http_status or 0
        limited = isinstance(error, stripe.RateLimitError)
        return limited or status == _CONFLICT or status >= _SERVER_ERROR


_CONFLICT = 409
_SERVER_ERROR = 500

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
