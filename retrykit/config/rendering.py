"""A policy as Python and as TOML text, as a person writes it.

What is as by default is left out, and a schedule is its expression. What is
code has no text, and is refused. Nothing here knows files or pages.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from keyword import iskeyword
from typing import Any, NamedTuple

from retrykit._internal.frozen import fields_of
from retrykit._internal.validation import invalid_setting
from retrykit.budgets.scoped import ScopedBudget
from retrykit.hints.base import FirstOf, SerializableHint
from retrykit.policy.grpc_status import StatusCodes
from retrykit.policy.policy import Policy
from retrykit.policy.rules import Rule
from retrykit.policy.serialization import setting_to_data
from retrykit.policy.timeouts import AsArgument
from retrykit.schedules.base import Schedule
from retrykit.schedules.kinds import CONSTRUCTORS

__all__ = [
    "Expression",
    "non_default_settings",
    "to_data",
    "to_expression",
    "to_python",
    "to_toml",
]
__all__ += ["compact_value", "import_block", "toml_key", "toml_value"]


def to_python(name: str, policy: Policy) -> str:
    """Return the Python that makes a policy: imports, and an assignment.

    >>> from zipfile import BadZipFile
    >>> print(to_python("unpack", Policy(schedule=[1, 5], on=BadZipFile)))
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
    told = {
        key: to_expression(key, value)
        for key, value in non_default_settings(policy).items()
    }
    lines = (line for each in told.values() for line in each.imports)
    settings = ", ".join(f"{key}={each.text}" for key, each in told.items())
    target = name if _is_name(name) else "policy"
    imports = import_block(["from retrykit import Policy", *lines])
    return "\n".join([*imports, "", f"{target} = Policy({settings})"])


def import_block(lines: Iterable[str]) -> list[str]:
    """Return import lines as they begin a file, each module in one of them.

    >>> wanted = ["constant", "linear"]
    >>> import_block(f"from retrykit.schedules import {name}" for name in wanted)
    ['from retrykit.schedules import constant, linear']

    Args:
        lines: Those that parts of the file need, in any order: ``import x`` for
            the modules of others, ``from x import y`` for retrykit's own.

    Returns:
        The modules of others, and after an empty line retrykit's own.
    """
    others: set[str] = set()
    own: dict[str, set[str]] = {}
    for line in lines:
        module, _, names = line.partition(" import ")
        if names:
            own.setdefault(module, set()).update(names.split(", "))
        else:
            others.add(line)
    blank = [""] if others else []
    ours = (
        f"{module} import {', '.join(sorted(own[module]))}" for module in sorted(own)
    )
    return [*sorted(others), *blank, *ours]


def to_toml(name: str, policy: Policy) -> str:
    """Return the table of a policy, as for pyproject.toml.

    >>> print(to_toml("fetch it", Policy(schedule=[1, 5], max_elapsed=None)))
    [tool.retrykit.policies."fetch it"]
    schedule = "sequence([1.0, 5.0])"
    max_elapsed = "unlimited"

    Args:
        name: The name of the policy, any text.
        policy: Which one.

    Raises:
        ConfigError: A setting is code.
    """
    told = (f"{key} = {toml_value(value)}" for key, value in to_data(policy).items())
    return "\n".join([f"[tool.retrykit.policies.{toml_key(name)}]", *told])


def to_data(policy: Policy) -> dict[str, Any]:
    """Return what `to_dict` does, short: for JSON, and to be read again.

    >>> to_data(Policy(schedule=[1, 5], on=(OSError, EOFError)))
    {'schedule': 'sequence([1.0, 5.0])', 'on': ['OSError', 'EOFError']}

    Raises:
        ConfigError: A setting is code.
    """
    return {
        key: compact_value(key, value)
        for key, value in non_default_settings(policy).items()
    }


def compact_value(setting: str, value: Any) -> Any:
    """Return one setting as data, its schedules as the expressions they print.

    >>> compact_value("schedule", Policy(schedule=[1, 5]).schedule)
    'sequence([1.0, 5.0])'

    Raises:
        ConfigError: It is code.
    """
    told = setting_to_data(setting, value)
    if setting == "schedule":
        return repr(value)
    if setting != "rules":
        return told
    delays = [rule.schedule for rule in value]
    return [
        rule | ({} if schedule is None else {"schedule": repr(schedule)})
        for rule, schedule in zip(told, delays, strict=True)
    ]


def non_default_settings(policy: Policy, base: Policy | None = None) -> dict[str, Any]:
    """Return the settings that differ from another policy's, by their names.

    >>> non_default_settings(Policy(max_attempts=5, seed=7))
    {'seed': 7}

    Args:
        policy: Whose settings.
        base: The other policy; by default one whose settings are the defaults.
    """
    base = base or Policy()
    values = {each.name: getattr(policy, each.name) for each in fields(Policy)}
    return {key: x for key, x in values.items() if x != getattr(base, key)}


class Expression(NamedTuple):
    """The Python of a setting.

    Attributes:
        text: An expression in one line.
        imports: The lines that it needs before it, each of them once.
    """

    text: str
    imports: tuple[str, ...] = ()


def to_expression(setting: str, value: object) -> Expression:
    """Return the Python of one setting.

    >>> from zipfile import BadZipFile
    >>> to_expression("on", (OSError, BadZipFile))
    Expression(text='(OSError, zipfile.BadZipFile)', imports=('import zipfile',))
    >>> to_expression("on", StatusCodes([14])).text
    "StatusCodes(['UNAVAILABLE'])"

    Args:
        setting: Its name.
        value: What the policy has there.

    Raises:
        ConfigError: It is code, or in a module that has no import.
    """
    if isinstance(value, StatusCodes):
        line = "from retrykit.config.grpc_service_config import StatusCodes"
        return Expression(f"StatusCodes({[*value.codes]!r})", (line,))
    if isinstance(value, Rule):
        return _rule(value)
    written = setting_to_data(setting, value)
    if isinstance(value, tuple):
        return _tuple([to_expression(setting, each) for each in value])
    if isinstance(value, type):
        return _type(setting, value)
    # A text may be a member of an enum, whose own repr is no expression.
    text = str.__repr__(value) if isinstance(value, str) else repr(value)
    return Expression(text, _imports(value, written))


def toml_key(name: str) -> str:
    """Return a name as a key of TOML.

    >>> print(toml_key("fetch"), toml_key("a.b"))
    fetch "a.b"
    """
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: object) -> str:
    r"""Return texts, numbers, and lists and dicts of them as TOML in one line.

    >>> print(toml_value(["pay\n", 5]))
    ["pay\n", 5]
    >>> print(toml_value({"argument": "timeout", "seconds": 5}))
    {argument = "timeout", seconds = 5}
    """
    if isinstance(value, Mapping):
        told = (f"{toml_key(key)} = {toml_value(part)}" for key, part in value.items())
        return f"{{{', '.join(told)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    # What JSON escapes is escaped alike in TOML, and this one by TOML alone.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")


def _kinds(schedule: dict[str, Any]) -> Iterable[str]:
    """Yield the kind of a schedule that is data, and of all of its parts."""
    yield schedule["kind"]
    for part in schedule.values():
        if isinstance(part, dict):
            yield from _kinds(part)


def _tuple(parts: Iterable[Expression]) -> Expression:
    told = list(parts)
    text = ", ".join(part.text for part in told) + "," * (len(told) == 1)
    return Expression(f"({text})", _lines(told))


def _lines(parts: Iterable[Expression]) -> tuple[str, ...]:
    return tuple(sorted({line for part in parts for line in part.imports}))


def _rule(rule: Rule) -> Expression:
    told = {name: part for name, part in fields_of(rule).items() if part is not None}
    parts = {name: to_expression(name, part) for name, part in told.items()}
    text = ", ".join(f"{name}={parts[name].text}" for name in _PARTS if name in parts)
    own = Expression("", (_line("policy.rules", ["Rule"]),))
    return Expression(f"Rule({text})", _lines([own, *parts.values()]))


_PARTS = ("on", "schedule", "max_attempts")


def _imports(value: object, written: Any) -> tuple[str, ...]:
    """Return the lines that a value needs before it, which is no code."""
    if isinstance(value, Schedule):
        used = set(_kinds(written)).intersection(CONSTRUCTORS)
        return (_line("schedules", used),)
    if isinstance(value, SerializableHint):
        members = value.hints if isinstance(value, FirstOf) else ()
        used = {
            each.kind
            for each in (value, *members)
            if isinstance(each, SerializableHint)
        }
        return (_line("hints", used),)
    if isinstance(value, ScopedBudget):
        used = {type(value).__name__} | ({"shared"} if value.scope else set())
        costs = (
            to_expression("costs", kind) for kind, _ in value.settings.get("costs", ())
        )
        return _lines([Expression("", (_line("budgets", used),)), *costs])
    if isinstance(value, AsArgument):
        return (_line("policy.timeouts", ["AsArgument"]),)
    return ()


def _line(module: str, names: Iterable[str]) -> str:
    return f"from retrykit.{module} import {', '.join(sorted(names))}"


def _type(setting: str, kind: type) -> Expression:
    if kind.__module__ == "builtins":
        return Expression(kind.__qualname__)
    text = f"{kind.__module__}.{kind.__qualname__}"
    if not all(map(_is_name, text.split("."))):
        rule = "types that Python can import by their names"
        raise invalid_setting(setting, rule, kind)
    return Expression(text, (f"import {kind.__module__}",))


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)
