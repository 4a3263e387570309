"""Usages of other libraries in a file, and what becomes of each."""

from typing import Final, Literal

import libcst as cst

from retrykit.migrate import _urllib3
from retrykit.migrate._blocks import Edits, block_edits, loop_head
from retrykit.migrate._entries import ENTRIES, LEFT, Entry
from retrykit.migrate._expressions import OURS, code, parse
from retrykit.migrate._findings import Unknown, Untranslatable
from retrykit.migrate._layout import (
    OPENING,
    arguments_of,
    comments_of,
    write_call,
)
from retrykit.migrate._objects import (
    annotation_edits,
    caller_edits,
    object_edits,
    object_uses,
)
from retrykit.migrate._settings import Settings, Use, ordered
from retrykit.migrate._source import Arguments, Source

__all__ = ["Site", "find_sites", "leave_shared"]


_SHARED: Final = "another object of this variable is left as it is"

_A_GENERATOR: Final = (
    "it decorates a generator function, whose calls do not fail, but its items"
)


class Site:
    """A usage of a library in a file.

    Attributes:
        source: The file.
        node: The expression that is replaced.
        call: That expression, if it is a call; else None.
        library: The library.
        name: The name in the library, such as ``retry``.
        kind: The kind of its `Entry`; empty if it was left before that was known.
        line: The line, from 1.
        anchor: The statement or decorator above which a comment would be written.
        function: The decorated function, if there is one.
        variable: A key of the variable that it is assigned to, if there is one.
        arguments: Its arguments; None if they were not read.
        settings: The settings of the policy; None if it is left as it is.
        reason: Why it is left as it is; None if it is translated.
        edits: The other edits in the file.
        dictionaries: The variables whose items are arguments.
        own: The names of the parameters that are written in the call itself.
        base: The variable of a policy that it takes; None if there is none.
        head: The text of the function or class that it calls once it is translated.
        suffix: The text after that call, such as ``.call``.
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
        """Leave the usage as it is, for a reason."""
        self.settings, self.reason, self.edits = None, reason, {}

    def translate(self) -> None:
        """Find the settings, or the reason why the usage is left as it is."""
        try:
            self._translate()
        except Untranslatable as reason:
            self.leave(str(reason))

    def _translate(self) -> None:
        key = (self.library, self.name)
        if key in LEFT:
            raise Untranslatable(LEFT[key])
        name = self.call.func if self.call is not None else self.node
        if self.source.is_conditional(name):
            raise Untranslatable("it is imported under a condition")
        entry = ENTRIES[key]
        self.kind = entry.kind
        around = self.source.parent(self.node)
        self.function = self._decorated(around)
        if self.call is None and entry.kind == "value":
            raise Untranslatable("a subclass of it is code of its own")
        bare = self.call is None
        if bare and (entry.kind != "function" or not isinstance(around, cst.Decorator)):
            raise Untranslatable("it is passed on as an object")
        awaited, kind = entry.awaited, self._use_kind(around)
        if self.function is not None:
            if _generates(self.function):
                raise Untranslatable(_A_GENERATOR)
            awaited = self.function.asynchronous is not None
        elif kind == "block" and isinstance(around, cst.For):
            awaited = around.asynchronous is not None
        settings = self._find_settings(entry, Use(kind, awaited, self.function))
        if entry.kind != "function":
            self._place(around, settings, awaited=awaited)
        self.settings = ordered(settings)

    def _find_settings(self, entry: Entry, use: Use) -> Settings:
        try:
            return entry.settings(self._read_arguments(entry.parameters), use)
        except Unknown:
            if not entry.adapter or self.call is None:
                raise
            return {"policy": f"{entry.adapter}({_arguments_text(self.call)})"}

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
        """Return whether the only argument of a call is the function to decorate."""
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
        """Find the head, the suffix and the edits of a value, an object or a block.

        Raises:
            Untranslatable: It is used in a way that retrykit does not have.
        """
        if self.kind == "value":
            self.head = ENTRIES[self.library, self.name].head
            self._check_unread()
            return
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
            self.edits |= annotation_edits(self.source, around)
            for use in object_uses(self.source, around):
                named = self.library == "retrying"
                self.edits |= object_edits(
                    self.source, use, settings, "" if named else method
                )

    def _check_unread(self) -> None:
        """Raise Untranslatable if a file reads an attribute that loses its meaning."""
        for name in _urllib3.READ:
            for node in self.source.attributes(name):
                if "retr" in code(node.value).rpartition(".")[2].lower():
                    raise Untranslatable(f"the file reads {code(node)}")
            if self.source.surroundings.mention(f"max_retries.{name}"):
                raise Untranslatable(f"another file reads max_retries.{name}")

    # ---- The text

    def written(self) -> cst.BaseExpression:
        """Return the expression that replaces the usage."""
        settings = self.settings or {}
        if "policy" in settings and self.head == f"{OURS}.Policy":
            return parse(settings["policy"] + self.suffix)
        arguments = arguments_of(settings)
        if ENTRIES[self.library, self.name].adapter:
            arguments = [(x.replace("policy", ""), text) for x, text in arguments]
        if self.base is not None:
            arguments.insert(0, ("", self.base))
        column, margin = self.source.column(self.node)
        old = [] if self.call is None else comments_of(self.call)
        text = write_call(
            self.head,
            arguments,
            room=self.source.surroundings.width - column - len(self.suffix),
            width=self.source.surroundings.width,
            margin=margin,
            comments=self._comments(old, [name for name, _ in arguments]),
            exploded=self._was_exploded() and len(arguments) > 1,
            names=self.source.names,
        )
        return parse(text + self.suffix)

    def _was_exploded(self) -> bool:
        """Return whether the call ends with a comma, as calls over many lines do."""
        args = () if self.call is None else self.call.args
        return bool(args) and isinstance(args[-1].comma, cst.Comma)

    def _comments(
        self, old: list[tuple[str, str]], names: list[str]
    ) -> dict[str, list[str]]:
        """Return the comments of the call, keyed by the setting to write them above."""
        origins = ENTRIES[self.library, self.name].origins
        found: dict[str, list[str]] = {}
        for parameter, text in old:
            meant = (name for name in names if origins.get(name) == parameter)
            place = next(meant, names[-1] if names else "")
            if parameter == OPENING:
                place = OPENING
            found.setdefault(place, []).append(text)
        return found


def _arguments_text(call: cst.Call) -> str:
    """Return the arguments of a call as they are written."""
    plain = (arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in call.args)
    return ", ".join(code(arg) for arg in plain)


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


def _is_mere_type(
    source: Source, node: cst.BaseExpression, found: tuple[str, str]
) -> bool:
    """Return whether a use of a class creates nothing that retries."""
    if found not in ENTRIES or ENTRIES[found].kind != "value":
        return False
    around = source.parent(node)
    if isinstance(around, cst.Call) and around.func is node:
        return _urllib3.switches_off(around)
    return around is None or not isinstance(source.parent(around), cst.ClassDef)


def find_sites(source: Source) -> list[Site]:
    """Return the usages in a file, each translated or left for a reason."""
    sites = []
    for node in source.find({*ENTRIES, *LEFT}):
        found = source.library_name(node)
        if found is not None and not _is_mere_type(source, node, found):
            sites.append(Site(source, node, found))
    for site in sites:
        site.translate()
    leave_shared(sites)
    return sites


def leave_shared(sites: list[Site]) -> None:
    """Leave an object as it is if its variable may hold another one that is left."""
    left = {site.variable for site in sites if site.settings is None} - {None}
    for site in sites:
        if site.settings is not None and site.variable in left:
            site.leave(_SHARED)
