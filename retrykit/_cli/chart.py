"""``retrykit chart``: the delays of policies as bars, an image or an HTML page."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from retrykit._cli.options import PolicyText, attempt, make_command, retries
from retrykit._cli.policies import policy_flags, select_policies
from retrykit._cli.summary import name_rules, preview_policy
from retrykit._cli.terminal import console, format_range, print_uncut
from retrykit._core.policy import Policy
from retrykit._internal.distribution import installed_by
from retrykit._internal.durations import format_duration
from retrykit._internal.validation import invalid_setting
from retrykit.analysis._duration_ticks import suits_log, ticks
from retrykit.analysis.preview._rule_policies import has_only_rules
from retrykit.errors import ConfigError

__all__ = ["Scale", "build_charts", "command"]


@make_command(
    "chart",
    "retrykit chart zizq",
    "retrykit chart google hostname-verification --cumulative --linear",
    "retrykit chart zizq zizq:retry_limit=10,jitter=5m -o zizq.html",
    "retrykit chart mypackage.clients:fetch -o fetch.png",
)
@click.argument("policies", nargs=-1, type=PolicyText(), metavar="[POLICY]...")
@attempt
@retries
@click.option("--cumulative", is_flag=True, help="Draw the sums of the delays.")
@click.option(
    "--log/--linear",
    default=None,
    help="Scale of the durations; by default --log if they differ more than"
    " a hundredfold.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a .svg, .png or .html file.",
)
@policy_flags
def command(
    policies: tuple[str, ...],
    attempt: float,
    retries: int | None,
    cumulative: bool,
    log: bool | None,
    output: Path | None,
    **flags: Any,
) -> None:
    """Draw the delays of policies as a chart.

    In the terminal, each retry has a bar from its shortest to its longest
    delay. With --output, the chart is an SVG or PNG image, or an interactive
    HTML page, on which you can change the schedules and limits.
    """
    selected = {
        part: each
        for name, policy in select_policies(policies, flags).items()
        for part, each in (
            name_rules(name, policy) if has_only_rules(policy) else [(name, policy)]
        )
    }
    if output is None:
        ranges: dict[str, Ranges] = {}
        for name, policy in selected.items():
            preview = preview_policy(name, policy, attempt=attempt, retries=retries)
            ranges[name] = [
                (row.retry, *row.band(cumulative=cumulative))
                for row in preview.shown(retries)
            ]
        out = console()
        for chart in build_charts(ranges, out, log=log):
            print_uncut(out, chart)
        return
    view: dict[str, Any] = {"attempt": attempt, "cumulative": cumulative, "log": log}
    if output.suffix.lower() in {".svg", ".png"}:
        _save_image(selected, output, retries=retries, **view)
    elif output.suffix.lower() == ".html":
        from retrykit.analysis.html_report import page  # noqa: PLC0415  only used here

        output.write_text(page(selected, retries=retries or 100, **view), "utf-8")
    else:
        raise invalid_setting("--output", "a .svg, .png or .html file", str(output))


def _save_image(policies: Mapping[str, Policy], output: Path, **options: Any) -> None:
    try:
        from retrykit.analysis.charts import figure, save  # noqa: PLC0415  slow to import
    except ModuleNotFoundError as error:
        msg = f"{output} needs {error.name}; {installed_by('plot')}"
        raise ConfigError(msg, "not-installed") from error
    save(figure(policies, **options), output)


Ranges = Sequence[tuple[int, float, float]]
"""The number of each retry, and its shortest and longest delay or total, in seconds."""

_COLORS = ("blue", "yellow", "green", "magenta", "cyan", "red")


def build_charts(
    ranges: Mapping[str, Ranges], console: Console, *, log: bool | None
) -> list[Table]:
    """Return a table of bars for each policy, all on one scale."""
    delays = [x for rows in ranges.values() for _, *ends in rows for x in ends]
    numbers = [str(number) for rows in ranges.values() for number, _, _ in rows]
    labels = [format_range(*ends) for rows in ranges.values() for _, *ends in rows]
    margins = max(map(len, ["retry", *numbers])) + max(map(len, ["", *labels])) + 4
    width = max(console.width - margins, 20)
    scale = Scale(delays, width, log=suits_log(delays) if log is None else log)
    blocks = (console.encoding or "").startswith("utf")
    tables = []
    for index, (name, rows) in enumerate(ranges.items()):
        color = _COLORS[index % len(_COLORS)]
        table = Table(box=None, title=name, title_justify="left", pad_edge=False)
        table.title_style = f"bold {color}"
        table.add_column("retry", justify="right", no_wrap=True)
        table.add_column(Text(scale.axis(), style="dim"), width=width, no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        for number, low, high in rows:
            bar = Text(scale.bar(low, high, blocks=blocks), color)
            table.add_row(str(number), bar, format_range(low, high))
        tables.append(table)
    return tables


class Scale:
    """Linear or logarithmic scale of durations, in cells of a terminal.

    Args:
        delays: The durations that it shows, in seconds.
        width: Number of cells.
        log: Whether it is logarithmic.
    """

    def __init__(self, delays: Sequence[float], width: int, *, log: bool) -> None:
        self.width = width
        self.log = log
        self.high = max(delays, default=0.0)
        positive = [delay for delay in delays if delay > 0]
        self.low = min(positive, default=0.0) if log else 0.0

    def position(self, duration: float) -> float:
        """Return the position of a duration on the scale, 0 to 1."""
        if not self.high > self.low or duration <= self.low:
            return 0.0
        if self.log:
            decades = math.log(self.high) - math.log(self.low)
            return (math.log(duration) - math.log(self.low)) / decades
        return duration / self.high

    def bar(self, low: float, high: float, *, blocks: bool) -> str:
        """Return a row of cells, filled from one duration to the other.

        With *blocks*, cells may be half filled.
        """
        halves = 2 * self.width
        first, last = (
            min(int(self.position(end) * halves), halves - 1) for end in (low, high)
        )
        filled = [first <= half <= last for half in range(halves)]
        cells = zip(filled[::2], filled[1::2], strict=True)
        if not blocks:
            return "".join("#" if any(cell) else " " for cell in cells)
        return "".join(_CELLS[cell] for cell in cells)

    def axis(self) -> str:
        """Return the line of ticks above the bars, without overlapping ticks."""
        line = [" "] * self.width
        if self.high > self.low:
            for tick in ticks(self.low, self.high, log=self.log, most=self.width // 9):
                label = format_duration(tick)
                start = int(self.position(tick) * self.width)
                start = min(start, self.width - len(label))
                around = line[max(start - 1, 0) : start + len(label) + 1]
                if not "".join(around).strip():
                    line[start : start + len(label)] = label
        return "".join(line)


_CELLS = {
    (False, False): " ",
    (True, False): "▌",
    (False, True): "▐",
    (True, True): "█",
}
