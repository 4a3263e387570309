"""The decorators; the only module that knows wrapt.

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
from typing import Any, NamedTuple, TypeVar, Unpack, cast, final, overload

from wrapt import BaseObjectProxy

from retrykit.checks import instance, is_coroutine_function, refuse
from retrykit.policy import Policy, driver
from retrykit.settings import Changes
from retrykit.state import RetryState

__all__ = ["aretry", "policy_of", "resume", "retry", "with_policy"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def retry(fn: F, /) -> F: ...
@overload
def retry(
    policy: Policy | None = None, **changes: Unpack[Changes]
) -> Callable[[F], F]: ...
def retry(
    policy: Policy | Callable[..., Any] | None = None, **changes: Unpack[Changes]
) -> Any:
    """Call the decorated function again when it fails, as its policy says.

    Written as ``@retry`` it holds to the default policy: five attempts in at
    most a minute, with growing delays. On a coroutine function it awaits. It
    goes above or below ``@classmethod``, ``@staticmethod`` and
    ``@abstractmethod``.

    >>> attempts = []
    >>> @retry(schedule=[0, 0], on=ConnectionError)
    ... def fetch():
    ...     attempts.append(1)
    ...     if len(attempts) < 3:
    ...         raise ConnectionError("refused")
    ...     return "data"
    >>> fetch(), len(attempts)
    ('data', 3)

    Args:
        policy: What the calls are held to; `Policy()` by default.
        **changes: Settings that differ from it, as for `Policy`.

    Returns:
        A decorator: the function that it returns is called as the original.

    Raises:
        ConfigError: A setting is wrong, or the function cannot be retried: a
            generator function, a class, a property.
    """
    return _decorator("retry", policy, changes, awaited=None)


@overload
def aretry(fn: F, /) -> F: ...
@overload
def aretry(
    policy: Policy | None = None, **changes: Unpack[Changes]
) -> Callable[[F], F]: ...
def aretry(
    policy: Policy | Callable[..., Any] | None = None, **changes: Unpack[Changes]
) -> Any:
    """Await the decorated function again when it fails, as its policy says.

    For coroutine functions, where `retry` would do the same, and for every
    callable that returns an awaitable, under asyncio and trio.

    >>> import asyncio
    >>> @aretry(schedule=[0], on=TimeoutError)
    ... async def fetch():
    ...     return "data"
    >>> asyncio.run(fetch())
    'data'

    Args:
        policy: What the calls are held to; `Policy()` by default.
        **changes: Settings that differ from it, as for `Policy`.

    Returns:
        A decorator: the function that it returns gives an awaitable.

    Raises:
        ConfigError: A setting is wrong, or the function is plainly not async.
    """
    return _decorator("aretry", policy, changes, awaited=True)


def with_policy(
    fn: F, policy: Policy | None = None, /, **changes: Unpack[Changes]
) -> F:
    """Return the same function under another policy; methods stay bound.

    >>> @retry
    ... def fetch(): ...
    >>> policy_of(with_policy(fetch, max_attempts=2)).max_attempts
    2

    Args:
        fn: A function, decorated or not; it is left as it is.
        policy: The other policy; by default the one that *fn* has.
        **changes: Settings that differ from it, as for `Policy`.

    Raises:
        ConfigError: A setting is wrong, or the function cannot be retried.
    """
    kind: Any = type(fn)
    if issubclass(kind, classmethod | staticmethod):
        function = cast("classmethod[Any, Any, Any]", fn).__func__
        return cast("F", kind(with_policy(function, policy, **changes)))
    inner, held, awaited = _inside(fn)
    held = held if policy is None else instance("policy", policy, Policy)
    other = held.replace(**changes)
    made = with_policy, (fn, other)
    return cast("F", _decorated(inner, other, awaited, made))


def policy_of(fn: object) -> Policy:
    """Return the policy of a decorated function.

    >>> policy_of(retry(max_attempts=3)(print)).max_attempts
    3

    Args:
        fn: A decorated function or method, also under other decorators that
            follow `functools.wraps`.

    Raises:
        ConfigError: It is not decorated with `retry` or `aretry`.
    """
    found = _nearest(fn)
    if found is None:
        raise refuse("fn", "decorated with retry or aretry", fn)
    return found.policy


def resume(
    fn: F,
    state: RetryState,
    policy: Policy | None = None,
    /,
    **changes: Unpack[Changes],
) -> F:
    """Return a function that goes on with the call that a state is from.

    It waits for the delay that was scheduled, and makes the next attempt under
    the number that comes next: with the state's seed, the delays are those of
    the call that was interrupted. The time that had been spent counts; the
    time in between does not.

    >>> state = RetryState("fetch", seed=7, epoch=0.0, attempt=3, spent=2.5)
    >>> @retry
    ... def fetch():
    ...     raise GiveUp
    >>> from retrykit import GiveUp, state_of
    >>> try:
    ...     resume(fetch, state)()
    ... except GiveUp as error:
    ...     state_of(error).attempt
    3

    Args:
        fn: A function or a bound method, decorated or not.
        state: What is known of the call, from `RetryState.from_dict` or of a
            call that was cancelled.
        policy: Another policy to go on with; by default that of *fn*.
        **changes: Settings that differ from it, as for `Policy`.

    Returns:
        A function to be called once, with the arguments of the call.

    Raises:
        ConfigError: A setting is wrong, or the function cannot be retried.
    """
    instance("state", state, RetryState, "RetryState.from_dict makes one")
    inner, held, awaited = _inside(fn)
    held = held if policy is None else instance("policy", policy, Policy)
    changed = held.replace(**changes)
    awaited = is_coroutine_function(inner) if awaited is None else awaited
    return cast("F", driver(changed, inner, awaited=awaited, resumed=state))


@final
class _Decorated(NamedTuple):
    """What `retry` knows of a function that it has decorated."""

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
        decorated: _Decorated,
        made: tuple[Callable[..., Any], tuple[Any, ...]] | None,
    ) -> None:
        super().__init__(decorated.fn)
        self._self_retrykit = decorated
        # How it was made from something else: what a copy or a pickle repeats.
        self._self_made = made
        _Proxy.__dict__["__call__"].__set__(self, call)

    @property
    def __retrykit__(self) -> _Decorated:
        return self._self_retrykit

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __copy__(self) -> Any:
        if self._self_made is not None:
            make, args = self._self_made
            return make(*args)
        return self._again(copy.copy(self.__wrapped__))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._self_made is not None:
            make, args = self._self_made
            return make(*copy.deepcopy(args, memo))
        return self._again(copy.deepcopy(self.__wrapped__, memo))

    def _again(self, fn: Callable[..., Any], made: Any = None) -> Any:
        _, policy, awaited = self._self_retrykit
        if fn is self.__wrapped__:
            return self
        # A coroutine method may show itself only once it is bound.
        return _decorated(fn, policy, awaited or None, made)

    def __reduce_ex__(self, _protocol: object) -> str | tuple[Any, ...]:
        if self._self_made is not None:
            return self._self_made
        fn, policy, awaited = self._self_retrykit
        name = getattr(fn, "__qualname__", "")
        found: Any = sys.modules.get(getattr(fn, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        return str(name) if found is self else (_decorated, (fn, policy, awaited))


@final
class _BoundProxy(_Proxy):
    """A callable that Python binds to objects, under a policy."""

    __slots__ = ()

    def __set_name__(self, owner: type, name: str) -> None:
        self._self_name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bind: Any = type(self.__wrapped__)
        bound = bind.__get__(self.__wrapped__, instance, owner)
        name = getattr(self, "_self_name", None)
        home = owner if instance is None else instance
        return self._again(bound, name and (getattr, (home, name)))


def _decorator(
    name: str,
    policy: object,
    changes: Changes,
    *,
    awaited: bool | None,
) -> Any:
    if policy is None or isinstance(policy, Policy):
        held = (policy or Policy()).replace(**changes)
        return lambda fn: _decorated(fn, held, awaited)
    if callable(policy) or hasattr(policy, "__get__"):
        if changes:
            way_out = f"write {name}(...)(fn), or @{name}(...) above it"
            raise refuse("policy", "a Policy beside other settings", policy, way_out)
        return _decorated(policy, Policy(), awaited)
    way_out = f"write {name}(schedule=...) to give a schedule"
    raise refuse("policy", "a Policy", policy, way_out)


def _decorated(
    fn: Any,
    policy: Policy,
    awaited: bool | None,  # noqa: FBT001  pickled by its place
    made: Any = None,
) -> Any:
    # By its real type: a proxy pretends to be what it is a proxy of.
    kind = type(fn)
    if issubclass(kind, classmethod | staticmethod):
        return kind(_decorated(fn.__func__, policy, awaited))
    if isinstance(fn, type):
        way_out = "decorate a function that makes the object"
        raise refuse("fn", "a function", fn, way_out)
    if isinstance(fn, property | functools.cached_property):
        raise refuse("fn", "a function", fn, "put the decorator below the property")
    awaited = is_coroutine_function(fn) if awaited is None else awaited
    decorated = _Decorated(fn, policy, awaited)
    call = driver(policy, fn, awaited=awaited)
    if kind is FunctionType and made is None:
        return _dressed(call, decorated)
    proxy = _BoundProxy if hasattr(kind, "__get__") else _Proxy
    return proxy(call, decorated, made)


def _dressed(call: Callable[..., Any], decorated: _Decorated) -> Callable[..., Any]:
    """Return a driver as the function that it calls: Python does all the rest."""
    fn = cast("FunctionType", decorated.fn)
    functools.update_wrapper(call, fn)
    dressed = cast("FunctionType", call)
    # For those who do not look through __wrapped__.
    dressed.__defaults__, dressed.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    with suppress(TypeError, ValueError):
        dressed.__dict__["__signature__"] = inspect.signature(fn)
    dressed.__dict__["__retrykit__"] = decorated
    return call


def _inside(fn: Any) -> tuple[Callable[..., Any], Policy, bool | None]:
    """Return what a callable calls, and how, if it is decorated itself."""
    found = _found(fn)
    if found is None:
        if _nearest(fn) is not None:
            rule = "decorated with retry or aretry last, to be changed"
            raise refuse("fn", rule, fn, "put retry above the other decorator")
        return fn, Policy(), None
    inner, policy, awaited = found
    if type(fn) is MethodType:
        inner = MethodType(inner, fn.__self__)
    return inner, policy, awaited


def _found(fn: Any) -> _Decorated | None:
    """Return what is known of a callable, if it is decorated itself."""
    if isinstance(fn, _Proxy):
        return fn._self_retrykit
    function = fn.__func__ if type(fn) is MethodType else fn
    found: _Decorated | None = getattr(function, "__retrykit__", None)
    # Decorators above copy what functions carry, but wrap another function.
    inner = getattr(function, "__wrapped__", None)
    return found if found is not None and found.fn is inner else None


def _nearest(fn: Any) -> _Decorated | None:
    """Return what is known of a callable, or of what it is wrapped around."""
    while not hasattr(fn, "__retrykit__"):
        around = [name for name in _AROUND if hasattr(fn, name)]
        if not around:
            return None
        fn = getattr(fn, around[0])
    found: _Decorated = fn.__retrykit__
    return found


_AROUND = ("__func__", "__wrapped__", "func")
