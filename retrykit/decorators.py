"""The decorators; the only module that knows wrapt.

A decorated function is a function, which Python binds, pickles and copies like
any other. Whatever else can be called becomes a wrapt proxy of itself.
"""

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, NamedTuple, TypeVar, Unpack, cast, final, overload

from wrapt import BaseObjectProxy

from retrykit.callables import awaits
from retrykit.checks import refuse
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
    if isinstance(fn, MethodType):
        changed = with_policy(fn.__func__, policy, **changes)
        return cast("F", MethodType(changed, fn.__self__))
    found = _found(fn)
    inner, held, awaited = found or (fn, Policy(), None)
    return cast("F", _decorated(inner, (policy or held).replace(**changes), awaited))


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
    found: Any = fn
    while not hasattr(found, "__retrykit__"):
        inner = [name for name in _INSIDE if hasattr(found, name)]
        if not inner:
            raise refuse("fn", "decorated with retry or aretry", fn)
        found = getattr(found, inner[0])
    policy: Policy = found.__retrykit__.policy
    return policy


_INSIDE = ("__func__", "__wrapped__", "func")


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
    inner, held, awaited = _found(fn) or (fn, Policy(), None)
    if isinstance(fn, MethodType) and inner is not fn:
        inner = MethodType(inner, fn.__self__)
    changed = (policy or held).replace(**changes)
    awaited = awaits(inner) if awaited is None else awaited
    return cast("F", driver(changed, inner, awaited=awaited, resumed=state))


@final
class _Decorated(NamedTuple):
    """What `retry` knows of a function that it has decorated."""

    fn: Callable[..., Any]
    policy: Policy
    awaited: bool


@final
class _Proxy(BaseObjectProxy[Callable[..., Any]]):
    """A callable that is no plain function, under a policy."""

    # Looked up on the type, a slot of this name gives every proxy a __call__
    # of its own: the driver itself, without a frame of ours in between.
    __slots__ = ("__call__",)

    __call__: Callable[..., Any]
    _self_retrykit: _Decorated

    def __init__(self, call: Callable[..., Any], decorated: _Decorated) -> None:
        super().__init__(decorated.fn)
        self._self_retrykit = decorated
        _Proxy.__dict__["__call__"].__set__(self, call)

    @property
    def __retrykit__(self) -> _Decorated:
        return self._self_retrykit

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bind = getattr(type(self.__wrapped__), "__get__", None)
        if bind is None:
            return self
        _, policy, awaited = self._self_retrykit
        return _decorated(bind(self.__wrapped__, instance, owner), policy, awaited)

    def __copy__(self) -> "_Proxy":
        return self

    def __deepcopy__(self, _memo: object) -> "_Proxy":
        return self

    def __reduce_ex__(self, _protocol: object) -> tuple[Any, ...]:
        return _decorated, tuple(self._self_retrykit)


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


def _decorated(fn: Any, policy: Policy, awaited: bool | None) -> Any:  # noqa: FBT001
    if isinstance(fn, classmethod | staticmethod):
        return type(fn)(_decorated(fn.__func__, policy, awaited))
    if isinstance(fn, type):
        raise refuse(
            "fn", "a function", fn, "decorate a function that makes the object"
        )
    if isinstance(fn, property | functools.cached_property):
        raise refuse("fn", "a function", fn, "put the decorator below the property")
    decorated = _Decorated(fn, policy, awaits(fn) if awaited is None else awaited)
    call = driver(policy, fn, awaited=decorated.awaited)
    if not isinstance(fn, FunctionType):
        return _Proxy(call, decorated)
    # Python itself binds, pickles and copies a function, and calls it fastest.
    functools.update_wrapper(call, fn)
    call.__dict__["__retrykit__"] = decorated
    return call


def _found(fn: object) -> _Decorated | None:
    """Return what is known of a callable, if it is decorated itself."""
    found: _Decorated | None = getattr(fn, "__retrykit__", None)
    # Decorators above copy what functions carry, but wrap another function.
    inner = getattr(getattr(fn, "__func__", fn), "__wrapped__", None)
    return found if found is not None and found.fn is inner else None
