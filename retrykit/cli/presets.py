"""``retrykit presets``: the policies that are built in, with their sources."""

import inspect
import json
from collections.abc import Iterator
from typing import Any

import click

from retrykit.cli.options import command_of
from retrykit.cli.terminal import console, listed
from retrykit.config.preset_names import BUILT_IN

__all__ = ["command"]


@command_of(
    "presets",
    "retrykit presets",
    "retrykit presets --json",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(*, as_json: bool) -> None:
    """List the policies that are built in.

    With their parameters, and the source of each.
    """
    known = list(_known())
    if as_json:
        click.echo(json.dumps(known, indent=2))
        return
    rows = (
        (
            each["name"],
            [f"{k}={v}" for k, v in each["parameters"].items()],
            each["source"],
        )
        for each in known
    )
    console().print(listed(("preset", "parameters", "source"), rows, left=(0, 1, 2)))


def _known() -> Iterator[dict[str, Any]]:
    for name, preset in BUILT_IN.items():
        summary, _, rest = (inspect.getdoc(preset) or "").partition("\n")
        parameters = inspect.signature(preset).parameters.values()
        yield {
            "name": name,
            "summary": summary,
            "parameters": {each.name: each.default for each in parameters},
            "source": " ".join(rest.partition("Source:")[2].split()),
        }
