"""The errors that simulated attempts raise, for the conditions of a policy."""

from collections.abc import Mapping
from typing import Final, NamedTuple, final

from retrykit._internal.validation import (
    check_instance,
    did_you_mean,
    invalid_setting,
)
from retrykit.simulate._outage import Outage

__all__ = ["BUSY", "FAILED", "FAILED_CALL", "OWN_TIMEOUT", "REFUSED", "TIMED_OUT"]
__all__ += ["ServiceUnavailable", "errors_of", "errors_of_layers"]

# Numbers, which index the answers of a policy.
TIMED_OUT: Final = 0
"""An attempt that has no answer in time."""
REFUSED: Final = 1
"""An attempt whose connection is refused."""
FAILED: Final = 2
"""An attempt that is answered with a 503 in the outage."""
BUSY: Final = 3
"""An attempt that is answered with a 503 since the queue is full."""
FAILED_CALL: Final = 4
"""An attempt that is answered with a 503 since the server's own call has failed."""
OWN_TIMEOUT: Final = 5
"""An attempt that the policy ends, where requests have timeouts of their own."""

_NAMES: Final = ("timeout", "refused", "unavailable", "failed_call")


class Response(NamedTuple):
    """The part of a response that conditions and hints read."""

    status_code: int
    headers: dict[str, str]


@final
class ServiceUnavailable(Exception):  # noqa: N818  the name of the status
    """A stand-in for the error that a client raises after a 503.

    Attributes:
        response: Its status and its headers, in the form of `requests` and httpx.
    """

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__("503 Service Unavailable")
        asked = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
        self.response: Response = Response(503, asked)


def errors_of(outage: Outage | None, errors: object) -> tuple[Exception, ...]:
    """Return the error of each way to fail that needs no chain or layer, in order.

    Args:
        outage: The outage; its `retry_after` goes into the default error of its 503.
            None if there is no outage.
        errors: The user's errors, which replace the defaults; None if there are none.

    Raises:
        ConfigError: *errors* is invalid.
    """
    given = {} if errors is None else errors
    if not isinstance(given, Mapping):
        raise invalid_setting("errors", "a dict of errors by their names", given)
    for name, error in given.items():
        if name not in _NAMES:
            rule = f"a dict with the keys {', '.join(map(repr, _NAMES))}"
            raise invalid_setting(
                "errors", rule, name, did_you_mean(name, _NAMES), code="unknown-name"
            )
        check_instance(f"errors[{name!r}]", error, Exception)
    asked = None if outage is None else outage.retry_after
    unavailable = given.get("unavailable")
    raised: dict[str, Exception] = {
        "timeout": TimeoutError("no answer in time"),
        "refused": ConnectionRefusedError("connection refused"),
        **given,
    }
    return (
        raised["timeout"],
        raised["refused"],
        ServiceUnavailable(asked) if unavailable is None else unavailable,
        ServiceUnavailable() if unavailable is None else unavailable,
    )


def errors_of_layers(
    raised: tuple[Exception, ...], errors: object
) -> tuple[Exception, ...]:
    """Return errors followed by the errors that only chains and layers have.

    Args:
        raised: The errors that `errors_of` returned.
        errors: The user's errors; None if there are none.
    """
    given = errors if isinstance(errors, Mapping) else {}
    failed = given.get("failed_call", raised[BUSY])
    # The policy puts its own error in the last place, if it has a timeout.
    return (*raised, failed, raised[TIMED_OUT])
