"""Usages of other libraries in a file, and what becomes of each."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import libcst as cst

from retrykit.migrate import _backoff, _retrying, _stamina, _tenacity
from retrykit.migrate._blocks import Edits, block_edits, loop_head
from retrykit.migrate._expressions import OURS, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._layout import (
    OPENING,
    WIDTH,
    arguments_of,
    comments_of,
    write_call,
)
from retrykit.migrate._objects import caller_edits, object_edits, object_uses
from retrykit.migrate._settings import Settings, Use, ordered
from retrykit.migrate._source import Arguments, Source

__all__ = ["Site", "find_sites"]


class Entry(NamedTuple):
    """A function or class of a library that retries.

    Attributes:
        kind: What it makes: a decorator, a block, or an object that is called.
        settings: Returns the settings for its arguments.
        parameters: Its parameters.
        awaited: Whether what it retries is awaited; None if that is not known.
        origins: The parameters that settings come from, for comments beside them.
    """

    kind: str
    settings: Callable[[Arguments, Use], Settings]
    parameters: str
    origins: dict[str, str]
    awaited: bool | None = None


_TENACITY: Final = {
    "max_attempts": "stop",
    "max_elapsed": "stop",
    "schedule": "wait",
    "on": "retry",
    "on_result": "retry",
    "raises": "reraise",
    "fallback": "retry_error_callback",
    "observers": "before_sleep",
}
_BACKOFF: Final = {
    "max_attempts": "max_tries",
    "max_elapsed": "max_time",
    "on": "exception",
    "on_result": "predicate",
    "give_up_on": "giveup",
    "schedule": "jitter",
    "observers": "on_backoff",
    "fallback": "raise_on_giveup",
}
_STAMINA: Final = {
    "on": "on",
    "max_attempts": "attempts",
    "max_elapsed": "timeout",
    "schedule": "wait_max",
}
_RETRYING: Final = {
    "max_attempts": "stop_max_attempt_number",
    "max_elapsed": "stop_max_delay",
    "schedule": "wait_fixed",
    "on": "retry_on_exception",
    "on_result": "retry_on_result",
}

ENTRIES: Final = {
    ("tenacity", "retry"): Entry(
        "function", _tenacity.settings, _tenacity.PARAMETERS, _TENACITY
    ),
    ("tenacity", "Retrying"): Entry(
        "object", _tenacity.settings, _tenacity.PARAMETERS, _TENACITY, awaited=False
    ),
    ("tenacity", "AsyncRetrying"): Entry(
        "object", _tenacity.settings, _tenacity.PARAMETERS, _TENACITY, awaited=True
    ),
    ("backoff", "on_exception"): Entry(
        "function", _backoff.exception_settings, _backoff.OF_EXCEPTIONS, _BACKOFF
    ),
    ("backoff", "on_predicate"): Entry(
        "function", _backoff.result_settings, _backoff.OF_RESULTS, _BACKOFF
    ),
    ("stamina", "retry"): Entry(
        "function", _stamina.settings, _stamina.PARAMETERS, _STAMINA
    ),
    ("stamina", "retry_context"): Entry(
        "block", _stamina.settings, _stamina.PARAMETERS, _STAMINA
    ),
    ("stamina", "RetryingCaller"): Entry(
        "caller", _stamina.caller_settings, _stamina.OF_CALLERS, _STAMINA, awaited=False
    ),
    ("stamina", "AsyncRetryingCaller"): Entry(
        "caller", _stamina.caller_settings, _stamina.OF_CALLERS, _STAMINA, awaited=True
    ),
    ("retrying", "retry"): Entry(
        "function", _retrying.settings, _retrying.PARAMETERS, _RETRYING
    ),
    ("retrying", "Retrying"): Entry(
        "object", _retrying.settings, _retrying.PARAMETERS, _RETRYING, awaited=False
    ),
}

_LEFT: Final = {
    ("tenacity", "TornadoRetrying"): "retrykit has nothing for coroutines of Tornado",
    ("stamina", "set_active"): "in tests, write retrykit.testing.disable_retries()",
    ("stamina", "set_testing"): "in tests, write retrykit.testing.limit_retries(n)",
    ("urllib3", "Retry"): (
        "a status that is left at the end raises an error in urllib3, and is returned "
        "by retrykit; see RetryAdapter of retrykit.integrations.requests"
    ),
}
"""Why others are always left as they are."""


_SHARED: Final = "another object of this variable is left as it is"

_A_GENERATOR: Final = (
    "it decorates a generator function, whose calls do not fail, but its items"
)


class Site:
    """A usage of a library in a file.

    Attributes:
        node: The expression that is replaced.
        library: The library.
        line: The line, from 1.
        anchor: The statement or decorator that a comment would stand above.
        function: The decorated function, if there is one.
        settings: The settings of the policy; None if it is left as it is.
        reason: Why it is left as it is; None if it is translated.
        edits: What else in the file becomes different.
        dictionaries: The variables whose items are arguments.
        own: The names of the parameters that are written in the call itself.
    """

    def __init__(
        self, source: Source, name: cst.BaseExpression, found: tuple[str, str]
    ) -> None:
        self.source = source
        self.library, self.name = found
        self.line = source.line(name)
        self.node: cst.BaseExpression = name
        self.call: cst.Call | None = None
        self.function: cst.FunctionDef | None = None
        self.settings: Settings | None = None
        self.reason: str | None = None
        self.edits: Edits = {}
        self.dictionaries: list[cst.Name] = []
        self.own: set[str] = set()
        self.arguments: Arguments | None = None
        self.kind = ""
        self.suffix = ""
        self.base: str | None = None
        self.head = f"{OURS}.retry"
        around = source.parent(name)
        if isinstance(around, cst.Call) and around.func is name:
            self.node = self.call = around
        self.anchor = self._find_anchor()
        self.variable = source.variable(source.parent(self.node))

    def _find_anchor(self) -> cst.CSTNode:
        for each in self.source.parents(self.node):
            if isinstance(each, cst.Decorator):
                function = self.source.parent(each)
                decorators = getattr(function, "decorators", ())
                if decorators and decorators[0] is each and function is not None:
                    return function
                return each
            if hasattr(each, "leading_lines"):
                return each
        return self.source.module

    def leave(self, reason: str) -> None:
        """Leave it as it is."""
        self.settings, self.reason, self.edits = None, reason, {}

    def translate(self) -> None:
        """Find its settings, or the reason why it is left as it is."""
        try:
            self._translate()
        except Untranslatable as reason:
            self.leave(str(reason))

    def _translate(self) -> None:
        key = (self.library, self.name)
        if key in _LEFT:
            raise Untranslatable(_LEFT[key])
        name = self.call.func if self.call is not None else self.node
        if self.source.is_conditional(name):
            raise Untranslatable("it is imported under a condition")
        entry = ENTRIES[key]
        self.kind = entry.kind
        around = self.source.parent(self.node)
        self.function = self._decorated(around)
        bare = self.call is None
        if bare and (entry.kind != "function" or not isinstance(around, cst.Decorator)):
            raise Untranslatable("it is passed on as an object")
        arguments = self._read_arguments(entry.parameters)
        awaited, kind = entry.awaited, self._use_kind(around)
        if self.function is not None:
            if _generates(self.function):
                raise Untranslatable(_A_GENERATOR)
            awaited = self.function.asynchronous is not None
        elif kind == "block" and isinstance(around, cst.For):
            awaited = around.asynchronous is not None
        settings = entry.settings(arguments, Use(kind, awaited, self.function))
        if entry.kind != "function":
            self._place(around, settings, awaited=awaited)
        self.settings = ordered(settings)

    def _read_arguments(self, parameters: str) -> Arguments:
        call = self.call
        if call is not None and self._decorates(call):
            # The function itself is the argument.
            self.node, self.call, call = call.func, None, None
        self.arguments = arguments = Arguments(self.source, call, parameters)
        self.dictionaries, self.own = arguments.dictionaries, arguments.own
        return arguments

    def _use_kind(
        self, around: cst.CSTNode | None
    ) -> Literal["function", "block", "object"]:
        if self.kind == "function":
            return "function"
        looped = isinstance(around, cst.For) and around.iter is self.node
        return "block" if looped else "object"

    def _decorates(self, call: cst.Call) -> bool:
        """Return whether a call of a decorator has the function as its argument."""
        if self.library not in {"tenacity", "retrying"} or self.kind != "function":
            return False
        return (
            len(call.args) == 1
            and not call.args[0].star
            and call.args[0].keyword is None
        )

    def _decorated(self, around: cst.CSTNode | None) -> cst.FunctionDef | None:
        if isinstance(around, cst.Decorator):
            decorated = self.source.parent(around)
            if isinstance(decorated, cst.ClassDef):
                raise Untranslatable("it decorates a class")
            return decorated if isinstance(decorated, cst.FunctionDef) else None
        if isinstance(around, cst.Call) and around.func is self.node and around.args:
            return self.source.function(around.args[0].value)
        return None

    def _place(
        self, around: cst.CSTNode | None, settings: Settings, *, awaited: bool | None
    ) -> None:
        """Find out where an object or a block stands, and what else changes."""
        judges = "on_result" in settings
        if isinstance(around, cst.For) and around.iter is self.node:
            self.head = loop_head(around)
            self.edits |= block_edits(self.source, around, judges=judges)
            return
        if self.kind == "block":
            raise Untranslatable("its attempts are not those of a loop")
        self.head = f"{OURS}.Policy"
        if self.kind == "caller":
            method = "acall" if awaited else "call"
            self.edits |= caller_edits(self.source, self.node, around, method)
        elif isinstance(around, cst.Call) and around.func is self.node:
            self.suffix = ".acall" if awaited else ".call"
        elif not isinstance(around, cst.Attribute) or around.attr.value != "call":
            method = "acall" if awaited else "call"
            for use in object_uses(self.source, around):
                named = self.library == "retrying"
                self.edits |= object_edits(
                    self.source, use, settings, "" if named else method
                )

    # ---- The text

    def written(self) -> cst.BaseExpression:
        """Return the expression in its place."""
        settings = self.settings or {}
        arguments = arguments_of(settings)
        if self.base is not None:
            arguments.insert(0, ("", self.base))
        column, margin = self.source.column(self.node)
        old = [] if self.call is None else comments_of(self.call)
        text = write_call(
            self.head,
            arguments,
            room=WIDTH - column - len(self.suffix),
            margin=margin,
            comments=self._comments(old, [name for name, _ in arguments]),
            exploded=self._was_exploded() and len(arguments) > 1,
            names=self.source.names,
        )
        return parse(text + self.suffix)

    def _was_exploded(self) -> bool:
        """Return whether each argument of the call had a line of its own."""
        args = () if self.call is None else self.call.args
        return bool(args) and isinstance(args[-1].comma, cst.Comma)

    def _comments(
        self, old: list[tuple[str, str]], names: list[str]
    ) -> dict[str, list[str]]:
        """Return the comments of the call, by the settings that they stand above."""
        origins = ENTRIES[self.library, self.name].origins
        found: dict[str, list[str]] = {}
        for parameter, text in old:
            meant = (name for name in names if origins.get(name) == parameter)
            place = next(meant, names[-1] if names else "")
            if parameter == OPENING:
                place = OPENING
            found.setdefault(place, []).append(text)
        return found


def _generates(function: cst.FunctionDef) -> bool:
    """Return whether a function is a generator function."""
    found: list[cst.Yield] = []

    class Yields(cst.CSTVisitor):
        def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
            return node is function

        def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: ARG002
            return False

        def visit_Yield(self, node: cst.Yield) -> None:
            found.append(node)

    function.visit(Yields())
    return bool(found)


def find_sites(source: Source) -> list[Site]:
    """Return the usages of a file, in the order of their lines."""
    sites = []
    for node in source.find({*ENTRIES, *_LEFT}):
        found = source.library_name(node)
        if found is not None:
            sites.append(Site(source, node, found))
    for site in sites:
        site.translate()
    left = {site.variable for site in sites if site.settings is None} - {None}
    for site in sites:
        if site.settings is not None and site.variable in left:
            site.leave(_SHARED)
    return sites
