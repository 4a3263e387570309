"""``retrykit presets``: the built-in policies, with their parameters and sources."""

import inspect
import json
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import click
from rich.text import Text

from retrykit._cli.options import make_command
from retrykit._cli.terminal import build_table, console
from retrykit._core.policy import Policy
from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.config._preset_names import BUILT_IN

__all__ = ["command"]


@make_command(
    "presets",
    "retrykit presets",
    "retrykit presets aws",
    "retrykit presets --json",
)
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(words: Sequence[str], *, as_json: bool) -> None:
    """List the built-in policies, in groups.

    With a WORD, those that have it in their name, group, description or source are
    shown with their parameters, the defaults, and the source of the figures.
    """
    presets = [_describe(name, preset) for name, preset in BUILT_IN.items()]
    found = [each for each in presets if _has_all(each, words)]
    if not found:
        text = " ".join(words)
        rule = "words that a preset has in its name, group, description or source"
        raise invalid_setting(
            "WORD", rule, text, did_you_mean(text, BUILT_IN), code="unknown-name"
        )
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    out = console()
    found.sort(key=lambda each: str(each["group"]))
    for group, each in groupby(found, lambda each: str(each["group"])):
        members = [*each]
        out.print(Text(f"{group[:1].upper()}{group[1:]}", "bold"))
        out.print(_build_details(members) if words else _build_lines(members))
        out.print()
    if not words:
        out.print("retrykit presets NAME shows the parameters, show NAME every delay.")


def _build_lines(presets: Sequence[dict[str, Any]]) -> Any:
    rows = [(f"  {each['name']}", str(each["summary"])) for each in presets]
    table = build_table(("", ""), rows)
    table.show_header = False
    table.columns[0].width = 2 + max(map(len, BUILT_IN))
    return table


def _build_details(presets: Sequence[dict[str, Any]]) -> Any:
    rows = [
        (
            str(each["name"]),
            [f"{key}={value}" for key, value in each["parameters"].items()],
            [str(each["summary"]), f"Source: {each['source']}"],
        )
        for each in presets
    ]
    return build_table(("preset", "parameters", "what it is"), rows)


def _has_all(preset: dict[str, Any], words: Sequence[str]) -> bool:
    text = " ".join(str(preset[key]) for key in ("name", "group", "summary", "source"))
    text = f"{text} {text.replace('-', '_')}".lower()
    return all(word.lower() in text for word in words)


def _describe(name: str, preset: Callable[..., Policy]) -> dict[str, Any]:
    summary, _, rest = (inspect.getdoc(preset) or "").partition("\n")
    parameters = inspect.signature(preset).parameters.values()
    group = (sys.modules[preset.__module__].__doc__ or "").partition(".")[0]
    return {
        "name": name,
        "group": group.removeprefix("Policies of "),
        "summary": summary.removeprefix("Return ").replace("`", ""),
        "parameters": {each.name: each.default for each in parameters},
        "source": " ".join(rest.partition("Source:")[2].split()),
    }
