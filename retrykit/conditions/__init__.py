"""Conditions: predicates of failures for `on`, `give_up_on` and `on_result`.

>>> from retrykit import Policy
>>> from retrykit.conditions import HttpFailures
>>> busy = HttpFailures([429, "5xx"], connections=True)
>>> policy = Policy(on=busy, on_result=busy)
>>> policy.to_dict()["on_result"]
['http=429', 'http=5xx', 'http=connections']

Exception types need no predicate. `ErrorNames` matches errors by class name,
`HttpFailures` failures of any HTTP client, and `StatusCodes` gRPC status codes;
`Excluding` matches all errors except some, and `any_of` joins conditions. They import
no client library. Unlike other predicates, they can be written as data; they can also
be compared and pickled. A joined condition can if its parts can.
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.conditions._http import HttpFailures
    from retrykit.conditions._names import AnyOf, ErrorNames, Excluding, any_of
    from retrykit.hints.grpc import StatusCodes
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "conditions._http": "HttpFailures",
            "conditions._names": "AnyOf ErrorNames Excluding any_of",
            "hints.grpc": "StatusCodes",
        },
    )

__all__ = ["AnyOf", "ErrorNames", "Excluding", "HttpFailures", "StatusCodes", "any_of"]
