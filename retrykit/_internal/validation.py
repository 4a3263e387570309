"""Validation of arguments, with the error that names the broken rule.

Each check takes the *name* of a parameter and its *value*, and raises a `ConfigError`
if the value is invalid. A *suggestion* at the end of its message says how to correct
the value, if that is not obvious. `user_facing` decorates the public functions that
check their arguments.
"""

import functools
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from retrykit._internal.late_modules import inspect
from retrykit._internal.redaction import redact_urls
from retrykit._internal.tracebacks import with_traceback

if TYPE_CHECKING:
    from datetime import datetime
    from types import UnionType

__all__ = ["LARGEST", "ConfigError", "ErrorCode", "NestingError", "RetrykitError"]
__all__ += ["check_aware", "check_choice", "check_encodable"]
__all__ += ["check_instance", "check_integer", "check_number", "check_text"]
__all__ += [
    "did_you_mean",
    "escape_unprintable",
    "hide_own_frames",
    "invalid_setting",
    "prefix_errors",
    "reworded",
    "safe_repr",
    "truncate",
    "undecorated",
    "user_facing",
]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

LARGEST = 2**53 - 1
"""The largest integer that most settings may have: every JSON reader preserves it."""


ErrorCode = Literal[
    "invalid-value",
    "out-of-range",
    "unknown-name",
    "wrong-arguments",
    "contradiction",
    "never-retries",
    "not-here",
    "not-retryable",
    "async-mismatch",
    "not-expressible",
    "unreadable-file",
    "not-installed",
    "other-library",
    "wrong-state",
    "damaged-data",
]
"""The families of `ConfigError`, by what to do about them; each has a page."""


# The exceptions that are raised below `retrykit.errors`, which has all of them.
class RetrykitError(Exception):
    """Base class of the exceptions of retrykit."""

    __module__ = "retrykit.errors"


class ConfigError(RetrykitError, ValueError):
    """An argument or a setting is invalid.

    Every function raises it as soon as an argument is outside the documented bounds.
    Most texts have the form
    ``{name} must be {rule}, got {value!r}; {suggestion}  [{code}]``. The code is the
    name of a family of errors, which has a page in the documentation.

    Attributes:
        code: The family, such as ``"out-of-range"``.
    """

    __module__ = "retrykit.errors"
    code: ErrorCode = "invalid-value"

    def __init__(self, message: str = "", code: ErrorCode = "invalid-value") -> None:
        super().__init__(message)
        self.code = code

    @property
    def message(self) -> str:
        """The text without the code."""
        return str(self.args[0])

    def __str__(self) -> str:
        # Imported here: few programs print one.
        from retrykit._internal.distribution import SITE  # noqa: PLC0415

        page = f"  {SITE}errors/{self.code}.html" if SITE else ""
        return f"{self.message}  [{self.code}]{page}"


class NestingError(RetrykitError, RuntimeError):
    """A context block is opened or closed out of order, or closed in another context.

    A block that changes a context (a thread or task) must be closed there, the
    innermost block first.
    """

    __module__ = "retrykit.errors"


def invalid_setting(
    name: str,
    rule: str,
    value: object,
    suggestion: str = "",
    *,
    code: ErrorCode = "invalid-value",
) -> ConfigError:
    """Return the error for a setting that breaks its rule.

    >>> invalid_setting("max_attempts", "an integer >= 1", 0, "so count the first")
    ConfigError('max_attempts must be an integer >= 1, got 0; so count the first')

    Args:
        name: The name of the parameter, as the user typed it.
        rule: The rule, after "must be".
        value: The invalid value.
        suggestion: The correction, if it is not obvious.
        code: The family of the error.
    """
    ending = f"; {suggestion}" if suggestion else ""
    text = f"{name} must be {rule}, got {safe_repr(value)}{ending}"
    return ConfigError(escape_unprintable(truncate(text, _LONGEST_ERROR)), code)


def reworded(error: ConfigError, message: str) -> ConfigError:
    """Return an error with a new message, but the same family and traceback."""
    return ConfigError(message, error.code).with_traceback(error.__traceback__)


@contextmanager
def prefix_errors(prefix: str) -> Iterator[None]:
    """Put a prefix, such as the name of a setting, before errors about its parts."""
    try:
        yield
    except ConfigError as error:
        raise reworded(error, f"{prefix}: {error.message}") from None


def escape_unprintable(text: str) -> str:
    r"""Escape the unprintable characters of a text.

    Control characters, line breaks, escape sequences and bidirectional marks would
    act on the terminal, or forge lines.

    >>> print(escape_unprintable("a\x1b[31mb\n\u202ec"))
    a\x1b[31mb\n\u202ec
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in text
    )


def safe_repr(value: object) -> str:
    """Return the repr of a value for an error, without secrets of URLs.

    >>> safe_repr("soon"), safe_repr(10**5000)
    ("'soon'", '<int that cannot be shown>')

    Returns:
        The repr without the secrets of URLs; if it is long, without its middle; if it
        fails, a placeholder.
    """
    try:
        return truncate(redact_urls(repr(value)), _LONGEST_REPR)
    except Exception:  # noqa: BLE001  the error is about something else
        return f"<{type(value).__name__} that cannot be shown>"


# A few lines of a terminal, so that the value does not hide the rule.
_LONGEST_REPR = 400
_LONGEST_ERROR = 2000


def truncate(text: str, longest: int) -> str:
    """Cut out the middle of a text that is too long.

    >>> truncate("attempt", 10), truncate("x" * 50 + "y" * 50, 10)
    ('attempt', 'xxxxx [...] yyyyy')
    """
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [...] {text[-half:]}"


def check_number(
    name: str,
    value: object,
    *,
    at_least: float = 0.0,
    at_most: float = math.inf,
    suggestion: str = "",
) -> float:
    """Return *value* as a float if it is a finite number within its bounds.

    >>> check_number("factor", 2, at_least=1)
    2.0
    """
    # Compared before it is converted: a large integer may not fit a float.
    within = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and at_least <= value <= min(at_most, sys.float_info.max)
    )
    if not within or not isinstance(value, int | float):
        top = f" and <= {at_most:g}" if at_most < math.inf else ""
        rule = f"a finite number >= {at_least:g}{top}"
        code = _range_code(value, int | float)
        raise invalid_setting(name, rule, value, suggestion, code=code)
    return float(value)


def check_integer(
    name: str,
    value: object,
    *,
    at_least: int,
    at_most: int = LARGEST,
    suggestion: str = "",
) -> int:
    """Return *value* if it is an integer within its bounds.

    >>> check_integer("max_attempts", 3, at_least=1)
    3
    """
    within = (
        isinstance(value, int)
        and not isinstance(value, bool)
        and at_least <= value <= at_most
    )
    if not within or not isinstance(value, int):
        too_large = isinstance(value, int) and value > at_most
        top = f" and <= {at_most}" if too_large else ""
        rule = f"an integer >= {at_least}{top}"
        code = _range_code(value, int)
        raise invalid_setting(name, rule, value, suggestion, code=code)
    return int(value)


def _range_code(value: object, kind: "type | UnionType") -> ErrorCode:
    """Return the family of the error about a value that is not a number in its range.

    It is ``out-of-range`` for a number of the right kind, else ``invalid-value``.
    """
    numeric = isinstance(value, kind) and not isinstance(value, bool)
    return "out-of-range" if numeric else "invalid-value"


def check_choice(
    name: str, value: object, options: Collection[str], suggestion: str = ""
) -> object:
    """Return *value* if it is one of *options*.

    >>> check_choice("deadline", "stop", ["stop", "clip"])
    'stop'
    """
    if not isinstance(value, str) or value not in options:
        rule = f"one of {', '.join(map(repr, options))}"
        code: ErrorCode = "unknown-name" if isinstance(value, str) else "invalid-value"
        raise invalid_setting(name, rule, value, suggestion, code=code)
    return value


def check_instance(name: str, value: object, kind: type[T], suggestion: str = "") -> T:
    """Return *value* if it is an instance of *kind*.

    >>> check_instance("policy", 5, str)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: policy must be a str, got 5  [invalid-value]
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
        raise invalid_setting(name, f"{article} {kind.__name__}", value, suggestion)
    return value


def check_aware(name: str, value: object) -> "datetime":
    """Return *value* if it is a datetime with a time zone."""
    # Imported here: few programs check one.
    from datetime import datetime  # noqa: PLC0415

    moment = check_instance(name, value, datetime)
    if moment.tzinfo is None:
        raise invalid_setting(
            name, "an aware datetime", moment, "write datetime.now(UTC)"
        )
    return moment


def check_text(name: str, value: object) -> str:
    """Return *value* if it is a printable string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise invalid_setting(name, "a non-empty string", value)
    if not value.isprintable():
        raise invalid_setting(name, "a printable string", value)
    return value


def check_encodable(name: str, value: str, suggestion: str = "") -> str:
    """Return *value* if UTF-8 can encode it.

    >>> check_encodable("name", "fetch")
    'fetch'
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        rule = "encodable as UTF-8"
        raise invalid_setting(name, rule, value, suggestion) from None
    return value


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Suggest the known name that is most similar to a misspelled one, if there is any.

    >>> did_you_mean("Max_attemps", ["max_attempts", "max_elapsed"])
    'did you mean max_attempts?'
    >>> did_you_mean("color", ["max_attempts", "max_elapsed"])
    ''
    """
    # Imported here: only misspelled names need it.
    import difflib  # noqa: PLC0415

    if not isinstance(name, str):
        return ""
    meant = {each.lower(): each for each in islice(known, _MOST_COMPARED)}
    near = difflib.get_close_matches(name.lower(), meant, n=1, cutoff=_NEAREST)
    return f"did you mean {meant[near[0]]}?" if near else ""


_MOST_COMPARED = 1000
# With the default, 0.6, `hedge` would be taken for `schedule`.
_NEAREST = 0.65


Advise = Callable[[str, list[str]], str]
"""Returns what to write instead of a parameter that a function does not have, given the
names of its parameters; empty if that is unknown."""

Guess = Callable[[Any], str]
"""Returns the argument that was probably meant by a value without a name, such as
``on=OSError``; empty if that is unknown."""


Prepare = Callable[[dict[str, Any]], dict[str, Any]]
"""Checks the keyword arguments of a call; returns the arguments to call the function
with."""


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
    does not take, which suggests what to write.

    >>> @user_facing
    ... def exponential(first, *, factor=2.0): ...
    >>> exponential(1, faktor=3)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: faktor is not a parameter of exponential, got 3; \
did you mean factor?  [unknown-name]
    >>> exponential(1, 3)
    Traceback (most recent call last):
    ...
    retrykit.errors.ConfigError: arguments of exponential must be given by name after \
the first, got 3; write factor=3  [wrong-arguments]
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

    # doctest looks for functions whose globals are the module's.
    own = FunctionType(
        checked.__code__, inner.__globals__, None, None, checked.__closure__
    )
    return cast("F", functools.update_wrapper(own, inner))


def undecorated(fn: FunctionType) -> FunctionType:
    """Return the function behind `user_facing`, or *fn* if it is not decorated."""
    return cast("Any", fn).__wrapped__ if fn.__code__ is _CODE else fn


def hide_own_frames(error: ConfigError) -> ConfigError:
    """Return an error without its frames up to the last frame of this package."""
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
        # A method, whose object is not an argument.
        parameters, args = parameters[1:], args[1:]
        shown = owner if shown == "__init__" else shown
    named = [each.name for each in parameters if each.kind in by_name]
    takes_any = any(each.kind is kind.VAR_KEYWORD for each in parameters)
    for name, value in kwargs.items():
        if name not in named and not takes_any:
            every = f"the parameters are {', '.join(named)}" if named else ""
            suggestion = advise(name, named) or did_you_mean(name, named) or every
            text = f"{name} is not a parameter of {shown}, got {safe_repr(value)}"
            message = f"{text}; {suggestion}" if suggestion else text
            return ConfigError(message, "unknown-name")
    positional = [each.name for each in parameters if each.kind in by_position]
    if len(args) > len(positional):
        value, most = args[len(positional)], len(positional)
        free = [name for name in named if name not in {*positional, *kwargs}]
        if not (free or takes_any):
            taken = f"{most or 'no'} argument{'' if most == 1 else 's'}"
            unnamed = " without a name" if len(named) > most else ""
            message = f"{shown} takes {taken}{unnamed}, got {len(args)}"
            return ConfigError(message, "wrong-arguments")
        meant = guess(value)
        if not meant and not takes_any:
            meant = f"{free[0]}={safe_repr(value)}"
        after = f" after the first{f' {most}' if most > 1 else ''}" if most else ""
        suggestion = f"write {meant}" if meant else ""
        return invalid_setting(
            f"arguments of {shown}",
            f"given by name{after}",
            value,
            suggestion,
            code="wrong-arguments",
        )
    twice = [name for name in positional[: len(args)] if name in kwargs]
    if twice:
        return invalid_setting(
            twice[0], "given once", kwargs[twice[0]], code="wrong-arguments"
        )
    missing = [
        each.name
        for each in parameters
        if each.default is kind.empty
        and each.name not in {*positional[: len(args)], *kwargs}
        and each.kind in by_name | by_position
    ]
    message = f"{shown} must be given a value for {' and '.join(missing)}"
    return ConfigError(message, "wrong-arguments")


# All decorated functions have it.
_CODE = user_facing(_unknown).__code__
