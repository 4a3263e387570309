"""Programs of both colours, written once.

A plan yields what it has to wait for, each time as two functions: one that
blocks, and one that is awaited. Who runs it decides which. It knows no engine.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = ["DualCall", "Step", "arun", "run"]

T = TypeVar("T")


class Step(NamedTuple):
    """What a plan waits for, in both colours.

    Attributes:
        blocking: Does it, and returns what came of it.
        awaited: Does the same, and is awaited.
    """

    blocking: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]


DualCall: TypeAlias = Generator[Step, Any, T]
"""What yields its steps, is sent what came of them, and returns its result."""


def run(plan: DualCall[T]) -> T:
    """Carry out a plan, and block meanwhile.

    >>> def told(text: str) -> DualCall[str]:
    ...     came = yield Step(lambda: text.upper(), lambda: NotImplemented)
    ...     return f"{came}!"
    >>> run(told("due"))
    'DUE!'
    """
    try:
        step = next(plan)
        while True:
            try:
                came = step.blocking()
            except Exception as error:  # noqa: BLE001  the plan says what it means
                step = plan.throw(error)
            else:
                step = plan.send(came)
    except StopIteration as end:
        result: T = end.value
        return result


async def arun(plan: DualCall[T]) -> T:
    """Carry out a plan, and await its steps, as `run` does."""
    try:
        step = next(plan)
        while True:
            try:
                came = await step.awaited()
            except Exception as error:  # noqa: BLE001  the plan says what it means
                step = plan.throw(error)
            else:
                step = plan.send(came)
    except StopIteration as end:
        result: T = end.value
        return result
