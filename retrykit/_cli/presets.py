"""``retrykit presets``: the built-in policies, with their parameters and sources."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import click

from retrykit._cli.options import make_command
from retrykit._cli.terminal import build_table, console
from retrykit._core.policy import Policy
from retrykit.config._preset_names import BUILT_IN

__all__ = ["command"]


@make_command("presets", "retrykit presets", "retrykit presets --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> None:
    """List the built-in policies.

    Each is shown with its parameters, their defaults, and the source of its figures.
    """
    presets = [_describe(name, preset) for name, preset in BUILT_IN.items()]
    if as_json:
        click.echo(json.dumps(presets, indent=2))
        return
    rows = [
        (
            preset["name"],
            [f"{key}={value}" for key, value in preset["parameters"].items()],
            preset["source"],
        )
        for preset in presets
    ]
    console().print(build_table(("preset", "parameters", "source"), rows))


def _describe(name: str, preset: Callable[..., Policy]) -> dict[str, Any]:
    summary, _, rest = (inspect.getdoc(preset) or "").partition("\n")
    parameters = inspect.signature(preset).parameters.values()
    return {
        "name": name,
        "summary": summary,
        "parameters": {each.name: each.default for each in parameters},
        "source": " ".join(rest.partition("Source:")[2].split()),
    }
