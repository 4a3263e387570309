"""Hedge: the settings for sending a slow attempt again."""

import functools
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast, final

from retrykit._conditions import reject_awaitable
from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.introspection import is_coroutine_function, qualified_name
from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_number,
    did_you_mean,
    invalid_setting,
    user_facing,
)
from retrykit.budgets._ratio import RatioBudget

__all__ = ["Hedge", "check_hedge", "check_promise", "hedge_from_dict"]

F = TypeVar("F", bound=Callable[..., Any])

_SETTINGS: Final = ("delay", "quantile", "at_most", "extra", "idempotent")

_MOST: Final = 10
"""Maximum number of sends. gRPC allows five."""

_SAMPLES: Final = 1000
_NEEDED: Final = 20
_EVERY: Final = 20

_LEAST: Final = 0.001
"""The shortest delay that a quantile gives, in seconds, as in Finagle."""

# Hedges a second on top of the extra load, so that rare requests can also be hedged.
_RESERVE: Final = 0.1


@final
class Hedge(ForkSafe):
    """Sends an attempt again when it is slow; the first success counts.

    A slow answer is often the fault of one server, or of one lost packet, and another
    try is quick. The other sends of an attempt are cancelled once its outcome is known,
    and awaited. Sends of sync functions run in threads, which cannot be cancelled: they
    run to their end, and their results are dropped.

    >>> from retrykit import Policy
    >>> Policy(hedge=Hedge("50ms", idempotent=True)).hedge
    Hedge(0.05, idempotent=True)

    A hedge can also decorate a function, without a policy. As in gRPC, a send that
    fails with an error that the policy may retry is followed by the next one at once,
    or after the delay that a hint asks for; any other error ends the attempt. If a hint
    is `GiveUp`, or asks for a longer delay than the policy allows, nothing more is
    sent, and the sends in flight continue. If all fail, the attempt fails as the send
    with that hint did; without such a hint, as its first send did, or in an HTTP client
    as its last send did.

    Args:
        delay: Time after which the next send goes out, if none has succeeded. A
            duration, >= 0; 0 sends all at once.
        quantile: In place of a fixed delay, the time within which this share of the
            last 1,000 attempts had their answers: 0 < quantile < 1. Until there are 20,
            nothing is hedged; the delay is at least 1 ms.
        at_most: Maximum number of sends of an attempt, the first included. Count, 2 to
            10.
        extra: Bound on the extra load: hedges per attempt over the last 10 s, 0 < extra
            <= 9, plus one every 10 s. 0.1 is 10 % more load; *at_most* - 1 is no bound.
            Once it is reached, nothing more is sent, and the attempt continues.
        idempotent: True, as a promise: the function may run several times at once. A
            function cannot be hedged without it. An HTTP client of
            `retrykit.integrations` does not need it: it hedges requests whose methods
            are idempotent, and those with an ``Idempotency-Key``.

    Raises:
        ConfigError: A setting is invalid.

    Source:
        gRPC A6, "Client Retries", 2017; J. Dean, L. A. Barroso, "The Tail at Scale",
        2013; the quantile of Finagle's ``BackupRequestFilter``.
    """

    @user_facing
    def __init__(
        self,
        delay: Duration | None = None,
        *,
        quantile: float | None = None,
        at_most: int = 2,
        extra: float = 0.1,
        idempotent: bool = False,
    ) -> None:
        if (delay is None) is (quantile is None):
            rule = "given, or quantile, and not both"
            raise invalid_setting(
                "delay", rule, delay, 'write Hedge("50ms", ...)', code="contradiction"
            )
        self.delay: float | None = (
            None if delay is None else parse_duration("delay", delay)
        )
        self.quantile: float | None = None
        if quantile is not None:
            self.quantile = check_number("quantile", quantile, at_most=1)
            if not 0 < self.quantile < 1:
                rule = "a number > 0 and < 1"
                raise invalid_setting(
                    "quantile", rule, quantile, "0.95 is 95 %", code="out-of-range"
                )
        self.at_most: int = check_integer(
            "at_most", at_most, at_least=2, at_most=_MOST, suggestion="the first counts"
        )
        self.extra: float = check_number("extra", extra, at_most=_MOST - 1)
        if not self.extra:
            rule = "a number > 0 and <= 9"
            raise invalid_setting(
                "extra", rule, extra, "0.1 is 10 % more load", code="out-of-range"
            )
        self.idempotent: bool = check_instance("idempotent", idempotent, bool)
        self._budget = RatioBudget(self.extra, reserve=_RESERVE)
        self._times: deque[float] = deque(maxlen=_SAMPLES)
        self._noted = 0
        self._usual: float | None = self.delay
        super().__init__()

    @property
    def current_delay(self) -> float | None:
        """The delay before the next send, in seconds; None if it is not known yet."""
        return self._usual

    @user_facing
    def __call__(self, fn: F, /) -> F:
        """Decorate a function or a coroutine function: each call is hedged.

        Raises:
            ConfigError: *fn* cannot be repeated, such as a generator function, or the
                hedge lacks ``idempotent=True``.
        """
        # Imported on demand: a policy needs this module alone.
        from retrykit._core.drivers import check_retryable  # noqa: PLC0415
        from retrykit._core.hedging import hedged  # noqa: PLC0415
        from retrykit._core.policy import Policy  # noqa: PLC0415

        check_retryable(fn)
        check_promise(self)
        call = hedged(Policy(max_attempts=1), self, fn)
        if not is_coroutine_function(fn):
            call = _with_direct_result(call, qualified_name(fn))
        return cast("F", functools.update_wrapper(call, fn))

    def may_send(self) -> bool:
        """Return whether the bound on extra load allows a hedge; if so, count it."""
        return self._budget.withdraw(None) is not None

    def give_back(self) -> None:
        """Refund a hedge that was not sent."""
        self._budget.refund(1.0)

    def begin(self) -> None:
        """Count an attempt; hedges are limited to a share of all attempts."""
        self._budget.deposit(None)

    def note(self, seconds: float) -> None:
        """Record how many seconds an attempt took until one of its sends succeeded."""
        if self.quantile is None:
            return
        with self._lock:
            self._times.append(seconds)
            self._noted += 1
            if self._noted % _EVERY == 0 and len(self._times) >= _NEEDED:
                ordered = sorted(self._times)
                index = min(int(self.quantile * len(ordered)), len(ordered) - 1)
                self._usual = max(ordered[index], _LEAST)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the hedge was made with, keyed by name."""
        return {name: getattr(self, name) for name in _SETTINGS}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, for JSON and TOML."""
        return {name: x for name, x in self.settings.items() if x is not None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hedge):
            return NotImplemented
        same: bool = self.settings == other.settings
        return same

    def __hash__(self) -> int:
        return hash(tuple(self.settings.values()))

    def __repr__(self) -> str:
        first = f"{self.delay!r}" if self.quantile is None else ""
        parts = [first] if first else []
        defaults = {"delay": self.delay, "quantile": None, "at_most": 2, "extra": 0.1}
        defaults["idempotent"] = False
        parts += [
            f"{name}={value!r}"
            for name, value in self.settings.items()
            if value != defaults[name]
        ]
        return f"Hedge({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return hedge_from_dict, (self.to_dict(),)


def _with_direct_result(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that calls *call*, and rejects an awaitable result."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        rule = "a function that returns its result directly, under a Hedge"
        reject_awaitable(name, result, rule, "make it a coroutine function")
        return result

    return checked


def check_promise(hedge: Hedge) -> None:
    """Raise a ConfigError unless a hedge is marked as idempotent."""
    if not hedge.idempotent:
        rule = "True for a function that is hedged, which may run twice at once"
        suggestion = "write idempotent=True if that does no harm"
        raise invalid_setting(
            "idempotent", rule, hedge.idempotent, suggestion, code="not-here"
        )


def check_hedge(name: str, value: object) -> Hedge:
    """Return *value* if it is a hedge, else raise a ConfigError."""
    if not isinstance(value, Hedge):
        suggestion = 'write Hedge("50ms", idempotent=True)'
        raise invalid_setting(name, "a Hedge", value, suggestion)
    return value


def hedge_from_dict(data: object) -> Hedge:
    """Return the hedge that `Hedge.to_dict` wrote."""
    if not isinstance(data, Mapping):
        raise invalid_setting("hedge", "a dict of settings of a Hedge", data)
    for key in data:
        if key not in _SETTINGS:
            rule = f"a dict with the keys {', '.join(_SETTINGS)}"
            suggestion = did_you_mean(key, _SETTINGS)
            raise invalid_setting(
                "hedge", rule, dict(data), suggestion, code="unknown-name"
            )
    return Hedge(**data)
