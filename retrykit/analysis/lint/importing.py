"""Modules imported to be looked at, and the reasons why some cannot be.

What is printed while they are imported goes to the standard error output. The
folders that they are found in are searched only meanwhile, and no bytecode is
written there: a file that is saved twice within a second would be read as it was.
"""

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
from retrykit.analysis.lint.source_files import A_PLACE, Source

__all__ = ["ImportFailure", "imported", "place_of", "temporary_sys_path"]


@final
class ImportFailure(Frozen):
    """A module that could not be imported.

    Attributes:
        module: Its name.
        file: Its file, where that is known.
        line: The line in that file that failed; None where it is another's.
        reason: The error, in one line.
    """

    __slots__ = ("file", "line", "module", "reason")
    module: str
    file: Path | None
    line: int | None
    reason: str

    @property
    def place(self) -> str:
        """The file as it is typed in this folder, and the line, if known."""
        return place_of(self.file, self.line)


def place_of(file: Path | None, line: int | None) -> str:
    """Return a file as it is typed in this folder, with a line in it.

    >>> place_of(Path.cwd() / "shop.py", 7), place_of(None, None)
    ('shop.py:7', '')
    """
    if file is None:
        return ""
    here = Path.cwd()
    near = file.relative_to(here) if file.is_relative_to(here) else file
    return f"{near}:{line}" if line else f"{near}"


@contextmanager
def temporary_sys_path(folders: Sequence[Path], *, forget: bool) -> Iterator[None]:
    """Find modules in these folders, before all others, for a while.

    Args:
        folders: Where to search first.
        forget: Whether the modules that are imported from there are forgotten
            in the end, so that others can have their names.
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
        # All at once: a part of a package is not known without the package.
        fresh = set(sys.modules) - before if forget else set()
        for name in [name for name in fresh if _is_below(sys.modules[name], folders)]:
            del sys.modules[name]
        for each in added:
            # The modules may have taken it away, or put others before it.
            if each in sys.path:
                sys.path.remove(each)


def imported(name: str, source: Source | None = None) -> ModuleType | ImportFailure:
    """Import a module, or return why that cannot be.

    Args:
        name: Its name.
        source: Where it must come from, if that is known.

    Raises:
        ConfigError: There is no such module, and nothing said that there is.
    """
    file = source and source.file
    try:
        with redirect_stdout(sys.stderr):
            module = import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a script may end the process
        if source is None and _is_missing(name, error):
            raise invalid_setting("target", A_PLACE, name, "there is none") from None
        at = file or _file(error)
        return ImportFailure(name, at, _line(error, at), _told(error))
    if file is None or file.resolve() in [each.resolve() for each in _places(module)]:
        return module
    places = ", ".join(map(str, _places(module))) or "the interpreter"
    reason = f"another module of this name is imported, from {places}"
    return ImportFailure(name, file, None, reason)


def _is_missing(name: str, error: BaseException) -> bool:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _told(error: BaseException) -> str:
    text, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _file(error: BaseException) -> Path | None:
    """Return the file of the module that an error was raised in."""
    if isinstance(error, SyntaxError) and error.filename:
        return Path(error.filename)
    frames = (Path(frame.filename) for frame in extract_tb(error.__traceback__))
    # Above it are only this module and the import system, part of it frozen.
    outside = (each for each in frames if each.is_file() and each != Path(__file__))
    return next((each for each in outside if "importlib" not in each.parts), None)


def _line(error: BaseException, file: Path | None) -> int | None:
    """Return the line of a file that an error comes from."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno
    frames = extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return lines[-1] if lines else None


def _places(module: object) -> list[Path]:
    """Return the file of a module, or the folders of one that has none."""
    file = getattr(module, "__file__", None)
    known = [file] if file else getattr(module, "__path__", [])
    return [Path(each).absolute() for each in known]


def _is_below(module: object, folders: Sequence[Path]) -> bool:
    # A library in a virtual environment there may bear only one import.
    own = [place for place in _places(module) if "site-packages" not in place.parts]
    return any(place.is_relative_to(folder) for place in own for folder in folders)
