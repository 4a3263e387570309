"""The settings of a policy that are not on the page, as lines of text.

They come after those that are, in the Python and in the TOML of the page. A
setting that is code has no such line.
"""

import json
from typing import Any, Final

from retrykit.errors import ConfigError
from retrykit.policy import Policy

__all__ = ["as_toml", "unseen"]


def unseen(policy: Policy) -> dict[str, Any]:
    """Return what a page writes of a policy without showing it.

    >>> found = unseen(Policy(on=ConnectionError, on_result=callable))
    >>> found["settings"]
    [{'python': 'on=ConnectionError', 'toml': 'on = "ConnectionError"'}]
    >>> found["imports"], found["left_out"]
    ([], ['on_result'])

    Args:
        policy: Whose settings.

    Returns:
        A dict: ``settings``, what is not as by default, as Python and as TOML;
        ``imports``, the modules that the Python needs; ``left_out``, the names
        of the settings that are code.
    """
    found: dict[str, Any] = {"settings": [], "imports": [], "left_out": []}
    for name in _UNSEEN:
        value = getattr(policy, name)
        if value == getattr(_DEFAULT, name):
            continue
        alone: dict[str, Any] = {name: value}
        try:
            # By itself: beside a setting that is code it could not be written.
            data = Policy(**alone).to_dict()[name]
        except ConfigError:
            found["left_out"].append(name)
            continue
        kinds = [kind for kind in _listed(value) if isinstance(kind, type)]
        modules = {kind.__module__ for kind in kinds} - {"builtins"}
        found["imports"] = sorted(modules.union(found["imports"]))
        line = {"python": f"{name}={_as_python(value)}"}
        found["settings"].append(line | {"toml": f"{name} = {as_toml(data)}"})
    return found


def as_toml(data: object) -> str:
    r"""Return texts, whole numbers and lists of them as TOML.

    >>> print(as_toml(["pay\n", 5]))
    ["pay\n", 5]
    """
    # What JSON escapes is escaped alike in TOML, and this one by TOML alone.
    return json.dumps(data, ensure_ascii=False).replace("\x7f", r"\u007f")


_DEFAULT: Final = Policy()
_CONDITIONS: Final = ("on", "give_up_on", "on_result")
_UNSEEN: Final = (*_CONDITIONS, "raises", "max_failures", "seed", "observers", "name")


def _listed(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _as_python(value: object) -> str:
    if isinstance(value, tuple):
        each = ", ".join(map(_as_python, value))
        return f"({each}{',' * (len(value) == 1)})"
    if isinstance(value, type):
        module = value.__module__
        return f"{module}." * (module != "builtins") + value.__qualname__
    return repr(value)
