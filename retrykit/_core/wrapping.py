"""The wrapping of callables, which keeps their type and signature.

A decorated function stays a function, which Python binds, pickles and copies like any
other. Other callables get a proxy, and so does a function under another policy.
"""

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast, final

from retrykit._core.drivers import build_driver
from retrykit._core.ineffective import reject_retried, reject_task
from retrykit._core.policy import Policy
from retrykit._core.settings import guess_setting
from retrykit._internal.frozen import Frozen
from retrykit._internal.introspection import LateSignature, is_coroutine_function
from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import invalid_setting

if TYPE_CHECKING:
    from retrykit._core.policy_source import PolicySource
    from retrykit._core.stream_modes import StreamMode

__all__ = ["WrappedCallable", "as_source", "ask_policy", "find_wrapped"]
__all__ += ["guess_argument", "unwrap", "wrap_callable"]


def as_source(policy: Any, changes: Any) -> "Policy | PolicySource":
    """Return *policy* with changes; if it is a function, a source of policies.

    None means the default policy.
    """
    if policy is None or isinstance(policy, Policy):
        given = policy or Policy()
        return given.replace(**changes) if changes else given
    # Imported here: few policies are functions.
    from retrykit._core.policy_source import PolicySource  # noqa: PLC0415

    if isinstance(policy, PolicySource):
        return policy.replace(**changes)
    if callable(policy) and not isinstance(policy, type):
        return PolicySource(cast("Callable[[], Policy]", policy), dict(changes))
    rule = "a Policy, or a function that returns one"
    meant = guess_argument(policy)
    raise invalid_setting("policy", rule, policy, meant and f"write {meant}")


def guess_argument(policy: object) -> str:
    """Return what a value in place of a policy probably means; empty if unknown."""
    if policy is Policy:
        return "Policy()"
    if str(getattr(policy, "__module__", "")).startswith("retrykit.presets."):
        return f"presets.{getattr(policy, '__name__', '...')}()"
    return guess_setting(policy)


def ask_policy(source: "Policy | PolicySource") -> Policy:
    """Return *source* if it is a policy, else the policy that it returns now."""
    if isinstance(source, Policy):
        return source
    source.check_alone()
    return source.ask()


@final
class WrappedCallable(Frozen):
    """A callable and its policy, or the source of the policy of each call.

    Attributes:
        fn: The callable that is retried.
        source: The policy or the source.
        awaited: Whether the results, or the items of a stream, are awaited.
        stream: The mode of a generator function; None for other callables.
    """

    __slots__ = ("awaited", "fn", "source", "stream")
    fn: Callable[..., Any]
    source: "Policy | PolicySource"
    awaited: bool
    stream: "StreamMode | None"

    @property
    def policy(self) -> Policy:
        """The policy of a call that begins now."""
        return ask_policy(self.source)


def wrap_callable(
    fn: Any,
    source: "Policy | PolicySource",
    awaited: bool | None,  # noqa: FBT001  positional in pickles
    recipe: Any = None,
    stream: "StreamMode | None" = None,
) -> Any:
    """Return a callable of the same kind as *fn* that is retried under a policy.

    Args:
        fn: The callable, or a classmethod or staticmethod.
        source: The policy, or the source of the policy of each call.
        awaited: Whether results are awaited; None to find out.
        recipe: How a copy or a pickle of a proxy is made; see `proxies.Proxy`.
        stream: How a generator function is retried; None for other callables.

    Raises:
        ConfigError: *fn* cannot be retried, or the policy does not suit it.
    """
    # Its real type: a proxy pretends to have its object's.
    kind = type(fn)
    if issubclass(kind, classmethod | staticmethod):
        return kind(wrap_callable(fn.__func__, source, awaited, stream=stream))
    if isinstance(fn, type):
        raise invalid_setting(
            "fn",
            "a function",
            fn,
            "decorate a function that creates the object",
            code="not-retryable",
        )
    if isinstance(fn, property | functools.cached_property):
        raise invalid_setting(
            "fn",
            "a function",
            fn,
            "put the decorator below the property",
            code="not-retryable",
        )
    reject_task(fn)
    if stream is not None:
        # Imported with its class.
        from retrykit._core.stream_modes import is_async_stream  # noqa: PLC0415

        awaited = is_async_stream(fn, awaited=awaited)
    awaited = is_coroutine_function(fn) if awaited is None else awaited
    wrapped = WrappedCallable(fn, source, awaited, stream)
    if isinstance(source, Policy):
        reject_retried(fn, source)
        call = build_driver(source, fn, awaited=awaited, stream=stream)
    else:
        # Imported with its class.
        from retrykit._core.policy_source import build_source_driver  # noqa: PLC0415

        call = build_source_driver(source, fn, awaited=awaited, stream=stream)
    if kind is FunctionType:
        call = _as_function(call, wrapped)
        if recipe is None:
            return call
    # Imported here, since few programs need wrapt.
    from retrykit._core import proxies  # noqa: PLC0415

    proxy = proxies.DescriptorProxy if hasattr(kind, "__get__") else proxies.Proxy
    if kind is FunctionType:
        proxy = proxies.FunctionProxy
    return proxy(call, wrapped, recipe)


def _as_function(
    call: Callable[..., Any], wrapped: WrappedCallable
) -> Callable[..., Any]:
    """Return a driver with the metadata of the function that it calls."""
    fn, driver = cast("FunctionType", wrapped.fn), cast("FunctionType", call)
    functools.update_wrapper(driver, fn)
    # For tools that do not follow __wrapped__.
    driver.__defaults__, driver.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    if fn.__dict__ or sys.version_info >= (3, 14):
        # It may have an invalid signature, or annotations that cannot be evaluated.
        with suppress(NameError, TypeError, ValueError):
            driver.__dict__["__signature__"] = inspect.signature(fn)
    else:
        signature = LateSignature(lambda: inspect.signature(fn))
        driver.__dict__["__signature__"] = signature
    driver.__dict__["__retrykit__"] = wrapped
    return call


def unwrap(
    fn: Any,
) -> "tuple[Callable[..., Any], Policy | PolicySource, bool | None, StreamMode | None]":
    """Return the callable in *fn*, its policy, whether it is awaited, and its stream.

    If *fn* is not decorated, return *fn*, the default policy, and None for the rest.

    Raises:
        ConfigError: There is another decorator above `retry` or `aretry`.
    """
    found = _wrapped_by(fn)
    if found is None:
        if find_wrapped(fn) is not None:
            rule = "a function whose outermost decorator is retry or aretry"
            raise invalid_setting(
                "fn",
                rule,
                fn,
                "put retry above the other decorator",
                code="not-retryable",
            )
        return fn, Policy(), None, None
    inner = found.fn
    if type(fn) is MethodType:
        inner = MethodType(inner, fn.__self__)
    return inner, found.source, found.awaited, found.stream


def _wrapped_by(fn: Any) -> WrappedCallable | None:
    """Return the callable and the policy of *fn* if it is decorated itself, or None."""
    function = fn.__func__ if type(fn) is MethodType else fn
    found = getattr(function, "__retrykit__", None)
    # Decorators above copy the attributes of a function, but wrap another one.
    inner = getattr(function, "__wrapped__", None)
    return found if isinstance(found, WrappedCallable) and found.fn is inner else None


def find_wrapped(fn: Any) -> WrappedCallable | None:
    """Return the callable and the policy of *fn* or of what it wraps, or None."""
    # Bounded, since a remote object may have every attribute, without an end.
    for _ in range(_MAX_DEPTH):
        found = getattr(fn, "__retrykit__", None)
        if isinstance(found, WrappedCallable):
            return found
        if isinstance(fn, _WITH_FUNC):
            fn = fn.func
        else:
            fn = getattr(fn, "__func__", None) or getattr(fn, "__wrapped__", None)
    return None


_MAX_DEPTH = 100
_WITH_FUNC = (
    functools.partial,
    functools.partialmethod,
    functools.cached_property,
    functools.singledispatchmethod,
)
