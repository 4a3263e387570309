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

from retrykit.policy.policy import Policy
from retrykit.policy.settings import Settings, recast
from retrykit.presets import systems

__all__ = ["aws_adaptive", "aws_standard", "celery", "dramatiq", "finagle", "google"]
__all__ += ["grpc", "hostname_verification", "polly", "sidekiq", "temporal"]
__all__ += ["tenacity_default", "zizq"]

P = ParamSpec("P")


def _public(preset: Callable[P, Settings]) -> Callable[P, Policy]:
    """Return a preset as it is documented, but with what a policy does."""

    @functools.wraps(preset)
    def made(*args: P.args, **kwargs: P.kwargs) -> Policy:
        return recast(preset(*args, **kwargs), Policy)

    made.__module__ = __name__
    made.__annotations__ = preset.__annotations__ | {"return": Policy}
    signature = inspect.signature(preset).replace(return_annotation=Policy)
    vars(made)["__signature__"] = signature
    return made


aws_adaptive = _public(systems.aws_adaptive)
"""What a policy has of the adaptive mode of the AWS SDKs."""

aws_standard = _public(systems.aws_standard)
"""The standard mode of the AWS SDKs."""

celery = _public(systems.celery)
"""The retries of a Celery task that has ``autoretry_for``."""

dramatiq = _public(systems.dramatiq)
"""The retries of Dramatiq's `Retries` middleware."""

finagle = _public(systems.finagle)
"""The backoff of Finagle's ``RetryPolicy.tries``, and its budget."""

google = _public(systems.google)
"""The policy of Google's `ExponentialBackOff`."""

grpc = _public(systems.grpc)
"""The retry policy of gRPC, by default the example of its design."""

hostname_verification = _public(systems.hostname_verification)
"""The schedule by which a custom hostname is verified for a week."""

polly = _public(systems.polly)
"""The wait and retry that Polly recommends: decorrelated jitter V2."""

sidekiq = _public(systems.sidekiq)
"""The retries of a Sidekiq job, over about three weeks."""

temporal = _public(systems.temporal)
"""The retry policy that Temporal gives to its activities."""

tenacity_default = _public(systems.tenacity_default)
"""What ``tenacity.retry`` does without arguments. It is unsafe."""

zizq = _public(systems.zizq)
"""The backoff policy of the Zizq job queue."""
