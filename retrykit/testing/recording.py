"""What retried calls did in a block of a test, and assertions about it."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NoReturn, final

from retrykit.callables import name_of
from retrykit.checks import refuse
from retrykit.dressing import nearest
from retrykit.events import Event, RetryScheduled, observe
from retrykit.scopes import Scoped
from retrykit.state import RetryState, StopReason
from retrykit.testing.block import Block
from retrykit.testing.history import history

__all__ = ["Recording", "record"]


@final
class Recording:
    """The events of retried calls, in the order in which they came.

    Its assertions name a call by its function or by its name, of which the end
    will do. When one fails, its message has the history of every such call.

    Attributes:
        events: Every event so far.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def calls(self) -> list[RetryState]:
        """The state of every call so far, in the order in which they began."""
        return [*{id(event.state): event.state for event in self.events}.values()]

    def of(self, fn: object) -> list[RetryState]:
        """Return the states of the calls of a function, in their order.

        Args:
            fn: A decorated function, or the name of the calls: all of it, or
                its end after a dot.

        Raises:
            ConfigError: *fn* is neither.
        """
        name = _name(fn)
        if not isinstance(fn, str):
            return [call for call in self.calls if call.name == name]
        return [call for call in self.calls if f".{call.name}".endswith(f".{name}")]

    def assert_attempts(self, fn: object, *attempts: int) -> None:
        """Assert how many attempts each call of a function made.

        Args:
            fn: A decorated function, or the name of its calls.
            *attempts: The number of attempts of one call after the other; none
                if it was not called.

        Raises:
            AssertionError: There were other attempts, or other calls.
        """
        __tracebackhide__ = True
        made = [call.attempt for call in self.of(fn)]
        if made != [*attempts]:
            self._fail(fn, "attempts", made, attempts)

    def assert_delays(self, fn: object, *delays: object) -> None:
        """Assert how long each call of a function was to wait.

        Args:
            fn: A decorated function, or the name of its calls.
            *delays: The delays of one call after the other, each a list of
                seconds, or what compares with one, as ``pytest.approx`` makes.

        Raises:
            AssertionError: There were other delays, or other calls.
        """
        __tracebackhide__ = True
        made = [self._delays(call) for call in self.of(fn)]
        if made != [*delays]:
            self._fail(fn, "delays", made, delays)

    def assert_succeeded(self, fn: object) -> None:
        """Assert that a function was called, and each call has its result.

        Raises:
            AssertionError: One has none, or it was not called.
        """
        __tracebackhide__ = True
        made = [call.status for call in self.of(fn)]
        if set(made) != {"succeeded"}:
            self._fail(fn, "status", made, ["succeeded"] * max(len(made), 1))

    def assert_gave_up(self, fn: object, reason: StopReason | None = None) -> None:
        """Assert that a function was called, and each call gave up.

        Args:
            fn: A decorated function, or the name of its calls.
            reason: Why; by default any reason will do.

        Raises:
            AssertionError: One did not, or for another reason, or it was not
                called.
        """
        __tracebackhide__ = True
        calls = self.of(fn)
        if reason is None:
            made = [str(call.status) for call in calls]
            wanted = "dead"
        else:
            made = [str(call.stop_reason or call.status) for call in calls]
            wanted = str(reason)
        if set(made) != {wanted}:
            self._fail(fn, "ends", made, [wanted] * max(len(made), 1))

    def table(self, fn: object = None) -> str:
        """Return the history of each call as a table.

        Args:
            fn: A decorated function, or the name of its calls; by default all.
        """
        calls = self.calls if fn is None else self.of(fn)
        return "\n\n".join(map(history, calls))

    def _delays(self, call: RetryState) -> list[float]:
        # Of many failures the state keeps some, and the events are all here.
        scheduled = [each for each in self.events if isinstance(each, RetryScheduled)]
        return [event.delay for event in scheduled if event.state is call]

    def _fail(
        self, fn: object, what: str, made: Sequence[object], wanted: Sequence[object]
    ) -> NoReturn:
        __tracebackhide__ = True
        known = self.table(fn)
        if not made:
            others = ", ".join(sorted({call.name for call in self.calls}))
            known = f"retried calls were made of: {others or 'nothing'}"
        msg = f"{what} of {_name(fn)}: {[*made]!r}, not {[*wanted]!r}\n\n{known}"
        raise AssertionError(msg)

    def __repr__(self) -> str:
        return f"<Recording of {len(self.calls)} calls>"


@final
class record(Block[Recording]):  # noqa: N801  used as a function
    """Record the events of every retried call in the block.

    >>> from retrykit import retry
    >>> @retry(schedule=[0, 0], max_attempts=3)
    ... def fetch():
    ...     raise ConnectionError("refused")
    >>> with record() as recorded:
    ...     try:
    ...         fetch()
    ...     except ConnectionError:
    ...         pass
    >>> recorded.assert_attempts(fetch, 3)
    >>> [type(event).__name__ for event in recorded.events][:3]
    ['AttemptStarted', 'AttemptFailed', 'RetryScheduled']

    Args:
        everywhere: Whether the calls of every thread and task of the process
            are recorded; by default those of this one, and of the tasks that it
            starts.

    Returns:
        A ``with`` block that gives the `Recording`.
    """

    def __init__(self, *, everywhere: bool = False) -> None:
        super().__init__()
        self._everywhere = everywhere

    def __repr__(self) -> str:
        return "record()"

    def _open(self, opened: ExitStack) -> Recording:
        recording = Recording()
        if self._everywhere:
            opened.enter_context(observe(recording.events.append))
            return recording

        def hear(event: Event) -> None:
            if any(each is recording for each in _recordings.get()):
                recording.events.append(event)

        opened.enter_context(observe(hear))
        opened.enter_context(
            _recordings.hold(repr(self), (*_recordings.get(), recording))
        )
        return recording


_recordings: Scoped[tuple[Recording, ...]] = Scoped(())


def _name(fn: object) -> str:
    if isinstance(fn, str) and fn:
        return fn
    found = nearest(fn)
    if found is None:
        rule = "a decorated function, or the name of its calls"
        way_out = "write the name of a block, or of what policy.call is given"
        raise refuse("fn", rule, fn, way_out)
    return found.policy.name or name_of(found.fn)
