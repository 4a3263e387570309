"""The band of policies as a picture: a figure of matplotlib.

Needs the extra ``retrykit[plot]``. Nothing is shown on a screen, and no figure
is kept by matplotlib: who has it may throw it away.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from retrykit.checks import refuse
from retrykit.durations import Duration, readable
from retrykit.policy import Policy
from retrykit.preview import Row, preview
from retrykit.ticks import ticks

__all__ = ["figure", "save"]

# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def figure(
    policies: Mapping[str, Policy],
    *,
    cumulative: bool = False,
    log: bool = False,
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
        log: Whether the time is drawn on a logarithmic scale.
        attempt: How long each attempt takes. A duration, >= 0.
        retries: Most retries of each policy. Count, >= 1; by default all of
            them, and 20 of one that does not end.

    Returns:
        A figure of 8 by 4.5 inches.

    Raises:
        ConfigError: An argument is none of these.
    """
    if not isinstance(policies, Mapping):
        raise refuse(
            "policies", "a dict of policies", policies, 'write {"name": policy}'
        )
    drawn = Figure(figsize=(8, 4.5), layout="constrained")
    axes: Axes = drawn.subplots()
    for place, (name, policy) in enumerate(policies.items()):
        most = 1_000 if retries is None else retries
        seen = preview(policy, attempt=attempt, retries=most, samples=0)
        _band(
            axes,
            name,
            seen.shown(retries),
            _COLOURS[place % len(_COLOURS)],
            cumulative=cumulative,
        )
    _dress(axes, cumulative=cumulative, log=log)
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


def _band(
    axes: Axes, name: str, rows: tuple[Row, ...], colour: str, *, cumulative: bool
) -> None:
    numbers = [row.retry for row in rows]
    bands = [row.band(cumulative=cumulative) for row in rows]
    low, high = [low for low, _ in bands], [high for _, high in bands]
    looks: dict[str, Any] = {"color": colour, "linewidth": 1.6}
    if len(rows) == 1:
        looks["marker"] = "o"
    axes.plot(numbers, high, label=name, **looks)
    axes.plot(numbers, low, **looks)
    axes.fill_between(numbers, low, high, color=colour, alpha=0.18, linewidth=0)


def _dress(axes: Axes, *, cumulative: bool, log: bool) -> None:
    axes.set_xlabel("retry")
    axes.set_ylabel("delays in all" if cumulative else "delay")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(left=0.5)
    # Where every delay is zero there is nothing to take the logarithm of.
    log = log and axes.dataLim.ymax > 0
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(FixedLocator(ticks(max(low, 0.0), high, log=log)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda at, _: readable(max(at, 0.0))))
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend(frameon=False)
