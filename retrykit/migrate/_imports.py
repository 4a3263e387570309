"""Imports of a migrated file: retrykit's are added, and unused ones are removed."""

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import libcst as cst
from libcst import metadata

from retrykit.migrate._expressions import OURS, STANDARD
from retrykit.migrate._source import LIBRARIES, Source
from retrykit.migrate._width import WIDTH

__all__ = ["settle_imports"]

ImportT = TypeVar("ImportT", cst.Import, cst.ImportFrom)

_OUR_NAMES: Final = re.compile(rf"{OURS}((?:\.\w+)+)")
_STANDARD_NAMES: Final = re.compile(rf"{STANDARD}\.(\w+)")

# The packages and modules whose names a text may need.
_MODULES: Final = (
    "schedules",
    "integrations.logging",
    "integrations.tenacity",
    "integrations.backoff",
    "integrations.urllib3",
)


def settle_imports(
    text: str, used_before: set[str], width: int = WIDTH
) -> tuple[str, dict[str, str]]:
    """Return the text of a file with names in place of its tokens, and the names.

    The names are imported, and imports of libraries that are no longer used are
    removed.

    Args:
        text: The text, with tokens.
        used_before: The names that the file used before the migration. An import that
            was unused before stays.
        width: The maximum line length, in columns.
    """
    source = Source(text)
    unused = _unused_imports(source, used_before)
    bound = _bound_names(source, unused)
    existing = _existing_imports(source)
    names, wanted = _choose_names(text, bound, existing)
    text = _OUR_NAMES.sub(lambda found: _named(found[1][1:], names), text)
    modules = sorted(set(_STANDARD_NAMES.findall(text)))
    text = text.replace(f"{STANDARD}.", "")
    missing = [module for module in modules if module not in existing.values()]
    module = cst.parse_module(text)
    added = _add_imports(module, wanted, missing, width, anchor=_anchor(module))
    return (_without(added, unused, width) if unused else added).code, names


def _named(full: str, names: dict[str, str]) -> str:
    """Return a dotted name as the file writes it; methods at its end are kept."""
    if full in names:
        return names[full]
    before, _, rest = full.rpartition(".")
    return f"{_named(before, names)}.{rest}" if before else full


def _split(full: str) -> tuple[str, str]:
    """Return the module and the name of a dotted name of retrykit.

    >>> _split("schedules.constant"), _split("retry")
    (('retrykit.schedules', 'constant'), ('retrykit', 'retry'))
    """
    for module in _MODULES:
        if full.startswith(f"{module}."):
            return f"retrykit.{module}", full.removeprefix(f"{module}.").partition(".")[
                0
            ]
    return "retrykit", full.partition(".")[0]


def _choose_names(
    text: str, bound: set[str], existing: dict[str, str]
) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Return the name in the file for each name of retrykit, and the missing imports.

    Where the file uses a name for something else, a longer name is chosen.
    """
    names: dict[str, str] = {}
    wanted: dict[tuple[str, str], str] = {}
    for found in sorted(set(_OUR_NAMES.findall(text))):
        module, name = _split(found[1:])
        prefix = module.removeprefix("retrykit").removeprefix(".")
        full = f"{prefix}.{name}" if prefix else name
        here = [local for local, what in existing.items() if what == f"{module}.{name}"]
        if here:
            names[full] = here[0]
            continue
        local = name
        taken = bound | {
            other for (m, n), other in wanted.items() if (m, n) != (module, name)
        }
        if local in taken:
            local = f"Retrykit{name}" if name[0].isupper() else f"retrykit_{name}"
            if module.startswith("retrykit.integrations."):
                local = f"{module.rpartition('.')[2]}_{name}"
        names[full] = local
        wanted[module, name] = local
    return names, wanted


def _bound_names(source: Source, unused: set[tuple[str, str]]) -> set[str]:
    """Return all names that the file binds in any scope, except unused imports."""
    gone = {local for _, local in unused}
    found: set[str] = set()
    for scope in source.all_scopes():
        for assignment in scope.assignments:
            if isinstance(assignment, metadata.BuiltinAssignment):
                continue
            is_import = isinstance(assignment, metadata.ImportAssignment)
            if not (is_import and assignment.name in gone):
                found.add(assignment.name)
    return found


def _existing_imports(source: Source) -> dict[str, str]:
    """Return the full names of top-level imports, keyed by their names in the file.

    Modules imported under another name are left out.
    """
    found: dict[str, str] = {}
    for statement in source.module.body:
        for small in _smalls(statement):
            if isinstance(small, cst.Import):
                for alias in small.names:
                    local = alias.evaluated_alias or alias.evaluated_name
                    if alias.evaluated_alias is None or local == alias.evaluated_name:
                        found[local] = alias.evaluated_name
            elif not isinstance(small.names, cst.ImportStar):
                module = _module_of(small)
                for alias in small.names:
                    local = alias.evaluated_alias or alias.evaluated_name
                    found[local] = f"{module}.{alias.evaluated_name}"
    return found


def _module_of(node: cst.ImportFrom) -> str:
    if node.module is None or node.relative:
        return ""
    return cst.Module([]).code_for_node(node.module)


def _unused_imports(source: Source, used_before: set[str]) -> set[tuple[str, str]]:
    """Return the module and local name of each library import that became unused."""
    found: set[tuple[str, str]] = set()
    for scope in source.all_scopes():
        for assignment in scope.assignments:
            if not isinstance(assignment, metadata.ImportAssignment):
                continue
            module = assignment.get_module_name_for_import()
            top = (module or _imported_name(assignment)).partition(".")[0]
            if top not in LIBRARIES or assignment.references:
                continue
            if assignment.name in used_before:
                found.add((module, assignment.name))
    return found


def _without(
    module: cst.Module, unused: set[tuple[str, str]], width: int
) -> cst.Module:
    """Return a file without some imports; the comments above them stay."""
    removal = _Removal(unused, width)
    body: list[cst.BaseStatement | cst.SimpleStatementLine] = []
    above: list[cst.EmptyLine] = []
    for statement in module.body:
        edited = statement.visit(removal)
        lines = [*above, *getattr(statement, "leading_lines", ())]
        if not isinstance(edited, cst.BaseStatement | cst.SimpleStatementLine):
            above = lines
            continue
        if above:
            own = getattr(statement, "leading_lines", ())
            if own and own[0].comment is None:
                # A blank line is there already.
                above = [line for line in above if line.comment is not None]
            edited = edited.with_changes(leading_lines=[*above, *own])
            above = []
        body.append(edited)
    return module.with_changes(body=body)


def _imported_name(assignment: metadata.ImportAssignment) -> str:
    node = assignment.node
    names = node.names if isinstance(node, cst.Import) else ()
    found = (x for x in names if _local(x) == assignment.name)
    return next((x.evaluated_name for x in found), "")


class _Removal(cst.CSTTransformer):
    """Removes imports."""

    def __init__(self, unused: set[tuple[str, str]], width: int) -> None:
        super().__init__()
        self._unused = unused
        self._width = width

    def leave_SimpleStatementLine(
        self,
        original_node: cst.SimpleStatementLine,
        updated_node: cst.SimpleStatementLine,
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        gone = original_node.body and not updated_node.body
        return cst.RemoveFromParent() if gone else updated_node

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = updated_node.body
        if not body or len(body) == len(original_node.body):
            return updated_node
        blank, rest = _leading_blanks(getattr(body[0], "leading_lines", ()))
        above: Sequence[cst.EmptyLine]
        above = getattr(original_node.body[0], "leading_lines", [])
        if not blank or above:
            return updated_node
        return updated_node.with_changes(
            body=[body[0].with_changes(leading_lines=rest), *body[1:]]
        )

    def leave_Import(
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.Import | cst.RemovalSentinel:
        kept = [
            alias
            for alias in original_node.names
            if ("", _local(alias)) not in self._unused
        ]
        return _with_names(updated_node, original_node.names, kept, self._width)

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.RemovalSentinel:
        names = original_node.names
        if isinstance(names, cst.ImportStar):
            return updated_node
        module = _module_of(original_node)
        kept = [x for x in names if (module, _local(x)) not in self._unused]
        return _with_names(updated_node, names, kept, self._width)


def _local(alias: cst.ImportAlias) -> str:
    return alias.evaluated_alias or alias.evaluated_name


def _with_names(
    node: ImportT,
    names: Sequence[cst.ImportAlias],
    kept: Sequence[cst.ImportAlias],
    width: int,
) -> ImportT | cst.RemovalSentinel:
    if len(kept) == len(names):
        return node
    if not kept:
        return cst.RemoveFromParent()
    if getattr(node, "lpar", None):
        line = _from_text(
            _module_of(cst.ensure_type(node, cst.ImportFrom)),
            [_alias_text(alias) for alias in kept],
            width,
        )
        if "#" not in cst.Module([]).code_for_node(node):
            made = cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine)
            return cst.ensure_type(made.body[0], type(node))
        return node.with_changes(names=[*kept[:-1], _like_last(kept[-1], names[-1])])
    bare = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return node.with_changes(names=[*kept[:-1], bare])


def _alias_text(alias: cst.ImportAlias) -> str:
    bare = alias.with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return cst.Module([]).code_for_node(bare)


def _like_last(alias: cst.ImportAlias, last: cst.ImportAlias) -> cst.ImportAlias:
    return alias.with_changes(comma=last.comma)


# ---- Adding imports


def _anchor(module: cst.Module) -> int | None:
    """Return the index of the first top-level import of a library; None without one."""
    found = (n for n, x in enumerate(module.body) if _is_import(x) and _libraries_of(x))
    return next(found, None)


def _libraries_of(statement: cst.CSTNode) -> bool:
    return any(
        _imported_module(x).partition(".")[0] in LIBRARIES for x in _smalls(statement)
    )


def _smalls(statement: cst.CSTNode) -> "list[cst.Import | cst.ImportFrom]":
    body = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return [x for x in body if isinstance(x, cst.Import | cst.ImportFrom)]


def _imported_module(node: "cst.Import | cst.ImportFrom") -> str:
    if isinstance(node, cst.Import):
        return node.names[0].evaluated_name
    return _module_of(node)


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and bool(_smalls(statement))


def _add_imports(
    module: cst.Module,
    wanted: dict[tuple[str, str], str],
    standard: Iterable[str],
    width: int,
    *,
    anchor: int | None,
) -> cst.Module:
    body: list[cst.BaseStatement | cst.SimpleStatementLine] = [*module.body]
    by_module: dict[str, dict[str, str]] = {}
    for (name, each), local in wanted.items():
        by_module.setdefault(name, {})[each] = local
    for name in sorted(by_module):
        if not _merge(body, name, by_module[name], width):
            line = _from_text(name, _imported_texts(by_module[name]), width)
            place = _insert(body, line, anchor)
            if anchor is not None and place <= anchor:
                anchor += 1
    for name in standard:
        _insert_standard(body, f"import {name}")
    return module.with_changes(body=body)


def _sorted_names(names: Iterable[str]) -> list[str]:
    """Return imported names as isort sorts them: constants, classes, others."""

    def key(text: str) -> tuple[int, str]:
        name = text.partition(" ")[0]
        kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
        return kind, name

    return sorted(names, key=key)


def _imported_texts(names: dict[str, str]) -> list[str]:
    return [
        name if name == local else f"{name} as {local}" for name, local in names.items()
    ]


def _from_text(module: str, texts: Iterable[str], width: int) -> str:
    ordered = _sorted_names(texts)
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= width:
        return line
    inner = "".join(f"    {name},\n" for name in ordered)
    return f"from {module} import (\n{inner})"


def _merge(
    body: list,  # type: ignore[type-arg]
    module: str,
    names: dict[str, str],
    width: int,
) -> bool:
    """Add names to an import of the same module; return whether there was one."""
    for index, statement in enumerate(body):
        for small in _smalls(statement):
            plain = isinstance(small, cst.ImportFrom) and _module_of(small) == module
            if not plain or isinstance(small.names, cst.ImportStar):
                continue
            if len(statement.body) != 1:
                continue
            texts = [_alias_text(alias) for alias in small.names]
            texts += _imported_texts(names)
            line = _from_text(module, dict.fromkeys(texts), width)
            made = cst.parse_statement(line)
            body[index] = made.with_changes(
                leading_lines=statement.leading_lines,
                trailing_whitespace=statement.trailing_whitespace,
            )
            return True
    return False


def _key(statement: cst.CSTNode) -> tuple[int, str]:
    """Return the key by which isort sorts imports by default."""
    small = _smalls(statement)[0]
    return int(isinstance(small, cst.ImportFrom)), _imported_module(small).lower()


def _key_of_module(statement: cst.CSTNode) -> tuple[int, str]:
    """Return the key for sorting imports by module, not by form."""
    return 0, _key(statement)[1]


def _insert(body: list, line: str, anchor: int | None) -> int:  # type: ignore[type-arg]
    """Insert an import into the section of the import at *anchor*; return its index.

    Without an anchor, it goes into the section of the last import; without any import,
    to the top of the file, below its docstring.
    """
    made = cst.parse_statement(line)
    imports = [index for index, each in enumerate(body) if _is_import(each)]
    if not imports:
        place = _after_docstring(body)
        if place:
            made = made.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        body.insert(place, made)
        return place
    near = min(
        imports,
        key=lambda index: (
            abs(index - (imports[-1] if anchor is None else anchor)),
            index,
        ),
    )
    start = near
    while start - 1 in imports and not _begins_section(body[start]):
        start -= 1
    end = near + 1
    while end in imports and not _begins_section(body[end]):
        end += 1
    # If the imports are not sorted: beside what it replaces.
    place = near
    for key in (_key, _key_of_module):
        keys = [key(each) for each in body[start:end]]
        if keys == sorted(keys):
            place = start + bisect_left(keys, key(made))
            break
    if place == start:
        blank, rest = _leading_blanks(body[start].leading_lines)
        body[start] = body[start].with_changes(leading_lines=rest)
        made = made.with_changes(leading_lines=blank)
    body.insert(place, made)
    return place


def _begins_section(statement: cst.CSTNode) -> bool:
    lines = getattr(statement, "leading_lines", ())
    return any(line.comment is None for line in lines)


def _leading_blanks(
    lines: Sequence[cst.EmptyLine],
) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    blank = []
    for line in lines:
        if line.comment is not None:
            break
        blank.append(line)
    return blank, [*lines[len(blank) :]]


def _after_docstring(body: list) -> int:  # type: ignore[type-arg]
    first = body[0] if body else None
    if isinstance(first, cst.SimpleStatementLine) and isinstance(
        first.body[0], cst.Expr
    ):
        return 1 if isinstance(first.body[0].value, cst.SimpleString) else 0
    return 0


def _insert_standard(body: list, line: str) -> None:  # type: ignore[type-arg]
    """Insert an import of the standard library, sorted among its other imports.

    If there are none, it comes first, after any ``from __future__``.
    """
    made = cst.parse_statement(line)
    places = [
        index
        for index, each in enumerate(body)
        if _is_import(each) and _imported_module(_smalls(each)[0]) != "__future__"
    ]
    standard = [
        index
        for index in places
        if _imported_module(_smalls(body[index])[0]).partition(".")[0]
        in sys.stdlib_module_names
    ]
    if not standard:
        place = places[0]
        blank, rest = _leading_blanks(body[place].leading_lines)
        body[place] = body[place].with_changes(
            leading_lines=[cst.EmptyLine(indent=False), *rest]
        )
        body.insert(place, made.with_changes(leading_lines=blank))
        return
    place = next(
        (index for index in standard if _key(body[index]) > _key(made)),
        standard[-1] + 1,
    )
    if place == standard[0]:
        blank, rest = _leading_blanks(body[place].leading_lines)
        body[place] = body[place].with_changes(leading_lines=rest)
        made = made.with_changes(leading_lines=blank)
    body.insert(place, made)
