"""Modules and attributes that are named on the command line, and imported.

Output printed during an import goes to stderr. Folders are on sys.path only during
the imports. No bytecode is written: it would be stale for a file that is saved twice
within a second.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module, invalidate_caches
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from retrykit._core.policy import Policy
from retrykit._core.wrapping import WrappedCallable, find_wrapped
from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.audit._files import find_files
from retrykit.errors import ConfigError

__all__ = ["attribute_of", "find_attribute", "import_here", "import_script"]
__all__ += ["place_of", "policies_in"]


def place_of(file: str | Path, line: int) -> str:
    """Return a path, relative if it is in the current folder, and the line unless 0.

    >>> place_of(Path.cwd() / "shop.py", 7)
    'shop.py:7'
    """
    path, here = Path(file), Path.cwd()
    near = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{near}:{line}" if line else f"{near}"


def find_attribute(parameter: str, text: str, module: str, path: str) -> object:
    """Import a module, and return one of its attributes.

    Args:
        parameter: The parameter that an error names.
        text: The text that the user wrote for it.
        module: The name of the module.
        path: The name of the attribute, possibly dotted.

    Raises:
        ConfigError: The module cannot be imported, or has no such attribute.
    """
    return attribute_of(import_here(module), parameter, text, path)


def attribute_of(value: object, parameter: str, text: str, path: str) -> object:
    """Return an attribute of an imported module; see `find_attribute`."""
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            suggestion = did_you_mean(name, dir(value)) or f"there is no {name}"
            raise invalid_setting(
                parameter,
                "an attribute of its module",
                text,
                suggestion,
                code="unknown-name",
            ) from None
    return value


def import_here(name: str) -> ModuleType:
    """Import a module, from the current folder first, as ``python -m`` does."""
    with _on_path([Path.cwd()], forget=False):
        return _import(name, name)


def import_script(path: str, text: str) -> ModuleType:
    """Import a file, then forget it and what it imported from its folder or package.

    Args:
        path: The path of the file.
        text: The text that the user wrote for it.

    Raises:
        ConfigError: The file does not exist, or cannot be imported.
    """
    try:
        [file], _ = find_files([path])
    except ConfigError:
        raise invalid_setting(
            "POLICY", "in a file that exists", text, code="unreadable-file"
        ) from None
    folder = Path(path).absolute().parent
    root = folder
    for _ in range(file.package.count(".") + 1 if file.package else 0):
        root = root.parent
    with _on_path([root, folder], forget=True):
        module = _import(file.module, text)
    if not any(each.samefile(path) for each in _paths(module)):
        paths = ", ".join(map(str, _paths(module))) or "the interpreter"
        msg = f"{text} must be importable, got a module of this name from {paths}"
        raise ConfigError(msg, "unreadable-file")
    return module


def policies_in(module: ModuleType) -> dict[str, Policy]:
    """Return the policies that a module of a file defines, keyed by name.

    They are attributes of the module or of its classes: a `Policy`, or a decorated
    function or method. If the policy of a decorated function comes from another
    function, that one is called; if it raises, the decorated function is left out.
    """
    found: dict[str, Policy] = {}
    tree = ast.parse(Path(str(module.__file__)).read_bytes())
    stored = (each for each in ast.walk(tree) if isinstance(each, ast.Name))
    assigned = {each.id for each in stored if isinstance(each.ctx, ast.Store)}
    for name, value in _policies(module, vars(module), assigned, ""):
        with suppress(Exception):
            found[name] = value if isinstance(value, Policy) else value.policy
    return found


def _policies(
    module: ModuleType, values: Mapping[str, Any], assigned: set[str], prefix: str
) -> Iterator[tuple[str, Policy | WrappedCallable]]:
    """Yield policies and decorated functions that a module and its classes define.

    Each is yielded with its dotted name. What the module only imports is left out.
    """
    for name, value in list(values.items()):
        full = f"{prefix}{name}"
        if isinstance(value, type):
            if (value.__module__, value.__qualname__) == (module.__name__, full):
                yield from _policies(module, vars(value), assigned, f"{full}.")
        elif type(value) is Policy:
            if name in assigned:
                yield full, value
        else:
            wrapped = None
            # Proxies may raise any error for any attribute.
            with suppress(Exception):
                wrapped = find_wrapped(value)
            home = getattr(wrapped and wrapped.fn, "__module__", "")
            if wrapped is not None and home == module.__name__:
                yield full, wrapped


@contextmanager
def _on_path(folders: Sequence[Path], *, forget: bool) -> Iterator[None]:
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
        new = set(sys.modules) - before if forget else set()
        # All before any is removed: the paths of a subpackage need its parent.
        for name in [x for x in new if _is_below(sys.modules[x], folders)]:
            del sys.modules[name]
        for each in added:
            # A module may have removed it, or put others before it.
            if each in sys.path:
                sys.path.remove(each)


def _import(name: str, text: str) -> ModuleType:
    """Import a module; errors name it as the user wrote it."""
    try:
        with redirect_stdout(sys.stderr):
            return import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a script may call sys.exit
        if _is_missing(name, error):
            msg = f"{text} must be importable from this folder, got no such module"
            raise ConfigError(msg, "unknown-name") from None
        place = _failed_place(error)
        where = f" at {place}" if place else ""
        msg = f"{text} must be importable, got {_in_words(error)}{where}"
        raise ConfigError(msg, "unreadable-file") from None


def _is_missing(name: str, error: BaseException) -> bool:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _in_words(error: BaseException) -> str:
    text, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _failed_place(error: BaseException) -> str:
    """Return the place in the module where an error was raised, or ""."""
    if isinstance(error, SyntaxError) and error.filename:
        return place_of(error.filename, error.lineno or 0)
    # The outer frames belong to this module and the import system, partly frozen.
    frames = [
        each
        for each in extract_tb(error.__traceback__)
        if Path(each.filename).is_file() and each.filename != __file__
    ]
    outside = [x for x in frames if "importlib" not in Path(x.filename).parts]
    if not outside:
        return ""
    file = outside[0].filename
    last = [each.lineno or 0 for each in frames if each.filename == file][-1]
    return place_of(file, last)


def _paths(module: object) -> list[Path]:
    """Return the file of a module, or the folders of a namespace package."""
    file = getattr(module, "__file__", None)
    known = [file] if file else getattr(module, "__path__", [])
    return [Path(each).absolute() for each in known]


def _is_below(module: object, folders: Sequence[Path]) -> bool:
    # Installed libraries stay: some cannot be imported twice.
    own = [path for path in _paths(module) if "site-packages" not in path.parts]
    return any(path.is_relative_to(folder) for path in own for folder in folders)
