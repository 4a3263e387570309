"""Modes in which a generator function is retried, and their checks."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, final

from retrykit._conditions import format_value
from retrykit._core.final_error import check_no_fallback
from retrykit._core.plan import Plan
from retrykit._internal.durations import Duration, parse_positive_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.introspection import (
    is_async_generator_function,
    is_coroutine_function,
    is_generator_function,
    matches_underlying,
)
from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import invalid_setting, user_facing

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = [
    "STREAM_MODES",
    "FailureCount",
    "Position",
    "StreamMode",
    "as_mode",
    "check_function",
]
__all__ += ["check_stream", "is_async_stream", "make_mode"]

STREAM_MODES: Final = (
    "'until-first-item', 'restart', streams.restart(skip_seen=True) or "
    "streams.resume(function)"
)
"""How a generator function can be retried, as messages list it."""

FailureCount = Literal["in_a_row", "in_all"]
"""Which failures the limits of a policy count: those since the last item, or all."""


@final
class Position(Frozen):
    """The place where a stream continues, and what is lost before that place.

    >>> Position({"offset": 20}, gap="bytes 10 to 19")
    Position({'offset': 20}, gap='bytes 10 to 19')

    Attributes:
        arguments: Arguments of the generator function that differ from those of the
            call, keyed by parameter name.
        gap: What the consumer will not see, of any type; None if nothing is missing.

    Raises:
        ConfigError: *arguments* is not a dict.
    """

    __slots__ = ("arguments", "gap")
    arguments: Mapping[str, Any]
    gap: object

    @user_facing
    def __init__(self, arguments: Mapping[str, Any], gap: object = None) -> None:
        if not isinstance(arguments, Mapping):
            rule = "a dict of arguments keyed by parameter name"
            raise invalid_setting("arguments", rule, arguments)
        super().__init__(arguments, gap)

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap={self.gap!r}"
        return f"Position({self.arguments!r}{gap})"


@final
class StreamMode(Frozen):
    """A mode in which a generator function is retried; see `retrykit.streams`.

    Attributes:
        name: The name of the mode, such as ``"restart"``.
        continue_from: The function that returns where the next attempt continues; None
            if it starts over.
        skip_seen: Whether a restarted attempt skips as many items as were handed out.
        in_a_row: Whether the policy's limits count only failures since the last item.
        first_item_timeout: Time limit of the first item of each attempt, in seconds;
            None is unlimited.
        item_timeout: Time limit of each further item, in seconds; None is unlimited.
    """

    __slots__ = (
        "continue_from",
        "first_item_timeout",
        "in_a_row",
        "item_timeout",
        "name",
        "skip_seen",
    )
    name: str
    continue_from: Callable[..., Any] | None
    skip_seen: bool
    in_a_row: bool
    first_item_timeout: float | None
    item_timeout: float | None

    def __repr__(self) -> str:
        given = [] if self.continue_from is None else [format_value(self.continue_from)]
        given += ["skip_seen=True"] if self.skip_seen else []
        count = "in_a_row" if self.in_a_row else "in_all"
        if self.in_a_row != (self.name == "resume"):
            given.append(f"failures={count!r}")
        for name in ("first_item_timeout", "item_timeout"):
            seconds = getattr(self, name)
            given += [] if seconds is None else [f"{name}={seconds!r}"]
        return f"streams.{self.name.replace('-', '_')}({', '.join(given)})"


def make_mode(  # noqa: PLR0913  what a mode may have
    name: str,
    continue_from: Callable[..., Any] | None = None,
    *,
    failures: FailureCount = "in_all",
    first_item_timeout: Duration | None = None,
    item_timeout: Duration | None = None,
    skip_seen: bool = False,
) -> StreamMode:
    """Return a mode; raise a ConfigError if an argument is invalid."""
    if failures not in {"in_a_row", "in_all"}:
        raise invalid_setting("failures", "'in_a_row' or 'in_all'", failures)
    if name == "restart" and failures == "in_a_row" and skip_seen is False:
        rule = (
            "'in_all' without skip_seen, since items that come again are not progress"
        )
        raise invalid_setting(
            "failures", rule, failures, "write skip_seen=True", code="contradiction"
        )
    if not isinstance(skip_seen, bool):
        raise invalid_setting("skip_seen", "True or False", skip_seen)
    times = [
        None if given is None else parse_positive_duration(each, given)
        for each, given in (
            ("first_item_timeout", first_item_timeout),
            ("item_timeout", item_timeout),
        )
    ]
    in_a_row = failures == "in_a_row"
    return StreamMode(name, continue_from, skip_seen, in_a_row, *times)


def check_function(continue_from: Any) -> Callable[..., Any]:
    """Return the function of `streams.resume` if it takes an item and the state.

    Raises:
        ConfigError: *continue_from* is something else.
    """
    rule = "a function of the last item and the state"
    if not callable(continue_from):
        raise invalid_setting("continue_from", rule, continue_from)
    try:
        inspect.signature(continue_from).bind(None, None)
    except TypeError:
        suggestion = "write lambda last_item, state: {...}"
        raise invalid_setting(
            "continue_from", rule, continue_from, suggestion
        ) from None
    except ValueError:
        # A built-in function may have no signature.
        pass
    function: Callable[..., Any] = continue_from
    return function


def as_mode(stream: object) -> StreamMode:
    """Return the mode for the argument *stream* of a decorator."""
    if isinstance(stream, StreamMode):
        return stream
    if stream in ("until-first-item", "restart"):
        return make_mode(str(stream))
    suggestion = ""
    if callable(stream):
        suggestion = f"write streams.resume({format_value(stream)})"
    elif stream == "resume":
        suggestion = "write streams.resume(function), which tells where to continue"
    raise invalid_setting("stream", STREAM_MODES, stream, suggestion)


def is_async_stream(fn: Any, *, awaited: bool | None) -> bool:
    """Return whether *fn* is an async generator function.

    Args:
        fn: The function to decorate.
        awaited: Whether a sync generator function raises a ConfigError.
    """
    found = matches_underlying(is_async_generator_function, fn)
    if awaited and not found and matches_underlying(is_generator_function, fn):
        rule = "an async generator function under aretry"
        raise invalid_setting(
            "fn", rule, fn, "decorate it with retry", code="async-mismatch"
        )
    return found


def check_stream(mode: StreamMode, policy: "Policy", fn: Any, *, awaited: bool) -> None:
    """Raise an error unless *fn* is a generator function for this mode and policy."""
    if not matches_underlying(is_generator_function, fn):
        rule = "None for what is not a generator function"
        suggestion = "leave it out, or yield the items"
        raise invalid_setting("stream", rule, mode, suggestion, code="not-here")
    for name in ("first_item_timeout", "item_timeout"):
        timeout = getattr(mode, name)
        if timeout is not None and not awaited:
            rule = "None for a sync generator, which cannot be cut off"
            suggestion = "give the client a timeout, or use an async generator"
            raise invalid_setting(name, rule, timeout, suggestion, code="not-here")
    if not awaited and is_coroutine_function(mode.continue_from):
        rule = "a sync function for a sync generator"
        raise invalid_setting(
            "continue_from", rule, mode.continue_from, code="async-mismatch"
        )
    _check_policy(policy)


def _check_policy(policy: "Policy") -> None:
    """Raise an error unless a policy suits a stream."""
    check_no_fallback(policy)
    timeout = policy.attempt_timeout
    if isinstance(timeout, int | float):
        rule = "None for a stream, which may last as long as its consumer likes"
        suggestion = "write stream=streams.resume(..., item_timeout=...), for example"
        raise invalid_setting(
            "attempt_timeout", rule, timeout, suggestion, code="not-here"
        )
    if policy._derive(Plan).judges:
        rule = "None for a stream, which has no result"
        suggestion = "raise an error in the generator function"
        raise invalid_setting(
            "on_result", rule, policy.on_result, suggestion, code="not-here"
        )
