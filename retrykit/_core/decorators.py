"""The decorators `retry` and `aretry`, and functions for decorated functions.

Type checkers and editors find the settings that `retry` and `aretry` take in
`retrykit._core.setting_types`; `help`, `inspect.signature`, Jupyter and the reference
show what `list_settings` adds.
"""

from collections.abc import Callable, Coroutine
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    ForwardRef,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from retrykit._conditions import Condition, format_value
from retrykit._core.drivers import build_driver, check_resumable
from retrykit._core.events import Observer
from retrykit._core.policy import Policy
from retrykit._core.result_conditions import ResultCondition
from retrykit._core.retry_state import RetryState
from retrykit._core.settings import SETTINGS, SleepFunction, takes_settings
from retrykit._core.wrapping import (
    as_source,
    ask_policy,
    find_wrapped,
    guess_argument,
    unwrap,
    wrap_callable,
)
from retrykit._internal.durations import Duration
from retrykit._internal.introspection import LateSignature, is_coroutine_function
from retrykit._internal.late_modules import import_late, inspect
from retrykit._internal.validation import invalid_setting, user_facing
from retrykit.schedules._base import ScheduleLike

__all__ = ["aretry", "list_settings", "policy_of", "resume", "retry", "with_policy"]

F = TypeVar("F", bound=Callable[..., Any])


# Only type checkers read this, and it would take longer to import than all else here.
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator

    from retrykit._core.async_streams import AsyncStream
    from retrykit._core.setting_types import OtherSettings, PolicySettings
    from retrykit._core.stream_modes import StreamMode
    from retrykit._core.streams import Stream

    C = TypeVar("C")
    P = ParamSpec("P")
    R = TypeVar("R")
    S = TypeVar("S")
    V = TypeVar("V")
    V_co = TypeVar("V_co", covariant=True)

    class FallbackDecorator(Protocol[V_co]):
        """A decorator of functions that return their result, or the fallback."""

        @overload
        def __call__(
            self, fn: "classmethod[C, P, Coroutine[Any, Any, R]]", /
        ) -> "classmethod[C, P, Coroutine[Any, Any, R | V_co]]": ...
        @overload
        def __call__(
            self, fn: "classmethod[C, P, R]", /
        ) -> "classmethod[C, P, R | V_co]": ...
        @overload
        def __call__(
            self, fn: "staticmethod[P, Coroutine[Any, Any, R]]", /
        ) -> "staticmethod[P, Coroutine[Any, Any, R | V_co]]": ...
        @overload
        def __call__(  # type: ignore[overload-overlap]
            self, fn: "staticmethod[P, R]", /
        ) -> "staticmethod[P, R | V_co]": ...
        @overload
        def __call__(
            self, fn: Callable[P, Coroutine[Any, Any, R]], /
        ) -> Callable[P, Coroutine[Any, Any, R | V_co]]: ...
        @overload
        def __call__(self, fn: Callable[P, R], /) -> Callable[P, R | V_co]: ...

    StreamSetting = Literal["until-first-item", "restart"] | StreamMode

    class StreamDecorator(Protocol):
        """A decorator of generator functions, which return streams."""

        @overload
        def __call__(
            self, fn: Callable[P, AsyncGenerator[V, S]], /
        ) -> Callable[P, AsyncStream[V, S]]: ...
        @overload
        def __call__(  # type: ignore[overload-overlap] # pyright: ignore[reportOverlappingOverload]
            self, fn: Callable[P, Generator[V, S, R]], /
        ) -> Callable[P, Stream[V, S, R]]: ...
        @overload
        def __call__(
            self, fn: Callable[P, AsyncIterator[V]], /
        ) -> Callable[P, AsyncStream[V, None]]: ...
        @overload
        def __call__(
            self, fn: Callable[P, Iterator[V]], /
        ) -> Callable[P, Stream[V, None, None]]: ...

else:
    PolicySettings = Any


if TYPE_CHECKING:

    @overload
    def retry(fn: F, /) -> F: ...
    @overload
    def retry(
        policy: Policy | None = None, /, **changes: Unpack[OtherSettings]
    ) -> Callable[[F], F]: ...
    @overload
    def retry(
        *, policy: Policy | Callable[..., Policy], **changes: Unpack[OtherSettings]
    ) -> Callable[[F], F]: ...
    @overload
    def retry(
        policy: Policy | None = None,
        /,
        *,
        stream: StreamSetting,
        **changes: Unpack[OtherSettings],
    ) -> StreamDecorator: ...
    @overload
    def retry(
        *,
        policy: Policy | Callable[..., Policy],
        stream: StreamSetting,
        **changes: Unpack[OtherSettings],
    ) -> StreamDecorator: ...
    @overload
    def retry(
        fn: Policy | None = None,
        /,
        *,
        policy: Policy | Callable[..., Policy] = ...,
        fallback: Callable[[RetryState], Coroutine[Any, Any, V]],
        **changes: Unpack[OtherSettings],
    ) -> FallbackDecorator[V]: ...
    @overload
    def retry(
        fn: Policy | None = None,
        /,
        *,
        policy: Policy | Callable[..., Policy] = ...,
        fallback: Callable[[RetryState], V],
        **changes: Unpack[OtherSettings],
    ) -> FallbackDecorator[V]: ...
    @overload
    def retry(
        fn: Policy | None = None,
        /,
        *,
        policy: Policy | Callable[..., Policy] = ...,
        fallback: V,
        **changes: Unpack[OtherSettings],
    ) -> FallbackDecorator[V]: ...


@takes_settings
def retry(
    fn: Any = None, /, *, policy: Any = None, stream: Any = None, **changes: Any
) -> Any:
    """Retry the decorated function when it fails, as its policy says.

    ``@retry`` alone applies the default policy: five attempts within a minute, with
    growing delays. Coroutines are awaited. The decorator goes above or below
    ``@classmethod``, ``@staticmethod`` and ``@abstractmethod``.

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
        fn: The function, if the decorator has no parentheses; or the policy, passed by
            position.
        policy: The policy of the calls; `Policy()` by default. Or a function that
            returns the policy, called once for each call, so that settings can change
            at run time. If it has a parameter without a default, its parameters get the
            call's arguments of the same names, such as ``self``.
        stream: How a generator function is retried: ``"until-first-item"``,
            ``"restart"``, or what a function of `retrykit.streams` returns.
        **changes: Settings of `Policy` that differ from those of *policy*.

    Returns:
        A decorator; if *fn* is a function, the decorated function. Decorated functions
        keep their signature; decorated generator functions return a `streams.Stream` or
        a `streams.AsyncStream`.

    Raises:
        ConfigError: A setting is invalid, or the function cannot be retried, such as a
            generator function without *stream*, a class or a property.
    """
    return _decorator("retry", fn, policy, changes, stream, awaited=None)


if TYPE_CHECKING:

    @overload
    def aretry(fn: F, /) -> F: ...
    @overload
    def aretry(
        policy: Policy | None = None, /, **changes: Unpack[OtherSettings]
    ) -> Callable[[F], F]: ...
    @overload
    def aretry(
        *, policy: Policy | Callable[..., Policy], **changes: Unpack[OtherSettings]
    ) -> Callable[[F], F]: ...
    @overload
    def aretry(
        policy: Policy | None = None,
        /,
        *,
        stream: StreamSetting,
        **changes: Unpack[OtherSettings],
    ) -> StreamDecorator: ...
    @overload
    def aretry(
        *,
        policy: Policy | Callable[..., Policy],
        stream: StreamSetting,
        **changes: Unpack[OtherSettings],
    ) -> StreamDecorator: ...
    @overload
    def aretry(
        fn: Policy | None = None,
        /,
        *,
        policy: Policy | Callable[..., Policy] = ...,
        fallback: Callable[[RetryState], Coroutine[Any, Any, V]],
        **changes: Unpack[OtherSettings],
    ) -> FallbackDecorator[V]: ...
    @overload
    def aretry(
        fn: Policy | None = None,
        /,
        *,
        policy: Policy | Callable[..., Policy] = ...,
        fallback: Callable[[RetryState], V],
        **changes: Unpack[OtherSettings],
    ) -> FallbackDecorator[V]: ...
    @overload
    def aretry(
        fn: Policy | None = None,
        /,
        *,
        policy: Policy | Callable[..., Policy] = ...,
        fallback: V,
        **changes: Unpack[OtherSettings],
    ) -> FallbackDecorator[V]: ...


@takes_settings
def aretry(
    fn: Any = None, /, *, policy: Any = None, stream: Any = None, **changes: Any
) -> Any:
    """Retry the decorated async function when it fails, as its policy says.

    For coroutine functions, where `retry` does the same, and for every callable that
    returns an awaitable, under asyncio and trio. It takes the arguments of `retry`.

    >>> import asyncio
    >>> @aretry(schedule=[0], on=TimeoutError)
    ... async def fetch():
    ...     return "data"
    >>> asyncio.run(fetch())
    'data'

    Raises:
        ConfigError: A setting is invalid, or the function cannot be retried, or is
            known not to be async.
    """
    return _decorator("aretry", fn, policy, changes, stream, awaited=True)


@takes_settings
def with_policy(
    fn: F,
    policy: Policy | Callable[..., Policy] | None = None,
    /,
    **changes: Unpack[PolicySettings],
) -> F:
    """Return a function under another policy; methods stay bound.

    >>> @retry
    ... def fetch(): ...
    >>> policy_of(with_policy(fetch, max_attempts=2)).max_attempts
    2

    Args:
        fn: A function, decorated or not, which is not changed.
        policy: The other policy, or a function that returns it; by default *fn*'s
            policy.
        **changes: Settings of `Policy` that differ from those of *policy*.

    Raises:
        ConfigError: A setting is invalid, or the function cannot be retried.
    """
    kind: Any = type(fn)
    if issubclass(kind, classmethod | staticmethod):
        function = cast("classmethod[Any, Any, Any]", fn).__func__
        return cast("F", kind(with_policy(function, policy, **changes)))
    inner, base, awaited, stream = unwrap(fn)
    other = as_source(base if policy is None else policy, changes)
    recipe = with_policy, (fn, other)
    return cast("F", wrap_callable(inner, other, awaited, recipe, stream))


@takes_settings
def policy_of(fn: object) -> Policy:
    """Return the policy of a decorated function.

    >>> policy_of(retry(max_attempts=3)(print)).max_attempts
    3

    Args:
        fn: A decorated function or method, also under further decorators that use
            `functools.wraps`.

    Raises:
        ConfigError: *fn* is not decorated with `retry` or `aretry`, or its policy
            depends on the arguments of a call.
    """
    found = find_wrapped(fn)
    if found is None:
        raise invalid_setting(
            "fn", "decorated with retry or aretry", fn, code="not-retryable"
        )
    return found.policy


@takes_settings
def resume(
    fn: F,
    state: RetryState,
    policy: Policy | None = None,
    /,
    **changes: Unpack[PolicySettings],
) -> F:
    """Return a function that resumes the call that a state describes.

    The function waits for the scheduled delay and makes the next attempt, or repeats
    the attempt that was interrupted. Its delays are those that the interrupted call
    would have had. The time that the call had taken when it was interrupted counts; the
    time since then does not. A call that gave up gets one more attempt, whatever its
    limits, and more if the policy now allows them.

    >>> state = RetryState("fetch", seed=7, epoch=0.0, attempt=3, elapsed_at_end=2.5)
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
        state: The state, from `RetryState.from_dict` or of a cancelled call.
        policy: Another policy; by default *fn*'s policy.
        **changes: Settings of `Policy` that differ from those of *policy*.

    Returns:
        A function to be called once, with the arguments of the call: each call resumes
        from *state* again.

    Raises:
        ConfigError: A setting is invalid, the function cannot be retried or returns
            streams, or the call of *state* has succeeded.
    """
    check_resumable(state)
    inner, base, awaited, stream = unwrap(fn)
    if stream is not None:
        rule = "a function that returns a result, not a stream"
        suggestion = "call it with the arguments with which it continues"
        raise invalid_setting("fn", rule, fn, suggestion, code="not-retryable")
    changed = ask_policy(as_source(base if policy is None else policy, changes))
    awaited = is_coroutine_function(inner) if awaited is None else awaited
    return cast("F", build_driver(changed, inner, awaited=awaited, resumed=state))


def _decorator(  # noqa: PLR0913  what retry and aretry are given
    name: str,
    fn: Any,
    policy: Any,
    changes: Any,
    stream: Any,
    *,
    awaited: bool | None,
) -> Any:
    if stream is not None:
        # Imported here: few functions are generators.
        from retrykit._core.stream_modes import as_mode  # noqa: PLC0415

        stream = as_mode(stream)
    if fn is None or isinstance(fn, Policy):
        if fn is not None and policy is not None:
            raise invalid_setting(
                "policy", "given once", policy, code="wrong-arguments"
            )
        meant = "" if policy is None else guess_argument(policy)
        if meant:
            suggestion = f"write {name}({meant})"
            raise invalid_setting("policy", "a Policy", policy, suggestion)
        source = as_source(fn if policy is None else policy, changes)

        def decorate(fn: Any, /) -> Any:
            return wrap_callable(fn, source, awaited, stream=stream)

        return user_facing(decorate)
    meant = guess_argument(fn)
    if not meant and (callable(fn) or hasattr(fn, "__get__")):
        _reject_policy_function(name, fn)
        if changes or policy is not None or stream is not None:
            suggestion = f"write {name}(...)(fn), or @{name}(...) above it"
            rule = "a Policy beside other settings"
            raise invalid_setting("policy", rule, fn, suggestion)
        return wrap_callable(fn, Policy(), awaited)
    example = f"name the setting, as in {name}(max_attempts=...)"
    suggestion = f"write {name}({meant})" if meant else example
    raise invalid_setting("policy", "a Policy", fn, suggestion)


def _reject_policy_function(name: str, fn: Any) -> None:
    """Raise a ConfigError if *fn* is annotated as a function that returns a policy."""
    returned = getattr(fn, "__annotations__", {}).get("return")
    if returned is Policy or returned == "Policy":
        ours = str(fn.__module__).startswith("retrykit.integrations.")
        meant = f"{fn.__name__}()" if ours else f"policy={format_value(fn)}"
        suggestion = f"write {name}({meant})"
        raise invalid_setting(
            "fn", "a function to retry", fn, suggestion, code="not-retryable"
        )


def list_settings(function: Callable[..., Any]) -> None:
    """List the settings in the signature and docstring of a function that takes them.

    >>> def order(policy=None, **changes): ...
    >>> list_settings(order)
    >>> inspect.signature(order).parameters["seed"]
    <Parameter "seed: int | None = None">
    """
    own = cast("FunctionType", getattr(function, "__wrapped__", function))
    function.__dict__["__signature__"] = LateSignature(lambda: _signature_of(own))
    before, line, after = (function.__doc__ or "").partition(_LINE)
    if line and _LINES:
        lines = ("\n" + before.rpartition("\n")[2]).join(_LINES)
        function.__doc__ = f"{before}{lines}{after}"


def _copy(fn: FunctionType) -> FunctionType:
    """Return a function with the parameters of *fn*, and without its attributes."""
    copy = FunctionType(fn.__code__, fn.__globals__, argdefs=fn.__defaults__)
    copy.__kwdefaults__, copy.__annotations__ = fn.__kwdefaults__, fn.__annotations__
    return copy


def _signature_of(function: FunctionType) -> "inspect.Signature":
    """Return the signature of a function, with a parameter for each setting."""
    # Late, since few programs show a signature.
    types = import_late("retrykit._core.setting_types").PolicySettings.__annotations__
    own = inspect.signature(_copy(function))
    named = inspect.Parameter.VAR_KEYWORD
    parameters = [each for each in own.parameters.values() if each.kind != named]
    names = {each.name for each in parameters}
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(Policy, name),
            annotation=_Annotation(types[name]),
        )
        for name in SETTINGS
        if name not in names
    ]
    return own.replace(parameters=parameters)


class _Annotation:
    """An annotation that is shown with the names of its type aliases."""

    def __init__(self, annotation: object) -> None:
        self._annotation = annotation

    def __repr__(self) -> str:
        if isinstance(self._annotation, ForwardRef):
            return self._annotation.__forward_arg__
        text = inspect.formatannotation(self._annotation)
        for name, alias in _ALIASES.items():
            text = text.replace(inspect.formatannotation(alias), name)
        return text


# The wider ones first.
_ALIASES: dict[str, object] = {
    "ScheduleLike": ScheduleLike,
    "Observer": Observer,
    "Condition": Condition,
    "ResultCondition": ResultCondition,
    "SleepFunction": SleepFunction,
    "Duration": Duration,
}

# The line of a docstring that stands for all settings.
_LINE = "**changes: Settings of `Policy` that differ from those of *policy*."
# The settings of `Policy`, which has no docstring under ``python -OO``.
_TEXT = (Policy.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
_INDENT = len(_TEXT) - len(_TEXT.lstrip())
_LINES = [line[_INDENT:] for line in _TEXT.splitlines()]

for _each in (Policy.__init__, Policy.replace, retry, aretry, with_policy, resume):
    list_settings(_each)
