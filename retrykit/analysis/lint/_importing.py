"""Modules of a lint target: found as files, then imported.

Output printed during an import goes to stderr. Folders are on sys.path only during
the imports. No bytecode is written: it would be stale for a file that is saved twice
within a second.
"""

import __future__

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module, invalidate_caches
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting
from retrykit.errors import ConfigError

__all__ = ["LoadFailure", "Source", "import_rest", "iter_source_files"]
__all__ += ["iter_submodules"]
__all__ += ["place_of", "split_target", "temporary_sys_path", "try_import"]

_TARGET_RULE = "a module, a .py file or a folder"
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist"}
_TESTS = {"test", "tests"}
# Scripts that run a package and build a project.
_PROGRAMS = {"__main__.py", "setup.py"}


@final
class Source(Frozen):
    """A module that can be imported.

    Attributes:
        name: Its dotted name.
        file: Its file.
        root: The folder that must be on sys.path to import it.
    """

    __slots__ = ("file", "name", "root")
    name: str
    file: Path
    root: Path


@final
class LoadFailure(Frozen):
    """A module that could not be imported, or a policy that could not be read.

    Attributes:
        module: The name of the module or policy.
        file: Its file, if known.
        line: The line in that file that failed; None if it is elsewhere.
        reason: The error, on one line.
    """

    __slots__ = ("file", "line", "module", "reason")
    module: str
    file: Path | None
    line: int | None
    reason: str

    @property
    def place(self) -> str:
        """The file relative to the current folder, with the line if known."""
        return place_of(self.file, self.line)


def place_of(file: Path | None, line: int | None) -> str:
    """Return a file relative to the current folder, with a line in it.

    >>> place_of(Path.cwd() / "shop.py", 7), place_of(None, None)
    ('shop.py:7', '')
    """
    if file is None:
        return ""
    here = Path.cwd()
    near = file.relative_to(here) if file.is_relative_to(here) else file
    return f"{near}:{line}" if line else f"{near}"


def split_target(target: str) -> tuple[str, str]:
    """Split a target into a module or path, and the name after a colon.

    >>> split_target("shop.orders:Client.fetch"), split_target("shop/orders.py")
    (('shop.orders', 'Client.fetch'), ('shop/orders.py', ''))
    """
    path, _, name = target.rpartition(":")
    return (path, name) if path and _is_dotted_name(name) else (target, "")


def iter_source_files(target: str) -> list[Source] | None:
    """Return the modules at a path; None if the target is a module name.

    An existing path takes precedence over a module of the same name. A folder
    includes all .py files below it, except tests (unless the path is in a tests
    folder), ``setup.py`` and ``__main__.py``, virtual environments, installed and
    built packages, caches and hidden files.
    """
    path = Path(target).absolute()
    if path.is_file() and path.suffix == ".py":
        return [_find_source(path, path.parent)]
    if path.is_dir():
        tests = not _TESTS.isdisjoint(Path(target).parts)
        sources = (_find_source(file, path) for file in _walk(path, tests=tests))
        return sorted(sources, key=_sort_key)
    if _is_dotted_name(target):
        return None
    raise invalid_setting("target", _TARGET_RULE, target, "there is none")


def iter_submodules(name: str, folder: Path) -> list[Source]:
    """Return the modules below a package that are in a folder of it."""
    tests = not _TESTS.isdisjoint(name.split("."))
    files = _walk(folder, tests=tests)
    sources = (Source(_module_name(file, folder, name), file, folder) for file in files)
    return sorted((each for each in sources if each.name != name), key=_sort_key)


def _walk(top: Path, *, tests: bool) -> Iterator[Path]:
    for path, folders, names in os.walk(top):
        folder = Path(path)
        folders[:] = (
            each
            for each in folders
            if not _is_skipped(folder / each) and (tests or each not in _TESTS)
        )
        yield from (
            folder / name
            for name in names
            if name.endswith(".py")
            and not name.startswith(".")
            and name not in _PROGRAMS
            and (tests or not _is_test_file(name))
        )


def _is_skipped(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()
    return hidden or (folder.name in _SKIPPED and not _is_package(folder))


def _is_test_file(name: str) -> bool:
    stem = name.removesuffix(".py")
    return stem.startswith("test_") or stem.endswith("_test") or stem == "conftest"


def _find_source(file: Path, top: Path) -> Source:
    root = file.parent
    for folder in file.parents:
        # Folders without an __init__ file belong to the package above them.
        if folder.is_relative_to(top) and _is_package(folder):
            root = folder
    while _is_package(root):
        root = root.parent
    return Source(_module_name(file, root), file, root)


def _module_name(file: Path, root: Path, prefix: str = "") -> str:
    parts = file.relative_to(root).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join((prefix, *parts) if prefix else parts)


def _sort_key(source: Source) -> tuple[Path, str]:
    return source.root, source.name


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").exists()


def _is_dotted_name(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


@contextmanager
def temporary_sys_path(folders: Sequence[Path], *, forget: bool) -> Iterator[None]:
    """Put folders at the front of sys.path for the duration of a block.

    With *forget*, modules that the block has imported from the folders are removed
    from sys.modules, except those in site-packages.
    """
    added = [str(folder) for folder in folders]
    before, bytecode = set(sys.modules), sys.dont_write_bytecode
    sys.path[:0] = added
    sys.dont_write_bytecode = True
    invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = bytecode
        added_modules = set(sys.modules) - before if forget else set()
        # All before any is removed: the paths of a subpackage need its parent.
        below = [x for x in added_modules if _is_below(sys.modules[x], folders)]
        for name in below:
            del sys.modules[name]
        for each in added:
            # A module may have removed it, or put others before it.
            if each in sys.path:
                sys.path.remove(each)


def try_import(name: str, source: Source | None = None) -> ModuleType | LoadFailure:
    """Import a module, or return why that failed.

    Raises:
        ConfigError: There is no such module, and no *source*.
    """
    file = source and source.file
    try:
        with redirect_stdout(sys.stderr):
            module = import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a script may call sys.exit
        if source is None and _is_missing(name, error):
            raise invalid_setting(
                "target", _TARGET_RULE, name, "there is none"
            ) from None
        file = file or _failed_file(error)
        line = _failed_line(error, file)
        return LoadFailure(name, file, line, _format_error(error))
    if file is None or file.resolve() in [each.resolve() for each in _paths(module)]:
        return module
    paths = ", ".join(map(str, _paths(module))) or "the interpreter"
    reason = f"another module with this name is already imported, from {paths}"
    return LoadFailure(name, file, None, reason)


def import_rest(failure: LoadFailure) -> tuple[ModuleType, list[LoadFailure]]:
    """Run a module whose import was ended by an invalid policy, without such policies.

    Statement by statement: one that raises a `ConfigError` is left out, or only the
    decorator in it that does.

    Returns:
        The module, and its failures; it is not in `sys.modules`.
    """
    name, file = failure.module, str(failure.file)
    module = ModuleType(name)
    module.__file__, module.__package__ = file, name.rpartition(".")[0]
    failures: list[LoadFailure] = []
    tree, flags = ast.parse(Path(file).read_bytes()), 0
    sys.modules[name] = module
    try:
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                features = (getattr(__future__, each.name) for each in node.names)
                flags |= sum(each.compiler_flag for each in features)
            while True:
                error = _run(node, module, flags)
                if not isinstance(error, ConfigError):
                    break
                line = _failed_line(error, Path(file))
                reason = _format_error(error)
                failures.append(LoadFailure(name, failure.file, line, reason))
                if not _remove_decorator(node, line):
                    break
            # A name may be missing because its policy is.
            if error is not None and not isinstance(error, ConfigError | NameError):
                line = _failed_line(error, Path(file))
                reason = _format_error(error)
                failures.append(LoadFailure(name, failure.file, line, reason))
                break
    finally:
        del sys.modules[name]
    return module, failures


def _run(node: ast.stmt, module: ModuleType, flags: int) -> BaseException | None:
    """Run a statement of a module, and return the error that it raised."""
    part = ast.Module([node], [])
    code = compile(part, str(module.__file__), "exec", flags, dont_inherit=True)
    try:
        with redirect_stdout(sys.stderr):
            exec(code, vars(module))  # noqa: S102  as its import does
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a script may call sys.exit
        return error
    return None


def _remove_decorator(node: ast.stmt, line: int | None) -> bool:
    """Remove the decorator on a line from a definition, and return whether it is."""
    for each in ast.walk(node):
        decorators = getattr(each, "decorator_list", [])
        for decorator in decorators:
            if line is not None and decorator.lineno <= line <= decorator.end_lineno:
                decorators.remove(decorator)
                return True
    return False


def _is_missing(name: str, error: BaseException) -> bool:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _format_error(error: BaseException) -> str:
    text, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _failed_file(error: BaseException) -> Path | None:
    """Return the file of the module that an error was raised in."""
    if isinstance(error, SyntaxError) and error.filename:
        return Path(error.filename)
    frames = (Path(frame.filename) for frame in extract_tb(error.__traceback__))
    # The outer frames belong to this module and the import system, partly frozen.
    outside = (each for each in frames if each.is_file() and each != Path(__file__))
    return next((each for each in outside if "importlib" not in each.parts), None)


def _failed_line(error: BaseException, file: Path | None) -> int | None:
    """Return the last line of a file in the traceback of an error."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno
    frames = extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return lines[-1] if lines else None


def _paths(module: object) -> list[Path]:
    """Return the file of a module, or the folders of a namespace package."""
    file = getattr(module, "__file__", None)
    known = [file] if file else getattr(module, "__path__", [])
    return [Path(each).absolute() for each in known]


def _is_below(module: object, folders: Sequence[Path]) -> bool:
    # Installed libraries stay: some cannot be imported twice.
    own = [path for path in _paths(module) if "site-packages" not in path.parts]
    return any(path.is_relative_to(folder) for path in own for folder in folders)
