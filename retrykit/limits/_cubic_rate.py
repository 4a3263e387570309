"""Token bucket whose rate follows a cubic curve: state of an adaptive rate limit."""

import math
from typing import Final, NamedTuple, Self

__all__ = ["MEASURED_EVERY", "CubicRate", "start_rate"]

MEASURED_EVERY: Final = 0.5
"""The period over which calls are counted, in seconds."""

# As in the AWS SDKs: the weight of the last count in the measured rate.
_SMOOTHING: Final = 0.8
# The factor of the rate after throttling, and how steeply it grows again.
_BETA: Final = 0.7
_SCALE: Final = 0.4
# In calls per second.
_LOWEST_RATE: Final = 0.5
_LOWEST_CAPACITY: Final = 1.0
# How far the rate may exceed the measured one.
_HEADROOM: Final = 2.0


class CubicRate(NamedTuple):
    """The rate of calls, and the available tokens. Times are clock seconds.

    A state is never changed, but replaced as a whole: whatever interrupts a change, a
    limit has the old state or the new one.

    Attributes:
        limiting: Whether calls need tokens, as they do once a call has been throttled.
        fill_rate: Tokens per second.
        capacity: Maximum number of tokens.
        tokens: The available tokens; below 0, the number owed to waiting calls.
        filled: The total of tokens added since the start, including those beyond the
            capacity.
        filled_at: When tokens were last added.
        measured_rate: Number of calls that ended per second, smoothed.
        counted: Number of calls that ended since `measured_at`.
        measured_at: When the rate was last measured, rounded down to a half second; at
            first, the start, rounded down to a second.
        last_max: The rate at the last throttling, in calls per second.
        throttled_at: When a call was throttled last; before the first one, when the
            limit was made.
        window: How long after throttling the rate is `last_max` again, in seconds.
    """

    limiting: bool
    fill_rate: float
    capacity: float
    tokens: float
    filled: float
    filled_at: float
    measured_rate: float
    counted: int
    measured_at: float
    last_max: float
    throttled_at: float
    window: float

    def fill(self, now: float) -> Self:
        """Return the state with the tokens added up to now."""
        state = self if now >= self.filled_at else self._follow_clock(now)
        filled = (now - state.filled_at) * state.fill_rate
        return state._replace(
            tokens=min(state.capacity, state.tokens + filled),
            filled=state.filled + filled,
            filled_at=now,
        )

    def add(self, tokens: float) -> Self:
        """Return the state with more or fewer tokens, at most the capacity.

        Call `fill` first.
        """
        return self._replace(tokens=min(self.capacity, self.tokens + tokens))

    def after_call(self, now: float, *, throttled: bool) -> "CubicRate":
        """Return the state after a call that ended now."""
        state = self if now >= self.filled_at else self._follow_clock(now)
        # One after the other, and put together once, since every call does this.
        limiting, fill_rate, capacity, tokens, filled, filled_at = state[:6]
        measured_rate, counted, measured_at, last_max, throttled_at, window = state[6:]
        counted, half = counted + 1, _half_second(now)
        if half > measured_at:
            count = counted / (half - measured_at)
            measured_rate = count * _SMOOTHING + measured_rate * (1 - _SMOOTHING)
            counted, measured_at = 0, half
        # Until now, tokens are added at the old rate.
        new_tokens = (now - filled_at) * fill_rate
        if throttled:
            last_max = min(measured_rate, fill_rate) if limiting else measured_rate
            limiting, throttled_at = True, now
            window = (last_max * (1 - _BETA) / _SCALE) ** (1 / 3)
            rate = last_max * _BETA
        else:
            rate = _SCALE * (now - throttled_at - window) ** 3 + last_max
        rate = min(rate, _HEADROOM * measured_rate)
        tokens = min(capacity, tokens + new_tokens)
        capacity = max(rate, _LOWEST_CAPACITY)
        return CubicRate(
            limiting,
            max(rate, _LOWEST_RATE),
            capacity,
            min(capacity, tokens),
            filled + new_tokens,
            now,
            measured_rate,
            counted,
            measured_at,
            last_max,
            throttled_at,
            window,
        )

    def _follow_clock(self, now: float) -> Self:
        """Return the state with its times moved back, after the clock was set back.

        A measurement in progress continues.
        """
        return self._replace(
            filled_at=now,
            measured_at=min(self.measured_at, _half_second(now)),
            throttled_at=self.throttled_at - (self.filled_at - now),
        )


def start_rate(now: float) -> CubicRate:
    """Return the state of a limit that has seen no call."""
    return CubicRate(
        limiting=False,
        fill_rate=1.0,
        capacity=_LOWEST_CAPACITY,
        tokens=0.0,
        filled=0.0,
        filled_at=now,
        measured_rate=0.0,
        counted=0,
        # As in botocore, though the rate is measured in half seconds.
        measured_at=math.floor(now),
        last_max=0.0,
        throttled_at=now,
        window=0.0,
    )


def _half_second(now: float) -> float:
    return math.floor(now / MEASURED_EVERY) * MEASURED_EVERY
