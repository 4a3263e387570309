"""Policies in source code, which is read and never executed."""

import sys
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, final

from retrykit._core.policy import Policy
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import (
    check_instance,
    invalid_setting,
    user_facing,
)
from retrykit.analysis.lint._rules import RULES, Finding, check
from retrykit.analysis.lint._static import UnknownValueError, policy_at
from retrykit.audit._files import find_files
from retrykit.audit._findings import Problem
from retrykit.audit._project import Project
from retrykit.audit._reading import Reading
from retrykit.audit._rules import RULES as RULES_OF_SITES, check_site
from retrykit.audit._scan import scan
from retrykit.audit._sites import Site
from retrykit.audit._values import Call, Operation, Value
from retrykit.errors import ConfigError

__all__ = ["Discovery", "Found", "Progress", "discover"]

Progress = Callable[[int, int], object]
"""A function of the number of files that have been read, and of the number of files."""

_TARGET_RULE: Final = "a file, a folder or a module"
_TESTS: Final = ("test", "tests", "test_*.py", "*_test.py", "conftest.py")
_SHARED: Final = {x: RULES_OF_SITES[x] for x in RULES if x in RULES_OF_SITES}
"""The rules that can also judge a policy that is known only in part."""


@final
class Found(Frozen):
    """A policy in source code: of a decorator, a block, a call or a preset.

    Attributes:
        name: The name to which the policy is assigned, or else the name of the function
            that it retries or that contains it, within the module; "" if there is none.
        policy: The policy; None if something that matters is known only at run time.
        site: Where the policy is, and what is known of it.
        ignored: The rules that a comment ``# retrykit: ignore[RULE]`` leaves out.
    """

    __slots__ = ("ignored", "name", "policy", "site")
    name: str
    policy: Policy | None
    site: Site
    ignored: frozenset[str]

    def __str__(self) -> str:
        place = f"{self.site.path}:{self.site.line}"
        return f"{place}: {self.name}" if self.name else place

    def check(self, **limits: Any) -> tuple[Finding, ...]:
        """Return the warnings about the policy.

        A policy that is known only in part is checked by the rules that lint and
        `retrykit.audit` share.

        Args:
            limits: The arguments of `retrykit.analysis.lint.check`.

        Raises:
            ConfigError: An argument is invalid.
        """
        # The arguments are checked in any case.
        findings = check(self.policy or Policy(), **limits)
        if self.policy is None:
            chosen = {*limits.get("rules", RULES)}
            shared = {x: rule for x, rule in _SHARED.items() if x in chosen}
            findings = tuple(
                Finding(each.rule, each.message, each.fix)
                for each in check_site(self.site, shared)
            )
        return tuple(each for each in findings if each.rule not in self.ignored)


@final
class Discovery(Frozen):
    """The policies in the source code of a target.

    Attributes:
        found: The policies, each once, file by file.
        failures: The policies that are invalid, and the files that cannot be read.
    """

    __slots__ = ("failures", "found")
    found: tuple[Found, ...]
    failures: tuple[Problem, ...]


def _say_nothing(_done: int, _all: int) -> None:
    return


@user_facing
def discover(
    target: str | Path, *, processes: int = 1, progress: Progress = _say_nothing
) -> Discovery:
    """Return the policies in source code, without importing or executing it.

    It finds decorators, retried blocks, policies and presets. It reads settings that
    are literals, error classes, constants in the target's files or calls of this
    package; a policy with other settings may be known only in part.

    >>> discover("retrykit.schedules")
    Discovery(found=(), failures=())

    Args:
        target: A file, a folder, or the name of a module or a package. In a folder,
            tests are left out, as are virtual environments, caches, builds and hidden
            files.
        processes: How many processes read files. Count, >= 1.
        progress: Called with the number of files that have been read, and the number of
            all files.

    Raises:
        ConfigError: There is no such file, folder or module.
    """
    is_path = isinstance(target, Path)
    path = _path_of(str(target) if is_path else check_instance("target", target, str))
    files, problems = find_files([path], _TESTS, Path(path))
    readings = scan(files, processes, progress)
    for each in readings:
        problems += each.problems
    project = Project.of_files(files, readings)
    by_path = {file.path: x for file, x in zip(files, readings, strict=True)}
    names = _Names(project)
    found = []
    for site, call in _sites(project):
        name = names.name_of(site, call)
        try:
            policy = policy_at(call, project)
        except UnknownValueError:
            policy = None
        except ConfigError as error:
            reason = f"{name}: {error.message}" if name else error.message
            problems.append(Problem(site.path, site.line, reason))
            continue
        ignored = frozenset(_ignored(by_path[site.path], site))
        found.append(Found(name, policy, site, ignored))
    return Discovery(tuple(found), tuple(problems))


def _path_of(target: str) -> str:
    """Return a target's path; for a module, the path of its file or folder.

    Raises:
        ConfigError: There is no such file, folder or module.
    """
    if Path(target).exists():
        return target
    found = _find_module(target.split("."))
    if found is None:
        raise invalid_setting(
            "target", _TARGET_RULE, target, "there is none", code="unreadable-file"
        )
    return found


def _find_module(parts: list[str]) -> str | None:
    """Return the path of a module, which is not imported; None if there is none."""
    path = [str(Path.cwd()), *sys.path]
    origin = None
    for count in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:count]), path)
        if spec is None:
            return None
        path = [*(spec.submodule_search_locations or ())]
        origin = spec.origin if spec.has_location else None
    return path[0] if path else origin


def _ignored(reading: Reading, site: Site) -> Iterator[str]:
    """Yield the rules that comments on a site's lines ignore: all, if none is named."""
    for line in range(site.line, site.end_line + 1):
        codes = reading.ignored.get(line)
        if codes is not None:
            yield from codes or RULES


def _sites(project: Project) -> Iterator[tuple[Site, Call]]:
    """Yield the sites that use this package, except the bases of ``.replace(...)``."""
    calls = [(each, project.call_of(each)) for each in project.sites()]
    bases: dict[tuple[str, int, int], list[Value]] = {}
    for site, call in calls:
        if call is not None and type(call.function) is Operation:
            place = (site.path, site.line, site.column)
            bases.setdefault(place, []).append(call.function.left)
    for site, call in calls:
        place = (site.path, site.line, site.column)
        if site.library == "retrykit" and call is not None:
            replaced = call in bases.get(place, ())
            if not replaced:
                yield site, call


class _Names:
    """The names of policies and of the functions that they retry."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._modules = {each.path: each for each in project.sources}
        # By path and line.
        self._constants: dict[tuple[str, int], list[tuple[str, Call]]] = {}
        for path, module in self._modules.items():
            names: dict[Call, list[str]] = {}
            for name, value in module.constants.items():
                if type(value) is Call:
                    names.setdefault(value, []).append(name)
            for each in module.candidates:
                if names.get(each.call):
                    # Another constant may be equal.
                    found = names[each.call].pop(0), each.call
                    self._constants.setdefault((path, each.line), []).append(found)

    def name_of(self, site: Site, call: Call) -> str:
        """Return the name of a site in its module, as in `Found`; "" if it has none."""
        module = self._modules[site.path]
        for name, value in self._constants.get((site.path, site.line), ()):
            if self._project.resolve(value) == call:
                return name
        for each in module.definitions:
            for _, line, end_line, _ in each.decorators:
                if line <= site.line <= end_line:
                    return each.name.removeprefix(f"{module.name}.")
        return site.function.removeprefix(f"{module.name}.")
