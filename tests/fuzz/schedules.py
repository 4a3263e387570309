"""Targets: schedules as expressions and as data, and durations."""

import contextlib
import pickle
from datetime import timedelta
from inspect import signature
from itertools import islice

from retrykit import ConfigError
from retrykit._internal.durations import format_duration, parse_duration
from retrykit.schedules import Schedule
from retrykit.schedules._kinds import CONSTRUCTORS
from retrykit.schedules._parsing import (
    parse_schedule,
    schedule_from_data,
    schedule_to_text,
)
from retrykit.schedules._randomness import MAX_DELAY
from tests.fuzz.target import Target
from tests.fuzz.values import altered, anything, literal, maybe, mutated, text

__all__ = ["TARGETS", "check_schedule", "duration", "expression", "schedule_data"]

_UNITS = ("us", "ms", "s", "m", "h", "d", "w")
_CONSTRUCTORS = {
    name: [*signature(build).parameters] for name, build in CONSTRUCTORS.items()
}
_METHODS = {
    "cap": ["limit"],
    "at_least": ["limit"],
    "round_down": ["unit"],
    "take": ["retries"],
    "within": ["total"],
    "full_jitter": [],
    "equal_jitter": [],
    "jitter": ["factor"],
    "without_jitter": [],
    "then": ["other"],
    "switch": ["after", "to"],
}
_COUNTS = ["0", "1", "2", "3", "5", "20", "10**9", "1000000"]
_FACTORS = ["0", "0.2", "0.5", "1", "1.5", "2", "3", "1e300"]
_CHOICES = {
    **dict.fromkeys(["retries", "after"], _COUNTS),
    **dict.fromkeys(["factor", "rate", "exponent", "multiplier"], _FACTORS),
    "repeat_last": ["True", "False", "true"],
}
_NEAR = (1, 2, 3, 7, 100)
_FAR_RETRIES = (10**4, 10**6, 10**9, 10**12)
"""Numbers of retries, also of those that no call makes but data may name."""


def duration(random):
    """Return a duration as a string; some are invalid."""
    amount = random.choice(["0", "1", "5", "30", "0.5", "1.5", "100", "9" * 15, "007"])
    string = amount + random.choice(_UNITS)
    if maybe(random, 0.2):
        string += random.choice(["", " "]) + duration(random)
    return mutated(random, string) if maybe(random, 0.1) else string


def expression(random, levels=4):
    """Return an expression of schedules; some are invalid."""
    kind = random.random()
    if levels and kind < 0.5:
        return _method(random, levels)
    if levels and kind < 0.6:
        sign = random.choice("+|&")
        parts = expression(random, levels - 1), expression(random, levels - 1)
        return f"({parts[0]} {sign} {parts[1]})"
    if levels and kind < 0.65:
        return f"{_argument(random, 'factor')} * ({expression(random, levels - 1)})"
    return _constructor(random)


def _constructor(random):
    name = random.choice([*_CONSTRUCTORS])
    given = [
        f"{parameter}={_argument(random, parameter)}"
        if place or maybe(random, 0.2)
        else _argument(random, parameter)
        for place, parameter in enumerate(_CONSTRUCTORS[name])
        if not place or maybe(random, 0.5)
    ]
    return f"{name}({', '.join(given)})"


def _method(random, levels):
    """Return an expression with methods; some are repeated very often."""
    string = f"({expression(random, levels - 1)})"
    for _ in range(random.choice([1, 1, 2, 3])):
        name = random.choice([*_METHODS])
        names = _METHODS[name]
        given = ", ".join(f"{each}={_argument(random, each)}" for each in names)
        if names and maybe(random, 0.5):
            given = ", ".join(_argument(random, each) for each in names)
        often = random.choice([2, 10, 30, 90, 99, 101]) if maybe(random, 0.03) else 1
        string += f".{name}({given})" * often
    return string


def _argument(random, name):
    kind = random.random()
    if kind < 0.05:
        return literal(random) if maybe(random, 0.7) else text(random)
    if name in _CHOICES:
        return random.choice(_CHOICES[name])
    if name in {"other", "to", "delays"}:
        lists = ("[]", "[1]", "[1, '5s', 60]", "[0.1, 0.2]", "[0, 0]")
        return random.choice(lists) if maybe(random, 0.5) else expression(random, 1)
    if maybe(random, 0.5):
        return repr(duration(random))
    return random.choice(["0", "1", "0.5", "1e-6", "60", "1e300", "5e-324", "3600"])


def schedule_text(random):
    """Return a schedule as a string; some are invalid."""
    if maybe(random, 0.1):
        string = ", ".join(duration(random) for _ in range(random.randint(0, 5)))
    else:
        string = expression(random)
    if maybe(random, 0.01):
        nest = random.choice([2, 50, 99, 100, 300, 5000])
        string = random.choice(["(" * nest + string + ")" * nest, "-" * nest + string])
    return mutated(random, string) if maybe(random, 0.25) else string


def schedule_data(random):
    """Return a schedule as data: a string or a list, some of them altered."""
    if maybe(random, 0.7):
        return schedule_text(random)
    data = [duration(random) for _ in range(random.randint(0, 3))]
    return altered(random, data) if maybe(random, 0.25) else data


def check_schedule(schedule, random):
    """Check the bounds, draws and serialized forms of a schedule."""
    for retry in _NEAR:
        _check_bounds(schedule.bounds(retry))
    # A far retry may be rejected if all delays before it had to be summed.
    with contextlib.suppress(ConfigError):
        _check_bounds(schedule.bounds(random.choice(_FAR_RETRIES)))
    seed = random.randint(0, 2**53)
    for retry, delay in enumerate(islice(schedule.draw(seed), 5), 1):
        low, high = schedule.bounds(retry)
        assert low <= delay <= high, (retry, low, delay, high)
    hash(schedule)
    repr(schedule.without_jitter())
    assert parse_schedule(repr(schedule)) == schedule, "repr reads as another"
    assert schedule_to_text(schedule) == repr(schedule)
    assert pickle.loads(pickle.dumps(schedule)) == schedule  # noqa: S301  pickled here


def _check_bounds(bounds):
    assert bounds is None or 0 <= bounds[0] <= bounds[1] <= MAX_DELAY, bounds


def _duration(random):
    kind = random.random()
    if kind < 0.7:
        string = duration(random)
        return mutated(random, string) if maybe(random, 0.4) else string
    if kind < 0.75:
        return timedelta(seconds=random.choice([-1, 0, 1.5, 8e13, 1e-6]))
    if kind < 0.752:
        return random.choice(["1s", "1.5ms ", "9" * 15 + "w", "1"]) * 10**5
    return anything(random)


def _check_duration(value, _random):
    assert isinstance(value, float)
    assert 0 <= value <= MAX_DELAY, value
    assert parse_duration("duration", value) == value
    string = format_duration(value)
    assert string.isprintable(), string


def _read_duration(value):
    return parse_duration("duration", value)


def _read_data(data):
    schedule = schedule_from_data(data)
    assert isinstance(schedule, Schedule)
    return schedule


TARGETS = (
    Target("schedules", 220, schedule_text, parse_schedule, check_schedule),
    Target("schedule-data", 100, schedule_data, _read_data, check_schedule),
    Target("durations", 130, _duration, _read_duration, _check_duration),
)
