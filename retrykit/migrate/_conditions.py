"""Conditions of other libraries on errors and results, and their combinations."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import libcst as cst

from retrykit.migrate._expressions import call_predicate, code, negated, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings

__all__ = ["Errors", "Results", "condition_settings"]

# Errors that no policy retries.
_TOO_WIDE = {
    *("BaseException", "KeyboardInterrupt", "SystemExit", "GeneratorExit"),
    *("asyncio.CancelledError", "CancelledError", "BaseExceptionGroup"),
}


def _type_list(text: str) -> list[str]:
    node = parse(text)
    if isinstance(node, cst.Tuple):
        return [code(each.value) for each in node.elements]
    return [text]


class Errors(NamedTuple):
    """A condition on errors.

    Attributes:
        types: The types that it includes, as texts.
        excluded: The types that it excludes, as texts.
        predicate: A test of the variable ``error``, as text, in place of the types;
            None if there is none.
        function: The function, as text, that returns true for these errors; None if
            there is none.
        unless: The function, as text, that returns false for these errors; None if
            there is none.
    """

    types: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    predicate: str | None = None
    function: str | None = None
    unless: str | None = None

    @classmethod
    def none(cls) -> Self:
        """Return the condition that no error meets."""
        return cls()

    @classmethod
    def of(cls, types: str) -> Self:
        """Return the condition on errors of some types, which are given as text.

        Raises:
            Untranslatable: retrykit never retries one of the types.
        """
        return cls(tuple(_checked(types)))

    @classmethod
    def but(cls, types: str) -> Self:
        """Return the condition on all errors that are not of some types."""
        return cls(("Exception",), tuple(_type_list(types)))

    @classmethod
    def by(cls, function: str) -> Self:
        """Return the condition on errors for which a function returns true."""
        return cls(predicate=_asked(function), function=function)

    @classmethod
    def by_not(cls, function: str) -> Self:
        """Return the condition on errors for which a function returns false."""
        return cls(predicate=negated(_asked(function)), unless=function)

    @property
    def is_every(self) -> bool:
        """True if the condition includes all errors."""
        return self.types == ("Exception",) and not self.excluded

    def joined(self, other: Self, *, every: bool) -> "Errors":
        """Return the condition that this one or *other* is met.

        With *every*, both must be met.
        """
        if every:
            return self._and(other)
        if self == Errors():
            return other
        if other == Errors():
            return self
        plain = not (self.excluded or other.excluded)
        if plain and self.predicate is None and other.predicate is None:
            return Errors((*self.types, *other.types))
        return Errors(predicate=f"{_or_part(self)} or {_or_part(other)}")

    def _and(self, other: Self) -> "Errors":
        if Errors() in {self, other}:
            return Errors()
        if self.predicate is None and other.predicate is None:
            everything = ("Exception",)
            if everything in {self.types, other.types}:
                types = other.types if self.types == everything else self.types
                return Errors(types, (*self.excluded, *other.excluded))
        return Errors(predicate=f"{_and_part(self)} and {_and_part(other)}")

    def test(self) -> str:
        """Return the text of a test of ``error``."""
        if self.predicate is not None:
            return self.predicate
        parts = []
        if self.types != ("Exception",) or not self.excluded:
            parts.append(f"isinstance(error, {_types_text(self.types)})")
        if self.excluded:
            parts.append(f"not isinstance(error, {_types_text(self.excluded)})")
        return " and ".join(parts)


def _checked(types: str) -> list[str]:
    listed = _type_list(types)
    for each in listed:
        if each in _TOO_WIDE:
            raise Untranslatable(f"retrykit never retries {each}")
    return listed


def _asked(function: str) -> str:
    return call_predicate(parse(function), "error")


def _or_part(condition: Errors) -> str:
    return condition.test()


def _and_part(condition: Errors) -> str:
    text = condition.test()
    node = parse(text)
    is_or = isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or)
    is_open = is_or or isinstance(node, cst.IfExp | cst.Lambda)
    return f"({text})" if is_open and not node.lpar else text


def _types_text(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


class Results(NamedTuple):
    """A condition on results.

    Attributes:
        function: The function, as text, that returns true for these results; None if
            no result meets the condition.
    """

    function: str | None = None

    def joined(self, other: Self, *, every: bool) -> "Results":
        """Return the condition that this one or *other* is met.

        With *every*, both must be met.
        """
        if self.function is None or other.function is None:
            either = Results(self.function or other.function)
            return Results() if every else either
        word = "and" if every else "or"
        texts = (
            call_predicate(parse(each), "result")
            for each in (self.function, other.function)
        )
        both = f" {word} ".join(f"({x})" if " " in x else x for x in texts)
        return Results(f"lambda result: {both}")


def condition_settings(
    errors: Errors, results: Results, *, excludes: bool = True
) -> Settings:
    """Return the settings that decide which failures are retried.

    Args:
        errors: The condition on errors.
        results: The condition on results.
        excludes: Whether `give_up_on` may exclude errors. An error that it matches
            ends a call as a limit does, with the fallback or a RetryError; an error
            that `on` does not match is raised itself.

    Raises:
        Untranslatable: No failure is retried.
    """
    found: Settings = {}
    if errors == Errors() and results.function is None:
        raise Untranslatable("it retries nothing")
    if errors.function is not None:
        found["on"] = errors.function
    elif not excludes and (errors.unless is not None or errors.excluded):
        found["on"] = f"lambda error: {errors.test()}"
    elif errors.unless is not None:
        found |= {"on": "Exception", "give_up_on": errors.unless}
    elif errors.predicate is not None:
        found["on"] = f"lambda error: {errors.predicate}"
    else:
        found["on"] = _types_text(errors.types) if errors.types else "()"
        if errors.excluded:
            found["give_up_on"] = _types_text(errors.excluded)
    if results.function is not None:
        found["on_result"] = results.function
    return found
