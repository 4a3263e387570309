"""Recordings of the retried calls in a test, with assertions about them."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NoReturn, final

from retrykit._core.retry_state import RetryState, StopReason
from retrykit._core.wrapping import find_wrapped
from retrykit._internal.context import ContextOverride
from retrykit._internal.introspection import qualified_name
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.events import Event, RetryScheduled, observe
from retrykit.testing._context_block import Block
from retrykit.testing._history_table import history

__all__ = ["Recording", "record"]


# How many histories a failing assertion prints.
_SHOWN = 10


@final
class Recording:
    """The events of retried calls, in the order in which they came.

    Its assertions take a function, decorated or not, or the name of its calls, without
    the first parts if you like: ``"fetch"`` for ``"shop.orders.fetch"``. If they fail,
    they raise an AssertionError with the histories of up to ten of these calls. For
    anything else in place of the function, they raise a `ConfigError`.

    Attributes:
        events: Every event so far.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def calls(self) -> list[RetryState]:
        """The states of all calls so far, in the order in which they began."""
        return [*{id(event.state): event.state for event in self.events}.values()]

    @user_facing
    def of(self, fn: object) -> list[RetryState]:
        """Return the states of the calls of a function, in order."""
        name = _name(fn)
        if not isinstance(fn, str):
            return [call for call in self.calls if call.name == name]
        return [call for call in self.calls if f".{call.name}".endswith(f".{name}")]

    def assert_attempts(self, fn: object, *attempts: int) -> None:
        """Assert the number of attempts of each call of a function, in order."""
        __tracebackhide__ = True
        actual = [call.attempt for call in self.of(fn)]
        if actual != [*attempts]:
            self._fail(fn, "attempts", actual, attempts)

    def assert_delays(self, fn: object, *delays: object) -> None:
        """Assert the delays of each call of a function, in order.

        Each is a list of seconds, or an object that compares with a list, such as
        ``pytest.approx([1, 2])``.
        """
        __tracebackhide__ = True
        actual = [self._delays(call) for call in self.of(fn)]
        if actual != [*delays]:
            self._fail(fn, "delays", actual, delays)

    def assert_succeeded(self, fn: object) -> None:
        """Assert that a function was called, and that all its calls succeeded."""
        __tracebackhide__ = True
        actual = [_outcome(call) for call in self.of(fn)]
        if set(actual) != {"succeeded"}:
            self._fail(fn, "outcomes", actual, ["succeeded"] * max(len(actual), 1))

    def assert_gave_up(self, fn: object, reason: StopReason | None = None) -> None:
        """Assert that a function was called, and that all its calls gave up.

        If *reason* is given, all of them must have given up for that reason.
        """
        __tracebackhide__ = True
        actual, expected = [_outcome(call) for call in self.of(fn)], "gave up"
        if reason is not None:
            actual = [str(call.stop_reason or call.status) for call in self.of(fn)]
            expected = str(reason)
        if set(actual) != {expected}:
            self._fail(fn, "outcomes", actual, [expected] * max(len(actual), 1))

    def table(self, fn: object = None) -> str:
        """Return the histories of a function's calls, by default of all, as tables."""
        calls = self.calls if fn is None else self.of(fn)
        return "\n\n".join(map(history, calls))

    def _delays(self, call: RetryState) -> list[float]:
        # Not from the state, which keeps only some of many failures.
        scheduled = [each for each in self.events if isinstance(each, RetryScheduled)]
        return [event.delay for event in scheduled if event.state is call]

    def _fail(
        self,
        fn: object,
        what: str,
        actual: Sequence[object],
        expected: Sequence[object],
    ) -> NoReturn:
        __tracebackhide__ = True
        calls = self.of(fn)
        tables = [*map(history, calls[:_SHOWN])]
        if len(calls) > _SHOWN:
            tables.append(f"({len(calls) - _SHOWN} more calls)")
        details = "\n\n".join(tables)
        if not actual:
            others = ", ".join(sorted({call.name for call in self.calls}))
            details = f"recorded calls: {others or 'none'}"
        difference = f"expected {[*expected]!r}, got {[*actual]!r}"
        msg = f"{what} of {_name(fn)}: {difference}\n\n{details}"
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
            are recorded; by default only the calls of this thread or task and the tasks
            that it starts.
    """

    @user_facing
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

        def on_event(event: Event) -> None:
            if any(each is recording for each in _recordings.get()):
                recording.events.append(event)

        opened.enter_context(observe(on_event))
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
        suggestion = "for a retried block, pass the function around it"
        raise invalid_setting("fn", rule, fn, suggestion)
    return qualified_name(fn)
