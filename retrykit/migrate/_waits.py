"""Delays as the text of a schedule, with their values if these are known."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst

from retrykit.migrate._expressions import (
    OURS,
    call_text,
    code,
    divided,
    literal,
    number_text,
)
from retrykit.migrate._findings import Unknown, Untranslatable

__all__ = ["NO_WAIT", "Wait", "constant", "exponential", "incrementing"]
__all__ += ["limit_schedule"]
__all__ += ["is_number", "reaches", "sequence", "uniform"]

Delays = Callable[[int], float]
"""Returns the delay before a retry, in seconds; retries are counted from 1."""


def _schedule(name: str) -> str:
    return f"{OURS}.schedules.{name}"


def is_number(value: object) -> bool:
    """Return whether a value is a number."""
    return type(value) in {int, float}


class Wait(NamedTuple):
    """The delays between attempts.

    Attributes:
        text: The text of the schedule.
        delays: Its delays; None if they are random, may end, or are not known.
        is_sum: Whether the text is a sum, which needs parentheses before a method.
    """

    text: str
    delays: Delays | None = None
    is_sum: bool = False

    def method(
        self, name: str, *arguments: str, delays: Delays | None = None
    ) -> "Wait":
        """Return the delays changed by a method of the schedule.

        Args:
            name: The name of the method.
            *arguments: The texts of its arguments.
            delays: The changed delays; None if they are not known.
        """
        base = f"({self.text})" if self.is_sum else self.text
        return Wait(f"{base}.{name}({', '.join(arguments)})", delays)

    def cap(self, limit: cst.BaseExpression | None) -> "Wait":
        """Return the delays, each at most *limit*; unchanged if it is None."""
        return self._bounded("cap", limit, min)

    def at_least(self, limit: cst.BaseExpression | None) -> "Wait":
        """Return the delays, each at least *limit*; unchanged if it is None."""
        value, first = literal(limit, None), self.delays and self.delays(1)
        # They only grow.
        idle = is_number(value) and first is not None and first >= value
        return self if value == 0 or idle else self._bounded("at_least", limit, max)

    def _bounded(
        self,
        name: str,
        limit: cst.BaseExpression | None,
        bound: Callable[[float, float], float],
    ) -> "Wait":
        if limit is None:
            return self
        value, known = literal(limit, None), self.delays
        both = known is not None and is_number(value)
        delays = (lambda n: bound(known(n), value)) if both and known else None
        return self.method(name, code(limit), delays=delays)

    def full_jitter(self) -> "Wait":
        """Return random delays, each between 0 and the delay of this schedule."""
        still = self.delays is not None and all(
            self.delays(n) == 0 for n in range(1, 9)
        )
        return self if still else self.method("full_jitter")

    def plus(self, other: "Wait") -> "Wait":
        """Return the sums of the delays of this schedule and of *other*."""
        first, second = self.delays, other.delays
        if first is not None and first(1) == first(2) == first(9) == 0:
            return other
        both = first is not None and second is not None
        delays = (lambda n: first(n) + second(n)) if both and first and second else None
        return Wait(f"{self.text} + {other.text}", delays, is_sum=True)


def constant(node: cst.BaseExpression) -> Wait:
    """Return constant delays."""
    value = literal(node, None)
    delays = (lambda _n: value) if is_number(value) else None
    return Wait(call_text(_schedule("constant"), code(node)), delays)


NO_WAIT = Wait(f"{OURS}.schedules.constant(0)", lambda _n: 0)
"""No delay."""


def exponential(
    first: str, factor: cst.BaseExpression | None, first_value: Any
) -> Wait:
    """Return exponential delays, which do not become shorter.

    Args:
        first: The text of the first delay.
        factor: The factor between two delays; None is 2.
        first_value: The first delay in seconds; not a number if it is not known.

    Raises:
        Untranslatable: The delays would become shorter.
        Unknown: The delays may become shorter.
    """
    growth = 2 if factor is None else literal(factor, None)
    if factor is not None and not is_number(growth):
        raise Unknown(f"its delays become shorter if {code(factor)} is less than 1")
    if growth < 1:
        raise Untranslatable("its delays become shorter")
    delays = None
    if is_number(first_value):
        delays = lambda n: _product(first_value, growth, n - 1)  # noqa: E731
    named = None if factor is None or growth == 2 else code(factor)  # noqa: PLR2004
    text = call_text(_schedule("exponential"), first, factor=named)
    return Wait(text, delays)


def _product(first: float, factor: float, power: int) -> float:
    try:
        return first * float(factor) ** power
    except OverflowError:
        return float("inf") if first else 0


def uniform(low: str, high: str) -> Wait:
    """Return random delays between *low* and *high*."""
    return Wait(call_text(_schedule("uniform"), low, high))


def sequence(delays: Sequence[float] | str, *, repeat_last: bool) -> Wait:
    """Return listed delays, given by their values or by the text of a list."""
    if isinstance(delays, str):
        text, known = delays, None
    else:
        text = f"[{', '.join(map(number_text, delays))}]"
        listed, last = [*delays], delays[-1]
        known = lambda n: listed[n - 1] if n <= len(listed) else last  # noqa: E731
    repeat = "True" if repeat_last else None
    wait = Wait(call_text(_schedule("sequence"), text, repeat_last=repeat))
    return wait._replace(delays=known if repeat_last else None)


def incrementing(
    start: cst.BaseExpression, increment: cst.BaseExpression, *, unit: int = 1
) -> Wait:
    """Return delays that begin at *start* and grow by *increment*.

    Args:
        start: The first delay.
        increment: The growth.
        unit: How many units of *start* and *increment* make a second.

    Raises:
        Untranslatable: The first delay is below 0.
    """
    first, step = literal(start, None), literal(increment, None)
    if is_number(first) and first < 0:
        raise Untranslatable("its first delay is below 0")
    delays = None
    if is_number(first) and is_number(step):
        delays = lambda n: max(0, first + step * (n - 1)) / unit  # noqa: E731
    begin, growth = (
        code(each) if unit == 1 else divided(each, unit) for each in (start, increment)
    )
    named = None if begin == growth else begin
    return Wait(call_text(_schedule("linear"), growth, first=named), delays)


def limit_schedule(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with the time limit in the schedule, instead of in the policy.

    Such a schedule ends a call exactly at the limit, and does not limit inner calls.

    Raises:
        Untranslatable: No schedule can have that limit.
    """
    found = dict(settings)
    limit, late = found.pop("max_elapsed"), found.pop("deadline", None) is not None
    if "limits" in found or ("hint" in found and not late):
        raise Untranslatable("no schedule can have its limit of time")
    name = "stop_after_delay" if late else "stop_before_delay"
    limited = call_text(
        f"{OURS}.integrations.tenacity.{name}", limit, found["schedule"]
    )
    return found | {
        "schedule": limited,
        "max_attempts": found.get("max_attempts", "None"),
    }


_SEARCHED = 10_000


def reaches(wait: Wait, limit: float) -> bool:
    """Return whether the first delays add up exactly to a limit, in seconds.

    Then a call that takes no time ends at the limit, which one library counts as within
    it, and another as beyond it. False if the delays are not known.
    """
    if wait.delays is None:
        return False
    total = 0.0
    for retry in range(1, _SEARCHED):
        delay = wait.delays(retry)
        total += delay
        if abs(total - limit) <= 1e-6:  # noqa: PLR2004
            return True
        if total > limit or not delay:
            return False
    return False
