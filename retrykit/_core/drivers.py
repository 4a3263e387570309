"""Construction of the driver of a function: checks, attempt timeout and hedge."""

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from retrykit._core import sync_driver
from retrykit._core.call import attempt_time_limit
from retrykit._core.result_conditions import NEEDS_ARETRY, check_predicates
from retrykit._core.retry_state import RetryState
from retrykit._core.settings import check_event_kind, check_sleep_kind
from retrykit._internal.introspection import (
    is_awaitable,
    is_coroutine_function,
    is_generator_function,
    is_plain_function,
    matches_underlying,
)
from retrykit._internal.validation import (
    check_instance,
    hide_own_frames,
    invalid_setting,
)
from retrykit.errors import ConfigError

if TYPE_CHECKING:
    from retrykit._core.hedge import Hedge
    from retrykit._core.policy import Policy
    from retrykit._core.stream_modes import StreamMode

__all__ = ["build_driver", "check_limits_of", "check_no_hedge", "check_resumable"]
__all__ += ["check_no_stream", "check_retryable", "check_sync_compatible"]
__all__ += ["driver_factory", "ensure_awaitable", "prepare_attempt"]


def build_driver(
    policy: "Policy",
    fn: Callable[..., Any],
    *,
    awaited: bool,
    resumed: RetryState | None = None,
    stream: "StreamMode | None" = None,
) -> Callable[..., Any]:
    """Return a function that calls *fn* under a policy, or returns streams of *fn*."""
    try:
        if stream is not None:
            return _build_stream_driver(policy, fn, stream, awaited=awaited)
        factory = driver_factory(policy, fn, awaited=awaited)
    except ConfigError as error:
        hide_own_frames(error)
        raise
    return factory(None, resumed, fn)


Hedging = Callable[["Policy", "Hedge", Callable[..., Any]], Callable[..., Any]]
"""Takes a policy, its hedge and an attempt; returns an attempt that is hedged."""


def driver_factory(
    policy: "Policy",
    fn: Callable[..., Any],
    *,
    awaited: bool,
    hedging: Hedging | None = None,
) -> Callable[..., Callable[..., Any]]:
    """Return a factory of drivers for *fn*.

    *hedging* replaces the usual hedging, for a client that knows which requests may be
    sent twice.

    Returns:
        A function with three parameters: the name to use if the policy has none, or
        None to use the function's; the state that every call continues, or None; and
        the function that events name, by default none. It returns a function that calls
        *fn* under the policy.
    """
    attempt = prepare_attempt(policy, fn, awaited=awaited, hedging=hedging)
    if not awaited:
        return partial(sync_driver.make_driver, policy, attempt)
    # Imported here: sync code needs no event loop.
    from retrykit._core import async_driver  # noqa: PLC0415

    return partial(async_driver.make_driver, policy, attempt)


def prepare_attempt(
    policy: "Policy",
    fn: Callable[..., Any],
    *,
    awaited: bool,
    hedging: Hedging | None = None,
) -> Callable[..., Any]:
    """Return a function that makes one attempt of *fn*, with its timeout and hedge."""
    check_retryable(fn)
    if not awaited and is_coroutine_function(fn):
        suggestion = "use acall or arun, or decorate it with retry or aretry"
        raise invalid_setting(
            "fn", "a function that is not async", fn, suggestion, code="async-mismatch"
        )
    policy._derive(_check_async if awaited else _check_sync)
    attempt = _add_timeout(policy, fn, awaited=awaited)
    if policy.hedge is None:
        return attempt
    if hedging is not None:
        return hedging(policy, policy.hedge, attempt)
    # Imported here: few policies hedge.
    from retrykit._core.hedge import check_promise  # noqa: PLC0415
    from retrykit._core.hedging import hedged  # noqa: PLC0415

    check_promise(policy.hedge)
    return hedged(policy, policy.hedge, attempt)


def _build_stream_driver(
    policy: "Policy", fn: Callable[..., Any], mode: "StreamMode", *, awaited: bool
) -> Callable[..., Any]:
    """Return a function that returns streams of *fn* under a policy."""
    # Imported here: few functions are generators.
    from retrykit._core.stream_modes import check_stream  # noqa: PLC0415

    check_no_stream(fn)
    check_stream(mode, policy, fn, awaited=awaited)
    check_no_hedge(policy)
    policy._derive(_check_async if awaited else _check_sync)
    attempt = _add_timeout(policy, fn, awaited=False)
    if awaited:
        from retrykit._core import async_streams  # noqa: PLC0415

        return async_streams.make_stream_driver(policy, attempt, mode, fn)
    from retrykit._core import streams  # noqa: PLC0415

    return streams.make_stream_driver(policy, attempt, mode, fn)


def _add_timeout(
    policy: "Policy", fn: Callable[..., Any], *, awaited: bool
) -> Callable[..., Any]:
    """Return a function that sends an attempt of *fn* once, within its timeout."""
    timeout = policy.attempt_timeout
    if timeout is None:
        return ensure_awaitable(fn) if awaited else fn
    # Imported here: it needs an event loop, and few policies have a timeout.
    from retrykit._core.attempt_timeout import with_timeout, with_timeout_argument  # noqa: PLC0415

    if isinstance(timeout, int | float):
        return with_timeout(ensure_awaitable(fn), attempt_time_limit)
    attempt = with_timeout_argument(fn, timeout, attempt_time_limit)
    return ensure_awaitable(attempt) if awaited else attempt


def _check_sync(policy: "Policy") -> None:
    """Raise an error unless a policy suits a sync function."""
    check_event_kind(policy.stop_event, awaited=False)
    check_sleep_kind(policy.sleep, awaited=False)
    check_sync_compatible(policy)
    check_limits_of(policy)


def _check_async(policy: "Policy") -> None:
    """Raise an error unless a policy suits a coroutine function."""
    check_event_kind(policy.stop_event, awaited=True)
    check_sleep_kind(policy.sleep, awaited=True)
    check_limits_of(policy)


def check_limits_of(policy: "Policy") -> None:
    """Join the limits of a policy; see `admission.join_limits`."""
    if policy.admission:
        # Imported here: few policies have limits.
        from retrykit._core.admission import join_limits  # noqa: PLC0415

        join_limits(policy)


def check_no_hedge(
    policy: "Policy", suggestion: str = "put what is hedged into a function"
) -> None:
    """Raise an error if a policy hedges where no function can be sent twice."""
    if policy.hedge is not None:
        rule = "None where nothing can be sent twice: in a block, a stream, a job or a "
        rule += "gRPC call"
        raise invalid_setting("hedge", rule, policy.hedge, suggestion, code="not-here")


def check_retryable(fn: object) -> None:
    """Raise an error unless *fn* can be retried by calling it again."""
    if is_plain_function(fn):
        return
    if not callable(fn):
        raise invalid_setting(
            "fn", "a function or another callable", fn, code="not-retryable"
        )
    check_no_stream(fn)
    entered = matches_underlying(_makes_context_manager, fn)
    if entered or matches_underlying(is_generator_function, fn):
        from retrykit._core.stream_modes import STREAM_MODES  # noqa: PLC0415

        rule = "a function that runs when it is called, not a generator function"
        used = "entered" if entered else "iterated"
        suggestion = f"its errors are raised where it is {used}: "
        suggestion += "" if entered else f"give retry stream={STREAM_MODES}; or "
        suggestion += (
            "retry that code, or write a block, for attempt in retrying(...), "
        )
        suggestion += "in it"
        raise invalid_setting("fn", rule, fn, suggestion, code="not-retryable")


def check_no_stream(fn: object) -> None:
    """Raise an error if *fn* is decorated already and returns streams."""
    found: Any = getattr(fn, "__retrykit__", None)
    # Objects with dynamic attributes, such as remote ones, have any attribute.
    if type(found).__name__ == "WrappedCallable" and found.stream is not None:
        rule = "a function without a stream, which is retried where it is iterated"
        suggestion = "change its policy by with_policy, or decorate what iterates it"
        raise invalid_setting("fn", rule, fn, suggestion, code="not-retryable")


def check_sync_compatible(
    policy: "Policy", *, can_cancel: bool = False, suggestion: str = NEEDS_ARETRY
) -> None:
    """Raise an error if a policy needs an event loop.

    *can_cancel* allows an attempt timeout.
    """
    check_predicates(policy, suggestion)
    budget, timeout = policy.budget, policy.attempt_timeout
    if is_coroutine_function(budget and budget.withdraw):
        rule = "a sync budget where nothing can await it"
        raise invalid_setting("budget", rule, budget, suggestion, code="async-mismatch")
    if isinstance(timeout, float) and not can_cancel:
        rule = "None for sync code, which cannot be cancelled"
        suggestion = "give the client timeout=current_state().remaining, or write "
        suggestion += (
            f"attempt_timeout=AsArgument({timeout:g}), which fills a parameter"
        )
        raise invalid_setting(
            "attempt_timeout", rule, timeout, suggestion, code="not-here"
        )


def check_resumable(state: RetryState) -> None:
    """Raise an error unless a call can be resumed from a state."""
    check_instance("state", state, RetryState, "RetryState.from_dict makes one")
    if state.status == "succeeded":
        rule = "of a call that has not succeeded"
        raise invalid_setting(
            "state", rule, state, "there is nothing to resume", code="wrong-state"
        )


def ensure_awaitable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return *fn* for the async driver; it rejects results that are not awaitable."""
    if is_coroutine_function(fn):
        return fn
    annotations = getattr(fn, "__annotations__", None)
    # Objects with dynamic attributes, such as remote ones, have any attribute.
    known: dict[str, object] = annotations if isinstance(annotations, dict) else {}
    returns = known.get("return", Any)
    if returns is None or (isinstance(returns, type) and not _awaitable(returns)):
        rule = "a coroutine function, or one that returns an awaitable, under aretry"
        raise invalid_setting(
            "fn", rule, fn, "decorate it with retry", code="async-mismatch"
        )

    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        if not is_awaitable(result):
            rule = "a function that returns an awaitable, under aretry"
            raise invalid_setting(
                "fn", rule, fn, "decorate it with retry", code="async-mismatch"
            )
        return await result

    return awaiting


def _awaitable(kind: type) -> bool:
    return kind in {Any, object} or hasattr(kind, "__await__")


def _makes_context_manager(fn: Any) -> bool:
    """Return whether contextlib made a function from a generator function."""
    if not isinstance(fn, FunctionType):
        return False
    module = fn.__globals__.get("__name__")
    return module == "contextlib" and is_generator_function(
        getattr(fn, "__wrapped__", None)
    )
