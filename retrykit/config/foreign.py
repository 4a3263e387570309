"""Policies that are written in the files of other systems.

>>> reading = read({"Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}]})
>>> reading.format, reading.policy.max_attempts
('step-functions', 3)

`read` returns a policy of a file, `names` lists the names of all, and `FORMATS` are the
formats that can be read. JSON and TOML need nothing else; YAML and HCL (Terraform)
need the extras ``yaml`` and ``hcl``. What a policy cannot express exactly is an error
that names its place; with ``closest=True`` the policy comes with a list of its
differences. Reading runs no code.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from retrykit._conditions import Condition, check_condition
from retrykit._core.policy import Policy
from retrykit._internal.validation import (
    check_choice,
    did_you_mean,
    invalid_setting,
    truncate,
    user_facing,
)
from retrykit.config._foreign import NAMES as FORMATS, format_named
from retrykit.config._foreign._document import Document
from retrykit.config._foreign._loading import read_document
from retrykit.config._foreign._section import Section, sections_of
from retrykit.errors import ConfigError

__all__ = ["FORMATS", "Reading", "names", "read"]

Source = str | os.PathLike[str] | Mapping[str, Any] | Sequence[Any]
"""The path of a file, or data that was read before."""


class Reading(NamedTuple):
    """A policy that was read from a file of another system.

    Attributes:
        policy: The policy.
        name: Its name in the file; empty if it has none.
        format: The name of the format, one of `FORMATS`.
        differences: What the policy does differently from the system, each with its
            place; empty if it is exact.
        notes: What else there is to know, such as which of two settings applies.
    """

    policy: Policy
    name: str
    format: str
    differences: tuple[str, ...]
    notes: tuple[str, ...]


@user_facing
def read(
    source: Source,
    name: str | None = None,
    *,
    format: str | None = None,  # noqa: A002  what it is called everywhere
    closest: bool = False,
    errors: Mapping[str, Condition] | None = None,
) -> Reading:
    """Return a policy from a file of another system.

    >>> delays = {"retryStrategy": {"limit": 3, "backoff": {"duration": "10s"}}}
    >>> read(delays | {"name": "fetch"}, "fetch").policy.max_attempts
    4

    Args:
        source: The path of a file, whose suffix names its syntax (``.json``, ``.yaml``,
            ``.yml``, ``.tf``, ``.toml``, or ``.conf`` for exim); or its data.
        name: The name of the policy, as `names` lists it. None, the default, if there
            is only one.
        format: The format, one of `FORMATS`. None, the default, accepts any that fits.
        closest: Whether a policy that differs from the original is returned, with the
            differences. If False, the default, a difference is an error.
        errors: Python types or predicates for the names of errors in the file:
            ``{"java.io.IOException": OSError}``.

    Raises:
        ConfigError: The file cannot be read or is not valid, there is no such policy or
            format, a value of *errors* is not a condition, or a policy cannot express
            exactly what the file says.
        ImportError: The file is in YAML or HCL, and its extra is not installed.
    """
    known = dict(errors or {})
    for key, condition in known.items():
        check_condition(f"errors[{key!r}]", condition)
    found = _find(source, format)
    if not found:
        file = f"{source}" if isinstance(source, str | os.PathLike) else "source"
        msg = f"{file} has no policy of {format or ' or '.join(FORMATS)}"
        raise ConfigError(msg, "unreadable-file")
    selected = _select(found, name)
    own_format, section = found[selected]
    section = section.unread(known)
    with section.located():
        policy = format_named(own_format).read(section)
    remarks = section.remarks
    if remarks.differences and not closest:
        told = "; ".join(remarks.differences)
        msg = f"{told}; closest=True reads what can be expressed"
        raise ConfigError(truncate(msg, _LONGEST), "not-expressible")
    differences, notes = tuple(remarks.differences), tuple(remarks.notes)
    return Reading(policy, selected, own_format, differences, notes)


_LONGEST = 2000


@user_facing
def names(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002  as in read
) -> list[str]:
    """Return the names of the policies in a file of another system.

    >>> names({"States": {"Get": {"Retry": [{"ErrorEquals": ["States.ALL"]}]}}})
    ['Get']

    Args:
        source: As in `read`.
        format: As in `read`.

    Returns:
        The names, grouped by document and format; empty if no format fits.

    Raises:
        ConfigError: The file cannot be read or is not valid, or the format is unknown.
        ImportError: The file is in YAML or HCL, and its extra is not installed.
    """
    return [*_find(source, format)]


def _find(source: Source, format_: str | None) -> dict[str, tuple[str, Section]]:
    """Return the formats and the tables of a document's policies, keyed by name."""
    if format_ is not None:
        check_choice("format", format_, FORMATS)
    document = _load(source)
    found: dict[str, tuple[str, Section]] = {}
    counts: Counter[str] = Counter()
    for root in sections_of(document, {}):
        for each in FORMATS if format_ is None else (format_,):
            for name, section in format_named(each).find(root):
                unique = name
                while unique in found:
                    counts[name] += 1
                    unique = f"{name} ({counts[name] + 1})".lstrip()
                found[unique] = (each, section)
    return found


def _load(source: Source) -> Document:
    if isinstance(source, Mapping):
        return Document("", [source], {})
    if isinstance(source, list | tuple):
        return Document("", list(source), {})
    try:
        path = Path(cast("str", source))
    except TypeError:
        raise invalid_setting("source", "the path of a file, or data", source) from None
    return read_document(path)


def _select(found: dict[str, Any], name: str | None) -> str:
    if name is None and len(found) == 1:
        return next(iter(found))
    if name is not None and name in found:
        return name
    listed = f"the names are {', '.join(found)}"
    rule = "the name of one of its policies"
    suggestion = (name and did_you_mean(name, found)) or listed
    raise invalid_setting("name", rule, name, suggestion, code="unknown-name")
