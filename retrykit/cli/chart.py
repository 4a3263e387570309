"""``retrykit chart``: the band of policies in the terminal, or as a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from retrykit._internal.validation import invalid_setting
from retrykit.cli.options import (
    attempt,
    command_of,
    policies_argument,
    retries,
)
from retrykit.cli.policy_argument import chosen
from retrykit.cli.policy_options import policy_flags
from retrykit.cli.previews import previewed
from retrykit.cli.terminal import console, print_figures
from retrykit.cli.terminal_chart import Bands, bars
from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["command"]


@command_of(
    "chart",
    "retrykit chart zizq",
    "retrykit chart google hostname-verification --cumulative --linear",
    "retrykit chart zizq zizq:retry_limit=10,jitter=5m -o zizq.html",
    "retrykit chart mypackage.clients:fetch -o fetch.png",
)
@policies_argument
@attempt
@retries
@click.option("--cumulative", is_flag=True, help="Add the delays up.")
@click.option(
    "--log/--linear",
    default=None,
    help="The scale of times; --log where they differ more than a hundredfold.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write FILE: .svg, .png or .html.",
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
    """Draw the band in which delays lie.

    In the terminal, one bar for each retry; with --output an SVG or PNG
    picture, or an HTML page that stands on its own, on which every parameter
    can be moved.
    """
    meant = chosen(policies, flags)
    shape: dict[str, Any] = {"cumulative": cumulative, "log": log}
    if output is None:
        _print(meant, attempt, retries, **shape)
    elif output.suffix.lower() in {".svg", ".png"}:
        _save(meant, output, attempt=attempt, retries=retries, **shape)
    elif output.suffix.lower() == ".html":
        from retrykit.analysis.html_report import page  # noqa: PLC0415  read for this alone

        text = page(meant, attempt=attempt, retries=retries or 100, **shape)
        output.write_text(text, "utf-8")
    else:
        raise invalid_setting(
            "--output", "a file that ends in .svg, .png or .html", str(output)
        )


def _print(
    policies: Mapping[str, Policy],
    attempt: float,
    retries: int | None,
    *,
    cumulative: bool,
    log: bool | None,
) -> None:
    bands: dict[str, Bands] = {}
    for name, policy in policies.items():
        seen = previewed(name, policy, attempt=attempt, retries=retries)
        rows = seen.shown(retries)
        bands[name] = [(row.retry, *row.band(cumulative=cumulative)) for row in rows]
    out = console()
    for table in bars(bands, out, log=log):
        print_figures(out, table)


def _save(policies: Mapping[str, Policy], output: Path, **looks: Any) -> None:
    try:
        from retrykit.analysis.charts import figure, save  # noqa: PLC0415  it takes its time
    except ModuleNotFoundError as error:
        msg = f"{output} needs {error.name}; in a clone: pip install '.[plot]'"
        raise ConfigError(msg) from error
    save(figure(policies, **looks), output)
