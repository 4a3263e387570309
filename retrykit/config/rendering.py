"""Policies as Python and TOML source, without settings left to their defaults."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import Any, NamedTuple, cast

from retrykit._core.hedge import Hedge
from retrykit._core.policy import Policy
from retrykit._core.rules import Rule
from retrykit._core.serialization import setting_to_data
from retrykit._core.timeouts import AsArgument
from retrykit._internal.frozen import fields_of
from retrykit._internal.validation import invalid_setting, prefix_errors, user_facing
from retrykit.budgets._shared_budgets import SerializableBudget
from retrykit.conditions import (
    AnyOf,
    ErrorNames,
    Excluding,
    HttpFailures,
    StatusCodes,
)
from retrykit.hints._base import FirstOf, SerializableHint
from retrykit.limits._shared_limits import SerializableLimit
from retrykit.schedules._base import Schedule, iter_parts
from retrykit.schedules._kinds import CONSTRUCTORS

__all__ = ["Expression", "import_block", "to_data"]
__all__ += ["to_expression", "to_python", "to_toml", "toml_key", "toml_value"]


@user_facing
def to_python(name: str, policy: Policy) -> str:
    """Return Python source that creates a policy: imports and an assignment.

    >>> from zipfile import BadZipFile
    >>> print(to_python("unpack", Policy(schedule=[1, 5], on=BadZipFile)))
    import zipfile
    <BLANKLINE>
    from retrykit import Policy
    from retrykit.schedules import sequence
    <BLANKLINE>
    unpack = Policy(schedule=sequence([1.0, 5.0]), on=zipfile.BadZipFile)

    Args:
        name: The name of the variable; if it is not a Python name, ``policy`` is used.
        policy: The policy.

    Raises:
        ConfigError: A setting is code, or a type that cannot be imported by name.
    """
    expressions = {
        key: to_expression(key, value)
        for key, value in policy.non_default_settings().items()
    }
    lines = (line for each in expressions.values() for line in each.imports)
    settings = ", ".join(f"{key}={each.text}" for key, each in expressions.items())
    target = name if _is_name(name) else "policy"
    imports = import_block(["from retrykit import Policy", *lines])
    return "\n".join([*imports, "", f"{target} = Policy({settings})"])


def import_block(lines: Iterable[str]) -> list[str]:
    """Return sorted import lines, one for each module.

    Lines that begin with ``from`` come last, after a blank line if there are others.

    >>> names = ["constant", "linear"]
    >>> import_block(f"from retrykit.schedules import {name}" for name in names)
    ['from retrykit.schedules import constant, linear']
    """
    modules: set[str] = set()
    names_by_module: dict[str, set[str]] = {}
    for line in lines:
        module, _, names = line.partition(" import ")
        if names:
            names_by_module.setdefault(module, set()).update(names.split(", "))
        else:
            modules.add(line)
    blank = [""] if modules else []
    own = (
        f"{module} import {', '.join(sorted(names))}"
        for module, names in sorted(names_by_module.items())
    )
    return [*sorted(modules), *blank, *own]


def to_toml(name: str, policy: Policy) -> str:
    """Return the table of a policy for pyproject.toml.

    >>> print(to_toml("fetch it", Policy(schedule=[1, 5], hint_cap=None)))
    [tool.retrykit.policies."fetch it"]
    schedule = "sequence([1.0, 5.0])"
    hint_cap = "unlimited"

    Raises:
        ConfigError: A setting is code, or a type that cannot be imported by name.
    """
    lines = (f"{key} = {toml_value(value)}" for key, value in to_data(policy).items())
    return "\n".join([f"[tool.retrykit.policies.{toml_key(name)}]", *lines])


def to_data(policy: Policy) -> dict[str, Any]:
    """Return the settings of `Policy.to_dict` that are not left to the defaults.

    >>> to_data(Policy(schedule=[1, 5], on=(OSError, EOFError)))
    {'schedule': 'sequence([1.0, 5.0])', 'on': ['OSError', 'EOFError']}

    Raises:
        ConfigError: A setting is code, or a type that cannot be imported by name.
    """
    return {
        key: setting_to_data(key, value)
        for key, value in policy.non_default_settings().items()
    }


class Expression(NamedTuple):
    """Python source of a setting.

    Attributes:
        text: An expression on one line.
        imports: Its import lines.
    """

    text: str
    imports: tuple[str, ...] = ()


def to_expression(setting: str, value: object) -> Expression:
    """Return a setting as Python source.

    >>> from zipfile import BadZipFile
    >>> to_expression("on", (OSError, BadZipFile))
    Expression(text='(OSError, zipfile.BadZipFile)', imports=('import zipfile',))
    >>> to_expression("on", StatusCodes([14])).text
    "StatusCodes(['UNAVAILABLE'])"
    """
    if isinstance(value, StatusCodes | ErrorNames | AnyOf | Excluding | HttpFailures):
        return _condition_expression(setting, value)
    if setting == "rules":
        parts = []
        for index, each in enumerate(cast("tuple[Rule, ...]", value)):
            with prefix_errors(f"rules[{index}]"):
                parts.append(_rule_expression(each))
        return _tuple_expression(parts)
    setting_to_data(setting, value)  # raises for user code
    if setting == "admission":
        limits = cast("tuple[SerializableLimit, ...]", value)
        return _tuple_expression(
            [Expression(repr(x), _find_imports(x)) for x in limits]
        )
    if isinstance(value, tuple):
        return _tuple_expression([to_expression(setting, each) for each in value])
    if isinstance(value, type):
        return _type_expression(setting, value)
    # The repr of a string in an enum is not an expression.
    text = str.__repr__(value) if isinstance(value, str) else repr(value)
    return Expression(text, _find_imports(value))


def _tuple_expression(parts: Sequence[Expression]) -> Expression:
    text = ", ".join(part.text for part in parts) + "," * (len(parts) == 1)
    return Expression(f"({text})", _import_lines(parts))


def _condition_expression(setting: str, condition: Any) -> Expression:
    """Return a condition as source: a call with its list and the flags that are set."""
    listed, *rest = fields_of(condition).values()
    members = [
        to_expression("name" if isinstance(each, str | int) else setting, each)
        for each in listed
    ]
    name = "any_of" if isinstance(condition, AnyOf) else type(condition).__name__
    flags = [*fields_of(condition)][1:]
    parts = [f"[{', '.join(each.text for each in members)}]"]
    parts += [f"{flag}=True" for flag, value in zip(flags, rest, strict=True) if value]
    own = Expression("", (_import_line("conditions", [name]),))
    return Expression(f"{name}({', '.join(parts)})", _import_lines([own, *members]))


def toml_key(name: str) -> str:
    """Return a name as a TOML key.

    >>> print(toml_key("fetch"), toml_key("a.b"))
    fetch "a.b"
    """
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: object) -> str:
    r"""Return a string, number, list or dict as TOML on one line.

    >>> print(toml_value(["pay\n", 5]))
    ["pay\n", 5]
    >>> print(toml_value({"argument": "timeout", "seconds": 5}))
    {argument = "timeout", seconds = 5}
    """
    if isinstance(value, Mapping):
        parts = (f"{toml_key(key)} = {toml_value(x)}" for key, x in value.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    # JSON strings are TOML strings, but TOML does not allow DEL, and editors show the
    # other two as line breaks.
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPES)


_ESCAPES = {ord(each): rf"\u{ord(each):04x}" for each in "\x7f\u2028\u2029"}


def _import_lines(parts: Iterable[Expression]) -> tuple[str, ...]:
    return tuple(sorted({line for part in parts for line in part.imports}))


def _rule_expression(rule: Rule) -> Expression:
    values = fields_of(rule).items()
    parts = {name: to_expression(name, x) for name, x in values if x is not None}
    text = ", ".join(f"{name}={part.text}" for name, part in parts.items())
    own = Expression("", ("from retrykit import Rule",))
    return Expression(f"Rule({text})", _import_lines([own, *parts.values()]))


def _find_imports(value: object) -> tuple[str, ...]:
    """Return the import lines that a value needs."""
    if isinstance(value, Schedule):
        names = {part.kind for _, part in iter_parts(value)}.intersection(CONSTRUCTORS)
        return (_import_line("schedules", names),)
    if isinstance(value, SerializableHint):
        return (_import_line("hints", [value.kind]),)
    if isinstance(value, FirstOf):
        kinds = {x.kind for x in value.hints if isinstance(x, SerializableHint)}
        return (_import_line("hints", {"first_of", *kinds}),)
    if isinstance(value, SerializableBudget | SerializableLimit):
        return _shareable_imports(value)
    if isinstance(value, AsArgument | Hedge):
        return (f"from retrykit import {type(value).__name__}",)
    return ()


def _shareable_imports(
    value: SerializableBudget | SerializableLimit,
) -> tuple[str, ...]:
    """Return the import lines that a budget or a limit needs."""
    module = "budgets" if isinstance(value, SerializableBudget) else "limits"
    names = {type(value).__name__} | ({"shared"} if value.scope else set())
    parts = [Expression("", (_import_line(module, names),))]
    written = value.to_dict()
    for name, x in value.settings.items():
        if name == "costs":
            parts += [to_expression(name, kind) for kind, _ in x]
        elif name in {"on", "timeouts"} and name in written:
            parts.append(to_expression(name, x))
        else:
            parts.append(Expression("", _find_imports(x)))
    return _import_lines(parts)


def _import_line(module: str, names: Iterable[str]) -> str:
    return f"from retrykit.{module} import {', '.join(sorted(names))}"


def _type_expression(setting: str, kind: type) -> Expression:
    if kind.__module__ == "builtins":
        return Expression(kind.__qualname__)
    text = f"{kind.__module__}.{kind.__qualname__}"
    if not all(map(_is_name, text.split("."))):
        rule = "types that Python can import by their names"
        raise invalid_setting(setting, rule, kind, code="not-expressible")
    return Expression(text, (f"import {kind.__module__}",))


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)
