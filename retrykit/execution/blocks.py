"""The block form, for code that is no function of its own.

A block is left by what it raises, like any other: only an error that is
retried stays inside.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from typing import ClassVar, Unpack, final

from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.execution.block_attempts import AsyncLoop, Attempt, Loop
from retrykit.execution.callables import check_resumable, check_sync_compatible
from retrykit.policy.policy import Policy
from retrykit.policy.timeouts import AsArgument
from retrykit.policy.validators import Changes
from retrykit.state.retry_state import RetryState

__all__ = ["AsyncAttempts", "Attempts", "aretrying", "retrying"]


def retrying(
    policy: Policy | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[Changes],
) -> "Attempts":
    """Retry a block of code: one turn of the loop is one attempt.

    A generator must not yield inside of the ``with``: until it goes on, what its
    consumer does would be inside of that attempt.

    >>> numbers = iter([0, 0, 4])
    >>> for attempt in retrying(Policy(schedule=[0, 0], on=ZeroDivisionError)):
    ...     with attempt:
    ...         quotient = 8 / next(numbers)
    >>> attempt.number, quotient
    (3, 2.0)

    Args:
        policy: What the block is held to; `Policy()` by default. Its name is
            what logs call the block; by default, the function around it.
        state: The state to go on from, of a block that was interrupted.
        **changes: Settings that differ from the policy, as for `Policy`.

    Returns:
        An iterable of attempts, each to be entered with ``with``. Every loop
        over it is a call of its own.

    Raises:
        ConfigError: A setting is wrong, or a predicate is async: ``with`` cannot
            await it.
    """
    return Attempts(policy, changes, _caller(), state)


def aretrying(
    policy: Policy | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[Changes],
) -> "AsyncAttempts":
    """Retry a block of code in a coroutine: ``async for``, then ``with``.

    >>> import asyncio
    >>> async def divide():
    ...     async for attempt in aretrying():
    ...         with attempt:
    ...             return 8 / 4
    >>> asyncio.run(divide())
    2.0

    Args:
        policy: What the block is held to, as for `retrying`.
        state: The state to go on from, of a block that was interrupted.
        **changes: Settings that differ from the policy, as for `Policy`.

    Returns:
        An async iterable of attempts, each to be entered with ``with``. Every
        loop over it is a call of its own.

    Raises:
        ConfigError: A setting is wrong, or a predicate is async: ``with`` cannot
            await it.
    """
    return AsyncAttempts(policy, changes, _caller(), state)


class _Block:
    """What a block is held to, whatever its colour."""

    _ends: ClassVar[bool] = False
    """Whether its attempts can be ended when they take too long."""

    def __init__(
        self,
        policy: Policy | None,
        changes: Changes,
        name: str,
        state: RetryState | None,
    ) -> None:
        held = Policy() if policy is None else check_instance("policy", policy, Policy)
        held = held.replace(**changes)
        suggestion = "put the block into a function under aretry"
        check_sync_compatible(held, ends=self._ends, suggestion=suggestion)
        if isinstance(held.attempt_timeout, AsArgument):
            rule = "a duration where there is no function to hand it to"
            suggestion = "take current_state().remaining in the block"
            raise invalid_setting(
                "attempt_timeout", rule, held.attempt_timeout, suggestion
            )
        if state is not None:
            check_resumable(state)
        self._parts = held, name, state

    def __repr__(self) -> str:
        policy, name, _ = self._parts
        return f"<{type(self).__name__} of {name}, {policy!r}>"


@final
class Attempts(_Block):
    """The attempts of a block, afresh for every loop."""

    def __iter__(self) -> Iterator[Attempt]:
        return Loop(*self._parts)


@final
class AsyncAttempts(_Block):
    """The attempts of a block in a coroutine, afresh for every loop."""

    _ends = True

    def __aiter__(self) -> AsyncIterator[Attempt]:
        return AsyncLoop(*self._parts)


def _caller() -> str:
    """Return the name of the function that a block is written in."""
    frame = sys._getframe(2)  # noqa: SLF001  documented, and logging does it too
    module, name = frame.f_globals.get("__name__"), frame.f_code.co_qualname
    return name if module in {None, "__main__"} else f"{module}.{name}"
