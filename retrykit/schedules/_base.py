"""Base class of schedules, with the methods that build one from another.

These methods return instances of the classes in `retrykit.schedules._transforms` and
`retrykit.schedules._composition`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, ClassVar, TypeVar

from retrykit._internal.durations import (
    Duration,
    parse_duration,
    parse_positive_duration,
)
from retrykit._internal.frozen import Frozen, fields_of
from retrykit._internal.validation import (
    check_instance,
    check_integer,
    check_number,
    invalid_setting,
    user_facing,
)
from retrykit.schedules._randomness import Random, call_random, new_seed

__all__ = ["Bounds", "Schedule", "ScheduleLike", "as_operand", "as_schedule"]
__all__ += ["constructor", "iter_parts"]


Bounds = tuple[float, float]
"""The shortest and the longest possible delay, in seconds."""


class Schedule(Frozen, ABC):
    """The delays between attempts, as an immutable value.

    Retries count from 1: retry 1 is the second attempt. When a schedule has no delay
    for a retry, it has ended, and retrying stops.

    >>> from retrykit.schedules import exponential
    >>> polite = exponential(0.5).cap("10s").take(6)
    >>> list(polite.draw())
    [0.5, 1.0, 2.0, 4.0, 8.0, 10.0]
    >>> polite.full_jitter().bounds(3)
    (0.0, 2.0)

    Methods apply from left to right: ``.cap(60).jitter(0.5)`` caps the delay before
    jitter, ``.jitter(0.5).cap(60)`` after it. Invalid arguments raise
    `ConfigError`, as does `then` after a schedule that never ends.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""
    """The name of this kind of schedule; empty for user-defined classes."""
    needs_parentheses: ClassVar[bool] = False
    """Whether the schedule's expression needs parentheses inside another."""

    @abstractmethod
    def delay(
        self, retry: int, previous: float | None, random: Random, /
    ) -> float | None:
        """Return the delay before a retry.

        Args:
            retry: Number of the retry, >= 1.
            previous: The delay before the previous retry, in seconds; None for the
                first.
            random: Random numbers; only its method `random` is called.

        Returns:
            Seconds, finite and >= 0; None when the schedule has ended.
        """

    @abstractmethod
    def bounds(self, retry: int, /) -> Bounds | None:
        """Return the bounds of the delay before a retry.

        No delay is outside them. They are exact, except for schedules made from
        `decorrelated` or by rounding random delays down: all delays of such a schedule
        may be well within its bounds.

        Args:
            retry: Number of the retry, >= 1.

        Returns:
            The shortest and the longest delay, in seconds; None when the
            schedule has ended.
        """

    @user_facing
    def draw(self, seed: int | None = None) -> Iterator[float]:
        """Draw the delays of one call, in order.

        Args:
            seed: The call's seed, an integer; a fresh one by default.

        Returns:
            A one-shot iterator of seconds, endless if the schedule is.

        Raises:
            ConfigError: *seed* is not an integer.
        """
        if seed is None:
            return self._draw(new_seed())
        return self._draw(check_instance("seed", seed, int))

    def _draw(self, seed: int) -> Iterator[float]:
        previous: float | None = None
        for retry in count(1):  # pragma: no branch  (a count has no end)
            previous = self.delay(retry, previous, call_random(seed=seed, retry=retry))
            if previous is None:
                return
            yield previous

    @user_facing
    def without_jitter(self) -> "Schedule":
        """Return this schedule without any jitter.

        >>> from retrykit.schedules import constant
        >>> constant(3).full_jitter().cap(60).without_jitter()
        constant(3.0).cap(60.0)
        """
        parts = {
            name: part.without_jitter()
            for name, part in fields_of(self).items()
            if isinstance(part, Schedule)
        }
        fixed: Schedule = self.replace(**parts) if parts else self
        return fixed

    @user_facing
    def then(self, other: object) -> "Schedule":
        """Continue with *other*, from its first delay, when this one ends.

        Numbering restarts: the first retry after the end is retry 1 of *other*. To
        continue the numbering, like tenacity's `wait_chain`, use `switch`.

        >>> from retrykit.schedules import constant, exponential
        >>> list(constant(0.5).take(2).then(exponential(1)).take(5).draw())
        [0.5, 0.5, 1.0, 2.0, 4.0]
        >>> list(constant(0.5).switch(after=2, to=exponential(1)).take(5).draw())
        [0.5, 0.5, 4.0, 8.0, 16.0]

        Args:
            other: The schedule to continue with. Only this schedule must have an end.
        """
        if is_endless(self):
            rule = "finite, since .then() starts after its end"
            raise invalid_setting(
                "schedule", rule, self, "give it a length with .take(n)"
            )
        return self._compose("Then", as_schedule(other))

    @user_facing
    def switch(self, *, after: int, to: object) -> "Schedule":
        """Use *to* for the retries beyond *after*; numbering continues.

        The first delay of *to* that is used is its delay *after* + 1. To start at its
        delay 1, use `then`.

        >>> from retrykit.schedules import constant, linear
        >>> list(constant(9).switch(after=2, to=linear(1)).take(4).draw())
        [9.0, 9.0, 3.0, 4.0]

        Args:
            after: The last retry of this schedule; if this schedule ends earlier, *to*
                is not used, and retrying stops. Count, >= 0.
            to: The schedule of every later retry.
        """
        after = check_integer("after", after, at_least=0)
        return self._compose("Switch", after, as_schedule(to))

    @user_facing
    def cap(self, limit: Duration) -> "Schedule":
        """Limit each delay to at most *limit*, a duration >= 0."""
        return self._transform("Cap", parse_duration("limit", limit))

    @user_facing
    def at_least(self, limit: Duration) -> "Schedule":
        """Extend each delay to at least *limit*, a duration >= 0."""
        return self._transform("AtLeast", parse_duration("limit", limit))

    @user_facing
    def round_down(self, unit: Duration) -> "Schedule":
        """Round each delay down to a multiple of *unit*, a duration > 0.

        >>> from retrykit.schedules import constant
        >>> list(constant("2.9s").round_down("1s").take(1).draw())
        [2.0]
        """
        step = parse_positive_duration("unit", unit)
        return self._transform("RoundDown", step)

    @user_facing
    def take(self, retries: int) -> "Schedule":
        """End after *retries* delays, a count >= 0."""
        return self._transform("Take", check_integer("retries", retries, at_least=0))

    @user_facing
    def within(self, total: Duration) -> "Schedule":
        """End before the delays could sum to more than *total*.

        The longest possible delays are summed, so the end does not depend on random
        numbers. Delays are added up one by one, at most 60,000 (divided by the number
        of parts of this schedule) for each call of `bounds` or `delay`. If these reach
        neither the retry asked for nor the end, the call raises `ConfigError`.

        >>> from retrykit.schedules import constant
        >>> list(constant(4).within(10).draw())
        [4.0, 4.0]
        """
        return self._transform("Within", parse_duration("total", total))

    @user_facing
    def full_jitter(self) -> "Schedule":
        """Draw each delay between 0 and this schedule's delay."""
        return self._transform("FullJitter")

    @user_facing
    def equal_jitter(self) -> "Schedule":
        """Draw each delay between half of this schedule's delay and all of it."""
        return self._transform("EqualJitter")

    @user_facing
    def jitter(self, factor: float) -> "Schedule":
        """Make each delay shorter or longer by up to *factor* of it, at random.

        *factor* is a fraction, 0 to 1.

        >>> from retrykit.schedules import constant
        >>> constant(2).jitter(0.5).bounds(1)
        (1.0, 3.0)
        """
        factor = check_number("factor", factor, at_most=1)
        return self._transform("Jitter", factor)

    @user_facing
    def __add__(self, other: object) -> "Schedule":
        """Add the delays of both schedules; end when either ends."""
        return self._compose("Sum", as_schedule(other))

    def __radd__(self, other: int) -> "Schedule":
        """Support `sum`, which starts with 0."""
        return self if type(other) is int and other == 0 else NotImplemented

    @user_facing
    def __or__(self, other: object) -> "Schedule":
        """Use the shorter of the two delays; end when both schedules have ended."""
        return self._compose("Union", as_schedule(other))

    @user_facing
    def __and__(self, other: object) -> "Schedule":
        """Use the longer of the two delays; end when either schedule ends."""
        return self._compose("Intersection", as_schedule(other))

    @user_facing
    def __mul__(self, factor: float) -> "Schedule":
        """Multiply each delay by *factor*, >= 0."""
        return self._transform("Scale", check_number("factor", factor))

    __rmul__ = __mul__

    def _transform(self, name: str, *parts: object) -> "Schedule":
        # Imported here and below: their classes derive from this one.
        from retrykit.schedules import _transforms as transforms  # noqa: PLC0415

        made: Schedule = getattr(transforms, name)(self, *parts)
        return made

    def _compose(self, name: str, *parts: object) -> "Schedule":
        from retrykit.schedules import _composition as composition  # noqa: PLC0415

        made: Schedule = getattr(composition, name)(self, *parts)
        return made


ScheduleLike = Schedule | Iterable[Duration] | Callable[[], Iterator[Duration]]
"""A schedule, a re-iterable of durations, or a generator function."""


def as_schedule(value: object) -> Schedule:
    """Return *value* if it is a schedule, otherwise the sequence of its durations."""
    if isinstance(value, Schedule):
        return value
    from retrykit.schedules._sequences import Sequence  # noqa: PLC0415

    return Sequence(value)


def as_operand(schedule: Schedule) -> str:
    """Return a schedule's expression, in parentheses if it needs them in another."""
    return f"({schedule!r})" if schedule.needs_parentheses else repr(schedule)


def iter_parts(schedule: Schedule) -> Iterator[tuple[int, Schedule]]:
    """Yield a schedule and all schedules in it, each with its level, counted from 1.

    >>> from retrykit.schedules import constant
    >>> list(iter_parts(constant(1).cap(9)))
    [(1, constant(1.0).cap(9.0)), (2, constant(1.0))]
    """
    parts = [(1, schedule)]
    while parts:
        level, part = parts.pop()
        yield level, part
        parts += [
            (level + 1, each)
            for each in fields_of(part).values()
            if isinstance(each, Schedule)
        ]


F = TypeVar("F", bound=Callable[..., Any])

_SAME = {
    "first": (
        "base_delay delay first_delay initial initial_backoff initial_delay "
        "initial_interval initial_value interval min_delay multiplier seconds start "
        "start_delay value wait wait_initial"
    ),
    "factor": (
        "backoff_base backoff_coefficient backoff_factor backoff_multiplier "
        "backoff_rate base exp_base exponent exponential_base growth multiplier power "
        "rate ratio wait_exp_base"
    ),
    "rate": "decay_factor factor",
    "wait": "delay first interval seconds value",
    "step": "delay first increment interval start",
    "exponent": "base degree factor power",
    "low": "min min_value minimum shortest start",
    "high": "max max_value maximum longest stop",
    "delays": "intervals schedule values waits",
    "repeat_last": "cycle loop repeat",
}
"""Parameters of other libraries, separated by spaces, keyed by the one to write."""

_METHODS = {
    ".cap(...) on the schedule": (
        "backoff_max cap limit max max_backoff max_delay max_interval max_value "
        "max_wait maximum maximum_interval upper wait_max"
    ),
    ".at_least(...) on the schedule": "lower min min_value min_wait minimum wait_min",
    ".jitter(...), .full_jitter() or + uniform(0, ...)": (
        "jitter jitter_factor random randomization_factor randomize wait_jitter"
    ),
    ".take(...) on the schedule, or max_attempts of the policy": (
        "attempts count max_attempts max_retries max_tries n retries times tries"
    ),
}


def constructor(fn: F) -> F:
    """Decorate a constructor of schedules, so that its errors suggest arguments."""
    return user_facing(fn, advise=_advise)


def _advise(name: str, known: list[str]) -> str:
    """Return what to write instead of an unknown parameter; may be empty.

    >>> _advise("multiplier", ["first", "factor"]), _advise("max", ["first"])
    ('write first or factor', 'write .cap(...) on the schedule')
    """
    same = [each for each in known if name in _SAME.get(each, "").split()]
    if same:
        return f"write {' or '.join(same)}"
    found = (x for x, names in _METHODS.items() if name in names.split())
    return next((f"write {each}" for each in found), "")


MAX_LEVELS = 100
"""Maximum number of nested levels of a schedule that is read or written as text."""

_MAX_PARTS = 1_000
# User code that still has a delay for this retry counts as endless.
_EFFECTIVELY_ENDLESS = 100_000


def check_size(schedule: Schedule) -> Schedule:
    """Return *schedule* if it is not too large to read, write and use.

    Raises:
        ConfigError: It has too many levels or parts.
    """
    for number, (level, _) in enumerate(iter_parts(schedule), 1):
        if level > MAX_LEVELS:
            raise invalid_setting(
                "schedule",
                f"of at most {MAX_LEVELS} levels",
                level,
                code="out-of-range",
            )
        if number > _MAX_PARTS:
            raise invalid_setting(
                "schedule",
                f"of at most {_MAX_PARTS} parts",
                number,
                code="out-of-range",
            )
    return schedule


def has_user_code(schedule: Schedule) -> bool:
    """Return whether some part of a schedule is user code.

    >>> from retrykit.schedules import constant, sequence
    >>> def ever():
    ...     while True:
    ...         yield 1
    >>> has_user_code(constant(1).cap(9)), has_user_code(sequence(ever).cap(9))
    (False, True)
    """
    whole: Any = schedule
    if whole.kind == "sequence":
        # It has no parts. Quickly, since a block asks whenever it runs.
        return not isinstance(whole.delays, tuple)
    return any(
        not isinstance(fields_of(part)["delays"], tuple)
        if part.kind == "sequence"
        else not part.kind
        for _, part in iter_parts(schedule)
    )


def is_uniform(schedule: Schedule) -> bool:
    """Return whether each delay is fixed, or drawn uniformly between its bounds.

    False if this is not certain; but user code under one jitter is taken to be fixed.

    >>> from retrykit.schedules import exponential
    >>> is_uniform(exponential(1).cap(60).jitter(0.5))
    True
    >>> is_uniform(exponential(1).jitter(0.5).cap(60))
    False
    """
    random = [part.kind in RANDOM_KINDS for _, part in iter_parts(schedule)]
    match schedule.kind:
        case "take" | "within":
            return is_uniform(fields_of(schedule)["of"])
        case "full_jitter" | "equal_jitter" | "jitter" | "uniform":
            return sum(random) == 1
        case _:
            return not any(random) and not has_user_code(schedule)


def is_memoryless(schedule: Schedule) -> bool:
    """Return whether no delay is computed from the previous one.

    User-defined classes are taken to compute their delays from the previous ones.

    >>> from retrykit.schedules import decorrelated, uniform
    >>> is_memoryless(uniform(1, 2).cap(9)), is_memoryless(decorrelated(1).cap(9))
    (True, False)
    """
    return all(
        part.kind not in {"", "decorrelated"} for _, part in iter_parts(schedule)
    )


RANDOM_KINDS = {
    "decorrelated",
    "equal_jitter",
    "full_jitter",
    "google_interval",
    "jitter",
    "polly_interval",
    "uniform",
}
"""The kinds of schedules that draw their delays at random."""


def is_endless(schedule: Schedule) -> bool:
    """Return whether a schedule has a delay for every retry.

    User code is taken to be endless if it has a delay for retry 100,000; `within` is
    taken to have an end.

    >>> from retrykit.schedules import constant, linear
    >>> is_endless(linear(1).cap(60)), is_endless(constant(1).within("1w"))
    (True, False)
    """
    parts = fields_of(schedule)
    match schedule.kind:
        case "take" | "within":
            endless = False
        case "then":
            endless = is_endless(parts["other"])
        case "switch":
            goes_on = schedule.bounds(parts["after"] + 1) is not None
            endless = goes_on and is_endless(parts["to"])
        case "sum" | "intersection":
            endless = is_endless(parts["left"]) and is_endless(parts["right"])
        case "union":
            endless = is_endless(parts["left"]) or is_endless(parts["right"])
        case "sequence" if isinstance(parts["delays"], tuple):
            endless = False
        case "" | "sequence":
            endless = schedule.bounds(_EFFECTIVELY_ENDLESS) is not None
        case _:
            # A formula, or a schedule whose delays are changed one by one.
            endless = "of" not in parts or is_endless(parts["of"])
    return endless
