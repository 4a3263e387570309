"""Exception types by name: ``OSError``, ``package.module:Name``.

Reading a name never imports a module.
"""

import builtins
import sys

from retrykit._internal.late_modules import inspect
from retrykit._internal.validation import invalid_setting, safe_repr

__all__ = ["type_from_name", "type_name", "type_to_name"]


def type_name(kind: type) -> str:
    """Return ``module.Name`` for a class, ``Name`` for a built-in one."""
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def type_to_name(name: str, kind: object) -> str:
    """Return the name by which `type_from_name` finds a type."""
    if isinstance(kind, type):
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}:"
        text = f"{module}{kind.__qualname__}"
        if _find(text) is kind:
            return text
    rule = "importable exception types in a policy that is written as data"
    suggestion = f"leave it out, and add it with .replace({name}=...)"
    raise invalid_setting(name, rule, kind, suggestion)


def type_from_name(name: str, text: object) -> object:
    """Return the type with a name such as ``OSError`` or ``package.module:Name``."""
    found = _find(text) if isinstance(text, str) else None
    if not isinstance(text, str) or not isinstance(found, type):
        module = text.rpartition(":")[0] if isinstance(text, str) else ""
        rule = "the name of an exception type, such as OSError or module:Name"
        suggestion = "write module:Name for a type that is not built in"
        if module:
            imported = module in sys.modules
            shown = safe_repr(module).strip("'")
            missing = f"{shown} has no such type"
            suggestion = missing if imported else f"import {shown} first"
        raise invalid_setting(name, rule, text, suggestion)
    return found


def _find(text: str) -> object:
    module, colon, path = text.rpartition(":")
    # An import would let a settings file run code, and so would a dynamic attribute
    # of a lazy module or a property.
    found: object = sys.modules.get(module) if colon else builtins
    for part in path.split("."):
        if found is None:
            break
        found = inspect.getattr_static(found, part, None)
    return found
