"""What retried calls did in a block of a test, and assertions about it."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NoReturn, final

from retrykit._internal.context import ContextOverride
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.execution.callables import qualified_name
from retrykit.execution.wrapping import find_wrapped
from retrykit.state.events import Event, RetryScheduled, observe
from retrykit.state.retry_state import RetryState, StopReason
from retrykit.testing.context_block import Block
from retrykit.testing.history_table import history

__all__ = ["Recording", "record"]


# How many histories a failing assertion prints.
_SHOWN = 10


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
            fn: The function, decorated or not, or the name of the calls: all
                of it, or its end after a dot.

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
        made = [_outcome(call) for call in self.of(fn)]
        if set(made) != {"succeeded"}:
            self._fail(fn, "outcomes", made, ["succeeded"] * max(len(made), 1))

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
        made, wanted = [_outcome(call) for call in self.of(fn)], "gave up"
        if reason is not None:
            made = [str(call.stop_reason or call.status) for call in self.of(fn)]
            wanted = str(reason)
        if set(made) != {wanted}:
            self._fail(fn, "outcomes", made, [wanted] * max(len(made), 1))

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
        calls = self.of(fn)
        tables = [*map(history, calls[:_SHOWN])]
        if len(calls) > _SHOWN:
            tables.append(f"({len(calls) - _SHOWN} more calls)")
        known = "\n\n".join(tables)
        if not made:
            others = ", ".join(sorted({call.name for call in self.calls}))
            known = (
                f"since this recording began, calls were made of: {others or 'nothing'}"
            )
        msg = f"{what} of {_name(fn)}: {[*made]!r}, not {[*wanted]!r}\n\n{known}"
        raise AssertionError(msg)

    def __repr__(self) -> str:
        return f"<Recording, calls: {len(self.calls)}>"


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
        process_wide: Whether the calls of every thread and task of the process
            are recorded; by default those of this one, and of the tasks that it
            starts.

    Returns:
        A ``with`` block that gives the `Recording`.
    """

    def __init__(self, *, process_wide: bool = False) -> None:
        self._process_wide = check_instance("process_wide", process_wide, bool)
        super().__init__()

    def __repr__(self) -> str:
        return f"record(process_wide={self._process_wide})"

    def _open(self, opened: ExitStack) -> Recording:
        recording = Recording()
        if self._process_wide:
            opened.enter_context(observe(recording.events.append))
            return recording

        def hear(event: Event) -> None:
            if any(each is recording for each in _recordings.get()):
                recording.events.append(event)

        opened.enter_context(observe(hear))
        opened.enter_context(
            _recordings.push(self.what, (*_recordings.get(), recording))
        )
        return recording


_recordings: ContextOverride[tuple[Recording, ...]] = ContextOverride(())


def _outcome(call: RetryState) -> str:
    return "gave up" if call.status == "dead" else call.status


def _name(fn: object) -> str:
    if isinstance(fn, str) and fn:
        return fn
    found = find_wrapped(fn)
    if found is not None:
        return found.policy.name or qualified_name(found.fn)
    if not callable(fn):
        rule = "a function, or the name of its calls"
        raise invalid_setting("fn", rule, fn, "a block is named after its function")
    return qualified_name(fn)
