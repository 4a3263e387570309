"""Schedules from lists of delays, or from a user's iterables and generators."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import islice
from typing import Any, ClassVar, final

from retrykit._internal.durations import Duration, parse_duration
from retrykit._internal.frozen import Frozen
from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.schedules._base import Schedule, constructor
from retrykit.schedules._basic import Fixed, constant
from retrykit.schedules._randomness import Random

__all__ = ["Sequence", "sequence"]


@final
class Sequence(Fixed):
    """Delays from a list, or from a user's iterable or generator function."""

    __slots__ = ("_begun", "delays")
    kind: ClassVar[str] = "sequence"
    delays: Any
    _begun: dict[int, Iterator[Duration]]
    """Suspended iterations, keyed by the number of the last delay that they gave."""

    def __init__(self, delays: object) -> None:
        Frozen.__init__(self, _check_delays(delays))
        object.__setattr__(self, "_begun", {})

    def delay(
        self, retry: int, _previous: float | None, _random: Random, /
    ) -> float | None:
        delays: Any = self.delays
        if isinstance(delays, tuple):
            return delays[retry - 1] if retry <= len(delays) else None
        begun, skipped = self._begun.pop(retry - 1, None), 0
        if begun is None:
            begun = iter(delays() if inspect.isgeneratorfunction(delays) else delays)
            skipped = retry - 1
        delay = next(islice(begun, skipped, None), _ENDED)
        if delay is _ENDED:
            return None
        if len(self._begun) >= _MOST_BEGUN:
            self._begun.clear()
        self._begun[retry] = begun
        return parse_duration(f"schedule[{retry - 1}]", delay)

    def __repr__(self) -> str:
        delays = self.delays
        if isinstance(delays, tuple):
            return f"sequence({list(delays)!r})"
        return f"sequence({getattr(delays, '__qualname__', None) or repr(delays)})"


@constructor
def sequence(
    delays: Iterable[Duration] | Callable[[], Iterator[Duration]],
    *,
    repeat_last: bool = False,
) -> Schedule:
    """Wait for the delays of a list, or of another re-iterable.

    Lists are accepted wherever a schedule is.

    >>> list(sequence([0.1, "2s"]).draw())
    [0.1, 2.0]
    >>> sequence([5, 15, 960], repeat_last=True)
    sequence([5.0, 15.0, 960.0]).then(constant(960.0))
    >>> def halving():
    ...     delay = 8.0
    ...     while True:
    ...         yield delay
    ...         delay /= 2
    >>> list(sequence(halving).take(3).draw())
    [8.0, 4.0, 2.0]

    Args:
        delays: A list, a tuple or another re-iterable of durations, or a
            generator function without parameters. Without a length, the n-th delay
            is found by iterating from the start, or by continuing an iteration that
            stopped at the delay before it.
        repeat_last: Whether the last delay repeats without end, as in tenacity's
            `wait_chain`. *delays* must then be a list or another sized iterable, and
            not empty.

    Returns:
        A schedule that ends after the last delay, unless *repeat_last* is True or the
        iterable is endless.

    Raises:
        ConfigError: *delays* is neither an ordered re-iterable of durations nor a
            generator function without parameters; or *repeat_last* is True and no last
            delay is known.
    """
    schedule = Sequence(delays)
    if not check_instance("repeat_last", repeat_last, bool):
        return schedule
    if not isinstance(schedule.delays, tuple) or not schedule.delays:
        raise invalid_setting("schedule", "a list with a last delay to repeat", delays)
    return schedule.then(constant(schedule.delays[-1]))


_ENDED = object()
_MOST_BEGUN = 64
_NO_DELAYS = (str, bytes, bytearray, memoryview, Mapping)


def _check_delays(delays: object) -> object:
    """Return delays as a tuple of seconds if they have a length, else unchanged.

    Raises:
        ConfigError: They are neither an ordered re-iterable of durations nor a
            generator function without parameters.
    """
    if inspect.isgeneratorfunction(delays):
        _check_no_arguments(delays)
        return delays
    if not isinstance(delays, Iterable) or isinstance(delays, _NO_DELAYS):
        rule = "a schedule, a re-iterable of durations, or a generator function"
        raise invalid_setting("schedule", rule, delays, _suggest_schedule(delays))
    if isinstance(delays, set | frozenset):
        raise invalid_setting("schedule", "an ordered iterable", delays, "write a list")
    if iter(delays) is delays:
        rule = "re-iterable"
        suggestion = (
            "pass a list, a generator function, or an object whose __iter__ starts over"
        )
        raise invalid_setting("schedule", rule, _OneShot(delays), suggestion)
    if not isinstance(delays, Sized):
        return delays
    return tuple(
        parse_duration(f"schedule[{i}]", delay) for i, delay in enumerate(delays)
    )


def _suggest_schedule(value: object) -> str:
    module, name = (getattr(value, x, None) for x in ("__module__", "__name__"))
    if str(module).startswith("retrykit.") and callable(value):
        return f"call it: {name}(...)"
    if callable(value):
        return "call it if it makes a schedule, or let it yield the delays"
    return "write constant(...) for the same delay each time"


def _check_no_arguments(generator: Callable[..., object]) -> None:
    try:
        inspect.signature(generator).bind()
    except TypeError as error:
        rule = "a generator function that can be called without arguments"
        raise invalid_setting(
            "schedule", rule, generator, "bind them with functools.partial"
        ) from error


class _OneShot:
    """A wrapper whose `repr` describes an iterator in an error message."""

    def __init__(self, iterator: object) -> None:
        self.iterator = iterator

    def __repr__(self) -> str:
        return f"the one-shot {self.iterator!r}"
