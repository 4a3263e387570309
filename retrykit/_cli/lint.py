"""``retrykit lint``: warnings about policies in code, files and presets."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress
from rich.text import Text

from retrykit._cli.options import PolicyText, attempt, duration, make_command
from retrykit._cli.policies import (
    file_of,
    format_config_error,
    is_preset,
    policy_flags,
    select_policy,
    split_file,
)
from retrykit._cli.terminal import build_table, console
from retrykit._internal.error_texts import safe_str
from retrykit._internal.frozen import fields_of
from retrykit._internal.shares import parse_share
from retrykit._internal.validation import invalid_setting
from retrykit.analysis.lint import (
    RULES,
    Discovery,
    Finding,
    Found,
    LoadFailure,
    check,
    discover,
)
from retrykit.analysis.lint._importing import place_of
from retrykit.errors import ConfigError

__all__ = ["command"]

_RULE = click.Choice(list(RULES))


@make_command(
    "lint",
    "retrykit lint src/mypackage",
    "retrykit lint mypackage.clients:fetch --attempt 2s",
    "retrykit lint pyproject.toml zizq --ignore call-outlives-process",
    "retrykit lint --rules",
)
@click.argument("targets", nargs=-1, type=PolicyText(), metavar="[TARGET]...")
@attempt
@click.option(
    "--attempts",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Warn if a call may make more than N attempts within 10 s of each other.",
)
@click.option(
    "--lifetime",
    metavar="TIME",
    default="1h",
    show_default=True,
    callback=duration,
    help="Warn if a call may take longer than TIME.",
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of processes that call the same server.",
)
@click.option(
    "--load",
    metavar="SHARE",
    help="Load of the server without an outage, such as 70%, if it is known.",
)
@click.option(
    "--select",
    metavar="RULE",
    type=_RULE,
    multiple=True,
    help="Apply only this rule; repeatable.",
)
@click.option(
    "--ignore",
    metavar="RULE",
    type=_RULE,
    multiple=True,
    help="Skip this rule; repeatable.",
)
@click.option("--rules", "list_rules", is_flag=True, help="List the rules and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@policy_flags
def command(
    targets: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    list_rules: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Warn about problems in policies.

    Each warning has a reason and a fix. TARGET is a POLICY, a module, module:name, a
    .py file or a folder. Modules and files are imported, which runs their code, and
    their policies and decorated functions are checked. The options that change a policy
    apply to presets and to TOML and JSON files; without TARGET, they define the policy.

    The exit code is 0 without warnings, 1 with warnings, and 2 if something
    cannot be read.
    """
    if list_rules:
        rows = ((name, rule.summary) for name, rule in RULES.items())
        console().print(build_table(("rule", "warns that"), rows))
        return 0
    rules = [name for name in select or RULES if name not in ignore]
    names = ("attempt", "attempts", "lifetime", "processes", "load")
    limits = {name: options.pop(name) for name in names}
    if limits["load"] is not None:
        parse_share("--load", limits["load"])
    discoveries = [_read(target, options) for target in targets or (None,)]
    failures = [failure for each in discoveries for failure in each.failures]
    checked: list[tuple[Found, Sequence[Finding]]] = []
    for found in (found for each in discoveries for found in each.found):
        try:
            checked.append((found, check(found.policy, rules=rules, **limits)))
        except Exception as error:  # noqa: BLE001  of the user's own schedule
            reason = f"{type(error).__name__}: {safe_str(error)}"
            failures.append(LoadFailure(found.name, found.file, found.line, reason))
    (_print_json if as_json else _print)(checked, failures)
    if failures:
        return 2
    return 1 if any(findings for _, findings in checked) else 0


def _read(target: str | None, flags: Mapping[str, Any]) -> Discovery:
    """Return the policies of a target; without one, the policy that flags define."""
    if target is None or is_preset(target):
        name, policy = select_policy(target, flags)
        return Discovery((Found("", name, policy, None, None),), ())
    if file := file_of(target):
        return _read_file(target, file, flags)
    if not target:
        raise invalid_setting("TARGET", "a policy, a module or a path", target)
    out = console(stderr=True)
    with Progress(console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("importing", total=None)
        return discover(
            target,
            progress=lambda _module, count: bar.update(task, total=count, advance=1),
        )


def _read_file(target: str, file: str, flags: Mapping[str, Any]) -> Discovery:
    """Return the policies of a TOML or JSON file, and the errors of invalid ones."""
    path = Path(file).absolute()
    found, failures = [], []
    for text in split_file(target):
        try:
            name, policy = select_policy(text, flags)
            found.append(Found("", name, policy, path, None))
        except ConfigError as error:
            name = text.removeprefix(f"{file}:")
            line = format_config_error(error)
            reason = line.removeprefix(f"{file}, policy {name!r}: ")
            failures.append(LoadFailure(name, path, None, reason))
    return Discovery(tuple(found), tuple(failures))


_Checked = Sequence[tuple[Found, Sequence[Finding]]]


def _print(checked: _Checked, failures: Sequence[LoadFailure]) -> None:
    lines = [(each.place, each.module, "error", each.reason) for each in failures]
    lines += [
        (
            place_of(found.file, found.line),
            found.name,
            finding.rule,
            f"{finding.reason}; {finding.fix}",
        )
        for found, findings in checked
        for finding in findings
    ]
    out = console()
    for place, name, rule, text in lines:
        location = ": ".join(filter(None, [place, name]))
        styled = ((location, "bold"), (rule, "yellow"), (text, ""))
        parts = (out.render_str(part, style=style) for part, style in styled)
        out.print(Text(": ").join(parts), soft_wrap=True)
    count = sum(len(findings) for _, findings in checked)
    warnings = f"{count or 'no'} warning{'' if count == 1 else 's'}"
    policies = f"{len(checked)} {'policy' if len(checked) == 1 else 'policies'}"
    out.print(f"{warnings} in {policies}" if checked else "no policies found")


def _print_json(checked: _Checked, failures: Sequence[LoadFailure]) -> None:
    findings = [
        {"place": place_of(found.file, found.line), "name": found.name}
        | fields_of(finding)
        for found, findings in checked
        for finding in findings
    ]
    errors = [
        {"place": each.place, "name": each.module, "reason": each.reason}
        for each in failures
    ]
    click.echo(json.dumps({"findings": findings, "errors": errors}, indent=2))
