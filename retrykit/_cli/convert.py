"""``retrykit convert``: a policy in another format."""

import json
from collections.abc import Callable
from typing import Any

import click

from retrykit._cli.options import make_command, policy_argument
from retrykit._cli.policies import policy_flags, select_policy
from retrykit._core.policy import Policy
from retrykit.config.grpc_service_config import to_service_config
from retrykit.config.rendering import to_data, to_python, to_toml

__all__ = ["command"]


def _to_json(name: str, policy: Policy) -> str:
    return json.dumps({"policies": {name: to_data(policy)}}, indent=2)


_FORMATS: dict[str, Callable[[str, Policy], str]] = {
    "toml": to_toml,
    "json": _to_json,
    "python": to_python,
}
_FORMAT = click.Choice([*_FORMATS, "grpc"])


@make_command(
    "convert",
    "retrykit convert zizq --to toml --name jobs >> pyproject.toml",
    "retrykit convert pyproject.toml:fetch --to json",
    "retrykit convert grpc.json:shop.Orders/Place --to python",
    "retrykit convert envoy.yaml#checkout --closest --to toml",
)
@policy_argument
@click.option("--to", "format_", type=_FORMAT, required=True, help="Output format.")
@click.option("--name", help="Name of the policy in the output.")
@click.option(
    "--method",
    "methods",
    metavar="NAME",
    multiple=True,
    help="gRPC: package.Service/Method or package.Service; repeatable.",
)
@policy_flags
def command(
    policy: str | None,
    format_: str,
    name: str | None,
    methods: tuple[str, ...],
    **flags: Any,
) -> None:
    """Convert a policy to TOML, JSON, Python or gRPC.

    The gRPC format is a service config in JSON. A file in that format can also be a
    POLICY: config.json, or config.json:package.Service/Method.
    """
    own_name, selected = select_policy(policy, flags)
    msg = None
    if format_ != "grpc":
        msg = f"--method cannot be used with --to {format_}." if methods else None
    elif name:
        msg = "--name cannot be used with --to grpc; --method names the calls."
    elif not methods:
        msg = "Missing option '--method', which --to grpc needs."
    if msg:
        raise click.UsageError(msg, click.get_current_context())
    if format_ == "grpc":
        click.echo(json.dumps(to_service_config(selected, *methods), indent=2))
    else:
        click.echo(_FORMATS[format_](name or own_name, selected))
