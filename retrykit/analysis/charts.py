"""The band of policies as a picture: a figure of matplotlib.

Needs the extra ``retrykit[plot]``. Nothing is shown on a screen, and no figure
is kept by matplotlib: who has it may throw it away.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from retrykit._internal.durations import Duration, format_duration
from retrykit._internal.validation import escape_unprintable, invalid_setting
from retrykit.analysis.duration_ticks import suits_log, ticks
from retrykit.analysis.preview import preview
from retrykit.policy.policy import Policy

__all__ = ["figure", "save"]

# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def figure(
    policies: Mapping[str, Policy],
    *,
    cumulative: bool = False,
    log: bool | None = None,
    attempt: Duration = 0.0,
    retries: int | None = None,
) -> Figure:
    """Draw two lines for each policy, and the band between them.

    A delay may lie anywhere in the band.

    >>> drawn = figure({"default": Policy()})
    >>> [line.get_label() for line in drawn.axes[0].lines if line.get_label()[0] != "_"]
    ['default']

    Args:
        policies: The policies, each with the name that the legend shows.
        cumulative: Whether the delays up to a retry are added up.
        log: Whether the time is drawn on a logarithmic scale; None, the
            default, is where the longest delay drawn is more than 100 times
            the shortest above zero.
        attempt: How long each attempt takes. A duration, >= 0.
        retries: Most retries of each policy. Count, 1 to 10,000; by default all of
            them, and 20 of one that does not end.

    Returns:
        A figure of 8 by 4.5 inches.

    Raises:
        ConfigError: An argument is none of these.
    """
    if not isinstance(policies, Mapping):
        raise invalid_setting(
            "policies", "a dict of policies", policies, 'write {"name": policy}'
        )
    drawn = Figure(figsize=(8, 4.5), layout="constrained")
    axes: Axes = drawn.subplots()
    # Its own limits would be beyond the largest float where delays overflow.
    axes.set_autoscaley_on(False)
    durations: list[float] = []
    for place, (name, policy) in enumerate(policies.items()):
        most = 1_000 if retries is None else retries
        seen = preview(policy, attempt=attempt, retries=most, samples=0)
        bands = [row.band(cumulative=cumulative) for row in seen.shown(retries)]
        low, high = ([_drawn(band[side]) for band in bands] for side in (0, 1))
        _draw(axes, name, low, high, _COLOURS[place % len(_COLOURS)])
        durations += low + high
    axes.set_xlabel("retry")
    axes.set_ylabel("delays in all" if cumulative else "delay")
    _scale(axes, durations, suits_log(durations) if log is None else log)
    _dress(axes, policies)
    return drawn


def save(drawn: Figure, path: Path) -> None:
    """Write a figure to a file, which is the same for the same policies.

    Args:
        drawn: What `figure` returned.
        path: A file that ends in .svg, .png or what else matplotlib writes.
    """
    dateless = {"Date": None} if path.suffix == ".svg" else {}
    # The names of its parts are made of this, and else of chance.
    with rc_context({"svg.hashsalt": "retrykit"}):
        drawn.savefig(path, dpi=150, metadata=dateless)


# What is shorter is told as no time at all; a limit a little above the longest
# is still a float.
_SHORTEST, _LONGEST = 1e-9, 1e308


def _drawn(duration: float) -> float:
    return 0.0 if duration < _SHORTEST else min(duration, _LONGEST)


def _draw(
    axes: Axes, name: str, low: list[float], high: list[float], colour: str
) -> None:
    numbers = range(1, len(high) + 1)
    looks: dict[str, Any] = {"color": colour, "linewidth": 1.6}
    if len(high) == 1:
        looks["marker"] = "o"
    axes.plot(numbers, high, label=name, **looks)
    axes.plot(numbers, low, **looks)
    axes.fill_between(numbers, low, high, color=colour, alpha=0.18, linewidth=0)


def _scale(axes: Axes, durations: Sequence[float], log: bool) -> None:  # noqa: FBT001
    """Set the limits of the axis of time, and mark it."""
    above = [duration for duration in durations if duration > 0]
    # Where every delay is zero there is nothing to take the logarithm of.
    log = log and bool(above)
    longest = max(above, default=1.0)
    low, high = (min(above) / 1.3, longest * 1.3) if log else (0.0, longest * 1.05)
    if log:
        axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(ticks(low, high, log=log)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda at, _: format_duration(max(at, 0.0)))
    )
    axes.set_ylim(low, high)


def _dress(axes: Axes, names: Iterable[str]) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(left=0.5)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    # A label is read as mathematics, or left out, by its first characters.
    plain = dict(enumerate(map(escape_unprintable, names), 1))
    if plain:
        legend = axes.legend(axes.lines[::2], map(str, plain), frameon=False)
        for text, name in zip(legend.get_texts(), plain.values(), strict=True):
            text.set_parse_math(False)
            text.set_text(name)
