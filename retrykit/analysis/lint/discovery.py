"""Every policy that a module, a package or a folder of code is written with."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.analysis.lint.importing import ImportFailure, imported, temporary_sys_path
from retrykit.analysis.lint.module_scan import PolicyReference, held, held_by, lines
from retrykit.analysis.lint.source_files import Source, below, iter_source_files, split
from retrykit.policy.policy import Policy

__all__ = ["Discovery", "Found", "Progress", "discover"]

Progress = Callable[[str, int], object]
"""Told the name of each module before it is imported, and how many there are."""


@final
class Found(Frozen):
    """Something that is written with a policy.

    Attributes:
        module: The name of its module.
        name: Its name in there: ``fetch``, ``Client.fetch``, ``CALLS[0]``.
        policy: Its policy.
        file: The file of the module; None if it has none.
        line: The line of its ``def``, or of the assignment; None where that
            cannot be told.
    """

    __slots__ = ("file", "line", "module", "name", "policy")
    module: str
    name: str
    policy: Policy
    file: Path | None
    line: int | None

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@final
class Discovery(Frozen):
    """What was found, and where nothing could be looked for.

    Attributes:
        found: What has a policy, each once, module by module.
        unread: The modules that could not be imported.
    """

    __slots__ = ("found", "unread")
    found: tuple[Found, ...]
    unread: tuple[ImportFailure, ...]


def discover(
    target: str, *, progress: Progress = lambda _name, _all: None
) -> Discovery:
    """Import what a target names, and return what is written there with a policy.

    Decorated functions and methods of every kind, also under other decorators
    that follow `functools.wraps`; results of `with_policy`; and policies: by
    the names of modules and of the classes in them, and in lists, tuples and
    dicts under such a name. What is imported from elsewhere is not written
    there, and is left out.

    >>> discover("retrykit.schedules")
    Discovery(found=(), unread=())

    The code of the modules runs, as at any import. A package is looked at with
    all that is below it, but for ``__main__`` and tests; a folder is searched
    for files in the same way.

    Args:
        target: The name of a module or a package, the path of a .py file or a
            folder, or one of these with ``:`` and a name in it.
        progress: Told the name of each module before it is imported, and how
            many there are.

    Raises:
        ConfigError: There is no such module, path or name, or what has that
            name has no policy.
    """
    place, name = split(check_instance("target", target, str))
    # A name in a folder is one of the package that the folder is.
    path = Path(place, "__init__.py") if name and Path(place).is_dir() else Path(place)
    sources = iter_source_files(str(path))
    reading = _Reading(name, progress)
    if sources is None:
        reading.read_module(place)
    else:
        reading.read_files(sources, path.absolute())
    return Discovery(tuple(reading.found), tuple(reading.unread))


@final
class _Reading:
    """Modules that are read one after the other, and what came of it."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.found: list[Found] = []
        self.unread: list[ImportFailure] = []
        self._name = name
        self._progress = progress
        # What has been found, by what it is: kept, so that nothing else comes
        # to be where it was.
        self._known: dict[int, object] = {}

    def read_module(self, module: str) -> None:
        """Read a module and what is below it."""
        with temporary_sys_path([Path.cwd()], forget=False):
            self._progress(module, 1)
            top = imported(module)
            if isinstance(top, ImportFailure):
                self.unread.append(top)
                return
            self._look(top)
            if not self._name:
                folders = map(Path, getattr(top, "__path__", []))
                parts = [each for at in folders for each in below(module, at)]
                self._read(parts, len(parts) + 1)

    def read_files(self, sources: Sequence[Source], path: Path) -> None:
        """Read the files that were found at a path."""
        for root, group in groupby(sources, lambda source: source.root):
            with temporary_sys_path([root, path], forget=True):
                self._read([*group], len(sources))

    def _read(self, sources: Sequence[Source], count: int) -> None:
        unread: dict[Source, ImportFailure] = {}
        for source in sources:
            # What a package fails with, everything below it would fail with.
            if any(source.name.startswith(f"{bad.name}.") for bad in unread):
                continue
            self._progress(source.name, count)
            module = imported(source.name, source)
            if isinstance(module, ImportFailure):
                unread[source] = module
            else:
                self._look(module)
        for source, bad in unread.items():
            # One of a circle fails, and is imported when another one is.
            late = source.name in sys.modules and imported(source.name, source)
            if isinstance(late, ModuleType):
                self._look(late)
            else:
                self.unread.append(bad)

    def _look(self, module: ModuleType) -> None:
        written = lines(module)
        own = [*held(module, written)]
        for each in _named(module, self._name, own) if self._name else own:
            if id(each.value) not in self._known:
                self._known[id(each.value)] = each.value
                self.found.append(_found(module, each, written or {}))


def _named(
    module: ModuleType, name: str, own: Iterable[PolicyReference]
) -> Sequence[PolicyReference]:
    """Return what has a name in a module, or is below it.

    Raises:
        ConfigError: There is no such name, or nothing there has a policy.
    """
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            rule = f"a name in {module.__name__}"
            raise invalid_setting("target", rule, name, "there is none") from None
    inside = f"{name}.", f"{name}["
    found = [each for each in own if each.name == name or each.name.startswith(inside)]
    # What is imported into the module is found where it is asked for.
    found = found or [*held_by(name, value)]
    if not found:
        rule = "decorated with retry or aretry, or a Policy"
        raise invalid_setting("target", rule, value)
    return found


def _found(
    module: ModuleType, own: PolicyReference, written: Mapping[str, int]
) -> Found:
    file = getattr(module, "__file__", None)
    name, _, _ = own.name.partition("[")
    # The parts of a property are told by its name.
    line = written.get(name, written.get(name.rpartition(".")[0]))
    place = Path(file).absolute() if file else None
    return Found(module.__name__, own.name, own.policy, place, line)
