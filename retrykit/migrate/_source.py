"""A parsed file: its names, the places of its nodes, and the arguments of its calls."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Final

import libcst as cst
from libcst import metadata

from retrykit.migrate._expressions import code
from retrykit.migrate._findings import Unknown, Untranslatable
from retrykit.migrate._width import WIDTH

__all__ = ["LIBRARIES", "Arguments", "Source", "Surroundings", "dictionary_items"]
__all__ += ["imports_library"]

LIBRARIES: Final = ("backoff", "tenacity", "stamina", "retrying", "urllib3", "requests")
"""The libraries whose usages are translated."""


class _Index(cst.CSTVisitor):
    """The names, attributes, functions and imports of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[cst.Name]] = {}
        self.attributes: dict[str, list[cst.Attribute]] = {}
        self.functions: dict[str, list[cst.FunctionDef]] = {}
        self.imports: list[cst.Import | cst.ImportFrom] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.names.setdefault(node.value, []).append(node)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.attributes.setdefault(node.attr.value, []).append(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.functions.setdefault(node.name.value, []).append(node)

    def visit_Import(self, node: cst.Import) -> None:
        self.imports.append(node)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        self.imports.append(node)


def _top(node: cst.Import | cst.ImportFrom, alias: cst.ImportAlias) -> str:
    """Return the package that is imported from; empty for a relative import."""
    if isinstance(node, cst.Import):
        return alias.evaluated_name.partition(".")[0]
    if node.module is None or node.relative:
        return ""
    return code(node.module).partition(".")[0]


_IMPORTED: Final = re.compile(
    r"^[ \t]*(?:from|import)\b[^\n#]*\b(?:backoff|tenacity|stamina|retrying)\b"
    r"|^[ \t]*(?:from|import)[ ]+(?:urllib3|requests)\b(?=.*\bRetry\b)",
    re.MULTILINE | re.DOTALL,
)


def imports_library(text: str) -> bool:
    """Return whether a file may import something that can be translated."""
    return any(name in text for name in LIBRARIES) and bool(_IMPORTED.search(text))


class Surroundings:
    """The other files of a project, as far as a file must know them.

    Args:
        mention: Returns whether another file has a word: a name, an attribute that
            tenacity adds to functions, such as ``fetch.statistics`` or
            ``.statistics``, an attribute such as ``max_retries.total``, or
            ``raise TryAgain``.
        complete: The libraries whose usages in the project are all translated.
        width: The maximum line length, in columns.
    """

    mention: Callable[[str], bool]
    complete: Collection[str]
    width: int

    def __init__(
        self,
        mention: Callable[[str], bool] = lambda _name: False,
        complete: Collection[str] = LIBRARIES,
        width: int = WIDTH,
    ) -> None:
        self.mention, self.complete, self.width = mention, complete, width


class Source:
    """A parsed file.

    Attributes:
        module: Its tree.
        text: Its text.
        surroundings: The other files of its project.
        names: The file's names for names of retrykit, once they are known.
    """

    def __init__(self, text: str, surroundings: "Surroundings | None" = None) -> None:
        self.surroundings = surroundings or Surroundings()
        self.names: dict[str, str] = {}
        self._wrapper = metadata.MetadataWrapper(
            cst.parse_module(text), unsafe_skip_copy=True
        )
        self.text = text
        self._lines = text.splitlines()
        self.module = self._wrapper.module

    # Each takes about as long as parsing.
    @cached_property
    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return self._wrapper.resolve(metadata.ParentNodeProvider)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, metadata.CodeRange]:
        return self._wrapper.resolve(metadata.PositionProvider)

    @cached_property
    def _scopes(self) -> Mapping[cst.CSTNode, metadata.Scope | None]:
        return self._wrapper.resolve(metadata.ScopeProvider)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the node around a node; None around the whole file."""
        return self._parents.get(node)

    def parents(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around a node, from the inside out."""
        around = self.parent(node)
        while around is not None:
            yield around
            around = self.parent(around)

    def line(self, node: cst.CSTNode) -> int:
        """Return the line at which a node begins, from 1."""
        return self._positions[node].start.line

    def column(self, node: cst.CSTNode) -> tuple[int, str]:
        """Return the column of a node, from 0, and the extra indentation of its line.

        The indentation is returned as spaces, and is extra if the line is indented more
        than the statement or decorator around the node.
        """
        start = self._positions[node].start
        line = self._lines[start.line - 1]
        blanks = len(line) - len(line.lstrip())
        for each in self.parents(node):
            if isinstance(each, cst.BaseStatement | cst.Decorator):
                own = self._positions[each].start.column
                return start.column, " " * max(0, blanks - own)
        return start.column, ""

    def find(self, wanted: Collection[tuple[str, str]]) -> list[cst.BaseExpression]:
        """Return the uses of library names, except in imports and annotations.

        Args:
            wanted: Pairs of a library and a name in it.
        """
        found: list[cst.BaseExpression] = []
        for local in self._library_locals:
            for name in self._index.names.get(local, ()):
                if not self._is_use(name):
                    continue
                node: cst.CSTNode | None = name
                while isinstance(node, cst.Name | cst.Attribute):
                    if self.library_name(node) in wanted:
                        found.append(node)
                        break
                    around = self.parent(node)
                    inner = isinstance(around, cst.Attribute) and around.value is node
                    node = around if inner else None
        return found

    def _is_use(self, node: cst.Name) -> bool:
        """Return whether a name is read, other than in an annotation or an import."""
        around = self.parent(node)
        if isinstance(around, cst.Attribute):
            return around.value is node and not self._is_annotation(around)
        if isinstance(around, cst.FunctionDef | cst.ClassDef | cst.Param):
            return around.name is not node
        if isinstance(around, cst.Arg):
            return around.keyword is not node
        return not (isinstance(around, cst.AssignTarget) or self._is_annotation(node))

    def _is_annotation(self, node: cst.CSTNode) -> bool:
        """Return whether a node is part of an annotation or an import."""
        return any(
            isinstance(each, cst.Annotation | cst.Import | cst.ImportFrom)
            for each in self.parents(node)
        )

    @cached_property
    def _index(self) -> "_Index":
        index = _Index()
        self.module.visit(index)
        return index

    @cached_property
    def _library_locals(self) -> list[str]:
        """The names by which the file knows the libraries and their contents."""
        found = (
            alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
            for node in self._index.imports
            if not isinstance(node.names, cst.ImportStar)
            for alias in node.names
            if _top(node, alias) in LIBRARIES
        )
        return [*dict.fromkeys(found)]

    def constants(self) -> list[tuple[cst.Name, cst.BaseSmallStatement]]:
        """Return the top-level assignments of strategies and dictionaries.

        Each is a pair of the variable and the assignment. Strategies are calls of names
        of libraries, and combinations of such calls.
        """
        found: list[tuple[cst.Name, cst.BaseSmallStatement]] = []
        for line in self.module.body:
            if not isinstance(line, cst.SimpleStatementLine):
                continue
            for node in line.body:
                if not isinstance(node, cst.Assign) or len(node.targets) != 1:
                    continue
                target, value = node.targets[0].target, node.value
                if isinstance(target, cst.Name) and self._is_strategy(value):
                    found.append((target, node))
        return found

    def _is_strategy(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.BinaryOperation):
            return self._is_strategy(node.left) and self._is_strategy(node.right)
        if isinstance(node, cst.Call):
            named = self.library_name(node.func) is not None
            return named or code(node.func) == "dict"
        return isinstance(node, cst.Dict)

    def all_scopes(self) -> set[metadata.Scope]:
        """Return all scopes of the file."""
        return {scope for scope in self._scopes.values() if scope is not None}

    def attributes(self, name: str) -> list[cst.Attribute]:
        """Return all attributes in the file that have a given name."""
        return self._index.attributes.get(name, [])

    def scope(self, node: cst.CSTNode) -> metadata.Scope | None:
        """Return the scope that a node is in; None if there is none."""
        for each in (node, *self.parents(node)):
            if each in self._scopes:
                return self._scopes[each]
        return None

    def library_name(self, node: cst.CSTNode) -> tuple[str, str] | None:
        """Return the library, and the name in it, that an expression refers to.

        None for any other expression. The modules of a library are left out:
        `tenacity.wait.wait_fixed` is the ``wait_fixed`` of ``tenacity``.
        """
        if not isinstance(node, cst.Name | cst.Attribute):
            return None
        scope = self.scope(node)
        if scope is None:
            return None
        full = sorted(
            each.name
            for each in scope.get_qualified_names_for(node)
            if each.source is metadata.QualifiedNameSource.IMPORT
            and each.name.partition(".")[0] in LIBRARIES
        )
        if not full:
            return None
        library, _, rest = full[0].partition(".")
        return library, rest.rpartition(".")[2]

    def is_conditional(self, node: cst.CSTNode) -> bool:
        """Return whether a name may refer to several things."""
        scope = self.scope(node)
        if scope is None or not isinstance(node, cst.Name | cst.Attribute):
            return False
        names = scope.get_qualified_names_for(node)
        return len({each.name for each in names}) > 1

    def may_be_none(self, node: cst.CSTNode) -> bool:
        """Return whether a parameter may have a value that is not a number.

        It may if its default or its annotation says so, as ``int | None`` does, unless
        the node is under an ``if`` that rules out None.
        """
        assignments = self._assignments(node)
        inner = getattr(assignments[0], "node", None) if len(assignments) == 1 else None
        if not isinstance(inner, cst.Param):
            return False
        annotated = None if inner.annotation is None else inner.annotation.annotation
        if self._is_tested(node):
            return False
        texts = [code(each) for each in (inner.default, annotated) if each is not None]
        return any(re.search(r"\b(?:None|Optional|bool|Retry)\b", x) for x in texts)

    def _is_tested(self, node: cst.CSTNode) -> bool:
        """Return whether a variable is read under an ``if`` that rules out None."""
        tests = {code(node), f"{code(node)} is not None"}
        within = [node, *self.parents(node)]
        return any(
            isinstance(around, cst.If)
            and around.body is inside
            and code(around.test) in tests
            for inside, around in pairwise(within)
        )

    def functions(self, name: str) -> list[cst.FunctionDef]:
        """Return the functions and methods in the file that have a given name."""
        return self._index.functions.get(name, [])

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """Return the function that is the only value of a name; else None."""
        assignments = self._assignments(node)
        found = getattr(assignments[0], "node", None) if len(assignments) == 1 else None
        return found if isinstance(found, cst.FunctionDef) else None

    def is_class(self, node: cst.CSTNode) -> bool:
        """Return whether a name refers to a class of the file or a built-in error."""
        assignments = self._assignments(node)
        if len(assignments) != 1:
            return False
        found = assignments[0]
        if isinstance(found, metadata.BuiltinAssignment):
            return found.name[:1].isupper()
        return isinstance(getattr(found, "node", None), cst.ClassDef)

    def class_of(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class that is the only value of a name; else None."""
        assignments = self._assignments(node)
        found = getattr(assignments[0], "node", None) if len(assignments) == 1 else None
        return found if isinstance(found, cst.ClassDef) else None

    def is_imported(self, node: cst.CSTNode) -> bool:
        """Return whether a name is imported."""
        return any(
            isinstance(each, metadata.ImportAssignment)
            for each in self._assignments(node)
        )

    def is_global(self, node: cst.CSTNode) -> bool:
        """Return whether a variable belongs to the module, not to a function."""
        return isinstance(self.scope(node), metadata.GlobalScope)

    def _assignments(self, node: cst.CSTNode) -> list[metadata.BaseAssignment]:
        if not isinstance(node, cst.Name):
            return []
        scope = self.scope(node)
        return [] if scope is None else [*scope[node.value]]

    def references(self, name: cst.Name) -> list[cst.CSTNode]:
        """Return all nodes that read a variable, given its name at its assignment."""
        return [
            access.node
            for assignment in self._assignments(name)
            for access in assignment.references
        ]

    def variable(self, assignment: cst.CSTNode | None) -> object:
        """Return a key that all assignments of a variable share.

        None if the node is not the assignment of a variable.
        """
        if not isinstance(assignment, cst.Assign):
            return None
        target = assignment.targets[0].target
        return (
            (self.scope(target), target.value) if isinstance(target, cst.Name) else None
        )

    def definitions(self, name: cst.Name) -> list[cst.CSTNode | None]:
        """Return the assignments of a variable; None for one unlike ``x = ...``."""
        found: list[cst.CSTNode | None] = []
        for each in self._assignments(name):
            target = getattr(each, "node", None)
            inner = None if target is None else self.parent(target)
            around = None if inner is None else self.parent(inner)
            found.append(around if isinstance(around, cst.Assign) else None)
        return found

    def definition(self, node: cst.CSTNode) -> cst.Assign | cst.AnnAssign | None:
        """Return the assignment of a variable that is assigned once; else None."""
        assignments = self._assignments(node)
        if len(assignments) != 1:
            return None
        for around in self.parents(getattr(assignments[0], "node", self.module)):
            if isinstance(around, cst.AnnAssign):
                return around
            if isinstance(around, cst.Assign):
                return around if len(around.targets) == 1 else None
            if isinstance(around, cst.BaseStatement | cst.BaseSmallStatement):
                return None
        return None

    def value(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """Return the value of a variable that is assigned once; else the node."""
        found = self.definition(node)
        target = None if found is None else _target(found)
        if found is None or found.value is None or not isinstance(target, cst.Name):
            return node
        return found.value


def _target(node: cst.Assign | cst.AnnAssign) -> cst.BaseExpression:
    return node.target if isinstance(node, cst.AnnAssign) else node.targets[0].target


class Arguments:
    """The arguments of a call.

    Args:
        source: The file.
        call: The call; None for no arguments.
        parameters: The names of the positional parameters, separated by spaces.

    Attributes:
        source: The file.
        values: The expressions, keyed by parameter.
        dictionaries: The variables whose items are arguments, through ``**``.
        own: The names of the parameters that do not come from such a variable.
        extra: The positional arguments beyond the parameters.

    Raises:
        Unknown: The arguments are known only at run time.
        Untranslatable: An argument is given twice.
    """

    def __init__(
        self,
        source: Source,
        call: cst.Call | None,
        parameters: str,
    ) -> None:
        self.source = source
        self.values: dict[str, cst.BaseExpression] = {}
        self.dictionaries: list[cst.Name] = []
        self.own: set[str] = set()
        self.extra: list[cst.BaseExpression] = []
        names = parameters.split()
        for arg in () if call is None else call.args:
            if arg.star == "*":
                raise Unknown("its arguments are computed")
            if arg.star == "**":
                self._add_dictionary(arg.value)
            elif arg.keyword is not None:
                self._add(arg.keyword.value, arg.value)
            elif len(self.values) + len(self.extra) < len(names):
                self._add(names[len(self.values)], arg.value)
            else:
                self.extra.append(arg.value)

    def _add(self, name: str, value: cst.BaseExpression) -> None:
        if name in self.values:
            raise Untranslatable(f"{name} is given twice")
        self.values[name] = value
        self.own.add(name)

    def _add_dictionary(self, node: cst.BaseExpression) -> None:
        items = dictionary_items(self.source, self.source.value(node))
        if items is None:
            raise Unknown(f"**{code(node)} is not a dictionary of this file")
        for name, value in items.items():
            if name in self.values:
                raise Untranslatable(f"{name} is given twice")
            self.values[name] = value
        if isinstance(node, cst.Name):
            self.dictionaries.append(node)
        else:
            self.own |= {*items}

    def get(self, name: str) -> cst.BaseExpression | None:
        """Return an argument; None if it is not given."""
        return self.values.get(name)


def dictionary_items(
    source: Source, node: cst.BaseExpression
) -> dict[str, cst.BaseExpression] | None:
    """Return the items of a dictionary with string keys; None for anything else."""
    items: dict[str, cst.BaseExpression] = {}
    if isinstance(node, cst.Call):
        called = isinstance(node.func, cst.Name) and node.func.value == "dict"
        if not called or any(arg.star or arg.keyword is None for arg in node.args):
            return None
        return {arg.keyword.value: arg.value for arg in node.args if arg.keyword}
    if not isinstance(node, cst.Dict):
        return None
    for element in node.elements:
        if isinstance(element, cst.StarredDictElement):
            inner = dictionary_items(source, source.value(element.value))
            if inner is None:
                return None
            items |= inner
            continue
        key = getattr(element, "key", None)
        if not isinstance(key, cst.SimpleString) or not isinstance(
            key.evaluated_value, str
        ):
            return None
        items[key.evaluated_value] = element.value
    return items
