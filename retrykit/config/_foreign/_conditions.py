"""Conditions for the error names in files of other systems."""

from collections.abc import Iterable, Mapping

from retrykit._conditions import Condition
from retrykit.conditions import ErrorNames, any_of
from retrykit.config._foreign._section import Section

__all__ = ["conditions_named"]


def conditions_named(
    section: Section,
    key: str,
    names: Iterable[str],
    known: Mapping[str, Condition],
    language: str = "",
) -> Condition:
    """Return the condition for names of errors.

    A name stands for the condition that the user gave for it, or else for its condition
    in *known*. All other names are names of Python classes; but if a *language* is
    given, they are names of that language: they are left out, and each is recorded as a
    difference.
    """
    found: list[Condition] = []
    own: list[str] = []
    for name in names:
        if name in section.remarks.errors:
            found.append(section.remarks.errors[name])
        elif name in known:
            found.append(known[name])
        elif language:
            text = f"{name} is of {language}; errors={{{name!r}: ...}} says what it is"
            section.differs(key, text)
        else:
            own.append(name)
    return any_of([*found, ErrorNames(own)] if own else found)
