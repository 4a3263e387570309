"""Base class of limits; the built-in ones are in `retrykit.limits`."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from retrykit._internal.validation import user_facing
from retrykit.errors import RefusedError
from retrykit.limits._leases import Lease, Refusal
from retrykit.limits._standalone import Guard, guard_function

__all__ = ["Conditions", "Limit"]

F = TypeVar("F", bound=Callable[..., Any])

Conditions = dict[str, object]
"""The settings by which a policy judges failures: their texts, keyed by name."""


class Limit(ABC):
    """Allows or refuses attempts. Many threads and tasks may ask at once.

    A limit of your own must have `state` and `acquire`. A limit can decorate functions,
    guard blocks, and go in the `admission` of a policy.

    Attributes:
        key: The text of its key in a `Registry`; None if it is not in one.
        judges_results: Whether results can be failures for it.
    """

    key: str | None = None
    judges_results: bool = False

    @property
    @abstractmethod
    def state(self) -> str:
        """The name of the current state, for gauges."""

    @abstractmethod
    def acquire(self) -> Lease | Refusal:
        """Ask to make one attempt, without waiting.

        Returns:
            A lease, to which the outcome of the attempt must be reported, and which may
            say how long to wait before it; or a refusal.
        """

    @property
    def label(self) -> str | None:
        """The limit's name, or else its scope or `Registry` key, for errors."""
        named: Any = self
        return getattr(named, "name", None) or getattr(named, "scope", None) or self.key

    def is_failure(self, error: Exception, /) -> bool | None:  # noqa: ARG002
        """Return whether an error is a failure; None leaves it to the policy.

        A limit that stands alone has no policy: then every error is a failure except
        mistakes in the code, as with a policy's default.
        """
        return None

    def is_failed_result(self, result: object, /) -> bool | None:  # noqa: ARG002
        """Return whether a result is a failure; None leaves it to the policy.

        A limit that stands alone has no policy: then no result is a failure. This is
        called only if `judges_results` is True.
        """
        return None

    def refusal_after(self, delay: float, /) -> Refusal | None:  # noqa: ARG002
        """Return the refusal of an attempt after a delay, if it is certain; else None.

        A failed call does not wait for an attempt that would be refused.

        Args:
            delay: The delay before the next attempt, in seconds, >= 0.
        """
        return None

    def join(self, conditions: Conditions, /) -> None:  # noqa: B027  optional
        """Raise an error unless a policy with these conditions may ask this limit.

        Raises:
            ConfigError: Another policy that asks it judges failures differently.
        """

    def guard(self) -> Guard:
        """Return a block that counts as one call: ``with limit.guard():``.

        It works with ``async with`` as well, and waits as long as the limit requires.
        An error that leaves the block is reported as for a decorated function. To
        report a failed result, use the lease:

        >>> from retrykit.limits import CircuitBreaker
        >>> breaker = CircuitBreaker(consecutive_failures=1)
        >>> with breaker.guard() as lease:
        ...     status = 503
        ...     if status >= 500:
        ...         lease.failed()
        >>> with breaker.guard():
        ...     print("never printed")
        Traceback (most recent call last):
        ...
        retrykit.errors.CircuitOpenError: circuit breaker is open, as the last call \
failed; try again in 30 s

        Returns:
            A block that can be entered once.

        Raises:
            RefusedError: The limit refused the call; raised when the block is entered.
        """
        return Guard(self)

    @user_facing
    def __call__(self, fn: F, /) -> F:
        """Decorate a function or a coroutine function: each call asks the limit.

        Raises:
            ConfigError: *fn* is a generator function, or not a function.
        """
        return guard_function(self, fn)

    def error_of(self, refusal: Refusal) -> RefusedError:
        """Return the error of a call that this limit refused."""
        return RefusedError(self.label, refusal.reason, refusal.retry_in)
