"""Sync and async versions of a function from one generator.

The generator yields each step that waits, as a blocking and an async function. `run`
executes the blocking functions, `arun` the async ones. Both close the generator if they
are interrupted.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = ["DualCall", "Step", "arun", "run"]

T = TypeVar("T")


class Step(NamedTuple):
    """A step that waits, as a blocking function and an async one."""

    blocking: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]


DualCall: TypeAlias = Generator[Step, Any, T]
"""A generator that yields steps, is sent their results, and returns its own."""


def run(call: DualCall[T]) -> T:
    """Execute a generator with blocking steps.

    >>> def shout(text: str) -> DualCall[str]:
    ...     upper = yield Step(lambda: text.upper(), lambda: NotImplemented)
    ...     return f"{upper}!"
    >>> run(shout("due"))
    'DUE!'
    """
    with closing(call):
        try:
            step = next(call)
            while True:
                try:
                    value = step.blocking()
                except Exception as error:  # noqa: BLE001  the generator handles it
                    step = call.throw(error)
                else:
                    step = call.send(value)
        except StopIteration as end:
            result: T = end.value
            return result


async def arun(call: DualCall[T]) -> T:
    """Execute a generator with async steps, as `run` does."""
    with closing(call):
        try:
            step = next(call)
            while True:
                try:
                    value = await step.awaited()
                except Exception as error:  # noqa: BLE001  the generator handles it
                    step = call.throw(error)
                else:
                    step = call.send(value)
        except StopIteration as end:
            result: T = end.value
            return result
