"""The commands that the README, docs and the help of the program show.

A command that is written down is found here, so it is tested from then on.
"""

import inspect
import re
from typing import NamedTuple

import click

from retrykit._cli.program import program
from tests._support.documents import PAGES, blocks, page_id

__all__ = ["Documented", "documented_commands", "leaf_commands", "outputs"]


class Documented(NamedTuple):
    """A line of a shell, after what its block has exported before.

    Attributes:
        source: The page, or the command whose help shows it.
        line: The line as it is written.
        script: The line after the exports.
    """

    source: str
    line: str
    script: str

    @property
    def of_jobs(self):
        """Whether it needs durable jobs."""
        return "retrykit jobs" in self.line or "RETRYKIT_APP" in self.line

    def __str__(self):
        return f"{self.source}: {self.line}"


def documented_commands():
    """Return all lines of shells in the README and docs, and all examples in helps.

    A line that stands in several places is returned once.
    """
    every = [*_in_helps(), *_in_pages()]
    return [*{each.script: each for each in every}.values()]


def _in_pages():
    for page in PAGES:
        for language, block in blocks(page):
            exports = []
            for line in block.splitlines() if language == "sh" else []:
                shown = re.sub(" +", " ", line.partition(" #")[0]).strip()
                script = "\n".join([*exports, shown])
                yield Documented(page_id(page), shown, script)
                exports += [line] if line.startswith("export ") else []


def _in_helps():
    for path, command in leaf_commands():
        for line in inspect.cleandoc(command.epilog or "").splitlines():
            if line.startswith("  ") and re.search(r"\bretrykit \w", line):
                source = " ".join(["retrykit", *path, "--help"])
                yield Documented(source, line.strip(), line.strip())


def leaf_commands(command=program, path=()):
    """Yield the path and the object of a command and of all below it."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            yield from leaf_commands(below, (*path, name))


_FILES = {"chart": [".html", ".png", ".svg"], "simulate": [".png", ".svg"]}
_FILES["audit"] = [".html", ".json", ".sarif"]
_OF_SOURCE_CODE = {"audit", "migrate"}
# No preset can be written in this format.
_INSTEAD = {"grpc": ["grpc.json:shop.Orders/Place", "--method", "shop.Orders/Place"]}
# At the default load, no preset recovers.
_INSTEAD["--require-recovery"] = ["--max-attempts", "1", "--load", "10%"]


def outputs(command, preset):
    """Yield the arguments of a command for each kind of its output.

    The kinds are found in its parameters: each flag, each choice of a required option,
    and each type of file that ``--output`` writes.
    """
    arguments, kinds = [], [[]]
    for each in command.params:
        if isinstance(each, click.Argument):
            choices = getattr(each.type, "choices", None)
            if choices is not None:
                kinds = [[choice] for choice in choices]
            else:
                source = command.name in _OF_SOURCE_CODE
                arguments.append("src" if source else preset)
        elif each.is_flag:
            kinds += [[flag] for flag in (each.opts[0], *each.secondary_opts)]
        elif isinstance(each.type, click.Choice) and each.required:
            kinds = [[each.opts[0], choice] for choice in each.type.choices] + kinds[1:]
        elif each.name == "output":
            kinds += [[each.opts[0], f"out{suffix}"] for suffix in _FILES[command.name]]
    return [
        [*_INSTEAD.get(kind[-1] if kind else "", arguments), *kind]
        for kind in kinds
        if kind not in (["--debug"], ["--closest"])
    ]
