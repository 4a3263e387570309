"""Policies and decorated functions defined in a module, a package or a folder."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, final

from retrykit._core.policy import Policy
from retrykit._core.wrapping import WrappedCallable, find_wrapped
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.analysis.lint._importing import (
    LoadFailure,
    Source,
    import_rest,
    iter_source_files,
    iter_submodules,
    split_target,
    temporary_sys_path,
    try_import,
)

__all__ = ["Discovery", "Found", "PolicyReference", "Progress", "discover"]
__all__ += ["iter_references"]

Progress = Callable[[str, int], object]
"""Called with the name of each module before its import, and the number of modules."""


@final
class Found(Frozen):
    """A policy, or a callable with a policy, in a module.

    Attributes:
        module: The name of its module.
        name: Its name in the module: ``fetch``, ``Client.fetch``, ``CALLS[0]``.
        policy: Its policy.
        file: The file of the module, if any.
        line: The line of its ``def`` or assignment, if known.
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
    """The policies of a target, and the modules that could not be imported.

    Attributes:
        found: The policies and callables with one, each once, module by module.
        failures: The modules that could not be imported.
    """

    __slots__ = ("failures", "found")
    found: tuple[Found, ...]
    failures: tuple[LoadFailure, ...]


@final
class PolicyReference(Frozen):
    """A policy or a callable with a policy, under its name in a module."""

    __slots__ = ("name", "value")
    name: str
    value: Policy | WrappedCallable

    @property
    def policy(self) -> Policy:
        """The policy, for which a function may be asked."""
        return self.value if isinstance(self.value, Policy) else self.value.policy


@user_facing
def discover(
    target: str, *, progress: Progress = lambda _name, _all: None
) -> Discovery:
    """Import a target, and return the policies that are defined there.

    Finds policies, results of `with_policy`, and decorated functions and methods of
    every kind, also under other decorators that use `functools.wraps`. They may be
    attributes of modules and classes, or items of a list, tuple or dict that is such
    an attribute. Names imported from elsewhere do not count. A function that returns
    the policy of each call is called once; if it raises, its callable is left out.

    >>> discover("retrykit.schedules")
    Discovery(found=(), failures=())

    The code of the modules runs, as with any import. A package or folder includes
    everything below it except ``__main__`` and tests.

    Args:
        target: The name of a module or a package, the path of a .py file or a
            folder, or one of these with ``:`` and a name in it.
        progress: Called with the name of each module before its import, and the
            number of modules.

    Raises:
        ConfigError: There is no such module, path or name, or the name has no policy.
    """
    location, name = split_target(check_instance("target", target, str))
    path = Path(location)
    # "folder:name" is a name in the package of the folder.
    path = path / "__init__.py" if name and path.is_dir() else path
    sources = iter_source_files(str(path))
    reader = _Reader(name, progress)
    if sources is None:
        reader.read_module(location)
    else:
        reader.read_files(sources, path.absolute())
    return Discovery(tuple(reader.found), tuple(reader.failures))


class _Reader:
    """Imports modules one by one, and collects their policies."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.found: list[Found] = []
        self.failures: list[LoadFailure] = []
        self._name = name
        self._progress = progress
        # By identity; the values are kept alive, so that no id is reused.
        self._seen: dict[int, object] = {}

    def read_module(self, module: str) -> None:
        """Read a module and its submodules."""
        with temporary_sys_path([Path.cwd()], forget=False):
            self._progress(module, 1)
            top = try_import(module)
            if isinstance(top, LoadFailure):
                self._report(top)
                return
            self._collect(top)
            if not self._name:
                sources = [
                    source
                    for folder in map(Path, getattr(top, "__path__", []))
                    for source in iter_submodules(module, folder)
                ]
                self._read(sources, len(sources) + 1)

    def read_files(self, sources: Sequence[Source], path: Path) -> None:
        """Read the files at a path."""
        for root, group in groupby(sources, lambda source: source.root):
            with temporary_sys_path([root, path], forget=True):
                self._read([*group], len(sources))

    def _read(self, sources: Sequence[Source], count: int) -> None:
        unread: dict[Source, LoadFailure] = {}
        for source in sources:
            # If a package fails, everything below it fails with the same error.
            if any(source.name.startswith(f"{failed.name}.") for failed in unread):
                continue
            self._progress(source.name, count)
            module = try_import(source.name, source)
            if isinstance(module, LoadFailure):
                unread[source] = module
            else:
                self._collect(module)
        for source, failure in unread.items():
            # A module in an import cycle may fail first, and succeed from another one.
            retried = source.name in sys.modules and try_import(source.name, source)
            if isinstance(retried, ModuleType):
                self._collect(retried)
            else:
                self._report(failure)

    def _report(self, failure: LoadFailure) -> None:
        """Report a failure; if one policy is invalid, collect the others."""
        if failure.line is None or not failure.reason.startswith("ConfigError: "):
            self.failures.append(failure)
            return
        module, failures = import_rest(failure)
        self.failures += failures
        self._collect(module)

    def _collect(self, module: ModuleType) -> None:
        lines = _read_lines(module)
        own = [*_own_references(module, lines)]
        for each in _select(module, self._name, own) if self._name else own:
            if id(each.value) not in self._seen:
                self._seen[id(each.value)] = each.value
                # A function that returns the policy of a call may fail here.
                with suppress(Exception):
                    self.found.append(_describe(module, each, lines or {}))


def _select(
    module: ModuleType, name: str, own: Iterable[PolicyReference]
) -> Sequence[PolicyReference]:
    """Return the references with a name in a module, or below it."""
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            rule = f"a name in {module.__name__}"
            raise invalid_setting("target", rule, name, "there is none") from None
    inside = f"{name}.", f"{name}["
    found = [each for each in own if each.name == name or each.name.startswith(inside)]
    # A target may name something that the module imports.
    found = found or [*iter_references(name, value)]
    if not found:
        rule = "decorated with retry or aretry, or a Policy"
        raise invalid_setting("target", rule, value)
    return found


def _describe(
    module: ModuleType, reference: PolicyReference, lines: Mapping[str, int]
) -> Found:
    file = getattr(module, "__file__", None)
    name, _, _ = reference.name.partition("[")
    # The setter of a property has the line of the property.
    line = lines.get(name, lines.get(name.rpartition(".")[0]))
    path = Path(file).absolute() if file else None
    return Found(module.__name__, reference.name, reference.policy, path, line)


def _read_lines(module: ModuleType) -> dict[str, int] | None:
    """Return the lines of the dotted names defined in a module; None without source."""
    with suppress(OSError, SyntaxError, ValueError, RecursionError):
        source = Path(str(getattr(module, "__file__", ""))).read_bytes()
        return dict(_iter_lines(ast.parse(source), ""))
    return None


_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _iter_lines(tree: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _DEFINITIONS):
            yield f"{prefix}{node.name}", node.lineno
            if isinstance(node, ast.ClassDef):
                yield from _iter_lines(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield f"{prefix}{node.id}", node.lineno
        elif not isinstance(node, _SCOPES):
            yield from _iter_lines(node, prefix)


def _own_references(
    module: ModuleType, lines: Mapping[str, int] | None
) -> Iterator[PolicyReference]:
    """Yield the references that a module defines rather than imports, in order."""
    for name, value in _iter_names(module, vars(module), ""):
        if lines is None or name in lines:
            for reference in iter_references(name, value):
                if _is_own(reference, module, assigned=lines is not None):
                    yield reference


def iter_references(name: str, value: Any) -> Iterator[PolicyReference]:
    """Yield the policies that a value is or contains."""
    kind = type(value)
    if issubclass(kind, property):
        parts = {"": value.fget, ".setter": value.fset, ".deleter": value.fdel}
    elif issubclass(kind, list | tuple):
        parts = {f"[{index}]": each for index, each in enumerate(value)}
    elif issubclass(kind, dict):
        parts = {f"[{key!r}]": each for key, each in list(value.items())}
    else:
        parts = {"": value}
    for part, each in parts.items():
        policy_or_callable = _find_policy(each)
        if policy_or_callable is not None:
            yield PolicyReference(f"{name}{part}", policy_or_callable)


def _find_policy(value: Any) -> Policy | WrappedCallable | None:
    if type(value) is Policy:
        return value
    # Proxies may raise any error for any attribute.
    with suppress(Exception):
        return find_wrapped(value)
    return None


def _iter_names(
    module: ModuleType, values: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, Any]]:
    """Yield the names of a module and of the classes defined in it."""
    for name, value in list(values.items()):
        inner = issubclass(type(value), type) and value.__module__ == module.__name__
        if inner and value.__qualname__ == f"{prefix}{name}":
            yield from _iter_names(module, vars(value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_own(reference: PolicyReference, module: ModuleType, *, assigned: bool) -> bool:
    """Return whether a module defines a reference rather than imports it."""
    if isinstance(reference.value, Policy):
        return assigned
    fn = reference.value.fn
    home = str(getattr(fn, "__module__", ""))
    if home == module.__name__ or not assigned:
        return home == module.__name__
    original: Any = sys.modules.get(home)
    for part in str(getattr(fn, "__qualname__", "")).split("."):
        original = inspect.getattr_static(original, part, None)
    return all(
        each.value is not reference.value for each in iter_references("", original)
    )
