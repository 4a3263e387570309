"""Functions that return the policy of each call, which can change at run time.

The policy may depend on arguments of the call, such as ``self`` or a tenant.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from retrykit._conditions import format_value
from retrykit._core.drivers import build_driver, check_retryable
from retrykit._core.policy import Policy, check_settings
from retrykit._internal.introspection import (
    is_coroutine_function,
    is_generator_function,
)
from retrykit._internal.late_modules import inspect
from retrykit._internal.tracebacks import drop_own_frame
from retrykit._internal.validation import hide_own_frames, invalid_setting
from retrykit.errors import ConfigError

if TYPE_CHECKING:
    from inspect import Parameter, Signature

    from retrykit._core.stream_modes import StreamMode

__all__ = ["PolicySource", "build_source_driver"]


@final
class PolicySource:
    """A function that returns the policy of each call, with settings to change in it.

    Args:
        function: Returns a `Policy`; called once for each call. If it has a parameter
            without a default, its parameters get the call's arguments of the same
            names; a function with ``*args`` gets all of them as they are, and one with
            ``**kwargs`` alone gets all of them by name.
        changes: Settings that replace those of the returned policies.

    Attributes:
        parameters: The parameters of *function* that get arguments of the call.

    Raises:
        ConfigError: *function* is async or a generator function, or a change is unknown
            or invalid.
    """

    __slots__ = ("_changes", "_function", "_policies", "parameters")

    def __init__(
        self, function: Callable[..., Policy], changes: dict[str, Any] | None = None
    ) -> None:
        self._function, self._changes = function, changes or {}
        check_settings(self._changes)
        self._policies = _Recent()
        self.parameters: tuple[Parameter, ...] = _parameters_of(function)
        if is_coroutine_function(function) or is_generator_function(function):
            rule = "a Policy, or a sync function that returns one"
            raise invalid_setting("policy", rule, function)

    def ask(self, /, *args: Any, **kwargs: Any) -> Policy:
        """Return the policy of a call that begins now.

        The arguments are those that `arguments_of` finds for the function.

        Raises:
            ConfigError: The function returned no policy, or a change contradicts the
                policy.
        """
        given: Any = self._function(*args, **kwargs)
        if not isinstance(given, Policy):
            rule = f"a Policy from each call of {format_value(self._function)}"
            raise invalid_setting("policy", rule, given, "return Policy(...)")
        if not self._changes:
            return given
        policy: Policy | None = self._policies.find(given)
        if policy is None:
            policy = given.replace(**self._changes)
            self._policies.add(given, policy)
        return policy

    def replace(self, **changes: Any) -> "PolicySource":
        """Return a source of the same policies, with further settings changed."""
        return PolicySource(self._function, self._changes | changes)

    def check_alone(self) -> None:
        """Raise an error if the function needs arguments of a call."""
        if self.parameters:
            rule = "a function without parameters where no call has arguments for them"
            names = ", ".join(each.name for each in self.parameters)
            suggestion = f"call it yourself, with {names}, for the policy of one call"
            raise invalid_setting(
                "policy", rule, self._function, suggestion, code="not-here"
            )

    def check_call(self, fn: Callable[..., Any]) -> "Signature | None":
        """Raise an error unless calls of *fn* have the arguments that are needed.

        Returns:
            The signature of *fn*; None if the policy does not depend on the call.
        """
        if not self.parameters:
            return None
        signature, kinds = inspect.signature(fn), inspect.Parameter
        known = signature.parameters
        if any(each.kind == kinds.VAR_KEYWORD for each in known.values()):
            return signature
        for each in self.parameters:
            variadic = each.kind in {kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD}
            if each.name not in known and each.default is kinds.empty and not variadic:
                rule = f"a function whose parameters {format_value(fn)} also has"
                suggestion = f"it has no {each.name!r}"
                raise invalid_setting("policy", rule, self._function, suggestion)
        return signature

    def arguments_of(
        self, signature: "Signature", args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the policy's function for a call of another function.

        *signature* is the signature of that other function.
        """
        kinds = {each.kind for each in self.parameters}
        if inspect.Parameter.VAR_POSITIONAL in kinds:
            return args, kwargs
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        for name, each in signature.parameters.items():
            if each.kind == inspect.Parameter.VAR_KEYWORD:
                given |= given.pop(name)
        if inspect.Parameter.VAR_KEYWORD in kinds:
            return (), given
        by_position, by_name = [], {}
        for each in self.parameters:
            if each.name in given and each.kind == inspect.Parameter.POSITIONAL_ONLY:
                by_position.append(given[each.name])
            elif each.name in given:
                by_name[each.name] = given[each.name]
        return tuple(by_position), by_name

    def __repr__(self) -> str:
        return f"PolicySource({format_value(self._function)})"


def _parameters_of(function: Callable[..., object]) -> "tuple[Parameter, ...]":
    """Return the parameters of a function if one has no default; else none."""
    try:
        parameters = tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # A built-in function may have no signature.
        return ()
    required = [each for each in parameters if each.default is inspect.Parameter.empty]
    return parameters if required else ()


@final
class _Recent:
    """Objects made from recent policies, keyed by the policy's identity."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        # Replaced as a whole, so that threads need no lock.
        self._made: dict[int, tuple[Policy, Any]] = {}

    def find(self, policy: Policy) -> Any:
        """Return what was made from a policy, or None."""
        found = self._made.get(id(policy))
        return None if found is None else found[1]

    def add(self, policy: Policy, made: object) -> None:
        """Keep what was made from a policy."""
        kept = {} if len(self._made) >= _KEPT else self._made
        self._made = {**kept, id(policy): (policy, made)}


_KEPT: Final = 64


def build_source_driver(
    source: PolicySource,
    fn: Callable[..., Any],
    *,
    awaited: bool,
    stream: "StreamMode | None" = None,
) -> Callable[..., Any]:
    """Return a function that calls *fn*, or returns its streams, under a source.

    Each call has the policy that the source returns when it begins.
    """
    if stream is None:
        check_retryable(fn)
    signature = source.check_call(fn)
    drivers = _Recent()

    def driver_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
        if signature is not None:
            given = source.arguments_of(signature, args, kwargs)
        else:
            given = (), {}
        try:
            policy = source.ask(*given[0], **given[1])
            driver: Callable[..., Any] | None = drivers.find(policy)
            if driver is None:
                driver = build_driver(policy, fn, awaited=awaited, stream=stream)
                drivers.add(policy, driver)
        except ConfigError as error:
            hide_own_frames(error)
            raise
        return driver

    def call_under_current_policy(*args: Any, **kwargs: Any) -> Any:
        driver = driver_of(args, kwargs)
        try:
            return driver(*args, **kwargs)
        except BaseException as error:
            drop_own_frame(error)
            raise

    async def acall_under_current_policy(*args: Any, **kwargs: Any) -> Any:
        driver = driver_of(args, kwargs)
        try:
            return await driver(*args, **kwargs)
        except BaseException as error:
            drop_own_frame(error)
            raise

    returns_coroutine = awaited and stream is None
    return (
        acall_under_current_policy if returns_coroutine else call_under_current_policy
    )
