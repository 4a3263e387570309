"""How the delays of a preset are compared with those of its original."""

import importlib.metadata
import inspect
import itertools
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn
from unittest import mock

from retrykit import Policy
from retrykit.config._preset_names import BUILT_IN

__all__ = ["ORIGINALS", "RETRIES", "Original", "Row", "compare", "documented"]
__all__ += ["error_of", "failing", "original", "run_by_hand", "with_defaults"]
__all__ += ["without_sleep"]

# Calls of the original with random delays, and of the preset beside them.
CALLS = 2_000
# Retries of a call that are compared.
RETRIES = 12
# The largest difference of two distributions that chance explains, but for one case in
# a million: that of Kolmogorov and Smirnov.
MOST_APART = 2.69 * (2 / CALLS) ** 0.5
CLOSE = 1e-9


class Original(NamedTuple):
    """A preset's original.

    Attributes:
        preset: The name of the preset, as in ``retrykit show``.
        version: Returns the name of the original and its version.
        how: What is compared: its function, a run, or its document.
        delays: Returns the delays of one call, in seconds, for a source of random
            numbers and the parameters of the preset; None for a document.
        settings: The parameters that are compared.
    """

    preset: str
    version: Callable[[], str]
    how: str
    delays: Callable[..., Iterable[float]] | None
    settings: list[dict[str, Any]]


class Row(NamedTuple):
    """What was found: a row of the table in docs/presets.md."""

    preset: str
    original: str
    compared: str
    verdict: str


ORIGINALS: list[Original] = []


def original(
    preset: str,
    *settings: dict[str, Any],
    package: str = "",
    version: Callable[[], str] | None = None,
    how: str = "its function",
) -> Callable[[Callable[..., Iterable[float]]], Callable[..., Iterable[float]]]:
    """Register the delays of an original.

    The decorated function yields the delays of one call that fails until it gives up.
    It draws from `random.random` and the like, or from a `random.Random` that it makes:
    they are seeded for it.

    Args:
        preset: The name of the preset.
        *settings: The parameters to compare, besides the defaults.
        package: The package whose version is told, if it is not named as the preset.
        version: Returns the version, if no installed package has it.
        how: What is compared.
    """

    def read_version() -> str:
        name = package or preset
        number = importlib.metadata.version(name) if version is None else version()
        return f"{name} {number}"

    def register(delays: Callable[..., Iterable[float]]) -> Any:
        every = [{}, *settings]
        ORIGINALS.append(Original(preset, read_version, how, delays, every))
        return delays

    return register


def documented(preset: str, document: str) -> None:
    """Register a preset whose original cannot run here, with its document and date."""
    ORIGINALS.append(Original(preset, lambda: document, "its document", None, []))


def run_by_hand(preset: str, what: str) -> None:
    """Register a preset whose original was run once, outside of this session."""
    ORIGINALS.append(Original(preset, lambda: what, "a run by hand", None, []))


class _Seeded(random.Random):
    """A source of random numbers that an original makes for itself."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(random.random() if seed is None else seed)


class _Enough(BaseException):
    """Ends a call that has made as many retries as are compared."""


class _Waits(list[float]):
    def append(self, wait: float) -> None:
        super().append(wait)
        if len(self) == RETRIES:
            raise _Enough


@contextmanager
def without_sleep(module: str, name: str = "time") -> Iterator[list[float]]:
    """Collect the sleeps of a call that fails in the end, instead of sleeping.

    Its error is expected. A call without an end is left after `RETRIES` sleeps.

    Args:
        module: The module that sleeps, by its name.
        name: Its name for `time`, or for `time.sleep`.
    """
    waits, sleeper = _Waits(), import_module(module)
    before = getattr(sleeper, name)
    others = {} if name == "sleep" else {**vars(before), "sleep": waits.append}
    setattr(sleeper, name, SimpleNamespace(**others) if others else waits.append)
    try:
        with suppress(Exception, _Enough):
            yield waits
    finally:
        setattr(sleeper, name, before)


def failing(error: type[Exception]) -> Callable[..., NoReturn]:
    """Return a function that raises an error whenever it is called."""

    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def error_of(call: Callable[[], Any]) -> Any:
    """Call a function that fails, and return its error."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  of the original
        return error
    msg = "there is no error"
    raise AssertionError(msg)


def with_defaults(function: Callable[..., Any], settings: dict[str, Any]) -> Any:
    """Return what a function gets as its parameters: settings, and its own defaults."""
    parameters = inspect.signature(function).parameters.values()
    return SimpleNamespace(**{x.name: x.default for x in parameters} | settings)


def compare(original: Original) -> Row:
    """Return what the comparison of a preset with its original finds."""
    name, drawn, problems = original.version(), 0, []
    for settings in original.settings:
        policy = BUILT_IN[original.preset](**settings)
        number, problem = _compare(policy, original, settings)
        drawn += number
        if problem:
            shown = ", ".join(f"{key}={value!r}" for key, value in settings.items())
            problems.append(f"{shown or 'by default'}: {problem}")
    verdict = "; ".join(problems) or "equal"
    compared = original.how
    if original.delays is None:
        verdict = "as documented" if compared == "its document" else "equal then"
    else:
        compared += f", {drawn:,} delays"
    return Row(original.preset, name, compared, verdict)


def _compare(
    policy: Policy, original: Original, settings: dict[str, Any]
) -> tuple[int, str]:
    """Return the number of delays that were compared, and the first difference."""
    assert original.delays is not None
    is_random = any(
        low != high for low, high in itertools.islice(_bounds(policy), RETRIES)
    )
    theirs: list[list[float]] = []
    for seed in range(CALLS if is_random else 1):
        random.seed(seed)
        with mock.patch("random.Random", _Seeded):
            walk = itertools.islice(original.delays(**settings), RETRIES)
            theirs.append([float(each) for each in walk])
    ours = [_draw(policy, seed) for seed in range(len(theirs))]
    number = sum(map(len, theirs))
    lengths = {len(each) for each in theirs}, {len(each) for each in ours}
    if lengths[0] != lengths[1]:
        return number, f"{lengths[0]} retries there, {lengths[1]} here"
    columns = zip(zip(*theirs, strict=True), zip(*ours, strict=True), strict=True)
    for retry, ((their, our), band) in enumerate(
        zip(columns, _bounds(policy), strict=False), 1
    ):
        problem = _compare_retry(their, our, band)
        if problem:
            return number, f"retry {retry}: {problem}"
    return number, ""


def _compare_retry(
    theirs: tuple[float, ...], ours: tuple[float, ...], band: tuple[float, float]
) -> str:
    low, high = band
    least, most, room = min(theirs), max(theirs), CLOSE * max(high, 1)
    if least < low - room or most > high + room:
        return f"{least} to {most} there, {low} to {high} here"
    apart = _distance(sorted(theirs), sorted(ours))
    if low != high and apart > MOST_APART:
        return f"the distributions are {apart:.3f} apart"
    return ""


def _distance(one: list[float], other: list[float]) -> float:
    """Return the largest difference of two distributions, of sorted values."""
    return max(
        abs(bisect_right(one, x + CLOSE) - bisect_right(other, x + CLOSE)) / len(one)
        for x in {*one, *other}
    )


def _bounds(policy: Policy) -> Iterator[tuple[float, float]]:
    for retry in itertools.count(1):
        band = policy.schedule.bounds(retry)
        if band is None:
            return
        yield band


def _draw(policy: Policy, seed: int) -> list[float]:
    """Return the delays of one call, as many as its attempts allow."""
    most = RETRIES
    if policy.max_attempts is not None:
        most = min(policy.max_attempts - 1, RETRIES)
    return [*itertools.islice(policy.schedule.draw(seed), most)]
