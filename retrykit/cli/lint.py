"""``retrykit lint``: warnings about policies, wherever they are written."""

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from retrykit._internal.durations import parse_duration
from retrykit._internal.frozen import fields_of
from retrykit.analysis.lint import RULES, Finding, Found, ImportFailure, check
from retrykit.analysis.lint.importing import place_of
from retrykit.cli.lint_targets import looked_at
from retrykit.cli.options import PolicyText, attempt, command_of
from retrykit.cli.policy_options import policy_flags
from retrykit.cli.terminal import console, listed
from retrykit.state.records import safe_str

__all__ = ["command"]

_FOUND, _UNREAD = 1, 2
_RULE = click.Choice(list(RULES))


def _lifetime(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    return parse_duration("--lifetime", value)


@command_of(
    "lint",
    "retrykit lint src/mypackage",
    "retrykit lint mypackage.clients:fetch --attempt 2s",
    "retrykit lint pyproject.toml zizq --ignore window-outlives-process",
    "retrykit lint --rules",
)
@click.argument("targets", nargs=-1, type=PolicyText(), metavar="[TARGET]...")
@attempt
@click.option(
    "--calls",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Most calls that one request should make.",
)
@click.option(
    "--lifetime",
    metavar="TIME",
    default="1h",
    show_default=True,
    callback=_lifetime,
    help="How long a process lives.",
)
@click.option("--select", metavar="RULE", type=_RULE, multiple=True, help="Only these.")
@click.option("--ignore", metavar="RULE", type=_RULE, multiple=True, help="Not these.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@policy_flags
def command(
    targets: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    list_rules: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Warn of what is wrong with policies.

    Each warning has a reason and a fix.
    TARGET is a POLICY, a module, module:name, a .py file or a folder: what is
    decorated there is found by importing it, which runs the code of scripts.
    The exit code is 0 where there is no warning, 1 where there is one, and 2
    where something cannot be read.
    """
    if list_rules:
        rows = ((name, rule.about) for name, rule in RULES.items())
        console().print(listed(("rule", "warns that"), rows, left=(0, 1)))
        return 0
    held = [name for name in select or RULES if name not in ignore]
    limits = {name: options.pop(name) for name in ("attempt", "calls", "lifetime")}
    looked = looked_at(targets, options)
    unread = [*looked.unread]
    checked: list[tuple[Found, Sequence[Finding]]] = []
    for each in looked.found:
        try:
            checked.append((each, check(each.policy, rules=held, **limits)))
        except Exception as error:  # noqa: BLE001  of the user's own schedule
            reason = f"{type(error).__name__}: {safe_str(error)}"
            unread.append(ImportFailure(each.name, each.file, each.line, reason))
    (_write if as_json else _print)(checked, unread)
    if unread:
        return _UNREAD
    return _FOUND if any(findings for _, findings in checked) else 0


_Checked = Sequence[tuple[Found, Sequence[Finding]]]


def _print(checked: _Checked, unread: Sequence[ImportFailure]) -> None:
    out = console()
    for fault in unread:
        _line(out, [fault.place, fault.module], "unread", fault.reason)
    for each, findings in checked:
        for found in findings:
            place = place_of(each.file, each.line)
            _line(out, [place, each.name], found.rule, f"{found.reason}; {found.fix}")
    warnings = sum(len(findings) for _, findings in checked)
    ending = "" if warnings == 1 else "s"
    policies = "policy" if len(checked) == 1 else "policies"
    told = f"{warnings or 'no'} warning{ending} about {len(checked)} {policies}"
    out.print(told if checked else "nothing here has a policy")


def _line(out: Console, place: Sequence[str], rule: str, text: str) -> None:
    where = ": ".join(each for each in place if each)
    styled = ((where, "bold"), (rule, "yellow"), (text, ""))
    parts = (out.render_str(part, style=style) for part, style in styled)
    out.print(Text(": ").join(parts), soft_wrap=True)


def _write(checked: _Checked, unread: Sequence[ImportFailure]) -> None:
    findings = [
        {"place": place_of(each.file, each.line), "name": each.name} | fields_of(found)
        for each, findings in checked
        for found in findings
    ]
    faults = [
        {"place": fault.place, "name": fault.module, "reason": fault.reason}
        for fault in unread
    ]
    click.echo(json.dumps({"findings": findings, "unread": faults}, indent=2))
