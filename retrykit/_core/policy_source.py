"""A policy that is asked for at every call, so that it can change at run time."""

from collections.abc import Callable
from typing import Any, final

from retrykit._conditions import format_value
from retrykit._core.drivers import build_driver, check_retryable
from retrykit._core.policy import Policy
from retrykit._internal.introspection import accepts_no_argument, is_coroutine_function
from retrykit._internal.tracebacks import with_traceback
from retrykit._internal.validation import hide_own_frames, invalid_setting
from retrykit.errors import ConfigError

__all__ = ["PolicySource", "build_source_driver"]


@final
class PolicySource:
    """A function that returns the policy of each call, and changes to it.

    Args:
        function: Returns a `Policy`; called without arguments, once for each call.
        changes: Settings that differ from that policy.

    Raises:
        ConfigError: It cannot be called without arguments, it is async, or a change
            is invalid.
    """

    __slots__ = ("_changes", "_function", "_last")

    def __init__(
        self, function: Callable[[], Policy], changes: dict[str, Any] | None = None
    ) -> None:
        self._function, self._changes = function, changes or {}
        # Replaced as a whole, so that threads need no lock.
        self._last: tuple[object, Policy] | None = None
        if is_coroutine_function(function) or not accepts_no_argument(function):
            rule = "a Policy, or a sync function without parameters that returns one"
            raise invalid_setting("policy", rule, function)

    def ask(self) -> Policy:
        """Return the policy of a call that begins now.

        Raises:
            ConfigError: The function returned no policy, or a change contradicts it.
        """
        given, last = self._function(), self._last
        if last is not None and last[0] is given:
            return last[1]
        if not isinstance(given, Policy):
            rule = f"a Policy from each call of {format_value(self._function)}"
            raise invalid_setting("policy", rule, given, "return Policy(...)")
        policy = given.replace(**self._changes)
        self._last = given, policy
        return policy

    def replace(self, **changes: Any) -> "PolicySource":
        """Return a source of the same policies with some settings changed."""
        return PolicySource(self._function, self._changes | changes)

    def __repr__(self) -> str:
        return f"PolicySource({format_value(self._function)})"


def build_source_driver(
    source: PolicySource, fn: Callable[..., Any], *, awaited: bool
) -> Callable[..., Any]:
    """Return a function that calls *fn* under the policy of the moment."""
    check_retryable(fn)
    # Replaced as a whole, so that threads need no lock.
    last: tuple[Policy | None, Any] = None, None

    def driver_of_now() -> Callable[..., Any]:
        nonlocal last
        try:
            policy, current = source.ask(), last
            if current[0] is not policy:
                current = last = policy, build_driver(policy, fn, awaited=awaited)
        except ConfigError as error:
            hide_own_frames(error)
            raise
        driver: Callable[..., Any] = current[1]
        return driver

    def call_under_current_policy(*args: Any, **kwargs: Any) -> Any:
        driver = driver_of_now()
        try:
            return driver(*args, **kwargs)
        except BaseException as error:
            _drop_own_frame(error)
            raise

    async def acall_under_current_policy(*args: Any, **kwargs: Any) -> Any:
        driver = driver_of_now()
        try:
            return await driver(*args, **kwargs)
        except BaseException as error:
            _drop_own_frame(error)
            raise

    return acall_under_current_policy if awaited else call_under_current_policy


def _drop_own_frame(error: BaseException) -> None:
    trace = error.__traceback__
    with_traceback(error, trace and trace.tb_next)
