"""Policies of real systems, each reproduced from its documentation.

Each is a function that returns a `Policy`, so that its settings can be given
and ``.replace()`` can add what the system leaves open. A limit that the system
does not have is None, and they retry every `Exception`.

>>> zizq(retry_limit=3).replace(on=ConnectionError).max_attempts
4
"""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec

from retrykit import systems
from retrykit.policy import Policy
from retrykit.settings import Settings, recast

__all__ = ["google", "hostname_verification", "zizq"]

P = ParamSpec("P")


def _public(dialect: Callable[P, Settings]) -> Callable[P, Policy]:
    """Return a dialect as it is documented, but with what a policy does."""

    @functools.wraps(dialect)
    def made(*args: P.args, **kwargs: P.kwargs) -> Policy:
        return recast(dialect(*args, **kwargs), Policy)

    made.__module__ = __name__
    made.__annotations__ = dialect.__annotations__ | {"return": Policy}
    signature = inspect.signature(dialect).replace(return_annotation=Policy)
    vars(made)["__signature__"] = signature
    return made


hostname_verification = _public(systems.hostname_verification)
"""The schedule by which a custom hostname is verified for a week."""

google = _public(systems.google)
"""The policy of Google's `ExponentialBackOff`."""

zizq = _public(systems.zizq)
"""The backoff policy of the Zizq job queue."""
