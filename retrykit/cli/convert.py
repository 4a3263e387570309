"""``retrykit convert``: a policy written in another form."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import click
import tomli_w

from retrykit import constructors
from retrykit.checks import refuse
from retrykit.cli.options import command_of, policy_argument
from retrykit.cli.policy_options import policy_flags
from retrykit.cli.targets import chosen
from retrykit.policy import Policy
from retrykit.service_config import to_service_config

__all__ = ["command"]


def _short(policy: Policy) -> dict[str, Any]:
    """Return a policy as a person writes it: what is the default is left out."""
    usual = Policy().to_dict()
    told = policy.to_dict() | {"schedule": repr(policy.schedule)}
    usual["schedule"] = repr(Policy().schedule)
    return {name: value for name, value in told.items() if value != usual.get(name)}


def _toml(name: str, policy: Policy) -> str:
    table = {"tool": {"retrykit": {"policies": {name: _short(policy)}}}}
    return tomli_w.dumps(table)


def _json(name: str, policy: Policy) -> str:
    return json.dumps({"policies": {name: _short(policy)}}, indent=2)


def _python(name: str, policy: Policy) -> str:
    expression = repr(policy)
    used = (each for each in constructors.__all__ if f"{each}(" in expression)
    lines = ["from retrykit import Policy"]
    if names := ", ".join(used):
        lines.append(f"from retrykit.schedules import {names}")
    kinds = (kind for told in (policy.on, policy.give_up_on) for kind in _types(told))
    modules = {kind.__module__ for kind in kinds} - {"builtins"}
    target = name if name.isidentifier() else "policy"
    imports = [f"import {module}" for module in sorted(modules)]
    return "\n".join([*imports, *lines, "", f"{target} = {expression}"])


def _types(condition: object) -> Iterator[type]:
    kinds = condition if isinstance(condition, tuple) else (condition,)
    yield from (kind for kind in kinds if isinstance(kind, type))


_FORMS: dict[str, Callable[[str, Policy], str]] = {
    "toml": _toml,
    "json": _json,
    "python": _python,
}


@command_of(
    "convert",
    "retrykit convert zizq --to toml --name jobs >> pyproject.toml",
    "retrykit convert pyproject.toml:fetch --to json",
    "retrykit convert grpc.json:shop.Orders/Place --to python",
)
@policy_argument
@click.option("--to", "form", type=click.Choice([*_FORMS, "grpc"]), required=True)
@click.option("--name", help="What it is called in the file.")
@click.option(
    "--method",
    "methods",
    metavar="NAME",
    multiple=True,
    help="gRPC: package.Service/Method or package.Service.",
)
@policy_flags
def command(
    policy: str | None,
    form: str,
    name: str | None,
    methods: tuple[str, ...],
    **flags: Any,
) -> None:
    """Write a policy as TOML, JSON, Python or gRPC.

    gRPC is the JSON of a service config, whose retryPolicy can be read as a
    POLICY, too: config.json, or config.json:package.Service/Method.
    """
    [(own, meant)] = chosen([policy] if policy else [], flags, most=1).items()
    if form == "grpc":
        if not methods:
            rule = "given for gRPC, as package.Service/Method or package.Service"
            raise refuse("--method", rule, "")
        click.echo(json.dumps(to_service_config(meant, *methods), indent=2))
    else:
        click.echo(_FORMS[form](name or own, meant).rstrip("\n"))
