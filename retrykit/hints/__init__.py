"""Hints: readers of the delay that an error or a response asks for.

>>> from retrykit.hints import first_of, milliseconds, retry_after
>>> hint = first_of(milliseconds("retry-after-ms"), retry_after())

`retry_after` reads the header Retry-After, `milliseconds` vendor headers in that unit,
`reset_at` the reset time of a rate limit, `rate_limit` the header RateLimit,
`grpc_pushback` the metadata of a gRPC error, and `attribute` an attribute. Errors and
responses are recognized by their attributes or keys; no client is imported. A custom
hint is a function; see `Hint`. `parse_hint` and `hint_to_text` read and write hints as
strings.
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.hints._base import Hint, first_of
    from retrykit.hints._error_attribute import attribute
    from retrykit.hints._parsing import hint_to_text, parse_hint
    from retrykit.hints._rate_limit_header import rate_limit
    from retrykit.hints._rate_limit_reset import reset_at
    from retrykit.hints._retry_after_header import milliseconds, retry_after
    from retrykit.hints.grpc import grpc_pushback
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "hints._base": "Hint first_of",
            "hints._error_attribute": "attribute",
            "hints._retry_after_header": "milliseconds retry_after",
            "hints._parsing": "hint_to_text parse_hint",
            "hints.grpc": "grpc_pushback",
            "hints._rate_limit_header": "rate_limit",
            "hints._rate_limit_reset": "reset_at",
        },
    )

__all__ = ["Hint", "attribute", "first_of", "grpc_pushback", "hint_to_text"]
__all__ += ["milliseconds", "parse_hint", "rate_limit", "reset_at", "retry_after"]
