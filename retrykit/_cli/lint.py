"""``retrykit lint``: warnings about policies in code, files and presets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.text import Text

from retrykit._cli.modules import import_here, place_of
from retrykit._cli.options import (
    PolicyText,
    attempt,
    duration,
    make_command,
    number_or_text,
)
from retrykit._cli.policies import (
    file_of,
    format_config_error,
    is_attribute,
    is_preset,
    load_attribute,
    policy_flags,
    select_policy,
    split_file,
)
from retrykit._cli.terminal import build_table, console, show_progress
from retrykit._core.policy import Policy
from retrykit._internal.error_texts import safe_str
from retrykit._internal.frozen import fields_of
from retrykit._internal.processes import count_processors
from retrykit._internal.shares import parse_share
from retrykit._internal.validation import invalid_setting
from retrykit.analysis.lint import RULES, Finding, Found, check, discover
from retrykit.errors import ConfigError

__all__ = ["command"]

_RULE = click.Choice(list(RULES))
_FEW = 3


class _Checked(NamedTuple):
    """A policy that was checked, or something that cannot be read.

    Attributes:
        place: The file, and the line if there is one; "" if the policy is not in a file
            that was read.
        name: The name of the policy, or "".
        findings: What is wrong with it.
        error: Why it cannot be read or checked, or "".
        partly: Whether it is known only in part.
    """

    place: str
    name: str
    findings: Sequence[Finding] = ()
    error: str = ""
    partly: bool = False


def _import(ctx: click.Context, _param: click.Parameter, names: Any) -> list[str]:
    """Import the modules in *names*; return the others, ``module:name``, unimported."""
    if ctx.resilient_parsing:
        return []
    for name in names:
        if ":" not in name:
            import_here(name)
    return [name for name in names if ":" in name]


_import_option = click.option(
    "--import",
    "imported",
    metavar="MODULE[:NAME]",
    multiple=True,
    is_eager=True,
    callback=_import,
    help="Import MODULE, for exception types that a file names, and check its policy "
    "or decorated function NAME; repeatable.",
)


@make_command(
    "lint",
    "retrykit lint src/mypackage",
    "retrykit lint --import mypackage.clients:fetch --attempt 2s",
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
    callback=number_or_text,
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
@partial(policy_flags, imports=_import_option)
def command(
    targets: tuple[str, ...],
    imported: list[str],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    list_rules: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Warn about problems in policies.

    Each warning has a reason and a fix. TARGET is a POLICY, a file, a folder or a
    module. Source code is read and never run: its policies, presets, decorators and
    retried blocks are checked as far as their settings are written in it. What exists
    only at run time is imported and checked with --import module:NAME, which is not
    a TARGET. The options that change a policy apply to presets and to files of
    policies, such as TOML, JSON and YAML files; without TARGET or --import, they define
    the policy.

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
    limits["rules"] = rules
    given = [*targets] if targets or imported else [None]
    checked = [each for target in given for each in _read(target, options, limits)]
    checked += [_check("", text, load_attribute(text), limits) for text in imported]
    (_print_json if as_json else _print)(checked)
    if any(each.error for each in checked):
        return 2
    return 1 if any(each.findings for each in checked) else 0


def _read(
    target: str | None, flags: Mapping[str, Any], limits: Mapping[str, Any]
) -> Iterator[_Checked]:
    """Check and yield the policies of a target, or the policy that flags define."""
    if target is None or is_preset(target):
        yield _check("", *select_policy(target, flags), limits)
    elif file := file_of(target):
        yield from _read_file(target, file, flags, limits)
    elif not target:
        raise invalid_setting(
            "TARGET", "a policy, a module or a path", target, code="unknown-name"
        )
    elif is_attribute(target) and not Path(target).exists():
        path = target.rpartition(":")[0]
        is_script = path.endswith(".py")
        way = f"write {path}, for all in it" if is_script else f"--import {target} does"
        rule = "a policy, a module or a path"
        suggestion = f"lint imports no target; {way}"
        raise invalid_setting("TARGET", rule, target, suggestion, code="unknown-name")
    else:
        yield from _read_code(target, limits)


def _read_code(target: str, limits: Mapping[str, Any]) -> Iterator[_Checked]:
    """Check and yield the policies in source code, and yield what cannot be read."""
    with show_progress("reading") as progress:
        discovery = discover(target, processes=count_processors(), progress=progress)
    for each in discovery.failures:
        yield _Checked(place_of(each.path, each.line), "", error=each.reason)
    for found in discovery.found:
        place = place_of(found.site.path, found.site.line)
        yield _check(place, found.name, found, limits)


def _read_file(
    target: str, file: str, flags: Mapping[str, Any], limits: Mapping[str, Any]
) -> Iterator[_Checked]:
    """Check and yield the policies of a file, and yield the errors of invalid ones."""
    place = place_of(Path(file).absolute(), 0)
    for text in split_file(target):
        try:
            yield _check(place, *select_policy(text, flags), limits)
        except ConfigError as error:
            name = text.removeprefix(f"{file}:")
            line = format_config_error(error)
            reason = line.removeprefix(f"{file}, policy {name!r}: ")
            yield _Checked(place, name, error=reason)


def _check(
    place: str, name: str, policy: Policy | Found, limits: Mapping[str, Any]
) -> _Checked:
    try:
        if isinstance(policy, Policy):
            return _Checked(place, name, check(policy, **limits))
        findings, partly = policy.check(**limits), policy.policy is None
        return _Checked(place, name, findings, partly=partly)
    except Exception as error:  # noqa: BLE001  of the user's own schedule
        reason = f"{type(error).__name__}: {safe_str(error)}"
        return _Checked(place, name, error=reason)


def _print(checked: Sequence[_Checked]) -> None:
    lines = [
        (x.place, x.name, "error", " ".join(x.error.split()))
        for x in checked
        if x.error
    ]
    lines += [
        (each.place, each.name, finding.rule, f"{finding.reason}; {finding.fix}")
        for each in checked
        for finding in each.findings
    ]
    out = console()
    for place, name, rule, text in lines:
        location = ": ".join(filter(None, [place, name]))
        styled = ((location, "bold"), (rule, "yellow"), (text, ""))
        parts = (out.render_str(part, style=style) for part, style in styled)
        out.print(Text(": ").join(parts), soft_wrap=True)
    count = sum(len(each.findings) for each in checked)
    warnings = f"{count or 'no'} warning{'' if count == 1 else 's'}"
    read = sum(not each.error for each in checked)
    policies = f"{read} {'policy' if read == 1 else 'policies'}"
    out.print(f"{warnings} in {policies}" if read else "no policies found")
    partly = [each.place for each in checked if each.partly]
    if partly:
        places = ", ".join(partly[:_FEW]) + ", ..." * (len(partly) > _FEW)
        out.print(
            f"{len(partly)} known only in part: {places}; --import module:NAME checks "
            "what is known at run time",
            soft_wrap=True,
        )


def _print_json(checked: Sequence[_Checked]) -> None:
    findings = [
        {"place": each.place, "name": each.name} | fields_of(finding)
        for each in checked
        for finding in each.findings
    ]
    errors = [
        {"place": each.place, "name": each.name, "reason": each.error}
        for each in checked
        if each.error
    ]
    partly = [
        {"place": each.place, "name": each.name} for each in checked if each.partly
    ]
    data = {"findings": findings, "errors": errors, "partly_known": partly}
    click.echo(json.dumps(data, indent=2))
