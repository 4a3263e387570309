"""Exception types as texts: ``OSError``, ``package.module:Name``.

Reading never imports a module. What the types are for is not known here.
"""

import builtins
import inspect
import sys

from retrykit._internal.validation import invalid_setting, safe_repr

__all__ = ["type_from_name", "type_name", "type_to_name"]


def type_name(kind: type) -> str:
    """Return ``module.Name`` of a class, and ``Name`` of a built-in one."""
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def type_to_name(name: str, kind: object) -> str:
    """Return the text that names a type, and by which it is found again."""
    if isinstance(kind, type):
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}:"
        text = f"{module}{kind.__qualname__}"
        if _found(text) is kind:
            return text
    rule = "types that their modules hold by name, in a policy that is written as data"
    raise invalid_setting(name, rule, kind)


def type_from_name(name: str, text: object) -> object:
    """Return the type that a text names: ``OSError``, ``package.module:Name``."""
    found = _found(text) if isinstance(text, str) else None
    if not isinstance(text, str) or not isinstance(found, type):
        module = text.rpartition(":")[0] if isinstance(text, str) else ""
        rule = "the name of an exception type, as OSError or module:Name"
        suggestion = "for a type that is not built in write module:Name"
        if module:
            there = module in sys.modules
            shown = safe_repr(module).strip("'")
            suggestion = f"{shown} has none" if there else f"import {shown} first"
        raise invalid_setting(name, rule, text, suggestion)
    return found


def _found(text: str) -> object:
    module, colon, path = text.rpartition(":")
    # Importing would let a file of settings run code, and so would asking an
    # object for what it may make up: a lazy module, a property.
    found: object = sys.modules.get(module) if colon else builtins
    for part in path.split("."):
        if found is None:
            break
        found = inspect.getattr_static(found, part, None)
    return found
