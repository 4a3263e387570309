"""Adaptive limits: algorithms that find out how many calls may run at once.

An algorithm is told how long each call took, and returns the new limit. It is not
thread-safe by itself: its caller holds a lock.

A call that took no measurable time, as in virtual time, says nothing about the service
and leaves the limit as it is; but if it was dropped, `AIMD` and `Vegas` lower the
limit.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast, final

from retrykit._internal.durations import Duration, parse_positive_duration
from retrykit._internal.validation import (
    check_integer,
    check_number,
    did_you_mean,
    invalid_setting,
    user_facing,
)
from retrykit.schedules._randomness import call_random, new_seed, uniform_between

__all__ = ["AIMD", "AdaptiveLimit", "Gradient2", "Vegas", "adaptive_from_dict"]


class AdaptiveLimit(ABC):
    """An algorithm that adapts a limit to how long calls take.

    Two algorithms of the same class are equal if their settings are. A copy has the
    same settings, and starts over.

    Attributes:
        kind: Its name in data.
        limit: How many calls may run at once now. Count, >= 1.
    """

    kind: ClassVar[str]
    limit: int

    @abstractmethod
    def sample(self, *, rtt: float, in_flight: int, dropped: bool) -> int:
        """Adapt the limit to a call that ended.

        Args:
            rtt: How long it took, in seconds, >= 0.
            in_flight: How many calls ran when it began, itself included. Count, >= 1.
            dropped: Whether it failed. A `Concurrency` limit passes every failure, not
                only those that suggest overload.

        Returns:
            The new limit. Count, >= 1.
        """

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments that the algorithm was made with, keyed by name."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, for JSON and TOML."""
        data = {"kind": self.kind, **self.settings}
        return {name: value for name, value in data.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AdaptiveLimit) or type(other) is not type(self):
            return NotImplemented
        return self.settings == other.settings

    def __hash__(self) -> int:
        return hash((self.kind, *self.settings.values()))

    def __repr__(self) -> str:
        defaults = type(self)().settings
        arguments = [
            f"{name}={value!r}"
            for name, value in self.settings.items()
            if value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.settings)


def _restore(kind: Any, settings: dict[str, Any]) -> AdaptiveLimit:
    return cast("AdaptiveLimit", kind(**settings))


@final
class AIMD(AdaptiveLimit):
    """Raises the limit by one while calls succeed, and cuts it when a call is dropped.

    Additive increase, multiplicative decrease: choose it if the server refuses calls or
    lets them time out when there are too many. A call that takes longer than *timeout*
    counts as dropped. The limit grows only if at least half of it is in use.

    >>> aimd = AIMD()
    >>> aimd.sample(rtt=0.1, in_flight=10, dropped=False)
    21
    >>> for _ in range(20):
    ...     limit = aimd.sample(rtt=0.1, in_flight=30, dropped=False)
    >>> limit, aimd.sample(rtt=0.1, in_flight=30, dropped=True)
    (41, 36)

    Args:
        initial_limit: The limit at first. Count, *min_limit* to *max_limit*.
        min_limit: The smallest limit. Count, >= 1.
        max_limit: The largest limit. Count, >= *min_limit*.
        backoff_ratio: Share of the limit that is left, rounded down to a count, when a
            call is dropped, 0.5 <= ratio < 1.
        timeout: Calls that take longer count as dropped. A duration > 0.

    Source:
        ``AIMDLimit`` of Netflix's concurrency-limits, with its defaults; D. Chiu,
        R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion
        Avoidance in Computer Networks", 1989.
    """

    kind = "aimd"

    @user_facing
    def __init__(
        self,
        *,
        initial_limit: int = 20,
        min_limit: int = 20,
        max_limit: int = 200,
        backoff_ratio: float = 0.9,
        timeout: Duration = 5.0,
    ) -> None:
        self.min_limit: int = check_integer("min_limit", min_limit, at_least=1)
        self.max_limit: int = _check_max(max_limit, self.min_limit)
        self.initial_limit: int = _check_initial(
            initial_limit, self.min_limit, self.max_limit
        )
        ratio = check_number("backoff_ratio", backoff_ratio, at_least=0.5, at_most=1)
        if ratio == 1:
            rule = "a number >= 0.5 and < 1"
            raise invalid_setting(
                "backoff_ratio", rule, backoff_ratio, code="out-of-range"
            )
        self.backoff_ratio: float = ratio
        self.timeout: float = parse_positive_duration("timeout", timeout)
        self.limit: int = self.initial_limit

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the algorithm was made with, keyed by name."""
        names = ("initial_limit", "min_limit", "max_limit", "backoff_ratio", "timeout")
        return {name: getattr(self, name) for name in names}

    def sample(self, *, rtt: float, in_flight: int, dropped: bool) -> int:
        """Adapt the limit to a call that ended."""
        limit = self.limit
        if dropped or rtt > self.timeout:
            limit = int(limit * self.backoff_ratio)
        elif rtt > 0 and in_flight * 2 >= limit:
            limit += 1
        self.limit = min(self.max_limit, max(self.min_limit, limit))
        return self.limit


class Vegas(AdaptiveLimit):
    """Finds the limit at which a few calls queue, from the shortest time of any call.

    At a limit of L calls, ``L * (1 - shortest / rtt)``, rounded up, wait in a queue, as
    all the time beyond the shortest is waiting. With ``s = log10(L)``, rounded down and
    at least 1, the limit grows by ``beta * s`` if at most s calls queue, and by s if
    fewer than ``alpha * s`` do; it shrinks by s if more than ``beta * s`` do, or if the
    call was dropped. A call that was not dropped changes the limit only if at least
    half of it is in use. Choose this algorithm if calls are alike: the shortest time
    must be one that all of them could take.

    The shortest time is measured again after a random number of calls, by default 15 to
    30 times the limit: it becomes the time of the next call. A call that sets the
    shortest time does not change the limit, even if it was dropped.

    >>> vegas = Vegas(initial_limit=10)
    >>> vegas.sample(rtt=0.010, in_flight=10, dropped=False)
    10
    >>> vegas.sample(rtt=0.010, in_flight=10, dropped=False)
    16
    >>> vegas.sample(rtt=0.050, in_flight=16, dropped=False)
    15

    Args:
        initial_limit: The limit at first. Count, 1 to *max_limit*.
        max_limit: The largest limit; the smallest is 1. Count, >= 1.
        alpha: Number of queued calls below which the limit grows, in units of s. Count,
            >= 1.
        beta: Number of queued calls above which it shrinks, in the same unit. Count,
            >= *alpha*.
        smoothing: The share of a change that is made at once, 0 < share <= 1.
        probe_every: Largest number of calls until the shortest time is measured again,
            as a multiple of the limit; the smallest is half of it. Count, >= 1.
        seed: Seed of the random numbers of calls between measurements. Integer >= 0; by
            default a new one.

    Source:
        ``VegasLimit`` of Netflix's concurrency-limits, with its defaults; L. Brakmo,
        L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
        Internet", 1995.
    """

    kind = "vegas"

    @user_facing
    def __init__(  # noqa: PLR0913  its settings
        self,
        *,
        initial_limit: int = 20,
        max_limit: int = 1000,
        alpha: int = 3,
        beta: int = 6,
        smoothing: float = 1.0,
        probe_every: int = 30,
        seed: int | None = None,
    ) -> None:
        self.max_limit: int = check_integer("max_limit", max_limit, at_least=1)
        self.initial_limit: int = _check_initial(initial_limit, 1, self.max_limit)
        self.alpha: int = check_integer("alpha", alpha, at_least=1)
        self.beta: int = check_integer("beta", beta, at_least=1)
        if self.beta < self.alpha:
            rule = f"an integer >= alpha, {self.alpha}"
            raise invalid_setting("beta", rule, beta, code="contradiction")
        self.smoothing: float = _check_smoothing(smoothing)
        self.probe_every: int = check_integer("probe_every", probe_every, at_least=1)
        self.seed: int | None = seed
        if seed is not None:
            self.seed = check_integer("seed", seed, at_least=0)
        self.limit: int = self.initial_limit
        self._estimate = float(self.initial_limit)
        self._shortest = math.inf
        self._draws = new_seed() if self.seed is None else self.seed
        self._probes = -1
        self._start_probe()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the algorithm was made with, keyed by name."""
        names = ("initial_limit", "max_limit", "alpha", "beta", "smoothing")
        return {name: getattr(self, name) for name in (*names, "probe_every", "seed")}

    def sample(self, *, rtt: float, in_flight: int, dropped: bool) -> int:
        """Adapt the limit to a call that ended."""
        if rtt > 0:
            self._samples += 1
            if self._samples >= self._share * self.probe_every * self._estimate:
                self._start_probe()
                self._shortest = rtt
                return self.limit
            if rtt < self._shortest:
                self._shortest = rtt
                return self.limit
        elif not dropped:
            return self.limit
        estimate = self._estimate
        wanted = self._next_estimate(estimate, rtt, in_flight, dropped=dropped)
        if wanted == estimate:
            return self.limit
        wanted = max(1.0, min(self.max_limit, wanted))
        share = self.smoothing
        self._estimate = (1 - share) * estimate + share * wanted
        self.limit = int(self._estimate)
        return self.limit

    def shrink(self, limit: float) -> float:
        """Return a limit that is smaller than *limit* by s, its rounded logarithm."""
        return limit - _log10(limit)

    def _next_estimate(
        self, limit: float, rtt: float, in_flight: int, *, dropped: bool
    ) -> float:
        if dropped:
            return self.shrink(limit)
        if in_flight * 2 < limit:
            return limit
        queued = math.ceil(limit * (1 - self._shortest / rtt))
        step = _log10(limit)
        if queued <= step:
            return limit + self.beta * step
        if queued < self.alpha * step:
            return limit + step
        if queued > self.beta * step:
            return self.shrink(limit)
        return limit

    def _start_probe(self) -> None:
        """Start counting the calls until the shortest time is measured again."""
        self._samples = 0
        self._probes += 1
        random = call_random(self._draws, self._probes)
        self._share = uniform_between(0.5, 1.0, random)


@final
class Gradient2(AdaptiveLimit):
    """Shrinks the limit when calls take longer than average.

    The new limit is ``limit * gradient + queue_size``, where the gradient is
    ``tolerance * average / rtt``, at least 0.5 and at most 1. The share *smoothing* of
    the change is made at once. The average is the mean of the first 10 calls, then an
    exponential moving average of *long_window* calls; a call that took less than half
    of the average lowers it by another 5 %. The limit changes only if at least half of
    it is in use. Choose this algorithm if calls differ. A dropped call counts like any
    other: only its time matters.

    >>> gradient = Gradient2(smoothing=1.0)
    >>> gradient.sample(rtt=0.1, in_flight=20, dropped=False)
    24
    >>> gradient.sample(rtt=0.9, in_flight=20, dropped=False)
    24
    >>> gradient.limit
    24

    Args:
        initial_limit: The limit at first. Count, *min_limit* to *max_limit*.
        min_limit: The smallest limit. Count, >= 1.
        max_limit: The largest limit. Count, >= *min_limit*.
        smoothing: The share of a change that is made at once, 0 < share <= 1.
        queue_size: How many calls may queue: the limit grows by as many while calls are
            not slow. Count, >= 0.
        long_window: Number of calls in the average. Count, >= 1.
        tolerance: How many times longer than the average a call may take. Factor, >= 1.

    Source:
        ``Gradient2Limit`` of Netflix's concurrency-limits, with its defaults.
    """

    kind = "gradient2"

    @user_facing
    def __init__(  # noqa: PLR0913  its settings
        self,
        *,
        initial_limit: int = 20,
        min_limit: int = 20,
        max_limit: int = 200,
        smoothing: float = 0.2,
        queue_size: int = 4,
        long_window: int = 600,
        tolerance: float = 1.5,
    ) -> None:
        self.min_limit: int = check_integer("min_limit", min_limit, at_least=1)
        self.max_limit: int = _check_max(max_limit, self.min_limit)
        self.initial_limit: int = _check_initial(
            initial_limit, self.min_limit, self.max_limit
        )
        self.smoothing: float = _check_smoothing(smoothing)
        self.queue_size: int = check_integer("queue_size", queue_size, at_least=0)
        self.long_window: int = check_integer("long_window", long_window, at_least=1)
        self.tolerance: float = check_number("tolerance", tolerance, at_least=1)
        self.limit: int = self.initial_limit
        self._estimate = float(self.initial_limit)
        self._average = self._sum = 0.0
        self._warmed_up = 0

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the algorithm was made with, keyed by name."""
        names = ("initial_limit", "min_limit", "max_limit", "smoothing", "queue_size")
        return {
            name: getattr(self, name) for name in (*names, "long_window", "tolerance")
        }

    def sample(self, *, rtt: float, in_flight: int, dropped: bool) -> int:  # noqa: ARG002
        """Adapt the limit to a call that ended."""
        if rtt <= 0:
            return self.limit
        average = self._add(rtt)
        if average / rtt > _MOST_DRIFT:
            self._average *= _DECAY
        estimate = self._estimate
        if in_flight < estimate / 2:
            return self.limit
        gradient = max(0.5, min(1.0, self.tolerance * average / rtt))
        wanted = estimate * gradient + self.queue_size
        wanted = estimate * (1 - self.smoothing) + wanted * self.smoothing
        self._estimate = max(self.min_limit, min(self.max_limit, wanted))
        self.limit = int(self._estimate)
        return self.limit

    def _add(self, rtt: float) -> float:
        """Add the time of a call to the average, and return the average."""
        if self._warmed_up < _WARM_UP:
            self._warmed_up += 1
            self._sum += rtt
            self._average = self._sum / self._warmed_up
        else:
            factor = 2 / (self.long_window + 1)
            self._average = self._average * (1 - factor) + rtt * factor
        return self._average


# In calls.
_WARM_UP: Final = 10
_MOST_DRIFT: Final = 2
_DECAY: Final = 0.95

_KINDS: Final[dict[str, type[AdaptiveLimit]]] = {
    each.kind: each for each in (AIMD, Gradient2, Vegas)
}


def adaptive_from_dict(data: object) -> AdaptiveLimit:
    """Return the algorithm described by plain data, as `to_dict` writes it.

    >>> adaptive_from_dict({"kind": "aimd", "max_limit": 50})
    AIMD(max_limit=50)
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(kind, str) or kind not in _KINDS:
        rule = f"a dict whose kind is one of {', '.join(_KINDS)}"
        raise invalid_setting(
            "limit", rule, data, did_you_mean(kind, _KINDS), code="unknown-name"
        )
    make: Any = _KINDS[kind]
    keys = ["kind", *make().settings]
    for key in data:
        if key not in keys:
            rule = f"a dict with the keys {', '.join(keys)}"
            raise invalid_setting(
                "limit", rule, dict(data), did_you_mean(key, keys), code="unknown-name"
            )
    return _restore(make, {name: data[name] for name in keys[1:] if name in data})


def _log10(limit: float) -> int:
    """Return the decimal logarithm of a limit, rounded down, and at least 1."""
    return max(1, len(str(int(limit))) - 1)


def _check_max(max_limit: object, min_limit: int) -> int:
    number = check_integer("max_limit", max_limit, at_least=1)
    if number < min_limit:
        rule = f"an integer >= min_limit, {min_limit}"
        raise invalid_setting(
            "max_limit", rule, max_limit, "set min_limit, too", code="contradiction"
        )
    return number


def _check_initial(initial_limit: object, min_limit: int, max_limit: int) -> int:
    number = check_integer("initial_limit", initial_limit, at_least=1)
    if not min_limit <= number <= max_limit:
        rule = f"an integer from {min_limit} to {max_limit}, the other limits"
        suggestion = "set min_limit or max_limit, too"
        raise invalid_setting(
            "initial_limit", rule, initial_limit, suggestion, code="contradiction"
        )
    return number


def _check_smoothing(smoothing: object) -> float:
    share = check_number("smoothing", smoothing, at_most=1)
    if not share:
        raise invalid_setting(
            "smoothing", "a number > 0 and <= 1", smoothing, code="out-of-range"
        )
    return share
