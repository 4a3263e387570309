"""Retried blocks of code: `retrying` and `aretrying`.

An error that is not retried leaves the block as it would leave any other.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import ClassVar, Unpack, final

from retrykit._internal.validation import invalid_setting
from retrykit.execution.block_attempts import AsyncLoop, Attempt, Loop
from retrykit.execution.callables import check_resumable, check_sync_compatible
from retrykit.execution.policy_source import as_source, ask_policy
from retrykit.policy.fallback import check_no_fallback
from retrykit.policy.policy import Policy
from retrykit.policy.signatures import list_settings
from retrykit.policy.timeouts import AsArgument
from retrykit.policy.validators import PolicySettings, takes_settings
from retrykit.policy.waiting import check_event_kind, check_sleep_kind
from retrykit.state.retry_state import RetryState

__all__ = ["AsyncAttempts", "Attempts", "aretrying", "retrying"]


@takes_settings
def retrying(
    policy: Policy | Callable[[], Policy] | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[PolicySettings],
) -> "Attempts":
    """Retry a block of code: each iteration of the loop is one attempt.

    A generator must not yield inside the ``with``: the code of its consumer would
    run inside that attempt. A policy with `on_result` judges what the block hands to
    ``attempt.set_result``; a block that hands over nothing has succeeded, which is
    logged.

    >>> numbers = iter([0, 0, 4])
    >>> for attempt in retrying(Policy(schedule=[0, 0], on=ZeroDivisionError)):
    ...     with attempt:
    ...         quotient = 8 / next(numbers)
    >>> attempt.number, quotient
    (3, 2.0)

    Args:
        policy: The policy; `Policy()` by default. Its name appears in logs; by
            default that of the function around the block. Or a function without
            parameters that returns the policy, called once for each loop.
        state: The state to resume, of a block that was interrupted.
        **changes: Settings that differ from it, as for `Policy`.

    Returns:
        An iterable of attempts, each to be entered with ``with``. Every loop over it is
        a separate call.

    Raises:
        ConfigError: A setting is invalid, or a predicate is async: ``with`` cannot
            await it.
    """
    return Attempts(policy, changes, _caller(), state)


@takes_settings
def aretrying(
    policy: Policy | Callable[[], Policy] | None = None,
    /,
    *,
    state: RetryState | None = None,
    **changes: Unpack[PolicySettings],
) -> "AsyncAttempts":
    """Retry a block of code in a coroutine: ``async for``, then ``with``.

    The arguments and errors are those of `retrying`.

    >>> import asyncio
    >>> async def divide():
    ...     async for attempt in aretrying():
    ...         with attempt:
    ...             return 8 / 4
    >>> asyncio.run(divide())
    2.0
    """
    return AsyncAttempts(policy, changes, _caller(), state)


for _each in (retrying, aretrying):
    list_settings(_each)


class _RetriedBlock:
    """The policy and the state of a block."""

    _can_cancel: ClassVar[bool] = False
    """Whether its attempts can be cancelled."""

    def __init__(
        self,
        policy: Policy | Callable[[], Policy] | None,
        changes: PolicySettings,
        name: str,
        state: RetryState | None,
    ) -> None:
        self._source = as_source(policy, changes)
        if isinstance(self._source, Policy):
            self._source._derive(self._check)
        if state is not None:
            check_resumable(state)
        self._name, self._state = name, state

    def _parts(self) -> tuple[Policy, str, RetryState | None]:
        """Return the policy of a loop that begins now, its name and its state."""
        policy = ask_policy(self._source)
        if policy is not self._source:
            policy._derive(self._check)
        return policy, self._name, self._state

    @classmethod
    def _check(cls, policy: Policy) -> None:
        """Check that a policy suits a block."""
        suggestion = "put the block into a function under aretry"
        check_sync_compatible(policy, can_cancel=cls._can_cancel, suggestion=suggestion)
        if isinstance(policy.attempt_timeout, AsArgument):
            rule = "a duration where there is no function with a timeout parameter"
            suggestion = "use current_state().remaining in the block"
            raise invalid_setting(
                "attempt_timeout", rule, policy.attempt_timeout, suggestion
            )
        check_no_fallback(policy)
        check_event_kind(policy.stop_event, awaited=cls._can_cancel)
        check_sleep_kind(policy.sleep, awaited=cls._can_cancel)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}, {self._source!r}>"


@final
class Attempts(_RetriedBlock):
    """Iterable of the attempts of a block; each loop is a separate call."""

    def __iter__(self) -> Iterator[Attempt]:
        return Loop(*self._parts())


@final
class AsyncAttempts(_RetriedBlock):
    """Async iterable of the attempts of a block, as `Attempts`."""

    _can_cancel = True

    def __aiter__(self) -> AsyncIterator[Attempt]:
        return AsyncLoop(*self._parts())


def _caller() -> str:
    """Return the name of the function around a block.

    Between the two are `retrying` and its decorator.
    """
    frame = sys._getframe(3)  # noqa: SLF001  documented, and logging does it too
    module, name = frame.f_globals.get("__name__"), frame.f_code.co_qualname
    return name if module in {None, "__main__"} else f"{module}.{name}"
