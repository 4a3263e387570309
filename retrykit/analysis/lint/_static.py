"""Policies made from the values in source code, which is not run.

Only names of this package, `timedelta` and collections such as `list` are called, and
builtin exceptions are used as they are. An error class that is defined elsewhere is
replaced by one of the same name. Some settings that are not known, such as a hint, are
replaced by neutral ones; others, such as observers, are left out, since no lint rule
needs them.
"""

import builtins
import operator
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from threading import Event
from typing import Any, Final

from retrykit._core.policy import Policy
from retrykit._core.settings import SETTINGS
from retrykit._own_retries import OWN_RETRIES
from retrykit.audit._project import Project
from retrykit.audit._values import Call, Dictionary, Operation, Reference, Value
from retrykit.budgets._ratio import RatioBudget
from retrykit.errors import ConfigError
from retrykit.schedules._base import Schedule

__all__ = ["UnknownValueError", "policy_at"]

# Names that may be called: their results hold settings, and do nothing when they are
# made.
_NAMES: Final = {
    "retrykit": "AsArgument Hedge Policy Rule",
    "retrykit.budgets": "FleetBudget RatioBudget Throttle TokenBucket",
    "retrykit.conditions": "AnyOf ErrorNames Excluding HttpFailures StatusCodes any_of",
    "retrykit.hints": "attribute first_of grpc_pushback milliseconds rate_limit "
    "reset_at retry_after",
    "retrykit.hints.grpc": "StatusCodes grpc_pushback",
    "retrykit.limits": "AIMD AdaptiveLimit AdaptiveRateLimit CircuitBreaker "
    "Concurrency Gradient2 RateLimit Vegas",
    "retrykit.schedules": "constant decay decorrelated exponential fibonacci "
    "google_interval linear polly_interval polynomial sequence uniform",
}
# All public names of these.
_WHOLE: Final = ("retrykit.errors", "retrykit.presets")
_DECORATORS: Final = {
    f"retrykit.{each}" for each in ("retry", "aretry", "retrying", "aretrying")
}
_METHODS: Final = """
    at_least cap equal_jitter full_jitter jitter round_down switch take then within
    without_jitter
"""
_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "*": operator.mul,
    "|": operator.or_,
    "&": operator.and_,
}
_COLLECTIONS: Final = {"frozenset", "list", "set", "tuple"}
# Arguments that are not settings of a policy.
_OF_CALLS: Final = frozenset(["state", "stream"])
_MOST_ITEMS: Final = 10_000
_MOST_BASES: Final = 20
_INTEGRATIONS: Final = "retrykit.integrations."
# The modules whose `transient` knows that their clients retry by themselves.
_OWN_RETRIES: Final = {
    "anthropic": "anthropic",
    "botocore": "botocore",
    "kubernetes": "kubernetes",
    "openai": "openai",
    "pymongo": "pymongo",
    "redis": "redis",
    "stripe": "stripe",
    "azure_core": "azure",
    "google_api_core": "google-api-core",
    "google_genai": "google-genai",
}
_LEFT_OUT: Final = """
    admission exception_groups fallback hedge hint_cap hint_jitter keep_tracebacks
    max_failures name nested observers on_long_hint raises redact sleep
"""
"""Settings that are left out if they are not known: no rule then warns of them."""


class UnknownValueError(Exception):
    """A value is not known before the program runs."""


class _AnyCondition:
    """A stand-in for a condition that is not known."""

    def __init__(self, own_retries: object = None) -> None:
        self.own_retries = own_retries

    def __call__(self, *_: object) -> bool:
        return True


def _any_hint(*_: object) -> None:
    """Request no delay."""


_REPLACED: Final[dict[str, Callable[[], Any]]] = {
    "on": _AnyCondition,
    "give_up_on": _AnyCondition,
    "on_result": _AnyCondition,
    "hint": lambda: _any_hint,
    # It has no reserve, which would add up over processes.
    "budget": lambda: RatioBudget(0.1, reserve=0),
    "stop_event": Event,
}
"""Neutral values of settings that are not known."""

_CONDITIONS: Final = frozenset(["on", "give_up_on"])


def policy_at(call: Call, project: Project) -> Policy:
    """Return the policy at a site, where source code uses this package.

    Args:
        call: The call of the site: of a decorator, a block, a policy or a preset.
        project: The project that it is in.

    Raises:
        UnknownValueError: A setting that rules look at is not known.
        ConfigError: A setting is invalid.
    """
    builder = _Builder(project)
    try:
        if type(call.function) is Reference and call.function.name in _DECORATORS:
            return builder.decorator(call)
        made = builder.build(call)
    except ConfigError:
        raise
    except Exception as error:
        # Such as a preset that was given a value of another kind.
        raise UnknownValueError from error
    if type(made) is not Policy:
        raise UnknownValueError
    return made


class _Builder:
    """Makes objects from the values of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._errors: dict[str, type[BaseException]] = {}

    def decorator(self, call: Call) -> Policy:
        """Return the policy of the calls that a decorator or a block retries."""
        positional, named = self._arguments(call, _OF_CALLS)
        base = named.pop("policy", None)
        for value in call.positional:
            if type(value) is not Reference:
                [base] = positional
            elif value.name not in self._project.definitions:
                # The function that is decorated, or a policy of another project.
                raise UnknownValueError
        if base is None:
            return Policy(**named)
        if type(base) is not Policy:
            raise UnknownValueError
        return base.replace(**named)

    def build(self, value: Value, *, errors: bool = False) -> Any:
        """Build the object that a value describes.

        Args:
            value: The value.
            errors: Whether a class that is known only by name counts as an error class.

        Raises:
            UnknownValueError: The value is known only when the program runs.
        """
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is tuple:
            return tuple(self.build(each, errors=errors) for each in value)
        if kind is Reference:
            return self._named(value, errors=errors)
        if kind is Call:
            return self._called(value)
        if kind is Operation:
            return self._operated(value, errors=errors)
        if kind is Dictionary:
            return {
                self.build(key): self.build(item, errors=errors)
                for key, item in value.items
            }
        raise UnknownValueError

    def _named(self, reference: Reference, *, errors: bool) -> Any:
        name = reference.name
        found = getattr(builtins, name, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        if name.startswith(_INTEGRATIONS):
            return _condition_of(name)
        if reference.library == "retrykit":
            return _public(name)
        # Others are predicates, or constants of another project.
        if errors and reference.last[:1].isupper() and not reference.last.isupper():
            return self._error_class(name)
        raise UnknownValueError

    def _error_class(self, name: str, depth: int = 0) -> type[BaseException]:
        """Return a stand-in for an error class, with its name and its builtin base."""
        if name not in self._errors:
            bases = self._project.class_bases(name)
            base: type[BaseException] = Exception
            if bases and depth < _MOST_BASES:
                first = self._project.resolve(bases[0])
                if type(first) is Reference:
                    known = getattr(builtins, first.name, None)
                    if isinstance(known, type) and issubclass(known, BaseException):
                        base = known
                    elif first.name != name:
                        base = self._error_class(first.name, depth + 1)
            made: Any = type(name.rpartition(".")[2], (base,), {})
            self._errors[name] = made
        return self._errors[name]

    def _called(self, call: Call) -> Any:
        function = call.function
        if type(function) is Operation:
            return self._method(call, function)
        if type(function) is not Reference:
            raise UnknownValueError
        if function.name == "datetime.timedelta":
            positional, named = self._arguments(call)
            return timedelta(*positional, **named)
        if function.name in _COLLECTIONS:
            [items] = (self.build(each) for each in call.positional)
            return tuple(items)
        if function.library != "retrykit":
            raise UnknownValueError
        made = _public(function.name)
        errors = function.name.startswith(("retrykit.conditions.", "retrykit.Rule"))
        positional, named = self._arguments(call, errors=errors)
        return made(*positional, **named)

    def _method(self, call: Call, function: Operation) -> Any:
        owner, name = self.build(function.left), function.right
        known = isinstance(owner, Schedule) and name in _METHODS.split()
        if function.sign != "." or not (known or _is_replace(owner, name)):
            raise UnknownValueError
        positional, named = self._arguments(call)
        return getattr(owner, name)(*positional, **named)

    def _operated(self, value: Operation, *, errors: bool) -> Any:
        left = self.build(value.left, errors=errors)
        if value.sign == ".":
            if type(left) is Policy and value.right in SETTINGS:
                return getattr(left, value.right)
            raise UnknownValueError
        right = self.build(value.right, errors=errors)
        operate = _OPERATORS.get(value.sign)
        if operate is None:
            raise UnknownValueError
        if value.sign == "*" and type(left) is tuple and type(right) is int:
            if right * len(left) > _MOST_ITEMS:
                raise UnknownValueError
        elif value.sign == "+" and type(left) is type(right) is tuple:
            pass
        elif not (isinstance(left, Schedule) or isinstance(right, Schedule)):
            raise UnknownValueError
        return operate(left, right)

    def _arguments(
        self,
        call: Call,
        skipped: frozenset[str] = frozenset(),
        *,
        errors: bool = False,
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the named arguments of a call.

        Args:
            call: The call.
            skipped: Names of arguments to leave out. If there are any, positional
                arguments that are only names are left out as well.
            errors: As in `build`, for the positional arguments.

        Raises:
            UnknownValueError: An argument is not known and cannot be replaced.
        """
        values: dict[str, Value] = {}
        for name, value in call.named:
            if name:
                values[name] = value
            elif type(value) is Dictionary:
                for key, item in value.items:
                    if type(key) is not str:
                        raise UnknownValueError
                    values.setdefault(key, item)
            else:
                raise UnknownValueError
        named: dict[str, Any] = {}
        for name, value in values.items():
            if name not in skipped:
                self._add(named, name, value, values)
        if skipped:
            positional = [
                self.build(each)
                for each in call.positional
                if type(each) is not Reference
            ]
        else:
            positional = [self.build(each, errors=errors) for each in call.positional]
        return positional, named

    def _add(
        self,
        named: dict[str, Any],
        name: str,
        value: Value,
        values: Mapping[str, Value],
    ) -> None:
        """Add an argument to *named*, or a stand-in if it is not known.

        It is left out if it is not known and no rule needs it.

        Raises:
            UnknownValueError: It is not known, and the rules need it.
        """
        try:
            named[name] = self.build(value, errors=name in _CONDITIONS)
        except UnknownValueError:
            if name in _REPLACED and not (name == "on" and "on_result" in values):
                named[name] = _REPLACED[name]()
            elif name not in _LEFT_OUT.split():
                raise


def _is_replace(owner: object, name: str) -> bool:
    return type(owner) is Policy and name == "replace"


def _public(name: str) -> Any:
    """Return the object that a public name of this package refers to."""
    module, _, last = name.rpartition(".")
    if module in _NAMES:
        known = last in _NAMES[module].split()
    else:
        known = module in _WHOLE and last in import_module(module).__all__
    if not known and module == "retrykit":
        # It has the names of all errors.
        module = "retrykit.errors"
        known = last in import_module(module).__all__
    if not known:
        raise UnknownValueError
    return getattr(import_module(module), last)


def _condition_of(name: str) -> _AnyCondition:
    """Return a stand-in for a condition of a library that may not be installed."""
    module, _, last = name.removeprefix(_INTEGRATIONS).partition(".")
    if last != "transient":
        raise UnknownValueError
    return _AnyCondition(OWN_RETRIES.get(_OWN_RETRIES.get(module, "")))
