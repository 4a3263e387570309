"""Shareable objects, which can be written as data and found by their scope."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

from retrykit._internal.keyed_objects import KeyedObjects
from retrykit._internal.locks import ForkSafe
from retrykit._internal.validation import check_encodable, invalid_setting

__all__ = ["Shareable", "find_shared"]


class Shareable(ForkSafe):
    """An object with settings that can be printed, written as data and pickled.

    Only the settings are written, never what the object has counted: copied, pickled
    or read back, it is new. An object with a scope comes back as the object of that
    scope. A shareable object is equal only to itself.

    Attributes:
        kind: The name of its class in data.
        scope: The scope that `shared` was given for it; None if there is none.
        shared_objects: The objects of this process, keyed by scope.
    """

    kind: ClassVar[str]
    shared_objects: ClassVar[KeyedObjects[Any]]
    scope: str | None = None

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments that the object was made with, keyed by name."""

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Return the defaults of the arguments, keyed by name."""
        return cls().settings

    @property
    def expression(self) -> str:
        """The expression that makes an equivalent object, without its scope."""
        defaults = self.default_settings()
        settings = self.settings.items()
        arguments = [
            f"{name}={self.format_setting(x)}"
            for name, x in settings
            if x != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(arguments)})"

    def format_setting(self, value: object) -> str:
        """Return the value of a setting as an expression."""
        return repr(value)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, for JSON and TOML.

        Raises:
            ConfigError: A subclass has a setting that is code, such as a predicate.
        """
        data = {"kind": self.kind, **self.settings}
        return data | ({"scope": self.scope} if self.scope else {})

    def in_scope(self, scope: str) -> Self:
        """Return the object of a scope, which is this object if there was none."""
        found: Self = self.shared_objects.setdefault(scope, self)
        # Set by every finder, so that no thread sees a shared object without scope.
        found.scope = scope
        return found

    def __repr__(self) -> str:
        if self.scope is None:
            return self.expression
        name, _, arguments = self.expression.partition("(")
        make = name if arguments == ")" else f"lambda: {self.expression}"
        return f"shared({self.scope!r}, make={make})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.settings, self.scope)


def find_shared(scope: object, make: object, kind: type[Any], rule: str) -> Shareable:
    """Return this process's object for a scope, which is made on first use.

    Args:
        scope: The scope.
        make: Builds the object; later, an equivalent one to compare with it.
        kind: The base class of the objects.
        rule: What *make* must be, for the error.

    Raises:
        ConfigError: *scope* is invalid; or *make* does not build an object of *kind*,
            or builds one of another type or with other settings than the object of this
            scope.
    """
    made: Any = make() if callable(make) else make
    noun, example = kind.shared_objects.noun, kind.shared_objects.example
    if not callable(make) or not isinstance(made, kind):
        suggestion = f"name the class, or write lambda: {example}"
        raise invalid_setting("make", rule, made, suggestion)
    found: Shareable = made.in_scope(_check_scope(scope))
    if type(found) is not type(made) or found.settings != made.settings:
        rule = f"a function that builds {found.expression}, as before in this scope"
        suggestion = f"give another {noun} another scope"
        raise invalid_setting("make", rule, made, suggestion, code="contradiction")
    return found


def _check_scope(scope: object) -> str:
    area, _, name = scope.partition(":") if isinstance(scope, str) else ("", "", "")
    named = area in {"host", "key"} and name.strip()
    if not isinstance(scope, str) or not (named or scope == "process"):
        rule = "'process', or a string such as 'host:api.example' or 'key:orders'"
        raise invalid_setting("scope", rule, scope)
    return check_encodable("scope", scope)


def _restore(
    kind: type[Shareable], settings: dict[str, Any], scope: str | None
) -> Shareable:
    made = kind(**settings)
    # The shared object of this process wins, whatever the settings of the pickle.
    return made if scope is None else made.in_scope(scope)
