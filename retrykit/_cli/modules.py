"""Modules and attributes that are named on the command line."""

from pathlib import Path
from types import ModuleType

from retrykit._internal.validation import did_you_mean, invalid_setting
from retrykit.analysis.lint import LoadFailure, _importing as importing
from retrykit.errors import ConfigError

__all__ = ["find_attribute", "import_error", "import_here"]


def find_attribute(parameter: str, text: str, module: str, path: str) -> object:
    """Return an attribute of a module.

    Args:
        parameter: The parameter that an error names.
        text: The text that the user wrote for it.
        module: The name of the module.
        path: The name of the attribute, possibly dotted.
    """
    value: object = import_here(module)
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            suggestion = did_you_mean(name, dir(value)) or f"there is no {name}"
            raise invalid_setting(
                parameter, "an attribute of its module", text, suggestion
            ) from None
    return value


def import_here(name: str) -> ModuleType:
    """Import a module, from the current folder first, as ``python -m`` does."""
    with importing.temporary_sys_path([Path.cwd()], forget=False):
        try:
            module = importing.try_import(name)
        except ConfigError:
            msg = f"{name} must be importable from this folder, got no such module"
            raise ConfigError(msg) from None
    if isinstance(module, LoadFailure):
        raise import_error(name, module)
    return module


def import_error(name: str, failure: LoadFailure) -> ConfigError:
    """Return the error for a module that could not be imported."""
    place = f" at {failure.place}" if failure.place else ""
    return ConfigError(f"{name} must be importable, got {failure.reason}{place}")
