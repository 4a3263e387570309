"""Errors about the arguments of public functions."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from retrykit._internal.base_errors import ConfigError
from retrykit._internal.late_modules import inspect
from retrykit._internal.tracebacks import with_traceback
from retrykit._internal.validation import did_you_mean, invalid_setting, safe_repr

__all__ = ["hide_own_frames", "undecorated", "user_facing"]

F = TypeVar("F", bound=Callable[..., Any])


Advise = Callable[[str, list[str]], str]
"""Returns what to write instead of a parameter that a function does not have, given the
names of those that it has; empty if that is unknown."""

Guess = Callable[[Any], str]
"""Returns the argument that was probably meant by a value without a name, such as
``on=OSError``; empty if that is unknown."""


Prepare = Callable[[dict[str, Any]], dict[str, Any]]
"""Checks the keyword arguments of a call; returns those to call the function with."""


def _unknown(*_: object) -> str:
    return ""


def user_facing(
    fn: F,
    *,
    advise: Advise = _unknown,
    guess: Guess = _unknown,
    prepare: Prepare | None = None,
) -> F:
    """Decorate a public function that checks its arguments.

    A `ConfigError` leaves it without the frames of this package, so that the traceback
    ends at the line of the caller. So does the error about arguments that the function
    does not take, which says what to write.

    >>> @user_facing
    ... def exponential(first, *, factor=2.0): ...
    >>> exponential(1, faktor=3)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: faktor is not a parameter of exponential, got 3; \
did you mean factor?
    >>> exponential(1, 3)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: arguments of exponential must be given by name after \
the first, got 3; write factor=3
    """
    inner = cast("FunctionType", fn)
    hide, explain, config_error = hide_own_frames, _explain, ConfigError

    def checked(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            prepared = kwargs if prepare is None else prepare(kwargs)
            return inner(*args, **prepared)
        except config_error as error:
            hide(error)
            raise
        except TypeError as error:
            # One that the function itself raises has its frame.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
        raise hide(explain(inner, args, kwargs, advise, guess))

    # doctest looks for functions whose globals are those of the module.
    own = FunctionType(
        checked.__code__, inner.__globals__, None, None, checked.__closure__
    )
    return cast("F", functools.update_wrapper(own, inner))


def undecorated(fn: FunctionType) -> FunctionType:
    """Return the function behind `user_facing`, or *fn* if it is not decorated."""
    return cast("Any", fn).__wrapped__ if fn.__code__ is _CODE else fn


def hide_own_frames(error: ConfigError) -> ConfigError:
    """Return an error without the frames of this package, and those between them."""
    trace = kept = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__")
        if isinstance(name, str) and name.startswith("retrykit."):
            kept = trace.tb_next
        trace = trace.tb_next
    with_traceback(error, kept)
    return error


def _explain(
    fn: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    advise: Advise,
    guess: Guess,
) -> ConfigError:
    """Return the error about arguments that a function does not take."""
    parameters = [*inspect.signature(fn).parameters.values()]
    kind = inspect.Parameter
    by_name = {kind.KEYWORD_ONLY, kind.POSITIONAL_OR_KEYWORD}
    by_position = {kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD}
    owner, _, shown = fn.__qualname__.rpartition(".")
    if owner and not owner.endswith(">"):
        # A method, whose object is no argument.
        parameters, args = parameters[1:], args[1:]
        shown = owner if shown == "__init__" else shown
    named = [each.name for each in parameters if each.kind in by_name]
    takes_any = any(each.kind is kind.VAR_KEYWORD for each in parameters)
    for name, value in kwargs.items():
        if name not in named and not takes_any:
            every = f"the parameters are {', '.join(named)}" if named else ""
            suggestion = advise(name, named) or did_you_mean(name, named) or every
            text = f"{name} is not a parameter of {shown}, got {safe_repr(value)}"
            return ConfigError(f"{text}; {suggestion}" if suggestion else text)
    positional = [each.name for each in parameters if each.kind in by_position]
    if len(args) > len(positional):
        value, most = args[len(positional)], len(positional)
        free = [name for name in named if name not in {*positional, *kwargs}]
        if not (free or takes_any):
            taken = f"{most or 'no'} argument{'' if most == 1 else 's'}"
            unnamed = " without a name" if len(named) > most else ""
            return ConfigError(f"{shown} takes {taken}{unnamed}, got {len(args)}")
        meant = guess(value)
        if not meant and not takes_any:
            meant = f"{free[0]}={safe_repr(value)}"
        after = f" after the first{f' {most}' if most > 1 else ''}" if most else ""
        suggestion = f"write {meant}" if meant else ""
        return invalid_setting(
            f"arguments of {shown}", f"given by name{after}", value, suggestion
        )
    twice = [name for name in positional[: len(args)] if name in kwargs]
    if twice:
        return invalid_setting(twice[0], "given once", kwargs[twice[0]])
    missing = [
        each.name
        for each in parameters
        if each.default is kind.empty
        and each.name not in {*positional[: len(args)], *kwargs}
        and each.kind in by_name | by_position
    ]
    return ConfigError(f"{shown} must be given a value for {' and '.join(missing)}")


# All decorated functions have it.
_CODE = user_facing(_unknown).__code__
