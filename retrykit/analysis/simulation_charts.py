"""Charts of simulations as matplotlib figures; needs the extra ``plot``.

`retrykit.analysis.charts.save` writes figures to files. Figures are not registered with
pyplot, so they need not be closed.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from retrykit._internal.durations import format_duration
from retrykit._internal.validation import check_instance, user_facing
from retrykit.analysis._duration_ticks import ticks
from retrykit.simulate import Basin, Simulation

__all__ = ["basin_figure", "load_figure"]

# Of the palette of `retrykit.analysis.charts`.
_LOAD: Final = "#d55e00"
_GOODPUT: Final = "#009e73"
_QUEUE: Final = "#0072b2"
_PENDING: Final = "#cc79a7"
_OUTAGE: Final = "#cccccc"
_RETURNS: Final = "#cde8dd"
_LOST: Final = "#f3c9a8"


@user_facing
def load_figure(simulation: Simulation) -> Figure:
    """Draw load and goodput over time, and below them the queue and pending retries.

    Load and goodput are multiples of the normal load. The outage is shaded.

    >>> from retrykit import Policy
    >>> from retrykit.simulate import simulate
    >>> chart = load_figure(simulate(Policy(), load="10%", horizon="30s"))
    >>> [axes.get_ylabel() for axes in chart.axes]
    ['multiple of normal', 'number']

    Args:
        simulation: The result of a simulation.
    """
    check_instance("simulation", simulation, Simulation)
    chart = Figure(figsize=(8, 5.4), layout="constrained")
    upper: Axes
    lower: Axes
    upper, lower = chart.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    normal = simulation.normal
    _draw(upper, [each / normal for each in simulation.load], _LOAD, "load")
    _draw(upper, [each / normal for each in simulation.goodput], _GOODPUT, "goodput")
    upper.axhline(1.0, color="black", linewidth=0.8, linestyle="dashed")
    upper.set_ylabel("multiple of normal")
    _draw(lower, simulation.queue, _QUEUE, "requests in the queue")
    _draw(lower, simulation.pending, _PENDING, "calls that wait to retry")
    lower.set_ylabel("number")
    lower.set_xlabel("time")
    end = float(max(len(simulation.load), 1))
    for axes in (upper, lower):
        if simulation.outage is not None:
            axes.axvspan(*simulation.outage, color=_OUTAGE, alpha=0.6, linewidth=0)
        _style(axes)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, end)
    lower.xaxis.set_major_locator(FixedLocator(ticks(0.0, end, log=False, most=9)))
    lower.xaxis.set_minor_locator(NullLocator())
    lower.xaxis.set_major_formatter(
        FuncFormatter(lambda at, _: format_duration(max(at, 0.0)))
    )
    chart.legend(frameon=False, loc="outside lower center", ncols=4)
    upper.set_title(simulation.verdict, loc="left", fontsize="medium")
    return chart


@user_facing
def basin_figure(basin: Basin, simulation: Simulation | None = None) -> Figure:
    """Draw from which states the load recovers, and the states of a simulation.

    The line of the simulation leads through the queue and the pending retries at the
    end of each second, from just before the outage on. It leaves the picture where the
    axes end.

    >>> from retrykit import Policy
    >>> from retrykit.simulate import basin
    >>> small = basin(Policy(), load="15%", queue=50, pending=50, steps=1)
    >>> basin_figure(small).axes[0].get_xlabel()
    'requests in the queue'

    Args:
        basin: The states, from `retrykit.simulate.basin`.
        simulation: The result of a simulation with the same policy, load and server;
            None draws no line.
    """
    check_instance("basin", basin, Basin)
    chart = Figure(figsize=(6.4, 5.4), layout="constrained")
    axes: Axes = chart.subplots()
    colors = ListedColormap([_LOST, _RETURNS])
    cells = [[int(returned) for returned in row] for row in basin.returns]
    edges = (_edges(basin.queue), _edges(basin.pending))
    axes.pcolormesh(*edges, cells, cmap=colors, vmin=0, vmax=1, edgecolors="white")
    handles: list[Patch | Line2D] = [
        Patch(color=_RETURNS, label="the load comes back"),
        Patch(color=_LOST, label="no return"),
    ]
    if simulation is not None:
        check_instance("simulation", simulation, Simulation)
        first = (
            0 if simulation.outage is None else max(int(simulation.outage[0]) - 1, 0)
        )
        queue, pending = simulation.queue[first:], simulation.pending[first:]
        axes.plot(queue, pending, color="black", linewidth=0.9, alpha=0.7)
        axes.plot(queue[:1], pending[:1], "o", color="black")
        handles.append(Line2D([], [], color="black", marker="o", label="simulation"))
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
    axes.set_xlabel("requests in the queue")
    axes.set_ylabel("calls that wait to retry")
    axes.set_title(str(basin), loc="left", fontsize="medium")
    chart.legend(handles=handles, frameon=False, loc="outside lower center", ncols=3)
    _style(axes)
    axes.grid(visible=False)
    return chart


def _draw(axes: Axes, numbers: Sequence[float], color: str, name: str) -> None:
    # Each number covers a whole second.
    middles = [second + 0.5 for second in range(len(numbers))]
    axes.plot(middles, numbers, color=color, linewidth=1.4, label=name)


def _edges(middles: Sequence[int]) -> list[float]:
    """Return the edges of the cells around *middles*, two or more numbers."""
    between = [(one + other) / 2 for one, other in pairwise(middles)]
    first = middles[0] - (between[0] - middles[0])
    return [first, *between, middles[-1] + (middles[-1] - between[-1])]


def _style(axes: Axes) -> None:
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
