"""Hints: what reads the delay that an error or a result asks for.

>>> from retrykit.hints import first_of, milliseconds, retry_after
>>> hint = first_of(milliseconds("retry-after-ms"), retry_after())

`retry_after` reads the header of HTTP, `milliseconds` those that services
have beside it, `reset_at` when a rate limit begins anew, `grpc_pushback` the
metadata of a gRPC error, and `attribute` an attribute. No client is imported:
their errors and responses are known by what they look like. A hint of your own
is a function; see `Hint`.
"""

from retrykit.hint import Hint
from retrykit.hints.attributes import attribute
from retrykit.hints.http import milliseconds, retry_after
from retrykit.hints.named import hint_named, name_of_hint
from retrykit.hints.pushback import grpc_pushback
from retrykit.hints.resets import reset_at
from retrykit.hints.several import first_of

__all__ = ["Hint", "attribute", "first_of", "grpc_pushback", "hint_named"]
__all__ += ["milliseconds", "name_of_hint", "reset_at", "retry_after"]
