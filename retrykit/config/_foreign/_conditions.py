"""Conditions on errors that a file of another system names."""

from collections.abc import Iterable, Mapping
from typing import Any, final

from retrykit._conditions import BY_TYPE, Condition
from retrykit._internal.frozen import Frozen
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._section import Section

__all__ = ["AnyOf", "ErrorNames", "Excluding", "any_of", "conditions_named"]
__all__ += ["excluding"]


@final
class ErrorNames(Frozen):
    """Predicate of errors whose class has one of some names, without its module.

    Step Functions and Temporal know the errors of Python by these names. An error of a
    subclass has another name.

    >>> ErrorNames(["Busy", "OSError"])(OSError())
    True
    >>> ErrorNames(["Busy", "OSError"])(ConnectionError())
    False

    Args:
        names: The names; at least one.

    Raises:
        ConfigError: There is no name, or one is no string.
    """

    __slots__ = ("names",)
    names: tuple[str, ...]

    @user_facing
    def __init__(self, names: Iterable[str]) -> None:
        listed = names if isinstance(names, list | tuple) else ()
        if not listed or not all(isinstance(each, str) for each in listed):
            raise invalid_setting("names", "a list of names, at least one", names)
        Frozen.__init__(self, tuple(listed))

    def __call__(self, error: Exception, /) -> bool:
        """Return whether the class of an error has one of the names."""
        return type(error).__name__ in self.names


@final
class AnyOf(Frozen):
    """Predicate of errors that match one of some conditions."""

    __slots__ = ("conditions",)
    conditions: tuple[Any, ...]

    def __init__(self, conditions: Iterable[Any]) -> None:
        Frozen.__init__(self, tuple(conditions))

    def __call__(self, error: Exception, /) -> bool:
        """Return whether one of the conditions matches."""
        return any(
            isinstance(error, each) if isinstance(each, BY_TYPE) else each(error)
            for each in self.conditions
        )


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that matches what any of some conditions does."""
    found: list[Any] = []
    for each in conditions:
        found += each if isinstance(each, tuple) else [each]
    found = [*dict.fromkeys(found)]
    if all(isinstance(each, type) for each in found):
        return found[0] if len(found) == 1 else tuple(found)
    return found[0] if len(found) == 1 else AnyOf(found)


def conditions_named(
    section: Section,
    key: str,
    names: Iterable[str],
    known: Mapping[str, Condition],
    language: str = "",
) -> Condition:
    """Return the condition for names of errors.

    Each name is what the user says that it is, or what *known* says. All others are
    names of Python classes; if they are of another *language*, it is a difference.
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


@final
class Excluding(Frozen):
    """Predicate of all errors but those of some types."""

    __slots__ = ("types",)
    types: tuple[type[Exception], ...]

    def __init__(self, types: Iterable[type[Exception]]) -> None:
        Frozen.__init__(self, tuple(types))

    def __call__(self, error: Exception, /) -> bool:
        """Return whether an error is of none of the types."""
        return not isinstance(error, self.types)


def excluding(*types: type[Exception]) -> Condition:
    """Return the condition that matches all errors but those of some types."""
    return Excluding(types)
