"""``retrykit schema``: the JSON Schema of policies in files."""

import json

import click

from retrykit.cli.options import command_of
from retrykit.config.json_schema import policy_schema

__all__ = ["command"]


@command_of(
    "schema",
    "retrykit schema > policy.schema.json",
)
def command() -> None:
    """Print the JSON Schema of policies.

    Editors and checkers hold files of policies to it.
    """
    click.echo(json.dumps(policy_schema(), indent=2))
