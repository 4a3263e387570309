"""Conditions that match class names, exclude types, or join other conditions."""

from collections.abc import Iterable
from typing import Any, cast, final

from retrykit._conditions import BY_TYPE, Condition, check_condition
from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting, user_facing

__all__ = ["AnyOf", "ErrorNames", "Excluding", "any_of"]


@final
class ErrorNames(Frozen):
    """Predicate of errors by the name of their class, without its module.

    It is for errors whose class cannot be imported where the policy is written. A
    subclass has another name, and does not match. For a Temporal ``ApplicationError``,
    its attribute ``type`` counts as the name.

    >>> ErrorNames(["Busy", "OSError"])(OSError())
    True
    >>> ErrorNames(["Busy", "OSError"])(ConnectionError())
    False

    Args:
        names: The names; at least one.

    Raises:
        ConfigError: *names* is not a list or tuple, is empty, or has an item that is
            not a string or is empty.
    """

    __slots__ = ("names",)
    names: tuple[str, ...]

    @user_facing
    def __init__(self, names: Iterable[str]) -> None:
        listed = names if isinstance(names, list | tuple) else ()
        if not listed or not all(isinstance(x, str) and x for x in listed):
            raise invalid_setting("names", "a list of names, at least one", names)
        Frozen.__init__(self, tuple(dict.fromkeys(listed)))

    def __call__(self, error: Exception, /) -> bool:
        """Return whether an error has one of the names."""
        names = {(each.__module__, each.__name__) for each in type(error).__mro__}
        own = type(error).__name__
        name = getattr(error, "type", own) if _OF_TEMPORAL in names else own
        return name in self.names


_OF_TEMPORAL = ("temporalio.exceptions", "ApplicationError")


@final
class Excluding(Frozen):
    """Predicate of all errors except some types.

    >>> Excluding([TimeoutError])(OSError()), Excluding([OSError])(ConnectionError())
    (True, False)

    Args:
        types: Exception types; at least one.

    Raises:
        ConfigError: *types* is not a list or tuple, is empty, or has an item that is
            not an exception type.
    """

    __slots__ = ("types",)
    types: tuple[type[Exception], ...]

    @user_facing
    def __init__(self, types: Iterable[type[Exception]]) -> None:
        listed = tuple(types) if isinstance(types, list | tuple) else ()
        if not listed or not all(isinstance(each, type) for each in listed):
            rule = "a list of exception types, at least one"
            raise invalid_setting("types", rule, types)
        check_condition("types", listed)
        Frozen.__init__(self, listed)

    def __call__(self, error: Exception, /) -> bool:
        """Return whether an error is of none of the types."""
        return not isinstance(error, self.types)


@final
class AnyOf(Frozen):
    """Predicate of errors that match one of several conditions; made by `any_of`."""

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


@user_facing
def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return a condition that matches if any of the given conditions does.

    >>> any_of([OSError, (EOFError, OSError)])
    (<class 'OSError'>, <class 'EOFError'>)
    >>> any_of([ErrorNames(["Busy"]), OSError])(OSError())
    True

    Args:
        conditions: Exception types, tuples of them, or predicates that are not async.

    Raises:
        ConfigError: One of *conditions* is not a condition.
    """
    found: list[Any] = []
    for index, each in enumerate(conditions):
        check_condition(f"conditions[{index}]", each)
        if isinstance(each, AnyOf):
            found += each.conditions
        else:
            found += each if isinstance(each, tuple) else [each]
    distinct: tuple[Any, ...] = tuple(dict.fromkeys(found))
    types = all(isinstance(each, type) for each in distinct)
    joined: Condition = distinct if types else AnyOf(distinct)
    return cast("Condition", distinct[0]) if len(distinct) == 1 else joined
