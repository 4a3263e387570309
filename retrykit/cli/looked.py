"""What a lint looks at: the policies that its targets hold, and where."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, final

from rich.progress import Progress

from retrykit.cli.targets import chosen, file_of, imported, is_policy
from retrykit.cli.terminal import progress
from retrykit.lint import found_in
from retrykit.policy import Policy
from retrykit.records import safe_text
from retrykit.values import Value

__all__ = ["Case", "look"]


@final
class Case(Value):
    """A policy, and where it is written; or what cannot be read there.

    Attributes:
        name: What has it: a policy, a function, or a module with a fault.
        file: The file; None for what is named without one.
        line: The line in it; None where that cannot be told.
        policy: The policy; the default one where there is a fault.
        fault: Why it cannot be read; empty where it can.
    """

    __slots__ = ("fault", "file", "line", "name", "policy")
    name: str
    file: Path | None
    line: int | None
    policy: Policy
    fault: str

    @property
    def near(self) -> Path | None:
        """The file as it would be typed here."""
        here = Path.cwd()
        below = self.file is not None and self.file.is_relative_to(here)
        return self.file.relative_to(here) if self.file and below else self.file

    def __str__(self) -> str:
        if self.file is None:
            return self.name
        return f"{self.near}{f':{self.line}' if self.line else ''}: {self.name}"

    def unread(self, error: Exception) -> Self:
        """Return the case of a policy that raises when it is looked at."""
        fault = f"{type(error).__name__}: {safe_text(error)}"
        same: Self = self.replaced(fault=fault)
        return same


def look(
    targets: Sequence[str], flags: Mapping[str, Any]
) -> tuple[list[Case], list[Case]]:
    """Return the policies of some targets, and what of them cannot be read.

    Args:
        targets: Policies, modules and paths; none is the policy of the flags.
        flags: What `policy_flags` gave; they change the policies that are named,
            not those that are found in code.

    Raises:
        ConfigError: There is no such target.
    """
    for module in flags["imports"]:
        imported(module)
    # What is imported comes from this folder first, as for ``python -m``.
    if "" not in sys.path:
        sys.path.insert(0, "")
    cases: list[Case] = []
    unread: list[Case] = []
    for target in targets or (None,):
        if target is None or is_policy(target):
            cases += _named(target, flags)
        else:
            found, faults = _found(target)
            cases += found
            unread += faults
    return cases, unread


def _named(target: str | None, flags: Mapping[str, Any]) -> list[Case]:
    meant = chosen([] if target is None else [target], flags)
    file = target and file_of(target)
    return [
        Case(name, Path(file) if file else None, None, policy, "")
        for name, policy in meant.items()
    ]


def _found(target: str) -> tuple[list[Case], list[Case]]:
    """Return what is found in code, and what cannot be imported."""
    with progress() as bar:
        told = found_in(target, progress=_advancing(bar))
    found = [
        Case(each.name, each.file, each.line, each.policy, "") for each in told.found
    ]
    faults = [
        Case(each.module, each.file, each.line, Policy(), each.reason)
        for each in told.unread
    ]
    return found, faults


def _advancing(bar: Progress) -> Callable[[str, int], None]:
    task = bar.add_task("importing", total=None)

    def advance(_module: str, modules: int) -> None:
        bar.update(task, total=modules, advance=1)

    return advance
