"""Fake functions that follow a script of errors and results."""

from collections.abc import Iterable, Mapping, Set as AbstractSet
from typing import Any, final

from retrykit._internal.clocks import ClockSource, sync_clock
from retrykit._internal.frozen import Frozen
from retrykit._internal.locks import ForkSafe
from retrykit._internal.loop_clock import async_clock
from retrykit._internal.validation import check_instance, invalid_setting, user_facing

__all__ = ["AsyncScriptedFunction", "RecordedCall", "ScriptError", "ScriptedFunction"]


@final
class RecordedCall(Frozen):
    """One call of a scripted function.

    Attributes:
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        at: The clock reading at the call, in seconds; virtual in virtual time.
    """

    __slots__ = ("args", "at", "kwargs")
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    at: float


@final
class ScriptError(BaseException):
    """A scripted function was called more often than it has outcomes.

    It is not an `Exception`, so nothing retries it, and it ends the test.
    """


_UNORDERED = (str, bytes, Mapping, AbstractSet)


class _Script(ForkSafe):
    """The part that sync and async scripted functions share."""

    def __init__(
        self, outcomes: Iterable[object], name: str, clock: ClockSource[Any]
    ) -> None:
        super().__init__()
        self.__name__: str = check_instance("name", name, str)
        self.__qualname__ = self.__name__
        # So that logs show only the name.
        self.__module__ = "__main__"
        self.calls: list[RecordedCall] = []
        if isinstance(outcomes, _UNORDERED) or not isinstance(outcomes, Iterable):
            suggestion = (
                "write ScriptedFunction([...]), errors and values in their order"
            )
            raise invalid_setting("outcomes", "a list", outcomes, suggestion)
        self._outcomes = [*outcomes]
        self._repeats = bool(self._outcomes) and self._outcomes[-1] is ...
        listed = self._outcomes[: -1 if self._repeats else None]
        if any(each is ... for each in listed) or (self._repeats and not listed):
            rule = "a list in which ... comes last and after an outcome"
            raise invalid_setting(
                "outcomes", rule, self._outcomes, "it repeats that outcome"
            )
        self._clock = clock
        self._played = 0

    @property
    def remaining(self) -> list[object]:
        """The unused outcomes; a repeated outcome and its ``...`` remain."""
        used = self._played
        if self._repeats:
            used = min(used, len(self._outcomes) - 2)
        return self._outcomes[used:]

    @property
    def times(self) -> list[float]:
        """The clock readings of its calls, in seconds."""
        return [call.at for call in self.calls]

    def _play(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Return the outcome of this call, or raise it."""
        recorded = RecordedCall(args, kwargs, self._clock.now())
        with self._lock:
            remaining = self.remaining
            self._played += 1
            self.calls.append(recorded)
        if not remaining:
            calls, outcomes = self._played, len(self._outcomes)
            msg = f"call {calls} of {self.__name__} has no outcome, since the script "
            msg += f"ends after {outcomes}; end it with ... to repeat the last one"
            raise ScriptError(msg)
        outcome: Any = remaining[0]
        if isinstance(outcome, type) and issubclass(outcome, BaseException):
            outcome = outcome()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__name__}, calls: {len(self.calls)}>"


@final
class ScriptedFunction(_Script):
    """A function that raises or returns one outcome after another.

    >>> from retrykit import retry
    >>> fetch = ScriptedFunction([ConnectionError, 503, "ok"])
    >>> retry(schedule=[0, 0], on_result=lambda status: status == 503)(fetch)("/")
    'ok'
    >>> [call.args for call in fetch.calls], fetch.remaining
    ([('/',), ('/',), ('/',)], [])

    Args:
        outcomes: The outcome of each call, in order: an exception or its type is
            raised, anything else is returned. ``...`` at the end repeats the outcome
            before it forever.
        name: Its name in logs and states.

    Attributes:
        calls: Every call so far, in order.

    Raises:
        ConfigError: *outcomes* is a string, or not an ordered iterable, or ``...`` is
            anywhere except after its last outcome.
        ScriptError: It is called more often than it has outcomes.
    """

    @user_facing
    def __init__(self, outcomes: Iterable[object], *, name: str = "script") -> None:
        super().__init__(outcomes, name, sync_clock)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next outcome, or raise it."""
        return self._play(args, kwargs)


@final
class AsyncScriptedFunction(_Script):
    """The async form of `ScriptedFunction`.

    >>> import asyncio
    >>> from retrykit import retry
    >>> fetch = AsyncScriptedFunction([TimeoutError, ...])
    >>> try:
    ...     asyncio.run(retry(schedule=[0, 0])(fetch)())
    ... except TimeoutError:
    ...     len(fetch.calls)
    3

    It has the arguments, attributes and errors of `ScriptedFunction`.
    """

    @user_facing
    def __init__(self, outcomes: Iterable[object], *, name: str = "script") -> None:
        super().__init__(outcomes, name, async_clock)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next outcome, or raise it."""
        return self._play(args, kwargs)
