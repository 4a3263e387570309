"""``retrykit convert``: a policy written in another form."""

import json
from collections.abc import Callable
from typing import Any

import click

from retrykit._internal.validation import invalid_setting
from retrykit.cli.options import command_of, policy_argument
from retrykit.cli.policy_argument import chosen
from retrykit.cli.policy_options import policy_flags
from retrykit.config.grpc_service_config import to_service_config
from retrykit.config.rendering import to_data, to_python, to_toml
from retrykit.policy.policy import Policy

__all__ = ["command"]


def _json(name: str, policy: Policy) -> str:
    return json.dumps({"policies": {name: to_data(policy)}}, indent=2)


_FORMS: dict[str, Callable[[str, Policy], str]] = {
    "toml": to_toml,
    "json": _json,
    "python": to_python,
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
        if name:
            msg = "--name is not for --to grpc, where --method names the calls."
            raise click.UsageError(msg)
        if not methods:
            rule = "given for gRPC, as package.Service/Method or package.Service"
            raise invalid_setting("--method", rule, "")
        click.echo(json.dumps(to_service_config(meant, *methods), indent=2))
    elif methods:
        msg = f"--method is for --to grpc, and not for --to {form}."
        raise click.UsageError(msg)
    else:
        click.echo(_FORMS[form](name or own, meant))
