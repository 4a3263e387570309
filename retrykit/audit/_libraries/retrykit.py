"""Policies, decorators and blocks of retrykit.

As documented for `retrykit.Policy`, a policy makes five attempts within 60 s, unless a
limit or a schedule is given. The delays grow from 0.5 s by a factor of 1.5, up to 60 s;
each is then multiplied by a random factor from 0.5 to 1.5. The last error is raised.
Mistakes in the code are not retried.
"""

import math
from collections.abc import Callable
from typing import Final

from retrykit._internal.durations import parse_duration
from retrykit.audit._arguments import (
    MISSING,
    Arguments,
    count,
    error_names,
    seconds,
)
from retrykit.audit._delays import NO_DELAYS, UNKNOWN_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call, Operation, Reference, Value
from retrykit.errors import ConfigError

__all__ = ["METHODS", "READERS"]

_DEFAULT = Delays("exponential", 0.75, 1.5, 90.0, jitter=True, low=1 / 3)
_MOST_PARTS = 30
_PRESETS = "retrykit.presets."


def _policy(call: Call) -> Behavior | None:
    named = dict(call.named)
    policy = named.get("policy", *call.positional[:1] or (None,))
    if policy is None or (type(policy) is Reference and "policy" not in named):
        # Nothing, or the function to decorate.
        return _read(Arguments(Call(call.function, (), call.named)))
    if type(policy) is Call and _makes_policy(policy) and not named.keys() - {"policy"}:
        # The policy is reported instead.
        return None
    # A preset, or a policy that is known only in part.
    return Behavior(elapsed=None)


def _preset(call: Call) -> Behavior | None:
    # The auditor has no numbers of presets.
    return Behavior(elapsed=None) if _is_preset(call) else None


def _is_preset(call: Call) -> bool:
    function = call.function
    return type(function) is Reference and function.name.startswith(_PRESETS)


def _makes_policy(call: Call) -> bool:
    function = call.function
    if type(function) is Operation and function.right == "replace":
        return type(function.left) is Call and _makes_policy(function.left)
    is_policy = type(function) is Reference and function.last == "Policy"
    return is_policy or _is_preset(call)


def _replaced(call: Call) -> Behavior | None:
    """Return the behavior of ``replace`` of a policy or preset; else None."""
    function = call.function
    if type(function) is not Operation or type(function.left) is not Call:
        return None
    policy = function.left
    if not _makes_policy(policy):
        return None
    if type(policy.function) is Operation or _is_preset(policy):
        return Behavior(elapsed=None)
    written = {each for each, _ in call.named}
    kept = [(each, value) for each, value in policy.named if each not in written]
    return _read(Arguments(Call(policy.function, (), (*kept, *call.named))))


def _read(arguments: Arguments) -> Behavior:
    schedule = arguments.get("schedule")
    attempts = arguments.get("max_attempts")
    elapsed = arguments.get("max_elapsed")
    delays = _DEFAULT if schedule is MISSING else _schedule(schedule)
    if attempts is MISSING:
        length = math.inf if schedule is MISSING else _length(schedule)
        calls = 5.0 if length == math.inf and elapsed is MISSING else _plus_one(length)
    else:
        calls = math.inf if attempts is None else count(attempts)
    limit: float | None
    if elapsed is MISSING:
        written = schedule is not MISSING or attempts is not MISSING
        limit = math.inf if written else 60.0
    else:
        limit = math.inf if elapsed is None else _duration(elapsed)
    timeout = arguments.get("attempt_timeout", None)
    return Behavior(
        calls,
        limit,
        delays,
        _retried(arguments),
        results=arguments.get("on_result", None) is not None,
        ending=_ending(arguments),
        hint=True if "hint" in arguments else None,
        timeout=None if timeout is None else _duration(timeout),
    )


def _retried(arguments: Arguments) -> tuple[str, ...] | None:
    on = arguments.get("on")
    if on is MISSING:
        return ("errors but bugs",)
    names = error_names(on)
    if names is None or arguments.get("give_up_on", ()) == ():
        return names
    # An author who writes which errors are not retried has thought of bugs.
    return tuple("Exception but some" if x == "Exception" else x for x in names)


def _ending(arguments: Arguments) -> str:
    if "fallback" in arguments:
        return "?"
    raises = arguments.get("raises", "last")
    return {"last": "raises"}.get(raises, "wrapped") if type(raises) is str else "?"


def _duration(value: Value) -> float | None:
    """Return a duration in seconds; None if it is not known."""
    if type(value) is not str:
        return seconds(value)
    try:
        return parse_duration("value", value)
    except ConfigError:
        return None


def _plus_one(retries: float | None) -> float | None:
    return None if retries is None else retries + 1


def _length(schedule: Value, depth: int = 0) -> float | None:
    """Return the number of delays of a schedule, or infinity; None if unknown."""
    if type(schedule) is tuple:
        return float(len(schedule))
    if type(schedule) is not Call or depth > _MOST_PARTS:
        return None
    function = schedule.function
    [first] = schedule.positional[:1] or (None,)
    if type(function) is Operation:
        if function.right == "take":
            return count(first)
        known = function.right in _TRANSFORMS and function.right != "within"
        return _length(function.left, depth + 1) if known else None
    if type(function) is Reference and function.last == "sequence":
        return _length(first)
    return math.inf if type(function) is Reference else None


def _schedule(value: Value, depth: int = 0) -> Delays:
    """Return the delays of a schedule."""
    if depth > _MOST_PARTS:
        return UNKNOWN_DELAYS
    if type(value) is tuple:
        return _listed(value)
    if type(value) is not Call:
        return UNKNOWN_DELAYS
    function = value.function
    if type(function) is Reference:
        reader = _SCHEDULES.get(function.last)
        return UNKNOWN_DELAYS if reader is None else reader(value)
    if type(function) is Operation and function.sign == ".":
        inner = _schedule(function.left, depth + 1)
        transform = _TRANSFORMS.get(function.right)
        return UNKNOWN_DELAYS if transform is None else transform(inner, value)
    return UNKNOWN_DELAYS


def _listed(values: tuple[Value, ...]) -> Delays:
    return Delays.of_list([_duration(each) for each in values])


def _constant(call: Call) -> Delays:
    delay = _duration(Arguments(call, ["wait"]).get("wait"))
    return NO_DELAYS if delay == 0 else Delays("constant", delay)


def _linear(call: Call) -> Delays:
    step = _duration(Arguments(call, ["step"]).get("step"))
    return Delays("linear", step, step)


def _exponential(call: Call) -> Delays:
    arguments = Arguments(call, ["first"])
    factor = seconds(arguments.get("factor", 2.0))
    return Delays("exponential", _duration(arguments.get("first")), factor)


def _fibonacci(call: Call) -> Delays:
    first = _duration(Arguments(call, ["first"]).get("first", 1.0))
    return Delays("fibonacci", first, (1 + math.sqrt(5)) / 2)


def _uniform(call: Call) -> Delays:
    arguments = Arguments(call, ["low", "high"])
    low, high = (_duration(arguments.get(each)) for each in ("low", "high"))
    share = low / high if low and high else 0.0
    return Delays("constant", high, jitter=True, low=share)


def _decorrelated(_: Call) -> Delays:
    return UNKNOWN_DELAYS.replace(cap=math.inf, jitter=True)


def _sequence(call: Call) -> Delays:
    given = Arguments(call, ["delays"]).get("delays")
    return _listed(given) if type(given) is tuple else UNKNOWN_DELAYS


def _cap(inner: Delays, call: Call) -> Delays:
    limit = _duration(call.positional[0]) if call.positional else None
    if limit is None or inner.cap is None:
        return inner.replace(cap=limit)
    return inner.replace(cap=min(limit, inner.cap))


def _full_jitter(inner: Delays, _: Call) -> Delays:
    return inner.replace(jitter=True, low=0.0)


def _equal_jitter(inner: Delays, _: Call) -> Delays:
    return inner.replace(jitter=True, low=0.5)


def _jitter(inner: Delays, call: Call) -> Delays:
    factor = seconds(call.positional[0]) if call.positional else None
    if factor is None or inner.first is None or inner.cap is None:
        return inner.replace(jitter=True)
    high = 1 + factor
    return inner.replace(
        first=inner.first * high,
        growth=None if inner.growth is None else _grown(inner, high),
        cap=inner.cap * high,
        jitter=True,
        low=(1 - factor) / high,
    )


def _grown(inner: Delays, high: float) -> float | None:
    if inner.growth is None or inner.shape != "linear":
        return inner.growth
    return inner.growth * high


def _same(inner: Delays, _: Call) -> Delays:
    return inner


def _at_least(inner: Delays, call: Call) -> Delays:
    least = _duration(call.positional[0]) if call.positional else None
    return UNKNOWN_DELAYS if least is None else inner.replace(least=least)


_SCHEDULES: Final[dict[str, Callable[[Call], Delays]]] = {
    "constant": _constant,
    "linear": _linear,
    "exponential": _exponential,
    "fibonacci": _fibonacci,
    "uniform": _uniform,
    "decorrelated": _decorrelated,
    "sequence": _sequence,
}
_TRANSFORMS: Final[dict[str, Callable[[Delays, Call], Delays]]] = {
    "cap": _cap,
    "full_jitter": _full_jitter,
    "equal_jitter": _equal_jitter,
    "jitter": _jitter,
    "take": _same,
    "within": _same,
    "at_least": _at_least,
}

READERS: Final[Readers] = {
    **dict.fromkeys(
        ("retry", "aretry", "Policy", "retrying", "aretrying", "RetryAdapter"), _policy
    ),
    "*": _preset,
}
"""The readers of functions and classes, keyed by name; "*" stands for the presets."""
METHODS: Final[Readers] = {"replace": _replaced}
"""The readers of a policy's methods, keyed by name."""
