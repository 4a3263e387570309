"""The picture of ``docs/why.md``: ``python -m docs._site.gaps FILE``.

A call meets a short fault, a long one, and a mistake in its request. The attempts
are those of a policy, in virtual time.
"""

import sys
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from retrykit import Policy
from retrykit.schedules import exponential
from retrykit.testing import virtual_time

_POLICY: Final = Policy(
    on=ConnectionError,
    schedule=exponential(1).jitter(0.2),
    max_elapsed="12s",
    seed=1,
)
_END: Final = 13.0
_ATTEMPT: Final = 0.35
_COLORS: Final = {
    "fault": "#cccccc",
    "attempt fails": "#d55e00",
    "attempt succeeds": "#009e73",
}


class _Row(NamedTuple):
    title: str
    fault: float
    error: type[Exception]


_ROWS: Final = (
    _Row("a short fault:\na retry bridges it", 5.0, ConnectionError),
    _Row("a long fault: the call\ngives up at its limit", _END, ConnectionError),
    _Row("a mistake in the call:\nnot retried", _END, ValueError),
)


def attempts(row: _Row) -> list[tuple[float, bool]]:
    """Return when each attempt of a call began, and whether it succeeded."""
    made: list[tuple[float, bool]] = []
    with virtual_time() as clock:

        def ask() -> None:
            began = clock.now()
            clock.sleep(_ATTEMPT)
            made.append((began, began >= row.fault))
            if began < row.fault:
                raise row.error

        with suppress(row.error):
            _POLICY.call(ask)
    return made


def main(file: str) -> None:
    """Write the picture."""
    chart = Figure(figsize=(6.6, 2.9), layout="constrained")
    axes: Axes = chart.subplots()
    for place, row in enumerate(reversed(_ROWS)):
        axes.barh(place, row.fault, 0.5, color=_COLORS["fault"])
        made = attempts(row)
        for began, works in made:
            color = _COLORS["attempt succeeds" if works else "attempt fails"]
            axes.barh(place, _ATTEMPT, 0.36, began, color=color)
        for (began, _), (then, _) in pairwise(made):
            axes.plot([began + _ATTEMPT, then], [place] * 2, "k:", linewidth=1.2)
    axes.set_yticks(range(len(_ROWS)), [row.title for row in reversed(_ROWS)])
    axes.set_xlim(-0.2, _END)
    axes.set_xlabel("seconds")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    legend = [Patch(color=color, label=label) for label, color in _COLORS.items()]
    legend.append(Line2D([], [], color="k", linestyle=":", label="delay"))
    chart.legend(handles=legend, frameon=False, loc="outside lower center", ncols=4)
    chart.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
