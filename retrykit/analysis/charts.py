"""Charts of policies as matplotlib figures; needs the extra ``plot``.

Figures are not registered with pyplot, so they need not be closed.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from retrykit._core.policy import Policy
from retrykit._internal.durations import Duration, format_duration
from retrykit._internal.validation import escape_unprintable, invalid_setting
from retrykit.analysis._duration_ticks import suits_log, ticks
from retrykit.analysis.preview import preview

__all__ = ["figure", "save"]

# Okabe and Ito's palette, which color-blind readers can tell apart.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def figure(
    policies: Mapping[str, Policy],
    *,
    cumulative: bool = False,
    log: bool | None = None,
    attempt: Duration = 0.0,
    retries: int | None = None,
) -> Figure:
    """Draw the band between the shortest and the longest delays of each policy.

    >>> chart = figure({"default": Policy()})
    >>> [line.get_label() for line in chart.axes[0].lines if line.get_label()[0] != "_"]
    ['default']

    Args:
        policies: The policies, keyed by their names in the legend.
        cumulative: Whether to sum the delays up to each retry.
        log: Whether the time axis is logarithmic; by default it is if the
            longest delay is more than 100 times the shortest above zero.
        attempt: How long each attempt takes. A duration, >= 0.
        retries: Maximum number of retries per policy. Count, 1 to 10,000; by default
            1000, or 20 if the policy has no end.
    """
    if not isinstance(policies, Mapping):
        raise invalid_setting(
            "policies", "a dict of policies", policies, 'write {"name": policy}'
        )
    chart = Figure(figsize=(8, 4.5), layout="constrained")
    axes: Axes = chart.subplots()
    # Automatic limits would exceed the largest float if delays overflow.
    axes.set_autoscaley_on(False)
    durations: list[float] = []
    for index, (name, policy) in enumerate(policies.items()):
        most = 1_000 if retries is None else retries
        result = preview(policy, attempt=attempt, retries=most, samples=0)
        bands = [row.band(cumulative=cumulative) for row in result.shown(retries)]
        low, high = ([_drawable(band[side]) for band in bands] for side in (0, 1))
        _draw(axes, name, low, high, _COLORS[index % len(_COLORS)])
        durations += low + high
    axes.set_xlabel("retry")
    axes.set_ylabel("total delay" if cumulative else "delay")
    _scale(axes, durations, suits_log(durations) if log is None else log)
    _style_axes(axes, policies)
    return chart


def save(chart: Figure, path: Path) -> None:
    """Write a figure to a file; the same figure gives the same bytes."""
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
    # Ids in the SVG are derived from this salt; the default is random.
    with rc_context({"svg.hashsalt": "retrykit"}):
        chart.savefig(path, dpi=150, metadata=metadata)


# A shorter delay is labeled 0s; above the longest, limits of the axis overflow.
_SHORTEST, _LONGEST = 1e-9, 1e308


def _drawable(duration: float) -> float:
    return 0.0 if duration < _SHORTEST else min(duration, _LONGEST)


def _draw(
    axes: Axes, name: str, low: list[float], high: list[float], color: str
) -> None:
    numbers = range(1, len(high) + 1)
    style: dict[str, Any] = {"color": color, "linewidth": 1.6}
    if len(high) == 1:
        style["marker"] = "o"
    axes.plot(numbers, high, label=name, **style)
    axes.plot(numbers, low, **style)
    axes.fill_between(numbers, low, high, color=color, alpha=0.18, linewidth=0)


def _scale(axes: Axes, durations: Sequence[float], log: bool) -> None:  # noqa: FBT001
    """Set the limits and the ticks of the time axis."""
    positive = [duration for duration in durations if duration > 0]
    # If every delay is zero, there is no logarithm.
    log = log and bool(positive)
    longest = max(positive, default=1.0)
    low, high = (min(positive) / 1.3, longest * 1.3) if log else (0.0, longest * 1.05)
    if log:
        axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(ticks(low, high, log=log)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda at, _: format_duration(max(at, 0.0)))
    )
    axes.set_ylim(low, high)


def _style_axes(axes: Axes, names: Iterable[str]) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(left=0.5)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    # A label with "$" is parsed as math, and one with a leading "_" is omitted.
    labels = [escape_unprintable(name) for name in names]
    if labels:
        placeholders = map(str, range(len(labels)))
        legend = axes.legend(axes.lines[::2], placeholders, frameon=False)
        for text, label in zip(legend.get_texts(), labels, strict=True):
            text.set_parse_math(False)
            text.set_text(label)
