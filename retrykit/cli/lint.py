"""``retrykit lint``: warnings about policies, wherever they are written."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from retrykit.cli.looked import Case, look
from retrykit.cli.options import PolicyText, attempt, command_of, policy_flags
from retrykit.cli.terminal import console, listed
from retrykit.durations import seconds
from retrykit.lint import RULES, Finding, check
from retrykit.values import parts_of

__all__ = ["command"]

_FOUND, _UNREAD = 1, 2
_RULE = click.Choice(list(RULES))


def _lifetime(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    return seconds("--lifetime", value)


@command_of(
    "lint",
    "retrykit lint src/mypackage",
    "retrykit lint mypackage.clients:fetch --attempt 2s",
    "retrykit lint pyproject.toml zizq --ignore window-outlives-process",
    "retrykit lint --rules",
)
@click.argument("targets", nargs=-1, type=PolicyText(), metavar="[TARGET]...")
@policy_flags
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
def command(
    targets: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    list_rules: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Warn of what is wrong with policies: with the reason, and with a fix.

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
    cases, unread = look(targets, options)
    found: list[tuple[Case, Sequence[Finding]]] = []
    for case in cases:
        try:
            found.append((case, check(case.policy, rules=held, **limits)))
        except Exception as error:  # noqa: BLE001  of the user's own schedule
            unread.append(case.unread(error))
    (_write if as_json else _print)(found, unread)
    if unread:
        return _UNREAD
    return _FOUND if any(findings for _, findings in found) else 0


_Checked = Sequence[tuple[Case, Sequence[Finding]]]


def _print(found: _Checked, unread: Sequence[Case]) -> None:
    out = console()
    for case in unread:
        _line(out, case, "unread", case.fault)
    for case, findings in found:
        for each in findings:
            _line(out, case, each.rule, f"{each.reason}; {each.fix}")
    warnings = sum(len(findings) for _, findings in found)
    ending = "" if warnings == 1 else "s"
    policies = "policy" if len(found) == 1 else "policies"
    told = f"{warnings or 'no'} warning{ending} about {len(found)} {policies}"
    out.print(told if found else "nothing here has a policy")


def _line(out: Console, case: Case, rule: str, text: str) -> None:
    told = Text.assemble((str(case), "bold"), ": ", (rule, "yellow"), ": ", text)
    out.print(told, soft_wrap=True)


def _write(found: _Checked, unread: Sequence[Case]) -> None:
    told = {
        "findings": list(_findings(found)),
        "unread": [_data(case) | {"reason": case.fault} for case in unread],
    }
    click.echo(json.dumps(told, indent=2))


def _findings(found: _Checked) -> Iterator[dict[str, Any]]:
    for case, findings in found:
        for each in findings:
            yield _data(case) | parts_of(each)


def _data(case: Case) -> dict[str, Any]:
    file = case.near and str(case.near)
    return {"name": case.name, "file": file, "line": case.line}
