"""Messages between parties, recorded while a scenario runs in virtual time.

A scenario is a program in ``scenarios/``. It names its `PARTIES`, from the left to the
right, and its `main` takes the `Sequence` that records. What is recorded is what the
functions of the scenario were called with, returned and raised, and when.
"""

import asyncio
import logging
import runpy
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from retrykit import observe
from retrykit._internal.durations import duration_in_words
from retrykit.events import Event, GaveUp, RetryScheduled
from retrykit.testing import FakeClock, ScriptError, virtual_time

__all__ = ["SCENARIOS", "Kind", "Sequence", "SequenceError", "Step", "record"]

SCENARIOS: Final = Path(__file__).parent / "scenarios"

Kind = Literal["call", "result", "error", "cancel", "note"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class SequenceError(Exception):
    """A scenario does not exist, failed, or sent no message."""


class Step(NamedTuple):
    """One message, or a note about one party.

    Attributes:
        time: Virtual seconds since the start.
        source: The party that sends it.
        target: The party that gets it; for a note, its own party.
        text: A few words.
        kind: What it is.
    """

    time: float
    source: str
    target: str
    text: str
    kind: Kind

    def __str__(self) -> str:
        who = f"{self.source}:"
        if self.kind != "note":
            who = f"{self.source} -> {self.target}:"
        return f"{duration_in_words(self.time)}  {who} {self.text}"


class Sequence:
    """Records messages and notes.

    Attributes:
        clock: The virtual clock of the scenario.
        parties: Their names, from the left to the right.
        steps: What happened, in order.
    """

    def __init__(self, clock: FakeClock, parties: tuple[str, ...]) -> None:
        self.clock = clock
        self.parties = parties
        self.steps: list[Step] = []

    def message(self, source: str, target: str, text: str, kind: Kind = "call") -> None:
        """Record a message that is sent now."""
        if not {source, target} <= {*self.parties}:
            msg = f"the parties are {self.parties}, got {source!r} and {target!r}"
            raise SequenceError(msg)
        # A virtual event loop adds up fractions, and so errs by less than this.
        now = round(self.clock.now(), 6)
        self.steps.append(Step(now, source, target, text, kind))

    def note(self, party: str, text: str) -> None:
        """Record what a party does by itself."""
        self.message(party, party, text, "note")

    def between(
        self,
        source: str,
        target: str,
        function: Callable[..., T],
        text: str,
        answer: Callable[[T], str] = str,
    ) -> Callable[..., T]:
        """Return a function whose calls are messages, and so are their outcomes.

        Args:
            source: The party that calls it.
            target: The party that answers.
            function: The function, sync or async.
            text: The message, a format of the arguments: ``"GET {0}"``.
            answer: Returns the message of a result.
        """
        if asyncio.iscoroutinefunction(function):
            return self._between_async(source, target, function, text, answer)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            with self._outcome(source, target, text.format(*args, **kwargs)):
                result = function(*args, **kwargs)
            self.message(target, source, answer(result), "result")
            return result

        return call

    def _between_async(
        self,
        source: str,
        target: str,
        function: Callable[..., Awaitable[Any]],
        text: str,
        answer: Callable[[Any], str],
    ) -> Any:
        @wraps(function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            with self._outcome(source, target, text.format(*args, **kwargs)):
                result = await function(*args, **kwargs)
            self.message(target, source, answer(result), "result")
            return result

        return call

    def items(self, source: str, target: str, stream: Iterator[T]) -> Iterator[T]:
        """Hand on a stream whose items and end are messages."""
        try:
            for item in stream:
                self.message(source, target, str(item), "result")
                yield item
        except Exception as error:
            self.message(source, target, type(error).__name__, "error")
            raise
        self.message(source, target, "end", "result")

    def on_event(self, event: Event) -> None:
        """Record the delays of retried calls, and why they give up; an observer.

        The party is the one with the name of the call, or else ``retrykit``.
        """
        name = event.state.name
        party = name if name in self.parties else "retrykit"
        if party not in self.parties:
            return
        if isinstance(event, RetryScheduled) and event.delay:
            self.note(party, f"waits {duration_in_words(event.delay)}")
        elif isinstance(event, GaveUp) and event.state.stop_reason is not None:
            self.note(party, f"gives up: {event.state.stop_reason.explanation}")

    @contextmanager
    def _outcome(self, source: str, target: str, text: str) -> Iterator[None]:
        """Record a call, and the error that ends it."""
        self.message(source, target, text)
        try:
            yield
        except asyncio.CancelledError:
            self.message(source, target, "cancel", "cancel")
            raise
        except BaseException as error:
            self.message(target, source, type(error).__name__, "error")
            raise


def record(name: str, folder: Path = SCENARIOS) -> Sequence:
    """Run a scenario, and return what it recorded.

    Args:
        name: The name of its file, without ``.py``.
        folder: The folder of the file.

    Raises:
        SequenceError: There is no such scenario, it failed, or it sent nothing.
    """
    path = folder / f"{name}.py"
    if not path.is_file():
        msg = f"there is no scenario {name!r} in {folder.name}/"
        raise SequenceError(msg)
    try:
        scenario = runpy.run_path(str(path))
        with virtual_time() as clock, _quiet():
            sequence = Sequence(clock, scenario["PARTIES"])
            with observe(sequence.on_event):
                scenario["main"](sequence)
    except (Exception, ScriptError) as error:
        msg = f"scenario {name!r} failed: {type(error).__name__}: {error}"
        raise SequenceError(msg) from error
    if not sequence.steps:
        msg = f"scenario {name!r} sent no message"
        raise SequenceError(msg)
    return sequence


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out the log of retries: the sequence shows them."""
    logger = logging.getLogger("retrykit")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
