"""Proxies of retried callables; only this module imports wrapt."""

import copy
import sys
from collections.abc import Callable
from typing import Any

from wrapt import BaseObjectProxy

from retrykit._core.wrapping import WrappedCallable, wrap_callable

__all__ = ["DescriptorProxy", "FunctionProxy", "Proxy"]


class Proxy(BaseObjectProxy[Callable[..., Any]]):
    """Proxy of a callable that is not a descriptor.

    Args:
        call: The driver, which is called in place of the proxy.
        wrapped: The callable and its policy.
        recipe: The function that made the proxy from another object, and its arguments:
            to copy or unpickle the proxy, it is called again. None if there is no other
            object.
    """

    # A slot of this name gives each proxy its own __call__, which Python looks up
    # on the type: the driver itself, without a frame in between.
    __slots__ = ("__call__",)

    def __init__(
        self,
        call: Callable[..., Any],
        wrapped: WrappedCallable,
        recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None,
    ) -> None:
        super().__init__(wrapped.fn)
        self._self_retrykit = wrapped
        self._self_recipe = recipe
        Proxy.__dict__["__call__"].__set__(self, call)

    @property
    def __retrykit__(self) -> WrappedCallable:
        return self._self_retrykit

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __set_name__(self, owner: type, name: str) -> None:
        self._self_name = name
        set_name = getattr(type(self.__wrapped__), "__set_name__", None)
        if set_name is not None:
            set_name(self.__wrapped__, owner, name)

    def __copy__(self) -> Any:
        if self._self_recipe is None:
            return self._wrap(copy.copy(self.__wrapped__))
        function, (first, *others) = self._self_recipe
        # A copy of a bound method is bound to the same object.
        return function(first if function is getattr else copy.copy(first), *others)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._self_recipe is None:
            return self._wrap(copy.deepcopy(self.__wrapped__, memo))
        function, args = self._self_recipe
        return function(*copy.deepcopy(args, memo))

    def _wrap(self, fn: Callable[..., Any], recipe: Any = None) -> Any:
        """Return another callable under the same policy."""
        own = self._self_retrykit
        if fn is self.__wrapped__:
            return self
        # Some methods are known to be async only once they are bound.
        awaited = own.awaited or None
        return wrap_callable(fn, own.source, awaited, recipe, own.stream)

    def __reduce_ex__(self, _protocol: object) -> str | tuple[Any, ...]:
        if self._self_recipe is not None:
            return self._self_recipe
        own = self._self_retrykit
        fn = own.fn
        name = getattr(fn, "__qualname__", "")
        found: Any = sys.modules.get(getattr(fn, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        return (
            str(name)
            if found is self
            else (wrap_callable, (fn, own.source, own.awaited, None, own.stream))
        )


class DescriptorProxy(Proxy):
    """Proxy of a descriptor: a callable that Python binds to objects."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bind: Any = type(self.__wrapped__)
        bound = bind.__get__(self.__wrapped__, instance, owner)
        name = getattr(self, "_self_name", None)
        home = owner if instance is None else instance
        return self._wrap(bound, name and (getattr, (home, name)))


class FunctionProxy(DescriptorProxy):
    """Proxy of a plain function under another policy.

    Libraries that pickle functions by value take it for a function, and make one from
    its parts. These are the parts of the driver, which retries, and not of the
    function.
    """

    __slots__ = ()

    __code__: Any = property(lambda self: self.__call__.__code__)
    __closure__: Any = property(lambda self: self.__call__.__closure__)
    __globals__: Any = property(lambda self: self.__call__.__globals__)
    __dict__: Any = property(lambda self: self.__call__.__dict__)


class _Annotations:
    """The annotations of a proxy's callable; the proxy class has none.

    Before Python 3.14, reading the annotations of a class puts an empty dict into it,
    which its instances would then have in place of their own.
    """

    def __get__(self, proxy: Proxy | None, owner: type) -> Any:
        return {} if proxy is None else proxy.__wrapped__.__annotations__

    def __set__(self, proxy: Proxy, annotations: dict[str, Any]) -> None:
        proxy.__wrapped__.__annotations__ = annotations

    def __delete__(self, proxy: Proxy) -> None:
        del proxy.__wrapped__.__annotations__


_annotations: Any = _Annotations()
for _class in Proxy, DescriptorProxy, FunctionProxy:
    _class.__annotations__ = _annotations
