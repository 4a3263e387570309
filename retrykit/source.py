"""A policy as Python and as TOML text, as a person writes it.

What is as by default is left out, and a schedule is its expression. What is
code has no text, and is refused. Nothing here knows files or pages.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import fields
from keyword import iskeyword
from typing import Any, NamedTuple

from retrykit import constructors
from retrykit.algebra import Schedule
from retrykit.checks import refuse
from retrykit.data import setting_data
from retrykit.policy import Policy
from retrykit.settings import Settings
from retrykit.status_codes import StatusCodes

__all__ = ["Expression", "changed", "data", "expression", "python", "toml"]
__all__ += ["toml_key", "toml_value"]


def python(name: str, policy: Policy) -> str:
    """Return the Python that makes a policy: imports, and an assignment.

    >>> from zipfile import BadZipFile
    >>> print(python("unpack", Policy(schedule=[1, 5], on=BadZipFile)))
    import zipfile
    <BLANKLINE>
    from retrykit import Policy
    from retrykit.schedules import sequence
    <BLANKLINE>
    unpack = Policy(schedule=sequence([1.0, 5.0]), on=zipfile.BadZipFile)

    Args:
        name: What it is assigned to; one that Python does not take is ``policy``.
        policy: Which one.

    Raises:
        ConfigError: A setting is code, or in a module that has no import.
    """
    told = {key: expression(key, value) for key, value in changed(policy).items()}
    lines = {line for each in told.values() for line in each.imports}
    # The modules of others first; what is retrykit's own is imported by name.
    own = {"from retrykit import Policy"} | {x for x in lines if x.startswith("from")}
    others = sorted(lines - own)
    settings = ", ".join(f"{key}={each.text}" for key, each in told.items())
    target = name if _is_name(name) else "policy"
    blank = [""] if others else []
    return "\n".join(
        [*others, *blank, *sorted(own), "", f"{target} = Policy({settings})"]
    )


def toml(name: str, policy: Policy) -> str:
    """Return the table of a policy, as for pyproject.toml.

    >>> print(toml("fetch it", Policy(schedule=[1, 5], max_elapsed=None)))
    [tool.retrykit.policies."fetch it"]
    schedule = "sequence([1.0, 5.0])"
    max_elapsed = "unlimited"

    Args:
        name: The name of the policy, any text.
        policy: Which one.

    Raises:
        ConfigError: A setting is code.
    """
    told = (f"{key} = {toml_value(value)}" for key, value in data(policy).items())
    return "\n".join([f"[tool.retrykit.policies.{toml_key(name)}]", *told])


def data(policy: Policy) -> dict[str, Any]:
    """Return what `to_dict` does, short: for JSON, and to be read again.

    >>> data(Policy(schedule=[1, 5], on=(OSError, EOFError)))
    {'schedule': 'sequence([1.0, 5.0])', 'on': ['OSError', 'EOFError']}

    Raises:
        ConfigError: A setting is code.
    """
    told = {key: setting_data(key, value) for key, value in changed(policy).items()}
    return told | ({"schedule": repr(policy.schedule)} if "schedule" in told else {})


def changed(policy: Policy) -> dict[str, Any]:
    """Return the settings that are not as by default, by their names.

    >>> changed(Policy(max_attempts=5, seed=7))
    {'seed': 7}
    """
    values = {each.name: getattr(policy, each.name) for each in fields(Settings)}
    usual = {each.name: each.default for each in fields(Settings)}
    return {key: value for key, value in values.items() if value != usual[key]}


class Expression(NamedTuple):
    """The Python of a setting.

    Attributes:
        text: An expression in one line.
        imports: The lines that it needs before it, each of them once.
    """

    text: str
    imports: tuple[str, ...] = ()


def expression(setting: str, value: object) -> Expression:
    """Return the Python of one setting.

    >>> from zipfile import BadZipFile
    >>> expression("on", (OSError, BadZipFile))
    Expression(text='(OSError, zipfile.BadZipFile)', imports=('import zipfile',))
    >>> expression("on", StatusCodes([14])).text
    "StatusCodes(['UNAVAILABLE'])"

    Args:
        setting: Its name.
        value: What the policy has there.

    Raises:
        ConfigError: It is code, or in a module that has no import.
    """
    if isinstance(value, StatusCodes):
        line = "from retrykit.service_config import StatusCodes"
        return Expression(f"StatusCodes({[*value.codes]!r})", (line,))
    written = setting_data(setting, value)
    if isinstance(value, Schedule):
        used = ", ".join(
            sorted(set(_kinds(written)).intersection(constructors.__all__))
        )
        return Expression(repr(value), (f"from retrykit.schedules import {used}",))
    if isinstance(value, tuple):
        each = [expression(setting, kind) for kind in value]
        lines = {line for kind in each for line in kind.imports}
        text = ", ".join(kind.text for kind in each) + "," * (len(each) == 1)
        return Expression(f"({text})", tuple(sorted(lines)))
    if isinstance(value, type):
        return _type(setting, value)
    # A text may be a member of an enum, whose own repr is no expression.
    return Expression(str.__repr__(value) if isinstance(value, str) else repr(value))


def toml_key(name: str) -> str:
    """Return a name as a key of TOML.

    >>> print(toml_key("fetch"), toml_key("a.b"))
    fetch "a.b"
    """
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: object) -> str:
    r"""Return texts, numbers and lists of them as TOML.

    >>> print(toml_value(["pay\n", 5]))
    ["pay\n", 5]
    """
    # What JSON escapes is escaped alike in TOML, and this one by TOML alone.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")


def _kinds(schedule: dict[str, Any]) -> Iterable[str]:
    """Yield the kind of a schedule that is data, and of all of its parts."""
    yield schedule["kind"]
    for part in schedule.values():
        if isinstance(part, dict):
            yield from _kinds(part)


def _type(setting: str, kind: type) -> Expression:
    if kind.__module__ == "builtins":
        return Expression(kind.__qualname__)
    text = f"{kind.__module__}.{kind.__qualname__}"
    if not all(map(_is_name, text.split("."))):
        rule = "types that Python can import by their names"
        raise refuse(setting, rule, kind)
    return Expression(text, (f"import {kind.__module__}",))


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)
