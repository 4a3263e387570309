"""Policy defaults for gRPC: transient status codes and server pushback."""

from typing import Final, Unpack

from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.validation import user_facing
from retrykit.hints import grpc_pushback
from retrykit.hints.grpc import StatusCodes
from retrykit.integrations._transient import fill_in

__all__ = ["policy", "retry_after", "transient"]

transient: Final = StatusCodes(["UNAVAILABLE"])
"""Condition that matches transient errors: only UNAVAILABLE.

It is the only code with which a server, or gRPC itself without a connection, says that
this one call may be retried. ABORTED means that the whole transaction should be
retried, and DEADLINE_EXCEEDED that the caller's own timeout has passed.
RESOURCE_EXHAUSTED may mean a quota that stays exhausted for hours, or a message that is
too large; INTERNAL and UNKNOWN are bugs that should be noticed. If a server uses these
codes in another way, write ``on=StatusCodes(["UNAVAILABLE", "RESOURCE_EXHAUSTED"])``.
Even a call that failed with UNAVAILABLE may have been executed.

Source:
    Google AIP-194, "Automatic retry configuration", 2019; "Status codes and
    their use in gRPC", grpc.io. Other libraries retry more: google-api-core also
    INTERNAL and RESOURCE_EXHAUSTED, go-grpc-middleware also RESOURCE_EXHAUSTED.
"""

retry_after: Final = grpc_pushback()
"""Hint that reads the server's pushback; see `retrykit.hints.grpc_pushback`."""


@user_facing
def policy(base: Policy | None = None, /, **changes: Unpack[PolicySettings]) -> Policy:
    """Return a policy for gRPC, with `transient` and `retry_after` filled in.

    >>> policy(max_attempts=3)
    Policy(max_attempts=3, on=StatusCodes(codes=('UNAVAILABLE',)), hint=grpc_pushback())

    Args:
        base: Policy to start from; by default `Policy()`. Its own settings for
            errors and hints are kept.
        **changes: Settings of `Policy`.

    Raises:
        ConfigError: A setting is wrong.
    """
    return fill_in(base, changes, on=transient, hint=retry_after)
