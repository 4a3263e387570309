"""The outcome of a call under `Policy.run`: its value or its error."""

from typing import Generic, Literal, NoReturn, TypeVar, final

from retrykit._core.retry_state import RetryState
from retrykit._internal.frozen import Frozen
from retrykit._internal.tracebacks import keep_context

__all__ = ["Outcome", "WithError", "WithValue"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@final
class WithValue(Frozen, Generic[T_co]):
    """The outcome of a call that has its result, or the policy's fallback.

    Attributes:
        value: The result, or the fallback.
        state: The history of the call.
        error: None.
        ok: True.
    """

    __slots__ = ("state", "value")
    value: T_co
    state: RetryState

    @property
    def error(self) -> None:
        """None, since the call has a value."""
        return None

    @property
    def ok(self) -> Literal[True]:
        """True, since the call has a value."""
        return True

    def unwrap(self) -> T_co:
        """Return the value."""
        return self.value

    def value_or(self, _default: object, /) -> T_co:
        """Return the value."""
        return self.value


@final
class WithError(Frozen):
    """The outcome of a call that gave up.

    Attributes:
        error: The error that it gave up with.
        state: The history of the call.
        value: None.
        ok: False.
    """

    __slots__ = ("error", "state")
    error: Exception
    state: RetryState

    @property
    def value(self) -> None:
        """None, since the call gave up."""
        return None

    @property
    def ok(self) -> Literal[False]:
        """False, since the call gave up."""
        return False

    def unwrap(self) -> NoReturn:
        """Raise the error."""
        with keep_context(self.error):
            raise self.error

    def value_or(self, default: T, /) -> T:
        """Return the default."""
        return default


Outcome = WithValue[T_co] | WithError
"""The outcome of a call: its value or its error, and its history.

If there is a value, ``outcome.ok`` is True, and ``outcome.error`` is None.
``unwrap()`` returns the value or raises the error, and ``value_or(default)`` never
raises.
"""
