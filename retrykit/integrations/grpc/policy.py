"""What a policy needs to know of gRPC: which errors pass, and what servers ask.

What makes the calls is not known here.
"""

from typing import Final, Unpack

from retrykit._internal.validation import check_instance
from retrykit.hints import grpc_pushback
from retrykit.policy.grpc_status import StatusCodes
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes

__all__ = ["policy", "retry_after", "transient"]

transient: Final = StatusCodes(["UNAVAILABLE"])
"""The condition of errors that are worth another attempt: UNAVAILABLE alone.

It is the one code by which a server, or gRPC itself where there is no
connection, says that the call alone may be made again. ABORTED asks for the
whole transaction; DEADLINE_EXCEEDED means that the time of the caller is over;
RESOURCE_EXHAUSTED may be a quota for hours, or a message that is too large;
INTERNAL and UNKNOWN are faults to be seen. Where a server means otherwise,
write ``on=StatusCodes(["UNAVAILABLE", "RESOURCE_EXHAUSTED"])``. Even what failed
with UNAVAILABLE may have been carried out.

Source:
    Google AIP-194, "Automatic retry configuration", 2019; "Status codes and
    their use in gRPC", grpc.io. Others retry more: google-api-core INTERNAL and
    RESOURCE_EXHAUSTED, too, go-grpc-middleware RESOURCE_EXHAUSTED.
"""

retry_after: Final = grpc_pushback()
"""The hint that reads the pushback; see `retrykit.hints.grpc_pushback`."""


def policy(base: Policy | None = None, /, **changes: Unpack[Changes]) -> Policy:
    """Return a policy for gRPC: `transient` and `retry_after` joined to one.

    >>> policy(max_attempts=3)
    Policy(max_attempts=3, on=StatusCodes(codes=('UNAVAILABLE',)), hint=grpc_pushback())

    Args:
        base: What it is derived from; by default `Policy()`. What it says itself
            of errors and hints is kept.
        **changes: Settings, as for `Policy`.

    Raises:
        ConfigError: A setting is wrong.
    """
    suggestion = "write settings by their names, as max_attempts=4"
    found = (
        Policy() if base is None else check_instance("policy", base, Policy, suggestion)
    )
    # One that has the condition has got the hint already, or is to have none.
    if found.on != transient:
        found = found.replace(
            on=transient if found.on is Exception else found.on,
            hint=retry_after if found.hint is None else found.hint,
        )
    return found.replace(**changes)
