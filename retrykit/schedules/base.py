"""What a schedule is, and the methods that build one from another.

A schedule answers two questions about the retry with a given number: which
delay goes before it, and between which bounds that delay lies. It knows
nothing of calls, errors or time. The values that the methods return are
written in `retrykit.schedules.transforms` and `retrykit.schedules.composition`,
and found in the table of `retrykit.schedules.kinds`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import count
from typing import ClassVar

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen, fields_of
from retrykit._internal.validation import check_integer, check_number, invalid_setting
from retrykit.schedules.randomness import Random, call_random, new_seed

__all__ = ["Bounds", "Schedule", "as_operand", "as_schedule", "iter_parts"]

Bounds = tuple[float, float]
"""The shortest and the longest delay that may be drawn, in seconds."""


class Schedule(Frozen, ABC):
    """A source of delays: an immutable value that other values are made of.

    Retries count from 1: retry 1 is the attempt after the first one. When a
    schedule has no delay for a retry it has ended, and retrying stops there.

    >>> from retrykit.schedules import exponential
    >>> polite = exponential(0.5).cap("10s").take(6)
    >>> list(polite.draw())
    [0.5, 1.0, 2.0, 4.0, 8.0, 10.0]
    >>> polite.full_jitter().bounds(3)
    (0.0, 2.0)

    Methods apply in the order in which they stand: ``.cap(60).jitter(0.5)``
    caps the interval, ``.jitter(0.5).cap(60)`` the randomised interval.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""
    """Its name in data and in expressions; empty for classes of the user's."""
    needs_parentheses: ClassVar[bool] = False
    """Whether its expression needs parentheses inside of another."""

    @abstractmethod
    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        """Return the delay before a retry.

        Args:
            retry: Number of the retry, >= 1.
            previous: The delay before the retry before, in seconds; None if
                there was none.
            random: Source of chance; only its `random` is called.

        Returns:
            Seconds, finite and >= 0; None when the schedule has ended.
        """

    @abstractmethod
    def bounds(self, retry: int, /) -> Bounds | None:
        """Return the bounds of the delay before a retry.

        No delay that is drawn leaves them, and they are exact, with one
        exception: a schedule made from `decorrelated` by changing its delays
        may stay well within them, since its walk goes on from what was drawn.

        Args:
            retry: Number of the retry, >= 1.

        Returns:
            The shortest and the longest delay, in seconds; None when the
            schedule has ended.
        """

    def draw(self, seed: int | None = None) -> Iterator[float]:
        """Draw the delays of one call, in order.

        Args:
            seed: The call's seed, an integer; a fresh one by default.

        Returns:
            A one-shot iterator of seconds, endless if the schedule is.
        """
        seed = new_seed() if seed is None else seed
        previous: float | None = None
        for retry in count(1):  # pragma: no branch  (a count has no end)
            previous = self.delay(retry, previous, call_random(seed=seed, retry=retry))
            if previous is None:
                return
            yield previous

    def without_jitter(self) -> "Schedule":
        """Return this schedule with every jitter taken out of it.

        >>> from retrykit.schedules import constant
        >>> constant(3).full_jitter().cap(60).without_jitter()
        constant(3.0).cap(60.0)
        """
        calm = {
            name: part.without_jitter()
            for name, part in fields_of(self).items()
            if isinstance(part, Schedule)
        }
        same: Schedule = self.replace(**calm) if calm else self
        return same

    def then(self, other: object) -> "Schedule":
        """Continue with *other*, from its first delay, when this one ends.

        >>> from retrykit.schedules import constant, exponential
        >>> list(constant(9).take(2).then(exponential(1).take(3)).draw())
        [9.0, 9.0, 1.0, 2.0, 4.0]

        Raises:
            ConfigError: This schedule never ends, or *other* is no schedule.
        """
        # Imported here: most schedules are followed by no other.
        from retrykit.schedules.structure import is_endless  # noqa: PLC0415

        if is_endless(self):
            rule = "a schedule that ends, where another follows with .then()"
            raise invalid_setting(
                "schedule", rule, self, "give it a length with .take(n)"
            )
        return self._transform("then", other=as_schedule(other))

    def switch(self, *, after: int, to: object) -> "Schedule":
        """Use *to* for the retries beyond *after*; numbering continues.

        >>> from retrykit.schedules import constant, linear
        >>> list(constant(9).switch(after=2, to=linear(1)).take(4).draw())
        [9.0, 9.0, 3.0, 4.0]

        Args:
            after: The last retry of this schedule. Count, >= 0.
            to: The schedule that answers for every later retry.

        Raises:
            ConfigError: *after* is no such count, or *to* is no schedule.
        """
        after = check_integer("after", after, at_least=0)
        return self._transform("switch", after=after, to=as_schedule(to))

    def cap(self, limit: Duration) -> "Schedule":
        """Let no delay be longer than *limit*, a duration >= 0.

        Raises:
            ConfigError: *limit* is no duration.
        """
        return self._transform("cap", limit=parse_duration("limit", limit))

    def at_least(self, limit: Duration) -> "Schedule":
        """Let no delay be shorter than *limit*, a duration >= 0.

        Raises:
            ConfigError: *limit* is no duration.
        """
        return self._transform("at_least", limit=parse_duration("limit", limit))

    def round_down(self, unit: Duration) -> "Schedule":
        """Let every delay be a whole number of times *unit*, a duration > 0.

        >>> from retrykit.schedules import constant
        >>> list(constant("2.9s").round_down("1s").take(1).draw())
        [2.0]

        Raises:
            ConfigError: *unit* is no duration > 0.
        """
        step = parse_duration("unit", unit)
        if not step:
            raise invalid_setting("unit", "a duration > 0", unit)
        return self._transform("round_down", unit=step)

    def take(self, retries: int) -> "Schedule":
        """End after *retries* delays, a count >= 0.

        Raises:
            ConfigError: *retries* is no such count.
        """
        return self._transform(
            "take", retries=check_integer("retries", retries, at_least=0)
        )

    def within(self, total: Duration) -> "Schedule":
        """End before the delays could sum to more than *total*.

        The sum is that of the longest delays that may be drawn, so the length
        does not depend on chance. Delays are added up one by one: for a retry
        more than 60,000 beyond the last one asked for, divided by the number of
        schedules that this one is made of, `bounds` and `delay` raise a
        `ConfigError`, unless the end is found before.

        >>> from retrykit.schedules import constant
        >>> list(constant(4).within(10).draw())
        [4.0, 4.0]

        Args:
            total: A duration, >= 0.

        Raises:
            ConfigError: *total* is no duration.
        """
        return self._transform("within", total=parse_duration("total", total))

    def full_jitter(self) -> "Schedule":
        """Spread each delay over all that is shorter: 0 to the delay."""
        return self._transform("full_jitter")

    def equal_jitter(self) -> "Schedule":
        """Spread each delay over its upper half."""
        return self._transform("equal_jitter")

    def jitter(self, factor: float) -> "Schedule":
        """Spread each delay by *factor* of itself, less and more: 0 to 1.

        >>> from retrykit.schedules import constant
        >>> constant(2).jitter(0.5).bounds(1)
        (1.0, 3.0)

        Raises:
            ConfigError: *factor* is no number from 0 to 1.
        """
        factor = check_number("factor", factor, at_most=1)
        return self._transform("jitter", factor=factor)

    def __add__(self, other: object) -> "Schedule":
        """Wait for both, one after the other; end when either ends."""
        return self._combine("sum", other)

    def __radd__(self, other: int) -> "Schedule":
        """Return this schedule where *other* is the 0 that `sum` begins with."""
        return self if type(other) is int and other == 0 else NotImplemented

    def __or__(self, other: object) -> "Schedule":
        """Continue while either continues, with the smaller delay."""
        return self._combine("union", other)

    def __and__(self, other: object) -> "Schedule":
        """Continue while both continue, with the larger delay."""
        return self._combine("intersection", other)

    def __mul__(self, factor: float) -> "Schedule":
        """Make each delay *factor* times as long, >= 0.

        Raises:
            ConfigError: *factor* is no finite number >= 0.
        """
        return self._transform("scale", factor=check_number("factor", factor))

    __rmul__ = __mul__

    def _transform(self, kind: str, **parts: object) -> "Schedule":
        return _class_of(kind)(of=self, **parts)

    def _combine(self, kind: str, other: object) -> "Schedule":
        return _class_of(kind)(left=self, right=as_schedule(other))


def _class_of(kind: str) -> Callable[..., Schedule]:
    # Imported here: those classes are made of this module's.
    from retrykit.schedules.kinds import SCHEDULE_KINDS  # noqa: PLC0415

    return SCHEDULE_KINDS[kind]


def as_schedule(value: object) -> Schedule:
    """Return *value* if it is a schedule, else the sequence that it gives.

    Args:
        value: A schedule, a re-iterable of durations, or a generator function.

    Raises:
        ConfigError: *value* is none of these.
    """
    if isinstance(value, Schedule):
        return value
    return _class_of("sequence")(value)


def as_operand(schedule: Schedule) -> str:
    """Return the expression of a schedule that is a part of another."""
    return f"({schedule!r})" if schedule.needs_parentheses else repr(schedule)


def iter_parts(schedule: Schedule) -> Iterator[tuple[int, Schedule]]:
    """Give a schedule and all schedules inside of it, each with its level from 1.

    >>> from retrykit.schedules import constant
    >>> list(iter_parts(constant(1).cap(9)))
    [(1, constant(1.0).cap(9.0)), (2, constant(1.0))]
    """
    inside = [(1, schedule)]
    while inside:
        level, part = inside.pop()
        yield level, part
        inside += [
            (level + 1, each)
            for each in fields_of(part).values()
            if isinstance(each, Schedule)
        ]
