"""A callable under a policy, as what it was.

The only module that knows wrapt; it knows nothing of attempts.

A decorated function is a function, which Python binds, pickles and copies like
any other. Whatever else can be called becomes a wrapt proxy of itself.
"""

import copy
import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any, NamedTuple, cast, final

from wrapt import BaseObjectProxy

from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.validation import invalid_setting
from retrykit.execution.drivers import build_driver
from retrykit.policy.policy import Policy

__all__ = ["WrappedCallable", "find_wrapped", "unwrap", "wrap_callable"]


@final
class WrappedCallable(NamedTuple):
    """What is known of a callable that is under a policy.

    Attributes:
        fn: What is called.
        policy: What its calls are held to.
        awaited: Whether it is awaited.
    """

    fn: Callable[..., Any]
    policy: Policy
    awaited: bool


class _Proxy(BaseObjectProxy[Callable[..., Any]]):
    """A callable that Python does not bind, under a policy."""

    # Looked up on the type, a slot of this name gives every proxy a __call__
    # of its own: the driver itself, without a frame of ours in between.
    __slots__ = ("__call__",)

    def __init__(
        self,
        call: Callable[..., Any],
        decorated: WrappedCallable,
        made: tuple[Callable[..., Any], tuple[Any, ...]] | None,
    ) -> None:
        super().__init__(decorated.fn)
        self._self_retrykit = decorated
        # How it was made from something else: what a copy or a pickle repeats.
        self._self_made = made
        _Proxy.__dict__["__call__"].__set__(self, call)

    @property
    def __retrykit__(self) -> WrappedCallable:
        return self._self_retrykit

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __set_name__(self, owner: type, name: str) -> None:
        self._self_name = name
        tell = getattr(type(self.__wrapped__), "__set_name__", None)
        if tell is not None:
            tell(self.__wrapped__, owner, name)

    def __copy__(self) -> Any:
        if self._self_made is None:
            return self._again(copy.copy(self.__wrapped__))
        make, (first, *others) = self._self_made
        # A copy of a bound method is bound to the same object.
        return make(first if make is getattr else copy.copy(first), *others)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._self_made is None:
            return self._again(copy.deepcopy(self.__wrapped__, memo))
        make, args = self._self_made
        return make(*copy.deepcopy(args, memo))

    def _again(self, fn: Callable[..., Any], made: Any = None) -> Any:
        _, policy, awaited = self._self_retrykit
        if fn is self.__wrapped__:
            return self
        # A coroutine method may show itself only once it is bound.
        return wrap_callable(fn, policy, awaited or None, made)

    def __reduce_ex__(self, _protocol: object) -> str | tuple[Any, ...]:
        if self._self_made is not None:
            return self._self_made
        fn, policy, awaited = self._self_retrykit
        name = getattr(fn, "__qualname__", "")
        found: Any = sys.modules.get(getattr(fn, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        return str(name) if found is self else (wrap_callable, (fn, policy, awaited))


@final
class _BoundProxy(_Proxy):
    """A callable that Python binds to objects, under a policy."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bind: Any = type(self.__wrapped__)
        bound = bind.__get__(self.__wrapped__, instance, owner)
        name = getattr(self, "_self_name", None)
        home = owner if instance is None else instance
        return self._again(bound, name and (getattr, (home, name)))


def wrap_callable(
    fn: Any,
    policy: Policy,
    awaited: bool | None,  # noqa: FBT001  pickled by its place
    made: Any = None,
) -> Any:
    """Return a callable under a policy, as the kind of thing that it is.

    Args:
        fn: A function, or whatever else can be called again.
        policy: What its calls are held to.
        awaited: Whether it is to be awaited; None to find out.
        made: The function and the arguments that make the same again, where a
            copy or a pickle of it should call that.

    Raises:
        ConfigError: It cannot be retried, or not in that colour.
    """
    # By its real type: a proxy pretends to be what it is a proxy of.
    kind = type(fn)
    if issubclass(kind, classmethod | staticmethod):
        return kind(wrap_callable(fn.__func__, policy, awaited))
    if isinstance(fn, type):
        raise invalid_setting(
            "fn", "a function", fn, "decorate one that makes the object"
        )
    if isinstance(fn, property | functools.cached_property):
        raise invalid_setting(
            "fn", "a function", fn, "put the decorator below the property"
        )
    awaited = is_coroutine_function(fn) if awaited is None else awaited
    known = WrappedCallable(fn, policy, awaited)
    call = build_driver(policy, fn, awaited=awaited)
    if kind is FunctionType and made is None:
        return _as_function(call, known)
    proxy = _BoundProxy if hasattr(kind, "__get__") else _Proxy
    return proxy(call, known, made)


def _as_function(
    call: Callable[..., Any], decorated: WrappedCallable
) -> Callable[..., Any]:
    """Return a driver as the function that it calls: Python does all the rest."""
    fn = cast("FunctionType", decorated.fn)
    functools.update_wrapper(call, fn)
    dressed = cast("FunctionType", call)
    # For those who do not look through __wrapped__.
    dressed.__defaults__, dressed.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    with suppress(NameError, TypeError, ValueError):
        dressed.__dict__["__signature__"] = inspect.signature(fn)
    dressed.__dict__["__retrykit__"] = decorated
    return call


def unwrap(fn: Any) -> tuple[Callable[..., Any], Policy, bool | None]:
    """Return what a callable calls, and how, if it is decorated itself."""
    found = _found(fn)
    if found is None:
        if find_wrapped(fn) is not None:
            rule = "decorated with retry or aretry last, to be changed"
            raise invalid_setting("fn", rule, fn, "put retry above the other decorator")
        return fn, Policy(), None
    inner, policy, awaited = found
    if type(fn) is MethodType:
        inner = MethodType(inner, fn.__self__)
    return inner, policy, awaited


def _found(fn: Any) -> WrappedCallable | None:
    """Return what is known of a callable, if it is decorated itself."""
    if isinstance(fn, _Proxy):
        return fn._self_retrykit
    function = fn.__func__ if type(fn) is MethodType else fn
    found = getattr(function, "__retrykit__", None)
    # Decorators above copy what functions carry, but wrap another function.
    inner = getattr(function, "__wrapped__", None)
    return found if isinstance(found, WrappedCallable) and found.fn is inner else None


def find_wrapped(fn: Any) -> WrappedCallable | None:
    """Return what is known of a callable, or of what it is wrapped around."""
    # An object that has every attribute, as remote ones do, has no innermost one.
    for _ in range(_DEEPEST):
        found = getattr(fn, "__retrykit__", None)
        if isinstance(found, WrappedCallable):
            return found
        if isinstance(fn, _WITH_FUNC):
            fn = fn.func
        else:
            fn = getattr(fn, "__func__", None) or getattr(fn, "__wrapped__", None)
    return None


_DEEPEST = 100
_WITH_FUNC = (
    functools.partial,
    functools.partialmethod,
    functools.cached_property,
    functools.singledispatchmethod,
)
