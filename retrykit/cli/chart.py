"""``retrykit chart``: the delays of policies as bars, a picture or an HTML page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from retrykit._internal.validation import invalid_setting
from retrykit.cli.options import PolicyText, attempt, make_command, retries
from retrykit.cli.policies import policy_flags, select_policies
from retrykit.cli.summary import preview_policy
from retrykit.cli.terminal import console, print_uncut
from retrykit.cli.terminal_chart import Ranges, build_charts
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["command"]


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
    delay. With --output, the chart is an SVG or PNG picture, or an HTML page of
    a single file, on which you can change every setting of the policies.
    """
    selected = select_policies(policies, flags)
    if output is None:
        ranges: dict[str, Ranges] = {}
        for name, policy in selected.items():
            seen = preview_policy(name, policy, attempt=attempt, retries=retries)
            ranges[name] = [
                (row.retry, *row.band(cumulative=cumulative))
                for row in seen.shown(retries)
            ]
        out = console()
        for chart in build_charts(ranges, out, log=log):
            print_uncut(out, chart)
        return
    view: dict[str, Any] = {"attempt": attempt, "cumulative": cumulative, "log": log}
    if output.suffix.lower() in {".svg", ".png"}:
        _save_picture(selected, output, retries=retries, **view)
    elif output.suffix.lower() == ".html":
        from retrykit.analysis.html_report import page  # noqa: PLC0415  only used here

        output.write_text(page(selected, retries=retries or 100, **view), "utf-8")
    else:
        raise invalid_setting("--output", "a .svg, .png or .html file", str(output))


def _save_picture(policies: Mapping[str, Policy], output: Path, **options: Any) -> None:
    try:
        from retrykit.analysis.charts import figure, save  # noqa: PLC0415  slow to import
    except ModuleNotFoundError as error:
        msg = f"{output} needs {error.name}; in a clone: pip install '.[plot]'"
        raise ConfigError(msg) from error
    save(figure(policies, **options), output)
