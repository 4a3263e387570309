"""The load of a simulation: when calls begin."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, cast, final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.shares import parse_share
from retrykit._internal.validation import (
    check_integer,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.simulate._draws import Stream
from retrykit.simulate._events import Events, nanoseconds
from retrykit.simulate._named_values import NamedValue
from retrykit.simulate._server import Server

__all__ = ["Arrivals", "ClosedLoad", "Load", "OpenLoad", "RecordedLoad", "Users"]
__all__ += ["parse_load"]

_MOST_USERS: Final = 1_000_000


@final
class Users(NamedValue):
    """Users who wait for the end of a call, think, and make the next one.

    >>> Users(200, think="5s").think
    5.0

    Args:
        number: Number of users. Count, 1 to 1,000,000.
        think: Mean of the time between two calls of a user, which is exponentially
            distributed. A duration, > 0; 2 s by default.

    Raises:
        ConfigError: A setting is invalid.
    """

    __slots__ = ("number", "think")
    number: int
    think: float

    @user_facing
    def __init__(self, number: int, think: Duration = 2.0) -> None:
        check_integer("number", number, at_least=1, at_most=_MOST_USERS)
        seconds = parse_duration("think", think)
        if not nanoseconds(seconds):
            raise invalid_setting("think", "a duration > 0", think, code="out-of-range")
        Frozen.__init__(self, number=number, think=seconds)


Load = str | float | Users | Sequence[float]
"""Share of the capacity, users, or the times of recorded calls, in seconds."""

Begin = Callable[[int | None], None]
"""Begins a call of the user with this number, or, if the load is open, of None."""


@final
class OpenLoad:
    """Calls that begin independently of each other: a Poisson process.

    Attributes:
        rate: Calls per second.
        normal: Calls per second without an outage.
        mean: Mean of the time between two calls, in nanoseconds.
        text: The load, for people.
    """

    def __init__(self, rate: float, text: str) -> None:
        self.rate = self.normal = rate
        self.text = text
        self.mean = nanoseconds(1 / rate)

    def start(self, events: Events, seed: int, begin: Begin) -> None:
        """Schedule the beginnings of calls, one after another."""
        times = self.times(seed)

        def arrive(_: object) -> None:
            events.at(next(times), arrive, None)
            begin(None)

        events.at(next(times), arrive, None)

    def times(self, seed: int) -> Iterator[int]:
        """Yield when calls begin, in nanoseconds, in ascending order, endlessly."""
        return accumulate(Stream(seed, "arrivals").exponentials(self.mean))


@final
class RecordedLoad:
    """Calls that begin at recorded times.

    Attributes:
        rate: Calls per second, on average.
        normal: 0, since the calls before the outage are counted instead.
        text: The load, for people.
    """

    normal = 0.0

    def __init__(self, times: Sequence[float]) -> None:
        self._times = [nanoseconds(each) for each in times]
        self.rate = len(times) / max(times[-1], 1.0)
        self.text = f"{len(times)} recorded calls"

    def start(self, events: Events, seed: int, begin: Begin) -> None:
        """Schedule the beginnings of calls, one after another."""
        times = self.times(seed)

        def arrive(_: object) -> None:
            following = next(times, None)
            if following is not None:
                events.at(following, arrive, None)
            begin(None)

        events.at(next(times), arrive, None)

    def times(self, seed: int) -> Iterator[int]:  # noqa: ARG002
        """Yield when calls begin, in nanoseconds, in ascending order."""
        return iter(self._times)


@final
class ClosedLoad:
    """Calls of users, each of whom makes one at a time.

    Attributes:
        users: The users.
        rate: Calls per second if calls took no time: the highest possible rate.
        normal: 0, since the calls before the outage are counted instead.
        text: The load, for people.
    """

    normal = 0.0
    _events: Events
    _begin: Begin
    _thinking: Iterator[int]

    def __init__(self, users: Users) -> None:
        self.users, self._mean = users, nanoseconds(users.think)
        self.rate = users.number / users.think
        self.text = repr(users)

    def start(self, events: Events, seed: int, begin: Begin) -> None:
        """Schedule the first call of each user, after thinking."""
        self._events, self._begin = events, begin
        self._thinking = Stream(seed, "thinking").exponentials(self._mean)
        for user in range(self.users.number):
            self.end(user)

    def end(self, user: int | None) -> None:
        """Schedule the next call of a user whose call has ended."""
        later = self._events.now + next(self._thinking)
        self._events.at(later, self._begin, user)


Arrivals = OpenLoad | RecordedLoad | ClosedLoad
"""When calls begin."""


def parse_load(load: object, server: Server) -> Arrivals:
    """Return the load that an argument of `simulate` describes.

    Raises:
        ConfigError: The load has another form, or the server cannot serve it.
    """
    arrivals: Arrivals
    if isinstance(load, Users):
        arrivals = ClosedLoad(load)
    elif isinstance(load, Sequence) and not isinstance(load, str | bytes | bytearray):
        arrivals = RecordedLoad(_check_times(cast("Sequence[float]", load)))
    else:
        return OpenLoad(parse_share("load", load) * server.capacity, str(load))
    if arrivals.rate >= server.capacity:
        rule = f"below the capacity of the server, {server.capacity:g} calls per second"
        found = f"on average {arrivals.rate:.4g}"
        suggestion = f"it has {found}: a queue without an outage would grow; give the "
        raise invalid_setting(
            "load",
            rule,
            load,
            f"{suggestion}server more capacity",
            code="contradiction",
        )
    return arrivals


def _check_times(times: Sequence[float]) -> Sequence[float]:
    if not times:
        raise invalid_setting("load", "one time of a call or more", times)
    before = 0.0
    for time in times:
        check_number("times of load", time, suggestion="they are in seconds")
        if time < before:
            rule = f"times in ascending order, so >= {before:g} here"
            raise invalid_setting("load", rule, time, "sort them", code="out-of-range")
        before = time
    return times
