"""``retrykit schema``: the JSON Schema of policy files."""

import json

import click

from retrykit._cli.options import make_command
from retrykit.config.json_schema import policy_schema

__all__ = ["command"]


@make_command("schema", "retrykit schema > policy.schema.json")
def command() -> None:
    """Print the JSON Schema of policy files.

    Editors and validators can check TOML and JSON files of policies against it.
    """
    click.echo(json.dumps(policy_schema(), indent=2))
